//! Sums good frames to a model.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    reference::{Model, Normalize},
};
use clinspect_opencl::{Arg, Kernel, Mem, Meter, NdRange, frame::ClFrame};

use super::{
    Align, Base, Reading, Reference, ReferenceSettings, aligner::PartPlace, reader::Reader,
};

const KERNEL: &str = "reference_train";

/// What became of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It was added.
    Added,
    /// It does not match the first frame, and was left out.
    Unmatched,
    /// It was left out, because no frame can be aligned with it; the end of a sentence that begins with "it".
    Flat(String),
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

    /// Number of frames that were added.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Adds a frame, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn add(&mut self, frame: &ClFrame, meter: &Arc<Meter>) -> Result<Progress, ClError> {
        self.add_at(frame, None, meter)
    }

    /// The same for a frame that was found at a place already.
    ///
    /// # Errors
    /// The failing call.
    pub(super) fn add_at(
        &mut self,
        frame: &ClFrame,
        place: Option<&PartPlace>,
        meter: &Arc<Meter>,
    ) -> Result<Progress, ClError> {
        let reading = match (&mut self.reader, place) {
            (Some(reader), Some(place)) => reader.read_at(frame, place.clone(), meter)?,
            (Some(reader), None) => reader.read(frame, None, meter)?,
            (None, _) => Reading::plain(),
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
        self.frames += 1;
        let is_read = place.is_some()
            || self.settings.align != Align::None
            || self.settings.normalize() != Normalize::None;
        if self.frames == 1 && is_read {
            let first = self.model(meter)?;
            let reader = Reader::new(&self.base, &self.settings, &first)?;
            if let Some(why) = reader.why_flat() {
                self.clear()?;
                return Ok(Progress::Flat(why));
            }
            self.reader = Some(reader);
        }
        self.last = Some(reading);
        Ok(Progress::Added)
    }

    /// Forgets the frames.
    fn clear(&mut self) -> Result<(), ClError> {
        self.frames = 0;
        clear(&self.base, &self.sums, size_of::<u32>())?;
        clear(&self.base, &self.squares, size_of::<u64>())
    }

    /// Where the frame that was added last lies; `None` if the frame was left out.
    pub(super) fn last_place(&self) -> Option<PartPlace> {
        self.last.as_ref().map(|reading| reading.found.clone())
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

    /// The settings of `like` with what the other frames trained than the one with these [`Self::last_samples`]; `None` if
    /// there is no other one.
    ///
    /// # Errors
    /// The failing call.
    pub(super) fn settings_without(
        &mut self,
        samples: &[u16],
        like: &Reference,
        meter: &Arc<Meter>,
    ) -> Result<Option<ReferenceSettings>, ClError> {
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
        Ok(Some(ReferenceSettings {
            model: Some(Arc::new(model.map_err(ClError::Refused)?)),
            ..like.settings.clone()
        }))
    }

    /// The model of the frames that were added.
    ///
    /// # Errors
    /// The failing call.
    pub fn model(&self, meter: &Meter) -> Result<Arc<Model>, ClError> {
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
    let mem = base.context.device_memory(base.pixels() * bytes)?;
    clear(base, &mem, bytes)?;
    Ok(mem)
}

fn clear(base: &Base, mem: &Mem, bytes: usize) -> Result<(), ClError> {
    (base.context).zero(mem, base.pixels() * bytes, "sums of a training")
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
