/* Appended to histogram.cl. CPU, buffer, 8-bit samples: a counter per pair of adjacent bytes.
 *
 * histogram_pairs  Local size 1; one work-item per compute unit. Work-items take blocks of the plane
 *                  in turn, so that a plane with unlike halves keeps all of them busy. A block is
 *                  counted by pairs, one increment for two samples, if a probe shows that the
 *                  counters in use fit the cache, else byte by byte. A step that repeats one pixel,
 *                  or one pair of grey samples, takes one increment per table. At the end the pair
 *                  tables are summed into bins and zeroed, if a block used them.
 * histogram_bytes  The same for small frames, byte by byte, without pair tables: to sum and zero these
 *                  would take longer than to count. Each work-item counts a part of the rows.
 *
 * Arguments: those of histogram.cl; for histogram_pairs also `pair_tables`: PAIR_TABLES * PAIR_TABLE_LEN counters per
 * work-item, zero at entry and at exit.
 *
 * Exactness: every sample is counted once; the host keeps the samples of a plane under 2^32, so no
 * counter overflows.
 */
/* Bytes of a step: whole patterns, and as many samples for each table. */
#if PERIOD == 3
#define STEP_BYTES 24
#define PAIR_TABLES 3
#define BYTE_TABLES 6
#elif PERIOD == 4
#define STEP_BYTES 32
#define PAIR_TABLES 2
#define BYTE_TABLES 8
#else
#define STEP_BYTES 32
#define PAIR_TABLES 1
#define BYTE_TABLES 4
#endif
/* How often a step that repeats one pixel holds each of its pairs. */
#define PAIRS_OF_RUN (STEP_BYTES / 2 / PAIR_TABLES)

#define BYTE_TABLE_LEN (256 + 16)

/* Most and fewest patterns of a block. The probes of a block miss the cache; a block is large enough
 * that their cost does not matter. */
#define BLOCK_MOST ((4 << 20) / PERIOD)
#define BLOCK_FEWEST 4096

/* Pairs of a block that are probed, and how many cells of a 16 x 16 grid of pairs they may occupy
 * before the block is counted byte by byte. Random bytes occupy 160 cells, photographs and pictures
 * of two values fewer than 60. */
#define SPREAD_PROBES 256
#define SPREAD_WIDE 90

typedef struct { int from, to; } segment_t;

/* The patterns of row `at / span` between `at` and `stop`. */
static segment_t next_segment(ulong at, ulong stop, int first, ulong span)
{
    segment_t s;
    s.from = first + (int)(at % span);
    s.to = s.from + (int)min(span - at % span, stop - at);
    return s;
}

/* Adds `n` to the bin of byte value `v` of channel `ch` in the work-item's own table. */
static void add_to_bin(__global uint *table, int ch, uint v, uint n, uint shift, uint bins)
{
    if (ch >= 0)
        table[(uint)ch * bins + bin_of(v, shift, bins)] += n;
}

/* Whether a step repeats one pixel, or one pair of grey samples. The first word decides for most
 * steps. */
static __attribute__((always_inline)) int is_run(const ulong *w)
{
#if PERIOD == 3
    if ((w[0] ^ (w[0] >> 24)) << 24)
        return 0;
    return ((w[1] ^ ((w[0] >> 16) | (w[0] << 32))) | (w[2] ^ ((w[1] >> 16) | (w[1] << 32)))) == 0;
#else
    if (w[0] ^ rotate(w[0], (ulong)(PERIOD == 4 ? 32 : 16)))
        return 0;
    return ((w[0] ^ w[1]) | (w[0] ^ w[2]) | (w[0] ^ w[3])) == 0;
#endif
}

/* Counts whole steps from `p`, byte by byte and without the pair tables if `wide` (a constant at each call). Returns the
 * first byte that is not counted. */
