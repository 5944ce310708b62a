//! What all results share: their metas on buffers, and the times in their messages.
//!
//! `GstClPlaceMeta`: positions of a result are places in the picture that this buffer shows.
//!
//! The metas of results have no tags, so every element keeps them: a verdict must not get lost. Elements that mirror, turn
//! or crop a picture keep them as well, and do not change positions. They drop this meta, which has the tags of
//! orientation and size. Encoders, decoders and filters keep it, and scalers call its transform function.

use std::{
    ptr,
    sync::{Mutex, PoisonError},
};

use gst::{
    glib::{
        self,
        ffi::{GFALSE, GQuark, gboolean, gpointer},
        translate::{IntoGlib, ToGlibPtr},
    },
    prelude::*,
};
use gst_video::ffi::GstVideoMetaTransform;

use super::{DEFECT_META, HISTOGRAM_META};

/// Name of the meta.
const PLACE_META: &str = "GstClPlaceMeta";
/// The field of a result that was attached together with the meta.
pub(super) const HAS_PLACE: &str = "has-place";

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
    register_place();
}

/// The structures of every meta with this name on a buffer, in the order of attachment.
pub(super) fn structures<'a>(
    buffer: &'a gst::BufferRef,
    name: &'static str,
) -> impl Iterator<Item = gst::Structure> + 'a {
    buffer.iter_meta::<gst::Meta>().filter_map(move |meta| {
        let custom = meta.try_as_custom_meta()?;
        custom.has_name(name).then(|| custom.structure().to_owned())
    })
}

/// Attaches a meta with the fields that `write` sets.
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    name: &'static str,
    write: impl FnOnce(&mut gst::StructureRef),
) -> Result<(), glib::BoolError> {
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

/// Registers the meta of places. The caller holds the lock of the registration.
fn register_place() {
    if gst::meta::CustomMeta::is_registered(PLACE_META) {
        return;
    }
    let tags = ["video", "orientation", "size"].map(|tag| tag.to_glib_none());
    let mut tags: Vec<_> = tags.iter().map(|tag| tag.0).chain([ptr::null()]).collect();
    // SAFETY: name and tags are strings that end with 0, the list ends with NULL, and GStreamer copies all of them. The
    // binding's own function does not pass on the sizes of a scaled picture.
    unsafe {
        gst::ffi::gst_meta_register_custom(
            PLACE_META.to_glib_none().0,
            tags.as_mut_ptr(),
            Some(transform),
            ptr::null_mut(),
            None,
        );
    }
}

/// Keeps the meta in copies, and in scaled pictures that show the same.
unsafe extern "C" fn transform(
    to: *mut gst::ffi::GstBuffer,
    _meta: *mut gst::ffi::GstCustomMeta,
    _from: *mut gst::ffi::GstBuffer,
    kind: GQuark,
    data: gpointer,
    _user: gpointer,
) -> gboolean {
    let is_kept = if kind == glib::Quark::from_str("gst-copy").into_glib() {
        true
    } else if kind == glib::Quark::from_str("gst-video-scale").into_glib() && !data.is_null() {
        // SAFETY: of this kind GStreamer passes a GstVideoMetaTransform with two valid GstVideoInfo.
        let sizes = unsafe {
            let scaling = &*data.cast::<GstVideoMetaTransform>();
            [&*scaling.in_info, &*scaling.out_info]
        };
        let [from, to] = sizes.map(|info| {
            let ratio = f64::from(info.par_n) / f64::from(info.par_d);
            [info.width.into(), info.height.into(), ratio]
        });
        is_same_shape(from, to)
    } else {
        false
    };
    if !is_kept {
        return GFALSE;
    }
    // SAFETY: GStreamer passes a buffer that may be written, and nobody else uses during the call.
    let to = unsafe { gst::BufferRef::from_mut_ptr(to) };
    attach_place(to).is_ok().into_glib()
}

/// Whether a picture fills another one when it is scaled to its size, within a pixel. Both are given as width, height and
/// pixel aspect ratio.
///
/// A scaler that must change the shape of a picture adds borders, unless its property `add-borders` is false, and nothing
/// says whether it did. Results carry the size to which their positions refer, so a picture of the same shape needs no new
/// numbers.
pub fn is_same_shape(
    [from_width, from_height, from_ratio]: [f64; 3],
    [width, height, ratio]: [f64; 3],
) -> bool {
    let stretch = from_ratio / ratio;
    let full_width = from_width * stretch * height / from_height;
    let full_height = from_height * width / (from_width * stretch);
    (full_width - width).abs() <= 1.0 || (full_height - height).abs() <= 1.0
}

/// Attaches the meta of places, unless the buffer has it.
///
/// # Errors
/// The meta is not registered.
pub(super) fn attach_place(buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
    if !is_on(buffer) {
        gst::meta::CustomMeta::add(buffer, PLACE_META)?;
    }
    Ok(())
}

/// Whether a buffer still has the meta of places, and no element asks its receiver to crop the picture.
pub(super) fn is_in_place(buffer: &gst::BufferRef) -> bool {
    is_on(buffer) && buffer.meta::<gst_video::VideoCropMeta>().is_none()
}

fn is_on(buffer: &gst::BufferRef) -> bool {
    gst::meta::CustomMeta::from_buffer(buffer, PLACE_META).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_equal_within_a_pixel() {
        for (from, to, wanted) in [
            ([640.0, 480.0, 1.0], [640.0, 480.0, 1.0], true),
            ([640.0, 480.0, 1.0], [320.0, 240.0, 1.0], true),
            ([640.0, 480.0, 1.0], [480.0, 640.0, 1.0], false),
            ([640.0, 480.0, 1.0], [640.0, 360.0, 1.0], false),
            ([640.0, 480.0, 1.0], [640.0, 360.0, 0.75], true),
            // 535.4 rows.
            ([2448.0, 2048.0, 1.0], [640.0, 535.0, 1.0], true),
            ([2448.0, 2048.0, 1.0], [640.0, 537.0, 1.0], false),
            ([960.0, 1080.0, 2.0], [960.0, 540.0, 1.0], true),
            ([960.0, 1080.0, 2.0], [960.0, 1080.0, 1.0], false),
            ([1.0, 1.0, 1.0], [2.0, 1.0, 1.0], true),
            ([0.0, 0.0, 1.0], [0.0, 0.0, 1.0], false),
            ([4.0, 4.0, f64::NAN], [4.0, 4.0, 1.0], false),
        ] {
            assert_eq!(is_same_shape(from, to), wanted, "{from:?} {to:?}");
        }
    }
}
