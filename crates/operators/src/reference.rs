//! Comparison of frames with a trained picture; kernels in `kernels/reference.cl`.

mod aligner;
mod blocks;
mod colour;
mod comparison;
mod learning;
mod marks;
mod part_finder;
mod part_marks;
mod part_reader;
mod part_search;
mod part_settings;
mod part_training;
mod parts;
mod reached;
mod reader;
mod settings;
mod submitted;
mod training;
mod warper;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed},
    ignored::Bitmap,
    kernels::reference_warp::BLOCK,
    layout::{FrameLayout, SampleType},
    learning::Demand,
    mask::packed_stride,
    reference::{Deviations, Inside, Model, Warp},
    sight::Sight,
    threshold::Reached,
};
use clinspect_opencl::{
    Arg, ClContext, Kernel, Mem, Memory, Meter, NdRange, Program, ProgramSource, Submission,
    frame::{ClFrame, Plane},
};

use crate::{
    MaskTarget, WARM_UP_ROWS,
    depth::effective_depth,
    inspection::{
        Alignment, Basis, Inspection, JudgedPixels, Limit, Marked, PackedMask, Picture, Subject,
    },
    marker::{Marker, packed_mask},
    sample_options,
    source::{plain_group, source_args, target_args},
    to_i32, to_u32,
};
use aligner::PartPlace;
pub use colour::{ComponentTraining, HeldOut, Models};
pub use comparison::{Comparison, ComparisonTraining};
pub use learning::learns_factor;
use marks::OpenedMarks;
pub use part_finder::{FoundPart, PartFinder, PartSettings};
pub(crate) use part_marks::PartMarks;
pub(crate) use part_reader::PartReader;
pub use part_search::PartPixels;
pub use part_settings::{MOST_PARTS, PartEdge, PartsSettings};
pub use part_training::{PartTraining, PartsPlan};
pub use parts::Parts;
use reached::Reach;
use reader::DeviceModel;
pub use reader::Reading;
pub use settings::{Align, NormalizeBy, ReferenceSettings, check_opening};
pub use training::{Progress, Training};

/// Two counters of marked pixels, of which the kernel clears the other one.
const COUNTERS: usize = 2;
/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;
/// Rows per work-item of a GPU, a constant of its program.
const GPU_ROWS: usize = 2;

/// What all kernels of a comparison share.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    context: Arc<ClContext>,
    program: Arc<Program>,
    size: [usize; 2],
    sample: SampleType,
    depth: u32,
    layout: Arc<FrameLayout>,
}

impl Base {
    /// Of frames of a layout.
    pub(crate) fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        bit_depth: u32,
    ) -> Result<Self, ClError> {
        let mut options = sample_options(layout.sample, false);
        if !context.caps().is_cpu {
            options += &format!(" -DMARK_ROWS={GPU_ROWS}");
        }
        Ok(Self {
            context: context.clone(),
            program: context.program(ProgramSource::Reference, &options)?,
            size: [layout.width, layout.height],
            sample: layout.sample,
            depth: effective_depth(bit_depth, layout.sample)?,
            layout: Arc::new(layout.clone()),
        })
    }

    fn kernel(&self, name: &'static str) -> Result<(Kernel, [usize; 2]), ClError> {
        let kernel = self.program.kernel(name)?;
        let group = plain_group(&self.context, &kernel)?;
        Ok((kernel, group))
    }

    /// The arguments for a frame.
    fn frame_args<'a>(&self, plane: &'a Plane) -> Result<[Arg<'a>; 5], ClError> {
        let [src, offset, stride] = source_args(plane, None, 0)?;
        let [width, height] = self.size;
        Ok([
            src,
            offset,
            stride,
            Arg::I32(to_i32(width, "a width")?),
            Arg::I32(to_i32(height, "a height")?),
        ])
    }

    pub(crate) fn sample_bits(&self) -> u32 {
        self.sample.bits()
    }

    pub(crate) fn highest(&self) -> i32 {
        (1 << self.depth) - 1
    }

    fn pixels(&self) -> usize {
        self.size[0] * self.size[1]
    }

    fn bytes(&self) -> usize {
        self.pixels() * self.sample.bytes()
    }

    fn mask_bytes(&self) -> usize {
        packed_stride(self.size[0]) * self.size[1]
    }
}

