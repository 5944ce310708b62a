/* Copies a plane from a buffer into an image of one 8-bit channel.
 *
 * clEnqueueCopyBufferToImage takes only tightly packed rows; this kernel takes any stride.
 *
 * plane_to_image   one work-item per byte; any global size that covers width x height
 */
__kernel void plane_to_image(__global const uchar *src, ulong src_offset, uint src_stride,
                             __write_only image2d_t dst, int width, int height)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const uint v = src[src_offset + (size_t)y * src_stride + x];
    write_imageui(dst, (int2)(x, y), (uint4)(v, 0, 0, 1));
}
