//! Frames full of discs of one diameter and contrast.

use anyhow::{Result, anyhow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    common::panel::{Defect, DefectKind, PanelFrame, PanelGenerator, PanelSpec, PlantedDefect},
    scene::Picture,
};

/// Discs on a frame.
pub const DISCS_PER_FRAME: usize = 25;
/// Room for a disc's blur and a blob's neighbourhood, in addition to the diameter, px.
const BLUR_PX: f64 = 8.0;
/// Cells to the border, so that every distance of the comparison lies inside.
const BORDER_CELLS: f64 = 4.0;
/// Distances in pitches at which a comparison would mix two discs or their ghosts.
const MEETING_CELLS: [f64; 5] = [0.0, 1.0, 2.0, 4.0, 8.0];
/// Tries per disc before a frame counts as full.
const TRIES: usize = 1000;
/// Separates the random numbers for places from the generator's random numbers of the same seed.
const STREAM: u64 = 1 << 40;

/// Discs of one diameter at random places. Places and noise depend on seed and frame alone, so two
/// contrasts are compared on the same frames.
pub struct Discs {
    generator: PanelGenerator,
    seed: u64,
    diameter_px: f64,
}

impl Discs {
    /// Discs of `diameter_px` on panels of `spec`.
    ///
    /// # Errors
    /// The generator refuses the specification.
    pub fn new(spec: PanelSpec, seed: u64, diameter_px: f64) -> Result<Self> {
        let generator = PanelGenerator::new(spec, seed).map_err(|why| anyhow!(why))?;
        Ok(Self {
            generator,
            seed,
            diameter_px,
        })
    }

    /// Frame `number` with discs of ±`contrast` grey levels.
    ///
    /// # Errors
    /// A disc that changes no pixel.
    pub fn frame(&mut self, number: u64, contrast: f64) -> Result<PanelFrame> {
        let discs = self.places(number, contrast);
        self.generator.seek(number);
        self.generator
            .next_frame(&discs)
            .map_err(|why| anyhow!(why))
    }

    /// The discs of frame `number` with ±1 grey level on a picture of level 0, and their places.
    ///
    /// # Errors
    /// The generator refuses the specification.
    pub fn alone(&self, number: u64) -> Result<(Picture, Vec<PlantedDefect>)> {
        // Drawn with a high contrast, so that the blurred edge is not left out.
        const CONTRAST: f64 = 64.0;
        const LEVEL: f64 = 128.0;
        let discs = self.places(number, CONTRAST);
        let spec = PanelSpec {
            contrast: 0.0,
            mean_level: LEVEL,
            noise_sigma: 0.0,
            jitter_px: 0.0,
            vignetting: 0.0,
            bit_depth: 16,
            ..*self.generator.spec()
        };
        let mut generator = PanelGenerator::new(spec, self.seed).map_err(|why| anyhow!(why))?;
        let frame = generator.next_frame(&discs).map_err(|why| anyhow!(why))?;
        let mut picture = Picture::of_16_bits(&frame);
        picture.change_all(|_, _, level| (level - LEVEL as f32) / CONTRAST as f32);
        Ok((picture, frame.planted))
    }

    fn places(&self, number: u64, contrast: f64) -> Vec<Defect> {
        let spec = self.generator.spec();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(STREAM + number);
        let room = self.diameter_px + BLUR_PX;
        let axes = [
            (spec.width as f64, spec.pitch_x),
            (spec.height as f64, spec.pitch_y),
        ];
        let mut discs: Vec<Defect> = Vec::new();
        for _ in 0..TRIES * DISCS_PER_FRAME {
            if discs.len() == DISCS_PER_FRAME {
                break;
            }
            let [x, y] = axes.map(|(len, pitch)| {
                let border = BORDER_CELLS * pitch + room;
                border + rng.random::<f64>() * (len - 1.0 - 2.0 * border)
            });
            let meets = |disc: &Defect| {
                let gaps = [(disc.x - x).abs(), (disc.y - y).abs()];
                let in_line = |along: usize| {
                    let (_, pitch) = axes[along];
                    let hits = |cells: &f64| (gaps[along] - cells * pitch).abs() < room;
                    gaps[1 - along] < room && MEETING_CELLS.iter().any(hits)
                };
                in_line(0) || in_line(1)
            };
            if !discs.iter().any(meets) {
                let sign = if discs.len().is_multiple_of(2) {
                    1.0
                } else {
                    -1.0
                };
                let kind = DefectKind::Particle;
                discs.push(Defect::new(kind, x, y, self.diameter_px, sign * contrast));
            }
        }
        discs
    }
}
