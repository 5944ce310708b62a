//! Copies of a running camera's frames, for those who set it up. Nobody who looks holds up a frame.

use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crate::frame::Frame;

/// The newest frame that somebody asked for.
#[derive(Default)]
pub struct Tap {
    is_wanted: AtomicBool,
    newest: Mutex<(u64, Option<Arc<Frame>>)>,
    came: Condvar,
}

impl Tap {
    /// Takes a copy of the frame if one is wanted: one copy for each request.
    pub fn offer(&self, buffer: &gst::Buffer, info: &gst_video::VideoInfo) {
        if !self.is_wanted.swap(false, Relaxed) {
            return;
        }
        // A frame that cannot be read is told by the inspection.
        let Ok(frame) = Frame::copy_of(buffer, info) else {
            return;
        };
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = (newest.0 + 1, Some(Arc::new(frame)));
        drop(newest);
        self.came.notify_all();
    }

    /// The next frame, waited for up to `limit`; `None` if none comes.
    pub fn next(&self, limit: Duration) -> Option<Arc<Frame>> {
        let until = Instant::now() + limit;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = newest.0;
        self.is_wanted.store(true, Relaxed);
        while newest.0 == before {
            let left = until.checked_duration_since(Instant::now())?;
            let waited = self.came.wait_timeout(newest, left);
            newest = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        newest.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_copied_only_when_somebody_waits_for_one() {
        gst::init().expect("GStreamer");
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 4, 2);
        let info = info.build().expect("a size");
        let frame = gst::Buffer::from_mut_slice(vec![7_u8; info.size()]);
        let tap = Arc::new(Tap::default());
        tap.offer(&frame, &info);
        assert!(
            tap.next(Duration::from_millis(20)).is_none(),
            "an old frame is no next one"
        );
        // The request that gave up still stands, and one frame is taken for it.
        tap.offer(&frame, &info);
        tap.offer(&frame, &info);
        assert_eq!(tap.newest.lock().expect("a lock").0, 1);
        let waiting = {
            let tap = tap.clone();
            std::thread::spawn(move || tap.next(Duration::from_secs(10)))
        };
        while !tap.is_wanted.load(Relaxed) {
            std::thread::yield_now();
        }
        tap.offer(&frame, &info);
        assert!(waiting.join().expect("a thread").is_some());
    }
}
