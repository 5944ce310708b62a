//! How a frame is read: its shift and its brightness against a picture.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    reference::{
        Brightness, Deviations, FrameSums, Inside, JudgedArea, Limits, Model, Normalize, Totals,
        Warp,
    },
};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, NdRange, frame::ClFrame};

use super::{
    Align, BLOCK, Base, ReferenceSettings,
    aligner::{Aligner, PartPlace},
    warper::Warper,
};
use crate::{to_i32, upload};

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
    /// [`ClError::Refused`] if no pixel can be judged, or frames cannot be aligned with the model.
    pub fn check(&self) -> Result<(), ClError> {
        if let Some(why) = self.reader.why_flat() {
            return Err(ClError::Refused(format!("the model {why}")));
        }
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
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub(super) found: PartPlace,
    pub(super) is_matched: bool,
    pub(super) brightness: Brightness,
    /// Pixels whose samples lie in the frame; none without a match.
    pub(super) inside: Inside,
    /// The judged pixels.
    totals: Totals,
}

impl Reading {
    /// A frame that is read as it is; nothing is judged.
    pub(super) fn plain() -> Self {
        Self {
            found: PartPlace::default(),
            is_matched: true,
            brightness: Brightness::default(),
            inside: Inside::default(),
            totals: Totals::default(),
        }
    }

    /// Where the pixels of the model lie in the frame.
    pub(super) fn warp(&self) -> &Warp {
        &self.found.warp
    }

    /// Number of judged pixels.
    pub fn judged_pixels(&self) -> u64 {
        self.totals.pixels
    }

    /// The kernels' argument `judged`.
    pub(super) fn judged_arg(&self) -> Result<Arg<'static>, ClError> {
        let bounds = self.inside.bounds();
        let [x0, y0, x1, y1] =
            [bounds.x0, bounds.y0, bounds.x1, bounds.y1].map(|v| to_i32(v, "a pixel"));
        Ok(Arg::I32x4([x0?, y0?, x1?, y1?]))
    }

    /// The kernels' argument `level`.
    pub(super) fn level_arg(&self, base: &Base) -> Arg<'static> {
        let Brightness { scale, offset } = self.brightness;
        Arg::I32x4([scale, offset, base.highest(), 0])
    }
}

