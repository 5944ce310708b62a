// Published histograms with byte counters in local memory, rewritten and corrected. 8-bit samples.
//
//   histogram_bytes   a set of counters per work-item; after each block of pixels work-item l of a
//                     group sums the counters of bins l, l + group, ...
//   histogram256      the same with one block and without atomics: each group writes a
//                     sub-histogram, which the host sums; 128 work-items a group
//
// CHANNELS      samples per pixel; histogram256 is for grey
// BANKED        1: published layout, v*128 + 4*(lid & 31) + (lid >> 5): a word of local memory holds
//               the counters of work-items lid, lid + 32, lid + 64 and lid + 96;
//               0: v*128 + lid
// MERGE_ONE     1: work-item 0 sums the counters of its group; 0: all do
//
// Corrected: byte counters cannot wrap, because a work-item counts at most 255 samples before they are
// summed; sums of work-groups are merged by atomics or by the host, not after a barrier.
//
// src:       first byte of the frame, rows `stride` bytes apart
// width:     pixels per row
// out:       histogram_bytes: CHANNELS × 256 uint, which it adds to; histogram256: groups × 256 uint
// counters:  256 bytes per work-item

#ifndef CHANNELS
#define CHANNELS 1
#endif
#ifndef BANKED
#define BANKED 0
#endif
#ifndef MERGE_ONE
#define MERGE_ONE 0
#endif
#define BINS 256
// Most samples that a byte counter can hold.
#define BLOCK 255

// Counts one channel in counters[bin * group + item]: adjacent work-items use adjacent bytes.
__kernel void histogram_bytes(__global const uchar *src, __global uint *out, int stride, int width,
                              int height, int channel, __local uchar *counters)
{
    const int item = (int)get_local_id(0);
    const int items = (int)get_local_size(0);
    const long pixels = (long)width * height;
    const long per_group = (pixels + (long)get_num_groups(0) - 1) / (long)get_num_groups(0);
    const long begin = (long)get_group_id(0) * per_group;
    const long end = min(begin + per_group, pixels);

    for (int bin = 0; bin < BINS; bin++)
        counters[bin * items + item] = 0;
    // Each work-item counts at most BLOCK samples per block, so no byte wraps.
    for (long block = begin; block < end; block += (long)BLOCK * items) {
        for (int k = 0; k < BLOCK; k++) {
            const long i = block + (long)k * items + item;
            if (i >= end)
                break;
            const long y = i / width;
            const long x = i - y * width;
            counters[src[y * stride + x * CHANNELS + channel] * items + item]++;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int bin = item; bin < BINS; bin += items) {
            uint sum = 0;
            for (int other = 0; other < items; other++) {
                sum += counters[bin * items + other];
                counters[bin * items + other] = 0;
            }
            if (sum)
                atomic_add(out + channel * BINS + bin, sum);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#define ITEMS 128
#if BANKED
#define PLACE(lid) (4 * ((lid) & 31) + ((lid) >> 5))
#else
#define PLACE(lid) (lid)
#endif

uint sum_of(__local const uchar *counters, int bin)
{
    uint sum = 0;
    for (int other = 0; other < ITEMS; other++)
        sum += counters[bin * ITEMS + other];
    return sum;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void histogram256(__global const uchar *src, __global uint *out, int stride, int width, int height,
                  __local uchar *counters)
{
    const int item = (int)get_local_id(0);
    const int place = PLACE(item);
    const long pixels = (long)width * height;
    const long begin = (long)get_group_id(0) * ITEMS * BLOCK;
    __global uint *own = out + get_group_id(0) * BINS;

    for (int bin = 0; bin < BINS; bin++)
        counters[bin * ITEMS + place] = 0;
    for (int k = 0; k < BLOCK; k++) {
        const long i = begin + (long)k * ITEMS + item;
        if (i >= pixels)
            break;
        const long y = i / width;
        const long x = i - y * width;
        counters[src[y * stride + x] * ITEMS + place]++;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if MERGE_ONE
    if (item == 0) {
        for (int bin = 0; bin < BINS; bin++)
            own[bin] = sum_of(counters, bin);
    }
#else
    for (int bin = item; bin < BINS; bin += ITEMS)
        own[bin] = sum_of(counters, bin);
#endif
}
