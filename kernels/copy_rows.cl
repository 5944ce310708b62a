/* Copies rows on a CPU device: the driver's own copy commands use one thread.
 *
 * copy_rows  Local size 1; each work-item copies a band of rows.
 *
 * | argument  | meaning                                                            |
 * | src, dst  | rows; any offset and stride; they do not overlap                     |
 */
/* Bytes between a prefetched place and the one in work. */
#define AHEAD 2048

__kernel void copy_rows(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride, uint row_bytes, uint rows)
{
    const uint band = (rows + (uint)get_global_size(0) - 1) / (uint)get_global_size(0);
    const uint from = min((uint)get_global_id(0) * band, rows);
    const uint to = min(from + band, rows);
    for (uint y = from; y < to; y++) {
        __global const uchar *p = src + src_offset + (size_t)y * src_stride;
        __global uchar *q = dst + dst_offset + (size_t)y * dst_stride;
        uint x = 0;
        for (; x + 64 <= row_bytes; x += 64) {
            PREFETCH(p + x + AHEAD, 0);
            PREFETCH(q + x + AHEAD, 1);
            const uchar16 a = LOAD_UCHAR16(p + x), b = LOAD_UCHAR16(p + x + 16);
            const uchar16 c = LOAD_UCHAR16(p + x + 32), d = LOAD_UCHAR16(p + x + 48);
            STORE_UCHAR16(q + x, a);
            STORE_UCHAR16(q + x + 16, b);
            STORE_UCHAR16(q + x + 32, c);
            STORE_UCHAR16(q + x + 48, d);
        }
        for (; x < row_bytes; x++)
            q[x] = p[x];
    }
}
