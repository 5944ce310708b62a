/* Appended to demosaic.cl. GPU: a work-item computes ITEM_PIXELS pixels of ITEM_ROWS rows; work-items outside
 * return.
 * Where rows of `src` start at multiples of 4 bytes, it reads words; it writes words where the rows of `dst` start at
 * multiples of 4 bytes, and 16 bytes at once at multiples of 16.
 */
typedef uint lanes_t;
/* A word of 4 bytes has pairs of an even and an odd column: two of bytes, or one. */
#define WORD_PIXELS (4 / SAMPLE_BYTES)
#define ITEM_WORDS (ITEM_PIXELS / WORD_PIXELS)
#if SAMPLE_BYTES == 1
#define EVERY_LANE 0x00010001u
#define EVEN(w) ((w) & 0x00ff00ffu)
#define ODD(w) ((w) >> 8 & 0x00ff00ffu)
/* The lanes one to the left, and one to the right; with shifts Oclgrind 21.10 lacks an instruction. */
#define LEFT(before, v) as_uint((ushort2)(as_ushort2(before).y, as_ushort2(v).x))
#define RIGHT(v, after) as_uint((ushort2)(as_ushort2(v).y, as_ushort2(after).x))
#else
#define EVERY_LANE 1u
#define LEFT(before, v) (before)
#define RIGHT(v, after) (after)
#endif
#define TIMES(n) (n##u)
#define BIAS (BIAS_VALUE * EVERY_LANE)

static lanes_t finished(lanes_t sum)
{
#if GRADIENT && SAMPLE_BYTES == 1
    /* 256 + the value: bit 9 is set above 255, and neither bit 8 nor 9 below 0. */
    const uint value = sum >> FRACTION_BITS & 0x03ff03ffu;
    const uint above = value >> 9 & EVERY_LANE;
    const uint inside = (value | value >> 1) & 0x01000100u;
    return (value | above * 255u) & (inside - (inside >> 8));
#elif GRADIENT
    return min(max(sum >> FRACTION_BITS, LOWEST), HIGHEST) - LOWEST;
#else
    return sum >> FRACTION_BITS & SAMPLE_MASK * EVERY_LANE;
#endif
}

/* Words of a row: of the work-item, the word before them and the word after them. */
static void load_row(__global const uchar *row, int x, int width, const int is_inside, uint *words)
{
    if (!is_inside) {
#pragma unroll
        for (int i = 0; i < ITEM_WORDS + 2; i++) {
            uint word = 0;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int column = mirrored(x + (i - 1) * WORD_PIXELS + k / SAMPLE_BYTES, width);
                word |= (uint)row[column * SAMPLE_BYTES + k % SAMPLE_BYTES] << (8 * k);
            }
            words[i] = word;
        }
        return;
    }
    __global const uint *from = (__global const uint *)(row + x * SAMPLE_BYTES);
#if ITEM_WORDS == 4
    if (((uint)(ulong)from & 15) == 0) {
        const uint4 v = *(__global const uint4 *)from;
        words[1] = v.x;
        words[2] = v.y;
        words[3] = v.z;
        words[4] = v.w;
    } else
#endif
    {
#pragma unroll
        for (int i = 0; i < ITEM_WORDS; i++)
            words[1 + i] = from[i];
    }
    /* At the ends of the row the neighbours are mirrored: x - 1 is x + 1, x - 2 is x + 2. */
#if SAMPLE_BYTES == 1
    words[0] = x > 0 ? from[-1] : (words[1] << 16 & 0xff000000u) | (words[1] & 0x00ff0000u);
    words[ITEM_WORDS + 1] = x + ITEM_PIXELS < width
                                ? from[ITEM_WORDS]
                                : (words[ITEM_WORDS] >> 16 & 0xffu) | (words[ITEM_WORDS] & 0x0000ff00u);
#else
    words[0] = x > 0 ? from[-1] : (words[2] & 0xffffu) | (words[1] & 0xffff0000u);
    words[ITEM_WORDS + 1] = x + ITEM_PIXELS < width
                                ? from[ITEM_WORDS]
                                : (words[ITEM_WORDS] & 0xffffu) | (words[ITEM_WORDS - 1] & 0xffff0000u);
#endif
}

