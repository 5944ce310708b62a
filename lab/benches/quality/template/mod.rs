//! Objects that were trained from one good frame: which settings of `clreference` serve, what they find, and what local
//! shifts hide.

use std::path::Path;

use anyhow::{Result, bail};
use gstclinspect::results::Verdict;

use crate::{
    detector::{Bench, Judgement},
    labels::{Recall, Settings},
    on_every_core,
};

mod report;
mod scenes;

pub use report::write;
use scenes::{Object, PER_FRAME, SIZE, Shot};

/// Seeds of the frames to choose settings with, and of those that are reported.
const CHOOSING_SEED: u64 = 201;
const REPORTED_SEED: u64 = 301;
const DISPLACED_SEED: u64 = 401;
/// Models from one frame; each judges its share of the frames, so no single template decides.
const TEMPLATES: usize = 5;
/// Frames of a training, the other case.
const MANY: u32 = 32;
/// Thresholds, grey levels. The lowest at which no good frame fails is found; the next one is taken.
const THRESHOLDS: [f64; 14] = [
    4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 17.0, 20.0, 24.0, 29.0, 35.0, 42.0, 50.0, 60.0,
];
/// Means of the recall that differ by less than this are alike.
const ABOUT_AS_MUCH: f64 = 0.005;
const MIN_AREAS: [u32; 3] = [1, 4, 9];
const ALIGNS: [&str; 3] = ["translation", "affine", "local"];
/// Sides of the part that is displaced, px, and distances.
const PARTS_PX: [usize; 2] = [24, 64];
const DISTANCES_PX: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 6.0];

/// Extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct TemplateEffort {
    /// Good frames.
    pub good: usize,
    /// Frames with defects, per kind: to choose settings, and reported.
    pub bad: [usize; 2],
    /// Displaced parts per distance.
    pub displaced: usize,
}

/// What settings do on the reported frames.
pub struct Outcome {
    settings: Settings,
    failed: usize,
    good: usize,
    blobs: usize,
    /// By kind.
    recalls: Vec<Recall>,
}

/// Results of an object.
pub struct Measured {
    object: Object,
    /// By number of training frames, Gaussian and alignment: the settings that were chosen, if any let good frames pass.
    outcomes: Vec<Outcome>,
    /// Displaced parts found.
    displaced: Vec<Displaced>,
}

/// Displaced parts found with settings.
struct Displaced {
    part_px: usize,
    settings: Settings,
    /// By distance.
    recalls: Vec<Recall>,
}

/// Mean of the kinds.
fn mean(recalls: &[Recall]) -> f64 {
    recalls.iter().map(Recall::share).sum::<f64>() / recalls.len().max(1) as f64
}

/// Frames of an object.
struct Shots {
    training: Vec<Shot>,
    good: Vec<Shot>,
    /// By kind.
    bad: Vec<Vec<Shot>>,
}

impl Shots {
    fn new(object: &Object, seed: u64, good: usize, bad: usize) -> Result<Self> {
        let kinds = 0..object.kinds().len();
        Ok(Self {
            training: object.good(seed, MANY as usize)?,
            good: object.good(seed + 1, good)?,
            bad: kinds
                .map(|kind| object.bad(seed + 2 + kind as u64, bad, kind))
                .collect::<Result<_>>()?,
        })
    }

    /// Elements after their training: several with one frame each, or one with all frames.
    fn benches(&self, settings: &Settings) -> Result<Vec<Bench>> {
        // Smaller defects are left out afterwards, so that one run serves for all of [`MIN_AREAS`].
        let all = Settings {
            min_area: 1,
            ..*settings
        };
        let trainings = self.training.chunks(settings.train as usize);
        trainings
            .take(TEMPLATES)
            .map(|training| {
                let bench = Bench::launch(&all.elements(), SIZE)?;
                for shot in training {
                    let judged = bench.judge(&shot.samples, settings.threshold)?;
                    if judged.result.verdict != Verdict::None {
                        bail!("a frame of the training was judged");
                    }
                }
                Ok(bench)
            })
            .collect()
    }

    /// Good frames that fail with each of [`MIN_AREAS`], until each of them has more than `most` failed frames.
    fn failed(&self, benches: &[Bench], threshold: f64, most: usize) -> Result<[usize; 3]> {
        let mut failed = [0; MIN_AREAS.len()];
        for (shot, bench) in self.good.iter().zip(benches.iter().cycle()) {
            let judged = bench.judge(&shot.samples, threshold)?;
            for (failed, area) in failed.iter_mut().zip(MIN_AREAS) {
                *failed += usize::from(fails(&judged, area));
            }
            if failed.iter().all(|&failed| failed > most) {
                break;
            }
        }
        Ok(failed)
    }

