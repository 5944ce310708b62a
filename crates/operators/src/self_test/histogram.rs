//! The self-test of the histogram.

use std::sync::Arc;

use clinspect_core::{ClError, layout::FrameLayout, region::Rect};
use clinspect_opencl::{Meter, frame::ClFrame};
use clinspect_oracle::histogram::{chroma_region, histogram};

use super::{KnownAnswer, Picture, Trial, Wrong, picture::noise, reduced};
use crate::{Histogram, HistogramSettings};

/// Pixels along each axis that are counted at least.
const LEAST: usize = 64;

impl Trial {
    /// Tests the histogram with these settings for frames of `layout`.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] for a wrong result; the failing call.
    pub fn histogram(
        &self,
        layout: &FrameLayout,
        settings: &HistogramSettings,
        operator: &Histogram,
    ) -> Result<(), ClError> {
        let size = reduced(layout, [LEAST; 2]);
        // Whole rows and parts of rows are counted by different kernels.
        let is_whole = settings.region.width() == layout.width;
        let subject = format!(
            "the histogram ({:?}; {} bins of {} bits; whole rows {is_whole}; images {})",
            operator.variant(),
            settings.bins,
            operator.bit_depth(),
            settings.image
        );
        let make = |context: &Arc<_>, small: &FrameLayout| {
            let width = if is_whole || size[0] == 1 {
                size[0]
            } else {
                size[0] - 1
            };
            let settings = HistogramSettings {
                region: Rect::new(0, 0, width, size[1]),
                ..*settings
            };
            Ok(Test {
                operator: Histogram::for_trial(context, small, &settings, operator.variant())?,
                region: [0, 0, width, size[1]],
                layout: small.clone(),
            })
        };
        self.run(size, make, &subject)
    }
}

struct Test {
    operator: Histogram,
    region: [usize; 4],
    layout: FrameLayout,
}

impl KnownAnswer for Test {
    /// The bins of each component, one after the other.
    type Answer = Vec<u32>;

    fn draw(&self, picture: &mut Picture, round: u64) {
        let most = (1 << self.operator.bit_depth()) - 1;
        // Runs of one level count in other ways than noise does.
        picture.fill(|component, x, y| match y % 4 {
            0 => most / 3,
            _ => noise(round, component, x, y) & most,
        });
    }

    fn answer(&self, picture: &Picture) -> Vec<u32> {
        let components = self.layout.components.iter().enumerate();
        components
            .flat_map(|(index, c)| {
                let region = chroma_region(self.region, c.w_sub, c.h_sub, c.width, c.height);
                let (depth, bins) = (self.operator.bit_depth(), self.operator.bins());
                histogram(picture.component(index), region, depth, bins)
            })
            .collect()
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        _picture: &Picture,
        answer: &Vec<u32>,
    ) -> Result<Option<Wrong>, ClError> {
        let mut bins = Vec::new();
        self.operator.run(frame, &Meter::new(false), &mut bins)?;
        let at = bins
            .iter()
            .zip(answer)
            .position(|(got, wanted)| got != wanted);
        Ok(at.map(|at| Wrong {
            place: format!(
                "bin {} of component {}",
                at % self.operator.bins(),
                at / self.operator.bins()
            ),
            got: bins[at].into(),
            wanted: answer[at].into(),
        }))
    }
}
