//! Synthetic frames of a display panel as a line inspection camera sees them, with ground truth.
//!
//! A unit cell repeats at a real-valued pitch along both axes and is blurred by a Gaussian
//! point-spread function and the pixel's square aperture. Its image is a Fourier series cut below
//! half a cycle per pixel, so every sample is exact at any phase. A clean frame differs from itself
//! one pitch away only by the error of interpolation. Row jitter, vignetting, shot and read noise
//! are added. Defects pass the same optics unless the specification says otherwise.
//!
//! A frame is a function of specification, seed and frame number. Each frame has its own random
//! phase, as on a moving line. Levels are in grey levels of 8 bits at any bit depth; pixel centres
//! are at integer coordinates.

mod cell;
mod defects;
mod optics;
mod placement;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use cell::{CellImage, TERMS, turns};
use defects::Scene;
pub use defects::{Defect, DefectKind, PlantedDefect};
use optics::Optics;
use placement::Field;

use crate::planted::Patch;

/// Share of shot noise in the noise's variance at the mean level; the rest is read noise.
const SHOT_SHARE: f32 = 0.5;
/// Contrast of random defects, grey levels of 8 bits.
const RANDOM_CONTRAST: f64 = 60.0;
/// Tries per random defect before the frame counts as full.
const PLACEMENT_TRIES: usize = 200;

/// Properties of the panel and the camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PanelSpec {
    /// Frame width, px, 1..=65536.
    pub width: usize,
    /// Frame height, px, 1..=65536.
    pub height: usize,
    /// Pitch along x, px, 3..=512.
    pub pitch_x: f64,
    /// Pitch along y, px, 3..=512.
    pub pitch_y: f64,
    /// Standard deviation of the point-spread function, px, 0..=16.
    pub psf_sigma_px: f64,
    /// Standard deviation of the defects' point-spread function, px, 0..=16; `None`, the physical
    /// case: the panel's. Smaller values draw defects sharper than the optics allow, like
    /// benchmarks that paint discs into a finished picture.
    pub defect_psf_sigma_px: Option<f64>,
    /// Standard deviation of shot and read noise together at the mean level, grey levels of
    /// 8 bits, 0..=64; 0 is noise-free.
    pub noise_sigma: f64,
    /// Standard deviation of each row's shift along x, px, 0..=2.
    pub jitter_px: f64,
    /// Loss of light in the corners, 0..1; it grows with the square of the radius.
    pub vignetting: f64,
    /// Range of the imaged pattern, lowest to highest, grey levels of 8 bits, 0..=255.
    pub contrast: f64,
    /// Mean of the pattern where there is no vignetting, grey levels of 8 bits, 0..=255.
    pub mean_level: f64,
    /// Bits per sample, 8..=16.
    pub bit_depth: u32,
}

impl Default for PanelSpec {
    fn default() -> Self {
        Self {
            width: 640,
            height: 480,
            pitch_x: 7.35,
            pitch_y: 7.35,
            psf_sigma_px: 0.8,
            defect_psf_sigma_px: None,
            noise_sigma: 4.0,
            jitter_px: 0.03,
            vignetting: 0.1,
            contrast: 120.0,
            mean_level: 128.0,
            bit_depth: 8,
        }
    }
}

impl PanelSpec {
    /// Refuses a specification that cannot be drawn.
    ///
    /// # Errors
    /// A sentence that names the field, its value and the range.
    pub fn validate(&self) -> Result<(), String> {
        for (field, value) in [("width", self.width), ("height", self.height)] {
            if !(1..=65_536).contains(&value) {
                return Err(format!("{field} is {value}, give 1 to 65536 px"));
            }
        }
        if !(8..=16).contains(&self.bit_depth) {
            return Err(format!("bit_depth is {}, give 8 to 16", self.bit_depth));
        }
        let ranges = [
            ("pitch_x", self.pitch_x, 3.0, 512.0),
            ("pitch_y", self.pitch_y, 3.0, 512.0),
            ("psf_sigma_px", self.psf_sigma_px, 0.0, 16.0),
            (
                "defect_psf_sigma_px",
                self.defect_psf_sigma_px.unwrap_or(self.psf_sigma_px),
                0.0,
                16.0,
            ),
            ("noise_sigma", self.noise_sigma, 0.0, 64.0),
            ("jitter_px", self.jitter_px, 0.0, 2.0),
            ("vignetting", self.vignetting, 0.0, 1.0),
            ("contrast", self.contrast, 0.0, 255.0),
            ("mean_level", self.mean_level, 0.0, 255.0),
        ];
        for (field, value, low, high) in ranges {
            // No range contains NaN.
            if !(low..=high).contains(&value) {
                return Err(format!("{field} is {value}, give {low} to {high}"));
            }
        }
        Ok(())
    }
}

