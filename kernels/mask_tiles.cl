/* Appended to mask_expand.cl and presence_tiles.cl. Differences of tiles without the pattern. */
/* Difference of pixel (x, y) in the tiles without the pattern, in 1/512 grey level: the one of largest
 * magnitude, the first of equals. Returns 0 if the pattern is present. */
static RARE int tile_difference(int x, int y, int width, int4 tiles, int4 tile_rows, __global const int *table,
                                int *difference)
{
    int found = 0;
    *difference = 0;
    const int at = y - tile_rows.x;
    for (int last_row = 0; last_row < tile_rows.z; last_row++) {
        const int j = last_row ? tiles.w - 1 : clamp(at / tiles.y, 0, tiles.w - 1);
        const int top = tile_start(j, tiles.y, tile_rows.y);
        for (int last = 0; last < 2; last++) {
            const int i = last ? tiles.z - 1 : x / tiles.x;
            const int left = tile_start(i, tiles.x, width);
            if (at < top || at >= top + tiles.y || x < left || x >= left + tiles.x)
                continue;
            const int d = table[(size_t)j * tiles.z + i];
            if (d != TILE_PRESENT && (!found || abs(2 * d) > abs(*difference))) {
                *difference = 2 * d;
                found = 1;
            }
        }
    }
    return found;
}
