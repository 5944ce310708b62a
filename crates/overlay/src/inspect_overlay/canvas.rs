//! A piece of the picture to draw on, before it has the frame's colours.

use tiny_skia::{
    Color, FillRule, LineCap, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use super::{blend, colours::ColourSpace, layout::Rect, shapes::Piece, text::Type};

/// Not premultiplied, as ARGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(pub u32);

impl Colour {
    /// The same with another alpha.
    pub fn with_alpha(self, alpha: u8) -> Self {
        Self(u32::from(alpha) << 24 | self.0 & 0x00ff_ffff)
    }

    fn channels(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }

    /// As a pixel of the canvas: premultiplied B, G, R, A.
    pub fn pixel(self) -> [u8; 4] {
        let [a, r, g, b] = self.channels();
        let multiplied = |c: u8| ((u16::from(c) * u16::from(a) + 127) / 255) as u8;
        [multiplied(b), multiplied(g), multiplied(r), a]
    }

    /// As paint. The canvas's bytes are B, G, R, A where the library thinks of R, G, B, A.
    fn paint(self) -> Paint<'static> {
        let [a, r, g, b] = self.channels();
        let mut paint = Paint::default();
        paint.set_color(Color::from_rgba8(b, g, r, a));
        paint.anti_alias = true;
        paint
    }

    /// White or black, whichever is read better on this colour.
    pub fn ink(self) -> Self {
        let [_, r, g, b] = self.channels().map(u32::from);
        if 299 * r + 587 * g + 114 * b > 140_000 {
            Self(0xff10_1418)
        } else {
            Self(0xffff_ffff)
        }
    }
}

/// A clear piece of the picture; what is drawn is told in the frame's coordinates.
pub(super) struct Canvas {
    area: Rect,
    pixmap: Pixmap,
}

impl Canvas {
    /// `None` for an empty area, or one that is too large for memory.
    pub fn new(area: Rect) -> Option<Self> {
        let side = |n: i32| u32::try_from(n).ok();
        let pixmap = Pixmap::new(side(area.width)?, side(area.height)?)?;
        Some(Self { area, pixmap })
    }

    fn shift(&self) -> Transform {
        Transform::from_translate(-self.area.x as f32, -self.area.y as f32)
    }

    /// The pixels of a row from a column on; a row or column outside has none.
    fn row(&mut self, x: i32, y: i32) -> &mut [[u8; 4]] {
        let width = self.area.width;
        if !(self.area.y..self.area.bottom()).contains(&y)
            || !(self.area.x..self.area.right()).contains(&x)
        {
            return &mut [];
        }
        let begin = ((y - self.area.y) * width + x - self.area.x) as usize;
        let len = (self.area.right() - x) as usize;
        let (pixels, _) = self.pixmap.data_mut().as_chunks_mut();
        pixels.get_mut(begin..begin + len).unwrap_or_default()
    }

    /// Fills whole pixels.
    pub fn fill(&mut self, rect: Rect, colour: Colour) {
        let rect = rect.and(self.area);
        if rect.is_empty() {
            return;
        }
        if colour.0 >> 24 == 0xff {
            for y in rect.y..rect.bottom() {
                self.row(rect.x, y)[..rect.width as usize].fill(colour.pixel());
            }
            return;
        }
        let pixel = colour.pixel().map(u16::from);
        for y in rect.y..rect.bottom() {
            let row = &mut self.row(rect.x, y)[..rect.width as usize];
            blend::fill_plain(row, pixel, pixel[3]);
        }
    }

    /// Fills a rectangle with round corners.
    pub fn round(&mut self, rect: Rect, radius: i32, colour: Colour) {
        let radius = radius.min(rect.width / 2).min(rect.height / 2);
        // Between the corners there is nothing to smooth.
        self.fill(
            Rect::new(
                rect.x,
                rect.y + radius,
                rect.width,
                rect.height - 2 * radius,
            ),
            colour,
        );
        for (edge, inner) in [
            (rect.y, rect.y + radius),
            (rect.bottom(), rect.bottom() - radius),
        ] {
            if let Some(path) = round_end(rect, radius, [edge, inner]) {
                self.shape(&path, colour);
            }
        }
    }

