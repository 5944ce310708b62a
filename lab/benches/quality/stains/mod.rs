//! Measures the comparison across scales: thresholds of the levels, and how faint a stain may be.

mod boxes;
mod faint;
mod report;
mod scenes;

use anyhow::{Context, Result};

use crate::{
    common::panel::PanelSpec,
    detector::Bench,
    measure::{FALSE_BLOBS_PER_MPX, FOUND_SHARE, Recall, THRESHOLD_STEP, is_clean, lowest},
    on_every_core,
    scene::Texture,
};

pub use boxes::BoxGrowth;
pub use faint::Faint;
pub use report::{targets, write};
pub use scenes::Light;
use scenes::{Scenes, clean_frames};

/// Diameters of the discs, px.
pub const DIAMETERS_PX: [f64; 7] = [1.5, 3.0, 6.0, 12.0, 20.0, 30.0, 60.0];
/// Discs of at least this diameter need much room; fewer are planted.
const LARGE_PX: f64 = 20.0;
/// Levels besides the frame whose thresholds are searched.
const LEVELS: usize = 4;
/// `scales` of the tables.
const SCALES: usize = 3;
/// The default of `threshold`.
const DEFAULT_THRESHOLD: f64 = 12.0;
/// What helps where the light is uneven: `scales`, `scale-factors` and other settings.
const REMEDIES: [(usize, &[f64], &str); 3] = [
    (SCALES, &[0.6, 0.4, 0.3], ""),
    (SCALES, &[0.6, 0.3, 0.15], " multiples=\"<1>\""),
    (1, &[0.6], ""),
];
/// Thresholds are searched in smaller steps than elsewhere: a step of a quarter changes C95 by 3 %.
const STEP: f64 = THRESHOLD_STEP / 4.0;
/// Thresholds are searched up to this many steps.
const STEPS: u32 = 2048;
/// Share of the false blobs that the frame keeps when the thresholds of the levels are searched. Each of [`SCALES`]
/// levels gets an equal part of the others. With equal shares for all, T and C95 of Ø1.5 would rise by 6 %.
const FRAME_SHARE: f64 = 2.0 / 3.0;
/// Contrasts that are tried: the lowest, and the ratio of one to the one before.
const LEAST_CONTRAST: f64 = 0.25;
const CONTRAST_RATIO: f64 = 1.04;
/// Steps from [`LEAST_CONTRAST`] to about 160.
const CONTRAST_STEPS: u32 = 165;
const SEED_SEARCH: u64 = 21;
const SEED_CHECK: u64 = 22;
const SEED_DISCS: u64 = 23;

/// Diameters whose C95 is also measured under other light, px.
const LIT_PX: [f64; 4] = [6.0, 12.0, 20.0, 30.0];

/// What is inspected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject {
    /// Panel or cloth.
    pub texture: Texture,
    /// Noise, grey levels.
    pub sigma: f32,
    /// Light.
    pub light: Light,
}

impl Subject {
    fn elements(&self, scales: usize, factors: &[f64]) -> String {
        let [x, y] = self.texture.pitch();
        let mut line = format!(
            "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold name=judge pitch-x={x} \
             pitch-y={y} scales={scales}"
        );
        if scales > 0 {
            let factors: Vec<_> = factors.iter().map(ToString::to_string).collect();
            line += &format!(" scale-factors=\"<{}>\"", factors.join(", "));
        }
        line
    }

    fn bench(&self, scales: usize, factors: &[f64]) -> Result<Bench> {
        Bench::launch(&self.elements(scales, factors), self.texture.size())
    }
}

/// Extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct StainEffort {
    /// Clean megapixels for a threshold, and as many to check it.
    pub clean_mpx: f64,
    /// Discs per contrast, and of large ones.
    pub discs: [usize; 2],
    /// Discs per contrast on frames of more than 640 columns.
    pub discs_of_large_frames: usize,
    /// Whether only the subject of the targets is measured.
    pub short: bool,
}

impl StainEffort {
    /// Discs per contrast.
    fn discs(&self, subject: &Subject, diameter_px: f64) -> usize {
        if subject.texture.size()[0] > 640 {
            self.discs_of_large_frames
        } else {
            self.discs[usize::from(diameter_px >= LARGE_PX)]
        }
    }
}

