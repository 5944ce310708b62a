/* Appended to mask_ignore.cl. Kernels that read a packed mask or its runs. */
__kernel void mask_expand(__global const uchar *packed, uint packed_stride, __global uchar *dst,
                          ulong dst_offset, uint dst_stride, int width, int height)
{
    const int column = get_global_id(0);
    const int y = get_global_id(1);
    if (column >= (int)packed_stride || y >= height)
        return;
    const uint bits = packed[(size_t)y * packed_stride + column];
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;
    for (int i = 0; i < 8 && 8 * column + i < width; i++)
        out[8 * column + i] = (bits & (0x80u >> i)) ? 255 : 0;
}

/* Twins: core/components.rs (Run), operators/pitch_threshold/run_differences.rs (RunDifference). */
typedef struct { uint x0, x1, y, defect; } run_t;
typedef struct { long sum; int peak; uint signs; } run_difference_t;

/* Difference of pixel (x, y) in the tiles without the pattern, in 1/512 grey level: the one of largest
 * magnitude, the first of equals. Returns 0 if the pattern is present. */
static int tile_difference(int x, int y, int width, int4 tiles, int4 tile_rows, __global const int *table,
                           int *difference)
{
    int found = 0;
    *difference = 0;
    const int at = y - tile_rows.x;
    for (int last_row = 0; last_row < tile_rows.z; last_row++) {
        const int j = last_row ? tiles.w - 1 : clamp(at / tiles.y, 0, tiles.w - 1);
        const int top = tile_start(j, tiles.y, tile_rows.y);
        for (int last = 0; last < 2; last++) {
            const int i = last ? tiles.z - 1 : x / tiles.x;
            const int left = tile_start(i, tiles.x, width);
            if (at < top || at >= top + tiles.y || x < left || x >= left + tiles.x)
                continue;
            const int d = table[(size_t)j * tiles.z + i];
            if (d != TILE_PRESENT && (!found || abs(2 * d) > abs(*difference))) {
                *difference = 2 * d;
                found = 1;
            }
        }
    }
    return found;
}

/* A work-item measures every get_global_size(0)-th run; row 0 of the runs is row `first` of the plane. `use_table`: whether there are tiles without the
 * pattern. */
__kernel void run_differences(PLANE_ARGS, int width, int height, int first,
                              __constant const comparison_t *comparisons, int comparison_count,
                              int theta, int flags, int4 tiles, int4 tile_rows,
                              __global const int *table, int use_table, __global const run_t *runs, uint run_count,
                              __global run_difference_t *out)
{
    for (uint n = get_global_id(0); n < run_count; n += get_global_size(0)) {
        const run_t run = runs[n];
        const int y = first + (int)run.y;
        run_difference_t result = {0, 0, 0};
        for (uint x = run.x0; x < run.x1; x++) {
            /* The largest difference of the comparisons that mark the pixel, then of its tiles; the first
             * of equals. */
            int largest = 0;
            int found = 0;
            int difference;
            for (int i = 0; i < comparison_count; i++) {
                if (compare_pixel(PLANE, (int)x, y, width, height, comparisons[i], theta,
                                  flags, &difference) &&
                    (!found || abs(difference) > abs(largest))) {
                    largest = difference;
                    found = 1;
                }
            }
            uint sign = largest > 0 ? 1 : largest < 0 ? 2 : 4;
            if (use_table && tile_difference((int)x, y, width, tiles, tile_rows, table, &difference)) {
                result.signs |= 8;
                if (!found || abs(difference) > abs(largest)) {
                    largest = difference;
                    /* A tile that is not brighter than the mean counts as darker. */
                    sign = largest > 0 ? 1 : 2;
                }
            }
            result.sum += largest;
            result.signs |= sign;
            if (abs(largest) > abs(result.peak))
                result.peak = largest;
        }
        out[n] = result;
    }
}
