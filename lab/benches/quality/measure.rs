//! Measures a detector on a panel.

use anyhow::{Result, anyhow};

use crate::{
    common::panel::{DefectKind, PanelFrame, PanelGenerator, PanelSpec, PlantedDefect},
    detector::{Bench, Detector, Judgement},
    discs::{DISCS_PER_FRAME, Discs},
};

/// Thresholds and contrasts are searched in steps of this many grey levels.
pub const THRESHOLD_STEP: f64 = 0.25;
/// Contrasts are searched in these steps, then interpolated.
const CONTRAST_STEP: f64 = 0.5;
const MAX_THRESHOLD: f64 = 128.0;
/// Highest contrast tried.
pub const MAX_CONTRAST: f64 = 160.0;
/// Share of discs found at C95.
pub const FOUND_SHARE: f64 = 0.95;
/// False blobs per megapixel that the threshold allows.
pub const FALSE_BLOBS_PER_MPX: f64 = 1.0;
/// A clean frame fails above this share of marked pixels, because its false blobs merge into few.
const NOISE_SHARE: f64 = 0.01;
/// Share of a noise-free panel's judged pixels above its clean residual.
const RESIDUAL_SHARE: f64 = 0.001;
/// Diameters of the discs, px.
pub const DIAMETERS_PX: [f64; 3] = [1.5, 3.0, 6.0];
/// Diameter and contrast at which precision is measured.
pub const PRECISION_AT: (f64, f64) = (3.0, 80.0);
/// Contrast at which the recall by class is measured.
pub const CLASS_CONTRAST: f64 = 60.0;
/// Share of a line's length that must be marked.
const LINE_SHARE: f64 = 0.5;
/// Random defects of mixed classes on a frame.
const MIXED_PER_FRAME: usize = 12;
/// Most frames for an estimate.
const ESTIMATE_FRAMES: u64 = 16;

/// Seeds; the threshold is set and tested on different clean frames.
const SEED_CLEAN: u64 = 1;
const SEED_DISCS: u64 = 2;
const SEED_CLASSES: u64 = 3;
const SEED_RESIDUAL: u64 = 4;
const SEED_PRECISION: u64 = 5;
const SEED_PITCH: u64 = 100;
const SEED_WHITE: u64 = 6;
/// Level of the even surface of a white reference, grey levels.
const WHITE_LEVEL: f64 = 200.0;

/// Extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Clean megapixels for a threshold.
    pub clean_mpx: f64,
    /// Discs per point of the C95 search.
    pub discs: usize,
    /// Defects of each class.
    pub defects_per_class: usize,
    /// Panels for an estimated pitch.
    pub panels_per_pitch: u64,
}

/// A detector on a panel.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Elements.
    pub detector: Detector,
    /// The panel.
    pub spec: PanelSpec,
    /// Difference of the detector's pitches to the panel's, px.
    pub pitch_error_px: f64,
}

/// Results.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Lowest threshold that at most 0.1 % of a noise-free panel's judged pixels reach.
    pub residual: f64,
    /// Lowest threshold with at most one false blob per megapixel.
    pub threshold: f64,
    /// C95 by diameter; `None` above [`MAX_CONTRAST`].
    pub c95: [Option<f64>; DIAMETERS_PX.len()],
    /// Blobs at [`PRECISION_AT`].
    pub blobs: Blobs,
    /// Blobs of the same discs at the same threshold without noise, so that none is due to chance.
    pub noise_free: Blobs,
}

/// Counts of the blobs on frames with defects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blobs {
    /// On a defect.
    pub right: usize,
    /// Not on a defect, but one distance of a comparison away from a pixel that a defect changes.
    pub ghosts: usize,
    /// Neither.
    pub other: usize,
    /// Planted defects.
    pub planted: usize,
    /// Pixels of the frames.
    pub pixels: usize,
}

impl Blobs {
    /// Ghosts per planted defect.
    pub fn ghosts_per_defect(&self) -> f64 {
        self.ghosts as f64 / self.planted.max(1) as f64
    }

    /// False blobs per megapixel.
    pub fn false_per_mpx(&self) -> f64 {
        self.other as f64 / (self.pixels.max(1) as f64 / 1e6)
    }

