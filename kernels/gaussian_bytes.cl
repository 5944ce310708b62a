/* Appended to gaussian.cl. CPU, buffer, 8-bit samples, integer arithmetic, SAMPLE_STEP 1.
 *
 * gaussian_bytes  Local size 1; each work-item filters a band of rows. It cuts a row into tiles. The
 *                 vertical sums of a tile fit the first-level cache at any width and stride; they
 *                 are then summed horizontally.
 *
 * Arguments as in gaussian.cl; `samples` is at least 16.
 *
 * Exactness: weights sum to 256, so a vertical sum is at most 255*256 and fits 16 bits. The high and
 * the low bytes of the vertical sums are summed horizontally apart, as H and L, each at most 255*256.
 * The horizontal sum is V = 256*H + L, and (V + 32768) >> 16 equals (H + (L >> 8) + 128) >> 8, at most
 * 65408 before the shift. With x86's multiply-add of pairs, V is summed in 32 bits from vertical sums
 * minus 32768, and 256*32768 is added afterwards.
 */

/* Samples of a tile, and the most samples that its sums read past each end. */
#define TILE_SAMPLES 2048
#define MOST_LANES 4
#define HALO (HALF * MOST_LANES)
/* One more vector: make_pairs works in whole vectors. */
#define LINE_LEN (TILE_SAMPLES + 2 * HALO + 16)
/* Vectors of columns that are summed together. */
#define COLUMN_VECTORS 4

#define LOAD_SUMS(p) (((const packed_ushort16 *)(p))->v)
#define STORE_SUMS(p, x) (((packed_ushort16 *)(p))->v = (x))
#define LOAD_WIDE(p) convert_ushort16(LOAD_UCHAR16(p))

/* x86 has an instruction for a*b + c*d of 16-bit values. */
#if defined(__AVX2__)
#define PAIR_SUMS 1
#define PAIRS_OF_TAPS (HALF + 1)
typedef short pair_lanes_t __attribute__((vector_size(32)));
typedef struct __attribute__((packed)) { int8 v; } packed_int8;
#define LOAD_PAIRS(p) (((const packed_int8 *)(p))->v)
#define STORE_PAIRS(p, x) (((packed_int8 *)(p))->v = (x))
#define MULTIPLY_ADD(pairs, weights)                                                              \
    as_int8(__builtin_ia32_pmaddwd256((pair_lanes_t)(pairs), (pair_lanes_t)(weights)))
#else
#define PAIR_SUMS 0
#endif

/* Sums of a tile's columns; sample s of the row is at [HALO + s - start of the tile]. */
typedef struct {
#if PAIR_SUMS
    /* Sums minus 32768, so that they are signed; `pairs` holds each beside the next pixel's. */
    ushort sums[LINE_LEN + MOST_LANES];
    int pairs[LINE_LEN];
#else
    /* High and low bytes of the sums. */
    ushort high[LINE_LEN];
    ushort low[LINE_LEN];
#endif
} line_sums_t;

/* Writes the vertical sums of 16 * `vectors` columns, from sample `x` of the rows, to `at` of the
 * line. It reads whole cache lines at once: rows whose stride is a multiple of 4096 evict each other's
 * lines. */
static __attribute__((always_inline)) void add_rows(__global const uchar *const *rows, int x,
                                                    const ushort *weights, line_sums_t *line,
                                                    int at, int vectors)
{
    ushort16 sums[COLUMN_VECTORS];
#pragma unroll
    for (int v = 0; v < vectors; v++)
        sums[v] = LOAD_WIDE(rows[HALF] + x + 16 * v) * weights[HALF];
#pragma unroll
    for (int i = 0; i < HALF; i++)
#pragma unroll
        for (int v = 0; v < vectors; v++)
            sums[v] += (LOAD_WIDE(rows[i] + x + 16 * v) +
                        LOAD_WIDE(rows[TAPS - 1 - i] + x + 16 * v)) *
                       weights[i];
#pragma unroll
    for (int v = 0; v < vectors; v++) {
#if PAIR_SUMS
        STORE_SUMS(line->sums + at + 16 * v, sums[v] ^ (ushort)0x8000);
#else
        STORE_SUMS(line->high + at + 16 * v, sums[v] >> (ushort)8);
        STORE_SUMS(line->low + at + 16 * v, sums[v] & (ushort)0xff);
#endif
    }
}

