/* Appended to scales.cl. GPU: makes and judges all levels in one launch, and keeps their pictures in local memory. The
 * comparisons are constants of the program. 8-bit samples only; the frame and its rows start at multiples of 16 bytes, and
 * the memory has whole 16 bytes behind the last sample of each row.
 *
 * Work-groups of tiles along x, TILE_X by TILE_X_ROWS pixels, come first; those of tiles along y, TILE_Y by TILE_Y_ROWS,
 * follow. A tile holds its blocks and all samples that they need. Level 1 is made from the frame, each further level from
 * the one before; levels 1 and 3 lie in `first`, levels 2 and 4 in `second`.
 *
 * | constant          | meaning                                                                            |
 * | LEVELS            | 1 to 4                                                                             |
 * | GROUP             | work-items per work-group                                                          |
 * | TILE_COMPARISONS  | a list of comparison_t                                                             |
 * | TILE_FLAGS        | flags as in pitch_threshold.cl                                                     |
 * | AXES              | 1 x, 2 y, 3 both                                                                   |
 * | REACH_X, REACH_Y  | the largest distance along the axis                                                |
 * | FIRST, SECOND     | words of local memory. Twin of the sizes below: crates/core/src/scale_tiles.rs                |
 *
 * Other arguments than those of scales.cl: marks are 0 at entry, and `comparisons` only says which blocks are judged.
 *
 * A word has two samples of 16 bits: two columns of a picture x, two blocks of a picture y. Sums of levels 1 and 2 never
 * carry from one half to the other.
 */
/* Blocks of level k across the axis, of a tile that is `size` pixels wide, and those among them that lie before the tile. */
#define ACROSS(size, k) (((size) >> (k)) + (2 << (LEVELS - (k))) - 2)
#define LEAD(k) ((1 << (LEVELS - (k))) - 1)
/* Samples along the axis, before and behind a tile: those of neighbours, and those whose means they are. */
#define HEAD(reach) ((reach) + (1 << LEVELS) - 1)
#define TAIL(reach) ((reach) + (2 << LEVELS) - 3)
#define UP(n, step) (((n) + (step)-1) / (step) * (step))

/* Tiles along x: words in a row of each level. */
#define HEAD_X UP(HEAD(REACH_X), 16)
#define WORDS_X (UP(HEAD_X + TILE_X + TAIL(REACH_X), 16) / 2)
/* Tiles along y: rows of each level, blocks of level k before the tile, which start at a word, and words in a row. */
#define HEAD_Y HEAD(REACH_Y)
#define ROWS_Y (HEAD_Y + TILE_Y_ROWS + TAIL(REACH_Y))
#define PAD(k) UP(LEAD(k), (k) == 1 ? 4 : 2)
#define WORDS_Y(k) UP((PAD(k) - LEAD(k) + ACROSS(TILE_Y, k) + 1) / 2, (k) == 1 ? 2 : 1)

/* Shares of the work-items: the rows of a part of a column of `rows` rows, and the parts that cover it. */
#define MOST_PARTS(columns) (GROUP / (columns) < 1 ? 1 : GROUP / (columns))
#define PART_ROWS(columns, rows) (((rows) + MOST_PARTS(columns) - 1) / MOST_PARTS(columns))
#define PARTS(columns, rows) (((rows) + PART_ROWS(columns, rows) - 1) / PART_ROWS(columns, rows))

__constant const comparison_t tile_comparisons[] = {TILE_COMPARISONS};
#define TILE_COUNT ((int)(sizeof(tile_comparisons) / sizeof(comparison_t)))

typedef __constant const scale_level_t *table_t;

#define FRAME_ARGS __global const uchar *frame, uint stride, int width, int height
#define FRAME frame, stride, width, height
/* What a tile judges by, and writes. */
#define MARK_ARGS                                                                                                      \
    table_t table, __global const scale_comparison_t *comparisons, __global uchar *marks,                              \
        __global const uchar *ignored, int use_ignored, __global uint *counter
#define MARK table, comparisons, marks, ignored, use_ignored, counter

