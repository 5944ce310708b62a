/* Appended to scales_join.cl. CPU, 8-bit samples: makes and judges levels in lanes of 16 bits; scales_rows.cl calls it.
 *
 * Exactness: sums of level 1 have 12 bits, those of level 2 have 16. Coarser levels are made in lanes of 32 bits, by
 * scales_rows.cl. Blocks are compared in lanes of 16 bits only to find out where one may be marked; may_mark() says why
 * that misses none.
 */
#if SAMPLE_BYTES == 1
#define LANES 16
/* Most blocks of a row that are summed together. */
#define TILE_BLOCKS 1024

typedef struct __attribute__((packed)) { ushort16 v; } packed_lanes;
#define LOAD_LANES(p) (((__global const packed_lanes *)(p))->v)
#define STORE_LANES(p, x) (((__global packed_lanes *)(p))->v = (x))

/* Sums of the columns of four rows. The sums of columns 2*i and 2*i+1 are at [i - first block + 1]. */
typedef struct { ushort even[TILE_BLOCKS + 2], odd[TILE_BLOCKS + 2]; } columns_t;
#define LOAD_COLUMNS(p) (((const packed_ushort16 *)(p))->v)
#define STORE_COLUMNS(p, x) (((packed_ushort16 *)(p))->v = (x))

/* Sums of columns 2*i and 2*i+1 of the blocks from `i` on, for LANES blocks. The rows are those of the frame, or of a
 * level. */
static __attribute__((always_inline)) void add_lanes(__global const uchar *const *rows, int is_level, int i,
                                                     ushort *even, ushort *odd)
{
    ushort16 e = 0, o = 0;
    if (is_level) {
        ushort16 low = 0, high = 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            low += LOAD_LANES(rows[j] + 4 * i);
            high += LOAD_LANES(rows[j] + 4 * i + 2 * LANES);
        }
        e = (ushort16)(low.even, high.even);
        o = (ushort16)(low.odd, high.odd);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const ushort16 words = LOAD_LANES(rows[j] + 2 * i);
            e += words & (ushort)0xff;
            o += words >> (ushort)8;
        }
    }
    STORE_COLUMNS(even, e);
    STORE_COLUMNS(odd, o);
}

static ushort add_column(__global const uchar *const *rows, int is_level, int x)
{
    ushort sum = 0;
    for (int j = 0; j < 4; j++)
        sum += is_level ? ((__global const ushort *)rows[j])[x] : rows[j][x];
    return sum;
}

/* Sums of the columns that blocks from .. past-1 need: 2 * from - 1 .. 2 * past + 1. */
static __attribute__((always_inline)) void add_columns(__global const uchar *const *rows, int is_level, int width,
                                                       int from, int past, columns_t *columns)
{
    ushort *even = columns->even + 1;
    ushort *odd = columns->odd + 1;
    int i = from > 0 ? -1 : 0;
    const int whole = min(past + 1, width / 2) - from;
    if (whole - i >= LANES)
        for (;; i = min(i + LANES, whole - LANES)) {
            add_lanes(rows, is_level, from + i, even + i, odd + i);
            if (i == whole - LANES)
                break;
        }
    i = whole - i >= LANES ? whole : i;
    for (; i <= past - from; i++) {
        even[i] = add_column(rows, is_level, min(2 * (from + i), width - 1));
        odd[i] = add_column(rows, is_level, min(2 * (from + i) + 1, width - 1));
    }
    if (from == 0)
        odd[-1] = even[0];
}

/* Boxes of 4 columns around columns 2*i and 2*i+1, for LANES blocks. */
static __attribute__((always_inline)) void put_lanes(const columns_t *columns, int i, __global ushort *out0,
                                                     __global ushort *copy, __global ushort *out1)
{
    const ushort16 next = LOAD_COLUMNS(columns->even + i + 2);
    const ushort16 pair = LOAD_COLUMNS(columns->even + i + 1) + LOAD_COLUMNS(columns->odd + i + 1);
    const ushort16 box = LOAD_COLUMNS(columns->odd + i) + pair + next;
    STORE_LANES(out0 + i, box);
    if (copy)
        STORE_LANES(copy + i, box);
    if (out1)
        STORE_LANES(out1 + i, pair + next + LOAD_COLUMNS(columns->odd + i + 2));
}

/* Boxes of 4x4 samples of four rows: those at even columns go to `out0` and, unless it is 0, to `copy`; those at odd
 * columns to `out1`, unless it is 0. `step`: elements from a row of `out0` and `out1` to the one that is written next.
 *
 * A row is often a page of memory, at whose end the CPU's own prefetching stops, so the next rows are prefetched here. */