/* 16 filtered samples, from `at` of the line. */
static __attribute__((always_inline)) uchar16 add_columns(const line_sums_t *line, int at,
                                                          int lanes, const ushort *weights)
{
#if PAIR_SUMS
    int8 first = 0, second = 0;
#pragma unroll
    for (int j = 0; j < PAIRS_OF_TAPS; j++) {
        const int *pairs = line->pairs + at + (2 * j - HALF) * lanes;
        /* The last tap has no partner. */
        const int pair = weights[min(2 * j, TAPS - 1 - 2 * j)] |
                         (j < HALF ? weights[min(2 * j + 1, TAPS - 2 - 2 * j)] << 16 : 0);
        first += MULTIPLY_ADD(LOAD_PAIRS(pairs), (int8)pair);
        second += MULTIPLY_ADD(LOAD_PAIRS(pairs + 8), (int8)pair);
    }
    const int16 sum = (int16)(first, second) + (256 * 32768 + 32768);
    return convert_uchar16(sum >> 16);
#else
    ushort16 high = LOAD_SUMS(line->high + at) * weights[HALF];
    ushort16 low = LOAD_SUMS(line->low + at) * weights[HALF];
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        const int left = at + (i - HALF) * lanes;
        const int right = at - (i - HALF) * lanes;
        high += (LOAD_SUMS(line->high + left) + LOAD_SUMS(line->high + right)) * weights[i];
        low += (LOAD_SUMS(line->low + left) + LOAD_SUMS(line->low + right)) * weights[i];
    }
    return convert_uchar16((high + (low >> (ushort)8) + (ushort)128) >> (ushort)8);
#endif
}

/* Extends a row past its first or last pixel: fills `count` sums at `at` with the pixel at `from`. */
static void repeat_pixel(line_sums_t *line, int at, int count, int from, int lanes)
{
    for (int i = 0; i < count; i++) {
#if PAIR_SUMS
        line->sums[at + i] = line->sums[from + i % lanes];
#else
        line->high[at + i] = line->high[from + i % lanes];
        line->low[at + i] = line->low[from + i % lanes];
#endif
    }
}

#if PAIR_SUMS
/* Makes the pairs from `at` to `to`: a sum and the next pixel's. */
static void make_pairs(line_sums_t *line, int at, int to, int lanes)
{
    for (; at < to; at += 16) {
        const ushort16 a = LOAD_SUMS(line->sums + at);
        const ushort16 b = LOAD_SUMS(line->sums + at + lanes);
        const ushort16 low = ((ushort16)(a.lo, b.lo)).s08192a3b4c5d6e7f;
        const ushort16 high = ((ushort16)(a.hi, b.hi)).s08192a3b4c5d6e7f;
        STORE_PAIRS(line->pairs + at, as_int8(low));
        STORE_PAIRS(line->pairs + at + 8, as_int8(high));
    }
}
#endif

__kernel void gaussian_bytes(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                             int samples, int height, int first, int src_height, int copy_lane, int lanes,
                             __constant const weight_t *weights)
{
    const int2 band = band_of(height);
    const int reach = HALF * lanes;
    const int pixels = samples / lanes;
    const int tiles = samples / (TILE_SAMPLES - MOST_LANES) + 1;
    ushort taps[HALF + 1];
    for (int i = 0; i <= HALF; i++)
        taps[i] = (ushort)weights[i];
    /* Only formats of 4 lanes have a padding lane, so every vector starts with lane 0. */
    const uchar16 copied = (uchar16)(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3) ==
                           (uchar16)(uchar)copy_lane ? (uchar16)0xff : (uchar16)0;
    line_sums_t line;

    for (int y = band.x; y < band.y; y++) {
        __global const uchar *rows[TAPS];
        for (int i = 0; i < TAPS; i++)
            rows[i] = src + src_offset + (size_t)clamp(first + y - HALF + i, 0, src_height - 1) * src_stride;
        __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;

        for (int tile = 0; tile < tiles; tile++) {
            /* Equal parts of whole pixels: no tile has fewer than 16 samples. */
            const int x0 = (int)((ulong)pixels * (uint)tile / (uint)tiles) * lanes;
            const int x1 = (int)((ulong)pixels * (uint)(tile + 1) / (uint)tiles) * lanes;
            const int from = max(x0 - reach, 0);
            const int to = min(x1 + reach, samples);
            /* The last vector overlaps the one before; there is no scalar tail. */
            int at = from;
            for (; at + 16 * COLUMN_VECTORS <= to; at += 16 * COLUMN_VECTORS)
                add_rows(rows, at, taps, &line, HALO + at - x0, COLUMN_VECTORS);
            for (at = min(at, to - 16);; at = min(at + 16, to - 16)) {
                add_rows(rows, at, taps, &line, HALO + at - x0, 1);
                if (at == to - 16)
                    break;
            }
            if (x0 == 0)
                repeat_pixel(&line, HALO - reach, reach, HALO, lanes);
            if (x1 == samples)
                repeat_pixel(&line, HALO + x1 - x0, reach, HALO + x1 - x0 - lanes, lanes);
#if PAIR_SUMS
            make_pairs(&line, HALO - reach, HALO + x1 - x0 + reach, lanes);
#endif
            for (int x = x0;; x = min(x + 16, x1 - 16)) {
                uchar16 filtered = add_columns(&line, HALO + x - x0, lanes, taps);
                if (copy_lane >= 0)
                    filtered = (filtered & ~copied) | (LOAD_UCHAR16(rows[HALF] + x) & copied);
                STORE_UCHAR16(out + x, filtered);
                if (x == x1 - 16)
                    break;
            }
        }
    }
}