/// Settings and what they reach.
#[derive(Clone, Debug)]
pub struct Reach {
    /// `scales`.
    pub scales: usize,
    /// `scale-factors`.
    pub factors: Vec<f64>,
    /// `threshold`.
    pub threshold: f64,
    /// False blobs per megapixel on frames that the search has not seen.
    pub false_per_mpx: f64,
    /// C95 by diameter; `None` above the highest contrast tried.
    pub c95: [Option<f64>; DIAMETERS_PX.len()],
}

impl Reach {
    /// C95 of discs of a diameter, if it was measured and is not above the highest contrast tried.
    fn c95_of(&self, diameter_px: f64) -> Option<f64> {
        let mut measured = DIAMETERS_PX.iter().zip(self.c95);
        measured.find_map(|(&d, c95)| if d == diameter_px { c95 } else { None })
    }
}

/// Thresholds of a subject.
#[derive(Clone, Debug)]
pub struct Levels {
    /// Subject.
    pub subject: Subject,
    /// By level, the frame first: the lowest threshold with the false blobs of [`allowed_up_to`] the level.
    pub thresholds: [f64; LEVELS + 1],
    /// Without scales, with the default factors, and with the level thresholds of this subject.
    pub reaches: [Reach; 3],
    /// False blobs per megapixel with the default threshold and factors.
    pub false_at_default: f64,
    /// The same with each of [`REMEDIES`].
    pub false_with: [f64; REMEDIES.len()],
}

/// Everything measured.
pub struct Stains {
    effort: StainEffort,
    /// With C95.
    subjects: Vec<Levels>,
    /// By light, with C95 of [`LIT_PX`].
    lights: Vec<Levels>,
    boxes: Vec<BoxGrowth>,
    faint: Vec<Faint>,
}

fn panel(pitch: [f64; 2]) -> Texture {
    let large = pitch[0].max(pitch[1]) > 40.0;
    let [width, height] = if large { [1280, 960] } else { [640, 480] };
    Texture::Panel(PanelSpec {
        width,
        height,
        pitch_x: pitch[0],
        pitch_y: pitch[1],
        vignetting: 0.0,
        ..PanelSpec::default()
    })
}

fn cloth(wander_px: f32) -> Texture {
    Texture::Weave {
        size: [640, 480],
        pitch_px: 16.35,
        wander_px,
    }
}

/// The subjects whose C95 is measured; the first is that of the targets.
fn subjects(effort: &StainEffort) -> Vec<Subject> {
    let subject = |texture, sigma| Subject {
        texture,
        sigma,
        light: Light::Corners(0.1),
    };
    let mut all = vec![subject(panel([7.35; 2]), 4.0)];
    if !effort.short {
        for sigma in [2.0, 8.0] {
            all.push(subject(panel([7.35; 2]), sigma));
        }
        for sigma in [2.0, 4.0, 8.0] {
            all.push(subject(panel([7.35, 22.1]), sigma));
        }
        for texture in [panel([16.35; 2]), cloth(0.4), cloth(2.0)] {
            for sigma in [2.0, 4.0, 8.0] {
                all.push(subject(texture, sigma));
            }
        }
    }
    all
}

/// The subjects of the tables of lights.
fn lit(effort: &StainEffort) -> Vec<Subject> {
    let textures = [
        panel([7.35; 2]),
        panel([16.35; 2]),
        panel([61.13; 2]),
        cloth(0.4),
    ];
    let lights = [
        Light::Corners(0.0),
        Light::Corners(0.1),
        Light::Corners(0.3),
        Light::Slope(0.1),
        Light::Slope(0.3),
    ];
    let textures = &textures[..if effort.short { 1 } else { textures.len() }];
    let pairs = textures
        .iter()
        .flat_map(|&texture| lights.map(|light| (texture, light)));
    pairs
        .map(|(texture, light)| Subject {
            texture,
            sigma: 4.0,
            light,
        })
        .collect()
}

/// False blobs per megapixel that the frame and the levels up to this one may have together.
fn allowed_up_to(level: usize) -> f64 {
    let share = FRAME_SHARE + level as f64 * (1.0 - FRAME_SHARE) / SCALES as f64;
    share * FALSE_BLOBS_PER_MPX
}

