/* Appended to texture_measure.cl. GPU: each kernel states its work-group; a work-group reads what it shares into local
 * memory. Other arguments: see texture.cl. */

/* Four samples of a picture from a column that is a multiple of four. */
#define LOAD4(p) (*(__global const ushort4 *)(p))
#define STORE4(p, v) (*(__global ushort4 *)(p) = (v))

/* Writes four samples from column x on, as put_padded() does. */
static void put_four(__global short *row, int x, int width, int4 values)
{
    if (x > PAD && x + 3 < width - 1 - PAD) {
        *(__global short4 *)(row + x) = convert_short4(values);
        return;
    }
    const int each[4] = {values.x, values.y, values.z, values.w};
    for (int i = 0; i < 4; i++)
        if (x + i < width)
            put_padded(row, x + i, width, (short)each[i]);
}

static int4 interpolate4(ushort4 near, ushort4 far, int fraction)
{
    return ((int4)(16 - fraction) * convert_int4(near) + (int4)fraction * convert_int4(far) + (int4)8) >> (int4)4;
}

static int4 scaled4(uint4 sums, uint scale, int shift)
{
    return (int4)(scaled(sums.x, scale, shift), scaled(sums.y, scale, shift), scaled(sums.z, scale, shift),
                  scaled(sums.w, scale, shift));
}

/* `lines`: two rows of LINE_PIXELS + 2 * reach + 2 samples, `reach` and one more on each side of the pixels: those of the
 * neighbours, and of the mean over one repeat. A pitch of 0 makes `smooth` only. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_smooth(PLANE_ARGS, int width, int height, int depth, int4 repeat, __global ushort *pictures, int pitch,
                    int reach, __local ushort *lines)
{
    const size_t size = (size_t)pitch * height;
    const int y = get_global_id(1);
    const int first = (int)get_group_id(0) * LINE_PIXELS;
    const int item = get_local_id(0);
    const int count = LINE_PIXELS + 2 * reach;
    __local ushort *columns = lines;
    __local ushort *line = lines + count + 2;
    const int top = max(y - 1, 0), bottom = min(y + 1, height - 1);
    for (int i = item; i < count + 2; i += GROUP) {
        const int x = clamp(first - reach - 1 + i, 0, width - 1);
        columns[i] = (ushort)(level_of(PLANE_SAMPLE(x, top), depth) + 2 * level_of(PLANE_SAMPLE(x, y), depth) +
                              level_of(PLANE_SAMPLE(x, bottom), depth));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < count; i += GROUP)
        line[i] = (ushort)((columns[i] + 2 * (int)columns[i + 1] + columns[i + 2] + 8) >> 4);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = first + 4 * item;
    if (x >= width)
        return;
    const int n = repeat.y;
    __local const ushort *at = line + reach + 4 * item;
    /* Rows have room behind their last pixel. */
    __global ushort *out = pictures + PAD + (size_t)y * pitch + x;
    int f[4], h[4], mean[4];
    for (int i = 0; i < 4; i++)
        f[i] = at[i];
    STORE4(out, (ushort4)((ushort)f[0], (ushort)f[1], (ushort)f[2], (ushort)f[3]));
    if (repeat.x == 0)
        return;
    if (x >= reach && x + 3 + reach < width) {
        const int before = -repeat.x >> 4, after = repeat.x >> 4;
        for (int i = 0; i < 4; i++)
            h[i] = f[i] + interpolate(at[i + before], at[i + before + 1], -repeat.x & 15) +
                   interpolate(at[i + after], at[i + after + 1], repeat.x & 15);
        uint sum = 0;
        for (int j = -n; j <= n; j++)
            sum += at[j];
        for (int i = 0; i < 4; i++) {
            const uint ends = (uint)at[i - n - 1] + at[i + n + 1];
            mean[i] = scaled(32 * sum + (uint)repeat.z * ends, repeat.w, 20);
            sum += (uint)at[i + n + 1] - at[i - n];
        }
    } else {
        __local const ushort *row = line + reach - first;
        for (int i = 0; i < 4; i++) {
            const int column = min(x + i, width - 1);
            const lattice_taps_t l = lattice_taps(column, -repeat.x, width);
            const lattice_taps_t r = lattice_taps(column, repeat.x, width);
            h[i] = f[i] + interpolate(row[l.near], row[l.far], l.fraction) +
                   interpolate(row[r.near], row[r.far], r.fraction);
            uint sum = row[column];
            for (int j = 1; j <= n; j++)
                sum += (uint)row[mirror(column - j, width)] + row[mirror(column + j, width)];
            const uint ends = (uint)row[mirror(column - n - 1, width)] + row[mirror(column + n + 1, width)];
            mean[i] = scaled(32 * sum + (uint)repeat.z * ends, repeat.w, 20);
        }
    }
    STORE4(out + size, (ushort4)((ushort)h[0], (ushort)h[1], (ushort)h[2], (ushort)h[3]));
    STORE4(out + 2 * size, (ushort4)((ushort)mean[0], (ushort)mean[1], (ushort)mean[2], (ushort)mean[3]));
}

