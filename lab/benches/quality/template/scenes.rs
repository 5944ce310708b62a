//! Frames of an object on a conveyor: turned, stretched, shifted, in another light, with noise and planted defects.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    common::{
        label::{LabelFrame, LabelGenerator, LabelSpec, Misprint, MisprintKind},
        panel::{Defect, DefectKind, PanelGenerator, PanelSpec},
    },
    scene::Picture,
};

/// Columns and rows of a frame.
pub const SIZE: [usize; 2] = [640, 480];
/// Noise of the camera, grey levels.
const NOISE_SIGMA: f32 = 4.0;
/// Largest turn, degrees, and largest stretch of a frame.
pub const TURN_DEGREES: f64 = 0.3;
pub const STRETCH: f64 = 0.005;
/// Largest shift along each axis, px, and largest change of the light.
pub const SHIFT_PX: f64 = 8.0;
pub const LIGHT: f64 = 0.1;
/// Pixels of the photograph around the frame, so that a moved frame shows nothing else.
const MARGIN_PX: usize = 16;
/// Defects of a kind on a frame.
pub const PER_FRAME: usize = 4;
/// Between the centres of two planted defects, and from a centre to the border, px.
const APART_PX: f64 = 60.0;
const BORDER_PX: f64 = 40.0;
/// Size, px, and contrast of the misprints.
pub const MISPRINT: (f64, f64) = (3.0, 60.0);
/// Size, px, and contrast of the round spots, then of the scratches.
pub const SPOTS: [(f64, f64); 3] = [(3.0, 60.0), (6.0, 40.0), (12.0, 20.0)];
pub const SCRATCHES: [(f64, f64); 2] = [(3.0, 40.0), (1.5, 60.0)];

/// What is inspected.
#[derive(Clone)]
pub enum Object {
    /// The printed label as its generator shows it: shifted, in another light.
    Label,
    /// The printed label, turned and stretched as well.
    TurnedLabel,
    /// A photograph, enlarged.
    Photograph(Picture),
}

/// The pixels that a defect changes by at least half of its peak.
pub type Places = Vec<(usize, usize)>;

/// A frame, and its planted defects.
pub struct Shot {
    pub samples: Vec<u8>,
    pub planted: Vec<Places>,
}

/// Where the pixels of a frame lie on the object.
#[derive(Clone, Copy)]
struct Motion {
    /// Columns of the linear part.
    x: [f64; 2],
    y: [f64; 2],
    /// Middles of object and frame, px, and the shift.
    middle: [f64; 2],
    frame_middle: [f64; 2],
    shift: [f64; 2],
}

impl Motion {
    fn random(rng: &mut ChaCha8Rng, size: [usize; 2], shift_px: f64) -> Self {
        let mut within = |most: f64| most * rng.random_range(-1.0..=1.0);
        let (sin, cos) = within(TURN_DEGREES).to_radians().sin_cos();
        let [along, across] = [1.0 + within(STRETCH), 1.0 + within(STRETCH)];
        Self {
            x: [along * cos, along * sin],
            y: [-across * sin, across * cos],
            middle: size.map(|len| (len - 1) as f64 / 2.0),
            frame_middle: SIZE.map(|len| (len - 1) as f64 / 2.0),
            shift: [within(shift_px), within(shift_px)],
        }
    }

    /// The place on the object of a place in the frame.
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        let (x, y) = (x - self.frame_middle[0], y - self.frame_middle[1]);
        [0, 1]
            .map(|axis| self.middle[axis] + self.shift[axis] + self.x[axis] * x + self.y[axis] * y)
    }
}

impl Object {
    /// Coins on cloth, a photograph of [`SIZE`] with its margin.
    ///
    /// # Errors
    /// There is no `coins.png` in the folder.
    pub fn coins(folder: &Path) -> Result<Self> {
        let path = folder.join("coins.png");
        let small = image::open(&path)
            .with_context(|| format!("{}: run scripts/photographs", path.display()))?
            .into_luma8();
        let small = Picture {
            width: small.width() as usize,
            height: small.height() as usize,
            levels: small.into_raw().into_iter().map(f32::from).collect(),
        };
        let size = SIZE.map(|len| len + 2 * MARGIN_PX);
        let scales = [
            size[0] as f64 / small.width as f64,
            size[1] as f64 / small.height as f64,
        ];
        let scale = scales[0].max(scales[1]);
        let mut large = Picture::flat(size, 0.0);
        large.change_all(|x, y, _| {
            let place = [x, y].map(|at| (at as f64 + 0.5) / scale - 0.5);
            bicubic(&small, place)
        });
        Ok(Self::Photograph(large))
    }