/// The lowest threshold, in steps, with at most `allowed` false blobs per megapixel; `judges` tells whether there are
/// at most this many blobs at a threshold.
fn search(
    frames: &[&[u8]],
    step: f64,
    allowed: f64,
    judges: impl Fn(f64, f64) -> Result<bool>,
) -> Result<f64> {
    let pixels: usize = frames.iter().map(|samples| samples.len()).sum();
    let allowed = allowed * pixels as f64 / 1e6;
    lowest(STEPS, |steps| judges(f64::from(steps) * step, allowed))?
        .map(|steps| f64::from(steps) * step)
        .context("clean frames have false blobs even at the highest threshold")
}

/// The lowest threshold of the level behind `finer`, while the frame and the levels before it have theirs, with at most
/// `allowed` false blobs per megapixel over all of them.
fn level_threshold(
    subject: &Subject,
    frames: &[&[u8]],
    finer: &[f64],
    allowed: f64,
) -> Result<f64> {
    let (frame, before) = finer.split_first().context("no threshold of the frame")?;
    let level = finer.len();
    let bench = subject.bench(level, &vec![1.0; level])?;
    let step = STEP / f64::from(1 << level);
    search(frames, step, allowed, |threshold, blobs| {
        let levels = before.iter().chain([&threshold]);
        bench.set_factors(&levels.map(|t| t / frame).collect::<Vec<_>>());
        is_clean(&bench, frames, *frame, blobs)
    })
}

fn false_per_mpx(bench: &Bench, frames: &[&[u8]], threshold: f64) -> Result<f64> {
    let (mut blobs, mut pixels) = (0, 0);
    for samples in frames {
        blobs += bench.judge(samples, threshold)?.result.defects.len();
        pixels += samples.len();
    }
    Ok(blobs as f64 * 1e6 / pixels as f64)
}

impl Levels {
    fn measure(subject: Subject, effort: &StainEffort) -> Result<Self> {
        let frames = clean_frames(&subject, SEED_SEARCH, effort.clean_mpx)?;
        let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        let check = clean_frames(&subject, SEED_CHECK, effort.clean_mpx)?;
        let check: Vec<&[u8]> = check.iter().map(|frame| &frame[..]).collect();

        let pixels_alone = subject.bench(0, &[])?;
        let lowest_of = |bench: &Bench, blobs: f64| {
            search(&frames, STEP, blobs, |threshold, blobs| {
                is_clean(bench, &frames, threshold, blobs)
            })
        };
        let mut thresholds = [0.0; LEVELS + 1];
        thresholds[0] = lowest_of(&pixels_alone, allowed_up_to(0))?;
        for level in 1..=LEVELS {
            let finer = &thresholds[..level];
            thresholds[level] = level_threshold(&subject, &frames, finer, allowed_up_to(level))?;
        }

        let searched: Vec<f64> = (1..=SCALES)
            .map(|level| thresholds[level] / thresholds[0])
            .collect();
        let mut false_at_default = 0.0;
        let by_default = pixels_alone.factors();
        let mut reach = |scales: usize, factors: &[f64]| -> Result<Reach> {
            let bench = subject.bench(scales, factors)?;
            let threshold = lowest_of(&bench, FALSE_BLOBS_PER_MPX)?;
            if scales > 0 && factors == by_default {
                false_at_default = false_per_mpx(&bench, &check, DEFAULT_THRESHOLD)?;
            }
            Ok(Reach {
                scales,
                factors: factors.to_vec(),
                threshold,
                false_per_mpx: false_per_mpx(&bench, &check, threshold)?,
                c95: [None; DIAMETERS_PX.len()],
            })
        };
        let reaches = [
            reach(0, &[])?,
            reach(SCALES, &by_default)?,
            reach(SCALES, &searched)?,
        ];
        let mut false_with = [0.0; REMEDIES.len()];
        for (found, (scales, factors, more)) in false_with.iter_mut().zip(REMEDIES) {
            let line = subject.elements(scales, factors) + more;
            let bench = Bench::launch(&line, subject.texture.size())?;
            *found = false_per_mpx(&bench, &check, DEFAULT_THRESHOLD)?;
        }
        Ok(Self {
            subject,
            thresholds,
            reaches,
            false_at_default,
            false_with,
        })
    }