    /// Recall by kind with each of [`MIN_AREAS`].
    fn recalls(&self, benches: &[Bench], threshold: f64) -> Result<[Vec<Recall>; 3]> {
        let mut recalls = MIN_AREAS.map(|_| vec![Recall::default(); self.bad.len()]);
        for (kind, shots) in self.bad.iter().enumerate() {
            for (shot, bench) in shots.iter().zip(benches.iter().cycle()) {
                let judged = bench.judge(&shot.samples, threshold)?;
                for (recalls, area) in recalls.iter_mut().zip(MIN_AREAS) {
                    add(&mut recalls[kind], shot, &judged, area);
                }
            }
        }
        Ok(recalls)
    }

    /// For each of [`MIN_AREAS`]: a threshold above the lowest at which no good frame fails, and the mean recall there.
    fn choose(&self, way: &Settings) -> Result<Vec<(Settings, f64)>> {
        let benches = self.benches(way)?;
        let mut lowest = [None; MIN_AREAS.len()];
        for (i, &threshold) in THRESHOLDS.iter().enumerate() {
            let failed = self.failed(&benches, threshold, 0)?;
            for (lowest, failed) in lowest.iter_mut().zip(failed) {
                if failed == 0 {
                    lowest.get_or_insert(i);
                }
            }
            if lowest.iter().all(Option::is_some) {
                break;
            }
        }
        let mut chosen = Vec::new();
        for (index, min_area) in MIN_AREAS.into_iter().enumerate() {
            let threshold = lowest[index].and_then(|lowest: usize| THRESHOLDS.get(lowest + 1));
            if let Some(&threshold) = threshold {
                let recalls = self.recalls(&benches, threshold)?;
                let settings = Settings {
                    threshold,
                    min_area,
                    ..*way
                };
                chosen.push((settings, mean(&recalls[index])));
            }
        }
        Ok(chosen)
    }

    /// What the settings do on these frames.
    fn judge(&self, settings: &Settings) -> Result<Outcome> {
        let benches = self.benches(settings)?;
        let mut outcome = Outcome {
            settings: *settings,
            failed: 0,
            good: self.good.len(),
            blobs: 0,
            recalls: vec![Recall::default(); self.bad.len()],
        };
        for (shot, bench) in self.good.iter().zip(benches.iter().cycle()) {
            let judged = bench.judge(&shot.samples, settings.threshold)?;
            outcome.failed += usize::from(fails(&judged, settings.min_area));
            outcome.blobs += listed(&judged, settings.min_area).count();
        }
        for (recall, shots) in outcome.recalls.iter_mut().zip(&self.bad) {
            *recall = recall_of(shots, &benches, settings)?;
        }
        Ok(outcome)
    }
}

/// Defects of at least this many pixels.
fn listed(
    judged: &Judgement,
    min_area: u32,
) -> impl Iterator<Item = &gstclinspect::results::Defect> {
    let defects = judged.result.defects.iter();
    defects.filter(move |defect| defect.area >= min_area)
}

/// Whether the frame fails; a frame that shows something else, or too much for a list, has no defects.
fn fails(judged: &Judgement, min_area: u32) -> bool {
    let defects = &judged.result.defects;
    (defects.is_empty() && judged.result.verdict != Verdict::Pass)
        || listed(judged, min_area).next().is_some()
}

/// Counts the planted defects of a frame. One is found if a listed defect has a marked pixel on it or beside it:
/// alignment is in parts of a pixel.
fn add(recall: &mut Recall, shot: &Shot, judged: &Judgement, min_area: u32) {
    let marked: Vec<(usize, usize)> = listed(judged, min_area)
        .flat_map(|defect| judged.marked_in(defect))
        .collect();
    let is_found = |places: &&scenes::Places| {
        places.iter().any(|&(x, y)| {
            let is_near = |&(i, j): &(usize, usize)| x.abs_diff(i) <= 1 && y.abs_diff(j) <= 1;
            marked.iter().any(is_near)
        })
    };
    recall.planted += shot.planted.len();
    recall.found += shot.planted.iter().filter(is_found).count();
}

/// All settings but threshold and `min-area`.
fn ways() -> Vec<Settings> {
    let mut ways = Vec::new();
    for train in [1, MANY] {
        for gaussian in [true, false] {
            for align in ALIGNS {
                for tolerance in [0, 1, 2] {
                    ways.extend([0, 3].map(|opening| Settings {
                        train,
                        gaussian,
                        align,
                        tolerance,
                        opening,
                        threshold: THRESHOLDS[0],
                        merge: 0,
                        ..Settings::RECOMMENDED
                    }));
                }
            }
        }
    }
    ways
}

/// The way in which a row of the table is one of its own.
fn group(settings: &Settings) -> (u32, bool, &'static str) {
    (settings.train, settings.gaussian, settings.align)
}

/// Measures all objects; the photograph only if there is a folder with it.
///
/// # Errors
/// A pipeline's or a generator's error, or the photograph is missing.
pub fn measure(effort: &TemplateEffort, photographs: Option<&Path>) -> Result<Vec<Measured>> {
    let mut objects = vec![Object::Label, Object::TurnedLabel];
    match photographs {
        Some(folder) => objects.push(Object::coins(folder)?),
        None => eprintln!("left out: coins, because --photographs names no folder"),
    }
    objects
        .into_iter()
        .map(|object| measure_object(object, effort))
        .collect()
}

