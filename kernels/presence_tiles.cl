/* Appended to pitch_threshold.cl and, where the device has it, nvidia.cl. Sums of the tiles in which the
 * pattern is looked for. docs/semantics.md, "Presence", defines it; presence.cl has the arguments.
 */
#ifndef HAS_DOT4
#define HAS_DOT4 0
#endif

/* Twin: crates/core/src/presence.rs (TileSum). */
typedef struct { ulong s1, s2; } tile_sum_t;
static int tile_start(int index, int size, int n) { return min(index * size, n - size); }

/* 256*(n*s2 - s1*s1) < (n*c)^2, n samples. */
static int is_missing(ulong s1, ulong s2, ulong n, ulong contrast)
{
    const ulong low = n * s2;
    const ulong spread = low - s1 * s1;
    const ulong spread_high = mul_hi(n, s2) - mul_hi(s1, s1) - (spread > low ? 1 : 0);
    const ulong limit = n * contrast;
    const ulong limit_high = mul_hi(limit, limit);
    /* Not spread >> 56: LLVM would make a funnel shift, which Oclgrind 21.10 does not know. */
    const ulong scaled_high = (spread_high << 8) + mul_hi(spread, 256UL);
    return scaled_high < limit_high || (scaled_high == limit_high && (spread << 8) < limit * limit);
}

/* Adds up to 8 columns from `p` of a tile: every row_step-th of `rows` rows. */
static void add_columns(__global const uchar *p, uint src_stride, int rows, int row_step, int count,
                        int shift, ulong *s1, ulong *s2)
{
    const size_t step = (size_t)row_step * src_stride;
    const int has_words = SAMPLE_BYTES == 1 && count == 8 && (((uint)(ulong)p | (uint)step) & 3u) == 0;
    ulong sums = 0, squares = 0;
    if (has_words) {
        /* Rows are independent: their loads overlap. */
#pragma unroll 8
        for (int y = 0; y < rows; y += row_step, p += step) {
            const uint low = ((__global const uint *)p)[0];
            const uint high = ((__global const uint *)p)[1];
            uint sum = 0, square = 0;
#if HAS_DOT4
            sum = dot4(low, 0x01010101u, dot4(high, 0x01010101u, 0));
            square = dot4(low, low, dot4(high, high, 0));
#else
            for (int i = 0; i < 4; i++) {
                const uint u = (low >> (8 * i)) & 0xffu;
                const uint v = (high >> (8 * i)) & 0xffu;
                sum += u + v;
                square += u * u + v * v;
            }
#endif
            sums += sum;
            squares += square;
        }
    } else {
        for (int y = 0; y < rows; y += row_step, p += step) {
            for (int i = 0; i < count; i++) {
                const ulong v = load_sample(p + i * SAMPLE_BYTES) >> shift;
                sums += v;
                squares += v * v;
            }
        }
    }
    *s1 += sums;
    *s2 += squares;
}

/* Sums up the tiles of work-group `group` of the search; `partial` holds a sum per work-item. A tile's
 * parts are 8 columns each, times row_step sets of rows; a group has the parts of some tiles. */
static void sum_tiles(__global const uchar *src, ulong src_offset, uint src_stride, int width, int height,
                      int shift, int4 tiles, uint contrast, __global tile_sum_t *sums,
                      __global uint *missing, int row_step, int group, __local tile_sum_t *partial)
{
    const int item = get_local_id(0);
    const int items = get_local_size(0);
    const int strips = (tiles.x + 7) / 8;
    const int parts = strips * row_step;
    const int tiles_here = max(items / parts, 1);
    const int groups_per_row = (tiles.z + tiles_here - 1) / tiles_here;
    const int share = min(parts, items);
    const int in_group = item / share;
    const int part = item - in_group * share;
    const int j = group / groups_per_row;
    const int i = (group - j * groups_per_row) * tiles_here + in_group;
    const int is_used = in_group < tiles_here && i < tiles.z && j < tiles.w;
    ulong s1 = 0, s2 = 0;
    if (is_used) {
        const int left = tile_start(i, tiles.x, width);
        const int top = tile_start(j, tiles.y, height);
        for (int n = part; n < parts; n += share) {
            const int row = n / strips;
            const int column = 8 * (n - row * strips);
            add_columns(src + src_offset + (size_t)(top + row) * src_stride +
                            (size_t)(left + column) * SAMPLE_BYTES,
                        src_stride, tiles.y - row, row_step, min(8, tiles.x - column), shift, &s1, &s2);
        }
    }
    partial[item].s1 = s1;
    partial[item].s2 = s2;
    int step = 1;
    while (2 * step < share)
        step *= 2;
    for (; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (is_used && part < step && part + step < share) {
            partial[item].s1 += partial[item + step].s1;
            partial[item].s2 += partial[item + step].s2;
        }
    }
    if (is_used && part == 0) {
        /* Only this work-item wrote its own sum last. */
        const tile_sum_t sum = partial[item];
        sums[(size_t)j * tiles.z + i] = sum;
        if (is_missing(sum.s1, sum.s2, (ulong)tiles.x * tiles.y, contrast))
            atomic_add(missing, 1u);
    }
    /* pitch_threshold_wide calls this under a condition. Without a barrier before the branches join, PoCL 7.1
     * lets all work-items take the branch above that work-item 0 takes, and they write past `sums`. */
    barrier(CLK_LOCAL_MEM_FENCE);
}
