/* Appended to tiles.cl. The comparison of a surface with good frames: levels, features of cells, and novelty.
 * docs/semantics.md, "Surfaces", defines it; crates/oracle/src/surface.rs mirrors it. Lines and marks: surface_marks.cl.
 *
 * BY_ROWS   1 on a CPU, and with small work-groups: a work-item makes a row of elements, with vectors of neighbours; local size 1. 0 elsewhere: a
 *           work-item makes one element, and those beyond the last one do nothing
 *
 * surface_smooth      samples -> f_0, per pixel
 * surface_halve       f_l -> f_(l+1), per sample of the latter
 * surface_energy      f_l -> per cell the sums of |r| of the filters, and at level 0 the sum C of the samples
 * surface_logs        -> per cell E, the first 24 features before g is taken off
 * surface_log_sums    -> per column of each row of tiles the sum of E of level 1
 * surface_tile_sums   -> per tile the sum of such columns
 * surface_contrast    -> per tile g
 * surface_mean_rows   C -> its sums over 3, 9 and 27 cells of a row
 * surface_means       -> the last three features
 * surface_novelty     -> per cell q
 * surface_sum         -> per cell Q
 *
 * | argument      | meaning                                                                        |
 * | width, height | of the picture that the kernel reads first                                      |
 * | columns, rows | of the whole cells                                                             |
 * | tile_columns, tile_rows | of the tiles                                                         |
 * | f, next       | levels, padded: see `line_at`                                                   |
 * | energy        | planes of a uint per cell, padded: filter k of level l is plane 8 * l + k          |
 * | means, distances | a uint per cell, padded                                                      |
 * | features      | planes of a short per cell (`feature_plane`); the last three are used as they are, the others less g |
 * | row_sums      | three planes of a uint per cell, with room for those of a padded plane           |
 * | weights       | per feature its DIMENSIONS weights, and zeros                                    |
 * | prototypes    | BY_ROWS: of TOGETHER prototypes the first value of each, then the second one, and so on; then the next ones. Else a prototype's values, then those of the next one |
 * | half_norms    | per prototype half the sum of its squared values                                |
 *
 * Exactness: integers, or floats that hold halves below 2^23 or integers below 2^24. A response is at most 2 * 4095, a sum of
 * 144 of them plus 8 * 144 has 21 bits. A product of two projected values is below 2^20, and a sum of twelve below 2^24.
 */
#define FILTERS 8
#define ENERGIES (3 * FILTERS)
#define TILE_CELLS (TILE / CELL)
/* How prototypes and norms are stored: those of a CPU for sixteen prototypes that are compared together. */
#if BY_ROWS
typedef float16 prototypes_t;
typedef float16 norms_t;
#else
typedef float4 prototypes_t;
typedef float norms_t;
#endif

#if BY_ROWS
#define EACH(at, count) for (int at = 0; at < (count); at++)
#define LOG_ROWS 1
#define NOVELTY_ROWS 1
#else
#define LOG_ROWS BAND
#define NOVELTY_ROWS NOVELTY_BAND
#define EACH(at, count) for (int at = get_global_id(0); at < (count); at += get_global_size(0))
#endif

/* Elements from a row of a padded plane to the next one: PAD repetitions of the element at the edge lie on both sides, and
 * blocks of PAD_BLOCK that begin in the row end in it. */
static size_t pitch_of(int count)
{
    return (size_t)(count + PAD_BLOCK - 1) / PAD_BLOCK * PAD_BLOCK + 2 * PAD;
}

/* Elements from a plane of features to the next one: no two of them lie at the same place in a cache's ways. */
static size_t feature_plane(int columns, int rows)
{
    return ((size_t)columns * rows + FEATURE_BLOCK - 1) / FEATURE_BLOCK * FEATURE_BLOCK + FEATURE_PAD;
}

