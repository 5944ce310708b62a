//! The picture of a roll's map: the web from above, with a box and a number for each defect.

use std::{collections::VecDeque, path::Path};

use image::{Rgb, RgbImage};

use crate::{pictures::save, roll::RollLine};

/// Most pixels of the picture across the web, and along it.
const WIDEST: u64 = 640;
const LONGEST: u64 = 2400;
/// Room for the scales left of and above the web, px.
const MARGIN: [u32; 2] = [76, 24];
/// Smallest side of a box, px.
const SMALLEST: u32 = 5;
const PAPER: Rgb<u8> = Rgb([255, 255, 255]);
const WEB: Rgb<u8> = Rgb([232, 232, 228]);
const INK: Rgb<u8> = Rgb([60, 60, 60]);
/// Colours of classes in the order in which they come.
const COLOURS: [Rgb<u8>; 8] = [
    Rgb([200, 30, 30]),
    Rgb([20, 90, 200]),
    Rgb([220, 130, 0]),
    Rgb([20, 140, 60]),
    Rgb([140, 40, 170]),
    Rgb([0, 150, 160]),
    Rgb([120, 80, 30]),
    Rgb([90, 90, 90]),
];
/// Least distance of two marks of a scale, px.
const BETWEEN_MARKS: f64 = 60.0;

/// Draws defects, each with its first row on the roll, on a web of this width and length in px.
/// Positions are in mm and m, or in px where the size of a pixel is unknown.
///
/// # Errors
/// The file cannot be written.
pub fn draw(
    file: &Path,
    [width, length]: [u64; 2],
    mm_per_pixel: [f64; 2],
    defects: &VecDeque<(u64, RollLine)>,
) -> Result<(), String> {
    if width == 0 || length == 0 {
        return Ok(());
    }
    let across = (WIDEST as f64 / width as f64).min(1.0);
    // A long roll is compressed along its length.
    let along = (LONGEST as f64 / length as f64).min(across);
    let size = [
        (width as f64 * across).ceil() as u32,
        (length as f64 * along).ceil() as u32,
    ];
    let [left, top] = MARGIN;
    // Numbers right of the last box need room too.
    let mut picture = RgbImage::from_pixel(left + size[0] + left, top + size[1] + top, PAPER);
    fill(&mut picture, [left, top, size[0], size[1]], WEB);

    let known = mm_per_pixel.iter().all(|&mm| mm > 0.0);
    let units = if known {
        [mm_per_pixel[0], mm_per_pixel[1] / 1e3]
    } else {
        [1.0; 2]
    };
    for (at, label) in marks(width as f64 * units[0], across / units[0]) {
        fill(&mut picture, [left + at, top - 5, 1, 5], INK);
        text(&mut picture, &label, [left + at + 3, 4], INK);
    }
    for (at, label) in marks(length as f64 * units[1], along / units[1]) {
        fill(
            &mut picture,
            [left - 5, top + at, size[0] + 5, 1],
            Rgb([205, 205, 200]),
        );
        text(&mut picture, &label, [4, top + at], INK);
    }

    let mut classes: Vec<&str> = Vec::new();
    for (row, defect) in defects {
        let class = classes.iter().position(|&name| name == defect.class);
        let class = class.unwrap_or_else(|| {
            classes.push(&defect.class);
            classes.len() - 1
        });
        let colour = COLOURS[class % COLOURS.len()];
        let x = left + (f64::from(defect.x) * across) as u32;
        let y = top + (*row as f64 * along) as u32;
        let side = |len: u32, scale: f64| ((f64::from(len) * scale) as u32).max(SMALLEST);
        let [w, h] = [side(defect.width, across), side(defect.height, along)];
        fill(&mut picture, [x, y, w, h], colour);
        text(&mut picture, &defect.id.to_string(), [x + w + 3, y], colour);
    }
    save(&picture.into(), file)
}

/// Places (px) and labels of the marks of a scale from 0 to `end`, in units of `scale` px.
fn marks(end: f64, scale: f64) -> Vec<(u32, String)> {
    let least = BETWEEN_MARKS / scale;
    let decade = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * decade);
    let step = step
        .into_iter()
        .find(|&step| step >= least)
        .unwrap_or(least);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    (0..=(end / step) as u32)
        .map(|n| {
            let at = f64::from(n) * step;
            ((at * scale) as u32, format!("{at:.decimals$}"))
        })
        .collect()
}

fn fill(picture: &mut RgbImage, [x, y, width, height]: [u32; 4], colour: Rgb<u8>) {
    for row in y..(y + height).min(picture.height()) {
        for column in x..(x + width).min(picture.width()) {
            picture.put_pixel(column, row, colour);
        }
    }
}

/// Digits and the point, five rows of three pixels each, the top row in the highest bits.
const GLYPHS: [u16; 11] = [
    0b111_101_101_101_111,
    0b010_110_010_010_111,
    0b111_001_111_100_111,
    0b111_001_111_001_111,
    0b101_101_111_001_001,
    0b111_100_111_001_111,
    0b111_100_111_101_111,
    0b111_001_010_010_010,
    0b111_101_111_101_111,
    0b111_101_111_001_111,
    0b000_000_000_000_010,
];
/// Pixels of the picture per pixel of a glyph.
const ZOOM: u32 = 2;

/// Writes a number.
fn text(picture: &mut RgbImage, text: &str, [x, y]: [u32; 2], colour: Rgb<u8>) {
    for (place, letter) in (0_u32..).zip(text.chars()) {
        let glyph = GLYPHS[letter.to_digit(10).unwrap_or(10) as usize];
        for bit in (0..15).filter(|bit| glyph >> (14 - bit) & 1 == 1) {
            let at = [x + ZOOM * (4 * place + bit % 3), y + ZOOM * (bit / 3)];
            fill(picture, [at[0], at[1], ZOOM, ZOOM], colour);
        }
    }
}
