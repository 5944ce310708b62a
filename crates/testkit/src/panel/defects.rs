//! Defects: their specification, their drawing, and the ground truth.

use super::cell;
use super::optics::Optics;
use crate::planted::{Patch, Planted};

/// Discs and scratches are drawn on a grid of 1/8 px before the optics.
const OVERSAMPLING: usize = 8;
/// Largest size or length, px; bounds the time that one defect costs.
const MAX_EXTENT_PX: f64 = 256.0;

/// Kinds of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DefectKind {
    /// Disc, dark or bright; the size is its diameter.
    Particle,
    /// Small bright disc; the size is its diameter.
    Pinhole,
    /// Thin oblique line segment with round ends; the size is its width.
    Scratch,
    /// The nearest cell dimmed towards the grid; the size is the pitch along x.
    MissingCell,
    /// Bright link over the nearest grid line between two neighbours along x; the size is its
    /// thickness.
    Bridge,
    /// Line over the full height, brighter or darker; the size is its width.
    ColumnLine,
    /// Line over the full width, brighter or darker; the size is its width.
    RowLine,
    /// Disc wider than a cell or two; the size is its diameter.
    Blob,
}

impl DefectKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Particle,
        Self::Pinhole,
        Self::Scratch,
        Self::MissingCell,
        Self::Bridge,
        Self::ColumnLine,
        Self::RowLine,
        Self::Blob,
    ];

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Particle => "particle",
            Self::Pinhole => "pinhole",
            Self::Scratch => "scratch",
            Self::MissingCell => "missing cell",
            Self::Bridge => "bridge",
            Self::ColumnLine => "column line",
            Self::RowLine => "row line",
            Self::Blob => "blob",
        }
    }
}

/// A defect to plant. Lengths in pixels, pixel centres at integer coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defect {
    /// Kind.
    pub kind: DefectKind,
    /// Centre; missing cells and bridges move to the nearest place of their kind.
    pub x: f64,
    /// Centre.
    pub y: f64,
    /// Size, see [`DefectKind`], at most 256; not used by missing cells.
    pub size_px: f64,
    /// Change in grey levels of 8 bits before the optics; a disc smaller than the point-spread
    /// function reaches only part of it. Pinholes and bridges use the magnitude. Missing cells dim
    /// their brightest bar by the magnitude, at most to the level of the grid.
    pub contrast: f64,
    /// Length of scratches and bridges, end to end, at most 256.
    pub length_px: f64,
    /// Direction of scratches, radians from the x axis towards growing y.
    pub angle_rad: f64,
}

impl Defect {
    /// A defect; scratches are 30 px long at 35°, bridges 4 px long.
    pub fn new(kind: DefectKind, x: f64, y: f64, size_px: f64, contrast: f64) -> Self {
        let length_px = match kind {
            DefectKind::Scratch => 30.0,
            DefectKind::Bridge => 4.0,
            _ => size_px,
        };
        Self {
            kind,
            x,
            y,
            size_px,
            contrast,
            length_px,
            angle_rad: 35f64.to_radians(),
        }
    }

    /// This defect with another length and direction.
    pub fn with_line(self, length_px: f64, angle_rad: f64) -> Self {
        Self {
            length_px,
            angle_rad,
            ..self
        }
    }
}

/// Ground truth of a defect in a frame.
pub type PlantedDefect = Planted<DefectKind>;

/// Geometry of pattern and frame, for drawing defects.
pub struct Scene<'a> {
    /// Frame width, px.
    pub width: usize,
    /// Frame height, px.
    pub height: usize,
    /// Pitches along x and y, px.
    pub pitch: [f64; 2],
    /// Position of pixel (0, 0) in the pattern, cells.
    pub phase: [f64; 2],
    /// Grey levels of 8 bits from the grid to the brightest bar, before the optics.
    pub cell_contrast: f64,
    /// Optics.
    pub optics: Optics,
    /// Shift of each row against the pattern, px.
    pub row_shifts: &'a [f32],
}

/// A rectangle before the optics; an unbounded axis is `None`.
struct Rectangle {
    /// Centre and width.
    x: Option<(f64, f64)>,
    y: Option<(f64, f64)>,
    level: f64,
}