/// A frame and its ground truth.
#[derive(Clone, Debug, PartialEq)]
pub struct PanelFrame {
    /// Rows without padding: GRAY8, or GRAY16_LE (two bytes a sample) when `bit_depth` > 8.
    pub samples: Vec<u8>,
    /// Width, px.
    pub width: usize,
    /// Height, px.
    pub height: usize,
    /// Bits per sample; samples sit in the low bits.
    pub bit_depth: u32,
    /// Number of frames that the generator made before.
    pub frame_number: u64,
    /// Ground truth.
    pub planted: Vec<PlantedDefect>,
}

impl PanelFrame {
    /// The sample at (x, y) in grey levels of `bit_depth`; `None` outside.
    pub fn sample(&self, x: usize, y: usize) -> Option<u16> {
        if x >= self.width {
            return None;
        }
        let i = y * self.width + x;
        if self.bit_depth > 8 {
            let bytes = self.samples.get(2 * i..2 * i + 2)?;
            Some(u16::from_le_bytes([bytes[0], bytes[1]]))
        } else {
            self.samples.get(i).map(|&sample| u16::from(sample))
        }
    }
}

/// Streams of a frame's random numbers, one per purpose: a change of the specification or of the
/// defects changes nothing else in the frame.
#[derive(Clone, Copy)]
enum Purpose {
    Phase,
    Jitter,
    Noise,
    Defects,
}

/// Makes frames.
pub struct PanelGenerator {
    spec: PanelSpec,
    seed: u64,
    frame_number: u64,
    /// Optics of the defects.
    defect_optics: Optics,
    cell: CellImage,
    /// `Σ (distance from the centre / distance of the corner)²` by column and by row.
    radius_squared: [Vec<f32>; 2],
}

/// The random part of one frame's pattern.
struct Pose {
    /// Position of pixel (0, 0), cells.
    phase: [f64; 2],
    row_shifts: Vec<f32>,
}

impl PanelGenerator {
    /// A generator; its frames depend on the specification and the seed alone.
    ///
    /// # Errors
    /// See [`PanelSpec::validate`].
    pub fn new(spec: PanelSpec, seed: u64) -> Result<Self, String> {
        spec.validate()?;
        let optics = Optics {
            psf_sigma_px: spec.psf_sigma_px,
        };
        let half = [spec.width, spec.height].map(|len| (len - 1) as f32 / 2.0);
        // A single pixel is the centre and has no corner.
        let corner = (half[0] * half[0] + half[1] * half[1]).max(1.0);
        let radius_squared = [(spec.width, half[0]), (spec.height, half[1])].map(|(len, half)| {
            (0..len)
                .map(|i| (i as f32 - half) * (i as f32 - half) / corner)
                .collect()
        });
        Ok(Self {
            spec,
            seed,
            frame_number: 0,
            defect_optics: Optics {
                psf_sigma_px: spec.defect_psf_sigma_px.unwrap_or(spec.psf_sigma_px),
            },
            cell: CellImage::new(spec.pitch_x, spec.pitch_y, optics),
            radius_squared,
        })
    }

    /// The specification of the frames.
    pub fn spec(&self) -> &PanelSpec {
        &self.spec
    }

    /// Makes `frame_number` the next frame.
    pub fn seek(&mut self, frame_number: u64) {
        self.frame_number = frame_number;
    }

