/* Appended to mask_expand.cl. The differences of pixels that are marked by channels.
 *
 * A work-item measures the marked pixels of a sequence of runs. `strongest` has, from element `start` on, `pitch` ints a row: of
 * a marked pixel the number of the strongest channel in the lowest CHANNEL_BITS bits, above it the channel's excess in
 * 1/256 of its limit, and the sign of both. `limits` are those of the channels in 1/256 of their unit, `peak` is the largest of
 * `strongest`, and `sum` is in 1/512 of the unit. Row 0 of the mask is row `first_row` of the plane. With `use_own` only the pixels of
 * `own`, a mask like `mask`, are marked by a channel; the others lie in tiles without the pattern and do not differ. */
__kernel void run_differences(int width, int first_row, __global const int *strongest, ulong start, int pitch,
                              __global const uint *limits, __global const uchar *own, int use_own,
                              __global const uchar *mask, ulong mask_offset, RUNS_ARGS)
{
    own_runs_t measured = own_runs(mask, mask_offset, width, RUNS);
    run_t run;
    const size_t stride = (size_t)(width + 7) / 8;
    while (take_run(&measured, &run)) {
        __global const uchar *row = mask + mask_offset + (size_t)run.y * stride;
        __global const int *of_row = strongest + start + (size_t)(first_row + run.y) * pitch;
        run_difference_t result = {0, 0, 0, 0};
        for (uint x = run.x0; x < run.x1; x++) {
            const uint bit = 0x80u >> (x & 7);
            if (!(row[x / 8] & bit))
                continue;
            if (use_own && !(own[(size_t)run.y * stride + x / 8] & bit)) {
                result.signs |= 8u | 4u;
                continue;
            }
            const int d = of_row[x];
            const uint size = abs(d);
            const int channel = size & ((1u << CHANNEL_BITS) - 1u);
            const long units = ((long)(size >> CHANNEL_BITS) * limits[channel] + 64) >> 7;
            result.sum += d < 0 ? -units : units;
            result.signs |= LEVEL_BIT(channel) | (d > 0 ? 1u : 2u);
            if (size > abs(result.peak))
                result.peak = d;
        }
        measured.out[measured.at] = result;
    }
}
