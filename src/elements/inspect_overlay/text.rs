//! Letters as coverage, from a font that is part of the library.

use std::{collections::HashMap, sync::LazyLock};

use ab_glyph::{Font as _, FontRef, PxScale, ScaleFont as _};

/// Hack, a monospaced typeface: the same picture on every machine, and digits that stand still.
const FONT: &[u8] = include_bytes!("../../../assets/fonts/Hack-Regular.ttf");

/// Letters of a size are forgotten when there are more: a name may hold any of Unicode.
const MOST_GLYPHS: usize = 1024;

/// Below 1 thin strokes, which fall on parts of two pixels at small sizes, come out darker.
const BOLDNESS: f32 = 0.7;

static FACE: LazyLock<Option<FontRef<'static>>> =
    LazyLock::new(|| FontRef::try_from_slice(FONT).ok());

/// A letter's pixels.
#[derive(Debug)]
pub(super) struct Glyph {
    /// From the pen to the first column, px.
    pub left: i32,
    /// From the upper edge of the line to the first row, px.
    pub top: i32,
    pub width: usize,
    /// 0 = paper, 255 = ink, row by row.
    pub coverage: Vec<u8>,
}

/// Letters that were drawn before.
#[derive(Debug, Default)]
pub(super) struct Type {
    glyphs: HashMap<(char, i32), Glyph>,
}

impl Type {
    /// Width of every letter of a height, px.
    pub fn advance(height: i32) -> i32 {
        let scaled = FACE.as_ref().map(|face| {
            let face = face.as_scaled(PxScale::from(height as f32));
            face.h_advance(face.glyph_id('0')).round()
        });
        (scaled.unwrap_or_default() as i32).max(1)
    }

    /// Width of a line, px.
    pub fn width(text: &str, height: i32) -> i32 {
        let letters = i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
        letters.saturating_mul(Self::advance(height))
    }

    /// A letter of a height in px.
    pub fn glyph(&mut self, letter: char, height: i32) -> &Glyph {
        if self.glyphs.len() > MOST_GLYPHS {
            self.glyphs.clear();
        }
        self.glyphs
            .entry((letter, height))
            .or_insert_with(|| outline(letter, height))
    }
}

fn outline(letter: char, height: i32) -> Glyph {
    let drawn = FACE.as_ref().and_then(|face| {
        let scale = PxScale::from(height as f32);
        let ascent = face.as_scaled(scale).ascent();
        let place = ab_glyph::point(0.0, ascent.round());
        let glyph = face.glyph_id(letter).with_scale_and_position(scale, place);
        let outlined = face.outline_glyph(glyph)?;
        let bounds = outlined.px_bounds();
        let width = bounds.width() as usize;
        let mut coverage = vec![0; width * bounds.height() as usize];
        outlined.draw(|x, y, c| {
            if let Some(pixel) = coverage.get_mut(y as usize * width + x as usize) {
                *pixel = (c.clamp(0.0, 1.0).powf(BOLDNESS) * 255.0).round() as u8;
            }
        });
        Some(Glyph {
            left: bounds.min.x as i32,
            top: bounds.min.y as i32,
            width,
            coverage,
        })
    });
    // A space has no outline.
    drawn.unwrap_or(Glyph {
        left: 0,
        top: 0,
        width: 0,
        coverage: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_that_is_written_has_an_outline_inside_its_line() {
        let mut letters = Type::default();
        let written = ('!'..='~').chain(['\u{2212}', '\u{b7}', '\u{d7}']);
        for letter in written {
            for height in [9, 12, 25, 60] {
                let advance = Type::advance(height);
                let glyph = letters.glyph(letter, height);
                assert!(
                    glyph.coverage.iter().any(|&c| c > 64),
                    "{letter} at {height}"
                );
                assert!(glyph.top >= 0 && glyph.left >= -1, "{letter} at {height}");
                let bottom = glyph.top + (glyph.coverage.len() / glyph.width) as i32;
                assert!(bottom <= height + 1, "{letter} at {height}");
                assert!(
                    glyph.left + glyph.width as i32 <= advance + 2,
                    "{letter} at {height}"
                );
            }
        }
    }
}
