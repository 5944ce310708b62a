/* Appended to presence_tiles.cl, pitch_runs.cl and one of pitch_compare_*.cl. GPU, buffer: one work-item per 16 bytes of a
 * row.
 *
 * All 16 bytes are compared without branches; afterwards the bits of pixels outside the regions and of
 * pixels without both neighbours are cleared. Pixels are judged one by one only where a load would
 * reach past the memory object (the frame's first and last pixels) or where words would hold halves of
 * 16-bit samples. Each byte of the mask has one writer.
 *
 * Arguments: those of pitch_threshold_bytes, and
 *
 * | src_len   | bytes of the memory object, less than 2^31                                        |
 * | item_rows | rows of the frame per work-item                                                   |
 * | split     | items of a row (an item is WIDE_PIXELS pixels): number of items at the left edge, of  |
 * |           | interior items, of items at both edges; rows of the launch with edge items            |
 * | tile_groups | work-groups that sum up tiles, 0 without a search; the last arguments are those of  |
 * |           | sum_tiles, its counters are defects[2] and defects[3]                                 |
 *
 * Launch, in rows of work-groups: first the groups that sum up tiles, then the edge items of all rows of the
 * frame, one after the other, then a row with the interior items of item_rows rows. Edge items also compare
 * the pixels that lack a neighbour along x. They take longest, so they start first; for the same reason the
 * frame's first and last rows come before those in between.
 */
/* Largest work-group. Twin: operators/pitch_threshold.rs. */
#define WIDE_GROUP 128
/* Rows that are judged together: their bits fit 64. */
#define WIDE_ROWS 4
#define ROW_BITS(row) (WIDE_PIXELS * (row))

/* Bits of the WIDE_PIXELS pixels at x that lie in from .. to-1. */
static uint range_bits(int from, int to, int x)
{
    if (from <= x && x + WIDE_PIXELS <= to)
        return WIDE_ALL;
    const int first = clamp(from - x, 0, WIDE_PIXELS);
    const int past = clamp(to - x, 0, WIDE_PIXELS);
    return first < past ? ((1u << (past - first)) - 1u) << (WIDE_PIXELS - past) : 0u;
}

/* Judges the pixels of `wanted` one by one. */
static uint judge_singly(PLANE_ARGS, uint wanted, int x, int y, int width, int height,
                         comparison_t c, int theta, int flags)
{
    uint bits = 0;
    int difference;
#pragma unroll 1
    for (int i = 0; i < WIDE_PIXELS; i++)
        if ((wanted & WIDE_BIT(i)) &&
            compare_pixel(PLANE, x + i, y, width, height, c, theta, flags, &difference))
            bits |= WIDE_BIT(i);
    return bits;
}

static void store_bits(__global uchar *row, uint column, uint mask_stride, uint bits)
{
#if SAMPLE_BYTES == 1
    /* The first pixel is the highest bit of the first byte. */
    __global uchar *out = row + column;
    if (((uint)(ulong)out & 1u) == 0 && column + 1 < mask_stride) {
        *(__global ushort *)out = (ushort)((bits >> 8) | (bits << 8));
    } else {
        out[0] = (uchar)(bits >> 8);
        if (column + 1 < mask_stride)
            out[1] = (uchar)bits;
    }
#else
    row[column] = (uchar)bits;
#endif
}

#define WIDE_ARGS                                                                                 \
    PLANE_ARGS, int width, int height, __global uchar *mask, ulong mask_offset, uint mask_stride, \
        __constant const comparison_t *comparisons, int comparison_count, __global const int4 *rois,      \
        int roi_count, int theta, int flags, __global uint *defects, uint slot, uint src_len,     \
        int item_rows, int4 split, int tile_groups, int4 tiles, uint contrast, int shift,         \
        __global tile_sum_t *sums, int row_step

/* The bits `columns`, repeated for each row of the item. */
static ulong in_rows(uint columns, int rows)
{
    ulong bits = 0;
    for (int row = 0; row < rows; row++)
        bits = (bits << WIDE_PIXELS) | columns;
    return bits;
}

/* All bits of rows first .. past-1 of the item. */
static ulong rows_between(int first, int past)
{
    const ulong below = past >= WIDE_ROWS ? ~0UL : (1UL << ROW_BITS(max(past, 0))) - 1UL;
    return first >= WIDE_ROWS ? 0UL : below & (~0UL << ROW_BITS(max(first, 0)));
}

/* Applies one comparison to the item's rows from byte `at`. `minimum` and `matched` are constants. */
static ulong compare_rows(__global const uchar *src, uint at, int rows, int stride, comparison_t c,
                          const comparer_t k, int minimum, int matched)
{
    ulong bits = 0;
    at += (uint)((rows - 1) * stride);
    if (c.axis) {
        for (int row = 0; row < rows; row++, at -= (uint)stride)
            bits = (bits << WIDE_PIXELS) | compare_y(src, at, stride, c, k, minimum, matched);
    } else {
        for (int row = 0; row < rows; row++, at -= (uint)stride)
            bits = (bits << WIDE_PIXELS) | compare_x(src, at, c, k, minimum, matched);
    }
    return bits;
}

/* Marks the pixels of `judged`, which lack a neighbour, one by one: they are few. */
static ulong judge_inward(PLANE_ARGS, ulong judged, int rows, int x, int top, int width, int height,
                          comparison_t c, int theta, int flags)
{
    ulong bits = 0;
    for (int row = 0; row < rows; row++) {
        const uint in_row = (uint)(judged >> ROW_BITS(row)) & WIDE_ALL;
        if (in_row)
            bits |= (ulong)judge_singly(PLANE, in_row, x, top + row, width, height, c, theta, flags)
                    << ROW_BITS(row);
    }
    return bits;
}

