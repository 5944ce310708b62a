//! The pipeline of one camera:
//! `source ! queue ! clunpack ! clflatfield ! clgaussian ! clhistogram ! analyzer ! fakesink`, without those that the file
//! does not name, and without `clunpack` if the camera sends frames that the others take.

mod change;
mod entry;
mod front;
mod inspection;
mod messages;
mod parts;
mod results;
mod swap;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use clinspect_aravis::Camera as Genicam;
use gst::prelude::*;
use plan::CameraConfig;

use crate::{
    source::{self, SourceFrames},
    state::{Camera, Command, Trouble},
    stopped::{StopReason, stopped_by},
};
pub use change::ChangeResult;
pub use front::Front;
use inspection::{Inspection, accepted, set_learned};
pub(crate) use parts::{Part, changes, is_same_chain};
use results::FrameProgress;
pub use results::Outlets;
pub use results::bins_of;

/// Longest wait for the end of the stream, when a pipeline stops in order.
const EOS_LIMIT: Duration = Duration::from_secs(3);

/// A camera's pipeline; stopped when dropped.
pub struct Pipeline {
    name: String,
    pipeline: gst::Pipeline,
    bus: gst::Bus,
    source: gst::Bin,
    queue: gst::Element,
    /// Whether the source sends frames at their times.
    is_live: bool,
    sink: gst::Element,
    /// The elements between the source and the sink, in their order.
    chain: Vec<gst::Element>,
    parts: Vec<Part>,
    /// The commands that it carries out, with the element and its signal.
    offers: Vec<(Command, gst::Element, &'static str)>,
    analyzer: gst::Element,
    /// `clunpack`, if the frames need it.
    unpack: Option<gst::Element>,
    sent: SourceFrames,
    watched: Arc<FrameProgress>,
    /// The last warning of each element: a repeated one is not logged again.
    warned: BTreeMap<String, String>,
    /// What the elements learned, until it is taken.
    learned: Vec<LearnedProperty>,
    /// The camera of aravis that the source holds open.
    genicam: Option<Arc<Genicam>>,
}

/// A property that an element learned from frames, at a command.
pub struct LearnedProperty {
    /// The property.
    pub name: &'static str,
    value: gst::glib::SendValue,
}

/// As a line of the file.
impl fmt::Display for LearnedProperty {
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

impl Pipeline {
    /// Makes the pipeline without starting it.
    ///
    /// # Errors
    /// The source cannot be made, or an element is missing.
    pub fn build(
        config: &CameraConfig,
        camera: &Arc<Camera>,
        outlets: &Outlets,
    ) -> Result<Self, StopReason> {
        let refused = |text: String| (Trouble::SettingsRefused, text);
        let (source, needs_unpack) = front::open(config)?;
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
        let lacks = || gst::glib::bool_error!("the pipeline lacks a part");
        let queue = source.by_name(source::QUEUE).ok_or_else(lacks)?;
        let inspection = Inspection::make(config, needs_unpack)?;
        let sink = gst::ElementFactory::make("fakesink").build()?;
        sink.set_property("sync", false);
        sink.set_property("async", false);

        let pipeline = gst::Pipeline::new();
        pipeline.add_many([source.upcast_ref(), &sink])?;
        pipeline.add_many(&inspection.chain)?;
        // Only the source comes from outside, so its format is what may not fit.
        if let [first, ..] = &inspection.chain[..]
            && source.link(first).is_err()
        {
            let factory = first.factory().map(|factory| factory.name());
            return Err(gst::glib::bool_error!(
                "{} takes no frames of this source's format; end the source with videoconvert and caps that the element's page names",
                factory.unwrap_or_default()
            ));
        }
        inspection.link_to(&sink)?;
        let watched = inspection.watch(&pipeline, camera, outlets, config)?;
        let pad = queue.static_pad("sink").ok_or_else(lacks)?;
        source::watch_arrivals(&pad, camera, config.triggered);
        let bus = pipeline.bus().ok_or_else(lacks)?;
        Ok(Self {
            name: config.name.clone(),
            pipeline,
            bus,
            source,
            queue,
            is_live: false,
            sink,
            chain: inspection.chain,
            parts: inspection.parts,
            offers: inspection.offers,
            analyzer: inspection.analyzer,
            unpack: inspection.unpack,
            sent: SourceFrames::watch(pad),
            watched,
            warned: BTreeMap::new(),
            learned: Vec::new(),
            genicam: None,
        })
    }

