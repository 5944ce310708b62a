/* Appended to tiles.cl. The comparison of a surface with good frames: levels, features of cells, and novelty.
 * docs/semantics.md, "Surfaces", defines it; crates/oracle/src/surface.rs mirrors it. Lines and marks: surface_marks.cl.
 *
 * Any device; a work-item makes one element, and those beyond the last one do nothing.
 *
 * surface_smooth     samples -> f_0, per pixel
 * surface_halve      f_l -> f_(l+1), per sample of the latter
 * surface_energy     f_l -> per cell the sums of |r| of the filters, and at level 0 the sum C of the samples
 * surface_logs       -> per cell E, in the place of the first 24 features
 * surface_cell_sums  -> per tile the sum of E of level 1
 * surface_contrast   -> per tile g
 * surface_mean_rows  C -> its sums over 3, 9 and 27 cells of a row
 * surface_features   -> the features
 * surface_novelty    -> per cell q
 * surface_sum        -> per cell Q
 *
 * | argument      | meaning                                                                        |
 * | width, height | of the picture that the kernel reads first; no padding between rows              |
 * | columns, rows | of the whole cells                                                             |
 * | tile_columns, tile_rows | of the tiles                                                         |
 * | energy        | planes of a uint per cell: filter k of level l is plane 8 * l + k                |
 * | features      | planes of a short per cell                                                     |
 * | row_sums      | three planes of a uint per cell                                                |
 * | prototypes    | of sixteen prototypes the first value of each, then the second one, and so on; then the next sixteen |
 *
 * Exactness: integers. A response is at most 2 * 4095, a sum of 144 of them plus 8 * 144 has 21 bits.
 */
#define FILTERS 8
#define ENERGIES (3 * FILTERS)
#define TILE_CELLS (TILE / CELL)
/* Prototypes that are compared together. */
#define TOGETHER 16

static int sample_of(PLANE_ARGS, int x, int y, int width, int height, int depth)
{
    return level_of(PLANE_SAMPLE(clamp(x, 0, width - 1), clamp(y, 0, height - 1)), depth);
}

__kernel void surface_smooth(PLANE_ARGS, int width, int height, int depth, __global ushort *f)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    int sum = 8;
    for (int j = -1; j <= 1; j++) {
        const int row = sample_of(PLANE, x - 1, y + j, width, height, depth) +
                        2 * sample_of(PLANE, x, y + j, width, height, depth) +
                        sample_of(PLANE, x + 1, y + j, width, height, depth);
        sum += j ? row : 2 * row;
    }
    f[(size_t)y * width + x] = (ushort)(sum >> 4);
}

static int smooth_of(__global const ushort *f, int x, int y, int width, int height)
{
    const int left = max(x - 1, 0), right = min(x + 1, width - 1);
    int sum = 8;
    for (int j = -1; j <= 1; j++) {
        __global const ushort *row = f + (size_t)clamp(y + j, 0, height - 1) * width;
        const int of_row = row[left] + 2 * (int)row[x] + row[right];
        sum += j ? of_row : 2 * of_row;
    }
    return sum >> 4;
}

__kernel void surface_halve(int width, int height, __global const ushort *f, __global ushort *next)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width / 2 || y >= height / 2)
        return;
    int sum = 2;
    for (int i = 0; i < 4; i++)
        sum += smooth_of(f, 2 * x + (i & 1), 2 * y + (i >> 1), width, height);
    next[(size_t)y * (width / 2) + x] = (ushort)(sum >> 2);
}

__kernel void surface_energy(int width, int height, int level, __global const ushort *f, int columns, int rows,
                             __global uint *energy, __global uint *means)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const int side = CELL >> level;
    uint sums[FILTERS] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint mean = 0;
    for (int y = row * side; y < (row + 1) * side; y++) {
        __global const ushort *a = f + (size_t)max(y - 1, 0) * width;
        __global const ushort *b = f + (size_t)y * width;
        __global const ushort *c = f + (size_t)min(y + 1, height - 1) * width;
        for (int x = column * side; x < (column + 1) * side; x++) {
            const int l = max(x - 1, 0), r = min(x + 1, width - 1);
            const int twice = 2 * (int)b[x];
            sums[0] += abs(b[r] - b[l]);
            sums[1] += abs(c[x] - a[x]);
            sums[2] += abs(a[r] - c[l]);
            sums[3] += abs(c[r] - a[l]);
            sums[4] += abs(twice - b[l] - b[r]);
            sums[5] += abs(twice - a[x] - c[x]);
            sums[6] += abs(twice - a[r] - c[l]);
            sums[7] += abs(twice - c[r] - a[l]);
            mean += b[x];
        }
    }
    const size_t cells = (size_t)columns * rows;
    const size_t cell = (size_t)row * columns + column;
    for (int k = 0; k < FILTERS; k++)
        energy[(FILTERS * level + k) * cells + cell] = sums[k];
    if (level == 0)
        means[cell] = mean;
}

/* The sum over the cells at most `reach` away; cells outside are those at the edge. */
static uint window_sum(__global const uint *values, int column, int row, int columns, int rows, int reach)
{
    uint sum = 0;
    for (int j = -reach; j <= reach; j++) {
        __global const uint *line = values + (size_t)clamp(row + j, 0, rows - 1) * columns;
        for (int i = -reach; i <= reach; i++)
            sum += line[clamp(column + i, 0, columns - 1)];
    }
    return sum;
}

static int ilog(uint x)
{
    const int m = 31 - (int)clz(x);
    return 256 * m + (int)((x << 8) >> m) - 256;
}

