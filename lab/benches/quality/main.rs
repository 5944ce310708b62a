//! Detection benchmark: synthetic panels with planted defects through the real elements.
//!
//! `lab/quality` runs it and writes `lab/figures/quality.md`. Seeds are fixed and the elements give
//! the same bits on every device, so the tables repeat exactly.

use clinspect_testkit::{self as common};
mod detector;
mod discs;
mod labels;
mod light;
mod limits;
mod measure;
mod pictures;
mod report;
mod scene;
mod stains;
mod template;
mod web;
mod which;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context, Result, anyhow};
use clap::Parser;

use common::panel::PanelSpec;
use detector::Detector;
use labels::LabelEffort;
use limits::LimitsEffort;
use measure::{CLASSES, Effort, Scenario, estimate_pitch};
use report::{ClassRow, PanelRow, Report};
use stains::StainEffort;
use template::TemplateEffort;

/// Noise of the panels whose pitch is estimated, grey levels.
const ESTIMATE_NOISE: f64 = 8.0;
/// Errors of the pitch that are measured, px.
const PITCH_ERROR_PX: f64 = 0.05;
/// Point-spread function of the sharper defects, px.
const SHARP_PSF_PX: f64 = 0.5;

/// Measures how well the elements detect planted defects, and writes the tables.
#[derive(Parser)]
#[command(name = "quality")]
struct Args {
    /// Fewer frames and panels: about a minute, less precise figures
    #[arg(long)]
    quick: bool,
    /// Also write the document to this file
    #[arg(long)]
    output: Option<PathBuf>,
    /// Only measure what the elements cannot find, and print its tables
    #[arg(long, conflicts_with = "output")]
    limits: bool,
    /// Only measure a web in strips, and print its table
    #[arg(long, conflicts_with_all = ["output", "limits"])]
    web: bool,
    /// Only measure printed labels, and print their tables
    #[arg(long, conflicts_with_all = ["output", "limits", "web"])]
    labels: bool,
    /// Only measure objects with one template, and print their tables
    #[arg(long, conflicts_with_all = ["output", "limits", "web", "labels"])]
    template: bool,
    /// Folder with the photographs of scripts/photographs; without it the coins are left out
    #[arg(long)]
    photographs: Option<PathBuf>,
    /// Only measure the comparison across scales, and print its tables
    #[arg(long, conflicts_with_all = ["output", "limits", "web", "labels"])]
    stains: bool,
    /// Only measure uneven light, and print its table
    #[arg(long, conflicts_with_all = ["output", "limits", "web", "labels", "stains"])]
    light: bool,
    /// Only write the pictures of docs/limits.md, docs/quality.md and docs/which-element.md into this folder
    #[arg(long, conflicts_with_all = ["output", "limits"])]
    pictures: Option<PathBuf>,
}

/// Extent of a run.
struct Plan {
    effort: Effort,
    /// Detectors that are also measured with sharper defects.
    sharp: &'static [Detector],
    /// Pitches and noises of the recommended detector's panels.
    pitches_px: &'static [f64],
    noises: &'static [f64],
    /// Pitch and noise of an evenly lit panel.
    even: Option<(f64, f64)>,
    /// Pitches and noises of panels that are also judged with `borders=skip`.
    skip: &'static [(f64, f64)],
    /// Detectors in the recall table.
    recall: &'static [Detector],
    estimated_px: &'static [f64],
    stains: StainEffort,
    limits: LimitsEffort,
    labels: LabelEffort,
    template: TemplateEffort,
    /// Width and rows of the web; the rows are a multiple of each of the heights of strips.
    web: [usize; 2],
    strips: &'static [usize],
}

const FULL: Plan = Plan {
    effort: Effort {
        clean_mpx: 16.0,
        discs: 600,
        defects_per_class: 200,
        panels_per_pitch: 4,
    },
    sharp: &Detector::ALL,
    pitches_px: &[7.35, 7.5, 16.35, 61.13],
    noises: &[2.0, 4.0, 8.0],
    even: Some((61.13, 2.0)),
    skip: &[(16.35, 4.0), (61.13, 2.0)],
    recall: &Detector::ALL,
    estimated_px: &[
        3.0, 3.4, 4.27, 5.5, 7.35, 7.5, 9.81, 12.6, 16.35, 23.77, 37.2, 61.13, 98.4, 149.5, 200.0,
    ],
    stains: StainEffort {
        clean_mpx: 32.0,
        discs: [500, 200],
        discs_of_large_frames: 100,
        short: false,
    },
    limits: LimitsEffort {
        clean_frames: 100,
        threshold_frames: 16,
        scenes: 12,
    },
    labels: LabelEffort { good: 100, bad: 50 },
    template: TemplateEffort {
        good: 100,
        bad: [10, 25],
        displaced: 100,
    },
    web: [256, 7 * 25_600],
    strips: &[1024, 100, 7],
};

