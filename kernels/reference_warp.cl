/* Appended to mask_expand.cl, before reference.cl. Reads frames where the pixels of a trained picture lie
 * (docs/semantics.md, "Comparison with a reference"), on any device, from buffers.
 *
 * reference_blocks  A work-item sums blocks of 4x4 samples: `item_blocks` blocks beside each other, a multiple of 4 on a CPU.
 * reference_warp    A work-item writes `item_pixels` pixels beside each other, a multiple of BLOCK on a CPU and 1 on a GPU.
 *
 * | argument     | meaning                                                                                      |
 * | along_x      | c, a, b of the displacement along x, 2^-20 px: c + a x + b y                                 |
 * | along_y      | the same along y                                                                             |
 * | nodes        | local shifts in the middles of tiles of 32x32 px, along x and y, 1/256 px                    |
 * | columns, rows | tiles; no columns: there are no local shifts                                                |
 * | dst          | samples of the same type as those of src                                                     |
 *
 * Exactness: integers only. Displacements fit 32 bits, because the host warps no frame of more than 16384 px a side. A sum
 * of four samples with weights of 65536 together fits 32 bits without a sign. Twin: crates/core/src/reference/warp.rs.
 */

#if SAMPLE_BYTES == 1
typedef uchar16 samples_t;
typedef ushort16 taps_t;
#define TO_TAPS(s) convert_ushort16(s)
#define FROM_TAPS(v) convert_uchar16(v)
#define FROM_INTS(v) convert_uchar16(v)
#define STORE_SAMPLES(p, s) STORE_UCHAR16(p, s)
#else
typedef ushort16 samples_t;
typedef uint16 taps_t;
#define TO_TAPS(s) convert_uint16(s)
#define FROM_TAPS(v) convert_ushort16(v)
#define FROM_INTS(v) convert_ushort16(v)
#if BIG_ENDIAN_SAMPLES
#define STORE_SAMPLES(p, s) STORE_USHORT16(p, SWAP_BYTES16(s))
#else
#define STORE_SAMPLES(p, s) STORE_USHORT16(p, s)
#endif
#endif

/* Loads 16 samples from a multiple of 16 bytes. */
static samples_t load_aligned(__global const uchar *p)
{
#if SAMPLE_BYTES == 1
    return *(__global const uchar16 *)p;
#else
    ushort16 v;
    v.lo = *(__global const ushort8 *)p;
    v.hi = *(__global const ushort8 *)(p + 16);
#if BIG_ENDIAN_SAMPLES
    v = SWAP_BYTES16(v);
#endif
    return v;
#endif
}

/* Loads 16 samples. A GPU splits loads that may be unaligned into bytes. */
static samples_t load_samples(__global const uchar *p)
{
    if (((size_t)p & 15) == 0)
        return load_aligned(p);
#if SAMPLE_BYTES == 1
    return LOAD_UCHAR16(p);
#elif BIG_ENDIAN_SAMPLES
    return SWAP_BYTES16(LOAD_USHORT16(p));
#else
    return LOAD_USHORT16(p);
#endif
}

/* The node at or before a pixel of `count` nodes, and the weight of the next one in 1/64. */
static int2 node_before(int at, int count)
{
    const int from_first = 2 * at + 1 - NODE_TILE;
    const int node = min(max(from_first, 0) / (2 * NODE_TILE), max(count - 2, 0));
    return (int2)(node, clamp(from_first - node * 2 * NODE_TILE, 0, 2 * NODE_TILE));
}

/* Local shifts of a row at the node before a pixel and the next one, weighted along y: (u, v) of both. */
static int4 node_pair(__global const int2 *nodes, int columns, int rows, int node, int y)
{
    const int2 row = node_before(y, rows);
    __global const int2 *above = nodes + row.x * columns;
    __global const int2 *below = nodes + min(row.x + 1, rows - 1) * columns;
    const int next = min(node + 1, columns - 1);
    const int weight = 2 * NODE_TILE - row.y;
    return (int4)(weight * above[node] + row.y * below[node], weight * above[next] + row.y * below[next]);
}

