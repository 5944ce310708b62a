/* Appended to gaussian.cl. GPU: the vertical sums of a tile go to local memory, then each row of them
 * is summed horizontally.
 *
 * A work-item owns a column of 4 samples. It reads each sample once, computes the column's vertical
 * sums over TILE_ROWS rows and, unless the column is halo, the 4 outputs of each row.
 *
 * Macros: LANES (samples between neighbours of a component), TILE_COLUMNS (columns of the tile
 * with their halo: the local size), TILE_ROWS.
 * Launch: groups of TILE_COLUMNS x 1; a group per TILE_COLUMNS - 2*HALO columns of output and
 * TILE_ROWS rows. Rows whose start and stride are multiples of 4 samples are read and written in
 * words. Other rows of several 8-bit lanes are read in pairs of words that are shifted, if the output is
 * written in words. All others, and the columns at a row's ends, are read and written sample by sample.
 */
#ifndef LANES
#define LANES 1
#endif
#ifndef TILE_COLUMNS
#define TILE_COLUMNS 64
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif
/* Shifted words gain nothing where bytes are written, and their code makes grey rows that start at words slower. */
#define SHIFT_WORDS (SAMPLE_BYTES == 1 && SAMPLE_STEP == 1 && LANES > 1)
/* Columns of halo on each side. */
#define HALO ((HALF * LANES + 3) / 4)
#define OUT_COLUMNS (TILE_COLUMNS - 2 * HALO)
/* Rows of input of a tile. */
#define IN_ROWS (TILE_ROWS + TAPS - 1)

/* 4 samples as they lie in memory, 4 samples to be summed vertically, 4 sums. */
#if SAMPLE_BYTES == 1
typedef uint raw4_t;
#else
typedef ushort4 raw4_t;
#endif
#if FLOAT_ARITHMETIC
typedef float4 column4_t;
typedef float4 sum4_t;
#elif SAMPLE_BYTES == 1
/* Two samples share a word: vertical sums stay below 2^16, so one multiplication serves both. The
 * first word holds samples 0 and 2. */
typedef uint2 column4_t;
typedef uint4 sum4_t;
#else
typedef uint4 column4_t;
typedef uint4 sum4_t;
#endif

static column4_t to_column(raw4_t v)
{
#if FLOAT_ARITHMETIC && SAMPLE_BYTES == 1
    return convert_float4(as_uchar4(v));
#elif FLOAT_ARITHMETIC
    return convert_float4(v);
#elif SAMPLE_BYTES == 1
    return (uint2)(v & 0x00ff00ffu, (v >> 8) & 0x00ff00ffu);
#else
    return convert_uint4(v);
#endif
}

static sum4_t to_sums(column4_t v)
{
#if !FLOAT_ARITHMETIC && SAMPLE_BYTES == 1
    return (uint4)(v.x & 0xffffu, v.y & 0xffffu, v.x >> 16, v.y >> 16);
#else
    return v;
#endif
}

static raw4_t to_raw(sum4_t sum)
{
#if FLOAT_ARITHMETIC && SAMPLE_BYTES == 1
    return as_uint(convert_uchar4_sat_rte(sum));
#elif FLOAT_ARITHMETIC
    return convert_ushort4_sat_rte(sum);
#elif SAMPLE_BYTES == 1
    /* The result is byte 2 of each sum, and byte 3 is 0. */
    sum += 32768u;
    return (sum.x >> 16) | ((sum.y >> 8) & 0xff00u) | (sum.z & 0xff0000u) | ((sum.w << 8) & 0xff000000u);
#else
    return convert_ushort4((sum + 32768u) >> 16);
#endif
}

static raw4_t in_host_order(raw4_t v)
{
#if SAMPLE_BYTES == 2 && BIG_ENDIAN_SAMPLES
    return rotate(v, (raw4_t)8);
#else
    return v;
#endif
}

/* Index of the sample to read for column `s`: columns outside the row repeat the edge pixel. */
static int inside_row(int s, int samples)
{
    if (s < 0)
        /* % of a negative number is negative, so the lane is counted from the other end. */
        return (LANES - 1) - (-1 - s) % LANES;
    return s >= samples ? samples - LANES + s % LANES : s;
}

