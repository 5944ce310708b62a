/* Appended to reference_warp.cl. The comparison with a trained picture (docs/semantics.md, "Comparison with a
 * reference"), on any device, from buffers. Frames that are read through a warp were written by reference_warp before.
 *
 * reference_mark       A work-item marks `item_blocks` blocks of 16 pixels in each of `item_rows` rows. A CPU has one
 *                      item per work-group. On a GPU `item_blocks` is 1, and `item_rows` is the program's constant
 *                      MARK_ROWS. All bytes of the mask are written. Samples are compared as they are.
 * reference_mark_level The same for samples with another brightness.
 * reference_sums       A work-group sums the judged samples of a row, before the change of brightness.
 * reference_train      A work-item adds a sample and its square to the sums of a training.
 * reference_picture    A work-item writes a pixel of the mean, or of the difference from it.
 * reference_reached    A work-item counts a pixel by the highest threshold that marks it.
 * run_differences      A work-item measures the marked pixels of a sequence of runs.
 *
 * | argument     | meaning                                                                                      |
 * | judged       | x0, y0, x1, y1: pixels outside are not judged                                                |
 * | spans        | for each row the first judged column and the one past the last; not read unless `has_spans`  |
 * | level        | A, B and the highest sample of s'' = clamp((A s' + B + 2048) >> 12)                          |
 * | limits       | for each row of the frame the highest and then the lowest samples that are not marked, as    |
 * |              | samples of SAMPLE_BYTES bytes, least significant first; `limit_stride` bytes per row, a      |
 * |              | multiple of 16 samples; the memory is aligned                                                |
 * | mask         | rows of ceil(width / 8) bytes from mask_offset on, which may be any byte                     |
 * | counters     | counters[slot] counts marked pixels; the other one of two is cleared for the next frame      |
 * | bitmap       | packed as the mask: 1 = judged; not read unless `has_bitmap`                                 |
 * | mean         | 1/256 grey level, `width` per row                                                            |
 *
 * Exactness: integers only. A limit has 1/256 grey level, but samples are whole, so limits are rounded to samples on the
 * host.
 */
#if SAMPLE_BYTES == 1
#define IS_OUTSIDE(s, high, low) (((s) > (high)) | ((s) < (low)))
#else
#define IS_OUTSIDE(s, high, low) convert_char16(((s) > (high)) | ((s) < (low)))
#endif

#define JUDGED_ARGS int4 judged, __global const int2 *spans, int has_spans
#define JUDGED judged, spans, has_spans

static int is_unit(int4 level) { return level.x == UNIT_SCALE && level.y == 0; }

/* s'' of 16 samples. */
static samples_t levelled_samples(samples_t s, int4 level)
{
    if (is_unit(level))
        return s;
    const int16 v = (convert_int16(s) * (int16)(level.x) + (int16)(level.y + UNIT_SCALE / 2)) >> (int16)(12);
    return FROM_INTS(min(max(v, (int16)(0)), (int16)(level.z)));
}

/* s'' of a sample. */
static int levelled_sample(uint s, int4 level)
{
    return is_unit(level) ? (int)s : clamp((level.x * (int)s + level.y + UNIT_SCALE / 2) >> 12, 0, level.z);
}

/* The judged columns of a row: the first one, and the one past the last. */
static int2 judged_columns(int4 judged, __global const int2 *spans, int has_spans, int y)
{
    if (y < judged.y || y >= judged.w)
        return (int2)(0);
    return has_spans ? spans[y] : (int2)(judged.x, judged.z);
}

static int is_inside(int4 judged, __global const int2 *spans, int has_spans, int x, int y)
{
    const int2 columns = judged_columns(judged, spans, has_spans, y);
    return x >= columns.x && x < columns.y;
}

/* Bits of the block at (x, y): byte 0 holds the first 8 pixels, the first one in the highest bit. `has_level` is a
 * constant: whether samples have another brightness. */
static uint mark_block(PLANE_ARGS, int x, int y, JUDGED_ARGS, int4 level, __global const uchar *limits,
                       uint limit_stride, int has_level)
{
    const int2 columns = judged_columns(JUDGED, y);
    if (x >= columns.y || x + BLOCK <= columns.x)
        return 0;
    __global const uchar *high = limits + 2 * (size_t)y * limit_stride + (size_t)x * SAMPLE_BYTES;
    __global const uchar *low = high + limit_stride;
    if (x >= columns.x && x + BLOCK <= columns.y) {
        const samples_t raw = load_samples(src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES);
        const samples_t s = has_level ? levelled_samples(raw, level) : raw;
        return pack_bits16(IS_OUTSIDE(s, *(__global const samples_t *)high, *(__global const samples_t *)low));
    }
    uint bits = 0;
    const int past = min(BLOCK, columns.y - x);
    for (int i = max(0, columns.x - x); i < past; i++) {
        const uint raw = PLANE_SAMPLE(x + i, y);
        const int s = has_level ? levelled_sample(raw, level) : (int)raw;
#if SAMPLE_BYTES == 1
        const int upper = high[i];
        const int lower = low[i];
#else
        const int upper = ((__global const ushort *)high)[i];
        const int lower = ((__global const ushort *)low)[i];
#endif
        if (s > upper || s < lower)
            bits |= (0x80u >> (i & 7)) << (i & 8);
    }
    return bits;
}

