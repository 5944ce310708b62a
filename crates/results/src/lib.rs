//! The results of the elements as typed values: metas on buffers and messages on the bus.
//!
//! Applications in Rust use these readers. In other languages the metas are GstCustomMeta, with the
//! fields named here in their structures.

mod alignment;
#[cfg(feature = "analytics")]
mod analytics;
mod defect;
mod defect_event;
mod defects;
mod histogram;
pub mod mask_caps;
mod place;
mod semu;
mod verdict;
mod words;

pub use alignment::{AlignStep, Alignment};
pub use defect::Defect;
pub use defect_event::MOST_DEFECTS;
pub use defects::{DEFECT_META, DefectResult};
pub use histogram::{HISTOGRAM_META, HistogramResult};
pub use place::is_same_shape;
pub use semu::semu;
pub use verdict::{Verdict, VerdictLimits};

use std::sync::{Mutex, PoisonError};

use gst::prelude::*;

/// Registers the metas once per process, so that GStreamer finds them by name. Thread-safe;
/// repeated calls do nothing.
pub fn register() {
    // GObject does not lock the registration of a meta.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for name in [HISTOGRAM_META, DEFECT_META] {
        if !gst::meta::CustomMeta::is_registered(name) {
            // No tags: converters and encoders would drop a tagged meta.
            gst::meta::CustomMeta::register(name, &[]);
        }
    }
    place::register();
}

/// The structures of every meta with this name on a buffer, in the order of attachment.
fn structures<'a>(
    buffer: &'a gst::BufferRef,
    name: &'static str,
) -> impl Iterator<Item = gst::Structure> + 'a {
    buffer.iter_meta::<gst::Meta>().filter_map(move |meta| {
        let custom = meta.try_as_custom_meta()?;
        custom.has_name(name).then(|| custom.structure().to_owned())
    })
}

/// Attaches a meta with the fields that `write` sets.
fn attach(
    buffer: &mut gst::BufferRef,
    name: &'static str,
    write: impl FnOnce(&mut gst::StructureRef),
) -> Result<(), gst::glib::BoolError> {
    write(gst::meta::CustomMeta::add(buffer, name)?.mut_structure());
    Ok(())
}

/// The times of a message's frame; every element message begins with them.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameTimes {
    /// The buffer's timestamp.
    pub timestamp: Option<gst::ClockTime>,
    /// Its stream time.
    pub stream_time: Option<gst::ClockTime>,
    /// Its running time.
    pub running_time: Option<gst::ClockTime>,
    /// Its duration.
    pub duration: Option<gst::ClockTime>,
}

impl FrameTimes {
    /// The times of a buffer in its segment.
    pub fn of(buffer: &gst::BufferRef, segment: &gst::Segment) -> Self {
        let time = segment.downcast_ref::<gst::ClockTime>();
        let pts = buffer.pts();
        Self {
            timestamp: pts,
            stream_time: time.and_then(|s| s.to_stream_time(pts)),
            running_time: time.and_then(|s| s.to_running_time(pts)),
            duration: buffer.duration(),
        }
    }

    /// An element message: the `summary` for people, the times, then the fields that `write` sets.
    pub fn message(
        &self,
        source: &impl IsA<gst::Object>,
        name: &str,
        summary: Option<String>,
        write: impl FnOnce(&mut gst::StructureRef),
    ) -> gst::Message {
        let mut structure = gst::Structure::builder(name)
            .field_if_some("summary", summary)
            .field("timestamp", self.timestamp)
            .field("stream-time", self.stream_time)
            .field("running-time", self.running_time)
            .field("duration", self.duration)
            .build();
        write(&mut structure);
        gst::message::Element::builder(structure)
            .src(source)
            .build()
    }
}
