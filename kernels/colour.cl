/* Red, green and blue of a frame are judged apart, or its luma.
 *
 * colour_split    Writes the three components of interleaved pixels to a plane each.
 * colour_luma     Writes their luma to a plane.
 * colour_join     Joins the packed masks of the components, and counts the marked pixels.
 * colour_pixels   A work-item per run of columns: counts the pixels that each component marks.
 * colour_picture  A work-item per pixel: draws one picture from those of the components.
 *
 * PIXEL_BYTES       3 or 4
 * RED, GREEN, BLUE  byte of the component in a pixel
 *
 * | argument     | meaning                                                                                          |
 * | red, ...     | planes; offset 0, rows of plane_stride bytes, a multiple of 64, so that whole blocks are stored  |
 * | item_blocks  | blocks of 16 pixels of a row per work-item                                                       |
 * | item_rows    | rows per work-item                                                                               |
 * | masks        | of `bytes` bytes from byte 0 on; `mask` begins at any byte                                       |
 * | counters     | `words` counters of each component, which are copied behind the counts                           |
 * | counts       | counts[slot] counts marked pixels and is 0 at entry; counts[1 - slot] is cleared                 |
 *
 * Exactness: integers only.
 */
#ifndef PIXEL_BYTES
#define PIXEL_BYTES 3
#endif
#ifndef RED
#define RED 0
#define GREEN 1
#define BLUE 2
#endif

/* 16 bytes of a block from the byte `n * 16` on. A GPU splits loads that may be unaligned. */
static uchar16 load_block(__global const uchar *p, int n)
{
    if (((size_t)p & 15) == 0)
        return ((__global const uchar16 *)p)[n];
    return LOAD_UCHAR16(p + 16 * n);
}

/* A component of 16 pixels whose bytes are a, b, c, and with 4 bytes per pixel d; `k` is the component's byte. */
#if PIXEL_BYTES == 3
static uchar16 component_of(uchar16 a, uchar16 b, uchar16 c, int k)
{
    if (k == 0)
        return (uchar16)(a.s0369, a.scf, b.s258b, b.se, c.s147a, c.sd);
    if (k == 1)
        return (uchar16)(a.s147a, a.sd, b.s0369, b.scf, c.s258b, c.se);
    return (uchar16)(a.s258b, a.se, b.s147a, b.sd, c.s0369, c.scf);
}
#define LOAD_PIXELS(p)                                                                            \
    const uchar16 a = load_block(p, 0), b = load_block(p, 1), c = load_block(p, 2)
#define COMPONENT(k) component_of(a, b, c, k)
#else
static uchar16 component_of(uchar16 a, uchar16 b, uchar16 c, uchar16 d, int k)
{
    if (k == 0)
        return (uchar16)(a.s048c, b.s048c, c.s048c, d.s048c);
    if (k == 1)
        return (uchar16)(a.s159d, b.s159d, c.s159d, d.s159d);
    if (k == 2)
        return (uchar16)(a.s26ae, b.s26ae, c.s26ae, d.s26ae);
    return (uchar16)(a.s37bf, b.s37bf, c.s37bf, d.s37bf);
}
#define LOAD_PIXELS(p)                                                                            \
    const uchar16 a = load_block(p, 0), b = load_block(p, 1), c = load_block(p, 2), d = load_block(p, 3)
#define COMPONENT(k) component_of(a, b, c, d, k)
#endif

/* The sum is at most 255 * 256 + 128. */
static uchar luma_of(uchar red, uchar green, uchar blue)
{
    return (uchar)((77u * red + 150u * green + 29u * blue + 128u) >> 8);
}

static uchar16 luma_of_16(uchar16 red, uchar16 green, uchar16 blue)
{
    const ushort16 sum = (ushort16)77 * convert_ushort16(red) + (ushort16)150 * convert_ushort16(green) +
                         (ushort16)29 * convert_ushort16(blue) + (ushort16)128;
    return convert_uchar16(sum >> (ushort16)8);
}

__kernel void colour_split(PLANE_ARGS, int width, int height, __global uchar *red, __global uchar *green,
                           __global uchar *blue, uint plane_stride, int item_blocks, int item_rows)
{
    const int from = get_global_id(0) * item_blocks * BLOCK;
    const int past = min(from + item_blocks * BLOCK, width);
    const int top = get_global_id(1) * item_rows;
    const int bottom = min(top + item_rows, height);
    for (int y = top; y < bottom; y++) {
        __global const uchar *row = src + src_offset + (size_t)y * src_stride;
        const size_t out = (size_t)y * plane_stride;
        int x = from;
        for (; x + BLOCK <= past; x += BLOCK) {
            LOAD_PIXELS(row + (size_t)x * PIXEL_BYTES);
            *(__global uchar16 *)(red + out + x) = COMPONENT(RED);
            *(__global uchar16 *)(green + out + x) = COMPONENT(GREEN);
            *(__global uchar16 *)(blue + out + x) = COMPONENT(BLUE);
        }
        for (; x < past; x++) {
            __global const uchar *pixel = row + (size_t)x * PIXEL_BYTES;
            red[out + x] = pixel[RED];
            green[out + x] = pixel[GREEN];
            blue[out + x] = pixel[BLUE];
        }
    }
}