#ifdef MARK_ROWS
/* Bits of 16 samples that are outside their limits. */
static uint outside_bits(samples_t s, samples_t high, samples_t low)
{
#if SAMPLE_BYTES == 1
    /* Four samples a word: the highest bit of a byte tells whether a >= b. */
#define TOPS ((uint4)(0x80808080u))
#define AT_LEAST(a, b) (((a) & ~(b)) | (~((a) ^ (b)) & (((a) | TOPS) - ((b) & ~TOPS))))
    const uint4 v = as_uint4(s);
    const uint4 ones = (~(AT_LEAST(as_uint4(high), v) & AT_LEAST(v, as_uint4(low))) & TOPS) >> (uint4)(7);
    /* The product gathers the four bits of a word, the first sample's highest, from bit 24 on. */
    const uint4 bits = (ones * (uint4)(0x08040201u)) >> (uint4)(24);
    return (bits.x << 4) | bits.y | (bits.z << 12) | (bits.w << 8);
#else
    return pack_bits16(IS_OUTSIDE(s, high, low));
#endif
}

/* The bits of a block in MARK_ROWS rows from y on. Where each of its pixels is judged, all samples and limits are
 * loaded before the first one is compared: a GPU then waits for memory once. */
static void mark_block_rows(PLANE_ARGS, int x, int y, JUDGED_ARGS, int4 level, __global const uchar *limits,
                            uint limit_stride, uint *bits, int has_level)
{
    __global const uchar *p = src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES;
    int is_whole = x >= judged.x && x + BLOCK <= judged.z && y >= judged.y && y + MARK_ROWS <= judged.w;
    if (is_whole && has_spans) {
#pragma unroll
        for (int i = 0; i < MARK_ROWS; i++)
            is_whole &= x >= spans[y + i].x && x + BLOCK <= spans[y + i].y;
    }
    if (is_whole && !has_level && (((size_t)p | src_stride) & 15) == 0) {
        __global const samples_t *limit =
            (__global const samples_t *)(limits + 2 * (size_t)y * limit_stride + (size_t)x * SAMPLE_BYTES);
        const size_t row = limit_stride / sizeof(samples_t);
        samples_t s[MARK_ROWS], high[MARK_ROWS], low[MARK_ROWS];
#pragma unroll
        for (int i = 0; i < MARK_ROWS; i++) {
            s[i] = load_aligned(p + (size_t)i * src_stride);
            high[i] = limit[2 * i * row];
            low[i] = limit[(2 * i + 1) * row];
        }
#pragma unroll
        for (int i = 0; i < MARK_ROWS; i++)
            bits[i] = outside_bits(s[i], high[i], low[i]);
        return;
    }
#pragma unroll
    for (int i = 0; i < MARK_ROWS; i++)
        bits[i] = mark_block(PLANE, x, y + i, JUDGED, level, limits, limit_stride, has_level);
}
#endif

static void mark_blocks(PLANE_ARGS, int width, int height, JUDGED_ARGS, int4 level,
                        __global const uchar *limits, uint limit_stride, __global uchar *mask, ulong mask_offset,
                        int item_blocks, int item_rows, __global uint *counters, uint slot, __local uint *total,
                        int has_level)
{
    const int mask_stride = (width + 7) / 8;
    const int blocks = (width + BLOCK - 1) / BLOCK;
    const int first_block = (int)get_global_id(0) * item_blocks;
    const int past_block = min(first_block + item_blocks, blocks);
    const int first_row = (int)get_global_id(1) * item_rows;
    const int past_row = min(first_row + item_rows, height);
    const int is_first = get_local_id(0) == 0 && get_local_id(1) == 0;
    if (is_first)
        *total = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint count = 0;
#ifdef MARK_ROWS
    if (first_block < past_block && first_row < past_row) {
        uint bits[MARK_ROWS];
        mark_block_rows(PLANE, BLOCK * first_block, first_row, JUDGED, level, limits, limit_stride, bits, has_level);
        __global uchar *out = mask + mask_offset + (size_t)first_row * mask_stride + 2 * first_block;
        const int is_pair = 2 * first_block + 1 < mask_stride;
#pragma unroll
        for (int i = 0; i < MARK_ROWS; i++, out += mask_stride) {
            if (first_row + i >= height)
                break;
            count += popcount(bits[i]);
            if (is_pair && ((size_t)out & 1) == 0) {
                *(__global ushort *)out = (ushort)bits[i];
                continue;
            }
            out[0] = (uchar)bits[i];
            if (is_pair)
                out[1] = (uchar)(bits[i] >> 8);
        }
    }
#else
    for (int y = first_row; y < past_row; y++) {
        __global uchar *out = mask + mask_offset + (size_t)y * mask_stride;
        for (int block = first_block; block < past_block; block++) {
            const uint bits = mark_block(PLANE, BLOCK * block, y, JUDGED, level, limits, limit_stride, has_level);
            count += popcount(bits);
            out[2 * block] = (uchar)bits;
            if (2 * block + 1 < mask_stride)
                out[2 * block + 1] = (uchar)(bits >> 8);
        }
    }
#endif
    if (count)
        atomic_add(total, count);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (is_first && *total)
        atomic_add(&counters[slot], *total);
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        counters[1 - slot] = 0;
}

