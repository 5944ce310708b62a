// The limits that memory sets: a pure read and a pure copy.
//
// Both take `count` vectors of 16 bytes, aligned to 16 bytes. CHUNKED (for CPUs): each work-item takes
// a contiguous part; else adjacent work-items take adjacent vectors.

#ifndef CHUNKED
#define CHUNKED 0
#endif

#if CHUNKED
#define PART ((count + (int)get_global_size(0) - 1) / (int)get_global_size(0))
#define FIRST ((int)get_global_id(0) * PART)
#define LAST min(FIRST + PART, count)
#define STEP 1
#else
#define FIRST ((int)get_global_id(0))
#define LAST count
#define STEP ((int)get_global_size(0))
#endif

// A sum is written if it is 1: the compiler cannot rule that out, so it keeps the reads.
__kernel void limit_read(__global const uint4 *src, __global uint *out, int count)
{
    uint4 sum = (uint4)(0);
    const int last = LAST, step = STEP;
    for (int i = FIRST; i < last; i += step)
        sum ^= src[i];
    const uint folded = sum.x ^ sum.y ^ sum.z ^ sum.w;
    if (folded == 1)
        out[0] = folded;
}

__kernel void limit_copy(__global const uint4 *src, __global uint4 *dst, int count)
{
    const int last = LAST, step = STEP;
    for (int i = FIRST; i < last; i += step)
        dst[i] = src[i];
}