static uint between(uint a, uint b) { return as_uint((ushort2)(as_ushort2(a).y, as_ushort2(b).x)); }
static uint even_bytes(uint w) { return w & 0xff00ffu; }
static uint odd_bytes(uint w) { return (w >> 8) & 0xff00ffu; }
static uint low(uint w) { return w & 0xffffu; }
static uint high(uint w) { return w >> 16; }
static uint pair_of(uint a, uint b) { return a | (b << 16); }
/* The mean of 16 sums of level 2 and later. */
static uint mean(uint sum) { return (sum + 8) >> 4; }

/* Row y of the frame, or the nearest one. */
static __global const uchar *frame_row(__global const uchar *frame, uint stride, int height, int y)
{
    return frame + (size_t)(uint)row_at(y, height) * stride;
}

/* Whether a difference, or a sum of two with twice the threshold, reaches the threshold. */
static int reaches(int difference, int theta)
{
    return ((TILE_FLAGS & BRIGHT) != 0 && difference >= theta) || ((TILE_FLAGS & DARK) != 0 && difference <= -theta);
}

/* Marks block (x, y) if one of the comparisons, a bit each, judges it. Few blocks come here. */
static void mark_block(table_t level, uint found, int x, int y, __global const scale_comparison_t *comparisons,
                       __global uchar *marks, __global const uchar *ignored, int use_ignored, __global uint *counter)
{
    if (y < level->from || y >= level->past)
        return;
    for (int i = level->first; i < level->end; i++) {
        __global const scale_comparison_t *c = &comparisons[i];
        if (!(found >> c->index & 1u) || x < c->x0 || x >= c->x1 || y < c->y0 || y >= c->y1)
            continue;
        const int at = level->marks_at + y * level->pitch + x;
        if (use_ignored && ignored[at])
            return;
        /* Items store the same number. */
        marks[at] = 1;
        *counter = 1;
        return;
    }
}

/* A threshold that no difference reaches is as good as a larger one, and fits. */
static int theta_of(table_t level) { return (int)min(level->theta, (long)UNREACHED); }

#if AXES & 1
/* Makes level 1 from row `top` of the frame on: the first sample is `HEAD_X` columns before x0. */
static __attribute__((always_inline)) void first_along_x(FRAME_ARGS, int x0, int top, __local uint *out)
{
    const int columns = WORDS_X / 8, rows = ACROSS(TILE_X_ROWS, 1), part = PART_ROWS(columns, rows);
    for (int item = get_local_id(0); item < columns * PARTS(columns, rows); item += GROUP) {
        const int column = item % columns, r0 = item / columns * part;
        /* Samples beyond the frame's edge are those of any blocks that are not judged. */
        const int x = x0 - HEAD_X + 16 * column, last = (width - 1) / 16 * 16;
        const int at = clamp(x, 0, last), left = clamp(x - 4, 0, last), right = clamp(x + 16, 0, last);
        /* Sums of two rows: 16 columns, the odd ones before, and the four behind. */
        uint4 even0 = 0, odd0 = 0;
        uint before0 = 0, even_behind0 = 0, odd_behind0 = 0;
#pragma unroll
        for (int r = 0; r <= part; r++) {
            uint4 even1 = 0, odd1 = 0;
            uint before1 = 0, even_behind1 = 0, odd_behind1 = 0;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                __global const uchar *row = frame_row(frame, stride, height, top + 2 * (r0 + r) - 1 + j);
                const uint4 w = *(__global const uint4 *)(row + at);
                const uint a = *(__global const uint *)(row + left), b = *(__global const uint *)(row + right);
                even1 += (uint4)(even_bytes(w.x), even_bytes(w.y), even_bytes(w.z), even_bytes(w.w));
                odd1 += (uint4)(odd_bytes(w.x), odd_bytes(w.y), odd_bytes(w.z), odd_bytes(w.w));
                before1 += odd_bytes(a);
                even_behind1 += even_bytes(b);
                odd_behind1 += odd_bytes(b);
            }
            if (r > 0 && r0 + r <= rows) {
                const uint4 e = even0 + even1, o = odd0 + odd1;
                const uint e4 = even_behind0 + even_behind1, o4 = odd_behind0 + odd_behind1;
                const uint4 next_even =
                    (uint4)(between(e.x, e.y), between(e.y, e.z), between(e.z, e.w), between(e.w, e4));
                const uint4 next_odd =
                    (uint4)(between(o.x, o.y), between(o.y, o.z), between(o.z, o.w), between(o.w, o4));
                const uint4 odd_before = (uint4)(between(before0 + before1, o.x), next_odd.xyz);
                const uint4 middle = e + o + next_even;
                const uint4 even = middle + odd_before, odd = middle + next_odd;
                __local uint4 *to = (__local uint4 *)(out + (r0 + r - 1) * WORDS_X + 8 * column);
                to[0] = (uint4)(pair_of(low(even.x), low(odd.x)), pair_of(high(even.x), high(odd.x)),
                                pair_of(low(even.y), low(odd.y)), pair_of(high(even.y), high(odd.y)));
                to[1] = (uint4)(pair_of(low(even.z), low(odd.z)), pair_of(high(even.z), high(odd.z)),
                                pair_of(low(even.w), low(odd.w)), pair_of(high(even.w), high(odd.w)));
            }
            even0 = even1;
            odd0 = odd1;
            before0 = before1;
            even_behind0 = even_behind1;
            odd_behind0 = odd_behind1;
        }
    }
}

