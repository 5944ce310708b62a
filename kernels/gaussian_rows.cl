/* Appended to gaussian.cl. CPU: gaussian_rows filters bands of rows of any sample type. */
/* 16 adjacent samples. */
#if SAMPLE_BYTES == 1
#define LOAD_SAMPLES16(p) LOAD_UCHAR16(p)
#elif BIG_ENDIAN_SAMPLES
#define LOAD_SAMPLES16(p) SWAP_BYTES16(LOAD_USHORT16(p))
#else
#define LOAD_SAMPLES16(p) LOAD_USHORT16(p)
#endif

typedef struct __attribute__((packed)) { line16_t v; } packed_line16;
#define LOAD_LINE16(p) (((__global const packed_line16 *)(p))->v)
#define STORE_LINE16(p, x) (((__global packed_line16 *)(p))->v = (x))

static void store_sums16(__global uchar *p, sum16_t sum)
{
#if SAMPLE_BYTES == 1
#if FLOAT_ARITHMETIC
    STORE_UCHAR16(p, convert_uchar16_sat_rte(sum));
#else
    STORE_UCHAR16(p, convert_uchar16((sum + 32768u) >> 16));
#endif
#else
#if FLOAT_ARITHMETIC
    const ushort16 v = convert_ushort16_sat_rte(sum);
#else
    const ushort16 v = convert_ushort16((sum + 32768u) >> 16);
#endif
#if BIG_ENDIAN_SAMPLES
    STORE_USHORT16(p, SWAP_BYTES16(v));
#else
    STORE_USHORT16(p, v);
#endif
#endif
}

__kernel void gaussian_rows(PLANE_ARGS, __global uchar *dst, ulong dst_offset, uint dst_stride,
                            int samples, int height, int first, int src_height, int copy_lane, int lanes,
                            __constant const weight_t *weights, __global line_t *scratch,
                            uint line_len)
{
    const int2 band = band_of(height);
    __global line_t *line = scratch + get_global_id(0) * (size_t)line_len + HALF * lanes;

    for (int y = band.x; y < band.y; y++) {
        __global const uchar *rows[TAPS];
        for (int i = 0; i < TAPS; i++)
            rows[i] = src + src_offset + (size_t)clamp(first + y - HALF + i, 0, src_height - 1) * src_stride;
        __global uchar *out = dst + dst_offset + (size_t)y * dst_stride;

#if SAMPLE_STEP == 1
        if (samples >= 16) {
            /* The last vector overlaps the one before; there is no scalar tail. */
            for (int x = 0;;) {
                line16_t sum = TO_LINE16(LOAD_SAMPLES16(rows[HALF] + x * SAMPLE_BYTES)) * (line_t)weights[HALF];
#pragma unroll
                for (int i = 0; i < HALF; i++)
                    sum += (TO_LINE16(LOAD_SAMPLES16(rows[i] + x * SAMPLE_BYTES)) +
                            TO_LINE16(LOAD_SAMPLES16(rows[TAPS - 1 - i] + x * SAMPLE_BYTES))) *
                           (line_t)weights[i];
                STORE_LINE16(line + x, sum);
                if (x == samples - 16)
                    break;
                x = min(x + 16, samples - 16);
            }
        } else
#endif
        {
            for (int x = 0; x < samples; x++) {
                const int at = x * (SAMPLE_STEP * SAMPLE_BYTES);
                sum_t sum = weights[HALF] * (sum_t)load_sample(rows[HALF] + at);
                for (int i = 0; i < HALF; i++)
                    sum += weights[i] * ((sum_t)load_sample(rows[i] + at) +
                                         (sum_t)load_sample(rows[TAPS - 1 - i] + at));
                line[x] = (line_t)sum;
            }
        }
        for (int step = 1; step <= HALF; step++)
            for (int lane = 0; lane < lanes; lane++) {
                line[lane - step * lanes] = line[lane];
                line[samples + (step - 1) * lanes + lane] = line[samples - lanes + lane];
            }
#if SAMPLE_STEP == 1
        if (samples >= 16) {
            for (int x = 0;;) {
                sum16_t sum = TO_SUM16(LOAD_LINE16(line + x)) * weights[HALF];
#pragma unroll
                for (int i = 0; i < HALF; i++)
                    sum += (TO_SUM16(LOAD_LINE16(line + x - (HALF - i) * lanes)) +
                            TO_SUM16(LOAD_LINE16(line + x + (HALF - i) * lanes))) *
                           weights[i];
                store_sums16(out + x * SAMPLE_BYTES, sum);
                if (x == samples - 16)
                    break;
                x = min(x + 16, samples - 16);
            }
        } else
#endif
        {
            for (int x = 0; x < samples; x++) {
                sum_t sum = weights[HALF] * (sum_t)line[x];
                for (int i = 0; i < HALF; i++)
                    sum += weights[i] * ((sum_t)line[x - (HALF - i) * lanes] +
                                         (sum_t)line[x + (HALF - i) * lanes]);
                store_sample(out + x * (SAMPLE_STEP * SAMPLE_BYTES), finish(sum));
            }
        }
        if (copy_lane >= 0)
            for (int x = copy_lane; x < samples; x += lanes)
                store_sample(out + x * SAMPLE_BYTES, load_sample(rows[HALF] + x * SAMPLE_BYTES));
    }
}
