//! A source that this program feeds itself: appsrc, at a given rate or as fast as possible.

use std::sync::{Mutex, PoisonError};

use gst::prelude::*;
use gst_video::prelude::*;

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

/// A buffer of `pool`, or a new one.
///
/// # Errors
/// There is no memory.
pub fn buffer(
    info: &gst_video::VideoInfo,
    pool: Option<&gst::BufferPool>,
) -> Result<gst::Buffer, String> {
    pool.and_then(|pool| pool.acquire_buffer(None).ok())
        .map_or_else(
            || gst::Buffer::with_size(info.size()).map_err(|error| error.to_string()),
            Ok,
        )
}

/// Writes samples of so many rows, without padding, into the buffer, at the buffer's stride.
///
/// # Errors
/// The buffer cannot be written, or is too small.
pub fn fill(
    buffer: gst::Buffer,
    info: &gst_video::VideoInfo,
    (samples, height): (&[u8], usize),
) -> Result<gst::Buffer, String> {
    let cannot = || "cannot write the frame into its buffer".to_owned();
    let mut video =
        gst_video::VideoFrame::from_buffer_writable(buffer, info).map_err(|_| cannot())?;
    let stride = video
        .plane_stride()
        .first()
        .and_then(|&stride| usize::try_from(stride).ok())
        .ok_or_else(cannot)?;
    let row_len = samples.len() / height.max(1);
    let rows = video.plane_data_mut(0).map_err(|_| cannot())?;
    for (to, from) in rows
        .chunks_mut(stride.max(1))
        .zip(samples.chunks(row_len.max(1)))
    {
        to.get_mut(..row_len)
            .ok_or_else(cannot)?
            .copy_from_slice(from);
    }
    Ok(video.into_buffer())
}
