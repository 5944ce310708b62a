//! Printed labels compared with a trained reference: false blobs on good labels, and misprints found.

use std::collections::HashMap;

use anyhow::{Result, anyhow};
use gstclinspect::results::{Defect, Verdict};

use crate::{
    common::label::{
        LabelFrame, LabelGenerator, LabelSpec, Misprint, MisprintKind, PlantedMisprint,
    },
    detector::{Bench, Judgement},
    on_every_core,
};

mod report;

pub use report::{targets, write};

/// Seeds of the labels for training, of good labels, and of misprints.
const TRAINING_SEED: u64 = 101;
const GOOD_SEED: u64 = 102;
const BAD_SEED: u64 = 103;
/// Seed of a label for a picture.
const SHOWN_SEED: u64 = 104;
/// Misprints of a kind on a bad label.
const PER_LABEL: usize = 4;
/// Size and contrast of the misprints in the first tables: the faintest that must be found.
pub const SIZE_PX: f64 = 3.0;
pub const CONTRAST: f64 = 60.0;

/// Settings of `clreference`, and what comes before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Whether `clgaussian kernel-size=5 sigma=0.8` comes before the comparison.
    pub gaussian: bool,
    /// `align`.
    pub align: &'static str,
    /// `normalize`.
    pub normalize: &'static str,
    /// `edge-tolerance`, px.
    pub tolerance: u32,
    /// `train-frames`.
    pub train: u32,
    /// `deviation-factor`.
    pub factor: f64,
    /// `threshold`, grey levels.
    pub threshold: f64,
    /// `opening`.
    pub opening: u32,
    /// `min-area`, px.
    pub min_area: u32,
    /// `merge-distance`, px.
    pub merge: u32,
}

impl Settings {
    /// The settings that the tables recommend for such labels.
    pub const RECOMMENDED: Self = Self {
        gaussian: true,
        align: "translation",
        normalize: "gain",
        tolerance: 1,
        train: 32,
        factor: 4.0,
        threshold: 14.0,
        opening: 0,
        min_area: 1,
        merge: 3,
    };

    /// The elements as `gst-launch-1.0` takes them.
    pub fn elements(&self) -> String {
        let gaussian = if self.gaussian {
            "clgaussian kernel-size=5 sigma=0.8 ! "
        } else {
            ""
        };
        let opening = match self.opening {
            0 => String::new(),
            size => format!("opening={size} "),
        };
        format!(
            "{gaussian}clreference name=judge align={} normalize={} edge-tolerance={} \
             train-frames={} deviation-factor={} threshold={} {opening}min-area={} merge-distance={}",
            self.align,
            self.normalize,
            self.tolerance,
            self.train,
            self.factor,
            self.threshold,
            self.min_area,
            self.merge
        )
    }
}

/// Extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct LabelEffort {
    /// Good labels.
    pub good: usize,
    /// Labels with misprints, per kind, size and contrast.
    pub bad: usize,
}

/// Found and planted misprints of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall {
    /// Misprints with a listed defect.
    pub found: usize,
    /// All misprints.
    pub planted: usize,
}

impl Recall {
    /// Share of the misprints.
    pub fn share(&self) -> f64 {
        self.found as f64 / self.planted.max(1) as f64
    }
}

/// Misprints by kind, in the order of [`MisprintKind::ALL`].
pub type Recalls = [Recall; MisprintKind::ALL.len()];

/// Results of settings.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Settings.
    pub settings: Settings,
    /// Good labels.
    pub labels: usize,
    /// Good labels that failed.
    pub failed: usize,
    /// Listed defects on good labels.
    pub blobs: usize,
    /// Good labels, megapixels.
    pub mpx: f64,
    /// Misprints found.
    pub recalls: Recalls,
}

impl Outcome {
    /// Listed defects on good labels per megapixel.
    pub fn blobs_per_mpx(&self) -> f64 {
        self.blobs as f64 / self.mpx
    }

    /// The lowest recall of a kind.
    pub fn lowest(&self) -> f64 {
        let shares = self.recalls.iter().map(Recall::share);
        shares.fold(1.0, f64::min)
    }
}

