/* Appended to mask_bits.cl. CPU, buffer: writes the mask of a comparison along vectors.
 *
 * pitch_threshold_lattice_rows  Local size 1; each work-item judges a band of rows. Of each part of a row it interpolates
 *                               both neighbours and the centre along x into lines, which serve the next row, too, and
 *                               compares them along y, 16 adjacent pixels together.
 *
 * Arguments: those of pitch_threshold.cl.
 *
 * Exactness: a row's value, 256 times a sample, is a weighted sum without negative weights, so arithmetic modulo 2^16 (2^32
 * for 16-bit samples) yields it exactly; modulo 2^32 the value of a pixel. E >= 2*theta is C >= ceil((L+R)/2) + theta,
 * and E <= -2*theta is C + theta <= floor((L+R)/2). Most pixels of 8-bit samples are far from the threshold, so 16-bit lanes
 * tell first whether any of 16 pixels may be marked. With products rounded down, a neighbour in 1/256 grey level is less than
 * 2 too low, and a centre less than 3.
 */
/* Bits of the 16 pixels at x that lie in a range of columns. */
static uint column_bits(int2 columns, int x)
{
    const int first = clamp(columns.x - x, 0, 16);
    const int past = clamp(columns.y - x, 0, 16);
    return first < past ? ((1u << (past - first)) - 1u) << (16 - past) : 0u;
}

#if SAMPLE_BYTES == 1
typedef ushort16 row_t;
typedef int16 sum_t;
typedef int sum_theta_t;
#define LOAD_ROW(p) convert_ushort16(LOAD_UCHAR16(p))
#define WIDEN(v) convert_int16(v)
#define ROW_WEIGHT(w) ((ushort)(w))
#define UNREACHED_THETA (1 << 28)
#define REACHES(a, theta, b) ((a) + (theta) <= (b))
#else
typedef uint16 row_t;
typedef uint16 sum_t;
typedef uint sum_theta_t;
#if BIG_ENDIAN_SAMPLES
#define LOAD_ROW(p) convert_uint16(SWAP_BYTES16(LOAD_USHORT16(p)))
#else
#define LOAD_ROW(p) convert_uint16(LOAD_USHORT16(p))
#endif
#define WIDEN(v) (v)
#define ROW_WEIGHT(w) ((uint)(w))
/* No value reaches this: it is at least 65536 below 2^32. */
#define UNREACHED_THETA 0xffffffffu
/* min() of two vectors: Oclgrind 21.10 applies a scalar to the first lane only. */
#define REACHES(a, theta, b) (min((a), (sum_t)(UNREACHED_THETA - (theta))) + (theta) <= (b))
#endif

/* The columns from a pixel to the first and to the last sample of its row that it is compared with, itself included. */
static int2 columns_of(taps_t left, taps_t right)
{
    return (int2)(min(min(min(left.near, left.far), min(right.near, right.far)), 0),
                  max(max(max(left.near, left.far), max(right.near, right.far)), 0));
}

/* 16 neighbours along x, of pixels at p of their row. */
static row_t tap_row(__global const uchar *p, taps_t t)
{
    const row_t near = LOAD_ROW(p + (long)t.near * SAMPLE_BYTES);
    const row_t far = LOAD_ROW(p + (long)t.far * SAMPLE_BYTES);
    return (near << ROW_WEIGHT(8)) + (far - near) * ROW_WEIGHT(t.along_x);
}

/* 16 centres along x; `is_first` and `is_last`: the first or the last one lies at the frame's edge. */
static row_t centre_row(__global const uchar *p, int blur, int is_first, int is_last)
{
    const row_t s = LOAD_ROW(p);
    if (!blur)
        return s << ROW_WEIGHT(8);
    const row_t before = is_first ? s.s00123456789abcde : LOAD_ROW(p - SAMPLE_BYTES);
    const row_t after = is_last ? s.s123456789abcdeff : LOAD_ROW(p + SAMPLE_BYTES);
    return (s << ROW_WEIGHT(8)) + (before + after - (s << ROW_WEIGHT(1))) * ROW_WEIGHT(blur);
}

