/* Compares a repeating pattern with itself some pitches away and packs the result, 1 bit per pixel.
 * docs/semantics.md defines it. Each variant has a file; this file holds the shared code and the plain
 * variant.
 *
 * pitch_threshold_bytes  Any device, buffer or image: one work-item per byte of the mask (8 pixels).
 * pitch_threshold_words  CPU, buffer: local size 1; each work-item judges a band of rows, 32 pixels
 *                        per step, in 16-bit lanes (32-bit lanes for 16-bit samples).
 * pitch_threshold_wide   GPU, buffer: one work-item per 16 bytes of a row, read as aligned words; 32-bit integers.
 * pitch_threshold_fixed  The same with the comparisons as constants of the program, in exact f32.
 *
 * pitch_threshold_lattice.cl takes the place of this file where vectors are not parallel to the axes.
 *
 * | argument      | meaning                                                                       |
 * | src           | the judged plane; adjacent samples; any offset and stride                     |
 * | width, height | size of the plane                                                             |
 * | first, rows   | rows first .. first+rows-1 of the plane are judged; a strip of a web has rows  |
 * |               | above and below it, a frame has first = 0 and rows = height                   |
 * | mask          | packed mask of the judged rows; every byte is written; stride ceil(width/8)    |
 * | comparisons   | see comparison_t                                                              |
 * | rois          | int4: x0, y0, x1, y1, half-open, inside the frame                             |
 * | theta         | threshold in 1/256 grey levels, 0 .. 2^30-1                                   |
 * | flags         | MINIMUM, ... INWARD of crates/core/src/kernels.rs                              |
 * | defects       | two counters of marked pixels: the launch adds to defects[slot], which is 0 at |
 * |               | entry, and zeroes the other one for the next frame                            |
 * | slot          | 0 or 1                                                                        |
 *
 * Exactness: all sums are 32-bit integers in 1/256 grey level; with 16-bit samples they stay
 * under 2^26. pitch_threshold_words.cl needs fewer bits and says why. A tap of weight 0 (F = 0) is never read
 * outside the judged range.
 */
/* The bits MINIMUM, MATCHED and INWARD of `flags`, for pitch_threshold_words.cl and pitch_threshold_runs.cl: compilers
 * are several times faster with one mode than with all of them. */
#ifndef MODE
#define MODE (MINIMUM | MATCHED | INWARD)
#endif
/* Exceeds every difference: 65535 * 256 * 2, and the matched centre's overshoot. */
#define UNREACHED (1 << 28)

/* A difference, and its units per grey level. */
typedef int difference_t;
#define DIFFERENCE_UNIT 512

/* One comparison; the names in docs/semantics.md: axis (0 along x, 1 along y), P, F, A, P2, F2, edge
 * margin. Twin: crates/operators/src/pitch_threshold/settings.rs (ComparisonWords). */
typedef struct {
    int axis, whole, fraction, blur, whole2, fraction2, edge_margin;
} comparison_t;

/* P + u: pixels at each end of the axis that lack a neighbour. */
static int comparison_margin(comparison_t c) { return c.whole + (c.fraction > 0 ? 1 : 0); }
/* The same for the neighbour two distances away. */
static int comparison_margin2(comparison_t c) { return c.whole2 + (c.fraction2 > 0 ? 1 : 0); }

/* Pixels along an axis of n that lack only the left neighbour and are judged inward: x .. y-1. */
static int2 inward_left(comparison_t c, int n)
{
    const int past = max(min(comparison_margin(c), n - comparison_margin2(c)), 0);
    return (int2)(min(c.edge_margin, past), past);
}
/* The same for the right neighbour. */
static int2 inward_right(comparison_t c, int n)
{
    const int from = min(max(n - comparison_margin(c), comparison_margin2(c)), n);
    return (int2)(from, max(n - c.edge_margin, from));
}

/* The neighbour that pixel `at` lacks, if it is judged inward: 1 the left (upper) one, 2 the right one;
 * otherwise 0. */
static int lacking(comparison_t c, int at, int n)
{
    const int2 left = inward_left(c, n);
    const int2 right = inward_right(c, n);
    return at >= left.x && at < left.y ? 1 : at >= right.x && at < right.y ? 2 : 0;
}

/* Whether a comparison has neighbours for a pixel. */
static int has_neighbours(comparison_t c, int x, int y, int width, int height, int flags)
{
    const int margin = comparison_margin(c);
    const int at = c.axis ? y : x;
    const int n = c.axis ? height : width;
    return (at >= margin && at < n - margin) || ((flags & INWARD) && lacking(c, at, n));
}

