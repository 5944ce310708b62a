//! What is printed on the label: text, a bar code, a mark, rules.

use std::sync::LazyLock;

use skrifa::{
    FontRef, MetadataProvider as _,
    instance::{LocationRef, Size},
    outline::{DrawSettings, OutlinePen},
};
use tiny_skia::{Path, PathBuilder, Rect, Transform};

/// Hack, which Debian's package fonts-hack has, too. The embedded file gives the same labels on every
/// machine.
const FONT: &[u8] = include_bytes!("../../../overlay/assets/fonts/Hack-Regular.ttf");
static FACE: LazyLock<FontRef> = LazyLock::new(|| FontRef::new(FONT).expect("a font"));

/// Size of the label that the measures below belong to, px.
pub const SIZE: [f32; 2] = [640.0, 480.0];
/// The paper: left, top, right, bottom.
const PAPER: [f32; 4] = [20.0, 20.0, 620.0, 460.0];
/// Lines of text: first letter's left, baseline, height of an em, px.
const TEXTS: [(&str, f32, f32, f32); 6] = [
    ("POWER SUPPLY", 210.0, 84.0, 44.0),
    ("24 V DC   5 A   IP67", 212.0, 114.0, 25.0),
    ("Part no. 7 350-61.13", 46.0, 168.0, 25.0),
    ("Lot 2026-47   Qty 12", 46.0, 200.0, 25.0),
    ("EN 61010-1  Made in EU", 46.0, 232.0, 25.0),
    ("1 40 06381 33393 1", 92.0, 420.0, 27.0),
];
/// The digits of the bar code.
const DIGITS: [u8; 14] = [1, 4, 0, 0, 6, 3, 8, 1, 3, 3, 3, 9, 3, 1];
/// Left, top, bottom and the width of a narrow bar, px.
const BARS: [f32; 4] = [50.0, 258.0, 392.0, 3.0];
/// Width of a wide bar, in narrow ones.
const WIDE: f32 = 2.5;

/// A printed part. Parts are printed one after the other, each with an error of its own.
pub struct Part {
    /// Outline, px.
    pub path: Path,
    /// The line of text, if it is one.
    pub line: Option<Line>,
}

/// A line of text.
#[derive(Clone)]
pub struct Line {
    text: String,
    left: f32,
    baseline: f32,
    em: f32,
    scale: f32,
}

impl Line {
    /// Places in the text whose letter can be replaced.
    pub fn letters(&self) -> Vec<usize> {
        let letters = self.text.char_indices();
        letters
            .filter(|(_, c)| c.is_ascii_alphanumeric())
            .map(|(at, _)| at)
            .collect()
    }

    /// The letter at a place.
    pub fn letter(&self, at: usize) -> char {
        self.text[at..].chars().next().unwrap_or(' ')
    }

    /// The centre of the letter at a place, px.
    pub fn centre(&self, at: usize) -> [f32; 2] {
        let x = self.left + (at as f32 + 0.5) * advance(self.em);
        [
            x * self.scale,
            (self.baseline - 0.35 * self.em) * self.scale,
        ]
    }

    /// The outline of one letter at a place, px.
    pub fn outline(&self, at: usize, letter: char) -> Option<Path> {
        let mut pen = Pen::new(self.left + at as f32 * advance(self.em), self.baseline);
        pen.letter(letter, self.em);
        pen.path
            .finish()?
            .transform(Transform::from_scale(self.scale, self.scale))
    }
}

/// The outline of the paper, and the printed parts, for a label of `scale` times the usual size.
pub fn draw(scale: f32) -> (Path, Vec<Part>) {
    let scaled = |path: Path| path.transform(Transform::from_scale(scale, scale));
    let part = |path: Option<Path>| Part {
        path: path.and_then(scaled).expect("a shape"),
        line: None,
    };
    let mut parts = vec![part(mark()), part(rule()), part(bar_code()), part(symbol())];
    parts.extend(TEXTS.map(|(text, left, baseline, em)| {
        let line = Line {
            text: text.into(),
            left,
            baseline,
            em,
            scale,
        };
        let mut pen = Pen::new(left, baseline);
        for letter in text.chars() {
            pen.letter(letter, em);
        }
        Part {
            line: Some(line),
            ..part(pen.path.finish())
        }
    }));
    let [left, top, right, bottom] = PAPER;
    let mut paper = PathBuilder::new();
    rounded(&mut paper, [left, top, right, bottom], 14.0);
    (part(paper.finish()).path, parts)
}

fn rectangle(path: &mut PathBuilder, [left, top, right, bottom]: [f32; 4]) {
    if let Some(area) = Rect::from_ltrb(left, top, right, bottom) {
        path.push_rect(area);
    }
}

fn rounded(path: &mut PathBuilder, [left, top, right, bottom]: [f32; 4], radius: f32) {
    path.move_to(left + radius, top);
    path.line_to(right - radius, top);
    path.quad_to(right, top, right, top + radius);
    path.line_to(right, bottom - radius);
    path.quad_to(right, bottom, right - radius, bottom);
    path.line_to(left + radius, bottom);
    path.quad_to(left, bottom, left, bottom - radius);
    path.line_to(left, top + radius);
    path.quad_to(left, top, left + radius, top);
    path.close();
}

