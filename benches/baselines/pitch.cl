// The published pitch comparison, corrected: one pixel per work-item; eight work-items pack a byte
// through local memory. Average of the neighbours, along rows, 8-bit samples.
//
// Corrected: no tap outside the row is read; the whole row is covered; rows of the mask are whole bytes,
// all written; the difference is compared in full precision, with weights that sum to 256.
//
// whole, fraction: the pitch in pixels and 1/256 px; theta: the threshold in 1/256 grey levels
// GROUP:           work-items of a group, a multiple of 8

#ifndef GROUP
#define GROUP 64
#endif

__kernel void pitch_pixel(__global const uchar *src, __global uchar *mask, int stride, int width,
                          int height, int whole, int fraction, int theta)
{
    __local uchar marks[GROUP];
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    const int item = (int)get_local_id(0);
    const int further = fraction > 0 ? 1 : 0;
    uchar mark = 0;
    if (y < height && x - whole - further >= 0 && x + whole + further < width) {
        __global const uchar *row = src + (long)y * stride;
        const int left = (256 - fraction) * row[x - whole] + fraction * row[x - whole - further];
        const int right = (256 - fraction) * row[x + whole] + fraction * row[x + whole + further];
        const int difference = 512 * row[x] - left - right;
        mark = difference >= 2 * theta || difference <= -2 * theta;
    }
    marks[item] = mark;
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((item & 7) == 0 && x < width && y < height) {
        uchar byte = 0;
        for (int k = 0; k < 8; k++)
            byte = (uchar)(byte << 1 | marks[item + k]);
        mask[(long)y * ((width + 7) / 8) + x / 8] = byte;
    }
}
