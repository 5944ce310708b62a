//! Measures what a comparison of a pattern with itself cannot find.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    common::panel::{DefectKind, PanelGenerator, PanelSpec},
    detector::{Bench, Judgement},
    measure::clean_threshold,
    on_every_core,
    scene::{MEAN_LEVEL, Picture, Texture, WANDER_PX, WANDER_WAVES_PX},
};

/// Pitch along both axes of the textures, px.
pub const PITCH_PX: f64 = 16.35;
const SIZE: [usize; 2] = [640, 480];
pub const NOISE: f32 = 4.0;
const NOISES: [f32; 3] = [2.0, 4.0, 8.0];
/// Sizes of uniform squares, px.
const SQUARES_PX: [usize; 12] = [8, 16, 24, 32, 48, 64, 80, 100, 130, 160, 200, 300];
/// A square or a spot is found if this share of its pixels is marked. A single mark can be chance.
const FOUND_SHARE: f64 = 0.01;
/// Sizes of blocks of cells that have the same dot.
const BLOCKS: [usize; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 12];
const DOT_DIAMETER_PX: f32 = 4.0;
const DOT_CONTRAST: f32 = 60.0;
/// Standard deviations of soft spots, px.
const SPOTS_PX: [f32; 6] = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const MAX_SPOT: f32 = 120.0;
/// Widths of a line over the whole frame and its contrast, grey levels.
const LINE_PX: f32 = 1.5;
const LINE_CONTRAST: f32 = 40.0;

const SEED_THRESHOLD: u64 = 11;
const SEED_LEARN: u64 = 12;
const SEED_SCENE: u64 = 13;
const SEED_PRESENCE: u64 = 14;

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
}

