//! Comparison of a texture with itself; kernels in `kernels/texture*.cl`.

mod along;
mod demands;
mod memory;
mod settings;
mod steps;

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed, MeasuredDefect},
    ignored::Ignored,
    lattice::{Distance, Lattice, VectorComparison},
    layout::FrameLayout,
    learning::{Demand, Rule},
    mask::packed_stride,
    presence::nominal_height,
    region::Rect,
    sight::Sight,
    texture::{
        BORDER, CHANNEL_BITS, CHANNEL_NAMES, CHANNELS, FLATNESS, FLATNESS_NAME, MAX_THRESHOLD,
        Repeat, Repeats, threshold_q8,
    },
    variant::{TextureVariant, texture_items_fit, texture_variant},
    window::{Reach, Window},
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Mem, Memory, Meter, ProgramSource, Rows, Submission, frame::ClFrame,
};

use crate::{
    Contrast, MaskTarget, WARM_UP_ROWS,
    depth::effective_depth,
    inspection::{
        Basis, Inspection, JudgedPixels, Limit, Marked, PackedMask, Picture, Repeating, Subject,
    },
    lister::{Lister, unpack_channel},
    marker::Marker,
    presence::{ComparedFrame, Presence},
    regions::{self, Ignore, Rois, or_nowhere},
    sample_options,
    source::{PlaneImages, source_args},
    submitted::{self, Finished, Submitted},
    to_i32, upload,
};
use memory::Pictures;
pub use settings::{NoiseFrom, TextureSettings};
use steps::{Plane, Steps};

/// Two counters of marked pixels, then two of tiles without the texture.
const COUNTERS: usize = 4;
/// Index of the first counter of tiles.
const TILES: usize = 2;
/// The factor that a threshold learned from good frames lies above the tiles' mean, less 1: measured on real cloth
/// (lab/figures/real-pictures.md).
const MARGIN: f64 = 0.3;
/// The share by which a tile may be flatter than the flattest one of the good frames.
const FLATNESS_MARGIN: f64 = 0.5;
/// What the thresholds see is read from the device in one of this many frames, and in each while they are blind.
const LOOK_FRAMES: u32 = 30;

/// A texture comparison for frames of one layout.
#[derive(Debug)]
pub struct Texture {
    context: Arc<ClContext>,
    settings: TextureSettings,
    steps: Steps,
    marker: Marker,
    pictures: Pictures,
    images: Option<PlaneImages>,
    repeats: Option<Repeats>,
    /// Thresholds in 1/256, on the host and on the device.
    thresholds: Option<[u32; CHANNELS]>,
    threshold_memory: Mem,
    /// The thresholds on the device are tried.
    is_trial: bool,
    /// The minimum contrast that is tried.
    tried_contrast: Option<f64>,
    rois: Rois,
    /// Regions for frames of which nothing is judged.
    nowhere: Rois,
    ignore: Option<Ignore>,
    presence: Option<Presence>,
    contrast: Contrast,
    /// The comparisons with the next repeats.
    nearest: Vec<VectorComparison>,
    /// A comparison that judges every pixel: the regions say where the texture is looked for.
    everywhere: Mem,
    window: Window,
    judged: Vec<Rect>,
    judged_pixels: u64,
    /// The noise of the tiles is that of a frame.
    has_noise: bool,
    /// The sums of the tiles are those of the last frame.
    is_summed: bool,
    /// What the thresholds saw when it was looked at last, and the frames since then.
    looked: Option<(Sight, u32)>,
    /// The mask before tiles without the texture were marked.
    own: Option<Arc<ClBuffer>>,
    width: usize,
    frame_height: usize,
    depth: u32,
    sample_bytes: usize,
}

/// Twin: `comparison_t` in `kernels/pitch_threshold.cl`, with nothing but zeros: a neighbour at the pixel itself.
const EVERY_PIXEL: [i32; 7] = [0; 7];

/// The repeat along rows, if rows are compared.
fn along_rows(repeats: Option<&Repeats>) -> Option<&Repeat> {
    repeats?.axes().map(|[along_x, _]| along_x)
}

