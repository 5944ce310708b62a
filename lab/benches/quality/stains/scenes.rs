//! Frames for the comparison across scales: clean ones, and ones with discs of any contrast.

use anyhow::Result;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::Subject;
use crate::{
    common::{
        cloth::{noise_share, quantised},
        panel::{PanelSpec, PlantedDefect},
    },
    discs::Discs,
    scene::{Picture, Texture},
};

/// Light over the frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Light {
    /// Loss in the corners; it grows with the square of the radius.
    Corners(f32),
    /// Loss at the right edge; it grows evenly from the left edge on.
    Slope(f32),
}

impl Light {
    /// Name in the tables.
    pub fn name(self) -> String {
        match self {
            Self::Corners(0.0) => "even".into(),
            Self::Corners(loss) => format!("corners {:.0} % darker", 100.0 * loss),
            Self::Slope(loss) => format!("right edge {:.0} % darker", 100.0 * loss),
        }
    }

    fn fall_on(self, picture: &mut Picture) {
        let half = [picture.width, picture.height].map(|len| (len - 1) as f32 / 2.0);
        let corner = half[0] * half[0] + half[1] * half[1];
        picture.change_all(|x, y, level| {
            let [dx, dy] = [x as f32 - half[0], y as f32 - half[1]];
            level
                * match self {
                    Self::Corners(loss) => 1.0 - loss * (dx * dx + dy * dy) / corner,
                    Self::Slope(loss) => 1.0 - loss * x as f32 / (2.0 * half[0]),
                }
        });
    }
}

/// Clean frames of 8 bits, one after the other of at least `mpx` megapixels.
pub fn clean_frames(subject: &Subject, seed: u64, mpx: f64) -> Result<Vec<Vec<u8>>> {
    let [width, height] = subject.texture.size();
    let count = (mpx * 1e6 / (width * height) as f64).ceil() as u64;
    let frame = |number: u64| {
        let mut picture = subject.texture.picture(seed, number)?;
        subject.light.fall_on(&mut picture);
        Ok(picture.frame(subject.sigma, (seed << 32) + number))
    };
    (0..count).map(frame).collect()
}

/// A frame without its discs' contrast.
struct Scene {
    texture: Vec<f32>,
    /// The discs with ±1 grey level.
    discs: Vec<f32>,
    /// Samples of the standard normal distribution.
    noise: Vec<f32>,
    planted: Vec<PlantedDefect>,
}

/// The same discs and the same noise at any contrast.
pub struct Scenes {
    sigma: f32,
    scenes: Vec<Scene>,
}

impl Scenes {
    /// At least `count` discs of a diameter.
    ///
    /// # Errors
    /// The generator refuses the specification.
    pub fn new(subject: &Subject, seed: u64, diameter_px: f64, count: usize) -> Result<Self> {
        let [width, height] = subject.texture.size();
        let [pitch_x, pitch_y] = subject.texture.pitch();
        let spec = match subject.texture {
            Texture::Panel(spec) => spec,
            Texture::Weave { .. } => PanelSpec {
                width,
                height,
                pitch_x,
                pitch_y,
                ..PanelSpec::default()
            },
        };
        let discs = Discs::new(spec, seed, diameter_px)?;
        let mut planted_discs = 0;
        let mut scenes = Vec::new();
        while planted_discs < count {
            let number = scenes.len() as u64;
            let mut texture = subject.texture.picture(seed, number)?;
            let (mut alone, planted) = discs.alone(number)?;
            subject.light.fall_on(&mut texture);
            subject.light.fall_on(&mut alone);
            let mut rng = ChaCha8Rng::seed_from_u64((seed << 32) + number);
            let noise = StandardNormal.sample_iter(&mut rng);
            planted_discs += planted.len();
            scenes.push(Scene {
                noise: noise.take(width * height).collect(),
                texture: texture.levels,
                discs: alone.levels,
                planted,
            });
        }
        Ok(Self {
            sigma: subject.sigma,
            scenes,
        })
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.scenes.len()
    }

    /// The discs of a frame.
    pub fn planted(&self, number: usize) -> &[PlantedDefect] {
        &self.scenes[number].planted
    }

    /// A frame with discs of ±`contrast` grey levels.
    pub fn frame(&self, number: usize, contrast: f64) -> Vec<u8> {
        let scene = &self.scenes[number];
        let levels = scene.texture.iter().zip(&scene.discs);
        levels
            .zip(&scene.noise)
            .map(|((texture, disc), noise)| {
                let level = texture + contrast as f32 * disc;
                quantised(level + noise * self.sigma * noise_share(level))
            })
            .collect()
    }
}
