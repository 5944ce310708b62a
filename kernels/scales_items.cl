/* Appended to scales_join.cl. GPU: a work-item makes or judges some blocks of a row.
 *
 * Arguments: see scales.cl. scales_first: dimension 0 covers a row, dimension 1 sets of FIRST_ROWS rows. scales_next has
 * one dimension: columns of blocks in sets of scale_level_t's set_rows judged rows, then ITEM_BLOCKS columns of the next
 * level's pictures x and y in sets of MADE_ROWS rows; each of the three fills its work-groups.
 */
/* Sums of the columns that an item's blocks need: from 2 columns before the first block on, even and odd ones. */
#define PAIRS (ITEM_BLOCKS + 2)
typedef struct { uint even[PAIRS], odd[PAIRS]; } columns_t;

static void sum_columns(const columns_t *a, const columns_t *b, columns_t *sum)
{
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        sum->even[i] = a->even[i] + b->even[i];
        sum->odd[i] = a->odd[i] + b->odd[i];
    }
}

static void store_blocks(__global level_t *out, const level_t *blocks)
{
#if SAMPLE_BYTES == 1
    *(__global ushort4 *)out = (ushort4)(blocks[0], blocks[1], blocks[2], blocks[3]);
#else
    *(__global uint4 *)out = (uint4)(blocks[0], blocks[1], blocks[2], blocks[3]);
#endif
}

/* Stores the boxes of four rows' columns: those at even columns to out0, those at odd ones to out1, unless it is 0. */
static void put_boxes(const columns_t *columns, int shift, __global level_t *out0, __global level_t *out1)
{
    const uint rounding = shift ? 8 : 0;
    level_t even[ITEM_BLOCKS], odd[ITEM_BLOCKS];
#pragma unroll
    for (int i = 0; i < ITEM_BLOCKS; i++) {
        const uint middle = columns->even[i + 1] + columns->odd[i + 1] + columns->even[i + 2] + rounding;
        even[i] = (level_t)((middle + columns->odd[i]) >> shift);
        odd[i] = (level_t)((middle + columns->odd[i + 2]) >> shift);
    }
    store_blocks(out0, even);
    if (out1)
        store_blocks(out1, odd);
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
        columns_t columns;
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            const int x = 2 * (at + i - 1);
            columns.even[i] = columns.odd[i] = 0;
            for (int j = -1; j < 3; j++) {
                columns.even[i] += PLANE_SAMPLE(clamp(x, 0, width - 1), row_at(y + j, height));
                columns.odd[i] += PLANE_SAMPLE(clamp(x + 1, 0, width - 1), row_at(y + j, height));
            }
        }
        if (is_x) {
            __global level_t *along_x = levels + to.x_at + (size_t)row * to.pitch + at;
            put_boxes(&columns, 0, along_x, along_x + to.pitch);
        }
        if (is_y)
            put_boxes(&columns, 0, levels + to.y_at + (size_t)y * to.pitch + at, 0);
    }
}

/* The columns of a row of a level with `count` samples; `at`, the first block, is a multiple of 4. */
static void load_columns(__global const level_t *row, int at, int count, columns_t *columns)
{
    const int x = 2 * at - 2;
#if SAMPLE_BYTES == 1
    if (x >= 0 && x + 2 * PAIRS <= count) {
        const uint4 middle = *(__global const uint4 *)(row + x + 2);
        const uint words[PAIRS] = {*(__global const uint *)(row + x), middle.x, middle.y, middle.z, middle.w,
                                   *(__global const uint *)(row + x + 10)};
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            columns->even[i] = words[i] & 0xffffu;
            columns->odd[i] = words[i] >> 16;
        }
        return;
    }
#endif
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        columns->even[i] = row[clamp(x + 2 * i, 0, count - 1)];
        columns->odd[i] = row[clamp(x + 2 * i + 1, 0, count - 1)];
    }
}

