//! What a frame demands of the limits of a surface, and what the limits see of it.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    sight::{Sight, reach_of_contrast},
    surface::{
        CHANNEL_NAMES, CHANNELS, DIRECTIONS, FIRST_BRIGHT, FIRST_DARK, MOST_NOVELTY, NOVELTY_UNIT,
    },
};
use clinspect_opencl::{Arg, Meter};

use super::{Surface, memory::size_args};
use crate::to_i32;

/// Logarithm of the contrast at which the responses, 1/2 grey level in the mean, equal what is added to each: ilog(16·36).
const LEAST_CONTRAST: u32 = 256 * 9 + 32;

impl Surface {
    /// Of the frame of the last [`Inspection::mark`](crate::Inspection::mark): by channel the lowest limit at which no pixel is marked, and the mean of
    /// that limit over the tiles; in units of the channel. 0 for channels that are not in use. `None` without a model.
    ///
    /// # Errors
    /// The failing call.
    pub fn peaks(&mut self, meter: &Arc<Meter>) -> Result<Option<[[f64; 2]; CHANNELS]>, ClError> {
        if !self.can_compare() {
            return Ok(None);
        }
        let context = self.context.clone();
        let [columns, rows] = size_args(self.sizes.cells)?;
        let [tile_columns, tile_rows] = size_args(self.sizes.tiles)?;
        let [width, _] = size_args(self.sizes.frame)?;
        let tiles = self.sizes.tiles[0] * self.sizes.tiles[1];
        let mut found = vec![[0_u32; CHANNELS]; tiles];
        let judged = self.judged.args(&self.limit_memory)?;
        // The arguments borrow other fields than the kernels.
        let (steps, pictures, sizes) = (&mut self.steps, &self.pictures, &self.sizes);
        let peaks = Arg::Mem(&pictures.peaks);
        let mut submission = context.submit(meter, sizes.frame[0] * sizes.frame[1]);
        let bytes = size_of_val(found.as_slice());
        submission.zero(&pictures.peaks, bytes, "the tiles' peaks")?;
        if self.settings.channels.novelty {
            let mut args = vec![width, columns, rows, tile_columns, tile_rows];
            args.push(Arg::Mem(&pictures.novelty));
            args.extend_from_slice(&judged);
            args.push(peaks);
            steps.cell_peaks.run(&args, sizes.tiles, &mut submission)?;
        }
        let processed = self.judged.window.span();
        let first = Arg::I32(to_i32(processed.start, "a row")?);
        let end = Arg::I32(to_i32(processed.end, "a row")?);
        let more = [&judged[..], &[first, end, peaks]].concat();
        let made = (sizes, pictures);
        steps.for_lines(
            |s| &mut s.line_peaks,
            sizes.tiles,
            &more,
            made,
            &mut submission,
        )?;
        let read = bytemuck::cast_slice_mut(&mut found);
        submission.read(&pictures.peaks, 0, read, "the tiles' peaks")?;
        let units = &self.units;
        let of = |channel: usize| {
            let needed = found.iter().enumerate().filter_map(|(tile, peaks)| {
                let value = u64::from(peaks[channel].checked_sub(1)?);
                let unit = match channel {
                    0 => NOVELTY_UNIT,
                    _ => *units.get(tile)?,
                };
                Some((256 * value).div_ceil(u64::from(unit)) as f64 / 256.0)
            });
            let needed: Vec<f64> = needed.collect();
            let typical = needed.iter().sum::<f64>() / needed.len().max(1) as f64;
            [needed.into_iter().fold(0.0, f64::max), typical]
        };
        let mut all = [[0.0; 2]; CHANNELS];
        for channel in self.settings.channels.numbers() {
            all[channel] = of(channel);
        }
        Ok(Some(all))
    }

    /// What limits see of the frame of the last mark. Half of the largest novelty that there can be is the reach of novelty.
    pub(super) fn see(&self, limits: &[u32; CHANNELS]) -> Vec<Sight> {
        let sight = |channel: usize, unit: f64, reach: f64| Sight {
            name: CHANNEL_NAMES[channel].into(),
            limit: f64::from(limits[channel]) / 256.0 * unit,
            reach,
        };
        let channels = self.settings.channels;
        let mut sights = Vec::new();
        if channels.novelty {
            if median(&self.contrasts).is_none_or(|contrast| contrast < LEAST_CONTRAST) {
                // All cells look alike. Lines alone would pass a frame without light.
                return vec![sight(0, 1.0, 0.0)];
            }
            sights.push(sight(0, 1.0, MOST_NOVELTY / 2.0));
        }
        if let Some(median) = median(&self.units) {
            let levels = f64::from(1_u32 << self.depth.saturating_sub(8));
            // A line has 99 samples of 1/16 grey level.
            let unit = f64::from(median) / (16.0 * 99.0) * levels;
            let reach = reach_of_contrast(None, self.depth);
            for first in [FIRST_DARK, FIRST_BRIGHT] {
                let of_side = channels
                    .numbers()
                    .filter(|channel| (first..first + DIRECTIONS).contains(channel));
                sights.extend(Sight::best(of_side.map(|k| sight(k, unit, reach))));
            }
        }
        sights
    }
}

/// The value in the middle; of an even number the upper one of the two. `None` of no values.
fn median(values: &[u32]) -> Option<u32> {
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}
