/* Appended to surface.cl. The comparison of a surface: lines, local noise, marks, and the largest values, to learn.
 *
 * Any device; a work-item makes one element, and those beyond the last one do nothing.
 *
 * surface_boxes         f_0 -> b, per pixel
 * surface_line          b -> L of a direction, per pixel
 * surface_noise         f_0 -> per column of each row of tiles the sum of |v|
 * surface_noise_sums    -> per tile the sum of |v|
 * surface_units         -> per tile U
 * surface_first         -> per pixel `strongest`, by novelty alone
 * surface_side          changes `strongest` where the lines of a direction exceed their limit by more
 * surface_mark          -> a byte of the mask, and its count
 * surface_cell_peaks, surface_line_peaks   per tile the largest novelty, or value of lines of a direction, of judged pixels
 *
 * | argument     | meaning                                                                                        |
 * | lines        | L: a uint per pixel                                                                            |
 * | units        | per tile the unit of lines                                                                     |
 * | limits       | of the channels, 1/256 of their unit; the largest uint marks nothing                              |
 * | strongest    | an int per pixel, 0 if no channel marks it; see strongest.cl                                       |
 * | rois         | rectangles x0, y0, x1, y1 that are judged, at least the border away from the frame's edges          |
 * | ignored      | bitmap like the mask, read if use_ignored is 1                                                    |
 * | peaks        | per tile and channel one more than the largest value, 0 without a judged pixel                     |
 * | marked       | two counters: the launch adds to marked[slot], which is 0 at entry, and clears the other one        |
 *
 * Exactness: integers. A line is at most 99 * 4095.
 */
__kernel void surface_boxes(int width, int height, __global const ushort *f, __global ushort *boxes)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const int left = max(x - 1, 0), right = min(x + 1, width - 1);
    uint sum = 0;
    for (int j = -1; j <= 1; j++) {
        __global const ushort *row = f + (size_t)clamp(y + j, 0, height - 1) * width;
        sum += (uint)row[left] + row[x] + row[right];
    }
    boxes[(size_t)y * width + x] = (ushort)sum;
}

__kernel void surface_line(int width, int height, int dx, int dy, __global const ushort *boxes, __global uint *lines)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    uint sum = 0;
    for (int i = -5; i <= 5; i++)
        sum += boxes[(size_t)clamp(y + i * dy, 0, height - 1) * width + clamp(x + i * dx, 0, width - 1)];
    lines[(size_t)y * width + x] = sum;
}

/* The sum of nine samples of a row. */
static int nine_of(__global const ushort *f, int x, int y, int width, int height)
{
    __global const ushort *row = f + (size_t)clamp(y, 0, height - 1) * width;
    int sum = 0;
    for (int i = -4; i <= 4; i++)
        sum += row[clamp(x + i, 0, width - 1)];
    return sum;
}

__kernel void surface_noise(int width, int height, int tile_rows, __global const ushort *f, __global uint *column_sums)
{
    const int x = get_global_id(0), row = get_global_id(1);
    if (x >= width || row >= tile_rows)
        return;
    const int first = row * TILE;
    int window = 0;
    for (int j = -4; j <= 4; j++)
        window += nine_of(f, x, first + j, width, height);
    uint sum = 0;
    for (int y = first; y < tile_end(row, tile_rows, height, TILE); y++) {
        const int less = 81 * (int)f[(size_t)y * width + x] - window;
        /* The quotient is rounded down before its sign goes. */
        sum += less < 0 ? (uint)((80 - less) / 81) : (uint)(less / 81);
        window += nine_of(f, x, y + 5, width, height) - nine_of(f, x, y - 4, width, height);
    }
    column_sums[(size_t)row * width + x] = sum;
}

__kernel void surface_noise_sums(int width, int tile_columns, int tile_rows, __global const uint *column_sums,
                                 __global uint *sums)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= tile_columns || row >= tile_rows)
        return;
    uint sum = 0;
    for (int x = column * TILE; x < tile_end(column, tile_columns, width, TILE); x++)
        sum += column_sums[(size_t)row * width + x];
    sums[row * tile_columns + column] = sum;
}

__kernel void surface_units(int width, int height, int tile_columns, int tile_rows, __global const uint *sums,
                            __global uint *units)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= tile_columns || row >= tile_rows)
        return;
    const ulong2 all = around(sums, column, row, tile_columns, tile_rows, width, height, TILE);
    const ulong noise = max((16 * all.x + all.y / 2) / all.y, 64UL);
    units[row * tile_columns + column] = (uint)((99 * noise) >> 4);
}

static uint limit_of(uint limit, uint unit) { return (uint)min(((ulong)limit * unit) >> 8, 0x7fffffffUL); }

static int is_judged(__global const int4 *rois, int roi_count, __global const uchar *ignored, int use_ignored, int width,
                     int x, int y)
{
    if (!roi_bits(rois, roi_count, x, y, 1))
        return 0;
    return !use_ignored || !(ignored[(size_t)y * ((width + 7) / 8) + x / 8] & 0x80u >> (x & 7));
}

static int is_judged_cell(__global const int4 *rois, int roi_count, __global const uchar *ignored, int use_ignored,
                          int width, int column, int row, int columns, int rows)
{
    return column >= BORDER_CELLS && row >= BORDER_CELLS && column < columns - BORDER_CELLS &&
           row < rows - BORDER_CELLS &&
           is_judged(rois, roi_count, ignored, use_ignored, width, column * CELL + CELL / 2, row * CELL + CELL / 2);
}

