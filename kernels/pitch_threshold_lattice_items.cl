/* Appended to nvidia.cl. Writes the mask of a comparison along vectors.
 *
 * pitch_threshold_lattice_items  Any device, buffer or image: a work-item judges a block of BLOCK_ROWS rows of
 *                                LATTICE_PIXELS adjacent pixels. A row's first pixel is the highest of its bits.
 *
 * Arguments: those of pitch_threshold.cl. WORDS=1: a buffer below 2 GiB that begins and ends at a multiple of four bytes.
 *
 * The pixels of a row are weighted along x together, then along y: rows that are weighted along x serve the next row of
 * the block, too. All pixels of a block are compared; those that lack a neighbour, and read any sample, are left out then.
 *
 * Exactness: that of pitch_threshold_lattice_rows.cl, modulo 2^32.
 */
#ifndef BLOCK_ROWS
#define BLOCK_ROWS 4
#endif
#ifndef MODE
#define MODE (MINIMUM | MATCHED | INWARD)
#endif
/* Samples that a block's row is weighted of: a pixel has three. */
#define SAMPLES (LATTICE_PIXELS + 2)
#define INLINE __attribute__((always_inline))

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

/* Sums of a row, 1/scale, of the samples from column x on. `is_centre`: samples beside the frame are those at its edge;
 * else they may be any. */