    /// Name in the tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::TurnedLabel => "label, turned",
            Self::Photograph(_) => "coins",
        }
    }

    /// Names of the kinds of defects, with size and contrast.
    pub fn kinds(&self) -> Vec<String> {
        let named =
            |name: &str, (size, contrast): (f64, f64)| format!("{name} {size} px/{contrast}");
        match self {
            Self::Photograph(_) => (SPOTS.iter().map(|&at| named("spot", at)))
                .chain(SCRATCHES.iter().map(|&at| named("scratch", at)))
                .collect(),
            _ => MisprintKind::ALL
                .map(|kind| kind.name().to_owned())
                .to_vec(),
        }
    }

    /// Good frames.
    ///
    /// # Errors
    /// A generator's error.
    pub fn good(&self, seed: u64, count: usize) -> Result<Vec<Shot>> {
        self.shots(seed, count, None)
    }

    /// Frames with [`PER_FRAME`] defects of the kind with this index.
    ///
    /// # Errors
    /// A generator's error.
    pub fn bad(&self, seed: u64, count: usize, kind: usize) -> Result<Vec<Shot>> {
        self.shots(seed, count, Some(kind))
    }

    fn shots(&self, seed: u64, count: usize, kind: Option<usize>) -> Result<Vec<Shot>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        match self {
            Self::Photograph(photograph) => {
                let shot = || photographed(photograph, kind, &mut rng);
                std::iter::repeat_with(shot).take(count).collect()
            }
            _ => {
                let is_turned = matches!(self, Self::TurnedLabel);
                let mut spec = LabelSpec::default();
                if is_turned {
                    // The noise comes after the resampling, which would smooth it.
                    spec.noise_sigma = 0.0;
                }
                let mut labels = LabelGenerator::new(spec, seed).map_err(|why| anyhow!(why))?;
                let misprint = kind
                    .and_then(|kind| MisprintKind::ALL.get(kind))
                    .map(|&kind| {
                        let (size_px, contrast) = MISPRINT;
                        Misprint {
                            kind,
                            size_px,
                            contrast,
                        }
                    });
                let misprints: Vec<Misprint> =
                    misprint.into_iter().cycle().take(PER_FRAME).collect();
                let shot = || {
                    let label = labels.label(&misprints);
                    if is_turned {
                        turned(&label, &mut rng)
                    } else {
                        as_it_is(label)
                    }
                };
                Ok(std::iter::repeat_with(shot).take(count).collect())
            }
        }
    }

    /// Frames in which a square with structure was moved along a random direction; the rest is as on a good frame.
    ///
    /// # Errors
    /// A generator's error, or no such square.
    pub fn displaced(
        &self,
        seed: u64,
        count: usize,
        side: usize,
        distance_px: f64,
    ) -> Result<Vec<Shot>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let spec = LabelSpec {
            noise_sigma: 0.0,
            ..LabelSpec::default()
        };
        let mut labels = LabelGenerator::new(spec, seed).map_err(|why| anyhow!(why))?;
        let mut shots = Vec::new();
        for _ in 0..count {
            let clean = match self {
                Self::Photograph(photograph) => moved(photograph, SHIFT_PX, &mut rng).1,
                _ => moved(&picture(&labels.good()), 0.0, &mut rng).1,
            };
            let [left, top] =
                structured(&clean, side, &mut rng).context("no square with structure")?;
            let (sin, cos) = rng.random_range(0.0..std::f64::consts::TAU).sin_cos();
            let mut displaced = clean.clone();
            displaced.change([left, top, side, side], |x, y, _| {
                let place = [x as f64 - distance_px * cos, y as f64 - distance_px * sin];
                bicubic(&clean, place)
            });
            let pixels = (top..top + side).flat_map(|y| (left..left + side).map(move |x| (x, y)));
            shots.push(Shot {
                planted: vec![pixels.collect()],
                samples: displaced.frame(NOISE_SIGMA, rng.random()),
            });
        }
        Ok(shots)
    }
}

