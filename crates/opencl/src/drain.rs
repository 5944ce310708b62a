//! The wait for an element's last commands, at the end of a stream and at a stop.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{context::ClContext, event::Status, meter::Meter};
use clinspect_core::ClError;

/// A device that makes progress for others is waited for this many times longer.
const PATIENCE: u32 = 3;

impl ClContext {
    /// Waits for the last command that was submitted with `meter`, and takes its last times. A device
    /// on which no command of any element ends within `limit` is given up. One that is busy is
    /// waited for a few times longer, and is not given up.
    ///
    /// # Errors
    /// The failure of the command; [`ClError::Unavailable`] after the limit, at once where the
    /// device was given up before: elements of one pipeline stop one after the other.
    pub fn finish_within(
        self: &Arc<Self>,
        limit: Duration,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        let late = |why: &str| {
            ClError::Unavailable(format!(
                "{} did not finish the last frames within {limit:?}: {why}",
                self.device_name()
            ))
        };
        let stalled = || late("the device or its driver hangs; stop and start the pipeline");
        let Some(last) = meter.last_command() else {
            return Ok(());
        };
        if self.is_stalled() {
            return Err(stalled());
        }
        let begun = Instant::now();
        let mut seen = (0, begun);
        let mut no_progress = false;
        let mut asked = begun;
        let ended = last.poll(|| {
            asked = Instant::now();
            if asked - begun >= PATIENCE * limit {
                return true;
            }
            let progress = self.progress();
            if progress != seen.0 {
                seen = (progress, Instant::now());
            }
            no_progress = seen.1.elapsed() >= limit;
            no_progress
        });
        let ended =
            ended.map_err(|(call, code)| self.failed(call, code, "the last frames' commands"));
        match ended? {
            Status::Complete => {}
            Status::Failed(code) => return Err(self.failed("a command", code, "the last frames")),
            Status::Pending if no_progress => {
                self.condemn();
                return Err(stalled());
            }
            Status::Pending => {
                return Err(late("it is busy; lower the load, or use another device"));
            }
        }
        if asked.elapsed() >= limit {
            // A call that only asks has stalled: the next element need not wait for another.
            self.condemn();
        }
        self.note_progress();
        meter.harvest();
        Ok(())
    }
}
