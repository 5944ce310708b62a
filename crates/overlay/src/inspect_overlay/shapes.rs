//! The parts of an overlay, and how they are blended into a frame.

use super::{
    area::Area,
    bits::{Bits, runs},
    blend::Row,
    colours::Pixel,
    rows::Rows,
};

/// A part of an overlay.
#[derive(Debug)]
pub(super) enum Shape {
    /// Nested lines along the edges of a rectangle.
    Box {
        outer: Area,
        /// Width of each line, px.
        line: i32,
        /// Colours from the outermost to the innermost line.
        colours: [Pixel; 3],
    },
    /// Drawn pixels, row by row.
    Sprite { area: Area, pixels: Vec<Pixel> },
}

/// An overlay, and the problems found while it was drawn.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// Pixels and their colour, from the lowest to the topmost; below all shapes.
    pub tints: Vec<(Bits, Pixel)>,
    /// Shapes from the lowest to the topmost.
    pub shapes: Vec<Shape>,
    pub faults: Vec<String>,
}

impl Shape {
    fn area(&self) -> Area {
        match self {
            Self::Box { outer, .. } => *outer,
            Self::Sprite { area, .. } => *area,
        }
    }

    /// Draws the part of the shape that lies in row `y`.
    fn draw(&self, y: i32, row: &mut Row) {
        match self {
            Self::Box {
                outer,
                line,
                colours,
            } => {
                // The distance from the nearer of the upper and lower edge is the number of lines
                // that are vertical in this row.
                let depth = (y - outer.y).min(outer.bottom() - 1 - y);
                let mut rect = *outer;
                for (&colour, ring) in colours.iter().zip(1..) {
                    if depth < ring * line {
                        row.fill(rect.x, rect.right(), colour);
                        break;
                    }
                    row.fill(rect.x, rect.x + line, colour);
                    row.fill(rect.right() - line, rect.right(), colour);
                    rect = rect.inset(*line);
                }
            }
            Self::Sprite { area, pixels } => {
                let width = area.width as usize;
                let begin = usize::try_from(y - area.y).unwrap_or(0) * width;
                if let Some(pixels) = pixels.get(begin..begin + width) {
                    row.over(area.x, pixels);
                }
            }
        }
    }
}

impl Overlay {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.tints.is_empty() && self.shapes.is_empty()
    }

    /// Blends the overlay into a frame. Only rows with something drawn are unpacked, and each of
    /// them once.
    pub fn blend(&self, rows: &mut Rows) {
        let height = rows.height();
        // The shapes in each row, the lowest first.
        let mut shapes: Vec<Vec<&Shape>> = vec![Vec::new(); usize::try_from(height).unwrap_or(0)];
        for shape in &self.shapes {
            let area = shape.area();
            for y in area.y.max(0)..area.bottom().min(height) {
                shapes[y as usize].push(shape);
            }
        }
        for (y, shapes) in (0..).zip(shapes) {
            let tints = self.tints.iter().filter(|(bits, _)| {
                let mut words = bits.row(y as usize).iter();
                words.any(|&word| word != 0)
            });
            let tints: Vec<_> = tints.collect();
            if tints.is_empty() && shapes.is_empty() {
                continue;
            }
            rows.edit(y, |row| {
                for (bits, colour) in tints {
                    for [begin, end] in runs(bits.row(y as usize)) {
                        row.fill(begin as i32, end as i32, *colour);
                    }
                }
                for shape in shapes {
                    shape.draw(y, row);
                }
            });
        }
    }
}
