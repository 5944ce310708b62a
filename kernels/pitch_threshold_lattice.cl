/* In place of pitch_threshold.cl in the programs that compare along vectors of any angle. docs/semantics.md, "Comparison
 * along vectors", defines it. pitch_threshold.cl has the arguments.
 *
 * Exactness: a pixel and its neighbours are weighted sums whose weights are not negative and sum to 65536. They and their
 * differences are exact in 32 bits for 8-bit samples, and in 64 bits for 16-bit samples. A sample of weight 0 is not read.
 */
/* One comparison: to the neighbour at +k·v and to the one at +2k·v, 1/256 px, and the edge margin. Twin:
 * crates/operators/src/pitch_threshold/along.rs (VectorWords). */
typedef struct {
    int dx, dy, double_dx, double_dy, edge_margin;
} comparison_t;

/* Units of a difference per grey level. */
#define DIFFERENCE_UNIT 131072
#if SAMPLE_BYTES == 1
typedef int difference_t;
/* A threshold in 1/65536 grey level; twice the largest one fits, and no difference reaches it. */
#define THETA(theta) (min((theta), 1 << 17) * 256)
#else
typedef long difference_t;
#define THETA(theta) ((long)(theta) * 256)
#endif

/* Pixels at the edge towards which a distance along an axis points that lack the neighbour: P + u. */
static int margin_of(int d) { return ((int)abs(d) + 255) >> 8; }

/* Places of an axis of n that are `margin` or more away from the edge towards which `d` points: x .. y-1. */
static int2 away_from(int d, int margin, int n)
{
    return d < 0 ? (int2)(min(margin, n), n) : (int2)(0, max(n - margin, 0));
}
/* Places whose neighbour at `d` lies in the frame. */
static int2 held(int d, int n) { return away_from(d, margin_of(d), n); }

static int is_between(int at, int2 range) { return at >= range.x && at < range.y; }

static int2 both(int2 a, int2 b) { return (int2)(max(a.x, b.x), min(a.y, b.y)); }

/* The pixels that a comparison judges in one way: those of columns and rows, without those of hole_columns and hole_rows. */
typedef struct {
    int2 columns, rows, hole_columns, hole_rows;
} judged_t;

/* Those with both neighbours (missing 0), and those whose neighbour at -k·v (1) or at +k·v (2) is replaced. */
static judged_t judged_pixels(comparison_t c, int missing, int width, int height)
{
    judged_t judged;
    if (missing == 0) {
        judged.columns = both(held(c.dx, width), held(-c.dx, width));
        judged.rows = both(held(c.dy, height), held(-c.dy, height));
        judged.hole_columns = judged.hole_rows = (int2)(0, 0);
        return judged;
    }
    /* Towards the neighbour that is there. */
    const int sign = missing == 1 ? 1 : -1;
    const int dx = sign * c.dx;
    const int dy = sign * c.dy;
    judged.columns = both(both(held(dx, width), held(sign * c.double_dx, width)),
                          away_from(-dx, min(margin_of(dx), c.edge_margin), width));
    judged.rows = both(both(held(dy, height), held(sign * c.double_dy, height)),
                       away_from(-dy, min(margin_of(dy), c.edge_margin), height));
    judged.hole_columns = held(-dx, width);
    judged.hole_rows = held(-dy, height);
    return judged;
}

static int is_among(judged_t judged, int x, int y)
{
    return is_between(x, judged.columns) && is_between(y, judged.rows) &&
           !(is_between(x, judged.hole_columns) && is_between(y, judged.hole_rows));
}

/* The neighbour that a pixel lacks: 0 none, 1 or 2 one that is replaced. Returns -1 if the pixel is not judged. */
static int lacking(comparison_t c, int x, int y, int width, int height, int flags)
{
    const int last = flags & INWARD ? 2 : 0;
    for (int missing = 0; missing <= last; missing++)
        if (is_among(judged_pixels(c, missing, width, height), x, y))
            return missing;
    return -1;
}

/* Whether a comparison has neighbours for a pixel. */
static int has_neighbours(comparison_t c, int x, int y, int width, int height, int flags)
{
    return lacking(c, x, y, width, height, flags) >= 0;
}

/* Bits of the 8 pixels from x of row y that a comparison judges. */
static uint judged_byte(int x, int y, int width, int height, comparison_t c, int flags)
{
    uint bits = 0;
    for (int i = 0; i < 8 && x + i < width; i++)
        if (has_neighbours(c, x + i, y, width, height, flags))
            bits |= 0x80u >> i;
    return bits;
}

