/* Appended to nvidia.cl. Writes the mask of a comparison along vectors.
 *
 * pitch_threshold_lattice_items  Any device, buffer or image: a work-item judges a block of BLOCK_ROWS rows of
 *                                LATTICE_PIXELS adjacent pixels. A row's first pixel is the highest of its bits.
 *
 * Arguments: those of pitch_threshold.cl. WORDS=1: a buffer starts at a multiple of four bytes.
 *
 * The pixels of a row are weighted along x together, then along y: rows that are weighted along x serve the next row of
 * the block, too. Samples outside the frame are replaced by those at its edge; only pixels that are not judged, and
 * matched centres, which are defined so, have any.
 *
 * Exactness: that of pitch_threshold_lattice_lanes.cl, modulo 2^32.
 */
#ifndef BLOCK_ROWS
#define BLOCK_ROWS 4
#endif
#ifndef MODE
#define MODE (MINIMUM | MATCHED | INWARD)
#endif
/* Samples that a block's row is weighted of: a pixel has three. */
#define SAMPLES (LATTICE_PIXELS + 2)

/* Bits of the pixels at x that lie in a range of columns. */
static uint item_columns(int2 columns, int x)
{
    const int first = clamp(columns.x - x, 0, LATTICE_PIXELS);
    const int past = clamp(columns.y - x, 0, LATTICE_PIXELS);
    return first < past ? ((1u << (past - first)) - 1u) << (LATTICE_PIXELS - past) : 0u;
}

/* The weights of three adjacent samples, and what their sum must be multiplied with to be in 1/256. */
typedef struct {
    uint first, second, third, scale;
} weights_t;

