/* Expands a packed mask, and collects its marked pixels; the types of runs. Appended to files of any kind. */
__kernel void mask_expand(__global const uchar *packed, uint packed_stride, __global uchar *dst,
                          ulong dst_offset, uint dst_stride, int width, int height)
{
    const int column = get_global_id(0);
    const int y = get_global_id(1);
    if (column >= (int)packed_stride || y >= height)
        return;
    const uint bits = packed[(size_t)y * packed_stride + column];
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;
    for (int i = 0; i < 8 && 8 * column + i < width; i++)
        out[8 * column + i] = (bits & (0x80u >> i)) ? 255 : 0;
}

/* Bit of level k, or of channel k, in run_difference_t's signs. */
#define LEVEL_BIT(k) (1u << (FIRST_LEVEL + (k)))
/* Twins: crates/core/src/components.rs (Run, RunDifference). */
typedef struct { uint x0, x1, y, defect; } run_t;
typedef struct { long sum, peak; uint signs, is_fine; } run_difference_t;

/* The runs that a work-item measures: x .. y-1 of `run_count`. */
static uint2 own_runs(uint run_count)
{
    const uint items = get_global_size(0);
    const uint share = run_count / items + (run_count % items > 0 ? 1 : 0);
    const uint first = min((uint)get_global_id(0) * share, run_count);
    return (uint2)(first, min(first + share, run_count));
}

/* Collects the marked pixels of a packed mask, whose other bits are 0. A work-item per 4 bytes of a row, of which there are
 * `row_words` a row. `runs`: y and defect of the first one are two counters, of which number `slot` is 0 at entry and the
 * other one is zeroed, and the first one has no columns. Behind it the first `capacity` sequences of marked pixels in the
 * 4 bytes, in any order. */
__kernel void mask_runs(__global const uchar *mask, ulong mask_offset, uint stride, uint rows, uint row_words,
                        __global run_t *runs, uint slot, uint capacity)
{
    const uint item = get_global_id(0);
    __global uint *counters = (__global uint *)runs + 2;
    if (item == 0) {
        counters[slot ^ 1u] = 0;
        runs[0].x0 = runs[0].x1 = 0;
    }
    const uint y = item / row_words;
    const uint column = 4 * (item - y * row_words);
    if (y >= rows)
        return;
    __global const uchar *from = mask + mask_offset + (size_t)y * stride + column;
    uint bits = 0;
    for (uint i = 0; i < 4 && column + i < stride; i++)
        bits |= (uint)from[i] << (24 - 8 * i);
    uint x = 8 * column;
    while (bits) {
        const uint clear = clz(bits);
        bits <<= clear;
        const uint length = bits == ~0u ? 32 : clz(~bits);
        bits = length == 32 ? 0 : bits << length;
        const uint place = atomic_inc(&counters[slot]);
        if (place < capacity) {
            const run_t run = {x + clear, x + clear + length, y, 0};
            runs[1 + place] = run;
        }
        x += clear + length;
    }
}
