/* Appended to scales.cl. GPU: a work-item makes or judges some blocks of a row.
 *
 * Arguments: see scales.cl. scales_first: dimension 0 covers a row, dimension 1 sets of FIRST_ROWS rows. scales_next has
 * one dimension: columns of blocks in sets of JUDGED_ROWS judged rows, then ITEM_BLOCKS blocks of the rows of the next
 * level's pictures x and y; each of the three fills its work-groups.
 */
/* Blocks of the next level that a work-item makes. Twin: operators/pitch_threshold/scales.rs. */
#define ITEM_BLOCKS 4
/* Rows of the frame per work-item of scales_first. */
#define FIRST_ROWS 4

static int row_at(int row, int rows) { return clamp(row, 0, rows - 1); }

/* Adds the samples of columns x .. x+10 of a row of the frame. */
static void add_samples(PLANE_ARGS, int x, int row, int width, uint *columns)
{
#pragma unroll
    for (int i = 0; i < 2 * ITEM_BLOCKS + 3; i++)
        columns[i] += PLANE_SAMPLE(clamp(x + i, 0, width - 1), row);
}

/* Stores the boxes of four rows' columns: those at even columns to out0, those at odd ones to out1. */
static void put_boxes(const uint *columns, int shift, __global level_t *out0, __global level_t *out1)
{
    const uint rounding = shift ? 8 : 0;
    uint pairs[2 * ITEM_BLOCKS + 2];
#pragma unroll
    for (int i = 0; i < 2 * ITEM_BLOCKS + 2; i++)
        pairs[i] = columns[i] + columns[i + 1];
    level_t even[ITEM_BLOCKS], odd[ITEM_BLOCKS];
#pragma unroll
    for (int i = 0; i < ITEM_BLOCKS; i++) {
        even[i] = (level_t)((pairs[2 * i] + pairs[2 * i + 2] + rounding) >> shift);
        odd[i] = (level_t)((pairs[2 * i + 1] + pairs[2 * i + 3] + rounding) >> shift);
    }
#if SAMPLE_BYTES == 1
    if (out0)
        *(__global ushort4 *)out0 = (ushort4)(even[0], even[1], even[2], even[3]);
    if (out1)
        *(__global ushort4 *)out1 = (ushort4)(odd[0], odd[1], odd[2], odd[3]);
#else
    if (out0)
        *(__global uint4 *)out0 = (uint4)(even[0], even[1], even[2], even[3]);
    if (out1)
        *(__global uint4 *)out1 = (uint4)(odd[0], odd[1], odd[2], odd[3]);
#endif
}

#if SAMPLE_BYTES == 1
/* The last half of a pair and the first half of the next one. */
static uint between(uint a, uint b) { return as_uint((ushort2)(as_ushort2(a).y, as_ushort2(b).x)); }

/* Words of a row of the frame that hold the columns of an item: from 4 before its first block on. */
#define FIRST_WORDS 4

/* Makes FIRST_ROWS rows of an item from row y on, whose columns lie inside the frame; rows start at words. Sums of
 * columns are pairs of 16 bits: even columns in `even`, odd ones in `odd`. */
static void first_rows(PLANE_ARGS, int y, int row, int past, int height, int axes, int at, __global level_t *levels,
                       scale_level_t to)
{
    uint even[FIRST_ROWS + 3][FIRST_WORDS], odd[FIRST_ROWS + 3][FIRST_WORDS];
#pragma unroll
    for (int j = 0; j < FIRST_ROWS + 3; j++) {
        __global const uint *p =
            (__global const uint *)(src + src_offset + (size_t)row_at(y + j - 1, height) * src_stride + 2 * at - 4);
#pragma unroll
        for (int i = 0; i < FIRST_WORDS; i++) {
            even[j][i] = p[i] & 0x00ff00ffu;
            odd[j][i] = (p[i] >> 8) & 0x00ff00ffu;
        }
    }
    /* Sums of two rows, then of four. */
#pragma unroll
    for (int j = 0; j < FIRST_ROWS + 2; j++)
#pragma unroll
        for (int i = 0; i < FIRST_WORDS; i++) {
            even[j][i] += even[j + 1][i];
            odd[j][i] += odd[j + 1][i];
        }
#pragma unroll
    for (int j = 0; j < FIRST_ROWS; j++) {
        if (row + j >= past)
            return;
        uint e[FIRST_WORDS], o[FIRST_WORDS];
#pragma unroll
        for (int i = 0; i < FIRST_WORDS; i++) {
            e[i] = even[j][i] + even[j + 2][i];
            o[i] = odd[j][i] + odd[j + 2][i];
        }
        uint2 first, second;
        const uint middle0 = e[1] + o[1] + between(e[1], e[2]);
        const uint middle1 = e[2] + o[2] + between(e[2], e[3]);
        first = (uint2)(middle0 + between(o[0], o[1]), middle1 + between(o[1], o[2]));
        second = (uint2)(middle0 + between(o[1], o[2]), middle1 + between(o[2], o[3]));
        if ((axes & 1) && ((row + j) & 1) == 0) {
            __global level_t *along_x = levels + to.x_at + (size_t)(row + j) * to.pitch + at;
            *(__global uint2 *)along_x = first;
            *(__global uint2 *)(along_x + to.pitch) = second;
        }
        if ((axes & 2) && y + j >= 0 && y + j < height)
            *(__global uint2 *)(levels + to.y_at + (size_t)(y + j) * to.pitch + at) = first;
    }
}
#endif

