/* Appended to pitch_threshold_items.cl and nvidia.cl. Judges a block of pixels with comparisons that
 * are constants of the program: FIXED_COMPARISONS is a list of comparison_t, FIXED_FLAGS the flags.
 *
 * 8-bit samples only. The frame and its rows start at multiples of 16 bytes, so that a neighbour's place within its
 * words is a constant, too.
 *
 * Sums are exact in f32. A weighted sum of bytes, v < 2^23, is made by one dot product with the start value
 * 0x4b000000, the bits of 2^23: the result is the bits of 2^23 + v. Differences of such floats lose the 2^23 and stay
 * integers of at most 24 bits.
 */
#define FLOAT_BITS 0x4b000000u
#define HAS(flag) ((FIXED_FLAGS & (flag)) != 0)
#if HAS_DOT4
/* 2^23 plus 256 times byte i of the word. */
#define BYTE_256(word, i) as_float(permute((word), FLOAT_BITS, 0x7404u + 0x10u * (uint)(i)))
/* Shifts the sign bit of a float into `bits`. */
static uint push_sign(uint bits, float value)
{
    uint shifted;
    asm("shf.l.wrap.b32 %0, %1, %2, 1;" : "=r"(shifted) : "r"(as_uint(value)), "r"(bits));
    return shifted;
}
#else
#define BYTE_256(word, i) as_float(FLOAT_BITS + 256u * byte_of((word), (i)))
static uint push_sign(uint bits, float value) { return 2u * bits + (value < 0.0f ? 1u : 0u); }
#endif

__constant const comparison_t fixed_comparisons[] = {FIXED_COMPARISONS};
#define COMPARISONS_ARGS __constant const comparison_t *comparisons
#define COMPARISONS comparisons
#define FIXED_COUNT ((int)(sizeof(fixed_comparisons) / sizeof(comparison_t)))

/* A neighbour's two taps: `near` is the offset of the near one, `step` that of the far one from it, in samples
 * along the axis; `fraction` is the far one's weight. */
typedef struct {
    int near, step, fraction;
} neighbour_t;

static neighbour_t neighbour_at(int whole, int fraction, int is_right)
{
    neighbour_t n;
    n.near = is_right ? whole : -whole;
    n.step = is_right ? 1 : -1;
    n.fraction = fraction;
    return n;
}

/* The smallest and the largest offset of a tap. */
static int first_tap(neighbour_t n) { return n.near + min(n.step, 0); }
static int last_tap(neighbour_t n) { return n.near + max(n.step, 0); }

/* The weights of the first tap, byte 0, and of the last one, byte 1. */
static uint tap_weights(neighbour_t n)
{
    const uint far = (uint)n.fraction, near = 256u - far;
    return n.step > 0 ? near | (far << 8) : far | (near << 8);
}

/* Negative unless the pixel is marked. The centre and the neighbours are in 1/256 grey level, plus 2^23. `minus` is
 * the negative threshold: -2 theta, or -theta where one polarity of `minimum` counts. */
static float marking(float centre, float first, float second, float minus)
{
    if (HAS(MINIMUM) & !HAS(DARK))
        return (centre - fmax(first, second)) + minus;
    if (HAS(MINIMUM) & !HAS(BRIGHT))
        return (fmin(first, second) - centre) + minus;
    const float e = fma(2.0f, centre, -first) - second;
    if (HAS(MINIMUM))
        /* l and r the differences to the neighbours: |l + r| - |l - r| is twice the smaller one, or negative if their
         * signs differ. */
        return (fabs(e) + minus) - fabs(first - second);
    if (!HAS(DARK))
        return e + minus;
    if (!HAS(BRIGHT))
        return minus - e;
    return fabs(e) + minus;
}

static float minus_threshold(int theta)
{
    const int one_sided = (FIXED_FLAGS & (BRIGHT | DARK)) != (BRIGHT | DARK);
    return (float)(HAS(MINIMUM) & one_sided ? -theta : -2 * theta);
}

/* Words of a block's row, and of a run that holds the taps of all its pixels. */
#define ROW_WORDS 4
#define RUN_WORDS 8
/* Bytes from a multiple of 16 to the tap at `offset`. */
#define SKEW(offset) ((offset) & 15)

/* Reads 16 bytes, which are aligned. */
static void load_row(__global const uchar *at, uint *words)
{
    const uint4 v = *(__global const uint4 *)at;
    words[0] = v.x;
    words[1] = v.y;
    words[2] = v.z;
    words[3] = v.w;
}

static void load_run(__global const uchar *at, uint *words)
{
    load_row(at, words);
    load_row(at + 16, words + ROW_WORDS);
}

