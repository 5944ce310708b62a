//! What the comparison cannot see: large, repeated and soft defects, and lines along the pitch.

use anyhow::Result;

use super::{
    DEFAULTS, Inspector, LimitsEffort, ONE, PITCH_PX, SIZE, Settings, Table, WEAVE, panel, percent,
};
use crate::{
    detector::Judgement,
    scene::{MEAN_LEVEL, Picture, Texture},
};

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
/// Width of a line over the whole frame.
const LINE_PX: f32 = 1.5;
/// Contrast of lines and stains, grey levels.
const CONTRAST: f32 = 40.0;

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

/// Uniform squares by size.
pub fn uniform(effort: &LimitsEffort) -> Result<Table> {
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
             a stain: the pattern is still there, {CONTRAST} grey levels brighter. Squares found of \
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
                            level + CONTRAST
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
pub fn lines(effort: &LimitsEffort) -> Result<Table> {
    let mut table = Table::new(
        "Lines along the pitch",
        format!(
            "A line over the whole frame, {LINE_PX} px wide, {CONTRAST} grey levels brighter; \
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
                        level + CONTRAST * (-0.5 * z * z).exp()
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
pub fn shared_period(effort: &LimitsEffort) -> Result<Table> {
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
pub fn shading(effort: &LimitsEffort) -> Result<Table> {
    let across_scales = Settings {
        scales: 3,
        ..DEFAULTS
    };
    let settings = [ONE, DEFAULTS, across_scales];
    let inspectors = settings
        .iter()
        .map(|s| Inspector::new(*s, Texture::Panel(panel()), effort))
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
        &[
            "s, px",
            "multiples <1>",
            "multiples <1,4>",
            "multiples <1,4>, scales=3",
        ],
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

/// Adds a soft spot in the middle.
pub fn add_spot(picture: &mut Picture, s: f32, peak: f32) {
    picture.change_all(|x, y, level| {
        let r2 = (x as f32 - 320.0).powi(2) + (y as f32 - 240.0).powi(2);
        level + peak * (-0.5 * r2 / (s * s)).exp()
    });
}
