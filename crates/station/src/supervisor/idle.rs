//! A camera that sends nothing while the machine wants nothing.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use crate::{
    machine::{Outcome, Trigger},
    pipeline::{Pipeline, Stopped},
    state::{Camera, Trouble},
};

/// A camera that the station triggers: it may be silent as long as nobody wants a frame.
#[derive(Default)]
pub(super) struct Idle {
    frames: u64,
    /// Numbers without a frame, when the last frame came.
    lost: u64,
    /// When the camera answered last.
    answered: Option<Instant>,
}

impl Idle {
    /// Whether triggers got no frame for this long. A camera from which nobody wants a frame is asked whether it is there.
    ///
    /// # Errors
    /// It does not answer.
    pub fn is_broken(
        &mut self,
        pipeline: &Pipeline,
        camera: &Camera,
        limit: Duration,
    ) -> Result<bool, Stopped> {
        let frames = pipeline.watched().frames.load(Relaxed);
        let lost = camera.machine.outcomes()[Outcome::Lost as usize];
        if self.answered.is_none() || frames != self.frames {
            (self.frames, self.lost) = (frames, lost);
            self.answered = Some(Instant::now());
        }
        let is_asked = camera.machine.settings().trigger == Trigger::Software;
        if is_asked && pipeline.watched().silence() > limit && lost != self.lost {
            return Ok(true);
        }
        let is_due = self.answered.is_none_or(|at| at.elapsed() > limit);
        if let Some(genicam) = pipeline.genicam().filter(|_| is_due) {
            let answer = genicam.text("TriggerMode");
            answer.map_err(|why| (Trouble::CameraLost, why))?;
            self.answered = Some(Instant::now());
        }
        Ok(false)
    }
}
