/* Histogram of the samples of one plane, for each of its components.
 *
 * histogram_private  Any device, buffer or image: a table per work-item in global memory.
 * histogram_pairs    CPU, 8-bit samples, buffer; local size 1: a counter per pair of neighbouring
 *                    bytes, so that one increment counts two samples; runs of equal pixels at
 *                    once; tables of single bytes instead where a sample of the frame shows pairs
 *                    spread so wide that they would miss the cache.
 * histogram_merge    Sums the tables of work-items, and leaves them zero for the next frame.
 * histogram_local    Any device, buffer or image: one table per work-group in local memory.
 * histogram_banked   GPU, buffer: COPIES of each counter in local memory, one per bank, so that
 *                    no image makes work-items of a row of banks wait for each other.
 *
 * Macros: PERIOD (samples of the byte pattern that repeats along a row, 1..4), COPIES (power of
 * two), TABLE_LEN (`table_len` of histogram_banked), ALIGNED_BASE (1: memory objects start at 16-byte boundaries), and common.cl's.
 *
 * | argument      | meaning                                                                      |
 * | src           | the plane; any offset and stride                                             |
 * | channel       | channel of each sample of the pattern, -1 for padding                        |
 * | begin, end    | half-open range of patterns that each sample of it counts in                 |
 * | first, last   | smallest begin, largest end                                                  |
 * | y0, rows      | rows counted                                                                 |
 * | shift, bins   | bin = sample >> shift, at most bins-1                                        |
 * | tables        | `table_len` counters per work-item (channel-major bins), zero at entry        |
 * | out           | `table_len` counters; histogram_local and _banked add to them                 |
 */
#ifndef PERIOD
#define PERIOD 1
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef TABLE_LEN
#define TABLE_LEN 1
#endif
#ifndef ALIGNED_BASE
#define ALIGNED_BASE 0
#endif

#define PATTERN_ARGS                                                                              \
    int4 channel, int4 begin, int4 end, int first, int last, int y0, int rows, uint shift, uint bins

/* A vector as an array, which loops over a pattern can index. */
#define UNPACK(name, v) const int name[4] = {(v).x, (v).y, (v).z, (v).w}

static uint bin_of(uint sample, uint shift, uint bins) { return min(sample >> shift, bins - 1); }

/* ---- a table per work-item ------------------------------------------------------------------ */

__kernel void histogram_private(PLANE_ARGS, PATTERN_ARGS, __global uint *tables, uint table_len)
{
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    __global uint *table = tables + get_global_id(0) * (size_t)table_len;
    const ulong span = (ulong)(last - first);
    const ulong total = span * (ulong)rows;
    const ulong start = total * get_global_id(0) / get_global_size(0);
    const ulong stop = total * (get_global_id(0) + 1) / get_global_size(0);

    for (ulong at = start; at < stop;) {
        const int y = y0 + (int)(at / span);
        const int p0 = first + (int)(at % span);
        const int p1 = (int)min((ulong)last, (ulong)p0 + (stop - at));
        for (int p = p0; p < p1; p++)
            for (int j = 0; j < PERIOD; j++)
                if (ch[j] >= 0 && p >= from[j] && p < to[j])
                    table[(uint)ch[j] * bins + bin_of(PLANE_SAMPLE(p * PERIOD + j, y), shift, bins)]++;
        at += (ulong)(p1 - p0);
    }
}

__kernel void histogram_merge(__global uint *tables, uint table_len, uint table_count,
                              __global uint *out)
{
    const uint i = get_global_id(0);
    if (i >= table_len)
        return;
    uint sum = 0;
    for (uint t = 0; t < table_count; t++) {
        __global uint *counter = tables + t * (size_t)table_len + i;
        sum += *counter;
        *counter = 0;
    }
    out[i] = sum;
}

/* ---- one table per work-group --------------------------------------------------------------- */

