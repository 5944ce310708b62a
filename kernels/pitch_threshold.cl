/* Compares a repeating pattern with itself some pitches away and packs the result, 1 bit a pixel.
 *
 * pitch_threshold_bytes  Any device, buffer or image: one work-item a byte of the mask (8 pixels).
 * pitch_threshold_words  CPU, buffer: local size 1, each work-item a band of rows, 32 pixels a
 *                        step; bytes at frame edges one pixel at a time.
 * run_differences        One work-item a run of marked pixels: how much they differ.
 * mask_expand            Packed mask to one byte a pixel, 0 or 255: one work-item a packed byte.
 *
 * | argument      | meaning                                                                       |
 * | src           | the judged plane; samples side by side; any offset and stride                 |
 * | mask          | packed mask; every byte of every row is written; stride ceil(width/8)         |
 * | comparisons   | int4: axis (0 along x, 1 along y), P, F, A of SEMANTICS                       |
 * | rois          | int4: x0, y0, x1, y1, half-open, inside the frame                             |
 * | theta         | threshold in 1/256 grey levels, 0 .. 2^30-1                                   |
 * | flags         | MINIMUM, MATCHED, BRIGHT, DARK below (`math/pitch.rs` has their twins)         |
 * | defects       | counter of set bits, zero at entry                                            |
 *
 * Exactness: all sums are 32-bit integers in 1/256 grey level; with 16-bit samples they stay
 * under 2^26. A tap of weight 0 (F = 0) is never read outside the judged range.
 */
#define MINIMUM 1
#define MATCHED 2
#define BRIGHT 4
#define DARK 8

/* Widens the extent that one comparison judges: P + u. */
static int comparison_margin(int4 c) { return c.y + (c.z > 0 ? 1 : 0); }

/* One pixel under one comparison: whether it is marked, and its difference in 1/512 grey level,
 * which means something where it is. */
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

/* One pixel under every comparison that judges it. */
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
                                    __global uint *defects)
{
    const int column = get_global_id(0);
    const int y = get_global_id(1);
    if (column >= (int)mask_stride || y >= height)
        return;
    /* Regions lie inside the frame, so bits past the width stay 0. */
    const uint wanted = roi_bits(rois, roi_count, 8 * column, y, 8);
    const uint bits = wanted ? judge_byte(PLANE, wanted, 8 * column, y, width, height, comparisons,
                                          comparison_count, theta, flags)
                             : 0;
    mask[mask_offset + (size_t)y * mask_stride + column] = (uchar)bits;
    if (bits)
        atomic_add(defects, popcount(bits));
}

#if !USE_IMAGE

#if SAMPLE_BYTES == 1
#define LOAD_INT16(p) convert_int16(LOAD_UCHAR16(p))
#elif BIG_ENDIAN_SAMPLES
#define LOAD_INT16(p) convert_int16(SWAP_BYTES16(LOAD_USHORT16(p)))
#else
#define LOAD_INT16(p) convert_int16(LOAD_USHORT16(p))
#endif

/* 16 pixels from `p` on under one comparison; `step` is the bytes to the next pixel along the
 * comparison's axis. Two bytes of mask, the first in the low half. */
static uint compare16(__global const uchar *p, long step, int4 c, int theta, int flags)
{
    const long near = c.y * step;
    const long far = comparison_margin(c) * step;
    const int w1 = c.z;
    const int w0 = 256 - w1;
    const int16 s = LOAD_INT16(p);
    const int16 left = LOAD_INT16(p - near) * w0 + LOAD_INT16(p - far) * w1;
    const int16 right = LOAD_INT16(p + near) * w0 + LOAD_INT16(p + far) * w1;
    int16 centre = s * 256;
    if (flags & MATCHED)
        centre += (LOAD_INT16(p - step) - s * 2 + LOAD_INT16(p + step)) * c.w;
    int16 marked = 0;
    if (flags & MINIMUM) {
        const int16 l = centre - left;
        const int16 r = centre - right;
        if (flags & BRIGHT)
            marked |= (l >= theta) & (r >= theta);
        if (flags & DARK)
            marked |= (l <= -theta) & (r <= -theta);
    } else {
        const int16 e = centre * 2 - (left + right);
        if (flags & BRIGHT)
            marked |= e >= 2 * theta;
        if (flags & DARK)
            marked |= e <= -2 * theta;
    }
    /* The lowest bit of each byte gathered into the top byte, first pixel highest. */
    const ulong2 lanes = as_ulong2(convert_uchar16(marked)) & 0x0101010101010101UL;
    const ulong2 bits = (lanes * 0x8040201008040201UL) >> 56;
    return (uint)bits.x | ((uint)bits.y << 8);
}

