/* Separable Gaussian of one plane, or of one component of it.
 *
 * gaussian_rows    CPU. Local size 1; each work-item takes a band of rows. A row's vertical sums
 *                  go into a line that stays in the cache, then the line is summed horizontally.
 *                  Scratch: get_global_size(0) lines of `line_len` sums.
 * gaussian_tile    GPU. A work-group loads its tile and halo into local memory.
 *                  Local: columns*rows and columns*get_local_size(1) sums of 4 bytes, with
 *                  columns = get_local_size(0) + (TAPS-1)*lanes, rows = get_local_size(1) + TAPS-1.
 * gaussian_direct  Any device, buffer or image: every tap from global memory.
 *
 * Macros: TAPS (odd), FLOAT_ARITHMETIC (1: f32 sums), PITCH (samples between neighbours in memory;
 * 1 unless a component is filtered out of a pattern such as YUY2), and common.cl's.
 *
 * | argument       | meaning                                                                      |
 * | src, dst       | plane; any offset, any stride >= a row                                       |
 * | samples        | samples of a row: pixels x lanes                                             |
 * | lanes          | interleaved components filtered together; 1 where PITCH > 1                  |
 * | copy_lane      | lane that is padding and copied as it is; -1 for none                        |
 * | weights        | TAPS weights: uint in 1/256 summing to 256, or float summing to 1            |
 *
 * Exactness: integer sums hold every bit (8-bit samples: 16 then 32 bits; 16-bit: 32 bits, at most
 * 65535*65536 + 32768) and are rounded once. Float sums are added in one order in all variants and
 * without contraction, so that all give the same bits.
 */
#ifndef TAPS
#define TAPS 3
#endif
#ifndef FLOAT_ARITHMETIC
#define FLOAT_ARITHMETIC 0
#endif
#ifndef PITCH
#define PITCH 1
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

/* The filtered sample from its sum. */
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
    sum_t sum = weights[HALF] * (sum_t)PLANE_SAMPLE(s * PITCH, y);
    for (int i = 0; i < HALF; i++) {
        const sum_t above = (sum_t)PLANE_SAMPLE(s * PITCH, max(y - HALF + i, 0));
        const sum_t below = (sum_t)PLANE_SAMPLE(s * PITCH, min(y + HALF - i, height - 1));
        sum += weights[i] * (above + below);
    }
    return sum;
}

/* The sample `step` pixels beside `s`, clamped to the row's first or last pixel. */
static int beside(int s, int step, int samples, int lanes)
{
    const int lane = s % lanes;
    const int t = s + step * lanes;
    return t < 0 ? lane : t >= samples ? samples - lanes + lane : t;
}

__kernel void gaussian_direct(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                              int samples, int height, int lanes, int copy_lane,
                              __constant const weight_t *weights)
{
    const int s = get_global_id(0);
    const int y = get_global_id(1);
    if (s >= samples || y >= height)
        return;
    __global uchar *out =
        dst + dst_offset + (size_t)y * dst_stride + (size_t)s * (PITCH * SAMPLE_BYTES);
    if (copy_lane >= 0 && s % lanes == copy_lane) {
        store_sample(out, PLANE_SAMPLE(s * PITCH, y));
        return;
    }
    sum_t sum = weights[HALF] * column_sum(PLANE, s, y, height, weights);
    for (int i = 0; i < HALF; i++) {
        const sum_t left = column_sum(PLANE, beside(s, i - HALF, samples, lanes), y, height, weights);
        const sum_t right = column_sum(PLANE, beside(s, HALF - i, samples, lanes), y, height, weights);
        sum += weights[i] * (left + right);
    }
    store_sample(out, finish(sum));
}

#if !USE_IMAGE