__kernel void histogram_local(PLANE_ARGS, PATTERN_ARGS, __global uint *out, uint table_len,
                              __local uint *table)
{
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    for (uint i = get_local_id(0); i < table_len; i += get_local_size(0))
        table[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const ulong span = (ulong)(last - first);
    const ulong total = span * (ulong)rows;
    for (ulong at = get_global_id(0); at < total; at += get_global_size(0)) {
        const int y = y0 + (int)(at / span);
        const int p = first + (int)(at % span);
        for (int j = 0; j < PERIOD; j++)
            if (ch[j] >= 0 && p >= from[j] && p < to[j])
                atomic_inc(&table[(uint)ch[j] * bins +
                                  bin_of(PLANE_SAMPLE(p * PERIOD + j, y), shift, bins)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < table_len; i += get_local_size(0))
        if (table[i])
            atomic_add(&out[i], table[i]);
}

#if !USE_IMAGE

/* ---- bank-private counters ------------------------------------------------------------------ */

/* Bytes a work-item takes at once: whole patterns, in 16-byte loads. */
#if PERIOD == 3
#define UNIT_VECTORS 3
#else
#define UNIT_VECTORS 1
#endif
#define UNIT_BYTES (16 * UNIT_VECTORS)

#if ALIGNED_BASE
#define LOAD_UINT4(p) (*(__global const uint4 *)(p))
#else
typedef struct __attribute__((packed)) { uint4 v; } packed_uint4;
#define LOAD_UINT4(p) (((__global const packed_uint4 *)(p))->v)
#endif

/* Counts one sample of the pattern outside the wide path. */
static void count_banked(__global const uchar *row, int p, int j, const int *ch, uint shift,
                         uint bins, __local uint *bank)
{
    if (ch[j] >= 0)
        atomic_inc(&bank[((uint)ch[j] * bins +
                          bin_of(load_sample(row + (p * PERIOD + j) * SAMPLE_BYTES), shift, bins)) *
                         COPIES]);
}

__kernel void histogram_banked(PLANE_ARGS, PATTERN_ARGS, __global uint *out, uint table_len)
{
    /* All of the local memory may be taken, which an argument's size may not be. */
    __local uint counters[TABLE_LEN * COPIES];
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    for (uint i = get_local_id(0); i < table_len * COPIES; i += get_local_size(0))
        counters[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    __local uint *bank = counters + (get_local_id(0) & (COPIES - 1));

    /* Patterns in which every sample counts; those beside them are done one by one. */
    int inner0 = first, inner1 = last;
    for (int j = 0; j < PERIOD; j++)
        if (ch[j] >= 0) {
            inner0 = max(inner0, from[j]);
            inner1 = min(inner1, to[j]);
        }
    inner1 = max(inner1, inner0);
    const uint row_bytes = (uint)(inner1 - inner0) * PERIOD * SAMPLE_BYTES;
    /* Units start at 16-byte boundaries, so the first may start before the row. */
    const uint units = (row_bytes + 15 + UNIT_BYTES - 1) / UNIT_BYTES;
    const ulong total = (ulong)units * (ulong)rows;

    for (ulong i = get_global_id(0); i < total; i += get_global_size(0)) {
        const int y = y0 + (int)(i / units);
        const uint unit = (uint)(i % units);
        __global const uchar *row = src + src_offset + (size_t)y * src_stride;
        const ulong row_start = src_offset + (ulong)y * src_stride + (ulong)inner0 * PERIOD * SAMPLE_BYTES;
        const uint lead = (uint)(row_start & 15);
        const long at = (long)unit * UNIT_BYTES - lead;

        if (unit == 0)
            for (int j = 0; j < PERIOD; j++) {
                for (int p = from[j]; p < min(inner0, to[j]); p++)
                    count_banked(row, p, j, ch, shift, bins, bank);
                for (int p = max(inner1, from[j]); p < to[j]; p++)
                    count_banked(row, p, j, ch, shift, bins, bank);
            }
        if (at >= (long)row_bytes)
            continue;
        /* Samples that straddle 16-byte boundaries are read one by one. */
        const uint straddle = lead % SAMPLE_BYTES;
        if (at >= 0 && at + UNIT_BYTES <= (long)row_bytes && straddle == 0) {
            /* Counters of the pattern's samples, turned so that index 0 is the unit's first. */
            int base[4] = {ch[0], ch[1], ch[2], ch[3]};
            for (uint turn = (uint)at / SAMPLE_BYTES % PERIOD; turn > 0; turn--) {
                const int head = base[0];
                for (int j = 0; j + 1 < PERIOD; j++)
                    base[j] = base[j + 1];
                base[PERIOD - 1] = head;
            }
            __global const uchar *p = src + row_start + at;
            uint w[4 * UNIT_VECTORS];
            for (int v = 0; v < UNIT_VECTORS; v++) {
                const uint4 q = LOAD_UINT4(p + 16 * v);
                w[4 * v] = q.x;
                w[4 * v + 1] = q.y;
                w[4 * v + 2] = q.z;
                w[4 * v + 3] = q.w;
            }
#pragma unroll
            for (int k = 0; k < UNIT_BYTES / SAMPLE_BYTES; k++) {
#if SAMPLE_BYTES == 1
                const uint sample = (w[k >> 2] >> ((k & 3) * 8)) & 0xff;
#else
                uint sample = (w[k >> 1] >> ((k & 1) * 16)) & 0xffff;
#if BIG_ENDIAN_SAMPLES
                sample = ((sample & 0xff) << 8) | (sample >> 8);
#endif
#endif
                if (base[k % PERIOD] >= 0)
                    atomic_inc(&bank[((uint)base[k % PERIOD] * bins + bin_of(sample, shift, bins)) * COPIES]);
            }
        } else {
            /* Samples that start in this unit; a sample may end in the next one. */
            const long s0 = max(at, 0L) + (SAMPLE_BYTES - 1);
            const long s1 = min(at + UNIT_BYTES, (long)row_bytes) + (SAMPLE_BYTES - 1);
            for (int s = (int)(s0 / SAMPLE_BYTES); s < (int)(s1 / SAMPLE_BYTES); s++)
                count_banked(row, inner0 + s / PERIOD, s % PERIOD, ch, shift, bins, bank);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < table_len; i += get_local_size(0)) {
        uint sum = 0;
        /* Each work-item starts at another copy, and so at another bank. */
        for (uint c = 0; c < COPIES; c++)
            sum += counters[i * COPIES + ((c + i) & (COPIES - 1))];
        if (sum)
            atomic_add(&out[i], sum);
    }
}

/* ---- pairs of bytes ------------------------------------------------------------------------- */

#if SAMPLE_BYTES == 1

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

#endif
#endif
