// Published colour histograms, rewritten and corrected. 8-bit samples.
//
//   histogram_table   a table per work-item, which counts a contiguous run of pixels; published as
//                     "768 bins, one result per work-item"
//   histogram_merge   merges these tables, one work-item per bin
//   histogram_slices  merges these tables, many work-items per bin, each for a slice of the tables
//
// PRIVATE           1: a work-item counts in private memory and writes its table at its end;
//                   0: it counts in its table in global memory
// MERGE_LAST        1: the group that ends last merges the tables, within the same launch
//
// Corrected: counters start at zero; the last work-item stops at the image's end. Published was a merge
// by the last 768 work-items, which may start before others end; here the last group that ends
// merges.
//
// src:      first byte of the frame, rows `stride` bytes apart
// width:    pixels per row, of CHANNELS samples
// chunk:    pixels per work-item
// tables:   work-items × CHANNELS × 256 uint
// done:     groups that have ended, 0 at first
// out:      CHANNELS × 256 uint; histogram_slices adds to it

#ifndef CHANNELS
#define CHANNELS 3
#endif
#ifndef PRIVATE
#define PRIVATE 0
#endif
#ifndef MERGE_LAST
#define MERGE_LAST 0
#endif
#define BINS 256
#define TABLE (CHANNELS * BINS)

#if PRIVATE
#define SPACE __private
#else
#define SPACE __global
#endif

void count_run(__global const uchar *src, SPACE uint *counts, int stride, int width, int height,
               int chunk)
{
    const long pixels = (long)width * height;
    const long first = (long)get_global_id(0) * chunk;
    const long last = min(first + chunk, pixels);
    for (int i = 0; i < TABLE; i++)
        counts[i] = 0;
    if (first >= last)
        return;
    long y = first / width;
    int x = (int)(first - y * width);
    for (long i = first; i < last; i++) {
        __global const uchar *pixel = src + y * stride + x * CHANNELS;
        for (int c = 0; c < CHANNELS; c++)
            counts[c * BINS + pixel[c]]++;
        if (++x == width) {
            x = 0;
            y++;
        }
    }
}

__kernel void histogram_table(__global const uchar *src, volatile __global uint *tables, int stride,
                              int width, int height, int chunk, volatile __global uint *done,
                              __global uint *out)
{
    __global uint *own = (__global uint *)tables + get_global_id(0) * TABLE;
#if PRIVATE
    uint counts[TABLE];
    count_run(src, counts, stride, width, height, chunk);
    for (int i = 0; i < TABLE; i++)
        own[i] = counts[i];
#else
    count_run(src, own, stride, width, height, chunk);
#endif
#if MERGE_LAST
    __local uint is_last;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0)
        is_last = atomic_inc(done) == get_num_groups(0) - 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!is_last)
        return;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    for (int bin = (int)get_local_id(0); bin < TABLE; bin += (int)get_local_size(0)) {
        uint sum = 0;
        for (int t = 0; t < (int)get_global_size(0); t++)
            sum += tables[(long)t * TABLE + bin];
        out[bin] = sum;
    }
    if (get_local_id(0) == 0)
        *done = 0;
#endif
}

__kernel void histogram_merge(__global const uint *tables, __global uint *out, int count)
{
    const int bin = (int)get_global_id(0);
    if (bin >= TABLE)
        return;
    uint sum = 0;
    for (int t = 0; t < count; t++)
        sum += tables[(long)t * TABLE + bin];
    out[bin] = sum;
}

__kernel void histogram_slices(__global const uint *tables, __global uint *out, int count)
{
    const int bin = (int)get_global_id(0);
    if (bin >= TABLE)
        return;
    const int slices = (int)get_global_size(1);
    const int part = (count + slices - 1) / slices;
    const int first = (int)get_global_id(1) * part;
    const int last = min(first + part, count);
    uint sum = 0;
    for (int t = first; t < last; t++)
        sum += tables[(long)t * TABLE + bin];
    if (sum)
        atomic_add(out + bin, sum);
}