/* The first element of the row nearest to `y`. */
#define line_at(plane, y, count, lines) ((plane) + (size_t)clamp((y), 0, (lines) - 1) * pitch_of(count) + PAD)

/* Stores an element of a padded row, and pads the row. A row's loop ends with PAD_ROW. */
#if BY_ROWS
#define STORE_PADDED(row, at, count, value) (row)[at] = (value)
#define PAD_ROW(row, count)                                                                                           \
    for (int i = 1; i <= PAD; i++) {                                                                                  \
        (row)[-i] = (row)[0];                                                                                         \
        (row)[(count) - 1 + i] = (row)[(count) - 1];                                                                  \
    }
#else
#define STORE_PADDED(row, at, count, value)                                                                           \
    do {                                                                                                              \
        (row)[at] = (value);                                                                                          \
        for (int i = 1; i <= PAD && (at) == 0; i++)                                                                   \
            (row)[-i] = (row)[at];                                                                                    \
        for (int i = 1; i <= PAD && (at) == (count) - 1; i++)                                                         \
            (row)[(at) + i] = (row)[at];                                                                              \
    } while (0)
#define PAD_ROW(row, count)
#endif

static int sample_of(PLANE_ARGS, int x, int y, int width, int height, int depth)
{
    return level_of(PLANE_SAMPLE(clamp(x, 0, width - 1), clamp(y, 0, height - 1)), depth);
}

#if BY_ROWS && SAMPLE_BYTES == 1 && !USE_IMAGE
/* f_0 of any pixel. */
static ushort smooth_at(PLANE_ARGS, int x, int y, int width, int height, int depth)
{
    int sum = 8;
    for (int j = -1; j <= 1; j++) {
        const int row = sample_of(PLANE, x - 1, y + j, width, height, depth) +
                        2 * sample_of(PLANE, x, y + j, width, height, depth) +
                        sample_of(PLANE, x + 1, y + j, width, height, depth);
        sum += j ? row : 2 * row;
    }
    return (ushort)(sum >> 4);
}
#endif

__kernel void surface_smooth(PLANE_ARGS, int width, int height, int depth, __global ushort *f)
{
    const int y = get_global_id(1);
    if (y >= height)
        return;
    __global ushort *row = f + y * pitch_of(width) + PAD;
#if BY_ROWS && SAMPLE_BYTES == 1 && !USE_IMAGE
    __global const uchar *a = src + src_offset + (size_t)max(y - 1, 0) * src_stride;
    __global const uchar *b = src + src_offset + (size_t)y * src_stride;
    __global const uchar *c = src + src_offset + (size_t)min(y + 1, height - 1) * src_stride;
    row[0] = smooth_at(PLANE, 0, y, width, height, depth);
    for (int x = 1; x < width - 1; x++)
        row[x] = (ushort)(a[x - 1] + 2 * a[x] + a[x + 1] + 2 * (b[x - 1] + 2 * b[x] + b[x + 1]) + c[x - 1] + 2 * c[x] +
                          c[x + 1]);
    row[width - 1] = smooth_at(PLANE, width - 1, y, width, height, depth);
#else
    EACH(block, (width + SMOOTH_PIXELS - 1) / SMOOTH_PIXELS)
    {
        const int first = block * SMOOTH_PIXELS;
        /* 1 2 1 down each column. */
        int columns[SMOOTH_PIXELS + 2];
        for (int i = 0; i < SMOOTH_PIXELS + 2; i++) {
            const int x = first - 1 + i;
            columns[i] = sample_of(PLANE, x, y - 1, width, height, depth) +
                         2 * sample_of(PLANE, x, y, width, height, depth) +
                         sample_of(PLANE, x, y + 1, width, height, depth);
        }
        for (int i = 0; i < SMOOTH_PIXELS; i++) {
            const int x = first + i;
            const ushort value = (ushort)((columns[i] + 2 * columns[i + 1] + columns[i + 2] + 8) >> 4);
            if (x < width)
                STORE_PADDED(row, x, width, value);
        }
    }
#endif
    PAD_ROW(row, width)
}

