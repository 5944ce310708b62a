/* Put before every program: how a sample is read, and loads without alignment.
 *
 * SAMPLE_BYTES         1 or 2
 * BIG_ENDIAN_SAMPLES   1 where a two-byte sample has its most significant byte first
 * USE_IMAGE            1 where the frame is an image of one 8-bit channel instead of a buffer
 *
 * A device is little-endian (the host refuses others), so that packed bits and pairs of bytes
 * have one order everywhere.
 */
#ifndef SAMPLE_BYTES
#define SAMPLE_BYTES 1
#endif
#ifndef BIG_ENDIAN_SAMPLES
#define BIG_ENDIAN_SAMPLES 0
#endif
#ifndef USE_IMAGE
#define USE_IMAGE 0
#endif

/* A frame may start and have its rows anywhere. PoCL splits vload16 into scalars; a load through
 * a packed struct stays one instruction. */
typedef struct __attribute__((packed)) { uchar16 v; } packed_uchar16;
typedef struct __attribute__((packed)) { ushort16 v; } packed_ushort16;
typedef struct __attribute__((packed)) { ulong v; } packed_ulong;
typedef struct __attribute__((packed)) { uint v; } packed_uint;

#define LOAD_UCHAR16(p) (((__global const packed_uchar16 *)(p))->v)
#define LOAD_USHORT16(p) (((__global const packed_ushort16 *)(p))->v)
#define LOAD_ULONG(p) (((__global const packed_ulong *)(p))->v)
#define LOAD_UINT(p) (((__global const packed_uint *)(p))->v)
#define STORE_UCHAR16(p, x) (((__global packed_uchar16 *)(p))->v = (x))
#define STORE_USHORT16(p, x) (((__global packed_ushort16 *)(p))->v = (x))
#define STORE_UINT(p, x) (((__global packed_uint *)(p))->v = (x))
/* rotate() and not two shifts: of those Oclgrind 21.10 computes wrong values. */
#define SWAP_BYTES16(v) rotate((v), (ushort16)8)

static uint load_sample(__global const uchar *p)
{
#if SAMPLE_BYTES == 1
    return p[0];
#elif BIG_ENDIAN_SAMPLES
    return ((uint)p[0] << 8) | p[1];
#else
    return p[0] | ((uint)p[1] << 8);
#endif
}

static void store_sample(__global uchar *p, uint v)
{
#if SAMPLE_BYTES == 1
    p[0] = (uchar)v;
#elif BIG_ENDIAN_SAMPLES
    p[0] = (uchar)(v >> 8);
    p[1] = (uchar)v;
#else
    p[0] = (uchar)v;
    p[1] = (uchar)(v >> 8);
#endif
}

/* A plane as a kernel sees it. As a buffer: memory, offset of its first byte, bytes between rows.
 * As an image: the image, its first column; the stride is not used. */
#if USE_IMAGE
#define PLANE_ARGS __read_only image2d_t src, ulong src_offset, uint src_stride
__constant sampler_t plane_sampler =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
/* The `column`-th sample of row `line`. A parameter named x would replace the vector's .x too. */
#define PLANE_SAMPLE(column, line)                                                                \
    (read_imageui(src, plane_sampler, (int2)((column) + (int)src_offset, (line))).x)
#else
#define PLANE_ARGS __global const uchar *src, ulong src_offset, uint src_stride
#define PLANE_SAMPLE(column, line)                                                                \
    load_sample(src + src_offset + (size_t)(line) * src_stride + (size_t)(column) * SAMPLE_BYTES)
#endif
#define PLANE src, src_offset, src_stride
