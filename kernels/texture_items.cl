/* Appended to texture_measure.cl. GPU: each kernel states its work-group; a work-group reads what it shares into local
 * memory. Other arguments: see texture.cl. */

/* Work-items per work-group. Twin: operators/texture.rs (GROUP). */
#define GROUP 256

/* Writes a sample of a picture, and the samples of the continued row that equal it. */
static void put_padded(__global short *row, int x, int width, short value)
{
    row[x] = value;
    if (width > PAD) {
        if (x >= 1 && x <= PAD)
            row[-x] = value;
        if (x >= width - 1 - PAD && x < width - 1)
            row[2 * (width - 1) - x] = value;
    } else {
        for (int i = 1; i <= PAD; i++) {
            if (mirror(-i, width) == x)
                row[-i] = value;
            if (mirror(width - 1 + i, width) == x)
                row[width - 1 + i] = value;
        }
    }
}

static int smooth_sample(PLANE_ARGS, int x, int y, int width, int height, int depth)
{
    const int l = max(x - 1, 0), r = min(x + 1, width - 1);
    const int t = max(y - 1, 0), b = min(y + 1, height - 1);
#define LEVEL(column, row) level_of(PLANE_SAMPLE(column, row), depth)
    const int top = LEVEL(l, t) + 2 * LEVEL(x, t) + LEVEL(r, t);
    const int middle = LEVEL(l, y) + 2 * LEVEL(x, y) + LEVEL(r, y);
    const int bottom = LEVEL(l, b) + 2 * LEVEL(x, b) + LEVEL(r, b);
    return (top + 2 * middle + bottom + 8) >> 4;
}

/* A work-group takes GROUP pixels of a row. `line`: GROUP + 2 * reach samples, `reach` on each side of the pixels: those of
 * the neighbours, and of the mean over one repeat. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_smooth(PLANE_ARGS, int width, int height, int depth, int4 repeat, __global ushort *pictures, int pitch,
                    int reach, __local ushort *line)
{
    const size_t size = (size_t)pitch * height;
    const int y = get_global_id(1);
    const int left = (int)get_group_id(0) * GROUP - reach;
    const int item = get_local_id(0);
    for (int i = item; i < GROUP + 2 * reach; i += GROUP) {
        const int x = left + i;
        if (x >= 0 && x < width)
            line[i] = (ushort)smooth_sample(PLANE, x, y, width, height, depth);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = get_global_id(0);
    if (x >= width)
        return;
    __global ushort *out = pictures + PAD + (size_t)y * pitch + x;
#define LINE(column) line[(column)-left]
    const int f = LINE(x);
    out[0] = (ushort)f;
    const lattice_taps_t l = lattice_taps(x, -repeat.x, width);
    const lattice_taps_t r = lattice_taps(x, repeat.x, width);
    out[size] = (ushort)(f + interpolate(LINE(l.near), LINE(l.far), l.fraction) +
                         interpolate(LINE(r.near), LINE(r.far), r.fraction));
    const int n = repeat.y;
    uint sum = (uint)f;
    for (int j = 1; j <= n; j++)
        sum += (uint)LINE(mirror(x - j, width)) + LINE(mirror(x + j, width));
    const uint ends = (uint)LINE(mirror(x - n - 1, width)) + LINE(mirror(x + n + 1, width));
    out[2 * size] = (ushort)scaled(32 * sum + (uint)repeat.z * ends, repeat.w, 20);
}

/* Rows that a work-item of texture_lattice takes. Twin: operators/texture.rs (LATTICE_ROWS). */
#define LATTICE_ROWS 32

