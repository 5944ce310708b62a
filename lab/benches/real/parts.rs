//! Boards of DeepPCB at any place and angle: `clreference align=any`.
//!
//! A board is the middle of a template, in grey, on plain ground; the spoiled one is the middle of its test picture.

use std::{fmt::Write, path::Path, time::Instant};

use anyhow::{Context, Result, bail};
use gstclinspect::results::{DefectResult, NoneReason, Verdict};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    boards::{PARTS, Pair, REPORTED, TUNED, pairs},
    line::Line,
    pictures::Grey,
};

const FRAME: [usize; 2] = [640, 640];
/// Of a board, px.
const BOARD: [usize; 2] = [240, 180];
/// Of boards of which several lie in a frame.
const SMALL: [usize; 2] = [150, 110];
const GROUND: f64 = 40.0;
/// Largest error of a sample.
const NOISE: f64 = 3.0;
/// Least standard deviation of a board.
const LEAST_SPREAD: f64 = 15.0;
/// Frames that train, and those from which the limit is learned.
const TAUGHT: [usize; 2] = [8, 12];
/// Frames after which the learning must have ended.
const MOST_TAUGHT: usize = 200;
/// Boards that are reported.
const MOST: usize = 36;

/// A piece of a picture, smoothed, in levels of a board.
struct Piece {
    size: [usize; 2],
    samples: Vec<f64>,
}

/// Where a piece lies: its middle, px, and its angle, rad.
#[derive(Clone, Copy)]
struct Place {
    at: [f64; 2],
    angle: f64,
}

/// How a frame is seen.
#[derive(Clone, Copy)]
struct Light {
    name: &'static str,
    gain: f64,
    /// The light falls along x by this share.
    falling: f64,
}

const LIGHTS: [Light; 4] = [
    Light {
        name: "as trained",
        gain: 1.0,
        falling: 0.0,
    },
    Light {
        name: "× 0.5",
        gain: 0.5,
        falling: 0.0,
    },
    Light {
        name: "× 1.4",
        gain: 1.4,
        falling: 0.0,
    },
    Light {
        name: "falling by 0.3 along the frame",
        gain: 1.0,
        falling: 0.3,
    },
];

impl Piece {
    /// The middle of a picture.
    fn middle(picture: &Grey, size: [usize; 2]) -> Self {
        let from = [0, 1].map(|axis| (picture.size[axis] - size[axis]) / 2);
        let level = |x: usize, y: usize| {
            let at = |dx: usize, dy: usize| {
                let (x, y) = (x + from[0] + dx - 1, y + from[1] + dy - 1);
                f64::from(picture.samples[y * picture.size[0] + x])
            };
            let weights = [1.0, 2.0, 1.0];
            let taps = (0..3).flat_map(|j| (0..3).map(move |i| (i, j)));
            let sum: f64 = taps.map(|(i, j)| weights[i] * weights[j] * at(i, j)).sum();
            80.0 + sum / 16.0 * 110.0 / 255.0
        };
        let pixels = (0..size[1]).flat_map(|y| (0..size[0]).map(move |x| (x, y)));
        Self {
            size,
            samples: pixels.map(|(x, y)| level(x, y)).collect(),
        }
    }

    /// Standard deviation of the levels.
    fn spread(&self) -> f64 {
        let count = self.samples.len() as f64;
        let mean = self.samples.iter().sum::<f64>() / count;
        let squares = self.samples.iter().map(|level| (level - mean).powi(2));
        (squares.sum::<f64>() / count).sqrt()
    }

    /// The level at a place from the middle, px; `None` outside.
    fn level(&self, x: f64, y: f64) -> Option<f64> {
        let [width, height] = self.size;
        let at = [x + width as f64 / 2.0 - 0.5, y + height as f64 / 2.0 - 0.5];
        let last = [width, height].map(|n| n as f64 - 1.0);
        if (0..2).any(|axis| at[axis] < 0.0 || at[axis] > last[axis]) {
            return None;
        }
        let [x0, y0] = at.map(|v| v.floor() as usize);
        let [fx, fy] = at.map(f64::fract);
        let sample =
            |x: usize, y: usize| self.samples[y.min(height - 1) * width + x.min(width - 1)];
        let row = |y: usize| sample(x0, y) * (1.0 - fx) + sample(x0 + 1, y) * fx;
        Some(row(y0) * (1.0 - fy) + row(y0 + 1) * fy)
    }
}