    /// A frame without defects.
    pub fn clean_frame(&mut self) -> PanelFrame {
        let pose = self.pose();
        self.render(&pose, Vec::new())
    }

    /// A frame with these defects; overlapping ones add up.
    ///
    /// # Errors
    /// A sentence for a defect that cannot be drawn; the frame number is then not advanced.
    pub fn next_frame(&mut self, defects: &[Defect]) -> Result<PanelFrame, String> {
        let pose = self.pose();
        let scene = self.scene(&pose);
        let patches = defects
            .iter()
            .map(|defect| defects::draw(defect, &scene))
            .collect::<Result<_, _>>()?;
        Ok(self.render(&pose, patches))
    }

    /// A frame with `count` defects of mixed kinds and ±60 grey levels, or fewer if there is no
    /// room. They are so far apart that neither they nor their ghosts meet.
    pub fn next_random(&mut self, count: usize) -> PanelFrame {
        self.next_random_of(&DefectKind::ALL, count, RANDOM_CONTRAST)
    }

    /// Like [`Self::next_random`], with given kinds and contrast (grey levels of 8
    /// bits).
    pub fn next_random_of(
        &mut self,
        kinds: &[DefectKind],
        count: usize,
        contrast: f64,
    ) -> PanelFrame {
        let pose = self.pose();
        let scene = self.scene(&pose);
        let field = Field {
            size: [self.spec.width, self.spec.height],
            pitch: scene.pitch,
        };
        let mut rng = self.random(Purpose::Defects);
        let mut wanted: Vec<DefectKind> = (0..count)
            .filter_map(|_| kinds.choose(&mut rng).copied())
            .collect();
        Field::lines_first(&mut wanted);
        let mut outlines = Vec::new();
        let mut patches = Vec::new();
        for kind in wanted {
            // If a line no longer fits, a defect of another kind may still fit.
            for turn in 0..PLACEMENT_TRIES {
                let kind = if turn < PLACEMENT_TRIES / 2 {
                    kind
                } else {
                    kinds.choose(&mut rng).copied().unwrap_or(kind)
                };
                let defect = field.propose(kind, contrast, &mut rng);
                let outline = field.outline(&defect, scene.optics.reach_px());
                if !field.admits(&outline, &outlines) {
                    continue;
                }
                // Its contrast is too low to change a pixel.
                patches.extend(defects::draw(&defect, &scene));
                outlines.push(outline);
                break;
            }
        }
        self.render(&pose, patches)
    }