__kernel void reference_mark(PLANE_ARGS, int width, int height, JUDGED_ARGS, int4 level,
                             __global const uchar *limits, uint limit_stride, __global uchar *mask,
                             ulong mask_offset, int item_blocks, int item_rows, __global uint *counters, uint slot)
{
    __local uint total;
    mark_blocks(PLANE, width, height, JUDGED, level, limits, limit_stride, mask, mask_offset, item_blocks,
                item_rows, counters, slot, &total, 0);
}

__kernel void reference_mark_level(PLANE_ARGS, int width, int height, JUDGED_ARGS, int4 level,
                                  __global const uchar *limits, uint limit_stride, __global uchar *mask,
                                  ulong mask_offset, int item_blocks, int item_rows, __global uint *counters,
                                  uint slot)
{
    __local uint total;
    mark_blocks(PLANE, width, height, JUDGED, level, limits, limit_stride, mask, mask_offset, item_blocks,
                item_rows, counters, slot, &total, 1);
}

static int is_in_bitmap(__global const uchar *bitmap, int has_bitmap, int x, int y, int width)
{
    return !has_bitmap || (bitmap[(size_t)y * ((width + 7) / 8) + x / 8] & (0x80u >> (x & 7))) != 0;
}

/* sums[y] becomes the sum of a row's judged samples and of their squares. `parts` holds one of them per item. */
__kernel void reference_sums(PLANE_ARGS, int width, JUDGED_ARGS,
                             __global const uchar *bitmap, int has_bitmap, __global ulong2 *sums,
                             __local ulong2 *parts)
{
    const int y = (int)get_group_id(1);
    const int item = (int)get_local_id(0);
    const int items = (int)get_local_size(0);
    ulong sum = 0;
    ulong squares = 0;
    const int2 columns = judged_columns(JUDGED, y);
    if (columns.x < columns.y) {
#if SAMPLE_BYTES == 1
        /* The squares of a row of 2^20 pixels fit. */
        uint16 lane_sums = (uint16)(0);
        uint16 lane_squares = (uint16)(0);
#define ADD_LANES(s)                                                                              \
    lane_sums += convert_uint16(s);                                                               \
    lane_squares += convert_uint16(convert_ushort16(s) * convert_ushort16(s));
#else
        ulong16 lane_sums = (ulong16)(0);
        ulong16 lane_squares = (ulong16)(0);
#define ADD_LANES(s)                                                                              \
    lane_sums += convert_ulong16(convert_uint16(s));                                              \
    lane_squares += convert_ulong16(convert_uint16(s) * convert_uint16(s));
#endif
        for (int x = BLOCK * item; x < width; x += BLOCK * items) {
            int is_whole = x >= columns.x && x + BLOCK <= columns.y;
            if (is_whole && has_bitmap) {
                __global const uchar *in_row = bitmap + (size_t)y * ((width + 7) / 8) + x / 8;
                is_whole = in_row[0] == 0xff && in_row[1] == 0xff;
            }
            if (is_whole) {
                const samples_t s =
                    load_samples(src + src_offset + (size_t)y * src_stride + (size_t)x * SAMPLE_BYTES);
                ADD_LANES(s)
                continue;
            }
            for (int i = max(x, columns.x); i < min(x + BLOCK, columns.y); i++) {
                if (is_in_bitmap(bitmap, has_bitmap, i, y, width)) {
                    const ulong s = PLANE_SAMPLE(i, y);
                    sum += s;
                    squares += s * s;
                }
            }
        }
#define ADD_ALL(v) ((ulong)v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7 + v.s8 + v.s9 + v.sa + v.sb + v.sc + v.sd + v.se + v.sf)
        sum += ADD_ALL(lane_sums);
        squares += ADD_ALL(lane_squares);
    }
    parts[item] = (ulong2)(sum, squares);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        ulong2 total = (ulong2)(0);
        for (int i = 0; i < items; i++)
            total += parts[i];
        sums[y] = total;
    }
}

