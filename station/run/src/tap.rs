//! Copies of a running camera's frames, for those who set it up. Nobody who looks holds up a frame.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use machine::locks::Monitor;

use crate::frame::Frame;

/// The newest frame that somebody asked for.
#[derive(Default)]
pub struct Tap {
    is_wanted: AtomicBool,
    newest: Monitor<(u64, Option<Arc<Frame>>)>,
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
        let mut newest = self.newest.lock();
        *newest = (newest.0 + 1, Some(Arc::new(frame)));
        drop(newest);
        self.newest.notify();
    }

    /// The next frame, waited for up to `limit`; `None` if none comes.
    pub fn next(&self, limit: Duration) -> Option<Arc<Frame>> {
        let until = Instant::now() + limit;
        let newest = self.newest.lock();
        let before = newest.0;
        self.is_wanted.store(true, Relaxed);
        let newest = self.newest.wait_while(newest, until, |of| of.0 == before);
        (newest.0 != before).then(|| newest.1.clone())?
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
        assert_eq!(tap.newest.lock().0, 1);
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