/* 1 2 1 along a row. */
static int three_of(__global const ushort *row, int x) { return row[x - 1] + 2 * (int)row[x] + row[x + 1]; }

__kernel void surface_halve(int width, int height, __global const ushort *RESTRICT f, __global ushort *RESTRICT next)
{
    const int y = get_global_id(1);
    if (y >= height / 2)
        return;
    __global const ushort *a = line_at(f, 2 * y - 1, width, height);
    __global const ushort *b = line_at(f, 2 * y, width, height);
    __global const ushort *c = line_at(f, 2 * y + 1, width, height);
    __global const ushort *d = line_at(f, 2 * y + 2, width, height);
    __global ushort *row = next + y * pitch_of(width / 2) + PAD;
    EACH(x, width / 2)
    {
        int sum = 2;
        for (int i = 2 * x; i <= 2 * x + 1; i++) {
            const int of_b = three_of(b, i), of_c = three_of(c, i);
            sum += (three_of(a, i) + 2 * of_b + of_c + 8) >> 4;
            sum += (of_b + 2 * of_c + three_of(d, i) + 8) >> 4;
        }
        const ushort value = (ushort)(sum >> 2);
        STORE_PADDED(row, x, width / 2, value);
    }
    PAD_ROW(row, width / 2)
}

#if BY_ROWS
static ushort16 size_of(short16 v) { return as_ushort16(v < (short16)0 ? -v : v); }

/* Adds the sizes of the eight responses of sixteen samples. */
static void add_responses(ushort16 sums[FILTERS], __global const ushort *above, __global const ushort *here,
                          __global const ushort *below)
{
    const short16 a = as_short16(LOAD_USHORT16(above)), b = as_short16(LOAD_USHORT16(here));
    const short16 c = as_short16(LOAD_USHORT16(below));
    const short16 al = as_short16(LOAD_USHORT16(above - 1)), ar = as_short16(LOAD_USHORT16(above + 1));
    const short16 bl = as_short16(LOAD_USHORT16(here - 1)), br = as_short16(LOAD_USHORT16(here + 1));
    const short16 cl = as_short16(LOAD_USHORT16(below - 1)), cr = as_short16(LOAD_USHORT16(below + 1));
    const short16 twice = b + b;
    sums[0] += size_of(br - bl);
    sums[1] += size_of(c - a);
    sums[2] += size_of(ar - cl);
    sums[3] += size_of(cr - al);
    sums[4] += size_of(twice - bl - br);
    sums[5] += size_of(twice - a - c);
    sums[6] += size_of(twice - ar - cl);
    sums[7] += size_of(twice - cr - al);
}

/* Stores the sums of the cells of sixteen samples; a column of samples has at most four, so its sum has 15 bits. */
static void store_cells(__global uint *to, ushort16 of_columns, int level)
{
    const uint16 sixteen = convert_uint16(of_columns);
    if (level == 2) {
        ((__global packed_uint16 *)to)->v = sixteen;
        return;
    }
    const uint8 eight = sixteen.even + sixteen.odd;
    if (level == 1)
        ((__global packed_uint8 *)to)->v = eight;
    else
        ((__global packed_uint4 *)to)->v = eight.even + eight.odd;
}

