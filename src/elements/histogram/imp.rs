//! Implementation of `clhistogram`.

use std::sync::{
    LazyLock, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use atomic_refcell::AtomicRefCell;
use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::{
    prelude::*,
    subclass::{BaseTransformMode, prelude::*},
};

use super::alarms::{AlarmSettings, Alarms};
use crate::elements::{
    arrays::{self, Unreadable},
    base_filter::{ClBaseFilterExt, ClBaseFilterImpl, Live, MessageGate},
};
use clinspect_core::ClError;
use clinspect_core::{region::user_region, statistics::Statistics};
use clinspect_opencl::frame::FORMATS;
use clinspect_operators::{Histogram, HistogramSettings, Strategy};
use clinspect_results::{FrameTimes, HistogramResult};

const DEFAULT_BINS: u32 = 256;
const DEFAULT_BIT_DEPTH: u32 = 0;
const DEFAULT_POST_MESSAGES: bool = true;
const DEFAULT_INTERVAL: gst::ClockTime = gst::ClockTime::from_mseconds(100);
const DEFAULT_MESSAGE_BINS: bool = false;

/// How samples are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClHistogramStrategy")]
pub enum HistogramStrategy {
    /// What is fastest on the device.
    #[default]
    #[enum_value(name = "Auto: what is fastest on the device", nick = "auto")]
    Auto,
    /// Pairs of bytes.
    #[enum_value(
        name = "Pairs: counters of byte pairs, for CPUs and 8-bit formats",
        nick = "pairs"
    )]
    Pairs,
    /// A table per work-item.
    #[enum_value(name = "Private: a table per work-item", nick = "private")]
    Private,
    /// Bank-private counters.
    #[enum_value(
        name = "Banked: copies of each counter in local memory, for GPUs",
        nick = "banked"
    )]
    Banked,
    /// A table per work-group.
    #[enum_value(name = "Local: a table per work-group in local memory", nick = "local")]
    Local,
}

impl HistogramStrategy {
    fn forced(self) -> Option<Strategy> {
        match self {
            Self::Auto => None,
            Self::Pairs => Some(Strategy::Pairs),
            Self::Private => Some(Strategy::Private),
            Self::Banked => Some(Strategy::Banked),
            Self::Local => Some(Strategy::Local),
        }
    }
}

/// What the operator is made from.
#[derive(Debug, Clone, PartialEq)]
struct Settings {
    bins: u32,
    roi: [u32; 4],
    bit_depth: u32,
    strategy: HistogramStrategy,
    unreadable: Unreadable,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bins: DEFAULT_BINS,
            roi: [0; 4],
            bit_depth: DEFAULT_BIT_DEPTH,
            strategy: HistogramStrategy::default(),
            unreadable: Unreadable::default(),
        }
    }
}

/// What is told on the bus.
#[derive(Debug, Clone, Copy)]
struct Messages {
    post: bool,
    interval: gst::ClockTime,
    bins: bool,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            post: DEFAULT_POST_MESSAGES,
            interval: DEFAULT_INTERVAL,
            bins: DEFAULT_MESSAGE_BINS,
        }
    }
}

struct State {
    live: Live<Settings, Histogram>,
    counts: Vec<u32>,
    gate: MessageGate,
    alarms: Alarms,
}

/// Instance of `clhistogram`.
#[derive(Default)]
pub struct ClHistogram {
    settings: Mutex<Settings>,
    messages: Mutex<Messages>,
    alarms: Mutex<AlarmSettings>,
    /// The next frame is what alarms compare with.
    reference_wanted: AtomicBool,
    state: AtomicRefCell<Option<State>>,
}

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "clhistogram",
        gst::DebugColorFlags::empty(),
        Some("OpenCL histogram"),
    )
});