    /// Share of the blobs that are on a defect.
    pub fn precision(&self) -> f64 {
        let all = self.right + self.ghosts + self.other;
        self.right as f64 / all.max(1) as f64
    }

    /// Sorts a frame's blobs. A blob is on a defect if one of its marked pixels lies within 1 px of
    /// a pixel that the defect changes by at least half of its peak.
    pub fn add(
        &mut self,
        planted: &[PlantedDefect],
        [width, height]: [usize; 2],
        judgement: &Judgement,
        multiples: &[u32],
    ) {
        const DEFECT: u8 = 1;
        const GHOST: u8 = 2;
        let result = &judgement.result;
        let mut places = vec![0u8; width * height];
        // Paints a box and the pixels within `margin` px of it.
        let mut paint = |[x, y]: [f64; 2], size: [usize; 2], margin: usize, kind: u8| {
            let span = |start: f64, len: usize, end: usize| {
                let start = start.round() as i64 - margin as i64;
                let stop = start + (len + 2 * margin) as i64;
                let inside = |v: i64| v.clamp(0, end as i64) as usize;
                inside(start)..inside(stop)
            };
            let columns = span(x, size[0], width);
            for y in span(y, size[1], height) {
                for place in &mut places[y * width..][columns.clone()] {
                    *place |= kind;
                }
            }
        };
        for defect in planted {
            for (x, y) in defect.pixels() {
                paint([x as f64, y as f64], [1, 1], 1, DEFECT);
            }
            let [left, top, box_width, box_height] = defect.bbox;
            let (left, top) = (left as f64, top as f64);
            for distance in multiples.iter().map(|&k| f64::from(k)) {
                for side in [-distance, distance] {
                    for ([dx, dy], pitch) in
                        [([1.0, 0.0], result.pitch_x), ([0.0, 1.0], result.pitch_y)]
                    {
                        if pitch > 0.0 {
                            let at = [left + side * dx * pitch, top + side * dy * pitch];
                            paint(at, [box_width, box_height], 1, GHOST);
                        }
                    }
                }
            }
        }
        for defect in &result.defects {
            let met = judgement
                .marked_in(defect)
                .fold(0, |met, (x, y)| met | places[y * width + x]);
            if met & DEFECT != 0 {
                self.right += 1;
            } else if met & GHOST != 0 {
                self.ghosts += 1;
            } else {
                self.other += 1;
            }
        }
        self.planted += planted.len();
        self.pixels += width * height;
    }
}

/// Counts of found and planted defects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall {
    /// Found.
    pub found: usize,
    /// Planted.
    pub planted: usize,
    /// Pixels that the planted defects change by at least half of their peak.
    pub pixels: usize,
    /// Marked pixels among these.
    pub marked: usize,
}

impl Recall {
    /// Share of the defects' pixels that is marked.
    pub fn marked_share(&self) -> f64 {
        self.marked as f64 / self.pixels.max(1) as f64
    }

    /// Share found.
    pub fn share(&self) -> f64 {
        self.found as f64 / self.planted.max(1) as f64
    }

    /// Counts a defect.
    pub fn add(&mut self, defect: &PlantedDefect, judgement: &Judgement) {
        let marked = |(x, y): &(usize, usize)| judgement.is_marked(*x, *y);
        let found = match defect.kind {
            DefectKind::ColumnLine | DefectKind::RowLine => {
                let along: fn((usize, usize)) -> usize = match defect.kind {
                    DefectKind::ColumnLine => |(_, y)| y,
                    _ => |(x, _)| x,
                };
                let distinct = |places: &mut dyn Iterator<Item = (usize, usize)>| {
                    let mut places: Vec<usize> = places.map(along).collect();
                    places.sort_unstable();
                    places.dedup();
                    places.len() as f64
                };
                distinct(&mut defect.pixels().filter(marked))
                    >= LINE_SHARE * distinct(&mut defect.pixels())
            }
            _ => defect.pixels().any(|place| marked(&place)),
        };
        self.found += usize::from(found);
        self.planted += 1;
        self.pixels += defect.pixels().count();
        self.marked += defect.pixels().filter(marked).count();
    }
}

