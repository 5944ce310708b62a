/* Appended to common.cl. Any device, buffers or images: corrects a plane. The arguments are those of
 * flat_field_rows.cl.
 *
 * flat_field_items, flat_field_items_dark
 *     A work-item corrects 16 bytes of ITEM_ROWS rows; work-items outside return. Rows of `gain` and `dark`
 *     start at multiples of 16 samples. Where rows of `src` and `dst` start at multiples of 16 bytes, a
 *     work-item reads and writes 16 bytes at once, elsewhere sample by sample.
 *
 * Exactness: see flat_field_rows.cl. The product of 8-bit samples has 32 bits, plus 2^19 too.
 */
#ifndef ITEM_ROWS
#define ITEM_ROWS 2
#endif
#define ITEM_SAMPLES (16 / SAMPLE_BYTES)
#if SAMPLE_BYTES == 1
typedef ushort dark_t;
#else
typedef uint dark_t;
#endif

static uint correct_value(uint s, uint dark, uint gain, uint most)
{
    const uint x = max(s << 8, dark) - dark;
#if SAMPLE_BYTES == 1
    return min((x * gain + (1u << 19)) >> 20, most);
#else
    return min(((x >> 12) * gain + (((x & 0xfffu) * gain + (1u << 19)) >> 12)) >> 8, most);
#endif
}

#if !USE_IMAGE
/* 16 bytes of samples, and as many values of the references. */
typedef union {
    uint4 v;
    uchar bytes[16];
    ushort pairs[8];
} raw_t;
typedef union {
    uint4 v[2 / SAMPLE_BYTES];
    ushort one[ITEM_SAMPLES];
} gains_t;
typedef union {
    uint4 v[2];
    dark_t one[ITEM_SAMPLES];
} darks_t;

static uint swapped(uint s)
{
#if SAMPLE_BYTES == 2 && BIG_ENDIAN_SAMPLES
    /* rotate() instead of two shifts, which Oclgrind 21.10 computes wrongly. */
    return rotate((ushort)s, (ushort)8);
#else
    return s;
#endif
}
#endif

/* Whether rows start at multiples of 16 bytes. */
static int is_aligned(__global const uchar *plane, uint stride)
{
    return (((uint)(ulong)plane | stride) & 15) == 0;
}

static __attribute__((always_inline)) void
correct_item(PLANE_ARGS, __global uchar *dst, uint dst_stride, int samples, int height,
             __global const ushort *gain, __global const dark_t *dark, int pitch, uint most,
             const int has_dark)
{
    const int x = (int)get_global_id(0) * ITEM_SAMPLES;
    const int top = (int)get_global_id(1) * ITEM_ROWS;
    if (x >= samples)
        return;
#if !USE_IMAGE
    if (x + ITEM_SAMPLES <= samples && is_aligned(src + src_offset, src_stride) &&
        is_aligned(dst, dst_stride)) {
        raw_t s[ITEM_ROWS];
        gains_t g[ITEM_ROWS];
        darks_t d[ITEM_ROWS];
#pragma unroll
        for (int r = 0; r < ITEM_ROWS; r++) {
            const size_t y = min(top + r, height - 1);
            const size_t at = y * pitch + x;
            s[r].v = *(__global const uint4 *)(src + src_offset + y * src_stride + x * SAMPLE_BYTES);
#pragma unroll
            for (int i = 0; i < 2 / SAMPLE_BYTES; i++)
                g[r].v[i] = ((__global const uint4 *)(gain + at))[i];
            if (has_dark) {
                d[r].v[0] = ((__global const uint4 *)(dark + at))[0];
                d[r].v[1] = ((__global const uint4 *)(dark + at))[1];
            }
        }
#pragma unroll
        for (int r = 0; r < ITEM_ROWS; r++) {
            if (top + r >= height)
                return;
#pragma unroll
            for (int i = 0; i < ITEM_SAMPLES; i++) {
                const uint black = has_dark ? d[r].one[i] : 0;
#if SAMPLE_BYTES == 1
                s[r].bytes[i] = (uchar)correct_value(s[r].bytes[i], black, g[r].one[i], most);
#else
                s[r].pairs[i] =
                    (ushort)swapped(correct_value(swapped(s[r].pairs[i]), black, g[r].one[i], most));
#endif
            }
            *(__global uint4 *)(dst + (size_t)(top + r) * dst_stride + x * SAMPLE_BYTES) = s[r].v;
        }
        return;
    }
#endif
    for (int y = top; y < min(top + ITEM_ROWS, height); y++)
        for (int i = x; i < min(x + ITEM_SAMPLES, samples); i++) {
            const size_t at = (size_t)y * pitch + i;
            const uint black = has_dark ? dark[at] : 0;
            store_sample(dst + (size_t)y * dst_stride + (size_t)i * SAMPLE_BYTES,
                         correct_value(PLANE_SAMPLE(i, y), black, gain[at], most));
        }
}

__kernel void flat_field_items(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                               int samples, int height, __global const ushort *gain, int pitch, uint most)
{
    correct_item(PLANE, dst + dst_offset, dst_stride, samples, height, gain,
                 (__global const dark_t *)gain, pitch, most, 0);
}

__kernel void flat_field_items_dark(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                                    int samples, int height, __global const ushort *gain, int pitch,
                                    uint most, __global const dark_t *dark)
{
    correct_item(PLANE, dst + dst_offset, dst_stride, samples, height, gain, dark, pitch, most, 1);
}
