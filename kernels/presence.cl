/* Appended to presence_tiles.cl. Finds the tiles in which the pattern is missing, and marks them.
 * docs/semantics.md, "Presence", defines it.
 *
 * tile_sums_columns  CPU: local size 1; a work-item sums up rows of tiles: first the columns, 64 at a
 *                    time, for up to BLOCK_ROWS rows, then each tile's columns.
 * tile_sums_groups   Any device with local memory: see sum_tiles. The wide kernels contain it.
 * mark_missing       One work-item per byte of the mask: marks the judged pixels of missing tiles.
 * pair_sums          Sums for the correlation of the frame with itself one vector away, per tile; a
 *                    work-item sums up tiles.
 * pair_sums_groups   The same; a work-group of any size sums up a tile.
 *
 * | argument   | meaning                                                                            |
 * | src        | the judged plane in a buffer; any offset and stride                                 |
 * | shift      | samples are shifted right by this many bits, to 8 bits                              |
 * | tiles      | int4: width and height of a tile, tiles per row, rows of tiles                      |
 * | tile_rows  | int4: the first row of the plane that the tiles cover, their number of rows, and 2 if   |
 * |            | the last row of tiles also holds rows of the one before, as in a frame; 1 in a web     |
 * | contrast   | c of docs/semantics.md, at most 2^20                                                |
 * | sums       | a tile_sum_t per tile, written                                                      |
 * | columns    | two sums per column of the frame and work-item: working memory                      |
 * | missing    | two counters of missing tiles: the launch adds to missing[slot], which is 0 at entry,|
 * |            | and zeroes the other one for the next frame                                         |
 * | table      | per tile: difference of its mean in 1/256 grey level, or TILE_PRESENT               |
 * | ignored    | bitmap of ignored pixels with the rows and layout of the mask; read if use_ignored is not 0 |
 * | counts     | mark_missing adds the pixels that were not marked before, and all pixels that it marks |
 * | out        | a pair_sums_t per tile                                                              |
 *
 * Exactness: integers without overflow. Sums of squares have 64 bits, comparisons 128.
 */

/* Twin: crates/core/src/presence.rs (PairSums). */
typedef struct { ulong pairs, a, b, aa, bb, ab; } pair_sums_t;

#if SAMPLE_BYTES == 1
/* 256 rows of 255 fit 16 bits, their squares 32. */
#define BLOCK_ROWS 256
typedef ushort16 sum16_t;
typedef uint16 square16_t;
typedef uint column_t;
#define LOAD_SUM16(p) convert_ushort16(LOAD_UCHAR16(p))
#define SQUARE16(v) convert_uint16((v) * (v))
#define STORE_COLUMNS(v, p) vstore16(convert_uint16(v), 0, p)
#else
/* A sample that fills more bits than its depth is not clamped: it has 15 bits after the shift. */
#define BLOCK_ROWS 256
typedef uint16 sum16_t;
typedef ulong16 square16_t;
typedef ulong column_t;
#if BIG_ENDIAN_SAMPLES
#define LOAD_SUM16(p) (convert_uint16(SWAP_BYTES16(LOAD_USHORT16(p))) >> (uint)shift)
#else
#define LOAD_SUM16(p) (convert_uint16(LOAD_USHORT16(p)) >> (uint)shift)
#endif
#define SQUARE16(v) convert_ulong16((v) * (v))
#define STORE_COLUMNS(v, p) vstore16(convert_ulong16(v), 0, p)
#endif

/* Sums and squares of 64 columns over `rows` rows from `p`. */
static __attribute__((noinline)) void sum_columns64(__global const uchar *p, uint src_stride, int rows,
                                                    int shift, __global column_t *sums,
                                                    __global column_t *squares)
{
    sum16_t a = 0, b = 0, c = 0, d = 0;
    square16_t aa = 0, bb = 0, cc = 0, dd = 0;
    for (int row = 0; row < rows; row++, p += src_stride) {
        const sum16_t va = LOAD_SUM16(p);
        const sum16_t vb = LOAD_SUM16(p + 16 * SAMPLE_BYTES);
        const sum16_t vc = LOAD_SUM16(p + 32 * SAMPLE_BYTES);
        const sum16_t vd = LOAD_SUM16(p + 48 * SAMPLE_BYTES);
        a += va;
        b += vb;
        c += vc;
        d += vd;
        aa += SQUARE16(va);
        bb += SQUARE16(vb);
        cc += SQUARE16(vc);
        dd += SQUARE16(vd);
    }
    STORE_COLUMNS(a, sums);
    STORE_COLUMNS(b, sums + 16);
    STORE_COLUMNS(c, sums + 32);
    STORE_COLUMNS(d, sums + 48);
    STORE_COLUMNS(aa, squares);
    STORE_COLUMNS(bb, squares + 16);
    STORE_COLUMNS(cc, squares + 32);
    STORE_COLUMNS(dd, squares + 48);
}

