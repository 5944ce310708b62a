/* Appended to scales_lanes.cl. CPU: local size 1; a work-item processes bands of rows.
 *
 * Arguments: see scales.cl.
 */
/* Columns that are summed up together. */
#define SUM_BLOCK 64

/* Splits sums of four adjacent columns: those at even columns go to out0, those at odd ones to out1. The columns'
 * own sums are columns[0] (column 2 * from - 1) and on. */
static void put_boxes(const uint *columns, int blocks, int shift, __global level_t *out0, __global level_t *out1)
{
    const uint rounding = shift ? 8 : 0;
    for (int i = 0; i < blocks; i++)
        out0[i] = (level_t)((columns[2 * i] + columns[2 * i + 1] + columns[2 * i + 2] + columns[2 * i + 3] + rounding) >> shift);
    if (out1)
        for (int i = 0; i < blocks; i++)
            out1[i] = (level_t)((columns[2 * i + 1] + columns[2 * i + 2] + columns[2 * i + 3] + columns[2 * i + 4] + rounding) >> shift);
}

/* Means of 4x4 samples at all columns of four rows of a level; `count` samples a row. */
static void box_row(__global const level_t *r0, __global const level_t *r1, __global const level_t *r2,
                    __global const level_t *r3, int count, int blocks, int shift, __global level_t *out0,
                    __global level_t *out1)
{
    uint columns[SUM_BLOCK + 3];
    for (int from = 0; from < blocks; from += SUM_BLOCK / 2) {
        const int past = min(from + SUM_BLOCK / 2, blocks);
        const int left = 2 * from - 1;
        const int n = 2 * (past - from) + 3;
        if (left >= 0 && left + n <= count)
            for (int i = 0; i < n; i++)
                columns[i] = (uint)r0[left + i] + r1[left + i] + r2[left + i] + r3[left + i];
        else
            for (int i = 0; i < n; i++) {
                const int x = clamp(left + i, 0, count - 1);
                columns[i] = (uint)r0[x] + r1[x] + r2[x] + r3[x];
            }
        put_boxes(columns, past - from, shift, out0 + from, out1 ? out1 + from : 0);
    }
}

#if SAMPLE_BYTES == 1
/* Sums of 4x4 samples of the frame around row `y`: those at even columns go to `out0` and, unless it is 0, to `copy`;
 * those at odd columns to `out1`, unless it is 0. `pitch`: elements between rows of the targets. */
static __attribute__((noinline)) void box_samples(PLANE_ARGS, int y, int width, int height, int blocks,
                                                  __global level_t *out0, __global level_t *copy,
                                                  __global level_t *out1, int pitch)
{
    __global const uchar *rows[4];
    for (int j = 0; j < 4; j++)
        rows[j] = src + src_offset + (size_t)row_at(y + j - 1, height) * src_stride;
    put_row(rows, 0, width, blocks, out0, copy, out1, out1 ? 2 * pitch : pitch, pitch);
}

/* Sums of 4x4 samples of level 1. */
static __attribute__((noinline)) void box_sums(__global const level_t *const *r, int count, int blocks,
                                               __global level_t *out0, __global level_t *out1, int pitch)
{
    __global const uchar *rows[4];
    for (int j = 0; j < 4; j++)
        rows[j] = (__global const uchar *)r[j];
    put_row(rows, 1, count, blocks, out0, 0, out1, pitch, 0);
}
#else
static void box_samples(PLANE_ARGS, int y, int width, int height, int blocks, __global level_t *out0,
                        __global level_t *copy, __global level_t *out1, int pitch)
{
    uint columns[SUM_BLOCK + 3];
    for (int from = 0; from < blocks; from += SUM_BLOCK / 2) {
        const int past = min(from + SUM_BLOCK / 2, blocks);
        const int left = 2 * from - 1;
        const int n = 2 * (past - from) + 3;
        for (int i = 0; i < n; i++)
            columns[i] = 0;
        for (int j = -1; j < 3; j++) {
            const int row = row_at(y + j, height);
#if !USE_IMAGE
            if (left >= 0 && left + n <= width) {
                __global const uchar *p = src + src_offset + (size_t)row * src_stride + (size_t)left * SAMPLE_BYTES;
                for (int i = 0; i < n; i++)
                    columns[i] += load_sample(p + i * SAMPLE_BYTES);
                continue;
            }
#endif
            for (int i = 0; i < n; i++)
                columns[i] += PLANE_SAMPLE(clamp(left + i, 0, width - 1), row);
        }
        put_boxes(columns, past - from, 0, out0 + from, out1 ? out1 + from : 0);
    }
    if (copy)
        for (int i = 0; i < blocks; i++)
            copy[i] = out0[i];
}
#endif

/* Samples of a level from four rows of the level before. */
static void make_row(__global const level_t *const *r, int count, int blocks, int shift, __global level_t *out0,
                     __global level_t *out1, int pitch)
{
#if SAMPLE_BYTES == 1
    /* Sums of level 2 fit 16 bits. */
    if (shift == 0) {
        box_sums(r, count, blocks, out0, out1, pitch);
        return;
    }
#endif
    box_row(r[0], r[1], r[2], r[3], count, blocks, shift, out0, out1);
}