impl Texture {
    /// The kernels that compare such frames.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a pitch that the frames do not hold.
    pub(crate) fn variant_of(
        context: &ClContext,
        settings: &TextureSettings,
        layout: &FrameLayout,
    ) -> Result<TextureVariant, ClError> {
        let repeats = settings.repeats(layout.width, layout.height)?;
        let along_x = along_rows(repeats.as_ref());
        let caps = context.caps();
        match settings.variant {
            Some(variant @ TextureVariant::Items) if !texture_items_fit(caps, along_x) => {
                Err(ClError::Refused(format!(
                    "{variant:?} needs larger work-groups or more local memory than {} has",
                    context.device_name()
                )))
            }
            Some(variant) => Ok(variant),
            None => Ok(texture_variant(caps, along_x)),
        }
    }

    /// Changes the pitches along x and y, px, 0 for unknown, or the vectors that take their place. Kernels stay as they are;
    /// those along vectors of any angle are compiled now if they were not needed before.
    ///
    /// # Errors
    /// [`ClError::Refused`] for pitches or vectors that the frames do not hold; those before stay.
    pub fn set_repeats(
        &mut self,
        pitches: [f64; 2],
        lattice: Option<Lattice>,
    ) -> Result<(), ClError> {
        if (pitches, lattice) == (self.settings.pitches, self.settings.lattice) {
            return Ok(());
        }
        let wanted = TextureSettings {
            pitches,
            lattice,
            ..self.settings.clone()
        };
        let repeats = wanted.repeats(self.width, self.frame_height)?;
        let along_x = along_rows(repeats.as_ref());
        if self.steps.variant == TextureVariant::Items
            && !texture_items_fit(self.context.caps(), along_x)
        {
            return Err(ClError::Refused(format!(
                "pitch-x={} needs more local memory than {} has; set pitch-x",
                pitches[0],
                self.context.device_name()
            )));
        }
        self.take_repeats(repeats)?;
        self.settings = wanted;
        self.nearest = self.settings.comparisons();
        if let Some(presence) = &mut self.presence {
            presence.set_pitches(self.settings.cell_box());
            presence.take(&self.context, &self.window)?;
        }
        Ok(())
    }

    fn take_repeats(&mut self, repeats: Option<Repeats>) -> Result<(), ClError> {
        if let Some(Repeats::Vectors(vectors)) = &repeats {
            let along = self.steps.along(&self.context)?;
            along.take(&self.context, vectors)?;
        }
        self.repeats = repeats;
        Ok(())
    }

    /// The kernels in use.
    pub fn variant(&self) -> TextureVariant {
        self.steps.variant
    }

    /// Whether it is known after which distances the texture repeats.
    pub fn has_repeats(&self) -> bool {
        self.repeats.is_some()
    }

    /// The vectors in use, if these do not lie along rows and columns.
    pub fn lattice(&self) -> Option<Lattice> {
        self.settings.turned()
    }

    /// Whether the noise is that of the tiles above.
    pub(crate) fn is_above(&self) -> bool {
        self.settings.noise_from == NoiseFrom::Above
    }

