/* Appended to texture.cl. CPU: local size 1; a work-item processes a band of rows. Columns are summed up as the window
 * moves down, rows as differences of running sums.
 *
 * `scratch`: SCRATCH_ROWS * pitch uints per work-item. `first`, `end`: the rows, or rows of tiles, of a launch. The first
 * three steps are launched for some hundred rows at a time, so that a step finds the rows of the one before in the cache.
 * Other arguments: see texture.cl.
 */
#define SCRATCH(pitch) (scratch + get_global_id(0) * (size_t)SCRATCH_ROWS * (pitch))

/* Continues a row of a picture of shorts at both ends. */
static void pad_row(__global short *row, int width)
{
    for (int i = 1; i <= PAD; i++) {
        row[-i] = row[mirror(-i, width)];
        row[width - 1 + i] = row[mirror(width - 1 + i, width)];
    }
}

/* Columns of three rows: 1 2 1. */
static void smooth_columns(PLANE_ARGS, int top, int y, int bottom, int width, int depth, __global uint *RESTRICT out)
{
#if SAMPLE_BYTES == 1 && !USE_IMAGE
    __global const uchar *a = src + src_offset + (size_t)top * src_stride;
    __global const uchar *b = src + src_offset + (size_t)y * src_stride;
    __global const uchar *c = src + src_offset + (size_t)bottom * src_stride;
    for (int x = 0; x < width; x++)
        out[x] = ((uint)a[x] + 2 * (uint)b[x] + c[x]) << 4;
#else
    for (int x = 0; x < width; x++)
        out[x] = level_of(PLANE_SAMPLE(x, top), depth) + 2 * level_of(PLANE_SAMPLE(x, y), depth) +
                 level_of(PLANE_SAMPLE(x, bottom), depth);
#endif
}

/* f of a row; columns[-1] and columns[width] repeat the edge. */
static void smooth_row(__global const uint *RESTRICT columns, int width, __global ushort *RESTRICT f)
{
    for (int x = 0; x < width; x++)
        f[x] = (ushort)((columns[x - 1] + 2 * columns[x] + columns[x + 1] + 8) >> 4);
}

/* A pixel of H. */
static int lattice_sum(__global const ushort *f, int x, int pitch_q4, int width)
{
    const lattice_taps_t left = lattice_taps(x, -pitch_q4, width);
    const lattice_taps_t right = lattice_taps(x, pitch_q4, width);
    return f[x] + interpolate(f[left.near], f[left.far], left.fraction) +
           interpolate(f[right.near], f[right.far], right.fraction);
}

static void lattice_row(__global const ushort *RESTRICT f, int pitch_q4, int width, __global ushort *RESTRICT h)
{
    const int reach = (pitch_q4 >> 4) + 1;
    const int left = min(reach, width);
    const int right = max(width - reach, left);
    for (int x = 0; x < left; x++)
        h[x] = (ushort)lattice_sum(f, x, pitch_q4, width);
    for (int x = right; x < width; x++)
        h[x] = (ushort)lattice_sum(f, x, pitch_q4, width);
    const int before = -pitch_q4 >> 4, before_fraction = -pitch_q4 & 15;
    const int after = pitch_q4 >> 4, after_fraction = pitch_q4 & 15;
    __global const ushort *l = f + before;
    __global const ushort *r = f + after;
    for (int x = left; x < right; x++)
        h[x] = (ushort)(f[x] + interpolate(l[x], l[x + 1], before_fraction) +
                        interpolate(r[x], r[x + 1], after_fraction));
}

/* Running sums of a row: sums[i] is the sum of the i values from `first` on. `values` may wrap. */
static void run_sums(__global const uint *values, int count, __global uint *sums)
{
    uint sum = 0;
    for (int i = 0; i < count; i++) {
        sums[i] = sum;
        sum += values[i];
    }
    sums[count] = sum;
}

