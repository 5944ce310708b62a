/* Appended to pitch_threshold.cl. CPU, buffer: writes whole 32-bit words of the mask.
 *
 * pitch_threshold_words  Local size 1; each work-item judges a band of rows. For each row it clears
 *                        the mask, ORs in the words of each comparison, clears the bits outside the
 *                        regions and counts. The row's samples stay in the cache meanwhile: memory is
 *                        read once, whatever the number of comparisons.
 *
 * Arguments: those of pitch_threshold.cl.
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

/* a + theta <= b in each lane. The sum saturates at LANE_MAX, which no b reaches. min() of two vectors:
 * Oclgrind 21.10 applies a scalar to the first lane only. */
#define REACHES(a, theta, b) (min((a), (lanes_t)(lane_t)(LANE_MAX - (theta))) + (theta) <= (b))

/* Packs 0 or -1 per pixel into a bit per pixel: byte 0 holds the first 8 pixels, the first one in the
 * highest bit. */
static uint pack_bits16(char16 marked)
{
#ifdef __SSE2__
    typedef char bytes16_t __attribute__((vector_size(16)));
    const char16 reversed = marked.s76543210fedcba98;
    return (uint)__builtin_ia32_pmovmskb128((bytes16_t)reversed);
#else
    /* The product gathers the lowest bits of 8 bytes in its highest byte. */
    const ulong2 lanes = as_ulong2(marked) & 0x0101010101010101UL;
    const ulong2 bits = (lanes * 0x8040201008040201UL) >> 56;
    return (uint)bits.x | ((uint)bits.y << 8);
#endif
}

