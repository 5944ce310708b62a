//! The picture of a roll's map: a legend of the classes, and below it the web from above, with a box and a number for
//! each defect.

use std::{collections::VecDeque, path::Path};

use gstinspectoverlay::text;
use image::{Rgb, RgbImage};

use crate::{pictures::save, roll::RollLine};

/// Most pixels of the picture across the web, and along it.
const WIDEST: u64 = 640;
const LONGEST: u64 = 2400;
/// Room for the scales left of and above the web, px.
const MARGIN: [u32; 2] = [84, 24];
/// Height of a line of text and of the gap below, px.
const LINE: u32 = 18;
/// Height of letters, from the highest to the lowest point, px.
const LETTERS: i32 = 15;
/// Smallest side of a box, px.
const SMALLEST: u32 = 5;
const PAPER: Rgb<u8> = Rgb([255, 255, 255]);
const WEB: Rgb<u8> = Rgb([232, 232, 228]);
const INK: Rgb<u8> = Rgb([60, 60, 60]);
/// Colours of classes in the order in which they come. The classes after these have the same colours and other [`FILLS`].
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
/// Whether the pixel at this place of a box of this size is coloured.
type Fill = fn([u32; 2], [u32; 2]) -> bool;
/// How boxes are filled. Classes of one colour differ in their fill, so classes begin to look alike after four times the
/// colours.
const FILLS: [Fill; 4] = [
    |_, _| true,
    |[x, y], [width, height]| x == 0 || y == 0 || x + 1 == width || y + 1 == height,
    |[_, y], _| y % 4 < 2,
    |[x, _], _| x % 4 < 2,
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
    let classes = classes(defects);
    let [left, margin] = MARGIN;
    let above = LINE * (classes.len() as u32 + 2);
    let top = above + margin;
    let heading = format!("defects: {}, each with its id", defects.len());
    // Numbers right of the last box need room too.
    let right = (size[0] + left).max(text::width(&heading, LETTERS) as u32);
    let mut picture = RgbImage::from_pixel(left + right, top + size[1] + margin, PAPER);
    fill(&mut picture, [left, top, size[0], size[1]], WEB);

    let known = mm_per_pixel.iter().all(|&mm| mm > 0.0);
    let (units, titles) = if known {
        let units = [mm_per_pixel[0], mm_per_pixel[1] / 1e3];
        (units, ["across, mm", "along, m"])
    } else {
        ([1.0; 2], ["across, px", "along, px"])
    };
    write(&mut picture, &heading, [left, 4], INK);
    for (number, &(class, count)) in classes.iter().enumerate() {
        let y = 4 + LINE * (number as u32 + 1);
        mark(&mut picture, [left, y + 2, 11, 11], number);
        let entry = format!("{class} ({count})");
        write(&mut picture, &entry, [left + 18, y], INK);
    }
    for (title, x) in titles.into_iter().zip([left + 18, 4]) {
        write(&mut picture, title, [x, above - LINE + 4], INK);
    }
    for (at, label) in marks(width as f64 * units[0], across / units[0]) {
        fill(&mut picture, [left + at, top - 5, 1, 5], INK);
        write(&mut picture, &label, [left + at + 3, above + 4], INK);
    }
    for (at, label) in marks(length as f64 * units[1], along / units[1]) {
        fill(
            &mut picture,
            [left - 5, top + at, size[0] + 5, 1],
            Rgb([205, 205, 200]),
        );
        write(&mut picture, &label, [4, top + at], INK);
    }

    for (row, defect) in defects {
        let class = classes.iter().position(|&(name, _)| name == defect.class);
        let class = class.unwrap_or(0);
        let x = left + (f64::from(defect.x) * across) as u32;
        let y = top + (*row as f64 * along) as u32;
        let side = |len: u32, scale: f64| ((f64::from(len) * scale) as u32).max(SMALLEST);
        let [w, h] = [side(defect.width, across), side(defect.height, along)];
        mark(&mut picture, [x, y, w, h], class);
        let colour = COLOURS[class % COLOURS.len()];
        write(&mut picture, &defect.id.to_string(), [x + w + 3, y], colour);
    }
    save(&picture.into(), file)
}

/// The classes in the order in which they come, with the number of their defects.
fn classes(defects: &VecDeque<(u64, RollLine)>) -> Vec<(&str, usize)> {
    let mut classes: Vec<(&str, usize)> = Vec::new();
    for (_, defect) in defects {
        match classes.iter_mut().find(|(name, _)| *name == defect.class) {
            Some((_, count)) => *count += 1,
            None => classes.push((&defect.class, 1)),
        }
    }
    classes
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

/// Draws the box of a defect of a class.
fn mark(picture: &mut RgbImage, [left, top, width, height]: [u32; 4], class: usize) {
    let colour = COLOURS[class % COLOURS.len()];
    let is_coloured = FILLS[class / COLOURS.len() % FILLS.len()];
    for y in 0..height {
        for x in 0..width {
            let colour = if is_coloured([x, y], [width, height]) {
                colour
            } else {
                PAPER
            };
            fill(picture, [left + x, top + y, 1, 1], colour);
        }
    }
}

fn fill(picture: &mut RgbImage, [x, y, width, height]: [u32; 4], colour: Rgb<u8>) {
    for row in y..(y + height).min(picture.height()) {
        for column in x..(x + width).min(picture.width()) {
            picture.put_pixel(column, row, colour);
        }
    }
}

/// Writes a line.
fn write(picture: &mut RgbImage, line: &str, [x, y]: [u32; 2], colour: Rgb<u8>) {
    for (place, letter) in (0..).zip(line.chars()) {
        let glyph = text::glyph(letter, LETTERS);
        let [left, top] = [
            x as i32 + place * text::advance(LETTERS) + glyph.left,
            y as i32 + glyph.top,
        ];
        for (y, row) in (top..).zip(glyph.coverage.chunks(glyph.width.max(1))) {
            for (x, &coverage) in (left..).zip(row) {
                if let Some(pixel) = picture.get_pixel_mut_checked(x as u32, y as u32) {
                    *pixel = Rgb([0, 1, 2].map(|c| {
                        let [paper, ink, coverage] =
                            [pixel.0[c], colour.0[c], coverage].map(u32::from);
                        ((paper * (255 - coverage) + ink * coverage) / 255) as u8
                    }));
                }
            }
        }
    }
}