/* The mean over one repeat along a row; `sums` has room for width + 2 * n + 3 values. */
static void repeat_row(__global const ushort *RESTRICT f, int4 repeat, int width, __global uint *RESTRICT sums,
                       __global ushort *RESTRICT out)
{
    const int n = repeat.y;
    const uint e = repeat.z, scale = repeat.w;
    uint sum = 0;
    for (int i = -n; i < 0; i++) {
        sums[i + n] = sum;
        sum += f[mirror(i, width)];
    }
    for (int i = 0; i < width; i++) {
        sums[i + n] = sum;
        sum += f[i];
    }
    for (int i = width; i <= width + n; i++) {
        sums[i + n] = sum;
        sum += f[mirror(i, width)];
    }
    /* Columns whose two farthest samples lie inside. */
    const int left = min(n + 1, width);
    const int right = max(width - n - 1, left);
    for (int x = 0; x < left; x++)
        out[x] = (ushort)scaled(32 * (sums[x + 2 * n + 1] - sums[x]) +
                                e * ((uint)f[mirror(x - n - 1, width)] + f[mirror(x + n + 1, width)]), scale, 20);
    for (int x = right; x < width; x++)
        out[x] = (ushort)scaled(32 * (sums[x + 2 * n + 1] - sums[x]) +
                                e * ((uint)f[mirror(x - n - 1, width)] + f[mirror(x + n + 1, width)]), scale, 20);
    for (int x = left; x < right; x++)
        out[x] = (ushort)scaled(32 * (sums[x + 2 * n + 1] - sums[x]) + e * ((uint)f[x - n - 1] + f[x + n + 1]), scale,
                                20);
}

__kernel void texture_smooth(PLANE_ARGS, int width, int height, int depth, int4 repeat, __global ushort *pictures,
                             int pitch, __global uint *scratch, int first, int end)
{
    const size_t size = (size_t)pitch * height;
    __global uint *columns = SCRATCH(pitch) + 1;
    __global uint *sums = SCRATCH(pitch) + pitch;
    const int2 band = band_of(end - first) + first;
    for (int y = band.x; y < band.y; y++) {
        smooth_columns(PLANE, max(y - 1, 0), y, min(y + 1, height - 1), width, depth, columns);
        columns[-1] = columns[0];
        columns[width] = columns[width - 1];
        __global ushort *f = pictures + PAD + (size_t)y * pitch;
        smooth_row(columns, width, f);
        /* Along vectors texture_first does the rest. */
        if (repeat.x == 0)
            continue;
        lattice_row(f, repeat.x, width, f + size);
        repeat_row(f, repeat, width, sums, f + 2 * size);
    }
}

/* d of a row takes the place of f; from H and the rows of H that its neighbours are read from. */
static void residual_row(__global const ushort *RESTRICT h,
                         __global const ushort *RESTRICT up_near, __global const ushort *RESTRICT up_far,
                         __global const ushort *RESTRICT down_near, __global const ushort *RESTRICT down_far,
                         int up_fraction, int down_fraction, int width, __global short *RESTRICT residual)
{
    for (int x = 0; x < width; x++) {
        const int v = h[x] + interpolate(up_near[x], up_far[x], up_fraction) +
                      interpolate(down_near[x], down_far[x], down_fraction);
        residual[x] = (short)((9 * (ushort)residual[x] - v + 4) >> 3);
    }
}

static void add_row(__global const ushort *RESTRICT row, int width, __global uint *RESTRICT sums)
{
    for (int x = 0; x < width; x++)
        sums[x] += row[x];
}

/* Moves a window of rows: adds one and takes another one away. */
static void move_rows(__global const ushort *RESTRICT added, __global const ushort *RESTRICT taken, int width,
                      __global uint *RESTRICT sums)
{
    for (int x = 0; x < width; x++)
        sums[x] += (uint)added[x] - taken[x];
}

static void repeat_rows(__global const uint *RESTRICT sums, __global const ushort *RESTRICT top,
                        __global const ushort *RESTRICT bottom, uint e, uint scale, int width,
                        __global ushort *RESTRICT out)
{
    for (int x = 0; x < width; x++)
        out[x] = (ushort)scaled(32 * sums[x] + e * ((uint)top[x] + bottom[x]), scale, 20);
}

__kernel void texture_lattice(int width, int height, int4 repeat, __global ushort *pictures, int pitch,
                              __global uint *scratch, int first, int end)
{
    const size_t size = (size_t)pitch * height;
    __global const ushort *h = pictures + size + PAD;
    __global const ushort *along_x = REPEAT_X(pictures, size);
    __global uint *sums = SCRATCH(pitch);
    const int n = repeat.y;
    const int2 band = band_of(end - first) + first;
    for (int y = band.x; y < band.y; y++) {
        const size_t at = (size_t)y * pitch;
        const lattice_taps_t up = lattice_taps(y, -repeat.x, height);
        const lattice_taps_t down = lattice_taps(y, repeat.x, height);
#define ROW(picture, row) ((picture) + (size_t)(row) * pitch)
        __global short *residual = RESIDUAL(pictures, size) + at;
        residual_row(h + at, ROW(h, up.near), ROW(h, up.far), ROW(h, down.near), ROW(h, down.far), up.fraction,
                     down.fraction, width, residual);
        pad_row(residual, width);
        if (y == band.x) {
            for (int x = 0; x < width; x++)
                sums[x] = 0;
            for (int j = -n; j <= n; j++)
                add_row(ROW(along_x, mirror(y + j, height)), width, sums);
        } else {
            move_rows(ROW(along_x, mirror(y + n, height)), ROW(along_x, mirror(y - n - 1, height)), width, sums);
        }
        __global ushort *repeat_out = REPEAT(pictures, size) + at;
        repeat_rows(sums, ROW(along_x, mirror(y - n - 1, height)), ROW(along_x, mirror(y + n + 1, height)), repeat.z,
                    repeat.w, width, repeat_out);
        pad_row((__global short *)repeat_out, width);
    }
}

