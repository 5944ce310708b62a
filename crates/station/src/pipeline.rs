//! The pipeline of one camera:
//! `source ! queue ! clunpack ! clflatfield ! clgaussian ! clhistogram ! analyzer ! fakesink`, without those that the file
//! does not name, and without `clunpack` if the camera sends frames that the others take.

mod change;
mod messages;
mod results;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use gst::prelude::*;

use crate::{
    config::{CameraConfig, Properties},
    source::{self, Sent},
    state::{Camera, Command, Trouble},
};
pub use change::Changed;
pub use messages::{Stopped, stopped_by};
pub use results::Outlets;
use results::{Results, Watched};

/// Longest wait for the end of the stream, when a pipeline stops in order.
const EOS_LIMIT: Duration = Duration::from_secs(3);

/// A camera's pipeline; stopped when dropped.
pub struct Pipeline {
    name: String,
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    source: gst::Bin,
    queue: gst::Element,
    parts: Vec<Part>,
    /// The commands that it carries out, with the element and its signal.
    offers: Vec<(Command, gst::Element, &'static str)>,
    analyzer: gst::Element,
    /// `clunpack`, if the frames need it.
    unpack: Option<gst::Element>,
    sent: Sent,
    watched: Arc<Watched>,
    /// The last warning of each element: a repeated one is not logged again.
    warned: BTreeMap<String, String>,
    /// What the elements learned, until it is taken.
    learned: Vec<Learned>,
}

/// A property that an element learned from frames, at a command.
pub struct Learned {
    /// The property.
    pub name: &'static str,
    value: gst::glib::SendValue,
}

/// As a line of the file.
impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value } = self;
        match value.get::<gst::Array>() {
            Ok(array) => {
                let numbers = array.iter().filter_map(|number| number.get().ok());
                write!(f, "{name} = {:?}", Vec::<f64>::from_iter(numbers))
            }
            Err(_) => write!(f, "{name} = {}", value.get::<f64>().unwrap_or_default()),
        }
    }
}

/// The table of an element in the file, if there is one.
type Table = fn(&CameraConfig) -> Option<&Properties>;

/// An element whose properties are in the file.
struct Part {
    element: gst::Element,
    of: Table,
}

const UNPACK: Table = |config| Some(&config.unpack);
const FLAT_FIELD: Table = |config| config.flat_field.as_ref();
const GAUSSIAN: Table = |config| config.gaussian.as_ref();
const HISTOGRAM: Table = |config| config.histogram.as_ref();
const ANALYSIS: Table = |config| Some(&config.analysis);

impl Pipeline {
    /// Makes the pipeline without starting it.
    ///
    /// # Errors
    /// The source cannot be made, or an element is missing.
    pub fn build(
        config: &CameraConfig,
        camera: &Arc<Camera>,
        outlets: &Outlets,
    ) -> Result<Self, Stopped> {
        let refused = |text: String| (Trouble::SettingsRefused, text);
        let source = source::bin(&config.source);
        let source =
            source.map_err(|error| refused(format!("the source is no pipeline: {error}")))?;
        let is_packed = config.unpack.get("packing").is_some_and(|of| of != "none");
        let needs_unpack =
            is_packed || source::needs_unpack(&config.source, &source, &accepted(config)?)?;
        Self::around(source, needs_unpack, config, camera, outlets)
            .map_err(|error| refused(error.message.into_owned()))
    }

