//! Measures what a comparison of a pattern with itself cannot find.

mod comparison;
mod presence;

use std::fmt::Write as _;

use anyhow::Result;

pub use comparison::{add_dots, add_spot, corner};

use crate::{
    common::panel::PanelSpec,
    detector::{Bench, Judgement},
    measure::clean_threshold,
    on_every_core,
    scene::{Picture, Texture, WANDER_WAVES_PX},
};

/// Pitch along both axes of the textures, px.
const PITCH_PX: f64 = 16.35;
const SIZE: [usize; 2] = [640, 480];
const NOISE: f32 = 4.0;
/// Largest shift of the cloth's threads against the mean pitch, px.
const WANDER_PX: f32 = 2.0;
const SEED_THRESHOLD: u64 = 11;
const SEED_SCENE: u64 = 13;

/// Extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct LimitsEffort {
    /// Clean frames per texture and noise.
    pub clean_frames: u64,
    /// Frames per threshold.
    pub threshold_frames: u64,
    /// Scenes per cell of a table.
    pub scenes: u64,
}

/// A table with a title and remarks.
pub struct Table {
    title: String,
    remark: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(title: impl Into<String>, remark: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            remark: remark.into(),
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// The table in Markdown.
    pub fn write(&self, out: &mut String) {
        let _ = writeln!(out, "### {}\n\n{}\n", self.title, self.remark);
        let rule = vec!["---".to_string(); self.columns.len()];
        for cells in [&self.columns, &rule].into_iter().chain(&self.rows) {
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out.push('\n');
    }
}

/// Settings of a comparison behind `clgaussian`; everything else is the default.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `multiples`.
    pub multiples: &'static str,
    /// Axes with a pitch.
    pub axes: [bool; 2],
    /// `min-contrast=-1` instead of 0.
    pub presence: bool,
    /// `scales`.
    pub scales: u32,
}

/// The defaults, but pixels alone are compared.
pub const DEFAULTS: Settings = Settings {
    multiples: "1,4",
    axes: [true; 2],
    presence: true,
    scales: 0,
};
/// One distance only.
const ONE: Settings = Settings {
    multiples: "1",
    ..DEFAULTS
};
impl Settings {
    fn off(self) -> Self {
        Self {
            presence: false,
            ..self
        }
    }

    fn elements(&self, pitch: [f64; 2]) -> String {
        let [x, y] = [0, 1].map(|axis| if self.axes[axis] { pitch[axis] } else { 0.0 });
        format!(
            "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold name=judge pitch-x={x} \
             pitch-y={y} multiples=\"<{}>\" min-contrast={} scales={}",
            self.multiples,
            if self.presence { -1 } else { 0 },
            self.scales
        )
    }
}

/// A running detector with its threshold, and the texture that it has seen.
pub struct Inspector {
    bench: Bench,
    texture: Texture,
    /// Lowest threshold with at most one false blob per megapixel on clean frames.
    pub threshold: f64,
}

impl Inspector {
    /// Searches the threshold; presence has then learned from a clean frame.
    pub fn new(settings: Settings, texture: Texture, effort: &LimitsEffort) -> Result<Self> {
        let bench = Bench::launch(&settings.elements(texture.pitch()), texture.size())?;
        let frames = (0..effort.threshold_frames)
            .map(|n| Ok(texture.picture(SEED_THRESHOLD, n)?.frame(NOISE, n)))
            .collect::<Result<Vec<_>>>()?;
        let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        let threshold = clean_threshold(&bench, &frames)?;
        Ok(Self {
            bench,
            texture,
            threshold,
        })
    }

    /// Judges scene `number`: the texture with `edit`, then noise.
    fn judge(&self, number: u64, edit: impl FnOnce(&mut Picture)) -> Result<Judgement> {
        Ok(self.judge_frame(number, edit)?.1)
    }

    /// Frame and result of scene 0.
    ///
    /// # Errors
    /// A pipeline's or the generator's error.
    pub fn shown(&self, edit: impl FnOnce(&mut Picture)) -> Result<(Vec<u8>, Judgement)> {
        self.judge_frame(0, edit)
    }

    fn judge_frame(
        &self,
        number: u64,
        edit: impl FnOnce(&mut Picture),
    ) -> Result<(Vec<u8>, Judgement)> {
        let mut picture = self.texture.picture(SEED_SCENE, number)?;
        edit(&mut picture);
        let frame = picture.frame(NOISE, SEED_SCENE + (number << 8));
        let judgement = self.bench.judge(&frame, self.threshold)?;
        Ok((frame, judgement))
    }
}

/// The panel of the tables.
pub fn panel() -> PanelSpec {
    PanelSpec {
        width: SIZE[0],
        height: SIZE[1],
        pitch_x: PITCH_PX,
        pitch_y: PITCH_PX,
        noise_sigma: f64::from(NOISE),
        ..PanelSpec::default()
    }
}

/// The cloth of the tables.
const WEAVE: Texture = Texture::Weave {
    size: SIZE,
    pitch_px: PITCH_PX,
    wander_px: WANDER_PX,
};
fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// What all tables have in common.
fn textures() -> String {
    format!(
        "Panels and cloth of 640×480 px, pitch {PITCH_PX} along both axes, σ {NOISE} unless the table says \
         otherwise, `clgaussian kernel-size=5 sigma=0.8` before the comparison, `scales=0` unless a column \
         says otherwise, T as in the first tables. The cloth is \
         a plain weave (`benches/quality/scene.rs`); its threads wander by up to {WANDER_PX} px in waves of \
         {} to {} px. [limits.md](../../docs/limits.md) says what follows from these tables.\n\n",
        WANDER_WAVES_PX[0], WANDER_WAVES_PX[1]
    )
}

/// Every table.
///
/// # Errors
/// A pipeline's or the generator's error.
pub fn measure(effort: &LimitsEffort) -> Result<Vec<Table>> {
    let tables: [fn(&LimitsEffort) -> Result<Table>; 9] = [
        presence::presence,
        presence::presence_with_defects,
        comparison::uniform,
        comparison::lines,
        comparison::shared_period,
        comparison::shading,
        presence::light,
        presence::low_contrast,
        presence::nothing_there,
    ];
    on_every_core("limits", &tables, |table| table(effort))
}

/// The tables in Markdown.
pub fn write(out: &mut String, tables: &[Table]) {
    out.push_str("## What it cannot find\n\n");
    out.push_str(&textures());
    for table in tables {
        table.write(out);
    }
}
