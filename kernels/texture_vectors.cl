/* Appended to texture.cl. Any device: the second step of the texture comparison along vectors of any angle, as a step along
 * each vector. A work-item takes LANES pixels of a row. The other steps are those along rows and columns.
 *
 * texture_first     smooth -> along_x (f and its two neighbours along the first vector), repeat_x (mean of f over one repeat
 *                   along it)
 * texture_second    -> residual, repeat
 *
 * LANES             16, or 1 for a GPU, whose work-items read adjacent pixels
 *
 * | argument   | meaning                                                                                    |
 * | vectors    | int4: this vector, whose longer component is positive, then the other one; 1/16 px                |
 * | repeat     | int4 of this vector: its longer component (p); m, e and R of the mean over one repeat              |
 * | places     | 2m+3 int2: where the samples of the mean lie, from j = -m-1 on, 1/16 px from the pixel             |
 *
 * Other arguments: see texture.cl. Exactness: integers; 16 times a sample of f and 8 are less than 2^16.
 */
#ifndef LANES
#define LANES 16
#endif

#if LANES == 16
typedef ushort16 short_lanes_t;
typedef uint16 lanes_t;
#define LOAD_SHORTS(p) LOAD_USHORT16(p)
#define STORE_SHORTS(p, v) STORE_USHORT16(p, convert_ushort16(v))
#define WIDER(v) convert_uint16(v)
#define SCALED(sum, scale) \
    convert_uint16((convert_ulong16(sum) * (ulong16)(ulong)(scale) + (ulong16)(1UL << 19)) >> (ulong16)20UL)
#else
typedef ushort short_lanes_t;
typedef uint lanes_t;
#define LOAD_SHORTS(p) (*(p))
#define STORE_SHORTS(p, v) (*(p) = (ushort)(v))
#define WIDER(v) ((uint)(v))
#define SCALED(sum, scale) ((uint)scaled(sum, scale, 20))
#endif
#define LOAD_WIDER(p) WIDER(LOAD_SHORTS(p))

typedef struct { __global const ushort *samples; int pitch, width, height; } picture_t;

/* The sample at a distance from (x, y), and whether all taps of a weight above 0 lie in the frame. */
static __global const ushort *sample_near(picture_t p, int x, int y, int2 d)
{
    return p.samples + (long)(y + (d.y >> 4)) * p.pitch + x + (d.x >> 4);
}

static int axis_holds(int at, int distance, int n)
{
    const int near = at + (distance >> 4);
    return near >= 0 && near + (distance & 15 ? 1 : 0) < n;
}

static int holds(picture_t p, int x, int y, int2 d)
{
    return axis_holds(x, d.x, p.width) && axis_holds(y, d.y, p.height);
}

/* L of a place that the frame holds. */
static int sample_at(picture_t p, int x, int y, int2 d)
{
    const int fx = d.x & 15, fy = d.y & 15;
    const int right = fx ? 1 : 0;
    __global const ushort *near = sample_near(p, x, y, d);
    __global const ushort *far = near + (fy ? p.pitch : 0);
    return interpolate(interpolate(near[0], near[right], fx), interpolate(far[0], far[right], fx), fy);
}

/* The same of LANES pixels, as the type of the lanes; `load` reads them. */
#define BETWEEN(type, near, far, fraction) \
    (((type)(ushort)(16 - (fraction)) * (near) + (type)(ushort)(fraction) * (far) + (type)(ushort)8) >> (type)(ushort)4)
#define LANES_AT(name, type, load)                                                                         \
    static type name(picture_t p, int x, int y, int2 d)                                                    \
    {                                                                                                      \
        const int fx = d.x & 15, fy = d.y & 15;                                                            \
        __global const ushort *near = sample_near(p, x, y, d);                                             \
        type top = load(near);                                                                             \
        if (fx)                                                                                            \
            top = BETWEEN(type, top, load(near + 1), fx);                                                  \
        if (fy) {                                                                                          \
            near += p.pitch;                                                                               \
            type bottom = load(near);                                                                      \
            if (fx)                                                                                        \
                bottom = BETWEEN(type, bottom, load(near + 1), fx);                                        \
            top = BETWEEN(type, top, bottom, fy);                                                          \
        }                                                                                                  \
        return top;                                                                                        \
    }
LANES_AT(levels_at, short_lanes_t, LOAD_SHORTS)
LANES_AT(lanes_at, lanes_t, LOAD_WIDER)

/* A neighbour on the lattice; that on the other side, or the pixel itself, takes its place outside. */
static int neighbour_at(picture_t p, int x, int y, int2 d)
{
    if (holds(p, x, y, d))
        return sample_at(p, x, y, d);
    return holds(p, x, y, -d) ? sample_at(p, x, y, -d) : sample_at(p, x, y, (int2)(0, 0));
}

/* The pixel and its two neighbours. */
static uint sum_at(picture_t p, int x, int y, int2 v)
{
    return (uint)(sample_at(p, x, y, (int2)(0, 0)) + neighbour_at(p, x, y, -v) + neighbour_at(p, x, y, v));
}

