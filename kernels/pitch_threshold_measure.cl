/* Appended to pitch_threshold.cl. Differences of marked pixels. */
/* Pixels that are measured together: those of a byte of the mask. */
#define STEP 8

/* Pixel k of a byte of the mask. */
static int is_set(uint byte, int k) { return byte >> (STEP - 1 - k) & 1u; }

/* The samples of 8 adjacent pixels. */
static int8 load_samples(__global const uchar *p)
{
#if SAMPLE_BYTES == 1
    return convert_int8(as_uchar8(LOAD_ULONG(p)));
#elif BIG_ENDIAN_SAMPLES
    return convert_int8(SWAP_BYTES8(LOAD_USHORT8(p)));
#else
    return convert_int8(LOAD_USHORT8(p));
#endif
}

/* is_marked_by() for 8 pixels: 0 or -1 for each. */
static int8 are_marked_by(int8 centre, int8 left, int8 right, int theta, int flags, int8 *difference)
{
    int8 bright, dark;
    if (flags & MINIMUM) {
        const int8 l = centre - left;
        const int8 r = centre - right;
        bright = (l >= (int8)theta) & (r >= (int8)theta);
        dark = (l <= (int8)-theta) & (r <= (int8)-theta);
        *difference = (int8)2 * select(max(l, r), min(l, r), bright);
    } else {
        const int8 e = (int8)2 * centre - (left + right);
        bright = e >= (int8)(2 * theta);
        dark = e <= (int8)(-2 * theta);
        *difference = e;
    }
    return (bright & (int8)(flags & BRIGHT ? -1 : 0)) | (dark & (int8)(flags & DARK ? -1 : 0));
}

/* compare_pixel() for the pixels that lack a neighbour. */
static RARE int compare_at_edge(PLANE_ARGS, int x, int y, int width, int height, comparison_t c, int theta, int flags,
                                int *difference)
{
    return compare_pixel(PLANE, x, y, width, height, c, theta, flags, difference);
}

/* Measures the pixels of a byte of the mask from (x, y) on: the largest difference of the comparisons that mark a
 * pixel, the first of equals; `is_marked`: -1 if any does, otherwise 0. Only results of `wanted` pixels are
 * meaningful. */
static void measure_pixels(PLANE_ARGS, int x, int y, uint wanted, int width, int height,
                           __constant const comparison_t *comparisons, int comparison_count, int theta,
                           int flags, int8 *largest, int8 *is_marked)
{
    *largest = *is_marked = 0;
    for (int i = 0; i < comparison_count; i++) {
        const comparison_t c = comparisons[i];
        const int margin = comparison_margin(c);
        const int has_both = margin > 0 && (c.axis ? y >= margin && y < height - margin && x + STEP <= width
                                                   : x >= margin && x + STEP <= width - margin);
        int8 difference = 0, marks = 0;
        if (has_both) {
            /* Bytes along the axis from a pixel to the next one, and to the taps of its neighbours. Pixels that are not
             * wanted are measured too, so that a CPU needs no branches. */
            const long next = c.axis ? (long)src_stride : SAMPLE_BYTES;
            const long near = c.whole * next;
            const long far = margin * next;
            const int blur = flags & MATCHED ? c.blur : 0;
            const int8 weight = c.fraction;
            const int8 rest = 256 - c.fraction;
            __global const uchar *at =
                src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES;
            const int8 s = load_samples(at);
            const int8 left = rest * load_samples(at - near) + weight * load_samples(at - far);
            const int8 right = rest * load_samples(at + near) + weight * load_samples(at + far);
            int8 centre = (int8)256 * s;
            if (blur)
                centre += (int8)blur * (load_samples(at - next) - (int8)2 * s + load_samples(at + next));
            marks = are_marked_by(centre, left, right, theta, flags, &difference);
        } else {
#pragma unroll
            for (int k = 0; k < STEP; k++)
                if (is_set(wanted, k))
                    ((int *)&marks)[k] = -compare_at_edge(PLANE, x + k, y, width, height, c, theta, flags,
                                                          (int *)&difference + k);
        }
        const int8 is_larger = marks & (~*is_marked | (abs(difference) > abs(*largest)));
        *largest = select(*largest, difference, is_larger);
        *is_marked |= marks;
    }
}
