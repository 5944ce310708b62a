/* After histogram.cl. GPU: bank-private counters in local memory. */
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