/* Bits of the 8 pixels from x of row y that a comparison judges. */
static uint judged_byte(int x, int y, int width, int height, comparison_t c, int flags)
{
    const int n = c.axis ? height : width;
    const int margin = comparison_margin(c);
    const int2 none = (int2)(0, 0);
    const int2 left = flags & INWARD ? inward_left(c, n) : none;
    const int2 right = flags & INWARD ? inward_right(c, n) : none;
    if (c.axis)
        return (y >= margin && y < n - margin) || (y >= left.x && y < left.y) ||
                       (y >= right.x && y < right.y) ? 0xffu : 0u;
    return byte_range(margin, n - margin, x) | byte_range(left.x, left.y, x) |
           byte_range(right.x, right.y, x);
}

/* Samples from a pixel to the taps of its two neighbours, and the weights of the far taps. */
typedef struct {
    int left_near, left_far, left_fraction;
    int right_near, right_far, right_fraction;
} taps_t;

/* The taps; `missing`: 0 none, 1 the left neighbour, 2 the right one. */
static void find_taps(comparison_t c, int missing, taps_t *taps)
{
    const int margin = comparison_margin(c);
    const int margin2 = comparison_margin2(c);
    taps->left_near = missing == 1 ? c.whole2 : -c.whole;
    taps->left_far = missing == 1 ? margin2 : -margin;
    taps->left_fraction = missing == 1 ? c.fraction2 : c.fraction;
    taps->right_near = missing == 2 ? -c.whole2 : c.whole;
    taps->right_far = missing == 2 ? -margin2 : margin;
    taps->right_fraction = missing == 2 ? c.fraction2 : c.fraction;
}

/* Whether a centre and its neighbours, in 1/256 grey level, mark a pixel; `difference` as below. */
static int is_marked_by(int centre, int left, int right, int theta, int flags, int *difference)
{
    int bright, dark;
    if (flags & MINIMUM) {
        const int l = centre - left;
        const int r = centre - right;
        bright = l >= theta && r >= theta;
        dark = l <= -theta && r <= -theta;
        *difference = 2 * (bright ? min(l, r) : max(l, r));
    } else {
        const int e = 2 * centre - (left + right);
        bright = e >= 2 * theta;
        dark = e <= -2 * theta;
        *difference = e;
    }
    return ((flags & BRIGHT) && bright) || ((flags & DARK) && dark);
}

/* Whether one comparison marks a pixel. `difference` gets the pixel's difference in 1/512 grey level;
 * it is only meaningful for a marked pixel. */
static int compare_pixel(PLANE_ARGS, int x, int y, int width, int height, comparison_t c, int theta,
                         int flags, int *difference)
{
    const int margin = comparison_margin(c);
    const int at = c.axis ? y : x;
    const int n = c.axis ? height : width;
    int missing = 0;
    if (at < margin || at >= n - margin) {
        if (!(flags & INWARD))
            return 0;
        missing = lacking(c, at, n);
        if (!missing)
            return 0;
    }
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
    if (flags & MATCHED) {
        const int before = at > 0 ? 1 : 0;
        const int after = at < n - 1 ? 1 : 0;
        centre += c.blur * ((int)PLANE_SAMPLE(x - before * dx, y - before * dy) - 2 * s +
                            (int)PLANE_SAMPLE(x + after * dx, y + after * dy));
    }
    return is_marked_by(centre, left, right, theta, flags, difference);
}

/* Whether any comparison marks a pixel. */
static int judge(PLANE_ARGS, int x, int y, int width, int height,
                 __constant const comparison_t *comparisons, int comparison_count, int theta, int flags)
{
    int difference;
    for (int i = 0; i < comparison_count; i++)
        if (compare_pixel(PLANE, x, y, width, height, comparisons[i], theta, flags, &difference))
            return 1;
    return 0;
}

static uint judge_byte(PLANE_ARGS, uint wanted, int x, int y, int width, int height,
                       __constant const comparison_t *comparisons, int comparison_count, int theta,
                       int flags)
{
    uint bits = 0;
    for (int i = 0; i < 8; i++) {
        const uint bit = 0x80u >> i;
        if ((wanted & bit) &&
            judge(PLANE, x + i, y, width, height, comparisons, comparison_count, theta, flags))
            bits |= bit;
    }
    return bits;
}

__kernel void pitch_threshold_bytes(PLANE_ARGS, int width, int height, int first, int rows,
                                    __global uchar *mask, ulong mask_offset, uint mask_stride,
                                    __constant const comparison_t *comparisons, int comparison_count,
                                    __global const int4 *rois, int roi_count, int theta, int flags,
                                    __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        defects[slot ^ 1u] = 0;
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    const int y = first + row;
    if (column >= (int)mask_stride || row >= rows)
        return;
    /* Regions lie inside the frame: bits past the width stay 0. */
    const uint wanted = roi_bits(rois, roi_count, 8 * column, y, 8);
    const uint bits = wanted ? judge_byte(PLANE, wanted, 8 * column, y, width, height, comparisons,
                                          comparison_count, theta, flags)
                             : 0;
    mask[mask_offset + (size_t)row * mask_stride + column] = (uchar)bits;
    if (bits)
        atomic_add(&defects[slot], popcount(bits));
}
