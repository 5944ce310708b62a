/* Appended to mask_bits.cl. CPU, buffer: writes whole 32-bit words of the mask.
 *
 * pitch_threshold_words  Local size 1; each work-item judges a band of rows. For each row it clears
 *                        the mask, ORs in the words of each comparison, clears the bits outside the
 *                        regions and counts. The row's samples stay in the cache meanwhile: memory is
 *                        read once, whatever the number of comparisons.
 *
 * Arguments: those of pitch_threshold.cl.
 *
 * The parts that few pixels reach are functions that are not inlined, which makes compilers faster too.
 *
 * Exactness: with near tap n, far tap f and weight F, a neighbour is 256*n + F*(f-n): a weighted sum
 * whose weights are not negative and sum to 256. A matched centre is one too, with the weights A,
 * 256-2*A and A (A <= 32). For 8-bit samples each is therefore at most 255*256, and arithmetic modulo
 * 2^16 in 16-bit lanes yields it exactly. E >= 2*theta is C >= ceil((L+R)/2) + theta, and E <= -2*theta
 * is C + theta <= floor((L+R)/2), for every theta. 16-bit samples take the same steps in 32-bit lanes.
 */
#if SAMPLE_BYTES == 1
typedef ushort lane_t;
typedef ushort16 lanes_t;
typedef short16 signed_lanes_t;
#define AS_SIGNED(v) as_short16(v)
#define AS_LANES(v) as_ushort16(v)
#define LOAD_LANES(p) convert_ushort16(LOAD_UCHAR16(p))
#define LANE_MAX 0xffffu
#else
typedef uint lane_t;
typedef uint16 lanes_t;
typedef int16 signed_lanes_t;
#define AS_SIGNED(v) as_int16(v)
#define AS_LANES(v) as_uint16(v)
#if BIG_ENDIAN_SAMPLES
#define LOAD_LANES(p) convert_uint16(SWAP_BYTES16(LOAD_USHORT16(p)))
#else
#define LOAD_LANES(p) convert_uint16(LOAD_USHORT16(p))
#endif
#define LANE_MAX 0xffffffffu
#endif

/* One comparison, ready for lanes. `near`, `far` and `step` are bytes to the near tap, to the far tap
 * and to the next pixel along the axis. */
typedef struct {
    long near, far, step;
    lane_t fraction, blur;
    lane_t bright, dark;
} lane_comparison_t;

/* The same for pixels that lack a neighbour: bytes to each tap and to the centre's neighbours. */
typedef struct {
    long left_near, left_far, right_near, right_far, before, after;
    lane_t left_fraction, right_fraction, blur;
    lane_t bright, dark;
} inward_comparison_t;

/* a + theta <= b in each lane. The sum saturates at LANE_MAX, which no b reaches. min() of two vectors:
 * Oclgrind 21.10 applies a scalar to the first lane only. */
#define REACHES(a, theta, b) (min((a), (lanes_t)(lane_t)(LANE_MAX - (theta))) + (theta) <= (b))

/* Compares 16 pixels from `p`. `odd` (F is odd) is a constant in the inner loop. */
static __attribute__((always_inline)) uint compare16(__global const uchar *p, lane_comparison_t c,
                                                     int odd)
{
    const lanes_t s = LOAD_LANES(p);
    const lanes_t left_near = LOAD_LANES(p - c.near);
    const lanes_t left_far = LOAD_LANES(p - c.far);
    const lanes_t right_near = LOAD_LANES(p + c.near);
    const lanes_t right_far = LOAD_LANES(p + c.far);
    lanes_t centre = s << (lane_t)8;
    if (MODE & MATCHED)
        centre += (LOAD_LANES(p - c.step) + LOAD_LANES(p + c.step) - (s << (lane_t)1)) * c.blur;
    /* Bright: centre >= upper + theta. Dark: centre + theta <= lower. */
    lanes_t upper, lower;
    if (MODE & MINIMUM) {
        const lanes_t left = (left_near << (lane_t)8) + (left_far - left_near) * c.fraction;
        const lanes_t right = (right_near << (lane_t)8) + (right_far - right_near) * c.fraction;
        upper = max(left, right);
        lower = min(left, right);
    } else {
        const lanes_t near = left_near + right_near;
        const lanes_t rise = left_far + right_far - near;
        lower = (near << (lane_t)7) + rise * (lane_t)(c.fraction >> 1);
        upper = lower;
        if (odd) {
            const signed_lanes_t change = AS_SIGNED(rise);
            lower += AS_LANES(change >> (signed_lanes_t)1);
            upper += AS_LANES((change + (signed_lanes_t)1) >> (signed_lanes_t)1);
        }
    }
    return pack_bits16(convert_char16(REACHES(upper, c.bright, centre) |
                                      REACHES(centre, c.dark, lower)));
}

