/* Appended to histogram_banked.cl. GPU, buffer, 8-bit samples: rows without gaps between them, of which every
 * sample counts, as one run of bytes.
 *
 * A bin's counters lie in the 32 banks of local memory. PERIOD adjacent lanes share PERIOD banks, and
 * each of these banks counts one sample of the pattern. At every step such lanes are at different
 * samples of the pattern, so no two lanes use the same bank, whatever the picture.
 *   PERIOD 1     A bank for each lane.
 *   PERIOD 3     Adjacent lanes read adjacent vectors, which start at different samples of the
 *                pattern. 3 does not divide 32, so two lanes of 32 idle.
 *   PERIOD 2, 4  Every vector starts at the same sample, so lanes start at different bytes of a word.
 *
 * | argument   | meaning                                                                          |
 * | src        | the plane                                                                        |
 * | start      | offset of the run's first byte, which is the pattern's first sample              |
 * | bytes      | bytes of the run, under 2^36                                                     |
 * | channel    | channel of each sample of the pattern, -1 for padding                            |
 * | out        | counters of two frames                                                           |
 * | table_len  | counters of this plane, whose channels are numbered from 0                       |
 * | add_to     | the plane's first counter in `out`                                               |
 * | zero_from  | the plane's first counter of the next frame; the launch zeroes that table        |
 *
 * Macros: RUN_ITEMS (local size, a multiple of 32), BIN_SHIFT (bin = sample >> BIN_SHIFT), ALIGNED_BASE
 * (1: memory objects start at 16-byte boundaries).
 *
 * Exactness: every byte is counted once. Padding is counted too, and left out of the sums.
 */
/* Other samples do not use it, and with few bins of 16 bits RUN_BINS would be 0. */
#if SAMPLE_BYTES == 1
#ifndef RUN_ITEMS
#define RUN_ITEMS 256
#endif
#define RUN_BINS (256 >> BIN_SHIFT)
/* Bytes from one bin to the next: BANKS counters of 4 bytes, as a power of two. */
#define BIN_OFFSET_BITS 7
/* Lanes that count, of 32. */
#define BUSY_LANES (BANKS - BANKS % PERIOD)
#define COPIES_OF_BIN (BUSY_LANES / PERIOD)
/* Vectors that a work-item reads at once. */
#define IN_FLIGHT 3
#define VECTOR_BYTES 16

/* Counts the 16 bytes of a vector. `counters[j]` is bin 0 of the samples j, j + PERIOD, ... of each word that
 * is rotated by `turn` bits. */
static void count_vector(uint4 v, uint turn, __local uint *const *counters)
{
    const uint words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
#if PERIOD == 2 || PERIOD == 4
        const uint word = rotate(words[i], turn);
#else
        const uint word = words[i];
#endif
#pragma unroll
        for (int k = 0; k < 4; k++) {
            /* A shift brings the bin to its place in the offset, and a mask cuts it out. */
            const int right = 8 * k + BIN_SHIFT - BIN_OFFSET_BITS;
            const uint shifted = right >= 0 ? word >> max(right, 0) : word << max(-right, 0);
            const uint offset = shifted & (uint)((RUN_BINS - 1) << BIN_OFFSET_BITS);
            __local uchar *start = (__local uchar *)counters[(4 * i + k) % PERIOD];
            atomic_inc((__local uint *)(start + offset));
        }
    }
}

/* Loads the vectors unit, unit + items, ... */
static void load_vectors(__global const uchar *first, uint unit, uint items, uint4 *v)
{
#pragma unroll
    for (int d = 0; d < IN_FLIGHT; d++)
        v[d] = LOAD_UINT4(first + (size_t)(unit + d * items) * VECTOR_BYTES);
}

__kernel __attribute__((reqd_work_group_size(RUN_ITEMS, 1, 1))) void
histogram_run(__global const uchar *src, ulong start, ulong bytes, int4 channel, __global uint *out,
              uint table_len, uint add_to, uint zero_from)
{
    /* Aligned: a bin starts at the first bank. */
    __local uint counters[RUN_BINS * BANKS] __attribute__((aligned(4 * BANKS)));
    const uint id = get_global_id(0);
    const uint lane = id % BANKS;
    const uint items = (uint)get_global_size(0) / BANKS * BUSY_LANES;
    /* Bytes before the first 16-byte boundary, vectors, and bytes after the last vector. */
    const uint head = (uint)min((0 - start) % VECTOR_BYTES, bytes);
    const uint vectors = (uint)((bytes - head) / VECTOR_BYTES);
    const uint tail = (uint)((bytes - head) % VECTOR_BYTES);
    __global const uchar *run = src + start;
    __global const uchar *first = run + head;

    /* The first loads do not wait until the counters are cleared. */
    uint unit = lane < BUSY_LANES ? id / BANKS * BUSY_LANES + lane : vectors;
    const uint reach = (IN_FLIGHT - 1) * items;
    uint4 v[IN_FLIGHT];
    if (unit + reach < vectors)
        load_vectors(first, unit, items, v);

    for (uint i = id; i < table_len; i += get_global_size(0))
        out[zero_from + i] = 0;
    for (uint i = get_local_id(0); i < RUN_BINS * BANKS; i += RUN_ITEMS)
        counters[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    __local uint *bank = counters + lane / PERIOD * PERIOD;
    /* PERIOD divides `items`, so all vectors of a work-item start at the same sample of the pattern. */
#if PERIOD == 3
    const uint sample = (head + unit) % PERIOD, turn = 0;
#else
    const uint sample = (head + lane) % PERIOD, turn = (0 - 8 * (lane % PERIOD)) % 32;
#endif
    __local uint *bin0[PERIOD];
    for (uint j = 0; j < PERIOD; j++)
        bin0[j] = bank + (sample + j) % PERIOD;
    while (unit + reach < vectors) {
        /* All vectors or none: a condition for each load costs more than it saves. The next
         * vectors are on their way while these are counted. */
        const uint next = unit + IN_FLIGHT * items;
        uint4 ahead[IN_FLIGHT];
        if (next + reach < vectors)
            load_vectors(first, next, items, ahead);
#pragma unroll
        for (int d = 0; d < IN_FLIGHT; d++)
            count_vector(v[d], turn, bin0);
#pragma unroll
        for (int d = 0; d < IN_FLIGHT; d++)
            v[d] = ahead[d];
        unit = next;
    }
    for (; unit < vectors; unit += items)
        count_vector(LOAD_UINT4(first + (size_t)unit * VECTOR_BYTES), turn, bin0);
    if (id < head + tail) {
        const ulong at = id < head ? id : bytes - tail + (id - head);
        atomic_inc(&counters[(run[at] >> BIN_SHIFT) * BANKS + (uint)(at % PERIOD)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    UNPACK(ch, channel);
    for (uint i = get_local_id(0); i < PERIOD * RUN_BINS; i += RUN_ITEMS) {
        const uint j = i % PERIOD, bin = i / PERIOD;
        if (ch[j] < 0)
            continue;
        uint sum = 0;
        /* Lanes start with different samples and copies, hence different banks. */
        uint copy = bin % COPIES_OF_BIN;
        for (uint c = 0; c < COPIES_OF_BIN; c++) {
            sum += counters[bin * BANKS + copy * PERIOD + j];
            copy = copy + 1 < COPIES_OF_BIN ? copy + 1 : 0;
        }
        if (sum)
            atomic_add(&out[add_to + (uint)ch[j] * RUN_BINS + bin], sum);
    }
}
#endif
