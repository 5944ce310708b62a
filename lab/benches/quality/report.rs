//! Writes lab/figures/quality.md.

use std::fmt::Write as _;

use crate::{
    common::panel::{DefectKind, PanelSpec},
    detector::Detector,
    discs::DISCS_PER_FRAME,
    labels::{self, Labels},
    light::{self, LightRow},
    limits::{self, Table},
    measure::{
        Blobs, CLASS_CONTRAST, Class, DIAMETERS_PX, Effort, MAX_CONTRAST, Outcome, PRECISION_AT,
        PitchEstimate, Recall, THRESHOLD_STEP,
    },
    stains::{self, Stains},
    template::{self, Measured, TemplateEffort},
    web::{self, WebRow},
};

/// Targets of the recommended settings.
const MAX_C95_3: f64 = 18.0;
const MAX_C95_6: f64 = 10.5;
const MIN_RECALL: f64 = 0.98;
const MIN_PRECISION: f64 = 0.95;
const MIN_PRECISION_ONE_WAY: f64 = 0.98;
const MAX_RESIDUAL: f64 = 2.0;
const MAX_C95_CHANGE: f64 = 2.0;
const MAX_ESTIMATE_ERROR_PX: f64 = 0.01;

/// A row of the recall table.
pub struct ClassRow {
    /// Class.
    pub class: Class,
    /// Per detector of the table.
    pub recalls: Vec<Recall>,
}

/// A detector on a panel.
pub struct PanelRow {
    /// Detector.
    pub detector: Detector,
    /// Panel.
    pub spec: PanelSpec,
    /// Results.
    pub outcome: Outcome,
}

/// All results.
pub struct Report {
    /// Extent of the measurement.
    pub effort: Effort,
    /// Every detector at σ 4, p 7.35.
    pub detectors: Vec<(Detector, Outcome)>,
    /// The same with sharper defects.
    pub sharp: Vec<(Detector, Outcome)>,
    /// The recommended detector of `detectors`.
    pub recommended: Outcome,
    /// By detector and error of both pitches, px.
    pub wrong_pitch: Vec<(Detector, f64, Outcome)>,
    /// The recommended detector by pitch and noise, then some panels with `borders=skip`.
    pub panels: Vec<PanelRow>,
    /// Detectors of `classes` and `mixed`.
    pub recall_detectors: Vec<Detector>,
    /// Recall by class.
    pub classes: Vec<ClassRow>,
    /// Blobs on frames with every class, with and without noise.
    pub mixed: Vec<(Blobs, Blobs)>,
    /// Estimated pitches.
    pub estimates: Vec<PitchEstimate>,
    /// Uneven light.
    pub light: Vec<LightRow>,
    /// The comparison across scales.
    pub stains: Stains,
    /// What the elements cannot find.
    pub limits: Vec<Table>,
    /// Printed labels.
    pub labels: Labels,
    /// Objects with one template.
    pub template: (TemplateEffort, Vec<Measured>),
    /// The web in strips, with its width and rows.
    pub web: ([usize; 2], Vec<WebRow>),
}

/// A target and the measured value.
pub struct Target {
    /// What is measured.
    pub name: String,
    /// The limit.
    pub wanted: String,
    /// The value.
    pub measured: String,
    /// Whether the value is within the limit.
    pub met: bool,
    /// Likely reason for a miss.
    pub reason: String,
}