/* C of a row, from the running sums of the columns' sums. */
static void mean_row(__global const ushort *RESTRICT repeat, __global const uint *RESTRICT sums, int width,
                     __global short *RESTRICT mean)
{
    for (int x = 0; x < width; x++)
        mean[x] = (short)(repeat[x] - scaled(sums[x + 2 * PAD + 1] - sums[x], WIDE_SCALE, WIDE_SHIFT));
}

static uint magnitude(__global const short *RESTRICT row, int count)
{
    uint sum = 0;
    for (int x = 0; x < count; x++)
        sum += abs((int)row[x]);
    return sum;
}

/* A work-item takes whole rows of tiles. */
__kernel void texture_tiles(int width, int height, __global ushort *pictures, int pitch, int4 tiles,
                            __global uint2 *sums, __global uint *scratch, int first, int end)
{
    const size_t size = (size_t)pitch * height;
    __global const short *residual = RESIDUAL(pictures, size);
    __global const ushort *repeat = REPEAT(pictures, size);
    __global short *mean = MEAN(pictures, size);
    /* Columns -PAD .. width+PAD-1. */
    __global uint *columns = SCRATCH(pitch);
    __global uint *running = SCRATCH(pitch) + pitch;
    const int2 band = band_of(end - first) + first;
    int y = max(0, band.x * TILE - tiles.z);
    int is_first = 1;
    for (int j = band.x; j < band.y; j++) {
        for (int i = 0; i < tiles.x; i++)
            sums[j * tiles.x + i] = (uint2)(0, 0);
        for (; y < height && tile_row_of(y, tiles) == j; y++) {
            const int count = width + 2 * PAD;
            if (is_first) {
                for (int x = 0; x < count; x++)
                    columns[x] = 0;
                for (int k = -PAD; k <= PAD; k++)
                    add_row(ROW(repeat, mirror(y + k, height)) - PAD, count, columns);
                is_first = 0;
            } else {
                move_rows(ROW(repeat, mirror(y + PAD, height)) - PAD, ROW(repeat, mirror(y - PAD - 1, height)) - PAD,
                          count, columns);
            }
            run_sums(columns, count, running);
            __global short *out = ROW(mean, y);
            mean_row(ROW(repeat, y), running, width, out);
            pad_row(out, width);
            for (int i = 0; i < tiles.x; i++) {
                const int side = tile_side(i, tiles.x, width);
                sums[j * tiles.x + i] += (uint2)(magnitude(ROW(residual, y) + i * TILE, side),
                                                 magnitude(out + i * TILE, side));
            }
        }
    }
}

/* Sums of the windows' columns for the row in work, from column -PAD on. */
typedef struct { __global uint *four, *nine, *many, *ten, *running; } columns_t;

static void add_signed(__global const short *RESTRICT row, int count, __global uint *RESTRICT sums)
{
    for (int x = 0; x < count; x++)
        sums[x] += (uint)(int)row[x];
}

static void move_signed(__global const short *RESTRICT added, __global const short *RESTRICT taken, int count,
                        __global uint *RESTRICT sums)
{
    for (int x = 0; x < count; x++)
        sums[x] += (uint)((int)added[x] - (int)taken[x]);
}

static void add_sizes(__global const short *RESTRICT row, int count, __global uint *RESTRICT sums)
{
    for (int x = 0; x < count; x++)
        sums[x] += abs((int)row[x]);
}

static void move_sizes(__global const short *RESTRICT added, __global const short *RESTRICT taken, int count,
                       __global uint *RESTRICT sums)
{
    for (int x = 0; x < count; x++)
        sums[x] += abs((int)added[x]) - abs((int)taken[x]);
}