    fn around(
        source: gst::Bin,
        needs_unpack: bool,
        config: &CameraConfig,
        camera: &Arc<Camera>,
        outlets: &Outlets,
    ) -> Result<Self, gst::glib::BoolError> {
        let make = |factory: &str| gst::ElementFactory::make(factory).build();
        let lacks = || gst::glib::bool_error!("the pipeline lacks a part");
        let queue = source.by_name(source::QUEUE).ok_or_else(lacks)?;
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
        // The element after clunpack would take the first format of its own: eight bits, without colours.
        let unpacked = match needs_unpack {
            true => Some(make("capsfilter")?),
            false => None,
        };
        if let (Some(filter), Some(unpack)) = (&unpacked, parts.first()) {
            let packing = unpack.element.property_value("packing");
            let is_packed = gst::glib::EnumValue::from_value(&packing)
                .is_some_and(|(_, packing)| packing.nick() != "none");
            let format = if is_packed { "GRAY16_LE" } else { "RGB" };
            let caps = gst::Caps::builder("video/x-raw").field("format", format);
            filter.set_property("caps", caps.build());
        }
        let sink = make("fakesink")?;
        sink.set_property("sync", false);
        sink.set_property("async", false);

        let pipeline = gst::Pipeline::new();
        let mut chain: Vec<&gst::Element> = vec![source.upcast_ref()];
        chain.extend(parts.iter().map(|part| &part.element));
        if let Some(filter) = &unpacked {
            chain.insert(2, filter);
        }
        chain.push(&sink);
        pipeline.add_many(&chain)?;
        // Only the source comes from outside, so its format is what may not fit.
        if let [source, first, ..] = chain[..]
            && source.link(first).is_err()
        {
            let factory = first.factory().map(|factory| factory.name());
            return Err(gst::glib::bool_error!(
                "{} takes no frames of this source's format; end the source with videoconvert and caps that the element's page names",
                factory.unwrap_or_default()
            ));
        }
        gst::Element::link_many(&chain[1..])?;
        let analyzer = parts.last().ok_or_else(lacks)?.element.clone();
        let watched = Arc::new(Watched::new());
        let pad = analyzer.static_pad("src").ok_or_else(lacks)?;
        Results::watch((&analyzer, &pad), &pipeline, camera, &watched, outlets);
        let pad = queue.static_pad("sink").ok_or_else(lacks)?;
        source::count_lost_frames(&pad, camera, config.triggered);
        let first = parts.first().map(|part| part.element.clone());
        let bus = pipeline.bus().ok_or_else(lacks)?;
        Ok(Self {
            name: config.name.clone(),
            pipeline,
            bus,
            source,
            queue,
            parts,
            offers,
            analyzer,
            unpack: first.filter(|_| needs_unpack),
            sent: Sent::watch(pad),
            watched,
            warned: BTreeMap::new(),
            learned: Vec::new(),
        })
    }