static sum_t between_rows(row_t top, row_t bottom, int weight)
{
    const sum_t upper = WIDEN(top);
    return (upper << (sum_t)8) + (WIDEN(bottom) - upper) * (sum_t)weight;
}

/* The bits of 16 pixels. */
static uint marked_bits(sum_t centre, sum_t left, sum_t right, sum_theta_t bright, sum_theta_t dark, int flags)
{
    sum_t upper, lower;
    if (flags & MINIMUM) {
        upper = max(left, right);
        lower = min(left, right);
    } else {
        /* Half of left + right, rounded up and down, without overflow. */
        const sum_t half_sum = (left ^ right) >> (sum_t)1;
        upper = (left | right) - half_sum;
        lower = (left & right) + half_sum;
    }
    const int16 marked = REACHES(upper, bright, centre) | REACHES(centre, dark, lower);
    const uint bits = pack_bits16(convert_char16(marked));
    return (bits & 0xffu) << 8 | bits >> 8;
}

/* A threshold in the sums' unit. */
static sum_theta_t sum_theta(int theta, int is_on)
{
    return is_on ? (sum_theta_t)min((ulong)THETA(theta), (ulong)UNREACHED_THETA) : UNREACHED_THETA;
}

/* The centre of three rows. */
static sum_t matched_sum(row_t above, row_t middle, row_t below, int blur)
{
    const sum_t own = WIDEN(middle);
    return (own << (sum_t)8) + (WIDEN(above) + WIDEN(below) - (own << (sum_t)1)) * (sum_t)blur;
}

/* Columns of a part of a row. */
#define LINE 512

typedef struct {
    row_t left[2][LINE / 16], right[2][LINE / 16], centre[3][LINE / 16];
} lines_t;

/* The vectors of a line of `count` pixels, at least 16: the last one overlaps the one before. */
#define VECTORS(count) (((count) + 15) / 16)
/* The pixel at which vector i of a line begins. */
static int vector_start(int i, int count) { return min(16 * i, count - 16); }

static void make_neighbours(row_t *line, __global const uchar *p, taps_t t, int count)
{
    for (int i = 0; i < VECTORS(count); i++)
        line[i] = tap_row(p + (long)vector_start(i, count) * SAMPLE_BYTES, t);
}

static void make_centres(row_t *line, __global const uchar *p, int blur, int x, int width, int count)
{
    for (int i = 0; i < VECTORS(count); i++) {
        const int at = vector_start(i, count);
        line[i] = centre_row(p + (long)at * SAMPLE_BYTES, blur, x + at == 0, x + at + 16 == width);
    }
}

#if SAMPLE_BYTES == 1
static ushort16 product_high(ushort16 v, ushort weight)
{
#ifdef __AVX2__
    /* PoCL multiplies in 32 bits. */
    typedef short words16_t __attribute__((vector_size(32)));
    return as_ushort16(__builtin_ia32_pmulhuw256((words16_t)as_short16(v), (words16_t)(short16)(short)weight));
#else
    return convert_ushort16((convert_uint16(v) * (uint16)(uint)weight) >> (uint16)16);
#endif
}

/* Between two rows in 1/256 grey level, less than 2 too low. */
static ushort16 about_between(ushort16 top, ushort16 bottom, int weight)
{
    return weight ? product_high(top, (ushort)(256 * (256 - weight))) + product_high(bottom, (ushort)(256 * weight)) : top;
}

#define LANES_REACH(a, theta, b) (min((a), (ushort16)(ushort)(0xffff - (theta))) + (theta) <= (b))
/* A threshold for the lanes; 0xffff is above every difference. */
static ushort near_theta(int theta, int is_on) { return is_on ? (ushort)clamp(theta - 2, 0, 0xffff) : (ushort)0xffff; }
#endif

/* ORs the bits of 16 pixels from x into a row of the mask. */
static RARE void put_bits(__global uchar *row, int x, uint bits)
{
    const uint shifted = bits << 8 >> (x & 7);
    __global uchar *out = row + x / 8;
    for (int i = 0; i < 3; i++) {
        const uchar byte = (uchar)(shifted >> (16 - 8 * i));
        if (byte)
            out[i] |= byte;
    }
}