#if SAMPLE_BYTES == 1
static INLINE void weighted_row(PLANE_ARGS, int x, int y, int width, int height, weights_t weights, int is_centre,
                                uint *sums)
{
    const int row = clamp(y, 0, height - 1);
    /* Bytes 0..3, 4..7 and 8..9. */
    uint low, middle, high;
#if WORDS
    __global const uint *all = (__global const uint *)src;
    const int from = (int)src_offset + row * (int)src_stride + x;
    const int last = ((int)src_offset + (height - 1) * (int)src_stride + width - 1) >> 2;
    const int word = from >> 2;
    const uint select = 0x3210u + 0x1111u * (uint)(from & 3);
    const uint second = all[clamp(word + 1, 0, last)];
    const uint third = all[clamp(word + 2, 0, last)];
    low = permute(all[clamp(word, 0, last)], second, select);
    middle = permute(second, third, select);
    /* Neighbours have two samples, so theirs end in the third word. */
    high = permute(third, is_centre ? all[clamp(word + 3, 0, last)] : 0u, select);
    if (is_centre) {
        if (x < 0)
            low = (low & ~0xffu) | (low >> 8 & 0xffu);
        const int past = width - x;
        if (past < SAMPLES) {
            const int edge = past - 1;
            const uint at_edge = (edge < 4 ? low : edge < 8 ? middle : high) >> (8 * (edge & 3)) & 0xffu;
            const uint beside = at_edge << (8 * (past & 3));
            const uint others = ~(0xffu << (8 * (past & 3)));
            if (past < 4)
                low = (low & others) | beside;
            else if (past < 8)
                middle = (middle & others) | beside;
            else
                high = (high & others) | beside;
        }
    }
#else
    low = middle = high = 0;
#pragma unroll 1
    for (int i = 0; i < SAMPLES; i++) {
        const uint sample = PLANE_SAMPLE(clamp(x + i, 0, width - 1), row) << (8 * (i & 3));
        low |= i < 4 ? sample : 0u;
        middle |= i >= 4 && i < 8 ? sample : 0u;
        high |= i >= 8 ? sample : 0u;
    }
#endif
    const uint here = weights.first | weights.second << 8 | weights.third << 16;
    const uint next = here << 8;
    const uint words[4] = {low, permute(low, middle, 0x5432u), middle, permute(middle, high, 0x5432u)};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[2 * i] = dot4(words[i], here, 0u);
        sums[2 * i + 1] = dot4(words[i], next, 0u);
    }
}
#else
static INLINE void weighted_row(PLANE_ARGS, int x, int y, int width, int height, weights_t weights, int is_centre,
                                uint *sums)
{
    const int row = clamp(y, 0, height - 1);
    uint s[SAMPLES];
#pragma unroll
    for (int i = 0; i < SAMPLES; i++)
        s[i] = PLANE_SAMPLE(clamp(x + i, 0, width - 1), row);
#pragma unroll
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

/* Whether a pixel is marked: upper + bright <= centre or centre + dark <= lower. Without branches, which a GPU's work-items
 * would take in turns. */
#if SAMPLE_BYTES == 1
/* Sums are below 2^24, a threshold that none reaches 2^28. */
#define UNREACHED (1 << 28)
static uint is_marked(uint upper, uint lower, uint centre, uint bright, uint dark)
{
    return ((upper + bright - centre - 1u) | (centre + dark - lower - 1u)) >> 31;
}
#else
#define UNREACHED 0xffffffffu
static uint is_marked(uint upper, uint lower, uint centre, uint bright, uint dark)
{
    return ((uint)(centre >= upper) & (uint)(centre - upper >= bright)) |
           ((uint)(lower >= centre) & (uint)(lower - centre >= dark));
}
#endif

/* Compares the pixels of a block at (x, top) in one of the ways of judged_pixels(). `wanted` and `bits`: of each row. */
static INLINE void compare_block(PLANE_ARGS, int x, int top, int rows, int width, int height, comparison_t c,
                                 int missing, int theta, int flags, const uint *wanted, uint *bits)
{
    const judged_t judged = judged_pixels(c, missing, width, height);
    const uint columns = item_columns(judged.columns, x);
    if (!columns || judged.rows.x >= top + rows || judged.rows.y <= top)
        return;
    const uint hole = item_columns(judged.hole_columns, x);
    if (!(columns & ~hole) && judged.hole_rows.x <= top && top + rows <= judged.hole_rows.y)
        return;
    const side_t left = side_of(missing == 1 ? taps_of(c.double_dx, c.double_dy) : taps_of(-c.dx, -c.dy));
    const side_t right = side_of(missing == 2 ? taps_of(-c.double_dx, -c.double_dy) : taps_of(c.dx, c.dy));
    const uint blur_x = MODE & MATCHED ? (uint)blur_of(c.dx, MATCHED) : 0u;
    const uint blur_y = MODE & MATCHED ? (uint)blur_of(c.dy, MATCHED) : 0u;
    const weights_t of_centre = {blur_x, blur_x ? 256u - 2u * blur_x : 1u, blur_x, blur_x ? 1u : 256u};
    const uint own = (256u - 2u * blur_y) * of_centre.scale;
    const uint beside = blur_y * of_centre.scale;
    const uint least = (uint)min((ulong)THETA(theta), (ulong)UNREACHED);
    const uint bright = flags & BRIGHT ? least : UNREACHED;
    const uint dark = flags & DARK ? least : UNREACHED;
    uint left_top[LATTICE_PIXELS], left_bottom[LATTICE_PIXELS], right_top[LATTICE_PIXELS], right_bottom[LATTICE_PIXELS];
    uint above[LATTICE_PIXELS], middle[LATTICE_PIXELS], below[LATTICE_PIXELS];
    weighted_row(PLANE, x + left.column, top + left.top, width, height, left.along_x, 0, left_top);
    weighted_row(PLANE, x + right.column, top + right.top, width, height, right.along_x, 0, right_top);
    weighted_row(PLANE, x - 1, top - 1, width, height, of_centre, 1, above);
    weighted_row(PLANE, x - 1, top, width, height, of_centre, 1, middle);
#pragma unroll
    for (int row = 0; row < BLOCK_ROWS; row++) {
        const int y = top + row;
        weighted_row(PLANE, x + left.column, y + left.top + 1, width, height, left.along_x, 0, left_bottom);
        weighted_row(PLANE, x + right.column, y + right.top + 1, width, height, right.along_x, 0, right_bottom);
        weighted_row(PLANE, x - 1, y + 1, width, height, of_centre, 1, below);
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
            /* Not shifted bit by bit: Oclgrind 21.10 has no rotation of two words. */
            marked |= is_marked(upper, lower, centre, bright, dark) << (LATTICE_PIXELS - 1 - i);
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
    for (int i = 0; i < comparison_count; i++)
        for (int missing = 0; missing < ways; missing++)
            compare_block(PLANE, x, first + from, min(BLOCK_ROWS, rows - from), width, height, comparisons[i], missing,
                          theta, flags, wanted, bits);
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