/* Compares 32 pixels from `p`; the bits are in memory order. */
static __attribute__((always_inline)) uint compare32(__global const uchar *p, lane_comparison_t c,
                                                     int odd)
{
    return compare16(p, c, odd) | (compare16(p + 16 * SAMPLE_BYTES, c, odd) << 16);
}

/* The same for the ragged ends of a row. */
static __attribute__((noinline)) uint compare_end(__global const uchar *p, lane_comparison_t c)
{
    return compare32(p, c, c.fraction & 1);
}

/* Compares 16 pixels that lack a neighbour. `first` and `last`: the first or the last of them is the
 * frame's first or last column, and a matched centre along x repeats its sample. */
static __attribute__((noinline)) uint compare16_inward(__global const uchar *p, inward_comparison_t c,
                                                       int first, int last)
{
    const lanes_t s = LOAD_LANES(p);
    const lanes_t left_near = LOAD_LANES(p + c.left_near);
    const lanes_t right_near = LOAD_LANES(p + c.right_near);
    const lanes_t left = (left_near << (lane_t)8) + (LOAD_LANES(p + c.left_far) - left_near) * c.left_fraction;
    const lanes_t right = (right_near << (lane_t)8) + (LOAD_LANES(p + c.right_far) - right_near) * c.right_fraction;
    lanes_t centre = s << (lane_t)8;
    if (MODE & MATCHED) {
        const lanes_t before = first ? s.s00123456789abcde : LOAD_LANES(p + c.before);
        const lanes_t after = last ? s.s123456789abcdeff : LOAD_LANES(p + c.after);
        centre += (before + after - (s << (lane_t)1)) * c.blur;
    }
    lanes_t upper, lower;
    if (MODE & MINIMUM) {
        upper = max(left, right);
        lower = min(left, right);
    } else {
        /* Half of left + right, rounded up and down, without overflow. */
        const lanes_t half_sum = (left ^ right) >> (lane_t)1;
        upper = (left | right) - half_sum;
        lower = (left & right) + half_sum;
    }
    return pack_bits16(convert_char16(REACHES(upper, c.bright, centre) |
                                      REACHES(centre, c.dark, lower)));
}

/* Word `word` of a row of `stride` bytes. Bytes past the row read as 0; put_word does not write them. */
static __attribute__((noinline)) uint word_at(__global const uchar *row, int stride, int word)
{
    if (4 * word + 4 <= stride)
        return LOAD_UINT(row + 4 * word);
    uint bits = 0;
    for (int i = 0; 4 * word + i < stride; i++)
        bits |= (uint)row[4 * word + i] << (8 * i);
    return bits;
}

static __attribute__((noinline)) void put_word(__global uchar *row, int stride, int word, uint bits)
{
    if (4 * word + 4 <= stride)
        STORE_UINT(row + 4 * word, bits);
    else
        for (int i = 0; 4 * word + i < stride; i++)
            row[4 * word + i] = (uchar)(bits >> (8 * i));
}

static void add_word(__global uchar *row, int stride, int word, uint bits)
{
    put_word(row, stride, word, word_at(row, stride, word) | bits);
}

/* Converts between memory order and the first pixel in the highest bit. */
static uint swap_word(uint bits) { return as_uint(as_uchar4(bits).wzyx); }

