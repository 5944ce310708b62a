/* Appended to surface.cl. The comparison of a surface: lines, local noise, marks, and the largest values, to learn.
 *
 * surface_boxes         f_0 -> b, per pixel
 * surface_line          b -> L of a direction, per pixel
 * surface_noise         f_0 -> per column of each row of tiles the sum of |v|; surface_tile_sums makes sums of tiles of them
 * surface_units         -> per tile U
 * surface_side, surface_sides   -> per pixel `strongest`: by the lines of a direction and of those before it; b -> all at once
 * surface_mark          novelty and lines -> the mask, its count, and `strongest` of the marked pixels
 * surface_cell_peaks, surface_line_peaks   per tile the largest novelty, or value of lines of a direction, of judged pixels
 *
 * | argument     | meaning                                                                                        |
 * | boxes        | b, padded                                                                                      |
 * | lines        | L: a uint per pixel, with room for those of a padded plane                                        |
 * | units        | per tile the unit of lines                                                                     |
 * | limits       | of the channels, 1/256 of their unit; the largest uint marks nothing                              |
 * | strongest    | an int per pixel, 0 if no channel marks it; see strongest.cl                                       |
 * | rois         | rectangles x0, y0, x1, y1 that are judged, at least the border away from the frame's edges          |
 * | ignored      | bitmap like the mask, read if use_ignored is 1; its rows begin at row ignored_first                |
 * | first, end   | the rows that are marked: row 0 of the mask is row first                                          |
 * | peaks        | per tile and channel one more than the largest value, 0 without a judged pixel                     |
 * | marked       | two counters: the launch adds to marked[slot], which is 0 at entry, and clears the other one        |
 *
 * Exactness: integers. A line is at most 99 * 4095.
 */
/* Columns of pixels that a work-item takes together. */
#if BY_ROWS
#define NOISE_COLUMNS 16
#else
#define NOISE_COLUMNS 1
#endif

__kernel void surface_boxes(int width, int height, __global const ushort *RESTRICT f, __global ushort *RESTRICT boxes)
{
    const int y = get_global_id(1);
    if (y >= height)
        return;
    __global const ushort *a = line_at(f, y - 1, width, height);
    __global const ushort *b = line_at(f, y, width, height);
    __global const ushort *c = line_at(f, y + 1, width, height);
    __global ushort *row = boxes + y * pitch_of(width) + PAD;
    EACH(x, width)
    {
        const ushort sum = (ushort)(a[x - 1] + a[x] + a[x + 1] + b[x - 1] + b[x] + b[x + 1] + c[x - 1] + c[x] + c[x + 1]);
        STORE_PADDED(row, x, width, sum);
    }
    PAD_ROW(row, width)
}

__kernel void surface_line(int width, int height, int dx, int dy, __global const ushort *RESTRICT boxes,
                           __global uint *RESTRICT lines)
{
    const int y = get_global_id(1);
    if (y >= height)
        return;
    lines += y * pitch_of(width) + PAD;
#if BY_ROWS
    for (int x = 0; x < width; x += 16) {
        uint16 sum = 0;
        for (int i = -5; i <= 5; i++)
            sum += convert_uint16(LOAD_USHORT16(line_at(boxes, y + i * dy, width, height) + x + i * dx));
        ((__global packed_uint16 *)(lines + x))->v = sum;
    }
#else
    EACH(x, width)
    {
        uint sum = 0;
        for (int i = -5; i <= 5; i++)
            sum += line_at(boxes, y + i * dy, width, height)[x + i * dx];
        lines[x] = sum;
    }
#endif
}

/* The sum of nine samples of a row. */
static int nine_of(__global const ushort *row, int x)
{
    int sum = 0;
    for (int i = -4; i <= 4; i++)
        sum += row[x + i];
    return sum;
}

__kernel void surface_noise(int width, int height, int tile_rows, __global const ushort *RESTRICT f,
                            __global uint *RESTRICT column_sums)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    const int first = row * TILE, end = tile_end(row, tile_rows, height, TILE);
    column_sums += (size_t)row * width;
    EACH(block, (width + NOISE_COLUMNS - 1) / NOISE_COLUMNS)
    {
        const int x = block * NOISE_COLUMNS;
        int windows[NOISE_COLUMNS];
        uint sums[NOISE_COLUMNS];
        for (int i = 0; i < NOISE_COLUMNS; i++) {
            windows[i] = 0;
            sums[i] = 0;
        }
        for (int j = -4; j <= 4; j++)
            for (int i = 0; i < NOISE_COLUMNS; i++)
                windows[i] += nine_of(line_at(f, first + j, width, height), x + i);
        for (int y = first; y < end; y++) {
            __global const ushort *here = line_at(f, y, width, height);
            __global const ushort *next = line_at(f, y + 5, width, height);
            __global const ushort *last = line_at(f, y - 4, width, height);
            for (int i = 0; i < NOISE_COLUMNS; i++) {
                const int less = 81 * (int)here[x + i] - windows[i];
                /* The quotient is rounded down before its sign goes. */
                sums[i] += (uint)(less < 0 ? 80 - less : less) / 81;
                windows[i] += nine_of(next, x + i) - nine_of(last, x + i);
            }
        }
        for (int i = 0; i < min(NOISE_COLUMNS, width - x); i++)
            column_sums[x + i] = sums[i];
    }
}

