//! What an element reports of frames: numbers, counts and messages.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use gst::{prelude::*, subclass::prelude::*};
use gst_base::prelude::*;

use super::ClBaseFilter;
use crate::elements::lock;
use clinspect_opencl::{FrameTimeline, Meter};
use clinspect_results::FrameTimes;

/// Counts since the last start. They can still be read after a stop.
#[derive(Default)]
pub(super) struct Counts {
    meter: Mutex<Arc<Meter>>,
    frames: AtomicU64,
    /// Frames that their source flagged as corrupted.
    corrupted: AtomicU64,
    /// The subclass's own counts.
    own: Mutex<Vec<(&'static str, u64)>>,
    /// Listed defects by class.
    classes: Mutex<Vec<(String, u64)>>,
}

impl Counts {
    /// Begins at zero; `names` are the subclass's own counts.
    pub fn start(&self, meter: &Arc<Meter>, names: &[&'static str]) {
        *lock(&self.meter) = meter.clone();
        *lock(&self.own) = names.iter().map(|&name| (name, 0)).collect();
        lock(&self.classes).clear();
        self.frames.store(0, Ordering::Relaxed);
        self.corrupted.store(0, Ordering::Relaxed);
    }

    /// The number of a frame: its offset if it has one, otherwise a count since the start.
    pub fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        let count = self.frames.fetch_add(1, Ordering::Relaxed);
        match buffer.offset() {
            gst::ffi::GST_BUFFER_OFFSET_NONE => count,
            offset => offset,
        }
    }

    /// Counts a frame that its source flagged as corrupted.
    pub fn count_corrupted(&self) {
        self.corrupted.fetch_add(1, Ordering::Relaxed);
    }

    /// Increments one of the subclass's own counts.
    pub fn count(&self, name: &'static str) {
        if let Some((_, count)) = lock(&self.own).iter_mut().find(|(n, _)| *n == name) {
            *count += 1;
        }
    }

    /// Sets one of the subclass's own counts.
    pub fn set_count(&self, name: &'static str, to: u64) {
        if let Some((_, count)) = lock(&self.own).iter_mut().find(|(n, _)| *n == name) {
            *count = to;
        }
    }

    /// Adds to the count of a class.
    pub fn count_class(&self, name: &str, count: u32) {
        let mut classes = lock(&self.classes);
        match classes.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += u64::from(count),
            None => classes.push((name.to_owned(), count.into())),
        }
    }

    /// The `stats` property.
    pub fn stats(&self) -> gst::Structure {
        let meter = lock(&self.meter).clone();
        let totals = meter.totals();
        let mut stats = gst::Structure::builder("clinspect-stats")
            .field("frames", totals.frames)
            .field("frames-corrupted", self.corrupted.load(Ordering::Relaxed))
            .field("frames-zero-copy", totals.zero_copy)
            .field("frames-wrapped", totals.wrapped)
            .field("frames-copied", totals.copied)
            .field("image-copies", totals.image_copies)
            .field("host-maps", totals.host_maps)
            .field("frame-uploads", totals.uploads)
            .field("frame-downloads", totals.downloads)
            .field("bytes-uploaded", totals.bytes_uploaded)
            .field("bytes-downloaded", totals.bytes_downloaded)
            .build();
        for (step, profile) in meter.steps().into_iter().flatten() {
            let name = step.name();
            stats.set(format!("{name}-count"), profile.count);
            stats.set(format!("{name}-last-ns"), profile.last_ns);
            stats.set(format!("{name}-mean-ns"), profile.mean_ns());
            stats.set(format!("{name}-last-mbps"), profile.last_rate());
            stats.set(format!("{name}-mean-mbps"), profile.mean_rate());
        }
        if let Some(frame) = meter.last_frame() {
            set_timeline(&mut stats, &frame);
        }
        for (name, count) in lock(&self.own).iter() {
            stats.set(*name, *count);
        }
        let classes = lock(&self.classes);
        if !classes.is_empty() {
            let mut counts = gst::Structure::new_empty("class-counts");
            for (name, count) in classes.iter() {
                counts.set(name, *count);
            }
            stats.set("class-counts", counts);
        }
        stats
    }
}

/// Sets the start and end of each step of a frame, and the gap before it; a step that happens again
/// has its number in its name.
fn set_timeline(stats: &mut gst::StructureRef, frame: &FrameTimeline) {
    stats.set("frame-last-ns", frame.total_ns);
    for (index, span) in frame.steps.iter().enumerate() {
        let before = frame.steps.iter().take(index);
        let name = match before.filter(|other| other.step == span.step).count() {
            0 => span.step.name().to_owned(),
            times => format!("{}-{}", span.step.name(), times + 1),
        };
        stats.set(format!("{name}-last-start-ns"), span.start_ns);
        stats.set(format!("{name}-last-end-ns"), span.end_ns);
        stats.set(format!("{name}-last-gap-ns"), span.gap_ns);
    }
}