static __attribute__((always_inline)) __global const uchar *
count_steps(__global const uchar *p, __global const uchar *past, __global uint *pairs, uint *bytes,
            int wide)
{
    for (; past - p >= STEP_BYTES; p += STEP_BYTES) {
        ulong w[STEP_BYTES / 8];
#pragma unroll
        for (int i = 0; i < STEP_BYTES / 8; i++)
            w[i] = LOAD_ULONG(p + 8 * i);
        if (is_run(w)) {
            if (wide) {
#pragma unroll
                for (int i = 0; i < 2 * PAIR_TABLES; i++)
                    bytes[i * BYTE_TABLE_LEN + ((w[0] >> (8 * i)) & 0xff)] += PAIRS_OF_RUN;
            } else {
#pragma unroll
                for (int i = 0; i < PAIR_TABLES; i++)
                    pairs[i * PAIR_TABLE_LEN + ((w[0] >> (16 * i)) & 0xffff)] += PAIRS_OF_RUN;
            }
        } else if (wide) {
            /* Loads of two bytes: from bytes that are shifted out of `w`, compilers make vectors, which can take six times as
             * long (PoCL 3.1, RGB). Loads of single bytes take a tenth longer with PoCL 6. */
#pragma unroll
            for (int i = 0; i < STEP_BYTES / 2; i++) {
                const uint two = LOAD_USHORT(p + 2 * i);
                bytes[(2 * i) % BYTE_TABLES * BYTE_TABLE_LEN + (two & 0xff)]++;
                bytes[(2 * i + 1) % BYTE_TABLES * BYTE_TABLE_LEN + (two >> 8)]++;
            }
        } else {
#pragma unroll
            for (int i = 0; i < STEP_BYTES / 2; i++)
                pairs[(i % PAIR_TABLES) * PAIR_TABLE_LEN +
                      ((w[i / 4] >> (16 * (i % 4))) & 0xffff)]++;
        }
    }
    return p;
}

/* Sums the rows and the columns of a pair table into the bins of the pair's two samples, and zeroes
 * the table. The low byte of an index is the first sample. */
static void reduce_pairs(__global uint *pairs, __global uint *table, int first_ch, int second_ch,
                         uint shift, uint bins)
{
    uint16 columns[16];
    for (int c = 0; c < 16; c++)
        columns[c] = 0;
    for (uint row = 0; row < 256; row++) {
        __global uint16 *q = (__global uint16 *)(pairs + row * 256);
        uint16 sum = 0;
        for (int c = 0; c < 16; c++) {
            const uint16 v = q[c];
            sum += v;
            columns[c] += v;
            q[c] = (uint16)0;
        }
        const uint8 a = sum.lo + sum.hi;
        const uint4 b = a.lo + a.hi;
        add_to_bin(table, second_ch, row, b.x + b.y + b.z + b.w, shift, bins);
    }
    const uint *flat = (const uint *)columns;
    for (uint v = 0; v < 256; v++)
        add_to_bin(table, first_ch, v, flat[v], shift, bins);
}

/* The patterns of which every sample counts. */
static int2 whole_patterns(int4 channel, int4 begin, int4 end, int first, int last)
{
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    int2 inner = (int2)(first, last);
    for (int j = 0; j < PERIOD; j++)
        if (ch[j] >= 0) {
            inner.x = max(inner.x, from[j]);
            inner.y = min(inner.y, to[j]);
        }
    inner.y = max(inner.y, inner.x);
    return inner;
}

/* Counts the patterns of which only some samples count: at most one at each end of a row. */
static void count_ends(__global const uchar *row, int4 channel, int4 begin, int4 end, int2 inner,
                       __global uint *table, uint shift, uint bins)
{
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    for (int j = 0; j < PERIOD; j++) {
        for (int p = from[j]; p < min(inner.x, to[j]); p++)
            add_to_bin(table, ch[j], row[p * PERIOD + j], 1, shift, bins);
        for (int p = max(inner.y, from[j]); p < to[j]; p++)
            add_to_bin(table, ch[j], row[p * PERIOD + j], 1, shift, bins);
    }
}

__kernel void histogram_bytes(PLANE_ARGS, PATTERN_ARGS, __global uint *tables, uint table_len)
{
    UNPACK(ch, channel);
    __global uint *table = tables + get_global_id(0) * (size_t)table_len;
    const int2 inner = whole_patterns(channel, begin, end, first, last);
    const int y1 = (int)((ulong)rows * (get_global_id(0) + 1) / get_global_size(0));
    uint bytes[BYTE_TABLES * BYTE_TABLE_LEN];
    for (int i = 0; i < BYTE_TABLES * BYTE_TABLE_LEN; i++)
        bytes[i] = 0;
    for (int y = (int)((ulong)rows * get_global_id(0) / get_global_size(0)); y < y1; y++) {
        __global const uchar *row = src + src_offset + (size_t)(y0 + y) * src_stride;
        count_ends(row, channel, begin, end, inner, table, shift, bins);
        __global const uchar *p = row + (size_t)inner.x * PERIOD;
        __global const uchar *past = row + (size_t)inner.y * PERIOD;
        for (; past - p >= STEP_BYTES; p += STEP_BYTES) {
#pragma unroll
            for (int i = 0; i < STEP_BYTES / 8; i++) {
                const ulong w = LOAD_ULONG(p + 8 * i);
#pragma unroll
                for (int k = 0; k < 8; k++)
                    bytes[((8 * i + k) % BYTE_TABLES) * BYTE_TABLE_LEN + ((w >> (8 * k)) & 0xff)]++;
            }
        }
        for (; p < past; p += PERIOD)
            for (int j = 0; j < PERIOD; j++)
                bytes[j * BYTE_TABLE_LEN + p[j]]++;
    }
    for (int t = 0; t < BYTE_TABLES; t++)
        for (uint v = 0; v < 256; v++)
            add_to_bin(table, ch[t % PERIOD], v, bytes[t * BYTE_TABLE_LEN + v], shift, bins);
}

