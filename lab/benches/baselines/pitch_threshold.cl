// The published pitch comparison, corrected: one pixel per work-item. Average of the neighbours, along
// rows, 8-bit samples.
//
//   pitch_threshold_difference  a byte per pixel: the difference in whole grey levels, without a threshold
//   pitch_threshold_unpacked    a byte per pixel: 255 where the threshold is reached, else 0
//   pitch_threshold_pixel       a bit per pixel: eight work-items pack a byte through local memory
//
// Corrected: no tap outside the row is read; the whole row is covered; rows of the mask are whole bytes,
// all written; the difference is compared in full precision, with weights that sum to 256.
//
// dst:             width bytes per row; pitch_threshold_pixel: (width + 7) / 8 bytes per row
// whole, fraction: the pitch in pixels and 1/256 px
// theta:           the threshold in 1/256 grey levels
// GROUP_X:         work-items of a group along x, a multiple of 8
// GROUP_Y:         work-items of a group along y

#ifndef GROUP_X
#define GROUP_X 64
#endif
#ifndef GROUP_Y
#define GROUP_Y 4
#endif

// The absolute difference of the pixel and the average of its neighbours, in 1/512 grey levels; 0 where
// a neighbour is missing.
int difference_at(__global const uchar *src, int x, int y, int stride, int width, int height,
                  int whole, int fraction)
{
    const int further = fraction > 0 ? 1 : 0;
    if (y >= height || x - whole - further < 0 || x + whole + further >= width)
        return 0;
    __global const uchar *row = src + (long)y * stride;
    const int left = (256 - fraction) * row[x - whole] + fraction * row[x - whole - further];
    const int right = (256 - fraction) * row[x + whole] + fraction * row[x + whole + further];
    return (int)abs(512 * row[x] - left - right);
}

__kernel void pitch_threshold_difference(__global const uchar *src, __global uchar *dst, int stride, int width,
                               int height, int whole, int fraction, int theta)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x < width && y < height)
        dst[(long)y * width + x] =
            (uchar)(difference_at(src, x, y, stride, width, height, whole, fraction) >> 9);
}

__kernel void pitch_threshold_unpacked(__global const uchar *src, __global uchar *dst, int stride, int width,
                             int height, int whole, int fraction, int theta)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x < width && y < height)
        dst[(long)y * width + x] =
            difference_at(src, x, y, stride, width, height, whole, fraction) >= 2 * theta ? 255 : 0;
}

__kernel void pitch_threshold_pixel(__global const uchar *src, __global uchar *dst, int stride, int width,
                          int height, int whole, int fraction, int theta)
{
    __local uchar marks[GROUP_X * GROUP_Y];
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    const int item = (int)get_local_id(1) * GROUP_X + (int)get_local_id(0);
    marks[item] =
        difference_at(src, x, y, stride, width, height, whole, fraction) >= 2 * theta ? 1 : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if ((item & 7) == 0 && x < width && y < height) {
        uchar byte = 0;
        for (int k = 0; k < 8; k++)
            byte = (uchar)(byte << 1 | marks[item + k]);
        dst[(long)y * ((width + 7) / 8) + x / 8] = byte;
    }
}
