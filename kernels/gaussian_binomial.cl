/* Appended to gaussian.cl. CPU, buffer, 8-bit samples, integer arithmetic, SAMPLE_STEP 1; the weights are 64*(1 2 1) of
 * 3 taps or 16*(1 4 6 4 1) of 5.
 *
 * gaussian_binomial  Local size 1; each work-item filters a band of rows. It cuts a row into tiles. The vertical sums of
 *                    a tile fit the first-level cache at any width and stride; they are then summed horizontally.
 *
 * Arguments as in gaussian.cl, without `weights`; `samples` is at least 32.
 *
 * Two adjacent samples are read as one word of 16 bits. Its low and its high byte are summed apart, so sums of samples
 * at even and at odd places lie in two lines. This needs no widening of bytes, and no narrowing at the end.
 *
 * Exactness: the weights are divided by their common factor and then sum to 4 or 16. The sums of both passes stay under
 * 16*16*255 + 128, so they fit 16 bits; the rounding and the final shift restore the factor.
 */
/* Samples of a tile, and the most samples that its sums read past each end. */
#define TILE_SAMPLES 2048
#define MOST_LANES 4
#define HALO (HALF * MOST_LANES)
/* Samples that are summed together: 16 words. */
#define STEP 32
#define LINE_LEN (TILE_SAMPLES / 2 + HALO + STEP)

/* The taps are summed with the weights 1 2 1 or 1 4 6 4 1. */
#if TAPS == 3
#define BINOMIAL_SUM(tap) (tap(0) + tap(2) + (tap(1) << (ushort)1))
#define BINOMIAL_SHIFT 4
#else
#define BINOMIAL_SUM(tap) (tap(0) + tap(4) + ((tap(1) + tap(3)) << (ushort)2) + tap(2) * (ushort)6)
#define BINOMIAL_SHIFT 8
#endif

#define LOAD_SUMS(p) (((const packed_ushort16 *)(p))->v)
#define STORE_SUMS(p, x) (((packed_ushort16 *)(p))->v = (x))

/* Vertical sums of a tile's samples. Place p is at [p & 1][p / 2]; the tile's first sample has place HALO. */
typedef struct { ushort sums[2][LINE_LEN]; } row_sums_t;
/* Where the sum of a place is. */
#define AT(line, place) ((line)->sums[(place) & 1] + (place) / 2)

/* Writes the vertical sums of STEP samples, from sample `x` of the rows, to `low` and `high`. */
static __attribute__((always_inline)) void add_rows(__global const uchar *const *rows, int x, ushort *low, ushort *high)
{
#define LOW_TAP(i) (LOAD_USHORT16(rows[i] + x) & (ushort)0xff)
#define HIGH_TAP(i) (LOAD_USHORT16(rows[i] + x) >> (ushort)8)
    STORE_SUMS(low, BINOMIAL_SUM(LOW_TAP));
    STORE_SUMS(high, BINOMIAL_SUM(HIGH_TAP));
#undef LOW_TAP
#undef HIGH_TAP
}

/* STEP filtered samples; `low` and `high`: the vertical sums of the taps of the words' low and high bytes. */
static __attribute__((always_inline)) ushort16 add_columns(const ushort *const *low, const ushort *const *high, int at)
{
    const ushort16 rounding = (ushort)(1 << (BINOMIAL_SHIFT - 1));
#define LOW_TAP(i) LOAD_SUMS(low[i] + at)
#define HIGH_TAP(i) LOAD_SUMS(high[i] + at)
    const ushort16 l = (BINOMIAL_SUM(LOW_TAP) + rounding) >> (ushort)BINOMIAL_SHIFT;
    const ushort16 h = (BINOMIAL_SUM(HIGH_TAP) + rounding) << (ushort)(8 - BINOMIAL_SHIFT);
    return l | (h & (ushort)0xff00);
#undef LOW_TAP
#undef HIGH_TAP
}