/// A solid mark with letters of paper.
fn mark() -> Option<Path> {
    let mut pen = Pen::new(60.0, 104.0);
    for letter in "CL".chars() {
        pen.letter(letter, 72.0);
    }
    rounded(&mut pen.path, [44.0, 44.0, 164.0, 120.0], 10.0);
    pen.path.finish()
}

fn rule() -> Option<Path> {
    let mut path = PathBuilder::new();
    rectangle(&mut path, [44.0, 130.0, 596.0, 133.0]);
    path.finish()
}

/// A triangle with an exclamation mark, a solid field with a letter of paper, a row of boxes.
fn symbol() -> Option<Path> {
    let mut pen = Pen::new(0.0, 0.0);
    let mut triangle = |top: f32, bottom: f32, half: f32| {
        pen.path.move_to(510.0, top);
        pen.path.line_to(510.0 + half, bottom);
        pen.path.line_to(510.0 - half, bottom);
        pen.path.close();
    };
    triangle(150.0, 236.0, 52.0);
    triangle(168.0, 227.0, 36.0);
    rectangle(&mut pen.path, [507.0, 188.0, 513.0, 209.0]);
    rectangle(&mut pen.path, [507.0, 214.0, 513.0, 220.0]);
    rectangle(&mut pen.path, [460.0, 262.0, 580.0, 350.0]);
    (pen.x, pen.baseline) = (497.0, 334.0);
    pen.letter('A', 76.0);
    for left in [460.0, 500.0, 540.0] {
        rectangle(&mut pen.path, [left, 372.0, left + 34.0, 406.0]);
        rectangle(&mut pen.path, [left + 4.0, 376.0, left + 30.0, 402.0]);
    }
    pen.path.finish()
}

/// Interleaved 2 of 5: bars carry the first digit of a pair, the spaces between them the second.
///
/// # Source
/// ISO/IEC 16390, table of the digits: two of five elements are wide.
fn bar_code() -> Option<Path> {
    const WIDE_ELEMENTS: [[bool; 5]; 10] = {
        const N: bool = false;
        const W: bool = true;
        [
            [N, N, W, W, N],
            [W, N, N, N, W],
            [N, W, N, N, W],
            [W, W, N, N, N],
            [N, N, W, N, W],
            [W, N, W, N, N],
            [N, W, W, N, N],
            [N, N, N, W, W],
            [W, N, N, W, N],
            [N, W, N, W, N],
        ]
    };
    let pairs = DIGITS.chunks_exact(2).flat_map(|pair| {
        let [bars, spaces] = [pair[0], pair[1]].map(|digit| WIDE_ELEMENTS[usize::from(digit)]);
        bars.into_iter()
            .zip(spaces)
            .flat_map(|(bar, space)| [bar, space])
    });
    // Bars and spaces take turns; four narrow elements start, a wide and two narrow ones stop.
    let elements = [false; 4]
        .into_iter()
        .chain(pairs)
        .chain([true, false, false]);
    let [mut x, top, bottom, narrow] = BARS;
    let mut path = PathBuilder::new();
    for (number, wide) in elements.enumerate() {
        let width = if wide { WIDE * narrow } else { narrow };
        if number.is_multiple_of(2) {
            rectangle(&mut path, [x, top, x + width, bottom]);
        }
        x += width;
    }
    path.finish()
}

/// Distance between two letters, px.
fn advance(em: f32) -> f32 {
    let digit = FACE.charmap().map('0').unwrap_or_default();
    let metrics = FACE.glyph_metrics(Size::new(em), LocationRef::default());
    metrics.advance_width(digit).unwrap_or(em)
}

/// Writes letters into a path.
struct Pen {
    path: PathBuilder,
    x: f32,
    baseline: f32,
}

impl Pen {
    fn new(x: f32, baseline: f32) -> Self {
        Self {
            path: PathBuilder::new(),
            x,
            baseline,
        }
    }

    /// Writes a letter and moves to the next place.
    fn letter(&mut self, letter: char, em: f32) {
        let glyph = FACE
            .charmap()
            .map(letter)
            .and_then(|id| FACE.outline_glyphs().get(id));
        let settings = DrawSettings::unhinted(Size::new(em), LocationRef::default());
        if let Some(glyph) = glyph {
            glyph.draw(settings, self).expect("an outline of the font");
        }
        self.x += advance(em);
    }

    /// The y axis of a font points up.
    fn place(&self, x: f32, y: f32) -> [f32; 2] {
        [self.x + x, self.baseline - y]
    }
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let [x, y] = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let [x, y] = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        let ([cx, cy], [x, y]) = (self.place(cx, cy), self.place(x, y));
        self.path.quad_to(cx, cy, x, y);
    }

    fn curve_to(&mut self, ax: f32, ay: f32, bx: f32, by: f32, x: f32, y: f32) {
        let ([ax, ay], [bx, by]) = (self.place(ax, ay), self.place(bx, by));
        let [x, y] = self.place(x, y);
        self.path.cubic_to(ax, ay, bx, by, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