__kernel void scales_first(PLANE_ARGS, int width, int height, int axes, __global level_t *levels,
                           __global const scale_level_t *table, __global uint *counters, uint slot)
{
    if (get_global_id(0) == 0)
        counters[slot ^ 1u] = 0;
    const scale_level_t to = table[1];
    const int2 band = band_of(2 * to.rows);
    for (int row = band.x; row < band.y; row++) {
        const int y = row - to.remainder;
        const int is_x = (axes & 1) && (row & 1) == 0 && row / 2 < to.rows;
        const int is_y = (axes & 2) && y >= 0 && y < height;
        __global level_t *along_x = levels + to.x_at + (size_t)row * to.pitch;
        __global level_t *along_y = levels + to.y_at + (size_t)y * to.pitch;
        if (is_x)
            box_samples(PLANE, y, width, height, to.count, along_x, is_y ? along_y : 0, along_x + to.pitch, to.pitch);
        else if (is_y)
            box_samples(PLANE, y, width, height, to.count, along_y, 0, 0, to.pitch);
    }
}

/* Judges a row of blocks. */
static void judge_row(__global const level_t *levels, scale_level_t level, __global const scale_comparison_t *comparisons,
                      int flags, int y, __global uchar *marks, int is_again, __global const uchar *ignored,
                      int use_ignored, __global uint *counter)
{
    __global uchar *out = marks + level.marks_at + (size_t)y * level.pitch;
    uchar any = 0;
    /* Bit 1: the block may be marked; bit 0: a comparison marks it. */
    for (int x = 0; x < level.count; x++) {
        out[x] = is_again ? (uchar)(out[x] << 1) : (uchar)2;
        any |= out[x];
    }
    if (!any)
        return;
    if (use_ignored) {
        __global const uchar *clear = ignored + level.marks_at + (size_t)y * level.pitch;
        for (int x = 0; x < level.count; x++)
            out[x] &= (uchar)(2 - 2 * clear[x]);
    }
    const sum_t theta = (sum_t)level.theta;
    for (int i = level.first; i < level.end; i++) {
        const scale_comparison_t c = comparisons[i];
        if (y < c.y0 || y >= c.y1)
            continue;
        __global const level_t *row = levels + c.base + (long)y * c.step;
#if SAMPLE_BYTES == 1
        if (level.shift == 1)
            judge_lanes(row, c, theta, flags, out, 0);
        else
            judge_lanes(row, c, theta, flags, out, 4);
#else
        for (int x = c.x0; x < c.x1; x++) {
            sum_t difference;
            out[x] |= (uchar)is_block_marked(row + x, c, theta, flags, &difference);
        }
#endif
    }
    any = 0;
    for (int x = 0; x < level.count; x++) {
        out[x] = (uchar)(out[x] == 3);
        any |= out[x];
    }
    if (any)
        atomic_add(counter, 1u);
}

__kernel void scales_next(int height, int axes, __global level_t *levels, __global const scale_level_t *table, int level,
                          int is_last, __global const scale_comparison_t *comparisons, int flags, __global uchar *marks,
                          int is_again, __global const uchar *ignored, int use_ignored, __global uint *counters, uint slot)
{
    const scale_level_t at = table[level];
    const int2 judged = band_of(at.past - at.from);
    for (int row = judged.x; row < judged.y; row++)
        judge_row(levels, at, comparisons, flags, at.from + row, marks, is_again, ignored, use_ignored, &counters[slot]);
    if (is_last)
        return;
    const scale_level_t to = table[level + 1];
    /* Level 1 has sums of 16 samples, level 2 of 256; then means are rounded. */
    const int shift = level > 1 ? 4 : 0;
    const int phases = 1 << level;
    const int odd = (to.remainder >> level) & 1;
    if (axes & 1) {
        const int2 band = band_of(to.rows);
        for (int row = band.x; row < band.y; row++)
            for (int phase = 0; phase < phases; phase++) {
                __global const level_t *r[4];
                for (int j = 0; j < 4; j++)
                    r[j] = levels + at.x_at + ((size_t)row_at(2 * row - odd + j - 1, at.rows) * phases + phase) * at.pitch;
                __global level_t *out = levels + to.x_at + ((size_t)row * 2 * phases + phase) * to.pitch;
                make_row(r, at.count, to.count, shift, out, out + (size_t)phases * to.pitch, to.pitch);
            }
    }
    if (axes & 2) {
        const int2 band = band_of(height);
        for (int row = band.x; row < band.y; row++) {
            __global const level_t *r[4];
            for (int j = 0; j < 4; j++)
                r[j] = levels + at.y_at + (size_t)row_at(row + (j - 1) * phases, height) * at.pitch;
            make_row(r, at.count, to.count, shift, levels + to.y_at + (size_t)row * to.pitch, 0, to.pitch);
        }
    }
}
