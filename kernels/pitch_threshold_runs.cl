/* Appended to pitch_threshold_items.cl. Reads runs of samples that start at any byte: aligned
 * words, then funnel shifts, so that adjacent lanes read adjacent words. Memory objects must be
 * aligned.
 */
/* Words of a run of WIDE_PIXELS + 1 samples, and of a run with one more sample. */
#define RUN_WORDS 5
#define LONG_RUN_WORDS 6
/* All bytes read lie within RUN_BEFORE bytes before a run's start and RUN_BYTES from it. */
#define RUN_BEFORE 15
#define RUN_BYTES 32

#if !HAS_DOT4
static uint funnel(uint low, uint high, uint shift)
{
    return (uint)((((ulong)high << 32) | low) >> shift);
}
#endif

/* Reads `words` words (a constant) from byte `at` of the memory object. */
static void load_long_run(__global const uchar *src, uint at, int words, uint *run)
{
    const uint skew = at & 3u;
    __global const uint *from = (__global const uint *)(src + (at - skew));
#pragma unroll
    for (int i = 0; i < words; i++)
        run[i] = from[i];
#pragma unroll
    for (int i = 0; i < words; i++)
        run[i] = funnel(run[i], i + 1 < words ? run[i + 1] : 0u, 8 * skew);
}

/* Reads WIDE_PIXELS + 1 samples from byte `at`, as RUN_WORDS words.
 *
 * Two 16-byte loads and selects cost the cache less than a load per word: adjacent lanes would make
 * those 16 bytes apart. */
static void load_run(__global const uchar *src, uint at, uint *run)
{
    const uint skew = at & 15u;
    __global const uint4 *from = (__global const uint4 *)(src + (at - skew));
    const uint4 v = from[0];
    const uint4 w = from[1];
    const int upper = skew & 8u;
    const uint a0 = upper ? v.z : v.x;
    const uint a1 = upper ? v.w : v.y;
    const uint a2 = upper ? w.x : v.z;
    const uint a3 = upper ? w.y : v.w;
    const uint a4 = upper ? w.z : w.x;
    const uint a5 = upper ? w.w : w.y;
    const int odd = skew & 4u;
    const uint b0 = odd ? a1 : a0;
    const uint b1 = odd ? a2 : a1;
    const uint b2 = odd ? a3 : a2;
    const uint b3 = odd ? a4 : a3;
    const uint b4 = odd ? a5 : a4;
    const uint shift = 8 * (skew & 3u);
    run[0] = funnel(b0, b1, shift);
    run[1] = funnel(b1, b2, shift);
    run[2] = funnel(b2, b3, shift);
    run[3] = funnel(b3, b4, shift);
    run[4] = b4 >> shift;
}

/* Reads only the WIDE_PIXELS samples from `at`; in ordinary frames they are 16-byte aligned. */
static void load_pixels(__global const uchar *src, uint at, uint *run)
{
    if ((at & 15u) == 0) {
        const uint4 v = *(__global const uint4 *)(src + at);
        run[0] = v.x;
        run[1] = v.y;
        run[2] = v.z;
        run[3] = v.w;
    } else {
        load_run(src, at, run);
    }
}

static int run_sample(const uint *run, int i)
{
#if SAMPLE_BYTES == 1
    return (int)((run[i >> 2] >> (8 * (i & 3))) & 0xffu);
#elif BIG_ENDIAN_SAMPLES
    const uint v = run[i >> 1] >> (16 * (i & 1));
    return (int)(((v & 0xffu) << 8) | ((v >> 8) & 0xffu));
#else
    return (int)((run[i >> 1] >> (16 * (i & 1))) & 0xffffu);
#endif
}

/* Thresholds in 1/256 grey level. A polarity that is off has the threshold UNREACHED. */
typedef struct {
    int bright, dark;
    /* One unsigned test for both polarities of `average`: a pixel is marked if
     * (uint)(left + right - 2*centre + bias) >= span. With a threshold of 0 span is 0: all are. */
    int bias;
    uint span;
} limits_t;

/* `level` is the threshold of `minimum`, `twice` that of `average`. */
static limits_t limits_of(int level, int twice, int flags)
{
    limits_t limits;
    limits.bright = flags & BRIGHT ? level : UNREACHED;
    limits.dark = flags & DARK ? -level : -UNREACHED;
    const int high = flags & BRIGHT ? twice : UNREACHED;
    const int low = min(flags & DARK ? -twice : -UNREACHED, high - 1);
    limits.bias = high - 1;
    limits.span = (uint)(high - low - 1);
    return limits;
}

static int marked_by_minimum(int centre, int left, int right, const limits_t limits)
{
    return centre - max(left, right) >= limits.bright || centre - min(left, right) <= limits.dark;
}
