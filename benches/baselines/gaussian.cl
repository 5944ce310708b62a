// The published 3x3 Gaussian [1 2 1] x [1 2 1] / 16, corrected: one sample per work-item, from a buffer
// or an image.
//
// USE_IMAGE     0 buffer, 1 image of one sample per pixel
// ARITHMETIC    0 integer divided by 16, 1 integer shifted, 2 float multiplied by 1/16,
//               3 float through native_divide
// CENTRE_FIRST  1 reads the centre before its neighbours, which are then in the cache
// CHANNELS      samples per pixel: the distance of neighbours
//
// Corrected: borders clamp to the edge instead of reading past it; sums are rounded. Integer variants
// equal (Σ + 8) >> 4 exactly, float variants round half to even.

#ifndef USE_IMAGE
#define USE_IMAGE 0
#endif
#ifndef ARITHMETIC
#define ARITHMETIC 0
#endif
#ifndef CENTRE_FIRST
#define CENTRE_FIRST 0
#endif
#ifndef CHANNELS
#define CHANNELS 1
#endif

#if ARITHMETIC < 2
typedef int number;
#else
typedef float number;
#endif

#if USE_IMAGE
__constant sampler_t NEAREST =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
#define SOURCE __read_only image2d_t src
#define TARGET __write_only image2d_t dst
#if ARITHMETIC < 2
#define TAP(column, line) ((number)read_imageui(src, NEAREST, (int2)((column), (line))).x)
#else
#define TAP(column, line) (255.0f * read_imagef(src, NEAREST, (int2)((column), (line))).x)
#endif
#else
#define SOURCE __global const uchar *src
#define TARGET __global uchar *dst
#define TAP(column, line) ((number)src[(long)(line) * stride + (column)])
#endif

__kernel void gaussian_pixel(SOURCE, TARGET, int stride, int samples, int height)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= samples || y >= height)
        return;
    // Beyond the edge a sample is its own neighbour.
    const int left = x >= CHANNELS ? x - CHANNELS : x;
    const int right = x + CHANNELS < samples ? x + CHANNELS : x;
    const int above = max(y - 1, 0);
    const int below = min(y + 1, height - 1);
#if CENTRE_FIRST
    number sum = 4 * TAP(x, y);
    sum += 2 * (TAP(left, y) + TAP(right, y));
    sum += 2 * (TAP(x, above) + TAP(x, below));
    sum += TAP(left, above) + TAP(right, above);
    sum += TAP(left, below) + TAP(right, below);
#else
    number sum = TAP(left, above) + 2 * TAP(x, above) + TAP(right, above);
    sum += 2 * TAP(left, y) + 4 * TAP(x, y) + 2 * TAP(right, y);
    sum += TAP(left, below) + 2 * TAP(x, below) + TAP(right, below);
#endif
#if ARITHMETIC == 0
    const uint value = (uint)((sum + 8) / 16);
#elif ARITHMETIC == 1
    const uint value = (uint)((sum + 8) >> 4);
#elif ARITHMETIC == 2
    const uint value = convert_uint_rte(sum * (1.0f / 16.0f));
#else
    const uint value = convert_uint_rte(native_divide(sum, 16.0f));
#endif
#if USE_IMAGE && ARITHMETIC < 2
    write_imageui(dst, (int2)(x, y), (uint4)(value));
#elif USE_IMAGE
    write_imagef(dst, (int2)(x, y), (float4)((float)value / 255.0f));
#else
    dst[(long)y * stride + x] = (uchar)value;
#endif
}