/// The corner of a square with edges along both axes: bars that move along themselves look the same.
fn structured(picture: &Picture, side: usize, rng: &mut ChaCha8Rng) -> Option<[usize; 2]> {
    const TRIES: usize = 100_000;
    /// Mean square of the gradient along the direction in which it is least, square grey levels per square pixel.
    const LEAST_GRADIENT: f32 = 40.0;
    let border = BORDER_PX as usize;
    (0..TRIES).find_map(|_| {
        let left = rng.random_range(border..picture.width - border - side);
        let top = rng.random_range(border..picture.height - border - side);
        let at = |x: usize, y: usize| picture.levels[y * picture.width + x];
        // Sums of the products of the gradient.
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for y in top..top + side {
            for x in left..left + side {
                let dx = (at(x + 1, y) - at(x - 1, y)) / 2.0;
                let dy = (at(x, y + 1) - at(x, y - 1)) / 2.0;
                xx += dx * dx;
                xy += dx * dy;
                yy += dy * dy;
            }
        }
        // The smaller eigenvalue of the matrix of these sums.
        let least = (xx + yy) / 2.0 - ((xx - yy).powi(2) / 4.0 + xy * xy).sqrt();
        (least >= LEAST_GRADIENT * (side * side) as f32).then_some([left, top])
    })
}

/// A frame of the object at a random place.
fn moved(object: &Picture, shift_px: f64, rng: &mut ChaCha8Rng) -> (Motion, Picture) {
    let motion = Motion::random(rng, [object.width, object.height], shift_px);
    let mut frame = Picture::flat(SIZE, 0.0);
    frame.change_all(|x, y, _| bicubic(object, motion.at(x as f64, y as f64)));
    (motion, frame)
}

fn picture(label: &LabelFrame) -> Picture {
    Picture {
        width: label.width,
        height: label.height,
        levels: label
            .samples
            .iter()
            .map(|&sample| f32::from(sample))
            .collect(),
    }
}

fn as_it_is(label: LabelFrame) -> Shot {
    Shot {
        planted: label
            .planted
            .iter()
            .map(|planted| planted.pixels().collect())
            .collect(),
        samples: label.samples,
    }
}

/// A label without noise, turned and stretched, then with noise.
fn turned(label: &LabelFrame, rng: &mut ChaCha8Rng) -> Shot {
    let (motion, frame) = moved(&picture(label), 0.0, rng);
    let places = label.planted.iter().map(|planted| {
        let [left, top, width, height] = planted.bbox;
        // A frame moves its pixels by less than MARGIN_PX.
        let rows = top.saturating_sub(MARGIN_PX)..(top + height + MARGIN_PX).min(SIZE[1]);
        let columns = left.saturating_sub(MARGIN_PX)..(left + width + MARGIN_PX).min(SIZE[0]);
        let covers = |x: usize, y: usize| {
            let [x, y] = motion.at(x as f64, y as f64).map(f64::round);
            x >= 0.0 && y >= 0.0 && planted.covers(x as usize, y as usize)
        };
        rows.flat_map(|y| columns.clone().map(move |x| (x, y)))
            .filter(|&(x, y)| covers(x, y))
            .collect()
    });
    Shot {
        planted: places.collect(),
        samples: frame.frame(NOISE_SIGMA, rng.random()),
    }
}

fn photographed(photograph: &Picture, kind: Option<usize>, rng: &mut ChaCha8Rng) -> Result<Shot> {
    let (_, mut frame) = moved(photograph, SHIFT_PX, rng);
    let mut planted = Vec::new();
    if let Some(kind) = kind {
        let (change, places) = defects(&frame, kind, rng)?;
        frame.change_all(|x, y, level| level + change.levels[y * SIZE[0] + x]);
        planted = places;
    }
    let light = 1.0 + LIGHT * rng.random_range(-1.0..=1.0);
    frame.change_all(|_, _, level| level * light as f32);
    Ok(Shot {
        samples: frame.frame(NOISE_SIGMA, rng.random()),
        planted,
    })
}

/// Changes by defects of a kind, and the pixels of each of them.
fn defects(frame: &Picture, kind: usize, rng: &mut ChaCha8Rng) -> Result<(Picture, Vec<Places>)> {
    const LEVEL: f64 = 128.0;
    let mut planted: Vec<Defect> = Vec::new();
    while planted.len() < PER_FRAME {
        let [x, y] = SIZE.map(|len| rng.random_range(BORDER_PX..len as f64 - BORDER_PX));
        let is_apart = |other: &Defect| (other.x - x).hypot(other.y - y) >= APART_PX;
        if !planted.iter().all(is_apart) {
            continue;
        }
        // A dark place has a bright defect, which no end of the levels cuts off.
        let is_dark = frame.levels[y as usize * SIZE[0] + x as usize] < LEVEL as f32;
        let sign = if is_dark { 1.0 } else { -1.0 };
        planted.push(match SPOTS.get(kind) {
            Some(&(size, contrast)) => {
                Defect::new(DefectKind::Particle, x, y, size, sign * contrast)
            }
            None => {
                let (size, contrast) = SCRATCHES[kind - SPOTS.len()];
                let turn = rng.random_range(0.0..std::f64::consts::PI);
                Defect::new(DefectKind::Scratch, x, y, size, sign * contrast).with_line(30.0, turn)
            }
        });
    }
    let flat = PanelSpec {
        width: SIZE[0],
        height: SIZE[1],
        contrast: 0.0,
        mean_level: LEVEL,
        noise_sigma: 0.0,
        jitter_px: 0.0,
        vignetting: 0.0,
        bit_depth: 16,
        ..PanelSpec::default()
    };
    let mut panels = PanelGenerator::new(flat, 0).map_err(|why| anyhow!(why))?;
    let drawn = panels.next_frame(&planted).map_err(|why| anyhow!(why))?;
    let mut change = Picture::of_16_bits(&drawn);
    change.change_all(|_, _, level| level - LEVEL as f32);
    Ok((
        change,
        drawn
            .planted
            .iter()
            .map(|defect| defect.pixels().collect())
            .collect(),
    ))
}

