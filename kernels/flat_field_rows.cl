/* Appended to flat_field_value.cl. CPU, buffers: corrects a plane, 16 samples at a time.
 *
 * flat_field_rows, flat_field_rows_dark
 *     Local size 1; each work-item corrects a band of rows. `src` and `dst` may be the same memory with
 *     the same rows: each sample is read before it is written.
 *
 *   samples     samples of a row, with those of all components and padding
 *   height      rows
 *   gain        ushort, 1/4096; padding and alpha have 4096
 *   dark        of flat_field_rows_dark: 1/256 grey level, ushort for 8-bit samples, else uint
 *   pitch       samples between rows of `gain` and `dark`, at least `samples`; 0: all rows share one
 *   most        the highest level
 *
 * Exactness: the result is min(most, (x * gain + 2^19) >> 20) with x = max(0, 256 * sample - dark).
 *   8 bits: x has 16 bits. x * gain = h * 2^16 + l, and l < 2^16 cannot carry, so the shift equals
 *     (h + 8) >> 4; h + 8 has 16 bits. Clang makes one instruction of the wide product and its shift, but not of
 *     PoCL's mul_hi().
 *   16 bits: x has 24 bits, x = a * 2^12 + b. The shift equals (a * gain + ((b * gain + 2^19) >> 12)) >> 8,
 *     because a * gain is whole; every term has at most 29 bits.
 */
#if SAMPLE_BYTES == 1
typedef uchar16 raw_t;
typedef ushort16 wide_t;
#define LOAD_RAW(p) LOAD_UCHAR16(p)
#define STORE_RAW(p, v) STORE_UCHAR16(p, v)
#define LOAD_DARK(p) LOAD_USHORT16(p)
#else
typedef ushort16 raw_t;
typedef uint16 wide_t;
#define LOAD_RAW(p) LOAD_USHORT16(p)
#define STORE_RAW(p, v) STORE_USHORT16(p, v)
#define LOAD_DARK(p) (((__global const packed_uint16 *)(p))->v)
#endif

static __attribute__((always_inline)) raw_t correct(raw_t s, wide_t dark, ushort16 gain, wide_t most)
{
#if SAMPLE_BYTES == 1
    const ushort16 x = convert_ushort16(s) << (ushort)8;
    const uint16 product = convert_uint16(max(x, dark) - dark) * convert_uint16(gain);
    const ushort16 h = convert_ushort16(product >> 16);
    return convert_uchar16(min((h + (ushort)8) >> (ushort)4, most));
#else
#if BIG_ENDIAN_SAMPLES
    s = SWAP_BYTES16(s);
#endif
    const uint16 g = convert_uint16(gain);
    const uint16 x = max(convert_uint16(s) << 8, dark) - dark;
    const uint16 low = ((x & 0xfffu) * g + (1u << 19)) >> 12;
    const ushort16 v = convert_ushort16(min(((x >> 12) * g + low) >> 8, most));
#if BIG_ENDIAN_SAMPLES
    return SWAP_BYTES16(v);
#else
    return v;
#endif
#endif
}

/* The 16 samples from sample `at` of a row. */
#define CORRECTED(at)                                                                             \
    correct(LOAD_RAW(from + (size_t)(at) * SAMPLE_BYTES),                                         \
            has_dark ? LOAD_DARK(darks + (at)) : (wide_t)0, LOAD_USHORT16(gains + (at)), (wide_t)most)

static __attribute__((always_inline)) void
correct_rows(__global const uchar *src, uint src_stride, __global uchar *dst, uint dst_stride,
             int samples, int height, __global const ushort *gain, __global const dark_t *dark,
             int pitch, uint most, const int has_dark)
{
    const int2 band = band_of(height);
    for (int y = band.x; y < band.y; y++) {
        __global const uchar *from = src + (size_t)y * src_stride;
        __global uchar *to = dst + (size_t)y * dst_stride;
        __global const ushort *gains = gain + (size_t)y * pitch;
        __global const dark_t *darks = dark + (size_t)y * pitch;
        if (samples < 16) {
            for (int i = 0; i < samples; i++)
                store_sample(to + i * SAMPLE_BYTES, correct_value(load_sample(from + i * SAMPLE_BYTES),
                                                                  has_dark ? darks[i] : 0, gains[i], most));
            continue;
        }
        /* The last vector overlaps the one before. It is read first: the row may be corrected in place. */
        const raw_t last = CORRECTED(samples - 16);
        for (int x = 0; x + 16 <= samples; x += 16)
            STORE_RAW(to + (size_t)x * SAMPLE_BYTES, CORRECTED(x));
        STORE_RAW(to + (size_t)(samples - 16) * SAMPLE_BYTES, last);
    }
}

__kernel void flat_field_rows(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                              int samples, int height, __global const ushort *gain, int pitch, uint most)
{
    correct_rows(src + src_offset, src_stride, dst + dst_offset, dst_stride, samples, height, gain,
                 (__global const dark_t *)gain, pitch, most, 0);
}

__kernel void flat_field_rows_dark(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                                   int samples, int height, __global const ushort *gain, int pitch,
                                   uint most, __global const dark_t *dark)
{
    correct_rows(src + src_offset, src_stride, dst + dst_offset, dst_stride, samples, height, gain,
                 dark, pitch, most, 1);
}