    /// Prepares kernels for frames of `layout`: compiles them and runs them once. Plane 0 is judged.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings under which no pixel of the frame can be judged; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &TextureSettings,
    ) -> Result<Self, ClError> {
        let operator = Self::prepare(context, layout, settings)?;
        settings.check_judged(layout)?;
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let warm_settings = TextureSettings {
            // Short enough for any frame of some size.
            pitches: [Repeat::MIN_PITCH_PX; 2],
            lattice: None,
            thresholds: vec![1.0; CHANNELS],
            rois: Vec::new(),
            line_scan: false,
            ..settings.clone()
        };
        if warm_settings.repeats(small.width, small.height).is_err() {
            return Ok(operator);
        }
        let mut warm = Self::prepare(context, &small, &warm_settings)?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        warm.learn_contrast(&input, small.height, [false; 2], &meter)?;
        if warm.contrast != Contrast::Off {
            // The frame of zeros lacks the texture everywhere, so all kernels run.
            warm.contrast = Contrast::Known(1.0);
        }
        let subject = Subject::whole(&input, small.height, &meter);
        warm.mark(subject, MaskTarget::Grey(&output))?;
        warm.peaks(&meter)?;
        submitted::warm_up_list(&mut warm, subject)?;
        if settings.may_turn || settings.lattice.is_some() {
            let short = [[Repeat::MIN_PITCH_PX, 1.0], [-1.0, Repeat::MIN_PITCH_PX]];
            warm.set_repeats([0.0; 2], Some(Lattice::new(&short)?))?;
            warm.mark(subject, MaskTarget::Grey(&output))?;
        }
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &TextureSettings,
    ) -> Result<Self, ClError> {
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let repeats = settings.repeats(layout.width, layout.height)?;
        let thresholds = settings.thresholds_q8()?;
        let (width, window) = (layout.width, Window::frame(layout.height));
        let images = settings
            .image
            .then(|| PlaneImages::new(context, &layout.first_plane()))
            .transpose()?;
        let variant = Self::variant_of(context, settings, layout)?;
        let source = match variant {
            TextureVariant::Rows => ProgramSource::TextureRows,
            TextureVariant::Items => ProgramSource::TextureItems,
        };
        let program = context.program(source, &sample_options(layout.sample, settings.image))?;
        let is_cpu = context.caps().is_cpu;
        let mut steps = Steps::new(context, &program, variant)?;
        if settings.may_turn {
            steps.along(context)?;
        }
        let presence = (settings.contrast != Contrast::Off)
            .then(|| {
                let program = ProgramSource::Presence;
                let cell = settings.cell_box();
                Presence::new(context, program, layout, cell, depth, is_cpu)
            })
            .transpose()?;
        let mut operator = Self {
            marker: Marker::new(context, &program, COUNTERS, !is_cpu)?,
            pictures: Pictures::new(context, width, &window, steps.scratch_items())?,
            steps,
            images,
            repeats: None,
            thresholds,
            threshold_memory: upload(context, &thresholds.unwrap_or_default(), "thresholds")?,
            is_trial: false,
            tried_contrast: None,
            has_noise: false,
            is_summed: false,
            looked: None,
            rois: Rois::new(context, or_nowhere(&[]))?,
            nowhere: Rois::new(context, or_nowhere(&[]))?,
            ignore: (settings.ignored.as_ref())
                .map(|pixels| Ignore::new(context, &program, pixels, layout.height))
                .transpose()?,
            presence,
            contrast: settings.contrast,
            nearest: settings.comparisons(),
            everywhere: upload(context, &EVERY_PIXEL, "a comparison")?,
            window,
            judged: Vec::new(),
            judged_pixels: 0,
            own: None,
            width,
            frame_height: layout.height,
            depth,
            sample_bytes: layout.sample.bytes(),
            settings: settings.clone(),
            context: context.clone(),
        };
        operator.take_repeats(repeats)?;
        operator.judge_rows(&window)?;
        Ok(operator)
    }

    /// The minimum contrast in use.
    pub fn contrast(&self) -> Contrast {
        self.contrast
    }

    /// Whether pixels are judged.
    fn is_judging(&self) -> bool {
        let has_limits = self.is_trial || self.thresholds.is_some();
        self.repeats.is_some() && has_limits && self.contrast != Contrast::Unknown
    }

    /// The minimum contrast of the tiles of a frame, grey levels of 8 bits; `None` if the texture is not looked for.
    fn contrast_in_use(&self) -> Option<f64> {
        match self.contrast {
            _ if self.is_trial => self.tried_contrast,
            Contrast::Known(level) if self.is_judging() => Some(level),
            _ => None,
        }
    }

    /// Takes the pixels to judge in a window.
    fn judge_rows(&mut self, window: &Window) -> Result<(), ClError> {
        self.window = *window;
        self.judged = self.settings.judged(self.width, window, BORDER);
        (self.rois).replace(&self.context, or_nowhere(&self.judged))?;
        let ignored = regions::show(&mut self.ignore, &self.context, window)?;
        // The bitmap has the window's rows.
        let mut judged = self.judged.clone();
        for rect in &mut judged {
            rect.y0 -= window.first;
            rect.y1 -= window.first;
        }
        self.judged_pixels = regions::count(&judged, ignored);
        if self.judged_pixels > u64::from(u32::MAX) {
            return Err(ClError::Refused(format!(
                "{} judged pixels could overflow a 32-bit counter; set smaller rois",
                self.judged_pixels
            )));
        }
        Ok(())
    }

    /// Takes the window of a strip.
    fn take(&mut self, window: &Window) -> Result<(), ClError> {
        if let Some(presence) = &mut self.presence {
            presence.take(&self.context, window)?;
        }
        if !self.pictures.holds(self.width, window) {
            let size = Window {
                // Rows and tiles of later strips.
                height: window
                    .height
                    .next_multiple_of(2 * clinspect_core::texture::TILE),
                web_row: clinspect_core::texture::TILE as u64 - 1,
                ends: false,
                ..*window
            };
            let items = self.steps.scratch_items();
            self.pictures = Pictures::new(&self.context, self.width, &size, items)?;
        }
        if *window != self.window {
            self.judge_rows(window)?;
        }
        Ok(())
    }

    /// What the steps work on.
    fn plane(&self) -> Plane<'_> {
        Plane {
            pictures: &self.pictures,
            width: self.width,
            window: self.window,
        }
    }
}