__kernel void surface_units(int width, int height, int tile_columns, int tile_rows, __global const uint *sums,
                            __global uint *units)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    EACH(column, tile_columns)
    {
        const ulong2 all = around(sums, column, row, tile_columns, tile_rows, width, height, TILE);
        const ulong noise = max((16 * all.x + all.y / 2) / all.y, 64UL);
        units[row * tile_columns + column] = (uint)((99 * noise) >> 4);
    }
}

static uint limit_of(uint limit, uint unit) { return (uint)min(((ulong)limit * unit) >> 8, 0x7fffffffUL); }

static int is_judged(__global const int4 *rois, int roi_count, __global const uchar *ignored, int use_ignored,
                     int ignored_first, int width, int x, int y)
{
    if (!roi_bits(rois, roi_count, x, y, 1))
        return 0;
    return !use_ignored || !(ignored[(size_t)(y - ignored_first) * ((width + 7) / 8) + x / 8] & 0x80u >> (x & 7));
}

static int is_judged_cell(__global const int4 *rois, int roi_count, __global const uchar *ignored, int use_ignored,
                          int ignored_first, int width, int column, int row, int columns, int rows)
{
    return column >= BORDER_CELLS && row >= BORDER_CELLS && column < columns - BORDER_CELLS &&
           row < rows - BORDER_CELLS &&
           is_judged(rois, roi_count, ignored, use_ignored, ignored_first, width, column * CELL + CELL / 2,
                     row * CELL + CELL / 2);
}

/* The values of the lines of a direction in a row: the line through a pixel, and those beside it. */
typedef struct {
    __global const uint *middle, *one, *other;
} sides_t;

/* Those of row `y`, which has all three. */
static sides_t sides_of(__global const uint *lines, int width, int y, int dx, int dy)
{
    const size_t pitch = pitch_of(width);
    const sides_t sides = {lines + y * pitch + PAD, lines + (y + dx) * pitch + PAD - dy,
                           lines + (y - dx) * pitch + PAD + dy};
    return sides;
}

/* How much darker the line is than both sides, and how much brighter. */
static int2 line_of(sides_t sides, int x)
{
    const int middle = (int)sides.middle[x], one = (int)sides.one[x], other = (int)sides.other[x];
    return (int2)(min(one, other) - middle, middle - max(one, other));
}

/* Pixels from a line to those beside it, along each axis. */
#define SIDE 3

/* `strongest` of a pixel after a line whose value exceeds its limit. Of equals the first channel counts. */
static int with_line(int before, uint value, uint limit, int channel)
{
    const int excess = excess_of(value, limit);
    const int most = abs(before) >> CHANNEL_BITS;
    const int first = abs(before) & ((1 << CHANNEL_BITS) - 1);
    if (before && (excess < most || (excess == most && first < channel)))
        return before;
    const int found = (excess << CHANNEL_BITS) + channel;
    return channel < FIRST_BRIGHT ? -found : found;
}

/* The same after the line of a direction, which is darker than both sides, brighter or neither. */
static int with_lines(int before, int2 line, int most_dark, int most_bright, int direction)
{
    if (line.x > most_dark)
        return with_line(before, (uint)line.x, (uint)most_dark, FIRST_DARK + direction);
    if (line.y > most_bright)
        return with_line(before, (uint)line.y, (uint)most_bright, FIRST_BRIGHT + direction);
    return before;
}

