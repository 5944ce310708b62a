//! The self-test of the pitch comparison.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    lattice::Lattice,
    layout::{FrameLayout, SampleType},
    mask::packed_stride,
    variant::pitch_threshold_variant,
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use clinspect_oracle::pitch_threshold as definition;

use super::{KnownAnswer, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{
    Borders, Compare, Contrast, Inspection, PitchThreshold, PitchThresholdSettings, Polarity,
    Subject, depth::effective_depth,
};

/// The test frame is at least this long along each axis.
const LEAST: usize = 64;
/// The test does not compare at larger distances, px: its frame would be too large.
const MOST_DISTANCE: f64 = 200.0;
/// The pitch of the test where none is known, px.
const PITCH: f64 = 12.5;
/// The minimum contrast of the test where none is known, grey levels of 8 bits.
const CONTRAST: f64 = 4.0;

impl Trial {
    /// Tests the pitch comparison with these settings for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn pitch_threshold(
        &self,
        layout: &FrameLayout,
        settings: &PitchThresholdSettings,
    ) -> Result<(), ClError> {
        let variant = settings.variant.unwrap_or_else(|| {
            let bytes = layout.sample == SampleType::U8;
            pitch_threshold_variant(
                self.context.caps(),
                settings.image,
                bytes,
                layout.bytes(),
                settings.is_steady,
            )
        });
        let most = settings.multiples.iter().copied().max().unwrap_or(1);
        // Vectors that are too long for the test frame are shortened, and keep their directions.
        let turned = match settings.turned() {
            Some(lattice) => Some(shortened(&lattice, MOST_DISTANCE / f64::from(most))?),
            None => None,
        };
        let near = |pitch: f64| {
            if pitch * f64::from(most) > MOST_DISTANCE {
                (MOST_DISTANCE / f64::from(most)).floor() + pitch.fract()
            } else {
                pitch
            }
        };
        let [x, y] = match turned {
            // Its longest component along each axis.
            Some(lattice) => [0, 1].map(|axis| {
                let parts = lattice.vectors().iter().map(|v| v[axis].abs());
                parts.fold(0.0, f64::max)
            }),
            None => settings.axis_pitches().map(near),
        };
        let [x, y] = if [x, y] == [0.0; 2] {
            [PITCH; 2]
        } else {
            [x, y]
        };
        let longest = [x, y];
        let length = |pitch: f64| LEAST.max((2.5 * pitch * f64::from(most)) as usize);
        let size = reduced(layout, [length(x), length(y)]);
        // Frames that are shorter than two pitches cannot be judged along them.
        let fits = |pitch: f64, len: usize| if 2.2 * pitch < len as f64 { pitch } else { 0.0 };
        let [x, y] = [fits(x, size[0]), fits(y, size[1])];
        if [x, y] == [0.0; 2] {
            return Ok(());
        }
        let tried = PitchThresholdSettings {
            may_be_blind: false,
            pitch_x: x,
            pitch_y: y,
            lattice: turned,
            multiples: (settings.multiples.iter().copied())
                .filter(|&multiple| {
                    let fits =
                        |pitch: f64, len: usize| 2.2 * pitch * f64::from(multiple) < len as f64;
                    fits(x, size[0]) && fits(y, size[1])
                })
                .collect(),
            contrast: match settings.contrast {
                Contrast::Unknown => Contrast::Known(CONTRAST),
                known => known,
            },
            rois: Vec::new(),
            ignored: None,
            line_scan: false,
            edge_margin: 0,
            variant: Some(variant),
            ..settings.clone()
        };
        if tried.multiples.is_empty() || turned.is_some() && [x, y] != longest {
            return Ok(());
        }
        let form = match turned {
            Some(_) => "along vectors".to_owned(),
            None => format!("{variant:?}"),
        };
        let subject = format!(
            "the pitch comparison ({form}; {:?}; match-center {}; {:?}; along x {}, y {}; levels {}; presence {}; \
             images {})",
            tried.compare,
            tried.match_center,
            tried.borders,
            x > 0.0,
            y > 0.0,
            tried.scales,
            tried.contrast != Contrast::Off,
            tried.image
        );
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            Ok(Test {
                context: context.clone(),
                operator: PitchThreshold::new(context, small, &tried)?,
                settings: tried.clone(),
                depth,
            })
        };
        self.run(size, make, &subject)
    }
}

