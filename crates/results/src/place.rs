//! `GstClPlaceMeta`: positions of a result are places in the picture that this buffer shows.
//!
//! The metas of results have no tags, so every element keeps them: a verdict must not get lost. Elements that mirror, turn
//! or crop a picture keep them as well, and do not change positions. They drop this meta, which has the tags of
//! orientation and size. Encoders, decoders and filters keep it, and scalers call its transform function.

use gst::glib;

/// Name of the meta.
const PLACE_META: &str = "GstClPlaceMeta";
/// The field of a result that was attached together with the meta.
pub(super) const FIELD: &str = "has-place";

/// Registers the meta. The caller holds the lock of the registration.
pub(super) fn register() {
    if gst::meta::CustomMeta::is_registered(PLACE_META) {
        return;
    }
    let copy = glib::Quark::from_str("gst-copy");
    let scale = glib::Quark::from_str("gst-video-scale");
    let tags = ["video", "orientation", "size"];
    gst::meta::CustomMeta::register_with_transform(PLACE_META, &tags, move |to, _, _, kind| {
        // Results carry the size to which their positions refer, so a scaled picture needs no new numbers.
        (kind == copy || kind == scale) && attach(to).is_ok()
    });
}

/// Attaches the meta, unless the buffer has it.
///
/// # Errors
/// The meta is not registered.
pub(super) fn attach(buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
    if !is_on(buffer) {
        gst::meta::CustomMeta::add(buffer, PLACE_META)?;
    }
    Ok(())
}

/// Whether a buffer still has the meta.
pub(super) fn is_on(buffer: &gst::BufferRef) -> bool {
    gst::meta::CustomMeta::from_buffer(buffer, PLACE_META).is_ok()
}