/* Marks pixel (x, y) of the row `out` if a comparison marks it. */
static __attribute__((noinline)) void compare_single(PLANE_ARGS, int x, int y, int width, int height,
                                                     __global uchar *out, comparison_t c, int theta,
                                                     int flags)
{
    int difference;
    const int known = (flags & (BRIGHT | DARK)) | MODE;
    if (compare_pixel(PLANE, x, y, width, height, c, theta, known, &difference))
        out[x >> 3] |= (uchar)(0x80 >> (x & 7));
}

/* Compares the whole words of a row, from word `from` to `to`-1. */
static __attribute__((always_inline)) void compare_words(__global const uchar *samples,
                                                         __global uchar *out, int from, int to,
                                                         lane_comparison_t c, int odd)
{
    for (int word = from; word < to; word++) {
        const uint bits = compare32(samples + (long)(32 * word) * SAMPLE_BYTES, c, odd);
        STORE_UINT(out + 4 * word, LOAD_UINT(out + 4 * word) | bits);
    }
}

/* The threshold of a polarity; with a threshold of LANE_MAX no pixel is marked. */
static lane_t lane_threshold(int theta, int is_on)
{
    return is_on ? (lane_t)min((uint)theta, LANE_MAX) : (lane_t)LANE_MAX;
}

/* Applies one comparison to columns from .. to-1 of a row, at least 32: whole words, and at each ragged
 * end a vector that overlaps them. */
static void compare_row(__global const uchar *samples, uint src_stride, __global uchar *out,
                        int stride, int from, int to, comparison_t comparison, int theta, int flags)
{
    lane_comparison_t c;
    c.step = comparison.axis ? (long)src_stride : SAMPLE_BYTES;
    c.near = comparison.whole * c.step;
    c.far = comparison_margin(comparison) * c.step;
    c.fraction = (lane_t)comparison.fraction;
    c.blur = (lane_t)comparison.blur;
    c.bright = lane_threshold(theta, flags & BRIGHT);
    c.dark = lane_threshold(theta, flags & DARK);
    const int first_whole = (from + 31) / 32;
    const int past_whole = to / 32;
    if (from & 31) {
        const uint bits = compare_end(samples + (long)from * SAMPLE_BYTES, c);
        add_word(out, stride, from / 32, swap_word(swap_word(bits) >> (from & 31)));
    }
    if (!(MODE & MINIMUM) && (comparison.fraction & 1))
        compare_words(samples, out, first_whole, past_whole, c, 1);
    else
        compare_words(samples, out, first_whole, past_whole, c, 0);
    if (to & 31) {
        const uint bits = compare_end(samples + (long)(to - 32) * SAMPLE_BYTES, c);
        add_word(out, stride, past_whole, swap_word(swap_word(bits) << (32 - (to & 31))));
    }
}

/* Compares columns from .. to-1 of row y, whose pixels lack the neighbour `missing` (1 left or above,
 * 2 right or below): 32 at a time, one by one where 32 do not fit the row. */
static __attribute__((noinline)) void compare_inward(PLANE_ARGS, int y, int width, int height,
                                                     __global uchar *out, int stride, int from, int to,
                                                     comparison_t comparison, int missing, int theta,
                                                     int flags)
{
    __global const uchar *samples = src + src_offset + (size_t)y * src_stride;
    const int along_y = comparison.axis;
    const long step = along_y ? (long)src_stride : SAMPLE_BYTES;
    taps_t taps;
    find_taps(comparison, missing, &taps);
    inward_comparison_t c;
    c.left_near = taps.left_near * step;
    c.left_far = taps.left_far * step;
    c.right_near = taps.right_near * step;
    c.right_far = taps.right_far * step;
    c.left_fraction = (lane_t)taps.left_fraction;
    c.right_fraction = (lane_t)taps.right_fraction;
    c.before = along_y && y == 0 ? 0 : -step;
    c.after = along_y && y == height - 1 ? 0 : step;
    c.blur = (lane_t)comparison.blur;
    c.bright = lane_threshold(theta, flags & BRIGHT);
    c.dark = lane_threshold(theta, flags & DARK);
    /* Columns at which a vector of 32 pixels and its taps lie in the row. */
    const int reach = along_y ? 0 : comparison_margin2(comparison);
    const int lowest = missing == 1 ? 0 : reach;
    const int highest = width - 32 - (missing == 1 ? reach : 0);
    for (int x = from; x < to; x += 32) {
        const int past = min(x + 32, to);
        const int at = min(x, highest);
        if (at < lowest) {
            for (int i = x; i < past; i++)
                compare_single(PLANE, i, y, width, height, out, comparison, theta, flags);
            continue;
        }
        __global const uchar *p = samples + (long)at * SAMPLE_BYTES;
        const uint low = compare16_inward(p, c, !along_y && at == 0, 0);
        const uint high = compare16_inward(p + 16 * SAMPLE_BYTES, c, 0,
                                           !along_y && at + 32 == width);
        /* The first of the 32 pixels in the highest bit; only those from x to past-1. */
        uint bits = swap_word(low | (high << 16)) & (~0u >> (x - at));
        if (past - at < 32)
            bits &= ~(~0u >> (past - at));
        const int skew = at & 31;
        add_word(out, stride, at / 32, swap_word(bits >> skew));
        if (skew && bits << (32 - skew))
            add_word(out, stride, at / 32 + 1, swap_word(bits << (32 - skew)));
    }
}

