/* Appended to pitch_threshold_items.cl. Judges a block of pixels with any list of comparisons, in 32-bit integers; any
 * sample size. MODE is the mode of all of them.
 *
 * All pixels of a block are compared without branches; afterwards the bits of pixels that lack a neighbour are
 * cleared. Pixels are judged one by one only where they lack a neighbour, where a load would reach past the
 * memory object (the frame's first and last pixels), or where words would hold halves of 16-bit samples.
 *
 * Runs of samples start at any byte: they are read as aligned words, then shifted, so that adjacent lanes read
 * adjacent words. Memory objects must be aligned.
 */
#define COMPARISONS_ARGS __constant const comparison_t *comparisons, int comparison_count
#define COMPARISONS comparisons, comparison_count

/* Words of a run of WIDE_PIXELS + 1 samples. */
#define RUN_WORDS 5
/* All bytes read lie within RUN_BEFORE bytes before a run's start and RUN_BYTES from it. */
#define RUN_BEFORE 15
#define RUN_BYTES 32

static uint funnel(uint low, uint high, uint shift)
{
    return (uint)((((ulong)high << 32) | low) >> shift);
}

/* Reads WIDE_PIXELS + 1 samples from byte `at`, as RUN_WORDS words.
 *
 * Two 16-byte loads and selects cost the cache less than a load per word: adjacent lanes would make
 * those 16 bytes apart. */
static void load_run(__global const uchar *src, uint at, uint *run)
{
    const uint skew = at & 15u;
    __global const uint4 *from = (__global const uint4 *)(src + (at - skew));
    const uint4 v = from[0];
    const uint4 w = from[1];
    const int upper = skew & 8u;
    const uint a0 = upper ? v.z : v.x;
    const uint a1 = upper ? v.w : v.y;
    const uint a2 = upper ? w.x : v.z;
    const uint a3 = upper ? w.y : v.w;
    const uint a4 = upper ? w.z : w.x;
    const uint a5 = upper ? w.w : w.y;
    const int odd = skew & 4u;
    const uint b0 = odd ? a1 : a0;
    const uint b1 = odd ? a2 : a1;
    const uint b2 = odd ? a3 : a2;
    const uint b3 = odd ? a4 : a3;
    const uint b4 = odd ? a5 : a4;
    const uint shift = 8 * (skew & 3u);
    run[0] = funnel(b0, b1, shift);
    run[1] = funnel(b1, b2, shift);
    run[2] = funnel(b2, b3, shift);
    run[3] = funnel(b3, b4, shift);
    run[4] = b4 >> shift;
}

/* Reads only the WIDE_PIXELS samples from `at`; in ordinary frames they are 16-byte aligned. */
static void load_pixels(__global const uchar *src, uint at, uint *run)
{
    if ((at & 15u) == 0) {
        const uint4 v = *(__global const uint4 *)(src + at);
        run[0] = v.x;
        run[1] = v.y;
        run[2] = v.z;
        run[3] = v.w;
    } else {
        load_run(src, at, run);
    }
}

static int run_sample(const uint *run, int i)
{
#if SAMPLE_BYTES == 1
    return (int)((run[i >> 2] >> (8 * (i & 3))) & 0xffu);
#elif BIG_ENDIAN_SAMPLES
    const uint v = run[i >> 1] >> (16 * (i & 1));
    return (int)(((v & 0xffu) << 8) | ((v >> 8) & 0xffu));
#else
    return (int)((run[i >> 1] >> (16 * (i & 1))) & 0xffffu);
#endif
}

/* Weights of a neighbour's near and far tap, and thresholds in 1/256 grey level. A polarity that is off has the
 * threshold UNREACHED. */
typedef struct {
    int w0, w1;
    int bright, dark;
    /* One unsigned test for both polarities of `average`: a pixel is marked if
     * (uint)(left + right - 2*centre + bias) >= span. With a threshold of 0 span is 0: all are. */
    int bias;
    uint span;
} comparer_t;

static comparer_t comparer_of(comparison_t c, int theta, int flags)
{
    comparer_t k;
    k.w1 = c.fraction;
    k.w0 = 256 - c.fraction;
    k.bright = flags & BRIGHT ? theta : UNREACHED;
    k.dark = flags & DARK ? -theta : -UNREACHED;
    const int high = flags & BRIGHT ? 2 * theta : UNREACHED;
    const int low = min(flags & DARK ? -2 * theta : -UNREACHED, high - 1);
    k.bias = high - 1;
    k.span = (uint)(high - low - 1);
    return k;
}