__kernel void histogram_pairs(PLANE_ARGS, PATTERN_ARGS, __global uint *tables, uint table_len,
                              __global uint *pair_tables)
{
    UNPACK(ch, channel);
    __global uint *table = tables + get_global_id(0) * (size_t)table_len;
    __global uint *pairs = pair_tables + get_global_id(0) * (size_t)(PAIR_TABLES * PAIR_TABLE_LEN);

    const int2 inner = whole_patterns(channel, begin, end, first, last);
    const int inner0 = inner.x, inner1 = inner.y;
    for (int y = (int)get_global_id(0); y < rows; y += (int)get_global_size(0))
        count_ends(src + src_offset + (size_t)(y0 + y) * src_stride, channel, begin, end, inner, table, shift, bins);
    const ulong span = (ulong)(inner1 - inner0);
    if (span == 0)
        return;
    const ulong total = span * (ulong)rows;
    const ulong items = get_global_size(0);
    const ulong block = clamp(total / (4 * items), (ulong)BLOCK_FEWEST, (ulong)BLOCK_MOST);
    uint bytes[BYTE_TABLES * BYTE_TABLE_LEN];
    for (int i = 0; i < BYTE_TABLES * BYTE_TABLE_LEN; i++)
        bytes[i] = 0;
    int has_pairs = 0;

    for (ulong start = get_global_id(0) * block; start < total; start += items * block) {
        const ulong stop = min(start + block, total);
        uint seen[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        const ulong probe = max((stop - start) / SPREAD_PROBES, 1UL);
        /* A division per probe would take as long as the probe. */
        const int probe_rows = (int)(probe / span), probe_patterns = (int)(probe % span);
        int y = y0 + (int)(start / span), x = (int)(start % span);
        for (ulong at = start; at + 1 < stop; at += probe) {
            __global const uchar *p = src + src_offset + (size_t)y * src_stride + (size_t)(inner0 + x) * PERIOD;
            /* A one-byte pattern pairs with its right neighbour, unless the row ends there. */
            const uint second = PERIOD > 1 || x + 1 < (int)span ? p[1] : p[0];
            const uint cell = (p[0] >> 4) * 16 + (second >> 4);
            seen[cell >> 5] |= 1u << (cell & 31);
            y += probe_rows;
            x += probe_patterns;
            if (x >= (int)span) {
                x -= (int)span;
                y++;
            }
        }
        uint occupied = 0;
        for (int i = 0; i < 8; i++)
            occupied += popcount(seen[i]);
        const int is_wide = occupied > SPREAD_WIDE;
        has_pairs |= !is_wide;

        for (ulong at = start; at < stop;) {
            const segment_t s = next_segment(at, stop, inner0, span);
            __global const uchar *p = src + src_offset +
                                      (size_t)(y0 + (int)(at / span)) * src_stride +
                                      (size_t)s.from * PERIOD;
            __global const uchar *past = p + (size_t)(s.to - s.from) * PERIOD;
            at += (ulong)(s.to - s.from);
            p = is_wide ? count_steps(p, past, pairs, bytes, 1) : count_steps(p, past, pairs, bytes, 0);
            for (; p < past; p += PERIOD)
                for (int j = 0; j < PERIOD; j++)
                    add_to_bin(table, ch[j], p[j], 1, shift, bins);
        }
    }
    for (int t = 0; t < BYTE_TABLES; t++)
        for (uint v = 0; v < 256; v++)
            add_to_bin(table, ch[t % PERIOD], v, bytes[t * BYTE_TABLE_LEN + v], shift, bins);
    for (int t = 0; has_pairs && t < PAIR_TABLES; t++)
        reduce_pairs(pairs + t * PAIR_TABLE_LEN, table, ch[(2 * t) % PERIOD],
                     ch[(2 * t + 1) % PERIOD], shift, bins);
}
