/* Appended to reference_warp.cl. Reads a part of a frame where the pixels of its cut lie, and marks them there
 * (docs/semantics.md, "Parts in a frame"), on any device, from buffers.
 *
 * reference_part        A work-item writes a pixel of the cut.
 * reference_part_place  A work-item moves the marks of 8 pixels of the cut to where they lie in the frame. A pixel at P,
 *                       1/256 px, marks each pixel F of the frame with -reach <= P - 256 F < reach along x and y.
 *
 * | argument      | meaning                                                                                            |
 * | width, height | of the frame                                                                                       |
 * | along_x       | c mod 2^20, a, b, c >> 20 of the position along x, 2^-20 px: c + a x + b y                      |
 * | along_y       | the same along y                                                                                   |
 * | columns, rows | of the cut                                                                                         |
 * | channels      | samples of a pixel                                                                                 |
 * | light, offset | gain of the first pixel, 2^-16, its change per pixel along x and y, 2^-26, and the highest level; offset, 2^-16 |
 * | dst           | samples of the same type as those of src                                                           |
 * | mask          | the packed mask of the cut; its first row begins at the first byte                                 |
 * | placed        | see reference_marks.cl                                                                             |
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
                             int channels, int4 light, long offset, __global uchar *dst, ulong dst_offset, uint dst_stride)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= columns || y >= rows)
        return;
    const int px = part_position(x, y, along_x);
    const int py = part_position(x, y, along_y);
    const int x0 = clamp(px >> 8, 0, width - 1) * channels;
    const int x1 = clamp((px >> 8) + 1, 0, width - 1) * channels;
    const int y0 = clamp(py >> 8, 0, height - 1);
    const int y1 = clamp((py >> 8) + 1, 0, height - 1);
    const uint fx = (uint)px & 255u;
    const uint fy = (uint)py & 255u;
    const long gain = light.x + (((long)light.y * x + (long)light.z * y) >> 10);
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride + (size_t)x * (uint)channels * SAMPLE_BYTES;
    for (int i = 0; i < channels; i++) {
        const uint upper = (UNIT - fx) * PLANE_SAMPLE(x0 + i, y0) + fx * PLANE_SAMPLE(x1 + i, y0);
        const uint lower = (UNIT - fx) * PLANE_SAMPLE(x0 + i, y1) + fx * PLANE_SAMPLE(x1 + i, y1);
        const uint sample = ((UNIT - fy) * upper + fy * lower + 32768u) >> 16;
        const long level = (sample * gain + offset + 32768) >> 16;
        store_sample(out + (size_t)i * SAMPLE_BYTES, (uint)clamp(level, 0L, (long)light.w));
    }
}

__kernel void reference_part_place(__global const uchar *mask, int width, int height, int4 along_x, int4 along_y,
                                   int columns, int rows, int4 reach, __global uint *placed)
{
    const int column = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    const int stride = (columns + 7) / 8;
    if (column >= stride || y >= rows)
        return;
    const uint bits = mask[(size_t)y * (uint)stride + (uint)column];
    const uint frame_stride = ((uint)width + 7u) / 8u;
    for (int i = 0; bits && i < 8; i++) {
        if (!(bits & (0x80u >> i)))
            continue;
        const int px = part_position(8 * column + i, y, along_x);
        const int py = part_position(8 * column + i, y, along_y);
        const int x0 = max(((px - reach.x) >> 8) + 1, 0);
        const int x1 = min((px + reach.x) >> 8, width - 1);
        const int y0 = max(((py - reach.y) >> 8) + 1, 0);
        const int y1 = min((py + reach.y) >> 8, height - 1);
        for (int fy = y0; fy <= y1; fy++) {
            for (int fx = x0; fx <= x1; fx++) {
                const uint byte = (uint)fy * frame_stride + (uint)fx / 8u;
                atomic_or(&placed[byte / 4u], (0x80u >> (fx & 7)) << (8u * (byte & 3u)));
            }
        }
    }
}