/// The defaults.
pub const DEFAULTS: Settings = Settings {
    multiples: "1,4",
    axes: [true; 2],
    presence: true,
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
             pitch-y={y} multiples=\"<{}>\" min-contrast={}",
            self.multiples,
            if self.presence { -1 } else { 0 }
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
pub const WEAVE: Texture = Texture::Weave {
    size: SIZE,
    pitch_px: PITCH_PX,
};

/// The top left corner of a square of `size_px` in scene `number`: around the middle of the frame.
pub fn corner(size_px: usize, number: u64) -> [usize; 2] {
    let number = number as usize;
    [
        (SIZE[0] - size_px) / 2 + 7 * (number % 5),
        (SIZE[1] - size_px) / 2 + 5 * (number % 7),
    ]
}

/// Share of the box's pixels (x, y, width, height) that are marked.
fn marked_share(judgement: &Judgement, [left, top, width, height]: [usize; 4]) -> f64 {
    let marked = (top..top + height)
        .flat_map(|y| (left..left + width).map(move |x| (x, y)))
        .filter(|&(x, y)| judgement.is_marked(x, y))
        .count();
    marked as f64 / (width * height) as f64
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Presence on clean frames: what it marks there.
fn presence(effort: &LimitsEffort) -> Result<Table> {
    let frames = effort.clean_frames;
    let mut table = Table::new(
        "Presence on clean frames",
        "`min-contrast=-1` learned from the first frame. No frame may have `missing-pixels`.",
        &[
            "texture",
            "pitch",
            "σ",
            "frames",
            "expected-contrast",
            "frames with missing-pixels",
            "verdict none",
        ],
    );
    let panels = [7.35, PITCH_PX, 61.13].map(|pitch| {
        Texture::Panel(PanelSpec {
            pitch_x: pitch,
            pitch_y: pitch,
            ..panel()
        })
    });
    for texture in panels.into_iter().chain([WEAVE]) {
        for sigma in NOISES {
            // Multiple 4 of 61 px cannot judge along y, which is not the question here.
            let bench = Bench::launch(&ONE.elements(texture.pitch()), texture.size())?;
            let (mut missing, mut none) = (0, 0);
            for number in 0..frames {
                let picture = texture.picture(SEED_PRESENCE, number)?;
                // A high threshold: only presence marks pixels.
                let result = bench.judge(&picture.frame(sigma, number), 128.0)?.result;
                missing += u64::from(result.missing_pixels > 0);
                none += u64::from(result.verdict == Verdict::None);
            }
            table.rows.push(vec![
                texture.name().into(),
                texture.pitch()[0].to_string(),
                sigma.to_string(),
                frames.to_string(),
                format!("{:.1}", bench.expected_contrast()),
                missing.to_string(),
                none.to_string(),
            ]);
        }
    }
    Ok(table)
}

/// What presence changes on frames with defects of every class: nothing.
fn presence_with_defects(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "Presence on frames with planted defects",
        "Panels with up to 12 random defects of every class at contrast 60, default settings. Without \
         `missing-pixels` the mask is the one without presence, bit for bit.",
        &["pitch", "frames", "defects", "frames with missing-pixels"],
    );
    for pitch in [7.35, PITCH_PX] {
        let spec = PanelSpec {
            pitch_x: pitch,
            pitch_y: pitch,
            ..panel()
        };
        let bench = Bench::launch(&DEFAULTS.elements([pitch; 2]), SIZE)?;
        let mut generator = PanelGenerator::new(spec, SEED_PRESENCE).map_err(|why| anyhow!(why))?;
        bench.judge(&generator.clean_frame().samples, 10.0)?;
        let frames = effort.clean_frames / 2;
        let (mut planted, mut missing) = (0, 0);
        for _ in 0..frames {
            let frame = generator.next_random_of(&DefectKind::ALL, 12, 60.0);
            let result = bench.judge(&frame.samples, 10.0)?.result;
            planted += frame.planted.len();
            missing += u64::from(result.missing_pixels > 0);
        }
        table.rows.push(vec![
            pitch.to_string(),
            frames.to_string(),
            planted.to_string(),
            missing.to_string(),
        ]);
    }
    Ok(table)
}

/// Uniform squares by size.
fn uniform(effort: &LimitsEffort) -> Result<Table> {
    let panel = Texture::Panel(panel());
    let kinds: [(&str, Settings, Texture, bool); 7] = [
        ("panel, <1>, presence off", ONE.off(), panel, false),
        ("panel, <1>, on", ONE, panel, false),
        ("panel, <1,4>, off", DEFAULTS.off(), panel, false),
        ("panel, <1,4>, on", DEFAULTS, panel, false),
        ("weave, <1,4>, off", DEFAULTS.off(), WEAVE, false),
        ("weave, <1,4>, on", DEFAULTS, WEAVE, false),
        ("panel, stain, <1,4>, on", DEFAULTS, panel, true),
    ];
    let mut columns = vec!["side, px"];
    columns.extend(kinds.iter().map(|kind| kind.0));
    let inspectors = kinds
        .iter()
        .map(|(_, settings, texture, _)| Inspector::new(*settings, *texture, effort))
        .collect::<Result<Vec<_>>>()?;
    let thresholds: Vec<_> = inspectors.iter().map(|i| i.threshold.to_string()).collect();
    let mut table = Table::new(
        "Uniform square by size",
        format!(
            "A square of the texture's mean level, so that the pattern is gone, and in the last column \
             a stain: the pattern is still there, {LINE_CONTRAST} grey levels brighter. Squares found of \
             {}, and the share of their pixels that is marked. A square is found if {} of its pixels \
             are marked. T by column: {}.",
            effort.scenes,
            percent(FOUND_SHARE),
            thresholds.join(", ")
        ),
        &columns,
    );
    for size in SQUARES_PX {
        let mut cells = vec![size.to_string()];
        for ((_, _, _, is_stain), inspector) in kinds.iter().zip(&inspectors) {
            let (mut found, mut share) = (0, 0.0);
            for number in 0..effort.scenes {
                let [x, y] = corner(size, number);
                let area = [x, y, size, size];
                let judgement = inspector.judge(number, |picture| {
                    picture.change(area, |_, _, level| {
                        if *is_stain {
                            level + LINE_CONTRAST
                        } else {
                            MEAN_LEVEL
                        }
                    });
                })?;
                let marked = marked_share(&judgement, area);
                found += u64::from(marked >= FOUND_SHARE);
                share += marked / effort.scenes as f64;
            }
            cells.push(format!("{found}, {}", percent(share)));
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// Lines over the whole frame, along and across the axis of the comparison.
fn lines(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "Lines along the pitch",
        format!(
            "A line over the whole frame, {LINE_PX} px wide, {LINE_CONTRAST} grey levels brighter; \
             the share of its length that is marked, {} scenes.",
            effort.scenes
        ),
        &["comparison", "T", "line along x", "line along y", "at 45°"],
    );
    for (name, axes) in [
        ("pitch-x only (pitch-y=0)", [true, false]),
        ("pitch-y only (pitch-x=0)", [false, true]),
        ("both (default)", [true, true]),
    ] {
        let inspector = Inspector::new(
            Settings { axes, ..DEFAULTS },
            Texture::Panel(panel()),
            effort,
        )?;
        let mut cells = vec![name.to_string(), inspector.threshold.to_string()];
        for direction in [[0.0, 1.0], [1.0, 0.0], [-0.5f32.sqrt(), 0.5f32.sqrt()]] {
            let mut share = 0.0;
            for number in 0..effort.scenes {
                let centre = [320.0 + 3.3 * number as f32, 240.0 + 2.7 * number as f32];
                let distance = |x: usize, y: usize| {
                    (x as f32 - centre[0]) * direction[0] + (y as f32 - centre[1]) * direction[1]
                };
                let judgement = inspector.judge(number, |picture| {
                    picture.change_all(|x, y, level| {
                        // A soft line of this width: the camera's blur.
                        let z = distance(x, y) / (LINE_PX / 2.0);
                        level + LINE_CONTRAST * (-0.5 * z * z).exp()
                    });
                })?;
                // Counted along the axis that the line crosses most.
                let along_y = direction[1].abs() < 0.1;
                let [len, across] = if along_y { [SIZE[1], SIZE[0]] } else { SIZE };
                let (mut met, mut all) = (0, 0);
                for i in 0..len {
                    let on_line = (0..across)
                        .map(|j| if along_y { (j, i) } else { (i, j) })
                        .filter(|&(x, y)| distance(x, y).abs() <= 0.75);
                    let mut on_line = on_line.peekable();
                    if on_line.peek().is_some() {
                        all += 1;
                        met +=
                            u64::from(on_line.into_iter().any(|(x, y)| judgement.is_marked(x, y)));
                    }
                }
                share += met as f64 / f64::from(all.max(1)) / effort.scenes as f64;
            }
            cells.push(percent(share));
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// Adds a soft dark dot at the same place of every cell of a block (first cell, cells per axis).
pub fn add_dots(picture: &mut Picture, first: [usize; 2], cells: [usize; 2], phase: [f64; 2]) {
    for row in 0..cells[1] {
        for column in 0..cells[0] {
            let [x, y] = dot([first[0] + column, first[1] + row], phase);
            let reach = DOT_DIAMETER_PX as usize + 2;
            let [left, top] = [x, y].map(|v| (v as usize).saturating_sub(reach));
            let area = [left, top, 2 * reach + 1, 2 * reach + 1];
            picture.change(area, |px, py, level| {
                let distance = (px as f32 - x).hypot(py as f32 - y);
                let inside = (DOT_DIAMETER_PX / 2.0 + 0.5 - distance).clamp(0.0, 1.0);
                level - DOT_CONTRAST * inside
            });
        }
    }
}

/// Centre of the dot of a cell.
fn dot(cell: [usize; 2], phase: [f64; 2]) -> [f32; 2] {
    [0, 1].map(|axis| ((cell[axis] as f64 + phase[axis]) * PITCH_PX) as f32)
}

/// Dots that repeat with the pattern.
fn shared_period(effort: &LimitsEffort) -> Result<Table> {
    let settings = [("<1>", ONE), ("<1,4>", DEFAULTS)];
    let inspectors = settings
        .iter()
        .map(|(_, s)| Inspector::new(*s, Texture::Panel(panel()), effort))
        .collect::<Result<Vec<_>>>()?;
    let mut table = Table::new(
        "A defect that repeats with the pattern",
        format!(
            "The same dot (Ø {DOT_DIAMETER_PX} px, {DOT_CONTRAST} grey levels darker) in each cell of a \
             block of n × n cells; the share of the dots that is marked, {} scenes.",
            effort.scenes
        ),
        &["n", "multiples <1>", "multiples <1,4>"],
    );
    // More than the frame holds; only dots inside count.
    let whole = [40, 30];
    let blocks = BLOCKS.iter().map(|&n| (n.to_string(), [n, n], 14));
    let mut row = |name: String, cells: [usize; 2], first: usize, step: usize| -> Result<()> {
        let mut texts = vec![name];
        for inspector in &inspectors {
            let (mut met, mut all) = (0, 0);
            for number in 0..effort.scenes {
                let phase = [0.3 + 0.04 * number as f64, 0.6 - 0.03 * number as f64];
                let corner = [first, first.min(8)];
                let places: Vec<[usize; 2]> = (0..cells[1])
                    .step_by(step)
                    .flat_map(|y| {
                        (0..cells[0])
                            .step_by(step)
                            .map(move |x| [corner[0] + x, corner[1] + y])
                    })
                    .collect();
                let judgement = inspector.judge(number, |picture| {
                    for &place in &places {
                        add_dots(picture, place, [1, 1], phase);
                    }
                })?;
                for &place in &places {
                    let [x, y] = dot(place, phase).map(|v| v as usize);
                    if x + 3 > SIZE[0] || y + 3 > SIZE[1] {
                        continue;
                    }
                    all += 1;
                    met += u64::from(marked_share(&judgement, [x - 1, y - 1, 4, 4]) > 0.0);
                }
            }
            texts.push(percent(met as f64 / f64::from(all.max(1))));
        }
        table.rows.push(texts);
        Ok(())
    };
    for (name, cells, first) in blocks {
        row(name, cells, first, 1)?;
    }
    row("every cell of the frame".into(), whole, 0, 1)?;
    row("every second cell along both axes".into(), whole, 0, 2)?;
    row("every fourth cell along both axes".into(), whole, 0, 4)?;
    Ok(table)
}

/// Soft spots: the pattern stays, the light changes slowly.
fn shading(effort: &LimitsEffort) -> Result<Table> {
    let settings = [("<1>", ONE), ("<1,4>", DEFAULTS)];
    let inspectors = settings
        .iter()
        .map(|(_, s)| Inspector::new(*s, Texture::Panel(panel()), effort))
        .collect::<Result<Vec<_>>>()?;
    let mut table = Table::new(
        "Slow shading",
        format!(
            "A soft spot, brighter by a Gaussian of standard deviation s. The lowest peak, in grey \
             levels, at which {} of the pixels within s of its centre are marked in each of {} scenes; \
             at most {MAX_SPOT} was tried.",
            percent(FOUND_SHARE),
            effort.scenes
        ),
        &["s, px", "multiples <1>", "multiples <1,4>"],
    );
    for s in SPOTS_PX {
        let mut cells = vec![s.to_string()];
        for inspector in &inspectors {
            let found = |peak: f32| -> Result<bool> {
                for number in 0..effort.scenes {
                    let judgement =
                        inspector.judge(number, |picture| add_spot(picture, s, peak))?;
                    let half = s as usize;
                    let area = [320 - half, 240 - half, 2 * half + 1, 2 * half + 1];
                    if marked_share(&judgement, area) < FOUND_SHARE {
                        return Ok(false);
                    }
                }
                Ok(true)
            };
            let (mut below, mut above) = (0.0, MAX_SPOT);
            if !found(above)? {
                cells.push(format!("> {MAX_SPOT}"));
                continue;
            }
            while above - below > 1.0 {
                let middle = ((above + below) / 2.0f32).round();
                if found(middle)? {
                    above = middle;
                } else {
                    below = middle;
                }
            }
            cells.push(above.to_string());
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// Adds a soft spot in the middle; where the frame would saturate, its light is lowered first.
pub fn add_spot(picture: &mut Picture, s: f32, peak: f32) {
    picture.change_all(|x, y, level| {
        let r2 = (x as f32 - 320.0).powi(2) + (y as f32 - 240.0).powi(2);
        level + peak * (-0.5 * r2 / (s * s)).exp()
    });
}

/// A lamp that fades: presence judges the pattern's contrast.
fn light(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "Less light",
        format!(
            "The whole frame, or its right half, gets a share of the light. Frames that fail of {}, with \
             presence off and on, and the share of the frame that presence marks. T allows 0.3 false \
             blobs a frame.",
            effort.scenes
        ),
        &[
            "light",
            "whole frame: off",
            "on",
            "marked",
            "right half: off",
            "on",
            "marked",
        ],
    );
    let panel = Texture::Panel(panel());
    let [off, on] = [DEFAULTS.off(), DEFAULTS].map(|s| Inspector::new(s, panel, effort));
    let (off, on) = (off?, on?);
    for share in [0.9, 0.7, 0.6, 0.55, 0.5, 0.45, 0.4, 0.3] {
        let mut cells = vec![percent(f64::from(share))];
        for left in [0, SIZE[0] / 2] {
            let (mut fails, mut missing) = ([0, 0], 0.0);
            for number in 0..effort.scenes {
                let dim = |picture: &mut Picture| {
                    let area = [left, 0, SIZE[0] - left, SIZE[1]];
                    picture.change(area, |_, _, level| level * share);
                };
                for (i, inspector) in [&off, &on].into_iter().enumerate() {
                    let result = inspector.judge(number, dim)?.result;
                    fails[i] += u64::from(result.verdict == Verdict::Fail);
                    let pixels = (SIZE[0] * SIZE[1]) as f64;
                    missing += result.missing_pixels as f64 / pixels / effort.scenes as f64;
                }
            }
            cells.extend([fails[0].to_string(), fails[1].to_string(), percent(missing)]);
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// A weak pattern in noise.
fn low_contrast(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        format!("Low contrast against noise of σ {NOISE}"),
        format!(
            "A panel by the range of its pattern, lowest to highest level. Ten frames decide on pitch \
             and contrast; then {} clean frames, and {} frames of one level with the same noise.",
            effort.scenes, effort.scenes
        ),
        &[
            "range",
            "estimated pitch",
            "expected-contrast",
            "clean frames with missing-pixels",
            "blank frames: share marked as missing",
            "blank frames: verdict",
        ],
    );
    for contrast in [120.0, 60.0, 30.0, 20.0, 15.0, 10.0, 6.0] {
        let texture = Texture::Panel(PanelSpec {
            contrast,
            ..panel()
        });
        let bench = Bench::launch(&DEFAULTS.elements([-1.0; 2]), SIZE)?;
        let judge = |picture: Picture, n: u64| -> Result<DefectResult> {
            Ok(bench.judge(&picture.frame(NOISE, n), 128.0)?.result)
        };
        for n in 0..10 {
            judge(texture.picture(SEED_LEARN, n)?, n)?;
        }
        let (mut missing, mut marked, mut verdicts) = (0, 0.0, [0; 3]);
        for n in 10..10 + effort.scenes {
            let clean = judge(texture.picture(SEED_LEARN, n)?, n)?;
            missing += u64::from(clean.missing_pixels > 0);
        }
        let [x, y] = bench.estimated_pitch();
        let expected = bench.expected_contrast();
        for n in 0..effort.scenes {
            let blank = judge(Picture::flat(SIZE, MEAN_LEVEL), n)?;
            let pixels = (SIZE[0] * SIZE[1]) as f64;
            marked += blank.missing_pixels as f64 / pixels / effort.scenes as f64;
            count(&mut verdicts, blank.verdict);
        }
        table.rows.push(vec![
            contrast.to_string(),
            format!("{x:.2} × {y:.2}"),
            format!("{expected:.2}"),
            missing.to_string(),
            percent(marked),
            in_words(verdicts),
        ]);
    }
    Ok(table)
}

fn count(verdicts: &mut [u64; 3], verdict: Verdict) {
    for (count, other) in verdicts.iter_mut().zip(Verdict::ALL) {
        *count += u64::from(other == verdict);
    }
}

fn in_words(verdicts: [u64; 3]) -> String {
    let words = verdicts
        .iter()
        .zip(Verdict::ALL)
        .filter(|(count, _)| **count > 0)
        .map(|(count, verdict)| format!("{} {count}", verdict.name()));
    words.collect::<Vec<_>>().join(", ")
}

/// Frames without a pattern from the start, and after good frames.
fn nothing_there(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "No pattern",
        format!("Verdicts of {} frames.", effort.scenes),
        &[
            "frames",
            "pitch estimated",
            "pitch set",
            "pitch set, min-contrast=0",
            "pitch set, after good frames",
        ],
    );
    let panel = Texture::Panel(panel());
    let blurred = Texture::Panel(PanelSpec {
        psf_sigma_px: 8.0,
        contrast: 4.0,
        ..self::panel()
    });
    type Make = Box<dyn Fn(u64) -> Result<Picture>>;
    let scenes: [(&str, Make, [f64; 2]); 6] = [
        (
            "black",
            Box::new(|_| Ok(Picture::flat(SIZE, 0.0))),
            [PITCH_PX; 2],
        ),
        (
            "white",
            Box::new(|_| Ok(Picture::flat(SIZE, 255.0))),
            [PITCH_PX; 2],
        ),
        (
            "grey with noise",
            Box::new(|_| Ok(Picture::flat(SIZE, MEAN_LEVEL))),
            [PITCH_PX; 2],
        ),
        (
            "grey with noise, corners 10 % darker",
            Box::new(|_| {
                let mut picture = Picture::flat(SIZE, MEAN_LEVEL);
                picture.change_all(|x, y, level| {
                    let r2 = (x as f32 - 320.0).powi(2) + (y as f32 - 240.0).powi(2);
                    level * (1.0 - 0.1 * r2 / 160_000.0)
                });
                Ok(picture)
            }),
            [PITCH_PX; 2],
        ),
        (
            "out of focus",
            Box::new(move |n| blurred.picture(SEED_SCENE, n)),
            [PITCH_PX; 2],
        ),
        (
            "panel, pitch set to 11",
            Box::new(move |n| panel.picture(SEED_SCENE, n)),
            [11.0; 2],
        ),
    ];
    for (name, make, pitch) in &scenes {
        let mut cells = vec![name.to_string()];
        for (settings, pitch, learns) in [
            (DEFAULTS, [-1.0; 2], false),
            (DEFAULTS, *pitch, false),
            (DEFAULTS.off(), *pitch, false),
            (DEFAULTS, *pitch, true),
        ] {
            let bench = Bench::launch(&settings.elements(pitch), SIZE)?;
            if learns {
                for n in 0..4 {
                    bench.judge(&panel.picture(SEED_LEARN, n)?.frame(NOISE, n), 12.0)?;
                }
            }
            let mut verdicts = [0; 3];
            for n in 0..effort.scenes {
                let result = bench.judge(&make(n)?.frame(NOISE, n), 12.0)?.result;
                count(&mut verdicts, result.verdict);
            }
            cells.push(in_words(verdicts));
        }
        table.rows.push(cells);
    }
    Ok(table)
}

/// What all tables have in common.
fn textures() -> String {
    format!(
        "Panels and cloth of 640×480 px, pitch {PITCH_PX} along both axes, σ {NOISE} unless the table says \
         otherwise, `clgaussian kernel-size=5 sigma=0.8` before the comparison, T as in the \
         first tables. The cloth is \
         a plain weave (`benches/quality/scene.rs`); its threads wander by up to {WANDER_PX} px in waves of \
         {} to {} px. [limits.md](limits.md) says what follows from these tables.\n\n",
        WANDER_WAVES_PX[0], WANDER_WAVES_PX[1]
    )
}

/// Every table.
///
/// # Errors
/// A pipeline's or the generator's error.
pub fn measure(effort: &LimitsEffort) -> Result<Vec<Table>> {
    let tables: [fn(&LimitsEffort) -> Result<Table>; 9] = [
        presence,
        presence_with_defects,
        uniform,
        lines,
        shared_period,
        shading,
        light,
        low_contrast,
        nothing_there,
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