impl ClHistogram {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alarms(&self) -> MutexGuard<'_, AlarmSettings> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, settings: &Settings) -> Result<Histogram, ClError> {
        let element = self.obj();
        let importer = element.importer()?;
        let layout = importer.layout();
        settings.unreadable.check()?;
        let region = user_region(settings.roi, layout.width, layout.height)
            .map_err(|why| ClError::Refused(format!("roi: {why}")))?;
        Histogram::new(
            importer.context(),
            layout,
            &HistogramSettings {
                bins: settings.bins as usize,
                bit_depth: settings.bit_depth,
                region,
                strategy: settings.strategy.forced(),
                image: element.wants_images(),
            },
        )
    }

    fn analyze(&self, buffer: &mut gst::BufferRef) -> Result<(), ClError> {
        let element = self.obj();
        let mut state = self.state.borrow_mut();
        let state = state
            .as_mut()
            .ok_or_else(|| ClError::Input("a frame came before its caps".into()))?;
        let refusal = state.live.follow(&self.settings, |s| self.build(s))?;
        if let Some(refusal) = refusal {
            element.post_refusal(&refusal);
        }
        let (info, counted) = {
            let mut importer = element.importer()?;
            let frame = importer.import(buffer)?;
            let counted = state
                .live
                .operator
                .run(&frame, importer.meter(), &mut state.counts);
            (importer.info().clone(), counted)
        };
        counted?;

        let Live {
            operator, settings, ..
        } = &state.live;
        let roi = match settings.roi {
            [0, 0, 0, 0] => [0, 0, info.width(), info.height()],
            roi => roi,
        };
        let result = HistogramResult {
            element: element.name().into(),
            frame_number: element.frame_number(buffer),
            format: info.format().to_str().to_string(),
            width: info.width(),
            height: info.height(),
            roi,
            bit_depth: operator.bit_depth(),
            bins: settings.bins,
            statistics: state
                .counts
                .chunks(operator.bins())
                .map(|bins| Statistics::from_bins(bins, operator.bit_depth()))
                .collect(),
            counts: std::mem::take(&mut state.counts),
        };
        result
            .attach(buffer)
            .map_err(|error| ClError::Input(format!("the frame takes no meta: {error}")))?;
        let times = FrameTimes::of(buffer, &element.segment());
        self.tell(&result, &times, &mut state.gate);
        if self.reference_wanted.swap(false, Ordering::Relaxed) {
            state.alarms.take_reference(&result);
        }
        let settings = *self.alarms();
        // Channels that show light; chroma and alpha say nothing about lamps.
        let channels = if info.is_rgb() { 3 } else { 1 };
        for alarm in state.alarms.look(&settings, &result, channels) {
            self.post(times.message(&*element, "clhistogram-alarm", |fields| {
                alarm.write(fields);
            }));
        }
        state.counts = result.counts;
        Ok(())
    }

    /// Posts the message, where one is due.
    fn tell(&self, result: &HistogramResult, times: &FrameTimes, gate: &mut MessageGate) {
        let messages = *self.messages();
        if !messages.post {
            return;
        }
        if !gate.opens(times.running_time, messages.interval, false) {
            return;
        }
        self.post(times.message(&*self.obj(), "clhistogram", |fields| {
            result.write_scalars(fields);
            if messages.bins {
                fields.set("bins-data", result.bin_arrays());
            }
        }));
    }

    fn post(&self, message: gst::Message) {
        if self.obj().post_message(message).is_err() {
            gst::debug!(CAT, imp = self, "no bus takes messages");
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for ClHistogram {
    const NAME: &'static str = "GstClHistogram";
    type Type = super::ClHistogram;
    type ParentType = crate::elements::base_filter::ClBaseFilter;
}

impl ObjectImpl for ClHistogram {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let mut specs = vec![
                glib::ParamSpecUInt::builder("bins")
                    .nick("Bins")
                    .blurb("Bins a channel; a power of two, at most the levels of a sample")
                    .minimum(2)
                    .maximum(65_536)
                    .default_value(DEFAULT_BINS)
                    .mutable_playing()
                    .build(),
                arrays::region_spec(
                    "roi",
                    "Region of interest",
                    "Pixels to count, <x, y, width, height>; zeros = whole frame. Chroma grows \
                     outward to whole samples",
                ),
                arrays::bit_depth_spec(),
                glib::ParamSpecEnum::builder_with_default("strategy", HistogramStrategy::default())
                    .nick("Strategy")
                    .blurb("How samples are counted; all strategies give the same counts")
                    .mutable_playing()
                    .build(),
                glib::ParamSpecBoolean::builder("post-messages")
                    .nick("Post messages")
                    .blurb("Post a message with the statistics, at most once per interval")
                    .default_value(DEFAULT_POST_MESSAGES)
                    .mutable_playing()
                    .build(),
                arrays::interval_spec(DEFAULT_INTERVAL),
                glib::ParamSpecBoolean::builder("message-bins")
                    .nick("Message bins")
                    .blurb("Put the bins into messages, an array per channel")
                    .default_value(DEFAULT_MESSAGE_BINS)
                    .mutable_playing()
                    .build(),
            ];
            specs.extend(AlarmSettings::param_specs());
            specs
        });
        PROPERTIES.as_ref()
    }

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<glib::subclass::Signal>> = LazyLock::new(|| {
            // Takes the next frame's medians as what the alarm of drifting lamps compares with.
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
        match pspec.name() {
            "bins" => self.settings().bins = value.get().unwrap_or(DEFAULT_BINS),
            "roi" => {
                let mut settings = self.settings();
                let roi = arrays::region_from(value);
                if let Some(roi) = settings.unreadable.note("roi", roi) {
                    settings.roi = roi;
                }
            }
            "bit-depth" => self.settings().bit_depth = value.get().unwrap_or(DEFAULT_BIT_DEPTH),
            "strategy" => self.settings().strategy = value.get().unwrap_or_default(),
            "post-messages" => {
                self.messages().post = value.get().unwrap_or(DEFAULT_POST_MESSAGES);
            }
            "interval" => self.messages().interval = arrays::interval_from(value, DEFAULT_INTERVAL),
            "message-bins" => self.messages().bins = value.get().unwrap_or(DEFAULT_MESSAGE_BINS),
            name => self.alarms().set(name, value),
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        match pspec.name() {
            "bins" => self.settings().bins.to_value(),
            "roi" => arrays::region_value(self.settings().roi),
            "bit-depth" => self.settings().bit_depth.to_value(),
            "strategy" => self.settings().strategy.to_value(),
            "post-messages" => self.messages().post.to_value(),
            "interval" => self.messages().interval.nseconds().to_value(),
            "message-bins" => self.messages().bins.to_value(),
            name => {
                let alarm = self.alarms().get(name);
                alarm.unwrap_or_else(|| pspec.default_value().clone())
            }
        }
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
            LazyLock::new(|| crate::elements::same_caps_templates(&FORMATS));
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for ClHistogram {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.obj().start_device()
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.state.borrow_mut() = None;
        self.parent_stop()
    }

    fn set_caps(&self, incaps: &gst::Caps, outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        self.parent_set_caps(incaps, outcaps)?;
        let settings = self.settings().clone();
        let result = Live::new(settings, |s| self.build(s)).map(|live| {
            let mut state = self.state.borrow_mut();
            let before = state.take().map(|before| (before.gate, before.alarms));
            let (gate, alarms) = before.unwrap_or_default();
            *state = Some(State {
                live,
                counts: Vec::new(),
                gate,
                alarms,
            });
        });
        self.obj()
            .set_up_result(&CAT, "setting up the histogram", result)
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.analyze(buffer).map_err(|error| {
            self.obj().post_error(&error, "counting a frame");
            gst::FlowError::Error
        })?;
        Ok(gst::FlowSuccess::Ok)
    }
}

impl ClBaseFilterImpl for ClHistogram {}
