/* Gathers a few rows or columns of a plane as floats, from which the host estimates a pitch. The frame
 * stays on the device.
 *
 * probe_lines   one work-item per sample; any global size that covers length x count
 *
 * | argument  | meaning                                                                          |
 * | src       | the judged plane; adjacent samples; any offset and stride; buffer only           |
 * | lines     | indices of rows (along_y = 0) or of columns (along_y = 1)                         |
 * | out       | count lines of `length` samples, one after the other                             |
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
