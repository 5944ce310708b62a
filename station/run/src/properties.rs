//! Properties of elements, in GStreamer's notation.

use gst::{glib, prelude::*};
use plan::Properties;

/// Sets the properties of an element.
pub fn apply(properties: &Properties, element: &gst::Element) {
    for (name, text) in properties.iter() {
        set(element, name, Some(text));
    }
}

/// The value that a new element has for a property after it is set from GStreamer's notation, otherwise its
/// default; `None` if there is no such property or value. Structures have all their fields.
pub fn value_of(element: &gst::Element, name: &str, text: Option<&str>) -> Option<glib::Value> {
    let spec = element.find_property(name)?;
    let fresh = element.factory()?.create().build().ok()?;
    if let Some(text) = text {
        let value = glib::Value::deserialize_with_pspec(text, &spec).ok()?;
        fresh.set_property_from_value(name, &value);
    }
    Some(fresh.property_value(name))
}

/// Sets a property to a value in GStreamer's notation, or to its default.
pub fn set(element: &gst::Element, name: &str, text: Option<&str>) {
    let spec = element.find_property(name);
    let value = match (text, spec) {
        // Not the value that a new element has: the element itself refuses what it cannot use.
        (Some(text), Some(spec)) => glib::Value::deserialize_with_pspec(text, &spec).ok(),
        _ => value_of(element, name, None),
    };
    if let Some(value) = value {
        element.set_property_from_value(name, &value);
    }
}
