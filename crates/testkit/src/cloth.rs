//! Woven cloth: a picture of any number of rows, and an endless web of it with planted defects.

use std::{f64::consts::TAU, ops::Range};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

mod defects;

pub use defects::{ClothDefect, ClothKind, ClothRoller, SECTION_ROWS};

/// Mean level of cloth, grey levels.
pub const MEAN_LEVEL: f32 = 128.0;
/// Levels of the gaps between the threads, of the warp and of the weft.
const GAP: f32 = 60.0;
const WARP: f32 = 210.0;
const WEFT: f32 = 170.0;
/// Shortest and longest wave of the wander, px.
pub const WANDER_WAVES_PX: [f32; 2] = [400.0, 1000.0];
/// Waves per axis of the wander.
const WAVES: usize = 3;

/// Plain weave without end: two warp and two weft threads per repeat; the threads wander.
#[derive(Debug)]
pub struct Weave {
    pitch_px: f64,
    wander_px: f64,
    /// Position of pixel (0, 0), repeats.
    phase: [f32; 2],
    /// By axis.
    waves: [Vec<Wave>; 2],
    width: usize,
}

/// A wave of the wander.
#[derive(Debug)]
struct Wave {
    /// Turns per row.
    along_y: f64,
    /// Phase, turns.
    phase: f64,
    /// Sine and cosine of the wave's turn at each column.
    columns: Vec<[f32; 2]>,
}

impl Weave {
    /// Cloth `number` of a seed. `wander_px` is the largest shift of a thread against the mean pitch,
    /// along each axis.
    pub fn new(width: usize, pitch_px: f64, wander_px: f32, seed: u64, number: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number);
        let phase: [f32; 2] = [rng.random(), rng.random()];
        let mut waves = || -> Vec<Wave> {
            let [short, long] = WANDER_WAVES_PX;
            (0..WAVES)
                .map(|_| {
                    let (sin, cos) = (std::f32::consts::TAU * rng.random::<f32>()).sin_cos();
                    let length = rng.random_range(short..long);
                    let along_x = f64::from(cos / length);
                    Wave {
                        along_y: f64::from(sin / length),
                        phase: f64::from(rng.random::<f32>()),
                        columns: (0..width)
                            .map(|x| {
                                let (sin, cos) = (TAU * along_x * x as f64).sin_cos();
                                [sin as f32, cos as f32]
                            })
                            .collect(),
                    }
                })
                .collect()
        };
        let waves = [waves(), waves()];
        Self {
            pitch_px,
            wander_px: f64::from(wander_px),
            phase,
            waves,
            width,
        }
    }

    /// The grey levels of row `y`, without noise.
    pub fn row(&self, y: u64, levels: &mut [f32]) {
        // Rows are counted without end, so turns are reduced in f64.
        let turns =
            |axis: usize, at: f64| (at / self.pitch_px + f64::from(self.phase[axis])).fract();
        let row_turns = turns(1, y as f64);
        let scale = (self.wander_px / WAVES as f64 / self.pitch_px) as f32;
        let rows = self.waves.each_ref().map(|waves| {
            let turn = |wave: &Wave| TAU * (wave.along_y * y as f64 + wave.phase).fract();
            let of_row: Vec<(f64, f64)> = waves.iter().map(|w| turn(w).sin_cos()).collect();
            of_row
        });
        for (x, level) in levels.iter_mut().enumerate().take(self.width) {
            let [u, v] = [0, 1].map(|axis| {
                // sin(a + b) of the column's and the row's part.
                let shifts = self.waves[axis].iter().zip(&rows[axis]);
                let shift: f32 = shifts
                    .map(|(wave, &(sin, cos))| {
                        let [column_sin, column_cos] = wave.columns[x];
                        column_sin * cos as f32 + column_cos * sin as f32
                    })
                    .sum();
                let mean = if axis == 0 {
                    turns(0, x as f64)
                } else {
                    row_turns
                };
                // The highest frequency is three turns per repeat: no aliasing above 6 px per repeat.
                (std::f32::consts::TAU * (mean as f32 + scale * shift)).cos()
            });
            let warp_on_top = 0.5 + 0.5 * u * v;
            // The threads repeat twice per repeat of the weave: cos 2a = 2 cos² a - 1.
            let [warp, weft] = [u, v].map(|cos| cos * cos);
            let thread =
                warp_on_top * warp * (WARP - GAP) + (1.0 - warp_on_top) * weft * (WEFT - GAP);
            *level = GAP + thread;
        }
    }
}

/// A web of cloth under a line camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClothSpec {
    /// Pixels of a line.
    pub width: usize,
    /// Repeat along both axes, px.
    pub pitch_px: f64,
    /// Largest shift of a thread against the mean pitch, px.
    pub wander_px: f32,
    /// Standard deviation of shot and read noise together at the mean level, grey levels.
    pub noise_sigma: f32,
    /// Loss of light at both ends of a line, 0..1; it grows with the square of the distance.
    pub vignetting: f32,
    /// Whether defects are planted.
    pub defects: bool,
    /// A damaged roller, if there is one.
    pub roller: Option<ClothRoller>,
}

