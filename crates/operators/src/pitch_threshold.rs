//! Pitch comparison, threshold and packed mask; kernels in `kernels/pitch_threshold.cl`.

mod defects;
mod difference;
mod fixed;
mod ignore;
mod mask;
mod presence;
mod run;
mod scales;
mod settings;
mod wide;

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    ignored::Bitmap,
    layout::{FrameLayout, SampleType},
    pitch::{Axis, Comparison, threshold_q8},
    region::{Rect, area},
    variant::{PitchVariant, pitch_variant, wide_rows},
    window::{Reach, Window},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{ClBuffer, ClContext, Kernel, Mem, Meter, ProgramSource};

use crate::lister::Lister;
pub use clinspect_core::components::{Listed, MeasuredDefect};
use difference::Differences;
use fixed::Fixed;
use ignore::Ignore;
pub use mask::MaskTarget;
pub(super) use mask::packed_mask;
pub use presence::Contrast;
use presence::Presence;
use scales::Scales;
pub use settings::{Borders, Compare, PitchSettings, Polarity};
use settings::{ComparisonWords, check_forced};

use wide::WideSplit;

use super::{
    WARM_UP_ROWS,
    depth::{check_threshold, effective_depth},
    sample_options,
    source::{PlaneImages, plain_group},
    to_i32,
};

/// Two counters of marked pixels, then two of tiles without the pattern, and two that count where coarser levels mark.
type Counters = [u32; 6];
/// Index of the first counter of tiles.
const TILES: usize = 2;
/// Index of the first counter of levels.
const LEVELS: usize = 4;
/// Bytes of a row per work-item of the wide kernel.
const WIDE_BYTES: usize = 16;
/// Work-items per work-group of the wide kernel.
const WIDE_GROUP: usize = 128;
/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;

/// The pixels that a comparison marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marked {
    /// All marked pixels.
    pub pixels: u64,
    /// Pixels that are marked for want of a pattern.
    pub missing: u64,
}

/// The pixels that are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgedPixels {
    /// By any comparison.
    pub any: u64,
    /// By comparisons along x.
    pub x: u64,
    /// By comparisons along y.
    pub y: u64,
}

/// How a kernel is launched.
#[derive(Debug, Clone, Copy)]
enum Launch {
    /// A work-item per byte of the mask, in work-groups of this size.
    Bytes([usize; 2]),
    /// At most this many bands of rows.
    Bands(usize),
    /// The items of the wide kernels, and their work-items per work-group.
    Wide(WideSplit, usize),
}

impl JudgedPixels {
    /// Counts the pixels of rectangles without common pixels, by any comparison, along x and along y.
    fn of(judged: &[Vec<Rect>; 3], ignored: Option<&Arc<Bitmap>>) -> Self {
        let count = |rects: &Vec<Rect>| match ignored {
            Some(ignored) => ignored.count_judged(rects),
            None => area(rects),
        };
        let [any, x, y] = judged;
        Self {
            any: count(any),
            x: count(x),
            y: count(y),
        }
    }
}

/// A pitch comparison for frames of one layout.
#[derive(Debug)]
pub struct PitchThreshold {
    context: Arc<ClContext>,
    kernel: Kernel,
    name: &'static str,
    launch: Launch,
    expand: Kernel,
    expand_group: [usize; 2],
    comparisons: Mem,
    comparison_list: Vec<Comparison>,
    rois: Rois,
    /// The whole plane as a region.
    everywhere: Rois,
    /// Counters of a comparison whose counts are not used.
    unused_counters: Mem,
    /// A faster kernel for some frames.
    fixed: Option<Fixed>,
    /// See [`Counters`]; `slot` selects the next frame's counter of either kind, which is zero.
    counters: Mem,
    slot: usize,
    clean: bool,
    /// The result of the last frame.
    marked: Marked,
    presence: Option<Presence>,
    contrast: Contrast,
    scales: Option<Scales>,
    settings: PitchSettings,
    /// The window of the last frame.
    window: Window,
    /// The comparisons at the pitches themselves.
    at_pitches: Vec<Comparison>,
    weak: Vec<Comparison>,
    /// Memory for a packed mask that is then expanded; allocated at first use.
    packed: Option<Arc<ClBuffer>>,
    lister: Lister,
    differences: Option<Differences>,
    sample: SampleType,
    theta: i32,
    flags: i32,
    width: usize,
    /// Rows of a whole frame.
    height: usize,
    /// The pixels that any comparison, those along x, and those along y judge if no pixel is ignored.
    judged: [Vec<Rect>; 3],
    judged_pixels: JudgedPixels,
    ignore: Option<Ignore>,
    pitches: [f64; 2],
    images: Option<PlaneImages>,
}