__kernel void surface_energy(int width, int height, int level, __global const ushort *f, int columns, int rows,
                             __global uint *energy, __global uint *means)
{
    const int row = get_global_id(1);
    const int side = CELL >> level;
    const size_t plane = rows * pitch_of(columns);
    __global uint *line = energy + FILTERS * level * plane + row * pitch_of(columns) + PAD;
    __global uint *mean_line = means + row * pitch_of(columns) + PAD;
    for (int x = 0; x < columns * side; x += 16) {
        ushort16 sums[FILTERS] = {0, 0, 0, 0, 0, 0, 0, 0};
        ushort16 mean = 0;
        for (int y = row * side; y < (row + 1) * side; y++) {
            __global const ushort *here = line_at(f, y, width, height) + x;
            add_responses(sums, line_at(f, y - 1, width, height) + x, here, line_at(f, y + 1, width, height) + x);
            mean += LOAD_USHORT16(here);
        }
        for (int k = 0; k < FILTERS; k++)
            store_cells(line + k * plane + x / side, sums[k], level);
        if (level == 0)
            store_cells(mean_line + x / side, mean, level);
    }
    for (int k = 0; k < FILTERS; k++)
        PAD_ROW(line + k * plane, columns)
    if (level == 0)
        PAD_ROW(mean_line, columns)
}
#else
/* Samples x - 1 to x + side of a row. */
static void load_line(int samples[CELL + 2], __global const ushort *row, int x, int side)
{
    for (int i = 0; i < side + 2; i++)
        samples[i] = row[x - 1 + i];
}

/* The sums of a cell of side * side samples; `side` is a constant where this is called. */
static void sum_cell(uint sums[FILTERS + 1], __global const ushort *f, int column, int row, int width, int height,
                     int side)
{
    int a[CELL + 2], b[CELL + 2], c[CELL + 2];
    load_line(a, line_at(f, row * side - 1, width, height), column * side, side);
    load_line(b, line_at(f, row * side, width, height), column * side, side);
#pragma unroll
    for (int j = 0; j < side; j++) {
        load_line(c, line_at(f, row * side + j + 1, width, height), column * side, side);
#pragma unroll
        for (int i = 1; i <= side; i++) {
            const int twice = 2 * b[i];
            sums[0] += abs(b[i + 1] - b[i - 1]);
            sums[1] += abs(c[i] - a[i]);
            sums[2] += abs(a[i + 1] - c[i - 1]);
            sums[3] += abs(c[i + 1] - a[i - 1]);
            sums[4] += abs(twice - b[i - 1] - b[i + 1]);
            sums[5] += abs(twice - a[i] - c[i]);
            sums[6] += abs(twice - a[i + 1] - c[i - 1]);
            sums[7] += abs(twice - c[i + 1] - a[i - 1]);
            sums[FILTERS] += b[i];
        }
#pragma unroll
        for (int i = 0; i < side + 2; i++) {
            a[i] = b[i];
            b[i] = c[i];
        }
    }
}

__kernel void surface_energy(int width, int height, int level, __global const ushort *f, int columns, int rows,
                             __global uint *energy, __global uint *means)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    uint sums[FILTERS + 1] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (level == 0)
        sum_cell(sums, f, column, row, width, height, CELL);
    else if (level == 1)
        sum_cell(sums, f, column, row, width, height, CELL / 2);
    else
        sum_cell(sums, f, column, row, width, height, CELL / 4);
    const size_t plane = rows * pitch_of(columns);
    __global uint *line = energy + FILTERS * level * plane + row * pitch_of(columns) + PAD;
    for (int k = 0; k < FILTERS; k++)
        STORE_PADDED(line + k * plane, column, columns, sums[k]);
    line = means + row * pitch_of(columns) + PAD;
    if (level == 0)
        STORE_PADDED(line, column, columns, sums[FILTERS]);
}
#endif

#if BY_ROWS
/* Stores the first `count` of sixteen values. */
static void store_row(__global short *to, short16 values, int count)
{
    if (count >= 16) {
        ((__global packed_short16 *)to)->v = values;
        return;
    }
    for (int i = 0; i < count; i++)
        to[i] = ((short *)&values)[i];
}
#endif

/* The sum over the elements of a padded row at most `reach` away. */
static uint sum_along(__global const uint *row, int column, int reach)
{
    uint sum = 0;
    for (int i = -reach; i <= reach; i++)
        sum += row[column + i];
    return sum;
}

/* E of a sum below 2^24: the bits of a float are its exponent and the share of the way to the next power of two, the two
 * parts of ilog. */