/* A work-item takes a column of LATTICE_ROWS rows. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_lattice(int width, int height, int4 repeat, __global ushort *pictures, int pitch)
{
    const size_t size = (size_t)pitch * height;
    const int x = get_global_id(0);
    if (x >= width)
        return;
    const int from = (int)get_global_id(1) * LATTICE_ROWS;
    const int past = min(from + LATTICE_ROWS, height);
    __global const ushort *h = pictures + size + PAD + x;
    __global const ushort *along_x = REPEAT_X(pictures, size) + x;
    const int n = repeat.y;
    uint sum = 0;
#define AT(picture, row) (picture)[(size_t)(row) * pitch]
    for (int j = -n; j <= n; j++)
        sum += AT(along_x, mirror(from + j, height));
    for (int y = from; y < past; y++) {
        const lattice_taps_t up = lattice_taps(y, -repeat.x, height);
        const lattice_taps_t down = lattice_taps(y, repeat.x, height);
        __global short *residual = RESIDUAL(pictures, size) + (size_t)y * pitch;
        const int v = AT(h, y) + interpolate(AT(h, up.near), AT(h, up.far), up.fraction) +
                      interpolate(AT(h, down.near), AT(h, down.far), down.fraction);
        put_padded(residual, x, width, (short)((9 * (ushort)residual[x] - v + 4) >> 3));
        if (y > from)
            sum += (uint)AT(along_x, mirror(y + n, height)) - AT(along_x, mirror(y - n - 1, height));
        const uint ends = (uint)AT(along_x, mirror(y - n - 1, height)) + AT(along_x, mirror(y + n + 1, height));
        __global short *out = (__global short *)REPEAT(pictures, size) + (size_t)y * pitch;
        put_padded(out, x, width, (short)scaled(32 * sum + (uint)repeat.z * ends, repeat.w, 20));
    }
}

/* Pixels of a row, and rows at a time, of a work-group of texture_tiles. */
#define WIDE_PIXELS 128
#define WIDE_COLUMNS (WIDE_PIXELS + 2 * PAD)
#define WIDE_ROWS 8