/* Four words of a row that start `step` words behind word 4*column, step from -4 to 8; their neighbours in the row. */
static uint4 words_at(__local const uint *row, int column, int step)
{
    const int last = WORDS_X / 4 - 1;
    __local const uint4 *p = (__local const uint4 *)row;
    const uint4 m = p[column];
    if (step == 0)
        return m;
    if (step < 0) {
        const uint4 a = p[max(column - 1, 0)];
        return step == -1 ? (uint4)(a.w, m.xyz) : step == -2 ? (uint4)(a.zw, m.xy) : a;
    }
    const uint4 b = p[min(column + 1, last)];
    if (step == 8)
        return p[min(column + 2, last)];
    return step == 1 ? (uint4)(m.yzw, b.x) : step == 2 ? (uint4)(m.zw, b.xy) : b;
}

/* Makes level k+1 from level k, whose row 0 is the first one that level k+1 needs; `lo` and `hi`: the picture's first and
 * last row among those of the tile. k is a constant. */
static __attribute__((always_inline)) void next_along_x(__local const uint *in, __local uint *out, int k, int lo, int hi)
{
    const int columns = WORDS_X / 4, rows = ACROSS(TILE_X_ROWS, k + 1), part = PART_ROWS(columns, rows);
    const int step = 1 << (k - 1);
    for (int item = get_local_id(0); item < columns * PARTS(columns, rows); item += GROUP) {
        const int column = item % columns, r0 = item / columns * part;
        /* Sums of two rows; at level 1 of both halves of a word at once. */
        uint4 low0 = 0, high0 = 0;
#pragma unroll
        for (int r = 0; r <= part; r++) {
            uint4 low1 = 0, high1 = 0;
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int row = clamp(min(2 * (r0 + r) + j, 2 * rows + 1), lo, hi);
                __local const uint *p = in + row * WORDS_X;
#pragma unroll
                for (int i = -1; i < 3; i++) {
                    const uint4 w = words_at(p, column, i * step);
                    if (k == 1) {
                        low1 += w;
                    } else {
                        low1 += (uint4)(low(w.x), low(w.y), low(w.z), low(w.w));
                        high1 += (uint4)(high(w.x), high(w.y), high(w.z), high(w.w));
                    }
                }
            }
            if (r > 0 && r0 + r <= rows) {
                const uint4 a = low0 + low1, b = high0 + high1;
                *(__local uint4 *)(out + (r0 + r - 1) * WORDS_X + 4 * column) =
                    k == 1 ? a
                           : (uint4)(pair_of(mean(a.x), mean(b.x)), pair_of(mean(a.y), mean(b.y)),
                                     pair_of(mean(a.z), mean(b.z)), pair_of(mean(a.w), mean(b.w)));
            }
            low0 = low1;
            high0 = high1;
        }
    }
}