#define AT(picture, row) ((picture) + (size_t)(row) * pitch)

/* Four samples of f that others do not write: what lies behind the last pixel gets the residual's continued row. */
static int4 smooth_four(__global const ushort *row, int x, int width)
{
    if (x + 3 < width)
        return convert_int4(LOAD4(row + x));
    return (int4)(row[x], x + 1 < width ? row[x + 1] : 0, x + 2 < width ? row[x + 2] : 0, 0);
}

/* A work-item takes four columns of LATTICE_ROWS rows. */
__kernel __attribute__((reqd_work_group_size(LATTICE_GROUP, 1, 1)))
void texture_lattice(int width, int height, int4 repeat, __global ushort *pictures, int pitch)
{
    const size_t size = (size_t)pitch * height;
    const int x = 4 * (int)get_global_id(0);
    if (x >= width)
        return;
    const int from = (int)get_global_id(1) * LATTICE_ROWS;
    const int past = min(from + LATTICE_ROWS, height);
    __global const ushort *h = pictures + size + PAD + x;
    __global const ushort *along_x = REPEAT_X(pictures, size) + x;
    const int n = repeat.y;
    uint4 sum = 0;
    for (int j = -n; j <= n; j++)
        sum += convert_uint4(LOAD4(AT(along_x, mirror(from + j, height))));
    for (int y = from; y < past; y++) {
        const lattice_taps_t up = lattice_taps(y, -repeat.x, height);
        const lattice_taps_t down = lattice_taps(y, repeat.x, height);
        __global short *residual = RESIDUAL(pictures, size) + (size_t)y * pitch;
        const int4 v = convert_int4(LOAD4(AT(h, y))) +
                       interpolate4(LOAD4(AT(h, up.near)), LOAD4(AT(h, up.far)), up.fraction) +
                       interpolate4(LOAD4(AT(h, down.near)), LOAD4(AT(h, down.far)), down.fraction);
        const int4 f = smooth_four((__global const ushort *)residual, x, width);
        put_four(residual, x, width, ((int4)9 * f - v + (int4)4) >> (int4)3);
        const uint4 before = convert_uint4(LOAD4(AT(along_x, mirror(y - n - 1, height))));
        if (y > from)
            sum += convert_uint4(LOAD4(AT(along_x, mirror(y + n, height)))) - before;
        const uint4 ends = before + convert_uint4(LOAD4(AT(along_x, mirror(y + n + 1, height))));
        __global short *out = (__global short *)REPEAT(pictures, size) + (size_t)y * pitch;
        put_four(out, x, width, scaled4((uint4)32 * sum + (uint4)(uint)repeat.z * ends, repeat.w, 20));
    }
}