impl Repeating for Texture {
    fn pitches(&self) -> [f64; 2] {
        self.settings.lengths()
    }

    fn learn_contrast(
        &mut self,
        frame: &ClFrame,
        rows: usize,
        estimated: [bool; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<f64>, ClError> {
        let is_known = self.repeats.is_some();
        let Some(presence) = self.presence.as_mut().filter(|_| is_known) else {
            return Ok(None);
        };
        self.marker.is_clean = false;
        let distances = self.nearest.iter().map(|c| c.distance);
        let repeats: Vec<(Distance, bool)> = distances.zip(estimated).collect();
        let (context, counters) = (&self.context, self.marker.counters());
        presence.learn(context, frame, rows, &repeats, counters, meter)
    }

    fn set_contrast(&mut self, contrast: Contrast) -> bool {
        self.presence.is_some()
            && contrast != Contrast::Off
            && std::mem::replace(&mut self.contrast, contrast) != contrast
    }
}

/// The thresholds of these limits; an infinite one marks nothing.
fn tried(values: &[f64]) -> [u32; CHANNELS] {
    let value = |k: usize| values.get(k).copied().and_then(threshold_q8);
    std::array::from_fn(|k| value(k).unwrap_or(u32::MAX))
}

/// Whether a buffer has this many bytes.
fn suffices(buffer: &Option<Arc<ClBuffer>>, bytes: usize) -> bool {
    buffer.as_ref().is_some_and(|buffer| buffer.size() >= bytes)
}

impl Submitted for Texture {
    fn marker(&mut self) -> (&Arc<ClContext>, &mut Marker) {
        (&self.context, &mut self.marker)
    }

    fn mask_size(&self, window: &Window) -> (usize, usize) {
        (self.width, self.width * window.height * self.sample_bytes)
    }

    fn look(&mut self, subject: Subject, _leader: Option<&Self>) -> Result<(), ClError> {
        // All frames have the window that the operator was made for.
        if subject.window.is_web {
            self.take(&subject.window)?;
        }
        Ok(())
    }

    fn submit<'a>(
        &'a mut self,
        Subject { frame, .. }: Subject<'a>,
        mask: PackedMask<'a>,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let is_judging = self.is_judging();
        let contrast = self.contrast_in_use();
        self.marker.clean(submission)?;
        let slot = self.marker.slot;
        let plane = Plane {
            pictures: &self.pictures,
            width: self.width,
            window: self.window,
        };
        if let Some(repeats) = &self.repeats {
            if let Some(images) = &mut self.images {
                images.update(frame, submission)?;
            }
            let image = self.images.as_ref().and_then(|images| images.get(0));
            let source = source_args(frame.plane(0)?, image, 0)?;
            (self.steps).make_pictures(source, self.depth, repeats, &plane, submission)?;
            let from = self.settings.noise_from;
            (self.steps).make_noise(from, &self.threshold_memory, &plane, submission)?;
        }
        let rois = if is_judging {
            &self.rois
        } else {
            // The mask is clear.
            &self.nowhere
        };
        let counters = self.marker.counter_args()?;
        (self.steps).mark(rois, mask, counters, &plane, submission)?;
        self.has_noise = true;
        self.is_summed = contrast.is_some() && self.presence.is_some();
        if let (Some(level), Some(presence)) = (contrast, &mut self.presence) {
            presence.sum(
                frame,
                level,
                self.marker.counters(),
                TILES + slot,
                submission,
            )?;
        } else if self.presence.is_some() {
            // The search would have cleared the counter of the next frame.
            self.marker.is_clean = false;
        }
        if let Some(ignore) = &mut self.ignore {
            let (mask, offset) = (Memory::Buffer(mask.0), mask.1);
            ignore.clear(mask, offset, self.marker.counters(), slot, submission)?;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        Subject { window, meter, .. }: Subject,
        mask: PackedMask,
        counts: &[u32],
        missing: Option<PackedMask>,
    ) -> Result<Finished, ClError> {
        let mut finished = Finished::default();
        finished.marked.pixels = self.marker.counted(counts, 0);
        if let (Some(level), Some(presence)) = (self.contrast_in_use(), &mut self.presence)
            && self.marker.counted(counts, TILES) > 0
        {
            let context = &self.context;
            let bytes = packed_stride(self.width) * window.rows;
            if !suffices(&self.own, bytes) {
                self.own = Some(Arc::new(ClBuffer::new(context, bytes, meter)?));
            }
            let mut submission = context.submit(meter, bytes);
            if let Some(own) = &self.own {
                let rows = |memory, offset| Rows {
                    memory,
                    offset,
                    stride: bytes,
                };
                let to = rows(Memory::Buffer(own), 0);
                submission.copy(rows(Memory::Buffer(mask.0), mask.1), to, bytes, 1)?;
            }
            submission.send()?.wait("the mask")?;
            let judged = ComparedFrame {
                window,
                comparisons: &self.everywhere,
                comparison_count: 1,
                rois: &self.rois.memory,
                roi_count: self.rois.words.len(),
                flags: 0,
                ignored: self.ignore.as_ref().map(Ignore::memory),
            };
            let masks = (mask, missing);
            presence.finish(context, level, &judged, masks, (&mut finished, meter))?;
        }
        finished.marked.pixels += finished.late;
        self.marker.finish(finished.marked);
        Ok(finished)
    }

    fn with_difference_args(
        &mut self,
        _subject: Subject,
        mask: PackedMask,
        is_missing: bool,
        measure: impl FnOnce(&mut Lister, &Arc<ClContext>, [&[Arg]; 2]) -> Result<(), ClError>,
    ) -> Result<(), ClError> {
        let [plane_width, _] = self.plane().size_args()?;
        let own = self.own.as_ref().filter(|_| is_missing);
        // Where the texture is present everywhere the mask stands in for the one before.
        let own_mask = own.map_or(mask.0, |own| &**own);
        let args = [
            plane_width,
            Arg::I32(to_i32(self.window.first, "a row")?),
            Arg::Mem(&self.pictures.memory),
            Arg::U64(self.pictures.strongest_start(&self.window)),
            self.pictures.pitch_arg()?,
            Arg::Mem(&self.threshold_memory),
            Arg::Reads(Memory::Buffer(own_mask)),
            Arg::I32(i32::from(own.is_some())),
        ];
        measure(&mut self.marker.lister, &self.context, [&args, &[]])
    }

    fn complete(&self, defect: &mut MeasuredDefect) {
        unpack_channel(defect, CHANNEL_BITS, |channel| {
            self.settings.thresholds.get(channel).copied()
        });
    }
}

impl Inspection for Texture {
    fn mark(&mut self, subject: Subject, mask: MaskTarget) -> Result<Marked, ClError> {
        submitted::mark(self, subject, mask)
    }

    fn list(
        &mut self,
        subject: Subject,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        submitted::list(self, subject, mask, finder, limits)
    }

    fn draw(&mut self, _: Subject, _: Picture, _: &ClFrame) -> Result<(), ClError> {
        Err(ClError::Refused(
            "a texture that is compared with itself has no picture to draw".into(),
        ))
    }

    fn limits(&self) -> Vec<Limit> {
        let limit = |name, margin| Limit {
            name,
            component: None,
            most: MAX_THRESHOLD,
            step: 1.0 / 256.0,
            rule: Rule {
                margin,
                allowed: 0.0,
            },
        };
        let mut limits = CHANNEL_NAMES.map(|name| limit(name, MARGIN)).to_vec();
        limits.push(limit(FLATNESS_NAME, FLATNESS_MARGIN));
        limits
    }

    fn demands(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        let Some(peaks) = self.peaks(subject.meter)? else {
            return Ok(None);
        };
        let demand = |[peak, typical]: [f64; 2]| Demand {
            peak,
            typical: Some(typical),
        };
        let mut demands = peaks.map(demand).to_vec();
        let lowest = self.lowest_contrast(subject.frame, subject.meter)?;
        let flatness = lowest.map_or(0.0, |lowest| (FLATNESS / lowest).min(MAX_THRESHOLD));
        demands.push(Demand::of(flatness));
        Ok(Some(demands))
    }

    fn try_limits(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        self.is_trial = values.is_some();
        let flatness = values.and_then(|values| values.get(CHANNELS)).copied();
        self.tried_contrast =
            (flatness.filter(|flatness| flatness.is_finite())).map(|flatness| FLATNESS / flatness);
        let thresholds = values.map_or_else(|| self.thresholds.unwrap_or_default(), tried);
        let bytes = bytemuck::cast_slice(&thresholds);
        self.context
            .write(&self.threshold_memory, 0, bytes, "thresholds")
    }

    fn sights(&mut self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        let thresholds = values.map(tried).or(self.thresholds);
        let Some(thresholds) = thresholds else {
            return Ok(Vec::new());
        };
        if values.is_some() {
            return Ok(self.see(&thresholds)?.into_iter().collect());
        }
        match &mut self.looked {
            Some((sight, frames)) if *frames + 1 < LOOK_FRAMES && !sight.is_blind() => *frames += 1,
            _ => self.looked = self.see(&thresholds)?.map(|sight| (sight, 0)),
        }
        let sight = self.looked.as_ref().map(|(sight, _)| sight.clone());
        Ok(sight.into_iter().collect())
    }

    fn mean_level(&mut self) -> Result<Option<f64>, ClError> {
        let is_judging = self.is_judging();
        match (self.contrast, &mut self.presence) {
            (Contrast::Known(contrast), Some(presence)) if is_judging => {
                presence.mean_level(&self.context, contrast)
            }
            _ => Ok(None),
        }
    }

    fn basis(&self) -> Basis {
        let judged = if self.is_judging() {
            self.judged_pixels
        } else {
            0
        };
        Basis {
            judged: JudgedPixels::all(judged),
            pitches: self.settings.lengths(),
            lattice: self.settings.turned(),
            alignment: None,
            parts: None,
            ignored: self.ignore.as_ref().map(Ignore::bitmap).cloned(),
        }
    }

    fn set_ignored(&mut self, pixels: &Arc<Ignored>) -> Result<(), ClError> {
        if let Some(ignore) = &mut self.ignore {
            ignore.replace(pixels);
        }
        let window = self.window;
        self.judge_rows(&window)
    }

    fn reach(&self) -> Reach {
        let tile = match self.contrast {
            Contrast::Off => 0,
            _ => nominal_height(self.settings.cell_box()[1]),
        };
        self.settings.reach(self.repeats.as_ref(), tile)
    }
}