/* Brings the columns' sums to row y; `is_first`: from nothing. `residual` and `mean` are at column -PAD of row 0. */
static void move_columns(__global const short *residual, __global const short *mean, int pitch, int y, int height,
                         int count, int is_first, columns_t c)
{
    if (is_first) {
        for (int x = 0; x < count; x++)
            c.four[x] = c.nine[x] = c.many[x] = c.ten[x] = 0;
        for (int j = -16; j <= 16; j++) {
            const int row = mirror(y + j, height);
            add_sizes(ROW(residual, row), count, c.many);
            if (j >= -4 && j <= 4)
                add_sizes(ROW(residual, row), count, c.nine);
            if (j >= -2 && j < 2)
                add_signed(ROW(residual, row), count, c.four);
            if (j >= -5 && j < 5)
                add_signed(ROW(mean, row), count, c.ten);
        }
    } else {
#define MOVE(move, picture, before, after, sums)                                                          \
    move(ROW(picture, mirror(y + (after), height)), ROW(picture, mirror(y - (before)-1, height)), count, sums)
        MOVE(move_sizes, residual, 16, 16, c.many);
        MOVE(move_sizes, residual, 4, 4, c.nine);
        MOVE(move_signed, residual, 2, 1, c.four);
        MOVE(move_signed, mean, 5, 4, c.ten);
    }
    run_sums(c.many, count, c.running);
}

static columns_t columns_of(__global uint *scratch, int pitch)
{
    columns_t c;
    c.four = scratch;
    c.nine = scratch + pitch;
    c.many = scratch + 2 * pitch;
    c.ten = scratch + 3 * pitch;
    c.running = scratch + 4 * pitch;
    return c;
}

/* The sums of the channels at the pixel in column x. Column x of the sums is at x + PAD. */
#define SUM_FOUR(c, x) ((int)((c).four[(x) + PAD - 2] + (c).four[(x) + PAD - 1] + (c).four[(x) + PAD] + (c).four[(x) + PAD + 1]))
#define SUM_NINE(c, x)                                                                                    \
    ((c).nine[(x) + PAD - 4] + (c).nine[(x) + PAD - 3] + (c).nine[(x) + PAD - 2] + (c).nine[(x) + PAD - 1] + \
     (c).nine[(x) + PAD] + (c).nine[(x) + PAD + 1] + (c).nine[(x) + PAD + 2] + (c).nine[(x) + PAD + 3] +     \
     (c).nine[(x) + PAD + 4])
#define SUM_MANY(c, x) ((c).running[(x) + PAD + 17] - (c).running[(x) + PAD - 16])
#define SUM_TEN(c, x)                                                                                     \
    ((int)((c).ten[(x) + PAD - 5] + (c).ten[(x) + PAD - 4] + (c).ten[(x) + PAD - 3] + (c).ten[(x) + PAD - 2] + \
           (c).ten[(x) + PAD - 1] + (c).ten[(x) + PAD] + (c).ten[(x) + PAD + 1] + (c).ten[(x) + PAD + 2] +     \
           (c).ten[(x) + PAD + 3] + (c).ten[(x) + PAD + 4]))

/* Marks `count` pixels (at most TILE) from column x of a row; returns a bit each, the first one in the highest bit. */
static uint mark_pixels(columns_t c, __global const short *RESTRICT residual, __global const short *RESTRICT mean, int x,
                        int count, const uint *limits)
{
    uchar marks[TILE];
    for (int i = 0; i < TILE; i++)
        marks[i] = 0;
    for (int i = 0; i < count; i++) {
        const int at = x + i;
        marks[i] = (uchar)((abs((int)residual[at]) > limits[0]) | (abs(SUM_FOUR(c, at)) > limits[1]) |
                           (SUM_NINE(c, at) > limits[2]) | (SUM_MANY(c, at) > limits[3]) |
                           (abs((int)mean[at]) > limits[4]) | (abs(SUM_TEN(c, at)) > limits[5]));
    }
    uint bits = 0;
    for (int i = 0; i < TILE; i++)
        bits = bits << 1 | marks[i];
    return bits;
}

/* The sums of all channels at a pixel. */
static void sums_at(columns_t c, __global const short *residual, __global const short *mean, int x, int *sums)
{
    sums[0] = residual[x];
    sums[1] = SUM_FOUR(c, x);
    sums[2] = (int)SUM_NINE(c, x);
    sums[3] = (int)SUM_MANY(c, x);
    sums[4] = mean[x];
    sums[5] = SUM_TEN(c, x);
}

