/* Appended to common.cl. Unpacks grey samples of 10 or 12 bits.
 *
 * unpack_rows    CPU: a work-item unpacks a band of rows, 16 samples at a time. Local size 1.
 * unpack_items   GPU: a work-item unpacks 16 samples of a row; work-items outside return.
 *
 * SAMPLE_BITS   10 or 12
 * BIT_STREAM    1: sample i begins at bit SAMPLE_BITS * i, the least significant bit first (Mono10p, Mono12p);
 *               0: bytes a, b, c hold the upper bits of two samples in a and c, and their lower bits in the lower and
 *               the upper half of b (Mono10Packed, Mono12Packed)
 * OUT_BYTES     1: the upper 8 bits of a sample; 2: the sample, least significant byte first
 *
 * `width` is a multiple of the samples that share bytes (GROUP_SAMPLES). Rows may start at any address.
 *
 * Exactness: bits are moved.
 */
#ifndef SAMPLE_BITS
#define SAMPLE_BITS 12
#endif
#ifndef BIT_STREAM
#define BIT_STREAM 1
#endif
#ifndef OUT_BYTES
#define OUT_BYTES 2
#endif
/* Bytes of 16 samples, and their words of 4 bytes. */
#define BLOCK_BYTES (BIT_STREAM ? 2 * SAMPLE_BITS : 24)
#define BLOCK_WORDS (BLOCK_BYTES / 4)
#define LOW_BITS (SAMPLE_BITS - 8)
#define LOW_MASK ((1u << LOW_BITS) - 1u)
#define SAMPLE_MASK ((1u << SAMPLE_BITS) - 1u)
#if BIT_STREAM && SAMPLE_BITS == 10
#define GROUP_SAMPLES 4
#else
#define GROUP_SAMPLES 2
#endif
#define GROUP_BYTES (BLOCK_BYTES * GROUP_SAMPLES / BLOCK)

#define PACKED_ARGS                                                                               \
    __global const uchar *src, ulong src_offset, uint src_stride, __global uchar *dst,            \
        ulong dst_offset, uint dst_stride, int width, int height

static void store_value(__global uchar *row, int x, uint value)
{
#if OUT_BYTES == 2
    /* Of two bytes the compiler makes a rotation of bytes, which Oclgrind 21.10 lacks. */
    STORE_USHORT(row + 2 * x, (ushort)value);
#else
    row[x] = (uchar)(value >> LOW_BITS);
#endif
}

/* Samples from..past-1 of a row, one after the other; `from` and `past` begin groups. */
static void unpack_groups(__global const uchar *from_row, __global uchar *to_row, int from, int past)
{
    __global const uchar *p = from_row + (size_t)(from / GROUP_SAMPLES) * GROUP_BYTES;
    for (int x = from; x < past; x += GROUP_SAMPLES, p += GROUP_BYTES) {
#if BIT_STREAM
        ulong bits = 0;
        for (int i = 0; i < GROUP_BYTES; i++)
            bits |= (ulong)p[i] << (8 * i);
        for (int i = 0; i < GROUP_SAMPLES; i++)
            store_value(to_row, x + i, (uint)(bits >> (SAMPLE_BITS * i)) & SAMPLE_MASK);
#else
        const uint low = p[1];
        store_value(to_row, x, (uint)p[0] << LOW_BITS | (low & LOW_MASK));
        store_value(to_row, x + 1, (uint)p[2] << LOW_BITS | (low >> 4 & LOW_MASK));
#endif
    }
}

/* The 8 samples whose bytes begin `v`. */
static ushort8 unpack_8(uchar16 v)
{
#if BIT_STREAM && SAMPLE_BITS == 10
    /* The product moves the sample to the upper bits. */
    const ushort8 w = as_ushort8(v.s0112233456677889) * (ushort8)(64, 16, 4, 1, 64, 16, 4, 1);
    return w >> (ushort8)6;
#elif BIT_STREAM
    const ushort8 w = as_ushort8(v.s0112344567789aab) * (ushort8)(16, 1, 16, 1, 16, 1, 16, 1);
    return w >> (ushort8)4;
#else
    const ushort8 w = as_ushort8(v.s101243457678a9ab);
    const ushort8 high = w >> (ushort8)(8 - LOW_BITS) & (ushort8)(0xff << LOW_BITS);
    const ushort8 low = w * (ushort8)(16, 1, 16, 1, 16, 1, 16, 1) >> (ushort8)4;
    return high | (low & (ushort8)LOW_MASK);
#endif
}

