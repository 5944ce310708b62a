//! Synthetic frames of a printed label as an area camera sees them, with ground truth.
//!
//! The label has text, a bar code, solid and thin parts on a paper with texture, on a darker liner. It
//! does not repeat: it can only be compared with a picture of good labels. From frame to frame the label
//! is shifted, the light changes, each printed part has an error of a fraction of a pixel, and the paper
//! and the camera's noise are others. Misprints pass the same optics (a Gaussian point-spread function
//! and the pixel's square aperture).
//!
//! A frame is a function of specification, seed and frame number. Levels are in grey levels of 8 bits;
//! pixel centres are at integer coordinates.

mod artwork;
mod layer;
mod misprint;

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub use misprint::{Misprint, MisprintKind, PlantedMisprint};

use artwork::Line;
use layer::Layer;
use misprint::Clean;

use crate::{
    cloth::{noise_share, quantised},
    planted::Patch,
};

/// Grey levels of liner, paper and ink.
const LINER: f32 = 110.0;
const PAPER: f32 = 205.0;
const INK: f32 = 40.0;
/// Sizes, px, and contrast of random misprints, grey levels.
const RANDOM_SIZES: [f64; 2] = [3.0, 8.0];
const RANDOM_CONTRAST: f64 = 80.0;

/// Properties of labels and camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelSpec {
    /// Frame width, px, 320..=8192. The print grows with the frame.
    pub width: usize,
    /// Frame height, px, 240..=8192.
    pub height: usize,
    /// Largest shift of a label along each axis, px, 0..=32.
    pub shift_px: f64,
    /// Standard deviation of the place of each printed part along each axis, px, 0..=2.
    pub jitter_px: f64,
    /// Largest change of the light, 0..=0.5: 0.1 is ±10 %.
    pub light: f64,
    /// Standard deviation of the paper's texture, grey levels, 0..=32.
    pub texture_sigma: f64,
    /// Standard deviation of shot and read noise together at the mean level, grey levels, 0..=64.
    pub noise_sigma: f64,
}

impl Default for LabelSpec {
    fn default() -> Self {
        Self {
            width: 640,
            height: 480,
            shift_px: 8.0,
            jitter_px: 0.15,
            light: 0.1,
            texture_sigma: 2.0,
            noise_sigma: 4.0,
        }
    }
}

impl LabelSpec {
    /// Refuses a specification that cannot be drawn.
    ///
    /// # Errors
    /// A sentence that names the field, its value and the range.
    pub fn validate(&self) -> Result<(), String> {
        for (field, value, least) in [("width", self.width, 320), ("height", self.height, 240)] {
            if !(least..=8192).contains(&value) {
                return Err(format!("{field} is {value}, give {least} to 8192 px"));
            }
        }
        for (field, value, most) in [
            ("shift_px", self.shift_px, 32.0),
            ("jitter_px", self.jitter_px, 2.0),
            ("light", self.light, 0.5),
            ("texture_sigma", self.texture_sigma, 32.0),
            ("noise_sigma", self.noise_sigma, 64.0),
        ] {
            // No range contains NaN.
            if !(0.0..=most).contains(&value) {
                return Err(format!("{field} is {value}, give 0 to {most}"));
            }
        }
        Ok(())
    }
}

/// A frame and its ground truth.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFrame {
    /// Rows of 8-bit samples without padding.
    pub samples: Vec<u8>,
    /// Width, px.
    pub width: usize,
    /// Height, px.
    pub height: usize,
    /// Number of frames that the generator made before.
    pub frame_number: u64,
    /// Shift of the label along x and y, px.
    pub shift: [f64; 2],
    /// Light, as a share of the usual one.
    pub light: f64,
    /// Ground truth.
    pub planted: Vec<PlantedMisprint>,
}

