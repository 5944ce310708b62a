//! The number of a frame, on its buffer: elements make other buffers of it on the way.

use std::sync::Once;

const NAME: &str = "ClinspectSequence";
const FIELD: &str = "sequence";

/// The meta that carries the number.
pub struct Tag;

impl Tag {
    /// Sets the number of a frame that has arrived.
    pub fn set(buffer: &mut gst::BufferRef, sequence: u64) {
        static REGISTERED: Once = Once::new();
        // Without tags every element copies it.
        REGISTERED.call_once(|| gst::meta::CustomMeta::register(NAME, &[]));
        // It fails only if the name is not registered.
        if let Ok(mut meta) = gst::meta::CustomMeta::add(buffer, NAME) {
            meta.mut_structure().set(FIELD, sequence);
        }
    }

    /// The number of a frame.
    pub fn of(buffer: &gst::BufferRef) -> Option<u64> {
        let meta = gst::meta::CustomMeta::from_buffer(buffer, NAME).ok()?;
        meta.structure().get(FIELD).ok()
    }
}
