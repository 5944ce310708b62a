/* Appended to mask_bits.cl. 16 adjacent pixels of a buffer that are compared along vectors together: along x, then along y.
 *
 * Exactness: a row's value, 256 times a sample, is a weighted sum without negative weights, so arithmetic modulo 2^16 (2^32
 * for 16-bit samples) yields it exactly; modulo 2^32 the value of a pixel. E >= 2*theta is C >= ceil((L+R)/2) + theta,
 * and E <= -2*theta is C + theta <= floor((L+R)/2).
 */
/* Bits of the 16 pixels at x that lie in a range of columns. */
static uint column_bits(int2 columns, int x)
{
    const int first = clamp(columns.x - x, 0, 16);
    const int past = clamp(columns.y - x, 0, 16);
    return first < past ? ((1u << (past - first)) - 1u) << (16 - past) : 0u;
}

#if !USE_IMAGE
#if SAMPLE_BYTES == 1
typedef ushort16 row_t;
typedef int16 sum_t;
typedef int sum_theta_t;
#define LOAD_ROW(p) convert_ushort16(LOAD_UCHAR16(p))
#define WIDEN(v) convert_int16(v)
#define ROW_WEIGHT(w) ((ushort)(w))
#define UNREACHED_THETA (1 << 28)
#define REACHES(a, theta, b) ((a) + (theta) <= (b))
#else
typedef uint16 row_t;
typedef uint16 sum_t;
typedef uint sum_theta_t;
#if BIG_ENDIAN_SAMPLES
#define LOAD_ROW(p) convert_uint16(SWAP_BYTES16(LOAD_USHORT16(p)))
#else
#define LOAD_ROW(p) convert_uint16(LOAD_USHORT16(p))
#endif
#define WIDEN(v) (v)
#define ROW_WEIGHT(w) ((uint)(w))
/* No value reaches this: it is at least 65536 below 2^32. */
#define UNREACHED_THETA 0xffffffffu
/* min() of two vectors: Oclgrind 21.10 applies a scalar to the first lane only. */
#define REACHES(a, theta, b) (min((a), (sum_t)(UNREACHED_THETA - (theta))) + (theta) <= (b))
#endif

/* The columns from a pixel to the first and to the last sample of its row that it is compared with, itself included. */
static int2 columns_of(taps_t left, taps_t right)
{
    return (int2)(min(min(min(left.near, left.far), min(right.near, right.far)), 0),
                  max(max(max(left.near, left.far), max(right.near, right.far)), 0));
}

/* 16 neighbours along x, of pixels at p of their row. */
static row_t tap_row(__global const uchar *p, taps_t t)
{
    const row_t near = LOAD_ROW(p + (long)t.near * SAMPLE_BYTES);
    const row_t far = LOAD_ROW(p + (long)t.far * SAMPLE_BYTES);
    return (near << ROW_WEIGHT(8)) + (far - near) * ROW_WEIGHT(t.along_x);
}

/* 16 centres along x; `is_first` and `is_last`: the first or the last one lies at the frame's edge. */
static row_t centre_row(__global const uchar *p, int blur, int is_first, int is_last)
{
    const row_t s = LOAD_ROW(p);
    if (!blur)
        return s << ROW_WEIGHT(8);
    const row_t before = is_first ? s.s00123456789abcde : LOAD_ROW(p - SAMPLE_BYTES);
    const row_t after = is_last ? s.s123456789abcdeff : LOAD_ROW(p + SAMPLE_BYTES);
    return (s << ROW_WEIGHT(8)) + (before + after - (s << ROW_WEIGHT(1))) * ROW_WEIGHT(blur);
}

static sum_t between_rows(row_t top, row_t bottom, int weight)
{
    const sum_t upper = WIDEN(top);
    return (upper << (sum_t)8) + (WIDEN(bottom) - upper) * (sum_t)weight;
}

/* The bits of 16 pixels. */
static uint marked_bits(sum_t centre, sum_t left, sum_t right, sum_theta_t bright, sum_theta_t dark, int flags)
{
    sum_t upper, lower;
    if (flags & MINIMUM) {
        upper = max(left, right);
        lower = min(left, right);
    } else {
        /* Half of left + right, rounded up and down, without overflow. */
        const sum_t half_sum = (left ^ right) >> (sum_t)1;
        upper = (left | right) - half_sum;
        lower = (left & right) + half_sum;
    }
    const int16 marked = REACHES(upper, bright, centre) | REACHES(centre, dark, lower);
    const uint bits = pack_bits16(convert_char16(marked));
    return (bits & 0xffu) << 8 | bits >> 8;
}

/* A threshold in the sums' unit. */
static sum_theta_t sum_theta(int theta, int is_on)
{
    return is_on ? (sum_theta_t)min((ulong)THETA(theta), (ulong)UNREACHED_THETA) : UNREACHED_THETA;
}

/* The centre of three rows. */
static sum_t matched_sum(row_t above, row_t middle, row_t below, int blur)
{
    const sum_t own = WIDEN(middle);
    return (own << (sum_t)8) + (WIDEN(above) + WIDEN(below) - (own << (sum_t)1)) * (sum_t)blur;
}
#endif