#define ILOG_ONE (256 * 127)

/* E of a plane of energies in LOG_ROWS rows from `first`; `reach` is a constant where this is called. */
static void make_logs(__global const uint *RESTRICT energy, int columns, int rows, int first, int side, int reach,
                      __global short *RESTRICT features)
{
    const uint more = (uint)(8 * side * side * (2 * reach + 1) * (2 * reach + 1));
#if BY_ROWS
    features += (size_t)first * columns;
    for (int column = 0; column < columns; column += 16) {
        int16 sum = (int16)(int)more;
        for (int j = -reach; j <= reach; j++) {
            __global const uint *row = line_at(energy, first + j, columns, rows) + column;
            for (int i = -reach; i <= reach; i++)
                sum += as_int16(LOAD_UINT16(row + i));
        }
        const short16 logs = convert_short16((as_int16(convert_float16(sum)) >> 15) - ILOG_ONE);
        store_row(features + column, logs, columns - column);
    }
#else
    EACH(column, columns)
    {
        uint kept[5];
        for (int j = 0; j < 2 * reach; j++)
            kept[j] = sum_along(line_at(energy, first + j - reach, columns, rows), column, reach);
        for (int n = 0; n < LOG_ROWS && first + n < rows; n++) {
            kept[2 * reach] = sum_along(line_at(energy, first + n + reach, columns, rows), column, reach);
            uint sum = more;
            for (int j = 0; j <= 2 * reach; j++)
                sum += kept[j];
            features[(size_t)(first + n) * columns + column] = (short)((as_int((float)(int)sum) >> 15) - ILOG_ONE);
            for (int j = 0; j < 2 * reach; j++)
                kept[j] = kept[j + 1];
        }
    }
#endif
}

__kernel void surface_logs(int columns, int rows, __global const uint *energy, __global short *features)
{
    const int bands = (rows + LOG_ROWS - 1) / LOG_ROWS;
    const int k = get_global_id(1) / bands, first = get_global_id(1) % bands * LOG_ROWS;
    if (k >= ENERGIES)
        return;
    energy += k * (rows * pitch_of(columns));
    features += k * feature_plane(columns, rows);
    if (k < FILTERS)
        make_logs(energy, columns, rows, first, CELL, 1, features);
    else if (k < 2 * FILTERS)
        make_logs(energy, columns, rows, first, CELL / 2, 1, features);
    else
        make_logs(energy, columns, rows, first, CELL / 4, 2, features);
}

__kernel void surface_log_sums(int columns, int rows, int tile_rows, __global const short *RESTRICT features,
                               __global uint *RESTRICT column_sums)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    const size_t cells = feature_plane(columns, rows);
    __global uint *sums = column_sums + (size_t)row * columns;
    const int end = tile_end(row, tile_rows, rows, TILE_CELLS);
#if BY_ROWS
    for (int column = 0; column < columns; column++)
        sums[column] = 0;
    for (int k = FILTERS; k < 2 * FILTERS; k++)
        for (int j = row * TILE_CELLS; j < end; j++) {
            __global const short *line = features + k * cells + (size_t)j * columns;
            for (int column = 0; column < columns; column++)
                sums[column] += (uint)line[column];
        }
#else
    EACH(column, columns)
    {
        uint sum = 0;
        for (int k = FILTERS; k < 2 * FILTERS; k++)
            for (int j = row * TILE_CELLS; j < end; j++)
                sum += (uint)features[k * cells + (size_t)j * columns + column];
        sums[column] = sum;
    }
#endif
}

/* `width`: columns of pixels, or of cells; `side`: how many of them a tile has. */
__kernel void surface_tile_sums(int width, int side, int tile_columns, int tile_rows, __global const uint *column_sums,
                                __global uint *sums)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    EACH(column, tile_columns)
    {
        uint sum = 0;
        for (int x = column * side; x < tile_end(column, tile_columns, width, side); x++)
            sum += column_sums[(size_t)row * width + x];
        sums[row * tile_columns + column] = sum;
    }
}

