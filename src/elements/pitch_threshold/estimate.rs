//! When and from what the pitch is estimated.

use crate::elements::told::Told;
use clinspect_core::ClError;
use clinspect_core::{
    pitch::Axis,
    pitch_estimate::{Lines, PitchChange, PitchEstimator, PitchTracker},
};
use clinspect_opencl::Meter;
use clinspect_opencl::frame::ClFrame;
use clinspect_operators::Probe;

/// Frames that are all looked at while a pitch is unknown: a live line must not wait.
const EAGER_FRAMES: u64 = 16;
/// After them one frame of so many is looked at, since an estimate takes milliseconds; where it
/// disagrees with the pitch that is held, the next frames are looked at until that is settled.
const LAZY_FRAMES: u64 = 30;
/// Frames without a pattern before that is told.
const PATIENCE: u64 = 4;

/// The pitch along one axis.
#[derive(Default)]
struct Estimate {
    estimator: PitchEstimator,
    tracker: PitchTracker,
    looked: u64,
    missing: Told<()>,
}

/// What a look at a frame has changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum News {
    /// The pitch along an axis became known, moved, or is lost.
    Pitch,
    /// No repeating pattern is found along the axis.
    Missing(Axis),
}

/// The pitches along x and y, where they are estimated.
#[derive(Default)]
pub struct Estimation {
    axes: [Option<Estimate>; 2],
    frames: u64,
}

impl Estimation {
    /// Estimates along x and along y where `wanted` says so; whether that is a change.
    pub fn follow(&mut self, wanted: [bool; 2]) -> bool {
        let mut changed = false;
        for (axis, wanted) in self.axes.iter_mut().zip(wanted) {
            if axis.is_some() != wanted {
                *axis = wanted.then(Estimate::default);
                self.frames = 0;
                changed = true;
            }
        }
        changed
    }

    /// The pitches held along x and along y, px.
    pub fn pitches(&self) -> [Option<f64>; 2] {
        [0, 1].map(|axis| self.axes[axis].as_ref()?.tracker.pitch())
    }

    /// Whether this frame is one to look at; asked once a frame.
    pub fn is_due(&mut self) -> bool {
        let frame = self.frames;
        self.frames += 1;
        self.axes.iter().flatten().any(|estimate| {
            let eager = match estimate.tracker.pitch() {
                Some(_) => !estimate.tracker.is_settled(),
                None => frame < EAGER_FRAMES,
            };
            eager || frame.is_multiple_of(LAZY_FRAMES)
        })
    }

    /// Looks at a frame with the probes along x and y.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn look(
        &mut self,
        probes: &mut [Option<Probe>; 2],
        frame: &ClFrame,
        meter: &Meter,
    ) -> Result<Vec<News>, ClError> {
        let mut news = Vec::new();
        for (axis, (estimate, probe)) in [Axis::X, Axis::Y]
            .into_iter()
            .zip(self.axes.iter_mut().zip(probes))
        {
            let (Some(estimate), Some(probe)) = (estimate, probe) else {
                continue;
            };
            let length = probe.length();
            let samples = probe.run(frame, meter)?;
            let found = estimate.estimator.estimate(&Lines { samples, length });
            estimate.looked += 1;
            let change = estimate.tracker.update(found);
            if change != PitchChange::None {
                news.push(News::Pitch);
            }
            if estimate.tracker.pitch().is_some() {
                estimate.missing.clear();
            } else if (change == PitchChange::Lost || estimate.looked >= PATIENCE)
                && estimate.missing.is_news(())
            {
                news.push(News::Missing(axis));
            }
        }
        Ok(news)
    }
}
