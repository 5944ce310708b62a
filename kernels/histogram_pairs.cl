/* After histogram.cl. CPU: counters of pairs of bytes. */
/* Words of 8 bytes taken at once: whole patterns, and whole turns of the tables below. */
#if PERIOD == 3
#define STEP_WORDS 3
#define PAIR_TABLES 3
#define BYTE_TABLES 6
#elif PERIOD == 4
#define STEP_WORDS 4
#define PAIR_TABLES 2
#define BYTE_TABLES 8
#else
#define STEP_WORDS 4
#define PAIR_TABLES 1
#define BYTE_TABLES 4
#endif
#define STEP_BYTES (8 * STEP_WORDS)

/* Tables a power of two apart would compete for the same cache lines. */
#define PAIR_TABLE_LEN (65536 + 1040)
#define BYTE_TABLE_LEN (256 + 16)

/* Pairs looked at to see how wide they are spread, and the share of a 16 x 16 grid of pairs that
 * counts as wide: random bytes reach 220 of 256, photographs and two-value images under 80. */
#define SPREAD_PROBES 512
#define SPREAD_WIDE 128

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

/* Whether the step holds one pixel over and over. */
static int is_run(const ulong *w)
{
#if PERIOD == 3
    const ulong pixel = w[0] & 0xffffffUL;
    return w[0] == (pixel | (pixel << 24) | (pixel << 48)) &&
           w[1] == ((pixel >> 16) | (pixel << 8) | (pixel << 32) | (pixel << 56)) &&
           w[2] == ((pixel >> 8) | (pixel << 16) | (pixel << 40));
#else
#if PERIOD == 1
    const ulong all = (w[0] & 0xff) * 0x0101010101010101UL;
#elif PERIOD == 2
    const ulong all = (w[0] & 0xffff) * 0x0001000100010001UL;
#else
    const ulong all = (w[0] & 0xffffffffUL) * 0x0000000100000001UL;
#endif
    return ((w[0] ^ all) | (w[1] ^ all) | (w[2] ^ all) | (w[3] ^ all)) == 0;
#endif
}

/* Sums a pair table over its rows and columns into the bins of the pair's two samples, and
 * leaves it zero. The low byte of an index is the first sample. */
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

__kernel void histogram_pairs(PLANE_ARGS, PATTERN_ARGS, __global uint *tables, uint table_len,
                              __global uint *pair_tables)
{
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    __global uint *table = tables + get_global_id(0) * (size_t)table_len;
    __global uint *pairs = pair_tables + get_global_id(0) * (size_t)(PAIR_TABLES * PAIR_TABLE_LEN);

    int inner0 = first, inner1 = last;
    for (int j = 0; j < PERIOD; j++)
        if (ch[j] >= 0) {
            inner0 = max(inner0, from[j]);
            inner1 = min(inner1, to[j]);
        }
    inner1 = max(inner1, inner0);
    /* Patterns in which only some samples count: at most one at each end of a row. */
    for (int y = (int)get_global_id(0); y < rows; y += (int)get_global_size(0)) {
        __global const uchar *row = src + src_offset + (size_t)(y0 + y) * src_stride;
        for (int j = 0; j < PERIOD; j++) {
            for (int p = from[j]; p < min(inner0, to[j]); p++)
                add_to_bin(table, ch[j], row[p * PERIOD + j], 1, shift, bins);
            for (int p = max(inner1, from[j]); p < to[j]; p++)
                add_to_bin(table, ch[j], row[p * PERIOD + j], 1, shift, bins);
        }
    }
    const ulong span = (ulong)(inner1 - inner0);
    if (span == 0)
        return;
    const ulong total = span * (ulong)rows;
    const ulong start = total * get_global_id(0) / get_global_size(0);
    const ulong stop = total * (get_global_id(0) + 1) / get_global_size(0);

    uint seen[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    const ulong probe = max((stop - start) / SPREAD_PROBES, 1UL);
    for (ulong at = start; at + 1 < stop; at += probe) {
        __global const uchar *p = src + src_offset + (size_t)(y0 + (int)(at / span)) * src_stride +
                                  (size_t)(inner0 + (int)(at % span)) * PERIOD;
        /* A pattern of one byte pairs with its neighbour, unless that is past the row. */
        const uint second = PERIOD > 1 || at % span + 1 < span ? p[1] : p[0];
        const uint cell = (p[0] >> 4) * 16 + (second >> 4);
        seen[cell >> 5] |= 1u << (cell & 31);
    }
    uint occupied = 0;
    for (int i = 0; i < 8; i++)
        occupied += popcount(seen[i]);
    const int wide = occupied > SPREAD_WIDE;

    uint bytes[BYTE_TABLES * BYTE_TABLE_LEN];
    if (wide)
        for (int i = 0; i < BYTE_TABLES * BYTE_TABLE_LEN; i++)
            bytes[i] = 0;

    for (ulong at = start; at < stop;) {
        const segment_t s = next_segment(at, stop, inner0, span);
        __global const uchar *p = src + src_offset + (size_t)(y0 + (int)(at / span)) * src_stride +
                                  (size_t)s.from * PERIOD;
        __global const uchar *past = p + (size_t)(s.to - s.from) * PERIOD;
        at += (ulong)(s.to - s.from);
        for (; p + STEP_BYTES <= past; p += STEP_BYTES) {
            ulong w[STEP_WORDS];
#pragma unroll
            for (int i = 0; i < STEP_WORDS; i++)
                w[i] = LOAD_ULONG(p + 8 * i);
            if (wide) {
#pragma unroll
                for (int k = 0; k < STEP_BYTES; k++)
                    bytes[(k % BYTE_TABLES) * BYTE_TABLE_LEN + ((w[k / 8] >> (8 * (k % 8))) & 0xff)]++;
            } else if (is_run(w)) {
                for (int j = 0; j < PERIOD; j++)
                    add_to_bin(table, ch[j], (uint)(w[0] >> (8 * j)) & 0xff, STEP_BYTES / PERIOD,
                               shift, bins);
            } else {
#pragma unroll
                for (int k = 0; k < STEP_BYTES / 2; k++)
                    pairs[(k % PAIR_TABLES) * PAIR_TABLE_LEN + ((w[k / 4] >> (16 * (k % 4))) & 0xffff)]++;
            }
        }
        for (; p < past; p += PERIOD)
            for (int j = 0; j < PERIOD; j++)
                add_to_bin(table, ch[j], p[j], 1, shift, bins);
    }
    if (wide) {
        for (int t = 0; t < BYTE_TABLES; t++)
            for (uint v = 0; v < 256; v++)
                add_to_bin(table, ch[t % PERIOD], v, bytes[t * BYTE_TABLE_LEN + v], shift, bins);
    } else {
        for (int t = 0; t < PAIR_TABLES; t++)
            reduce_pairs(pairs + t * PAIR_TABLE_LEN, table, ch[(2 * t) % PERIOD],
                         ch[(2 * t + 1) % PERIOD], shift, bins);
    }
}