/// Finds motion and brightness of frames against a picture.
#[derive(Debug)]
pub(super) struct Reader {
    base: Base,
    model: Arc<Model>,
    judged: JudgedArea,
    /// The judged pixels; one byte if all are.
    bitmap: Mem,
    aligner: Option<Aligner>,
    /// Made for the first frame that moved.
    warper: Option<Warper>,
    /// The judged columns of each row; made for the first frame that needs them.
    spans: Option<Mem>,
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
        let judged = JudgedArea::new(model, &settings.rois, ignored.as_ref());
        let normalize = settings.normalize();
        let bytes = judged.bitmap().map_or(&[0][..], |bitmap| bitmap.bytes());
        Ok(Self {
            bitmap: upload(&base.context, bytes, "the judged pixels")?,
            aligner: (settings.align != Align::None)
                .then(|| Aligner::new(base, settings, model, &judged))
                .transpose()?,
            warper: None,
            spans: None,
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

    /// Why frames cannot be aligned with the picture: the end of a sentence that begins with its name. `None` if they can.
    pub fn why_flat(&self) -> Option<String> {
        // Without a least score frames are compared where they are.
        let is_found = self.match_score == 0.0;
        if is_found || self.aligner.as_ref().is_none_or(Aligner::has_structure) {
            return None;
        }
        let highest = self.model.mean().iter().max().map_or(0, |mean| mean >> 8);
        let (filled, depth) = (32 - highest.leading_zeros(), self.base.depth);
        let most = 1_u64 << depth;
        let remedy = if self.base.sample.bits() > 8 && filled < depth {
            format!(
                "Its samples fill {filled} of {depth} bits: set bit-depth to the bits that the camera sends"
            )
        } else {
            "Show the object with more contrast, include edges in rois, or set align=none".into()
        };
        Some(format!(
            "has too little contrast to be aligned: its light and dark areas differ by less than about {} of {most} grey \
             levels. {remedy}",
            (most / 64).max(1)
        ))
    }

    pub fn judged(&self) -> &JudgedArea {
        &self.judged
    }

    /// The kernels' arguments `bitmap` and `has_bitmap`.
    pub fn bitmap_args(&self) -> [Arg<'_>; 2] {
        [
            Arg::Mem(&self.bitmap),
            Arg::I32(i32::from(self.judged.bitmap().is_some())),
        ]
    }

    /// The kernels' arguments `judged`, `spans` and `has_spans` for the frame that was read last.
    pub fn judged_args(&self, reading: &Reading) -> Result<[Arg<'_>; 3], ClError> {
        let has_spans = i32::from(reading.inside.spans().is_some());
        let spans = self.spans.as_ref().unwrap_or(&self.bitmap);
        Ok([reading.judged_arg()?, Arg::Mem(spans), Arg::I32(has_spans)])
    }

    /// The frame that was read last, as the pixels of the model are read from it.
    pub fn aligned<'a>(&'a self, frame: &'a ClFrame, reading: &Reading) -> &'a ClFrame {
        let is_moved = reading.is_matched && !reading.warp().is_identity();
        let warper = self.warper.as_ref().filter(|_| is_moved);
        warper.map_or(frame, Warper::aligned)
    }

    /// Moves pixels of the model to where they lie in frames; `None` if no frame moved yet.
    pub fn warper(&self) -> Option<&Warper> {
        self.warper.as_ref()
    }

    /// Number of judged pixels of a frame that is not moved.
    pub fn all_judged(&self) -> u64 {
        let inside = Inside::new(&Warp::default(), self.base.size);
        self.judged.over(&self.model, &inside).pixels
    }

    /// Reads the frame where it was found, if it matches.
    ///
    /// # Errors
    /// The failing call.
    pub fn read_at(
        &mut self,
        frame: &ClFrame,
        found: PartPlace,
        meter: &Meter,
    ) -> Result<Reading, ClError> {
        if found.score < self.match_score {
            return Ok(Reading {
                found,
                is_matched: false,
                ..Reading::plain()
            });
        }
        let inside = Inside::new(&found.warp, self.base.size);
        self.read_inside(frame, (found, inside), meter)
    }

    /// Reads these pixels of the frame where it was found.
    ///
    /// # Errors
    /// The failing call.
    fn read_inside(
        &mut self,
        frame: &ClFrame,
        (found, inside): (PartPlace, Inside),
        meter: &Meter,
    ) -> Result<Reading, ClError> {
        let mut reading = Reading {
            inside,
            found,
            ..Reading::plain()
        };
        if let Some(spans) = reading.inside.spans() {
            let memory = match self.spans.take() {
                Some(memory) => memory,
                None => {
                    let bytes = self.base.size[1] * size_of::<[i32; 2]>();
                    self.base.context.device_memory(bytes)?
                }
            };
            let memory = self.spans.insert(memory);
            let bytes = bytemuck::cast_slice(spans);
            (self.base.context).write(memory, 0, bytes, "the judged columns")?;
        }
        if !reading.warp().is_identity() {
            let warper = match self.warper.take() {
                Some(warper) => warper,
                None => Warper::new(&self.base)?,
            };
            let warper = self.warper.insert(warper);
            warper.run(&self.base, frame, reading.warp(), meter)?;
        }
        reading.totals = self.judged.over(&self.model, &reading.inside);
        if self.sums.is_some() {
            let sums = self.sums(frame, &reading, meter)?;
            reading.brightness = Brightness::new(self.normalize, &reading.totals, &sums);
        }
        Ok(reading)
    }

    /// Finds how to read a frame, and waits. `inside`: the pixels to judge of a frame that was read by somebody else.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        frame: &ClFrame,
        inside: Option<&Inside>,
        meter: &Meter,
    ) -> Result<Reading, ClError> {
        if let Some(inside) = inside {
            let found = PartPlace::default();
            return self.read_inside(frame, (found, inside.clone()), meter);
        }
        let found = match &mut self.aligner {
            Some(aligner) => aligner.find(&self.base, frame, meter)?,
            None => PartPlace::default(),
        };
        self.read_at(frame, found, meter)
    }

    /// Sums the samples of a frame over the judged pixels, and waits.
    fn sums(
        &mut self,
        frame: &ClFrame,
        reading: &Reading,
        meter: &Meter,
    ) -> Result<FrameSums, ClError> {
        let Some(mut sums) = self.sums.take() else {
            return Ok(FrameSums::default());
        };
        let frame = self.aligned(frame, reading).plane(0)?;
        let [src, offset, stride, width, _] = self.base.frame_args(frame)?;
        let mut args = vec![src, offset, stride, width];
        args.extend(self.judged_args(reading)?);
        args.extend(self.bitmap_args());
        let result = sums.of(&self.base, args, meter);
        self.sums = Some(sums);
        result
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

    /// `args`: those of the kernel before its memory.
    fn of(&mut self, base: &Base, args: Vec<Arg>, meter: &Meter) -> Result<FrameSums, ClError> {
        let mut args: Vec<Arg> = args;
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
