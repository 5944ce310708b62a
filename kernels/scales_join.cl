/* Appended to scales.cl and pitch_threshold_measure.cl. Any device: a work-item per byte of a packed mask. What follows where a level marks a block;
 * most frames have no such block.
 *
 * scales_repair  Copies the plane. A pixel that is marked in `all` gets the value that its neighbours say: its own
 *                less its difference, rounded half away from zero to a grey level from 0 to `highest`.
 * scales_join    Marks the pixels of the marked blocks of all levels in the mask of rows first .. first+rows-1.
 *
 * | argument    | meaning                                                                     |
 * | all         | mask of all rows of the plane                                                |
 * | repaired    | aligned to 4 bytes, as `repaired_stride` is                                 |
 * | fresh       | the pixels that were not marked before are added                            |
 */
__kernel void scales_repair(PLANE_ARGS, int width, int height, __global const uchar *all, ulong all_offset,
                            uint mask_stride, __constant const comparison_t *comparisons, int comparison_count, int theta, int flags,
                            int highest, __global uchar *repaired, uint repaired_stride)
{
    const int y = get_global_id(1);
    if (y >= height)
        return;
    /* On a CPU an item has a row: PoCL's code for many items with branches is slower. */
    for (int column = get_global_id(0); column < (int)mask_stride; column += (int)get_global_size(0)) {
        const int x = STEP * column;
        const int count = min(STEP, width - x);
        __global const uchar *from = src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES;
        __global uchar *to = repaired + (size_t)y * repaired_stride + (size_t)x * SAMPLE_BYTES;
        if (count == STEP && ((ulong)from & 3u) == 0)
            for (int i = 0; i < STEP / 4 * SAMPLE_BYTES; i++)
                ((__global uint *)to)[i] = ((__global const uint *)from)[i];
        else
            for (int i = 0; i < count * SAMPLE_BYTES; i++)
                to[i] = from[i];
        const uint marked = all[all_offset + (size_t)y * mask_stride + column] & (0xff00u >> count);
        if (!marked)
            continue;
        int8 difference, is_marked;
        measure_pixels(PLANE, x, y, marked, width, height, comparisons, comparison_count, theta, flags, &difference,
                       &is_marked);
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            if (!is_set(marked, k))
                continue;
            const int d = ((const int *)&difference)[k];
            const int size = ((int)abs(d) + 256) / 512;
            const int value = (int)PLANE_SAMPLE(x + k, y) - (d < 0 ? -size : size);
            store_sample(to + k * SAMPLE_BYTES, (uint)clamp(value, 0, highest));
        }
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