const QUICK: Plan = Plan {
    effort: Effort {
        clean_mpx: 4.0,
        discs: 100,
        defects_per_class: 24,
        panels_per_pitch: 1,
    },
    sharp: &[Detector::RECOMMENDED],
    pitches_px: &[7.35],
    noises: &[4.0],
    even: None,
    skip: &[],
    recall: &[Detector::SCALES, Detector::RECOMMENDED],
    estimated_px: &[3.4, 7.35, 61.13],
    stains: StainEffort {
        clean_mpx: 8.0,
        discs: [75, 40],
        discs_of_large_frames: 40,
        short: true,
    },
    limits: LimitsEffort {
        clean_frames: 4,
        threshold_frames: 4,
        scenes: 2,
    },
    labels: LabelEffort { good: 10, bad: 3 },
    template: TemplateEffort {
        good: 10,
        bad: [2, 2],
        displaced: 10,
    },
    web: [256, 4200],
    strips: &[600, 100, 7],
};

/// A panel with this pitch along both axes, on a frame with enough cells for a comparison four
/// cells away.
fn panel(pitch_px: f64, noise_sigma: f64) -> PanelSpec {
    let [width, height] = if pitch_px < 40.0 {
        [640, 480]
    } else if pitch_px < 80.0 {
        [1280, 960]
    } else {
        [1920, 1440]
    };
    PanelSpec {
        width,
        height,
        pitch_x: pitch_px,
        pitch_y: pitch_px,
        noise_sigma,
        ..PanelSpec::default()
    }
}

