/* Appended to texture.cl and mask_expand.cl. The kernels of the texture comparison that are the same on all devices:
 * local noise, and the differences of marked pixels. Arguments: see texture.cl. */

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

/* A work-item measures the marked pixels of a sequence of runs. `peak` is the largest of `strongest`; `sum` is in 1/512 of
 * the local noise. Row 0 of the mask is row `first_row` of the plane. With `use_own` only the pixels of `own`, a mask like `mask`, are marked by a channel; the others lie
 * in tiles without the pattern and do not differ. */
__kernel void run_differences(int width, int height, int first_row, __global const ushort *pictures, int pitch,
                              __global const uint *thresholds, __global const uchar *own, int use_own,
                              __global const uchar *mask, ulong mask_offset, __global const run_t *runs, uint run_count,
                              __global run_difference_t *out)
{
    const uint2 measured = own_runs(run_count);
    const size_t stride = (size_t)(width + 7) / 8;
    for (uint n = measured.x; n < measured.y; n++) {
        const run_t run = runs[n];
        __global const uchar *row = mask + mask_offset + (size_t)run.y * stride;
        __global const int *strongest =
            (__global const int *)(pictures + 2 * (size_t)pitch * height) + (size_t)(first_row + run.y) * pitch;
        run_difference_t result = {0, 0, 0, 0};
        for (uint x = run.x0; x < run.x1; x++) {
            const uint bit = 0x80u >> (x & 7);
            if (!(row[x / 8] & bit))
                continue;
            if (use_own && !(own[(size_t)run.y * stride + x / 8] & bit)) {
                result.signs |= 8u | 4u;
                continue;
            }
            const int d = strongest[x];
            const uint size = abs(d);
            const int channel = size & 7;
            const long units = ((long)(size >> 3) * thresholds[channel] + 64) >> 7;
            result.sum += d < 0 ? -units : units;
            result.signs |= LEVEL_BIT(channel) | (d > 0 ? 1u : 2u);
            if (size > abs(result.peak))
                result.peak = d;
        }
        out[n] = result;
    }
}
