/* First file of every program: reads and writes of samples, and loads and stores that need no
 * alignment.
 *
 * SAMPLE_BYTES         1 or 2
 * BIG_ENDIAN_SAMPLES   1 where a two-byte sample has its most significant byte first
 * USE_IMAGE            1 where the frame is an image of one 8-bit channel instead of a buffer
 *
 * Each file also has the constants that crates/core/src/kernels.rs lists for it.
 *
 * All devices are little-endian; the host refuses others. Packed bits and pairs of bytes rely on it.
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

/* Hints for PoCL's compiler; builtins.cl defines them for PoCL. Oclgrind 21.10 cannot run loops that are vectorised,
 * and functions with `restrict`. */
#ifndef RARE
#define RARE
#define VECTORS_OF_4
#define PREFETCH(p, writes)
#define RESTRICT
#endif

/* A frame and its rows may start at any address. PoCL splits vload16 into scalar loads; a load
 * through a packed struct stays one instruction. */
typedef struct __attribute__((packed)) { uchar16 v; } packed_uchar16;
typedef struct __attribute__((packed)) { ushort8 v; } packed_ushort8;
typedef struct __attribute__((packed)) { ushort16 v; } packed_ushort16;
typedef struct __attribute__((packed)) { short16 v; } packed_short16;
typedef struct __attribute__((packed)) { uint4 v; } packed_uint4;
typedef struct __attribute__((packed)) { uint8 v; } packed_uint8;
typedef struct __attribute__((packed)) { uint16 v; } packed_uint16;
typedef struct __attribute__((packed)) { ulong v; } packed_ulong;
typedef struct __attribute__((packed)) { ushort v; } packed_ushort;
typedef struct __attribute__((packed)) { uint v; } packed_uint;

#define LOAD_UCHAR16(p) (((__global const packed_uchar16 *)(p))->v)
#define LOAD_USHORT8(p) (((__global const packed_ushort8 *)(p))->v)
#define LOAD_USHORT16(p) (((__global const packed_ushort16 *)(p))->v)
#define LOAD_UINT16(p) (((__global const packed_uint16 *)(p))->v)
#define LOAD_ULONG(p) (((__global const packed_ulong *)(p))->v)
#define LOAD_USHORT(p) (((__global const packed_ushort *)(p))->v)
#define LOAD_UINT(p) (((__global const packed_uint *)(p))->v)
#define STORE_UCHAR16(p, x) (((__global packed_uchar16 *)(p))->v = (x))
#define STORE_USHORT16(p, x) (((__global packed_ushort16 *)(p))->v = (x))
#define STORE_USHORT(p, x) (((__global packed_ushort *)(p))->v = (x))
#define STORE_UINT(p, x) (((__global packed_uint *)(p))->v = (x))
/* rotate() instead of two shifts, which Oclgrind 21.10 computes wrongly. */
#define SWAP_BYTES8(v) rotate((v), (ushort8)8)
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

/* The arguments that pass a plane. Buffer: memory object, offset of the plane's first byte, bytes
 * between rows. Image: the image and the plane's first column; src_stride is unused. */
#if USE_IMAGE
#define PLANE_ARGS __read_only image2d_t src, ulong src_offset, uint src_stride
__constant sampler_t plane_sampler =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
/* Sample `column` of row `line`. A macro parameter named x would also replace the .x below. */
#define PLANE_SAMPLE(column, line)                                                                \
    (read_imageui(src, plane_sampler, (int2)((column) + (int)src_offset, (line))).x)
#else
#define PLANE_ARGS __global const uchar *src, ulong src_offset, uint src_stride
#define PLANE_SAMPLE(column, line)                                                                \
    load_sample(src + src_offset + (size_t)(line) * src_stride + (size_t)(column) * SAMPLE_BYTES)
#endif
#define PLANE src, src_offset, src_stride

/* Bits of the pixels x .. x+count-1 that lie in a region; bit count-1 is pixel x. */
static uint roi_bits(__global const int4 *rois, int roi_count, int x, int y, int count)
{
    uint bits = 0;
    for (int i = 0; i < roi_count; i++) {
        const int4 r = rois[i];
        if (y < r.y || y >= r.w)
            continue;
        const int from = clamp(r.x - x, 0, count);
        const int to = clamp(r.z - x, 0, count);
        if (from < to)
            bits |= ((1u << (to - from)) - 1u) << (count - to);
    }
    return bits;
}

/* Bits of the 8 pixels from x that lie in from .. to-1; the first pixel is the highest bit. */
static uint byte_range(int from, int to, int x)
{
    const int first = clamp(from - x, 0, 8);
    const int past = clamp(to - x, 0, 8);
    return first < past ? ((1u << (past - first)) - 1u) << (8 - past) : 0u;
}

/* The band of a work-item: rows x .. y-1 of `rows`, of which each work-item takes as many as the others. */
static int2 band_of(int rows)
{
    const int band = (rows + (int)get_global_size(0) - 1) / (int)get_global_size(0);
    const int first = min((int)get_global_id(0) * band, rows);
    return (int2)(first, min(first + band, rows));
}