__kernel void texture_mark(int width, int height, int first, int rows, __global ushort *pictures, int pitch, int4 tiles,
                  __global const tile_noise_t *noise, __global const int4 *rois, int roi_count,
                           __global uchar *mask, ulong mask_offset, __global uint *marked, uint slot,
                           __global uint *scratch)
{
    if (get_global_id(0) == 0)
        marked[slot ^ 1u] = 0;
    const size_t size = (size_t)pitch * height;
    __global const short *residuals = RESIDUAL(pictures, size);
    __global const short *means = MEAN(pictures, size);
    const columns_t columns = columns_of(SCRATCH(pitch), pitch);
    const size_t mask_stride = (size_t)(width + 7) / 8;
    uint count = 0;
    const int2 band = band_of(rows);
    for (int row = band.x; row < band.y; row++) {
        const int y = first + row;
        move_columns(residuals - PAD, means - PAD, pitch, y, height, width + 2 * PAD, row == band.x, columns);
        __global const short *residual = ROW(residuals, y);
        __global const short *mean = ROW(means, y);
        __global int *strongest = STRONGEST(pictures, size) + (size_t)y * pitch;
        __global const tile_noise_t *tile_row = noise + (size_t)tile_row_of(y, tiles) * tiles.x;
        for (int x = 0; x < width; x += TILE) {
            const int n = min(TILE, width - x);
            const uint wanted = roi_bits(rois, roi_count, x, y, 16) << 16 | roi_bits(rois, roi_count, x + 16, y, 16);
            __global const tile_noise_t *tile = tile_row + tile_of(x, tiles.x);
            uint bits = 0;
            if (wanted) {
                uint limits[CHANNELS];
                for (int k = 0; k < CHANNELS; k++)
                    limits[k] = tile->limits[k];
                bits = mark_pixels(columns, residual, mean, x, n, limits) & wanted;
            }
            __global uchar *out = mask + mask_offset + (size_t)row * mask_stride + x / 8;
            /* Intel's compiler of 2026 writes wrong bytes if each is shifted by a multiple of i. */
            uint rest = bits;
            for (int i = 0; 8 * i < n; i++) {
                out[i] = (uchar)(rest >> 24);
                rest <<= 8;
            }
            if (!bits)
                continue;
            count += popcount(bits);
            for (int i = 0; i < n; i++) {
                if (!(bits >> (31 - i) & 1u))
                    continue;
                int sums[CHANNELS];
                sums_at(columns, residual, mean, x + i, sums);
                strongest[x + i] = strongest_of(sums, tile, residual[x + i]);
            }
        }
    }
    if (count)
        atomic_add(&marked[slot], count);
}

/* A work-item takes whole rows of tiles. */
__kernel void texture_peaks(int width, int height, int first, int rows, __global ushort *pictures, int pitch, int4 tiles,
                            __global const int4 *rois, int roi_count, __global const int4 *inner,
                            int inner_count, __global const uchar *ignored, int use_ignored, __global uint *peaks,
                            __global uint *scratch)
{
    const size_t size = (size_t)pitch * height;
    __global const short *residuals = RESIDUAL(pictures, size);
    __global const short *means = MEAN(pictures, size);
    const columns_t columns = columns_of(SCRATCH(pitch), pitch);
    const size_t mask_stride = (size_t)(width + 7) / 8;
    const int2 band = band_of(tiles.y);
    int y = max(0, band.x * TILE - tiles.z);
    int is_first = 1;
    for (int j = band.x; j < band.y; j++) {
        __global uint *out = peaks + (size_t)j * tiles.x * 2 * CHANNELS;
        for (; y < height && tile_row_of(y, tiles) == j; y++) {
            if (y < first || y >= first + rows)
                continue;
            move_columns(residuals - PAD, means - PAD, pitch, y, height, width + 2 * PAD, is_first, columns);
            is_first = 0;
            __global const short *residual = ROW(residuals, y);
            __global const short *mean = ROW(means, y);
            for (int x = 0; x < width; x += 8) {
                uint wanted = roi_bits(rois, roi_count, x, y, 8);
                if (use_ignored)
                    wanted &= ~(uint)ignored[(size_t)(y - first) * mask_stride + x / 8];
                if (!wanted)
                    continue;
                const uint inside = roi_bits(inner, inner_count, x, y, 8);
                for (int i = 0; i < 8 && x + i < width; i++) {
                    const uint bit = 0x80u >> i;
                    if (!(wanted & bit))
                        continue;
                    int sums[CHANNELS];
                    sums_at(columns, residual, mean, x + i, sums);
                    __global uint *tile = out + (size_t)tile_of(x + i, tiles.x) * 2 * CHANNELS;
                    for (int k = 0; k < CHANNELS; k++) {
                        const uint one_more = abs(sums[k]) + 1;
                        tile[k] = max(tile[k], one_more);
                        if (inside & bit)
                            tile[CHANNELS + k] = max(tile[CHANNELS + k], one_more);
                    }
                }
            }
        }
    }
}
