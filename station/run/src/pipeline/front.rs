//! What stands before the elements that inspect: the source, and `clunpack` if the camera's frames need it.

use gst::prelude::*;
use plan::{CameraConfig, Source};

use super::{
    accepted,
    parts::{Part, UNPACK},
};
use crate::{source, state::Trouble, stopped::StopReason};

/// `source ! queue ! clunpack ! capsfilter`, without the last two if the elements take the camera's frames.
pub struct Front {
    source: gst::Bin,
    unpack: Option<(Part, gst::Element)>,
    accepted: gst::Caps,
}

impl Front {
    /// Makes the elements.
    ///
    /// # Errors
    /// The source cannot be made, or an element is missing.
    pub fn build(config: &CameraConfig) -> Result<Self, StopReason> {
        let (source, needs_unpack) = open(config)?;
        let refused = |error: gst::glib::BoolError| {
            let text = error.message.into_owned();
            (Trouble::SettingsRefused, text)
        };
        let unpack = needs_unpack.then(|| unpack(config)).transpose();
        Ok(Self {
            source,
            unpack: unpack.map_err(refused)?,
            accepted: accepted(config)?,
        })
    }

    /// The source's elements and the queue.
    pub fn source(&self) -> &gst::Bin {
        &self.source
    }

    /// What the elements that inspect take: a source may have other formats, too, and begin with these.
    pub fn accepted(&self) -> &gst::Caps {
        &self.accepted
    }

    /// The elements, in their order.
    pub fn elements(&self) -> Vec<&gst::Element> {
        let mut elements: Vec<&gst::Element> = vec![self.source.upcast_ref()];
        if let Some((part, filter)) = &self.unpack {
            elements.extend([&part.element, filter]);
        }
        elements
    }
}

/// The source's elements and the queue, and whether the frames need `clunpack`.
///
/// # Errors
/// The source cannot be made.
pub(super) fn open(config: &CameraConfig) -> Result<(gst::Bin, bool), StopReason> {
    let refused = |error: gst::glib::Error| {
        let text = format!("the source is no pipeline: {error}");
        (Trouble::SettingsRefused, text)
    };
    let source = source::bin(&config.source, config.triggered).map_err(refused)?;
    let is_packed = config.unpack.get("packing").is_some_and(|of| of != "none");
    let needs_unpack =
        is_packed || source::needs_unpack(&config.source, &source, &accepted(config)?)?;
    Ok((source, needs_unpack))
}

/// `clunpack`, and the filter that names its format.
///
/// # Errors
/// An element is missing.
pub(super) fn unpack(config: &CameraConfig) -> Result<(Part, gst::Element), gst::glib::BoolError> {
    let element = gst::ElementFactory::make("clunpack").build()?;
    if let Source::Aravis {
        pixel_format: Some(asked),
        ..
    } = &config.source
        && let Some(packing) = asked.format.packing
    {
        element.set_property_from_str("packing", packing);
    }
    let part = Part::prepare(element, UNPACK, config);
    // The element after clunpack would take the first format of its own: eight bits, without colours.
    let packing = part.element.property_value("packing");
    let is_packed = gst::glib::EnumValue::from_value(&packing)
        .is_some_and(|(_, packing)| packing.nick() != "none");
    let format = if is_packed { "GRAY16_LE" } else { "RGB" };
    let caps = gst::Caps::builder("video/x-raw").field("format", format);
    let filter = gst::ElementFactory::make("capsfilter");
    let filter = filter.property("caps", caps.build()).build()?;
    Ok((part, filter))
}