/// The lattice, shortened so that no component is longer than `most`, px.
fn shortened(lattice: &Lattice, most: f64) -> Result<Lattice, ClError> {
    let numbers = lattice.vectors().as_flattened().iter();
    let longest = numbers.fold(0.0, |longest: f64, number| longest.max(number.abs()));
    let times = (most / longest).min(1.0);
    let vectors = lattice.vectors().iter().map(|v| v.map(|c| times * c));
    Lattice::new(&vectors.collect::<Vec<_>>())
}

struct Test {
    context: Arc<ClContext>,
    operator: PitchThreshold,
    settings: PitchThresholdSettings,
    depth: u32,
}

impl Test {
    fn definition(&self) -> definition::Settings {
        let s = &self.settings;
        definition::Settings {
            vectors: (s.turned()).map_or_else(Vec::new, |lattice| lattice.vectors().to_vec()),
            pitch_x: s.pitch_x,
            pitch_y: s.pitch_y,
            multiples: s.multiples.clone(),
            threshold: s.threshold,
            compare: match s.compare {
                Compare::Average => definition::Compare::Average,
                Compare::Minimum => definition::Compare::Minimum,
            },
            match_center: s.match_center,
            polarity: match s.polarity {
                Polarity::Both => definition::Polarity::Both,
                Polarity::Bright => definition::Polarity::Bright,
                Polarity::Dark => definition::Polarity::Dark,
            },
            inward: s.borders == Borders::Inward,
            edge_margin: s.edge_margin as usize,
            scales: s.scales as u32,
            scale_factors: s.scale_factors.clone(),
            min_contrast: match s.contrast {
                Contrast::Known(contrast) => contrast,
                Contrast::Off | Contrast::Unknown => 0.0,
            },
            bit_depth: s.bit_depth,
            rois: Vec::new(),
            ignored: Vec::new(),
        }
    }
}

impl KnownAnswer for Test {
    type Answer = definition::Outcome;

    /// A pattern, noise about as large as the threshold, a few large deviations, and in the second round a corner
    /// without the pattern.
    fn draw(&self, picture: &mut Picture, round: u64) {
        let most = f64::from((1_u32 << self.depth) - 1);
        let threshold = self.settings.threshold.min(most / 4.0);
        let wave = |at: usize, pitch: f64| {
            let phase = if pitch > 0.0 {
                (at as f64 / pitch).fract()
            } else {
                0.5
            };
            (phase - 0.5).abs()
        };
        let [width, height] = [
            picture.info.width() as usize,
            picture.info.height() as usize,
        ];
        picture.fill(|component, x, y| {
            let random = noise(round, component, x, y);
            let part = f64::from(random & 0xffff) / 65_535.0 - 0.5;
            let is_flat = round == 1 && x < width / 3 && y < height / 2;
            let pattern = wave(x, self.settings.pitch_x) + wave(y, self.settings.pitch_y);
            let pattern = if is_flat { 0.5 } else { pattern };
            let deviates = if (random >> 16).is_multiple_of(101) {
                0.4
            } else {
                0.0
            };
            let level = most * (0.2 + 0.3 * pattern + deviates) + 2.5 * threshold * part;
            level.clamp(0.0, most) as u32
        });
    }

    fn answer(&self, picture: &Picture) -> definition::Outcome {
        definition::compare(picture.component(0), &self.definition())
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
        let subject = Subject::whole(frame, height, &meter);
        let bytes = packed_stride(width) * height;
        let mask = super::Mask::new(&self.context, &meter, bytes)?;
        let marked = self.operator.mark(subject, mask.target()?)?;
        mask.compare(width, marked.pixels, (&answer.packed, answer.defect_pixels))
    }
}
