//! A camera that sends nothing while the machine wants nothing.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use machine::answer::Outcome;
use plan::Trigger;

use crate::{
    pipeline::Pipeline,
    state::{Camera, Trouble},
    stopped::StopReason,
};

/// So many frames without an edge are told.
const STRAYS: u64 = 10;

/// A camera that the machine triggers: it may be silent as long as nobody wants a frame.
#[derive(Default)]
pub(super) struct Idle {
    frames: u64,
    /// Numbers without a frame, when the last frame came.
    lost: u64,
    /// When the first of several triggers in a row got no frame.
    losing: Option<Instant>,
    /// When the camera answered last.
    answered: Option<Instant>,
    edges: u64,
    /// Frames when the newest edge came.
    frames_at_edge: u64,
    /// People know that frames come without edges.
    has_told_strays: bool,
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
    ) -> Result<bool, StopReason> {
        let frames = pipeline.watched().frames.load(Relaxed);
        let lost = camera.machine.outcomes()[Outcome::Lost as usize];
        if self.answered.is_none() || frames != self.frames {
            (self.frames, self.lost, self.losing) = (frames, lost, None);
            self.answered = Some(Instant::now());
        }
        let trigger = camera.machine.settings().trigger;
        let is_asked = matches!(trigger, Trigger::Software | Trigger::Input);
        if lost > self.lost + 1 {
            self.losing.get_or_insert_with(Instant::now);
        }
        let is_losing = self.losing.is_some_and(|since| since.elapsed() > limit);
        if is_asked && is_losing {
            return Ok(true);
        }
        if trigger == Trigger::Input {
            self.tell_strays(camera, frames);
        }
        let is_due = self.answered.is_none_or(|at| at.elapsed() > limit);
        if let Some(genicam) = pipeline.genicam().filter(|_| is_due) {
            let answer = genicam.text("TriggerMode");
            answer.map_err(|why| (Trouble::CameraLost, why))?;
            self.answered = Some(Instant::now());
        }
        Ok(false)
    }

    /// Tells once that frames come and no edge does.
    fn tell_strays(&mut self, camera: &Camera, frames: u64) {
        let edges = camera.machine.edges();
        if edges != self.edges || frames < self.frames_at_edge {
            (self.edges, self.frames_at_edge) = (edges, frames);
            self.has_told_strays = false;
        } else if frames - self.frames_at_edge >= STRAYS && !self.has_told_strays {
            self.has_told_strays = true;
            camera.alarm(format!(
                "the last {STRAYS} frames came without an edge at the input, so their pieces have no outcome; look at the wire \
                 of the input, and whether the camera runs freely"
            ));
        }
    }
}