static void judge_wide(WIDE_ARGS, __local uint *marked, __local tile_sum_t *partial, int minimum,
                       int matched)
{
    const int launch_group = (int)(get_group_id(1) * get_num_groups(0) + get_group_id(0));
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        defects[2 + (slot ^ 1u)] = 0;
    /* The same for all work-items of a group. */
    if (launch_group < tile_groups) {
        sum_tiles(PLANE, width, height, shift, tiles, contrast, sums, &defects[2 + slot], row_step,
                  launch_group, partial);
    }
    if (get_local_id(0) == 0 && get_local_id(1) == 0)
        *marked = 0;
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        defects[slot ^ 1u] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const int tile_rows = (tile_groups + (int)get_num_groups(0) - 1) / (int)get_num_groups(0);
    const int line = (int)get_global_id(1) - tile_rows;
    const int is_edge = line >= 0 && line < split.w;
    const int blocks = (height + item_rows - 1) / item_rows;
    int item, order, has_item;
    if (is_edge) {
        const int edge = line * (int)get_global_size(0) + (int)get_global_id(0);
        order = edge / split.z;
        item = edge - order * split.z;
        item += item < split.x ? 0 : split.y;
        has_item = order < blocks;
    } else {
        order = line - split.w;
        item = split.x + (int)get_global_id(0);
        has_item = order >= 0 && (int)get_global_id(0) < split.y;
    }
    /* From both ends to the middle. */
    const int block = order & 1 ? blocks - 1 - order / 2 : order / 2;
    const int x = WIDE_PIXELS * item;
    const int stride = (int)src_stride;
    const int begin = item_rows * block;
    const int end = has_item ? min(begin + item_rows, height) : begin;
    uint found = 0;
    for (int top = begin; top < end; top += WIDE_ROWS) {
        const int rows = min(WIDE_ROWS, end - top);
        ulong wanted = 0;
        for (int i = 0; i < roi_count; i++) {
            const int4 r = rois[i];
            wanted |= in_rows(range_bits(r.x, r.z, x), rows) & rows_between(r.y - top, r.w - top);
        }
        /* Bytes of the memory object before the item's first pixel, and from its last row's pixel. */
        const int start = (int)src_offset + top * stride + x * SAMPLE_BYTES;
        const int rest = (int)src_len - start - (rows - 1) * stride;
        const int whole_samples = ((start | stride) & (SAMPLE_BYTES - 1)) == 0;
        ulong bits = 0;
        for (int i = 0; i < comparison_count; i++) {
            const comparison_t c = comparisons[i];
            const int margin = comparison_margin(c);
            if ((flags & INWARD) && (c.axis ? top < margin || top + rows > height - margin : is_edge)) {
                const int2 left = inward_left(c, c.axis ? height : width);
                const int2 right = inward_right(c, c.axis ? height : width);
                const ulong lacks =
                    wanted &
                    (c.axis ? rows_between(left.x - top, left.y - top) | rows_between(right.x - top, right.y - top)
                            : in_rows(range_bits(left.x, left.y, x) | range_bits(right.x, right.y, x), rows));
                if (lacks)
                    bits |= judge_inward(PLANE, lacks, rows, x, top, width, height, c, theta, flags);
            }
            const ulong judged = wanted & (c.axis ? rows_between(margin - top, height - margin - top)
                                                  : in_rows(range_bits(margin, width - margin, x), rows));
            if (judged == 0)
                continue;
            /* Bytes from a pixel to the farthest run that it needs. */
            const int reach = c.axis ? margin * stride : (c.whole + 1) * SAMPLE_BYTES;
            if (whole_samples && start >= reach + RUN_BEFORE && rest >= reach + RUN_BYTES) {
                const comparer_t k = comparer_of(c, theta, flags);
                bits |= judged & (matched && is_matched(c)
                                      ? compare_rows(src, (uint)start, rows, stride, c, k, minimum, 1)
                                      : compare_rows(src, (uint)start, rows, stride, c, k, minimum, 0));
            } else {
                for (int row = 0; row < rows; row++) {
                    const uint in_row = (uint)(judged >> ROW_BITS(row)) & WIDE_ALL;
                    bits |= (ulong)judge_singly(PLANE, in_row, x, top + row, width, height, c, theta, flags)
                            << ROW_BITS(row);
                }
            }
        }
        __global uchar *out = mask + mask_offset + (size_t)top * mask_stride;
        for (int row = 0; row < rows; row++, out += mask_stride)
            store_bits(out, (uint)x / 8, mask_stride, (uint)(bits >> ROW_BITS(row)) & WIDE_ALL);
        found += (uint)popcount(bits);
    }
    if (found)
        atomic_add(marked, found);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0 && get_local_id(1) == 0 && *marked)
        atomic_add(&defects[slot], *marked);
}

/* One kernel per mode: the simple modes need half the registers. */
#define WIDE_KERNEL(name, minimum, matched)                                                       \
    __kernel void name(WIDE_ARGS)                                                                 \
    {                                                                                             \
        __local uint marked;                                                                      \
        __local tile_sum_t partial[WIDE_GROUP];                                                   \
        judge_wide(PLANE, width, height, mask, mask_offset, mask_stride, comparisons,             \
                   comparison_count, rois, roi_count, theta, flags, defects, slot, src_len,       \
                   item_rows, split, tile_groups, tiles, contrast, shift, sums,     \
                   row_step, &marked, partial, minimum, matched);                                         \
    }
WIDE_KERNEL(pitch_wide_average, 0, 0)
WIDE_KERNEL(pitch_wide_average_matched, 0, 1)
WIDE_KERNEL(pitch_wide_minimum, 1, 0)
WIDE_KERNEL(pitch_wide_minimum_matched, 1, 1)
