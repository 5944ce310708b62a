//! Panels under uneven light, without and with `clflatfield`.

use std::fmt::Write;

use anyhow::Result;

use crate::{
    detector::Detector,
    measure::{Effort, Outcome, Scenario},
    on_every_core, panel,
    report::{contrast, header, row},
};

/// Pitch, px, and noise, grey levels, of the panel: at a long pitch the comparison spans a large part of the
/// frame.
const PANEL: (f64, f64) = (61.13, 2.0);
/// Loss of light in the corners.
const VIGNETTINGS: [f64; 3] = [0.0, 0.1, 0.3];
/// Largest loss of precision.
const MOST_LOST: f64 = 0.01;

/// A detector under some light.
pub struct LightRow {
    scenario: Scenario,
    outcome: Outcome,
}

/// Measures every row.
///
/// # Errors
/// A pipeline's or the generator's error.
pub fn measure(effort: &Effort) -> Result<Vec<LightRow>> {
    let scenarios: Vec<Scenario> = VIGNETTINGS
        .iter()
        .flat_map(|&vignetting| {
            [Detector::RECOMMENDED, Detector::EVEN].map(|detector| {
                let mut spec = panel(PANEL.0, PANEL.1);
                spec.vignetting = vignetting;
                Scenario::new(detector, spec)
            })
        })
        .collect();
    let outcomes = on_every_core("uneven light", &scenarios, |scenario| {
        scenario.measure(effort)
    })?;
    let rows = scenarios.into_iter().zip(outcomes);
    Ok(rows
        .map(|(scenario, outcome)| LightRow { scenario, outcome })
        .collect())
}

/// Writes the section.
pub fn write(out: &mut String, rows: &[LightRow]) {
    let _ = write!(
        out,
        "## Flat field\n\nThe recommended settings on panels of pitch {} px with noise σ {}, without and with \
         [`clflatfield`](../../docs/elements/clflatfield.md) in front. Its white reference is the average of {} frames of an even \
         surface under the same light, with noise.\n\n",
        PANEL.0,
        PANEL.1,
        Detector::WHITE_FRAMES
    );
    header(
        out,
        &[
            "corners darker by",
            "clflatfield",
            "T",
            "C95 Ø1.5",
            "Ø3",
            "Ø6",
            "precision",
            "ghosts per defect",
            "false blobs per Mpx",
        ],
    );
    for LightRow { scenario, outcome } in rows {
        let [a, b, c] = outcome.c95.map(contrast);
        row(
            out,
            &[
                &format!("{:.0} %", 100.0 * scenario.spec.vignetting),
                if scenario.detector.even { "yes" } else { "no" },
                &outcome.threshold.to_string(),
                &a,
                &b,
                &c,
                &format!("{:.3}", outcome.blobs.precision()),
                &format!("{:.3}", outcome.blobs.ghosts_per_defect()),
                &format!("{:.1}", outcome.blobs.false_per_mpx()),
            ],
        );
    }
    let precision = |even: bool| {
        rows.iter()
            .filter(move |row| row.scenario.detector.even == even)
            .map(|row| row.outcome.blobs.precision())
    };
    let level = precision(false).next().unwrap_or(0.0);
    let least = precision(true).fold(1.0, f64::min);
    let _ = write!(
        out,
        "\nTarget: with `clflatfield` the precision is within {MOST_LOST} of the {level:.3} under even light. Lowest: \
         {least:.3}, {}.\n\n",
        if least >= level - MOST_LOST {
            "met"
        } else {
            "missed"
        }
    );
}
