//! The elements whose properties are in the file, and what of them may change while frames flow.

use std::collections::BTreeSet;

use gst::prelude::*;
use plan::{CameraConfig, Properties};

use crate::properties::{apply, set, value_of};

/// The table of an element in the file, if there is one.
pub type Table = fn(&CameraConfig) -> Option<&Properties>;

pub(super) const UNPACK: Table = |config| Some(&config.unpack);
const FLAT_FIELD: Table = |config| config.flat_field.as_ref();
const GAUSSIAN: Table = |config| config.gaussian.as_ref();
const HISTOGRAM: Table = |config| config.histogram.as_ref();
const ANALYSIS: Table = |config| Some(&config.analysis);

static NO_PROPERTIES: &Properties = &Properties::none();

/// The factories of the elements that inspect, in their order, the analyzer's last; those without properties are not there.
pub(super) fn inspecting(config: &CameraConfig) -> impl Iterator<Item = (&'static str, Table)> {
    let all = [
        ("clflatfield", FLAT_FIELD),
        ("clgaussian", GAUSSIAN),
        ("clhistogram", HISTOGRAM),
        (config.analyzer.factory(), ANALYSIS),
    ];
    all.into_iter().filter(|(_, of)| of(config).is_some())
}

/// Whether both configurations have the same elements that inspect, on the same device.
pub(crate) fn is_same_chain(old: &CameraConfig, new: &CameraConfig) -> bool {
    let has_parts = [FLAT_FIELD, GAUSSIAN, HISTOGRAM];
    old.analyzer == new.analyzer
        && old.device == new.device
        && (has_parts.iter()).all(|of| of(old).is_some() == of(new).is_some())
}

/// An element whose properties are in the file.
pub(crate) struct Part {
    pub element: gst::Element,
    of: Table,
}

impl Part {
    /// Makes the elements that inspect, the analyzer last.
    pub fn make_all(config: &CameraConfig) -> Result<Vec<Self>, gst::glib::BoolError> {
        let make = |(factory, of)| {
            let element = gst::ElementFactory::make(factory).build()?;
            Ok(Self::prepare(element, of, config))
        };
        inspecting(config).map(make).collect()
    }

    /// Sets an element's properties: those of the file, and those that the station sets itself.
    pub fn prepare(element: gst::Element, of: Table, config: &CameraConfig) -> Self {
        if let Some(device) = &config.device {
            element.set_property("device", device);
        }
        // The station takes the results from the metas.
        if element.has_property("reports") {
            let silent = gst::Structure::builder("reports").field("messages", false);
            element.set_property("reports", silent.build());
        }
        if let Some(properties) = of(config) {
            apply(properties, &element);
        }
        Self { element, of }
    }

    /// The element's properties in the file.
    pub fn properties<'c>(&self, config: &'c CameraConfig) -> Option<&'c Properties> {
        (self.of)(config)
    }
}

/// A property with another value, in GStreamer's notation; `None` is its default.
pub(crate) struct Change<'a> {
    element: &'a gst::Element,
    name: &'a str,
    old: Option<&'a str>,
    new: Option<&'a str>,
}

impl<'a> Change<'a> {
    /// The property.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Sets the new value.
    pub fn apply(&self) {
        set(self.element, self.name, self.new);
    }

    /// Sets the value before.
    pub fn take_back(&self) {
        set(self.element, self.name, self.old);
    }

    /// Whether the element uses the new value. An element that cannot use a value goes back to the one before.
    pub fn is_in_force(&self) -> bool {
        let kept = self.element.property_value(self.name);
        match value_of(self.element, self.name, self.new) {
            Some(value) => GstValueExt::eq(&value, &kept),
            None => true,
        }
    }
}

/// The properties of the elements that changed; `None` if one of them cannot change while frames flow.
pub(crate) fn changes<'a>(
    parts: &'a [Part],
    old: &'a CameraConfig,
    new: &'a CameraConfig,
) -> Option<Vec<Change<'a>>> {
    let mut changes = Vec::new();
    for Part { element, of } in parts {
        let (old, new) = (
            of(old).unwrap_or(NO_PROPERTIES),
            of(new).unwrap_or(NO_PROPERTIES),
        );
        let names: BTreeSet<&str> = old.names().chain(new.names()).collect();
        for name in names {
            let (old, new) = (old.get(name), new.get(name));
            if old == new {
                continue;
            }
            let spec = element.find_property(name);
            let is_mutable =
                spec.is_some_and(|s| s.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING));
            if !is_mutable {
                return None;
            }
            changes.push(Change {
                element,
                name,
                old,
                new,
            });
        }
    }
    Some(changes)
}