/* The displacement of a pixel, 1/256 px. */
static int2 displacement(int x, int y, int4 along_x, int4 along_y, __global const int2 *nodes, int columns, int rows)
{
    int2 d;
    d.x = (along_x.x + along_x.y * x + along_x.z * y + 2048) >> 12;
    d.y = (along_y.x + along_y.y * x + along_y.z * y + 2048) >> 12;
    if (columns) {
        const int2 at = node_before(x, columns);
        const int4 pair = node_pair(nodes, columns, rows, at.x, y);
        d.x += ((2 * NODE_TILE - at.y) * pair.x + at.y * pair.z + 2048) >> 12;
        d.y += ((2 * NODE_TILE - at.y) * pair.y + at.y * pair.w + 2048) >> 12;
    }
    return d;
}

/* The sample at a displacement from (x, y); samples outside the frame are those at its edge. */
static RARE uint warped_sample(PLANE_ARGS, int x, int y, int2 d, int width, int height)
{
    const int x0 = clamp(x + (d.x >> 8), 0, width - 1);
    const int x1 = clamp(x + (d.x >> 8) + 1, 0, width - 1);
    const int y0 = clamp(y + (d.y >> 8), 0, height - 1);
    const int y1 = clamp(y + (d.y >> 8) + 1, 0, height - 1);
    const uint fx = (uint)d.x & 255u;
    const uint fy = (uint)d.y & 255u;
    const uint upper = (UNIT - fx) * PLANE_SAMPLE(x0, y0) + fx * PLANE_SAMPLE(x1, y0);
    const uint lower = (UNIT - fx) * PLANE_SAMPLE(x0, y1) + fx * PLANE_SAMPLE(x1, y1);
    return ((UNIT - fy) * upper + fy * lower + 32768u) >> 16;
}

/* Samples of 16 pixels weighted along x. `steps` has all bits of a pixel that is read a sample further; `has_steps`:
 * there are such pixels. */
static taps_t weighted_row(__global const uchar *p, taps_t fx, taps_t steps, int has_steps)
{
    taps_t left = TO_TAPS(load_samples(p));
    taps_t right = TO_TAPS(load_samples(p + SAMPLE_BYTES));
    if (has_steps) {
        const taps_t next = TO_TAPS(load_samples(p + 2 * SAMPLE_BYTES));
        left ^= (left ^ right) & steps;
        right ^= (right ^ next) & steps;
    }
    return left * ((taps_t)(UNIT) - fx) + right * fx;
}

/* Writes 16 pixels that are read at a shift by quarters of a pixel. Returns 0, and writes nothing, if not all samples lie
 * in the frame; those with a weight of 0 need not. */
static int shift_block(PLANE_ARGS, int x, int y, int2 d, int width, int height, __global uchar *out)
{
    const int x0 = x + (d.x >> 8);
    const int y0 = y + (d.y >> 8);
    /* Weights of 4 along each axis: the sums of bytes fit 16 bits. */
    const int fx = (d.x & 255) / 64;
    const int fy = (d.y & 255) / 64;
    if (x0 < 0 || y0 < 0 || x0 + BLOCK + (fx > 0) > width || y0 + (fy > 0) >= height)
        return 0;
    __global const uchar *p = src + src_offset + (size_t)y0 * src_stride + (size_t)x0 * SAMPLE_BYTES;
    const samples_t s = load_samples(p);
    if (fx == 0 && fy == 0) {
        STORE_SAMPLES(out, s);
        return 1;
    }
    taps_t sum = TO_TAPS(s) * (taps_t)(4 - fx);
    if (fx)
        sum += TO_TAPS(load_samples(p + SAMPLE_BYTES)) * (taps_t)(fx);
    sum *= (taps_t)(4 - fy);
    if (fy) {
        p += src_stride;
        taps_t below = TO_TAPS(load_samples(p)) * (taps_t)(4 - fx);
        if (fx)
            below += TO_TAPS(load_samples(p + SAMPLE_BYTES)) * (taps_t)(fx);
        sum += below * (taps_t)(fy);
    }
    STORE_SAMPLES(out, FROM_TAPS((sum + (taps_t)(8)) >> (taps_t)(4)));
    return 1;
}