/* Compares 16 pixels from `p`. `minimum`, `matched` and `odd` (F is odd) are constants at each call. */
static __attribute__((always_inline)) uint compare16(__global const uchar *p, lane_comparison_t c,
                                                     int minimum, int matched, int odd)
{
    const lanes_t s = LOAD_LANES(p);
    const lanes_t left_near = LOAD_LANES(p - c.near);
    const lanes_t left_far = LOAD_LANES(p - c.far);
    const lanes_t right_near = LOAD_LANES(p + c.near);
    const lanes_t right_far = LOAD_LANES(p + c.far);
    lanes_t centre = s << (lane_t)8;
    if (matched)
        centre += (LOAD_LANES(p - c.step) + LOAD_LANES(p + c.step) - (s << (lane_t)1)) * c.blur;
    /* Bright: centre >= upper + theta. Dark: centre + theta <= lower. */
    lanes_t upper, lower;
    if (minimum) {
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
                                                     int minimum, int matched, int odd)
{
    return compare16(p, c, minimum, matched, odd) |
           (compare16(p + 16 * SAMPLE_BYTES, c, minimum, matched, odd) << 16);
}

/* Word `word` of a row of `stride` bytes. Bytes past the row read as 0; put_word does not write them. */
static uint word_at(__global const uchar *row, int stride, int word)
{
    if (4 * word + 4 <= stride)
        return LOAD_UINT(row + 4 * word);
    uint bits = 0;
    for (int i = 0; 4 * word + i < stride; i++)
        bits |= (uint)row[4 * word + i] << (8 * i);
    return bits;
}

static void put_word(__global uchar *row, int stride, int word, uint bits)
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

/* Compares columns from .. to-1 of a row, at least 32: whole words, and at each ragged end a vector
 * that overlaps them. */
static __attribute__((always_inline)) void compare_columns(__global const uchar *samples,
                                                           __global uchar *out, int stride,
                                                           int from, int to, lane_comparison_t c,
                                                           int minimum, int matched, int odd)
{
    const int first_whole = (from + 31) / 32;
    const int past_whole = to / 32;
    if (from & 31) {
        __global const uchar *p = samples + (long)from * SAMPLE_BYTES;
        const uint bits = compare32(p, c, minimum, matched, odd);
        add_word(out, stride, from / 32, swap_word(swap_word(bits) >> (from & 31)));
    }
    for (int word = first_whole; word < past_whole; word++) {
        __global const uchar *p = samples + (long)(32 * word) * SAMPLE_BYTES;
        const uint bits = compare32(p, c, minimum, matched, odd);
        add_word(out, stride, word, bits);
    }
    if (to & 31) {
        __global const uchar *p = samples + (long)(to - 32) * SAMPLE_BYTES;
        const uint bits = compare32(p, c, minimum, matched, odd);
        add_word(out, stride, past_whole, swap_word(swap_word(bits) << (32 - (to & 31))));
    }
}

/* Applies one comparison to columns from .. to-1 of a row; each branch makes the mode a constant. */
static void compare_row(__global const uchar *samples, uint src_stride, __global uchar *out,
                        int stride, int from, int to, int4 comparison, int theta, int flags)
{
    lane_comparison_t c;
    c.step = comparison.x ? (long)src_stride : SAMPLE_BYTES;
    c.near = comparison.y * c.step;
    c.far = comparison_margin(comparison) * c.step;
    c.fraction = (lane_t)comparison.z;
    c.blur = (lane_t)comparison.w;
    /* With a threshold of LANE_MAX no pixel is marked. */
    c.bright = flags & BRIGHT ? (lane_t)min((uint)theta, LANE_MAX) : (lane_t)LANE_MAX;
    c.dark = flags & DARK ? (lane_t)min((uint)theta, LANE_MAX) : (lane_t)LANE_MAX;
#define COMPARE_COLUMNS(minimum, matched, odd)                                                    \
    compare_columns(samples, out, stride, from, to, c, minimum, matched, odd)
    const int odd = comparison.z & 1;
    if (flags & MINIMUM) {
        if (flags & MATCHED)
            COMPARE_COLUMNS(1, 1, 0);
        else
            COMPARE_COLUMNS(1, 0, 0);
    } else if (flags & MATCHED) {
        if (odd)
            COMPARE_COLUMNS(0, 1, 1);
        else
            COMPARE_COLUMNS(0, 1, 0);
    } else if (odd) {
        COMPARE_COLUMNS(0, 0, 1);
    } else {
        COMPARE_COLUMNS(0, 0, 0);
    }
#undef COMPARE_COLUMNS
}

__kernel void pitch_threshold_words(PLANE_ARGS, int width, int height, __global uchar *mask,
                                    ulong mask_offset, uint mask_stride,
                                    __constant const int4 *comparisons, int comparison_count,
                                    __global const int4 *rois, int roi_count, int theta, int flags,
                                    __global uint *defects, uint slot)
{
    if (get_global_id(0) == 0)
        defects[slot ^ 1u] = 0;
    const int band = (height + (int)get_global_size(0) - 1) / (int)get_global_size(0);
    const int y0 = (int)get_global_id(0) * band;
    const int y1 = min(y0 + band, height);
    const int stride = (int)mask_stride;
    const int words = (stride + 3) / 4;
    uint count = 0;

    for (int y = y0; y < y1; y++) {
        __global const uchar *samples = src + src_offset + (size_t)y * src_stride;
        __global uchar *out = mask + mask_offset + (size_t)y * mask_stride;
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
        for (int i = 0; i < comparison_count; i++) {
            const int4 c = comparisons[i];
            const int margin = comparison_margin(c);
            if (c.x && (y < margin || y >= height - margin))
                continue;
            const int from = c.x ? first : max(first, margin);
            const int to = c.x ? past : min(past, width - margin);
            if (to - from >= 32) {
                compare_row(samples, src_stride, out, stride, from, to, c, theta, flags);
            } else {
                for (int x = from; x < to; x++) {
                    int difference;
                    if (compare_pixel(PLANE, x, y, width, height, c, theta, flags, &difference))
                        out[x >> 3] |= (uchar)(0x80 >> (x & 7));
                }
            }
        }
        if (first >= past)
            continue;
        for (int word = first / 32; word < (past + 31) / 32; word++) {
            uint bits = word_at(out, stride, word);
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