/* The weighted sum of `taps` bytes from byte i of a run, plus 2^23; i and taps are constants. */
static float run_sum(const uint *run, int i, int taps, uint weights)
{
    const int lane = i & 3;
    if (lane + taps <= 4)
        return as_float(dot4(run[i >> 2], weights << (8 * lane), FLOAT_BITS));
    /* The same for all bytes of a word: from the middle of a word to the middle of the next. */
    const uint turned = permute(run[i >> 2], run[(i >> 2) + 1], 0x5432);
    return as_float(dot4(turned, weights << (8 * (lane - 2)), FLOAT_BITS));
}

/* The neighbour whose first tap is byte i of a run. */
static float run_neighbour(const uint *run, int i, neighbour_t n)
{
    const int near = n.step > 0 ? i : i + 1;
    return n.fraction ? run_sum(run, i, 2, tap_weights(n)) : BYTE_256(run[near >> 2], near & 3);
}

/* Along x: the bits of the pixels that are not marked. Rows go upward, so that the first row's bits end lowest. */
static block_t fixed_x(__global const uchar *p, int rows, int stride, int blur, neighbour_t first, neighbour_t second,
                       float minus)
{
    const int from1 = first_tap(first), from2 = first_tap(second);
    const uint centre_weights = (uint)blur | ((256u - 2u * (uint)blur) << 8) | ((uint)blur << 16);
    block_t unmarked = 0;
    p += (rows - 1) * stride;
#pragma unroll WIDE_ROWS
    for (int row = 0; row < rows; row++, p -= stride) {
        uint run1[RUN_WORDS], run2[RUN_WORDS], s[ROW_WORDS + 2];
        load_run(p + from1 - SKEW(from1), run1);
        load_run(p + from2 - SKEW(from2), run2);
        load_row(p, s + 1);
        if (blur) {
            s[0] = *(__global const uint *)(p - 4);
            s[ROW_WORDS + 1] = *(__global const uint *)(p + 16);
        }
        uint signs = 0;
#pragma unroll
        for (int i = 0; i < WIDE_PIXELS; i++) {
            const float centre =
                blur ? run_sum(s, 4 + i - 1, 3, centre_weights) : BYTE_256(s[1 + (i >> 2)], i & 3);
            signs = push_sign(signs, marking(centre, run_neighbour(run1, SKEW(from1) + i, first),
                                             run_neighbour(run2, SKEW(from2) + i, second), minus));
        }
        unmarked = (unmarked << WIDE_PIXELS) | signs;
    }
    return unmarked;
}

/* Two rows' bytes of pixels 2i and 2i+1, in turn. */
static uint pair_of(const uint *first, const uint *second, int i)
{
    return permute(first[i >> 1], second[i >> 1], i & 1 ? 0x7362 : 0x5140);
}

/* The neighbour of pixel i; its taps lie in two rows. */
static float column_neighbour(const uint *first, const uint *last, int i, neighbour_t n)
{
    const uint *near = n.step > 0 ? first : last;
    if (n.fraction == 0)
        return BYTE_256(near[i >> 2], i & 3);
    return as_float(dot4(pair_of(first, last, i >> 1), tap_weights(n) << (16 * (i & 1)), FLOAT_BITS));
}

/* Along y. Rows go upward: a tap's first row is the next row's last one, and so on. `above` and `below` are the
 * distances of the rows before and behind the block: the blurred centre repeats the frame's first and last rows. */
static block_t fixed_y(__global const uchar *p, int rows, int stride, int blur, int above, int below,
                       neighbour_t first, neighbour_t second, float minus)
{
    uint last1[ROW_WORDS], last2[ROW_WORDS], s[ROW_WORDS], after[ROW_WORDS];
    block_t unmarked = 0;
    p += (rows - 1) * stride;
    load_row(p + last_tap(first) * stride, last1);
    load_row(p + last_tap(second) * stride, last2);
    load_row(p, s);
    if (blur)
        load_row(p + below, after);
#pragma unroll WIDE_ROWS
    for (int row = 0; row < rows; row++, p -= stride) {
        uint first1[ROW_WORDS], first2[ROW_WORDS], before[ROW_WORDS];
        load_row(p + first_tap(first) * stride, first1);
        load_row(p + first_tap(second) * stride, first2);
        if (blur || row + 1 < rows)
            load_row(p - (row + 1 < rows ? stride : above), before);
        uint signs = 0;
#pragma unroll
        for (int i = 0; i < WIDE_PIXELS; i++) {
            float centre = BYTE_256(s[i >> 2], i & 3);
            if (blur) {
                const uint outer = dot4(pair_of(before, after, i >> 1),
                                        (uint)(blur | (blur << 8)) << (16 * (i & 1)), FLOAT_BITS);
                centre = as_float(dot4(s[i >> 2], (256u - 2u * (uint)blur) << (8 * (i & 3)), outer));
            }
            signs = push_sign(signs, marking(centre, column_neighbour(first1, last1, i, first),
                                             column_neighbour(first2, last2, i, second), minus));
        }
#pragma unroll
        for (int i = 0; i < ROW_WORDS; i++) {
            last1[i] = first1[i];
            last2[i] = first2[i];
            after[i] = s[i];
            s[i] = before[i];
        }
        unmarked = (unmarked << WIDE_PIXELS) | signs;
    }
    return unmarked;
}

