/* Appended to presence.cl. Clears the ignored pixels of a packed mask.
 *
 * mask_ignore   Any device. A work-item clears item_words adjacent words of 32 bits, so each byte has one
 *               writer. Words may begin at any byte.
 *
 * | argument    | meaning                                                                           |
 * | ignored     | bitmap with the layout of the mask: 1 = ignored                                   |
 * | mask        | rows without gaps from mask_offset on; the rows' padding is 0 in both             |
 * | bytes       | of the mask; work-items past them do nothing                                      |
 * | item_words  | words per work-item                                                               |
 * | counters    | the pixels cleared are subtracted from counters[slot], the count of marked pixels |
 *
 * Exactness: bits only. The count of marked pixels includes those that are cleared, so it stays at 0 or
 * above.
 */
__kernel void mask_ignore(__global const uchar *ignored, __global uchar *mask, ulong mask_offset,
                          uint bytes, uint item_words, __global uint *counters, uint slot)
{
    const ulong begin = (ulong)get_global_id(0) * item_words * 4;
    const ulong end = min(begin + (ulong)item_words * 4, (ulong)bytes);
    __global uchar *out = mask + mask_offset;
    uint cleared = 0;
    for (ulong at = begin; at < end; at += 4) {
        if (at + 4 <= end) {
            const uint bits = LOAD_UINT(ignored + at);
            if (bits) {
                const uint marked = LOAD_UINT(out + at);
                cleared += popcount(marked & bits);
                STORE_UINT(out + at, marked & ~bits);
            }
        } else {
            for (ulong i = at; i < end; i++) {
                const uint bits = ignored[i];
                const uint marked = out[i];
                cleared += popcount(marked & bits);
                out[i] = (uchar)(marked & ~bits);
            }
        }
    }
    if (cleared)
        atomic_add(&counters[slot], 0u - cleared);
}