/* The same for the `width` columns of a frame that has fewer than 64; not inlined, because PoCL would
 * compile it longer than the rest. */
static __attribute__((noinline)) void sum_columns(__global const uchar *p, uint src_stride, int width,
                                                  int rows, int shift, __global column_t *sums,
                                                  __global column_t *squares)
{
    for (int x = 0; x < width; x++) {
        column_t sum = 0, square = 0;
        for (int row = 0; row < rows; row++) {
            const column_t v = load_sample(p + (size_t)row * src_stride + (size_t)x * SAMPLE_BYTES) >> shift;
            sum += v;
            square += v * v;
        }
        sums[x] = sum;
        squares[x] = square;
    }
}

/* The tiles of a row of tiles that lack the pattern. */
static __attribute__((noinline)) uint count_missing(__global const tile_sum_t *row_sums, int4 tiles,
                                                    uint contrast)
{
    uint found = 0;
    for (int i = 0; i < tiles.z; i++)
        found += is_missing(row_sums[i].s1, row_sums[i].s2, (ulong)tiles.x * tiles.y, contrast);
    return found;
}

__kernel void tile_sums_columns(PLANE_ARGS, int width, int height, int shift, int4 tiles, uint contrast,
                                __global tile_sum_t *sums, __global uint *missing, uint slot,
                                __global column_t *columns)
{
    if (get_global_id(0) == 0)
        missing[slot ^ 1u] = 0;
    __global column_t *column_sums = columns + get_global_id(0) * 2 * (size_t)width;
    __global column_t *column_squares = column_sums + width;
    uint found = 0;
    for (int j = get_global_id(0); j < tiles.w; j += get_global_size(0)) {
        const int top = tile_start(j, tiles.y, height);
        __global tile_sum_t *row_sums = sums + (size_t)j * tiles.z;
        for (int block = 0; block < tiles.y; block += BLOCK_ROWS) {
            const int rows = min(BLOCK_ROWS, tiles.y - block);
            __global const uchar *samples = src + src_offset + (size_t)(top + block) * src_stride;
            if (width >= 64) {
                for (int next = 0; next < width; next += 64) {
                    /* The last 64 columns overlap the ones before. */
                    const int x = min(next, width - 64);
                    sum_columns64(samples + (size_t)x * SAMPLE_BYTES, src_stride, rows, shift,
                                  column_sums + x, column_squares + x);
                }
            } else {
                sum_columns(samples, src_stride, width, rows, shift, column_sums, column_squares);
            }
            for (int i = 0; i < tiles.z; i++) {
                const int left = tile_start(i, tiles.x, width);
                ulong s1 = 0, s2 = 0;
                VECTORS_OF_4
                for (int x = left; x < left + tiles.x; x++) {
                    s1 += column_sums[x];
                    s2 += column_squares[x];
                }
                row_sums[i].s1 = block ? row_sums[i].s1 + s1 : s1;
                row_sums[i].s2 = block ? row_sums[i].s2 + s2 : s2;
            }
        }
        found += count_missing(row_sums, tiles, contrast);
    }
    if (found)
        atomic_add(&missing[slot], found);
}

__kernel void tile_sums_groups(PLANE_ARGS, int width, int height, int shift, int4 tiles, uint contrast,
                               __global tile_sum_t *sums, __global uint *missing, uint slot, int row_step,
                               __local tile_sum_t *partial)
{
    if (get_global_id(0) == 0)
        missing[slot ^ 1u] = 0;
    sum_tiles(PLANE, width, height, shift, tiles, contrast, sums, &missing[slot], row_step,
              (int)get_group_id(0), partial);
}

__kernel void mark_missing(int width, int height, int first, int rows, __global uchar *mask,
                           ulong mask_offset, uint mask_stride, __constant const comparison_t *comparisons,
                           int comparison_count, __global const int4 *rois, int roi_count, int flags,
                           int4 tiles, int4 tile_rows, __global const int *table,
                           __global const uchar *ignored, int use_ignored, __global uint *counts)
{
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    if (column >= (int)mask_stride || row >= rows)
        return;
    const int x = 8 * column;
    const int y = first + row;
    const int at = y - tile_rows.x;
    uint bits = 0;
    /* The pixels lie in a regular tile or in the last one, or in both, in either direction. */
    for (int last_row = 0; last_row < tile_rows.z; last_row++) {
        const int j = last_row ? tiles.w - 1 : clamp(at / tiles.y, 0, tiles.w - 1);
        const int top = tile_start(j, tiles.y, tile_rows.y);
        if (at < top || at >= top + tiles.y)
            continue;
        for (int last = 0; last < 2; last++) {
            const int i = last ? tiles.z - 1 : min(x / tiles.x, tiles.z - 1);
            const int left = tile_start(i, tiles.x, width);
            if (table[(size_t)j * tiles.z + i] != TILE_PRESENT)
                bits |= byte_range(left, left + tiles.x, x);
        }
    }
    if (bits)
        bits &= roi_bits(rois, roi_count, x, y, 8);
    if (use_ignored)
        bits &= ~(uint)ignored[(size_t)row * mask_stride + column];
    if (!bits)
        return;
    uint judged = 0;
    for (int i = 0; i < comparison_count; i++)
        judged |= judged_byte(x, y, width, height, comparisons[i], flags);
    bits &= judged;
    if (!bits)
        return;
    __global uchar *out = mask + mask_offset + (size_t)row * mask_stride + column;
    const uint before = *out;
    *out = (uchar)(before | bits);
    const uint fresh = popcount(bits & ~before);
    if (fresh)
        atomic_add(&counts[0], fresh);
    atomic_add(&counts[1], popcount(bits));
}