/* The sum over the tiles around one, and the number of values in them: of pixels, or of cells. `width`, `height`: how many
 * of them the frame has; `side`: of a tile. */
static ulong2 around(__global const uint *sums, int column, int row, int tile_columns, int tile_rows, int width,
                     int height, int side)
{
    const int reach = 4;
    const int left = max(column - reach, 0), right = min(column + reach, tile_columns - 1);
    const int top = max(row - reach, 0), bottom = min(row + reach, tile_rows - 1);
    ulong sum = 0;
    for (int j = top; j <= bottom; j++)
        for (int i = left; i <= right; i++)
            sum += sums[j * tile_columns + i];
    const int across = tile_end(right, tile_columns, width, side) - left * side;
    const int down = tile_end(bottom, tile_rows, height, side) - top * side;
    return (ulong2)(sum, (ulong)across * (ulong)down);
}

__kernel void surface_contrast(int columns, int rows, int tile_columns, int tile_rows, __global const uint *sums,
                               __global uint *contrast)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    EACH(column, tile_columns)
    {
        const ulong2 all = around(sums, column, row, tile_columns, tile_rows, columns, rows, TILE_CELLS);
        contrast[row * tile_columns + column] = (uint)(all.x / (FILTERS * all.y));
    }
}

__kernel void surface_mean_rows(int columns, int rows, __global const uint *RESTRICT means,
                                __global uint *RESTRICT row_sums)
{
    const int row = get_global_id(1);
    if (row >= rows)
        return;
    const size_t plane = rows * pitch_of(columns);
    __global const uint *line = line_at(means, row, columns, rows);
    row_sums += row * pitch_of(columns) + PAD;
    EACH(column, columns)
    {
        row_sums[column] = sum_along(line, column, 1);
        row_sums[plane + column] = sum_along(line, column, 4);
        row_sums[2 * plane + column] = sum_along(line, column, 13);
    }
}

#if BY_ROWS
/* Columns that a work-item takes together. */
#define MEANS 16
typedef int16 means_t;
#define LOAD_MEANS(p) as_int16(LOAD_UINT16(p))
#else
#define MEANS 1
typedef int means_t;
#define LOAD_MEANS(p) (int)*(p)
#endif

/* The sum over the rows at most `reach` away. */
static means_t sum_down(__global const uint *plane, int column, int row, int columns, int rows, int reach)
{
    means_t sum = 0;
    for (int j = -reach; j <= reach; j++)
        sum += LOAD_MEANS(line_at(plane, row + j, columns, rows) + column);
    return sum;
}

/* a / b, rounded down; b > 0. */
static int floored(int a, int b)
{
    const int quotient = a / b;
    return quotient - (quotient * b > a ? 1 : 0);
}

/* (d * 2^20) / G, clamped to shorts. G is 256 + (g & 255) shifted by at most 21. */
static short to_contrast(int d, int g)
{
    const int divisor = 256 + (g & 255), shift = 20 - (g >> 8);
    /* A larger dividend is clamped anyway: the quotient is beyond a short. */
    const int most = divisor << 15;
    const long dividend = shift < 0 ? (long)(d >> 1) : (long)d << shift;
    return (short)clamp(floored((int)clamp(dividend, (long)-most, (long)most), divisor), -32768, 32767);
}

