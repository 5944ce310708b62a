/* Appended to nvidia.cl, presence_tiles.cl and pitch_runs.cl. Compares 16 pixels of 8 bits by dot products of
 * four bytes.
 *
 * Along x the two taps of a neighbour are adjacent in a run. One dot product, with weight 0 for the
 * other bytes of the word, yields the neighbour; no byte is extracted.
 *
 * Weights must fit bytes. A whole distance would need the weight 256. If both neighbours' distances are
 * whole, the comparison is divided by 256 instead: weights 0 and 1, thresholds rounded up. All its terms are
 * multiples of 256, so no result changes.
 */

typedef struct {
    limits_t limits;
    /* Samples to the taps; see neighbour_t. */
    int left_start, left_first, left_second;
    int right_start, right_first, right_second;
    /* Weights of a neighbour's taps, in bytes 0 and 1. */
    uint left, right;
    /* Weights of the matched centre's three taps, in bytes 0, 1 and 2. */
    uint centre;
    /* Weight of the plain centre: 256, or 1 where distances are whole. */
    int scale;
    int blur;
} comparer_t;

/* Prepares a comparison; returns whether this file can do it: either both distances are whole or none. */
static int make_comparer(comparison_t c, const neighbour_t left, const neighbour_t right, int theta, int flags,
                         comparer_t *k)
{
    const int left_whole = left.first == left.second;
    const int right_whole = right.first == right.second;
    const uint bend = (uint)c.blur;
    k->scale = left_whole ? 1 : 256;
    k->limits = left_whole ? limits_of((theta + 255) / 256, (2 * theta + 255) / 256, flags)
                           : limits_of(theta, 2 * theta, flags);
    /* 256 becomes 1, 0 stays 0. */
    const int shift = left_whole ? 8 : 0;
    k->left = (uint)(left.w_first >> shift) | ((uint)(left.w_second >> shift) << 8);
    k->right = (uint)(right.w_first >> shift) | ((uint)(right.w_second >> shift) << 8);
    k->left_start = left.start;
    k->left_first = left.first;
    k->left_second = left.second;
    k->right_start = right.start;
    k->right_first = right.first;
    k->right_second = right.second;
    k->centre = bend | ((256u - 2u * bend) << 8) | (bend << 16);
    k->blur = c.blur;
    return left_whole == right_whole;
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
static uint compare_x(__global const uchar *src, uint at, const comparer_t k, int minimum, int matched)
{
    uint left[RUN_WORDS], right[RUN_WORDS], s[LONG_RUN_WORDS];
    uint left_turned[4], right_turned[4], s_turned[5];
    load_run(src, at + k.left_start, left);
    load_run(src, at + k.right_start, right);
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

/* Along y the taps of a neighbour lie in two rows. Each word gets first, second, first, second of two
 * pixels. */
static void load_pairs(__global const uchar *src, uint first, uint second, uint *pairs)
{
    uint f[RUN_WORDS], s[RUN_WORDS];
    load_pixels(src, first, f);
    load_pixels(src, second, s);
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS / 2; i++)
        pairs[i] = permute(f[i >> 1], s[i >> 1], i & 1 ? 0x7362 : 0x5140);
}

/* Byte i of a run, extracted by a dot product: with three runs, shifts are the bottleneck. */
static int sample_at(const uint *run, int i) { return (int)dot4(run[i >> 2], 1u << (8 * (i & 3)), 0); }

static uint compare_y(__global const uchar *src, uint at, int stride, const comparer_t k, int minimum,
                      int matched)
{
    uint left[WIDE_PIXELS / 2], right[WIDE_PIXELS / 2];
    uint s[RUN_WORDS], before[RUN_WORDS], after[RUN_WORDS];
    load_pairs(src, at + k.left_first * stride, at + k.left_second * stride, left);
    load_pairs(src, at + k.right_first * stride, at + k.right_second * stride, right);
    load_pixels(src, at, s);
    if (matched) {
        load_pixels(src, at - stride, before);
        load_pixels(src, at + stride, after);
    }
    uint bits = 0;
#pragma unroll
    for (int i = 0; i < WIDE_PIXELS; i++) {
        const uint left_weights = k.left << (16 * (i & 1));
        const uint right_weights = k.right << (16 * (i & 1));
        const int sample = matched ? sample_at(s, i) : run_sample(s, i);
        int centre = k.scale * sample;
        if (matched)
            centre += k.blur * (sample_at(before, i) - 2 * sample + sample_at(after, i));
        int marked;
        if (minimum) {
            marked = marked_by_minimum(centre, (int)dot4(left[i >> 1], left_weights, 0),
                                       (int)dot4(right[i >> 1], right_weights, 0), k.limits);
        } else {
            const uint sum = dot4(left[i >> 1], left_weights, (uint)(k.limits.bias - 2 * centre));
            marked = dot4(right[i >> 1], right_weights, sum) >= k.limits.span;
        }
        bits |= marked ? WIDE_BIT(i) : 0u;
    }
    return bits;
}

/* Without blur (A = 0) the centre is the plain one, whose weight 256 does not fit a byte. */
static int is_matched(comparison_t c) { return c.blur != 0; }
