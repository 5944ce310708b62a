//! Tables of the comparison across scales.

use std::fmt::Write as _;

use gstclinspect::results::semu;

use super::{
    DEFAULT_THRESHOLD, DIAMETERS_PX, Faint, LARGE_PX, LEVELS, LIT_PX, Levels, Light, REMEDIES,
    Reach, SCALES, STEP, Stains, Subject, allowed_up_to,
};
use crate::{
    measure::THRESHOLD_STEP,
    report::{Target, header, row},
    scene::{MEAN_LEVEL, Texture},
};

/// Side of a pixel on the product for which SEMU is given, mm.
const PIXEL_MM: f64 = 0.05;
/// C95 that the comparison across scales shall reach, by diameter.
const TARGETS: [(f64, f64); 4] = [(6.0, 7.5), (12.0, 4.0), (20.0, 2.5), (30.0, 2.2)];
/// Diameters at which the comparison across scales shall be no worse than pixels alone.
const NO_WORSE: [f64; 2] = [1.5, 3.0];
/// C95 of two runs with equal thresholds differ by up to this share.
const CHANCE: f64 = 0.01;
const MIN_PRECISION: f64 = 0.95;
/// Growth of small defects' boxes.
const MAX_GROWTH_PX: i64 = 2;
/// Share of the boxes to which the limit applies.
const GROWTH_QUANTILE: f64 = 0.95;

fn percent_of_mean(contrast: f64) -> f64 {
    100.0 * contrast / f64::from(MEAN_LEVEL)
}

/// A contrast with the digits that it has.
fn shown_c95(c95: Option<f64>) -> String {
    match c95 {
        None => "> 160".into(),
        Some(c95) if c95 < 10.0 => format!("{c95:.2}"),
        Some(c95) => format!("{c95:.1}"),
    }
}

fn shown(subject: &Subject) -> [String; 4] {
    let [x, y] = subject.texture.pitch();
    let pitch = if x == y {
        x.to_string()
    } else {
        format!("{x} × {y}")
    };
    let name = match subject.texture {
        Texture::Panel(_) => "panel".into(),
        Texture::Weave { wander_px, .. } => format!("weave, wanders {wander_px} px"),
    };
    [name, pitch, subject.sigma.to_string(), subject.light.name()]
}

fn settings(reach: &Reach) -> String {
    settings_of(reach.scales, &reach.factors)
}

fn settings_of(scales: usize, factors: &[f64]) -> String {
    if scales == 0 {
        return "scales=0".into();
    }
    let factors = factors.iter().take(scales);
    let factors: Vec<_> = factors.map(|f| format!("{f:.3}")).collect();
    let trimmed = factors.iter().map(|f| f.trim_end_matches('0'));
    format!("<{}>", trimmed.collect::<Vec<_>>().join(", "))
}

fn cells(out: &mut String, all: &[String]) {
    row(out, &all.iter().map(String::as_str).collect::<Vec<_>>());
}

fn at(diameter_px: f64) -> usize {
    let found = DIAMETERS_PX.iter().position(|&d| d == diameter_px);
    found.unwrap_or_default()
}

