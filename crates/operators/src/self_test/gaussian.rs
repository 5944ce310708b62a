//! The self-test of the Gaussian.

use std::sync::Arc;

use clinspect_core::{ClError, layout::FrameLayout};
use clinspect_opencl::{Meter, frame::ClFrame};
use clinspect_oracle::gaussian::{gaussian_f64, gaussian_integer};

use super::{KnownAnswer, Output, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{Arithmetic, Gaussian, GaussianSettings};

impl Trial {
    /// Tests the Gaussian with these settings for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn gaussian(
        &self,
        layout: &FrameLayout,
        settings: &GaussianSettings,
        operator: &Gaussian,
    ) -> Result<(), ClError> {
        let taps = settings.kernel_size;
        let size = reduced(layout, [2 * taps, taps + 1]);
        let kernels: Vec<&str> = operator.kernels().collect();
        let kernels = kernels.join(", ");
        let is_float = settings.arithmetic == Arithmetic::Float;
        let subject = format!(
            "the Gaussian ({kernels}; {taps} taps; float {is_float}; images {})",
            settings.image
        );
        let make = |context: &Arc<_>, small: &FrameLayout| {
            Ok(Test {
                operator: Gaussian::for_trial(context, small, settings, layout)?,
                settings: *settings,
                most: (1 << layout.sample.bits()) - 1,
            })
        };
        self.run(size, make, &subject)
    }
}

struct Test {
    operator: Gaussian,
    settings: GaussianSettings,
    /// The highest level.
    most: u32,
}

impl KnownAnswer for Test {
    /// Samples of each component.
    type Answer = Vec<Vec<f64>>;

    fn draw(&self, picture: &mut Picture, round: u64) {
        picture.fill(|component, x, y| noise(round, component, x, y) & self.most);
    }

    fn answer(&self, picture: &Picture) -> Vec<Vec<f64>> {
        let (taps, sigma) = (self.settings.kernel_size, self.settings.sigma_px);
        let of = |index| {
            let samples = picture.component(index);
            match self.settings.arithmetic {
                Arithmetic::Float => gaussian_f64(samples, taps, sigma),
                Arithmetic::Auto | Arithmetic::Integer => {
                    let exact = gaussian_integer(samples, taps, sigma);
                    exact.into_iter().map(f64::from).collect()
                }
            }
        };
        (0..picture.components.len()).map(of).collect()
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        picture: &Picture,
        answer: &Vec<Vec<f64>>,
    ) -> Result<Option<Wrong>, ClError> {
        // `arithmetic=float` is within 1 of the exact value (docs/semantics.md).
        let most = match self.settings.arithmetic {
            Arithmetic::Float => 1.0,
            Arithmetic::Auto | Arithmetic::Integer => 0.0,
        };
        let output = Output::new(self.operator.context(), &picture.info)?;
        let meter = Meter::new(false);
        let done = self.operator.run(frame, &output.frame, &meter)?;
        done.wait("the Gaussian's test")?;
        output.first_wrong(picture, answer, most)
    }
}