/// All results.
pub struct Labels {
    /// Extent.
    pub effort: LabelEffort,
    /// By alignment, brightness and tolerance.
    pub ways: Vec<Outcome>,
    /// Settings beside the recommended ones, which come first.
    pub choices: Vec<Outcome>,
    /// The recommended settings by size, px, and contrast of the misprints.
    pub faint: Vec<(f64, f64, Recalls)>,
}

/// Measures all tables.
pub fn measure(effort: &LabelEffort) -> Result<Labels> {
    let best = Settings::RECOMMENDED;
    let ways: Vec<Settings> = [
        ("none", "none"),
        ("translation", "none"),
        ("none", "gain"),
        ("translation", "offset"),
        ("translation", "gain"),
    ]
    .into_iter()
    .flat_map(|(align, normalize)| {
        [0, 1, 2].map(|tolerance| Settings {
            align,
            normalize,
            tolerance,
            ..best
        })
    })
    .collect();
    let choices = choices();
    let shots = Shots::new(effort)?;
    let all: Vec<Settings> = ways.iter().chain(&choices).copied().collect();
    let mut outcomes = on_every_core("labels", &all, |settings| shots.judge(settings))?;
    let choices = outcomes.split_off(ways.len());
    let mut faint = Vec::new();
    let steps = [
        (2.0, 60.0),
        (3.0, 30.0),
        (3.0, 40.0),
        (3.0, 60.0),
        (3.0, 80.0),
        (3.0, 120.0),
        (4.0, 60.0),
        (6.0, 30.0),
        (6.0, 60.0),
    ];
    for recalls in on_every_core("misprints", &steps, |&(size, contrast)| {
        let bad = misprints(effort.bad, size, contrast)?;
        let bench = trained(&best, &shots.training)?;
        Ok((size, contrast, find(&bench, &best, &bad)?))
    })? {
        faint.push(recalls);
    }
    Ok(Labels {
        effort: *effort,
        ways: outcomes,
        choices,
        faint,
    })
}

/// The recommended settings, and each of them changed alone.
fn choices() -> Vec<Settings> {
    let best = Settings::RECOMMENDED;
    let mut choices = vec![best];
    choices.extend([8, 16, 64].map(|train| Settings { train, ..best }));
    choices.extend([0.0, 2.0, 3.0, 6.0].map(|factor| Settings { factor, ..best }));
    choices.extend(
        [8.0, 10.0, 12.0, 16.0, 20.0, 30.0].map(|threshold| Settings { threshold, ..best }),
    );
    choices.extend([2, 3, 6].map(|min_area| Settings { min_area, ..best }));
    choices.push(Settings {
        gaussian: false,
        ..best
    });
    choices
}

/// Labels that all settings judge.
struct Shots {
    /// As many as the longest training needs.
    training: Vec<LabelFrame>,
    good: Vec<LabelFrame>,
    bad: HashMap<MisprintKind, Vec<LabelFrame>>,
}

impl Shots {
    fn new(effort: &LabelEffort) -> Result<Self> {
        let longest = choices().iter().map(|settings| settings.train).max();
        let good = |seed: u64, count: usize| -> Result<Vec<LabelFrame>> {
            let mut labels = generator(seed)?;
            Ok((0..count).map(|_| labels.good()).collect())
        };
        Ok(Self {
            training: good(TRAINING_SEED, longest.unwrap_or(1) as usize)?,
            good: good(GOOD_SEED, effort.good)?,
            bad: misprints(effort.bad, SIZE_PX, CONTRAST)?,
        })
    }

    fn judge(&self, settings: &Settings) -> Result<Outcome> {
        let bench = trained(settings, &self.training)?;
        let (mut failed, mut blobs) = (0, 0);
        for label in &self.good {
            let judgement = bench.judge(&label.samples, settings.threshold)?;
            failed += usize::from(judgement.result.verdict != Verdict::Pass);
            blobs += judgement.result.defects.len();
        }
        let spec = LabelSpec::default();
        Ok(Outcome {
            settings: *settings,
            labels: self.good.len(),
            failed,
            blobs,
            mpx: (self.good.len() * spec.width * spec.height) as f64 * 1e-6,
            recalls: find(&bench, settings, &self.bad)?,
        })
    }
}