#if BY_ROWS
__kernel void surface_side(int width, int height, int dx, int dy, int direction, __global const uint *lines,
                           int tile_columns, int tile_rows, __global const uint *units, __global const uint *limits,
                           __global int *strongest)
{
    const int y = get_global_id(1);
    strongest += (size_t)y * width;
    /* The first direction finds what was left of the frame before. */
    for (int x = 0; direction == 0 && x < width; x++)
        strongest[x] = 0;
    /* Pixels nearer to an edge are not judged. */
    if (y < SIDE || y >= height - SIDE)
        return;
    const sides_t sides = sides_of(lines, width, y, dx, dy);
    const uint dark = limits[FIRST_DARK + direction], bright = limits[FIRST_BRIGHT + direction];
    units += tile_of(y, tile_rows) * tile_columns;
    for (int tile = 0; tile < tile_columns; tile++) {
        const int first = max(tile * TILE, SIDE), end = min(tile_end(tile, tile_columns, width, TILE), width - SIDE);
        const int most_dark = (int)limit_of(dark, units[tile]), most_bright = (int)limit_of(bright, units[tile]);
        int any = 0;
        for (int x = first; x < end; x++) {
            const int2 line = line_of(sides, x);
            any |= (line.x > most_dark) | (line.y > most_bright);
        }
        for (int x = first; any && x < end; x++)
            strongest[x] = with_lines(strongest[x], line_of(sides, x), most_dark, most_bright, direction);
    }
}
#else
/* Steps along x and y from one box of a line to the next one, by direction. */
__constant const int steps[] = {STEPS};
/* Pixels of a work-group, and those beside them whose lines, and whose boxes, it needs. */
#define LINES_X 64
#define LINES_Y 16
#define ITEMS_Y 4
#define AROUND (SIDE + 15)
#define SUMS_X (LINES_X + 2 * SIDE)
#define SUMS_Y (LINES_Y + 2 * SIDE)
#define BOXES_X (LINES_X + 2 * AROUND)
#define BOXES_Y (LINES_Y + 2 * AROUND)

/* All directions at once: boxes and lines stay in local memory. */
__kernel __attribute__((reqd_work_group_size(LINES_X, ITEMS_Y, 1))) void
surface_sides(int width, int height, __global const ushort *boxes, int tile_columns, int tile_rows,
              __global const uint *units, __global const uint *limits, __global int *strongest)
{
    __local ushort near_boxes[BOXES_Y * BOXES_X];
    __local uint lines[SUMS_Y * SUMS_X];
    const int item_x = get_local_id(0), item_y = get_local_id(1);
    const int item = item_y * LINES_X + item_x;
    const int x0 = get_group_id(0) * LINES_X, y0 = get_group_id(1) * LINES_Y;
    for (int i = item; i < BOXES_Y * BOXES_X; i += LINES_X * ITEMS_Y) {
        const int x = clamp(x0 - AROUND + i % BOXES_X, 0, width - 1);
        near_boxes[i] = line_at(boxes, y0 - AROUND + i / BOXES_X, width, height)[x];
    }
    const int x = x0 + item_x;
    /* The rows of a work-group are of one tile. */
    const uint unit = units[tile_of(y0, tile_rows) * tile_columns + tile_of(min(x, width - 1), tile_columns)];
    int found[LINES_Y / ITEMS_Y] = {0, 0, 0, 0};
    for (int direction = 0; direction < FIRST_BRIGHT - FIRST_DARK; direction++) {
        const int dx = steps[2 * direction], dy = steps[2 * direction + 1];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = item; i < SUMS_Y * SUMS_X; i += LINES_X * ITEMS_Y) {
            const int middle = (i / SUMS_X + AROUND - SIDE) * BOXES_X + i % SUMS_X + AROUND - SIDE;
            uint sum = 0;
            for (int j = -5; j <= 5; j++)
                sum += near_boxes[middle + j * (dy * BOXES_X + dx)];
            lines[i] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int most_dark = (int)limit_of(limits[FIRST_DARK + direction], unit);
        const int most_bright = (int)limit_of(limits[FIRST_BRIGHT + direction], unit);
        for (int n = 0; n < LINES_Y / ITEMS_Y; n++) {
            const int at = (SIDE + n * ITEMS_Y + item_y) * SUMS_X + SIDE + item_x;
            const int aside = dx * SUMS_X - dy;
            const int middle = (int)lines[at], one = (int)lines[at + aside], other = (int)lines[at - aside];
            const int2 line = (int2)(min(one, other) - middle, middle - max(one, other));
            found[n] = with_lines(found[n], line, most_dark, most_bright, direction);
        }
    }
    for (int n = 0; n < LINES_Y / ITEMS_Y; n++) {
        const int y = y0 + n * ITEMS_Y + item_y;
        const bool is_inside = x >= SIDE && y >= SIDE && x < width - SIDE && y < height - SIDE;
        if (x < width && y < height)
            strongest[(size_t)y * width + x] = is_inside ? found[n] : 0;
    }
}
#endif

/* How much the novelty of a cell exceeds its limit; 0 if it does not, or if the cell is not judged. */
static int excess_of_cell(__global const uint *novelty, uint limit, __global const int4 *rois, int roi_count,
                          __global const uchar *ignored, int use_ignored, int ignored_first, int width, int column,
                          int row, int columns, int rows)
{
    if (column >= columns || row >= rows)
        return 0;
    const uint value = novelty[(size_t)row * columns + column];
    if (value <= limit || !is_judged_cell(rois, roi_count, ignored, use_ignored, ignored_first, width, column, row,
                                          columns, rows))
        return 0;
    return excess_of(value, limit);
}