/// The lowest step in `1..=last` at which `holds` is true; `holds` must stay true above it. `None`
/// if `holds` is false at `last`.
pub fn lowest(last: u32, mut holds: impl FnMut(u32) -> Result<bool>) -> Result<Option<u32>> {
    if !holds(last)? {
        return Ok(None);
    }
    let (mut below, mut above) = (0, last);
    while above - below > 1 {
        let middle = (below + above) / 2;
        if holds(middle)? {
            above = middle;
        } else {
            below = middle;
        }
    }
    Ok(Some(above))
}

impl Scenario {
    /// A detector that knows the pitch.
    pub fn new(detector: Detector, spec: PanelSpec) -> Self {
        Self {
            detector,
            spec,
            pitch_error_px: 0.0,
        }
    }

    fn bench(&self) -> Result<Bench> {
        let spec = &self.spec;
        let pitch = [spec.pitch_x, spec.pitch_y].map(|pitch| pitch + self.pitch_error_px);
        let bench = Bench::new(&self.detector, [spec.width, spec.height], pitch)?;
        if self.detector.even {
            let white = PanelSpec {
                contrast: 0.0,
                mean_level: WHITE_LEVEL,
                ..*spec
            };
            let mut generator = generator(white, SEED_WHITE)?;
            let frames = (0..Detector::WHITE_FRAMES).map(|_| generator.clean_frame().samples);
            bench.take_white(frames)?;
        }
        Ok(bench)
    }

    /// Measures all fields of an [`Outcome`].
    ///
    /// # Errors
    /// A pipeline's or the generator's error.
    pub fn measure(&self, effort: &Effort) -> Result<Outcome> {
        let bench = self.bench()?;
        let residual = self.residual(&bench)?;
        let threshold = self.threshold(&bench, effort)?;
        let mut c95 = [None; DIAMETERS_PX.len()];
        for (c95, diameter_px) in c95.iter_mut().zip(DIAMETERS_PX) {
            *c95 = self.c95(&bench, threshold, diameter_px, effort)?;
        }
        let noise_free = PanelSpec {
            noise_sigma: 0.0,
            ..self.spec
        };
        Ok(Outcome {
            residual,
            threshold,
            c95,
            blobs: self.disc_blobs(&bench, self.spec, threshold, effort)?,
            noise_free: self.disc_blobs(&bench, noise_free, threshold, effort)?,
        })
    }

    fn disc_blobs(
        &self,
        bench: &Bench,
        spec: PanelSpec,
        threshold: f64,
        effort: &Effort,
    ) -> Result<Blobs> {
        let (diameter_px, contrast) = PRECISION_AT;
        let mut discs = Discs::new(spec, SEED_PRECISION, diameter_px)?;
        let mut blobs = Blobs::default();
        for number in 0..disc_frames(effort) {
            let frame = discs.frame(number, contrast)?;
            let judgement = bench.judge(&frame.samples, threshold)?;
            self.add_blobs(&mut blobs, &frame, &judgement);
        }
        Ok(blobs)
    }

    fn add_blobs(&self, blobs: &mut Blobs, frame: &PanelFrame, judgement: &Judgement) {
        let size = [frame.width, frame.height];
        blobs.add(&frame.planted, size, judgement, self.detector.multiples());
    }

    fn residual(&self, bench: &Bench) -> Result<f64> {
        let spec = PanelSpec {
            noise_sigma: 0.0,
            ..self.spec
        };
        let frames = clean_frames(spec, SEED_RESIDUAL, 1.0)?;
        let holds = |threshold| {
            let (mut marked, mut judged) = (0, 0);
            for frame in &frames {
                let result = bench.judge(&frame.samples, threshold)?.result;
                marked += result.defect_pixels;
                judged += result.judged_pixels;
            }
            Ok(marked as f64 <= RESIDUAL_SHARE * judged as f64)
        };
        search_threshold(holds)
    }

