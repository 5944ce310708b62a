//! A part of the picture to draw on, before the conversion to the frame's colours.

use super::{
    area::Area, blend, colours::ColourSpace, found::FrameMarks, placement::Placement,
    shapes::Shape, text,
};

/// Around the marks of hidden defects, so that they are visible on every colour.
const MARK_BACKGROUND: Colour = Colour(0xff10_1418);

/// An ARGB colour, not premultiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(pub u32);

impl Colour {
    /// The colour with another alpha.
    pub fn with_alpha(self, alpha: u8) -> Self {
        Self(u32::from(alpha) << 24 | self.0 & 0x00ff_ffff)
    }

    /// The colour as a pixel of the canvas: premultiplied B, G, R, A.
    pub fn pixel(self) -> [u8; 4] {
        let [a, r, g, b] = self.0.to_be_bytes();
        let multiplied = |c: u8| ((u16::from(c) * u16::from(a) + 127) / 255) as u8;
        [multiplied(b), multiplied(g), multiplied(r), a]
    }
}

/// A part of the picture. Drawing uses the frame's coordinates.
pub(super) struct Canvas {
    area: Area,
    /// Premultiplied B, G, R, A.
    pixels: Vec<[u8; 4]>,
}

impl Canvas {
    /// A canvas of one colour. On an empty area nothing is drawn.
    pub fn new(area: Area, colour: Colour) -> Self {
        let side = |n: i32| usize::try_from(n).unwrap_or(0);
        Self {
            area,
            pixels: vec![colour.pixel(); side(area.width) * side(area.height)],
        }
    }

    /// The pixels of a row from column `x` on; empty outside the canvas.
    fn row(&mut self, x: i32, y: i32) -> &mut [[u8; 4]] {
        let width = self.area.width;
        if !(self.area.y..self.area.bottom()).contains(&y)
            || !(self.area.x..self.area.right()).contains(&x)
        {
            return &mut [];
        }
        let begin = ((y - self.area.y) * width + x - self.area.x) as usize;
        let len = (self.area.right() - x) as usize;
        self.pixels.get_mut(begin..begin + len).unwrap_or_default()
    }

    /// Fills the pixels of a rectangle.
    pub fn fill(&mut self, rect: Area, colour: Colour) {
        let rect = rect.and(self.area);
        let width = rect.width.max(0) as usize;
        let pixel = colour.pixel().map(u16::from);
        for y in rect.y..rect.bottom() {
            let row = &mut self.row(rect.x, y)[..width];
            blend::fill_plain(row, pixel, pixel[3]);
        }
    }

    /// Fills from the base line of `plot` up to `heights`, one per column, and draws a line of this
    /// width on top.
    pub fn curve(&mut self, plot: Area, heights: &[i32], line: i32, colour: Colour) {
        let top = |height: i32| plot.bottom() - height - line;
        let mut last = heights.first().copied().map_or(plot.bottom(), top);
        for (x, &height) in (plot.x..).zip(heights) {
            let here = top(height);
            let (first, end) = (here.min(last), here.max(last) + line);
            self.fill(Area::new(x, first, 1, end - first), colour);
            let below = Area::new(x, end, 1, plot.bottom() - end);
            self.fill(below, colour.with_alpha(0x90));
            last = here;
        }
    }

    /// Writes a line of text with its upper left corner at (x, y), which must be inside.
    pub fn text(&mut self, text: &str, x: i32, y: i32, style: (i32, Colour)) {
        let (height, colour) = style;
        let advance = text::advance(height);
        for (index, letter) in (0..).zip(text.chars()) {
            let pen = x + index * advance;
            if pen >= self.area.right() {
                break;
            }
            let glyph = text::glyph(letter, height);
            for (row, coverage) in (0..).zip(glyph.coverage.chunks(glyph.width.max(1))) {
                let left = (pen + glyph.left).max(self.area.x);
                let pixels = self.row(left, y + glyph.top + row);
                for (pixel, &coverage) in pixels.iter_mut().zip(coverage) {
                    let alpha = u32::from(coverage) * (colour.0 >> 24);
                    let ink = colour.with_alpha(((alpha + 127) / 255) as u8).pixel();
                    let ink = ink.map(u16::from);
                    blend::fill_plain(std::slice::from_mut(pixel), ink, ink[3]);
                }
            }
        }
    }

    /// Marks the columns and rows in which the canvas hides defects, along its edges towards the
    /// middle of the frame.
    pub fn mark(&mut self, layout: &Placement, found: &FrameMarks, colour: Colour) {
        let Placement { frame, line, .. } = *layout;
        let area = self.area;
        let depth = layout.margin / 4;
        let is_above = area.y + area.bottom() < frame.height;
        let is_left = area.x + area.right() < frame.width;
        let y = if is_above {
            area.bottom() - depth
        } else {
            area.y
        };
        let x = if is_left {
            area.right() - depth
        } else {
            area.x
        };
        let [columns, rows] = found.under(area);
        let columns = columns.iter().map(|&column| Area::new(column, y, 1, depth));
        let rows = rows.iter().map(|&row| Area::new(x, row, depth, 1));
        // The bar is as wide as the frame: its sides are no edges towards the middle.
        let rows = rows.filter(|_| area.width < frame.width);
        let marks: Vec<_> = columns.chain(rows).collect();
        for (wider, colour) in [(2 * line, MARK_BACKGROUND), (line, colour)] {
            for mark in &marks {
                self.fill(mark.inset(-wider), colour);
            }
        }
    }

    /// The canvas in the frame's colours.
    pub fn finish(self, colours: &ColourSpace, opacity: f64) -> Shape {
        Shape::Sprite {
            area: self.area,
            pixels: colours.pixels(&self.pixels, opacity),
        }
    }
}