static __attribute__((always_inline)) void put_row(__global const uchar *const *rows, int is_level, int width,
                                                   int blocks, __global ushort *out0, __global ushort *copy,
                                                   __global ushort *out1, int step, int copy_step)
{
    columns_t columns;
    const long src_step = rows[3] - rows[2];
    const int tiles = blocks / TILE_BLOCKS + 1;
    for (int tile = 0; tile < tiles; tile++) {
        /* Equal parts, so that none is narrow. */
        const int from = (int)((long)blocks * tile / tiles);
        const int past = (int)((long)blocks * (tile + 1) / tiles);
        const int count = past - from;
        add_columns(rows, is_level, width, from, past, &columns);
        __global ushort *to0 = out0 + from;
        __global ushort *to_copy = copy ? copy + from : 0;
        __global ushort *to1 = out1 ? out1 + from : 0;
        if (count >= LANES) {
            for (int i = 0;; i = min(i + LANES, count - LANES)) {
                PREFETCH(to0 + i + step, 1);
                if (out1)
                    PREFETCH(to1 + i + step, 1);
                if (copy)
                    PREFETCH(to_copy + i + copy_step, 1);
                PREFETCH(rows[3] + src_step + (is_level ? 4 : 2) * (from + i), 0);
                put_lanes(&columns, i, to0, to_copy, to1);
                if (i == count - LANES)
                    break;
            }
            continue;
        }
        for (int i = 0; i < count; i++) {
            const ushort pair = columns.even[i + 1] + columns.odd[i + 1];
            to0[i] = columns.odd[i] + pair + columns.even[i + 2];
            if (copy)
                to_copy[i] = to0[i];
            if (out1)
                to1[i] = pair + columns.even[i + 2] + columns.odd[i + 2];
        }
    }
}

/* a * b / 65536, rounded down. PoCL's mul_hi() does not become x86's multiplication. */
static short16 multiply_high(short16 a, short16 b)
{
    return convert_short16((convert_int16(a) * convert_int16(b)) >> 16);
}

/* What LANES blocks may exceed their neighbours by, in lanes of 16 bits: a side, or the sum of both. `highest` gets the
 * largest so far of what decides for bright blocks, `lowest` the smallest of what decides for dark ones.
 *
 * Samples of level 1 have 12 bits; those of coarser levels are cut to 12, by `cut` bits. Products are divided by 256:
 * factors are scaled so that they fill 16 bits. Cutting changes a side by less than 1, and so do its two products, which
 * are rounded down and have opposite signs. So a side is wrong by less than SLACK. */
#define SLACK 2
/* Blocks that are compared exactly if one of them may be marked. */
#define GROUP_BLOCKS (8 * LANES)
static __attribute__((always_inline)) void find_extremes(__global const level_t *at, scale_comparison_t c, int flags,
                                                         ushort cut, short16 *highest, short16 *lowest)
{
#define SAMPLES(offset) as_short16(LOAD_LANES(at + (offset)) >> cut)
    const short16 fraction = (short)(c.fraction << 5);
    const short16 s = SAMPLES(0);
    const short16 left = SAMPLES(c.left_near);
    const short16 right = SAMPLES(c.right_near);
    short16 centre = s;
    if (c.blur)
        centre += multiply_high((SAMPLES(c.before) - s - s + SAMPLES(c.after)) << (short)2, (short)(c.blur << 6));
    const short16 l = centre - left - multiply_high((SAMPLES(c.left_far) - left) << (short)3, fraction);
    const short16 r = centre - right - multiply_high((SAMPLES(c.right_far) - right) << (short)3, fraction);
#undef SAMPLES
    const int is_minimum = (flags & MINIMUM) != 0;
    *highest = max(*highest, is_minimum ? min(l, r) : l + r);
    *lowest = min(*lowest, is_minimum ? max(l, r) : l + r);
}

/* Marks the blocks from .. past-1 of a row that a comparison marks. */
static __attribute__((noinline)) void judge_each(__global const level_t *row, scale_comparison_t c, sum_t theta,
                                                 int flags, int from, int past, __global uchar *out)
{
    for (int x = from; x < past; x++) {
        sum_t difference;
        out[x] |= (uchar)is_block_marked(row + x, c, theta, flags, &difference);
    }
}

/* judge_each(), which visits only groups of blocks of which one may be marked. */
static __attribute__((always_inline)) void judge_lanes(__global const level_t *row, scale_comparison_t c, sum_t theta,
                                                       int flags, __global uchar *out, ushort cut)
{
    /* Sides stay under 2^12. */
    const int side = min(theta >> (8 + cut), 8192) - SLACK;
    const int threshold = flags & MINIMUM ? side : 2 * side;
    const short brightest = flags & BRIGHT ? (short)threshold : (short)0x7fff;
    const short darkest = flags & DARK ? (short)-threshold : (short)-0x8000;
    if (c.x1 - c.x0 < GROUP_BLOCKS) {
        judge_each(row, c, theta, flags, c.x0, c.x1, out);
        return;
    }
    /* The last group overlaps the one before. */
    for (int x = c.x0;; x = min(x + GROUP_BLOCKS, c.x1 - GROUP_BLOCKS)) {
        /* The next row of blocks is the first one that reads these samples. */
        for (int i = 0; i < GROUP_BLOCKS; i += 2 * LANES) {
            PREFETCH(row + c.step + c.right_near + x + i, 0);
            PREFETCH(row + c.step + c.right_far + x + i, 0);
        }
        short16 highest = (short)-0x8000, lowest = (short)0x7fff;
        for (int i = 0; i < GROUP_BLOCKS; i += LANES)
            find_extremes(row + x + i, c, flags, cut, &highest, &lowest);
        const ulong4 any = as_ulong4((highest >= brightest) | (lowest <= darkest));
        if ((any.x | any.y) | (any.z | any.w))
            judge_each(row, c, theta, flags, x, x + GROUP_BLOCKS, out);
        if (x == c.x1 - GROUP_BLOCKS)
            break;
    }
}
#endif