__kernel void surface_means(int columns, int rows, int tile_columns, int tile_rows,
                            __global const uint *RESTRICT contrast, __global const uint *RESTRICT means,
                            __global const uint *RESTRICT row_sums, __global short *RESTRICT features)
{
    const int row = get_global_id(1);
    if (row >= rows)
        return;
    const size_t cells = feature_plane(columns, rows), plane = rows * pitch_of(columns);
    __global const uint *tiles = contrast + tile_of(row * CELL, tile_rows) * tile_columns;
    features += ENERGIES * cells + (size_t)row * columns;
    EACH(block, (columns + MEANS - 1) / MEANS)
    {
        const int first = block * MEANS;
        /* The sums over 1, 9, 81 and 729 cells; each is brought to the number of cells of the next one. */
        const means_t of_1 = LOAD_MEANS(line_at(means, row, columns, rows) + first);
        const means_t of_9 = sum_down(row_sums, first, row, columns, rows, 1);
        const means_t of_81 = sum_down(row_sums + plane, first, row, columns, rows, 4);
        const means_t of_729 = sum_down(row_sums + 2 * plane, first, row, columns, rows, 13);
        const means_t less[3] = {9 * of_1 - of_9, 9 * of_9 - of_81, 9 * of_81 - of_729};
        for (int i = 0; i < min(MEANS, columns - first); i++) {
            const int column = first + i;
            const int g = (int)tiles[tile_of(column * CELL, tile_columns)];
            features[column] = to_contrast(floored(((int *)&less[0])[i], 144), g);
            features[cells + column] = to_contrast(floored(((int *)&less[1])[i], 1296), g);
            features[2 * cells + column] = to_contrast(floored(((int *)&less[2])[i], 11664), g);
        }
    }
}

/* z of the cells of a column in rows first to first + NOVELTY_ROWS - 1, or the last row instead of those behind it; four
 * elements are 0. */
static void project(int16 z[NOVELTY_ROWS], __global const short *features, int column, int first, int columns, int rows,
                    int g, __constant const int *feature_means, __constant const int16 *weights)
{
#pragma unroll
    for (int i = 0; i < NOVELTY_ROWS; i++)
        z[i] = (int16)128;
    for (int k = 0; k < ENERGIES + 3; k++) {
        __global const short *of_plane = features + k * feature_plane(columns, rows) + column;
        const int less = feature_means[k] + (k < ENERGIES ? g : 0);
        const int16 of_feature = weights[k];
#pragma unroll
        for (int i = 0; i < NOVELTY_ROWS; i++) {
            const size_t row = min(first + i, rows - 1);
            z[i] += of_feature * clamp(of_plane[row * columns] - less, -4095, 4095);
        }
    }
#pragma unroll
    for (int i = 0; i < NOVELTY_ROWS; i++)
        z[i] = clamp(z[i] >> 8, (int16)-1023, (int16)1023);
}

static int sum_of(int16 v)
{
    const int8 of_8 = v.lo + v.hi;
    const int4 of_4 = of_8.lo + of_8.hi;
    return of_4.x + of_4.y + of_4.z + of_4.w;
}

/* q from the largest z * p - p * p / 2, whose double and the distance are z * z together. Where it is not exact, below
 * -2^23, q is cut off at FARTHEST. */
static uint distance_of(int16 z, float nearness) { return (uint)min(sum_of(z * z) - (int)(2 * nearness), (int)FARTHEST); }

#if !BY_ROWS
/* The sum of the products of twelve values, in two chains. */
static float product_of(float16 z, float4 a, float4 b, float4 c)
{
    float one = z.s0 * a.x;
    float other = z.s4 * b.x;
    one += z.s1 * a.y;
    other += z.s5 * b.y;
    one += z.s2 * a.z;
    other += z.s6 * b.z;
    one += z.s3 * a.w;
    other += z.s7 * b.w;
    one += z.s8 * c.x;
    other += z.sa * c.z;
    one += z.s9 * c.y;
    other += z.sb * c.w;
    return one + other;
}
#endif