__kernel void colour_luma(PLANE_ARGS, int width, int height, __global uchar *luma, uint plane_stride, int item_blocks,
                          int item_rows)
{
    const int from = get_global_id(0) * item_blocks * BLOCK;
    const int past = min(from + item_blocks * BLOCK, width);
    const int top = get_global_id(1) * item_rows;
    const int bottom = min(top + item_rows, height);
    for (int y = top; y < bottom; y++) {
        __global const uchar *row = src + src_offset + (size_t)y * src_stride;
        const size_t out = (size_t)y * plane_stride;
        int x = from;
        for (; x + BLOCK <= past; x += BLOCK) {
            LOAD_PIXELS(row + (size_t)x * PIXEL_BYTES);
            *(__global uchar16 *)(luma + out + x) = luma_of_16(COMPONENT(RED), COMPONENT(GREEN), COMPONENT(BLUE));
        }
        for (; x < past; x++) {
            __global const uchar *pixel = row + (size_t)x * PIXEL_BYTES;
            luma[out + x] = luma_of(pixel[RED], pixel[GREEN], pixel[BLUE]);
        }
    }
}

/* A work-item joins `item_words` words of 4 bytes. */
__kernel void colour_join(__global const uint *red, __global const uint *green, __global const uint *blue,
                          __global uchar *mask, ulong mask_offset, uint bytes, uint item_words,
                          __global const uint *red_counters, __global const uint *green_counters,
                          __global const uint *blue_counters, uint words, __global uint *counts, uint slot)
{
    const uint item = get_global_id(0);
    if (item == 0) {
        counts[slot ^ 1u] = 0;
        for (uint i = 0; i < words; i++) {
            counts[2 + i] = red_counters[i];
            counts[2 + words + i] = green_counters[i];
            counts[2 + 2 * words + i] = blue_counters[i];
        }
    }
    const ulong first = (ulong)item * item_words;
    const ulong past = min(first + item_words, ((ulong)bytes + 3) / 4);
    __global uchar *out = mask + mask_offset;
    const int is_aligned = ((size_t)out & 3) == 0;
    uint marked = 0;
    for (ulong word = first; word < past; word++) {
        uint bits = red[word] | green[word] | blue[word];
        const uint at = 4 * (uint)word;
        if (bytes - at >= 4) {
            if (is_aligned)
                *(__global uint *)(out + at) = bits;
            else
                STORE_UINT(out + at, bits);
        } else {
            /* The memory behind the masks holds anything. */
            bits &= (1u << 8 * (bytes - at)) - 1u;
            for (uint i = 0; i < bytes - at; i++)
                out[at + i] = (uchar)(bits >> 8 * i);
        }
        marked += popcount(bits);
    }
    if (marked)
        atomic_add(&counts[slot], marked);
}

__kernel void colour_pixels(int width, __global const uchar *red, __global const uchar *green,
                            __global const uchar *blue, __global const run_t *runs, uint run_count, __global uint *out)
{
    const uint2 measured = listed_runs(run_count);
    const size_t stride = (size_t)(width + 7) / 8;
    for (uint n = measured.x; n < measured.y; n++) {
        const run_t run = runs[n];
        const size_t row = (size_t)run.y * stride;
        uint by_red = 0, by_green = 0, by_blue = 0;
        for (uint x = run.x0; x < run.x1; x++) {
            const size_t at = row + x / 8;
            const uint shift = 7 - (x & 7);
            by_red += red[at] >> shift & 1u;
            by_green += green[at] >> shift & 1u;
            by_blue += blue[at] >> shift & 1u;
        }
        out[3 * n] = by_red;
        out[3 * n + 1] = by_green;
        out[3 * n + 2] = by_blue;
    }
}

/* `is_luma`: the luma of the pictures; otherwise of each pixel the value that is farthest from 128, the first of equals. */
__kernel void colour_picture(__global const uchar *red, __global const uchar *green, __global const uchar *blue,
                             uint plane_stride, int is_luma, __global uchar *dst, ulong dst_offset, uint dst_stride,
                             int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const size_t at = (size_t)y * plane_stride + x;
    uchar value = red[at];
    if (is_luma) {
        value = luma_of(red[at], green[at], blue[at]);
    } else {
        if (abs((int)green[at] - 128) > abs((int)value - 128))
            value = green[at];
        if (abs((int)blue[at] - 128) > abs((int)value - 128))
            value = blue[at];
    }
    dst[dst_offset + (size_t)y * dst_stride + x] = value;
}
