//! The self-test of the comparison with a trained picture.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::FrameLayout,
    mask::packed_stride,
    reference::{Model, Warp},
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use clinspect_oracle::trained as definition;

use super::{KnownAnswer, Mask, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{
    Align, Inspection, NormalizeBy, Polarity, Reference, ReferenceSettings, Subject,
    depth::effective_depth,
};

/// The test frame is at least this long along each axis.
const LEAST: usize = 96;
/// Frames of the model.
const FRAMES: u32 = 7;

impl Trial {
    /// Tests the comparison with a trained picture with these settings for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn reference(
        &self,
        layout: &FrameLayout,
        settings: &ReferenceSettings,
    ) -> Result<(), ClError> {
        let size = reduced(layout, [LEAST; 2]);
        let fits = settings.align.check(size, settings.search_range).is_ok();
        let tried = ReferenceSettings {
            model: None,
            align: if fits { settings.align } else { Align::None },
            // Frames of noise are compared too.
            match_score: 0.0,
            rois: Vec::new(),
            ignored: None,
            ..settings.clone()
        };
        let subject = format!(
            "the comparison with a reference ({:?}; {:?}; edge-tolerance {}; opening {})",
            tried.align,
            tried.normalize,
            tried.edge_tolerance > 0,
            tried.opening
        );
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            let bits = layout.sample.bits();
            let (mut mean, mut deviation) = (Vec::new(), Vec::new());
            let most = (1_u32 << depth) - 1;
            for y in 0..small.height {
                for x in 0..small.width {
                    mean.push(256 * level(most, x, y));
                    deviation.push(noise(9, 0, x, y) % 1024);
                }
            }
            let model =
                Model::new(size, bits, FRAMES, mean, deviation).map_err(ClError::Refused)?;
            let model = Arc::new(model);
            let settings = ReferenceSettings {
                model: Some(model.clone()),
                ..tried.clone()
            };
            let wide = |values: &[u32]| values.iter().map(|&value| value.into()).collect();
            Ok(Test {
                context: context.clone(),
                operator: Reference::new(context, small, &settings)?,
                model: definition::Model {
                    mean: wide(model.mean()),
                    deviation: wide(model.deviation()),
                },
                settings,
                most,
            })
        };
        self.run(size, make, &subject)
    }
}

/// A level of the model.
fn level(most: u32, x: usize, y: usize) -> u32 {
    let block = noise(8, 0, x / 8, y / 8) & 0xff;
    most / 4 + most / 2 * block / 255
}

/// A motion for the definition.
fn motion(warp: &Warp) -> definition::Motion {
    let [c, a, b, f, d, e] = warp.coefficients.map(i64::from);
    let rows = warp.nodes.iter().flat_map(|nodes| {
        let pairs = nodes.u.iter().zip(&nodes.v);
        let pairs: Vec<[i64; 2]> = pairs.map(|(&u, &v)| [u.into(), v.into()]).collect();
        pairs
            .chunks(nodes.columns)
            .map(<[_]>::to_vec)
            .collect::<Vec<_>>()
    });
    definition::Motion {
        affine: [[c, a, b], [f, d, e]],
        nodes: rows.collect(),
    }
}

struct Test {
    context: Arc<ClContext>,
    operator: Reference,
    model: definition::Model,
    settings: ReferenceSettings,
    most: u32,
}

impl Test {
    fn definition(&self, warp: &Warp) -> definition::Settings {
        let s = &self.settings;
        definition::Settings {
            threshold: s.threshold,
            deviation_factor: s.deviation_factor,
            edge_tolerance: s.edge_tolerance.into(),
            bright: s.polarity != Polarity::Dark,
            dark: s.polarity != Polarity::Bright,
            motion: motion(warp),
            opens: s.opening > 0,
            normalize: match s.normalize {
                NormalizeBy::None => definition::Normalize::None,
                NormalizeBy::Offset => definition::Normalize::Offset,
                NormalizeBy::Gain => definition::Normalize::Gain,
            },
            rois: Vec::new(),
            ignored: Vec::new(),
            bit_depth: s.bit_depth,
        }
    }
}

impl KnownAnswer for Test {
    /// The answer depends on the motion that the operator finds.
    type Answer = ();

    fn draw(&self, picture: &mut Picture, round: u64) {
        let spread = (self.settings.threshold.min(f64::from(self.most / 8)) * 2.0) as u32 + 4;
        picture.fill(|component, x, y| {
            let random = noise(round, component, x, y);
            let moved = (level(self.most, x, y) + random % spread).saturating_sub(spread / 2);
            moved.min(self.most)
        });
    }

    fn answer(&self, _picture: &Picture) {}

    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        _answer: &(),
    ) -> Result<Option<Wrong>, ClError> {
        let [width, height] = [
            picture.info.width() as usize,
            picture.info.height() as usize,
        ];
        let meter = Meter::new(false);
        let mask = Mask::new(&self.context, &meter, packed_stride(width) * height)?;
        let subject = Subject::whole(frame, height, &meter);
        let marked = self.operator.mark(subject, mask.target()?)?;
        let warp = self.operator.warp().cloned().unwrap_or_default();
        let wanted =
            definition::compare(picture.component(0), &self.model, &self.definition(&warp));
        // The frame is the model's, with noise.
        let shift = warp.shift([width, height]);
        if let Some(far) = shift.iter().find(|along| along.abs() > 1.0) {
            return Ok(Some(Wrong {
                place: "the shift in quarters of a pixel".into(),
                got: (4.0 * far.abs()) as u64,
                wanted: 0,
            }));
        }
        mask.compare(width, marked.pixels, (&wanted.packed, wanted.defect_pixels))
    }
}