/* Makes MADE_ROWS rows of picture x from row y0 on, of the columns of a phase of the level before. */
static void make_x(__global level_t *levels, __global const scale_level_t *from, __global const scale_level_t *to,
                   int phase, int y0, int at)
{
    const int phases = 1 << from->shift;
    const int odd = (to->remainder >> from->shift) & 1;
    /* Level 1 has sums of 16 samples, level 2 of 256; then means are rounded. */
    const int shift = from->shift > 1 ? 4 : 0;
    const int pitch = from->pitch, count = from->count, rows = from->rows;
    __global const level_t *in = levels + from->x_at + phase * pitch;
    columns_t pairs[2];
#pragma unroll
    for (int j = 0; j <= MADE_ROWS; j++) {
        const int y = 2 * (y0 + j) - odd;
        columns_t first, second;
        load_columns(in + row_at(y - 1, rows) * phases * pitch, at, count, &first);
        load_columns(in + row_at(y, rows) * phases * pitch, at, count, &second);
        sum_columns(&first, &second, &pairs[j & 1]);
        if (j > 0 && y0 + j - 1 < to->rows) {
            __global level_t *out = levels + to->x_at + ((y0 + j - 1) * 2 * phases + phase) * to->pitch + at;
            sum_columns(&pairs[0], &pairs[1], &first);
            put_boxes(&first, shift, out, out + phases * to->pitch);
        }
    }
}

/* Makes MADE_ROWS rows of picture y, each 2^k rows behind the one before; k is the number of the level before. */
static void make_y(__global level_t *levels, __global const scale_level_t *from, __global const scale_level_t *to,
                   int height, int y0, int at)
{
    const int phases = 1 << from->shift;
    const int shift = from->shift > 1 ? 4 : 0;
    const int pitch = from->pitch, count = from->count;
    __global const level_t *in = levels + from->y_at;
    /* A row's box is the pair of rows before it and the pair two steps on. */
    columns_t pairs[3], rows[2];
    load_columns(in + row_at(y0 - phases, height) * pitch, at, count, &rows[1]);
#pragma unroll
    for (int j = 0; j < MADE_ROWS + 2; j++) {
        load_columns(in + row_at(y0 + j * phases, height) * pitch, at, count, &rows[j & 1]);
        sum_columns(&rows[0], &rows[1], &pairs[j % 3]);
        const int y = y0 + (j - 2) * phases;
        if (j >= 2 && y < height) {
            columns_t box;
            sum_columns(&pairs[j % 3], &pairs[(j - 2) % 3], &box);
            put_boxes(&box, shift, levels + to->y_at + y * to->pitch + at, 0);
        }
    }
}

/* Finds the rows of a set in which a comparison may mark the block at column x, a bit per row: for `minimum` those whose
 * block differs enough from its left neighbour, as few do. `set_rows` is a constant. `at` is the element of the first row's
 * block; samples and outer, those beside the sample, belong to the picture that starts at `base`. */
static __attribute__((always_inline)) uint
find_candidates(__global const level_t *levels, __global const scale_comparison_t *c, int at, int set_rows, sum_t theta,
                int flags, int *base, sum_t *samples, sum_t *outer)
{
    const int step = c->step;
    if (c->base != *base) {
        *base = c->base;
        const int before = c->before, after = c->after;
#pragma unroll
        for (int j = 0; j < set_rows; j++) {
            __global const level_t *p = levels + (at + j * step);
            samples[j] = p[0];
            outer[j] = (sum_t)p[before] - 2 * samples[j] + (sum_t)p[after];
        }
    }
    sum_t difference[MOST_SET_ROWS];
    const sum_t blur = c->blur, fraction = c->fraction;
    const int left_near = c->left_near, left_far = c->left_far;
#pragma unroll
    for (int j = 0; j < set_rows; j++)
        difference[j] = block_side(levels + (at + j * step), 256 * samples[j] + blur * outer[j], left_near, left_far,
                                   fraction);
    if (!(flags & MINIMUM)) {
        theta *= 2;
        const int right_near = c->right_near, right_far = c->right_far;
#pragma unroll
        for (int j = 0; j < set_rows; j++)
            difference[j] += block_side(levels + (at + j * step), 256 * samples[j] + blur * outer[j], right_near,
                                        right_far, fraction);
    }
    uint candidates = 0;
#pragma unroll
    for (int j = 0; j < set_rows; j++)
        candidates |= (uint)(difference[j] >= theta || difference[j] <= -theta) << j;
    return candidates;
}

