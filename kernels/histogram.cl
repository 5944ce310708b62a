/* Histogram of one plane, per component. Each variant has a file; this file holds the shared code
 * and the plain variants.
 *
 * histogram_private  Any device, buffer or image: a table per work-item in global memory.
 * histogram_pairs    CPU, 8-bit samples, buffer; local size 1: a counter per pair of adjacent
 *                    bytes, so one increment counts two samples. Runs of equal pixels are counted
 *                    at once. Blocks whose pairs would miss the cache are counted byte by byte.
 * histogram_direct   CPU, 16-bit grey, buffer; local size 1: a few tables per work-item.
 * histogram_merge    Sums the tables of the work-items and zeroes them for the next frame.
 * histogram_local    Any device, buffer or image: one table per work-group in local memory.
 * histogram_banked   GPU, buffer: COPIES of each counter in local memory, one per bank, so that
 *                    work-items with equal samples do not wait for each other.
 * histogram_run      GPU, 8-bit samples, buffer, rows without gaps: no two work-items of a step use
 *                    the same bank, whatever the picture.
 *
 * Macros: PERIOD (samples of the byte pattern that repeats along a row, 1..4), and common.cl's.
 *
 * | argument      | meaning                                                                      |
 * | src           | the plane; any offset and stride                                             |
 * | channel       | channel of each sample of the pattern, -1 for padding                        |
 * | begin, end    | for each sample of the pattern: half-open range of patterns to count          |
 * | first, last   | smallest begin, largest end                                                  |
 * | y0, rows      | rows counted                                                                 |
 * | shift, bins   | bin = sample >> shift, at most bins-1                                        |
 * | tables        | `table_len` counters per work-item (channel-major bins), zero at entry        |
 * | out           | `table_len` counters; histogram_local adds to them                            |
 */
#ifndef PERIOD
#define PERIOD 1
#endif

#define RANGE_ARGS int first, int last, int y0, int rows, uint shift, uint bins
#define PATTERN_ARGS int4 channel, int4 begin, int4 end, RANGE_ARGS

/* Copies a vector to an array, which a loop can index. */
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
