//! The tables of the labels, in Markdown.

use std::fmt::Write as _;

use super::{CONTRAST, Labels, Outcome, PER_LABEL, Recalls, SIZE_PX, Settings};
use crate::{
    common::label::{LabelSpec, MisprintKind},
    report::{Target, header, row},
};

const WHAT_FOLLOWS: &str = "
### How to choose

- `align` and `normalize`: without them the training takes shift and light for deviations of the print. The limits become \
  so wide that misprints pass, and labels that lie or shine otherwise than those of the training fail.
- `edge-tolerance`: the errors of the print at edges decide. With 0, good labels fail at edges whose place differs by \
  parts of a pixel; with 2, small misprints near edges are lost.
- `threshold`: the noise decides. Take the lowest value at which no good label fails, and a little more. Do without \
  `clgaussian` only if the noise is low.
- `deviation-factor`: where good labels differ among themselves, the limits are wider. With 2 or less a pixel at an edge \
  can fail a good label; with 6 smears are lost, because they begin at edges.
- `train-frames`: 16 or more, which show every shift, light and material that is good.

";

/// Least recall of misprints of [`SIZE_PX`] and [`CONTRAST`].
const LEAST_RECALL: f64 = 0.98;

/// The targets.
pub fn targets(labels: &Labels) -> Vec<Target> {
    let Some(best) = labels.choices.first() else {
        return Vec::new();
    };
    vec![
        Target {
            name: format!("labels: false blobs on {} good labels", best.labels),
            wanted: "0".into(),
            measured: best.blobs.to_string(),
            met: best.blobs == 0,
            reason: String::new(),
        },
        Target {
            name: format!(
                "labels: lowest recall of a kind of misprint, {SIZE_PX} px, contrast {CONTRAST}"
            ),
            wanted: format!("≥ {LEAST_RECALL}"),
            measured: format!("{:.3}", best.lowest()),
            met: best.lowest() >= LEAST_RECALL,
            reason: String::new(),
        },
    ]
}

/// The section.
pub fn write(out: &mut String, labels: &Labels) {
    let spec = LabelSpec::default();
    let _ = write!(
        out,
        "## Labels\n\nPrinted labels (`crates/testkit/src/label.rs`) of {}x{} px: text, a bar code, solid and thin \
         parts. From label to label: shift up to {} px along each axis, light ±{} %, each printed part \
         misplaced by {} px (σ), another paper (texture σ {}), noise σ {}. {} good labels, and per kind {} labels with \
         {PER_LABEL} misprints each. A misprint is found if a listed defect has a pixel on it; wrong \
         characters always have the contrast of the ink.\n\nRecommended for such labels:\n\n```text\n{}\n```\n\n",
        spec.width,
        spec.height,
        spec.shift_px,
        100.0 * spec.light,
        spec.jitter_px,
        spec.texture_sigma,
        spec.noise_sigma,
        labels.effort.good,
        labels.effort.bad,
        Settings::RECOMMENDED.elements().replace("name=judge ", ""),
    );
    let _ = writeln!(
        out,
        "### Alignment, brightness and tolerance at edges\n\nMisprints of {SIZE_PX} px and contrast {CONTRAST}. Where \
         good labels have many blobs, they hide what is found.\n"
    );
    let mut titles = vec!["align", "normalize", "edge-tolerance"];
    titles.extend(OUTCOME_TITLES);
    titles.extend(MisprintKind::ALL.map(MisprintKind::name));
    header(out, &titles);
    for outcome in &labels.ways {
        let settings = outcome.settings;
        let mut line = vec![
            settings.align.to_owned(),
            settings.normalize.to_owned(),
            settings.tolerance.to_string(),
        ];
        line.extend(cells(outcome));
        write_row(out, &line);
    }
    let _ = writeln!(
        out,
        "\n### One setting changed\n\nThe recommended settings first, then each setting alone with another value; the \
         same misprints.\n"
    );
    let mut titles = vec!["changed"];
    titles.extend(OUTCOME_TITLES);
    titles.extend(MisprintKind::ALL.map(MisprintKind::name));
    header(out, &titles);
    for outcome in &labels.choices {
        let mut line = vec![changed(&outcome.settings)];
        line.extend(cells(outcome));
        write_row(out, &line);
    }
    let _ = writeln!(
        out,
        "\n### Size and contrast\n\nRecall with the recommended settings. The contrast is that before the optics: a disc \
         of 3 px reaches three quarters of it.\n"
    );
    let mut titles = vec!["size", "contrast"];
    titles.extend(MisprintKind::ALL.map(MisprintKind::name));
    header(out, &titles);
    for (size, contrast, recalls) in &labels.faint {
        let mut line = vec![format!("{size} px"), contrast.to_string()];
        line.extend(shares(recalls));
        write_row(out, &line);
    }
    out.push_str(WHAT_FOLLOWS);
}

/// Columns of [`cells`] before the kinds.
const OUTCOME_TITLES: [&str; 2] = ["good labels that failed", "false blobs per Mpx"];

fn cells(outcome: &Outcome) -> Vec<String> {
    let mut cells = vec![
        format!("{} of {}", outcome.failed, outcome.labels),
        format!("{:.2}", outcome.blobs_per_mpx()),
    ];
    cells.extend(shares(&outcome.recalls));
    cells
}

fn shares(recalls: &Recalls) -> impl Iterator<Item = String> {
    recalls
        .iter()
        .map(|recall| format!("{:.3}", recall.share()))
}

/// The setting in which these settings differ from the recommended ones.
fn changed(settings: &Settings) -> String {
    let best = Settings::RECOMMENDED;
    let differences = [
        (
            settings.train != best.train,
            format!("train-frames={}", settings.train),
        ),
        (
            settings.factor != best.factor,
            format!("deviation-factor={}", settings.factor),
        ),
        (
            settings.threshold != best.threshold,
            format!("threshold={}", settings.threshold),
        ),
        (
            settings.min_area != best.min_area,
            format!("min-area={}", settings.min_area),
        ),
        (
            settings.gaussian != best.gaussian,
            "without clgaussian".to_owned(),
        ),
    ];
    let changed = differences.into_iter().find(|(differs, _)| *differs);
    changed.map_or_else(|| "recommended".into(), |(_, text)| text)
}

fn write_row(out: &mut String, cells: &[String]) {
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    row(out, &cells);
}
