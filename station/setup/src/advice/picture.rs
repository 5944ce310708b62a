//! A frame as the measurements see it: one grey sample a pixel.

use clinspect_core::pitch_estimate::probe_lines;
use gst_video::{VideoFormat, VideoFrameExt};
use run::convert::converted;

/// A picture of one sample a pixel, in grey levels of 8 bits whatever the depth of the frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The samples, row by row.
    pub samples: Vec<f32>,
}

impl Picture {
    /// The frame's brightness. Of `GRAY16_LE` the lowest bits hold samples of `bits`.
    ///
    /// # Errors
    /// A sentence if the frame cannot be read.
    pub fn of(
        buffer: &gst::BufferRef,
        info: &gst_video::VideoInfo,
        bits: u32,
    ) -> Result<Self, String> {
        if !matches!(info.format(), VideoFormat::Gray8 | VideoFormat::Gray16Le) {
            let size = [info.width(), info.height()];
            let (grey, info) = converted(buffer, info, VideoFormat::Gray8, size)?;
            return Self::of(&grey, &info, 8);
        }
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info);
        let frame = frame.map_err(|_| "GStreamer cannot read the frame".to_owned())?;
        let [width, height] = [info.width() as usize, info.height() as usize];
        let stride = usize::try_from(frame.plane_stride()[0]).map_err(|error| error.to_string())?;
        let data = frame.plane_data(0).map_err(|error| error.to_string())?;
        let mut samples = Vec::with_capacity(width * height);
        for row in data.chunks(stride.max(1)).take(height) {
            if info.format() == VideoFormat::Gray8 {
                samples.extend(row.iter().take(width).map(|&sample| f32::from(sample)));
            } else {
                let scale = 256.0 / (1_u32 << bits.clamp(8, 16)) as f32;
                let wide = row.chunks_exact(2).take(width);
                samples.extend(wide.map(|s| f32::from(u16::from_le_bytes([s[0], s[1]])) * scale));
            }
        }
        if samples.len() != width * height {
            return Err("the frame is too short".to_owned());
        }
        Ok(Self {
            width,
            height,
            samples,
        })
    }

    /// Bits that hold every sample of these frames: 8, 10, 12, 14 or 16.
    ///
    /// # Errors
    /// A sentence if a frame cannot be read.
    pub fn bits_of(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> Result<u32, String> {
        if info.format() != VideoFormat::Gray16Le {
            return Ok(8);
        }
        let whole = Self::of(buffer, info, 16)?;
        let most = whole.samples.iter().copied().fold(0.0, f32::max) * 256.0;
        let bits = [8, 10, 12, 14].into_iter();
        Ok(bits
            .into_iter()
            .find(|&bits| most < (1_u32 << bits) as f32)
            .unwrap_or(16))
    }

    /// A row.
    pub fn row(&self, y: usize) -> &[f32] {
        self.samples
            .get(y * self.width..(y + 1) * self.width)
            .unwrap_or_default()
    }

    /// Some rows, one after the other, and their length: those that the elements estimate a pitch from.
    pub(super) fn rows(&self) -> (Vec<f32>, usize) {
        let rows = probe_lines(self.height).into_iter();
        (
            rows.flat_map(|y| self.row(y)).copied().collect(),
            self.width,
        )
    }

    /// The same of columns.
    pub(super) fn columns(&self) -> (Vec<f32>, usize) {
        let columns = probe_lines(self.width).into_iter();
        let column = |x: usize| self.samples.iter().skip(x).step_by(self.width.max(1));
        (columns.flat_map(column).copied().collect(), self.height)
    }

    /// Means of blocks of `by` pixels along both axes; pixels beyond the last whole block are left out.
    pub fn reduced(&self, by: usize) -> Self {
        if by <= 1 {
            return self.clone();
        }
        let [width, height] = [self.width / by, self.height / by];
        let mut samples = vec![0.0; width * height];
        for (y, row) in samples.chunks_exact_mut(width.max(1)).enumerate() {
            for line in y * by..(y + 1) * by {
                for (sum, block) in row.iter_mut().zip(self.row(line).chunks_exact(by)) {
                    *sum += block.iter().sum::<f32>();
                }
            }
        }
        let share = 1.0 / (by * by) as f32;
        samples.iter_mut().for_each(|sample| *sample *= share);
        Self {
            width,
            height,
            samples,
        }
    }

    /// The middle of the picture, no larger than this along each axis.
    pub fn middle(&self, most: [usize; 2]) -> Self {
        let [width, height] = [self.width.min(most[0]), self.height.min(most[1])];
        let [left, top] = [(self.width - width) / 2, (self.height - height) / 2];
        let rows = (top..top + height).flat_map(|y| &self.row(y)[left..left + width]);
        Self {
            width,
            height,
            samples: rows.copied().collect(),
        }
    }
}

/// The middle one; 0 if there is none.
pub fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}
