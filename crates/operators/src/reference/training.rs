//! Sums good frames to a model.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ndrange::NdRange,
    reference::{Model, Normalize},
};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, frame::ClFrame};

use super::{Align, Base, Reading, ReferenceSettings, reader::Reader};

const KERNEL: &str = "reference_train";

/// What became of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It was added; more are needed.
    Added,
    /// It does not match the first frame, and was left out.
    Unmatched,
    /// It was the last one.
    Done(Arc<Model>),
}

/// A training in progress.
#[derive(Debug)]
pub struct Training {
    base: Base,
    settings: ReferenceSettings,
    kernel: Kernel,
    group: [usize; 2],
    sums: Mem,
    squares: Mem,
    frames: u32,
    /// Reads frames against the first one.
    reader: Option<Reader>,
}

impl Training {
    pub(super) fn new(base: &Base, settings: &ReferenceSettings) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(KERNEL)?;
        let zeros = |bytes: usize| {
            let len = base.pixels() * bytes;
            let mem = base.context.device_memory(len)?;
            base.context.zero(&mem, len, "sums of a training")?;
            Ok::<_, ClError>(mem)
        };
        Ok(Self {
            sums: zeros(size_of::<u32>())?,
            squares: zeros(size_of::<u64>())?,
            base: base.clone(),
            settings: settings.clone(),
            kernel,
            group,
            frames: 0,
            reader: None,
        })
    }

    /// Number of frames so far.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Number of frames that are needed.
    pub fn wanted(&self) -> u32 {
        self.settings.train_frames.max(1)
    }

    /// Adds a frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn add(&mut self, frame: &ClFrame, meter: &Arc<Meter>) -> Result<Progress, ClError> {
        let reading = match &mut self.reader {
            Some(reader) => reader.read(frame, meter)?,
            None => Reading::plain(),
        };
        if !reading.is_matched {
            return Ok(Progress::Unmatched);
        }
        let mut args = self.base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend([
            reading.shift_arg(),
            reading.level_arg(&self.base),
            Arg::Mem(&self.sums),
            Arg::Mem(&self.squares),
        ]);
        let mut submission = self.base.context.submit(meter, self.base.bytes());
        let range = NdRange::cover(self.base.size, self.group);
        submission.run(&mut self.kernel, KERNEL, &args, &range)?;
        submission.send()?.wait("a frame of a training")?;
        self.frames += 1;
        if self.frames >= self.wanted() {
            return Ok(Progress::Done(self.model(meter)?));
        }
        let is_read =
            self.settings.align != Align::None || self.settings.normalize() != Normalize::None;
        if self.frames == 1 && is_read {
            let first = self.model(meter)?;
            self.reader = Some(Reader::new(&self.base, &self.settings, &first)?);
        }
        Ok(Progress::Added)
    }

    /// The model of the frames so far.
    fn model(&self, meter: &Meter) -> Result<Arc<Model>, ClError> {
        let mut sums = vec![0_u32; self.base.pixels()];
        let mut squares = vec![0_u64; self.base.pixels()];
        let context = &self.base.context;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut sums);
        (context.submit(meter, bytes.len())).read(&self.sums, 0, bytes, "sums of a training")?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut squares);
        (context.submit(meter, bytes.len())).read(&self.squares, 0, bytes, "sums of a training")?;
        let bits = self.base.sample.bits();
        Model::from_sums(self.base.size, bits, self.frames, &sums, &squares)
            .map(Arc::new)
            .map_err(ClError::Refused)
    }
}
