//! Chooses and compiles the kernels of a comparison, and runs them once.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    kernels::{pitch_threshold_items::WIDE_BYTES, pitch_threshold_wide::WIDE_GROUP},
    lattice::VectorComparison,
    layout::{FrameLayout, SampleType},
    mask::packed_stride,
    pitch::{Axis, Comparison, threshold_q8},
    region::{Rect, area},
    variant::{PitchThresholdVariant, pitch_threshold_variant, wide_rows},
    window::Window,
};
use clinspect_opencl::{ClContext, Meter, ProgramSource, frame::ClFrame};

use super::{
    COUNTERS, Launch, PitchThreshold,
    along::{self, VectorWords},
    count_judged, judged,
    scales::{Scales, Tiles},
    settings::{ComparisonWords, PitchThresholdSettings, check_forced},
    wide::{Fixed, WideSplit},
};
use crate::{
    Contrast, Inspection, MaskTarget, Repeating, Subject, WARM_UP_ROWS,
    depth::{check_threshold, effective_depth},
    marker::{Marker, counters},
    presence::Presence,
    regions::{Ignore, Rois},
    sample_options,
    source::{PlaneImages, plain_group},
    submitted, upload,
};

/// Bands of rows per compute unit of a CPU.
pub(super) const BANDS_PER_UNIT: usize = 4;

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
        settings: &PitchThresholdSettings,
    ) -> Result<Self, ClError> {
        let operator = Self::prepare(context, layout, settings)?;
        settings.check_reach(
            layout.width,
            layout.height,
            operator.ignore.as_ref().map(|ignore| &**ignore.bitmap()),
        )?;
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let warm_settings = PitchThresholdSettings {
            rois: Vec::new(),
            line_scan: false,
            ..settings.clone()
        };
        let mut warm = Self::prepare(context, &small, &warm_settings)?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        warm.learn_contrast(&input, small.height, [false; 2], &meter)?;
        if warm.contrast != Contrast::Off {
            // The frame of zeros lacks the pattern everywhere, so all kernels run.
            warm.contrast = Contrast::Known(1.0);
        }
        let subject = Subject::whole(&input, small.height, &meter);
        warm.mark(subject, MaskTarget::Grey(&output))?;
        warm.warm_up_levels(&input, &meter)?;
        submitted::warm_up_list(&mut warm, subject)?;
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &PitchThresholdSettings,
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
        let is_turned = settings.turned().is_some();
        let along_axes = settings.along_axes()?;
        let words = |c: &Comparison| ComparisonWords::new(c, settings.inward(c.multiple));
        let comparison_words: Vec<ComparisonWords> = along_axes.iter().map(words).collect();
        let images = settings
            .image
            .then(|| PlaneImages::new(context, &layout.first_plane()))
            .transpose()?;
        check_forced(settings, layout)?;
        let options = sample_options(layout.sample, settings.image);
        let bytes = layout.sample == SampleType::U8;
        let variant = settings.variant.unwrap_or_else(|| {
            pitch_threshold_variant(
                context.caps(),
                settings.image,
                bytes,
                layout.bytes(),
                settings.is_steady,
            )
        });
        // Frames whose rows do not fit, and frames before the pattern is seen, take the general kernel.
        let general = match variant {
            PitchThresholdVariant::Fixed => PitchThresholdVariant::Wide,
            other => other,
        };
        let (source, name) = match general {
            PitchThresholdVariant::Bytes => {
                (ProgramSource::PitchThreshold, "pitch_threshold_bytes")
            }
            PitchThresholdVariant::Words => {
                (ProgramSource::PitchThresholdWords, "pitch_threshold_words")
            }
            PitchThresholdVariant::Wide | PitchThresholdVariant::Fixed => {
                (ProgramSource::PitchThresholdWide, "pitch_threshold_wide")
            }
        };
        let mut general_options = options.clone();
        if general != PitchThresholdVariant::Bytes {
            general_options += &format!(" -DMODE={}", settings.mode());
        }
        let (kernel, name, along_vectors) = if is_turned {
            let (kernel, name, launch) = along::kernel(context, layout, settings)?;
            (kernel, name, Some(launch))
        } else {
            let kernel = context.program(source, &general_options)?.kernel(name)?;
            (kernel, name, None)
        };
        let fixed = if variant == PitchThresholdVariant::Fixed && !is_turned {
            let along_x = along_axes.iter().filter(|c| c.axis == Axis::X);
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
        let launch = match (along_vectors, general) {
            (Some(launch), _) => launch,
            (None, PitchThresholdVariant::Bytes) => Launch::Bytes(plain_group(context, &kernel)?),
            (None, PitchThresholdVariant::Wide | PitchThresholdVariant::Fixed) => {
                let pixels = WIDE_BYTES / layout.sample.bytes();
                let item_rows = wide_rows(context.caps(), width.div_ceil(pixels) * height);
                let group = WIDE_GROUP.min(context.kernel_work_group(&kernel)?);
                let margin = (along_axes.iter())
                    .filter(|c| c.axis == Axis::X && settings.inward(c.multiple).is_some())
                    .map(Comparison::margin)
                    .max();
                let split = WideSplit::new([width, height], margin.unwrap_or(0), pixels, item_rows);
                Launch::Wide(split, group)
            }
            (None, PitchThresholdVariant::Words) => {
                Launch::Bands(context.caps().compute_units * BANDS_PER_UNIT)
            }
        };
        let (of_masks, of_presence) = if is_turned {
            (ProgramSource::LatticeMask, ProgramSource::LatticePresence)
        } else {
            (ProgramSource::PitchThresholdMask, ProgramSource::Presence)
        };
        // A program for images has no kernel that expands a packed mask from a buffer.
        let plain = context.program(of_masks, &sample_options(layout.sample, false))?;
        let by_columns = match settings.variant {
            None => context.caps().is_cpu,
            Some(variant) => variant == PitchThresholdVariant::Words,
        };
        let cell = settings.cell_box();
        let presence = (settings.contrast != Contrast::Off)
            .then(|| Presence::new(context, of_presence, layout, cell, depth, by_columns))
            .transpose()?;
        let scales = if settings.scales > 0 && !along_axes.is_empty() {
            let tiles = if variant == PitchThresholdVariant::Fixed {
                Tiles::new(context, settings, &along_axes, &comparison_words)?
            } else {
                None
            };
            let scales = Scales::new(context, settings, &along_axes, layout, by_columns, tiles)?;
            Some(scales)
        } else {
            None
        };
        let [x, y] = settings.axis_pitches();
        let vectors = match settings.turned() {
            Some(lattice) => lattice.vectors().to_vec(),
            None => vec![[x, 0.0], [0.0, y]],
        };
        let repeats = vectors.iter().enumerate();
        let repeats = repeats.filter_map(|(number, &v)| VectorComparison::new(number, v, 1));
        let comparison_memory = if is_turned {
            let words = |c: &VectorComparison| VectorWords::new(c, settings.inward(c.multiple));
            let words: Vec<VectorWords> = comparisons.iter().map(words).collect();
            upload(context, &words, "comparisons")?
        } else {
            upload(context, &comparison_words, "comparisons")?
        };
        let ignore = (settings.ignored.as_ref())
            .map(|pixels| Ignore::new(context, &plain, pixels, height))
            .transpose()?;
        let tall = settings.judged_height(height);
        let wanted = settings.wanted_pixels(width, tall);
        let weak = comparisons.iter().copied();
        let weak = weak.filter(|c| 2 * settings.judged_pixels(&[*c], width, tall) < wanted);
        Ok(Self {
            context: context.clone(),
            kernel,
            name,
            launch,
            fixed,
            presence,
            contrast: settings.contrast,
            is_measured: false,
            before_trial: None,
            scales,
            repeats: repeats.map(|c| (c.vector, c.distance)).collect(),
            weak: weak.collect(),
            settings: settings.clone(),
            pitches: settings.lengths(),
            lattice: settings.turned(),
            window,
            marker: Marker::new(context, &plain, COUNTERS, !by_columns)?,
            comparisons: comparison_memory,
            comparison_list: comparisons,
            rois: Rois::new(context, &settings.regions(width, &window))?,
            everywhere: Rois::new(context, &[Rect::new(0, 0, width, height)])?,
            unused_counters: counters(context, COUNTERS)?,
            differences: None,
            sample: layout.sample,
            theta: threshold_q8(settings.threshold),
            flags: settings.flags(),
            width,
            row_bytes: width * layout.sample.bytes(),
            stride: packed_stride(width),
            judged_pixels: count_judged(&judged, ignore.as_ref().map(Ignore::bitmap)),
            judged,
            ignore,
            images,
        })
    }
}
