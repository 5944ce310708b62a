/* Appended to pitch_threshold_lattice_lanes.cl. Writes the mask of a comparison along vectors.
 *
 * pitch_threshold_lattice_items  Any device, buffer or image: a work-item judges a block of BLOCK_ROWS rows of
 *                                LATTICE_PIXELS adjacent pixels. A row's first pixel is the highest of its bits.
 *
 * Arguments: those of pitch_threshold.cl.
 *
 * Of a buffer, the pixels of a row whose samples lie in the row side by side are compared together: along x, then along
 * y. Rows that are interpolated along x are kept for the next row of the block. Other pixels are compared one by one.
 */
#ifndef BLOCK_ROWS
#define BLOCK_ROWS 4
#endif
#define ALL_PIXELS ((1u << LATTICE_PIXELS) - 1u)

/* Compares the pixels of a block at (x, top) in one of the ways of judged_pixels(). `wanted` and `bits`: of each row. */
static void compare_block(PLANE_ARGS, int x, int top, int rows, int width, int height, comparison_t c, int missing,
                          int theta, int flags, const uint *wanted, uint *bits)
{
    const judged_t judged = judged_pixels(c, missing, width, height);
    const uint columns = column_bits(judged.columns, x);
    if (!columns || judged.rows.x >= top + rows || judged.rows.y <= top)
        return;
    const uint hole = column_bits(judged.hole_columns, x);
#if !USE_IMAGE
    const taps_t left = missing == 1 ? taps_of(c.double_dx, c.double_dy) : taps_of(-c.dx, -c.dy);
    const taps_t right = missing == 2 ? taps_of(-c.double_dx, -c.double_dy) : taps_of(c.dx, c.dy);
    const int2 reach = columns_of(left, right);
    const int is_together = x + reach.x >= 0 && x + reach.y + LATTICE_PIXELS <= width;
    const int blur_x = blur_of(c.dx, flags);
    const int blur_y = blur_of(c.dy, flags);
    const int is_first = x == 0;
    const int is_last = x + LATTICE_PIXELS == width;
    const sum_theta_t bright = sum_theta(theta, flags & BRIGHT);
    const sum_theta_t dark = sum_theta(theta, flags & DARK);
    const long stride = src_stride;
    row_t left_bottom = 0, right_bottom = 0, middle = 0, below = 0;
    /* The rows of the pixels above are those that their lower neighbours need. */
    int is_next = 0;
#endif
    for (int row = 0; row < rows; row++) {
        const int y = top + row;
        uint here = is_between(y, judged.rows) ? columns & wanted[row] : 0;
        if (is_between(y, judged.hole_rows))
            here &= ~hole;
#if !USE_IMAGE
        if (here && is_together) {
            __global const uchar *p = src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES;
            const row_t left_top = is_next && left.is_two ? left_bottom : tap_row(p + left.top * stride, left);
            const row_t right_top = is_next && right.is_two ? right_bottom : tap_row(p + right.top * stride, right);
            left_bottom = left.is_two ? tap_row(p + (left.top + 1) * stride, left) : left_top;
            right_bottom = right.is_two ? tap_row(p + (right.top + 1) * stride, right) : right_top;
            sum_t centre;
            if (blur_y) {
                const row_t above = is_next ? middle
                                    : y > 0 ? centre_row(p - stride, blur_x, is_first, is_last)
                                            : centre_row(p, blur_x, is_first, is_last);
                middle = is_next ? below : centre_row(p, blur_x, is_first, is_last);
                below = y + 1 < height ? centre_row(p + stride, blur_x, is_first, is_last) : middle;
                centre = matched_sum(above, middle, below, blur_y);
            } else {
                centre = WIDEN(centre_row(p, blur_x, is_first, is_last)) << (sum_t)8;
            }
            const sum_t left_sum = between_rows(left_top, left_bottom, left.along_y);
            const sum_t right_sum = between_rows(right_top, right_bottom, right.along_y);
            bits[row] |= here & marked_bits(centre, left_sum, right_sum, bright, dark, flags);
            is_next = 1;
            continue;
        }
        is_next = 0;
#endif
        for (int i = 0; here; i++, here = here << 1 & ALL_PIXELS) {
            difference_t difference;
            if ((here & 1u << (LATTICE_PIXELS - 1)) &&
                compare_pixel(PLANE, x + i, y, width, height, c, theta, flags, &difference))
                bits[row] |= 1u << (LATTICE_PIXELS - 1 - i);
        }
    }
}

__kernel void pitch_threshold_lattice_items(PLANE_ARGS, int width, int height, int first, int rows,
                                            __global uchar *mask, ulong mask_offset, uint mask_stride,
                                            __constant const comparison_t *comparisons, int comparison_count,
                                            __global const int4 *rois, int roi_count, int theta, int flags,
                                            __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        defects[slot ^ 1u] = 0;
    const int column = LATTICE_PIXELS / 8 * (int)get_global_id(0);
    const int from = BLOCK_ROWS * (int)get_global_id(1);
    if (column >= (int)mask_stride || from >= rows)
        return;
    const int x = 8 * column;
    const int count = min(BLOCK_ROWS, rows - from);
    uint wanted[BLOCK_ROWS], bits[BLOCK_ROWS];
    for (int row = 0; row < count; row++) {
        /* Regions lie inside the frame: bits past the width stay 0. */
        wanted[row] = roi_bits(rois, roi_count, x, first + from + row, LATTICE_PIXELS);
        bits[row] = 0;
    }
    const int ways = flags & INWARD ? 3 : 1;
    for (int i = 0; i < ways * comparison_count; i++)
        compare_block(PLANE, x, first + from, count, width, height, comparisons[i / ways], i % ways, theta, flags, wanted,
                      bits);
    uint marked = 0;
    for (int row = 0; row < count; row++) {
        __global uchar *out = mask + mask_offset + (size_t)(from + row) * mask_stride + column;
        out[0] = (uchar)(bits[row] >> 8);
        if (column + 1 < (int)mask_stride)
            out[1] = (uchar)bits[row];
        marked += popcount(bits[row]);
    }
    if (marked)
        atomic_add(&defects[slot], marked);
}