/* Places of an axis first .. first+size-1 whose neighbour at distance d lies in 0 .. n-1: x .. y-1. */
static int2 places_with_neighbour(int first, int size, int d, int n)
{
    const int margin = ((int)abs(d) + 255) >> 8;
    return d < 0 ? (int2)(max(first, margin), first + size) : (int2)(first, min(first + size, n - margin));
}

/* Adds the pairs of a tile's pixels first, first + step, ... that have a neighbour at the distance dx, dy, in 1/256 px. */
static void add_pairs(PLANE_ARGS, int width, int height, int shift, int dx, int dy, int4 tiles, int tile, int first,
                      int step, pair_sums_t *sums)
{
    const int sign_x = dx < 0 ? -1 : 1;
    const int sign_y = dy < 0 ? -1 : 1;
    const uint fx = abs(dx) & 255u;
    const uint fy = abs(dy) & 255u;
    const int near_x = sign_x * ((int)abs(dx) >> 8);
    const int near_y = sign_y * ((int)abs(dy) >> 8);
    /* A sample of weight 0 is not read. */
    const int next_x = fx ? sign_x : 0;
    const int next_y = fy ? sign_y : 0;
    const int row = tile / tiles.z;
    const int left = tile_start(tile - row * tiles.z, tiles.x, width);
    const int top = tile_start(row, tiles.y, height);
    const int2 across = places_with_neighbour(left, tiles.x, dx, width);
    const int2 down = places_with_neighbour(top, tiles.y, dy, height);
    const int columns = across.y - across.x;
    const int rows = down.y - down.x;
    const int count = columns > 0 && rows > 0 ? columns * rows : 0;
    for (int n = first; n < count; n += step) {
        const int x = across.x + n % columns;
        const int y = down.x + n / columns;
        const int at = x + near_x;
        const int line = y + near_y;
        const ulong a = 256 * (ulong)(PLANE_SAMPLE(x, y) >> shift);
        ulong b = (256 - fx) * (ulong)(PLANE_SAMPLE(at, line) >> shift) +
                  fx * (ulong)(PLANE_SAMPLE(at + next_x, line) >> shift);
        if (fy) {
            const ulong far = (256 - fx) * (ulong)(PLANE_SAMPLE(at, line + next_y) >> shift) +
                              fx * (ulong)(PLANE_SAMPLE(at + next_x, line + next_y) >> shift);
            b = ((256 - fy) * b + fy * far) >> 8;
        }
        sums->pairs++;
        sums->a += a;
        sums->b += b;
        sums->aa += a * a;
        sums->bb += b * b;
        sums->ab += a * b;
    }
}

__kernel void pair_sums(PLANE_ARGS, int width, int height, int shift, int dx, int dy, int4 tiles,
                        __global pair_sums_t *out)
{
    for (int tile = get_global_id(0); tile < tiles.z * tiles.w; tile += get_global_size(0)) {
        pair_sums_t sums = {0, 0, 0, 0, 0, 0};
        add_pairs(PLANE, width, height, shift, dx, dy, tiles, tile, 0, 1, &sums);
        out[tile] = sums;
    }
}

__kernel void pair_sums_groups(PLANE_ARGS, int width, int height, int shift, int dx, int dy, int4 tiles,
                               __global pair_sums_t *out,
                               __local pair_sums_t *partial)
{
    const int item = get_local_id(0);
    const int items = get_local_size(0);
    pair_sums_t sums = {0, 0, 0, 0, 0, 0};
    add_pairs(PLANE, width, height, shift, dx, dy, tiles, (int)get_group_id(0), item, items, &sums);
    partial[item] = sums;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item != 0)
        return;
    for (int i = 1; i < items; i++) {
        sums.pairs += partial[i].pairs;
        sums.a += partial[i].a;
        sums.b += partial[i].b;
        sums.aa += partial[i].aa;
        sums.bb += partial[i].bb;
        sums.ab += partial[i].ab;
    }
    out[get_group_id(0)] = sums;
}
