/* Appended to texture.cl. The kernel of the texture comparison that is the same on all devices: the local noise. Arguments:
 * see texture.cl. */

/* One work-item per tile. `around`: rows of tiles above and below, and columns beside, whose noise counts. */
__kernel void texture_noise(int width, int height, int4 tiles, int4 around, __global const uint2 *sums,
                            __global const uint *thresholds, __global tile_noise_t *noise)
{
    const int tile = get_global_id(0);
    if (tile >= tiles.x * tiles.y)
        return;
    const int row = tile / tiles.x;
    const int column = tile - row * tiles.x;
    ulong residual = 0, mean = 0, pixels = 0;
    for (int j = max(row - around.x, 0); j <= min(row + around.y, tiles.y - 1); j++) {
        /* The last row of tiles of a web may have more rows than the others. */
        const int is_last = j == tiles.w - 1;
        const int side = is_last ? tiles.z + height - j * TILE : TILE;
        for (int i = max(column - around.z, 0); i <= min(column + around.z, tiles.x - 1); i++) {
            const uint2 sum = sums[j * tiles.x + i];
            residual += sum.x;
            mean += sum.y;
            pixels += (ulong)side * (ulong)tile_side(i, tiles.x, width);
        }
    }
    tile_noise_t out;
    out.residual = (uint)max((16 * residual + pixels / 2) / pixels, 64UL);
    out.mean = (uint)max((16 * mean + pixels / 2) / pixels, 64UL);
    for (int k = 0; k < CHANNELS; k++)
        out.limits[k] = limit_of(thresholds[k], WINDOW_PIXELS[k], k < FIRST_OF_MEAN ? out.residual : out.mean);
    noise[tile] = out;
}
