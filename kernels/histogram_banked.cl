/* Appended to histogram.cl. GPU: COPIES of each counter in local memory, one per bank, so that lanes
 * with equal samples do not wait for each other.
 *
 * Arguments: those of histogram_local, and
 *
 * | out        | counters of two frames                                                           |
 * | table_len  | TABLE_LEN: counters of this plane, whose channels are numbered from 0            |
 * | add_to     | the plane's first counter in `out`                                               |
 * | zero_from  | the plane's first counter of the next frame; the launch zeroes that table        |
 *
 * Macros: GROUP_ITEMS (local size; a constant, because some compilers otherwise assume 256), COPIES
 * (power of two), TABLE_LEN, ALIGNED_BASE (1: memory objects start at 16-byte boundaries), BIN_SHIFT
 * (`shift`; a constant saves an operation per sample).
 */
#ifndef GROUP_ITEMS
#define GROUP_ITEMS 256
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef TABLE_LEN
#define TABLE_LEN 256
#endif
#ifndef ALIGNED_BASE
#define ALIGNED_BASE 0
#endif
#ifndef BIN_SHIFT
#define BIN_SHIFT 0
#endif

/* 16-byte loads of a unit, which a work-item reads at once: whole patterns. */
#if PERIOD == 3
#define UNIT_VECTORS 3
#else
#define UNIT_VECTORS 1
#endif
#define UNIT_BYTES (16 * UNIT_VECTORS)

#if ALIGNED_BASE
#define LOAD_UINT4(p) (*(__global const uint4 *)(p))
#else
#define LOAD_UINT4(p) (((__global const packed_uint4 *)(p))->v)
#endif

/* Counts sample `j` of pattern `p` by itself. */
static void count_banked(__global const uchar *row, int p, int j, const int *ch, uint shift,
                         uint bins, __local uint *bank)
{
    if (ch[j] >= 0)
        atomic_inc(&bank[((uint)ch[j] * bins +
                          bin_of(load_sample(row + (p * PERIOD + j) * SAMPLE_BYTES), shift, bins)) *
                         COPIES]);
}

/* Counts the samples that start in a unit that the row's end cuts, or whose samples straddle 16-byte
 * boundaries and may end in the next unit. */
static void count_cut_unit(__global const uchar *row, uint unit, uint lead, uint row_bytes,
                           int inner0, const int *ch, uint shift, uint bins, __local uint *bank)
{
    const int at = (int)(unit * UNIT_BYTES) - (int)lead;
    const int s0 = (max(at, 0) + (SAMPLE_BYTES - 1)) / SAMPLE_BYTES;
    const int s1 = (min(at + UNIT_BYTES, (int)row_bytes) + (SAMPLE_BYTES - 1)) / SAMPLE_BYTES;
    for (int s = s0; s < s1; s++)
        count_banked(row, inner0 + s / PERIOD, s % PERIOD, ch, shift, bins, bank);
}

/* Fills an array: Oclgrind 21.10 cannot return a structure. */
static void load_unit(__global const uchar *p, uint4 *unit)
{
#pragma unroll
    for (int i = 0; i < UNIT_VECTORS; i++)
        unit[i] = LOAD_UINT4(p + 16 * i);
}

/* Counts a unit of whole samples. `counters[j]` is bin 0, in the lane's bank, for the samples k of
 * the unit with k % PERIOD == j; 0 for padding. */
