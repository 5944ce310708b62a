/* Appended to common.cl; before demosaic_rows.cl or demosaic_items.cl. Red, green and blue of Bayer samples.
 *
 * SAMPLE_BYTES, BIG_ENDIAN_SAMPLES   of common.cl
 * SAMPLE_BITS    8, or 10 to 16 of two bytes; the bits above are ignored
 * RED_X, RED_Y   column and row of the first red sample, each 0 or 1
 * GRADIENT       0: bilinear; 1: Malvar, He and Cutler
 * OUTPUT         one of the outputs below
 *
 * | argument            | meaning                                                      |
 * | src, offset, stride | samples; rows may start at any address                       |
 * | dst, offset, stride | pixels; rows may start at any address; not the memory of src |
 * | width, height       | at least 2, with GRADIENT at least 3                         |
 *
 * A row has samples of its colour, red or blue, in every second column, and green ones between. The samples of even
 * and of odd columns are apart, several in a value of the type lanes_t: a lane has one sample and enough bits for the
 * sums. lanes_t is a vector, or a uint of two lanes of 16 bits or of one.
 *
 * Exactness: integers only. The sums below are 4 or 16 times the sample that is missing. Those of GRADIENT lie between
 * -12 and 28 times the largest sample, so with BIAS they are positive and fit 16 bits for samples of 8 bits.
 */
#ifndef SAMPLE_BITS
#define SAMPLE_BITS (8 * SAMPLE_BYTES)
#endif
#ifndef RED_X
#define RED_X 0
#define RED_Y 0
#endif
#ifndef GRADIENT
#define GRADIENT 0
#endif
#define OUTPUT_RGB 0
#define OUTPUT_BGR 1
#define OUTPUT_RGBX 2
#define OUTPUT_GRAY8 3
#define OUTPUT_GRAY16 4
#ifndef OUTPUT
#define OUTPUT OUTPUT_RGB
#endif
#define IS_GRAY (OUTPUT == OUTPUT_GRAY8 || OUTPUT == OUTPUT_GRAY16)
#if OUTPUT == OUTPUT_GRAY8
#define PIXEL_BYTES 1
#elif OUTPUT == OUTPUT_GRAY16
#define PIXEL_BYTES 2
#elif OUTPUT == OUTPUT_RGBX
#define PIXEL_BYTES 4
#else
#define PIXEL_BYTES 3
#endif
/* Bits that an output of 8 bits leaves out. */
#define LOW_BITS (SAMPLE_BITS - 8)
#define SAMPLE_MASK ((1u << SAMPLE_BITS) - 1u)
/* The samples of an even and of the next odd column in a word. Those of a byte lie otherwise in each file's lanes. */
#if SAMPLE_BYTES == 2 && BIG_ENDIAN_SAMPLES
#define EVEN(w) ((((w) & 0xffu) << 8 | ((w) >> 8 & 0xffu)) & SAMPLE_MASK)
#define ODD(w) (((w) >> 24 | ((w) >> 8 & 0xff00u)) & SAMPLE_MASK)
#elif SAMPLE_BYTES == 2
#define EVEN(w) ((w) & SAMPLE_MASK)
#define ODD(w) ((w) >> 16 & SAMPLE_MASK)
#endif
/* Columns and rows around a pixel that its colours depend on. */
#define REACH (GRADIENT ? 2 : 1)
#define SPAN (2 * REACH + 1)

#define DEMOSAIC_ARGS                                                                             \
    __global const uchar *src, ulong src_offset, uint src_stride, __global uchar *dst,            \
        ulong dst_offset, uint dst_stride, int width, int height

/* Column or row i of n, mirrored at the edges without repeating them. Far outside any one will do. */
static int mirrored(int i, int n)
{
    const int inside = i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
    return clamp(inside, 0, n - 1);
}

/* Sums of a missing sample, from the pixel's own sample s and sums of its neighbours: h left and right, v above and
 * below, d the four diagonal ones, h2 and v2 at the distance two. */
#if GRADIENT
#define FRACTION_BITS 4
/* Where red or blue is known: green, and the other colour. */
#define GREEN_SUM(s, h, v, d, h2, v2) (TIMES(8) * (s) + TIMES(4) * ((h) + (v)) + BIAS - TIMES(2) * ((h2) + (v2)))
#define OTHER_SUM(s, h, v, d, h2, v2) (TIMES(12) * (s) + TIMES(4) * (d) + BIAS - TIMES(3) * ((h2) + (v2)))
/* Where green is known: the colours of the row and of the column. */
#define ROW_SUM(s, h, v, d, h2, v2) (TIMES(10) * (s) + TIMES(8) * (h) + (v2) + BIAS - TIMES(2) * ((d) + (h2)))
#define COLUMN_SUM(s, h, v, d, h2, v2) (TIMES(10) * (s) + TIMES(8) * (v) + (h2) + BIAS - TIMES(2) * ((d) + (v2)))
#else
#define FRACTION_BITS 2
#define GREEN_SUM(s, h, v, d, h2, v2) ((h) + (v) + BIAS)
#define OTHER_SUM(s, h, v, d, h2, v2) ((d) + BIAS)
#define ROW_SUM(s, h, v, d, h2, v2) (TIMES(2) * (h) + BIAS)
#define COLUMN_SUM(s, h, v, d, h2, v2) (TIMES(2) * (v) + BIAS)
#endif
/* Added to each sum: a half, and with GRADIENT 2^SAMPLE_BITS. */
#define BIAS_VALUE ((1u << (FRACTION_BITS - 1)) + (GRADIENT << (SAMPLE_BITS + FRACTION_BITS)))
#define LOWEST (1u << SAMPLE_BITS)
#define HIGHEST ((2u << SAMPLE_BITS) - 1u)
