/* Appended to pitch_threshold_runs.cl. Compares a run of pixels in 32-bit integers; any sample size. */

typedef struct {
    limits_t limits;
    int w0, w1;
} comparer_t;

static comparer_t comparer_of(comparison_t c, int theta, int flags)
{
    comparer_t k;
    k.limits = limits_of(theta, 2 * theta, flags);
    k.w1 = c.fraction;
    k.w0 = 256 - c.fraction;
    return k;
}

static int marked_pixel(int left0, int left1, int right0, int right1, int centre, const comparer_t k,
                        int minimum)
{
    if (minimum)
        return marked_by_minimum(centre, k.w0 * left0 + k.w1 * left1,
                                 k.w0 * right0 + k.w1 * right1, k.limits);
    return (uint)(k.limits.bias - 2 * centre + k.w0 * (left0 + right0) + k.w1 * (left1 + right1)) >=
           k.limits.span;
}

/* Along x, from byte `at`. `minimum` and `matched` are constants. */
static uint compare_x(__global const uchar *src, uint at, comparison_t c, const comparer_t k, int minimum, int matched)
{
    uint left[RUN_WORDS], right[RUN_WORDS], s[RUN_WORDS], before[RUN_WORDS];
    /* The far tap of a neighbour is the sample next to the near tap, in the same run. */
    load_run(src, at - (c.whole + 1) * SAMPLE_BYTES, left);
    load_run(src, at + c.whole * SAMPLE_BYTES, right);
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
            centre += c.blur * (run_sample(before, i) - 2 * sample + run_sample(s, i + 1));
        bits |= marked_pixel(run_sample(left, i + 1), run_sample(left, i), run_sample(right, i),
                             run_sample(right, i + 1), centre, k, minimum)
                    ? WIDE_BIT(i)
                    : 0u;
    }
    return bits;
}

static uint compare_y(__global const uchar *src, uint at, int stride, comparison_t c, const comparer_t k, int minimum,
                      int matched)
{
    uint left0[RUN_WORDS], left1[RUN_WORDS], right0[RUN_WORDS], right1[RUN_WORDS];
    uint s[RUN_WORDS], before[RUN_WORDS], after[RUN_WORDS];
    const int near = c.whole * stride;
    const int far = comparison_margin(c) * stride;
    load_pixels(src, at - near, left0);
    load_pixels(src, at - far, left1);
    load_pixels(src, at + near, right0);
    load_pixels(src, at + far, right1);
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
            centre += c.blur * (run_sample(before, i) - 2 * sample + run_sample(after, i));
        bits |= marked_pixel(run_sample(left0, i), run_sample(left1, i), run_sample(right0, i),
                             run_sample(right1, i), centre, k, minimum)
                    ? WIDE_BIT(i)
                    : 0u;
    }
    return bits;
}

static int is_matched(comparison_t c) { return 1; }