impl PitchThreshold {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once. Plane 0 is
    /// judged.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that contradict each other or under which no pixel of the
    /// frame can be judged; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &PitchSettings,
    ) -> Result<Self, ClError> {
        let operator = Self::prepare(context, layout, settings)?;
        settings.check_reach(
            layout.width,
            layout.height,
            operator.ignored().map(Arc::as_ref),
        )?;
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let warm_settings = PitchSettings {
            rois: Vec::new(),
            line_scan: false,
            ..settings.clone()
        };
        let mut warm = Self::prepare(context, &small, &warm_settings)?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        warm.learn_contrast(&input, small.height, &meter)?;
        if warm.contrast != Contrast::Off {
            // The frame of zeros lacks the pattern everywhere, so all kernels run.
            warm.contrast = Contrast::Known(1.0);
        }
        warm.run(&input, MaskTarget::Grey(&output), &meter)?;
        warm.warm_up_levels(&input, &meter)?;
        warm.warm_up_list(&input, &meter)?;
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &PitchSettings,
    ) -> Result<Self, ClError> {
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        check_threshold(settings.threshold, depth)?;
        settings.check()?;
        let (width, height) = (layout.width, layout.height);
        let comparisons = settings.comparisons()?;
        let window = Window::frame(height);
        let judged = judged(settings, &comparisons, width, &window);
        let judged_area = area(&judged[0]);
        if judged_area > u64::from(u32::MAX) {
            return Err(ClError::Refused(format!(
                "{judged_area} judged pixels could overflow a 32-bit counter; set smaller rois"
            )));
        }
        let words = |c| ComparisonWords::new(c, settings.inward(c));
        let comparison_words: Vec<ComparisonWords> = comparisons.iter().map(words).collect();
        let images = settings
            .image
            .then(|| PlaneImages::new(context, &layout.first_plane()))
            .transpose()?;
        check_forced(context, settings, layout)?;
        let options = sample_options(layout.sample, settings.image);
        let bytes = layout.sample == SampleType::U8;
        let variant = settings.variant.unwrap_or_else(|| {
            let moving = settings.may_move;
            pitch_variant(
                context.caps(),
                settings.image,
                bytes,
                layout.bytes(),
                moving,
            )
        });
        // Frames whose rows do not fit, and frames before the pattern is seen, take the general kernel.
        let general = match variant {
            PitchVariant::Fixed => PitchVariant::Wide {
                dot4: context.caps().has_dot4,
            },
            other => other,
        };
        let (source, name) = match general {
            PitchVariant::Bytes => (ProgramSource::PitchThreshold, "pitch_threshold_bytes"),
            PitchVariant::Words => (ProgramSource::PitchWords, "pitch_threshold_words"),
            PitchVariant::Wide { dot4: true } => (ProgramSource::PitchWideDot, "pitch_wide"),
            PitchVariant::Wide { dot4: false } | PitchVariant::Fixed => {
                (ProgramSource::PitchWide, "pitch_wide")
            }
        };
        let mut general_options = options.clone();
        if general != PitchVariant::Bytes {
            general_options += &format!(" -DMODE={}", settings.mode());
        }
        let kernel = context.program(source, &general_options)?.kernel(name)?;
        let fixed = if variant == PitchVariant::Fixed {
            let along_x = comparisons.iter().filter(|c| c.axis == Axis::X);
            let reach = along_x.map(Comparison::margin).max().unwrap_or(0);
            let flags = settings.flags();
            Fixed::new(
                context,
                &options,
                &comparison_words,
                flags,
                [width, height],
                reach,
            )?
        } else {
            None
        };
        let launch = match general {
            PitchVariant::Bytes => Launch::Bytes(plain_group(context, &kernel)?),
            PitchVariant::Wide { .. } | PitchVariant::Fixed => {
                let pixels = WIDE_BYTES / layout.sample.bytes();
                let item_rows = wide_rows(context.caps(), width.div_ceil(pixels) * height);
                let group = WIDE_GROUP.min(context.kernel_work_group(&kernel)?);
                let margin = (comparisons.iter())
                    .filter(|c| c.axis == Axis::X && settings.inward(c).is_some())
                    .map(Comparison::margin)
                    .max();
                let split = WideSplit::new([width, height], margin.unwrap_or(0), pixels, item_rows);
                Launch::Wide(split, group)
            }
            PitchVariant::Words => Launch::Bands(context.caps().compute_units * BANDS_PER_UNIT),
        };
        // A program for images has no kernel that expands a packed mask from a buffer.
        let plain = context.program(
            ProgramSource::PitchMask,
            &sample_options(layout.sample, false),
        )?;
        let expand = plain.kernel("mask_expand")?;
        let by_columns = match settings.variant {
            None => context.caps().is_cpu,
            Some(variant) => variant == PitchVariant::Words,
        };
        let pitches = [settings.pitch_x, settings.pitch_y];
        let presence = (settings.contrast != Contrast::Off)
            .then(|| Presence::new(context, layout, pitches, depth, by_columns))
            .transpose()?;
        let scales = (settings.scales > 0 && !comparisons.is_empty())
            .then(|| Scales::new(context, settings, &comparisons, layout, by_columns))
            .transpose()?;
        let at_pitches = [(Axis::X, pitches[0]), (Axis::Y, pitches[1])];
        let at_pitches = at_pitches
            .into_iter()
            .filter_map(|(axis, pitch)| Comparison::new(axis, pitch, 1))
            .collect();
        let ignore = (settings.ignored.as_ref())
            .map(|pixels| Ignore::new(context, &plain, pixels, height))
            .transpose()?;
        let tall = settings.judged_height(height);
        let wanted = settings.wanted_pixels(width, tall);
        let weak = comparisons.iter().copied();
        let weak = weak.filter(|c| 2 * settings.judged_pixels(&[*c], width, tall) < wanted);
        Ok(Self {
            context: context.clone(),
            expand_group: plain_group(context, &expand)?,
            kernel,
            name,
            launch,
            fixed,
            slot: 0,
            clean: true,
            marked: Marked::default(),
            presence,
            contrast: settings.contrast,
            scales,
            at_pitches,
            weak: weak.collect(),
            settings: settings.clone(),
            window,
            expand,
            comparisons: upload(context, &comparison_words, "comparisons")?,
            comparison_list: comparisons,
            rois: Rois::new(context, &settings.regions(width, &window))?,
            everywhere: Rois::new(context, &[Rect::new(0, 0, width, height)])?,
            unused_counters: counters(context)?,
            counters: counters(context)?,
            packed: None,
            differences: None,
            sample: layout.sample,
            lister: Lister::new(context, &plain, !by_columns)?,
            theta: threshold_q8(settings.threshold),
            flags: settings.flags(),
            width,
            height,
            judged_pixels: JudgedPixels::of(&judged, ignore.as_ref().map(Ignore::bitmap)),
            judged,
            ignore,
            pitches,
            images,
        })
    }

    /// The pitches along x and y in use, px; 0 for none.
    pub fn pitches(&self) -> [f64; 2] {
        self.pitches
    }

    /// Number of judged pixels of a frame; 0 while the minimum contrast is unknown.
    pub fn judged_pixels(&self) -> JudgedPixels {
        match self.contrast {
            Contrast::Unknown => JudgedPixels::default(),
            _ => self.judged_pixels,
        }
    }

    /// The pixels of the last frame that are not judged because they are ignored, if there are any.
    pub fn ignored(&self) -> Option<&Arc<Bitmap>> {
        self.ignore.as_ref().map(Ignore::bitmap)
    }

    /// The comparisons that can judge less than half of the pixels of the regions of interest.
    pub fn weak_comparisons(&self) -> &[Comparison] {
        &self.weak
    }

    /// The minimum contrast in use.
    pub fn contrast(&self) -> Contrast {
        self.contrast
    }

    /// Changes the minimum contrast. The search for the pattern cannot be switched on or off.
    pub fn set_contrast(&mut self, contrast: Contrast) {
        if self.presence.is_some() && contrast != Contrast::Off {
            self.contrast = contrast;
        }
    }

    /// Mean of the samples of the last frame where it shows the pattern, grey levels; `None` unless the
    /// pattern is looked for and found.
    ///
    /// # Errors
    /// The failing read.
    pub fn mean_level(&mut self) -> Result<Option<f64>, ClError> {
        match (self.contrast, &mut self.presence) {
            (Contrast::Known(contrast), Some(presence)) => {
                presence.mean_level(&self.context, contrast)
            }
            _ => Ok(None),
        }
    }

    /// Rows of a web that a strip needs besides its own.
    pub fn reach(&self) -> Reach {
        self.settings.reach(&self.comparison_list)
    }

    /// Takes the window of a frame.
    fn take(&mut self, window: &Window) -> Result<(), ClError> {
        if let Some(presence) = &mut self.presence {
            presence.take(&self.context, window)?;
        }
        let before = std::mem::replace(&mut self.window, *window);
        // Without regions and ignored pixels, strips at all places of a web are judged alike.
        let is_alike = if self.settings.rois.is_empty() && self.ignore.is_none() {
            let web_row = window.web_row;
            *window == Window { web_row, ..before }
        } else {
            *window == before
        };
        if let Some(scales) = &mut self.scales
            && *window != before
        {
            // Blocks count from the web's first row.
            let regions = self.settings.regions(self.width, window);
            scales.take(&self.context, window, &regions)?;
        }
        if !is_alike {
            let regions = self.settings.regions(self.width, window);
            self.rois.update(&self.context, &regions)?;
            let plane = Rect::new(0, 0, self.width, window.height);
            self.everywhere.update(&self.context, &[plane])?;
            self.judged = judged(&self.settings, &self.comparison_list, self.width, window);
            let first_line = window.web_row + window.first as u64;
            let ignored = match &mut self.ignore {
                Some(ignore) => {
                    ignore.show(&self.context, first_line, window.rows)?;
                    Some(ignore.bitmap())
                }
                None => None,
            };
            self.judged_pixels = JudgedPixels::of(&self.judged, ignored);
        }
        Ok(())
    }

    /// The contrast of the pattern in a frame of `rows` rows: the standard deviation of the median tile, in grey
    /// levels of 8 bits. `None` if the pattern is not seen along each axis in use.
    ///
    /// # Errors
    /// The failing call.
    pub fn learn_contrast(
        &mut self,
        frame: &ClFrame,
        rows: usize,
        meter: &Arc<Meter>,
    ) -> Result<Option<f64>, ClError> {
        let Some(presence) = self
            .presence
            .as_mut()
            .filter(|_| !self.at_pitches.is_empty())
        else {
            return Ok(None);
        };
        self.clean = false;
        presence.learn(
            &self.context,
            frame,
            rows,
            &self.at_pitches,
            &self.counters,
            meter,
        )
    }
}