impl Default for ClothSpec {
    fn default() -> Self {
        Self {
            width: 1024,
            pitch_px: 16.35,
            wander_px: 0.4,
            noise_sigma: 4.0,
            vignetting: 0.1,
            defects: true,
            roller: None,
        }
    }
}

impl ClothSpec {
    /// Least pixels of a line, in repeats: a comparison four repeats away needs three distances.
    const LEAST_REPEATS: f64 = 13.0;

    /// Refuses a specification that cannot be drawn.
    ///
    /// # Errors
    /// A sentence that names the field, its value and the range.
    pub fn validate(&self) -> Result<(), String> {
        if !(6.0..=64.0).contains(&self.pitch_px) {
            return Err(format!("the pitch is {} px, give 6 to 64", self.pitch_px));
        }
        let least = (Self::LEAST_REPEATS * self.pitch_px).ceil() as usize;
        if !(least..=65_536).contains(&self.width) {
            return Err(format!(
                "the width is {} px, give {least} to 65536 for a pitch of {} px",
                self.width, self.pitch_px
            ));
        }
        if !(0.0..=64.0).contains(&self.noise_sigma) {
            return Err(format!("the noise is {}, give 0 to 64", self.noise_sigma));
        }
        Ok(())
    }
}

/// An endless web of cloth. Each row depends on the specification, the seed and its number alone.
#[derive(Debug)]
pub struct ClothWeb {
    spec: ClothSpec,
    seed: u64,
    weave: Weave,
    /// Share of the light by column.
    light: Vec<f32>,
    /// The defects of the sections that the next rows meet.
    planted: Vec<ClothDefect>,
    /// The section of the last row.
    section: Option<u64>,
    levels: Vec<f32>,
}

impl ClothWeb {
    /// A web.
    ///
    /// # Errors
    /// See [`ClothSpec::validate`].
    pub fn new(spec: ClothSpec, seed: u64) -> Result<Self, String> {
        spec.validate()?;
        let half = (spec.width - 1) as f32 / 2.0;
        let light = (0..spec.width).map(|x| {
            let radius = (x as f32 - half) / half;
            1.0 - spec.vignetting * radius * radius
        });
        Ok(Self {
            spec,
            seed,
            weave: Weave::new(spec.width, spec.pitch_px, spec.wander_px, seed, 0),
            light: light.collect(),
            planted: Vec::new(),
            section: None,
            levels: vec![0.0; spec.width],
        })
    }

    /// Appends the samples of row `y`, 8 bits each.
    pub fn row(&mut self, y: u64, samples: &mut Vec<u8>) {
        let mut levels = std::mem::take(&mut self.levels);
        self.weave.row(y, &mut levels);
        let section = y / SECTION_ROWS;
        if self.section != Some(section) {
            self.section = Some(section);
            let rows = section.saturating_sub(1) * SECTION_ROWS..(section + 2) * SECTION_ROWS;
            self.planted = self.spec.planted(self.seed, rows);
        }
        for defect in self.planted.iter().filter(|d| d.rows().contains(&y)) {
            defect.draw(y, &mut levels);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(y + 1);
        let sigma = self.spec.noise_sigma;
        samples.extend(levels.iter().zip(&self.light).map(|(level, light)| {
            let level = level * light;
            let noise: f32 = if sigma > 0.0 {
                let sample: f32 = StandardNormal.sample(&mut rng);
                sample * sigma * noise_share(level)
            } else {
                0.0
            };
            quantised(level + noise)
        }));
        self.levels = levels;
    }
}

impl ClothSpec {
    /// The defects of the web of a seed that begin in these rows.
    pub fn planted(&self, seed: u64, rows: Range<u64>) -> Vec<ClothDefect> {
        if rows.is_empty() {
            return Vec::new();
        }
        // A defect on the first seam of a section begins in the section before.
        let sections = rows.start / SECTION_ROWS..=(rows.end - 1) / SECTION_ROWS + 1;
        let single = sections.filter(|_| self.defects);
        let single = single.flat_map(|section| defects::section(self, seed, section));
        let rollers = self.roller.iter();
        let marks = rollers.flat_map(|roller| roller.marks(self.width, rows.clone()));
        single
            .chain(marks)
            .filter(|defect| rows.contains(&defect.top))
            .collect()
    }
}

/// Standard deviation of the noise at a level, as a share of that at the mean level: half of the variance
/// is shot noise.
pub fn noise_share(level: f32) -> f32 {
    (0.5 + 0.5 * level.max(0.0) / MEAN_LEVEL).sqrt()
}

/// A level rounded to 8 bits.
pub fn quantised(level: f32) -> u8 {
    (level + 0.5).clamp(0.0, 255.0) as u8
}