__kernel void surface_first(int width, int height, int columns, int rows, __global const uint *novelty,
                            __global const uint *limits, __global const int4 *rois, int roi_count,
                            __global const uchar *ignored, int use_ignored, int use_novelty, __global int *strongest)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const int column = x / CELL, row = y / CELL;
    int found = 0;
    if (use_novelty && column < columns && row < rows) {
        const uint value = novelty[(size_t)row * columns + column];
        const uint limit = limit_of(limits[0], NOVELTY_UNIT);
        if (value > limit &&
            is_judged_cell(rois, roi_count, ignored, use_ignored, width, column, row, columns, rows))
            found = excess_of(value, limit) << CHANNEL_BITS;
    }
    strongest[(size_t)y * width + x] = found;
}

/* The value of the lines through a pixel inside: positive if the line is darker than both sides, or brighter; its channel. */
static int2 line_of(__global const uint *lines, int width, int x, int y, int dx, int dy, int direction)
{
    const int middle = (int)lines[(size_t)y * width + x];
    const int one = (int)lines[(size_t)(y + dx) * width + x - dy];
    const int other = (int)lines[(size_t)(y - dx) * width + x + dy];
    const int dark = min(one, other) - middle, bright = middle - max(one, other);
    return dark > bright ? (int2)(dark, FIRST_DARK + direction) : (int2)(bright, FIRST_BRIGHT + direction);
}

__kernel void surface_side(int width, int height, int dx, int dy, int direction, __global const uint *lines,
                           int tile_columns, int tile_rows, __global const uint *units, __global const uint *limits,
                           __global int *strongest)
{
    const int x = get_global_id(0), y = get_global_id(1);
    /* Pixels nearer to an edge are not judged. */
    if (x < 3 || y < 3 || x >= width - 3 || y >= height - 3)
        return;
    const int2 line = line_of(lines, width, x, y, dx, dy, direction);
    if (line.x <= 0)
        return;
    const uint limit = limit_of(limits[line.y], units[tile_of(y, tile_rows) * tile_columns + tile_of(x, tile_columns)]);
    if ((uint)line.x <= limit)
        return;
    const int excess = excess_of((uint)line.x, limit);
    const int before = abs(strongest[(size_t)y * width + x]);
    const int most = before >> CHANNEL_BITS;
    const int channel = before & ((1 << CHANNEL_BITS) - 1);
    if (before && (excess < most || (excess == most && channel < line.y)))
        return;
    const int found = (excess << CHANNEL_BITS) + line.y;
    strongest[(size_t)y * width + x] = line.y < FIRST_BRIGHT ? -found : found;
}

__kernel void surface_mark(int width, int height, __global const int *strongest, __global const int4 *rois,
                           int roi_count, __global const uchar *ignored, int use_ignored, __global uchar *mask,
                           ulong mask_offset, __global uint *marked, uint slot)
{
    const int column = get_global_id(0), y = get_global_id(1);
    if (column == 0 && y == 0)
        marked[slot ^ 1u] = 0;
    const int stride = (width + 7) / 8;
    if (column >= stride || y >= height)
        return;
    const int x = 8 * column;
    const size_t at = (size_t)y * stride + column;
    uint bits = 0;
    for (int i = 0; i < 8; i++)
        if (x + i < width && strongest[(size_t)y * width + x + i])
            bits |= 0x80u >> i;
    if (bits)
        bits &= roi_bits(rois, roi_count, x, y, 8);
    if (bits && use_ignored)
        bits &= ~(uint)ignored[at];
    mask[mask_offset + at] = (uchar)bits;
    if (bits)
        atomic_add(&marked[slot], popcount(bits));
}

__kernel void surface_cell_peaks(int width, int columns, int rows, int tile_columns, int tile_rows,
                                 __global const uint *novelty, __global const int4 *rois, int roi_count,
                                 __global const uchar *ignored, int use_ignored, __global uint *peaks)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= tile_columns || row >= tile_rows)
        return;
    uint most = 0;
    for (int j = row * TILE_CELLS; j < tile_end(row, tile_rows, rows, TILE_CELLS); j++)
        for (int i = column * TILE_CELLS; i < tile_end(column, tile_columns, columns, TILE_CELLS); i++) {
            const uint one_more = novelty[(size_t)j * columns + i] + 1;
            if (one_more > most &&
                is_judged_cell(rois, roi_count, ignored, use_ignored, width, i, j, columns, rows))
                most = one_more;
        }
    peaks[(size_t)(row * tile_columns + column) * CHANNELS] = most;
}

__kernel void surface_line_peaks(int width, int height, int dx, int dy, int direction, __global const uint *lines,
                                 int tile_columns, int tile_rows, __global const int4 *rois, int roi_count,
                                 __global const uchar *ignored, int use_ignored, __global uint *peaks)
{
    const int column = get_global_id(0), row = get_global_id(1);
    if (column >= tile_columns || row >= tile_rows)
        return;
    uint dark = 0, bright = 0;
    for (int y = row * TILE; y < tile_end(row, tile_rows, height, TILE); y++)
        for (int x = column * TILE; x < tile_end(column, tile_columns, width, TILE); x++) {
            if (!is_judged(rois, roi_count, ignored, use_ignored, width, x, y))
                continue;
            const int2 line = line_of(lines, width, x, y, dx, dy, direction);
            const uint value = (uint)max(line.x, 0);
            dark = max(dark, line.y < FIRST_BRIGHT ? value + 1 : 1u);
            bright = max(bright, line.y < FIRST_BRIGHT ? 1u : value + 1);
        }
    __global uint *tile = peaks + (size_t)(row * tile_columns + column) * CHANNELS;
    tile[FIRST_DARK + direction] = dark;
    tile[FIRST_BRIGHT + direction] = bright;
}
