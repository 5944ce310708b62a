//! The GStreamer elements, one folder each, and the templates `base_filter` and `inspector`.

pub mod base_filter;
mod checked;
pub mod flat_field;
pub mod gaussian;
pub mod histogram;
mod inspector;
mod last_report;
pub mod mask_unpack;
pub mod pitch_threshold;
mod property_table;
pub mod reference;
mod saver;
mod specs;
mod structure;
pub mod surface;
mod text;
pub mod texture;
pub mod unpack;

use std::sync::{Mutex, MutexGuard, PoisonError};

use gst::{glib, prelude::*};

/// Registers the elements.
///
/// # Errors
/// GStreamer refuses the registration.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    for (name, element) in [
        ("clflatfield", flat_field::ClFlatField::static_type()),
        ("clgaussian", gaussian::ClGaussian::static_type()),
        ("clhistogram", histogram::ClHistogram::static_type()),
        ("clmaskunpack", mask_unpack::ClMaskUnpack::static_type()),
        (
            "clpitchthreshold",
            pitch_threshold::ClPitchThreshold::static_type(),
        ),
        ("clreference", reference::ClReference::static_type()),
        ("clsurface", surface::ClSurface::static_type()),
        ("cltexture", texture::ClTexture::static_type()),
        ("clunpack", unpack::ClUnpack::static_type()),
    ] {
        gst::Element::register(Some(plugin), name, gst::Rank::NONE, element)?;
    }
    Ok(())
}

/// The debug category of an element.
fn debug_category(name: &str, description: &str) -> gst::DebugCategory {
    gst::DebugCategory::new(name, gst::DebugColorFlags::empty(), Some(description))
}

/// Declares the class of an element: its type's name and parent, its metadata, and its pad templates.
macro_rules! element_class {
    ($element:ident: $parent:ty, $type_name:literal, $templates:expr, $name:literal, $class:literal, $description:literal $(,)?) => {
        #[glib::object_subclass]
        impl ObjectSubclass for $element {
            const NAME: &'static str = $type_name;
            type Type = super::$element;
            type ParentType = $parent;
        }

        impl GstObjectImpl for $element {}

        impl ElementImpl for $element {
            fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
                static METADATA: std::sync::LazyLock<gst::subclass::ElementMetadata> =
                    std::sync::LazyLock::new(|| {
                        let developers = "gst-plugin-clinspect developers";
                        gst::subclass::ElementMetadata::new($name, $class, $description, developers)
                    });
                Some(&*METADATA)
            }

            fn pad_templates() -> &'static [gst::PadTemplate] {
                $templates
            }
        }
    };
}
use element_class;

/// Locks a mutex; a value that another thread left in a panic stays usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pad templates `sink` and `src`.
fn pad_templates(sink: &gst::Caps, src: &gst::Caps) -> Vec<gst::PadTemplate> {
    [
        ("sink", gst::PadDirection::Sink, sink),
        ("src", gst::PadDirection::Src, src),
    ]
    .into_iter()
    .filter_map(|(name, direction, caps)| {
        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps).ok()
    })
    .collect()
}