fn generator(seed: u64) -> Result<LabelGenerator> {
    LabelGenerator::new(LabelSpec::default(), seed).map_err(|why| anyhow!(why))
}

/// Labels with misprints, by kind.
fn misprints(
    labels: usize,
    size_px: f64,
    contrast: f64,
) -> Result<HashMap<MisprintKind, Vec<LabelFrame>>> {
    let mut generator = generator(BAD_SEED)?;
    let kinds = MisprintKind::ALL.into_iter().map(|kind| {
        let misprint = Misprint {
            kind,
            size_px,
            contrast,
        };
        let frames = (0..labels).map(|_| generator.label(&[misprint; PER_LABEL]));
        (kind, frames.collect())
    });
    Ok(kinds.collect())
}

/// The elements after their training.
fn trained(settings: &Settings, training: &[LabelFrame]) -> Result<Bench> {
    let spec = LabelSpec::default();
    let bench = Bench::launch(&settings.elements(), [spec.width, spec.height])?;
    for label in &training[..settings.train as usize] {
        let judgement = bench.judge(&label.samples, settings.threshold)?;
        if judgement.result.verdict != Verdict::None {
            return Err(anyhow!("a label of the training was judged"));
        }
    }
    Ok(bench)
}

fn find(
    bench: &Bench,
    settings: &Settings,
    bad: &HashMap<MisprintKind, Vec<LabelFrame>>,
) -> Result<Recalls> {
    let mut recalls = Recalls::default();
    for (recall, kind) in recalls.iter_mut().zip(MisprintKind::ALL) {
        for label in bad.get(&kind).into_iter().flatten() {
            let judgement = bench.judge(&label.samples, settings.threshold)?;
            recall.planted += label.planted.len();
            let found = label
                .planted
                .iter()
                .filter(|planted| is_found(planted, &judgement));
            recall.found += found.count();
        }
    }
    Ok(recalls)
}

/// A label with misprints of every kind, and what the recommended settings mark.
pub fn shown() -> Result<(Vec<u8>, Judgement)> {
    let settings = Settings::RECOMMENDED;
    let mut good = generator(TRAINING_SEED)?;
    let training: Vec<LabelFrame> = (0..settings.train).map(|_| good.good()).collect();
    let bench = trained(&settings, &training)?;
    let label = generator(SHOWN_SEED)?.next_random(16);
    let judgement = bench.judge(&label.samples, settings.threshold)?;
    Ok((label.samples, judgement))
}

/// Whether a listed defect has a marked pixel that the misprint changes by at least half of its peak.
/// Alignment is in parts of a pixel: a neighbour counts, too.
fn is_found(planted: &PlantedMisprint, judgement: &Judgement) -> bool {
    let covers = |x: usize, y: usize| {
        (-1..=1).any(|j| {
            (-1..=1).any(|i| {
                let x = x.checked_add_signed(i);
                let y = y.checked_add_signed(j);
                x.zip(y).is_some_and(|(x, y)| planted.covers(x, y))
            })
        })
    };
    let meets = |defect: &Defect| judgement.marked_in(defect).any(|(x, y)| covers(x, y));
    judgement.result.defects.iter().any(meets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_settings_pass_good_labels_and_find_misprints() {
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
        let shots = Shots::new(&LabelEffort { good: 8, bad: 2 }).unwrap();
        let outcome = shots.judge(&Settings::RECOMMENDED).unwrap();
        assert_eq!((outcome.failed, outcome.blobs), (0, 0));
        // Of 8 misprints per kind one may be missed.
        assert!(outcome.lowest() > 0.8, "{:?}", outcome.recalls);
        // Labels that are not aligned fail, so the figures above are not those of any setting.
        let apart = Settings {
            align: "none",
            ..Settings::RECOMMENDED
        };
        assert!(shots.judge(&apart).unwrap().failed > 4);
    }
}
