/* Appended to common.cl. Clears the ignored pixels of a packed mask.
 *
 * mask_ignore   Any device. A work-item clears item_blocks adjacent blocks of IGNORE_BLOCK bytes, so each
 *               byte has one writer. Blocks without ignored pixels are not read from the mask.
 *
 * | argument     | meaning                                                                           |
 * | ignored      | bitmap with the layout of the mask: 1 = ignored; zeros fill the last block        |
 * | mask         | rows without gaps from mask_offset on, which may be any byte                      |
 * | bytes        | of the mask; work-items past them do nothing                                      |
 * | item_blocks  | blocks per work-item                                                              |
 * | counters     | the pixels cleared are subtracted from counters[slot], the count of marked pixels |
 *
 * Exactness: bits only. The count of marked pixels includes those that are cleared, so it stays at 0 or
 * above.
 */

__kernel void mask_ignore(__global const ulong4 *ignored, __global uchar *mask, ulong mask_offset,
                          uint bytes, uint item_blocks, __global uint *counters, uint slot)
{
    const uint blocks = (bytes + IGNORE_BLOCK - 1) / IGNORE_BLOCK;
    const ulong begin = (ulong)get_global_id(0) * item_blocks;
    const ulong end = min(begin + item_blocks, (ulong)blocks);
    uint cleared = 0;
    for (ulong block = begin; block < end; block++) {
        const ulong4 any = ignored[block];
        if (!(any.x | any.y | any.z | any.w))
            continue;
        const uint first = (uint)block * IGNORE_BLOCK;
        const uint past = min(first + IGNORE_BLOCK, bytes);
        __global uchar *out = mask + mask_offset;
        __global const uchar *clear = (__global const uchar *)ignored;
        uint at = first;
        for (; at + 4 <= past; at += 4) {
            const uint bits = LOAD_UINT(clear + at);
            const uint marked = LOAD_UINT(out + at);
            cleared += popcount(marked & bits);
            STORE_UINT(out + at, marked & ~bits);
        }
        for (; at < past; at++) {
            const uint bits = clear[at];
            const uint marked = out[at];
            cleared += popcount(marked & bits);
            out[at] = (uchar)(marked & ~bits);
        }
    }
    if (cleared)
        atomic_add(&counters[slot], 0u - cleared);
}
