/* Appended to presence_tiles.cl and to pitch_threshold_runs.cl or pitch_threshold_fixed.cl, whose judge_block it calls.
 * GPU, buffer: one work-item per WIDE_PIXELS pixels of item_rows rows. Each byte of the mask has one writer.
 *
 * pitch_threshold_wide   With pitch_threshold_runs.cl.
 * pitch_threshold_fixed  With pitch_threshold_fixed.cl; it takes no `comparison_count`.
 *
 * Arguments: those of pitch_threshold_bytes, and
 *
 * | src_len   | bytes of the memory object, less than 2^31                                        |
 * | item_rows | judged rows per work-item                                                         |
 * | split     | items of a row (an item is WIDE_PIXELS pixels): number of items at the left edge, of  |
 * |           | interior items, of items at both edges; rows of the launch with edge items            |
 * | tile_rows | rows of the launch with groups that sum up tiles                                     |
 * | blocks    | number of times item_rows that cover the judged rows                                 |
 * | tile_groups | work-groups that sum up tiles, 0 without a search; the last arguments are those of  |
 * |           | sum_tiles, its counters are defects[2] and defects[3]                                 |
 * | tile_top, tile_height | the rows of the plane that the tiles cover                                       |
 *
 * Launch, in rows of work-groups: first the groups that sum up tiles, then the edge items of all rows of the
 * frame, one after the other, then a row with the interior items of item_rows rows. Edge items also compare
 * the pixels that lack a neighbour along x. They take longest, so they start first; for the same reason the
 * frame's first and last rows come before those in between.
 */
/* Writes a block's bits: a row's first pixel is the highest bit of its first byte. `column` is the first byte. */
static void store_block(__global uchar *out, uint column, uint mask_stride, int rows, block_t bits)
{
    out += column;
#if WIDE_PIXELS == 16
    const int is_whole = (((uint)(ulong)out | mask_stride) & 1u) == 0 && column + 1 < mask_stride;
#endif
#pragma unroll
    for (int row = 0; row < WIDE_ROWS; row++, out += mask_stride) {
        if (row >= rows)
            break;
        const uint in_row = (uint)(bits >> ROW_BITS(row)) & WIDE_ALL;
#if WIDE_PIXELS == 16
        if (is_whole) {
            *(__global ushort *)out = (ushort)((in_row >> 8) | (in_row << 8));
        } else {
            out[0] = (uchar)(in_row >> 8);
            if (column + 1 < mask_stride)
                out[1] = (uchar)in_row;
        }
#else
        out[0] = (uchar)in_row;
#endif
    }
}

#define WIDE_ARGS                                                                                 \
    PLANE_ARGS, int width, int height, int first_row, int judged_rows, __global uchar *mask,      \
        ulong mask_offset, uint mask_stride, COMPARISONS_ARGS, __global const int4 *rois,         \
        int roi_count, int theta, int flags, __global uint *defects, uint slot, uint src_len,     \
        int item_rows, int4 split, int tile_rows, int blocks, int tile_groups, int4 tiles,        \
        uint contrast, int shift, __global tile_sum_t *sums, int row_step, int tile_top, int tile_height

static void judge_wide(WIDE_ARGS, __local uint *marked, __local tile_sum_t *partial)
{
    /* 32-bit arithmetic: an item has little to do. */
    const int group = (int)get_group_id(0), launch_row = (int)get_group_id(1);
    const int local_id = (int)get_local_id(0);
    const int across = (int)get_num_groups(0) * (int)get_local_size(0);
    const int in_row = group * (int)get_local_size(0) + local_id;
    const int launch_group = launch_row * (int)get_num_groups(0) + group;
    if (in_row == 0 && launch_row == 0) {
        defects[slot ^ 1u] = 0;
        defects[2 + (slot ^ 1u)] = 0;
    }
    /* The same for all work-items of a group. */
    if (launch_group < tile_groups) {
        sum_tiles(src, src_offset + (ulong)tile_top * src_stride, src_stride, width, tile_height, shift, tiles,
                  contrast, sums, &defects[2 + slot], row_step, launch_group, partial);
    }
    if (local_id == 0)
        *marked = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const int line = launch_row - tile_rows;
    const int is_edge = line >= 0 && line < split.w;
    int item, order, has_item;
    if (is_edge) {
        const int edge = line * across + in_row;
        order = edge / split.z;
        item = edge - order * split.z;
        item += item < split.x ? 0 : split.y;
        has_item = order < blocks;
    } else {
        order = line - split.w;
        item = split.x + in_row;
        has_item = order >= 0 && in_row < split.y;
    }
    /* From both ends to the middle. */
    const int block = order & 1 ? blocks - 1 - order / 2 : order / 2;
    const int x = WIDE_PIXELS * item;
    const int begin = first_row + item_rows * block;
    const int end = has_item ? min(begin + item_rows, first_row + judged_rows) : begin;
    uint found = 0;
    for (int top = begin; top < end; top += WIDE_ROWS) {
        const int rows = min(WIDE_ROWS, end - top);
        block_t wanted = 0;
        for (int i = 0; i < roi_count; i++) {
            const int4 r = rois[i];
            if (rows == WIDE_ROWS && r.x <= x && x + WIDE_PIXELS <= r.z && r.y <= top && top + WIDE_ROWS <= r.w)
                wanted = BLOCK_ALL;
            else
                wanted |= in_rows(range_bits(r.x, r.z, x), rows) & rows_between(r.y - top, r.w - top);
        }
        const block_t bits = wanted ? judge_block(PLANE, wanted, rows, x, top, is_edge, width, height, COMPARISONS,
                                                  theta, flags, src_len)
                                    : 0;
        store_block(mask + mask_offset + (size_t)(top - first_row) * mask_stride, (uint)x / 8, mask_stride, rows, bits);
        found += (uint)popcount(bits);
    }
    if (found)
        atomic_add(marked, found);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (local_id == 0 && *marked)
        atomic_add(&defects[slot], *marked);
}

#define WIDE_KERNEL(name, known_flags)                                                            \
    __kernel void name(WIDE_ARGS)                                                                 \
    {                                                                                             \
        __local uint marked;                                                                      \
        __local tile_sum_t partial[WIDE_GROUP];                                                   \
        judge_wide(PLANE, width, height, first_row, judged_rows, mask, mask_offset, mask_stride,  \
                   COMPARISONS, rois, roi_count, theta, known_flags, defects, slot, src_len,      \
                   item_rows, split, tile_rows, blocks, tile_groups, tiles, contrast, shift,      \
                   sums, row_step, tile_top, tile_height, &marked, partial);                      \
    }
#ifdef FIXED_FLAGS
WIDE_KERNEL(pitch_threshold_fixed, flags)
#else
/* The simple modes need half the registers. */
WIDE_KERNEL(pitch_threshold_wide, (flags & (BRIGHT | DARK)) | MODE)
#endif