/* Values of 8 bits of two words of samples, in two lanes, or of one word. */
#if SAMPLE_BYTES == 1
#define PACKED_WORDS 1
#define UPPER(v, i) ((v)[i])
#else
#define PACKED_WORDS 2
#define UPPER(v, i) ((v)[i] >> LOW_BITS | (v)[(i) + 1] >> LOW_BITS << 16)
#endif
#define OUT_WORDS (ITEM_PIXELS * PIXEL_BYTES / 4)

/* The words of the pixels from their lanes of even and odd columns. */
static void pack_pixels(const uint *even_red, const uint *even_green, const uint *even_blue, const uint *odd_red,
                        const uint *odd_green, const uint *odd_blue, uint *out)
{
#if IS_GRAY
    uint even[ITEM_WORDS], odd[ITEM_WORDS];
#pragma unroll
    for (int i = 0; i < ITEM_WORDS; i++) {
        even[i] = (77u * even_red[i] + 150u * even_green[i] + 29u * even_blue[i] + 128u * EVERY_LANE) >> 8 &
                  SAMPLE_MASK * EVERY_LANE;
        odd[i] = (77u * odd_red[i] + 150u * odd_green[i] + 29u * odd_blue[i] + 128u * EVERY_LANE) >> 8 &
                 SAMPLE_MASK * EVERY_LANE;
    }
#endif
#if OUTPUT == OUTPUT_GRAY16 && SAMPLE_BYTES == 2
#pragma unroll
    for (int i = 0; i < ITEM_WORDS; i++)
        out[i] = even[i] | odd[i] << 16;
#else
#pragma unroll
    for (int i = 0; i < ITEM_WORDS; i += PACKED_WORDS) {
        uint *to = out + i / PACKED_WORDS * PIXEL_BYTES;
#if OUTPUT == OUTPUT_GRAY8
        to[0] = UPPER(even, i) | UPPER(odd, i) << 8;
#elif OUTPUT == OUTPUT_GRAY16
        to[0] = (even[i] & 0xffffu) | odd[i] << 16;
        to[1] = even[i] >> 16 | (odd[i] & 0xffff0000u);
#else
#if OUTPUT == OUTPUT_BGR
        const uint er = UPPER(even_blue, i), eb = UPPER(even_red, i);
        const uint dr = UPPER(odd_blue, i), db = UPPER(odd_red, i);
#else
        const uint er = UPPER(even_red, i), eb = UPPER(even_blue, i);
        const uint dr = UPPER(odd_red, i), db = UPPER(odd_blue, i);
#endif
        const uint eg = UPPER(even_green, i), dg = UPPER(odd_green, i);
        const uint a = er | eg << 8;
#if OUTPUT == OUTPUT_RGBX
        const uint b = eb | 0xff00ff00u, c = dr | dg << 8, d = db | 0xff00ff00u;
        to[0] = (a & 0xffffu) | b << 16;
        to[1] = (c & 0xffffu) | d << 16;
        to[2] = a >> 16 | (b & 0xffff0000u);
        to[3] = c >> 16 | (d & 0xffff0000u);
#else
        const uint b = eb | dr << 8, c = dg | db << 8;
        to[0] = (a & 0xffffu) | b << 16;
        to[1] = (c & 0xffffu) | (a & 0xffff0000u);
        to[2] = b >> 16 | (c & 0xffff0000u);
#endif
#endif
    }
#endif
}