    fn random(&self, purpose: Purpose) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.frame_number.wrapping_mul(4) + purpose as u64);
        rng
    }

    fn pose(&self) -> Pose {
        let mut rng = self.random(Purpose::Phase);
        let phase = [rng.random(), rng.random()];
        let mut rng = self.random(Purpose::Jitter);
        let sigma = self.spec.jitter_px as f32;
        let row_shifts = (0..self.spec.height)
            .map(|_| sigma * normal(&mut rng))
            .collect();
        Pose { phase, row_shifts }
    }

    fn scene<'a>(&self, pose: &'a Pose) -> Scene<'a> {
        Scene {
            width: self.spec.width,
            height: self.spec.height,
            pitch: [self.spec.pitch_x, self.spec.pitch_y],
            phase: pose.phase,
            cell_contrast: self.cell_contrast(),
            optics: self.defect_optics,
            row_shifts: &pose.row_shifts,
        }
    }

    /// Grey levels from the grid to the brightest bar before the optics.
    fn cell_contrast(&self) -> f64 {
        // Avoid a division by 0 if the blur removed the whole pattern.
        self.spec.contrast / self.cell.range.max(1e-3)
    }

    fn render(&mut self, pose: &Pose, patches: Vec<Patch<DefectKind>>) -> PanelFrame {
        let spec = &self.spec;
        let (width, height) = (spec.width, spec.height);
        let cell_contrast = self.cell_contrast();
        let base = (spec.mean_level - cell_contrast * self.cell.mean) as f32;
        let vignetting = spec.vignetting as f32;
        let (along_x, along_y) = (&self.cell.along_x, &self.cell.along_y);
        let bytes_per_sample = if spec.bit_depth > 8 { 2 } else { 1 };

        let mut samples = Vec::with_capacity(width * height * bytes_per_sample);
        let mut columns: Vec<[f32; TERMS]> = Vec::with_capacity(width);
        let mut line = vec![0f32; width];
        let mut noise = Noise::new(spec, self.random(Purpose::Noise));
        for (y, phase_y) in (0..height).zip(along_y.phases(turns(pose.phase[1]))) {
            if columns.is_empty() || spec.jitter_px > 0.0 {
                let shift = f64::from(pose.row_shifts[y]) / spec.pitch_x;
                let phases = along_x.phases(turns(pose.phase[0] + shift));
                columns.clear();
                columns.extend(phases.take(width).map(|phase| along_x.at(phase)));
            }
            let rows = along_y.at(phase_y).map(|row| row * cell_contrast as f32);
            for (value, column) in line.iter_mut().zip(&columns) {
                *value = base + column.iter().zip(rows).map(|(c, r)| c * r).sum::<f32>();
            }
            for patch in &patches {
                let [left, top, patch_width, patch_height] = patch.truth.bbox;
                if (top..top + patch_height).contains(&y) {
                    let change = &patch.change[(y - top) * patch_width..];
                    for (value, change) in line[left..left + patch_width].iter_mut().zip(change) {
                        *value += change;
                    }
                }
            }
            let row_radius = self.radius_squared[1][y];
            for (value, column_radius) in line.iter_mut().zip(&self.radius_squared[0]) {
                *value *= 1.0 - vignetting * (row_radius + column_radius);
            }
            noise.add_to(&mut line);
            quantise(&line, spec.bit_depth, &mut samples);
        }
        let frame = PanelFrame {
            samples,
            width,
            height,
            bit_depth: spec.bit_depth,
            frame_number: self.frame_number,
            planted: patches.into_iter().map(|patch| patch.truth).collect(),
        };
        self.frame_number = self.frame_number.wrapping_add(1);
        frame
    }
}

/// Shot and read noise: the variance is a constant plus a share proportional to the signal.
///
/// # Source
/// The linear camera model of EMVA Standard 1288: `σ² = σ_read² + gain·signal`.
struct Noise {
    rng: ChaCha8Rng,
    read_variance: f32,
    /// Variance per grey level of signal.
    gain: f32,
}

impl Noise {
    fn new(spec: &PanelSpec, rng: ChaCha8Rng) -> Self {
        let variance = (spec.noise_sigma * spec.noise_sigma) as f32;
        // A black panel has no shot noise, only read noise.
        let shot = if spec.mean_level > 0.0 {
            SHOT_SHARE
        } else {
            0.0
        };
        Self {
            rng,
            read_variance: variance * (1.0 - shot),
            gain: variance * shot / (spec.mean_level as f32).max(f32::MIN_POSITIVE),
        }
    }

    fn add_to(&mut self, line: &mut [f32]) {
        if self.read_variance + self.gain == 0.0 {
            return;
        }
        for value in line {
            let sigma = (self.read_variance + self.gain * value.max(0.0)).sqrt();
            *value += sigma * normal(&mut self.rng);
        }
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f32 {
    StandardNormal.sample(rng)
}

/// Rounds to the bit depth and clamps to its range.
fn quantise(line: &[f32], bit_depth: u32, samples: &mut Vec<u8>) {
    if bit_depth > 8 {
        let scale = (1u32 << (bit_depth - 8)) as f32;
        let highest = ((1u32 << bit_depth) - 1) as f32;
        samples.extend(line.iter().flat_map(|value| {
            let level = (value * scale + 0.5).clamp(0.0, highest);
            (level as u16).to_le_bytes()
        }));
    } else {
        samples.extend(line.iter().map(|v| (v + 0.5).clamp(0.0, 255.0) as u8));
    }
}