#define FIXED_BLUR(c) (HAS(MATCHED) ? (c).blur : 0)
#define FIXED_BITS(rows, above, below, first, second)                                                    \
    (c.axis ? fixed_y(p, rows, stride, FIXED_BLUR(c), above, below, first, second, minus)                \
            : fixed_x(p, rows, stride, FIXED_BLUR(c), first, second, minus))

/* The marked pixels of `wanted`, a block at (x, top). */
static block_t judge_block(PLANE_ARGS, block_t wanted, int rows, int x, int top, int is_edge, int width, int height,
                           COMPARISONS_ARGS, int theta, int flags, uint src_len)
{
    const int stride = (int)src_stride;
    const int start = (int)src_offset + top * stride + x;
    const int rest = (int)src_len - start - (rows - 1) * stride;
    const int above = top > 0 ? stride : 0, below = top + rows < height ? stride : 0;
    const float minus = minus_threshold(theta);
    __global const uchar *p = src + start;
    block_t bits = 0;
    uint singly = 0;
    /* Most blocks lie inside for all comparisons. */
    int reach_x = 0, reach_y = 0;
#pragma unroll
    for (int i = 0; i < FIXED_COUNT; i++) {
        const int margin = comparison_margin(fixed_comparisons[i]);
        if (fixed_comparisons[i].axis)
            reach_y = max(reach_y, margin);
        else
            reach_x = max(reach_x, margin);
    }
    const int is_inside = x >= reach_x + 16 && x + WIDE_PIXELS + 16 <= width - reach_x &&
                          top > reach_y && top + WIDE_ROWS < height - reach_y;
    if (is_inside) {
        block_t unmarked = BLOCK_ALL;
#pragma unroll
        for (int i = 0; i < FIXED_COUNT; i++) {
            const comparison_t c = fixed_comparisons[i];
            unmarked &= FIXED_BITS(WIDE_ROWS, stride, stride, neighbour_at(c.whole, c.fraction, 0),
                                   neighbour_at(c.whole, c.fraction, 1));
        }
        return wanted & ~unmarked;
    }
#pragma unroll
    for (int i = 0; i < FIXED_COUNT; i++) {
        const comparison_t c = fixed_comparisons[i];
        const neighbour_t left = neighbour_at(c.whole, c.fraction, 0), right = neighbour_at(c.whole, c.fraction, 1);
        const neighbour_t left2 = neighbour_at(c.whole2, c.fraction2, 0);
        const neighbour_t right2 = neighbour_at(c.whole2, c.fraction2, 1);
        const int has_inward = HAS(INWARD) & (c.edge_margin != INT_MAX);
        const int n = c.axis ? height : width;
        const block_t both = judged_bits(wanted, c, rows, x, top, width, height);
        block_t lacks_left = 0, lacks_right = 0;
        if (has_inward && both != wanted && (c.axis || is_edge)) {
            lacks_left = inward_bits(wanted, c, inward_left(c, n), rows, x, top);
            lacks_right = inward_bits(wanted, c, inward_right(c, n), rows, x, top);
        }
        if ((both | lacks_left | lacks_right) == 0)
            continue;
        /* Bytes that the runs reach before the block's first and behind its last pixel; words round them up. */
        const int first = lacks_right ? first_tap(left2) : both ? first_tap(left) : 0;
        const int last = lacks_left ? last_tap(right2) : both ? last_tap(right) : 0;
        const int step = c.axis ? stride : 1;
        /* Along x the blurred centre repeats no sample here. */
        const int is_repeated = !c.axis && FIXED_BLUR(c) && c.edge_margin == 0 && (x == 0 || x + WIDE_PIXELS >= width);
        if (start < 16 - first * step || rest < last * step + 32 || is_repeated) {
            singly |= 1u << i;
            continue;
        }
        if (both)
            bits |= both & ~FIXED_BITS(rows, above, below, left, right);
        if (has_inward && lacks_left)
            bits |= lacks_left & ~FIXED_BITS(rows, above, below, right2, right);
        if (has_inward && lacks_right)
            bits |= lacks_right & ~FIXED_BITS(rows, above, below, left, left2);
    }
    for (int i = 0; singly; i++, singly >>= 1)
        if (singly & 1u)
            bits |= judge_singly(PLANE, judged_or_inward(wanted, comparisons[i], rows, x, top, width, height), rows, x,
                                 top, width, height, comparisons[i], theta, flags);
    return bits;
}