static void count_unit(const uint4 *unit, __local uint *const *counters, uint bins)
{
#pragma unroll
    for (int k = 0; k < UNIT_BYTES / SAMPLE_BYTES; k++) {
        const int byte = k * SAMPLE_BYTES;
        const uint4 v = unit[byte / 16];
        const uint word = byte / 4 % 4 == 0 ? v.x : byte / 4 % 4 == 1 ? v.y : byte / 4 % 4 == 2 ? v.z : v.w;
#if SAMPLE_BYTES == 1
        /* bins is a power of two up to 256, so no byte exceeds the last bin. */
        const uint bin = ((word >> (8 * (byte % 4))) & 0xffu) >> BIN_SHIFT;
#else
        uint sample = (word >> (8 * (byte % 4))) & 0xffffu;
#if BIG_ENDIAN_SAMPLES
        sample = ((sample & 0xffu) << 8) | (sample >> 8);
#endif
        const uint bin = bin_of(sample, BIN_SHIFT, bins);
#endif
#if PERIOD == 4
        if (counters[k % PERIOD])
#endif
            atomic_inc(&counters[k % PERIOD][bin * COPIES]);
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
histogram_banked(PLANE_ARGS, PATTERN_ARGS, __global uint *out, uint table_len,
                               uint add_to, uint zero_from)
{
    /* An array, not a __local argument: an argument may not take all of the local memory. */
    __local uint counters[TABLE_LEN * COPIES];
    UNPACK(ch, channel);
    UNPACK(from, begin);
    UNPACK(to, end);
    const uint items = get_global_size(0);
    for (uint i = get_global_id(0); i < table_len; i += items)
        out[zero_from + i] = 0;
    for (uint i = get_local_id(0); i < TABLE_LEN * COPIES; i += get_local_size(0))
        counters[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    __local uint *bank = counters + (get_local_id(0) & (COPIES - 1));

    /* Patterns whose samples all count; the patterns before and after are counted one by one. */
    int inner0 = first, inner1 = last;
    for (int j = 0; j < PERIOD; j++)
        if (ch[j] >= 0) {
            inner0 = max(inner0, from[j]);
            inner1 = min(inner1, to[j]);
        }
    inner1 = max(inner1, inner0);
    const uint row_bytes = (uint)(inner1 - inner0) * PERIOD * SAMPLE_BYTES;
    /* Units start at 16-byte boundaries; the first may start before the row. */
    const uint units = (row_bytes + 15 + UNIT_BYTES - 1) / UNIT_BYTES;

    uint unit = get_global_id(0) % units;
    for (uint y = get_global_id(0) / units; y < (uint)rows;) {
        __global const uchar *row = src + src_offset + (size_t)(y0 + (int)y) * src_stride;
        __global const uchar *inner = row + (size_t)inner0 * (PERIOD * SAMPLE_BYTES);
        const uint lead = (uint)(src_offset + (ulong)(y0 + (int)y) * src_stride +
                                 (ulong)inner0 * (PERIOD * SAMPLE_BYTES)) & 15u;
        /* Units that hold only samples of the row; none where samples straddle boundaries. */
        const uint whole0 = lead ? 1 : 0;
        const uint whole1 = lead % SAMPLE_BYTES ? 0 : (row_bytes + lead) / UNIT_BYTES;
        if (unit == 0)
            for (int j = 0; j < PERIOD; j++) {
                for (int p = from[j]; p < min(inner0, to[j]); p++)
                    count_banked(row, p, j, ch, shift, bins, bank);
                for (int p = max(inner1, from[j]); p < to[j]; p++)
                    count_banked(row, p, j, ch, shift, bins, bank);
            }
        /* A lane visits the units of a row in order: a cut one, whole ones, cut ones. */
        for (; unit < units && (unit < whole0 || whole1 <= whole0); unit += items)
            count_cut_unit(row, unit, lead, row_bytes, inner0, ch, shift, bins, bank);
        if (unit < whole1) {
            __local uint *bin0[PERIOD];
            const uint turn = (UNIT_BYTES - lead) / SAMPLE_BYTES % PERIOD;
            for (int j = 0; j < PERIOD; j++) {
                bin0[j] = 0;
                for (int k = 0; k < PERIOD; k++)
                    if ((j + turn) % PERIOD == (uint)k && ch[k] >= 0)
                        bin0[j] = bank + (uint)ch[k] * bins * COPIES;
            }
            __global const uchar *p = inner - lead + (size_t)unit * UNIT_BYTES;
            const size_t step = (size_t)items * UNIT_BYTES;
            /* Two loads in flight hide each other's latency. */
            for (; unit < whole1 && whole1 - unit > items; unit += 2 * items, p += 2 * step) {
                uint4 a[UNIT_VECTORS], b[UNIT_VECTORS];
                load_unit(p, a);
                load_unit(p + step, b);
                count_unit(a, bin0, bins);
                count_unit(b, bin0, bins);
            }
            for (; unit < whole1; unit += items, p += step) {
                uint4 a[UNIT_VECTORS];
                load_unit(p, a);
                count_unit(a, bin0, bins);
            }
        }
        for (; unit < units; unit += items)
            count_cut_unit(row, unit, lead, row_bytes, inner0, ch, shift, bins, bank);
        y += unit / units;
        unit %= units;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = get_local_id(0); i < table_len; i += get_local_size(0)) {
        uint sum = 0;
        /* Each lane starts with a different copy, hence a different bank. */
        for (uint c = 0; c < COPIES; c++)
            sum += counters[i * COPIES + ((c + i) & (COPIES - 1))];
        if (sum)
            atomic_add(&out[add_to + i], sum);
    }
}