/* A work-group takes WIDE_PIXELS columns of a row of tiles. `sums` are 0 at entry. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_tiles(int width, int height, __global ushort *pictures, int pitch, int4 tiles, int tiles_end,
                   __global uint2 *sums)
{
    const size_t size = (size_t)pitch * height;
    __local uint columns[WIDE_ROWS][WIDE_COLUMNS];
    const int item = get_local_id(0);
    const int left = (int)get_group_id(0) * WIDE_PIXELS;
    const int j = get_group_id(1);
    const int is_last = j + tiles.z == tiles_end - 1;
    const int top = max((j + tiles.z) * TILE - tiles.w, 0);
    const int bottom = is_last ? height : min((j + tiles.z + 1) * TILE - tiles.w, height);
    /* The columns that a work-item sums up: within the continued row. */
    const int column = left - PAD + item;
    const int is_column = item < WIDE_COLUMNS && column < width + PAD;
    __global const ushort *repeat = REPEAT(pictures, size) + column;
    uint sum = 0;
    if (is_column)
        for (int k = -PAD; k < PAD; k++)
            sum += AT(repeat, mirror(top + k, height));
    /* The four pixels of a row that it then makes. */
    const int row = item / (WIDE_PIXELS / 4);
    const int at = 4 * (item % (WIDE_PIXELS / 4));
    uint residuals = 0, means = 0;
    for (int y0 = top; y0 < bottom; y0 += WIDE_ROWS) {
        if (is_column)
            for (int k = 0; k < WIDE_ROWS; k++) {
                const int y = y0 + k;
                /* The window of row y is y-PAD .. y+PAD; `sum` has its rows before y+PAD. */
                sum += AT(repeat, mirror(y + PAD, height));
                columns[k][item] = sum;
                sum -= AT(repeat, mirror(y - PAD, height));
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int y = y0 + row;
        if (y < bottom) {
            uint wide = 0;
            for (int i = 0; i <= 2 * PAD; i++)
                wide += columns[row][at + i];
            __global const short *residual = RESIDUAL(pictures, size) + (size_t)y * pitch;
            __global const ushort *values = REPEAT(pictures, size) + (size_t)y * pitch;
            __global short *out = MEAN(pictures, size) + (size_t)y * pitch;
            for (int i = 0; i < 4; i++) {
                const int x = left + at + i;
                if (x < width) {
                    const int mean = values[x] - scaled(wide, WIDE_SCALE, WIDE_SHIFT);
                    put_padded(out, x, width, (short)mean);
                    means += abs(mean);
                    residuals += abs((int)residual[x]);
                }
                if (i < 3)
                    wide += columns[row][at + i + 2 * PAD + 1] - columns[row][at + i];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (left + at >= width || j >= tiles.y)
        return;
    __global uint *tile = (__global uint *)&sums[j * tiles.x + tile_of(left + at, tiles.x)];
    atomic_add(tile, residuals);
    atomic_add(tile + 1, means);
}

/* Pixels and rows of a work-group of texture_mark. */
#define BLOCK_PIXELS 64
#define BLOCK_ROWS 16
/* Windows reach so far left and right of the pixels, rounded up to a multiple of 4. */
#define REACH_MANY 16
#define REACH_NINE 4
#define REACH_FOUR 4
#define REACH_TEN 8

/* What a work-group shares: rows from 16 above to 16 below, and the sums of the windows' columns. */
typedef struct {
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
    for (int i = item; i < (BLOCK_ROWS + 32) * columns; i += GROUP) {
        const int row = i / columns;
        const int column = i - row * columns;
        /* Past the continued row there are no pixels. */
        const int x = min(left - REACH_MANY + column, width - 1 + PAD);
        block->residual[row][column] = AT(residuals + x, mirror(top - 16 + row, height));
    }
    const int mean_columns = BLOCK_PIXELS + 2 * REACH_TEN;
    for (int i = item; i < (BLOCK_ROWS + 9) * mean_columns; i += GROUP) {
        const int row = i / mean_columns;
        const int column = i - row * mean_columns;
        const int x = min(left - REACH_TEN + column, width - 1 + PAD);
        block->mean[row][column] = AT(means + x, mirror(top - 5 + row, height));
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

/* Sums of the channels at four pixels of a row of a block, from column `at` of the block. */
static void sums_of_four(__local const block_t *block, int row, int at, int sums[4][CHANNELS])
{
    uint many = 0, nine = 0;
    int four = 0, ten = 0;
    for (int i = 0; i < 32; i++)
        many += block->many[row][at + i];
    for (int i = 0; i < 8; i++)
        nine += block->nine[row][at + i];
    for (int i = 2; i < 5; i++)
        four += block->four[row][at + i];
    for (int i = 3; i < 12; i++)
        ten += block->ten[row][at + i];
    for (int i = 0; i < 4; i++) {
        many += block->many[row][at + i + 32];
        nine += block->nine[row][at + i + 8];
        four += block->four[row][at + i + 5];
        ten += block->ten[row][at + i + 12];
        sums[i][0] = block->residual[row + 16][at + i + REACH_MANY];
        sums[i][1] = four;
        sums[i][2] = (int)nine;
        sums[i][3] = (int)many;
        sums[i][4] = block->mean[row + 5][at + i + REACH_TEN];
        sums[i][5] = ten;
        many -= block->many[row][at + i];
        nine -= block->nine[row][at + i];
        four -= block->four[row][at + i + 2];
        ten -= block->ten[row][at + i + 3];
    }
}

/* A work-group takes a block. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void texture_mark(int width, int height, int first, int rows, __global ushort *pictures, int pitch, int4 tiles,
                  int tiles_end, __global const tile_noise_t *noise, __global const int4 *rois, int roi_count,
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
            noise + (size_t)tile_row_of(y, tiles, tiles_end) * tiles.x + tile_of(x, tiles.x);
        int sums[4][CHANNELS];
        sums_of_four(&block, row, at, sums);
        const tile_noise_t t = *tile;
        for (int i = 0; i < 4; i++) {
            int is_marked = 0;
            for (int k = 0; k < CHANNELS; k++)
                is_marked |= abs(sums[i][k]) > t.limits[k];
            if (is_marked && (wanted >> (3 - i) & 1u)) {
                bits |= 8u >> i;
                STRONGEST(pictures, size)[(size_t)y * pitch + x + i] = strongest_of(sums[i], tile, sums[i][0]);
            }
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
                   int tiles_end, __global const int4 *rois, int roi_count, __global const int4 *inner, int inner_count,
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
    int sums[4][CHANNELS];
    sums_of_four(&block, row, at, sums);
    __global uint *tile =
        peaks + ((size_t)tile_row_of(y, tiles, tiles_end) * tiles.x + tile_of(x, tiles.x)) * 2 * CHANNELS;
    for (int k = 0; k < CHANNELS; k++) {
        uint all = 0, inner_most = 0;
        for (int i = 0; i < 4; i++) {
            const uint one_more = abs(sums[i][k]) + 1;
            all = wanted >> (3 - i) & 1u ? max(all, one_more) : all;
            inner_most = inside >> (3 - i) & 1u ? max(inner_most, one_more) : inner_most;
        }
        /* Most pixels are below the tile's peak so far. */
        if (all > tile[k])
            atomic_max(&tile[k], all);
        if (inner_most > tile[CHANNELS + k])
            atomic_max(&tile[CHANNELS + k], inner_most);
    }
}
