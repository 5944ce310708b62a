/* Appended to demosaic.cl. CPU: a work-item computes a band of rows, 32 pixels at a time. Local size 1. The pixels at the
 * ends of a row are computed one by one. */
#if SAMPLE_BYTES == 1
typedef ushort16 lanes_t;
typedef ushort lane_t;
#define LOAD_PAIRS(p) LOAD_USHORT16(p)
#define EVEN(w) ((w) & (lanes_t)0xff)
#define ODD(w) ((w) >> (lanes_t)8)
#else
typedef uint16 lanes_t;
typedef uint lane_t;
#define LOAD_PAIRS(p) (((__global const packed_uint16 *)(p))->v)
#endif
#define TIMES(n) ((lane_t)(n))
#define BIAS ((lane_t)BIAS_VALUE)
#define LANES 16
#define PIXELS (2 * LANES)

static __attribute__((always_inline)) lanes_t finished(lanes_t sum)
{
    const lanes_t value = sum >> (lanes_t)FRACTION_BITS;
#if GRADIENT
    return min(max(value, (lanes_t)LOWEST), (lanes_t)HIGHEST) - (lanes_t)LOWEST;
#else
    return value;
#endif
}

/* Red, green and blue of 16 pixels of even or of odd columns. */
typedef struct {
    lanes_t red, green, blue;
} pixels_t;

/* Samples of even and of odd columns of 32, of the columns two to the left, and of those two to the right. */
typedef struct {
    lanes_t even, odd, left_even, left_odd, right_even, right_odd;
} samples_t;

static __attribute__((always_inline)) samples_t load_samples(__global const uchar *p)
{
    const lanes_t own = LOAD_PAIRS(p);
    const lanes_t left = LOAD_PAIRS(p - 2 * SAMPLE_BYTES), right = LOAD_PAIRS(p + 2 * SAMPLE_BYTES);
    samples_t s;
    s.even = EVEN(own);
    s.odd = ODD(own);
    s.left_even = EVEN(left);
    s.left_odd = ODD(left);
    s.right_even = EVEN(right);
    s.right_odd = ODD(right);
    return s;
}

/* The upper 8 bits of a sample, and lanes of at most 16 bits as ushorts. */
#if SAMPLE_BYTES == 1
#define UPPER(v) (v)
#define NARROW(v) (v)
#else
#define UPPER(v) ((v) >> (lanes_t)LOW_BITS)
#define NARROW(v) ((ushort16)(as_ushort16((v).lo).even, as_ushort16((v).hi).even))
#endif

static __attribute__((always_inline)) lanes_t luma_lanes(pixels_t p)
{
    return ((lanes_t)77 * p.red + (lanes_t)150 * p.green + (lanes_t)29 * p.blue + (lanes_t)128) >> (lanes_t)8;
}

/* Stores a0 b0 c0 a1 b1 c1 and so on. Each step takes two vectors, for which CPUs have an instruction. */
static void store_three(__global uchar *p, ushort8 a, ushort8 b, ushort8 c)
{
    const ushort8 ab = (ushort8)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3);
    const ushort8 bc = (ushort8)(b.s4, c.s4, b.s5, c.s5, b.s6, c.s6, b.s7, c.s7);
    const ushort8 ca = (ushort8)(c.s2, a.s3, c.s3, a.s4, c.s4, a.s5, c.s1, c.s0);
    STORE_UCHAR16(p, as_uchar16((ushort8)(ab.s01, ca.s7, ab.s23, ca.s6, ab.s45)));
    STORE_UCHAR16(p + 16, as_uchar16((ushort8)(ca.s01, b.s3, ca.s23, b.s4, ca.s45)));
    STORE_UCHAR16(p + 32, as_uchar16((ushort8)(bc.s23, a.s6, bc.s45, a.s7, bc.s67)));
}

static void store_threes(__global uchar *p, ushort16 a, ushort16 b, ushort16 c)
{
    store_three(p, a.lo, b.lo, c.lo);
    store_three(p + 48, a.hi, b.hi, c.hi);
}

/* Stores a0 b0 c0 d0 a1 and so on. */
static void store_four(__global uchar *p, ushort8 a, ushort8 b, ushort8 c, ushort8 d)
{
    const uint4 ab0 = as_uint4((ushort8)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3));
    const uint4 ab4 = as_uint4((ushort8)(a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7));
    const uint4 cd0 = as_uint4((ushort8)(c.s0, d.s0, c.s1, d.s1, c.s2, d.s2, c.s3, d.s3));
    const uint4 cd4 = as_uint4((ushort8)(c.s4, d.s4, c.s5, d.s5, c.s6, d.s6, c.s7, d.s7));
    STORE_UCHAR16(p, as_uchar16((uint4)(ab0.x, cd0.x, ab0.y, cd0.y)));
    STORE_UCHAR16(p + 16, as_uchar16((uint4)(ab0.z, cd0.z, ab0.w, cd0.w)));
    STORE_UCHAR16(p + 32, as_uchar16((uint4)(ab4.x, cd4.x, ab4.y, cd4.y)));
    STORE_UCHAR16(p + 48, as_uchar16((uint4)(ab4.z, cd4.z, ab4.w, cd4.w)));
}