/// Streams of a frame's random numbers, one per purpose: a change of the specification or of the
/// misprints changes nothing else in the frame.
#[derive(Clone, Copy)]
enum Purpose {
    Pose,
    Jitter,
    Texture,
    Noise,
    Misprints,
}

/// Makes frames.
pub struct LabelGenerator {
    spec: LabelSpec,
    seed: u64,
    frame_number: u64,
    paper: Layer,
    parts: Vec<Part>,
}

/// A printed part.
struct Part {
    ink: Layer,
    line: Option<Line>,
}

/// Where a label and its parts are.
struct Pose {
    shift: [f64; 2],
    light: f64,
    /// By part, px.
    jitter: Vec<[f32; 2]>,
}

impl Pose {
    /// Shift of a part, px.
    fn shift_of(&self, part: usize) -> [f32; 2] {
        [0, 1].map(|axis| self.shift[axis] as f32 + self.jitter[part][axis])
    }
}

impl LabelGenerator {
    /// A generator; its frames depend on the specification and the seed alone.
    ///
    /// # Errors
    /// See [`LabelSpec::validate`].
    pub fn new(spec: LabelSpec, seed: u64) -> Result<Self, String> {
        spec.validate()?;
        let [width, height] = artwork::SIZE;
        let scale = (spec.width as f32 / width).min(spec.height as f32 / height);
        let (paper, parts) = artwork::draw(scale);
        let parts = parts.into_iter().map(|part| Part {
            ink: Layer::new(&part.path),
            line: part.line,
        });
        Ok(Self {
            spec,
            seed,
            frame_number: 0,
            paper: Layer::new(&paper),
            parts: parts.collect(),
        })
    }

    /// The specification of the frames.
    pub fn spec(&self) -> &LabelSpec {
        &self.spec
    }

    /// Makes `frame_number` the next frame.
    pub fn seek(&mut self, frame_number: u64) {
        self.frame_number = frame_number;
    }

    /// Number of the next frame.
    pub fn frame_number(&self) -> u64 {
        self.frame_number
    }

    /// A good label.
    pub fn good(&mut self) -> LabelFrame {
        self.label(&[])
    }

    /// A label with these misprints at random places, or with fewer if there is no room.
    pub fn label(&mut self, misprints: &[Misprint]) -> LabelFrame {
        let (width, height) = (self.spec.width, self.spec.height);
        let pose = self.pose();
        let mut ink = vec![0.0_f32; width * height];
        for (number, part) in self.parts.iter().enumerate() {
            self.add(&part.ink, pose.shift_of(number), &mut ink);
        }
        let mut paper = vec![0.0; width * height];
        self.add(
            &self.paper,
            pose.shift.map(|shift| shift as f32),
            &mut paper,
        );
        let mut rng = self.random(Purpose::Misprints);
        let mut patches: Vec<Patch<MisprintKind>> = Vec::new();
        let clean = Clean {
            generator: self,
            pose: &pose,
            ink: &ink,
            paper: &paper,
        };
        for misprint in misprints {
            let patch = clean.plant(misprint, &patches, &mut rng);
            patches.extend(patch);
        }
        let levels = self.levels(&ink, &paper, &patches);
        let frame = LabelFrame {
            samples: self.expose(&levels, pose.light as f32),
            width,
            height,
            frame_number: self.frame_number,
            shift: pose.shift,
            light: pose.light,
            planted: patches.into_iter().map(|patch| patch.truth).collect(),
        };
        self.frame_number = self.frame_number.wrapping_add(1);
        frame
    }

    /// A label with `count` misprints of mixed kinds, of 3 to 8 px and 80 grey levels.
    pub fn next_random(&mut self, count: usize) -> LabelFrame {
        let mut rng = self.random(Purpose::Misprints);
        // The places come from the same numbers; these are far behind them.
        rng.set_word_pos(1 << 40);
        let misprints: Vec<Misprint> = (0..count)
            .filter_map(|_| {
                Some(Misprint {
                    kind: *MisprintKind::ALL.choose(&mut rng)?,
                    size_px: rng.random_range(RANDOM_SIZES[0]..RANDOM_SIZES[1]),
                    contrast: RANDOM_CONTRAST,
                })
            })
            .collect();
        self.label(&misprints)
    }