/// The kernels that compare.
#[derive(Debug)]
struct Comparer {
    plain: Kernel,
    level: Kernel,
    group: [usize; 2],
    /// Limits of a comparison without a model, which are not read.
    nothing: Mem,
}

impl Comparer {
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let level = base.program.kernel("reference_mark_level")?;
        Ok(Self {
            plain: base.program.kernel("reference_mark")?,
            group: plain_group(&base.context, &level)?,
            level,
            nothing: base.context.device_memory(BLOCK)?,
        })
    }

    /// Enqueues the comparison. `reading` is `None` if nothing is judged.
    fn mark(
        &mut self,
        (base, marker): (&Base, &mut Marker),
        model: Option<&DeviceModel>,
        frame: &ClFrame,
        reading: Option<&Reading>,
        mask: (Memory, usize),
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        marker.clean(submission)?;
        let [width, height] = base.size;
        let blocks = width.div_ceil(BLOCK);
        let (item_blocks, item_rows, range) = if base.context.caps().is_cpu {
            let bands = (BANDS_PER_UNIT * base.context.caps().compute_units).min(height);
            let rows = height.div_ceil(bands);
            (blocks, rows, NdRange::tiles([1, height.div_ceil(rows)], 1))
        } else {
            let items = [blocks, height.div_ceil(GPU_ROWS)];
            (1, GPU_ROWS, NdRange::cover(items, self.group))
        };
        let plain = Reading::plain();
        let reading = reading.unwrap_or(&plain);
        let (limits, stride) = match model {
            Some(model) => (&model.limits, model.limit_stride),
            None => (&self.nothing, 0),
        };
        let judged = match model {
            Some(model) => model.reader.judged_args(reading)?,
            None => [reading.judged_arg()?, Arg::Mem(&self.nothing), Arg::I32(0)],
        };
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend(judged);
        args.extend([
            reading.level_arg(base),
            Arg::Mem(limits),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Writes(mask.0),
            Arg::U64(mask.1 as u64),
            Arg::I32(to_i32(item_blocks, "blocks")?),
            Arg::I32(to_i32(item_rows, "rows")?),
        ]);
        args.extend(marker.counter_args()?);
        let (kernel, name) = if reading.brightness.is_unit() {
            (&mut self.plain, "reference_mark")
        } else {
            (&mut self.level, "reference_mark_level")
        };
        submission.run(kernel, name, &args, &range)
    }
}

const PICTURE: &str = "reference_picture";

/// The kernel.
#[derive(Debug)]
struct Pictures {
    kernel: Kernel,
    group: [usize; 2],
    /// A mean of zeros, made when a picture is drawn without a model.
    black: Option<Mem>,
}

impl Pictures {
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(PICTURE)?;
        Ok(Self {
            kernel,
            group,
            black: None,
        })
    }
}

/// A comparison of frames of one layout with a model.
#[derive(Debug)]
pub struct Reference {
    base: Base,
    settings: ReferenceSettings,
    learns_factor: bool,
    comparer: Comparer,
    marker: Marker,
    pictures: Pictures,
    /// Made when a threshold is learned.
    reach: Option<Reach>,
    model: Option<DeviceModel>,
    /// Those of the limits that are on the device.
    deviations: Deviations,
    /// What the limits in force see.
    sight: Option<Sight>,
    /// Pixels that are not judged, if there are any.
    ignored: Option<Arc<Bitmap>>,
    /// Frames are not compared.
    is_blind: bool,
    /// How the last frame was compared; `None`: not at all.
    reading: Option<Reading>,
    /// The pixels that are judged of frames that somebody else has read.
    inside: Option<Inside>,
    /// Limits are tried on the last frame, which was found already.
    is_trial: bool,
    /// Opens and moves marks; made when a frame has marks that need this.
    marks: Option<OpenedMarks>,
}