/* Judges the tile's blocks of level k, a constant. */
static __attribute__((always_inline)) void judge_along_x(MARK_ARGS, __local const uint *picture, int k, int x0, int y0)
{
    table_t level = table + k;
    const int theta = theta_of(level);
    const int columns = TILE_X >> k, sets = GROUP / columns > 1 ? GROUP / columns : 1;
    const int top = (y0 + level->remainder) >> k;
    for (int column = get_local_id(0) % columns; column < columns; column += GROUP)
#pragma unroll 4
        for (int r = get_local_id(0) / columns; r < TILE_X_ROWS >> k; r += sets) {
            __local const ushort *p =
                (__local const ushort *)picture + (r + LEAD(k)) * (2 * WORDS_X) + HEAD_X + (column << k);
            const int s = p[0];
            const int outer = (TILE_FLAGS & MATCHED) ? (int)p[-1] + (int)p[1] - 2 * s : 0;
            uint found = 0;
#pragma unroll
            for (int i = 0; i < TILE_COUNT; i++) {
                const comparison_t c = tile_comparisons[i];
                if (c.axis != 0)
                    continue;
                const int far = comparison_margin(c);
                const int centre = 256 * s + c.blur * outer;
                const int l = centre - (256 - c.fraction) * p[-c.whole] - c.fraction * p[-far];
                if ((TILE_FLAGS & MINIMUM) && !reaches(l, theta))
                    continue;
                const int right = centre - (256 - c.fraction) * p[c.whole] - c.fraction * p[far];
                int difference;
                if (is_marked_block(l, right, theta, TILE_FLAGS, &difference))
                    found |= 1u << i;
            }
            if (found)
                mark_block(level, found, (x0 >> k) + column, top + r, comparisons, marks, ignored, use_ignored, counter);
        }
}

/* The rows of level k's picture that lie in the tile: index of the first and of the last one. */
static int first_row(table_t level, int k, int y0) { return max(0, LEAD(k) - ((y0 + level->remainder) >> k)); }
static int last_row(table_t level, int k, int y0)
{
    return level->rows - 1 + LEAD(k) - ((y0 + level->remainder) >> k);
}

static __attribute__((always_inline)) void tile_along_x(FRAME_ARGS, MARK_ARGS, int x0, int y0, __local uint *first, __local uint *second)
{
    first_along_x(FRAME, x0, y0 - 2 * LEAD(1), first);
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_x(MARK, first, 1, x0, y0);
#if LEVELS > 1
    next_along_x(first, second, 1, first_row(table + 1, 1, y0), last_row(table + 1, 1, y0));
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_x(MARK, second, 2, x0, y0);
#endif
#if LEVELS > 2
    next_along_x(second, first, 2, first_row(table + 2, 2, y0), last_row(table + 2, 2, y0));
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_x(MARK, first, 3, x0, y0);
#endif
#if LEVELS > 3
    next_along_x(first, second, 3, first_row(table + 3, 3, y0), last_row(table + 3, 3, y0));
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_x(MARK, second, 4, x0, y0);
#endif
}
#endif

#if AXES & 2
/* The word of samples x .. x+3, of which those beyond the frame's edge are the edge's. */
static uint edge_word(uint word, int x, int width, __global const uchar *row)
{
    if (x < 0)
        return 0x01010101u * row[0];
    const int inside = width - x;
    const uint edge = 0x01010101u * row[width - 1];
    if (inside <= 0)
        return edge;
    const uint mask = inside >= 4 ? ~0u : (1u << (8 * inside)) - 1;
    return (word & mask) | (edge & ~mask);
}

