/* After gaussian.cl. GPU: tiles in local memory. */
__kernel void gaussian_tile(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                            int samples, int height, int lanes, int copy_lane,
                            __constant const weight_t *weights, __local sum_t *tile,
                            __local sum_t *sums)
{
    const int group_x = get_local_size(0);
    const int group_y = get_local_size(1);
    const int columns = group_x + 2 * HALF * lanes;
    const int rows = group_y + 2 * HALF;
    const int items = group_x * group_y;
    const int item = get_local_id(1) * group_x + get_local_id(0);
    const int first = (int)get_group_id(0) * group_x - HALF * lanes;
    const int top = (int)get_group_id(1) * group_y - HALF;

    for (int i = item; i < columns * rows; i += items) {
        const int s = first + i % columns;
        const int y = clamp(top + i / columns, 0, height - 1);
        /* % of a negative number is negative: count its lane from the other end. */
        const int lane = s < 0 ? (lanes - 1) - (-1 - s) % lanes : s % lanes;
        const int inside = s < 0 ? lane : s >= samples ? samples - lanes + lane : s;
        tile[i] = (sum_t)PLANE_SAMPLE(inside * PITCH, y);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < columns * group_y; i += items) {
        __local const sum_t *t = tile + i;
        sum_t sum = weights[HALF] * t[HALF * columns];
        for (int k = 0; k < HALF; k++)
            sum += weights[k] * (t[k * columns] + t[(TAPS - 1 - k) * columns]);
        sums[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const int s = get_global_id(0);
    const int y = get_global_id(1);
    if (s >= samples || y >= height)
        return;
    __global uchar *out =
        dst + dst_offset + (size_t)y * dst_stride + (size_t)s * (PITCH * SAMPLE_BYTES);
    if (copy_lane >= 0 && s % lanes == copy_lane) {
        store_sample(out, (uint)tile[(get_local_id(1) + HALF) * columns + get_local_id(0) + HALF * lanes]);
        return;
    }
    __local const sum_t *t = sums + get_local_id(1) * columns + get_local_id(0);
    sum_t sum = weights[HALF] * t[HALF * lanes];
    for (int k = 0; k < HALF; k++)
        sum += weights[k] * (t[k * lanes] + t[(TAPS - 1 - k) * lanes]);
    store_sample(out, finish(sum));
}
