//! What an element counts.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use super::stream::is_corrupted;
use crate::elements::lock;
use clinspect_opencl::{FrameTimeline, Meter};

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
    pub fn count_flags(&self, buffer: &gst::BufferRef) {
        if is_corrupted(buffer) {
            self.corrupted.fetch_add(1, Ordering::Relaxed);
        }
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
