/* Appended to flat_field_value.cl. Any device, buffers or images: corrects a plane. The arguments are those of
 * flat_field_rows.cl.
 *
 * flat_field_items, flat_field_items_dark
 *     A work-item corrects 16 bytes of ITEM_ROWS rows; work-items outside return. Rows of `gain` and `dark`
 *     start at multiples of 16 samples. Where rows of `src` and `dst` start at multiples of 16 bytes, a
 *     work-item reads and writes 16 bytes at once, elsewhere sample by sample.
 *
 * Exactness: see flat_field_value.cl.
 */
#ifndef ITEM_ROWS
#define ITEM_ROWS 2
#endif
#define ITEM_SAMPLES (ITEM_BYTES / SAMPLE_BYTES)
#if !USE_IMAGE
/* Words of 16 bytes of samples, of their gains and of their dark values. */
#define GAIN_WORDS (ITEM_SAMPLES / 2)
#define DARK_WORDS 8

/* Reads 4 words at a time. */
static void load_words(uint *words, __global const void *p, int count)
{
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        const uint4 v = ((__global const uint4 *)p)[i / 4];
        words[i] = v.x;
        words[i + 1] = v.y;
        words[i + 2] = v.z;
        words[i + 3] = v.w;
    }
}

/* Value i of words that hold values of `bytes` bytes. */
static uint value_of(const uint *words, int i, int bytes)
{
    if (bytes == 4)
        return words[i];
    const uint word = words[i * bytes / 4] >> (8 * bytes * (i % (4 / bytes)));
    return bytes == 1 ? word & 0xffu : word & 0xffffu;
}

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
        uint s[ITEM_ROWS][4], g[ITEM_ROWS][GAIN_WORDS], d[ITEM_ROWS][DARK_WORDS];
#pragma unroll
        for (int r = 0; r < ITEM_ROWS; r++) {
            const size_t y = min(top + r, height - 1);
            const size_t at = y * pitch + x;
            load_words(s[r], src + src_offset + y * src_stride + x * SAMPLE_BYTES, 4);
            load_words(g[r], gain + at, GAIN_WORDS);
            if (has_dark)
                load_words(d[r], dark + at, DARK_WORDS);
        }
#pragma unroll
        for (int r = 0; r < ITEM_ROWS; r++) {
            if (top + r >= height)
                return;
            uint out[4] = {0, 0, 0, 0};
#pragma unroll
            for (int i = 0; i < ITEM_SAMPLES; i++) {
                const uint black = has_dark ? value_of(d[r], i, sizeof(dark_t)) : 0;
                const uint sample = swapped(value_of(s[r], i, SAMPLE_BYTES));
                const uint v = swapped(correct_value(sample, black, value_of(g[r], i, 2), most));
                out[i * SAMPLE_BYTES / 4] |= v << (8 * (i * SAMPLE_BYTES % 4));
            }
            *(__global uint4 *)(dst + (size_t)(top + r) * dst_stride + x * SAMPLE_BYTES) =
                (uint4)(out[0], out[1], out[2], out[3]);
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