static int marked_pixel(int left0, int left1, int right0, int right1, int centre, const comparer_t k)
{
    if (MODE & MINIMUM) {
        const int left = k.w0 * left0 + k.w1 * left1, right = k.w0 * right0 + k.w1 * right1;
        return centre - max(left, right) >= k.bright || centre - min(left, right) <= k.dark;
    }
    return (uint)(k.bias - 2 * centre + k.w0 * (left0 + right0) + k.w1 * (left1 + right1)) >= k.span;
}

/* The bits of the run of pixels from byte `at`, compared along x. */
static uint compare_x(__global const uchar *src, uint at, comparison_t c, const comparer_t k)
{
    uint left[RUN_WORDS], right[RUN_WORDS], s[RUN_WORDS], before[RUN_WORDS];
    /* The far tap of a neighbour is the sample next to the near tap, in the same run. */
    load_run(src, at - (c.whole + 1) * SAMPLE_BYTES, left);
    load_run(src, at + c.whole * SAMPLE_BYTES, right);
    if (MODE & MATCHED) {
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
        if (MODE & MATCHED)
            centre += c.blur * (run_sample(before, i) - 2 * sample + run_sample(s, i + 1));
        bits |= marked_pixel(run_sample(left, i + 1), run_sample(left, i), run_sample(right, i),
                             run_sample(right, i + 1), centre, k)
                    ? WIDE_BIT(i)
                    : 0u;
    }
    return bits;
}

/* The same along y. */
static uint compare_y(__global const uchar *src, uint at, int stride, comparison_t c, const comparer_t k)
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
    if (MODE & MATCHED) {
        load_pixels(src, at - stride, before);
        load_pixels(src, at + stride, after);
    }
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS; i++) {
        const int sample = run_sample(s, i);
        int centre = 256 * sample;
        if (MODE & MATCHED)
            centre += c.blur * (run_sample(before, i) - 2 * sample + run_sample(after, i));
        bits |= marked_pixel(run_sample(left0, i), run_sample(left1, i), run_sample(right0, i),
                             run_sample(right1, i), centre, k)
                    ? WIDE_BIT(i)
                    : 0u;
    }
    return bits;
}

/* Applies one comparison to the item's rows from byte `at`. */
static block_t compare_rows(__global const uchar *src, uint at, int rows, int stride, comparison_t c,
                            const comparer_t k)
{
    block_t bits = 0;
    at += (uint)((rows - 1) * stride);
    if (c.axis) {
        for (int row = 0; row < rows; row++, at -= (uint)stride)
            bits = (bits << WIDE_PIXELS) | compare_y(src, at, stride, c, k);
    } else {
        for (int row = 0; row < rows; row++, at -= (uint)stride)
            bits = (bits << WIDE_PIXELS) | compare_x(src, at, c, k);
    }
    return bits;
}

/* The marked pixels of `wanted`, a block at (x, top). */
static block_t judge_block(PLANE_ARGS, block_t wanted, int rows, int x, int top, int is_edge, int width, int height,
                           COMPARISONS_ARGS, int theta, int flags, uint src_len)
{
    const int stride = (int)src_stride;
    /* Bytes of the memory object before the block's first pixel, and from its last row's pixel. */
    const int start = (int)src_offset + top * stride + x * SAMPLE_BYTES;
    const int rest = (int)src_len - start - (rows - 1) * stride;
    const int whole_samples = ((start | stride) & (SAMPLE_BYTES - 1)) == 0;
    block_t bits = 0;
    for (int i = 0; i < comparison_count; i++) {
        const comparison_t c = comparisons[i];
        const int margin = comparison_margin(c);
        const int n = c.axis ? height : width;
        const block_t judged = judged_bits(wanted, c, rows, x, top, width, height);
        if ((flags & INWARD) && (c.axis ? top < margin || top + rows > height - margin : is_edge)) {
            const block_t lacks = inward_bits(wanted, c, inward_left(c, n), rows, x, top) |
                                  inward_bits(wanted, c, inward_right(c, n), rows, x, top);
            if (lacks)
                bits |= judge_singly(PLANE, lacks, rows, x, top, width, height, c, theta, flags);
        }
        if (judged == 0)
            continue;
        /* Bytes from a pixel to the farthest run that it needs. */
        const int reach = c.axis ? margin * stride : (c.whole + 1) * SAMPLE_BYTES;
        if (whole_samples && start >= reach + RUN_BEFORE && rest >= reach + RUN_BYTES) {
            const comparer_t k = comparer_of(c, theta, flags);
            bits |= judged & compare_rows(src, (uint)start, rows, stride, c, k);
        } else {
            bits |= judge_singly(PLANE, judged, rows, x, top, width, height, c, theta, flags);
        }
    }
    return bits;
}
