/* Appended to pitch_runs.cl. Compares a run of pixels in 32-bit integers; any sample size. */

typedef struct {
    limits_t limits;
    neighbour_t left, right;
    int blur;
} comparer_t;

/* Prepares a comparison; returns whether this file can do it. */
static int make_comparer(comparison_t c, const neighbour_t left, const neighbour_t right, int theta, int flags,
                         comparer_t *k)
{
    k->limits = limits_of(theta, 2 * theta, flags);
    k->left = left;
    k->right = right;
    k->blur = c.blur;
    return 1;
}

static int marked_pixel(int left0, int left1, int right0, int right1, int centre, const comparer_t k,
                        int minimum)
{
    const int left = k.left.w_first * left0 + k.left.w_second * left1;
    const int right = k.right.w_first * right0 + k.right.w_second * right1;
    if (minimum)
        return marked_by_minimum(centre, left, right, k.limits);
    return (uint)(k.limits.bias - 2 * centre + left + right) >= k.limits.span;
}

/* Along x, from byte `at`. `minimum` and `matched` are constants. */
static uint compare_x(__global const uchar *src, uint at, const comparer_t k, int minimum, int matched)
{
    uint left[RUN_WORDS], right[RUN_WORDS], s[RUN_WORDS], before[RUN_WORDS];
    load_run(src, at + k.left.start * SAMPLE_BYTES, left);
    load_run(src, at + k.right.start * SAMPLE_BYTES, right);
    if (matched) {
        load_run(src, at, s);
        load_run(src, at - SAMPLE_BYTES, before);
    } else {
        load_pixels(src, at, s);
    }
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS; i++) {
        const int sample = run_sample(s, i);
        int centre = 256 * sample;
        if (matched)
            centre += k.blur * (run_sample(before, i) - 2 * sample + run_sample(s, i + 1));
        bits |= marked_pixel(run_sample(left, i), run_sample(left, i + 1), run_sample(right, i),
                             run_sample(right, i + 1), centre, k, minimum)
                    ? WIDE_BIT(i)
                    : 0u;
    }
    return bits;
}

static uint compare_y(__global const uchar *src, uint at, int stride, const comparer_t k, int minimum,
                      int matched)
{
    uint left0[RUN_WORDS], left1[RUN_WORDS], right0[RUN_WORDS], right1[RUN_WORDS];
    uint s[RUN_WORDS], before[RUN_WORDS], after[RUN_WORDS];
    load_pixels(src, at + k.left.first * stride, left0);
    load_pixels(src, at + k.left.second * stride, left1);
    load_pixels(src, at + k.right.first * stride, right0);
    load_pixels(src, at + k.right.second * stride, right1);
    load_pixels(src, at, s);
    if (matched) {
        load_pixels(src, at - stride, before);
        load_pixels(src, at + stride, after);
    }
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS; i++) {
        const int sample = run_sample(s, i);
        int centre = 256 * sample;
        if (matched)
            centre += k.blur * (run_sample(before, i) - 2 * sample + run_sample(after, i));
        bits |= marked_pixel(run_sample(left0, i), run_sample(left1, i), run_sample(right0, i),
                             run_sample(right1, i), centre, k, minimum)
                    ? WIDE_BIT(i)
                    : 0u;
    }
    return bits;
}

static int is_matched(comparison_t c) { return 1; }
