//! How a frame is read: its shift and its brightness against a picture.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ndrange::NdRange,
    reference::{
        Brightness, Deviations, FrameSums, Judged, Limits, Match, Model, Normalize, Patches, Shift,
        Totals,
    },
    region::Rect,
};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, frame::ClFrame};

use super::{Align, Base, ReferenceSettings};
use crate::{to_i32, upload};

/// Rows of limits have a multiple of this many samples: the kernel's BLOCK.
const BLOCK: usize = 16;

/// The limits around a model, its mean, and what frames need to be read against it.
#[derive(Debug)]
pub(super) struct DeviceModel {
    pub reader: Reader,
    pub limits: Mem,
    /// Bytes of a row of limits.
    pub limit_stride: usize,
    pub mean: Mem,
}

impl DeviceModel {
    pub fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Arc<Model>,
    ) -> Result<Self, ClError> {
        let reader = Reader::new(base, settings, model)?;
        let limits = Limits::new(model, reader.judged(), &settings.deviations());
        let row_samples = base.size[0].next_multiple_of(BLOCK);
        let bytes = limits.to_bytes(row_samples, base.sample.bytes());
        Ok(Self {
            reader,
            limits: upload(&base.context, &bytes, "the limits")?,
            limit_stride: row_samples * base.sample.bytes(),
            mean: upload(&base.context, model.mean(), "the model")?,
        })
    }

    /// Takes the limits around the model for other settings.
    ///
    /// # Errors
    /// The failing call.
    pub fn set_limits(
        &mut self,
        base: &Base,
        model: &Model,
        deviations: &Deviations,
    ) -> Result<(), ClError> {
        let limits = Limits::new(model, self.reader.judged(), deviations);
        let bytes = base.sample.bytes();
        let limits = limits.to_bytes(self.limit_stride / bytes, bytes);
        (base.context).write(&self.limits, 0, &limits, "the limits")
    }

    /// # Errors
    /// [`ClError::Refused`] if no pixel can be judged.
    pub fn check_judged(&self) -> Result<(), ClError> {
        if self.reader.all_judged() > 0 {
            return Ok(());
        }
        Err(ClError::Refused(
            "no pixel of the frame can be judged, because mask and regions of ignore cover all those of rois; \
             leave pixels to judge"
                .into(),
        ))
    }
}

/// Work-items that sum a row on a GPU.
const SUM_GROUP: usize = 128;

/// How a frame is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    pub(super) shift: Shift,
    pub(super) score: f64,
    pub(super) is_matched: bool,
    pub(super) brightness: Brightness,
    /// Pixels whose taps lie in the frame; none without a match.
    pub(super) inside: Rect,
    /// The judged pixels.
    totals: Totals,
}

impl Reading {
    /// A frame that is read as it is.
    pub(super) fn plain() -> Self {
        Self {
            shift: Shift::default(),
            score: 1.0,
            is_matched: true,
            brightness: Brightness::default(),
            inside: Rect::new(0, 0, 0, 0),
            totals: Totals::default(),
        }
    }

    /// Where the frame was found.
    pub(super) fn place(&self) -> Match {
        Match {
            shift: self.shift,
            score: self.score,
        }
    }

    /// Number of judged pixels.
    pub fn judged_pixels(&self) -> u64 {
        self.totals.pixels
    }

    /// Whether samples are compared as they are.
    pub(super) fn is_plain(&self) -> bool {
        self.shift == Shift::default() && self.brightness.is_unit()
    }

    /// The kernels' argument `judged`.
    pub(super) fn judged_arg(&self) -> Result<Arg<'static>, ClError> {
        let Rect { x0, y0, x1, y1 } = self.inside;
        let [x0, y0, x1, y1] = [x0, y0, x1, y1].map(|v| to_i32(v, "a pixel"));
        Ok(Arg::I32x4([x0?, y0?, x1?, y1?]))
    }

    /// The kernels' argument `shift`.
    pub(super) fn shift_arg(&self) -> Arg<'static> {
        let ([x, y], [fx, fy]) = (self.shift.whole(), self.shift.rest());
        Arg::I32x4([x, y, fx, fy])
    }

    /// The kernels' argument `level`.
    pub(super) fn level_arg(&self, base: &Base) -> Arg<'static> {
        let Brightness { scale, offset } = self.brightness;
        Arg::I32x4([scale, offset, base.highest(), 0])
    }
}