impl Reference {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once. Plane 0 is compared. Without a
    /// model nothing is judged.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that contradict each other or do not fit the frames; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &ReferenceSettings,
    ) -> Result<Self, ClError> {
        settings.check(layout)?;
        let mut operator = Self::prepare(context, layout, settings)?;
        if let Some(model) = &operator.model {
            model.check()?;
        }
        operator.sight = settings.sight(operator.base.depth);
        Self::warm_up(context, layout, settings)?;
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &ReferenceSettings,
    ) -> Result<Self, ClError> {
        let base = Base::new(context, layout, settings.bit_depth)?;
        let model = (settings.model.as_ref())
            .map(|model| DeviceModel::new(&base, settings, model))
            .transpose()?;
        Ok(Self {
            comparer: Comparer::new(&base)?,
            marker: Marker::new(context, &base.program, COUNTERS, !context.caps().is_cpu)?,
            pictures: Pictures::new(&base)?,
            learns_factor: learns_factor(
                settings.deviation_factor,
                settings.model.as_deref(),
                settings.train_frames,
            ),
            deviations: settings.deviations(),
            sight: None,
            settings: settings.clone(),
            ignored: (settings.ignored.as_ref())
                .map(|ignored| Arc::new(ignored.rows(0, layout.height))),
            reach: None,
            model,
            is_blind: false,
            reading: None,
            inside: None,
            is_trial: false,
            marks: None,
            base,
        })
    }

    /// Runs every kernel once: PoCL generates code at the first launch.
    fn warm_up(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &ReferenceSettings,
    ) -> Result<(), ClError> {
        let small = layout.cut(WARM_UP_ROWS);
        let size = [small.width, small.height];
        let pixels = size[0] * size[1];
        let bits = small.sample.bits();
        // An alignment needs some structure, and frames of some size.
        let mean = (0..pixels).map(|at| 256 * (at as u32 * 37 % 251)).collect();
        let model = Model::new(size, bits, 1, mean, vec![0; pixels]);
        let model = Arc::new(model.map_err(ClError::Refused)?);
        let is_alignable = settings.align.check(size, settings.search_range).is_ok();
        let base = ReferenceSettings {
            model: None,
            rois: Vec::new(),
            ignored: None,
            align: if is_alignable {
                settings.align
            } else {
                Align::None
            },
            match_score: 0.0,
            train_frames: 2,
            ..settings.clone()
        };
        let meter = Meter::new(false);
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        let mut warm = Self::prepare(
            context,
            &small,
            &ReferenceSettings {
                model: Some(model),
                ..base
            },
        )?;
        // Memory that nobody wrote shows nothing that can be aligned. The kernels that align are those of a comparison.
        let trained = ReferenceSettings {
            align: Align::None,
            ..warm.settings.clone()
        };
        let mut training = Training::new(&warm.base, &trained)?;
        for _ in 0..2 {
            training.add(&input, &meter)?;
        }
        training.model(&meter)?;
        warm.warm_up_marks(&input, &output, &meter)
    }

    /// Begins a training with the settings in use.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn training(&self) -> Result<Training, ClError> {
        Training::new(&self.base, &self.settings)
    }

    /// Whether frames are compared: there is a model, and no training.
    pub fn is_comparing(&self) -> bool {
        self.model.is_some() && !self.is_blind
    }

    /// Switches comparisons off: masks are then clear, and nothing is judged.
    pub fn set_blind(&mut self, is_blind: bool) {
        self.is_blind = is_blind;
    }

    /// Adds the pixels of the frame of the last [`Inspection::mark`] to the counts: for each threshold, the pixels that it
    /// would mark. Returns whether the frame was compared.
    ///
    /// # Errors
    /// The failing call; nothing is added.
    pub fn count_reached(
        &mut self,
        subject: Subject,
        reached: &mut Reached,
    ) -> Result<bool, ClError> {
        self.count_limits(subject, reached)
    }

    /// Where the pixels of the model lie in the frame of the last [`Inspection::mark`], if the frame was compared.
    pub fn warp(&self) -> Option<&Warp> {
        self.reading.as_ref().map(Reading::warp)
    }

    /// The next frames were read by somebody else where their part lies, and these of their pixels are judged. Also of those
    /// on which limits are tried.
    pub(super) fn judge_inside(&mut self, inside: Inside) {
        self.inside = Some(inside);
        self.is_trial = false;
    }

    /// Finds where a frame lies in the model, and its brightness, without comparing it. Waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn find(&mut self, frame: &ClFrame, meter: &Meter) -> Result<(), ClError> {
        self.reading = None;
        if let Some(model) = self.model.as_mut().filter(|_| !self.is_blind) {
            self.reading = Some(model.reader.read(frame, self.inside.as_ref(), meter)?);
        }
        Ok(())
    }

    /// Whether the marks of the last frame are those of the model's pixels in `OpenedMarks`, not those of its mask.
    fn has_own_marks(&self) -> bool {
        let is_moved = |reading: &Reading| !reading.warp().is_identity();
        self.settings.opening > 0 || self.reading.as_ref().is_some_and(is_moved)
    }

    /// Waits, and reads the count of the frame.
    fn read_count(&mut self, submission: Submission) -> Result<u64, ClError> {
        let mut counts = [0_u32; COUNTERS];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(self.marker.counters(), 0, bytes, "the pixel count")?;
        let slot = self.marker.slot;
        self.marker.slot = 1 - slot;
        Ok(counts[slot].into())
    }

    /// Opens the marks, and moves them to where their pixels lie in the frame. Returns how many there are then.
    fn change_marks(
        &mut self,
        target: MaskTarget,
        packed: PackedMask,
        mut count: u64,
        meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        let base = self.base.clone();
        let base = &base;
        let mut marks = match self.marks.take() {
            Some(marks) => marks,
            None => OpenedMarks::new(base, meter)?,
        };
        let mut submission = base.context.submit(meter, base.mask_bytes());
        if self.settings.opening > 0 {
            self.marker.clean(&mut submission)?;
            let counters = self.marker.counter_args()?;
            marks.open(base, packed, counters, &mut submission)?;
            count = self.read_count(submission)?;
            submission = base.context.submit(meter, base.mask_bytes());
        } else {
            marks.copy(base, packed, false, &mut submission)?;
        }
        let reading = self.reading.as_ref();
        let moved = reading.filter(|reading| !reading.warp().is_identity());
        let warper = self.model.as_ref().and_then(|model| model.reader.warper());
        match moved.zip(warper) {
            Some((reading, warper)) => {
                marks.place(base, (warper, reading.warp()), packed, &mut submission)?;
            }
            None => marks.copy(base, packed, true, &mut submission)?,
        }
        let mask = Memory::Buffer(packed.0);
        (self.marker.expand).run(mask, target, base.size, &mut submission)?;
        submission.send()?.wait("the mask")?;
        self.marks = Some(marks);
        Ok(count)
    }

    /// Runs each kernel once.
    fn warm_up_marks(
        &mut self,
        frame: &ClFrame,
        out: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let subject = Subject::whole(frame, self.base.size[1], meter);
        let target = MaskTarget::Grey(out);
        self.mark(subject, target)?;
        if let Some(model) = &mut self.model {
            let found = match self.settings.align {
                Align::None => PartPlace::default(),
                _ => PartPlace::moved(),
            };
            let mut reading = model.reader.read_at(frame, found, meter)?;
            reading.brightness.offset = 1;
            self.reading = Some(reading);
        }
        self.is_trial = true;
        crate::submitted::write_mask(self, subject, target)?;
        self.is_trial = false;
        let packed = self.marker.packed.clone();
        if let Some(packed) = packed_mask(target, &packed) {
            self.change_marks(target, packed, 1, meter)?;
        }
        self.draw(subject, Picture::Model, out)?;
        crate::submitted::warm_up_list(self, subject)
    }
}

