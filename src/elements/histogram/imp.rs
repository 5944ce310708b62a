//! Implementation of `clhistogram`.

use std::sync::{LazyLock, Mutex};

use gst::{
    glib::{
        self,
        subclass::{ObjectImplRef, Signal},
    },
    prelude::*,
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::alarms::{self, AlarmSettings, Alarms};
use crate::elements::{
    base_filter::{
        self, ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, Frame, FrameStream, InForce, Live,
        MessageGate, MessageSettings, Negotiated, put_back, refuse,
    },
    checked::CheckedValue,
    debug_category, element_class, lock,
    property_table::{PropertyTable, properties, property_methods},
    structure::{Structure, structure},
};
use clinspect_core::{
    ClError,
    region::{check_region, user_region},
    statistics::Statistics,
};
use clinspect_operators::{Histogram, HistogramSettings, Strategy, check_bins, largest_depth};
use clinspect_results::HistogramResult;

/// Settings from which the operator is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub bins: u32,
    pub roi: CheckedValue<[u32; 4]>,
    pub bit_depth: u32,
    pub strategy: Strategy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bins: 256,
            roi: CheckedValue::default(),
            bit_depth: 0,
            strategy: Strategy::default(),
        }
    }
}

/// All properties.
#[derive(Debug, Clone, Default)]
struct Properties {
    pub counting: Settings,
    pub reports: CheckedValue<Reports>,
    pub alarms: AlarmSettings,
}

/// How results are reported besides the meta.
#[derive(Debug, Clone, Default)]
pub(super) struct Reports {
    messages: MessageSettings,
    message_bins: bool,
}

structure!(Reports, "reports" {
    boolean(
        "messages", "Messages", "Post a message with the statistics, at most once per interval"
    ) = messages.post;
    interval() = messages.interval_ns;
    boolean(
        "message-bins", "Message bins", "Add the bins to messages, an array per channel"
    ) = message_bins;
});

/// Instance of `clhistogram`.
#[derive(Default)]
pub struct ClHistogram {
    properties: Mutex<Properties>,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clhistogram", "OpenCL histogram"));

static PROPERTIES: LazyLock<PropertyTable<ClHistogram>> = LazyLock::new(|| {
    let mut rows = properties!(Properties {
        uint(
            "bins", "Bins",
            "Bins per channel; a power of two, at most the number of levels of a sample",
            2..=65_536
        ) = counting.bins;
        choice(
            "strategy", "Strategy",
            "How samples are counted; all strategies give the same counts"
        ) = counting.strategy;
        region(
            "roi", "Region of interest",
            "Pixels to count, <x, y, width, height>; zeros = whole frame. Chroma grows \
             outward to whole samples"
        ) = counting.roi;
        bit_depth() = counting.bit_depth;
        structure(
            "Reports", "How results are reported besides the meta, such as \"reports, message-bins=true\""
        ) = reports;
    });
    rows.extend(
        alarms::rows()
            .into_iter()
            .map(|row| row.within(|properties: &mut Properties| &mut properties.alarms)),
    );
    PropertyTable::new(&CAT).with(|this| &this.properties, rows)
});

element_class!(
    ClHistogram: ClBaseFilter,
    "GstClHistogram",
    base_filter::templates(),
    "OpenCL histogram",
    "Filter/Analyzer/Video",
    "Attaches each frame's histogram as metadata; counts on an OpenCL device",
);

impl ObjectImpl for ClHistogram {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            let take_reference = Signal::builder("take-reference").action();
            let take_reference = take_reference.class_handler(|args| {
                let element = args.first()?.get::<super::ClHistogram>().ok()?;
                lock(&element.imp().properties).alarms.request_reference();
                element.revise();
                None
            });
            vec![take_reference.build()]
        });
        SIGNALS.as_ref()
    }
}

impl BaseTransformImpl for ClHistogram {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClHistogram {
    const TASK: &'static str = "counting a frame";

    fn check(&self, _images: bool) -> Result<(), ClError> {
        let Properties {
            counting,
            reports,
            alarms,
        } = lock(&self.properties).clone();
        let depth = largest_depth(counting.bit_depth);
        check_bins(counting.bins as usize, depth, largest_depth(0))?;
        reports.check(Reports::NAME, |_| Ok(()))?;
        alarms.check()?;
        counting.roi.check("roi", |&roi| check_region(roi))
    }