/* Columns, and rows at a time, of a work-group of texture_tiles. A work-item sums up two columns. */
#define WIDE_COLUMNS (WIDE_PIXELS + 2 * PAD)
#define WIDE_ROWS 8
/* Rows that a work-item makes in turn: the fourth part of the pixels times two are made by as many work-items. */
#define WIDE_FOURS (WIDE_PIXELS / 4)
#define WIDE_PARTS 2

/* A work-group takes WIDE_PIXELS columns of a row of tiles. `sums` are 0 at entry. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_tiles(int width, int height, __global ushort *pictures, int pitch, int4 tiles,
                   __global uint2 *sums)
{
    const size_t size = (size_t)pitch * height;
    __local uint columns[WIDE_ROWS][WIDE_COLUMNS] __attribute__((aligned(16)));
    const int item = get_local_id(0);
    const int left = (int)get_group_id(0) * WIDE_PIXELS;
    const int j = get_group_id(1);
    const int is_last = j == tiles.w - 1;
    const int top = max(j * TILE - tiles.z, 0);
    const int bottom = is_last ? height : min((j + 1) * TILE - tiles.z, height);
    /* The two columns that a work-item sums up: within the continued row. */
    const int column = left - PAD + 2 * item;
    const int is_column = column < width + PAD;
    __global const ushort *repeat = REPEAT(pictures, size) + column;
    uint2 sum = 0;