/* The four samples of a row at these offsets. */
static raw4_t gather4(__global const uchar *row, const int *offsets)
{
    uint v[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = load_sample(row + offsets[i]);
#if SAMPLE_BYTES == 1
    return v[0] | (v[1] << 8) | (v[2] << 16) | (v[3] << 24);
#else
    return (ushort4)((ushort)v[0], (ushort)v[1], (ushort)v[2], (ushort)v[3]);
#endif
}

static void scatter4(__global uchar *row, int s, int samples, raw4_t v)
{
#if SAMPLE_BYTES == 1
    const uchar4 value = as_uchar4(v);
#else
    const ushort4 value = v;
#endif
    const uint each[4] = {value.x, value.y, value.z, value.w};
    for (int i = 0; i < 4 && s + i < samples; i++)
        store_sample(row + (size_t)(s + i) * (SAMPLE_STEP * SAMPLE_BYTES), each[i]);
}

/* Replaces the padding lane of `out` by that of `in`. */
static raw4_t keep_lane(raw4_t out, raw4_t in, int copy_lane)
{
#if SAMPLE_BYTES == 1 && LANES == 4
    /* Columns start at lane 0. */
    const uint lane = 0xffu << (8 * copy_lane);
    return copy_lane < 0 ? out : (out & ~lane) | (in & lane);
#else
    return out;
#endif
}

/* Whether every row of a plane starts at a word of four samples. */
static int at_words(__global const uchar *plane, uint stride)
{
    return (((uint)(ulong)plane | stride) & (4 * SAMPLE_BYTES - 1)) == 0;
}

/* Whether a column of samples s .. s+3 can be read or written as a word in every row. */
static int in_words(int s, int samples, __global const uchar *plane, uint stride)
{
    return SAMPLE_STEP == 1 && s >= 0 && s + 4 <= samples && at_words(plane, stride);
}

__kernel __attribute__((reqd_work_group_size(TILE_COLUMNS, 1, 1))) void
gaussian_tile(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride, int samples,
              int height, int first, int src_height, int copy_lane, __constant const weight_t *weights)
{
    __local column4_t sums[TILE_ROWS * TILE_COLUMNS];
    const int column = get_local_id(0);
    const int s = 4 * ((int)get_group_id(0) * OUT_COLUMNS + column - HALO);
    const int top = (int)get_group_id(1) * TILE_ROWS;

    raw4_t v[IN_ROWS];
    if (in_words(s, samples, src + src_offset, src_stride)) {
        __global const uchar *p = src + src_offset + (size_t)s * SAMPLE_BYTES;
#pragma unroll
        for (int i = 0; i < IN_ROWS; i++) {
            const int y = clamp(first + top + i - HALF, 0, src_height - 1);
            v[i] = in_host_order(*(__global const raw4_t *)(p + (size_t)y * src_stride));
        }
#if SHIFT_WORDS
    } else if (s >= 4 && s + 8 <= samples && at_words(dst + dst_offset, dst_stride)) {
        /* The words lie inside the row. */
        __global const uchar *p = src + src_offset + s;
#pragma unroll
        for (int i = 0; i < IN_ROWS; i++) {
            const int y = clamp(first + top + i - HALF, 0, src_height - 1);
            __global const uchar *at = p + (size_t)y * src_stride;
            const uint past = (uint)(ulong)at & 3u;
            __global const uint *words = (__global const uint *)(at - past);
            v[i] = (uint)((((ulong)words[1] << 32) | words[0]) >> (8 * past));
        }
#endif
    } else {
        /* Once for all rows: the remainders of inside_row take longer than the loads. */
        int offsets[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            offsets[i] = inside_row(s + i, samples) * (SAMPLE_STEP * SAMPLE_BYTES);
#pragma unroll
        for (int i = 0; i < IN_ROWS; i++) {
            const int y = clamp(first + top + i - HALF, 0, src_height - 1);
            v[i] = gather4(src + src_offset + (size_t)y * src_stride, offsets);
        }
    }
    column4_t own[TILE_ROWS];
#pragma unroll
    for (int r = 0; r < TILE_ROWS; r++) {
        own[r] = weights[HALF] * to_column(v[r + HALF]);
#pragma unroll
        for (int i = 0; i < HALF; i++)
            own[r] += weights[i] * (to_column(v[r + i]) + to_column(v[r + TAPS - 1 - i]));
        sums[r * TILE_COLUMNS + column] = own[r];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (column < HALO || column >= HALO + OUT_COLUMNS || s >= samples)
        return;
    const int words = in_words(s, samples, dst + dst_offset, dst_stride);
    __global uchar *out = dst + dst_offset + (size_t)top * dst_stride;
#pragma unroll
    for (int r = 0; r < TILE_ROWS; r++) {
        if (top + r >= height)
            return;
        __local const column4_t *line = sums + r * TILE_COLUMNS + column;
        sum_t window[4 * (2 * HALO + 1)];
#pragma unroll
        for (int i = 0; i <= 2 * HALO; i++) {
            const sum4_t w = to_sums(i == HALO ? own[r] : line[i - HALO]);
            window[4 * i] = w.x;
            window[4 * i + 1] = w.y;
            window[4 * i + 2] = w.z;
            window[4 * i + 3] = w.w;
        }
        sum_t sum[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const sum_t *at = window + 4 * HALO + k;
            sum[k] = weights[HALF] * at[0];
#pragma unroll
            for (int i = 0; i < HALF; i++)
                sum[k] += weights[i] * (at[(i - HALF) * LANES] + at[(HALF - i) * LANES]);
        }
        const raw4_t result =
            keep_lane(to_raw((sum4_t)(sum[0], sum[1], sum[2], sum[3])), v[r + HALF], copy_lane);
        if (words)
            *(__global raw4_t *)(out + (size_t)s * SAMPLE_BYTES) = in_host_order(result);
        else
            scatter4(out, s, samples, result);
        out += dst_stride;
    }
}
