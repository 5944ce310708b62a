//! What stands before the elements that inspect: the source, and `clunpack` if the camera's frames need it.

use gst::prelude::*;

use super::{
    Stopped, accepted,
    parts::{Part, UNPACK},
};
use crate::{config::CameraConfig, source, state::Trouble};

/// `source ! queue ! clunpack ! capsfilter`, without the last two if the elements take the camera's frames.
pub struct Front {
    source: gst::Bin,
    /// `clunpack`, and the filter that names its format.
    unpack: Option<(Part, gst::Element)>,
}

impl Front {
    /// Makes the elements.
    ///
    /// # Errors
    /// The source cannot be made, or an element is missing.
    pub fn build(config: &CameraConfig) -> Result<Self, Stopped> {
        let refused = |text: String| (Trouble::SettingsRefused, text);
        let source = source::bin(&config.source);
        let source =
            source.map_err(|error| refused(format!("the source is no pipeline: {error}")))?;
        let is_packed = config.unpack.get("packing").is_some_and(|of| of != "none");
        let needs_unpack =
            is_packed || source::needs_unpack(&config.source, &source, &accepted(config)?)?;
        let unpack = match needs_unpack {
            true => Some(unpack(config).map_err(|error| refused(error.message.into_owned()))?),
            false => None,
        };
        Ok(Self { source, unpack })
    }

    /// The source's elements and the queue.
    pub fn source(&self) -> &gst::Bin {
        &self.source
    }

    /// `clunpack`, if the frames need it.
    pub(super) fn unpack(&self) -> Option<&Part> {
        self.unpack.as_ref().map(|(part, _)| part)
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

fn unpack(config: &CameraConfig) -> Result<(Part, gst::Element), gst::glib::BoolError> {
    let element = gst::ElementFactory::make("clunpack").build()?;
    if let source::Source::Aravis {
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