__kernel void scales_first(PLANE_ARGS, int width, int height, int axes, __global level_t *levels,
                           __global const scale_level_t *table, __global uint *counters, uint slot)
{
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        counters[slot ^ 1u] = 0;
    const scale_level_t to = table[1];
    const int at = ITEM_BLOCKS * (int)get_global_id(0);
    const int from = FIRST_ROWS * (int)get_global_id(1);
    const int past = min(from + FIRST_ROWS, 2 * to.rows);
    if (at >= to.pitch)
        return;
#if SAMPLE_BYTES == 1
    if (at >= ITEM_BLOCKS && 2 * at + 12 <= width && (((uint)(ulong)(src + src_offset) | src_stride) & 3u) == 0) {
        first_rows(PLANE, from - to.remainder, from, past, height, axes, at, levels, to);
        return;
    }
#endif
    for (int row = from; row < past; row++) {
        const int y = row - to.remainder;
        const int is_x = (axes & 1) && (row & 1) == 0;
        const int is_y = (axes & 2) && y >= 0 && y < height;
        if (!is_x && !is_y)
            continue;
        uint columns[2 * ITEM_BLOCKS + 3];
#pragma unroll
        for (int i = 0; i < 2 * ITEM_BLOCKS + 3; i++)
            columns[i] = 0;
        for (int j = -1; j < 3; j++)
            add_samples(PLANE, 2 * at - 1, row_at(y + j, height), width, columns);
        __global level_t *along_x = is_x ? levels + to.x_at + (size_t)row * to.pitch + at : 0;
        if (is_x)
            put_boxes(columns, 0, along_x, along_x + to.pitch);
        if (is_y)
            put_boxes(columns, 0, levels + to.y_at + (size_t)y * to.pitch + at, 0);
    }
}

/* Adds the samples at columns x .. x+10 of a row of a level with `count` samples; x+1 is a multiple of 8. */
static void add_row(__global const level_t *row, int x, int count, uint *columns)
{
#if SAMPLE_BYTES == 1
    if (x >= 1 && x + 2 * ITEM_BLOCKS + 3 <= count) {
        const ushort2 before = *(__global const ushort2 *)(row + x - 1);
        const ushort8 v = *(__global const ushort8 *)(row + x + 1);
        const ushort2 after = *(__global const ushort2 *)(row + x + 9);
        columns[0] += before.y;
        columns[1] += v.s0;
        columns[2] += v.s1;
        columns[3] += v.s2;
        columns[4] += v.s3;
        columns[5] += v.s4;
        columns[6] += v.s5;
        columns[7] += v.s6;
        columns[8] += v.s7;
        columns[9] += after.x;
        columns[10] += after.y;
        return;
    }
#endif
    if (x >= 0 && x + 2 * ITEM_BLOCKS + 3 <= count) {
#pragma unroll
        for (int i = 0; i < 2 * ITEM_BLOCKS + 3; i++)
            columns[i] += row[x + i];
    } else {
#pragma unroll
        for (int i = 0; i < 2 * ITEM_BLOCKS + 3; i++)
            columns[i] += row[clamp(x + i, 0, count - 1)];
    }
}

/* Rows of blocks that a work-item judges. Twin: operators/pitch_threshold/scales.rs. */
#define JUDGED_ROWS 4

