//! What a frame demands of the limits of a texture, and what the limits see of it.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    region::Rect,
    sight::Sight,
    texture::{CHANNELS, FIRST_OF_MEAN, PEAK_BORDER, needed_q8, sight},
};
use clinspect_opencl::{Meter, frame::ClFrame};

use super::{
    TILES, Texture,
    memory::{TileNoise, TilePeaks},
    steps::Plane,
};
use crate::{
    Contrast,
    regions::{Rois, or_nowhere},
};

impl Texture {
    /// Of the frame of the last mark: the lowest contrast of a tile with judged pixels, grey levels of 8 bits.
    pub(super) fn lowest_contrast(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<Option<f64>, ClError> {
        let Some(presence) = &mut self.presence else {
            return Ok(None);
        };
        self.marker.is_clean = false;
        let mut submission = self.context.submit(meter, self.width * self.window.height);
        presence.sum(frame, 0.0, self.marker.counters(), TILES, &mut submission)?;
        self.is_summed = true;
        submission.send()?.wait("sums of tiles")?;
        let ignored = self.ignore.as_ref().map(|ignore| ignore.bitmap().clone());
        let (judged, first) = (&self.judged, self.window.first);
        presence.lowest_deviation(&self.context, |[x, y, width, height]| {
            let tile = Rect::new(x, y, width, height);
            let mut inside = judged.iter().map(|rect| rect.intersect(&tile));
            inside.any(|rect| match &ignored {
                _ if rect.is_empty() => false,
                Some(ignored) => {
                    let (y0, y1) = (rect.y0 - first, rect.y1 - first);
                    ignored.count_judged(&[Rect { y0, y1, ..rect }]) > 0
                }
                None => true,
            })
        })
    }

    /// What these thresholds see of the frame of the last mark; `None` without one, or without a tile.
    pub(super) fn see(&mut self, thresholds: &[u32; CHANNELS]) -> Result<Option<Sight>, ClError> {
        if !self.has_noise {
            return Ok(None);
        }
        let contrast = match self.presence.as_mut().filter(|_| self.is_summed) {
            Some(presence) => Some(presence.median_deviation(&self.context)?),
            None => None,
        };
        let noise = self.read_noise()?;
        let noise = [
            noise.iter().map(|tile| tile.residual).collect(),
            noise.iter().map(|tile| tile.mean).collect(),
        ];
        Ok(sight(thresholds, noise, contrast, self.depth))
    }

    /// The noise of the tiles of the last mark.
    fn read_noise(&self) -> Result<Vec<TileNoise>, ClError> {
        let mut noise = vec![TileNoise::default(); self.plane().tiles().count()];
        let bytes = bytemuck::cast_slice_mut(&mut noise);
        (self.context).read(&self.pictures.noise, 0, bytes, "the tiles' noise")?;
        Ok(noise)
    }

    /// Of the frame of the last [`Inspection::mark`](crate::Inspection::mark): by channel the lowest threshold at which no pixel is marked, and the
    /// mean of that threshold over the tiles; in units of the local noise. `None` while a pitch is unknown.
    ///
    /// # Errors
    /// The failing call.
    pub fn peaks(&mut self, meter: &Arc<Meter>) -> Result<Option<[[f64; 2]; CHANNELS]>, ClError> {
        if self.repeats.is_none() || self.contrast == Contrast::Unknown {
            return Ok(None);
        }
        let window = self.window;
        let inner = self.settings.judged(self.width, &window, PEAK_BORDER);
        let inner = Rois::new(&self.context, or_nowhere(&inner))?;
        let context = self.context.clone();
        let mut submission = context.submit(meter, self.width * window.rows);
        let plane = Plane {
            pictures: &self.pictures,
            width: self.width,
            window,
        };
        let rois = [&self.rois, &inner];
        (self.steps).find_peaks(rois, self.ignore.as_ref(), &plane, &mut submission)?;
        let mut found = vec![TilePeaks::default(); plane.tiles().count()];
        let read = bytemuck::cast_slice_mut(&mut found);
        submission.read(&self.pictures.peaks, 0, read, "the tiles' peaks")?;
        let noise = self.read_noise()?;
        let of = |channel: usize| {
            let needed = |which: usize| {
                (found.iter().zip(&noise)).filter_map(move |(peaks, noise)| {
                    let noise = if channel < FIRST_OF_MEAN {
                        noise.residual
                    } else {
                        noise.mean
                    };
                    let sum = peaks[which][channel].checked_sub(1)?;
                    Some(f64::from(needed_q8(sum, channel, noise)) / 256.0)
                })
            };
            let peak = needed(0).fold(0.0, f64::max);
            let inner: Vec<f64> = needed(1).collect();
            let typical = inner.iter().sum::<f64>() / inner.len().max(1) as f64;
            [peak, typical]
        };
        Ok(Some(std::array::from_fn(of)))
    }
}
