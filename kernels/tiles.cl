/* Appended to common.cl. What textures and surfaces have in common: grey levels, tiles, and the excess of a channel.
 * docs/semantics.md, "Textures", defines them. */
/* A sample in 1/16 grey level of 8 bits. */
static int level_of(uint sample, int depth)
{
#if SAMPLE_BYTES == 1
    return (int)sample << 4;
#else
    const int value = (int)min(sample, (1u << depth) - 1u);
    return depth < 12 ? value << (12 - depth) : value >> (depth - 12);
#endif
}

/* The tile of a row or column: a partial last tile belongs to the one before. `count`: number of tiles. */
static int tile_of(int at, int count) { return min(at / TILE, count - 1); }

/* Where tile `tile` ends along an axis of n pixels, or of n cells of a tile of `side` cells. */
static int tile_end(int tile, int count, int n, int side) { return tile < count - 1 ? (tile + 1) * side : n; }

/* Pixels of tile `tile` along an axis of n pixels. */
static int tile_side(int tile, int count, int n) { return tile_end(tile, count, n, TILE) - tile * TILE; }

/* How much a sum exceeds its limit, in 1/256. */
static int excess_of(uint sum, uint limit)
{
    const uint least = max(limit, 1u);
    return (int)min((256 * (ulong)sum + least / 2) / least, (ulong)(1 << 20));
}
