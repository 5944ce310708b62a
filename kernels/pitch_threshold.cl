/* Compares a repeating pattern with itself some pitches away and packs the result, 1 bit per pixel.
 * docs/semantics.md defines it. Each variant has a file; this file holds the shared code and the plain
 * variant.
 *
 * pitch_threshold_bytes  Any device, buffer or image: one work-item per byte of the mask (8 pixels).
 * pitch_threshold_words  CPU, buffer: local size 1; each work-item judges a band of rows, 32 pixels
 *                        per step, in 16-bit lanes (32-bit lanes for 16-bit samples).
 * pitch_wide_*           GPU, buffer: one work-item per 16 bytes of a row, read as aligned words;
 *                        one kernel per mode; 32-bit integers or dot products of bytes.
 * run_differences        One work-item per run of marked pixels: sums the run's differences.
 * mask_expand            Packed mask to one byte per pixel, 0 or 255: one work-item per packed byte.
 *
 * | argument      | meaning                                                                       |
 * | src           | the judged plane; adjacent samples; any offset and stride                     |
 * | mask          | packed mask; every byte of every row is written; stride ceil(width/8)         |
 * | comparisons   | int4: axis (0 along x, 1 along y), P, F, A of docs/semantics.md               |
 * | rois          | int4: x0, y0, x1, y1, half-open, inside the frame                             |
 * | theta         | threshold in 1/256 grey levels, 0 .. 2^30-1                                   |
 * | flags         | MINIMUM, MATCHED, BRIGHT, DARK; twins in operators/pitch_threshold/settings.rs |
 * | defects       | two counters of marked pixels: the launch adds to defects[slot], which is 0 at |
 * |               | entry, and zeroes the other one for the next frame                            |
 * | slot          | 0 or 1                                                                        |
 *
 * Exactness: all sums are 32-bit integers in 1/256 grey level; with 16-bit samples they stay
 * under 2^26. pitch_words.cl needs fewer bits and says why. A tap of weight 0 (F = 0) is never read
 * outside the judged range.
 */
#define MINIMUM 1
#define MATCHED 2
#define BRIGHT 4
#define DARK 8
/* Exceeds every difference: 65535 * 256 * 2, and the matched centre's overshoot. */
#define UNREACHED (1 << 28)

/* P + u: pixels at each end of the axis that the comparison cannot judge. */
static int comparison_margin(int4 c) { return c.y + (c.z > 0 ? 1 : 0); }

/* Whether one comparison marks a pixel. `difference` gets the pixel's difference in 1/512 grey level;
 * it is only meaningful for a marked pixel. */
static int compare_pixel(PLANE_ARGS, int x, int y, int width, int height, int4 c, int theta,
                         int flags, int *difference)
{
    const int margin = comparison_margin(c);
    const int at = c.x ? y : x;
    if (at < margin || at > (c.x ? height : width) - 1 - margin)
        return 0;
    const int dx = c.x ? 0 : 1;
    const int dy = c.x ? 1 : 0;
    const int far = margin;
    const int w1 = c.z;
    const int w0 = 256 - w1;
    const int s = (int)PLANE_SAMPLE(x, y);
    const int left = w0 * (int)PLANE_SAMPLE(x - c.y * dx, y - c.y * dy) +
                     w1 * (int)PLANE_SAMPLE(x - far * dx, y - far * dy);
    const int right = w0 * (int)PLANE_SAMPLE(x + c.y * dx, y + c.y * dy) +
                      w1 * (int)PLANE_SAMPLE(x + far * dx, y + far * dy);
    int centre = 256 * s;
    if (flags & MATCHED)
        centre += c.w * ((int)PLANE_SAMPLE(x - dx, y - dy) - 2 * s +
                         (int)PLANE_SAMPLE(x + dx, y + dy));
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

/* Whether any comparison marks a pixel. */
static int judge(PLANE_ARGS, int x, int y, int width, int height,
                 __constant const int4 *comparisons, int comparison_count, int theta, int flags)
{
    int difference;
    for (int i = 0; i < comparison_count; i++)
        if (compare_pixel(PLANE, x, y, width, height, comparisons[i], theta, flags, &difference))
            return 1;
    return 0;
}

/* Bits of the pixels x .. x+count-1 that lie in a region; bit count-1 is pixel x. */
static uint roi_bits(__global const int4 *rois, int roi_count, int x, int y, int count)
{
    uint bits = 0;
    for (int i = 0; i < roi_count; i++) {
        const int4 r = rois[i];
        if (y < r.y || y >= r.w)
            continue;
        const int from = clamp(r.x - x, 0, count);
        const int to = clamp(r.z - x, 0, count);
        if (from < to)
            bits |= ((1u << (to - from)) - 1u) << (count - to);
    }
    return bits;
}

static uint judge_byte(PLANE_ARGS, uint wanted, int x, int y, int width, int height,
                       __constant const int4 *comparisons, int comparison_count, int theta,
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

__kernel void pitch_threshold_bytes(PLANE_ARGS, int width, int height, __global uchar *mask,
                                    ulong mask_offset, uint mask_stride,
                                    __constant const int4 *comparisons, int comparison_count,
                                    __global const int4 *rois, int roi_count, int theta, int flags,
                                    __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        defects[slot ^ 1u] = 0;
    const int column = get_global_id(0);
    const int y = get_global_id(1);
    if (column >= (int)mask_stride || y >= height)
        return;
    /* Regions lie inside the frame: bits past the width stay 0. */
    const uint wanted = roi_bits(rois, roi_count, 8 * column, y, 8);
    const uint bits = wanted ? judge_byte(PLANE, wanted, 8 * column, y, width, height, comparisons,
                                          comparison_count, theta, flags)
                             : 0;
    mask[mask_offset + (size_t)y * mask_stride + column] = (uchar)bits;
    if (bits)
        atomic_add(&defects[slot], popcount(bits));
}