static void store_fours(__global uchar *p, ushort16 a, ushort16 b, ushort16 c, ushort16 d)
{
    store_four(p, a.lo, b.lo, c.lo, d.lo);
    store_four(p + 64, a.hi, b.hi, c.hi, d.hi);
}

static __attribute__((always_inline)) void store_pixels(__global uchar *p, pixels_t even, pixels_t odd)
{
#if OUTPUT == OUTPUT_GRAY8
    const lanes_t pairs = UPPER(luma_lanes(even)) | UPPER(luma_lanes(odd)) << (lanes_t)8;
    STORE_USHORT16(p, NARROW(pairs));
#elif OUTPUT == OUTPUT_GRAY16
    const uint16 pairs = convert_uint16(luma_lanes(even)) | convert_uint16(luma_lanes(odd)) << 16;
    STORE_USHORT16(p, as_ushort16(pairs.lo));
    STORE_USHORT16(p + 32, as_ushort16(pairs.hi));
#elif OUTPUT == OUTPUT_RGBX
    const lanes_t a = UPPER(even.red) | UPPER(even.green) << (lanes_t)8;
    const lanes_t b = UPPER(even.blue) | (lanes_t)0xff00;
    const lanes_t c = UPPER(odd.red) | UPPER(odd.green) << (lanes_t)8;
    const lanes_t d = UPPER(odd.blue) | (lanes_t)0xff00;
    store_fours(p, NARROW(a), NARROW(b), NARROW(c), NARROW(d));
#else
#if OUTPUT == OUTPUT_RGB
    const lanes_t a = UPPER(even.red) | UPPER(even.green) << (lanes_t)8;
    const lanes_t b = UPPER(even.blue) | UPPER(odd.red) << (lanes_t)8;
    const lanes_t c = UPPER(odd.green) | UPPER(odd.blue) << (lanes_t)8;
#else
    const lanes_t a = UPPER(even.blue) | UPPER(even.green) << (lanes_t)8;
    const lanes_t b = UPPER(even.red) | UPPER(odd.blue) << (lanes_t)8;
    const lanes_t c = UPPER(odd.green) | UPPER(odd.red) << (lanes_t)8;
#endif
    store_threes(p, NARROW(a), NARROW(b), NARROW(c));
#endif
}

/* One pixel; rows[REACH] is its own row. */
static RARE void store_pixel(__global const uchar *const *rows, int x, int width, int is_red_row, int has_colour,
                             __global uchar *p)
{
    uint at[SPAN][SPAN];
    for (int i = 0; i < SPAN; i++)
        for (int k = 0; k < SPAN; k++)
            at[i][k] = load_sample(rows[i] + (size_t)mirrored(x + k - REACH, width) * SAMPLE_BYTES) & SAMPLE_MASK;
    const uint s = at[REACH][REACH];
    const uint h = at[REACH][REACH - 1] + at[REACH][REACH + 1];
    const uint v = at[REACH - 1][REACH] + at[REACH + 1][REACH];
    const uint d = at[REACH - 1][REACH - 1] + at[REACH - 1][REACH + 1] + at[REACH + 1][REACH - 1] +
                   at[REACH + 1][REACH + 1];
#if GRADIENT
    const uint h2 = at[2][0] + at[2][4], v2 = at[0][2] + at[4][2];
#endif
    uint first = has_colour ? GREEN_SUM(s, h, v, d, h2, v2) : ROW_SUM(s, h, v, d, h2, v2);
    uint second = has_colour ? OTHER_SUM(s, h, v, d, h2, v2) : COLUMN_SUM(s, h, v, d, h2, v2);
    first >>= FRACTION_BITS;
    second >>= FRACTION_BITS;
#if GRADIENT
    first = min(max(first, LOWEST), HIGHEST) - LOWEST;
    second = min(max(second, LOWEST), HIGHEST) - LOWEST;
#endif
    const uint green = has_colour ? first : s, own = has_colour ? s : first;
    const uint red = is_red_row ? own : second, blue = is_red_row ? second : own;
#if IS_GRAY
    const uint luma = (77u * red + 150u * green + 29u * blue + 128u) >> 8;
#if OUTPUT == OUTPUT_GRAY8
    p[0] = (uchar)(luma >> LOW_BITS);
#else
    p[0] = (uchar)luma;
    p[1] = (uchar)(luma >> 8);
#endif
#else
    p[OUTPUT == OUTPUT_BGR ? 2 : 0] = (uchar)(red >> LOW_BITS);
    p[1] = (uchar)(green >> LOW_BITS);
    p[OUTPUT == OUTPUT_BGR ? 0 : 2] = (uchar)(blue >> LOW_BITS);
#if OUTPUT == OUTPUT_RGBX
    p[3] = 255;
#endif
#endif
}