__kernel void surface_novelty(int columns, int rows, int tile_columns, int tile_rows,
                              __global const uint *RESTRICT contrast, __global const short *RESTRICT features,
                              __constant const int *feature_means, __constant const int16 *weights,
                              __constant const prototypes_t *prototypes, __constant const norms_t *half_norms,
                              __global uint *RESTRICT distances)
{
    const int first = get_global_id(1) * NOVELTY_ROWS;
#if !BY_ROWS
    /* Each work-item reads all prototypes. */
    __local float4 near_prototypes[3 * PROTOTYPES];
    __local float near_norms[PROTOTYPES];
    const int items = get_local_size(0) * get_local_size(1);
    const int item = get_local_id(1) * get_local_size(0) + get_local_id(0);
    for (int i = item; i < 3 * PROTOTYPES; i += items)
        near_prototypes[i] = prototypes[i];
    for (int i = item; i < PROTOTYPES; i += items)
        near_norms[i] = half_norms[i];
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    if (first >= rows)
        return;
    /* Rows that a work-item takes are of one tile. */
    __global const uint *tiles = contrast + tile_of(first * CELL, tile_rows) * tile_columns;
#if BY_ROWS
    __global uint *line = distances + first * pitch_of(columns) + PAD;
    EACH(column, columns)
    {
        const int g = (int)tiles[tile_of(column * CELL, tile_columns)];
        int16 z[1];
        project(z, features, column, first, columns, rows, g, feature_means, weights);
        const float16 values = convert_float16(z[0]);
        float16 nearest = (float16)(-(float)FARTHEST);
        for (int n = 0; n < PROTOTYPES / TOGETHER; n++) {
            float16 products = (float16)0.0f;
#pragma unroll
            for (int j = 0; j < DIMENSIONS; j++) {
                const float value = ((const float *)&values)[j];
                products += value * prototypes[n * DIMENSIONS + j];
            }
            products -= half_norms[n];
            nearest = products > nearest ? products : nearest;
        }
        const float8 of_8 = nearest.lo > nearest.hi ? nearest.lo : nearest.hi;
        const float4 of_4 = of_8.lo > of_8.hi ? of_8.lo : of_8.hi;
        const float2 of_2 = of_4.lo > of_4.hi ? of_4.lo : of_4.hi;
        line[column] = distance_of(z[0], of_2.x > of_2.y ? of_2.x : of_2.y);
    }
    PAD_ROW(line, columns)
#else
    EACH(column, columns)
    {
        const int g = (int)tiles[tile_of(column * CELL, tile_columns)];
        int16 z[NOVELTY_ROWS];
        float16 values[NOVELTY_ROWS];
        float nearest[NOVELTY_ROWS];
        project(z, features, column, first, columns, rows, g, feature_means, weights);
#pragma unroll
        for (int i = 0; i < NOVELTY_ROWS; i++) {
            values[i] = convert_float16(z[i]);
            nearest[i] = -(float)FARTHEST;
        }
#pragma unroll 4
        for (int n = 0; n < PROTOTYPES; n++) {
            const float4 a = near_prototypes[3 * n], b = near_prototypes[3 * n + 1], c = near_prototypes[3 * n + 2];
#pragma unroll
            for (int i = 0; i < NOVELTY_ROWS; i++) {
                const float nearness = product_of(values[i], a, b, c) - near_norms[n];
                nearest[i] = nearness > nearest[i] ? nearness : nearest[i];
            }
        }
#pragma unroll
        for (int i = 0; i < NOVELTY_ROWS; i++)
            if (first + i < rows) {
                __global uint *line = distances + (first + i) * pitch_of(columns) + PAD;
                STORE_PADDED(line, column, columns, distance_of(z[i], nearest[i]));
            }
    }
#endif
}

__kernel void surface_sum(int columns, int rows, __global const uint *RESTRICT distances,
                          __global uint *RESTRICT novelty)
{
    const int row = get_global_id(1);
    if (row >= rows)
        return;
    EACH(column, columns)
    {
        uint sum = 0;
        for (int j = -1; j <= 1; j++)
            sum += sum_along(line_at(distances, row + j, columns, rows), column, 1);
        novelty[(size_t)row * columns + column] = sum;
    }
}