__kernel void surface_logs(int columns, int rows, __global const uint *energy, __global short *features)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const size_t cells = (size_t)columns * rows;
    for (int k = 0; k < ENERGIES; k++) {
        const int level = k / FILTERS;
        const int side = CELL >> level, reach = level == 2 ? 2 : 1;
        const uint samples = (uint)(side * side * (2 * reach + 1) * (2 * reach + 1));
        const uint sum = window_sum(energy + k * cells, column, row, columns, rows, reach);
        features[k * cells + (size_t)row * columns + column] = (short)ilog(sum + 8 * samples);
    }
}

__kernel void surface_cell_sums(int columns, int rows, int tile_columns, int tile_rows, __global const short *features,
                                __global uint *sums)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= tile_columns || row >= tile_rows)
        return;
    const size_t cells = (size_t)columns * rows;
    uint sum = 0;
    for (int k = FILTERS; k < 2 * FILTERS; k++)
        for (int j = row * TILE_CELLS; j < tile_end(row, tile_rows, rows, TILE_CELLS); j++)
            for (int i = column * TILE_CELLS; i < tile_end(column, tile_columns, columns, TILE_CELLS); i++)
                sum += (uint)features[k * cells + (size_t)j * columns + i];
    sums[row * tile_columns + column] = sum;
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
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= tile_columns || row >= tile_rows)
        return;
    const ulong2 all = around(sums, column, row, tile_columns, tile_rows, columns, rows, TILE_CELLS);
    contrast[row * tile_columns + column] = (uint)(all.x / (FILTERS * all.y));
}

__kernel void surface_mean_rows(int columns, int rows, __global const uint *means, __global uint *row_sums)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const size_t cells = (size_t)columns * rows;
    const size_t cell = (size_t)row * columns + column;
    uint sums[3] = {0, 0, 0};
    for (int i = -13; i <= 13; i++) {
        const uint mean = means[(size_t)row * columns + clamp(column + i, 0, columns - 1)];
        sums[0] += i >= -1 && i <= 1 ? mean : 0;
        sums[1] += i >= -4 && i <= 4 ? mean : 0;
        sums[2] += mean;
    }
    for (int k = 0; k < 3; k++)
        row_sums[k * cells + cell] = sums[k];
}

/* a / b, rounded down; b > 0. */
static long floored(long a, long b)
{
    const long quotient = a / b;
    return quotient - (quotient * b > a ? 1 : 0);
}

__kernel void surface_features(int columns, int rows, int tile_columns, int tile_rows, __global const uint *contrast,
                               __global const uint *means, __global const uint *row_sums, __global short *features)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const size_t cells = (size_t)columns * rows;
    const size_t cell = (size_t)row * columns + column;
    const int tile = tile_of(row * CELL, tile_rows) * tile_columns + tile_of(column * CELL, tile_columns);
    const int g = (int)contrast[tile];
    /* E and g are from 0 to 5400, so nothing is clamped here. */
    for (int k = 0; k < ENERGIES; k++)
        features[k * cells + cell] = (short)(features[k * cells + cell] - g);
    /* The sums over 1, 9, 81 and 729 cells, each brought to the number of the next one. */
    int sums[4] = {(int)means[cell], 0, 0, 0};
    for (int j = -13; j <= 13; j++) {
        const size_t at = (size_t)clamp(row + j, 0, rows - 1) * columns + column;
        sums[1] += j >= -1 && j <= 1 ? (int)row_sums[at] : 0;
        sums[2] += j >= -4 && j <= 4 ? (int)row_sums[cells + at] : 0;
        sums[3] += (int)row_sums[2 * cells + at];
    }
    const long scale = (long)(256 + (g & 255)) << (g >> 8);
    int samples = 144;
    for (int k = 0; k < 3; k++) {
        const long d = floored(9 * sums[k] - sums[k + 1], samples);
        const long feature = floored(d * (1 << 20), scale);
        features[(ENERGIES + k) * cells + cell] = (short)clamp(feature, -32768L, 32767L);
        samples *= 9;
    }
}

/* `weights`: per feature its mean, then its DIMENSIONS weights. */
__kernel void surface_novelty(int columns, int rows, __global const short *features, __constant const int *weights,
                              __constant const int16 *prototypes, __global uint *distances)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const size_t cells = (size_t)columns * rows;
    const size_t cell = (size_t)row * columns + column;
    int z[DIMENSIONS];
    for (int j = 0; j < DIMENSIONS; j++)
        z[j] = 128;
    for (int k = 0; k < ENERGIES + 3; k++) {
        __constant const int *of_feature = weights + k * (1 + DIMENSIONS);
        const int value = clamp(features[k * cells + cell] - of_feature[0], -4095, 4095);
        for (int j = 0; j < DIMENSIONS; j++)
            z[j] += of_feature[1 + j] * value;
    }
    for (int j = 0; j < DIMENSIONS; j++)
        z[j] = clamp(z[j] >> 8, -1023, 1023);
    int16 nearest = (int16)FARTHEST;
    for (int n = 0; n < PROTOTYPES / TOGETHER; n++) {
        int16 sums = (int16)0;
        for (int j = 0; j < DIMENSIONS; j++) {
            const int16 d = (int16)z[j] - prototypes[n * DIMENSIONS + j];
            sums += d * d;
        }
        nearest = min(nearest, sums);
    }
    const int8 of_8 = min(nearest.lo, nearest.hi);
    int least = min(min(of_8.s0, of_8.s1), min(of_8.s2, of_8.s3));
    least = min(least, min(min(of_8.s4, of_8.s5), min(of_8.s6, of_8.s7)));
    distances[cell] = (uint)least;
}

__kernel void surface_sum(int columns, int rows, __global const uint *distances, __global uint *novelty)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column < columns && row < rows)
        novelty[(size_t)row * columns + column] = window_sum(distances, column, row, columns, rows, 1);
}
