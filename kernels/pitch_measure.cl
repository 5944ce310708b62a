/* Appended to pitch_threshold.cl. Differences of marked pixels. */
/* Pixels that are measured together: those of a byte of the mask. */
#define STEP 8

/* Pixel k of a byte of the mask. */
static int is_set(uint byte, int k) { return byte >> (STEP - 1 - k) & 1u; }

/* Measures the pixels of a byte of the mask from (x, y) on: the largest difference of the comparisons that mark a
 * pixel, the first of equals; `is_marked`: whether any does. Only results of `wanted` pixels are meaningful. */
static void measure_pixels(PLANE_ARGS, int x, int y, uint wanted, int width, int height,
                           __constant const comparison_t *comparisons, int comparison_count, int theta,
                           int flags, int *largest, int *is_marked)
{
#pragma unroll
    for (int k = 0; k < STEP; k++)
        largest[k] = is_marked[k] = 0;
    for (int i = 0; i < comparison_count; i++) {
        const comparison_t c = comparisons[i];
        const int margin = comparison_margin(c);
        const int has_both = margin > 0 && (c.axis ? y >= margin && y < height - margin && x + STEP <= width
                                                   : x >= margin && x + STEP <= width - margin);
        if (has_both) {
            /* Bytes along the axis from a pixel to the next one, and to the taps of its neighbours. */
            const long next = c.axis ? (long)src_stride : SAMPLE_BYTES;
            const long near = c.whole * next;
            const long far = margin * next;
            const int blur = flags & MATCHED ? c.blur : 0;
            __global const uchar *at =
                src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES;
            /* Pixels that are not wanted are measured too, so that a CPU needs no branches. */
#pragma unroll
            for (int k = 0; k < STEP; k++, at += SAMPLE_BYTES) {
                const int s = (int)load_sample(at);
                const int left = (256 - c.fraction) * (int)load_sample(at - near) +
                                 c.fraction * (int)load_sample(at - far);
                const int right = (256 - c.fraction) * (int)load_sample(at + near) +
                                  c.fraction * (int)load_sample(at + far);
                int centre = 256 * s;
                if (blur)
                    centre += blur * ((int)load_sample(at - next) - 2 * s + (int)load_sample(at + next));
                int difference;
                const int marks = is_marked_by(centre, left, right, theta, flags, &difference);
                const int is_larger = marks & (!is_marked[k] | (abs(difference) > abs(largest[k])));
                largest[k] = is_larger ? difference : largest[k];
                is_marked[k] |= marks;
            }
        } else {
#pragma unroll
            for (int k = 0; k < STEP; k++) {
                int difference;
                if (is_set(wanted, k) &&
                    compare_pixel(PLANE, x + k, y, width, height, c, theta, flags, &difference) &&
                    (!is_marked[k] || abs(difference) > abs(largest[k]))) {
                    largest[k] = difference;
                    is_marked[k] = 1;
                }
            }
        }
    }
}