__kernel void gaussian_tile(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                            int samples, int height, int lanes, int copy_lane,
                            __constant const weight_t *weights, __local sum_t *tile,
                            __local sum_t *sums)
{
    const int group_x = get_local_size(0);
    const int group_y = get_local_size(1);
    const int columns = group_x + 2 * HALF * lanes;
    const int rows = group_y + 2 * HALF;
    const int items = group_x * group_y;
    const int item = get_local_id(1) * group_x + get_local_id(0);
    const int first = (int)get_group_id(0) * group_x - HALF * lanes;
    const int top = (int)get_group_id(1) * group_y - HALF;

    for (int i = item; i < columns * rows; i += items) {
        const int s = first + i % columns;
        const int y = clamp(top + i / columns, 0, height - 1);
        /* % of a negative number is negative: count its lane from the other end. */
        const int lane = s < 0 ? (lanes - 1) - (-1 - s) % lanes : s % lanes;
        const int inside = s < 0 ? lane : s >= samples ? samples - lanes + lane : s;
        tile[i] = (sum_t)PLANE_SAMPLE(inside * PITCH, y);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < columns * group_y; i += items) {
        __local const sum_t *t = tile + i;
        sum_t sum = weights[HALF] * t[HALF * columns];
        for (int k = 0; k < HALF; k++)
            sum += weights[k] * (t[k * columns] + t[(TAPS - 1 - k) * columns]);
        sums[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const int s = get_global_id(0);
    const int y = get_global_id(1);
    if (s >= samples || y >= height)
        return;
    __global uchar *out =
        dst + dst_offset + (size_t)y * dst_stride + (size_t)s * (PITCH * SAMPLE_BYTES);
    if (copy_lane >= 0 && s % lanes == copy_lane) {
        store_sample(out, (uint)tile[(get_local_id(1) + HALF) * columns + get_local_id(0) + HALF * lanes]);
        return;
    }
    __local const sum_t *t = sums + get_local_id(1) * columns + get_local_id(0);
    sum_t sum = weights[HALF] * t[HALF * lanes];
    for (int k = 0; k < HALF; k++)
        sum += weights[k] * (t[k * lanes] + t[(TAPS - 1 - k) * lanes]);
    store_sample(out, finish(sum));
}

/* 16 samples that lie side by side. */
#if SAMPLE_BYTES == 1
#define LOAD_SAMPLES16(p) LOAD_UCHAR16(p)
#elif BIG_ENDIAN_SAMPLES
#define LOAD_SAMPLES16(p) SWAP_BYTES16(LOAD_USHORT16(p))
#else
#define LOAD_SAMPLES16(p) LOAD_USHORT16(p)
#endif

typedef struct __attribute__((packed)) { line16_t v; } packed_line16;
#define LOAD_LINE16(p) (((__global const packed_line16 *)(p))->v)
#define STORE_LINE16(p, x) (((__global packed_line16 *)(p))->v = (x))

static void store_sums16(__global uchar *p, sum16_t sum)
{
#if SAMPLE_BYTES == 1
#if FLOAT_ARITHMETIC
    STORE_UCHAR16(p, convert_uchar16_sat_rte(sum));
#else
    STORE_UCHAR16(p, convert_uchar16((sum + 32768u) >> 16));
#endif
#else
#if FLOAT_ARITHMETIC
    const ushort16 v = convert_ushort16_sat_rte(sum);
#else
    const ushort16 v = convert_ushort16((sum + 32768u) >> 16);
#endif
#if BIG_ENDIAN_SAMPLES
    STORE_USHORT16(p, SWAP_BYTES16(v));
#else
    STORE_USHORT16(p, v);
#endif
#endif
}

__kernel void gaussian_rows(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                            int samples, int height, int lanes, int copy_lane,
                            __constant const weight_t *weights, __global line_t *scratch,
                            uint line_len)
{
    const int band = (height + (int)get_global_size(0) - 1) / (int)get_global_size(0);
    const int y0 = (int)get_global_id(0) * band;
    const int y1 = min(y0 + band, height);
    __global line_t *line = scratch + get_global_id(0) * (size_t)line_len + HALF * lanes;

    for (int y = y0; y < y1; y++) {
        __global const uchar *rows[TAPS];
        for (int i = 0; i < TAPS; i++)
            rows[i] = src + src_offset + (size_t)clamp(y - HALF + i, 0, height - 1) * src_stride;
        __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;

#if PITCH == 1
        if (samples >= 16) {
            /* The last vector overlaps the one before instead of a scalar tail. */
            for (int x = 0;;) {
                line16_t sum = TO_LINE16(LOAD_SAMPLES16(rows[HALF] + x * SAMPLE_BYTES)) * (line_t)weights[HALF];
#pragma unroll
                for (int i = 0; i < HALF; i++)
                    sum += (TO_LINE16(LOAD_SAMPLES16(rows[i] + x * SAMPLE_BYTES)) +
                            TO_LINE16(LOAD_SAMPLES16(rows[TAPS - 1 - i] + x * SAMPLE_BYTES))) *
                           (line_t)weights[i];
                STORE_LINE16(line + x, sum);
                if (x == samples - 16)
                    break;
                x = min(x + 16, samples - 16);
            }
        } else
#endif
        {
            for (int x = 0; x < samples; x++) {
                const int at = x * (PITCH * SAMPLE_BYTES);
                sum_t sum = weights[HALF] * (sum_t)load_sample(rows[HALF] + at);
                for (int i = 0; i < HALF; i++)
                    sum += weights[i] * ((sum_t)load_sample(rows[i] + at) +
                                         (sum_t)load_sample(rows[TAPS - 1 - i] + at));
                line[x] = (line_t)sum;
            }
        }
        for (int step = 1; step <= HALF; step++)
            for (int lane = 0; lane < lanes; lane++) {
                line[lane - step * lanes] = line[lane];
                line[samples + (step - 1) * lanes + lane] = line[samples - lanes + lane];
            }
#if PITCH == 1
        if (samples >= 16) {
            for (int x = 0;;) {
                sum16_t sum = TO_SUM16(LOAD_LINE16(line + x)) * weights[HALF];
#pragma unroll
                for (int i = 0; i < HALF; i++)
                    sum += (TO_SUM16(LOAD_LINE16(line + x - (HALF - i) * lanes)) +
                            TO_SUM16(LOAD_LINE16(line + x + (HALF - i) * lanes))) *
                           weights[i];
                store_sums16(out + x * SAMPLE_BYTES, sum);
                if (x == samples - 16)
                    break;
                x = min(x + 16, samples - 16);
            }
        } else
#endif
        {
            for (int x = 0; x < samples; x++) {
                sum_t sum = weights[HALF] * (sum_t)line[x];
                for (int i = 0; i < HALF; i++)
                    sum += weights[i] * ((sum_t)line[x - (HALF - i) * lanes] +
                                         (sum_t)line[x + (HALF - i) * lanes]);
                store_sample(out + x * (PITCH * SAMPLE_BYTES), finish(sum));
            }
        }
        if (copy_lane >= 0)
            for (int x = copy_lane; x < samples; x += lanes)
                store_sample(out + x * SAMPLE_BYTES, load_sample(rows[HALF] + x * SAMPLE_BYTES));
    }
}

#endif