/* Makes level 1 from row `top` of the frame on: the first block is PAD(1) blocks before x0. */
static __attribute__((always_inline)) void first_along_y(FRAME_ARGS, int x0, int top, __local uint *out)
{
    /* A column is a pair of words. */
    const int columns = WORDS_Y(1) / 2, part = PART_ROWS(columns, ROWS_Y);
    for (int item = get_local_id(0); item < columns * PARTS(columns, ROWS_Y); item += GROUP) {
        const int column = item % columns, r0 = item / columns * part;
        const int x = x0 - 2 * PAD(1) + 8 * column, last = (width - 1) / 8 * 8;
        const int at = clamp(x, 0, last), left = clamp(x - 4, 0, last), right = clamp(x + 8, 0, last);
        const int is_edge = x < 4 || x + 12 > width;
        /* Sums of a row, and of two rows. */
        uint2 sums[2] = {0, 0}, pairs[4];
#pragma unroll
        for (int r = 0; r < part + 3; r++) {
            __global const uchar *row = frame_row(frame, stride, height, top + r0 + r - 1);
            uint2 w = *(__global const uint2 *)(row + at);
            uint a = *(__global const uint *)(row + left), b = *(__global const uint *)(row + right);
            if (is_edge) {
                a = edge_word(a, x - 4, width, row);
                w = (uint2)(edge_word(w.x, x, width, row), edge_word(w.y, x + 4, width, row));
                b = edge_word(b, x + 8, width, row);
            }
            const uint2 even = (uint2)(even_bytes(w.x), even_bytes(w.y)), odd = (uint2)(odd_bytes(w.x), odd_bytes(w.y));
            sums[r & 1] = even + odd + (uint2)(between(even.x, even.y), between(even.y, even_bytes(b))) +
                          (uint2)(between(odd_bytes(a), odd.x), between(odd.x, odd.y));
            pairs[r & 3] = sums[0] + sums[1];
            if (r >= 3 && r0 + r - 3 < ROWS_Y)
                *(__local uint2 *)(out + (r0 + r - 3) * WORDS_Y(1) + 2 * column) = pairs[r & 3] + pairs[(r - 2) & 3];
        }
    }
}

/* Makes level k+1 from level k; `lo` and `hi`: the picture's first and last column among those of the tile. k is a
 * constant. */
static __attribute__((always_inline)) void next_along_y(__local const uint *in, __local uint *out, int k, int lo, int hi)
{
    const int words = WORDS_Y(k + 1), phases = 1 << k, columns = words * phases;
    const int rows = (ROWS_Y + phases - 1) / phases, part = PART_ROWS(columns, rows);
    /* Words before those of the first two blocks' own columns. */
    const int skip = PAD(k) / 2 - PAD(k + 1);
    for (int item = get_local_id(0); item < columns * PARTS(columns, rows); item += GROUP) {
        const int column = item % columns, word = column % words;
        const int r0 = item / columns * part * phases + column / words;
        const int own = 4 * word + 2 * skip;
        uint2 sums[2] = {0, 0}, pairs[4];
#pragma unroll
        for (int r = 0; r < part + 3; r++) {
            /* Rows that no neighbour needs may hold any sums. */
            const int row = clamp(r0 + (r - 1) * phases, 0, ROWS_Y - 1);
            __local const uint *p = in + row * WORDS_Y(k) + own / 2;
            uint s[6] = {own ? high(p[-1]) : 0, low(p[0]), high(p[0]), low(p[1]), high(p[1]), low(p[2])};
            if (own <= lo)
                s[0] = s[1];
            if (own + 4 > hi)
#pragma unroll
                for (int i = 1; i < 6; i++)
                    s[i] = own + i - 1 > hi ? s[i - 1] : s[i];
            const uint middle = s[2] + s[3];
            sums[r & 1] = (uint2)(s[0] + s[1] + middle, middle + s[4] + s[5]);
            pairs[r & 3] = sums[0] + sums[1];
            const int to = r0 + (r - 3) * phases;
            if (r >= 3 && to < ROWS_Y) {
                const uint2 box = pairs[r & 3] + pairs[(r - 2) & 3];
                out[to * words + word] = k == 1 ? pair_of(box.x, box.y) : pair_of(mean(box.x), mean(box.y));
            }
        }
    }
}

