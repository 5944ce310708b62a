/* Appended to nvidia.cl and pitch_threshold_runs.cl. Compares 16 pixels of 8 bits by dot products of four bytes.
 *
 * Along x the two taps of a neighbour are adjacent in a run. One dot product, with weight 0 for the
 * other bytes of the word, yields the neighbour; no byte is extracted.
 *
 * Weights must fit bytes. A whole distance (F = 0) would need the weight 256. Its comparison is
 * divided by 256 instead: weights 0 and 1, thresholds rounded up. All its terms are multiples of 256,
 * so no result changes.
 */

typedef struct {
    limits_t limits;
    /* Weights of a neighbour's two taps, in bytes 0 and 1. In `left` the far tap comes first. */
    uint left, right;
    /* Weights of the matched centre's three taps, in bytes 0, 1 and 2. */
    uint centre;
    /* Weight of the plain centre: 256, or 1 where F = 0. */
    int scale;
} comparer_t;

static comparer_t comparer_of(comparison_t c, int theta, int flags)
{
    comparer_t k;
    const uint w1 = (uint)c.fraction;
    const uint w0 = 256u - w1;
    const uint bend = (uint)c.blur;
    if (c.fraction == 0) {
        k.limits = limits_of((theta + 255) / 256, (2 * theta + 255) / 256, flags);
        k.left = 1u << 8;
        k.right = 1u;
        k.scale = 1;
    } else {
        k.limits = limits_of(theta, 2 * theta, flags);
        k.left = w1 | (w0 << 8);
        k.right = w0 | (w1 << 8);
        k.scale = 256;
    }
    k.centre = bend | ((256u - 2u * bend) << 8) | (bend << 16);
    return k;
}

/* The words of a run shifted by half a word. Taps that cross a word boundary of the run lie within
 * one of these. */
static void turn_run(const uint *run, int words, uint *turned)
{
#pragma unroll
    for (int i = 0; i < words; i++)
        turned[i] = permute(run[i], run[i + 1], 0x5432);
}

/* acc plus the weighted sum of `taps` bytes from byte i of a run; i and taps are constants. */
static uint sum_at(const uint *run, const uint *turned, int i, int taps, uint weights, uint acc)
{
    return (i & 3) + taps <= 4 ? dot4(run[i >> 2], weights << (8 * (i & 3)), acc)
                               : dot4(turned[(i - 2) >> 2], weights << (8 * ((i - 2) & 3)), acc);
}

/* Along x, from byte `at`. `minimum` and `matched` are constants. */
static uint compare_x(__global const uchar *src, uint at, comparison_t c, const comparer_t k, int minimum, int matched)
{
    uint left[RUN_WORDS], right[RUN_WORDS], s[LONG_RUN_WORDS];
    uint left_turned[4], right_turned[4], s_turned[5];
    load_run(src, at - (c.whole + 1), left);
    load_run(src, at + c.whole, right);
    turn_run(left, 4, left_turned);
    turn_run(right, 4, right_turned);
    if (matched) {
        load_long_run(src, at - 1, LONG_RUN_WORDS, s);
        turn_run(s, 5, s_turned);
    } else {
        load_pixels(src, at, s);
    }
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS; i++) {
        const int centre = matched ? (int)sum_at(s, s_turned, i, 3, k.centre, 0) : k.scale * run_sample(s, i);
        int marked;
        if (minimum) {
            marked = marked_by_minimum(centre, (int)sum_at(left, left_turned, i, 2, k.left, 0),
                                       (int)sum_at(right, right_turned, i, 2, k.right, 0), k.limits);
        } else {
            const uint sum = sum_at(left, left_turned, i, 2, k.left, (uint)(k.limits.bias - 2 * centre));
            marked = sum_at(right, right_turned, i, 2, k.right, sum) >= k.limits.span;
        }
        bits |= marked ? WIDE_BIT(i) : 0u;
    }
    return bits;
}

/* Along y the taps of a neighbour lie in two rows. Each word gets far, near, far, near of two pixels. */
static void load_pairs(__global const uchar *src, uint near, uint far, uint *pairs)
{
    uint n[RUN_WORDS], f[RUN_WORDS];
    load_pixels(src, near, n);
    load_pixels(src, far, f);
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS / 2; i++)
        pairs[i] = permute(f[i >> 1], n[i >> 1], i & 1 ? 0x7362 : 0x5140);
}

/* Byte i of a run, extracted by a dot product: with three runs, shifts are the bottleneck. */
static int sample_at(const uint *run, int i) { return (int)dot4(run[i >> 2], 1u << (8 * (i & 3)), 0); }

static uint compare_y(__global const uchar *src, uint at, int stride, comparison_t c, const comparer_t k, int minimum,
                      int matched)
{
    const int near = c.whole * stride;
    const int far = comparison_margin(c) * stride;
    uint left[WIDE_PIXELS / 2], right[WIDE_PIXELS / 2];
    uint s[RUN_WORDS], before[RUN_WORDS], after[RUN_WORDS];
    load_pairs(src, at - near, at - far, left);
    load_pairs(src, at + near, at + far, right);
    load_pixels(src, at, s);
    if (matched) {
        load_pixels(src, at - stride, before);
        load_pixels(src, at + stride, after);
    }
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS; i++) {
        const uint weights = k.left << (16 * (i & 1));
        const int sample = matched ? sample_at(s, i) : run_sample(s, i);
        int centre = k.scale * sample;
        if (matched)
            centre += c.blur * (sample_at(before, i) - 2 * sample + sample_at(after, i));
        int marked;
        if (minimum) {
            marked = marked_by_minimum(centre, (int)dot4(left[i >> 1], weights, 0),
                                       (int)dot4(right[i >> 1], weights, 0), k.limits);
        } else {
            const uint sum = dot4(left[i >> 1], weights, (uint)(k.limits.bias - 2 * centre));
            marked = dot4(right[i >> 1], weights, sum) >= k.limits.span;
        }
        bits |= marked ? WIDE_BIT(i) : 0u;
    }
    return bits;
}

/* Without blur (A = 0) the centre is the plain one, whose weight 256 does not fit a byte. */
static int is_matched(comparison_t c) { return c.blur != 0; }
