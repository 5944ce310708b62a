//! A device as one element uses it.

use std::{
    ffi::c_void,
    ops::{Deref, RangeInclusive},
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use opencl3::types::cl_event;

use super::{
    device_context::DeviceContext,
    landing::Landing,
    meter::Meter,
    queue::{Event, InOrderQueue, Status},
};
use clinspect_core::ClError;

/// The host polls for the end of kernels that process this many bytes. For shorter kernels the yields disturb PoCL's
/// threads; for longer ones the time to wake the host matters little (docs/adr/0018).
const POLLED_BYTES: RangeInclusive<usize> = 256 << 10..=8 << 20;

/// If the device makes progress for other elements, an element waits this many times the limit.
const PATIENCE: u32 = 3;

/// A device in use by one element: what all elements on the device share, and the element's queues.
///
/// On a device with memory of its own each element has two in-order queues, so that a frame crosses the bus while the
/// kernels of the frame before run, and no element waits for the frames of another camera (docs/adr/0025). All
/// elements on a device that shares the host's memory have one queue together: its order divides the device fairly.
#[derive(Debug)]
pub struct ClContext {
    // Dropped before the context.
    /// Host memory for results, which no read uses now.
    landings: Mutex<Vec<Landing>>,
    commands: Arc<InOrderQueue>,
    uploads: Arc<InOrderQueue>,
    device: Arc<DeviceContext>,
}

impl Deref for ClContext {
    type Target = DeviceContext;

    fn deref(&self) -> &DeviceContext {
        &self.device
    }
}

impl ClContext {
    /// `profiled`: the device takes the times of the element's commands.
    ///
    /// # Errors
    /// The error of `clCreateCommandQueue`.
    pub(super) fn new(device: Arc<DeviceContext>, profiled: bool) -> Result<Self, ClError> {
        let (commands, uploads) = match device.shared_queue() {
            Some(queue) => (queue.clone(), queue.clone()),
            None => (device.new_queue(profiled)?, device.new_queue(profiled)?),
        };
        Ok(Self {
            landings: Mutex::default(),
            commands,
            uploads,
            device,
        })
    }

    /// Pinned host memory for a result of `len` bytes; `None` if a read may wait in its call.
    ///
    /// # Errors
    /// The device is out of memory.
    pub(super) fn landing(&self, len: usize) -> Result<Option<Landing>, ClError> {
        if !self.commands.takes_turns() {
            return Ok(None);
        }
        let mut landings = self.landings();
        let fitting = landings.iter().position(|landing| landing.holds(len));
        if let Some(index) = fitting {
            return Ok(Some(landings.swap_remove(index)));
        }
        drop(landings);
        Landing::new(self, len).map(Some)
    }

    /// Keeps memory for the next result.
    pub(super) fn put_back(&self, landing: Landing) {
        self.landings().push(landing);
    }

    fn landings(&self) -> MutexGuard<'_, Vec<Landing>> {
        self.landings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether both use the same memory: they are of the same device, and none was opened after a failure.
    pub fn shares_memory_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.device, &other.device)
    }

    /// Whether a memory of another element is pinned for this device.
    pub fn has_pinned(&self, memory: &gst::MemoryRef) -> bool {
        self.pins().has(memory)
    }

    /// Pins a memory of another element; see [`Pins::pin`].
    pub(super) fn pin(&self, memory: &gst::MemoryRef, bytes: &[u8], importer: u64) -> bool {
        let create = |flags, start: *mut c_void, len| self.create_buffer(flags, len, start);
        self.pins().pin(memory, bytes, importer, create)
    }

    /// The queue of kernels and of maps for reading.
    pub(super) fn commands(&self) -> &Arc<InOrderQueue> {
        &self.commands
    }

    /// The queue in which the host maps memory for writing and unmaps it.
    pub(super) fn uploads(&self) -> &Arc<InOrderQueue> {
        &self.uploads
    }

    /// The wait list of a command for `queue`. Flushes events of other queues: without a flush the wait may never end
    /// (OpenCL 1.2, 5.13). Events of `queue` itself are in the list so that their failure reaches the command.
    pub(super) fn wait_list<'a>(
        &self,
        queue: &Arc<InOrderQueue>,
        events: impl Iterator<Item = &'a Arc<Event>>,
    ) -> Result<Vec<cl_event>, ClError> {
        let fails_whole = self.info().fails_whole();
        events
            .filter(|event| !(fails_whole && event.is_in(queue)))
            .map(|event| {
                if !event.is_in(queue) {
                    event.flush().map_err(|code| self.flush_failed(code))?;
                }
                Ok(event.raw())
            })
            .collect()
    }

    /// Hands enqueued commands to the device without waiting for them.
    pub(super) fn flush(&self, queue: &InOrderQueue) -> Result<(), ClError> {
        queue.flush().map_err(|code| self.flush_failed(code))
    }

    fn flush_failed(&self, code: i32) -> ClError {
        self.failed("clFlush", code, self.device_name())
    }

    /// Waits for a command, without a limit.
    ///
    /// # Errors
    /// The command has failed, or waiting for it has.
    pub(super) fn wait(&self, event: &Event, subject: &str) -> Result<(), ClError> {
        event
            .wait()
            .map_err(|code| self.failed("clWaitForEvents", code, subject))?;
        self.count_progress();
        Ok(())
    }

    /// Waits for the end of the most recent command, and thus of all before it, with or without a failure.
    ///
    /// # Errors
    /// The wait has failed.
    pub(super) fn wait_for_last(&self) -> Result<(), ClError> {
        let last = self.latest();
        last.map_or(Ok(()), |last| self.wait_for_end(&last))
    }

    /// Waits for a command that reads host memory, unless the command is known to have ended, with
    /// or without a failure.
    ///
    /// # Errors
    /// The wait has failed.
    pub(crate) fn wait_for_end(&self, event: &Event) -> Result<(), ClError> {
        match event.status() {
            Ok(Status::Complete | Status::Failed(_)) => Ok(()),
            _ => self.wait(event, "a frame"),
        }
    }

    /// Waits for kernels that process `bytes` bytes, the last of which is `event`, without a limit.
    ///
    /// # Errors
    /// The command has failed, or waiting for it has.
    pub(super) fn wait_for_kernels(
        &self,
        event: &Event,
        bytes: usize,
        subject: &str,
    ) -> Result<(), ClError> {
        if self.info().has_pinned_workers() && is_polled(bytes) {
            event.yield_until_done();
        }
        self.wait(event, subject)
    }

    /// Waits for the last command that was submitted with `meter`, and takes its times. If no
    /// command of any element ends within `limit`, the device is marked as stalled. If the device is only
    /// busy, the wait lasts up to a few times the limit, and the device is not marked.
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
            // The last status query took longer than `limit`, so the driver stalls: the next element must not wait for
            // another query.
            self.condemn();
        }
        self.count_progress();
        meter.harvest();
        Ok(())
    }

    /// Waits until the device has executed every enqueued command. For measurements; elements wait
    /// for their own commands with [`Self::finish_within`].
    pub fn finish(&self) -> Result<(), ClError> {
        for queue in [&self.uploads, &self.commands] {
            queue
                .finish()
                .map_err(|code| self.failed("clFinish", code, self.device_name()))?;
        }
        Ok(())
    }
}

/// Whether the host polls for the end of kernels that process this many bytes.
fn is_polled(bytes: usize) -> bool {
    POLLED_BYTES.contains(&bytes)
}

/// An empty list must be passed as a null pointer.
pub(super) fn first_of(events: &[cl_event]) -> *const cl_event {
    if events.is_empty() {
        ptr::null()
    } else {
        events.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::is_polled;

    #[test]
    fn is_polled_holds_for_frames_of_middle_size() {
        let sizes = [
            (320, 240),
            (640, 480),
            (1920, 1080),
            (3840, 2160),
            (4096, 3072),
        ];
        let polled = sizes.map(|(width, height)| is_polled(width * height));
        assert_eq!(polled, [false, true, true, true, false]);
    }
}