/* A work-item makes bytes of the mask in the rows of a row of cells: two cells each. */
__kernel void surface_mark(int width, int first, int end, int columns, int rows, __global const uint *novelty,
                           int use_novelty, int use_lines, __global const uint *limits, __global int *strongest,
                           __global const int4 *rois, int roi_count, __global const uchar *ignored, int use_ignored,
                           int ignored_first, __global uchar *mask, ulong mask_offset, __global uint *marked, uint slot)
{
    const int row = first / CELL + get_global_id(1);
    if (get_global_id(0) == 0 && get_global_id(1) == 0)
        marked[slot ^ 1u] = 0;
    const int stride = (width + 7) / 8;
    const uint limit = limit_of(limits[0], NOVELTY_UNIT);
    EACH(column, stride)
    {
        const int x = 8 * column;
        int excess[2] = {0, 0};
        for (int i = 0; i < 2 && use_novelty; i++)
            excess[i] = excess_of_cell(novelty, limit, rois, roi_count, ignored, use_ignored, ignored_first, width,
                                       2 * column + i, row, columns, rows);
        const uint of_cells = (excess[0] ? 0xf0u : 0u) | (excess[1] ? 0x0fu : 0u);
        uint count = 0;
        for (int y = max(row * CELL, first); y < min((row + 1) * CELL, end); y++) {
            __global int *of_row = strongest + (size_t)y * width;
            const size_t at = (size_t)(y - first) * stride + column;
            uint bits = of_cells;
            for (int i = 0; use_lines && i < min(8, width - x); i++)
                bits |= of_row[x + i] ? 0x80u >> i : 0u;
            if (bits)
                bits &= roi_bits(rois, roi_count, x, y, 8);
            if (bits && use_ignored)
                bits &= ~(uint)ignored[(size_t)(y - ignored_first) * stride + column];
            mask[mask_offset + at] = (uchar)bits;
            for (int i = 0; bits && i < 8; i++) {
                const int of_cell = excess[i / 4];
                /* Novelty is the first channel. */
                if (bits & 0x80u >> i && of_cell && (!use_lines || abs(of_row[x + i]) >> CHANNEL_BITS <= of_cell))
                    of_row[x + i] = of_cell << CHANNEL_BITS;
            }
            count += popcount(bits);
        }
        if (count)
            atomic_add(&marked[slot], count);
    }
}

__kernel void surface_cell_peaks(int width, int columns, int rows, int tile_columns, int tile_rows,
                                 __global const uint *novelty, __global const int4 *rois, int roi_count,
                                 __global const uchar *ignored, int use_ignored, int ignored_first,
                                 __global uint *peaks)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    EACH(column, tile_columns)
    {
        uint most = 0;
        for (int j = row * TILE_CELLS; j < tile_end(row, tile_rows, rows, TILE_CELLS); j++)
            for (int i = column * TILE_CELLS; i < tile_end(column, tile_columns, columns, TILE_CELLS); i++) {
                const uint one_more = novelty[(size_t)j * columns + i] + 1;
                if (one_more > most &&
                    is_judged_cell(rois, roi_count, ignored, use_ignored, ignored_first, width, i, j, columns, rows))
                    most = one_more;
            }
        peaks[(size_t)(row * tile_columns + column) * CHANNELS] = most;
    }
}

__kernel void surface_line_peaks(int width, int height, int dx, int dy, int direction, __global const uint *lines,
                                 int tile_columns, int tile_rows, __global const int4 *rois, int roi_count,
                                 __global const uchar *ignored, int use_ignored, int ignored_first, int first, int end,
                                 __global uint *peaks)
{
    const int row = get_global_id(1);
    if (row >= tile_rows)
        return;
    EACH(column, tile_columns)
    {
        uint dark = 0, bright = 0;
        for (int y = max(row * TILE, first); y < min(tile_end(row, tile_rows, height, TILE), end); y++)
            for (int x = column * TILE; x < tile_end(column, tile_columns, width, TILE); x++) {
                if (!is_judged(rois, roi_count, ignored, use_ignored, ignored_first, width, x, y))
                    continue;
                const int2 line = line_of(sides_of(lines, width, y, dx, dy), x);
                dark = max(dark, (uint)max(line.x, 0) + 1);
                bright = max(bright, (uint)max(line.y, 0) + 1);
            }
        __global uint *tile = peaks + (size_t)(row * tile_columns + column) * CHANNELS;
        tile[FIRST_DARK + direction] = dark;
        tile[FIRST_BRIGHT + direction] = bright;
    }
}
