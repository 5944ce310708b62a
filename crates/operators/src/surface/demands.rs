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
        let more = [&judged[..], &[peaks]].concat();
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
        let units = self.read_units()?;
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

    /// The unit of lines of each tile of the last mark; empty if no lines are looked for.
    fn read_units(&self) -> Result<Vec<u32>, ClError> {
        let Some(of_lines) = &self.pictures.lines else {
            return Ok(Vec::new());
        };
        let mut units = vec![0; self.sizes.tiles[0] * self.sizes.tiles[1]];
        let bytes = bytemuck::cast_slice_mut(&mut units);
        (self.context).read(&of_lines.units, 0, bytes, "the tiles' noise")?;
        Ok(units)
    }

    /// Whether the frame of the last mark shows so little contrast that all its cells look alike.
    fn is_blank(&self) -> Result<bool, ClError> {
        let mut contrasts = vec![0_u32; self.sizes.tiles[0] * self.sizes.tiles[1]];
        let bytes = bytemuck::cast_slice_mut(&mut contrasts);
        (self.context).read(&self.pictures.contrast, 0, bytes, "the tiles' contrast")?;
        let middle = contrasts.len() / 2;
        let (_, &mut median, _) = contrasts.select_nth_unstable(middle);
        Ok(median < LEAST_CONTRAST)
    }

    /// What limits see of the frame of the last mark. Half of the largest novelty that there can be is the reach of novelty.
    pub(super) fn see(&self, limits: &[u32; CHANNELS]) -> Result<Vec<Sight>, ClError> {
        let mut units = self.read_units()?;
        let middle = units.len() / 2;
        let sight = |channel: usize, unit: f64, reach: f64| Sight {
            name: CHANNEL_NAMES[channel].into(),
            limit: f64::from(limits[channel]) / 256.0 * unit,
            reach,
        };
        let channels = self.settings.channels;
        let mut sights = Vec::new();
        if channels.novelty {
            if self.is_blank()? {
                // Lines alone would pass a frame without light.
                return Ok(vec![sight(0, 1.0, 0.0)]);
            }
            sights.push(sight(0, 1.0, MOST_NOVELTY / 2.0));
        }
        if !units.is_empty() {
            let (_, &mut median, _) = units.select_nth_unstable(middle);
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
        Ok(sights)
    }
}
