/* Appended to tiles.cl and mask_bits.cl. The texture comparison: what its kernels for a CPU and for a GPU share.
 * docs/semantics.md, "Textures", defines it.
 *
 * Five steps follow each other; each has a kernel in texture_rows.cl (CPU) and in texture_items.cl (GPU). Along vectors of any
 * angle texture_vectors.cl does the second step, and a part of the first.
 *
 * texture_smooth    samples -> smooth (f), along_x (f and its two neighbours on the lattice), repeat_x (mean of f over
 *                   one repeat along x)
 * texture_lattice   -> residual (d), repeat (mean over one repeat)
 * texture_tiles     -> mean (C: repeat less its mean over 65x65), and per tile the sums of |d| and |C|
 * texture_noise     -> per tile the local noise and the channels' limits (texture_measure.cl)
 * texture_mark      -> mask, its count, and the strongest channel of each marked pixel
 * texture_peaks     instead of texture_mark, to learn: per tile the channels' largest sums
 *
 * | argument   | meaning                                                                                  |
 * | width, height | of the plane; of a web, the rows that are there                                        |
 * | depth      | bits that samples fill                                                                     |
 * | repeat     | int4 of an axis: pitch in 1/16 px (P); n, e and R of the mean over one repeat               |
 * | pictures   | one memory object with four pictures of `height` rows, `pitch` samples of 16 bits a row, PAD of  |
 * |            | them before column 0: smooth, whose place residual takes; along_x, whose place mean takes;     |
 * |            | repeat_x; repeat. The last two make room for `strongest`, `pitch` ints a row                    |
 * | tiles      | int4: tiles per row; rows of tiles that are there; rows of the first one that come before the   |
 * |            | plane, in a web; number of rows of tiles, if the web ends with the plane, otherwise INT_MAX     |
 * | sums       | per tile two uints: |d| and |C|                                                              |
 * | noise      | per tile a tile_noise_t                                                                       |
 * | rois       | rectangles x0, y0, x1, y1 that are judged, without common pixels needed                         |
 * | strongest  | per pixel an int, written where a pixel is marked: see semantics                                |
 * | peaks      | 0 at entry; per tile one more than the channels' largest sums at its judged pixels (rois without |
 * |            | ignored pixels), then the same at those that are in `inner`, too; 0 where there is no such pixel   |
 * | marked     | two counters: the launch adds to marked[slot], which is 0 at entry, and clears the other one        |
 *
 * Exactness: integers. Sums over windows wrap modulo 2^32 where only their difference is used.
 */
/* Places of the pictures. `size`: samples of a picture. */
#define RESIDUAL(pictures, size) ((__global short *)(pictures) + PAD)
#define MEAN(pictures, size) ((__global short *)(pictures) + (size) + PAD)
#define REPEAT_X(pictures, size) ((pictures) + 2 * (size) + PAD)
#define REPEAT(pictures, size) ((pictures) + 3 * (size) + PAD)
#define STRONGEST(pictures, size) ((__global int *)((pictures) + 2 * (size)))

/* Twin: crates/operators/src/texture/memory.rs (TileNoise). */
typedef struct {
    uint residual, mean;
    uint limits[CHANNELS];
} tile_noise_t;

__constant const int WINDOW_PIXELS[CHANNELS] = {WINDOWS};
/* Channels whose sums have a sign of their own. The others have the sign of the residual. */
#define IS_SIGNED(k) ((k) != 2 && (k) != 3)

/* Index of a row of n samples that is mirrored at its ends without repeating them. */
static int mirror(int at, int n)
{
    if (at >= 0 && at < n)
        return at;
    if (n == 1)
        return 0;
    const int period = 2 * n - 2;
    at %= period;
    at = at < 0 ? at + period : at;
    return min(at, period - at);
}

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

/* The taps of a neighbour `distance` sixteenths away: those at -distance where one of these lies outside. */
typedef struct { int near, far, fraction; } lattice_taps_t;

static lattice_taps_t lattice_taps(int at, int distance, int n)
{
    lattice_taps_t t;
    t.fraction = distance & 15;
    t.near = at + (distance >> 4);
    t.far = t.near + (t.fraction ? 1 : 0);
    if (t.near < 0 || t.far >= n) {
        t.fraction = -distance & 15;
        t.near = at + (-distance >> 4);
        t.far = t.near + (t.fraction ? 1 : 0);
    }
    t.near = clamp(t.near, 0, n - 1);
    t.far = clamp(t.far, 0, n - 1);
    return t;
}

static int interpolate(int near, int far, int fraction) { return ((16 - fraction) * near + fraction * far + 8) >> 4; }

/* (sum * scale + half) >> shift */
static int scaled(uint sum, uint scale, int shift)
{
    return (int)(((ulong)sum * scale + (1UL << (shift - 1))) >> shift);
}

/* Scale of the mean over 65x65. */
#define WIDE_SCALE 3971u
#define WIDE_SHIFT 24

/* The row of tiles of the plane that holds a row. */
static int tile_row_of(int row, int4 tiles)
{
    return min(min((row + tiles.z) / TILE, tiles.w - 1), tiles.y - 1);
}

/* The limit of a channel: threshold * pixels * noise / 2^12. */
static uint limit_of(uint threshold, int pixels, uint noise)
{
    const ulong limit = ((ulong)threshold * (uint)pixels * noise + 2048) >> 12;
    return (uint)min(limit, (ulong)0x7fffffff);
}

/* The strongest channel of a marked pixel: see semantics. */
static int strongest_of(const int *sums, __global const tile_noise_t *noise, int residual)
{
    int best = 0, found = -1, sign = 1;
    for (int k = 0; k < CHANNELS; k++) {
        const uint size = abs(sums[k]);
        if (size <= noise->limits[k])
            continue;
        const int excess = excess_of(size, noise->limits[k]);
        if (found < 0 || excess > best) {
            best = excess;
            found = k;
            sign = (IS_SIGNED(k) ? sums[k] : residual) < 0 ? -1 : 1;
        }
    }
    return sign * (8 * best + found);
}