/// Methods for subclasses.
pub trait ClBaseFilterExt: IsA<ClBaseFilter> {
    /// A number that grows with each [`Self::revise`].
    fn revision(&self) -> u64 {
        self.upcast_ref::<ClBaseFilter>().imp().revision()
    }

    /// A property has changed, or something else from which operators are built. Called after the change.
    fn revise(&self) {
        self.upcast_ref::<ClBaseFilter>().imp().revise();
    }

    /// The number of a frame: its offset if it has one, otherwise a count since the start.
    fn frame_number(&self, buffer: &gst::BufferRef) -> u64 {
        self.upcast_ref::<ClBaseFilter>()
            .imp()
            .counts
            .frame_number(buffer)
    }

    /// The times of a frame in the current segment.
    fn frame_times(&self, buffer: &gst::BufferRef) -> FrameTimes {
        FrameTimes::of(buffer, &self.upcast_ref::<ClBaseFilter>().segment())
    }

    /// Increments the count `name`, one of [`ClBaseFilterImpl::COUNTS`].
    fn count(&self, name: &'static str) {
        self.upcast_ref::<ClBaseFilter>().imp().counts.count(name);
    }

    /// Sets the count `name`, one of [`ClBaseFilterImpl::COUNTS`].
    fn set_count(&self, name: &'static str, to: u64) {
        (self.upcast_ref::<ClBaseFilter>().imp().counts).set_count(name, to);
    }

    /// Counts defects of a class in `class-counts` of the statistics.
    fn count_class(&self, name: &str, count: u32) {
        let filter = self.upcast_ref::<ClBaseFilter>();
        filter.imp().counts.count_class(name, count);
    }

    /// Posts a message on the bus.
    fn post(&self, message: gst::Message) {
        // Without a bus nobody receives messages.
        let _ = self
            .upcast_ref::<ClBaseFilter>()
            .upcast_ref::<gst::Element>()
            .post_message(message);
    }
}

impl<T: IsA<ClBaseFilter>> ClBaseFilterExt for T {}

/// Settings of the messages with results.
#[derive(Debug, Clone, Copy)]
pub struct MessageSettings {
    /// Whether to post messages.
    pub post: bool,
    /// Minimum time between messages.
    pub interval_ns: u64,
}

impl Default for MessageSettings {
    fn default() -> Self {
        Self {
            post: true,
            interval_ns: 100_000_000,
        }
    }
}

/// Lets at most one message per interval through.
///
/// The time is the frame's running time, so that a file gives the same messages at any speed. For
/// frames without timestamps it is the system's monotonic clock.
#[derive(Debug, Default)]
pub struct MessageGate {
    last: Option<gst::ClockTime>,
    started: Option<Instant>,
}

impl MessageGate {
    /// Whether to post a message: messages are wanted, and the interval has passed since the last
    /// message, there was none, or this message is `urgent`.
    pub fn opens(
        &mut self,
        settings: &MessageSettings,
        running_time: Option<gst::ClockTime>,
        urgent: bool,
    ) -> bool {
        if !settings.post {
            return false;
        }
        let now = running_time.unwrap_or_else(|| {
            let elapsed = self.started.get_or_insert_with(Instant::now).elapsed();
            gst::ClockTime::from_nseconds(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX - 1))
        });
        let due = urgent
            || self
                .last
                // A time before the last message means a new segment.
                .is_none_or(|last| now < last || (now - last).nseconds() >= settings.interval_ns);
        if due {
            self.last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_gate_opens_once_per_interval_and_after_a_jump_back() {
        let ms = gst::ClockTime::from_mseconds;
        let mut gate = MessageGate::default();
        let opened: Vec<bool> = [0, 33, 66, 100, 133, 10]
            .into_iter()
            .map(|t| gate.opens(&MessageSettings::default(), Some(ms(t)), false))
            .collect();
        assert_eq!(opened, [true, false, false, true, false, true]);
    }

    #[test]
    fn message_gate_urgent_message_starts_the_interval_anew() {
        let ms = gst::ClockTime::from_mseconds;
        let mut gate = MessageGate::default();
        let opened: Vec<bool> = [(0, false), (60, true), (100, false), (160, false)]
            .into_iter()
            .map(|(t, urgent)| gate.opens(&MessageSettings::default(), Some(ms(t)), urgent))
            .collect();
        assert_eq!(opened, [true, true, false, true]);
    }
}
