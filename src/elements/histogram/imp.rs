//! Implementation of `clhistogram`.

use std::sync::{
    LazyLock, Mutex,
    atomic::{AtomicBool, Ordering},
};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{BaseTransformMode, prelude::*},
};

use super::{
    alarms::Alarms,
    properties::{Properties, Settings, TABLE},
};
use crate::elements::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, Frame, Live, MessageGate, Target,
    },
    lock, same_caps_templates,
};
use clinspect_core::ClError;
use clinspect_core::{region::user_region, statistics::Statistics};
use clinspect_opencl::frame::FORMATS;
use clinspect_operators::{Histogram, HistogramSettings};
use clinspect_results::{FrameTimes, HistogramResult};

/// Instance of `clhistogram`.
#[derive(Default)]
pub struct ClHistogram {
    properties: Mutex<Properties>,
    /// The next frame becomes the reference of the lamp-drift alarm.
    reference_wanted: AtomicBool,
}

/// State that is kept from frame to frame.
#[derive(Default)]
pub struct State {
    counts: Vec<u32>,
    gate: MessageGate,
    alarms: Alarms,
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clhistogram",
        gst::DebugColorFlags::empty(),
        Some("OpenCL histogram"),
    )
});

#[glib::object_subclass]
impl ObjectSubclass for ClHistogram {
    const NAME: &'static str = "GstClHistogram";
    type Type = super::ClHistogram;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClHistogram {
    fn properties() -> &'static [glib::ParamSpec] {
        TABLE.specs()
    }

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(|| {
            // Takes the next frame's medians as the reference of the lamp-drift alarm.
            vec![
                glib::subclass::Signal::builder("take-reference")
                    .action()
                    .class_handler(|args| {
                        let element = args.first()?.get::<super::ClHistogram>().ok()?;
                        let wanted = &element.imp().reference_wanted;
                        wanted.store(true, Ordering::Relaxed);
                        None
                    })
                    .build(),
            ]
        });
        SIGNALS.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        gst::info!(CAT, imp = self, "{} = {value:?}", pspec.name());
        TABLE.set(&self.properties, pspec.name(), value);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let value = TABLE.get(&self.properties, pspec.name());
        value.unwrap_or_else(|| pspec.default_value().clone())
    }
}

impl GstObjectImpl for ClHistogram {}

impl ElementImpl for ClHistogram {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "OpenCL histogram",
                "Filter/Analyzer/Video",
                "Attaches each frame's histogram as metadata; counts on an OpenCL device",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| same_caps_templates(&FORMATS));
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for ClHistogram {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClHistogram {
    const TASK: &'static str = "counting a frame";
    type Settings = Settings;
    type Operator = Histogram;
    type State = State;

    fn settings(&self, _state: &State) -> Settings {
        lock(&self.properties).counting.clone()
    }

    fn build(target: &Target, settings: &Settings) -> Result<Histogram, ClError> {
        settings.unreadable.check()?;
        let layout = &target.layout;
        let region = user_region(settings.roi, layout.width, layout.height)
            .map_err(|why| ClError::Refused(format!("roi: {why}")))?;
        Histogram::new(
            &target.context,
            layout,
            &HistogramSettings {
                bins: settings.bins as usize,
                bit_depth: settings.bit_depth,
                region,
                strategy: settings.strategy,
                image: target.images,
            },
        )
    }

    fn process(
        &self,
        live: &mut Live<Settings, Histogram>,
        state: &mut State,
        frame: &mut Frame,
    ) -> Result<Option<gst::Event>, ClError> {
        let operator = &mut live.operator;
        operator.run(&frame.input, frame.meter(), &mut state.counts)?;
        let element = self.obj();
        let info = frame.info().clone();
        let roi = match live.settings.roi {
            [0, 0, 0, 0] => [0, 0, info.width(), info.height()],
            roi => roi,
        };
        let result = HistogramResult {
            element: element.name().into(),
            frame_number: element.frame_number(frame.buffer()),
            format: info.format().to_str().to_string(),
            width: info.width(),
            height: info.height(),
            roi,
            bit_depth: operator.bit_depth(),
            bins: live.settings.bins,
            statistics: state
                .counts
                .chunks(operator.bins())
                .map(|bins| Statistics::from_bins(bins, operator.bit_depth()))
                .collect(),
            counts: std::mem::take(&mut state.counts),
        };
        result.attach(frame.output()).map_err(|error| {
            ClError::Input(format!("cannot attach a meta to the frame: {error}"))
        })?;

        let times = FrameTimes::of(frame.buffer(), &element.segment());
        let properties = lock(&self.properties).clone();
        if properties.post_messages
            && (state.gate).opens(times.running_time, properties.interval_ns, false)
        {
            element.post(times.message(&*element, "clhistogram", |fields| {
                result.write_scalars(fields);
                if properties.message_bins {
                    fields.set("bins-data", result.bin_arrays());
                }
            }));
        }
        if self.reference_wanted.swap(false, Ordering::Relaxed) {
            state.alarms.take_reference(&result);
        }
        // The channels that show light; chroma and alpha say nothing about lamps.
        let channels = if info.is_rgb() { 3 } else { 1 };
        for alarm in state.alarms.look(&properties.alarms, &result, channels) {
            element.post(times.message(&*element, "clhistogram-alarm", |fields| {
                alarm.write(fields);
            }));
        }
        state.counts = result.counts;
        Ok(None)
    }
}