    fn open(&self) -> Box<dyn FrameStream> {
        Box::new(HistogramStream {
            live: Live::new(&*self.obj()),
            properties: Properties::default(),
            revision: None,
            counts: Vec::new(),
            gate: MessageGate::default(),
            was_corrupted: false,
            alarms: Alarms::default(),
            element: self.ref_counted(),
        })
    }
}

/// The work of a running element.
struct HistogramStream {
    element: ObjectImplRef<ClHistogram>,
    live: Live<Settings, Histogram>,
    /// The properties as they were before the frame, and their revision.
    properties: Properties,
    revision: Option<u64>,
    counts: Vec<u32>,
    gate: MessageGate,
    /// The last frame was corrupted.
    was_corrupted: bool,
    alarms: Alarms,
}

impl FrameStream for HistogramStream {
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError> {
        let Properties {
            counting: settings,
            reports,
            ..
        } = lock(&self.element.properties).clone();
        reports.check(Reports::NAME, |_| Ok(()))?;
        let target = caps.target.clone();
        self.live.start(settings, move |settings| {
            let layout = &target.layout;
            let region = settings
                .roi
                .check("roi", |&roi| user_region(roi, layout.width, layout.height))?;
            let settings = HistogramSettings {
                bins: settings.bins as usize,
                bit_depth: target.bit_depth(settings.bit_depth),
                region,
                strategy: settings.strategy,
                image: target.images,
            };
            let operator = Histogram::new(&target.context, layout, &settings)?;
            target.trial.histogram(layout, &settings, &operator)?;
            Ok(operator)
        })
    }

    fn follow(&mut self, revision: u64) -> Result<(), ClError> {
        if self.revision.replace(revision) != Some(revision) {
            self.read_properties();
        }
        let now = &self.element.properties;
        let wanted = || self.properties.counting.clone();
        self.live.follow(revision, wanted, |refused, in_force| {
            put_back(&mut lock(now).counting, refused, in_force);
        })
    }

    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError> {
        let InForce {
            operator, settings, ..
        } = self.live.in_force()?;
        operator.run(&frame.input, frame.meter(), &mut self.counts)?;
        let element = self.element.obj();
        let info = frame.info().clone();
        let roi = match *settings.roi.usable() {
            [0, 0, 0, 0] => [0, 0, info.width(), info.height()],
            roi => roi,
        };
        let mut result = HistogramResult {
            element: element.name().into(),
            frame_number: element.frame_number(frame.buffer()),
            format: info.format().to_str().to_string(),
            width: info.width(),
            height: info.height(),
            roi,
            bit_depth: operator.bit_depth(),
            bins: settings.bins,
            statistics: self
                .counts
                .chunks(operator.bins())
                .map(|bins| Statistics::from_bins(bins, operator.bit_depth()))
                .collect(),
            counts: std::mem::take(&mut self.counts),
            alarms: Vec::new(),
            corrupted: frame.is_corrupted,
        };
        let alarms = &mut self.properties.alarms;
        // The levels of a corrupted frame say nothing of the light.
        let taken = if frame.is_corrupted {
            if alarms.is_requested() {
                lock(&self.element.properties).alarms.request_reference();
                element.revise();
            }
            None
        } else {
            alarms.take_reference(&result, info.is_rgb())
        };
        if taken.is_some() {
            lock(&self.element.properties).alarms.set_reference(alarms);
        }
        let changes = if frame.is_corrupted {
            Vec::new()
        } else {
            self.alarms.update(alarms, &result, info.is_rgb())
        };
        result.alarms = self.alarms.raised();
        if let Some(why) = self.alarms.why_no_drift(alarms) {
            gst::element_warning!(element, gst::LibraryError::Settings, ("{why}"));
        }
        result.attach(frame.output()).map_err(|error| {
            ClError::Input(format!("cannot attach a meta to the frame: {error}"))
        })?;

        let times = element.frame_times(frame.buffer());
        let reports = self.properties.reports.usable();
        let is_news = frame.is_corrupted != self.was_corrupted;
        self.was_corrupted = frame.is_corrupted;
        if (self.gate).opens(&reports.messages, times.running_time, is_news) {
            element.post(times.message(&*element, "clhistogram", None, |fields| {
                result.write_scalars(fields);
                if reports.message_bins {
                    fields.set("bins-data", result.bin_arrays());
                }
            }));
        }
        if let Some(reference) = taken {
            element.notify(AlarmSettings::REFERENCE);
            element.post(
                times.message(&*element, "clhistogram-reference", None, |fields| {
                    fields.set("element", &result.element);
                    fields.set("frame-number", result.frame_number);
                    fields.set("reference", gst::Array::new(reference));
                }),
            );
        }
        for alarm in changes {
            element.post(times.message(&*element, "clhistogram-alarm", None, |f| {
                alarm.write(f);
            }));
        }
        self.counts = result.counts;
        Ok(None)
    }
}

impl HistogramStream {
    /// Takes the properties as they are now, and with them the request for a reference.
    fn read_properties(&mut self) {
        let now = &self.element.properties;
        let refusals = {
            let now = &mut *lock(now);
            let refusals = [
                now.reports.take_refusal(Reports::NAME),
                now.alarms.take_refusal(),
            ];
            self.properties = now.clone();
            now.alarms.clear_request();
            refusals
        };
        for refusal in refusals.iter().flatten() {
            refuse(self.element.obj().upcast_ref(), refusal, || ());
        }
    }
}