__kernel void pitch_threshold_words(PLANE_ARGS, int width, int height, int first_row, int rows,
                                    __global uchar *mask, ulong mask_offset, uint mask_stride,
                                    __constant const comparison_t *comparisons, int comparison_count,
                                    __global const int4 *rois, int roi_count, int theta, int flags,
                                    __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0)
        defects[slot ^ 1u] = 0;
    const int2 band = band_of(rows);
    const int stride = (int)mask_stride;
    uint count = 0;

    for (int row = band.x; row < band.y; row++) {
        const int y = first_row + row;
        __global const uchar *samples = src + src_offset + (size_t)y * src_stride;
        __global uchar *out = mask + mask_offset + (size_t)row * mask_stride;
        for (int i = 0; i < stride; i++)
            out[i] = 0;

        /* Columns that the row's regions span. With one region, all of them are wanted. */
        int first = width, past = 0, regions = 0;
        for (int i = 0; i < roi_count; i++) {
            const int4 r = rois[i];
            if (y >= r.y && y < r.w) {
                first = min(first, r.x);
                past = max(past, r.z);
                regions++;
            }
        }
        for (int i = 0; i < comparison_count && first < past; i++) {
            const comparison_t c = comparisons[i];
            const int margin = comparison_margin(c);
            if (c.axis && (y < margin || y >= height - margin)) {
                const int missing = MODE & INWARD ? lacking(c, y, height) : 0;
                if (missing)
                    compare_inward(PLANE, y, width, height, out, stride, first, past, c, missing, theta, flags);
                continue;
            }
            const int from = c.axis ? first : max(first, margin);
            const int to = c.axis ? past : min(past, width - margin);
            if (to - from >= 32) {
                compare_row(samples, src_stride, out, stride, from, to, c, theta, flags);
            } else {
                for (int x = from; x < to; x++)
                    compare_single(PLANE, x, y, width, height, out, c, theta, flags);
            }
            if ((MODE & INWARD) && !c.axis) {
                const int2 left = inward_left(c, width);
                const int2 right = inward_right(c, width);
                compare_inward(PLANE, y, width, height, out, stride, max(first, left.x), min(past, left.y),
                               c, 1, theta, flags);
                compare_inward(PLANE, y, width, height, out, stride, max(first, right.x),
                               min(past, right.y), c, 2, theta, flags);
            }
        }
        if (first >= past)
            continue;
        for (int word = first / 32; word < (past + 31) / 32; word++) {
            uint bits = 4 * word + 4 <= stride ? LOAD_UINT(out + 4 * word) : word_at(out, stride, word);
            if (regions > 1 && bits) {
                bits &= swap_word((roi_bits(rois, roi_count, 32 * word, y, 16) << 16) |
                                  roi_bits(rois, roi_count, 32 * word + 16, y, 16));
                put_word(out, stride, word, bits);
            }
            count += popcount(bits);
        }
    }
    if (count)
        atomic_add(&defects[slot], count);
}