#define LANES ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define ANY(v) pack_bits16(convert_char16((v) != (int16)(0)))

/* Writes 16 pixels from (x, y) on, x a multiple of BLOCK. Returns 0, and writes nothing, if samples are too far apart, or
 * not all in the frame. */
static int warp_block(PLANE_ARGS, int x, int y, int width, int height, int4 along_x, int4 along_y,
                      __global const int2 *nodes, int columns, int rows, __global uchar *out)
{
    int16 u = ((int16)(along_x.x + along_x.y * x + along_x.z * y + 2048) + (int16)(along_x.y) * LANES) >> (int16)(12);
    int16 v = ((int16)(along_y.x + along_y.y * x + along_y.z * y + 2048) + (int16)(along_y.y) * LANES) >> (int16)(12);
    if (columns) {
        /* No block crosses the middle of a tile, so all its pixels lie between the same nodes. */
        const int2 at = node_before(x, columns);
        const int4 pair = node_pair(nodes, columns, rows, at.x, y);
        const int16 weights =
            min(max((int16)(2 * x + 1 - NODE_TILE - at.x * 2 * NODE_TILE) + (int16)(2) * LANES, (int16)(0)),
                (int16)(2 * NODE_TILE));
        const int16 rest = (int16)(2 * NODE_TILE) - weights;
        u += (rest * (int16)(pair.x) + weights * (int16)(pair.z) + (int16)(2048)) >> (int16)(12);
        v += (rest * (int16)(pair.y) + weights * (int16)(pair.w) + (int16)(2048)) >> (int16)(12);
    }
    const int x_step = min(u.s0, u.sf) >> 8;
    const int y_step = min(v.s0, v.sf) >> 8;
    const int16 x_steps = (u >> (int16)(8)) - (int16)(x_step);
    const int16 y_steps = (v >> (int16)(8)) - (int16)(y_step);
    /* Without local shifts the displacements rise or fall along the row, so the ends tell. */
    if (columns ? ANY((x_steps | y_steps) & (int16)(~1)) : ((x_steps.s0 | x_steps.sf | y_steps.s0 | y_steps.sf) & ~1))
        return 0;
    const int has_x_steps = columns ? ANY(x_steps) != 0 : x_steps.s0 | x_steps.sf;
    const int has_y_steps = columns ? ANY(y_steps) != 0 : y_steps.s0 | y_steps.sf;
    const int x0 = x + x_step;
    const int y0 = y + y_step;
    if (x0 < 0 || y0 < 0 || x0 + BLOCK + 1 + has_x_steps > width || y0 + 1 + has_y_steps >= height)
        return 0;
    const int16 x_rest = u & (int16)(255);
    const int16 y_rest = v & (int16)(255);
    __global const uchar *p = src + src_offset + (size_t)y0 * src_stride + (size_t)x0 * SAMPLE_BYTES;
#if SAMPLE_BYTES == 1
    const taps_t fx = convert_ushort16(x_rest);
    const taps_t steps = (taps_t)(0) - convert_ushort16(x_steps);
    const ushort16 down = (ushort16)(0) - convert_ushort16(y_steps);
#else
    const taps_t fx = convert_uint16(x_rest);
    const taps_t steps = (taps_t)(0) - convert_uint16(x_steps);
    const uint16 down = (uint16)(0) - convert_uint16(y_steps);
#endif
    taps_t upper = weighted_row(p, fx, steps, has_x_steps);
    taps_t lower = weighted_row(p + src_stride, fx, steps, has_x_steps);
    if (has_y_steps) {
        const taps_t lowest = weighted_row(p + 2 * (size_t)src_stride, fx, steps, has_x_steps);
        upper ^= (upper ^ lower) & down;
        lower ^= (lower ^ lowest) & down;
    }
    const uint16 fy = convert_uint16(y_rest);
    const uint16 sum =
        ((uint16)(UNIT) - fy) * convert_uint16(upper) + fy * convert_uint16(lower) + (uint16)(32768);
    STORE_SAMPLES(out, FROM_INTS(sum >> (uint16)(16)));
    return 1;
}