    fn threshold(&self, bench: &Bench, effort: &Effort) -> Result<f64> {
        let frames = clean_frames(self.spec, SEED_CLEAN, effort.clean_mpx)?;
        let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame.samples[..]).collect();
        clean_threshold(bench, &frames)
    }

    fn c95(
        &self,
        bench: &Bench,
        threshold: f64,
        diameter_px: f64,
        effort: &Effort,
    ) -> Result<Option<f64>> {
        let mut discs = Discs::new(self.spec, SEED_DISCS, diameter_px)?;
        let mut recall = |step: u32| -> Result<f64> {
            let mut recall = Recall::default();
            for number in 0..disc_frames(effort) {
                let frame = discs.frame(number, f64::from(step) * CONTRAST_STEP)?;
                let judgement = bench.judge(&frame.samples, threshold)?;
                for defect in &frame.planted {
                    recall.add(defect, &judgement);
                }
            }
            Ok(recall.share())
        };
        // A contrast of one or two steps changes no pixel enough for a planted defect.
        const FIRST: u32 = 4;
        let last = (MAX_CONTRAST / CONTRAST_STEP) as u32;
        let mut tried = vec![None; last as usize + 1];
        let found = lowest(last - FIRST, |step| {
            let share = recall(step + FIRST)?;
            tried[(step + FIRST) as usize] = Some(share);
            Ok(share >= FOUND_SHARE)
        })?;
        // The search has tried this step and, unless it is the first, the step below.
        Ok(found.map(|step| {
            let step = (step + FIRST) as usize;
            let part = match (tried[step - 1], tried[step]) {
                (Some(below), Some(above)) if above > below => {
                    (above - FOUND_SHARE) / (above - below)
                }
                _ => 0.0,
            };
            (step as f64 - part) * CONTRAST_STEP
        }))
    }

    /// Recall of a class at [`CLASS_CONTRAST`], by size where `sizes_px` are given.
    ///
    /// # Errors
    /// A pipeline's or the generator's error.
    pub fn class_recall(&self, threshold: f64, class: Class, effort: &Effort) -> Result<Recall> {
        let bench = self.bench()?;
        let mut generator = generator(self.spec, SEED_CLASSES)?;
        let mut recall = Recall::default();
        // A frame has room for a few lines, or for blobs of either size.
        for _ in 0..effort.defects_per_class {
            if recall.planted >= effort.defects_per_class {
                break;
            }
            let frame = generator.next_random_of(&[class.kind], MIXED_PER_FRAME, CLASS_CONTRAST);
            let judgement = bench.judge(&frame.samples, threshold)?;
            for defect in &frame.planted {
                if class.size_px.is_none_or(|size| size == defect.size_px) {
                    recall.add(defect, &judgement);
                }
            }
        }
        Ok(recall)
    }

    /// Blobs on frames with defects of every class at [`CLASS_CONTRAST`], with the panel's noise
    /// and without.
    ///
    /// # Errors
    /// A pipeline's or the generator's error.
    pub fn mixed_blobs(&self, threshold: f64, effort: &Effort) -> Result<(Blobs, Blobs)> {
        let bench = self.bench()?;
        let count = |noise_sigma: f64| -> Result<Blobs> {
            let spec = PanelSpec {
                noise_sigma,
                ..self.spec
            };
            let mut generator = generator(spec, SEED_CLASSES)?;
            let mut blobs = Blobs::default();
            for _ in 0..effort.defects_per_class {
                if blobs.planted >= 2 * effort.defects_per_class {
                    break;
                }
                let frame =
                    generator.next_random_of(&DefectKind::ALL, MIXED_PER_FRAME, CLASS_CONTRAST);
                let judgement = bench.judge(&frame.samples, threshold)?;
                self.add_blobs(&mut blobs, &frame, &judgement);
            }
            Ok(blobs)
        };
        Ok((count(self.spec.noise_sigma)?, count(0.0)?))
    }
}

/// A class of defects in the recall table.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Name in the table.
    pub name: &'static str,
    /// Kind.
    pub kind: DefectKind,
    /// Only defects of this size.
    pub size_px: Option<f64>,
}

const fn class(name: &'static str, kind: DefectKind) -> Class {
    Class {
        name,
        kind,
        size_px: None,
    }
}

/// The classes of the recall table.
pub const CLASSES: [Class; 9] = [
    class("particle", DefectKind::Particle),
    class("pinhole", DefectKind::Pinhole),
    class("scratch", DefectKind::Scratch),
    class("missing cell", DefectKind::MissingCell),
    class("bridge", DefectKind::Bridge),
    class("column line", DefectKind::ColumnLine),
    class("row line", DefectKind::RowLine),
    Class {
        size_px: Some(12.0),
        ..class("blob 12 px", DefectKind::Blob)
    },
    Class {
        size_px: Some(20.0),
        ..class("blob 20 px", DefectKind::Blob)
    },
];