static void store_words(__global uchar *to, const uint *words, int bytes)
{
#if OUT_WORDS % 4 == 0
    if (bytes == 4 * OUT_WORDS && ((uint)(ulong)to & 15) == 0) {
#pragma unroll
        for (int i = 0; i < OUT_WORDS; i += 4)
            *(__global uint4 *)(to + 4 * i) = (uint4)(words[i], words[i + 1], words[i + 2], words[i + 3]);
        return;
    }
#endif
    if (bytes == 4 * OUT_WORDS && ((uint)(ulong)to & 3) == 0) {
#pragma unroll
        for (int i = 0; i < OUT_WORDS; i++)
            *(__global uint *)(to + 4 * i) = words[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < OUT_WORDS; i++) {
        const uchar4 four = as_uchar4(words[i]);
        if (4 * i < bytes)
            to[4 * i] = four.s0;
        if (4 * i + 1 < bytes)
            to[4 * i + 1] = four.s1;
        if (4 * i + 2 < bytes)
            to[4 * i + 2] = four.s2;
        if (4 * i + 3 < bytes)
            to[4 * i + 3] = four.s3;
    }
}

/* Row r of the rows `words`, which begin REACH rows above the first. */
static __attribute__((always_inline)) void demosaic_row(uint (*words)[ITEM_WORDS + 2], const int is_red_row,
                                                        uint *out)
{
    /* Blue is one column beside red. */
    const int is_even = (is_red_row ? RED_X : 1 - RED_X) == 0;
    const uint *own = words[REACH], *above = words[REACH - 1], *below = words[REACH + 1];
    uint even_own[ITEM_WORDS], even_green[ITEM_WORDS], even_other[ITEM_WORDS];
    uint odd_own[ITEM_WORDS], odd_green[ITEM_WORDS], odd_other[ITEM_WORDS];
#pragma unroll
    for (int i = 0; i < ITEM_WORDS; i++) {
        const uint e = EVEN(own[i + 1]), o = ODD(own[i + 1]);
        const uint left_o = LEFT(ODD(own[i]), o), right_e = RIGHT(e, EVEN(own[i + 2]));
        const uint even_v = EVEN(above[i + 1]) + EVEN(below[i + 1]);
        const uint odd_v = ODD(above[i + 1]) + ODD(below[i + 1]);
        const uint even_d = LEFT(ODD(above[i]) + ODD(below[i]), odd_v) + odd_v;
        const uint odd_d = even_v + RIGHT(even_v, EVEN(above[i + 2]) + EVEN(below[i + 2]));
        const uint even_h = left_o + o, odd_h = e + right_e;
#if GRADIENT
        const uint even_h2 = LEFT(EVEN(own[i]), e) + right_e;
        const uint odd_h2 = left_o + RIGHT(o, ODD(own[i + 2]));
        const uint even_v2 = EVEN(words[0][i + 1]) + EVEN(words[4][i + 1]);
        const uint odd_v2 = ODD(words[0][i + 1]) + ODD(words[4][i + 1]);
#endif
#define EVEN_SUM(sum) finished(sum(e, even_h, even_v, even_d, even_h2, even_v2))
#define ODD_SUM(sum) finished(sum(o, odd_h, odd_v, odd_d, odd_h2, odd_v2))
        if (is_even) {
            even_own[i] = e;
            even_green[i] = EVEN_SUM(GREEN_SUM);
            even_other[i] = EVEN_SUM(OTHER_SUM);
            odd_own[i] = ODD_SUM(ROW_SUM);
            odd_green[i] = o;
            odd_other[i] = ODD_SUM(COLUMN_SUM);
        } else {
            odd_own[i] = o;
            odd_green[i] = ODD_SUM(GREEN_SUM);
            odd_other[i] = ODD_SUM(OTHER_SUM);
            even_own[i] = EVEN_SUM(ROW_SUM);
            even_green[i] = e;
            even_other[i] = EVEN_SUM(COLUMN_SUM);
        }
    }
    if (is_red_row)
        pack_pixels(even_own, even_green, even_other, odd_own, odd_green, odd_other, out);
    else
        pack_pixels(even_other, even_green, even_own, odd_other, odd_green, odd_own, out);
}

__kernel void demosaic_items(DEMOSAIC_ARGS)
{
    const int x = (int)get_global_id(0) * ITEM_PIXELS;
    const int top = (int)get_global_id(1) * ITEM_ROWS;
    if (x >= width || top >= height)
        return;
    __global const uchar *from = src + src_offset;
    /* The word behind the work-item's lies in the row, or outside. */
    const int is_whole = x + ITEM_PIXELS == width || x + ITEM_PIXELS + WORD_PIXELS <= width;
    const int is_inside = is_whole && (((uint)(ulong)from | src_stride) & 3) == 0;
    uint words[ITEM_ROWS + 2 * REACH][ITEM_WORDS + 2];
#pragma unroll
    for (int r = 0; r < ITEM_ROWS + 2 * REACH; r++)
        load_row(from + (size_t)mirrored(top + r - REACH, height) * src_stride, x, width, is_inside, words[r]);
    const int bytes = min(ITEM_PIXELS, width - x) * PIXEL_BYTES;
    __global uchar *to = dst + dst_offset + (size_t)x * PIXEL_BYTES;
#pragma unroll
    for (int r = 0; r < ITEM_ROWS; r++) {
        if (top + r >= height)
            return;
        uint out[OUT_WORDS];
        demosaic_row(words + r, (r & 1) == RED_Y, out);
        store_words(to + (size_t)(top + r) * dst_stride, out, bytes);
    }
}