__kernel void reference_warp(PLANE_ARGS, int width, int height, int4 along_x, int4 along_y,
                             __global const int2 *nodes, int columns, int rows, int item_pixels, __global uchar *dst,
                             ulong dst_offset, uint dst_stride)
{
    const int first = (int)get_global_id(0) * item_pixels;
    const int past = min(first + item_pixels, width);
    const int y = (int)get_global_id(1);
    if (y >= height)
        return;
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;
#ifndef MARK_ROWS
    const int2 shift = displacement(0, 0, along_x, along_y, nodes, 0, 0);
    const int is_shift = !columns && !(along_x.y | along_x.z | along_y.y | along_y.z | ((shift.x | shift.y) & 63));
#endif
    for (int x = first; x < past; x += BLOCK) {
#ifndef MARK_ROWS
        /* A GPU has one item a pixel; blocks would take its registers. */
        __global uchar *to = out + (size_t)x * SAMPLE_BYTES;
        if (x + BLOCK <= past) {
            if (is_shift ? shift_block(PLANE, x, y, shift, width, height, to)
                         : warp_block(PLANE, x, y, width, height, along_x, along_y, nodes, columns, rows, to))
                continue;
        }
#endif
        for (int i = x; i < min(x + BLOCK, past); i++) {
            const int2 d = displacement(i, y, along_x, along_y, nodes, columns, rows);
            store_sample(out + (size_t)i * SAMPLE_BYTES, warped_sample(PLANE, i, y, d, width, height));
        }
    }
}

/* out[j][i], `across` per row and `down` rows, is the sum of the 4x4 samples from (4 i, 4 j) on, in levels of 8 bits. */
__kernel void reference_blocks(PLANE_ARGS, int across, int down, int item_blocks, int to_byte, __global ushort *out)
{
    const int first = (int)get_global_id(0) * item_blocks;
    const int past = min(first + item_blocks, across);
    const int j = (int)get_global_id(1);
    if (j >= down)
        return;
    __global const uchar *rows = src + src_offset + (size_t)(4 * j) * src_stride;
    __global ushort *sums = out + (size_t)j * across;
    int i = first;
    for (; i + 4 <= past; i += 4) {
        __global const uchar *p = rows + (size_t)(4 * i) * SAMPLE_BYTES;
#if SAMPLE_BYTES == 1
        uint4 pairs = (uint4)(0);
        for (int row = 0; row < 4; row++, p += src_stride) {
            const uint4 s = as_uint4(load_samples(p));
            pairs += (s & (uint4)(0x00ff00ffu)) + ((s >> (uint4)(8)) & (uint4)(0x00ff00ffu));
        }
        const uint4 four = (pairs & (uint4)(0xffffu)) + (pairs >> (uint4)(16));
#else
        uint16 columns = (uint16)(0);
        for (int row = 0; row < 4; row++, p += src_stride)
            columns += convert_uint16(load_samples(p));
        const uint8 pairs = columns.even + columns.odd;
        const uint4 four = pairs.even + pairs.odd;
#endif
        sums[i] = (ushort)min(four.x >> to_byte, 4095u);
        sums[i + 1] = (ushort)min(four.y >> to_byte, 4095u);
        sums[i + 2] = (ushort)min(four.z >> to_byte, 4095u);
        sums[i + 3] = (ushort)min(four.w >> to_byte, 4095u);
    }
    for (; i < past; i++) {
        uint sum = 0;
        for (int row = 0; row < 4; row++)
            for (int column = 0; column < 4; column++)
                sum += load_sample(rows + (size_t)row * src_stride + (size_t)(4 * i + column) * SAMPLE_BYTES);
        sums[i] = (ushort)min(sum >> to_byte, 4095u);
    }
}
