//! `inspectpublish`: sends the results of the inspection.

mod imp;

use gst::{glib, prelude::*, subclass::prelude::*};

/// Which frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectPublishFrames")]
pub enum Frames {
    /// All with results.
    #[default]
    #[enum_value(name = "All: every frame that has results", nick = "all")]
    All,
    /// Those with the verdict `fail`.
    #[enum_value(name = "Fail: frames with the verdict fail", nick = "fail")]
    Fail,
    /// Those whose verdict differs from the one before.
    #[enum_value(
        name = "Change: frames whose verdict differs from that of the frame before",
        nick = "change"
    )]
    Change,
}

/// Where reports are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectPublishMethod")]
pub enum Method {
    /// To a file.
    #[default]
    #[enum_value(name = "File: a line of JSON for each frame", nick = "file")]
    File,
    /// To a broker.
    #[enum_value(name = "MQTT: a message for each frame to a broker", nick = "mqtt")]
    Mqtt,
}

glib::wrapper! {
    /// Sends the results on each frame as JSON to a file or to an MQTT broker. Buffers of any kind pass unchanged,
    /// and never wait: a thread of its own sends, from a bounded queue. A full queue drops its oldest report.
    ///
    /// It reads `GstClDefectMeta` and `GstClHistogramMeta`. docs/report.schema.json describes the JSON, and
    /// docs/elements/inspectpublish.md the topics, connections and files.
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc pattern=ball num-buffers=60 ! clpitchthreshold output=frame ! inspectpublish location=- ! fakesink
    /// ```
    ///
    /// ```text
    /// gst-launch-1.0 videotestsrc is-live=true ! clpitchthreshold output=frame ! inspectpublish method=mqtt uri=mqtt://localhost camera=left ! fakesink
    /// ```
    pub struct InspectPublish(ObjectSubclass<imp::InspectPublish>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

impl InspectPublish {
    /// The settings as the properties are now.
    pub fn settings(&self) -> crate::Settings {
        imp::InspectPublish::from_obj(self).settings()
    }

    /// Checks the properties as the start of the element does. Reads the files that they name, and opens no connection.
    ///
    /// # Errors
    /// The sentence of the error at the start.
    pub fn check(&self) -> Result<(), String> {
        self.settings().check(&self.name())
    }
}
