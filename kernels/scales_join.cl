/* Appended to scales.cl. Any device: a work-item per byte of the mask joins the marks of all levels.
 *
 * | argument    | meaning                                                                     |
 * | first, rows | rows first .. first+rows-1 of the plane are those of the mask                |
 * | fresh       | the pixels that were not marked before are added                            |
 */
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