/* The sample of the mean at a place: mirrored along a vector parallel to an axis, otherwise the same place of another cell. */
static int place_at(picture_t p, int x, int y, int2 place, int is_ahead, int4 vectors)
{
    if (vectors.x == 0 || vectors.y == 0) {
        const int column = mirror(x + (place.x >> 4), p.width), row = mirror(y + (place.y >> 4), p.height);
        return p.samples[(size_t)row * p.pitch + column];
    }
    const int2 back = is_ahead ? -vectors.xy : vectors.xy, beside = vectors.zw;
    const int2 cells[6] = {(int2)(0, 0), back, beside, -beside, back + beside, back - beside};
    for (int i = 0; i < 6; i++) {
        const int2 at = place + cells[i];
        if (holds(p, x, y, at))
            return sample_at(p, x, y, at);
    }
    return sample_at(p, x, y, (int2)(0, 0));
}

static uint mean_at(picture_t p, int x, int y, int4 vectors, int4 repeat, __global const int2 *places)
{
    const int end = repeat.y + 1;
    uint sum = 0;
    for (int j = -end; j <= end; j++) {
        const uint weight = j == -end || j == end ? (uint)repeat.z : 32;
        sum += weight * (uint)place_at(p, x, y, places[j + end], j > 0, vectors);
    }
    return (uint)scaled(sum, repeat.w, 20);
}

/* Whether the neighbours of LANES pixels, within which all places of the mean lie, are in the frame. */
static int lie_inside(picture_t p, int x, int y, int2 v)
{
    const int left = (abs(v.x) + 15) >> 4, top = (abs(v.y) + 15) >> 4;
    return x >= left && x + LANES - 1 + left < p.width && y >= top && y + top < p.height;
}

/* The weighted ends of the mean of LANES pixels inside. */
#define ENDS(at, p, x, y, repeat, places)                                                            \
    ((lanes_t)(uint)(repeat).z * (WIDER(at(p, x, y, (places)[0])) + WIDER(at(p, x, y, (places)[2 * (repeat).y + 2]))))

__kernel void texture_first(int width, int height, int4 vectors, int4 repeat, __global const int2 *places,
                            __global ushort *pictures, int pitch)
{
    const size_t size = (size_t)pitch * height;
    const int x = LANES * (int)get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const picture_t f = {pictures + PAD, pitch, width, height};
    const int2 v = vectors.xy;
    __global ushort *sums = pictures + size + PAD + (size_t)y * pitch + x;
    __global ushort *means = sums + size;
    if (lie_inside(f, x, y, v)) {
        STORE_SHORTS(sums, LOAD_SHORTS(sample_near(f, x, y, (int2)(0, 0))) + levels_at(f, x, y, -v) + levels_at(f, x, y, v));
        lanes_t sum = (lanes_t)0u;
        for (int j = 1; j < 2 * repeat.y + 2; j++)
            sum += WIDER(levels_at(f, x, y, places[j]));
        sum = (lanes_t)32u * sum + ENDS(levels_at, f, x, y, repeat, places);
        STORE_SHORTS(means, SCALED(sum, repeat.w));
        return;
    }
    for (int i = 0; i < LANES && x + i < width; i++) {
        sums[i] = (ushort)sum_at(f, x + i, y, v);
        means[i] = (ushort)mean_at(f, x + i, y, vectors, repeat, places);
    }
}

__kernel void texture_second(int width, int height, int4 vectors, int4 repeat, __global const int2 *places,
                             __global ushort *pictures, int pitch)
{
    const size_t size = (size_t)pitch * height;
    const int x = LANES * (int)get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const picture_t h = {pictures + size + PAD, pitch, width, height};
    const picture_t mean = {pictures + 2 * size + PAD, pitch, width, height};
    const int2 v = vectors.xy;
    __global short *residual = RESIDUAL(pictures, size) + (size_t)y * pitch;
    __global short *repeats = (__global short *)REPEAT(pictures, size) + (size_t)y * pitch;
    /* The residual takes the place of f, which is read by this work-item only. */
    __global const ushort *f = (__global const ushort *)residual + x;
    if (lie_inside(h, x, y, v) && x > PAD && x + LANES < width - PAD) {
        const lanes_t sum = LOAD_WIDER(sample_near(h, x, y, (int2)(0, 0))) + lanes_at(h, x, y, -v) + lanes_at(h, x, y, v);
        /* The sign's bit moves along as in a signed number. */
        const lanes_t d = (lanes_t)9u * LOAD_WIDER(f) - sum + (lanes_t)(4u + (1u << 19));
        STORE_SHORTS((__global ushort *)residual + x, (d >> (lanes_t)3u) - (lanes_t)(1u << 16));
        lanes_t total = (lanes_t)0u;
        for (int j = 1; j < 2 * repeat.y + 2; j++)
            total += lanes_at(mean, x, y, places[j]);
        total = (lanes_t)32u * total + ENDS(lanes_at, mean, x, y, repeat, places);
        STORE_SHORTS((__global ushort *)repeats + x, SCALED(total, repeat.w));
        return;
    }
    for (int i = 0; i < LANES && x + i < width; i++) {
        const int d = (9 * f[i] - (int)sum_at(h, x + i, y, v) + 4) >> 3;
        put_padded(residual, x + i, width, (short)d);
        put_padded(repeats, x + i, width, (short)mean_at(mean, x + i, y, vectors, repeat, places));
    }
}
