/* Appended to common.cl. The flat field's rare work: sums of frames for its references, and the
 * replacement of bad samples. flat_field_rows.cl and flat_field_items.cl correct frames.
 *
 * Any device, buffers. `src` and `dst` are a plane from a component's first sample on; `step` is the
 * number of bytes between the component's neighbouring samples.
 */

/* Work-items of a row: flat_field_sum_area, one per sample; flat_field_sum_line, one per column. Work-items
 * outside return. The sum of the sample in column x, row y and of component c of `components` is
 *
 *   sums[(y * width + x) * components + c]   area: uint, for at most 65536 frames
 *   sums[x * components + c]                 line: ulong, over all rows too
 *
 * *saturated grows by the number of samples that are at least `most`.
 */
#define SUM_ARGS                                                                                  \
    __global const uchar *src, ulong src_offset, uint src_stride, int width, int height,          \
        int components, int component, uint step, uint most

__kernel void flat_field_sum_area(SUM_ARGS, __global uint *sums, volatile __global uint *saturated)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= width || y >= height)
        return;
    const uint s = load_sample(src + src_offset + (size_t)y * src_stride + (size_t)x * step);
    sums[((size_t)y * width + x) * components + component] += s;
    if (s >= most)
        atomic_inc(saturated);
}

__kernel void flat_field_sum_line(SUM_ARGS, __global ulong *sums, volatile __global uint *saturated)
{
    const int x = (int)get_global_id(0);
    if (x >= width || get_global_id(1) > 0)
        return;
    __global const uchar *p = src + src_offset + (size_t)x * step;
    ulong sum = 0;
    uint count = 0;
    for (int y = 0; y < height; y++) {
        const uint s = load_sample(p + (size_t)y * src_stride);
        sum += s;
        count += s >= most ? 1 : 0;
    }
    sums[(size_t)x * components + component] += sum;
    if (count > 0)
        atomic_add(saturated, count);
}

/* Replaces bad samples, after all others are corrected. Work-item (i, y): run i of `count` in row
 * runs[5 * i] + y, y < `rows`; no other work-item writes its samples, and its neighbours are good.
 *
 *   runs[5 * i] row, [1] first column, [2] columns, [3], [4] column of the good neighbour left and right,
 *   or -1; at least one is there
 */
__kernel void flat_field_replace(__global uchar *dst, ulong dst_offset, uint dst_stride,
                                 __global const int *runs, int count, int rows, uint step)
{
    const int i = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (i >= count || y >= rows)
        return;
    __global const int *run = runs + 5 * (size_t)i;
    __global uchar *row = dst + dst_offset + (size_t)(run[0] + y) * dst_stride;
    const int left = run[3] < 0 ? run[4] : run[3];
    const int right = run[4] < 0 ? run[3] : run[4];
    const uint value =
        (load_sample(row + (size_t)left * step) + load_sample(row + (size_t)right * step) + 1) >> 1;
    for (int x = run[1]; x < run[1] + run[2]; x++)
        store_sample(row + (size_t)x * step, value);
}
