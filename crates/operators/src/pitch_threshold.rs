//! Pitch comparison, threshold and packed mask; kernels in `kernels/pitch_threshold.cl`.

mod defects;
mod difference;
mod fixed;
mod ignore;
mod mask;
mod prepare;
mod presence;
mod rois;
mod run;
mod scale_tiles;
mod scales;
mod settings;
mod wide;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Bitmap,
    layout::SampleType,
    pitch::{Axis, Comparison},
    region::{Rect, area},
    window::{Reach, Window},
};
use clinspect_opencl::{ClBuffer, ClContext, Kernel, Mem, Meter, frame::ClFrame};

use crate::lister::Lister;
pub use clinspect_core::components::{Listed, MeasuredDefect};
use difference::Differences;
use fixed::Fixed;
use ignore::Ignore;
pub use mask::MaskTarget;
pub(super) use mask::{Expand, packed_mask};
pub use presence::Contrast;
use presence::Presence;
use rois::Rois;
use scales::Scales;
pub use settings::{Borders, Compare, PitchThresholdSettings, Polarity};
use wide::WideSplit;

use super::source::PlaneImages;

/// Two counters of marked pixels, then two of tiles without the pattern, and two that count where coarser levels mark.
type Counters = [u32; 6];
/// Index of the first counter of tiles.
const TILES: usize = 2;
/// Index of the first counter of levels.
const LEVELS: usize = 4;

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
    expand: Expand,
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
    settings: PitchThresholdSettings,
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
    settings: &PitchThresholdSettings,
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
