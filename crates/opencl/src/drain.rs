//! The wait for an element's last commands, at the end of a stream and at a stop.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{context::ClContext, event::Status, meter::Meter};
use clinspect_core::ClError;

/// A device that makes progress for other elements gets this many times the limit.
const PATIENCE: u32 = 3;

impl ClContext {
    /// Waits for the last command that was submitted with `meter`, and takes its times. If no
    /// command of any element ends within `limit`, the device is marked as stalled. A device that
    /// is only busy gets a few times the limit and is not marked.
    ///
    /// # Errors
    /// The failure of the command; [`ClError::Unavailable`] after the limit, or at once if the
    /// device is marked as stalled, since the elements of one pipeline stop one after the other.
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
            // A status query took that long, so the driver stalls: the next element must not wait
            // for another query.
            self.condemn();
        }
        self.note_progress();
        meter.harvest();
        Ok(())
    }
}