/* Judges the blocks of column x in rows top .. top+JUDGED_ROWS-1 of a level. */
static void judge_blocks(__global const level_t *levels, scale_level_t level,
                         __global const scale_comparison_t *comparisons, int flags, int x, int top,
                         __global uchar *marks, int is_again, __global const uchar *ignored, int use_ignored,
                         __global uint *counter)
{
    const size_t first = level.marks_at + (size_t)top * level.pitch + x;
    const int rows = min(JUDGED_ROWS, level.past - top);
    /* A bit per row. */
    uint open = (1u << rows) - 1, marked = 0;
    for (int j = 0; j < rows; j++) {
        const size_t at = first + (size_t)j * level.pitch;
        if ((is_again && !marks[at]) || (use_ignored && ignored[at]))
            open &= ~(1u << j);
    }
    const sum_t theta = (sum_t)level.theta;
    for (int i = level.first; open && i < level.end; i++) {
        const scale_comparison_t c = comparisons[i];
        if (x < c.x0 || x >= c.x1 || top + JUDGED_ROWS <= c.y0 || top >= c.y1)
            continue;
        __global const level_t *at = levels + c.base + (long)top * c.step + x;
        sum_t centre[JUDGED_ROWS], l[JUDGED_ROWS];
        uint inside = 0;
#pragma unroll
        for (int j = 0; j < JUDGED_ROWS; j++) {
            if (!(open >> j & 1u) || top + j < c.y0 || top + j >= c.y1)
                continue;
            centre[j] = block_centre(at + (long)j * c.step, c);
            l[j] = block_side(at + (long)j * c.step, centre[j], c.left_near, c.left_far, c.fraction);
            /* The minimum needs both sides, and most blocks exceed neither. */
            if (!(flags & MINIMUM) || l[j] >= theta || l[j] <= -theta)
                inside |= 1u << j;
        }
#pragma unroll
        for (int j = 0; j < JUDGED_ROWS; j++) {
            if (!(inside >> j & 1u))
                continue;
            sum_t difference;
            const sum_t r =
                block_side(at + (long)j * c.step, centre[j], c.right_near, c.right_far, c.fraction);
            marked |= (uint)is_marked_block(l[j], r, theta, flags, &difference) << j;
        }
    }
    for (int j = 0; j < rows; j++)
        marks[first + (size_t)j * level.pitch] = (uchar)(marked >> j & 1u);
    /* A stale 0 costs another addition, which changes nothing. */
    if (marked && *counter == 0)
        atomic_inc(counter);
}

/* Items, and those that fill their last work-group. */
static uint whole_groups(uint items)
{
    const uint group = get_local_size(0);
    return (items + group - 1) / group * group;
}

__kernel void scales_next(int height, int axes, __global level_t *levels, __global const scale_level_t *table, int level,
                          int is_last, __global const scale_comparison_t *comparisons, int flags, __global uchar *marks,
                          int is_again, __global const uchar *ignored, int use_ignored, __global uint *counters, uint slot)
{
    const scale_level_t from = table[level];
    const uint sets = (uint)(from.past - from.from + JUDGED_ROWS - 1) / JUDGED_ROWS;
    const uint judged = whole_groups((uint)from.count * sets);
    uint item = get_global_id(0);
    if (item < judged) {
        const uint set = item / (uint)from.count;
        if (set < sets)
            judge_blocks(levels, from, comparisons, flags, (int)(item % (uint)from.count),
                         from.from + JUDGED_ROWS * (int)set, marks, is_again, ignored, use_ignored, &counters[slot]);
        return;
    }
    if (is_last)
        return;
    item -= judged;
    const scale_level_t to = table[level + 1];
    /* Level 1 has sums of 16 samples, level 2 of 256; then means are rounded. */
    const int shift = level > 1 ? 4 : 0;
    const int phases = 1 << level;
    const int odd = (to.remainder >> level) & 1;
    const uint columns = (uint)to.pitch / ITEM_BLOCKS;
    const uint in_x = axes & 1 ? whole_groups(columns * (uint)(to.rows * phases)) : 0;
    const int is_x = item < in_x;
    item -= is_x ? 0 : in_x;
    const int row = (int)(item / columns);
    const int at = ITEM_BLOCKS * (int)(item % columns);
    if (is_x ? row >= to.rows * phases : !(axes & 2) || row >= height)
        return;
    const int phase = is_x ? row & (phases - 1) : 0;
    const int y = is_x ? row >> level : row;
    uint sums[2 * ITEM_BLOCKS + 3];
#pragma unroll
    for (int i = 0; i < 2 * ITEM_BLOCKS + 3; i++)
        sums[i] = 0;
    for (int j = -1; j < 3; j++) {
        const int source = is_x ? row_at(2 * y - odd + j, from.rows) * phases + phase : row_at(y + j * phases, height);
        add_row(levels + (is_x ? from.x_at : from.y_at) + (size_t)source * from.pitch, 2 * at - 1, from.count, sums);
    }
    __global level_t *out =
        levels + (is_x ? to.x_at + ((size_t)y * 2 * phases + phase) * to.pitch : to.y_at + (size_t)y * to.pitch) + at;
    put_boxes(sums, shift, out, is_x ? out + (size_t)phases * to.pitch : 0);
}