/* Compares pixels x .. x+count-1, at least 16 and at most LINE, of rows from .. to-1, whose neighbours are those of `left` and
 * `right`, and marks those of `columns`. `mask` begins with row `first`. */
static void compare_lines(PLANE_ARGS, int2 columns, int x, int count, int from, int to, int first, int width, int height, taps_t left,
                          taps_t right, int blur_x, int blur_y, int theta, int flags, __global uchar *mask,
                          uint mask_stride)
{
    lines_t lines;
    const long stride = src_stride;
    const sum_theta_t bright = sum_theta(theta, flags & BRIGHT);
    const sum_theta_t dark = sum_theta(theta, flags & DARK);
#if SAMPLE_BYTES == 1
    const ushort near_bright = near_theta(theta, flags & BRIGHT);
    const ushort near_dark = near_theta(theta, flags & DARK);
    const ushort weight_side = (ushort)(256 * blur_y);
    const ushort weight_middle = (ushort)(256 * (256 - 2 * blur_y));
#endif
    for (int y = from; y < to; y++) {
        __global const uchar *p = src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES;
        /* Row y + top lies in one line, the row below it in the other one. */
        const int even = y & 1;
        const int is_new = y == from;
        if (is_new || !left.is_two)
            make_neighbours(lines.left[even], p + left.top * stride, left, count);
        if (left.is_two)
            make_neighbours(lines.left[even ^ 1], p + (left.top + 1) * stride, left, count);
        if (is_new || !right.is_two)
            make_neighbours(lines.right[even], p + right.top * stride, right, count);
        if (right.is_two)
            make_neighbours(lines.right[even ^ 1], p + (right.top + 1) * stride, right, count);
        const int at = y % 3;
        row_t *middle = lines.centre[at];
        row_t *below = lines.centre[(at + 1) % 3];
        row_t *above = lines.centre[(at + 2) % 3];
        if (is_new || !blur_y)
            make_centres(middle, p, blur_x, x, width, count);
        if (blur_y) {
            if (is_new)
                make_centres(above, y > 0 ? p - stride : p, blur_x, x, width, count);
            make_centres(below, y + 1 < height ? p + stride : p, blur_x, x, width, count);
        }
        __global uchar *row = mask + (size_t)(y - first) * mask_stride;
        for (int i = 0; i < VECTORS(count); i++) {
            const row_t left_top = lines.left[even][i];
            const row_t left_bottom = lines.left[even ^ (left.is_two ? 1 : 0)][i];
            const row_t right_top = lines.right[even][i];
            const row_t right_bottom = lines.right[even ^ (right.is_two ? 1 : 0)][i];
            const row_t own = middle[i];
#if SAMPLE_BYTES == 1
            const ushort16 l = about_between(left_top, left_bottom, left.along_y);
            const ushort16 r = about_between(right_top, right_bottom, right.along_y);
            ushort16 c = own;
            if (blur_y)
                c = product_high(own, weight_middle) + product_high(above[i], weight_side) +
                    product_high(below[i], weight_side);
            ushort16 upper, lower;
            if (flags & MINIMUM) {
                upper = max(l, r);
                lower = min(l, r);
            } else {
                upper = lower = (l & r) + ((l ^ r) >> (ushort16)1);
            }
            const short16 may_be = LANES_REACH(upper, near_bright, c) | LANES_REACH(c, near_dark, lower);
            if (!pack_bits16(convert_char16(may_be)))
                continue;
#endif
            const sum_t centre = blur_y ? matched_sum(above[i], own, below[i], blur_y) : WIDEN(own) << (sum_t)8;
            const uint bits = marked_bits(centre, between_rows(left_top, left_bottom, left.along_y),
                                          between_rows(right_top, right_bottom, right.along_y), bright, dark, flags);
            if (bits) {
                const int at = x + vector_start(i, count);
                put_bits(row, at, bits & column_bits(columns, at));
            }
        }
    }
}

