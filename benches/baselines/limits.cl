// What memory allows: a pure read and a copy, the ceilings that shares are given of.
//
// Both take `count` vectors of 16 bytes at 16-byte alignment, grid stride.

/// Sums are written where they are 1, which the compiler cannot rule out.
__kernel void limit_read(__global const uint4 *src, __global uint *out, int count)
{
    uint4 sum = (uint4)(0);
    const int items = (int)get_global_size(0);
    for (int i = (int)get_global_id(0); i < count; i += items)
        sum ^= src[i];
    const uint folded = sum.x ^ sum.y ^ sum.z ^ sum.w;
    if (folded == 1)
        out[0] = folded;
}

__kernel void limit_copy(__global const uint4 *src, __global uint4 *dst, int count)
{
    const int items = (int)get_global_size(0);
    for (int i = (int)get_global_id(0); i < count; i += items)
        dst[i] = src[i];
}
