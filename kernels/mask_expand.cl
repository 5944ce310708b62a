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

/* The runs of a list that a work-item measures: x .. y-1 of `run_count`. */
static uint2 listed_runs(uint run_count)
{
    const uint items = get_global_size(0);
    const uint share = run_count / items + (run_count % items > 0 ? 1 : 0);
    const uint first = min((uint)get_global_id(0) * share, run_count);
    return (uint2)(first, min(first + share, run_count));
}

/* Where a kernel takes runs from, and where it puts their differences.
 *
 * If `slot` is negative, a list: `runs` has `run_count` runs, and `out` gets the difference of each.
 *
 * Else a packed mask of `rows` rows, whose other bits are 0, with a work-item per 4 bytes of a row; `runs` and `out` are the
 * same memory. It begins with counters, of which number RUN_COUNTER + `slot` is 0 at entry, and the other one of two is
 * zeroed. From run number RUNS_AT on follow the first `run_count` sequences of marked pixels in the 4 bytes, in any order,
 * behind them their differences. */
#define RUNS_ARGS __global run_t *runs, uint run_count, __global run_difference_t *out, int slot, uint rows
#define RUNS runs, run_count, out, slot, rows

/* The runs of a work-item, which are not taken yet. */
typedef struct {
    __global run_t *runs;
    __global run_difference_t *out;
    /* Of a mask: the counter of its runs. Null for a list. */
    __global uint *counter;
    /* Number of the run that was taken last. */
    uint at;
    /* Of a list: the next run, and one past the last. Of a mask: one past the last that there is room for. */
    uint next, end;
    /* Of a mask: the bits from column x of row y on. */
    uint bits, x, y;
} own_runs_t;

static own_runs_t own_runs(__global const uchar *mask, ulong mask_offset, int width, RUNS_ARGS)
{
    own_runs_t own = {runs, out, 0, 0, 0, run_count, 0, 0, 0};
    if (slot < 0) {
        const uint2 listed = listed_runs(run_count);
        own.next = listed.x;
        own.end = listed.y;
        return own;
    }
    const uint item = get_global_id(0);
    own.runs = runs + RUNS_AT;
    own.out = (__global run_difference_t *)(own.runs + run_count);
    own.counter = (__global uint *)runs + RUN_COUNTER + slot;
    if (item == 0)
        ((__global uint *)runs)[RUN_COUNTER + (slot ^ 1)] = 0;
    const uint stride = ((uint)width + 7) / 8;
    const uint row_words = (stride + 3) / 4;
    own.y = item / row_words;
    const uint column = 4 * (item - own.y * row_words);
    own.x = 8 * column;
    if (own.y < rows) {
        __global const uchar *from = mask + mask_offset + (size_t)own.y * stride + column;
        for (uint i = 0; i < 4 && column + i < stride; i++)
            own.bits |= (uint)from[i] << (24 - 8 * i);
    }
    return own;
}

/* Takes the next run, if there is one and room for it. */
static int take_run(own_runs_t *own, run_t *run)
{
    if (!own->counter) {
        if (own->next >= own->end)
            return 0;
        own->at = own->next++;
        *run = own->runs[own->at];
        return 1;
    }
    while (own->bits) {
        const uint clear = clz(own->bits);
        const uint bits = own->bits << clear;
        const uint length = bits == ~0u ? 32 : clz(~bits);
        own->bits = length == 32 ? 0 : bits << length;
        const run_t found = {own->x + clear, own->x + clear + length, own->y, 0};
        own->x += clear + length;
        own->at = atomic_inc(own->counter);
        if (own->at < own->end) {
            own->runs[own->at] = found;
            *run = found;
            return 1;
        }
    }
    return 0;
}

/* Collects the marked pixels of a packed mask. */
__kernel void mask_runs(__global const uchar *mask, ulong mask_offset, int width, RUNS_ARGS)
{
    own_runs_t own = own_runs(mask, mask_offset, width, RUNS);
    run_t run;
    while (take_run(&own, &run))
        ;
}
