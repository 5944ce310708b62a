/* Expands a packed mask, and reads one of few pixels; the types of its runs. Appended to files of any kind. */
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

/* Collects the words that are not 0 of the first `bytes` bytes of a mask. A work-item per 4 bytes. `out`: two counters of
 * these words, of which out[slot] is 0 at entry and the other one is zeroed; then the number and the bytes of the first
 * `capacity` words, in any order. */
__kernel void mask_set_words(__global const uchar *mask, ulong mask_offset, uint bytes, __global uint *out, uint slot,
                             uint capacity)
{
    const uint number = get_global_id(0);
    if (number == 0)
        out[slot ^ 1u] = 0;
    __global const uchar *from = mask + mask_offset + 4 * (size_t)number;
    uint word = 0;
    if (4 * (ulong)number + 4 <= bytes && ((ulong)from & 3u) == 0)
        word = *(__global const uint *)from;
    else
        for (uint i = 0; i < 4 && 4 * (ulong)number + i < bytes; i++)
            ((uchar *)&word)[i] = from[i];
    if (!word)
        return;
    const uint place = atomic_inc(&out[slot]);
    if (place >= capacity)
        return;
    out[2 + 2 * place] = number;
    out[3 + 2 * place] = word;
}

/* Twins: core/components.rs (Run, RunDifference). */
typedef struct { uint x0, x1, y, defect; } run_t;
typedef struct { long sum; int peak; uint signs; } run_difference_t;