__kernel void pitch_threshold_words(PLANE_ARGS, int width, int height, __global uchar *mask,
                                    ulong mask_offset, uint mask_stride,
                                    __constant const int4 *comparisons, int comparison_count,
                                    __global const int4 *rois, int roi_count, int theta, int flags,
                                    __global uint *defects)
{
    const int band = (height + (int)get_global_size(0) - 1) / (int)get_global_size(0);
    const int y0 = (int)get_global_id(0) * band;
    const int y1 = min(y0 + band, height);
    const int words = ((int)mask_stride + 3) / 4;
    uint count = 0;

    for (int y = y0; y < y1; y++) {
        __global const uchar *row = src + src_offset + (size_t)y * src_stride;
        __global uchar *out = mask + mask_offset + (size_t)y * mask_stride;
        for (int word = 0; word < words; word++) {
            const int x = 32 * word;
            /* Most significant byte first here; memory order is made at the end. */
            const uint wanted_left = roi_bits(rois, roi_count, x, y, 16);
            const uint wanted_right = roi_bits(rois, roi_count, x + 16, y, 16);
            uint bits = 0;
            if (wanted_left | wanted_right) {
                int whole = x + 32 <= width;
                for (int i = 0; whole && i < comparison_count; i++) {
                    const int4 c = comparisons[i];
                    const int margin = comparison_margin(c);
                    if (c.x) {
                        if (y >= margin && y < height - margin)
                            bits |= compare16(row + x * SAMPLE_BYTES, src_stride, c, theta, flags) |
                                    (compare16(row + (x + 16) * SAMPLE_BYTES, src_stride, c, theta, flags) << 16);
                    } else if (x >= margin && x + 32 <= width - margin) {
                        bits |= compare16(row + x * SAMPLE_BYTES, SAMPLE_BYTES, c, theta, flags) |
                                (compare16(row + (x + 16) * SAMPLE_BYTES, SAMPLE_BYTES, c, theta, flags) << 16);
                    } else if (x + 32 > margin && x < width - margin) {
                        whole = 0;
                    }
                }
                /* Memory order: byte 0 holds the leftmost pixels. */
                const uint wanted = ((wanted_left >> 8) & 0xffu) | ((wanted_left & 0xffu) << 8) |
                                    ((wanted_right & 0xff00u) << 8) | ((wanted_right & 0xffu) << 24);
                if (whole) {
                    bits &= wanted;
                } else {
                    bits = 0;
                    for (int j = 0; j < 4; j++) {
                        const uint w = (wanted >> (8 * j)) & 0xffu;
                        if (w)
                            bits |= judge_byte(PLANE, w, x + 8 * j, y, width, height, comparisons,
                                               comparison_count, theta, flags)
                                    << (8 * j);
                    }
                }
            }
            if (4 * word + 4 <= (int)mask_stride)
                STORE_UINT(out + 4 * word, bits);
            else
                for (int j = 0; 4 * word + j < (int)mask_stride; j++)
                    out[4 * word + j] = (uchar)(bits >> (8 * j));
            count += popcount(bits);
        }
    }
    if (count)
        atomic_add(defects, count);
}

__kernel void mask_expand(__global const uchar *packed, uint packed_stride, __global uchar *dst,
                          ulong dst_offset, uint dst_stride, int width, int height)
{
    const int column = get_global_id(0);
    const int y = get_global_id(1);
    if (column >= (int)packed_stride || y >= height)
        return;
    const uint bits = packed[(size_t)y * packed_stride + column];
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;
    for (int i = 0; i < 8 && 8 * column + i < width; i++)
        out[8 * column + i] = (bits & (0x80u >> i)) ? 255 : 0;
}

/* Twins: math/components.rs (Run), operators/run_differences.rs (RunDifference). */
typedef struct { uint x0, x1, y, defect; } run_t;
typedef struct { long sum; int peak; uint signs; } run_difference_t;

__kernel void run_differences(PLANE_ARGS, int width, int height,
                              __constant const int4 *comparisons, int comparison_count, int theta,
                              int flags, __global const run_t *runs, uint run_count,
                              __global run_difference_t *out)
{
    const uint n = get_global_id(0);
    if (n >= run_count)
        return;
    const run_t run = runs[n];
    run_difference_t result = {0, 0, 0};
    for (uint x = run.x0; x < run.x1; x++) {
        /* Of several comparisons that mark the pixel, the largest difference; the first of equals. */
        int largest = 0;
        int found = 0;
        for (int i = 0; i < comparison_count; i++) {
            int difference;
            if (compare_pixel(PLANE, (int)x, (int)run.y, width, height, comparisons[i], theta,
                              flags, &difference) &&
                (!found || abs(difference) > abs(largest))) {
                largest = difference;
                found = 1;
            }
        }
        result.sum += largest;
        result.signs |= largest > 0 ? 1 : largest < 0 ? 2 : 4;
        if (abs(largest) > abs(result.peak))
            result.peak = largest;
    }
    out[n] = result;
}

#endif