__kernel void unpack_rows(PACKED_ARGS)
{
    const int2 band = band_of(height);
    const int row_bytes = width / GROUP_SAMPLES * GROUP_BYTES;
    for (int y = band.x; y < band.y; y++) {
        __global const uchar *from = src + src_offset + (size_t)y * src_stride;
        __global uchar *to = dst + dst_offset + (size_t)y * dst_stride;
        int x = 0;
        /* The second load reads 16 bytes, of which it uses fewer. */
        for (int at = 0; at + BLOCK_BYTES / 2 + 16 <= row_bytes; at += BLOCK_BYTES, x += BLOCK) {
            const ushort8 first = unpack_8(LOAD_UCHAR16(from + at));
            const ushort8 second = unpack_8(LOAD_UCHAR16(from + at + BLOCK_BYTES / 2));
            const ushort16 samples = (ushort16)(first, second);
#if OUT_BYTES == 2
            STORE_USHORT16(to + 2 * x, samples);
#else
            STORE_UCHAR16(to + x, convert_uchar16(samples >> (ushort16)LOW_BITS));
#endif
        }
        unpack_groups(from, to, x, width);
    }
}

/* Sample i of the words of a block. */
static uint sample_of(const uint *words, int i)
{
#if BIT_STREAM
    const int bit = SAMPLE_BITS * i;
#else
    const int bit = 24 * (i / 2);
#endif
    const int shift = bit % 32;
    uint v = words[bit / 32] >> shift;
    if (shift > 8)
        v |= words[min(bit / 32 + 1, BLOCK_WORDS - 1)] << (32 - shift);
#if BIT_STREAM
    return v & SAMPLE_MASK;
#else
    if (i % 2 == 0)
        return (v & 0xffu) << LOW_BITS | (v >> 8 & LOW_MASK);
    return (v >> 16 & 0xffu) << LOW_BITS | (v >> 12 & LOW_MASK);
#endif
}

__kernel void unpack_items(PACKED_ARGS)
{
    const int x = (int)get_global_id(0) * BLOCK;
    const int y = (int)get_global_id(1);
    if (x >= width || y >= height)
        return;
    __global const uchar *from_row = src + src_offset + (size_t)y * src_stride;
    __global uchar *to_row = dst + dst_offset + (size_t)y * dst_stride;
    __global const uchar *from = from_row + (size_t)(x / BLOCK) * BLOCK_BYTES;
    __global uchar *to = to_row + (size_t)x * OUT_BYTES;
    if (x + BLOCK > width || ((uint)(ulong)from & 3) != 0 || ((uint)(ulong)to & 3) != 0) {
        unpack_groups(from_row, to_row, x, min(x + BLOCK, width));
        return;
    }
    uint words[BLOCK_WORDS];
#pragma unroll
    for (int i = 0; i < BLOCK_WORDS; i++)
        words[i] = ((__global const uint *)from)[i];
    uint out[4 * OUT_BYTES];
#pragma unroll
    for (int i = 0; i < 4 * OUT_BYTES; i++)
#if OUT_BYTES == 2
        out[i] = sample_of(words, 2 * i) | sample_of(words, 2 * i + 1) << 16;
#else
        out[i] = sample_of(words, 4 * i) >> LOW_BITS | sample_of(words, 4 * i + 1) >> LOW_BITS << 8 |
                 sample_of(words, 4 * i + 2) >> LOW_BITS << 16 | sample_of(words, 4 * i + 3) >> LOW_BITS << 24;
#endif
    if (((uint)(ulong)to & 15) == 0) {
#pragma unroll
        for (int i = 0; i < OUT_BYTES; i++)
            ((__global uint4 *)to)[i] = (uint4)(out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4 * OUT_BYTES; i++)
            ((__global uint *)to)[i] = out[i];
    }
}
