//! The tables of one template, in Markdown.

use std::fmt::Write as _;

use super::{
    DISTANCES_PX, MANY, Measured, PER_FRAME, TEMPLATES, TemplateEffort,
    scenes::{LIGHT, MISPRINT, SHIFT_PX, STRETCH, TURN_DEGREES},
};
use crate::{
    labels::Settings,
    report::{header, row},
};

/// The section.
pub fn write(out: &mut String, effort: &TemplateEffort, objects: &[Measured]) {
    let (size, contrast) = MISPRINT;
    let _ = writeln!(
        out,
        "## One template\n\n`clreference` after a training from one good frame, and from {MANY}. Objects: printed labels as \
         in [Labels](#labels); the same labels turned by up to {TURN_DEGREES}° and stretched by up to {} % along each axis; and \
         a photograph of coins (`scripts/photographs`), enlarged to 640x480, turned and stretched likewise, shifted by up to \
         {SHIFT_PX} px along each axis. Light ±{} %, noise σ 4. Misprints of {size} px and contrast {contrast}; spots and scratches \
         by diameter or width and contrast, {PER_FRAME} on a frame. `normalize=gain` always. Of one template there are \
         {TEMPLATES}, each for its share of the frames.\n\nOf all `edge-tolerance` (0, 1, 2), `opening` (0, 3), \
         `min-area` (1, 4, 9) and thresholds those were chosen on frames of one seed that find most; the threshold is a step \
         above the lowest at which none of {} good frames failed. The tables are from frames of another seed; {} defects of a kind. Without a row no such settings let all good frames pass.\n",
        100.0 * STRETCH,
        100.0 * LIGHT,
        effort.good,
        PER_FRAME * effort.bad[1],
    );
    for measured in objects {
        let _ = writeln!(out, "### {}\n", capital(measured.object.name()));
        let mut titles = SETTINGS_TITLES.to_vec();
        titles.extend(["good frames that failed", "false blobs per frame"]);
        let kinds = measured.object.kinds();
        titles.extend(kinds.iter().map(String::as_str));
        header(out, &titles);
        for outcome in &measured.outcomes {
            let mut cells = settings_cells(&outcome.settings);
            cells.push(format!("{} of {}", outcome.failed, outcome.good));
            cells.push(format!(
                "{:.2}",
                outcome.blobs as f64 / outcome.good.max(1) as f64
            ));
            cells.extend(
                outcome
                    .recalls
                    .iter()
                    .map(|recall| format!("{:.3}", recall.share())),
            );
            write_row(out, &cells);
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "### Displaced parts\n\nA square in which edges run along both axes was moved along a random direction, {} parts per \
         distance, and the rest of the frame is good: share of the parts that are found. Settings: those chosen for one template, \
         `clgaussian` and `align=affine`; those for boards ([real pictures](real-pictures.md#boards)); and the \
         same with local shifts.\n",
        effort.displaced,
    );
    let mut titles = ["object", "part"].map(str::to_owned).to_vec();
    titles.extend(SETTINGS_TITLES.map(str::to_owned));
    titles.extend(DISTANCES_PX.map(|distance| format!("{distance} px")));
    header(out, &titles.iter().map(String::as_str).collect::<Vec<_>>());
    for measured in objects {
        for displaced in &measured.displaced {
            let part = format!("{} px", displaced.part_px);
            let mut cells = vec![measured.object.name().to_owned(), part];
            cells.extend(settings_cells(&displaced.settings));
            cells.extend(
                displaced
                    .recalls
                    .iter()
                    .map(|recall| format!("{:.3}", recall.share())),
            );
            write_row(out, &cells);
        }
    }
    out.push('\n');
}

const SETTINGS_TITLES: [&str; 7] = [
    "train-frames",
    "clgaussian",
    "align",
    "edge-tolerance",
    "threshold",
    "opening",
    "min-area",
];

fn settings_cells(settings: &Settings) -> Vec<String> {
    vec![
        settings.train.to_string(),
        if settings.gaussian { "yes" } else { "no" }.to_owned(),
        settings.align.to_owned(),
        settings.tolerance.to_string(),
        settings.threshold.to_string(),
        settings.opening.to_string(),
        settings.min_area.to_string(),
    ]
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

fn write_row(out: &mut String, cells: &[String]) {
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    row(out, &cells);
}