/// Runs `work` on every item, on one thread per core; results keep the order of the items.
fn on_every_core<T: Sync, R: Send>(
    what: &str,
    items: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let started = Instant::now();
    let threads = thread::available_parallelism().map_or(1, |n| n.get().min(items.len()));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(i) else { break };
                    let result = work(item);
                    if result.is_err() {
                        // Stops the other threads.
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    eprintln!("{what}: {:.1} s", started.elapsed().as_secs_f64());
    done.into_iter().map(|(_, result)| result).collect()
}

fn measure(plan: &Plan, photographs: Option<&Path>) -> Result<Report> {
    let effort = &plan.effort;
    let base = panel(7.35, 4.0);
    let scenario = |detector: &Detector| Scenario::new(*detector, base);
    let run = |what: &str, scenarios: &[Scenario]| {
        on_every_core(what, scenarios, |scenario| scenario.measure(effort))
    };

    let detectors = Detector::ALL.each_ref().map(scenario);
    let outcomes = run("detectors", &detectors)?;
    let recommended = *outcomes.last().context("no detector")?;

    let sharp: Vec<_> = plan
        .sharp
        .iter()
        .map(|&detector| {
            let spec = PanelSpec {
                defect_psf_sigma_px: Some(SHARP_PSF_PX),
                ..base
            };
            Scenario::new(detector, spec)
        })
        .collect();
    let sharp_outcomes = run("sharper defects", &sharp)?;

    let wrong: Vec<_> = [Detector::RECOMMENDED, Detector::SKIP]
        .iter()
        .flat_map(|detector| {
            [-PITCH_ERROR_PX, PITCH_ERROR_PX].map(|pitch_error_px| Scenario {
                pitch_error_px,
                ..scenario(detector)
            })
        })
        .collect();
    let wrong_outcomes = run("pitch errors", &wrong)?;

    let even = plan.even.map(|(pitch_px, noise)| PanelSpec {
        vignetting: 0.0,
        ..panel(pitch_px, noise)
    });
    let panels: Vec<_> = plan
        .pitches_px
        .iter()
        .flat_map(|&pitch| plan.noises.iter().map(move |&noise| panel(pitch, noise)))
        .chain(even)
        .map(|spec| Scenario::new(Detector::RECOMMENDED, spec))
        .chain(
            plan.skip
                .iter()
                .map(|&(pitch, noise)| Scenario::new(Detector::SKIP, panel(pitch, noise))),
        )
        .collect();
    let panel_outcomes = run("pitches and noises", &panels)?;

    // Each detector uses its threshold of the first table.
    let threshold_of = |detector: &Detector| {
        let position = Detector::ALL.iter().position(|other| other == detector);
        position
            .and_then(|i| outcomes.get(i))
            .map(|outcome| outcome.threshold)
            .ok_or_else(|| anyhow!("{} was not measured", detector.name))
    };
    let jobs: Vec<_> = CLASSES
        .iter()
        .flat_map(|&class| plan.recall.iter().map(move |&detector| (class, detector)))
        .collect();
    let recalls = on_every_core("classes", &jobs, |(class, detector)| {
        scenario(detector).class_recall(threshold_of(detector)?, *class, effort)
    })?;
    let classes = CLASSES
        .iter()
        .zip(recalls.chunks(plan.recall.len()))
        .map(|(class, recalls)| ClassRow {
            class: *class,
            recalls: recalls.to_vec(),
        })
        .collect();
    let mixed = on_every_core("mixed classes", plan.recall, |detector| {
        scenario(detector).mixed_blobs(threshold_of(detector)?, effort)
    })?;

    let estimates = on_every_core("estimated pitches", plan.estimated_px, |&pitch| {
        estimate_pitch(panel(pitch, ESTIMATE_NOISE), effort)
    })?;

    Ok(Report {
        effort: *effort,
        detectors: Detector::ALL.into_iter().zip(outcomes).collect(),
        sharp: plan.sharp.iter().copied().zip(sharp_outcomes).collect(),
        recommended,
        wrong_pitch: wrong
            .iter()
            .zip(wrong_outcomes)
            .map(|(scenario, outcome)| (scenario.detector, scenario.pitch_error_px, outcome))
            .collect(),
        panels: panels
            .iter()
            .zip(panel_outcomes)
            .map(|(scenario, outcome)| PanelRow {
                detector: scenario.detector,
                spec: scenario.spec,
                outcome,
            })
            .collect(),
        recall_detectors: plan.recall.to_vec(),
        classes,
        mixed,
        estimates,
        light: light::measure(effort)?,
        stains: stains::measure(&plan.stains)?,
        limits: limits::measure(&plan.limits)?,
        labels: labels::measure(&plan.labels)?,
        template: (
            plan.template,
            template::measure(&plan.template, photographs)?,
        ),
        web: (
            plan.web,
            web::measure(plan.web[0], plan.web[1], plan.strips)?,
        ),
    })
}

fn main() -> Result<()> {
    let args = Args::parse();
    gst::init()?;
    gstclinspect::register_static()?;
    let started = Instant::now();
    let plan = if args.quick { &QUICK } else { &FULL };
    if let Some(folder) = &args.pictures {
        which::write(folder)?;
        return pictures::write(folder, &plan.limits);
    }
    let document = if args.web {
        let mut document = String::new();
        let table = web::measure(plan.web[0], plan.web[1], plan.strips)?;
        web::write(&mut document, plan.web, &table);
        document
    } else if args.labels {
        let mut document = String::new();
        labels::write(&mut document, &labels::measure(&plan.labels)?);
        document
    } else if args.template {
        let mut document = String::new();
        let objects = template::measure(&plan.template, args.photographs.as_deref())?;
        template::write(&mut document, &plan.template, &objects);
        document
    } else if args.light {
        let mut document = String::new();
        light::write(&mut document, &light::measure(&plan.effort)?);
        document
    } else if args.stains {
        let mut document = String::new();
        stains::write(&mut document, &stains::measure(&plan.stains)?, None);
        document
    } else if args.limits {
        let mut document = String::new();
        limits::write(&mut document, &limits::measure(&plan.limits)?);
        document
    } else {
        measure(plan, args.photographs.as_deref())?.to_markdown()
    };
    eprintln!("all: {:.0} s", started.elapsed().as_secs_f64());
    if let Some(path) = &args.output {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(path, &document).with_context(|| format!("writing {}", path.display()))?;
    }
    print!("{document}");
    Ok(())
}
