//! Glyphs as coverage, from a font that is embedded in the library.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use skrifa::{
    FontRef, GlyphId, MetadataProvider as _,
    instance::{LocationRef, Size},
    outline::{DrawSettings, OutlinePen},
};
use tiny_skia::{FillRule, Mask, Path, PathBuilder, Stroke, Transform};

/// Hack, a monospaced typeface. Embedding it gives the same picture on every machine, and digits do
/// not move.
const FONT: &[u8] = include_bytes!("../../assets/fonts/Hack-Regular.ttf");

/// Maximum number of cached glyphs: a name may contain any Unicode characters.
const MOST_GLYPHS: usize = 1024;

/// An exponent below 1 darkens thin strokes, which cover only parts of pixels at small sizes.
const BOLDNESS: f32 = 0.7;

static FACE: LazyLock<Option<Face>> = LazyLock::new(Face::new);

/// The typeface and its metrics, in the typeface's own units.
struct Face {
    font: FontRef<'static>,
    units_per_em: f32,
    /// From the highest to the lowest point of the letters.
    line: f32,
    /// Width of every letter.
    advance: f32,
}

impl Face {
    fn new() -> Option<Self> {
        let (size, plain) = (Size::unscaled(), LocationRef::default());
        let font = FontRef::new(FONT).ok()?;
        let metrics = font.metrics(size, plain);
        let digit = font.charmap().map('0')?;
        Some(Self {
            units_per_em: f32::from(metrics.units_per_em),
            line: metrics.ascent - metrics.descent,
            advance: font.glyph_metrics(size, plain).advance_width(digit)?,
            font,
        })
    }

    /// The outline of a letter, px.
    fn outline(&self, letter: char, height: i32) -> Option<Path> {
        // The size in pixels per em.
        let size = Size::new(self.units_per_em * height as f32 / self.line);
        let plain = LocationRef::default();
        let ascent = self.font.metrics(size, plain).ascent.round();
        let id = self.font.charmap().map(letter).unwrap_or(GlyphId::NOTDEF);
        let outline = self.font.outline_glyphs().get(id)?;
        let mut pen = Pen::default();
        let settings = DrawSettings::unhinted(size, plain);
        outline.draw(settings, &mut pen).ok()?;
        let path = pen.0.finish()?;
        // The typeface's y axis points up.
        path.transform(Transform::from_scale(1.0, -1.0).post_translate(0.0, ascent))
    }

    /// The glyph of a letter; `None` if it has no visible pixels.
    fn draw(&self, letter: char, height: i32) -> Option<Glyph> {
        let drawn = symbol(letter, height as f32);
        let placed = drawn.or_else(|| self.outline(letter, height))?;
        let bounds = placed.bounds();
        let [left, top] = [bounds.left(), bounds.top()].map(|edge| edge.floor());
        let [right, bottom] = [bounds.right(), bounds.bottom()].map(|edge| edge.ceil());
        let mut mask = Mask::new((right - left) as u32, (bottom - top) as u32)?;
        let shift = Transform::from_translate(-left, -top);
        mask.fill_path(&placed, FillRule::Winding, true, shift);
        let width = mask.width() as usize;
        let mut coverage = mask.take();
        for pixel in &mut coverage {
            *pixel = ((f32::from(*pixel) / 255.0).powf(BOLDNESS) * 255.0).round() as u8;
        }
        Some(Glyph {
            left: left as i32,
            top: top as i32,
            width,
            coverage,
        })
    }
}

/// The outline of a symbol of a verdict (dash, check mark, cross), px. It is two letters wide.
fn symbol(letter: char, height: f32) -> Option<Path> {
    // From the upper left corner, in heights of the line.
    let corners: &[[f32; 2]] = match letter {
        '\u{2013}' => &[[0.15, 0.5], [0.95, 0.5]],
        '\u{2713}' => &[[0.1, 0.5], [0.4, 0.78], [1.0, 0.2]],
        '\u{2717}' => &[[0.2, 0.2], [0.8, 0.8], [0.5, 0.5], [0.8, 0.2], [0.2, 0.8]],
        _ => return None,
    };
    let mut pen = Pen::default();
    pen.move_to(corners[0][0] * height, corners[0][1] * height);
    for [x, y] in &corners[1..] {
        pen.line_to(x * height, y * height);
    }
    let width = 0.16 * height;
    pen.0.finish()?.stroke(
        &Stroke {
            width,
            ..Stroke::default()
        },
        1.0,
    )
}

/// Converts an outline to a path of the drawing library.
#[derive(Default)]
struct Pen(PathBuilder);

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.0.quad_to(cx, cy, x, y);
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        self.0.cubic_to(cx0, cy0, cx1, cy1, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

/// The pixels of a glyph; empty for a space.
#[derive(Debug, Default)]
pub struct Glyph {
    /// From the pen to the first column, px.
    pub left: i32,
    /// From the top of the line to the first row, px.
    pub top: i32,
    /// Number of columns.
    pub width: usize,
    /// Coverage row by row: 0 = background, 255 = letter.
    pub coverage: Vec<u8>,
}

/// Glyphs by letter and height.
type Glyphs = HashMap<(char, i32), Arc<Glyph>>;

/// Width of every letter at a height, px.
pub fn advance(height: i32) -> i32 {
    let advance = FACE.as_ref().map_or(0.0, |face| face.advance / face.line);
    ((advance * height as f32).round() as i32).max(1)
}

/// Width of a line of text, px.
pub fn width(text: &str, height: i32) -> i32 {
    let letters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
    letters.saturating_mul(advance(height))
}

/// The glyph of a letter at a height in px.
pub fn glyph(letter: char, height: i32) -> Arc<Glyph> {
    static DRAWN: LazyLock<Mutex<Glyphs>> = LazyLock::new(Mutex::default);
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    if drawn.len() > MOST_GLYPHS {
        drawn.clear();
    }
    let draw = || FACE.as_ref()?.draw(letter, height);
    let glyph = drawn.entry((letter, height));
    glyph
        .or_insert_with(|| draw().unwrap_or_default().into())
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_that_is_written_has_an_outline_inside_its_line() {
        let symbols = ['\u{2013}', '\u{2713}', '\u{2717}'];
        let written = ('!'..='~').chain(['\u{2212}', '\u{b7}', '\u{d7}']);
        for letter in written.chain(symbols) {
            for height in [9, 12, 25, 60] {
                let (glyph, what) = (glyph(letter, height), format!("{letter} at {height}"));
                assert!(glyph.coverage.iter().any(|&c| c > 64), "{what}");
                assert!(glyph.top >= 0 && glyph.left >= -1, "{what}");
                let bottom = glyph.top + (glyph.coverage.len() / glyph.width) as i32;
                assert!(bottom <= height + 1, "{what}");
                let room = advance(height) * if symbols.contains(&letter) { 2 } else { 1 };
                assert!(glyph.left + glyph.width as i32 <= room + 2, "{what}");
            }
        }
    }
}
