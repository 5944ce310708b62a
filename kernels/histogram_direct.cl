/* Appended to histogram.cl. CPU, buffer, 16-bit grey (SAMPLE_BYTES 2, PERIOD 1).
 *
 * histogram_direct  Local size 1; each work-item counts a range of the samples. Adjacent samples
 *                   count into SAMPLE_TABLES tables in turn, so that equal neighbours do not wait
 *                   for the same counter.
 *
 * Arguments: those of histogram.cl from `first` on; `tables` holds SAMPLE_TABLES * `table_len` counters per
 * work-item, zero at entry; histogram_merge sums them.
 */
#define STEP_SAMPLES 16

#if BIG_ENDIAN_SAMPLES
#define LOAD_SAMPLES(p) convert_uint16(SWAP_BYTES16(LOAD_USHORT16(p)))
#else
#define LOAD_SAMPLES(p) convert_uint16(LOAD_USHORT16(p))
#endif

__kernel void histogram_direct(PLANE_ARGS, RANGE_ARGS, __global uint *tables, uint table_len)
{
    __global uint *table = tables + get_global_id(0) * (size_t)(SAMPLE_TABLES * table_len);
    const ulong span = (ulong)(last - first);
    const ulong total = span * (ulong)rows;
    const ulong start = total * get_global_id(0) / get_global_size(0);
    const ulong stop = total * (get_global_id(0) + 1) / get_global_size(0);

    for (ulong at = start; at < stop;) {
        const ulong column = at % span;
        const int count = (int)min(span - column, stop - at);
        __global const uchar *p = src + src_offset + (size_t)(y0 + (int)(at / span)) * src_stride +
                                  (size_t)((ulong)first + column) * SAMPLE_BYTES;
        at += (ulong)count;
        int i = 0;
        for (; i + STEP_SAMPLES <= count; i += STEP_SAMPLES) {
            /* min() of two vectors: Oclgrind 21.10 applies a scalar to the first lane only. */
            const uint16 samples = LOAD_SAMPLES(p + i * SAMPLE_BYTES) >> shift;
            const uint16 vector[1] = {min(samples, (uint16)(bins - 1))};
            const uint *bin = (const uint *)vector;
#pragma unroll
            for (int k = 0; k < STEP_SAMPLES; k++)
                table[(k % SAMPLE_TABLES) * table_len + bin[k]]++;
        }
        for (; i < count; i++)
            table[bin_of(load_sample(p + i * SAMPLE_BYTES), shift, bins)]++;
    }
}