/// The level at a place, from 4x4 pixels (Catmull and Rom); the border is repeated.
fn bicubic(picture: &Picture, [x, y]: [f64; 2]) -> f32 {
    let weights = |at: f64| {
        let t = (at - at.floor()) as f32;
        [
            ((2.0 - t) * t - 1.0) * t / 2.0,
            ((3.0 * t - 5.0) * t * t + 2.0) / 2.0,
            ((4.0 - 3.0 * t) * t + 1.0) * t / 2.0,
            (t - 1.0) * t * t / 2.0,
        ]
    };
    let (across, down) = (weights(x), weights(y));
    let near = |at: f64, step: usize, len: usize| {
        (at.floor() as isize - 1)
            .saturating_add_unsigned(step)
            .clamp(0, len as isize - 1) as usize
    };
    let columns = [0, 1, 2, 3].map(|i| near(x, i, picture.width));
    (0..4)
        .map(|j| {
            let row =
                &picture.levels[near(y, j, picture.height) * picture.width..][..picture.width];
            let sum: f32 = columns
                .iter()
                .zip(across)
                .map(|(&i, weight)| weight * row[i])
                .sum();
            down[j] * sum
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plane of levels, which a cubic meets everywhere.
    fn plane() -> Picture {
        let mut plane = Picture::flat([12, 10], 0.0);
        plane.change_all(|x, y, _| 2.0 * x as f32 - 3.0 * y as f32 + 40.0);
        plane
    }

    #[test]
    fn bicubic_of_a_plane_is_the_plane() {
        for [x, y] in [[3.0, 4.0], [3.25, 4.5], [7.9, 2.1]] {
            let level = bicubic(&plane(), [x, y]);
            assert!((f64::from(level) - (2.0 * x - 3.0 * y + 40.0)).abs() < 1e-4);
        }
        assert_eq!(bicubic(&plane(), [-5.0, 0.0]), 40.0);
    }

    #[test]
    fn motion_keeps_the_middle_but_for_the_shift_and_stays_in_the_margin() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let size = SIZE.map(|len| len + 2 * MARGIN_PX);
        for _ in 0..100 {
            let motion = Motion::random(&mut rng, size, SHIFT_PX);
            let middle = motion.at(319.5, 239.5);
            for axis in [0, 1] {
                let moved = middle[axis] - (size[axis] - 1) as f64 / 2.0;
                assert!((moved - motion.shift[axis]).abs() < 1e-9 && moved.abs() <= SHIFT_PX);
            }
            for corner in [[0.0, 0.0], [639.0, 0.0], [0.0, 479.0], [639.0, 479.0]] {
                let [x, y] = motion.at(corner[0], corner[1]);
                assert!((0.0..size[0] as f64).contains(&x) && (0.0..size[1] as f64).contains(&y));
            }
        }
    }

    #[test]
    fn planted_pixels_of_a_turned_label_are_where_it_differs() {
        let object = Object::TurnedLabel;
        let [good, bad] = [object.good(5, 8).unwrap(), object.bad(5, 8, 1).unwrap()];
        for (good, bad) in good.iter().zip(&bad) {
            assert_eq!(bad.planted.len(), PER_FRAME);
            for places in &bad.planted {
                let difference = |&(x, y): &(usize, usize)| {
                    let at = y * SIZE[0] + x;
                    f64::from(good.samples[at]) - f64::from(bad.samples[at])
                };
                let mean = places.iter().map(difference).sum::<f64>() / places.len() as f64;
                // Extra ink of 3 px is darker by half of three quarters of its contrast or more on each of these.
                assert!(mean > 23.0, "{mean} at {places:?}");
            }
        }
    }
}
