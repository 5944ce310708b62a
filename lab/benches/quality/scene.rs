//! Pictures that are edited before the noise is added: panels and a woven cloth.

use anyhow::{Result, anyhow};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::common::{
    cloth::{Weave, noise_share, quantised},
    panel::{PanelFrame, PanelGenerator, PanelSpec},
};

pub use crate::common::cloth::{MEAN_LEVEL, WANDER_WAVES_PX};

/// What is inspected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Texture {
    /// A panel, without its noise.
    Panel(PanelSpec),
    /// Plain weave: two warp and two weft threads per repeat; the threads wander.
    Weave {
        /// Columns and rows, px.
        size: [usize; 2],
        /// Repeat along both axes, px.
        pitch_px: f64,
        /// Largest shift of a thread against the mean pitch, along each axis, px.
        wander_px: f32,
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
            Self::Weave {
                size,
                pitch_px,
                wander_px,
            } => {
                let weave = Weave::new(size[0], pitch_px, wander_px, seed, number);
                Ok(woven(&weave, size))
            }
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
    /// Row-major.
    pub levels: Vec<f32>,
}

impl Picture {
    /// The levels of a frame of 16 bits.
    pub fn of_16_bits(frame: &PanelFrame) -> Self {
        let level = |bytes: &[u8]| f32::from(u16::from_le_bytes([bytes[0], bytes[1]])) / 256.0;
        Self {
            width: frame.width,
            height: frame.height,
            levels: frame.samples.chunks_exact(2).map(level).collect(),
        }
    }

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
            sample * sigma * noise_share(level)
        };
        let sample = |&level: &f32| quantised(level + noise(level));
        self.levels.iter().map(sample).collect()
    }
}

/// A panel without its noise.
fn panel(spec: PanelSpec, seed: u64, number: u64) -> Result<Picture> {
    let spec = PanelSpec {
        noise_sigma: 0.0,
        bit_depth: 16,
        ..spec
    };
    let mut generator = PanelGenerator::new(spec, seed).map_err(|why| anyhow!(why))?;
    generator.seek(number);
    Ok(Picture::of_16_bits(&generator.clean_frame()))
}

fn woven(weave: &Weave, [width, height]: [usize; 2]) -> Picture {
    let mut levels = vec![0.0; width * height];
    for (y, row) in levels.chunks_mut(width.max(1)).enumerate() {
        weave.row(y as u64, row);
    }
    Picture {
        width,
        height,
        levels,
    }
}