/// An estimated pitch.
#[derive(Clone, Copy, Debug)]
pub struct PitchEstimate {
    /// True pitch along both axes, px.
    pub pitch_px: f64,
    /// Frame size, px.
    pub size: [usize; 2],
    /// Largest error along x and y, px; `None` if the pitch of a panel stayed unknown.
    pub error_px: [Option<f64>; 2],
}

/// Estimates a pitch through `pitch-x=-1 pitch-y=-1`, on several panels.
///
/// # Errors
/// A pipeline's or the generator's error.
pub fn estimate_pitch(spec: PanelSpec, effort: &Effort) -> Result<PitchEstimate> {
    let size = [spec.width, spec.height];
    let truth = [spec.pitch_x, spec.pitch_y];
    let mut error_px = [Some(0f64); 2];
    for panel in 0..effort.panels_per_pitch {
        let bench = Bench::new(&Detector::RECOMMENDED, size, [-1.0; 2])?;
        let mut generator = generator(spec, SEED_PITCH + panel)?;
        for _ in 0..ESTIMATE_FRAMES {
            bench.judge(&generator.clean_frame().samples, MAX_THRESHOLD)?;
            if bench.estimated_pitch().iter().all(|&pitch| pitch > 0.0) {
                break;
            }
        }
        let estimated = bench.estimated_pitch();
        for (axis, error) in error_px.iter_mut().enumerate() {
            *error = error.and_then(|error| {
                (estimated[axis] > 0.0).then(|| error.max((estimated[axis] - truth[axis]).abs()))
            });
        }
    }
    Ok(PitchEstimate {
        pitch_px: spec.pitch_x,
        size,
        error_px,
    })
}

/// The lowest threshold with at most [`FALSE_BLOBS_PER_MPX`] on clean frames of 8 bits.
///
/// # Errors
/// A pipeline's error, or there is no such threshold.
pub fn clean_threshold(bench: &Bench, frames: &[&[u8]]) -> Result<f64> {
    let pixels: usize = frames.iter().map(|samples| samples.len()).sum();
    let allowed = FALSE_BLOBS_PER_MPX * pixels as f64 / 1e6;
    search_threshold(|threshold| is_clean(bench, frames, threshold, allowed))
}

/// Whether clean frames have at most this many blobs.
///
/// # Errors
/// A pipeline's error.
pub fn is_clean(bench: &Bench, frames: &[&[u8]], threshold: f64, allowed: f64) -> Result<bool> {
    let mut blobs = 0;
    for samples in frames {
        let result = bench.judge(samples, threshold)?.result;
        blobs += result.defects.len();
        let share = result.defect_pixels as f64 / result.judged_pixels.max(1) as f64;
        if blobs as f64 > allowed || share > NOISE_SHARE {
            return Ok(false);
        }
    }
    Ok(true)
}

fn disc_frames(effort: &Effort) -> u64 {
    effort.discs.div_ceil(DISCS_PER_FRAME) as u64
}

fn generator(spec: PanelSpec, seed: u64) -> Result<PanelGenerator> {
    PanelGenerator::new(spec, seed).map_err(|why| anyhow!(why))
}

fn clean_frames(spec: PanelSpec, seed: u64, mpx: f64) -> Result<Vec<PanelFrame>> {
    let mut generator = generator(spec, seed)?;
    let count = (mpx * 1e6 / (spec.width * spec.height) as f64).ceil() as usize;
    Ok((0..count).map(|_| generator.clean_frame()).collect())
}

fn search_threshold(mut holds: impl FnMut(f64) -> Result<bool>) -> Result<f64> {
    let threshold = |step| f64::from(step) * THRESHOLD_STEP;
    let last = (MAX_THRESHOLD / THRESHOLD_STEP) as u32;
    lowest(last, |step| holds(threshold(step)))?
        .map(threshold)
        .ok_or_else(|| anyhow!("clean frames have false blobs even at {MAX_THRESHOLD} grey levels"))
}
