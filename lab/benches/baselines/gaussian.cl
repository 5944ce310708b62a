// The published 3x3 Gaussian [1 2 1] x [1 2 1] / 16, corrected: one sample per work-item, from a buffer
// or an image.
//
// USE_IMAGE     0 buffer, 1 image of one sample per pixel
// FLOATS        1 samples are floats in memory, from 0 to 255; ARITHMETIC is 2 to 4 then
// ARITHMETIC    0 integer divided by 16, 1 integer shifted, 2 float multiplied by 1/16,
//               3 float through native_divide, 4 float divided by 16
// DIVISIONS     1 the sum is divided; 4 the corners, the neighbours along x, those along y and the
//               centre are divided, each by its own divisor; ARITHMETIC is 0 or 4 then
// STATEMENTS    1 nine statements, each adds a tap; 0 one expression
// CENTRE_FIRST  1 reads the centre before its neighbours, which are then in the cache
// CHANNELS      samples per pixel: the distance of neighbours
//
// Corrected: borders clamp to the edge instead of reading past it; sums are rounded. Integer variants
// equal (Σ + 8) >> 4 exactly, float variants round half to even. Four integer divisions each drop
// their remainder, as published: the result is up to 3 lower.

#ifndef USE_IMAGE
#define USE_IMAGE 0
#endif
#ifndef ARITHMETIC
#define ARITHMETIC 0
#endif
#ifndef FLOATS
#define FLOATS 0
#endif
#ifndef DIVISIONS
#define DIVISIONS 1
#endif
#ifndef STATEMENTS
#define STATEMENTS 0
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
#elif FLOATS
#define TAP(column, line) (read_imagef(src, NEAREST, (int2)((column), (line))).x)
#else
#define TAP(column, line) (255.0f * read_imagef(src, NEAREST, (int2)((column), (line))).x)
#endif
#else
#if FLOATS
typedef float sample;
#else
typedef uchar sample;
#endif
#define SOURCE __global const sample *src
#define TARGET __global sample *dst
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
#if DIVISIONS == 4
    number sum = (TAP(left, above) + TAP(right, above) + TAP(left, below) + TAP(right, below)) / 16;
    sum += (TAP(x, above) + TAP(x, below)) / 8;
    sum += (TAP(left, y) + TAP(right, y)) / 8;
    sum += TAP(x, y) / 4;
#elif CENTRE_FIRST
    number sum = 4 * TAP(x, y);
    sum += 2 * (TAP(left, y) + TAP(right, y));
    sum += 2 * (TAP(x, above) + TAP(x, below));
    sum += TAP(left, above) + TAP(right, above);
    sum += TAP(left, below) + TAP(right, below);
#elif STATEMENTS
    number sum = TAP(left, above);
    sum += 2 * TAP(x, above);
    sum += TAP(right, above);
    sum += 2 * TAP(left, y);
    sum += 4 * TAP(x, y);
    sum += 2 * TAP(right, y);
    sum += TAP(left, below);
    sum += 2 * TAP(x, below);
    sum += TAP(right, below);
#else
    number sum = TAP(left, above) + 2 * TAP(x, above) + TAP(right, above) +
                 2 * TAP(left, y) + 4 * TAP(x, y) + 2 * TAP(right, y) +
                 TAP(left, below) + 2 * TAP(x, below) + TAP(right, below);
#endif
#if DIVISIONS == 4 && ARITHMETIC == 0
    const uint value = (uint)sum;
#elif DIVISIONS == 4
    const uint value = convert_uint_rte(sum);
#elif ARITHMETIC == 0
    const uint value = (uint)((sum + 8) / 16);
#elif ARITHMETIC == 1
    const uint value = (uint)((sum + 8) >> 4);
#elif ARITHMETIC == 2
    const uint value = convert_uint_rte(sum * (1.0f / 16.0f));
#elif ARITHMETIC == 3
    const uint value = convert_uint_rte(native_divide(sum, 16.0f));
#else
    const uint value = convert_uint_rte(sum / 16.0f);
#endif
#if USE_IMAGE && ARITHMETIC < 2
    write_imageui(dst, (int2)(x, y), (uint4)(value));
#elif USE_IMAGE && FLOATS
    write_imagef(dst, (int2)(x, y), (float4)((float)value));
#elif USE_IMAGE
    write_imagef(dst, (int2)(x, y), (float4)((float)value / 255.0f));
#else
    dst[(long)y * stride + x] = (sample)value;
#endif
}