__kernel void reference_train(PLANE_ARGS, int width, int height, int4 level, __global uint *sums,
                              __global ulong *squares)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= width || y >= height)
        return;
    const int s = levelled_sample(PLANE_SAMPLE(x, y), level);
    const size_t at = (size_t)y * width + x;
    sums[at] += (uint)s;
    squares[at] += (ulong)s * (ulong)s;
}

/* counts[k]: pixels that a threshold of k/4 grey levels marks, but no higher one; the last one also has those above.
 * `limits` are those at a threshold of 0. `highest` and `lowest`: the means around a pixel, 1/256 grey level. */
__kernel void reference_reached(PLANE_ARGS, int width, int height, JUDGED_ARGS, int4 level,
                                __global const uchar *limits, uint limit_stride, __global const uint *highest,
                                __global const uint *lowest, __global uint *counts, int last)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= width || y >= height || !is_inside(JUDGED, x, y))
        return;
    __global const uchar *high = limits + 2 * (size_t)y * limit_stride + (size_t)x * SAMPLE_BYTES;
    __global const uchar *low = high + limit_stride;
#if SAMPLE_BYTES == 1
    const int upper = *high;
    const int lower = *low;
#else
    const int upper = *(__global const ushort *)high;
    const int lower = *(__global const ushort *)low;
#endif
    const int s = levelled_sample(PLANE_SAMPLE(x, y), level);
    const size_t at = (size_t)y * width + x;
    const int beyond = s > upper ? 256 * s - (int)highest[at] : s < lower ? (int)lowest[at] - 256 * s : 0;
    if (beyond > 0)
        atomic_inc(&counts[min((beyond - 1) / 64, last)]);
}

/* `has_difference`: the difference, otherwise the mean; a byte is a grey level of 8 bits, `to_byte` bits less than a sample's. The
 * difference is multiplied by gain/256 and added to 128. */
__kernel void reference_picture(PLANE_ARGS, int width, int height, JUDGED_ARGS, int4 level,
                                __global const uchar *bitmap, int has_bitmap, __global const uint *mean,
                                int has_difference, int to_byte, int gain, __global uchar *dst, ulong dst_offset, uint dst_stride)
{
    const int x = (int)get_global_id(0);
    const int y = (int)get_global_id(1);
    if (x >= width || y >= height)
        return;
    __global uchar *out = dst + dst_offset + (size_t)y * dst_stride + x;
    const uint level_of_mean = mean[(size_t)y * width + x];
    if (!has_difference) {
        *out = (uchar)min(((level_of_mean + 128) >> 8) >> to_byte, 255u);
        return;
    }
    if (!is_inside(JUDGED, x, y) || !is_in_bitmap(bitmap, has_bitmap, x, y, width)) {
        *out = 128;
        return;
    }
    const int s = levelled_sample(PLANE_SAMPLE(x, y), level);
    const long d = (256 * (long)s - (long)level_of_mean) * gain;
    const long unit = 65536L << to_byte;
    const long size = ((long)abs(d) + unit / 2) / unit;
    *out = (uchar)clamp(128 + (d < 0 ? -size : size), 0L, 255L);
}

/* Differences are in 1/512 grey level. Row 0 of the mask is row 0 of the frame. */
__kernel void run_differences(PLANE_ARGS, int width, int4 level, __global const uint *mean,
                              __global const uchar *mask, ulong mask_offset, RUNS_ARGS)
{
    own_runs_t measured = own_runs(mask, mask_offset, width, RUNS);
    run_t run;
    while (take_run(&measured, &run)) {
        __global const uchar *row = mask + mask_offset + (size_t)run.y * ((width + 7) / 8);
        run_difference_t result = {0, 0, 0, 0};
        for (uint x = run.x0; x < run.x1; x++) {
            if (!(row[x / 8] & (0x80u >> (x & 7))))
                continue;
            const int s = levelled_sample(PLANE_SAMPLE(x, run.y), level);
            const int d = 2 * (256 * s - (int)mean[(size_t)run.y * width + x]);
            result.sum += d;
            result.signs |= LEVEL_BIT(0) | (d > 0 ? 1u : d < 0 ? 2u : 4u);
            if (abs(d) > abs(result.peak))
                result.peak = d;
        }
        measured.out[measured.at] = result;
    }
}
