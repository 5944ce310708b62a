/* Appended to mask_tiles.cl. Measures the runs of a packed mask. */
/* The difference of pixel (x, y) at the finest of the coarser levels that marks it, in 1/512 grey level, rounded half
 * away from zero. Returns the level, or 0 if none marks the pixel. */
static RARE int level_difference(int x, int y, __global const level_t *levels, __global const scale_level_t *table,
                                 int level_count, __global const scale_comparison_t *comparisons,
                                 __global const uchar *marks, int flags, int *difference)
{
    for (int k = 1; k <= level_count; k++) {
        const scale_level_t level = table[k];
        const int column = x >> k;
        const int row = (y + level.remainder) >> k;
        if (!marks[level.marks_at + (size_t)row * level.pitch + column])
            continue;
        sum_t largest = 0;
        int found = 0;
        for (int i = level.first; i < level.end; i++) {
            const scale_comparison_t c = comparisons[i];
            sum_t d;
            if (row >= c.y0 && row < c.y1 && column >= c.x0 && column < c.x1 &&
                is_block_marked(levels + c.base + (long)row * c.step + column, c, (sum_t)level.theta, flags, &d) &&
                (!found || abs(d) > abs(largest))) {
                largest = d;
                found = 1;
            }
        }
        const sum_t size = ((sum_t)abs(largest) + level.unit / 2) / level.unit;
        *difference = (int)(largest < 0 ? -size : size);
        return k;
    }
    return 0;
}

/* Sums over the pixels that only the comparison of pixels can mark; element k is for pixel k of a byte of the mask. They
 * are added up at the end of a run, because sums across a vector take long. */
typedef struct {
    int8 sum, highest, lowest;
    /* The difference of largest magnitude, the first of equals, and its byte. */
    int8 peak, peak_byte;
    /* -1 where a pixel does not differ, and where the comparison marks one. */
    int8 even, marked;
} byte_sums_t;

/* Bytes of the mask whose differences add up to at most 30 bits: a difference has 17 bits, or 25 of 16-bit samples. */
#define SUMMED_BYTES (SAMPLE_BYTES == 1 ? 1024 : 4)

/* Adds the wanted pixels of a byte of the mask. */
static void add_pixels(uint wanted, int byte, int8 difference, int8 is_marked, byte_sums_t *sums)
{
    const int8 bits = (int8)(0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01);
    const int8 is_wanted = ((int8)(int)wanted & bits) != (int8)0;
    const int8 d = difference & is_wanted;
    const int8 is_larger = abs(d) > abs(sums->peak);
    sums->sum += d;
    sums->highest = max(sums->highest, d);
    sums->lowest = min(sums->lowest, d);
    sums->peak = select(sums->peak, d, is_larger);
    sums->peak_byte = select(sums->peak_byte, (int8)byte, is_larger);
    sums->even |= is_wanted & (d == (int8)0);
    sums->marked |= is_wanted & is_marked;
}

/* Moves the sum of the pixels to the result of the run. */
static void move_sum(byte_sums_t *sums, run_difference_t *result)
{
    const int4 four = sums->sum.lo + sums->sum.hi;
    const int2 two = four.lo + four.hi;
    result->sum += (long)two.x + two.y;
    sums->sum = 0;
}

/* Adds all sums to the result of the run. */
static void add_sums(byte_sums_t *sums, run_difference_t *result)
{
    move_sum(sums, result);
    result->signs |= (any(sums->highest > (int8)0) ? 1u : 0u) | (any(sums->lowest < (int8)0) ? 2u : 0u) |
                     (any(sums->even) ? 4u : 0u) | (any(sums->marked) ? LEVEL_BIT(0) : 0u);
    int first = 0;
#pragma unroll
    for (int k = 0; k < STEP; k++) {
        const int peak = ((const int *)&sums->peak)[k];
        const int at = STEP * ((const int *)&sums->peak_byte)[k] + k;
        if (abs(peak) > abs(result->peak) || (abs(peak) == abs(result->peak) && at < first)) {
            result->peak = peak;
            first = at;
        }
    }
}

/* A work-item measures the marked pixels of a sequence of runs of columns, whose row 0 is row `first_row` of the plane
 * and row 0 of the packed mask. `use_table`: whether there are tiles without the pattern; `level_count`: of coarser
 * levels. */
__kernel void run_differences(PLANE_ARGS, int width, int height, int first_row,
                              __constant const comparison_t *comparisons, int comparison_count,
                              int theta, int flags, int4 tiles, int4 tile_rows,
                              __global const int *table, int use_table, __global const uchar *mask,
                              ulong mask_offset, __global const level_t *levels,
                              __global const scale_level_t *level_table, int level_count,
                              __global const scale_comparison_t *scale_comparisons,
                              __global const uchar *marks, RUNS_ARGS)
{
    own_runs_t measured = own_runs(mask, mask_offset, width, RUNS);
    run_t run;
    const size_t mask_stride = (size_t)(width + STEP - 1) / STEP;
    const int is_plain = level_count == 0 && !use_table;
    while (take_run(&measured, &run)) {
        const int y = first_row + (int)run.y;
        __global const uchar *row = mask + mask_offset + run.y * mask_stride;
        run_difference_t result = {0, 0, 0, 0};
        byte_sums_t sums = {0, 0, 0, 0, 0, 0, 0};
        for (uint byte = run.x0 / STEP; byte * STEP < run.x1; byte++) {
            const uint x = byte * STEP;
            uint wanted = row[byte];
            if (x < run.x0)
                wanted &= 0xffu >> (run.x0 - x);
            if (x + STEP > run.x1)
                wanted &= 0xff00u >> (run.x1 - x);
            if (!wanted)
                continue;
            int8 largest, is_marked;
            measure_pixels(PLANE, (int)x, y, wanted, width, height, comparisons, comparison_count, theta, flags,
                           &largest, &is_marked);
            if (is_plain) {
                add_pixels(wanted, (int)byte, largest, is_marked, &sums);
                if (byte % SUMMED_BYTES == 0)
                    move_sum(&sums, &result);
                continue;
            }
#pragma unroll
            for (int k = 0; k < STEP; k++) {
                if (!is_set(wanted, k))
                    continue;
                int difference;
                int d = ((const int *)&largest)[k];
                int is_judged = ((const int *)&is_marked)[k];
                if (is_judged) {
                    result.signs |= LEVEL_BIT(0);
                } else if (level_count > 0) {
                    const int level = level_difference((int)x + k, y, levels, level_table, level_count,
                                                       scale_comparisons, marks, flags, &d);
                    if (level > 0) {
                        result.signs |= LEVEL_BIT(level);
                        is_judged = 1;
                    }
                }
                uint sign = d > 0 ? 1 : d < 0 ? 2 : 4;
                if (use_table &&
                    tile_difference((int)x + k, y, width, tiles, tile_rows, table, &difference)) {
                    result.signs |= 8;
                    if (!is_judged || abs(difference) > abs(d)) {
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
        }
        if (is_plain)
            add_sums(&sums, &result);
        measured.out[measured.at] = result;
    }
}