fn measure_object(object: Object, effort: &TemplateEffort) -> Result<Measured> {
    let shots = Shots::new(&object, CHOOSING_SEED, effort.good, effort.bad[0])?;
    let ways = ways();
    let chosen = on_every_core(object.name(), &ways, |way| shots.choose(way))?;
    let chosen: Vec<(Settings, f64)> = chosen.into_iter().flatten().collect();
    let mut best: Vec<Settings> = Vec::new();
    for (settings, _) in &chosen {
        if best.iter().any(|other| group(other) == group(settings)) {
            continue;
        }
        let mut alike = chosen
            .iter()
            .filter(|(other, _)| group(other) == group(settings));
        let most = alike.clone().map(|(_, recall)| *recall).fold(0.0, f64::max);
        // Of settings that find about as much the most tolerant ones, which come last.
        let last = alike.rfind(|(_, recall)| *recall >= most - ABOUT_AS_MUCH);
        best.extend(last.map(|(settings, _)| *settings));
    }
    let shots = Shots::new(&object, REPORTED_SEED, effort.good, effort.bad[1])?;
    let outcomes = on_every_core("reported", &best, |settings| shots.judge(settings))?;
    let displaced = displaced(&object, &shots, &outcomes, effort)?;
    Ok(Measured {
        object,
        outcomes,
        displaced,
    })
}

/// Displaced parts with the settings chosen for one template and a Gaussian, and with those for boards
/// (lab/figures/real-pictures.md), without and with local shifts.
fn displaced(
    object: &Object,
    shots: &Shots,
    outcomes: &[Outcome],
    effort: &TemplateEffort,
) -> Result<Vec<Displaced>> {
    let affine = (outcomes.iter())
        .map(|outcome| outcome.settings)
        .find(|settings| group(settings) == (1, true, "affine"));
    let Some(affine) = affine else {
        return Ok(Vec::new());
    };
    let boards = Settings {
        gaussian: false,
        tolerance: 1,
        threshold: 12.0,
        opening: 3,
        min_area: 9,
        ..affine
    };
    let settings = [affine, boards]
        .map(|settings| ["affine", "local"].map(|align| Settings { align, ..settings }));
    let mut all = Vec::new();
    for part_px in PARTS_PX {
        // The same parts at every distance.
        let moved = on_every_core("displaced parts", &DISTANCES_PX, |&distance_px| {
            object.displaced(DISPLACED_SEED, effort.displaced, part_px, distance_px)
        })?;
        all.extend(on_every_core(
            "judged",
            settings.as_flattened(),
            |settings| {
                let benches = shots.benches(settings)?;
                let recalls = moved
                    .iter()
                    .map(|moved| recall_of(moved, &benches, settings));
                Ok(Displaced {
                    part_px,
                    settings: *settings,
                    recalls: recalls.collect::<Result<_>>()?,
                })
            },
        )?);
    }
    Ok(all)
}

/// The planted defects that are found.
fn recall_of(shots: &[Shot], benches: &[Bench], settings: &Settings) -> Result<Recall> {
    let mut recall = Recall::default();
    for (shot, bench) in shots.iter().zip(benches.iter().cycle()) {
        let judged = bench.judge(&shot.samples, settings.threshold)?;
        add(&mut recall, shot, &judged, settings.min_area);
    }
    Ok(recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turned_template_passes_good_labels_and_finds_displaced_parts() {
        gst::init().unwrap();
        gstclinspect::register_static().unwrap();
        if let Err(why) = clinspect_opencl::open("auto") {
            assert!(
                std::env::var_os("CLINSPECT_REQUIRE_DEVICE").is_none(),
                "{why}"
            );
            eprintln!("SKIPPED: {why}");
            return;
        }
        let object = Object::TurnedLabel;
        let shots = Shots::new(&object, REPORTED_SEED, 10, 2).unwrap();
        let affine = Settings {
            align: "affine",
            train: 1,
            tolerance: 1,
            threshold: 29.0,
            merge: 0,
            ..Settings::RECOMMENDED
        };
        let outcome = shots.judge(&affine).unwrap();
        assert_eq!((outcome.failed, outcome.blobs), (0, 0));
        // A shift does not fit turned labels.
        let shift = Settings {
            align: "translation",
            ..affine
        };
        assert!(shots.judge(&shift).unwrap().failed > 4);
        // Parts that lie 6 px beside their place are found, those in their place are not.
        let benches = shots.benches(&affine).unwrap();
        let found = |distance_px| {
            let shots = object.displaced(1, 5, PARTS_PX[0], distance_px).unwrap();
            let recall = recall_of(&shots, &benches, &affine).unwrap();
            (recall.found, recall.planted)
        };
        assert_eq!((found(0.0), found(6.0)), ((0, 5), (5, 5)));
    }
}