#if SAMPLE_BYTES == 1
/* Sums of a row, 1/scale, of the samples from x on. A weight is below 256. */
static void weighted_row(PLANE_ARGS, int x, int y, int width, int height, weights_t weights, uint *sums)
{
    const int row = clamp(y, 0, height - 1);
    uint low, middle, high;
    int is_read = 0;
#if WORDS
    const ulong from = src_offset + (ulong)row * src_stride + (ulong)(long)x;
    const ulong end = src_offset + (ulong)(height - 1) * src_stride + (ulong)width;
    if (x >= 0 && x + SAMPLES <= width && (from & ~3UL) + 16 <= end) {
        __global const uint *at = (__global const uint *)(src + (from & ~3UL));
        const uint select = 0x3210u + 0x1111u * (uint)(from & 3);
        low = permute(at[0], at[1], select);
        middle = permute(at[1], at[2], select);
        high = permute(at[2], at[3], select);
        is_read = 1;
    }
#endif
    if (!is_read) {
        uint s[SAMPLES];
        for (int i = 0; i < SAMPLES; i++)
            s[i] = PLANE_SAMPLE(clamp(x + i, 0, width - 1), row);
        low = s[0] | s[1] << 8 | s[2] << 16 | s[3] << 24;
        middle = s[4] | s[5] << 8 | s[6] << 16 | s[7] << 24;
        high = s[8] | s[9] << 8;
    }
    const uint here = weights.first | weights.second << 8 | weights.third << 16;
    const uint next = here << 8;
    const uint words[4] = {low, permute(low, middle, 0x5432u), middle, permute(middle, high, 0x5432u)};
    for (int i = 0; i < 4; i++) {
        sums[2 * i] = dot4(words[i], here, 0u);
        sums[2 * i + 1] = dot4(words[i], next, 0u);
    }
}
#else
static void weighted_row(PLANE_ARGS, int x, int y, int width, int height, weights_t weights, uint *sums)
{
    const int row = clamp(y, 0, height - 1);
    uint s[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        s[i] = PLANE_SAMPLE(clamp(x + i, 0, width - 1), row);
    for (int i = 0; i < LATTICE_PIXELS; i++)
        sums[i] = weights.first * s[i] + weights.second * s[i + 1] + weights.third * s[i + 2];
}
#endif

/* A neighbour: the column of its first sample and the upper one of its rows, from the pixel, and the rows' weights. */
typedef struct {
    int column, top;
    weights_t along_x;
    uint upper, lower;
} side_t;

static side_t side_of(taps_t taps)
{
    side_t side;
    side.column = min(taps.near, taps.far);
    side.top = taps.top;
    const uint far = (uint)taps.along_x;
    side.along_x.first = far == 0 ? 1u : taps.far > taps.near ? 256u - far : far;
    side.along_x.second = far == 0 ? 0u : 256u - side.along_x.first;
    side.along_x.third = 0;
    side.along_x.scale = far == 0 ? 256u : 1u;
    side.upper = (256u - (uint)taps.along_y) * side.along_x.scale;
    side.lower = (uint)taps.along_y * side.along_x.scale;
    return side;
}

/* a + theta <= b, without overflow. */
static uint reaches(uint a, uint theta, uint b) { return b >= a && b - a >= theta; }

/* Compares the pixels of a block at (x, top) in one of the ways of judged_pixels(). `wanted` and `bits`: of each row. */
static void compare_block(PLANE_ARGS, int x, int top, int rows, int width, int height, comparison_t c, int missing,
                          int theta, int flags, const uint *wanted, uint *bits)
{
    const judged_t judged = judged_pixels(c, missing, width, height);
    const uint columns = item_columns(judged.columns, x);
    if (!columns || judged.rows.x >= top + rows || judged.rows.y <= top)
        return;
    const uint hole = item_columns(judged.hole_columns, x);
    const side_t left = side_of(missing == 1 ? taps_of(c.double_dx, c.double_dy) : taps_of(-c.dx, -c.dy));
    const side_t right = side_of(missing == 2 ? taps_of(-c.double_dx, -c.double_dy) : taps_of(c.dx, c.dy));
    const uint blur_x = MODE & MATCHED ? (uint)blur_of(c.dx, MATCHED) : 0u;
    const uint blur_y = MODE & MATCHED ? (uint)blur_of(c.dy, MATCHED) : 0u;
    const weights_t of_centre = {blur_x, blur_x ? 256u - 2u * blur_x : 1u, blur_x, blur_x ? 1u : 256u};
    const uint own = (256u - 2u * blur_y) * of_centre.scale;
    const uint beside = blur_y * of_centre.scale;
    const uint least = (uint)min((ulong)THETA(theta), 0xffffffffUL);
    uint left_top[LATTICE_PIXELS], left_bottom[LATTICE_PIXELS], right_top[LATTICE_PIXELS], right_bottom[LATTICE_PIXELS];
    uint above[LATTICE_PIXELS], middle[LATTICE_PIXELS], below[LATTICE_PIXELS];
    weighted_row(PLANE, x + left.column, top + left.top, width, height, left.along_x, left_top);
    weighted_row(PLANE, x + right.column, top + right.top, width, height, right.along_x, right_top);
    weighted_row(PLANE, x - 1, top - 1, width, height, of_centre, above);
    weighted_row(PLANE, x - 1, top, width, height, of_centre, middle);
#pragma unroll
    for (int row = 0; row < BLOCK_ROWS; row++) {
        const int y = top + row;
        weighted_row(PLANE, x + left.column, y + left.top + 1, width, height, left.along_x, left_bottom);
        weighted_row(PLANE, x + right.column, y + right.top + 1, width, height, right.along_x, right_bottom);
        weighted_row(PLANE, x - 1, y + 1, width, height, of_centre, below);
        uint marked = 0;
#pragma unroll
        for (int i = 0; i < LATTICE_PIXELS; i++) {
            const uint l = left_top[i] * left.upper + left_bottom[i] * left.lower;
            const uint r = right_top[i] * right.upper + right_bottom[i] * right.lower;
            const uint centre = middle[i] * own + (above[i] + below[i]) * beside;
            uint upper, lower;
            if (MODE & MINIMUM) {
                upper = max(l, r);
                lower = min(l, r);
            } else {
                /* Half of l + r, rounded up and down, without overflow. */
                upper = (l | r) - ((l ^ r) >> 1);
                lower = (l & r) + ((l ^ r) >> 1);
            }
            const uint is_marked = ((flags & BRIGHT) && reaches(upper, least, centre)) ||
                                   ((flags & DARK) && reaches(centre, least, lower));
            marked = marked << 1 | is_marked;
            left_top[i] = left_bottom[i];
            right_top[i] = right_bottom[i];
            above[i] = middle[i];
            middle[i] = below[i];
        }
        uint here = is_between(y, judged.rows) ? columns & wanted[row] : 0u;
        if (is_between(y, judged.hole_rows))
            here &= ~hole;
        bits[row] |= here & marked;
    }
}

__kernel void pitch_threshold_lattice_items(PLANE_ARGS, int width, int height, int first, int rows,
                                            __global uchar *mask, ulong mask_offset, uint mask_stride,
                                            __constant const comparison_t *comparisons, int comparison_count,
                                            __global const int4 *rois, int roi_count, int theta, int flags,
                                            __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        defects[slot ^ 1u] = 0;
    const int column = (int)get_global_id(0);
    const int from = BLOCK_ROWS * (int)get_global_id(1);
    if (column >= (int)mask_stride || from >= rows)
        return;
    const int x = LATTICE_PIXELS * column;
    uint wanted[BLOCK_ROWS], bits[BLOCK_ROWS];
#pragma unroll
    for (int row = 0; row < BLOCK_ROWS; row++) {
        /* Regions lie inside the frame: bits past the width stay 0. */
        wanted[row] = from + row < rows ? roi_bits(rois, roi_count, x, first + from + row, LATTICE_PIXELS) : 0u;
        bits[row] = 0;
    }
    const int ways = MODE & INWARD ? 3 : 1;
    for (int i = 0; i < ways * comparison_count; i++)
        compare_block(PLANE, x, first + from, min(BLOCK_ROWS, rows - from), width, height, comparisons[i / ways],
                      i % ways, theta, flags, wanted, bits);
    uint marked = 0;
#pragma unroll
    for (int row = 0; row < BLOCK_ROWS; row++) {
        if (from + row < rows)
            mask[mask_offset + (size_t)(from + row) * mask_stride + column] = (uchar)bits[row];
        marked += popcount(bits[row]);
    }
    if (marked)
        atomic_add(&defects[slot], marked);
}
