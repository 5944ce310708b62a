/* After pitch_threshold.cl. CPU: whole 32-bit words of mask. */
#if SAMPLE_BYTES == 1
#define LOAD_INT16(p) convert_int16(LOAD_UCHAR16(p))
#elif BIG_ENDIAN_SAMPLES
#define LOAD_INT16(p) convert_int16(SWAP_BYTES16(LOAD_USHORT16(p)))
#else
#define LOAD_INT16(p) convert_int16(LOAD_USHORT16(p))
#endif

/* 16 pixels from `p` on under one comparison; `step` is the bytes to the next pixel along the
 * comparison's axis. Two bytes of mask, the first in the low half. */
static uint compare16(__global const uchar *p, long step, int4 c, int theta, int flags)
{
    const long near = c.y * step;
    const long far = comparison_margin(c) * step;
    const int w1 = c.z;
    const int w0 = 256 - w1;
    const int16 s = LOAD_INT16(p);
    const int16 left = LOAD_INT16(p - near) * w0 + LOAD_INT16(p - far) * w1;
    const int16 right = LOAD_INT16(p + near) * w0 + LOAD_INT16(p + far) * w1;
    int16 centre = s * 256;
    if (flags & MATCHED)
        centre += (LOAD_INT16(p - step) - s * 2 + LOAD_INT16(p + step)) * c.w;
    int16 marked = 0;
    if (flags & MINIMUM) {
        const int16 l = centre - left;
        const int16 r = centre - right;
        if (flags & BRIGHT)
            marked |= (l >= theta) & (r >= theta);
        if (flags & DARK)
            marked |= (l <= -theta) & (r <= -theta);
    } else {
        const int16 e = centre * 2 - (left + right);
        if (flags & BRIGHT)
            marked |= e >= 2 * theta;
        if (flags & DARK)
            marked |= e <= -2 * theta;
    }
    /* The lowest bit of each byte gathered into the top byte, first pixel highest. */
    const ulong2 lanes = as_ulong2(convert_uchar16(marked)) & 0x0101010101010101UL;
    const ulong2 bits = (lanes * 0x8040201008040201UL) >> 56;
    return (uint)bits.x | ((uint)bits.y << 8);
}

__kernel void pitch_threshold_words(PLANE_ARGS, int width, int height, __global uchar *mask,
                                    ulong mask_offset, uint mask_stride,
                                    __constant const int4 *comparisons, int comparison_count,
                                    __global const int4 *rois, int roi_count, int theta, int flags,
                                    __global uint *defects)
{
    const int band = (height + (int)get_global_size(0) - 1) / (int)get_global_size(0);
    const int y0 = (int)get_global_id(0) * band;
    const int y1 = min(y0 + band, height);
    const int words = ((int)mask_stride + 3) / 4;
    uint count = 0;

    for (int y = y0; y < y1; y++) {
        __global const uchar *row = src + src_offset + (size_t)y * src_stride;
        __global uchar *out = mask + mask_offset + (size_t)y * mask_stride;
        for (int word = 0; word < words; word++) {
            const int x = 32 * word;
            /* Most significant byte first here; memory order is made at the end. */
            const uint wanted_left = roi_bits(rois, roi_count, x, y, 16);
            const uint wanted_right = roi_bits(rois, roi_count, x + 16, y, 16);
            uint bits = 0;
            if (wanted_left | wanted_right) {
                int whole = x + 32 <= width;
                for (int i = 0; whole && i < comparison_count; i++) {
                    const int4 c = comparisons[i];
                    const int margin = comparison_margin(c);
                    if (c.x) {
                        if (y >= margin && y < height - margin)
                            bits |= compare16(row + x * SAMPLE_BYTES, src_stride, c, theta, flags) |
                                    (compare16(row + (x + 16) * SAMPLE_BYTES, src_stride, c, theta, flags) << 16);
                    } else if (x >= margin && x + 32 <= width - margin) {
                        bits |= compare16(row + x * SAMPLE_BYTES, SAMPLE_BYTES, c, theta, flags) |
                                (compare16(row + (x + 16) * SAMPLE_BYTES, SAMPLE_BYTES, c, theta, flags) << 16);
                    } else if (x + 32 > margin && x < width - margin) {
                        whole = 0;
                    }
                }
                /* Memory order: byte 0 holds the leftmost pixels. */
                const uint wanted = ((wanted_left >> 8) & 0xffu) | ((wanted_left & 0xffu) << 8) |
                                    ((wanted_right & 0xff00u) << 8) | ((wanted_right & 0xffu) << 24);
                if (whole) {
                    bits &= wanted;
                } else {
                    bits = 0;
                    for (int j = 0; j < 4; j++) {
                        const uint w = (wanted >> (8 * j)) & 0xffu;
                        if (w)
                            bits |= judge_byte(PLANE, w, x + 8 * j, y, width, height, comparisons,
                                               comparison_count, theta, flags)
                                    << (8 * j);
                    }
                }
            }
            if (4 * word + 4 <= (int)mask_stride)
                STORE_UINT(out + 4 * word, bits);
            else
                for (int j = 0; 4 * word + j < (int)mask_stride; j++)
                    out[4 * word + j] = (uchar)(bits >> (8 * j));
            count += popcount(bits);
        }
    }
    if (count)
        atomic_add(defects, count);
}
