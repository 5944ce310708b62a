/* Appended to pitch_threshold.cl or pitch_threshold_lattice.cl. Any device, buffers: a work-item per pixel of the rows first .. first+rows-1.
 *
 * pitch_threshold_difference  Draws the differences before the threshold.
 * pitch_threshold_reached     Counts the pixels by the highest threshold that marks them.
 *
 * Both take the arguments of pitch_threshold_bytes, and:
 *
 * | argument    | meaning                                                                          |
 * | ignored     | a bit per pixel of these rows, as in a mask: 1 = not judged; read if use_ignored |
 */
/* Whether a pixel lies in a region and is not ignored. */
static int is_wanted(int x, int y, int row, int width, __global const int4 *rois, int roi_count,
                     __global const uchar *ignored, int use_ignored)
{
    if (use_ignored && (ignored[(size_t)row * ((width + 7) / 8) + x / 8] & (0x80u >> (x & 7))))
        return 0;
    return roi_bits(rois, roi_count, x, y, 1) != 0;
}

/* The difference of largest magnitude of a pixel's comparisons, the first of equals, in 1/DIFFERENCE_UNIT grey level: only bright
 * ones or dark ones if `flags` say so. Returns the number of comparisons that judge the pixel. */
static int largest_difference(PLANE_ARGS, int x, int y, int width, int height, __constant const comparison_t *comparisons,
                              int comparison_count, int flags, difference_t *largest)
{
    int judged = 0;
    *largest = 0;
    for (int i = 0; i < comparison_count; i++) {
        const comparison_t c = comparisons[i];
        if (!has_neighbours(c, x, y, width, height, flags))
            continue;
        judged++;
        difference_t difference;
        /* A threshold of 0 marks every pixel whose sides agree in sign. */
        if (compare_pixel(PLANE, x, y, width, height, c, 0, flags, &difference) && abs(difference) > abs(*largest))
            *largest = difference;
    }
    return judged;
}

/* A byte is 128 plus gain/256 times the difference in grey levels of 8 bits, which are `to_byte` bits less than a
 * sample's; 128 where nothing is judged. */
__kernel void pitch_threshold_difference(PLANE_ARGS, int width, int height, int first, int rows,
                               __constant const comparison_t *comparisons, int comparison_count,
                               __global const int4 *rois, int roi_count, int flags, __global const uchar *ignored,
                               int use_ignored, int to_byte, int gain, __global uchar *dst, ulong dst_offset,
                               uint dst_stride)
{
    const int x = get_global_id(0);
    const int row = get_global_id(1);
    const int y = first + row;
    if (x >= width || row >= rows)
        return;
    difference_t difference = 0;
    if (is_wanted(x, y, row, width, rois, roi_count, ignored, use_ignored))
        largest_difference(PLANE, x, y, width, height, comparisons, comparison_count, flags | BRIGHT | DARK, &difference);
    const long product = (long)difference * gain;
    const long unit = 256L * DIFFERENCE_UNIT << to_byte;
    const long size = ((long)abs(product) + unit / 2) / unit;
    dst[dst_offset + (size_t)row * dst_stride + x] = (uchar)clamp(128 + (product < 0 ? -size : size), 0L, 255L);
}

/* counts[k]: pixels that a threshold of k/4 grey levels marks, but no higher one; the last one also has those above.
 * Behind it the number of judged pixels. */
__kernel void pitch_threshold_reached(PLANE_ARGS, int width, int height, int first, int rows,
                            __constant const comparison_t *comparisons, int comparison_count,
                            __global const int4 *rois, int roi_count, int flags, __global const uchar *ignored,
                            int use_ignored, __global uint *counts, int last)
{
    const int x = get_global_id(0);
    const int row = get_global_id(1);
    const int y = first + row;
    if (x >= width || row >= rows || !is_wanted(x, y, row, width, rois, roi_count, ignored, use_ignored))
        return;
    difference_t difference;
    if (!largest_difference(PLANE, x, y, width, height, comparisons, comparison_count, flags, &difference))
        return;
    atomic_inc(&counts[last + 1]);
    atomic_inc(&counts[min((int)(abs(difference) / (DIFFERENCE_UNIT / 4)), last)]);
}
