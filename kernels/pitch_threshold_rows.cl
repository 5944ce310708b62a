/* Appended to pitch_threshold_runs.cl and one of pitch_threshold_compare_*.cl. Judges a block of pixels with any list of comparisons.
 *
 * All pixels of a block are compared without branches; afterwards the bits of pixels that lack a neighbour are
 * cleared. Pixels are judged one by one only where they lack a neighbour, where a load would reach past the
 * memory object (the frame's first and last pixels), or where words would hold halves of 16-bit samples.
 */
/* Applies one comparison to the item's rows from byte `at`. `minimum` and `matched` are constants. */
static block_t compare_rows(__global const uchar *src, uint at, int rows, int stride, comparison_t c,
                          const comparer_t k, int minimum, int matched)
{
    block_t bits = 0;
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

/* The marked pixels of `wanted`, a block at (x, top). `minimum` and `matched` are constants. */
static block_t judge_block(PLANE_ARGS, block_t wanted, int rows, int x, int top, int is_edge, int width, int height,
                           __constant const comparison_t *comparisons, int comparison_count, int theta, int flags,
                           uint src_len, int minimum, int matched)
{
    const int stride = (int)src_stride;
    /* Bytes of the memory object before the block's first pixel, and from its last row's pixel. */
    const int start = (int)src_offset + top * stride + x * SAMPLE_BYTES;
    const int rest = (int)src_len - start - (rows - 1) * stride;
    const int whole_samples = ((start | stride) & (SAMPLE_BYTES - 1)) == 0;
    block_t bits = 0;
    for (int i = 0; i < comparison_count; i++) {
        const comparison_t c = comparisons[i];
        const int margin = comparison_margin(c);
        const int n = c.axis ? height : width;
        const block_t judged = judged_bits(wanted, c, rows, x, top, width, height);
        if ((flags & INWARD) && (c.axis ? top < margin || top + rows > height - margin : is_edge)) {
            const block_t lacks = inward_bits(wanted, c, inward_left(c, n), rows, x, top) |
                                  inward_bits(wanted, c, inward_right(c, n), rows, x, top);
            if (lacks)
                bits |= judge_singly(PLANE, lacks, rows, x, top, width, height, c, theta, flags);
        }
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
            bits |= judge_singly(PLANE, judged, rows, x, top, width, height, c, theta, flags);
        }
    }
    return bits;
}