/// Draws a defect.
///
/// # Errors
/// A sentence for values that are not finite or out of range, and for a defect that changes no
/// pixel of the frame.
pub fn draw(defect: &Defect, scene: &Scene) -> Result<Patch<DefectKind>, String> {
    check(defect)?;
    let magnitude = defect.contrast.abs();
    let [pitch_x, pitch_y] = scene.pitch;
    let mut truth = Planted::new(
        defect.kind,
        [defect.x, defect.y],
        defect.size_px,
        defect.contrast,
    );
    let (bounds, change) = match defect.kind {
        DefectKind::Particle | DefectKind::Blob => capsule(&truth, [0.0, 0.0], scene),
        DefectKind::Pinhole => {
            truth.contrast = magnitude;
            capsule(&truth, [0.0, 0.0], scene)
        }
        DefectKind::Scratch => {
            let half = ((defect.length_px - defect.size_px) / 2.0).max(0.0);
            let (sin, cos) = defect.angle_rad.sin_cos();
            capsule(&truth, [half * cos, half * sin], scene)
        }
        DefectKind::MissingCell => {
            truth.contrast = -magnitude.min(scene.cell_contrast);
            truth.size_px = pitch_x;
            truth.x = nearest(defect.x, pitch_x, scene.phase[0], 0.5);
            truth.y = nearest(defect.y, pitch_y, scene.phase[1], 0.5);
            let part = |centre: f64, pitch: f64, s: cell::Stretch| {
                let middle = centre + pitch * ((s.start + s.end) / 2.0 - 0.5);
                Some((middle, pitch * (s.end - s.start)))
            };
            let parts: Vec<_> = cell::rectangles()
                .map(|(x, y)| Rectangle {
                    x: part(truth.x, pitch_x, x),
                    y: part(truth.y, pitch_y, y),
                    level: truth.contrast * x.level * y.level,
                })
                .collect();
            rectangles(&parts, scene)
        }
        DefectKind::Bridge => {
            truth.contrast = magnitude;
            truth.x = nearest(defect.x, pitch_x, scene.phase[0], 0.0);
            truth.y = nearest(defect.y, pitch_y, scene.phase[1], 0.5);
            let link = Rectangle {
                x: Some((truth.x, defect.length_px)),
                y: Some((truth.y, defect.size_px)),
                level: magnitude,
            };
            rectangles(&[link], scene)
        }
        DefectKind::ColumnLine => {
            truth.y = (scene.height - 1) as f64 / 2.0;
            let line = Rectangle {
                x: Some((defect.x, defect.size_px)),
                y: None,
                level: defect.contrast,
            };
            rectangles(&[line], scene)
        }
        DefectKind::RowLine => {
            truth.x = (scene.width - 1) as f64 / 2.0;
            let line = Rectangle {
                x: None,
                y: Some((defect.y, defect.size_px)),
                level: defect.contrast,
            };
            rectangles(&[line], scene)
        }
    };
    truth
        .drawn(bounds, &change)
        .ok_or_else(|| changes_nothing(defect))
}

fn check(defect: &Defect) -> Result<(), String> {
    let name = defect.kind.name();
    let values = [
        ("x", defect.x),
        ("y", defect.y),
        ("contrast", defect.contrast),
        ("angle_rad", defect.angle_rad),
    ];
    for (field, value) in values {
        if !value.is_finite() {
            return Err(format!("{name}: {field} is {value}, give a finite number"));
        }
    }
    for (field, value) in [("size_px", defect.size_px), ("length_px", defect.length_px)] {
        // A missing cell has the size of a cell.
        let used = defect.kind != DefectKind::MissingCell;
        if used && !(value > 0.0 && value <= MAX_EXTENT_PX) {
            return Err(format!(
                "{name}: {field} is {value}, give more than 0 and at most {MAX_EXTENT_PX} px"
            ));
        }
    }
    Ok(())
}

/// The position nearest to `position` that lies `offset` cells after the start of a cell.
fn nearest(position: f64, pitch: f64, phase: f64, offset: f64) -> f64 {
    let cells = position / pitch + phase - offset;
    (cells.round() + offset - phase) * pitch
}

/// Pixels within `centre ± half`, clipped to `len`; empty if outside.
fn span(centre: f64, half: f64, len: usize) -> (usize, usize) {
    // Casts from f64 saturate: coordinates far outside end at an edge.
    let start = ((centre - half).floor().max(0.0) as usize).min(len);
    let end = ((centre + half).ceil() + 1.0).max(0.0) as usize;
    (start, end.min(len).max(start))
}