/// The targets, with the default factors and with those of the panel. `precision`: with the default factors and discs
/// of Ø3.
pub fn targets(stains: &Stains, precision: f64) -> Vec<Target> {
    let Some(levels) = stains.subjects.first() else {
        return Vec::new();
    };
    let [alone, across, searched] = &levels.reaches;
    let same_under_even_light = Subject {
        light: Light::Corners(0.0),
        ..levels.subject
    };
    let mut lit = stains.lights.iter();
    let even = lit.find(|levels| levels.subject == same_under_even_light);
    let mut all = Vec::new();
    for (index, name, reach, why) in [
        (
            1,
            "scales=3",
            across,
            "the default factors suit more textures than this one",
        ),
        (
            2,
            "scales=3, factors of this panel",
            searched,
            "the frame keeps two thirds of the false blobs, so that Ø1.5 is no worse (ADR 14)",
        ),
    ] {
        for (diameter_px, limit) in TARGETS {
            let c95 = reach.c95[at(diameter_px)];
            all.push(Target {
                name: format!("{name}: C95 Ø{diameter_px}"),
                wanted: format!("≤ {limit}"),
                measured: shown_c95(c95),
                // To the digits that the table shows.
                met: c95.is_some_and(|c95| (100.0 * c95).round() <= 100.0 * limit),
                reason: format!(
                    "discs pass the same optics as the panel, {why}, and the corners are 10 % darker: under even \
                     light C95 is {}",
                    shown_c95(even.and_then(|even| even.reaches[index].c95_of(diameter_px)))
                ),
            });
        }
        for diameter_px in NO_WORSE {
            let [before, after] = [alone, reach].map(|reach| reach.c95[at(diameter_px)]);
            all.push(Target {
                name: format!("{name}: C95 Ø{diameter_px}"),
                wanted: format!("no worse than {} with scales=0", shown_c95(before)),
                measured: shown_c95(after),
                met: before
                    .zip(after)
                    .is_some_and(|(before, after)| after <= before * (1.0 + CHANCE)),
                reason: "T is higher, because all levels share the one false blob per megapixel"
                    .into(),
            });
        }
        all.push(Target {
            name: format!("{name}: false blobs per Mpx over all levels"),
            wanted: "≤ 1".into(),
            measured: format!("{:.2}", reach.false_per_mpx),
            met: reach.false_per_mpx <= 1.0,
            reason: "T was searched on other frames; chance".into(),
        });
    }
    all.push(Target {
        name: "scales=3: precision".into(),
        wanted: format!("≥ {MIN_PRECISION}"),
        measured: format!("{precision:.3}"),
        met: precision >= MIN_PRECISION,
        reason: "ghosts: one distance from a defect one neighbour differs already, so the other one decides alone, and \
                 a coarse level needs little"
            .into(),
    });
    let faint = stains.faint.iter();
    let faint = faint.filter(|faint| faint.subject == levels.subject);
    let lowest = faint
        .map(|faint| faint.found[1].1.precision())
        .fold(1.0, f64::min);
    all.push(Target {
        name: "scales=3: lowest precision with faint stains".into(),
        wanted: format!("≥ {MIN_PRECISION}"),
        measured: format!("{lowest:.3}"),
        met: lowest >= MIN_PRECISION,
        reason: "ghosts of stains that pixels do not mark, or mark in part, see *Precision with faint stains*".into(),
    });
    for boxes in &stains.boxes {
        let growth = boxes.quantile(GROWTH_QUANTILE);
        all.push(Target {
            name: format!(
                "scales=3: growth of the box, 95 % quantile, Ø{}, contrast {}",
                boxes.diameter_px, boxes.contrast
            ),
            wanted: format!("≤ {MAX_GROWTH_PX} px"),
            measured: growth.map_or("?".into(), |px| format!("{px} px")),
            met: growth.is_some_and(|px| px <= MAX_GROWTH_PX),
            reason: "coarse levels see a strong small defect in every block whose mean it enters"
                .into(),
        });
    }
    all
}

/// The section in Markdown. `first_threshold`: T of the first subject's settings in the tables of pixels alone.
pub fn write(out: &mut String, stains: &Stains, first_threshold: Option<f64>) {
    out.push_str("## Stains: the comparison across scales\n\n");
    let _ = writeln!(
        out,
        "`clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold`, defaults except where a column says \
         otherwise, both pitches set. This run: {} clean megapixels per threshold and as many to check \
         it, {} discs per contrast, {} of Ø{LARGE_PX} px and more, and {} of each diameter at the pitch 61.13, where \
         frames are large. [quality.md](../../docs/quality.md#faint-stains) says what follows from these tables. Printed labels are not \
         among the textures: `clreference`, which inspects them, has no `scales` yet; they come later.\n",
        stains.effort.clean_mpx,
        stains.effort.discs[0],
        stains.effort.discs[1],
        stains.effort.discs_of_large_frames,
    );
    thresholds(out, &stains.subjects);
    contrasts(out, &stains.subjects, first_threshold);
    in_semu(out, &stains.subjects);
    precision(out, &stains.faint);
    lights(out, &stains.lights);
    contrasts_by_light(out, &stains.lights);
    boxes(out, stains);
}

fn thresholds(out: &mut String, subjects: &[Levels]) {
    let _ = writeln!(
        out,
        "### Thresholds of the levels\n\nThe lowest thresholds, in grey levels, with few false blobs: the frame \
         alone has at most {:.2} of a false blob per megapixel, and each level adds at most {:.2} to those of the frame and \
         the finer levels. The steps are {STEP} grey levels for the frame and half of the step before for each level. \
         The factors are the thresholds of the levels as parts of that of the frame: the recommended `scale-factors` \
         of this texture.\n",
        allowed_up_to(0),
        allowed_up_to(1) - allowed_up_to(0),
    );
    let mut titles = vec!["texture", "pitch", "σ", "frame"];
    let names: Vec<_> = (1..=LEVELS).map(|k| format!("level {k}")).collect();
    titles.extend(names.iter().map(String::as_str));
    titles.push("scale-factors");
    header(out, &titles);
    for levels in subjects {
        let [name, pitch, sigma, _] = shown(&levels.subject);
        let mut line = vec![name, pitch, sigma];
        line.extend(levels.thresholds.iter().map(ToString::to_string));
        let factors = levels.thresholds[1..].iter();
        let factors: Vec<_> = factors
            .map(|t| format!("{:.2}", t / levels.thresholds[0]))
            .collect();
        line.push(format!("<{}>", factors.join(", ")));
        cells(out, &line);
    }
    out.push('\n');
}