    /// Starts the frames; a failure comes as a message.
    pub fn start(&mut self, config: &CameraConfig) -> Result<(), StopReason> {
        // Before frames flow, so that the first is taken with these settings. A refusal comes again with the format, on
        // which the ranges depend, and only that one counts.
        if self.pipeline.set_state(gst::State::Ready).is_ok() {
            let _ = source::set_controls(&config.source, &self.source);
            self.genicam = source::genicam(&self.source).map(Arc::new);
            let refused = |why| (Trouble::SettingsRefused, why);
            match (&self.genicam, config.released_by()) {
                (Some(camera), Some(by)) => {
                    source::trigger_by(by, camera, &self.source).map_err(refused)?;
                }
                (Some(camera), None) => source::end_trigger_by_software(camera).map_err(refused)?,
                (None, Some(_)) => {
                    let text = "the camera does not open".to_owned();
                    return Err((Trouble::CameraLost, text));
                }
                (None, None) => {}
            }
        }
        // A live source sends nothing yet.
        let paused = self.pipeline.set_state(gst::State::Paused);
        self.is_live = paused == Ok(gst::StateChangeSuccess::NoPreroll);
        self.set_waiting(config);
        match self.pipeline.set_state(gst::State::Playing) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.error_on_bus().unwrap_or_else(|| {
                let text = "the pipeline does not start, and no element says why".to_owned();
                (Trouble::CameraLost, text)
            })),
        }
    }

    /// A live source goes on when the queue is full, if a machine waits for frames: a frame that was held back in the camera
    /// would arrive later than it was taken, as the frame of another piece. The queue drops it instead.
    pub fn set_waiting(&self, config: &CameraConfig) {
        let is_machines = config.machine.deadline.is_some() || config.waits_for_machine();
        let leaky = if self.is_live && is_machines {
            "upstream"
        } else {
            "no"
        };
        self.queue.set_property_from_str("leaky", leaky);
    }

    /// Whether the source and all elements have started.
    pub fn is_playing(&self) -> bool {
        let (result, state, _) = self.pipeline.state(gst::ClockTime::ZERO);
        result.is_ok() && state == gst::State::Playing
    }

    /// The camera of aravis, once it sends frames or waits for a trigger: the source is done with its settings.
    pub fn genicam(&self) -> Option<&Arc<Genicam>> {
        self.genicam.as_ref().filter(|_| self.sent.has_begun())
    }

    /// What the camera was asked for and sends, and what becomes of it; `None` before the first frame.
    pub fn sent(&self, config: &CameraConfig) -> Option<String> {
        self.sent.sentence(&config.source, self.unpack.as_ref())
    }

    /// Why the pipeline stopped, with what the camera offers if it refused its pixel format.
    pub fn explained(&self, stopped: StopReason, config: &CameraConfig) -> StopReason {
        source::explained(stopped, &config.source, &self.source)
    }

    fn error_on_bus(&self) -> Option<StopReason> {
        let message = self.bus.pop_filtered(&[gst::MessageType::Error])?;
        match message.view() {
            gst::MessageView::Error(error) => Some(stopped_by(error, &self.source)),
            _ => None,
        }
    }

    /// When frames came.
    pub fn watched(&self) -> &FrameProgress {
        &self.watched
    }

    /// Why no frame comes: the camera is silent, or the device does not finish a frame.
    pub fn silence(&self) -> StopReason {
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

    /// What was learned since the last call.
    pub fn take_learned(&mut self) -> Vec<LearnedProperty> {
        std::mem::take(&mut self.learned)
    }

    /// Sets what an earlier pipeline of this camera learned, unless the file has another value since then.
    pub fn set_learned(&self, learned: &LearnedProperty, old: &CameraConfig, new: &CameraConfig) {
        set_learned(&self.parts, learned, old, new);
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

impl Drop for Pipeline {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