impl Inspection for Reference {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        crate::submitted::mark(self, subject, mask)
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        crate::submitted::list(self, subject, mask, finder, limits)
    }

    fn draw(&mut self, subject: Subject, picture: Picture, out: &ClFrame) -> Result<(), ClError> {
        let base = &self.base;
        let pictures = &mut self.pictures;
        if self.model.is_none() && pictures.black.is_none() {
            let len = base.pixels() * size_of::<u32>();
            let black = base.context.device_memory(len)?;
            base.context
                .zero(&black, len, "a picture without a model")?;
            pictures.black = Some(black);
        }
        let Some(mean) = (self.model.as_ref().map(|model| &model.mean)).or(pictures.black.as_ref())
        else {
            return Ok(());
        };
        let plain = Reading::plain();
        let reading = self.reading.as_ref().unwrap_or(&plain);
        let (number, gain) = match picture {
            Picture::Model => (0, 0.0),
            Picture::Difference(gain) => (1, gain),
        };
        let (frame, judged, bitmap) = match &self.model {
            Some(model) => (
                model.reader.aligned(subject.frame, reading),
                model.reader.judged_args(reading)?,
                model.reader.bitmap_args(),
            ),
            None => (
                subject.frame,
                [reading.judged_arg()?, Arg::Mem(mean), Arg::I32(0)],
                [Arg::Mem(mean), Arg::I32(0)],
            ),
        };
        let [dst, dst_offset, dst_stride] = target_args(out.plane(0)?, 0)?;
        let [width, height] = base.size;
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend(judged);
        args.push(reading.level_arg(base));
        args.extend(bitmap);
        args.extend([
            Arg::Mem(mean),
            Arg::I32(number),
            Arg::I32(to_i32(base.depth.saturating_sub(8) as usize, "bits")?),
            Arg::I32((256.0 * gain).round() as i32),
            dst,
            dst_offset,
            dst_stride,
        ]);
        let range = NdRange::cover([width, height], pictures.group);
        let mut submission = base.context.submit(subject.meter, base.bytes());
        submission.run(&mut pictures.kernel, PICTURE, &args, &range)?;
        submission.send()?.wait("the picture")
    }

    fn limits(&self) -> Vec<Limit> {
        vec![self.learned_limit()]
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        let demand = self.demand_of(subject)?;
        Ok(demand.map(|demand| vec![demand]))
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.try_value(values.and_then(|values| values.first().copied()))
    }

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        let sight = match values.and_then(|values| values.first()) {
            Some(&value) => self.settings_with(value).sight(self.base.depth),
            None => self.sight.clone(),
        };
        Ok(sight.into_iter().collect())
    }

    fn sees_all_alike(&self) -> bool {
        true
    }

    fn basis(&self) -> Basis {
        let reading = self.reading.as_ref();
        Basis {
            judged: JudgedPixels {
                any: reading.map_or(0, Reading::judged_pixels),
                ..JudgedPixels::default()
            },
            pitches: [0.0; 2],
            lattice: None,
            alignment: reading.map(|reading| Alignment {
                shift: reading.warp().shift(self.base.size),
                transform: reading.warp().transform(),
                largest_local_shift: reading.warp().largest_local(),
                misfit: reading.found.misfit,
                step: reading.found.step,
                score: reading.found.score,
                is_matched: reading.is_matched,
            }),
            parts: None,
            ignored: self.ignored.clone(),
        }
    }
}
