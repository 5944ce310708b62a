// Published histograms, rewritten and corrected. 8-bit samples.
//
//   histogram_table   a table per work-item in global memory; each work-item counts a contiguous run
//                     of pixels; published as "768 bins, one result per work-item", merged on the host
//   histogram_merge   merges these tables on the device, one counter per work-item
//   histogram_bytes   byte counters in local memory, a set per work-item; work-item l of a group sums
//                     counters l, l + group, ... after each block
//
// Corrected: private counters start at zero; the last work-item stops at the image's end; byte counters
// are emptied before they can wrap; sums of work-groups are merged by atomics, not after a barrier.
//
// src:      first byte of the frame, rows `stride` bytes apart
// width:    pixels per row, of CHANNELS samples
// chunk:    pixels per work-item
// tables:   work-items × CHANNELS × 256 uint

#ifndef CHANNELS
#define CHANNELS 3
#endif
#define BINS 256
// Most samples that a byte counter can hold.
#define BLOCK 255

__kernel void histogram_table(__global const uchar *src, __global uint *tables, int stride,
                              int width, int height, int chunk)
{
    __global uint *own = tables + get_global_id(0) * (CHANNELS * BINS);
    for (int i = 0; i < CHANNELS * BINS; i++)
        own[i] = 0;
    const long pixels = (long)width * height;
    const long first = (long)get_global_id(0) * chunk;
    const long last = min(first + chunk, pixels);
    for (long i = first; i < last; i++) {
        const long y = i / width;
        const long x = i - y * width;
        __global const uchar *pixel = src + y * stride + x * CHANNELS;
        for (int c = 0; c < CHANNELS; c++)
            own[c * BINS + pixel[c]]++;
    }
}

__kernel void histogram_merge(__global const uint *tables, __global uint *out, int count)
{
    const int bin = (int)get_global_id(0);
    if (bin >= CHANNELS * BINS)
        return;
    uint sum = 0;
    for (int t = 0; t < count; t++)
        sum += tables[(long)t * (CHANNELS * BINS) + bin];
    out[bin] = sum;
}

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