impl Report {
    /// The document in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = String::from(INTRODUCTION);
        self.targets_section(&mut out);
        self.detector_section(&mut out);
        self.panel_section(&mut out);
        light::write(&mut out, &self.light);
        self.class_section(&mut out);
        self.pitch_section(&mut out);
        stains::write(&mut out, &self.stains, Some(self.recommended.threshold));
        limits::write(&mut out, &self.limits);
        labels::write(&mut out, &self.labels);
        template::write(&mut out, &self.template.0, &self.template.1);
        web::write(&mut out, self.web.0, &self.web.1);
        self.method_section(&mut out);
        out
    }

    fn targets(&self) -> Vec<Target> {
        let at_most = |name: &str, limit: f64, value: Option<f64>, reason: &str| Target {
            name: name.into(),
            wanted: format!("≤ {limit}"),
            measured: contrast(value),
            met: value.is_some_and(|value| value <= limit),
            reason: reason.into(),
        };
        let at_least = |name: String, limit: f64, value: f64, reason: &str| Target {
            name,
            wanted: format!("≥ {limit}"),
            measured: format!("{value:.3}"),
            met: value >= limit,
            reason: reason.into(),
        };
        let recommended = &self.recommended;
        let sharp = self.sharp.last().map(|(_, outcome)| outcome.c95);
        let c95 = |i: usize, limit: f64| {
            let name = format!("C95 Ø{}", DIAMETERS_PX[i]);
            let reason = format!(
                "{REASON_C95}; with sharper defects C95 is {}",
                contrast(sharp.and_then(|c95| c95[i]))
            );
            at_most(&name, limit, recommended.c95[i], &reason)
        };
        let mut targets = vec![c95(1, MAX_C95_3), c95(2, MAX_C95_6)];
        let recalls = |row: &ClassRow| {
            let last = row.recalls.last().copied().unwrap_or_default();
            (row.class.name, last.share())
        };
        if let Some((name, share)) = self
            .classes
            .iter()
            .map(recalls)
            .min_by(|a, b| a.1.total_cmp(&b.1))
        {
            let name = format!("lowest recall of a class ({name})");
            targets.push(at_least(name, MIN_RECALL, share, ""));
        }
        targets.push(at_least(
            "precision".into(),
            MIN_PRECISION,
            recommended.blobs.precision(),
            "",
        ));
        if let Some((blobs, _)) = self.mixed.last() {
            targets.push(at_least(
                format!("precision, all classes mixed at contrast {CLASS_CONTRAST}"),
                MIN_PRECISION,
                blobs.precision(),
                REASON_MIXED,
            ));
        }
        let one_way = self.detectors.iter().find(|(d, _)| *d == Detector::ONE_WAY);
        if let Some((_, outcome)) = one_way {
            let name = "precision, one direction and multiple 1".into();
            let precision = outcome.blobs.precision();
            targets.push(at_least(name, MIN_PRECISION_ONE_WAY, precision, ""));
        }
        for (name, blobs, reason) in [
            ("without noise", &recommended.noise_free, REASON_GHOSTS),
            ("at σ 4", &recommended.blobs, REASON_CHANCE_GHOSTS),
        ] {
            targets.push(Target {
                name: format!("ghosts {name}"),
                wanted: "0".into(),
                measured: format!("{} of {} defects", blobs.ghosts, blobs.planted),
                met: blobs.ghosts == 0,
                reason: reason.into(),
            });
        }
        targets.push(at_most(
            "clean residual p99.9",
            MAX_RESIDUAL,
            Some(recommended.residual),
            REASON_RESIDUAL,
        ));
        let wrong = self.wrong_pitch.iter();
        for (_, error, outcome) in wrong.filter(|(d, ..)| *d == Detector::RECOMMENDED) {
            for (i, diameter) in DIAMETERS_PX.iter().enumerate() {
                let change = outcome.c95[i]
                    .zip(recommended.c95[i])
                    .map(|(with, without)| with - without);
                targets.push(Target {
                    measured: change.map_or("?".into(), |change| format!("{change:+.1}")),
                    ..at_most(
                        &format!("change of C95 Ø{diameter} at a pitch error of {error:+} px"),
                        MAX_C95_CHANGE,
                        change.map(f64::abs),
                        REASON_PITCH,
                    )
                });
            }
        }
        let worst = self
            .estimates
            .iter()
            .flat_map(|estimate| estimate.error_px)
            .try_fold(0f64, |worst, error| error.map(|error| worst.max(error)));
        targets.push(Target {
            measured: worst.map_or("unknown".into(), |worst| format!("{worst:.4} px")),
            ..at_most(
                "error of an estimated pitch at σ 8",
                MAX_ESTIMATE_ERROR_PX,
                worst,
                "",
            )
        });
        let across = self.detectors.iter().find(|(d, _)| *d == Detector::SCALES);
        if let Some((_, outcome)) = across {
            targets.extend(stains::targets(&self.stains, outcome.blobs.precision()));
        }
        targets.extend(labels::targets(&self.labels));
        targets
    }

    fn targets_section(&self, out: &mut String) {
        let targets = self.targets();
        out.push_str(
            "## Targets\n\nThe recommended settings with `scales=0` at σ 4, p 7.35, unless the row says otherwise.\n\n",
        );
        header(out, &["target", "wanted", "measured", "", "likely reason"]);
        for target in &targets {
            let (met, reason) = if target.met {
                ("met", "")
            } else {
                ("**missed**", target.reason.as_str())
            };
            row(
                out,
                &[&target.name, &target.wanted, &target.measured, met, reason],
            );
        }
        out.push('\n');
    }

    fn detector_section(&self, out: &mut String) {
        out.push_str("## Detectors at σ 4, p 7.35\n\n");
        outcome_table(out, self.detectors.iter());
        out.push_str(SHARP);
        outcome_table(out, self.sharp.iter());
        out.push_str("Settings:\n\n```text\n");
        for detector in Detector::ALL {
            let _ = writeln!(
                out,
                "{}:\n    {}",
                detector.name,
                detector.elements(7.35, 7.35)
            );
        }
        out.push_str("```\n\n");
    }

    fn panel_section(&self, out: &mut String) {
        out.push_str("## Recommended settings by pitch and noise\n\n");
        header(
            out,
            &[
                "pitch",
                "σ",
                "vignetting",
                "borders",
                "frame",
                "clean residual",
                "T",
                "C95 Ø1.5",
                "Ø3",
                "Ø6",
                "precision",
                "ghosts per defect",
                "without noise",
                "false blobs per Mpx",
            ],
        );
        for PanelRow {
            detector,
            spec,
            outcome,
        } in &self.panels
        {
            let size = format!("{}×{}", spec.width, spec.height);
            let [a, b, c] = outcome.c95.map(contrast);
            let pitch = spec.pitch_x.to_string();
            let cells: [&str; 14] = [
                &pitch,
                &spec.noise_sigma.to_string(),
                &spec.vignetting.to_string(),
                if detector.skip { "skip" } else { "inward" },
                &size,
                &outcome.residual.to_string(),
                &outcome.threshold.to_string(),
                &a,
                &b,
                &c,
                &format!("{:.3}", outcome.blobs.precision()),
                &format!("{:.3}", outcome.blobs.ghosts_per_defect()),
                &format!("{:.3}", outcome.noise_free.ghosts_per_defect()),
                &format!("{:.1}", outcome.blobs.false_per_mpx()),
            ];
            row(out, &cells);
        }
        out.push_str(PANELS);
    }

    fn class_section(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "## Recall by class at contrast {CLASS_CONTRAST}, σ 4, p 7.35\n"
        );
        let mut titles = vec!["class", "planted"];
        titles.extend(self.recall_detectors.iter().map(|detector| detector.name));
        header(out, &titles);
        for ClassRow { class, recalls } in &self.classes {
            let planted = recalls
                .first()
                .map_or(0, |recall| recall.planted)
                .to_string();
            let mut cells = vec![class.name.to_string(), planted];
            cells.extend(
                recalls
                    .iter()
                    .map(|recall| format!("{:.3}", recall.share())),
            );
            row(out, &cells.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let blobs = self
            .classes
            .iter()
            .filter(|row| row.class.kind == DefectKind::Blob);
        for ClassRow { class, recalls } in blobs {
            let mut cells = vec![
                format!("share of its pixels marked, {}", class.name),
                String::new(),
            ];
            cells.extend(recalls.iter().map(|r| format!("{:.3}", r.marked_share())));
            row(out, &cells.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let summary = |name: &str, value: &dyn Fn(&(Blobs, Blobs)) -> String| {
            let planted = self.mixed.first().map_or(0, |(blobs, _)| blobs.planted);
            let mut cells = vec![name.to_string(), planted.to_string()];
            cells.extend(self.mixed.iter().map(value));
            cells
        };
        for cells in [
            summary("*all classes mixed:* precision", &|(b, _)| {
                format!("{:.3}", b.precision())
            }),
            summary("ghosts per defect", &|(b, _)| {
                format!("{:.3}", b.ghosts_per_defect())
            }),
            summary("ghosts per defect without noise", &|(_, b)| {
                format!("{:.3}", b.ghosts_per_defect())
            }),
            summary("false blobs per Mpx", &|(b, _)| {
                format!("{:.1}", b.false_per_mpx())
            }),
        ] {
            row(out, &cells.iter().map(String::as_str).collect::<Vec<_>>());
        }
        out.push_str(CLASSES_NOTE);
    }

    fn pitch_section(&self, out: &mut String) {
        out.push_str(
            "## Wrong pitch\n\nBoth pitches are wrong by the error; T is searched again.\n\n",
        );
        header(
            out,
            &[
                "detector",
                "error, px",
                "clean residual",
                "T",
                "C95 Ø1.5",
                "Ø3",
                "Ø6",
            ],
        );
        for detector in [Detector::RECOMMENDED, Detector::SKIP] {
            let right = self
                .detectors
                .iter()
                .map(|(d, outcome)| (*d, 0.0, *outcome));
            let all = right.chain(self.wrong_pitch.iter().copied());
            for (_, error, outcome) in all.filter(|(d, ..)| *d == detector) {
                let [a, b, c] = outcome.c95.map(contrast);
                let cells = [
                    detector.name,
                    &format!("{error:+}"),
                    &outcome.residual.to_string(),
                    &outcome.threshold.to_string(),
                    &a,
                    &b,
                    &c,
                ];
                row(out, &cells);
            }
        }
        out.push_str(BORDERS);
        let _ = writeln!(
            out,
            "\n## Estimated pitch (`pitch-x=-1 pitch-y=-1`) at σ 8\n\n\
             Largest error of the first pitch held, over {} panels each.\n",
            self.effort.panels_per_pitch
        );
        header(out, &["pitch", "frame", "error along x, px", "along y, px"]);
        for estimate in &self.estimates {
            let [x, y] = estimate
                .error_px
                .map(|error| error.map_or("none found".into(), |error| format!("{error:.4}")));
            let size = format!("{}×{}", estimate.size[0], estimate.size[1]);
            row(out, &[&estimate.pitch_px.to_string(), &size, &x, &y]);
        }
        out.push('\n');
    }

    fn method_section(&self, out: &mut String) {
        let Effort {
            clean_mpx,
            discs,
            defects_per_class,
            panels_per_pitch,
        } = self.effort;
        let (diameter, at) = PRECISION_AT;
        let _ = write!(
            out,
            "## How it is measured\n\n\
             Repeat the measurement with `lab/quality` (`lab/quality --quick` takes about \
             a minute, is less precise and does not write this file). Seeds are fixed and the elements \
             give the same bits on every device, so the tables repeat exactly. This run: {clean_mpx} \
             clean megapixels per threshold, {discs} discs per contrast, {defects_per_class} or \
             more defects per class, {panels_per_pitch} panels per estimated pitch.\n\n\
             Each frame goes through `appsrc ! elements ! video/x-bitmask ! appsink`; marked \
             pixels are read from the mask, blobs from the defect list of GstClDefectMeta. Panels \
             come from `crates/testkit/src/panel.rs`: a band-limited cell under a point-spread \
             function of 0.8 px and the pixel's aperture, 120 grey levels from lowest to highest, \
             random phase, 0.03 px row jitter, 10 % vignetting unless the table says otherwise, shot \
             and read noise of σ together, 8 bits, the same pitch along x and y.\n\n"
        );
        header(out, &["column", "meaning"]);
        let precision = format!(
            "share of the blobs that are on a planted defect, with {DISCS_PER_FRAME} discs of \
             Ø{diameter} and contrast ±{at} per frame; a blob is on a defect if one of its pixels lies \
             within 1 px of a pixel that the defect changes by at least half of its peak"
        );
        let c95 = format!(
            "contrast, before the optics, at which 95 % of bright and dark discs of this diameter \
             (px) are found at T, interpolated between steps of 0.5; the highest contrast tried is \
             {MAX_CONTRAST}"
        );
        let threshold = format!(
            "lowest threshold, in steps of {THRESHOLD_STEP}, with at most one false blob per \
             megapixel on clean frames"
        );
        let residual = format!(
            "lowest threshold, in steps of {THRESHOLD_STEP}, that at most 0.1 % of the judged \
             pixels of noise-free panels reach"
        );
        let rows = [
            ("clean residual", residual.as_str()),
            ("T", &threshold),
            ("C95", &c95),
            ("precision", &precision),
            (
                "false blobs",
                "blobs that are neither on a defect nor ghosts",
            ),
            (
                "ghosts",
                "blobs that are not on a defect but within 1 px of a place where a comparison sees a \
                 defect again: the defect's box, shifted by one distance; marks by chance count too, \
                 except in *without noise*",
            ),
            (
                "recall",
                "share of the planted defects that are found: a pixel is marked that the defect \
                 changes by at least half of its peak; of a line, more than half of the length",
            ),
        ];
        for (column, meaning) in rows {
            row(out, &[column, meaning]);
        }
    }
}

const INTRODUCTION: &str = "# Detection quality: the tables\n\n\
    How well the elements find defects planted on synthetic panels, measured with the real elements. \
    [limits.md](../../docs/limits.md) says what cannot be found, [first-camera.md](../../docs/first-camera.md) \
    how to choose the settings. \
    [docs/quality.md](../../docs/quality.md) has what users need most. Written by `lab/quality`; do not edit.\n\n\
    The comparison across scales (`scales=3`) has its own section, *Stains*. The other tables \
    compare pixels alone (`scales=0`) unless a row or a column says `scales=3`.\n\n";

const SHARP: &str = "The same with defects drawn sharper than the optics allow (a point-spread \
    function of 0.5 px for the defects, 0.8 px for the panel), as in benchmarks that paint discs into \
    a finished picture. No camera takes such pictures. The table is here because the figures behind \
    the targets (C95 16.1 for Ø3, 9.2 for Ø6) come from defects of about this sharpness:\n\n";

const PANELS: &str = "\nGhosts at low noise and long pitches: `minimum` marks a pixel if both \
    neighbours differ. One distance from a defect, one neighbour is the defect and differs, so the \
    other neighbour alone decides. It differs by more than T through noise, or through vignetting, \
    because 4 pitches are a large part of the frame. A low T makes this more frequent: compare the \
    row without vignetting.\n\nVignetting raises T a little with `borders=inward`, because near an edge both \
    neighbours lie on one side, one and two pitches away: compare the rows with `borders=skip`.\n\n";

const CLASSES_NOTE: &str = "\nOne direction finds a blob wider than two pitches only by its first and \
    last rows, which are narrower: see the share of its pixels marked. The false blobs that T allows, \
    one per megapixel, are 0.3 per frame.\n\n";

const REASON_C95: &str = "the defects pass the same optics as the panel (0.8 px and the pixel's \
    aperture), which lowers the peak of a small disc more; see the next table";
const REASON_GHOSTS: &str = "the other neighbour differs by T even without noise, see the note on \
    ghosts below";
const REASON_CHANCE_GHOSTS: &str = "chance, not a second image: one distance from a defect, one \
    neighbour differs already, so noise in the other alone reaches T more often than in both";
const REASON_PITCH: &str = "at multiple 4 the error is four times as large; the residual of the pattern's edges adds \
    to the noise";
const REASON_RESIDUAL: &str = "near an edge both neighbours lie on the same side (borders=inward), so \
    vignetting does not cancel; see borders=skip below";
const BORDERS: &str = "\nWith `borders=inward` (the default) the pixels near an edge are judged along \
    both axes, at the smallest multiple. Both neighbours lie on one side there, one and two pitches away, so \
    uneven light does not cancel. If the light is very uneven, compare T with that of `borders=skip`.\n";
const REASON_MIXED: &str = "one distance from lines and blobs there are many pixels at which one \
    neighbour alone decides, see ghosts; T itself allows 0.3 false blobs per frame of 12 defects";

fn outcome_table<'a>(out: &mut String, rows: impl Iterator<Item = &'a (Detector, Outcome)>) {
    let (diameter, at) = PRECISION_AT;
    let precision = format!("precision Ø{diameter}, C={at}");
    header(
        out,
        &[
            "detector",
            "clean residual",
            "T",
            "C95 Ø1.5",
            "Ø3",
            "Ø6",
            &precision,
            "ghosts per defect",
            "without noise",
            "false blobs per Mpx",
        ],
    );
    for (detector, outcome) in rows {
        let [a, b, c] = outcome.c95.map(contrast);
        let blobs = &outcome.blobs;
        let cells = [
            detector.name,
            &outcome.residual.to_string(),
            &outcome.threshold.to_string(),
            &a,
            &b,
            &c,
            &format!("{:.3}", blobs.precision()),
            &format!("{:.3}", blobs.ghosts_per_defect()),
            &format!("{:.3}", outcome.noise_free.ghosts_per_defect()),
            &format!("{:.1}", blobs.false_per_mpx()),
        ];
        row(out, &cells);
    }
    out.push('\n');
}

pub fn contrast(value: Option<f64>) -> String {
    value.map_or(format!("> {MAX_CONTRAST}"), |value| format!("{value:.1}"))
}

/// The first rows of a table.
pub fn header(out: &mut String, titles: &[&str]) {
    row(out, titles);
    row(out, &vec!["---"; titles.len()]);
}

/// A row of a table.
pub fn row(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}
