//! Pictures that are edited before the noise is added: panels and a woven cloth.

use std::f32::consts::TAU;

use anyhow::{Result, anyhow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::common::panel::{PanelGenerator, PanelSpec};

/// Mean level of the textures, grey levels.
pub const MEAN_LEVEL: f32 = 128.0;
/// Levels of the gaps between the threads, of the warp and of the weft.
const GAP: f32 = 60.0;
const WARP: f32 = 210.0;
const WEFT: f32 = 170.0;
/// Largest shift of a thread against the mean pitch, along each axis, px.
pub const WANDER_PX: f32 = 2.0;
/// Shortest and longest wave of the wander, px.
pub const WANDER_WAVES_PX: [f32; 2] = [400.0, 1000.0];
/// Waves per axis of the wander.
const WAVES: usize = 3;

/// What is inspected.
#[derive(Clone, Copy, Debug)]
pub enum Texture {
    /// A panel, without its noise.
    Panel(PanelSpec),
    /// Plain weave: two warp and two weft threads per repeat; the threads wander.
    Weave {
        /// Columns and rows, px.
        size: [usize; 2],
        /// Repeat along both axes, px.
        pitch_px: f64,
    },
}

impl Texture {
    /// Name in the tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Panel(_) => "panel",
            Self::Weave { .. } => "weave",
        }
    }

    /// Columns and rows, px.
    pub fn size(&self) -> [usize; 2] {
        match self {
            Self::Panel(spec) => [spec.width, spec.height],
            Self::Weave { size, .. } => *size,
        }
    }

    /// Repeat along x and y, px.
    pub fn pitch(&self) -> [f64; 2] {
        match self {
            Self::Panel(spec) => [spec.pitch_x, spec.pitch_y],
            Self::Weave { pitch_px, .. } => [*pitch_px; 2],
        }
    }

    /// Picture `number`, without noise and defects.
    ///
    /// # Errors
    /// The generator refuses the specification.
    pub fn picture(&self, seed: u64, number: u64) -> Result<Picture> {
        match *self {
            Self::Panel(spec) => panel(spec, seed, number),
            Self::Weave { size, pitch_px } => Ok(weave(size, pitch_px as f32, seed, number)),
        }
    }
}

/// Grey levels before noise and rounding.
#[derive(Clone)]
pub struct Picture {
    /// Columns, px.
    pub width: usize,
    /// Rows, px.
    pub height: usize,
    levels: Vec<f32>,
}

impl Picture {
    /// A picture of one level.
    pub fn flat([width, height]: [usize; 2], level: f32) -> Self {
        Self {
            width,
            height,
            levels: vec![level; width * height],
        }
    }

    /// Replaces the level of each pixel of the box (x, y, width, height) that lies in the picture;
    /// `change` gets x, y and the level.
    pub fn change(
        &mut self,
        [left, top, width, height]: [usize; 4],
        mut change: impl FnMut(usize, usize, f32) -> f32,
    ) {
        for y in top..(top + height).min(self.height) {
            for x in left..(left + width).min(self.width) {
                let level = &mut self.levels[y * self.width + x];
                *level = change(x, y, *level);
            }
        }
    }

    /// [`Self::change`] of every pixel.
    pub fn change_all(&mut self, change: impl FnMut(usize, usize, f32) -> f32) {
        self.change([0, 0, self.width, self.height], change);
    }

    /// The picture with shot and read noise of `sigma` grey levels together at the mean level, half
    /// of the variance each, rounded to 8 bits.
    pub fn frame(&self, sigma: f32, seed: u64) -> Vec<u8> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut noise = |level: f32| {
            if sigma == 0.0 {
                return 0.0;
            }
            let sample: f32 = StandardNormal.sample(&mut rng);
            sample * sigma * (0.5 + 0.5 * level.max(0.0) / MEAN_LEVEL).sqrt()
        };
        let quantised = |level: &f32| (level + noise(*level) + 0.5).clamp(0.0, 255.0) as u8;
        self.levels.iter().map(quantised).collect()
    }
}

fn panel(spec: PanelSpec, seed: u64, number: u64) -> Result<Picture> {
    let spec = PanelSpec {
        noise_sigma: 0.0,
        bit_depth: 16,
        ..spec
    };
    let mut generator = PanelGenerator::new(spec, seed).map_err(|why| anyhow!(why))?;
    generator.seek(number);
    let samples = generator.clean_frame().samples;
    let level = |bytes: &[u8]| f32::from(u16::from_le_bytes([bytes[0], bytes[1]])) / 256.0;
    Ok(Picture {
        width: spec.width,
        height: spec.height,
        levels: samples.chunks_exact(2).map(level).collect(),
    })
}

/// A wave of the wander: turns per pixel along x and y, and phase in turns.
struct Wave([f32; 3]);

fn weave([width, height]: [usize; 2], pitch_px: f32, seed: u64, number: u64) -> Picture {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    let phase: [f32; 2] = [rng.random(), rng.random()];
    let mut waves = || -> Vec<Wave> {
        let [short, long] = WANDER_WAVES_PX;
        (0..WAVES)
            .map(|_| {
                let (sin, cos) = (TAU * rng.random::<f32>()).sin_cos();
                let length = rng.random_range(short..long);
                Wave([cos / length, sin / length, rng.random()])
            })
            .collect()
    };
    let waves = [waves(), waves()];
    let mut levels = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let at = [x as f32, y as f32];
            let [u, v] = [0, 1].map(|axis| {
                let shifts = waves[axis]
                    .iter()
                    .map(|Wave([a, b, c])| (TAU * (a * at[0] + b * at[1] + c)).sin());
                let shift = WANDER_PX / WAVES as f32 * shifts.sum::<f32>();
                TAU * ((at[axis] + shift) / pitch_px + phase[axis])
            });
            // The highest frequency is three turns per repeat: no aliasing above 6 px per repeat.
            let warp_on_top = 0.5 + 0.5 * u.cos() * v.cos();
            let [warp, weft] = [u, v].map(|turn| 0.5 + 0.5 * (2.0 * turn).cos());
            let thread =
                warp_on_top * warp * (WARP - GAP) + (1.0 - warp_on_top) * weft * (WEFT - GAP);
            levels.push(GAP + thread);
        }
    }
    Picture {
        width,
        height,
        levels,
    }
}
