/* Appended to pitch_threshold.cl. The comparison at coarser levels; docs/semantics.md, "Stains", defines it.
 *
 * A level has two pictures. The samples of picture x are means of boxes at every 2^k-th row and at every column; those
 * of picture y at every row and at every 2^k-th column. So the neighbours along an axis are samples of the axis' picture.
 *
 * scales_first  Makes level 1 from the frame.
 * scales_next   Judges a level, and makes the next one unless it is the last.
 * scales_join   Marks the pixels of the marked blocks of all levels in the packed mask; scales_join.cl.
 *
 * scales_rows.cl (CPU) and scales_items.cl (GPU) hold the first two. scales_tiles.cl does both in one launch, on a GPU.
 *
 * | argument    | meaning                                                                                    |
 * | levels      | the levels' pictures; scale_level_t says where                                              |
 * | table       | a scale_level_t per level; level 0 is the frame                                              |
 * | comparisons | the judged blocks; see scale_comparison_t                                                   |
 * | marks       | a byte per block: 1 = marked; the rows of scale_level_t's from .. past-1 are written          |
 * | is_again    | the levels are those of a repaired frame: marks are cleared, none is set                     |
 * | ignored     | the same layout: 1 = an ignored pixel is among those whose mean is taken; read if use_ignored |
 * | counters    | counters[slot] is 0 at entry, and another number at the end if a block is marked;           |
 * |             | scales_first zeroes counters[slot ^ 1]                                                      |
 *
 * Exactness: sums of integers. A sample of a level has 12 bits at level 1, else 16 (20 and 24 for 16-bit samples).
 * Differences have at most 25 bits (33).
 */
#if SAMPLE_BYTES == 1
typedef ushort level_t;
typedef int sum_t;
#else
typedef uint level_t;
typedef long sum_t;
#endif

/* Twin: crates/core/src/scales.rs (LevelWords). */
typedef struct __attribute__((aligned(16))) {
    /* 256 times the threshold, in the unit of the level's samples. */
    long theta;
    /* k, and the rows between the first row of a block and row 0 of the plane. */
    int shift, remainder;
    /* Blocks in a row, and elements between rows of the pictures and of the marks. */
    int count, pitch;
    /* Rows of picture x, and the elements at which the pictures start. */
    int rows, x_at, y_at;
    /* The byte of the first mark, and the rows of blocks that are judged. */
    int marks_at, from, past;
    /* The level's comparisons: first .. end-1. */
    int first, end;
    /* Samples of the level per grey level. */
    int unit;
    /* Rows of blocks that a work-item of a GPU judges: 8, or 2 where items would otherwise be few. */
    int set_rows;
} scale_level_t;

/* The blocks of a rectangle, which one comparison judges with the same taps. Twin: crates/core/src/scales.rs. */
typedef struct __attribute__((aligned(16))) {
    /* Element of block (0, 0), and elements between rows of blocks. */
    int base, step;
    /* Half-open, rows counted from the level's row 0. */
    int x0, x1, y0, y1;
    /* Elements from the centre to the samples beside it, and to the taps of its neighbours. */
    int before, after, left_near, left_far, right_near, right_far;
    int fraction, blur;
    /* Which of the comparisons of pixels it is. */
    int index, unused;
} scale_comparison_t;

/* The nearest row of `rows`. */
static int row_at(int row, int rows) { return clamp(row, 0, rows - 1); }

/* A sample, blurred as its neighbours are, in 1/256 of the samples' unit. */
static sum_t block_centre(__global const level_t *at, scale_comparison_t c)
{
    const sum_t s = at[0];
    return 256 * s + c.blur * ((sum_t)at[c.before] - 2 * s + (sum_t)at[c.after]);
}

/* What the centre exceeds a neighbour by; `near` and `far`: elements from the sample to the neighbour's taps. */
static sum_t block_side(__global const level_t *at, sum_t centre, int near, int far, int fraction)
{
    const sum_t nearest = at[near];
    return centre - 256 * nearest - fraction * ((sum_t)at[far] - nearest);
}

/* Whether a block is marked whose centre exceeds its neighbours by l and r. `difference`: as in is_marked_by, but in
 * 1/512 of the samples' unit. */
static int is_marked_block(sum_t l, sum_t r, sum_t theta, int flags, sum_t *difference)
{
    int bright, dark;
    if (flags & MINIMUM) {
        const sum_t smaller = min(l, r), larger = max(l, r);
        bright = smaller >= theta;
        dark = larger <= -theta;
        *difference = 2 * (bright ? smaller : larger);
    } else {
        *difference = l + r;
        bright = *difference >= 2 * theta;
        dark = *difference <= -2 * theta;
    }
    return (((flags & BRIGHT) != 0) & bright) | (((flags & DARK) != 0) & dark);
}

/* Whether a comparison marks the block whose sample is `at`. */
static int is_block_marked(__global const level_t *at, scale_comparison_t c, sum_t theta, int flags, sum_t *difference)
{
    const sum_t centre = block_centre(at, c);
    const sum_t l = block_side(at, centre, c.left_near, c.left_far, c.fraction);
    const sum_t r = block_side(at, centre, c.right_near, c.right_far, c.fraction);
    return is_marked_block(l, r, theta, flags, difference);
}
