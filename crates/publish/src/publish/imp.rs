//! Implementation of `inspectpublish`.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use clinspect_results::{report::Report, time};
use gst::{glib, prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};

use super::{Frames, Method};
use crate::{
    publisher::{
        DEFAULT_MAX_QUEUED, DEFAULT_MAX_QUEUED_BYTES, DEFAULT_TOPIC, Numbers, Publisher, Settings,
        StartError,
    },
    sender::Notice,
};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "inspectpublish",
        gst::DebugColorFlags::empty(),
        Some("Sends the results of the inspection"),
    )
});

#[derive(Default)]
pub struct InspectPublish {
    settings: Mutex<Settings>,
    publisher: Mutex<Option<Publisher>>,
    /// The numbers of the publisher before, once it has ended.
    numbers: Mutex<Numbers>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
                    "method=mqtt: the broker, mqtt://HOST or mqtts://HOST, each with :PORT if it is not 1883 or 8883; an IPv6 address as [fd00::7]",
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
                    .blurb("Maximum number of results that wait to be sent; if there are more, the oldest is dropped and counted")
                    .minimum(1)
                    .default_value(DEFAULT_MAX_QUEUED)
                    .mutable_ready()
                    .build(),
                glib::ParamSpecUInt64::builder("max-queued-bytes")
                    .nick("Maximum queued bytes")
                    .blurb("Maximum memory of the results that wait to be sent, in bytes; if they take more, the oldest is dropped and counted; one result may take more")
                    .minimum(1)
                    .default_value(DEFAULT_MAX_QUEUED_BYTES)
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
                    "method=mqtt: PEM file of the CA certificates that a mqtts broker's certificate is checked against; \"\" = those of the system",
                    None,
                ),
                glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                    .nick("Statistics")
                    .blurb("Since the start: results queued and their memory in bytes, results published and dropped, errors, and whether the file or broker takes results")
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
            "max-queued-bytes" => {
                settings.max_queued_bytes = value.get().unwrap_or(DEFAULT_MAX_QUEUED_BYTES);
            }
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
            "max-queued-bytes" => settings.max_queued_bytes.to_value(),
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
        let element = self.obj();
        let weak = element.downgrade();
        let notify = move |notice| {
            let Some(element) = weak.upgrade() else {
                return;
            };
            match notice {
                Notice::Failed(why) => gst::element_warning!(
                    element,
                    gst::ResourceError::Write,
                    ("{why}; the results wait, and the element tries again")
                ),
                Notice::Refused(why) => {
                    gst::element_warning!(element, gst::ResourceError::Write, ("{why}"))
                }
                Notice::Recovered(text) => {
                    gst::element_info!(element, gst::ResourceError::Write, ("{text}"))
                }
            }
        };
        let publisher = Publisher::start(settings, &element.name(), notify);
        let publisher = publisher.map_err(|error| match error {
            StartError::Settings(_) => gst::error_msg!(gst::LibraryError::Settings, ("{error}")),
            StartError::System(_) => gst::error_msg!(gst::ResourceError::NoSpaceLeft, ("{error}")),
        })?;
        *lock(&self.publisher) = Some(publisher);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        let publisher = lock(&self.publisher).take();
        if let Some(publisher) = publisher {
            if !publisher.end() {
                gst::warning!(
                    CAT,
                    imp = self,
                    "the sending thread does not end in time; it ends later by itself"
                );
            }
            *lock(&self.numbers) = publisher.numbers();
        }
        Ok(())
    }

    fn transform_ip_passthrough(
        &self,
        buffer: &gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        if let Some(publisher) = lock(&self.publisher).as_ref() {
            let segment = self.obj().segment().downcast::<gst::ClockTime>().ok();
            let now = self.obj().current_running_time();
            let captured = time::captured(buffer, segment.as_ref(), now);
            let camera = Some(publisher.settings().camera.as_str()).filter(|name| !name.is_empty());
            if let Some(report) = Report::of(buffer, camera, time::iso_8601(captured)) {
                publisher.offer(&Arc::new(report));
            }
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

impl InspectPublish {
    /// The settings as the properties are now.
    pub(super) fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    fn stats(&self) -> gst::Structure {
        let now = lock(&self.publisher).as_ref().map(Publisher::numbers);
        let numbers = now.unwrap_or_else(|| *lock(&self.numbers));
        gst::Structure::builder("stats")
            .field("queued", numbers.queued)
            .field("queued-bytes", numbers.queued_bytes)
            .field("published", numbers.published)
            .field("dropped", numbers.dropped)
            .field("errors", numbers.errors)
            .field("connected", numbers.is_connected)
            .build()
    }
}
