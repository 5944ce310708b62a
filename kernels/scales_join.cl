/* Appended to scales.cl. Any device: a work-item per byte of a packed mask. What follows where a level marks a block;
 * most frames have no such block.
 *
 * scales_repair  Copies the plane. A pixel that is marked in `all` gets the value that its neighbours say: its own
 *                less its difference, rounded half away from zero to a grey level from 0 to `highest`.
 * scales_join    Marks the pixels of the marked blocks of all levels in the mask of rows first .. first+rows-1.
 *
 * | argument    | meaning                                                                     |
 * | all         | mask of all rows of the plane                                                |
 * | repaired    | adjacent samples without gaps between rows                                   |
 * | fresh       | the pixels that were not marked before are added                            |
 */
__kernel void scales_repair(PLANE_ARGS, int width, int height, __global const uchar *all, uint mask_stride,
                            __constant const comparison_t *comparisons, int comparison_count, int theta, int flags,
                            int highest, __global uchar *repaired)
{
    const int column = get_global_id(0);
    const int y = get_global_id(1);
    if (column >= (int)mask_stride || y >= height)
        return;
    const uint marked = all[(size_t)y * mask_stride + column];
    for (int x = 8 * column; x < min(8 * column + 8, width); x++) {
        int value = (int)PLANE_SAMPLE(x, y);
        if (marked & (0x80u >> (x & 7))) {
            int largest = 0, difference;
            for (int i = 0; i < comparison_count; i++)
                if (compare_pixel(PLANE, x, y, width, height, comparisons[i], theta, flags, &difference) &&
                    abs(difference) > abs(largest))
                    largest = difference;
            const int size = ((int)abs(largest) + 256) / 512;
            value = clamp(value - (largest < 0 ? -size : size), 0, highest);
        }
        store_sample(repaired + ((size_t)y * width + x) * SAMPLE_BYTES, (uint)value);
    }
}

__kernel void scales_join(__global const uchar *marks, __global const scale_level_t *table, int level_count, int width,
                          int first, int rows, __global uchar *mask, ulong mask_offset, uint mask_stride,
                          __global uint *fresh)
{
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    if (column >= (int)mask_stride || row >= rows)
        return;
    uint bits = 0;
    for (int k = 1; k <= level_count; k++) {
        __global const scale_level_t *level = &table[k];
        __global const uchar *of_row =
            marks + level->marks_at + (size_t)((first + row + level->remainder) >> k) * level->pitch;
        for (int i = 0; i < 8; i++)
            if (8 * column + i < width && of_row[(8 * column + i) >> k])
                bits |= 0x80u >> i;
    }
    if (bits == 0)
        return;
    __global uchar *out = mask + mask_offset + (size_t)row * mask_stride + column;
    const uint before = *out;
    *out = (uchar)(before | bits);
    if (bits & ~before)
        atomic_add(fresh, popcount(bits & ~before));
}