    /// Fills the area between a baseline and points above it, from left to right.
    pub fn area_under(&mut self, points: &[(f32, f32)], base: f32, colour: Colour) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return;
        };
        let mut path = PathBuilder::new();
        path.move_to(first.0, base);
        for &(x, y) in points {
            path.line_to(x, y);
        }
        path.line_to(last.0, base);
        path.close();
        if let Some(path) = path.finish() {
            self.shape(&path, colour);
        }
    }

    fn shape(&mut self, path: &Path, colour: Colour) {
        let shift = self.shift();
        self.pixmap
            .fill_path(path, &colour.paint(), FillRule::Winding, shift, None);
    }

    /// Draws a line along points.
    pub fn line(&mut self, points: &[(f32, f32)], width: f32, colour: Colour) {
        let mut path = PathBuilder::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            match index {
                0 => path.move_to(x, y),
                _ => path.line_to(x, y),
            }
        }
        let stroke = Stroke {
            width,
            ..Stroke::default()
        };
        self.stroke(path, &stroke, colour);
    }

    /// Draws a dashed line downward.
    pub fn dashes(&mut self, x: f32, [top, bottom]: [f32; 2], width: f32, colour: Colour) {
        let mut path = PathBuilder::new();
        path.move_to(x, top);
        path.line_to(x, bottom);
        let stroke = Stroke {
            width,
            line_cap: LineCap::Butt,
            dash: StrokeDash::new(vec![3.0 * width, 2.0 * width], 0.0),
            ..Stroke::default()
        };
        self.stroke(path, &stroke, colour);
    }

    fn stroke(&mut self, path: PathBuilder, stroke: &Stroke, colour: Colour) {
        if let Some(path) = path.finish() {
            let shift = self.shift();
            self.pixmap
                .stroke_path(&path, &colour.paint(), stroke, shift, None);
        }
    }

    /// Writes a line; (x, y) is its upper left corner.
    pub fn text(&mut self, letters: &mut Type, text: &str, x: i32, y: i32, style: (i32, Colour)) {
        let (height, colour) = style;
        let advance = Type::advance(height);
        for (index, letter) in (0..).zip(text.chars()) {
            let pen = x + index * advance;
            if pen >= self.area.right() {
                break;
            }
            let glyph = letters.glyph(letter, height);
            if glyph.width == 0 || pen + advance < self.area.x {
                continue;
            }
            let rows = glyph.coverage.chunks(glyph.width);
            for (row, coverage) in (0..).zip(rows) {
                let left = pen + glyph.left;
                let hidden = (self.area.x - left).max(0);
                let skipped = usize::try_from(hidden).unwrap_or(0).min(coverage.len());
                let pixels = self.row(left + hidden, y + glyph.top + row);
                for (pixel, &coverage) in pixels.iter_mut().zip(&coverage[skipped..]) {
                    cover(pixel, coverage, colour);
                }
            }
        }
    }

    /// The piece in the frame's colours.
    pub fn finish(self, colours: &ColourSpace, opacity: f64) -> Piece {
        let (drawn, _) = self.pixmap.data().as_chunks();
        Piece {
            area: self.area,
            pixels: colours.pixels(drawn, opacity),
        }
    }
}

/// A colour over a pixel, as far as a letter covers it.
fn cover(pixel: &mut [u8; 4], coverage: u8, colour: Colour) {
    let alpha = colour.channels()[0];
    let part = (u16::from(alpha) * u16::from(coverage) + 127) / 255;
    let source = colour.with_alpha(part as u8).pixel();
    for (target, source) in pixel.iter_mut().zip(source) {
        let kept = (u16::from(*target) * (255 - part) + 127) / 255;
        *target = (u16::from(source) + kept).min(255) as u8;
    }
}

/// The part of a rectangle with round corners from its upper or lower edge to where the corners
/// end.
fn round_end(rect: Rect, radius: i32, [edge, inner]: [i32; 2]) -> Option<Path> {
    let [left, right, edge, inner] = [rect.x, rect.right(), edge, inner].map(|n| n as f32);
    let radius = radius as f32;
    let mut path = PathBuilder::new();
    path.move_to(left, inner);
    path.quad_to(left, edge, left + radius, edge);
    path.line_to(right - radius, edge);
    path.quad_to(right, edge, right, inner);
    path.close();
    path.finish()
}
