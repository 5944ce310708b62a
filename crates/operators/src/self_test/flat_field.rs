//! The self-test of the flat field.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    flat_field::{Correction, Reference, Shape},
    layout::FrameLayout,
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use clinspect_oracle::flat_field::Field;

use super::{KnownAnswer, Output, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{FlatField, FlatFieldMode, FlatFieldSettings, flat_field::highest_level};

/// The test frame is at least this long along each axis.
const LEAST: usize = 48;
/// One of this many samples is bad.
const BAD: u32 = 61;

impl Trial {
    /// Tests the flat field with these settings for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn flat_field(
        &self,
        layout: &FrameLayout,
        settings: &FlatFieldSettings,
    ) -> Result<(), ClError> {
        let size = reduced(layout, [LEAST; 2]);
        let subject = format!(
            "the flat field ({:?}; images {})",
            settings.mode, settings.image
        );
        let most = highest_level(layout.sample, settings.bit_depth)?;
        let is_line = settings.mode == FlatFieldMode::Line;
        let make = |context: &Arc<ClContext>, small: &FrameLayout| {
            let shape = Shape::of(small, is_line);
            let sample = |seed: u64, index: usize| noise(seed, 0, index, 0);
            let dark: Vec<u32> = (0..shape.len())
                .map(|index| sample(1, index) % (16 * most))
                .collect();
            let white: Vec<u32> = (0..shape.len())
                .map(|index| match sample(2, index) % BAD {
                    0 => dark[index],
                    _ => 128 * most + sample(3, index) % (100 * most),
                })
                .collect();
            let by_component = |values: &[u32]| -> Vec<Vec<u32>> {
                let of = |component| values.iter().skip(component).step_by(shape.components);
                (0..shape.components)
                    .map(|c| of(c).copied().collect())
                    .collect()
            };
            let field = Field {
                dark: by_component(&dark),
                white: by_component(&white),
                line: is_line,
                target: 0,
                min_range: 1,
                most,
            };
            let reference = |values| Reference { shape, values };
            let correction = Correction::new(
                Some(&reference(dark)),
                &reference(white),
                0,
                field.min_range,
            );
            let settings = FlatFieldSettings {
                correction: Some(Arc::new(correction.map_err(ClError::Refused)?)),
                ..settings.clone()
            };
            Ok(Test {
                context: context.clone(),
                operator: FlatField::new(context, small, &settings)?,
                field,
            })
        };
        self.run(size, make, &subject)
    }
}

struct Test {
    context: Arc<ClContext>,
    operator: FlatField,
    field: Field,
}

impl KnownAnswer for Test {
    /// Samples of each component.
    type Answer = Vec<Vec<f64>>;

    fn draw(&self, picture: &mut Picture, round: u64) {
        let most = self.field.most;
        picture.fill(|component, x, y| noise(round, component, x, y) & most);
    }

    fn answer(&self, picture: &Picture) -> Vec<Vec<f64>> {
        let of = |index| {
            let samples = picture.component(index);
            let corrected = if index < self.field.white.len() {
                self.field.correct(index, samples)
            } else {
                samples.values()
            };
            corrected.into_iter().map(f64::from).collect()
        };
        (0..picture.components.len()).map(of).collect()
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        answer: &Vec<Vec<f64>>,
    ) -> Result<Option<Wrong>, ClError> {
        let output = Output::new(&self.context, &picture.info)?;
        let meter = Meter::new(false);
        let done = self.operator.run(frame, &output.frame, &meter)?;
        done.wait("the flat field's test")?;
        output.first_wrong(picture, answer, 0.0)
    }
}
