//! The elements that inspect: those behind the source, made from the file.

use std::sync::Arc;

use gst::prelude::*;

use super::{
    Learned, Outlets, Stopped,
    results::{Results, Watched},
};
use crate::{
    config::{CameraConfig, Properties},
    source,
    state::{Camera, Command, Trouble},
};

/// The table of an element in the file, if there is one.
pub type Table = fn(&CameraConfig) -> Option<&Properties>;

/// An element whose properties are in the file.
pub struct Part {
    /// The element.
    pub element: gst::Element,
    /// Its table.
    pub of: Table,
}

const UNPACK: Table = |config| Some(&config.unpack);
pub const FLAT_FIELD: Table = |config| config.flat_field.as_ref();
pub const GAUSSIAN: Table = |config| config.gaussian.as_ref();
pub const HISTOGRAM: Table = |config| config.histogram.as_ref();
const ANALYSIS: Table = |config| Some(&config.analysis);

/// The elements behind the source, before they are part of a pipeline.
pub struct Inspection {
    /// Those that have properties in the file, and a filter behind `clunpack`.
    pub chain: Vec<gst::Element>,
    pub parts: Vec<Part>,
    pub offers: Vec<(Command, gst::Element, &'static str)>,
    pub analyzer: gst::Element,
    pub unpack: Option<gst::Element>,
}

impl Inspection {
    /// Makes the elements, with their properties.
    pub fn make(config: &CameraConfig, needs_unpack: bool) -> Result<Self, gst::glib::BoolError> {
        let make = |factory: &str| gst::ElementFactory::make(factory).build();
        let mut parts = Vec::new();
        let mut offers = Vec::new();
        let unpack = needs_unpack.then_some(("clunpack", UNPACK));
        for (factory, of) in unpack.into_iter().chain(inspecting(config)) {
            let Some(properties) = of(config) else {
                continue;
            };
            let element = make(factory)?;
            if let source::Source::Aravis {
                pixel_format: Some(asked),
                ..
            } = &config.source
                && let (Some(packing), "clunpack") = (asked.format.packing, factory)
            {
                element.set_property_from_str("packing", packing);
            }
            if let Some(device) = &config.device {
                element.set_property("device", device);
            }
            if factory == config.analyzer.factory() {
                element.set_property_from_str("output", "frame");
            }
            // The station takes the results from the metas.
            if element.has_property("reports") {
                let silent = gst::Structure::builder("reports").field("messages", false);
                element.set_property("reports", silent.build());
            }
            properties.apply(&element);
            for (command, name, signal) in SIGNALS {
                if name.is_none_or(|name| name == factory)
                    && gst::glib::subclass::SignalId::lookup(signal, element.type_()).is_some()
                {
                    offers.push((command, element.clone(), signal));
                }
            }
            parts.push(Part { element, of });
        }
        let mut chain: Vec<gst::Element> = parts.iter().map(|part| part.element.clone()).collect();
        let first = chain.first().cloned();
        let unpack = first.filter(|_| needs_unpack);
        // The element after clunpack would take the first format of its own: eight bits, without colours.
        if let Some(unpack) = &unpack {
            let filter = make("capsfilter")?;
            let packing = unpack.property_value("packing");
            let is_packed = gst::glib::EnumValue::from_value(&packing)
                .is_some_and(|(_, packing)| packing.nick() != "none");
            let format = if is_packed { "GRAY16_LE" } else { "RGB" };
            let caps = gst::Caps::builder("video/x-raw").field("format", format);
            filter.set_property("caps", caps.build());
            chain.insert(1, filter);
        }
        let last = parts.last().map(|part| part.element.clone());
        let analyzer =
            last.ok_or_else(|| gst::glib::bool_error!("the pipeline lacks an analyzer"))?;
        Ok(Self {
            chain,
            parts,
            offers,
            analyzer,
            unpack,
        })
    }

    /// Links the elements, and the last one to the sink. All are in one pipeline.
    pub fn link_to(&self, sink: &gst::Element) -> Result<(), gst::glib::BoolError> {
        gst::Element::link_many(self.chain.iter().chain([sink]))
    }

    /// Takes the results of each frame from now on.
    pub fn watch(
        &self,
        pipeline: &gst::Pipeline,
        camera: &Arc<Camera>,
        outlets: &Outlets,
        config: &CameraConfig,
    ) -> Result<Arc<Watched>, gst::glib::BoolError> {
        let watched = Arc::new(Watched::new());
        let pad = self.analyzer.static_pad("src");
        let pad = pad.ok_or_else(|| gst::glib::bool_error!("the analyzer has no output"))?;
        let from = (&self.analyzer, &pad, &config.recipe);
        Results::watch(from, pipeline, camera, &watched, outlets);
        Ok(watched)
    }
}

/// The elements that inspect, in their order; those without properties are not there.
fn inspecting(config: &CameraConfig) -> [(&'static str, Table); 4] {
    [
        ("clflatfield", FLAT_FIELD),
        ("clgaussian", GAUSSIAN),
        ("clhistogram", HISTOGRAM),
        (config.analyzer.factory(), ANALYSIS),
    ]
}

/// Sets what elements learned under the settings `old`, unless `new` has another value.
pub fn set_learned(parts: &[Part], learned: &Learned, old: &CameraConfig, new: &CameraConfig) {
    for Part { element, of } in parts {
        let in_file = |config| of(config).and_then(|table| table.get(learned.name));
        if element.has_property(learned.name) && in_file(old) == in_file(new) {
            element.set_property_from_value(learned.name, &learned.value);
        }
    }
}

/// The caps that the first element that inspects takes.
pub fn accepted(config: &CameraConfig) -> Result<gst::Caps, Stopped> {
    let [(first, _), ..] = inspecting(config)
        .into_iter()
        .filter(|(_, of)| of(config).is_some())
        .collect::<Vec<_>>()[..]
    else {
        return Ok(gst::Caps::new_empty());
    };
    let element = gst::ElementFactory::make(first).build();
    let element =
        element.map_err(|error| (Trouble::SettingsRefused, error.message.into_owned()))?;
    let template = element
        .static_pad("sink")
        .and_then(|pad| pad.pad_template());
    Ok(template.map_or_else(gst::Caps::new_empty, |template| template.caps().clone()))
}

/// Commands, the elements that carry them out (any that has the signal without a name), and their
/// signals.
const SIGNALS: [(Command, Option<&str>, &str); 6] = [
    (Command::TakeWhite, Some("clflatfield"), "take-white"),
    (Command::TakeDark, Some("clflatfield"), "take-dark"),
    (Command::Train, Some("clreference"), "train"),
    (Command::Learn, None, "learn"),
    (Command::Forget, None, "forget"),
    (
        Command::TakeReference,
        Some("clhistogram"),
        "take-reference",
    ),
];
