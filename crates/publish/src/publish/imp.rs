//! Implementation of `inspectpublish`.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed};

use gst::{glib, prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};

use super::{Frames, Method};
use crate::{
    broker::Broker, file::JsonLines, mqtt::Mqtt, queue::Queue, report::Report, sender::Running,
    time,
};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectpublish",
        gst::DebugColorFlags::empty(),
        Some("Sends the results of the inspection"),
    )
});

const DEFAULT_TOPIC: &str = "clinspect";
const DEFAULT_MAX_QUEUED: u32 = 1000;

#[derive(Debug, Clone, Default)]
struct Settings {
    method: Method,
    location: String,
    uri: String,
    topic: String,
    camera: String,
    frames: Frames,
    max_queued: u32,
    credentials_file: String,
    ca_file: String,
}

struct State {
    running: Running,
    queue: Arc<Queue>,
    frames: Frames,
    camera: Option<String>,
    /// The verdict of the frame before.
    last: Option<&'static str>,
}

pub struct InspectPublish {
    settings: Mutex<Settings>,
    state: Mutex<Option<State>>,
    /// The queue of the last start, for `stats`.
    queue: Mutex<Option<Arc<Queue>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for InspectPublish {
    fn default() -> Self {
        Self {
            settings: Mutex::new(Settings {
                topic: DEFAULT_TOPIC.into(),
                max_queued: DEFAULT_MAX_QUEUED,
                ..Settings::default()
            }),
            state: Mutex::default(),
            queue: Mutex::default(),
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for InspectPublish {
    const NAME: &'static str = "GstInspectPublish";
    type Type = super::InspectPublish;
    type ParentType = gst_base::BaseTransform;
}

fn text(name: &str, nick: &str, blurb: &str, default: Option<&str>) -> glib::ParamSpec {
    glib::ParamSpecString::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_ready()
        .build()
}

impl ObjectImpl for InspectPublish {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            vec![
                glib::ParamSpecEnum::builder_with_default("method", Method::File)
                    .nick("Method")
                    .blurb("Where results are sent")
                    .mutable_ready()
                    .build(),
                text(
                    "location",
                    "Location",
                    "method=file: the file, to which lines of JSON are appended; - = standard output",
                    None,
                ),
                text(
                    "uri",
                    "URI",
                    "method=mqtt: the broker, mqtt://HOST or mqtts://HOST, each with :PORT if it is not 1883 or 8883",
                    None,
                ),
                text(
                    "topic",
                    "Topic",
                    "method=mqtt: first part of the topics TOPIC/CAMERA/result and TOPIC/CAMERA/state",
                    Some(DEFAULT_TOPIC),
                ),
                text(
                    "camera",
                    "Camera",
                    "Name of the camera in results and topics; \"\" = the element's name in topics",
                    None,
                ),
                glib::ParamSpecEnum::builder_with_default("publish", Frames::All)
                    .nick("Publish")
                    .blurb("Which frames are sent")
                    .mutable_ready()
                    .build(),
                glib::ParamSpecUInt::builder("max-queued")
                    .nick("Maximum queued")
                    .blurb("Most results that wait to be sent; the oldest gives way, and is counted as dropped")
                    .minimum(1)
                    .default_value(DEFAULT_MAX_QUEUED)
                    .mutable_ready()
                    .build(),
                text(
                    "credentials-file",
                    "Credentials file",
                    "method=mqtt: a file with user and password in two lines, which other users may not read; \"\" = none",
                    None,
                ),
                text(
                    "ca-file",
                    "CA file",
                    "method=mqtt: certificates in PEM that a mqtts broker's must go back to; \"\" = those of the system",
                    None,
                ),
                glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                    .nick("Statistics")
                    .blurb("Since the start: results queued, published and dropped, errors, and whether the file or broker takes results")
                    .read_only()
                    .build(),
            ]
        });
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        let mut settings = lock(&self.settings);
        let text = || {
            value
                .get::<Option<String>>()
                .ok()
                .flatten()
                .unwrap_or_default()
        };
        match spec.name() {
            "method" => settings.method = value.get().unwrap_or_default(),
            "location" => settings.location = text(),
            "uri" => settings.uri = text(),
            "topic" => settings.topic = text(),
            "camera" => settings.camera = text(),
            "publish" => settings.frames = value.get().unwrap_or_default(),
            "max-queued" => settings.max_queued = value.get().unwrap_or(DEFAULT_MAX_QUEUED),
            "credentials-file" => settings.credentials_file = text(),
            "ca-file" => settings.ca_file = text(),
            _ => {}
        }
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let settings = lock(&self.settings);
        match spec.name() {
            "method" => settings.method.to_value(),
            "location" => settings.location.to_value(),
            "uri" => settings.uri.to_value(),
            "topic" => settings.topic.to_value(),
            "camera" => settings.camera.to_value(),
            "publish" => settings.frames.to_value(),
            "max-queued" => settings.max_queued.to_value(),
            "credentials-file" => settings.credentials_file.to_value(),
            "ca-file" => settings.ca_file.to_value(),
            _ => self.stats().to_value(),
        }
    }
}

impl GstObjectImpl for InspectPublish {}

impl ElementImpl for InspectPublish {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Inspection result publisher",
                "Filter/Analyzer/Video",
                "Sends verdicts, defects and histogram statistics as JSON to a file or an MQTT broker",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let any = gst::Caps::new_any();
            [
                ("sink", gst::PadDirection::Sink),
                ("src", gst::PadDirection::Src),
            ]
            .into_iter()
            .filter_map(|(name, direction)| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &any).ok()
            })
            .collect()
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for InspectPublish {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = true;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let refused = |why: String| gst::error_msg!(gst::LibraryError::Settings, ("{why}"));
        let queue = Arc::new(Queue::new(settings.max_queued as usize));
        let element = self.obj();
        let element = element.upcast_ref::<gst::Element>();
        let running = match self.target(&settings).map_err(refused)? {
            Target::File(lines) => Running::start(lines, queue.clone(), element),
            Target::Mqtt(mqtt) => Running::start(mqtt, queue.clone(), element),
        };
        let running = running.map_err(|error| {
            gst::error_msg!(
                gst::ResourceError::NoSpaceLeft,
                ("no thread to send results: {error}; end other programs")
            )
        })?;
        *lock(&self.queue) = Some(queue.clone());
        *lock(&self.state) = Some(State {
            running,
            queue,
            frames: settings.frames,
            camera: Some(settings.camera).filter(|name| !name.is_empty()),
            last: None,
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        let state = lock(&self.state).take();
        if let Some(State { running, queue, .. }) = state {
            if !running.stop() {
                gst::warning!(CAT, imp = self, "the sender does not end; it ends alone");
            }
            queue.close();
        }
        Ok(())
    }

    fn transform_ip_passthrough(
        &self,
        buffer: &gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut state = lock(&self.state);
        if let Some(state) = state.as_mut() {
            let segment = self.obj().segment().downcast::<gst::ClockTime>().ok();
            let now = self.obj().current_running_time();
            let captured = time::captured(buffer, segment.as_ref(), now);
            let camera = state.camera.as_deref();
            if let Some(report) = Report::of(buffer, camera, time::iso_8601(captured)) {
                let before = state.last.replace(report.verdict);
                let is_wanted = match state.frames {
                    Frames::All => true,
                    Frames::Fail => report.verdict == "fail",
                    Frames::Change => before != Some(report.verdict),
                };
                if is_wanted {
                    state.queue.push(Arc::new(report));
                }
            }
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

/// Where results go.
enum Target {
    File(JsonLines),
    Mqtt(Mqtt),
}

impl InspectPublish {
    /// See [`super::InspectPublish::check`].
    ///
    /// # Errors
    /// See there.
    pub fn check(&self) -> Result<(), String> {
        let settings = lock(&self.settings).clone();
        self.target(&settings).map(|_| ())
    }

    /// The place that the settings name, which is not opened yet.
    ///
    /// # Errors
    /// A sentence that says what to do, without a secret.
    fn target(&self, settings: &Settings) -> Result<Target, String> {
        let Settings {
            location,
            uri,
            credentials_file,
            ca_file,
            topic,
            ..
        } = settings;
        if settings.method == Method::File {
            if location.is_empty() {
                return Err("location is empty; set a file, or - for standard output".into());
            }
            return Ok(Target::File(JsonLines::new(location)));
        }
        let broker = Broker::new(uri, credentials_file, ca_file)?;
        let camera = match settings.camera.as_str() {
            "" => self.obj().name().to_string(),
            name => name.into(),
        };
        for (name, part) in [("topic", topic), ("camera", &camera)] {
            if part.is_empty() || part.contains(['#', '+', '\0']) {
                return Err(format!(
                    "{name}={part:?} is no part of a topic: it must not be empty, nor contain # or +"
                ));
            }
        }
        Ok(Target::Mqtt(Mqtt::new(broker, topic, &camera)))
    }

    fn stats(&self) -> gst::Structure {
        let queue = lock(&self.queue).clone();
        let numbers = |of: fn(&crate::queue::Numbers) -> u64| {
            queue.as_ref().map_or(0, |queue| of(queue.numbers()))
        };
        gst::Structure::builder("stats")
            .field(
                "queued",
                queue.as_ref().map_or(0, |queue| queue.len() as u64),
            )
            .field("published", numbers(|n| n.published.load(Relaxed)))
            .field("dropped", numbers(|n| n.dropped.load(Relaxed)))
            .field("errors", numbers(|n| n.errors.load(Relaxed)))
            .field(
                "connected",
                queue.is_some_and(|queue| queue.numbers().is_connected.load(Relaxed)),
            )
            .build()
    }
}
