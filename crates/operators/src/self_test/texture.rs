//! The self-test of the texture comparison.

use std::sync::Arc;

use clinspect_core::{
    ClError, lattice::Lattice, layout::FrameLayout, mask::packed_stride, texture::CHANNELS,
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use clinspect_oracle::texture as definition;

use super::{KnownAnswer, Mask, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{Contrast, Inspection, Subject, Texture, TextureSettings, depth::effective_depth};

/// The test frame is at least this long along each axis: two tiles.
const LEAST: usize = 64;
/// Vectors of the test frame, px: along rows and columns, and turned.
const PARALLEL: [[f64; 2]; 2] = [[7.3, 0.0], [0.0, 5.0]];
const TURNED: [[f64; 2]; 2] = [[6.9, 2.4], [-1.6, 4.7]];
/// Thresholds at which each channel marks something in noise.
const THRESHOLDS: [f64; CHANNELS] = [2.5, 1.2, 1.1, 1.05, 1.5, 1.0];

impl Trial {
    /// Tests the texture comparison with these settings for frames of `layout`: along rows and columns, and along vectors of
    /// any angle if these are or may come in use.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn texture(&self, layout: &FrameLayout, settings: &TextureSettings) -> Result<(), ClError> {
        if settings.turned().is_none() {
            self.texture_along(layout, settings, PARALLEL)?;
        }
        if settings.turned().is_some() || settings.may_turn {
            self.texture_along(layout, settings, TURNED)?;
        }
        Ok(())
    }

    fn texture_along(
        &self,
        layout: &FrameLayout,
        settings: &TextureSettings,
        vectors: [[f64; 2]; 2],
    ) -> Result<(), ClError> {
        let size = reduced(layout, [LEAST; 2]);
        if size.iter().any(|&length| length < LEAST) {
            // Such a frame holds no texture of these pitches.
            return Ok(());
        }
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let tried = TextureSettings {
            lattice: Some(Lattice::new(&vectors)?),
            may_turn: false,
            thresholds: THRESHOLDS.to_vec(),
            contrast: Contrast::Off,
            rois: Vec::new(),
            ignored: None,
            line_scan: false,
            ..settings.clone()
        };
        let variant = Texture::variant_of(&self.context, &tried, layout)?;
        let form = match tried.turned() {
            Some(_) => " along vectors",
            None => "",
        };
        let subject = format!(
            "the texture comparison ({variant:?}{form}; images {})",
            tried.image
        );
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            let settings = TextureSettings {
                variant: Some(variant),
                ..tried.clone()
            };
            Ok(Test {
                context: context.clone(),
                operator: Texture::new(context, small, &settings)?,
                vectors,
                depth,
            })
        };
        self.run(size, make, &subject)
    }
}

struct Test {
    context: Arc<ClContext>,
    operator: Texture,
    vectors: [[f64; 2]; 2],
    depth: u32,
}

impl KnownAnswer for Test {
    type Answer = definition::Outcome;

    fn draw(&self, picture: &mut Picture, round: u64) {
        let most = (1_u32 << self.depth) - 1;
        picture.fill(|component, x, y| {
            let pattern = 64 * u32::from(x % 7 < 3) + 48 * u32::from(y % 5 < 2);
            (u64::from(pattern + noise(round, component, x, y) % 128) * u64::from(most) / 255)
                as u32
        });
    }

    fn answer(&self, picture: &Picture) -> definition::Outcome {
        let settings = definition::Settings {
            vectors: (self.vectors).map(|v| v.map(|c| (16.0 * c).round() as i64)),
            thresholds: THRESHOLDS.map(|threshold| (256.0 * threshold).round() as i64),
            depth: self.depth,
            above: self.operator.is_above(),
            rois: Vec::new(),
            ignored: Vec::new(),
        };
        definition::compare(picture.component(0), &settings)
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        answer: &definition::Outcome,
    ) -> Result<Option<Wrong>, ClError> {
        let [width, height] = [
            picture.info.width() as usize,
            picture.info.height() as usize,
        ];
        let meter = Meter::new(false);
        let mask = Mask::new(&self.context, &meter, packed_stride(width) * height)?;
        let marked = (self.operator).mark(Subject::whole(frame, height, &meter), mask.target()?)?;
        mask.compare_pixels(width, marked.pixels, &answer.mask)
    }
}
