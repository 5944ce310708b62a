//! Sums good frames to a model.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::SampleType,
    ndrange::NdRange,
    reference::{Model, Normalize},
};
use clinspect_opencl::{Arg, Kernel, Mem, Memory, Meter, frame::ClFrame};

use super::{Align, Base, Reading, Reference, ReferenceSettings, reader::Reader};

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
    /// How the last frame was read, if it was added.
    last: Option<Reading>,
    totals: Option<Totals>,
}

/// The sums of each sample and of its square over all frames.
#[derive(Debug)]
struct Totals {
    sums: Vec<u32>,
    squares: Vec<u64>,
}

/// A frame of a training, and a comparison with what the other frames trained.
pub struct HeldOut {
    /// The frame as it was read for the training.
    pub frame: ClFrame,
    /// Compares frames with the others.
    pub others: Reference,
}

impl Training {
    pub(super) fn new(base: &Base, settings: &ReferenceSettings) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(KERNEL)?;
        Ok(Self {
            sums: zeros(base, size_of::<u32>())?,
            squares: zeros(base, size_of::<u64>())?,
            base: base.clone(),
            settings: settings.clone(),
            kernel,
            group,
            frames: 0,
            reader: None,
            last: None,
            totals: None,
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
        self.last = None;
        if !reading.is_matched {
            return Ok(Progress::Unmatched);
        }
        let sums = Sums {
            sums: &self.sums,
            squares: &self.squares,
        };
        let source = (self.reader.as_ref()).map_or(frame, |reader| reader.aligned(frame, &reading));
        sums.add(
            &self.base,
            (&mut self.kernel, self.group),
            source,
            &reading,
            meter,
        )?;
        self.last = Some(reading);
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

    /// The samples of the frame that was added last, as they were added; `None` if the frame was left out.
    ///
    /// # Errors
    /// The failing call.
    pub fn last_samples(
        &mut self,
        frame: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<Option<Vec<u16>>, ClError> {
        let Some(reading) = &self.last else {
            return Ok(None);
        };
        let base = &self.base;
        let memory = [
            zeros(base, size_of::<u32>())?,
            zeros(base, size_of::<u64>())?,
        ];
        let [sums, squares] = &memory;
        let sums = Sums { sums, squares };
        let source = (self.reader.as_ref()).map_or(frame, |reader| reader.aligned(frame, reading));
        sums.add(base, (&mut self.kernel, self.group), source, reading, meter)?;
        let mut samples = vec![0_u32; base.pixels()];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut samples);
        (base.context.submit(meter, bytes.len())).read(sums.sums, 0, bytes, "a frame")?;
        Ok(Some(samples.into_iter().map(|s| s as u16).collect()))
    }

    /// A frame of the training by its [`Self::last_samples`], and a comparison under the settings of `like` with what the
    /// other frames trained; `None` if there is no other one.
    ///
    /// # Errors
    /// The failing call.
    pub fn without(
        &mut self,
        samples: &[u16],
        like: &Reference,
        meter: &Arc<Meter>,
    ) -> Result<Option<HeldOut>, ClError> {
        let totals = match self.totals.take() {
            Some(totals) => totals,
            None => self.read_totals(meter)?,
        };
        let totals = self.totals.insert(totals);
        let others = self.frames.saturating_sub(1);
        if others == 0 {
            return Ok(None);
        }
        let sums = totals.sums.iter().zip(samples);
        let sums: Vec<u32> = sums.map(|(sum, &s)| sum - u32::from(s)).collect();
        let squares = totals.squares.iter().zip(samples);
        let squares: Vec<u64> = squares
            .map(|(sum, &s)| sum - u64::from(s) * u64::from(s))
            .collect();
        let base = &self.base;
        let model = Model::from_sums(base.size, base.sample.bits(), others, &sums, &squares);
        let settings = ReferenceSettings {
            model: Some(Arc::new(model.map_err(ClError::Refused)?)),
            ..like.settings.clone()
        };
        let frame = ClFrame::scratch(&base.context, &base.layout, meter)?;
        let plane = frame.plane(0)?;
        if let Memory::Buffer(buffer) = plane.memory() {
            let bytes: Vec<u8> = match base.sample {
                SampleType::U8 => samples.iter().map(|&s| s as u8).collect(),
                SampleType::U16Le => samples.iter().flat_map(|s| s.to_le_bytes()).collect(),
                SampleType::U16Be => samples.iter().flat_map(|s| s.to_be_bytes()).collect(),
            };
            let row = base.size[0] * base.sample.bytes();
            for (y, row) in bytes.chunks_exact(row).enumerate() {
                buffer.write(
                    plane.offset + y * plane.stride,
                    row,
                    "a frame of a training",
                )?;
            }
        }
        let others = Reference {
            learns_factor: like.learns_factor,
            ..Reference::prepare(&base.context, &base.layout, &settings)?
        };
        Ok(Some(HeldOut { frame, others }))
    }

    /// The model of the frames so far.
    fn model(&self, meter: &Meter) -> Result<Arc<Model>, ClError> {
        let Totals { sums, squares } = self.read_totals(meter)?;
        let bits = self.base.sample.bits();
        Model::from_sums(self.base.size, bits, self.frames, &sums, &squares)
            .map(Arc::new)
            .map_err(ClError::Refused)
    }

    fn read_totals(&self, meter: &Meter) -> Result<Totals, ClError> {
        let mut sums = vec![0_u32; self.base.pixels()];
        let mut squares = vec![0_u64; self.base.pixels()];
        let context = &self.base.context;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut sums);
        (context.submit(meter, bytes.len())).read(&self.sums, 0, bytes, "sums of a training")?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut squares);
        (context.submit(meter, bytes.len())).read(&self.squares, 0, bytes, "sums of a training")?;
        Ok(Totals { sums, squares })
    }
}

/// Zeros for each pixel.
fn zeros(base: &Base, bytes: usize) -> Result<Mem, ClError> {
    let len = base.pixels() * bytes;
    let mem = base.context.device_memory(len)?;
    base.context.zero(&mem, len, "sums of a training")?;
    Ok(mem)
}

/// Sums on the device.
struct Sums<'a> {
    sums: &'a Mem,
    squares: &'a Mem,
}

impl Sums<'_> {
    /// Adds a frame, and waits.
    fn add(
        &self,
        base: &Base,
        (kernel, group): (&mut Kernel, [usize; 2]),
        frame: &ClFrame,
        reading: &Reading,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend([
            reading.level_arg(base),
            Arg::Mem(self.sums),
            Arg::Mem(self.squares),
        ]);
        let mut submission = base.context.submit(meter, base.bytes());
        let range = NdRange::cover(base.size, group);
        submission.run(kernel, KERNEL, &args, &range)?;
        submission.send()?.wait("a frame of a training")
    }
}