fn contrasts(out: &mut String, subjects: &[Levels], first_threshold: Option<f64>) {
    let example = first_threshold.zip(subjects.first());
    let example = example.map_or(String::new(), |(there, levels)| {
        let here = levels.reaches[0].threshold;
        format!(": with `scales=0` T is {there} there and {here} here for the same panels of pitch 7.35 at σ 4")
    });
    let _ = writeln!(
        out,
        "### C95 by diameter\n\nWith pixels alone, with the default factors, and with the factors of the \
         texture's own thresholds. T: lowest `threshold` with at most one false blob per megapixel over \
         all levels, in steps of {STEP}. The sections before this one search T in steps of {THRESHOLD_STEP}, and both \
         draw frames of their own, so T and C95 of the same settings differ a little{example}.\n"
    );
    let mut titles = vec![
        "texture",
        "pitch",
        "σ",
        "scale-factors",
        "T",
        "false blobs per Mpx",
    ];
    let names: Vec<_> = DIAMETERS_PX.iter().map(|d| format!("Ø{d}")).collect();
    titles.extend(names.iter().map(String::as_str));
    header(out, &titles);
    for levels in subjects {
        for reach in &levels.reaches {
            let [name, pitch, sigma, _] = shown(&levels.subject);
            let mut line = vec![name, pitch, sigma, settings(reach)];
            line.push(reach.threshold.to_string());
            line.push(format!("{:.2}", reach.false_per_mpx));
            line.extend(reach.c95.iter().map(|&c95| shown_c95(c95)));
            cells(out, &line);
        }
    }
    out.push('\n');
}

fn in_semu(out: &mut String, subjects: &[Levels]) {
    let _ = writeln!(
        out,
        "### C95 in percent and in SEMU\n\nThe same rows: the contrast in percent of the \
         mean level, and after the stroke its SEMU if a pixel is {PIXEL_MM} mm wide on the product. SEMU, \
         the display industry's measure of mura (SEMI D31-1102), is the contrast in percent over \
         `1.97 / area^0.33 + 0.72` with the area in mm²; 1 is what an observer just sees. The first \
         row has the areas.\n"
    );
    let mut titles = vec!["texture", "pitch", "σ", "scale-factors"];
    let names: Vec<_> = DIAMETERS_PX.iter().map(|d| format!("Ø{d}")).collect();
    titles.extend(names.iter().map(String::as_str));
    header(out, &titles);
    let area = |diameter_px: f64| (diameter_px * PIXEL_MM).powi(2) * std::f64::consts::FRAC_PI_4;
    let mut line = vec![
        String::from("area, mm²"),
        String::new(),
        String::new(),
        String::new(),
    ];
    line.extend(DIAMETERS_PX.map(|d| format!("{:.3}", area(d))));
    cells(out, &line);
    for levels in subjects {
        for reach in &levels.reaches {
            let [name, pitch, sigma, _] = shown(&levels.subject);
            let mut line = vec![name, pitch, sigma, settings(reach)];
            line.extend(DIAMETERS_PX.iter().zip(reach.c95).map(|(&diameter, c95)| {
                c95.map_or("> 160 levels".into(), |c95| {
                    let percent = percent_of_mean(c95);
                    format!("{percent:.1} % / {:.2}", semu(percent, area(diameter)))
                })
            }));
            cells(out, &line);
        }
    }
    out.push('\n');
}

