/* Appended to pitch_threshold.cl. The items of the wide kernels, pitch_threshold_wide.cl: a work-item judges blocks of
 * WIDE_ROWS rows of WIDE_PIXELS adjacent pixels. A block's results are bits: a row's first pixel is the
 * highest of its WIDE_PIXELS bits, and the first row's bits are the lowest.
 */
#define WIDE_PIXELS (WIDE_BYTES / SAMPLE_BYTES)
#ifndef WIDE_ROWS
#define WIDE_ROWS 4
#endif
#define WIDE_ALL ((1u << WIDE_PIXELS) - 1u)
/* The bit of pixel i of a row. */
#define WIDE_BIT(i) (1u << (WIDE_PIXELS - 1 - (i)))
#define ROW_BITS(row) (WIDE_PIXELS * (row))
#if WIDE_PIXELS * WIDE_ROWS <= 32
typedef uint block_t;
#else
typedef ulong block_t;
#endif
/* The bits of all pixels of a block. */
#define BLOCK_ALL (~(block_t)0 >> (8 * sizeof(block_t) - WIDE_PIXELS * WIDE_ROWS))

/* Bits of the pixels at x that lie in from .. to-1. */
static uint range_bits(int from, int to, int x)
{
    if (from <= x && x + WIDE_PIXELS <= to)
        return WIDE_ALL;
    const int first = clamp(from - x, 0, WIDE_PIXELS);
    const int past = clamp(to - x, 0, WIDE_PIXELS);
    return first < past ? ((1u << (past - first)) - 1u) << (WIDE_PIXELS - past) : 0u;
}

/* The bits `columns`, repeated for each row. */
static block_t in_rows(uint columns, int rows)
{
    block_t bits = 0;
    for (int row = 0; row < rows; row++)
        bits = (bits << WIDE_PIXELS) | columns;
    return bits;
}

/* All bits of rows first .. past-1 of the block. */
static block_t rows_between(int first, int past)
{
    const block_t below =
        past >= WIDE_ROWS ? BLOCK_ALL : ((block_t)1 << ROW_BITS(max(past, 0))) - (block_t)1;
    return first >= WIDE_ROWS ? (block_t)0 : below & (BLOCK_ALL << ROW_BITS(max(first, 0)));
}

/* The pixels of a block at (x, top) that a comparison judges with both neighbours. */
static block_t judged_bits(block_t wanted, comparison_t c, int rows, int x, int top, int width, int height)
{
    const int margin = comparison_margin(c);
    return wanted & (c.axis ? rows_between(margin - top, height - margin - top)
                            : in_rows(range_bits(margin, width - margin, x), rows));
}

/* Those that it judges with two neighbours on one side; `side` is inward_left or inward_right. */
static block_t inward_bits(block_t wanted, comparison_t c, int2 side, int rows, int x, int top)
{
    return wanted & (c.axis ? rows_between(side.x - top, side.y - top)
                            : in_rows(range_bits(side.x, side.y, x), rows));
}

/* All that it judges. */
static block_t judged_or_inward(block_t wanted, comparison_t c, int rows, int x, int top, int width, int height)
{
    const int n = c.axis ? height : width;
    return judged_bits(wanted, c, rows, x, top, width, height) |
           inward_bits(wanted, c, inward_left(c, n), rows, x, top) |
           inward_bits(wanted, c, inward_right(c, n), rows, x, top);
}

/* Judges the pixels of `wanted` one by one. */
static block_t judge_singly(PLANE_ARGS, block_t wanted, int rows, int x, int top, int width, int height,
                            comparison_t c, int theta, int flags)
{
    block_t bits = 0;
    int difference;
    for (int row = 0; row < rows; row++) {
        const uint in_row = (uint)(wanted >> ROW_BITS(row)) & WIDE_ALL;
        if (in_row == 0)
            continue;
        uint marked = 0;
#pragma unroll 1
        for (int i = 0; i < WIDE_PIXELS; i++)
            if ((in_row & WIDE_BIT(i)) &&
                compare_pixel(PLANE, x + i, top + row, width, height, c, theta, flags, &difference))
                marked |= WIDE_BIT(i);
        bits |= (block_t)marked << ROW_BITS(row);
    }
    return bits;
}
