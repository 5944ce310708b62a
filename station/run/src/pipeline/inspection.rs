//! The elements that inspect: those behind the source, made from the file.

use std::sync::Arc;

use gst::prelude::*;
use plan::CameraConfig;

use super::{
    LearnedProperty, Outlets,
    entry::{Entry, KeepMode},
    front,
    parts::{Part, inspecting},
    results::{FrameProgress, Results},
};
use crate::{
    state::{Camera, Command, Trouble},
    stopped::StopReason,
};

/// The elements behind the source, before they are part of a pipeline.
pub struct Inspection {
    /// Those that have properties in the file, and a filter behind `clunpack`.
    pub chain: Vec<gst::Element>,
    pub parts: Vec<Part>,
    pub offers: Vec<(Command, gst::Element, &'static str)>,
    pub analyzer: gst::Element,
    /// The first element behind `clunpack`.
    entered: Option<gst::Element>,
    pub unpack: Option<gst::Element>,
}

impl Inspection {
    /// Makes the elements, with their properties.
    pub fn make(config: &CameraConfig, needs_unpack: bool) -> Result<Self, gst::glib::BoolError> {
        let unpack = match needs_unpack {
            true => Some(front::unpack(config)?),
            false => None,
        };
        let mut parts = Part::make_all(config)?;
        let mut offers = Vec::new();
        for Part { element, .. } in &parts {
            let factory = element.factory();
            for (command, name, signal) in SIGNALS {
                let is_of = |name| factory.as_ref().is_some_and(|of| of.name() == name);
                if name.is_none_or(is_of)
                    && gst::glib::subclass::SignalId::lookup(signal, element.type_()).is_some()
                {
                    offers.push((command, element.clone(), signal));
                }
            }
        }
        let last = parts.last().map(|part| part.element.clone());
        let analyzer =
            last.ok_or_else(|| gst::glib::bool_error!("the pipeline lacks an analyzer"))?;
        analyzer.set_property_from_str("output", "frame");
        let entered = parts.first().map(|part| part.element.clone());
        let mut chain: Vec<gst::Element> = parts.iter().map(|part| part.element.clone()).collect();
        let of_unpack = unpack.as_ref().map(|(part, _)| part.element.clone());
        if let Some((part, filter)) = unpack {
            chain.splice(..0, [part.element.clone(), filter]);
            parts.insert(0, part);
        }
        Ok(Self {
            chain,
            parts,
            offers,
            analyzer,
            entered,
            unpack: of_unpack,
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
    ) -> Result<Arc<FrameProgress>, gst::glib::BoolError> {
        let watched = Arc::new(FrameProgress::new());
        let lacks = || gst::glib::bool_error!("the analyzer has no pad");
        let pad = self.entered.as_ref().and_then(|of| of.static_pad("sink"));
        let keep = keep(config, &self.analyzer);
        let entry = Entry::watch(&pad.ok_or_else(lacks)?, camera, keep);
        let pad = self.analyzer.static_pad("src").ok_or_else(lacks)?;
        let from = (&self.analyzer, &pad, config);
        Results::watch(from, pipeline, camera, &watched, (outlets, &entry));
        Ok(watched)
    }
}

/// How frames are kept until their results come: only where they are recorded, and an element changes them.
fn keep(config: &CameraConfig, analyzer: &gst::Element) -> KeepMode {
    let is_changed = config.flat_field.is_some() || config.gaussian.is_some();
    if config.recording.is_none() || !is_changed {
        return KeepMode::No;
    }
    match analyzer.has_property("line-scan") && analyzer.property("line-scan") {
        true => KeepMode::Copy,
        false => KeepMode::Reference,
    }
}

/// Sets what elements learned under the settings `old`, unless `new` has another value.
pub fn set_learned(
    parts: &[Part],
    learned: &LearnedProperty,
    old: &CameraConfig,
    new: &CameraConfig,
) {
    for part in parts {
        let element = &part.element;
        let in_file = |config| part.properties(config).and_then(|of| of.get(learned.name));
        if element.has_property(learned.name) && in_file(old) == in_file(new) {
            element.set_property_from_value(learned.name, &learned.value);
        }
    }
}

/// The caps that the first element that inspects takes.
pub fn accepted(config: &CameraConfig) -> Result<gst::Caps, StopReason> {
    let Some((first, _)) = inspecting(config).next() else {
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