/* Judges the blocks of column x in rows top .. top+set_rows-1 of a level; set_rows is a constant. */
static __attribute__((always_inline)) void
judge_blocks(__global const level_t *levels, __global const scale_level_t *level,
             __global const scale_comparison_t *comparisons, int flags, int x, int top, int set_rows,
             __global uchar *marks, int is_again, __global const uchar *ignored, int use_ignored,
             __global uint *counter)
{
    const int pitch = level->pitch;
    const int first = level->marks_at + top * pitch + x;
    const int rows = min(set_rows, level->past - top);
    /* A bit per row. */
    uint open = (1u << rows) - 1, marked = 0;
    if (is_again | use_ignored)
        for (int j = 0; j < rows; j++) {
            const int at = first + j * pitch;
            if ((is_again && !marks[at]) || (use_ignored && ignored[at]))
                open &= ~(1u << j);
        }
    const sum_t theta = (sum_t)level->theta;
    const int end = open ? level->end : 0;
    int base = -1;
    sum_t samples[MOST_SET_ROWS], outer[MOST_SET_ROWS];
    for (int i = level->first; i < end; i++) {
        __global const scale_comparison_t *c = &comparisons[i];
        if (x < c->x0 || x >= c->x1)
            continue;
        const int at = c->base + top * c->step + x;
        uint candidates = 0;
        if (top >= c->y0 && top + set_rows <= c->y1)
            candidates = find_candidates(levels, c, at, set_rows, theta, flags, &base, samples, outer);
        else
            for (int j = 0; j < rows; j++)
                candidates |= (uint)(top + j >= c->y0 && top + j < c->y1) << j;
        candidates &= open & ~marked;
        for (; candidates; candidates &= candidates - 1) {
            const int j = 31 - (int)clz(candidates & -candidates);
            sum_t difference;
            if (is_block_marked(levels + (at + j * c->step), *c, theta, flags, &difference))
                marked |= 1u << j;
        }
    }
    for (int j = 0; j < rows; j++)
        marks[first + j * pitch] = (uchar)(marked >> j & 1u);
    /* All items store the same number; additions to one counter would queue. */
    if (marked)
        *counter = 1;
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
    __global const scale_level_t *from = &table[level];
    const int set_rows = from->set_rows;
    const uint count = (uint)from->count;
    const uint sets = (uint)(from->past - from->from + set_rows - 1) / (uint)set_rows;
    const uint judged = whole_groups(count * sets);
    uint item = get_global_id(0);
    if (item < judged) {
        const uint set = item / count;
        const int x = (int)(item - set * count), top = from->from + set_rows * (int)set;
        if (set >= sets)
            return;
        if (set_rows == MOST_SET_ROWS)
            judge_blocks(levels, from, comparisons, flags, x, top, MOST_SET_ROWS, marks, is_again, ignored, use_ignored,
                         &counters[slot]);
        else
            judge_blocks(levels, from, comparisons, flags, x, top, 2, marks, is_again, ignored, use_ignored,
                         &counters[slot]);
        return;
    }
    if (is_last)
        return;
    item -= judged;
    __global const scale_level_t *to = &table[level + 1];
    const uint columns = (uint)to->pitch / ITEM_BLOCKS;
    const int phases = 1 << level;
    const uint x_sets = (uint)(to->rows + MADE_ROWS - 1) / MADE_ROWS;
    const uint in_x = axes & 1 ? whole_groups(columns * x_sets * (uint)phases) : 0;
    const int is_x = item < in_x;
    item -= is_x ? 0 : in_x;
    const int set = (int)(item / columns);
    const int at = ITEM_BLOCKS * (int)(item % columns);
    const int phase = set & (phases - 1);
    const int y0 = MADE_ROWS * (set >> level);
    if (is_x) {
        if (y0 < to->rows)
            make_x(levels, from, to, phase, y0, at);
    } else if (axes & 2) {
        if (phases * y0 + phase < height)
            make_y(levels, from, to, height, phases * y0 + phase, at);
    }
}