/// Finds shift and brightness of frames against a picture.
#[derive(Debug)]
pub(super) struct Reader {
    base: Base,
    model: Arc<Model>,
    judged: Judged,
    /// The judged pixels; one byte if all are.
    bitmap: Mem,
    aligner: Option<Aligner>,
    sums: Option<Sums>,
    normalize: Normalize,
    match_score: f64,
}

impl Reader {
    pub fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Arc<Model>,
    ) -> Result<Self, ClError> {
        let ignored = settings
            .ignored
            .as_ref()
            .map(|ignored| ignored.rows(0, base.size[1]));
        let judged = Judged::new(model, &settings.rois, ignored.as_ref());
        let normalize = settings.normalize();
        let bytes = judged.bitmap().map_or(&[0][..], |bitmap| bitmap.bytes());
        Ok(Self {
            bitmap: upload(&base.context, bytes, "the judged pixels")?,
            aligner: (settings.align == Align::Translation)
                .then(|| Aligner::new(base, settings, model, &judged))
                .transpose()?,
            sums: (normalize != Normalize::None)
                .then(|| Sums::new(base))
                .transpose()?,
            normalize,
            match_score: settings.match_score,
            base: base.clone(),
            model: model.clone(),
            judged,
        })
    }

    pub fn judged(&self) -> &Judged {
        &self.judged
    }

    /// The kernels' arguments `bitmap` and `has_bitmap`.
    pub fn bitmap_args(&self) -> [Arg<'_>; 2] {
        [
            Arg::Mem(&self.bitmap),
            Arg::I32(i32::from(self.judged.bitmap().is_some())),
        ]
    }

    /// Number of judged pixels of a frame that is not shifted.
    pub fn all_judged(&self) -> u64 {
        let [width, height] = self.base.size;
        self.judged
            .over(&self.model, &Rect::new(0, 0, width, height))
            .pixels
    }

    /// Finds how to read a frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(&mut self, frame: &ClFrame, meter: &Meter) -> Result<Reading, ClError> {
        let place = match &mut self.aligner {
            Some(aligner) => aligner.find(&self.base, frame, meter)?,
            None => Reading::plain().place(),
        };
        self.read_at(frame, place, meter)
    }

    /// The same for a frame that lies where it was found already.
    ///
    /// # Errors
    /// The failing call.
    pub fn read_at(
        &mut self,
        frame: &ClFrame,
        Match { shift, score }: Match,
        meter: &Meter,
    ) -> Result<Reading, ClError> {
        let mut reading = Reading::plain();
        reading.is_matched = score >= self.match_score;
        reading.score = score;
        reading.shift = shift;
        if !reading.is_matched {
            return Ok(reading);
        }
        reading.inside = inside(self.base.size, reading.shift);
        reading.totals = self.judged.over(&self.model, &reading.inside);
        if let Some(sums) = &mut self.sums {
            let bitmap = [
                Arg::Mem(&self.bitmap),
                Arg::I32(i32::from(self.judged.bitmap().is_some())),
            ];
            let frame = sums.of(&self.base, frame, &reading, bitmap, meter)?;
            reading.brightness = Brightness::new(self.normalize, &reading.totals, &frame);
        }
        Ok(reading)
    }
}

/// The pixels whose taps lie in the frame; a tap of weight 0 does not count.
fn inside([width, height]: [usize; 2], shift: Shift) -> Rect {
    let ([x, y], [fx, fy]) = (shift.whole(), shift.rest());
    let range = |whole: i32, rest: i32, size: usize| {
        let last = whole + i32::from(rest > 0);
        let first = whole.min(0).unsigned_abs() as usize;
        let past = size.saturating_sub(last.max(0).unsigned_abs() as usize);
        [first.min(past), past]
    };
    let ([x0, x1], [y0, y1]) = (range(x, fx, width), range(y, fy, height));
    Rect { x0, y0, x1, y1 }
}

/// Finds the shift of frames.
#[derive(Debug)]
struct Aligner {
    kernel: Kernel,
    group: [usize; 2],
    patches: Patches,
    /// First pixel of each patch with its margins.
    origins: Mem,
    out: Mem,
    bytes: Vec<u8>,
}

