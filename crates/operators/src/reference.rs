//! Comparison of frames with a trained picture; kernels in `kernels/reference.cl`.

mod list;
mod model;
mod picture;
mod reached;
mod reader;
mod run;
mod settings;
mod training;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::{FrameLayout, SampleType},
    reference::{Model, Patches},
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Meter, Program, ProgramSource,
    frame::{ClFrame, Plane},
};

use crate::{
    JudgedPixels, WARM_UP_ROWS,
    depth::effective_depth,
    lister::Lister,
    pitch_threshold::Marked,
    sample_options,
    source::{plain_group, source_args},
    to_i32,
};
use model::DeviceModel;
use picture::Pictures;
pub use picture::Show;
use reached::Reach;
pub use reader::Reading;
use run::{GPU_ROWS, Marker};
pub use settings::{Align, NormalizeBy, ReferenceSettings};
pub use training::{Progress, Training};

/// What all kernels of a comparison share.
#[derive(Debug, Clone)]
struct Base {
    context: Arc<ClContext>,
    program: Arc<Program>,
    size: [usize; 2],
    sample: SampleType,
    depth: u32,
}

impl Base {
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

    fn highest(&self) -> i32 {
        (1 << self.depth) - 1
    }

    fn pixels(&self) -> usize {
        self.size[0] * self.size[1]
    }

    fn bytes(&self) -> usize {
        self.pixels() * self.sample.bytes()
    }
}

/// Where the frame was found in the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// Along x and y, px: the frame was read at `(x + shift[0], y + shift[1])`.
    pub shift: [f64; 2],
    /// The correlation there, 0 to 1; 1 without alignment.
    pub score: f64,
    /// Whether the score is high enough for a comparison.
    pub is_matched: bool,
}

/// A comparison of frames of one layout with a model.
#[derive(Debug)]
pub struct Reference {
    base: Base,
    settings: ReferenceSettings,
    marker: Marker,
    pictures: Pictures,
    lister: Lister,
    /// Made when a threshold is learned.
    reach: Option<Reach>,
    model: Option<DeviceModel>,
    /// Frames are not compared.
    is_blind: bool,
    /// How the last frame was compared; `None`: not at all.
    reading: Option<Reading>,
    marked: Marked,
    /// Memory for a packed mask that is then expanded; allocated at first use.
    packed: Option<Arc<ClBuffer>>,
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
        let operator = Self::prepare(context, layout, settings)?;
        if let Some(model) = &operator.model {
            model.check_judged()?;
        }
        Self::warm_up(context, layout, settings)?;
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &ReferenceSettings,
    ) -> Result<Self, ClError> {
        let mut options = sample_options(layout.sample, false);
        if !context.caps().is_cpu {
            options += &format!(" -DMARK_ROWS={GPU_ROWS}");
        }
        let base = Base {
            context: context.clone(),
            program: context.program(ProgramSource::Reference, &options)?,
            size: [layout.width, layout.height],
            sample: layout.sample,
            depth: effective_depth(settings.bit_depth, layout.sample)?,
        };
        let model = (settings.model.as_ref())
            .map(|model| DeviceModel::new(&base, settings, model))
            .transpose()?;
        Ok(Self {
            marker: Marker::new(&base)?,
            pictures: Pictures::new(&base)?,
            lister: Lister::new(context, &base.program, !context.caps().is_cpu)?,
            settings: settings.clone(),
            reach: None,
            model,
            is_blind: false,
            reading: None,
            marked: Marked::default(),
            packed: None,
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
        let model = Model::new(size, bits, 1, vec![0; pixels], vec![0; pixels]);
        let model = Arc::new(model.map_err(ClError::Refused)?);
        // The alignment needs frames of some size.
        let is_alignable = Patches::side_of(size, settings.search_range as usize).is_ok();
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
        let mut training = warm.training()?;
        for _ in 0..2 {
            training.add(&input, &meter)?;
        }
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

    /// The pixels of the last frame that were judged.
    pub fn judged_pixels(&self) -> JudgedPixels {
        let judged = self.reading.as_ref().map_or(0, Reading::judged_pixels);
        JudgedPixels {
            any: judged,
            ..JudgedPixels::default()
        }
    }

    /// Where the last frame was found; `None` if it was not compared.
    pub fn alignment(&self) -> Option<Alignment> {
        let reading = self.reading.as_ref()?;
        let quarters = f64::from(clinspect_core::reference::QUARTERS);
        Some(Alignment {
            shift: [reading.shift.x, reading.shift.y].map(|v| f64::from(v) / quarters),
            score: reading.score,
            is_matched: reading.is_matched,
        })
    }
}

/// Memory with these words.
fn upload<T: bytemuck::NoUninit>(
    context: &ClContext,
    words: &[T],
    subject: &str,
) -> Result<Mem, ClError> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let mem = context.device_memory(bytes.len())?;
    if !bytes.is_empty() {
        context.write(&mem, 0, bytes, subject)?;
    }
    Ok(mem)
}