/// A frame with pieces.
fn frame(pieces: &[(&Piece, Place)], light: Light, random: &mut ChaCha8Rng) -> Grey {
    let [width, height] = FRAME;
    let mut samples = Vec::with_capacity(width * height);
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let level = pieces.iter().find_map(|(piece, place)| {
            let [dx, dy] = [x as f64 - place.at[0], y as f64 - place.at[1]];
            let (s, c) = place.angle.sin_cos();
            piece.level(c * dx + s * dy, c * dy - s * dx)
        });
        let fall = 1.0 - light.falling * x as f64 / width as f64;
        let noise = random.random_range(-NOISE..=NOISE);
        let sample = level.unwrap_or(GROUND) * light.gain * fall + noise;
        samples.push(sample.round().clamp(0.0, 255.0) as u8);
    }
    Grey {
        size: FRAME,
        samples,
    }
}

fn anywhere(size: [usize; 2], random: &mut ChaCha8Rng) -> Place {
    let reach = (size[0] as f64).hypot(size[1] as f64) / 2.0 + 4.0;
    Place {
        at: FRAME.map(|n| random.random_range(reach..n as f64 - reach)),
        angle: random.random_range(0.0..std::f64::consts::TAU),
    }
}

/// Places of several pieces that do not touch.
fn apart(count: usize, size: [usize; 2], random: &mut ChaCha8Rng) -> Vec<Place> {
    let far = (size[0] as f64).hypot(size[1] as f64) + 4.0;
    let mut places: Vec<Place> = Vec::new();
    while places.len() < count {
        let place = anywhere(size, random);
        let is_free =
            |other: &Place| (other.at[0] - place.at[0]).hypot(other.at[1] - place.at[1]) >= far;
        if places.iter().all(is_free) {
            places.push(place);
        }
    }
    places
}

/// An element that has learned the board.
fn taught(piece: &Piece, elements: &str, random: &mut ChaCha8Rng) -> Result<Line> {
    let [train, learn] = TAUGHT;
    let elements = format!(
        "{elements} name=judge train-frames={train} learn=\"learn,frames={learn}\" min-area=4"
    );
    let line = Line::new(&elements, FRAME, true)?;
    for n in 1.. {
        let place = anywhere(piece.size, random);
        let result = line
            .judge(&frame(&[(piece, place)], LIGHTS[0], random))?
            .result;
        // Frames of the training are judged beside those that follow.
        if n > train && result.training.is_none() && result.learning.is_none() {
            break;
        }
        if n > MOST_TAUGHT {
            bail!("nothing was learned from {n} frames: {:?}", result.learning);
        }
    }
    Ok(line)
}

fn count_of(result: &DefectResult) -> usize {
    result.parts.as_ref().map_or(0, |parts| parts.parts.len())
}