/// The pixels of a window that any comparison, those along x, and those along y judge.
fn judged(
    settings: &PitchSettings,
    comparisons: &[Comparison],
    width: usize,
    window: &Window,
) -> [Vec<Rect>; 3] {
    let along = |axis| {
        let along = comparisons.iter().copied();
        let along: Vec<Comparison> = along.filter(|c| c.axis == axis).collect();
        settings.judged(&along, width, window)
    };
    [
        settings.judged(comparisons, width, window),
        along(Axis::X),
        along(Axis::Y),
    ]
}

/// The regions of interest on the device.
#[derive(Debug)]
struct Rois {
    words: Vec<[i32; 4]>,
    memory: Mem,
}

impl Rois {
    fn new(context: &ClContext, regions: &[Rect]) -> Result<Self, ClError> {
        let words = roi_words(regions)?;
        let memory = upload(context, &words, "regions of interest")?;
        Ok(Self { words, memory })
    }

    /// Writes the regions, if they have changed. Their number stays the same.
    fn update(&mut self, context: &ClContext, regions: &[Rect]) -> Result<(), ClError> {
        let words = roi_words(regions)?;
        if words != self.words {
            let bytes = bytemuck::cast_slice(&words);
            context.write(&self.memory, 0, bytes, "regions of interest")?;
            self.words = words;
        }
        Ok(())
    }
}

fn roi_words(regions: &[Rect]) -> Result<Vec<[i32; 4]>, ClError> {
    let words = |r: &Rect| {
        let [x0, y0, x1, y1] = [r.x0, r.y0, r.x1, r.y1].map(|v| to_i32(v, "a region"));
        Ok([x0?, y0?, x1?, y1?])
    };
    regions.iter().map(words).collect()
}

/// The counters, set to zero.
fn counters(context: &ClContext) -> Result<Mem, ClError> {
    let mem = context.device_memory(size_of::<Counters>())?;
    context.zero(&mem, size_of::<Counters>(), "the pixel counters")?;
    Ok(mem)
}

fn upload<T: bytemuck::NoUninit>(
    context: &ClContext,
    words: &[T],
    subject: &str,
) -> Result<Mem, ClError> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let mem = context.device_memory(bytes.len())?;
    // OpenCL refuses a write of no bytes.
    if !bytes.is_empty() {
        context.write(&mem, 0, bytes, subject)?;
    }
    Ok(mem)
}
