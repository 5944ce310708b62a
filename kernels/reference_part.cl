/* Appended to reference_warp.cl. Reads a part of a frame where the pixels of its cut lie (docs/semantics.md, "Parts in a frame"), on
 * any device, from buffers.
 *
 * reference_part  A work-item writes a pixel of the cut.
 *
 * | argument      | meaning                                                                                            |
 * | width, height | of the frame                                                                                       |
 * | along_x       | c mod 2^20, a, b, c >> 20 of the position along x, 2^-20 px: c + a x + b y                      |
 * | along_y       | the same along y                                                                                   |
 * | columns, rows | of the cut                                                                                         |
 * | dst           | samples of the same type as those of src                                                           |
 *
 * Exactness: integers only. Linear terms are below 2, so products and sums need 64 bits; a position in 1/256 px fits 32, because
 * the host reads no frame of more than 16384 px a side. Twin: crates/core/src/place/motion.rs.
 */

/* Where a pixel of the cut lies along an axis, 1/256 px. */
static int part_position(int x, int y, int4 along)
{
    const long shift = (long)along.w * (1 << 20) + along.x;
    return (int)((shift + (long)along.y * x + (long)along.z * y + 2048) >> 12);
}

__kernel void reference_part(PLANE_ARGS, int width, int height, int4 along_x, int4 along_y, int columns, int rows,
                             __global uchar *dst, ulong dst_offset, uint dst_stride)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= columns || y >= rows)
        return;
    const int2 at = (int2)(part_position(x, y, along_x), part_position(x, y, along_y));
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride + (size_t)x * SAMPLE_BYTES;
    store_sample(out, warped_sample(PLANE, 0, 0, at, width, height));
}
