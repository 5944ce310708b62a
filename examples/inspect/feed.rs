//! A source that this program feeds itself: appsrc, at a given rate or as fast as possible.

use std::sync::{Mutex, PoisonError};

use gst::prelude::*;

use gstclinspect::downstream_pool;

use crate::{failure::Failure, source::add_pad};

/// Frame rate of the timestamps if frames are sent as fast as possible, frames per second.
const UNPACED_FPS: f64 = 30.0;

/// Makes frames, one after the other.
pub trait Feed: Send + 'static {
    /// Caps of all frames, if known before the first frame.
    fn caps(&self) -> Option<gst::Caps>;

    /// Frame `index` with its caps; `None` at the end. A frame in a buffer of `pool` reaches the
    /// device without a copy.
    ///
    /// # Errors
    /// A sentence for the user.
    fn next(
        &mut self,
        index: u64,
        pool: Option<&gst::BufferPool>,
    ) -> Result<Option<(gst::Buffer, gst::Caps)>, String>;
}

/// A bin that sends the frames of `feed`, `fps` frames per second or, at 0, as fast as possible.
/// Error messages begin with `name`.
///
/// # Errors
/// An element is not installed.
pub fn bin(name: &str, feed: impl Feed, fps: f64) -> Result<gst::Bin, Failure> {
    let feeder = Mutex::new(Feeder {
        feed,
        fps,
        sent: 0,
        start: gst::ClockTime::ZERO,
    });
    // need-data comes when the queue is empty: one frame at a time.
    let callbacks = gst_app::AppSrcCallbacks::builder()
        .need_data(move |appsrc, _| {
            let mut feeder = feeder.lock().unwrap_or_else(PoisonError::into_inner);
            feeder.push_next(appsrc);
        })
        .build();
    let appsrc = gst_app::AppSrc::builder()
        .name(name)
        .format(gst::Format::Time)
        .is_live(fps > 0.0)
        .callbacks(callbacks)
        .build();
    let bin = gst::Bin::new();
    bin.add(&appsrc)?;
    if fps > 0.0 {
        // Unlike clocksync, identity passes the allocation query, so appsrc gets our pool.
        let pace = gst::ElementFactory::make("identity")
            .property("sync", true)
            .build()?;
        bin.add(&pace)?;
        appsrc.link(&pace)?;
        add_pad(&bin, &pace)?;
    } else {
        add_pad(&bin, appsrc.upcast_ref())?;
    }
    Ok(bin)
}

struct Feeder<F> {
    feed: F,
    fps: f64,
    sent: u64,
    /// Running time of the first frame.
    start: gst::ClockTime,
}

impl<F: Feed> Feeder<F> {
    fn push_next(&mut self, appsrc: &gst_app::AppSrc) {
        let pool = self
            .feed
            .caps()
            .and_then(|caps| downstream_pool(appsrc, &caps));
        match self.feed.next(self.sent, pool.as_ref()) {
            Ok(Some((mut buffer, caps))) => {
                if self.sent == 0 && self.fps > 0.0 {
                    // The start took a while; frames of that time are not sent in a burst.
                    self.start = appsrc.current_running_time().unwrap_or_default();
                }
                let pts = self.time(self.sent);
                let fields = buffer.make_mut();
                fields.set_pts(pts);
                fields.set_dts(None);
                fields.set_duration(self.time(self.sent + 1) - pts);
                fields.set_offset(self.sent);
                self.sent += 1;
                let sample = gst::Sample::builder().buffer(&buffer).caps(&caps).build();
                // Only the queue holds the buffer, so nothing needs to copy it.
                drop(buffer);
                // Refused only while the pipeline stops; the frame is not needed then.
                let _ = appsrc.push_sample(&sample);
            }
            Ok(None) => {
                let _ = appsrc.end_of_stream();
            }
            Err(why) => {
                gst::element_error!(appsrc, gst::ResourceError::Read, ("{}", why));
            }
        }
    }

    fn time(&self, index: u64) -> gst::ClockTime {
        let fps = if self.fps > 0.0 {
            self.fps
        } else {
            UNPACED_FPS
        };
        self.start + gst::ClockTime::from_nseconds((index as f64 * 1e9 / fps) as u64)
    }
}
