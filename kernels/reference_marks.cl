/* Appended to reference_part.cl. Changes of a mask of marked pixels, on any device.
 *
 * reference_open    A work-item opens 8 pixels with a square of 3x3: a pixel stays marked if it lies in such a square whose
 *                   pixels are all marked. Pixels outside the mask count as not marked. counters[slot] counts those that
 *                   stay; the other one of two is cleared for the next frame.
 * reference_place   A work-item moves marks of `item_bytes` bytes of a row to where their pixels lie in the frame. A pixel
 *                   at P, 1/256 px, marks each pixel F of the frame with -low <= P - 256 F <= high along x and y.
 * reference_placed  A work-item moves 4 bytes of `placed` to a mask, and clears them.
 *
 * `placed` holds the bytes of a packed mask as words, all 0 before reference_place. Masks have rows of
 * ceil(width / 8) bytes from their offset on, which may be any byte.
 */

/* A byte of a mask and the ones beside it, the pixels further left in higher bits. Outside the mask all are 0. */
static uint mask_bytes(__global const uchar *mask, int stride, int height, int column, int y)
{
    if (y < 0 || y >= height)
        return 0;
    __global const uchar *p = mask + (size_t)y * stride + column;
    uint bytes = (uint)p[0] << 8;
    if (column > 0)
        bytes |= (uint)p[-1] << 16;
    if (column + 1 < stride)
        bytes |= p[1];
    return bytes;
}

__kernel void reference_open(__global const uchar *mask, ulong mask_offset, int width, int height,
                             __global uchar *out, __global uint *counters, uint slot)
{
    const int stride = (width + 7) / 8;
    const int column = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (column >= stride || y >= height)
        return;
    uint rows[5];
    for (int i = 0; i < 5; i++) {
        const uint bytes = mask_bytes(mask + mask_offset, stride, height, column, y + i - 2);
        rows[i] = bytes & (bytes << 1) & (bytes >> 1);
    }
    const uint eroded = (rows[0] & rows[1] & rows[2]) | (rows[1] & rows[2] & rows[3]) | (rows[2] & rows[3] & rows[4]);
    const uint opened = ((eroded | (eroded << 1) | (eroded >> 1)) >> 8) & 0xffu;
    out[(size_t)y * stride + column] = (uchar)opened;
    if (opened)
        atomic_add(&counters[slot], popcount(opened));
    if (column == 0 && y == 0)
        counters[1 - slot] = 0;
}

/* `reach`: low and high along x, low and high along y. */
__kernel void reference_place(__global const uchar *mask, int width, int height, int4 along_x, int4 along_y,
                              __global const int2 *nodes, int columns, int rows, int4 reach, int item_bytes,
                              __global uint *placed)
{
    const int stride = (width + 7) / 8;
    const int first = (int)get_global_id(0) * item_bytes;
    const int past = min(first + item_bytes, stride);
    const int y = (int)get_global_id(1);
    if (y >= height)
        return;
    /* Pixels of one word are gathered, because atomic operations are slow. */
    uint word = 0;
    uint gathered = 0;
    for (int column = first; column < past; column++) {
        const uint bits = mask[(size_t)y * stride + column];
        for (int i = 0; bits && i < 8; i++) {
            if (!(bits & (0x80u >> i)))
                continue;
            const int x = 8 * column + i;
            const int2 d = displacement(x, y, along_x, along_y, nodes, columns, rows);
            const int px = UNIT * x + d.x;
            const int py = UNIT * y + d.y;
            const int x0 = max((px - reach.y + UNIT - 1) >> 8, 0);
            const int x1 = min((px + reach.x) >> 8, width - 1);
            const int y0 = max((py - reach.w + UNIT - 1) >> 8, 0);
            const int y1 = min((py + reach.z) >> 8, height - 1);
            for (int fy = y0; fy <= y1; fy++) {
                for (int fx = x0; fx <= x1; fx++) {
                    const uint byte = (uint)fy * (uint)stride + (uint)fx / 8;
                    const uint bit = (0x80u >> (fx & 7)) << (8 * (byte & 3u));
                    if (byte / 4 != word) {
                        if (gathered)
                            atomic_or(&placed[word], gathered);
                        word = byte / 4;
                        gathered = 0;
                    }
                    gathered |= bit;
                }
            }
        }
    }
    if (gathered)
        atomic_or(&placed[word], gathered);
}

__kernel void reference_placed(__global uint *placed, uint bytes, __global uchar *mask, ulong mask_offset)
{
    const uint number = get_global_id(0);
    /* Work-groups may have several rows. */
    if (get_global_id(1) > 0 || 4 * (ulong)number >= bytes)
        return;
    const uint word = placed[number];
    for (uint i = 0; i < 4 && 4 * number + i < bytes; i++)
        mask[mask_offset + 4 * (size_t)number + i] = (uchar)(word >> (8 * i));
    if (word)
        placed[number] = 0;
}