    fn random(&self, purpose: Purpose) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.frame_number.wrapping_mul(5) + purpose as u64);
        rng
    }

    fn pose(&self) -> Pose {
        let mut rng = self.random(Purpose::Pose);
        let mut within = |most: f64| most * rng.random_range(-1.0..=1.0);
        let shift = [within(self.spec.shift_px), within(self.spec.shift_px)];
        let light = 1.0 + within(self.spec.light);
        let mut rng = self.random(Purpose::Jitter);
        let sigma = self.spec.jitter_px as f32;
        let mut jitter = || sigma * normal(&mut rng);
        Pose {
            shift,
            light,
            jitter: self.parts.iter().map(|_| [jitter(), jitter()]).collect(),
        }
    }

    /// Adds the coverage of a shape to a plane of the frame.
    fn add(&self, layer: &Layer, shift: [f32; 2], plane: &mut [f32]) {
        let [columns, rows] = layer.extent(shift, [self.spec.width, self.spec.height]);
        for y in rows {
            let row = &mut plane[y * self.spec.width..(y + 1) * self.spec.width];
            for x in columns.clone() {
                row[x] += layer.at(x as f32 - shift[0], y as f32 - shift[1]);
            }
        }
    }

    /// Grey levels before light and noise.
    fn levels(&self, ink: &[f32], paper: &[f32], patches: &[Patch<MisprintKind>]) -> Vec<f32> {
        let width = self.spec.width;
        let texture = self.texture();
        let pixels = ink.iter().zip(paper).zip(&texture);
        let mut levels: Vec<f32> = pixels
            .map(|((ink, paper), texture)| {
                let bare = LINER + paper * (PAPER + texture - LINER);
                bare + ink * (INK - bare)
            })
            .collect();
        for patch in patches {
            let [left, top, patch_width, _] = patch.truth.bbox;
            for (row, change) in patch.change.chunks_exact(patch_width).enumerate() {
                let start = (top + row) * width + left;
                for (level, change) in levels[start..start + patch_width].iter_mut().zip(change) {
                    *level += change;
                }
            }
        }
        levels
    }

    /// The texture of the paper: noise that neighbours share.
    fn texture(&self) -> Vec<f32> {
        let (width, height) = (self.spec.width, self.spec.height);
        let mut rng = self.random(Purpose::Texture);
        // The passes leave the last rows as they are.
        let count = width * (height + 4);
        let mut rough: Vec<f32> = (0..count).map(|_| normal(&mut rng)).collect();
        // Two passes of 1 2 1 along each axis; the standard deviation falls to 35/128 of it.
        let scale = self.spec.texture_sigma as f32 * 128.0 / 35.0;
        for _ in 0..2 {
            for step in [1, width] {
                for at in step..count - step {
                    rough[at - step] =
                        (rough[at - step] + 2.0 * rough[at] + rough[at + step]) / 4.0;
                }
            }
        }
        rough.truncate(width * height);
        rough.iter_mut().for_each(|value| *value *= scale);
        rough
    }

    /// What the camera makes of the levels.
    fn expose(&self, levels: &[f32], light: f32) -> Vec<u8> {
        let mut rng = self.random(Purpose::Noise);
        let sigma = self.spec.noise_sigma as f32;
        let mut sample = |level: &f32| {
            let level = level * light;
            let noise = if sigma > 0.0 {
                sigma * noise_share(level) * normal(&mut rng)
            } else {
                0.0
            };
            quantised(level + noise)
        };
        levels.iter().map(&mut sample).collect()
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f32 {
    StandardNormal.sample(rng)
}
