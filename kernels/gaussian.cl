/* Separable Gaussian of a plane, or of one component of a plane. Each variant has a file; this file
 * holds the shared code and the plain variant.
 *
 * gaussian_bytes     CPU, adjacent 8-bit samples, integer arithmetic: sums in 16-bit lanes.
 * gaussian_binomial  The same for binomial weights.
 * gaussian_rows      CPU. Local size 1; each work-item filters a band of rows. It writes the vertical
 *                    sums of a row to a scratch line that stays in the cache, then sums that line
 *                    horizontally. Scratch: get_global_size(0) lines of `line_len` sums.
 * gaussian_tile      GPU: the vertical sums of a tile are kept in local memory.
 * gaussian_direct    Any device, buffer or image: reads every tap from global memory.
 *
 * Macros: TAPS (odd), FLOAT_ARITHMETIC (1: f32 sums), SAMPLE_STEP (samples from one sample of a component
 * to the next; 1, except for a single component of a packed format such as YUY2), and common.cl's.
 *
 * | argument       | meaning                                                                      |
 * | src, dst       | plane; any offset, any stride >= a row                                       |
 * | samples        | samples of a row: pixels x lanes                                             |
 * | height         | rows of dst                                                                  |
 * | first          | row of src that belongs to row 0 of dst; 0 for a whole frame                 |
 * | src_height     | rows of src; rows outside repeat its first and its last row                   |
 * | copy_lane      | padding lane, copied unchanged; -1: none                                     |
 * | lanes          | interleaved components filtered together; 1 where SAMPLE_STEP > 1; not of    |
 * |                | gaussian_tile, whose macro LANES it is                                       |
 * | weights        | TAPS weights: uint in 1/256 summing to 256, or float summing to 1            |
 *
 * Exactness: integer sums lose no bit and are rounded once (8-bit samples: 16-bit vertical, 32-bit
 * horizontal sums; 16-bit samples: 32 bits, at most 65535*65536 + 32768). All variants add float
 * sums in the same order and without contraction, so they give the same bits.
 */
#ifndef TAPS
#define TAPS 3
#endif
#ifndef FLOAT_ARITHMETIC
#define FLOAT_ARITHMETIC 0
#endif
#ifndef SAMPLE_STEP
#define SAMPLE_STEP 1
#endif
#define HALF (TAPS / 2)

#if FLOAT_ARITHMETIC
#pragma OPENCL FP_CONTRACT OFF
typedef float weight_t;
typedef float sum_t;
typedef float line_t;
typedef float16 line16_t;
typedef float16 sum16_t;
#define TO_LINE16(v) convert_float16(v)
#define TO_SUM16(v) (v)
#else
typedef uint weight_t;
typedef uint sum_t;
typedef uint16 sum16_t;
#if SAMPLE_BYTES == 1
typedef ushort line_t;
typedef ushort16 line16_t;
#define TO_LINE16(v) convert_ushort16(v)
#else
typedef uint line_t;
typedef uint16 line16_t;
#define TO_LINE16(v) convert_uint16(v)
#endif
#define TO_SUM16(v) convert_uint16(v)
#endif

/* Rounds a horizontal sum to the filtered sample. */
static uint finish(sum_t sum)
{
#if FLOAT_ARITHMETIC
#if SAMPLE_BYTES == 1
    return convert_uchar_sat_rte(sum);
#else
    return convert_ushort_sat_rte(sum);
#endif
#else
    return (sum + 32768u) >> 16;
#endif
}

/* Vertical sum at sample column `s` and row `y`; `s` lies inside the row. */
static sum_t column_sum(PLANE_ARGS, int s, int y, int height, __constant const weight_t *weights)
{
    sum_t sum = weights[HALF] * (sum_t)PLANE_SAMPLE(s * SAMPLE_STEP, y);
    for (int i = 0; i < HALF; i++) {
        const sum_t above = (sum_t)PLANE_SAMPLE(s * SAMPLE_STEP, max(y - HALF + i, 0));
        const sum_t below = (sum_t)PLANE_SAMPLE(s * SAMPLE_STEP, min(y + HALF - i, height - 1));
        sum += weights[i] * (above + below);
    }
    return sum;
}

/* Index of the sample `step` pixels from sample `s`, clamped to the row's first or last pixel. */
static int beside(int s, int step, int samples, int lanes)
{
    const int lane = s % lanes;
    const int t = s + step * lanes;
    return t < 0 ? lane : t >= samples ? samples - lanes + lane : t;
}

__kernel void gaussian_direct(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                              int samples, int height, int first, int src_height, int copy_lane,
                              int lanes, __constant const weight_t *weights)
{
    const int s = get_global_id(0);
    const int y = get_global_id(1);
    if (s >= samples || y >= height)
        return;
    const int line = first + y;
    __global uchar *out =
        dst + dst_offset + (size_t)y * dst_stride + (size_t)s * (SAMPLE_STEP * SAMPLE_BYTES);
    if (copy_lane >= 0 && s % lanes == copy_lane) {
        store_sample(out, PLANE_SAMPLE(s * SAMPLE_STEP, line));
        return;
    }
    sum_t sum = weights[HALF] * column_sum(PLANE, s, line, src_height, weights);
    for (int i = 0; i < HALF; i++) {
        const sum_t left = column_sum(PLANE, beside(s, i - HALF, samples, lanes), line, src_height, weights);
        const sum_t right = column_sum(PLANE, beside(s, HALF - i, samples, lanes), line, src_height, weights);
        sum += weights[i] * (left + right);
    }
    store_sample(out, finish(sum));
}