/// Draws a sum of rectangles through the optics, with row shifts. Returns the box (left, top,
/// width, height) and the changes.
fn rectangles(parts: &[Rectangle], scene: &Scene) -> ([usize; 4], Vec<f64>) {
    let reach = scene.optics.reach_px();
    let shift = scene.row_shifts.iter().fold(0f32, |m, s| m.max(s.abs()));
    let axis = |place: Option<(f64, f64)>, margin: f64, len: usize| match place {
        Some((centre, width)) => span(centre, width / 2.0 + reach + margin, len),
        None => (0, len),
    };
    let join = |a: (usize, usize), b: (usize, usize)| match (a.0 < a.1, b.0 < b.1) {
        (false, _) => b,
        (_, false) => a,
        _ => (a.0.min(b.0), a.1.max(b.1)),
    };
    let (mut columns, mut rows) = ((0, 0), (0, 0));
    for part in parts {
        columns = join(columns, axis(part.x, f64::from(shift), scene.width));
        rows = join(rows, axis(part.y, 0.0, scene.height));
    }
    let (width, height) = (columns.1 - columns.0, rows.1 - rows.0);
    let mut change = vec![0.0; width * height];
    let response = |place: Option<(f64, f64)>, at: f64| match place {
        Some((centre, extent)) => scene.optics.bar(at - centre, extent),
        None => 1.0,
    };
    let moving = shift > 0.0;
    for part in parts {
        let mut profile: Vec<f64> = Vec::with_capacity(width);
        for (y, line) in (rows.0..rows.1).zip(change.chunks_exact_mut(width.max(1))) {
            if profile.is_empty() || (moving && part.x.is_some()) {
                let shift = f64::from(scene.row_shifts[y]);
                profile.clear();
                profile.extend((columns.0..columns.1).map(|x| response(part.x, x as f64 + shift)));
            }
            let level = part.level * response(part.y, y as f64);
            for (value, profile) in line.iter_mut().zip(&profile) {
                *value += level * profile;
            }
        }
    }
    ([columns.0, rows.0, width, height], change)
}

/// Draws a disc stretched over `± half_axis` (a capsule) through the optics, without row shifts:
/// these shift the pattern, and a particle or scratch is not part of the pattern.
fn capsule(truth: &PlantedDefect, half_axis: [f64; 2], scene: &Scene) -> ([usize; 4], Vec<f64>) {
    let radius = truth.size_px / 2.0;
    let [ax, ay] = half_axis;
    let reach = scene.optics.reach_px() + 1.0;
    let columns = span(truth.x, ax.abs() + radius + reach, scene.width);
    let rows = span(truth.y, ay.abs() + radius + reach, scene.height);
    let (width, height) = (columns.1 - columns.0, rows.1 - rows.0);
    let mut change = vec![0.0; width * height];

    let fine = OVERSAMPLING as f64;
    let part = 1.0 / fine;
    // Sub-cells are numbered from the box around the capsule; number i lies at origin + (i+½)/8.
    let origin = [truth.x - ax.abs() - radius, truth.y - ay.abs() - radius].map(|v| v.floor());
    let counts = [ax, ay].map(|a| ((2.0 * (a.abs() + radius) + 2.0) * fine) as usize);
    let place = |i: usize, axis: usize| origin[axis] + (i as f64 + 0.5) * part;
    // Weight of a sub-cell by its distance in sub-cells, for pixels and sub-cells that start
    // together.
    let taps = (reach * fine).ceil() as usize;
    let weights: Vec<f64> = (0..=2 * taps)
        .map(|i| {
            scene
                .optics
                .bar((i as f64 - taps as f64 + 0.5) * part, part)
        })
        .collect();
    // Adds `amount`, spread by the weights, to the pixels from `first`.
    let spread =
        |line: &mut dyn FnMut(usize, f64), i: usize, axis: usize, range: (usize, usize)| {
            let (start, end) = span(place(i, axis), reach - 1.0, range.1);
            for pixel in start.max(range.0)..end {
                // The centre of pixel p lies 8(p − origin) − i − ½ sub-cells after sub-cell i.
                let ahead = (pixel as f64 - origin[axis]) * fine - i as f64 - 1.0 + taps as f64;
                if ahead >= 0.0
                    && let Some(weight) = weights.get(ahead as usize)
                {
                    line(pixel - range.0, *weight);
                }
            }
        };

    let axis_squared = ax * ax + ay * ay;
    let mut line = vec![0.0; width];
    for j in 0..counts[1] {
        let dy = place(j, 1) - truth.y;
        line.fill(0.0);
        let mut touched = false;
        for i in 0..counts[0] {
            let dx = place(i, 0) - truth.x;
            let along = if axis_squared > 0.0 {
                ((dx * ax + dy * ay) / axis_squared).clamp(-1.0, 1.0)
            } else {
                0.0
            };
            let distance = (dx - along * ax).hypot(dy - along * ay);
            let coverage = ((radius - distance) * fine + 0.5).clamp(0.0, 1.0);
            if coverage > 0.0 {
                touched = true;
                spread(&mut |x, weight| line[x] += coverage * weight, i, 0, columns);
            }
        }
        if touched {
            let mut add = |y: usize, weight: f64| {
                let row = &mut change[y * width..(y + 1) * width];
                for (value, source) in row.iter_mut().zip(&line) {
                    *value += truth.contrast * weight * source;
                }
            };
            spread(&mut add, j, 1, rows);
        }
    }
    ([columns.0, rows.0, width, height], change)
}

fn changes_nothing(defect: &Defect) -> String {
    format!(
        "{} at ({}, {}) with contrast {} changes no pixel of the frame; move it inside or raise its size or \
         contrast",
        defect.kind.name(),
        defect.x,
        defect.y,
        defect.contrast
    )
}
