/* Appended to pitch_threshold.cl. Kernels that read a packed mask or its runs. */
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

/* Twins: core/components.rs (Run), operators/pitch_threshold/run_differences.rs (RunDifference). */
typedef struct { uint x0, x1, y, defect; } run_t;
typedef struct { long sum; int peak; uint signs; } run_difference_t;

__kernel void run_differences(PLANE_ARGS, int width, int height,
                              __constant const int4 *comparisons, int comparison_count, int theta,
                              int flags, __global const run_t *runs, uint run_count,
                              __global run_difference_t *out)
{
    const uint n = get_global_id(0);
    if (n >= run_count)
        return;
    const run_t run = runs[n];
    run_difference_t result = {0, 0, 0};
    for (uint x = run.x0; x < run.x1; x++) {
        /* The largest difference of the comparisons that mark the pixel; the first of equals. */
        int largest = 0;
        int found = 0;
        for (int i = 0; i < comparison_count; i++) {
            int difference;
            if (compare_pixel(PLANE, (int)x, (int)run.y, width, height, comparisons[i], theta,
                              flags, &difference) &&
                (!found || abs(difference) > abs(largest))) {
                largest = difference;
                found = 1;
            }
        }
        result.sum += largest;
        result.signs |= largest > 0 ? 1 : largest < 0 ? 2 : 4;
        if (abs(largest) > abs(result.peak))
            result.peak = largest;
    }
    out[n] = result;
}