fn precision(out: &mut String, all: &[Faint]) {
    out.push_str(
        "### Precision with faint stains\n\nσ 4. Frames with discs of three contrasts: C95 with the default factors, twice \
         that, and four times. Each setting is at its T. Found: share of the discs. Precision: share of the blobs \
         that are on a disc. Ghosts and false blobs are the others, with `scales=3`. A stain that \
         pixels do not mark, or mark in part, is not repaired. One distance from such a stain the other neighbour decides \
         alone, and at coarse levels uneven light is enough: compare the rows of even light.\n\n",
    );
    let mut titles = vec!["texture", "pitch", "light", "disc", "contrast"];
    titles.extend([
        "scales=0: found",
        "precision",
        "scales=3: found",
        "precision",
    ]);
    titles.extend(["ghosts per disc", "false blobs per Mpx"]);
    header(out, &titles);
    for faint in all {
        let [name, pitch, _, light] = shown(&faint.subject);
        let mut line = vec![name, pitch, light, format!("Ø{}", faint.diameter_px)];
        line.push(format!("{:.1}", faint.contrast));
        for (recall, blobs) in &faint.found {
            line.push(format!("{:.3}", recall.share()));
            let has_blobs = blobs.right + blobs.ghosts + blobs.other > 0;
            line.push(if has_blobs {
                format!("{:.3}", blobs.precision())
            } else {
                "no blob".into()
            });
        }
        let [_, (_, blobs)] = &faint.found;
        line.push(format!("{:.3}", blobs.ghosts_per_defect()));
        line.push(format!("{:.2}", blobs.false_per_mpx()));
        cells(out, &line);
    }
    out.push('\n');
}

fn contrasts_by_light(out: &mut String, all: &[Levels]) {
    out.push_str(
        "### C95 under uneven light\n\nσ 4, pixels alone and the default factors, each at the T of the light. The \
         contrast of a disc is that under full light; where the light is less, so is the contrast.\n\n",
    );
    let mut titles = vec!["texture", "pitch", "light", "scale-factors", "T"];
    let names: Vec<_> = LIT_PX.iter().map(|d| format!("Ø{d}")).collect();
    titles.extend(names.iter().map(String::as_str));
    header(out, &titles);
    for levels in all {
        for reach in &levels.reaches[..2] {
            let [name, pitch, _, light] = shown(&levels.subject);
            let mut line = vec![
                name,
                pitch,
                light,
                settings(reach),
                reach.threshold.to_string(),
            ];
            line.extend(LIT_PX.map(|d| shown_c95(reach.c95_of(d))));
            cells(out, &line);
        }
    }
    out.push('\n');
}

fn lights(out: &mut String, all: &[Levels]) {
    let _ = writeln!(
        out,
        "### Uneven light\n\nσ 4. T and the thresholds of the levels as above, and the false blobs \
         per megapixel with `threshold={DEFAULT_THRESHOLD}`: with the default factors, and with what may help. `minimum` \
         cancels an even slope, because one neighbour is brighter and the other darker. A curvature stays, and \
         so does a slope near the edges, where both neighbours lie on one side (`borders=inward`).\n"
    );
    let mut titles = vec!["texture", "pitch", "light", "T, scales=0", "T, scales=3"];
    let names: Vec<_> = (0..=LEVELS).map(|k| format!("level {k}")).collect();
    titles.extend(names.iter().map(String::as_str));
    titles.push("false blobs per Mpx by default");
    let remedies: Vec<_> = (REMEDIES.iter())
        .map(|(scales, factors, more)| match (more.is_empty(), *scales) {
            (false, _) => more.trim().to_string(),
            (true, SCALES) => settings_of(*scales, factors),
            (true, scales) => format!("scales={scales}"),
        })
        .collect();
    titles.extend(remedies.iter().map(String::as_str));
    header(out, &titles);
    for levels in all {
        let [name, pitch, _, light] = shown(&levels.subject);
        let mut line = vec![name, pitch, light];
        let reaches = levels.reaches.iter().take(2);
        line.extend(reaches.map(|reach| reach.threshold.to_string()));
        line.extend(levels.thresholds.iter().map(ToString::to_string));
        let blobs = std::iter::once(&levels.false_at_default).chain(&levels.false_with);
        line.extend(blobs.map(|blobs| format!("{blobs:.2}")));
        cells(out, &line);
    }
    out.push('\n');
}

fn boxes(out: &mut String, stains: &Stains) {
    out.push_str(
        "### Boxes of small defects\n\nGrowth of the longer side of a disc's box, default factors against \
         `scales=0`, each at its T, σ 4, p 7.35.\n\n",
    );
    header(
        out,
        &[
            "disc",
            "contrast",
            "discs",
            "median, px",
            "95 % quantile, px",
            "largest, px",
        ],
    );
    for boxes in &stains.boxes {
        let quantile = |share| {
            boxes
                .quantile(share)
                .map_or("?".into(), |px: i64| px.to_string())
        };
        cells(
            out,
            &[
                format!("Ø{}", boxes.diameter_px),
                boxes.contrast.to_string(),
                boxes.growth_px.len().to_string(),
                quantile(0.5),
                quantile(GROWTH_QUANTILE),
                quantile(1.0),
            ],
        );
    }
    out.push('\n');
}