const PATCHES: &str = "reference_patches";

impl Aligner {
    fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Model,
        judged: &Judged,
    ) -> Result<Self, ClError> {
        let patches = Patches::new(
            &model.mean_bytes(base.depth),
            base.size,
            settings.search_range as usize,
            |x, y| judged.is_judged(x, y),
        );
        let patches = patches.map_err(ClError::Refused)?;
        let margin = patches.margin();
        let mut origins = Vec::new();
        for &[x, y] in patches.origins() {
            origins.push(to_i32(x - margin, "a pixel")?);
            origins.push(to_i32(y - margin, "a pixel")?);
        }
        let (kernel, group) = base.kernel(PATCHES)?;
        let len = patches.outer_side().pow(2) * patches.origins().len();
        Ok(Self {
            kernel,
            group,
            origins: upload(&base.context, &origins, "patches")?,
            out: base.context.device_memory(len)?,
            bytes: vec![0; len],
            patches,
        })
    }

    fn find(&mut self, base: &Base, frame: &ClFrame, meter: &Meter) -> Result<Match, ClError> {
        let [src, offset, stride, ..] = base.frame_args(frame.plane(0)?)?;
        let (side, count) = (self.patches.outer_side(), self.patches.origins().len());
        let args = [
            src,
            offset,
            stride,
            Arg::Mem(&self.origins),
            Arg::I32(to_i32(side, "a patch")?),
            Arg::I32(to_i32(count, "patches")?),
            Arg::I32(base.depth.saturating_sub(8) as i32),
            Arg::Mem(&self.out),
        ];
        let mut submission = base.context.submit(meter, self.bytes.len());
        let range = NdRange::cover([side, side * count], self.group);
        submission.run(&mut self.kernel, PATCHES, &args, &range)?;
        submission.read(&self.out, 0, &mut self.bytes, "patches of the frame")?;
        Ok(self.patches.find(&self.bytes))
    }
}

/// Sums the samples of frames.
#[derive(Debug)]
struct Sums {
    kernel: Kernel,
    items: usize,
    out: Mem,
    rows: Vec<[u64; 2]>,
}

const SUMS: &str = "reference_sums";

impl Sums {
    fn new(base: &Base) -> Result<Self, ClError> {
        let kernel = base.program.kernel(SUMS)?;
        let rows = base.size[1];
        let items = if base.context.caps().is_cpu {
            1
        } else {
            SUM_GROUP.min(base.context.kernel_work_group(&kernel)?)
        };
        Ok(Self {
            kernel,
            items,
            out: base.context.device_memory(rows * size_of::<[u64; 2]>())?,
            rows: vec![[0; 2]; rows],
        })
    }

    fn of(
        &mut self,
        base: &Base,
        frame: &ClFrame,
        reading: &Reading,
        bitmap: [Arg; 2],
        meter: &Meter,
    ) -> Result<FrameSums, ClError> {
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend([reading.judged_arg()?, reading.shift_arg()]);
        args.extend(bitmap);
        args.extend([
            Arg::Mem(&self.out),
            Arg::Local(self.items * size_of::<[u64; 2]>()),
        ]);
        let range = NdRange::tiles([1, base.size[1]], self.items);
        let mut submission = base.context.submit(meter, base.bytes());
        submission.run(&mut self.kernel, SUMS, &args, &range)?;
        let bytes = bytemuck::cast_slice_mut(&mut self.rows);
        submission.read(&self.out, 0, bytes, "sums of the frame")?;
        let mut sums = FrameSums::default();
        for [sum, squares] in &self.rows {
            sums.sum += sum;
            sums.squares += u128::from(*squares);
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_are_the_pixels_whose_taps_lie_in_the_frame() {
        for x in -30..=30 {
            let rect = inside([5, 4], Shift { x, y: 0 });
            for pixel in 0..5 {
                let first = pixel + x.div_euclid(4);
                let last = first + i32::from(x % 4 != 0);
                let expected = first >= 0 && last < 5;
                assert_eq!(
                    (rect.x0..rect.x1).contains(&(pixel as usize)),
                    expected,
                    "{x} {pixel}"
                );
            }
        }
    }
}
