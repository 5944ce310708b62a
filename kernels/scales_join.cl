/* Appended to scales.cl. Any device. What follows where a level marks a block; most frames have no such block.
 *
 * scales_thin  A work-item per block of a level: sets MARK_COUNTS in the mark of a block that a comparison marks even
 *              if the differences of the pixels that are marked themselves are taken as 0. A small strong defect
 *              would otherwise mark wide blocks around it.
 * scales_join  A work-item per byte of the mask: marks the pixels of the blocks that count.
 *
 * | argument    | meaning                                                                     |
 * | first, rows | rows first .. first+rows-1 of the plane are those of the mask                |
 * | fresh       | the pixels that were not marked before are added                            |
 */
#define MARK_COUNTS 2

/* How often the sample that lies u samples behind the first one is among those whose mean is taken, along an axis;
 * the mean of a block of n samples is taken of 3n-2. */
static int window_weight(int u, int n) { return min(n - 1, u >> 1) - max(0, (u - n + 2) >> 1) + 1; }

/* The differences of pixel (x, y) to its neighbours at the taps of `c`, in 1/256 grey level. */
static int2 pixel_sides(PLANE_ARGS, int x, int y, comparison_t c, int missing, int flags)
{
    taps_t t;
    find_taps(c, missing, &t);
    const int dx = c.axis ? 0 : 1;
    const int dy = c.axis ? 1 : 0;
    const int s = (int)PLANE_SAMPLE(x, y);
    const int left = (256 - t.left_fraction) * (int)PLANE_SAMPLE(x + t.left_near * dx, y + t.left_near * dy) +
                     t.left_fraction * (int)PLANE_SAMPLE(x + t.left_far * dx, y + t.left_far * dy);
    const int right = (256 - t.right_fraction) * (int)PLANE_SAMPLE(x + t.right_near * dx, y + t.right_near * dy) +
                      t.right_fraction * (int)PLANE_SAMPLE(x + t.right_far * dx, y + t.right_far * dy);
    int centre = 256 * s;
    if (flags & MATCHED)
        centre += c.blur * ((int)PLANE_SAMPLE(x - dx, y - dy) - 2 * s + (int)PLANE_SAMPLE(x + dx, y + dy));
    return (int2)(centre - left, centre - right);
}

__kernel void scales_thin(PLANE_ARGS, int width, int height, int first, int rows, __global const uchar *mask,
                          ulong mask_offset, uint mask_stride, __constant const comparison_t *comparisons,
                          int comparison_count, int theta, int flags, __global const level_t *levels,
                          __global const scale_level_t *table, int k, __global const scale_comparison_t *judged,
                          __global uchar *marks)
{
    const scale_level_t level = table[k];
    const int column = get_global_id(0);
    const int row = level.from + (int)get_global_id(1);
    if (column >= level.count || row >= level.past)
        return;
    __global uchar *mark = marks + level.marks_at + (size_t)row * level.pitch + column;
    if (!*mark)
        return;
    const int n = 1 << k;
    const int left = column * n;
    const int top = row * n - level.remainder;
    for (int i = level.first; i < level.end; i++) {
        const scale_comparison_t c = judged[i];
        if (row < c.y0 || row >= c.y1 || column < c.x0 || column >= c.x1)
            continue;
        sum2_t sides = block_sides(levels + c.base + (long)row * c.step + column, c);
        sum_t difference;
        if (!is_block_marked_by(sides, (sum_t)level.theta, flags, &difference))
            continue;
        const comparison_t pixels = comparisons[c.comparison];
        long of_left = 0, of_right = 0;
        for (int v = 0; v < 3 * n - 2; v++) {
            const int y = top - (n - 1) + v;
            if (y < 0 || y >= height)
                continue;
            for (int u = 0; u < 3 * n - 2; u++) {
                const int x = left - (n - 1) + u;
                if (x < 0 || x >= width)
                    continue;
                const int is_marked =
                    y >= first && y < first + rows
                        ? mask[mask_offset + (size_t)(y - first) * mask_stride + (x >> 3)] & (0x80 >> (x & 7))
                        : judge(PLANE, x, y, width, height, comparisons, comparison_count, theta, flags);
                if (!is_marked)
                    continue;
                const int weight = window_weight(u, n) * window_weight(v, n);
                const int2 of_pixel = pixel_sides(PLANE, x, y, pixels, c.missing, flags);
                of_left += (long)weight * of_pixel.x;
                of_right += (long)weight * of_pixel.y;
            }
        }
        /* Level 3 has 16 times the samples of level 2 in a mean of the same unit. */
        const int shift = max(4 * (k - 2), 0);
        sides.left -= (sum_t)(of_left >> shift);
        sides.right -= (sum_t)(of_right >> shift);
        if (is_block_marked_by(sides, (sum_t)level.theta, flags, &difference)) {
            *mark |= MARK_COUNTS;
            return;
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
            if (8 * column + i < width && (of_row[(8 * column + i) >> k] & MARK_COUNTS))
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