/* The taps of the samples from `place` on. */
static __attribute__((always_inline)) void find_columns(const row_sums_t *line, int place, int lanes, const ushort **low,
                                                        const ushort **high)
{
#pragma unroll
    for (int i = 0; i < TAPS; i++) {
        const int tap = place + (i - HALF) * lanes;
        low[i] = AT(line, tap);
        high[i] = AT(line, tap + 1);
    }
}

/* Puts the bits of `copied` from the samples at `p` into filtered ones. */
static ushort16 keep_lane(ushort16 filtered, __global const uchar *p, ushort16 copied)
{
    return (filtered & ~copied) | (LOAD_USHORT16(p) & copied);
}

/* Extends a row past its first or last pixel: fills `count` sums at `place` with the pixel at `from`. */
static void repeat_pixel(row_sums_t *line, int place, int count, int from, int lanes)
{
    for (int i = 0; i < count; i++)
        *AT(line, place + i) = *AT(line, from + i % lanes);
}

__kernel void gaussian_binomial(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                                int samples, int height, int first, int src_height, int copy_lane, int lanes)
{
    const int2 band = band_of(height);
    const int reach = HALF * lanes;
    const int pixels = samples / lanes;
    const int tiles = samples / (TILE_SAMPLES - MOST_LANES) + 1;
    /* Only formats of 4 lanes have a padding lane, so every vector starts with lane 0. */
    const ushort2 lane_words = (ushort2)(copy_lane == 0 ? 0xff : copy_lane == 1 ? 0xff00 : 0,
                                         copy_lane == 2 ? 0xff : copy_lane == 3 ? 0xff00 : 0);
    const ushort16 copied = lane_words.xyxyxyxyxyxyxyxy;
    row_sums_t line;

    for (int y = band.x; y < band.y; y++) {
        __global const uchar *rows[TAPS];
        for (int i = 0; i < TAPS; i++)
            rows[i] = src + src_offset + (size_t)clamp(first + y - HALF + i, 0, src_height - 1) * src_stride;
        __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;

        for (int tile = 0; tile < tiles; tile++) {
            /* Equal parts of whole pixels: no tile has fewer than STEP samples. */
            const int x0 = (int)((ulong)pixels * (uint)tile / (uint)tiles) * lanes;
            const int x1 = (int)((ulong)pixels * (uint)(tile + 1) / (uint)tiles) * lanes;
            const int from = max(x0 - reach, 0);
            const int to = min(x1 + reach, samples);
            const int place = HALO + from - x0;
            ushort *even = AT(&line, place);
            ushort *odd = AT(&line, place + 1);
            int n = 0;
            for (; n + STEP <= to - from; n += STEP)
                add_rows(rows, from + n, even + n / 2, odd + n / 2);
            /* The last vector overlaps the one before; there is no scalar tail. */
            if (n < to - from) {
                const int last = to - from - STEP;
                add_rows(rows, from + last, AT(&line, place + last), AT(&line, place + last + 1));
            }
            if (x0 == 0)
                repeat_pixel(&line, HALO - reach, reach, HALO, lanes);
            if (x1 == samples)
                repeat_pixel(&line, HALO + x1 - x0, reach, HALO + x1 - x0 - lanes, lanes);
            const ushort *low[TAPS], *high[TAPS];
            find_columns(&line, HALO, lanes, low, high);
            const int count = x1 - x0;
            n = 0;
            if (copy_lane < 0)
                for (; n + STEP <= count; n += STEP)
                    STORE_USHORT16(out + x0 + n, add_columns(low, high, n / 2));
            else
                for (; n + STEP <= count; n += STEP)
                    STORE_USHORT16(out + x0 + n,
                                   keep_lane(add_columns(low, high, n / 2), rows[HALF] + x0 + n, copied));
            if (n < count) {
                const int x = x1 - STEP;
                find_columns(&line, HALO + x - x0, lanes, low, high);
                STORE_USHORT16(out + x, keep_lane(add_columns(low, high, 0), rows[HALF] + x, copied));
            }
        }
    }
}