    /// Starts the frames; a failure comes as a message.
    pub fn start(&self, config: &CameraConfig) -> Result<(), Stopped> {
        // Before frames flow, so that the first is taken with these settings. A refusal comes again with the format, on
        // which the ranges depend, and only that one counts.
        if self.pipeline.set_state(gst::State::Ready).is_ok() {
            let _ = source::set_controls(&config.source, &self.source);
        }
        match self.pipeline.set_state(gst::State::Playing) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.error_on_bus().unwrap_or_else(|| {
                let text = "the pipeline does not start, and no element says why".to_owned();
                (Trouble::CameraLost, text)
            })),
        }
    }

    /// What the camera was asked for and sends, and what becomes of it; `None` before the first frame.
    pub fn sent(&self, config: &CameraConfig) -> Option<String> {
        self.sent.sentence(&config.source, self.unpack.as_ref())
    }

    /// Why the pipeline stopped, with what the camera offers if it refused its pixel format.
    pub fn explained(&self, stopped: Stopped, config: &CameraConfig) -> Stopped {
        source::explained(stopped, &config.source, &self.source)
    }

    fn error_on_bus(&self) -> Option<Stopped> {
        let message = self.bus.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(stopped_by(error, &self.source)),
            _ => None,
        }
    }

    /// When frames came.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Why no frame comes: the camera is silent, or the device does not finish a frame.
    pub fn silence(&self) -> Stopped {
        let seconds = self.watched.silence().as_secs_f64();
        let waiting: u32 = self.queue.property("current-level-buffers");
        if waiting > 0 {
            let device = self.device().unwrap_or_else(|| "the device".to_owned());
            let text = format!(
                "{device} has finished no frame for {seconds:.1} s, and {waiting} frames wait"
            );
            (Trouble::DeviceLost, text)
        } else {
            (Trouble::CameraLost, format!("no frame for {seconds:.1} s"))
        }
    }

    /// The OpenCL device in use.
    pub fn device(&self) -> Option<String> {
        let stats: gst::Structure = self.analyzer.property("stats");
        let name = stats.get::<String>("device").ok();
        name.filter(|name| !name.is_empty())
    }

    /// The commands that the camera can carry out now.
    pub fn offers(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        for (command, _, _) in &self.offers {
            if !commands.contains(command) {
                commands.push(*command);
            }
        }
        commands
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// A sentence for the person who asked.
    pub fn command(&self, command: Command, frame: Option<u64>) -> Result<String, String> {
        let offer = self
            .offers
            .iter()
            .find(|(offered, _, _)| *offered == command);
        let Some((_, element, signal)) = offer else {
            return Err(
                "the configuration of this camera has no element for this command".to_owned(),
            );
        };
        if command == Command::Train && element.property::<u32>("train-frames") == 0 {
            return Err(
                "set train-frames in the table reference of this camera to the number of frames to train with"
                    .to_owned(),
            );
        }
        match (command, frame) {
            (Command::Forget, Some(frame)) => element.emit_by_name::<()>(signal, &[&frame]),
            (Command::Forget, None) => {
                return Err(
                    "name the frame to forget, such as {\"command\": \"forget\", \"frame\": 12}; the message of the \
                     learned limits says which frame set each of them"
                        .to_owned(),
                );
            }
            _ => element.emit_by_name::<()>(signal, &[]),
        }
        Ok(match command {
            Command::TakeWhite => "the next frames become the white reference",
            Command::TakeDark => "the next frames become the dark reference",
            Command::Train => "the next frames train the reference; let good ones pass",
            Command::Learn => "the next frames set the limits; let good ones pass",
            Command::Forget => {
                "the limits are computed again without the frame; let a good one pass in its place"
            }
            Command::TakeReference => "the next frame becomes the reference of alarm-drift",
        }
        .to_owned())
    }

    /// Sets how long a result may take: the latency that the elements report.
    pub fn update_latency_limit(&self) {
        let mut query = gst::query::Latency::new();
        if self.pipeline.query(&mut query) {
            let (is_live, least, _) = query.result();
            let limit = if is_live { least.useconds() } else { 0 };
            self.watched.latency_limit.store(limit, Relaxed);
        }
    }

    /// What was learned since the last call.
    pub fn take_learned(&mut self) -> Vec<Learned> {
        std::mem::take(&mut self.learned)
    }

    /// Sets what an earlier pipeline of this camera learned, unless the file has another value since then.
    pub fn set_learned(&self, learned: &Learned, old: &CameraConfig, new: &CameraConfig) {
        for Part { element, of } in &self.parts {
            let in_file = |config| of(config).and_then(|table| table.get(learned.name));
            if element.has_property(learned.name) && in_file(old) == in_file(new) {
                element.set_property_from_value(learned.name, &learned.value);
            }
        }
    }

    /// Before the end: later results do not become the newest.
    pub fn mark_ending(&self) {
        self.watched.is_ending.store(true, Relaxed);
    }

    /// Ends the stream, so that files are complete, and stops.
    pub fn end(self) {
        if self.watched.has_results() {
            self.pipeline.send_event(gst::event::Eos::new());
            let until = Instant::now() + EOS_LIMIT;
            let ends = [gst::MessageType::Eos, gst::MessageType::Error];
            let left = until.saturating_duration_since(Instant::now());
            let left = gst::ClockTime::try_from(left).unwrap_or(gst::ClockTime::ZERO);
            let _ = self.bus.timed_pop_filtered(left, &ends);
        }
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

/// The caps that the first element that inspects takes.
fn accepted(config: &CameraConfig) -> Result<gst::Caps, Stopped> {
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

impl Drop for Pipeline {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
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