#define LOAD2(row) convert_uint2(*(__global const ushort2 *)AT(repeat, mirror(row, height)))
    if (is_column)
        for (int k = -PAD; k < PAD; k++)
            sum += LOAD2(top + k);
    /* The four pixels of a row that it then makes. */
    const int part = item / WIDE_FOURS;
    const int at = 4 * (item % WIDE_FOURS);
    const int x = left + at;
    const int is_used = part < WIDE_PARTS && x < width;
    uint residuals = 0, means = 0;
    for (int y0 = top; y0 < bottom; y0 += WIDE_ROWS) {
        if (is_column)
            for (int k = 0; k < WIDE_ROWS; k++) {
                const int y = y0 + k;
                /* The window of row y is y-PAD .. y+PAD; `sum` has its rows before y+PAD. */
                sum += LOAD2(y + PAD);
                columns[k][2 * item] = sum.x;
                columns[k][2 * item + 1] = sum.y;
                sum -= LOAD2(y - PAD);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int row = part; row < WIDE_ROWS; row += WIDE_PARTS) {
            const int y = y0 + row;
            if (!is_used || y >= bottom)
                continue;
            __local const uint4 *fours = (__local const uint4 *)&columns[row][at];
            uint4 total = 0;
            for (int i = 0; i < PAD / 2; i++)
                total += fours[i];
            const uint4 before = fours[0], after = fours[PAD / 2];
            uint4 wide;
            wide.x = total.x + total.y + total.z + total.w + after.x;
            wide.y = wide.x - before.x + after.y;
            wide.z = wide.y - before.y + after.z;
            wide.w = wide.z - before.z + after.w;
            const int4 values = convert_int4(LOAD4(REPEAT(pictures, size) + (size_t)y * pitch + x));
            const int4 residual =
                convert_int4(*(__global const short4 *)(RESIDUAL(pictures, size) + (size_t)y * pitch + x));
            const int4 mean = values - scaled4(wide, WIDE_SCALE, WIDE_SHIFT);
            put_four(MEAN(pictures, size) + (size_t)y * pitch, x, width, mean);
            const uint4 a = abs(residual), b = abs(mean);
            residuals += a.x;
            means += b.x;
            if (x + 3 < width) {
                residuals += a.y + a.z + a.w;
                means += b.y + b.z + b.w;
            } else {
                residuals += (x + 1 < width ? a.y : 0) + (x + 2 < width ? a.z : 0);
                means += (x + 1 < width ? b.y : 0) + (x + 2 < width ? b.z : 0);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (!is_used || j >= tiles.y)
        return;
    __global uint *tile = (__global uint *)&sums[j * tiles.x + tile_of(x, tiles.x)];
    atomic_add(tile, residuals);
    atomic_add(tile + 1, means);
}

/* Windows reach so far left and right of the pixels, rounded up to a multiple of 4. */
#define REACH_MANY 16
#define REACH_NINE 4
#define REACH_FOUR 4
#define REACH_TEN 8

/* What a work-group shares: rows from 16 above to 16 below, and the sums of the windows' columns. */
typedef struct __attribute__((aligned(16))) {
    short residual[BLOCK_ROWS + 32][BLOCK_PIXELS + 2 * REACH_MANY];
    short mean[BLOCK_ROWS + 9][BLOCK_PIXELS + 2 * REACH_TEN];
    uint many[BLOCK_ROWS][BLOCK_PIXELS + 2 * REACH_MANY];
    uint nine[BLOCK_ROWS][BLOCK_PIXELS + 2 * REACH_NINE];
    int four[BLOCK_ROWS][BLOCK_PIXELS + 2 * REACH_FOUR];
    int ten[BLOCK_ROWS][BLOCK_PIXELS + 2 * REACH_TEN];
} block_t;

/* Reads a block from column `left` and row `top`, and sums up the windows' columns. */
static void sum_block(__global const ushort *pictures, int pitch, int width, int height, int left, int top,
                      __local block_t *block)
{
    const size_t size = (size_t)pitch * height;
    __global const short *residuals = (__global const short *)pictures + PAD;
    __global const short *means = residuals + size;
    const int item = get_local_id(0);
    const int columns = BLOCK_PIXELS + 2 * REACH_MANY;
    for (int i = item; i < (BLOCK_ROWS + 32) * columns / 2; i += GROUP) {
        const int row = i / (columns / 2);
        const int column = 2 * (i - row * (columns / 2));
        /* Past the continued row there are no pixels. */
        const int x = min(left - REACH_MANY + column, (width - 1 + PAD) & ~1);
        *(__local ushort2 *)&block->residual[row][column] =
            *(__global const ushort2 *)(AT(residuals, mirror(top - 16 + row, height)) + x);
    }
    const int mean_columns = BLOCK_PIXELS + 2 * REACH_TEN;
    for (int i = item; i < (BLOCK_ROWS + 9) * mean_columns / 2; i += GROUP) {
        const int row = i / (mean_columns / 2);
        const int column = 2 * (i - row * (mean_columns / 2));
        const int x = min(left - REACH_TEN + column, (width - 1 + PAD) & ~1);
        *(__local ushort2 *)&block->mean[row][column] =
            *(__global const ushort2 *)(AT(means, mirror(top - 5 + row, height)) + x);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    /* A work-item sums up a column of half of the rows, from row `begin` on. */
    if (item < 2 * columns) {
        const int begin = item / columns * (BLOCK_ROWS / 2);
        const int column = item % columns;
        uint many = 0, nine = 0;
        int four = 0;
        for (int k = 0; k < 32; k++)
            many += abs((int)block->residual[begin + k][column]);
        for (int k = 12; k < 20; k++)
            nine += abs((int)block->residual[begin + k][column]);
        for (int k = 14; k < 17; k++)
            four += block->residual[begin + k][column];
        const int at_nine = column - REACH_MANY + REACH_NINE;
        const int is_near = at_nine >= 0 && at_nine < BLOCK_PIXELS + 2 * REACH_NINE;
        for (int row = begin; row < begin + BLOCK_ROWS / 2; row++) {
            many += abs((int)block->residual[row + 32][column]);
            nine += abs((int)block->residual[row + 20][column]);
            four += block->residual[row + 17][column];
            block->many[row][column] = many;
            if (is_near) {
                block->nine[row][at_nine] = nine;
                block->four[row][at_nine] = four;
            }
            many -= abs((int)block->residual[row][column]);
            nine -= abs((int)block->residual[row + 12][column]);
            four -= block->residual[row + 14][column];
        }
    }
    if (item < 2 * mean_columns) {
        const int begin = item / mean_columns * (BLOCK_ROWS / 2);
        const int column = item % mean_columns;
        int ten = 0;
        for (int k = 0; k < 9; k++)
            ten += block->mean[begin + k][column];
        for (int row = begin; row < begin + BLOCK_ROWS / 2; row++) {
            ten += block->mean[row + 9][column];
            block->ten[row][column] = ten;
            ten -= block->mean[row][column];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Sums of the channels at four pixels of a row of a block, from column `at` of the block, a multiple of four. */
static void sums_of_four(__local const block_t *block, int row, int at, int4 sums[CHANNELS])
{
#define FOURS(of) ((__local const uint4 *)&block->of[row][at])
    /* Window sums of the four pixels: that of the first one, then a step on each. `all`: sum of the first one's values. */
#define STEPS(all, out0, in1, out1, in2, out2, in3)                                                        \
    (uint4)((all), (all) + (in1) - (out0), (all) + (in1) + (in2) - (out0) - (out1),                           \
            (all) + (in1) + (in2) + (in3) - (out0) - (out1) - (out2))
    uint4 total = 0;
    for (int i = 0; i < 8; i++)
        total += FOURS(many)[i];
    const uint4 m = FOURS(many)[0], m8 = FOURS(many)[8];
    const uint many = total.x + total.y + total.z + total.w + m8.x;
    const uint4 a = FOURS(nine)[0], b = FOURS(nine)[1], c = FOURS(nine)[2];
    const uint nine = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x;
    const uint4 d = FOURS(four)[0], e = FOURS(four)[1], f = FOURS(four)[2];
    const uint four = d.z + d.w + e.x + e.y;
    const uint4 p = FOURS(ten)[0], q = FOURS(ten)[1], r = FOURS(ten)[2], t = FOURS(ten)[3];
    const uint ten = p.w + q.x + q.y + q.z + q.w + r.x + r.y + r.z + r.w + t.x;
    __local const short *residual = &block->residual[row + 16][at + REACH_MANY];
    __local const short *mean = &block->mean[row + 5][at + REACH_TEN];
    sums[0] = convert_int4(*(__local const short4 *)residual);
    sums[1] = as_int4(STEPS(four, d.z, e.z, d.w, e.w, e.x, f.x));
    sums[2] = as_int4(STEPS(nine, a.x, c.y, a.y, c.z, a.z, c.w));
    sums[3] = as_int4(STEPS(many, m.x, m8.y, m.y, m8.z, m.z, m8.w));
    sums[4] = convert_int4(*(__local const short4 *)mean);
    sums[5] = as_int4(STEPS(ten, p.w, t.y, q.x, t.z, q.y, t.w));
}

/* Element i of a vector. */
static int element(int4 v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

/* A work-group takes a block. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_mark(int width, int height, int first, int rows, __global ushort *pictures, int pitch, int4 tiles,
                  __global const tile_noise_t *noise, __global const int4 *rois, int roi_count,
                  __global uchar *mask, ulong mask_offset, __global uint *marked, uint slot)
{
    __local block_t block;
    __local uchar nibbles[BLOCK_ROWS][BLOCK_PIXELS / 4];
    __local uint count;
    const size_t size = (size_t)pitch * height;
    const int item = get_local_id(0);
    if (item == 0)
        count = 0;
    if (item == 0 && get_group_id(0) == 0 && get_group_id(1) == 0)
        marked[slot ^ 1u] = 0;
    const int left = (int)get_group_id(0) * BLOCK_PIXELS;
    const int top = first + (int)get_group_id(1) * BLOCK_ROWS;
    const size_t mask_stride = (size_t)(width + 7) / 8;
    if (roi_count > 0)
        sum_block(pictures, pitch, width, height, left, top, &block);
    const int row = item / (BLOCK_PIXELS / 4);
    const int at = 4 * (item % (BLOCK_PIXELS / 4));
    const int x = left + at;
    const int y = top + row;
    const int is_inside = x < width && y < first + rows;
    uint bits = 0;
    const uint wanted = is_inside ? roi_bits(rois, roi_count, x, y, 4) : 0;
    if (wanted) {
        __global const tile_noise_t *tile =
            noise + (size_t)tile_row_of(y, tiles) * tiles.x + tile_of(x, tiles.x);
        int4 sums[CHANNELS];
        sums_of_four(&block, row, at, sums);
        int4 is_marked = 0;
        for (int k = 0; k < CHANNELS; k++)
            is_marked |= abs(sums[k]) > (uint4)tile->limits[k];
        is_marked &= (int4)(8, 4, 2, 1);
        bits = (uint)(is_marked.x | is_marked.y | is_marked.z | is_marked.w) & wanted;
        for (int i = 0; bits && i < 4; i++)
            if (bits & (8u >> i)) {
                int at_pixel[CHANNELS];
                for (int k = 0; k < CHANNELS; k++)
                    at_pixel[k] = element(sums[k], i);
                STRONGEST(pictures, size)[(size_t)y * pitch + x + i] = strongest_of(at_pixel, tile, at_pixel[0]);
            }
    }
    nibbles[row][at / 4] = (uchar)bits;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (bits)
        atomic_add(&count, popcount(bits));
    if (item < BLOCK_ROWS * BLOCK_PIXELS / 8) {
        const int byte_row = item / (BLOCK_PIXELS / 8);
        const int byte = item % (BLOCK_PIXELS / 8);
        const int mask_row = top - first + byte_row;
        if (mask_row < rows && left + 8 * byte < width)
            mask[mask_offset + (size_t)mask_row * mask_stride + left / 8 + byte] =
                (uchar)(nibbles[byte_row][2 * byte] << 4 | nibbles[byte_row][2 * byte + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && count)
        atomic_add(&marked[slot], count);
}

/* A work-group takes a block. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_peaks(int width, int height, int first, int rows, __global ushort *pictures, int pitch, int4 tiles,
                   __global const int4 *rois, int roi_count, __global const int4 *inner, int inner_count,
                   __global const uchar *ignored, int use_ignored, __global uint *peaks)
{
    __local block_t block;
    const int item = get_local_id(0);
    const int left = (int)get_group_id(0) * BLOCK_PIXELS;
    const int top = first + (int)get_group_id(1) * BLOCK_ROWS;
    sum_block(pictures, pitch, width, height, left, top, &block);
    const int row = item / (BLOCK_PIXELS / 4);
    const int at = 4 * (item % (BLOCK_PIXELS / 4));
    const int x = left + at;
    const int y = top + row;
    if (x >= width || y >= first + rows)
        return;
    uint wanted = roi_bits(rois, roi_count, x, y, 4);
    if (use_ignored)
        wanted &= ~(uint)(ignored[(size_t)(y - first) * ((width + 7) / 8) + x / 8] >> (x & 4 ? 0 : 4));
    if (!wanted)
        return;
    const uint inside = wanted & roi_bits(inner, inner_count, x, y, 4);
    int4 sums[CHANNELS];
    sums_of_four(&block, row, at, sums);
    __global uint *tile =
        peaks + ((size_t)tile_row_of(y, tiles) * tiles.x + tile_of(x, tiles.x)) * 2 * CHANNELS;
    for (int k = 0; k < CHANNELS; k++) {
        uint all = 0, inner_most = 0;
        for (int i = 0; i < 4; i++) {
            const uint one_more = abs(element(sums[k], i)) + 1;
            all = wanted >> (3 - i) & 1u ? max(all, one_more) : all;
            inner_most = inside >> (3 - i) & 1u ? max(inner_most, one_more) : inner_most;
        }
        if (all)
            atomic_max(&tile[k], all);
        if (inner_most)
            atomic_max(&tile[CHANNELS + k], inner_most);
    }
}
