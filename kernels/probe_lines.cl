/* Gathers a few rows or columns of a plane, or the means of blocks in its middle, as floats, from which the host estimates
 * pitches and lattices. The frame stays on the device.
 *
 * probe_lines    one work-item per sample; any global size that covers length x count
 * probe_blocks   one work-item per block; any global size that covers width x height
 *
 * | argument  | meaning                                                                          |
 * | src       | the judged plane; adjacent samples; any offset and stride; buffer only           |
 * | lines     | indices of rows (along_y = 0) or of columns (along_y = 1)                         |
 * | out       | count lines of `length` samples, or height rows of width means, one after the other |
 * | x0, y0    | the first sample of the first block                                              |
 * | side      | samples of a block along each axis: 1, 2, 4 or 8                                  |
 *
 * Exact: a sum of 64 samples of 16 bits has 22 bits, and the number of samples is a power of two.
 */
__kernel void probe_lines(PLANE_ARGS, int along_y, __global const int *lines, int count, int length,
                          __global float *out)
{
    const int i = get_global_id(0);
    const int n = get_global_id(1);
    if (i >= length || n >= count)
        return;
    const int x = along_y ? lines[n] : i;
    const int y = along_y ? i : lines[n];
    out[(size_t)n * length + i] = (float)PLANE_SAMPLE(x, y);
}

__kernel void probe_blocks(PLANE_ARGS, int x0, int y0, int width, int height, int side, __global float *out)
{
    const int i = get_global_id(0);
    const int n = get_global_id(1);
    if (i >= width || n >= height)
        return;
    uint sum = 0;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            sum += PLANE_SAMPLE(x0 + i * side + x, y0 + n * side + y);
    out[(size_t)n * width + i] = (float)sum / (float)(side * side);
}