/* Judges the tile's blocks of level k, a constant: an item has two in a row. */
static __attribute__((always_inline)) void judge_along_y(MARK_ARGS, __local const uint *picture, int k, int x0, int y0)
{
    table_t level = table + k;
    const int theta = theta_of(level);
    const int pitch = WORDS_Y(k), words = TILE_Y >> (k + 1);
    const int word = get_local_id(0) % words;
    const int x = (x0 >> k) + 2 * word, top = (y0 + level->remainder) >> k;
#pragma unroll 4
    for (int r = get_local_id(0) / words; r < TILE_Y_ROWS >> k; r += GROUP / words) {
        __local const uint *p = picture + (HEAD_Y + (r << k)) * pitch + PAD(k) / 2 + word;
#define TWO_SAMPLES(at) convert_int2(as_ushort2(p[(at)*pitch]))
        const int2 s = TWO_SAMPLES(0);
        const int2 outer = (TILE_FLAGS & MATCHED) ? TWO_SAMPLES(-1) + TWO_SAMPLES(1) - 2 * s : (int2)(0);
        uint found[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < TILE_COUNT; i++) {
            const comparison_t c = tile_comparisons[i];
            if (c.axis != 1)
                continue;
            const int far = comparison_margin(c);
            const int2 centre = 256 * s + c.blur * outer;
            const int2 l = centre - (256 - c.fraction) * TWO_SAMPLES(-c.whole) - c.fraction * TWO_SAMPLES(-far);
            if ((TILE_FLAGS & MINIMUM) && !reaches(l.x, theta) && !reaches(l.y, theta))
                continue;
            const int2 right = centre - (256 - c.fraction) * TWO_SAMPLES(c.whole) - c.fraction * TWO_SAMPLES(far);
            int difference;
            if (is_marked_block(l.x, right.x, theta, TILE_FLAGS, &difference))
                found[0] |= 1u << i;
            if (is_marked_block(l.y, right.y, theta, TILE_FLAGS, &difference))
                found[1] |= 1u << i;
        }
#undef TWO_SAMPLES
        for (int i = 0; i < 2; i++)
            if (found[i])
                mark_block(level, found[i], x + i, top + r, comparisons, marks, ignored, use_ignored, counter);
    }
}

/* The columns of level k's picture that lie in the tile: index of the first and of the last one. */
static int first_column(int k, int x0) { return max(0, PAD(k) - (x0 >> k)); }
static int last_column(table_t level, int k, int x0) { return level->count - 1 + PAD(k) - (x0 >> k); }

static __attribute__((always_inline)) void tile_along_y(FRAME_ARGS, MARK_ARGS, int x0, int y0, __local uint *first, __local uint *second)
{
    first_along_y(FRAME, x0, y0 - HEAD_Y, first);
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_y(MARK, first, 1, x0, y0);
#if LEVELS > 1
    next_along_y(first, second, 1, first_column(1, x0), last_column(table + 1, 1, x0));
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_y(MARK, second, 2, x0, y0);
#endif
#if LEVELS > 2
    next_along_y(second, first, 2, first_column(2, x0), last_column(table + 2, 2, x0));
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_y(MARK, first, 3, x0, y0);
#endif
#if LEVELS > 3
    next_along_y(first, second, 3, first_column(3, x0), last_column(table + 3, 3, x0));
    barrier(CLK_LOCAL_MEM_FENCE);
    judge_along_y(MARK, second, 4, x0, y0);
#endif
}
#endif

/* top: the first row of the first tile, where a block of the last level begins; x_tiles: tiles along x; x_columns,
 * y_columns: tiles in a row of them. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
scales_tiles(PLANE_ARGS, int width, int height, table_t table, __global const scale_comparison_t *comparisons,
             __global uchar *marks, __global const uchar *ignored, int use_ignored, __global uint *counters, uint slot,
             int top, int x_tiles, int x_columns, int y_columns)
{
    __local uint first[FIRST] __attribute__((aligned(16))), second[SECOND] __attribute__((aligned(16)));
    if (get_global_id(0) == 0)
        counters[slot ^ 1u] = 0;
    __global const uchar *frame = src + src_offset;
    const uint stride = src_stride;
    __global uint *counter = &counters[slot];
    const int tile = (int)get_group_id(0);
#if AXES == 1
    tile_along_x(FRAME, MARK, tile % x_columns * TILE_X, top + tile / x_columns * TILE_X_ROWS, first, second);
#elif AXES == 2
    tile_along_y(FRAME, MARK, tile % y_columns * TILE_Y, top + tile / y_columns * TILE_Y_ROWS, first, second);
#else
    if (tile < x_tiles)
        tile_along_x(FRAME, MARK, tile % x_columns * TILE_X, top + tile / x_columns * TILE_X_ROWS, first, second);
    else
        tile_along_y(FRAME, MARK, (tile - x_tiles) % y_columns * TILE_Y, top + (tile - x_tiles) / y_columns * TILE_Y_ROWS,
                     first, second);
#endif
}
