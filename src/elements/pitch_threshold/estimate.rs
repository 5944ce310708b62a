//! When and from what the pitch is estimated.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    layout::Layout,
    pitch::Axis,
    pitch_estimate::{Change, Lines, PitchEstimator, PitchTracker},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::Probe;

/// Frames that are all looked at while a pitch is unknown: a live line must not wait.
const EAGER_FRAMES: u64 = 16;
/// After them one frame of so many is looked at, since an estimate takes milliseconds; where it
/// disagrees with the pitch that is held, the next frames are looked at until that is settled.
const LAZY_FRAMES: u64 = 30;
/// Frames without a pattern before that is told.
const PATIENCE: u64 = 4;

/// The pitch along one axis.
struct Estimate {
    axis: Axis,
    probe: Probe,
    estimator: PitchEstimator,
    tracker: PitchTracker,
    looked: u64,
    told_missing: bool,
}

/// What a look at a frame has changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum News {
    /// The pitch along an axis became known, or moved.
    Pitch,
    /// No repeating pattern is found along the axis.
    Missing(Axis),
}

/// The pitches to estimate.
pub(super) struct Estimation {
    axes: Vec<Estimate>,
    frames: u64,
}

impl Estimation {
    /// Prepares to estimate along x and along y, where `wanted` says so.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &Layout,
        wanted: [bool; 2],
    ) -> Result<Self, ClError> {
        let axes = [Axis::X, Axis::Y]
            .into_iter()
            .zip(wanted)
            .filter(|(_, wanted)| *wanted)
            .map(|(axis, _)| {
                Ok(Estimate {
                    axis,
                    probe: Probe::new(context, layout, axis)?,
                    estimator: PitchEstimator::default(),
                    tracker: PitchTracker::default(),
                    looked: 0,
                    told_missing: false,
                })
            })
            .collect::<Result<_, ClError>>()?;
        Ok(Self { axes, frames: 0 })
    }

    /// The pitches held along x and along y, px.
    pub fn pitches(&self) -> [Option<f64>; 2] {
        [Axis::X, Axis::Y].map(|axis| {
            let estimate = self.axes.iter().find(|estimate| estimate.axis == axis)?;
            estimate.tracker.pitch()
        })
    }

    /// Whether this frame is one to look at; asked once a frame.
    pub fn is_due(&mut self) -> bool {
        let frame = self.frames;
        self.frames += 1;
        self.axes.iter().any(|estimate| {
            let eager = match estimate.tracker.pitch() {
                Some(_) => !estimate.tracker.is_settled(),
                None => frame < EAGER_FRAMES,
            };
            eager || frame.is_multiple_of(LAZY_FRAMES)
        })
    }

    /// Looks at a frame.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn look(&mut self, frame: &ClFrame, meter: &Meter) -> Result<Vec<News>, ClError> {
        let mut news = Vec::new();
        for estimate in &mut self.axes {
            let length = estimate.probe.length();
            let samples = estimate.probe.run(frame, meter)?;
            let found = estimate.estimator.estimate(&Lines { samples, length });
            estimate.looked += 1;
            match estimate.tracker.update(found) {
                Change::None => {}
                Change::Found(_) | Change::Moved { .. } => {
                    estimate.told_missing = false;
                    news.push(News::Pitch);
                }
                Change::Lost => {
                    estimate.told_missing = true;
                    news.push(News::Pitch);
                    news.push(News::Missing(estimate.axis));
                }
            }
            let missing = estimate.tracker.pitch().is_none();
            if missing && !estimate.told_missing && estimate.looked >= PATIENCE {
                estimate.told_missing = true;
                news.push(News::Missing(estimate.axis));
            }
        }
        Ok(news)
    }
}