/* The neighbour at a distance from pixel (x, y), times 65536. */
static difference_t neighbour(PLANE_ARGS, int x, int y, int dx, int dy)
{
    const int fx = (int)abs(dx) & 255;
    const int fy = (int)abs(dy) & 255;
    const int near_x = x + (dx < 0 ? -((int)abs(dx) >> 8) : dx >> 8);
    const int near_y = y + (dy < 0 ? -((int)abs(dy) >> 8) : dy >> 8);
    const int far_x = x + (dx < 0 ? -margin_of(dx) : margin_of(dx));
    const int far_y = y + (dy < 0 ? -margin_of(dy) : margin_of(dy));
    const int near = (256 - fx) * (int)PLANE_SAMPLE(near_x, near_y) + fx * (int)PLANE_SAMPLE(far_x, near_y);
    const int far = (256 - fx) * (int)PLANE_SAMPLE(near_x, far_y) + fx * (int)PLANE_SAMPLE(far_x, far_y);
    return (256 - fy) * (difference_t)near + fy * (difference_t)far;
}

/* Where the samples of a neighbour lie: columns to the nearer and the farther one with weight `along_x`, rows to the upper
 * ones, and, if `is_two`, a row below them with weight `along_y`. */
typedef struct {
    int near, far, top, is_two;
    int along_x, along_y;
} taps_t;

static taps_t taps_of(int dx, int dy)
{
    taps_t t;
    const int margin_x = margin_of(dx);
    const int margin_y = margin_of(dy);
    const int fraction = (int)abs(dy) & 255;
    t.along_x = (int)abs(dx) & 255;
    t.near = dx < 0 ? -((int)abs(dx) >> 8) : dx >> 8;
    t.far = dx < 0 ? -margin_x : margin_x;
    t.top = dy < 0 ? -margin_y : dy >> 8;
    t.is_two = fraction > 0;
    t.along_y = t.is_two && dy < 0 ? 256 - fraction : fraction;
    return t;
}

/* The weight of a matched centre's neighbours along an axis, 1/256. */
static int blur_of(int d, int flags)
{
    const int f = (int)abs(d) & 255;
    return flags & MATCHED ? (f * (256 - f) + 256) / 512 : 0;
}

/* The centre along x in row y, times 256. */
static int centre_of_row(PLANE_ARGS, int x, int y, int width, int blur)
{
    const int s = (int)PLANE_SAMPLE(x, y);
    return 256 * s + blur * ((int)PLANE_SAMPLE(max(x - 1, 0), y) - 2 * s + (int)PLANE_SAMPLE(min(x + 1, width - 1), y));
}

/* Whether one comparison marks a pixel. `difference` gets the pixel's difference in 1/DIFFERENCE_UNIT grey level; it is
 * only meaningful for a marked pixel. */
static int compare_pixel(PLANE_ARGS, int x, int y, int width, int height, comparison_t c, int theta, int flags,
                         difference_t *difference)
{
    const int missing = lacking(c, x, y, width, height, flags);
    if (missing < 0)
        return 0;
    const difference_t left = missing == 1 ? neighbour(PLANE, x, y, c.double_dx, c.double_dy)
                                           : neighbour(PLANE, x, y, -c.dx, -c.dy);
    const difference_t right = missing == 2 ? neighbour(PLANE, x, y, -c.double_dx, -c.double_dy)
                                            : neighbour(PLANE, x, y, c.dx, c.dy);
    const int blur_x = blur_of(c.dx, flags);
    const int blur_y = blur_of(c.dy, flags);
    const difference_t row = centre_of_row(PLANE, x, y, width, blur_x);
    difference_t centre = 256 * row;
    if (blur_y)
        centre += blur_y * ((difference_t)centre_of_row(PLANE, x, max(y - 1, 0), width, blur_x) - 2 * row +
                            centre_of_row(PLANE, x, min(y + 1, height - 1), width, blur_x));
    const difference_t least = THETA(theta);
    int bright, dark;
    if (flags & MINIMUM) {
        const difference_t l = centre - left;
        const difference_t r = centre - right;
        bright = l >= least && r >= least;
        dark = l <= -least && r <= -least;
        *difference = 2 * (bright ? min(l, r) : max(l, r));
    } else {
        const difference_t e = 2 * centre - (left + right);
        bright = e >= 2 * least;
        dark = e <= -2 * least;
        *difference = e;
    }
    return ((flags & BRIGHT) && bright) || ((flags & DARK) && dark);
}