/* The 32 pixels from column x on; x is even. `is_even`: the row's colour is in its even columns. */
static __attribute__((always_inline)) void store_32(__global const uchar *const *rows, int x, const int is_red_row,
                                                    const int is_even, __global uchar *p)
{
    const size_t at = (size_t)x * SAMPLE_BYTES;
    const samples_t own = load_samples(rows[REACH] + at);
    const samples_t above = load_samples(rows[REACH - 1] + at), below = load_samples(rows[REACH + 1] + at);
    const lanes_t even_v = above.even + below.even, odd_v = above.odd + below.odd;
    const lanes_t even_d = above.left_odd + below.left_odd + odd_v, odd_d = even_v + above.right_even + below.right_even;
    const lanes_t even_h = own.left_odd + own.odd, odd_h = own.even + own.right_even;
#if GRADIENT
    const lanes_t top = LOAD_PAIRS(rows[0] + at), bottom = LOAD_PAIRS(rows[4] + at);
    const lanes_t even_v2 = EVEN(top) + EVEN(bottom), odd_v2 = ODD(top) + ODD(bottom);
    const lanes_t even_h2 = own.left_even + own.right_even, odd_h2 = own.left_odd + own.right_odd;
#endif
#define EVEN_SUM(sum) finished(sum(own.even, even_h, even_v, even_d, even_h2, even_v2))
#define ODD_SUM(sum) finished(sum(own.odd, odd_h, odd_v, odd_d, odd_h2, odd_v2))
    lanes_t even_own, even_green, even_other, odd_own, odd_green, odd_other;
    if (is_even) {
        even_own = own.even;
        even_green = EVEN_SUM(GREEN_SUM);
        even_other = EVEN_SUM(OTHER_SUM);
        odd_own = ODD_SUM(ROW_SUM);
        odd_green = own.odd;
        odd_other = ODD_SUM(COLUMN_SUM);
    } else {
        odd_own = own.odd;
        odd_green = ODD_SUM(GREEN_SUM);
        odd_other = ODD_SUM(OTHER_SUM);
        even_own = EVEN_SUM(ROW_SUM);
        even_green = own.even;
        even_other = EVEN_SUM(COLUMN_SUM);
    }
    pixels_t even, odd;
    even.red = is_red_row ? even_own : even_other;
    even.green = even_green;
    even.blue = is_red_row ? even_other : even_own;
    odd.red = is_red_row ? odd_own : odd_other;
    odd.green = odd_green;
    odd.blue = is_red_row ? odd_other : odd_own;
    store_pixels(p, even, odd);
}

static __attribute__((always_inline)) void store_row(__global const uchar *const *rows, int width,
                                                     const int is_red_row, __global uchar *out)
{
    /* Blue is one column beside red. */
    const int colour_x = is_red_row ? RED_X : 1 - RED_X;
    /* Vectors end REACH columns before the row does. The last vector overlaps the one before. */
    const int past = width - 2;
    int x = 0;
    if (past - 2 >= PIXELS) {
        for (; x < 2; x++)
            store_pixel(rows, x, width, is_red_row, (x & 1) == colour_x, out + (size_t)x * PIXEL_BYTES);
        const int last = (past - PIXELS) & ~1;
        for (;;) {
            store_32(rows, x, is_red_row, colour_x == 0, out + (size_t)x * PIXEL_BYTES);
            if (x == last)
                break;
            x = min(x + PIXELS, last);
        }
        x = last + PIXELS;
    }
    for (; x < width; x++)
        store_pixel(rows, x, width, is_red_row, (x & 1) == colour_x, out + (size_t)x * PIXEL_BYTES);
}

__kernel void demosaic_rows(DEMOSAIC_ARGS)
{
    const int2 band = band_of(height);
    for (int y = band.x; y < band.y; y++) {
        __global const uchar *rows[SPAN];
        for (int i = 0; i < SPAN; i++)
            rows[i] = src + src_offset + (size_t)mirrored(y + i - REACH, height) * src_stride;
        __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;
        if ((y & 1) == RED_Y)
            store_row(rows, width, 1, out);
        else
            store_row(rows, width, 0, out);
    }
}