/* Compares columns.x .. columns.y-1 of rows.x .. rows.y-1, whose neighbour `missing` is replaced. */
static RARE void compare_part(PLANE_ARGS, int2 columns, int2 rows, int first, int width, int height, comparison_t c,
                              int missing, int theta, int flags, __global uchar *mask, uint mask_stride)
{
    if (columns.x >= columns.y || rows.x >= rows.y)
        return;
    const taps_t left = missing == 1 ? taps_of(c.double_dx, c.double_dy) : taps_of(-c.dx, -c.dy);
    const taps_t right = missing == 2 ? taps_of(-c.double_dx, -c.double_dy) : taps_of(c.dx, c.dy);
    const int2 reach = columns_of(left, right);
    /* Where 16 pixels and their samples lie in the row, some of them may be left out. */
    const int start = max(min(columns.x, width - 16 - reach.y), -reach.x);
    const int is_narrow = columns.y - columns.x < 16;
    if (is_narrow && (start > columns.x || start + 16 < columns.y || start + 16 + reach.y > width)) {
        difference_t difference;
        for (int y = rows.x; y < rows.y; y++)
            for (int x = columns.x; x < columns.y; x++)
                if (compare_pixel(PLANE, x, y, width, height, c, theta, flags, &difference))
                    mask[(size_t)(y - first) * mask_stride + x / 8] |= (uchar)(0x80 >> (x & 7));
        return;
    }
    for (int next = columns.x; next < columns.y; next += LINE) {
        const int x = is_narrow ? start : min(next, columns.y - 16);
        compare_lines(PLANE, columns, x, clamp(columns.y - x, 16, LINE), rows.x, rows.y, first, width, height, left, right,
                      blur_of(c.dx, flags), blur_of(c.dy, flags), theta, flags, mask, mask_stride);
    }
}

__kernel void pitch_threshold_lattice_rows(PLANE_ARGS, int width, int height, int first_row, int rows,
                                           __global uchar *mask, ulong mask_offset, uint mask_stride,
                                           __constant const comparison_t *comparisons, int comparison_count,
                                           __global const int4 *rois, int roi_count, int theta, int flags,
                                           __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0)
        defects[slot ^ 1u] = 0;
    const int2 band = band_of(rows);
    const int2 judged_rows = (int2)(first_row + band.x, first_row + band.y);
    __global uchar *out = mask + mask_offset + (size_t)band.x * mask_stride;
    for (size_t i = 0; i < (size_t)(band.y - band.x) * mask_stride; i++)
        out[i] = 0;
    const int ways = flags & INWARD ? 3 : 1;
    for (int i = 0; i < ways * comparison_count; i++) {
        const comparison_t c = comparisons[i / ways];
        const int missing = i % ways;
        const judged_t judged = judged_pixels(c, missing, width, height);
        const int2 all = both(judged.rows, judged_rows);
        int2 hole = both(judged.hole_rows, all);
        if (judged.hole_columns.x >= judged.hole_columns.y || hole.x >= hole.y)
            hole = (int2)(all.y, all.y);
        /* The hole reaches one end of the row. */
        const int2 beside = judged.hole_columns.x > 0 ? (int2)(judged.columns.x, min(judged.columns.y, judged.hole_columns.x))
                                                      : (int2)(max(judged.columns.x, judged.hole_columns.y), judged.columns.y);
        compare_part(PLANE, judged.columns, (int2)(all.x, hole.x), judged_rows.x, width, height, c, missing, theta, flags,
                     out, mask_stride);
        compare_part(PLANE, beside, hole, judged_rows.x, width, height, c, missing, theta, flags, out, mask_stride);
        compare_part(PLANE, judged.columns, (int2)(hole.y, all.y), judged_rows.x, width, height, c, missing, theta, flags,
                     out, mask_stride);
    }
    uint count = 0;
    for (int row = 0; row < band.y - band.x; row++)
        for (int byte = 0; byte < (int)mask_stride; byte++) {
            __global uchar *at = out + (size_t)row * mask_stride + byte;
            if (*at) {
                *at &= (uchar)roi_bits(rois, roi_count, 8 * byte, judged_rows.x + row, 8);
                count += popcount((uint)*at);
            }
        }
    if (count)
        atomic_add(&defects[slot], count);
}