    /// C95 of the discs of a diameter with each of the settings.
    fn c95(&self, diameter_px: f64, effort: &StainEffort) -> Result<[Option<f64>; 3]> {
        let discs = effort.discs(&self.subject, diameter_px);
        let scenes = Scenes::new(&self.subject, SEED_DISCS, diameter_px, discs)?;
        let mut c95 = [None; 3];
        for (c95, reach) in c95.iter_mut().zip(&self.reaches) {
            let bench = self.subject.bench(reach.scales, &reach.factors)?;
            *c95 = lowest_contrast(&bench, reach.threshold, &scenes)?;
        }
        Ok(c95)
    }
}

fn lowest_contrast(bench: &Bench, threshold: f64, scenes: &Scenes) -> Result<Option<f64>> {
    let contrast = |step: u32| LEAST_CONTRAST * CONTRAST_RATIO.powi(step as i32);
    let mut tried = vec![None; CONTRAST_STEPS as usize + 1];
    let found = lowest(CONTRAST_STEPS, |step| {
        let mut recall = Recall::default();
        for number in 0..scenes.len() {
            let judgement = bench.judge(&scenes.frame(number, contrast(step)), threshold)?;
            for defect in scenes.planted(number) {
                recall.add(defect, &judgement);
            }
        }
        tried[step as usize] = Some(recall.share());
        Ok(recall.share() >= FOUND_SHARE)
    })?;
    // The search has tried this step and, unless it is the first, the step below.
    Ok(found.map(|step| {
        let (low, high) = (contrast(step - 1), contrast(step));
        match (tried[step as usize - 1], tried[step as usize]) {
            (Some(below), Some(above)) if above > below => {
                high - (high - low) * (above - FOUND_SHARE) / (above - below)
            }
            _ => high,
        }
    }))
}

/// Measures all tables.
///
/// # Errors
/// A pipeline's or the generator's error.
pub fn measure(effort: &StainEffort) -> Result<Stains> {
    let wanted = subjects(effort);
    let lit = lit(effort);
    let other_light = lit.iter().filter(|subject| !wanted.contains(subject));
    let all: Vec<Subject> = wanted.iter().chain(other_light).copied().collect();
    let search = |subject: &Subject| Levels::measure(*subject, effort);
    let mut all = on_every_core("stains: thresholds", &all, search)?;
    // The large diameters take longest, so they come first.
    let jobs: Vec<(usize, usize)> = (0..DIAMETERS_PX.len())
        .rev()
        .flat_map(|diameter| (0..all.len()).map(move |subject| (subject, diameter)))
        .filter(|&(subject, diameter)| {
            subject < wanted.len() || LIT_PX.contains(&DIAMETERS_PX[diameter])
        })
        .collect();
    let found = on_every_core("stains: C95", &jobs, |&(subject, diameter)| {
        all[subject].c95(DIAMETERS_PX[diameter], effort)
    })?;
    for (&(subject, diameter), c95) in jobs.iter().zip(found) {
        for (reach, c95) in all[subject].reaches.iter_mut().zip(c95) {
            reach.c95[diameter] = c95;
        }
    }
    let boxes = boxes::measure(all.first().context("no subject")?, effort)?;
    let lights = lit.iter().map(|subject| {
        let known = all.iter().find(|levels| levels.subject == *subject);
        known.cloned().context("a light was not measured")
    });
    let lights: Vec<Levels> = lights.collect::<Result<_>>()?;
    all.truncate(wanted.len());
    let even_and_not = [Light::Corners(0.0), Light::Corners(0.1)];
    let with_stains = lights
        .iter()
        .filter(|levels| even_and_not.contains(&levels.subject.light));
    let with_stains: Vec<&Levels> = with_stains.collect();
    let faint = on_every_core("stains: precision", &with_stains, |levels| {
        faint::measure(levels, effort)
    })?;
    Ok(Stains {
        effort: *effort,
        subjects: all,
        lights,
        boxes,
        faint: faint.concat(),
    })
}