/// Measures the boards in a folder.
///
/// # Errors
/// A picture is missing, or a pipeline fails.
pub fn measure(folder: &Path, tune: bool, elements: &str, verbose: bool) -> Result<String> {
    let remainder = if tune { TUNED } else { REPORTED };
    let all = pairs(folder)?.into_iter().skip(remainder).step_by(PARTS);
    let mut pairs: Vec<Pair> = Vec::new();
    for pair in all.filter(|pair| pair.boxes.iter().any(|area| is_within(area, BOARD))) {
        // A board without conductors is a plain plate like all others.
        let small = Piece::middle(&Grey::jpeg(&pair.template)?, SMALL);
        if pairs.len() < MOST && small.spread() >= LEAST_SPREAD {
            pairs.push(pair);
        }
    }
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut document = format!(
        "`{elements}`, {} boards of {}x{} px in {}x{}\n\n\
         | light | good that pass | spoiled that fail | not judged | median and largest time, ms |\n|---|---|---|---|---|\n",
        pairs.len(),
        BOARD[0],
        BOARD[1],
        FRAME[0],
        FRAME[1]
    );
    let mut rows = [[0_usize; 3]; LIGHTS.len()];
    let mut times = vec![Vec::new(); LIGHTS.len()];
    let [mut right, mut counted, mut taken, mut others] = [0_usize; 4];
    for (n, pair) in pairs.iter().enumerate() {
        let template = Grey::jpeg(&pair.template)?;
        let (good, spoiled) = (
            Piece::middle(&template, BOARD),
            Piece::middle(&Grey::jpeg(&pair.picture)?, BOARD),
        );
        let line = taught(&good, elements, &mut random)?;
        for (light, (row, times)) in LIGHTS.into_iter().zip(rows.iter_mut().zip(&mut times)) {
            for (piece, wanted) in [(&good, Verdict::Pass), (&spoiled, Verdict::Fail)] {
                let place = anywhere(BOARD, &mut random);
                let picture = frame(&[(piece, place)], light, &mut random);
                let started = Instant::now();
                let result = line.judge(&picture)?.result;
                times.push(1000.0 * started.elapsed().as_secs_f64());
                row[usize::from(wanted == Verdict::Fail)] += usize::from(result.verdict == wanted);
                row[2] += usize::from(result.verdict == Verdict::None);
                if verbose && result.verdict != wanted {
                    eprintln!(
                        "{n} {}: {:?} for {wanted:?}, {} px, {:?}",
                        light.name, result.verdict, result.defect_pixels, result.parts
                    );
                }
            }
        }
        // Other boards, and an empty frame, are none of this one.
        for other in [1, 2, 3, 5, 8].map(|step| &pairs[(n + step) % pairs.len()]) {
            let other = Piece::middle(&Grey::jpeg(&other.template)?, BOARD);
            let place = anywhere(BOARD, &mut random);
            let result = line
                .judge(&frame(&[(&other, place)], LIGHTS[0], &mut random))?
                .result;
            others += 1;
            taken += usize::from(count_of(&result) > 0);
            if verbose && count_of(&result) > 0 {
                eprintln!("{n}: another board is taken for it: {:?}", result.parts);
            }
        }
        let result = line.judge(&frame(&[], LIGHTS[0], &mut random))?.result;
        others += 1;
        taken += usize::from(result.none_reason() != Some(NoneReason::Missing));
        if verbose && result.none_reason() != Some(NoneReason::Missing) {
            eprintln!(
                "{n}: an empty frame is {:?}, {:?}",
                result.verdict, result.parts
            );
        }
        if n % 2 == 0 {
            let small = Piece::middle(&template, SMALL);
            let line = taught(&small, &format!("{elements} parts=<1,6>"), &mut random)?;
            for count in [1, 2, 3, 5] {
                let places = apart(count, SMALL, &mut random);
                let pieces: Vec<_> = places.into_iter().map(|place| (&small, place)).collect();
                let result = line.judge(&frame(&pieces, LIGHTS[0], &mut random))?.result;
                counted += 1;
                right += usize::from(count_of(&result) == count);
                if verbose && count_of(&result) != count {
                    eprintln!("{n}: {} for {count}: {:?}", count_of(&result), result.parts);
                }
            }
        }
    }
    for (light, (row, mut times)) in LIGHTS.iter().zip(rows.iter().zip(times)) {
        times.sort_by(f64::total_cmp);
        let most = times.last().context("no board")?;
        writeln!(
            document,
            "| {} | {} of {} | {} of {} | {} | {:.0}, {most:.0} |",
            light.name,
            row[0],
            pairs.len(),
            row[1],
            pairs.len(),
            row[2],
            times[times.len() / 2],
        )?;
    }
    writeln!(
        document,
        "\nRight number of parts in {right} of {counted} frames with 1 to 5 boards of {}x{} px. Taken for the board: {taken} of \
         {others} frames with another board or none.",
        SMALL[0], SMALL[1]
    )?;
    Ok(document)
}

/// Whether a box of a pair lies in the middle of the picture, px from its border.
fn is_within(area: &crate::marks::Area, [width, height]: [usize; 2]) -> bool {
    const SIDE: usize = 640;
    const BORDER: usize = 12;
    let [left, top] = [width, height].map(|n| (SIDE - n) / 2 + BORDER);
    area.x0 >= left && area.y0 >= top && area.x1 <= SIDE - left && area.y1 <= SIDE - top
}
