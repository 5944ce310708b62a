/* Appended to mask_tiles.cl. Measures the runs of a packed mask whose pixels were compared along vectors. */
/* The largest difference of the comparisons that mark a pixel, the first of equals, in 1/DIFFERENCE_UNIT grey level.
 * Returns whether any does. */
static int measure_pixel(PLANE_ARGS, int x, int y, int width, int height, __constant const comparison_t *comparisons,
                         int comparison_count, int theta, int flags, difference_t *largest)
{
    int is_marked = 0;
    *largest = 0;
    for (int i = 0; i < comparison_count; i++) {
        difference_t difference;
        if (compare_pixel(PLANE, x, y, width, height, comparisons[i], theta, flags, &difference)) {
            is_marked = 1;
            if (abs(difference) > abs(*largest))
                *largest = difference;
        }
    }
    return is_marked;
}

/* A work-item measures the marked pixels of a sequence of runs of columns, whose row 0 is row `first_row` of the plane
 * and row 0 of the packed mask. `use_table`: whether there are tiles without the pattern. */
__kernel void run_differences(PLANE_ARGS, int width, int height, int first_row,
                              __constant const comparison_t *comparisons, int comparison_count, int theta, int flags,
                              int4 tiles, int4 tile_rows, __global const int *table, int use_table,
                              __global const uchar *mask, ulong mask_offset, RUNS_ARGS)
{
    own_runs_t measured = own_runs(mask, mask_offset, width, RUNS);
    run_t run;
    const size_t mask_stride = (size_t)(width + 7) / 8;
    while (take_run(&measured, &run)) {
        const int y = first_row + (int)run.y;
        __global const uchar *row = mask + mask_offset + run.y * mask_stride;
        run_difference_t result = {0, 0, 0, 1};
        for (uint x = run.x0; x < run.x1; x++) {
            if (!(row[x / 8] & (0x80u >> (x & 7))))
                continue;
            difference_t own;
            const int is_marked = measure_pixel(PLANE, (int)x, y, width, height, comparisons, comparison_count, theta,
                                                flags, &own);
            long d = own;
            uint sign = d > 0 ? 1 : d < 0 ? 2 : 4;
            if (is_marked)
                result.signs |= LEVEL_BIT(0);
            int of_tile;
            if (use_table && tile_difference((int)x, y, width, tiles, tile_rows, table, &of_tile)) {
                result.signs |= 8;
                const long difference = (long)of_tile * (DIFFERENCE_UNIT / 512);
                if (!is_marked || abs(difference) > abs(d)) {
                    d = difference;
                    /* A tile that is not brighter than the mean counts as darker. */
                    sign = d > 0 ? 1 : 2;
                }
            }
            result.sum += d;
            result.signs |= sign;
            if (abs(d) > abs(result.peak))
                result.peak = d;
        }
        measured.out[measured.at] = result;
    }
}
