//! Properties of `clpitchthreshold`.

use gst::{glib, prelude::*};

use crate::elements::arrays::{self, Unreadable};
use clinspect_core::components::Limits;
use clinspect_operators::{Compare, Polarity};
use clinspect_results::{MOST_DEFECTS, VerdictLimits};

/// A pitch that is to be estimated.
const ESTIMATE: f64 = -1.0;
const DEFAULT_PITCH_X: f64 = ESTIMATE;
const DEFAULT_PITCH_Y: f64 = 0.0;
const MAX_PITCH: f64 = 65_536.0;
const DEFAULT_THRESHOLD: f64 = 10.0;
const MAX_THRESHOLD: f64 = 65_535.0;
const DEFAULT_MATCH_CENTER: bool = false;
const DEFAULT_LIMIT: i64 = 0;
const DEFAULT_MIN_AREA: u32 = 1;
const DEFAULT_MERGE_DISTANCE: u32 = 0;
const DEFAULT_MAX_DEFECTS: u32 = 100;
const DEFAULT_POST_MESSAGES: bool = true;
const DEFAULT_SEND_EVENTS: bool = false;
const DEFAULT_INTERVAL: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// How a pixel's two neighbours are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchCompare")]
pub enum PitchCompare {
    /// Against their mean.
    #[default]
    #[enum_value(
        name = "Average: against the mean of both neighbours; leaves a ghost on each side",
        nick = "average"
    )]
    Average,
    /// Against each of them.
    #[enum_value(
        name = "Minimum: against each neighbour, the smaller difference counts; no ghosts",
        nick = "minimum"
    )]
    Minimum,
}

/// Which deviations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchPolarity")]
pub enum PitchPolarity {
    /// Brighter and darker.
    #[default]
    #[enum_value(name = "Both: brighter and darker", nick = "both")]
    Both,
    /// Brighter.
    #[enum_value(name = "Bright: brighter than the neighbours", nick = "bright")]
    Bright,
    /// Darker.
    #[enum_value(name = "Dark: darker than the neighbours", nick = "dark")]
    Dark,
}

/// What is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchOutput")]
pub enum PitchOutput {
    /// The mask.
    #[default]
    #[enum_value(
        name = "Mask: the defect mask, with the results as meta",
        nick = "mask"
    )]
    Mask,
    /// The frame.
    #[enum_value(
        name = "Frame: frames unchanged, with the results and the packed mask as meta",
        nick = "frame"
    )]
    Frame,
}

/// What the operator is made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub pitch_x: f64,
    pub pitch_y: f64,
    pub multiples: Vec<u32>,
    pub threshold: f64,
    pub compare: PitchCompare,
    pub match_center: bool,
    pub polarity: PitchPolarity,
    pub rois: Vec<[u32; 4]>,
    pub bit_depth: u32,
    pub unreadable: Unreadable,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pitch_x: DEFAULT_PITCH_X,
            pitch_y: DEFAULT_PITCH_Y,
            multiples: vec![1],
            threshold: DEFAULT_THRESHOLD,
            compare: PitchCompare::default(),
            match_center: DEFAULT_MATCH_CENTER,
            polarity: PitchPolarity::default(),
            rois: Vec::new(),
            bit_depth: 0,
            unreadable: Unreadable::default(),
        }
    }
}

impl Settings {
    /// Whether the pitch along x, and along y, is to be estimated.
    pub fn estimates(&self) -> [bool; 2] {
        [self.pitch_x < 0.0, self.pitch_y < 0.0]
    }

    pub fn compare(&self) -> Compare {
        match self.compare {
            PitchCompare::Average => Compare::Average,
            PitchCompare::Minimum => Compare::Minimum,
        }
    }

    pub fn polarity(&self) -> Polarity {
        match self.polarity {
            PitchPolarity::Both => Polarity::Both,
            PitchPolarity::Bright => Polarity::Bright,
            PitchPolarity::Dark => Polarity::Dark,
        }
    }
}

/// What follows from a mask, and what is told of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reporting {
    pub limits: VerdictLimits,
    pub listing: Limits,
    pub post_messages: bool,
    pub interval: gst::ClockTime,
    pub send_events: bool,
}

impl Default for Reporting {
    fn default() -> Self {
        Self {
            limits: VerdictLimits {
                defect_pixels: DEFAULT_LIMIT,
                defect_count: DEFAULT_LIMIT,
                defect_area: DEFAULT_LIMIT,
            },
            listing: Limits {
                min_area: DEFAULT_MIN_AREA,
                merge_distance: DEFAULT_MERGE_DISTANCE,
                max_defects: DEFAULT_MAX_DEFECTS as usize,
            },
            post_messages: DEFAULT_POST_MESSAGES,
            interval: DEFAULT_INTERVAL,
            send_events: DEFAULT_SEND_EVENTS,
        }
    }
}

fn pitch_spec(
    name: &'static str,
    nick: &'static str,
    blurb: &'static str,
    default: f64,
) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(ESTIMATE)
        .maximum(MAX_PITCH)
        .default_value(default)
        .mutable_playing()
        .build()
}

fn estimated_spec(name: &'static str, nick: &'static str, axis: &str) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(nick)
        .blurb(&format!(
            "Pitch along {axis} as estimated from the frames, in pixels; 0 = none known, or none \
             to estimate"
        ))
        .minimum(0.0)
        .maximum(MAX_PITCH)
        .read_only()
        .build()
}

fn limit_spec(name: &'static str, nick: &'static str, blurb: &'static str) -> glib::ParamSpec {
    glib::ParamSpecInt64::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(-1)
        .default_value(DEFAULT_LIMIT)
        .mutable_playing()
        .build()
}

fn count_spec(
    name: &'static str,
    nick: &'static str,
    blurb: &'static str,
    maximum: u32,
    default: u32,
) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(name)
        .nick(nick)
        .blurb(blurb)
        .maximum(maximum)
        .default_value(default)
        .mutable_playing()
        .build()
}

pub(super) fn param_specs() -> Vec<glib::ParamSpec> {
    vec![
        pitch_spec(
            "pitch-x",
            "Pitch along x",
            "Distance after which the pattern repeats along a row, in pixels, at least 1; \
             0 = no comparison along rows, -1 = estimate from the frames",
            DEFAULT_PITCH_X,
        ),
        pitch_spec(
            "pitch-y",
            "Pitch along y",
            "Distance after which the pattern repeats along a column, in pixels, at least 1; \
             0 = no comparison along columns, -1 = estimate from the frames",
            DEFAULT_PITCH_Y,
        ),
        estimated_spec("estimated-pitch-x", "Estimated pitch along x", "x"),
        estimated_spec("estimated-pitch-y", "Estimated pitch along y", "y"),
        arrays::numbers_spec(
            "multiples",
            "Multiples",
            "Multiples of the pitches at which a pixel is compared, <1> or <1, 4>; a pixel that \
             differs at one of them is marked",
        ),
        glib::ParamSpecDouble::builder("threshold")
            .nick("Threshold")
            .blurb("Difference from which on a pixel is marked, in grey levels of a sample")
            .minimum(0.0)
            .maximum(MAX_THRESHOLD)
            .default_value(DEFAULT_THRESHOLD)
            .mutable_playing()
            .build(),
        glib::ParamSpecEnum::builder_with_default("compare", PitchCompare::default())
            .nick("Compare")
            .blurb("How a pixel's two neighbours are weighed")
            .mutable_playing()
            .build(),
        glib::ParamSpecBoolean::builder("match-center")
            .nick("Match center")
            .blurb(
                "Give the pixel the blur that interpolation gives its neighbours: quiet edges \
                 where the pitch is no whole number",
            )
            .default_value(DEFAULT_MATCH_CENTER)
            .mutable_playing()
            .build(),
        glib::ParamSpecEnum::builder_with_default("polarity", PitchPolarity::default())
            .nick("Polarity")
            .blurb("Which deviations are marked")
            .mutable_playing()
            .build(),
        arrays::regions_spec(
            "rois",
            "Regions of interest",
            "Pixels to judge, <<x, y, width, height>, ...>; empty = whole frame",
        ),
        arrays::bit_depth_spec(),
        count_spec(
            "min-area",
            "Minimum area",
            "Defects of fewer marked pixels are not listed; mask and defect-pixels stay as they are",
            u32::MAX,
            DEFAULT_MIN_AREA,
        ),
        count_spec(
            "merge-distance",
            "Merge distance",
            "Groups of marked pixels whose boxes lie at most this many pixels apart are one \
             defect; 0 = only where boxes overlap",
            u32::MAX,
            DEFAULT_MERGE_DISTANCE,
        ),
        count_spec(
            "max-defects",
            "Maximum defects",
            "Most defects listed, the largest first; 0 = no list, which is fastest",
            MOST_DEFECTS,
            DEFAULT_MAX_DEFECTS,
        ),
        limit_spec(
            "fail-defect-pixels",
            "Fail at defect pixels",
            "A frame with more marked pixels than this fails; -1 = off",
        ),
        limit_spec(
            "fail-defect-count",
            "Fail at defect count",
            "A frame with more listed defects than this fails; -1 = off",
        ),
        limit_spec(
            "fail-defect-area",
            "Fail at defect area",
            "A frame with a listed defect of more pixels than this fails; -1 = off",
        ),
        glib::ParamSpecEnum::builder_with_default("output", PitchOutput::default())
            .nick("Output")
            .blurb("What is sent on")
            .mutable_ready()
            .build(),
        glib::ParamSpecBoolean::builder("post-messages")
            .nick("Post messages")
            .blurb(
                "Post a message at every change of the verdict, and otherwise at most once per \
                 interval",
            )
            .default_value(DEFAULT_POST_MESSAGES)
            .mutable_playing()
            .build(),
        arrays::interval_spec(DEFAULT_INTERVAL),
        glib::ParamSpecBoolean::builder("send-events")
            .nick("Send events")
            .blurb(
                "Send the results as an event before each buffer too, for transports that drop \
                 metas, such as rtpgstpay",
            )
            .default_value(DEFAULT_SEND_EVENTS)
            .mutable_playing()
            .build(),
    ]
}

/// Sets one of the operator's settings; `false` where the name is none of them.
pub(super) fn set(settings: &mut Settings, name: &str, value: &glib::Value) -> bool {
    match name {
        // GObject refuses numbers outside the range, NaN too.
        "pitch-x" => settings.pitch_x = value.get().unwrap_or(DEFAULT_PITCH_X),
        "pitch-y" => settings.pitch_y = value.get().unwrap_or(DEFAULT_PITCH_Y),
        "multiples" => {
            let multiples = arrays::numbers_from(value);
            if let Some(multiples) = settings.unreadable.note(name, multiples) {
                settings.multiples = multiples;
            }
        }
        "threshold" => settings.threshold = value.get().unwrap_or(DEFAULT_THRESHOLD),
        "compare" => settings.compare = value.get().unwrap_or_default(),
        "match-center" => settings.match_center = value.get().unwrap_or(DEFAULT_MATCH_CENTER),
        "polarity" => settings.polarity = value.get().unwrap_or_default(),
        "rois" => {
            let rois = arrays::regions_from(value);
            if let Some(rois) = settings.unreadable.note(name, rois) {
                settings.rois = rois;
            }
        }
        "bit-depth" => settings.bit_depth = value.get().unwrap_or_default(),
        _ => return false,
    }
    true
}

/// Sets one of the reporting settings.
pub(super) fn set_reporting(reporting: &mut Reporting, name: &str, value: &glib::Value) {
    let limit = || value.get().unwrap_or(DEFAULT_LIMIT);
    match name {
        "min-area" => reporting.listing.min_area = value.get().unwrap_or(DEFAULT_MIN_AREA),
        "merge-distance" => {
            reporting.listing.merge_distance = value.get().unwrap_or(DEFAULT_MERGE_DISTANCE);
        }
        "max-defects" => {
            reporting.listing.max_defects =
                value.get::<u32>().unwrap_or(DEFAULT_MAX_DEFECTS) as usize;
        }
        "fail-defect-pixels" => reporting.limits.defect_pixels = limit(),
        "fail-defect-count" => reporting.limits.defect_count = limit(),
        "fail-defect-area" => reporting.limits.defect_area = limit(),
        "post-messages" => reporting.post_messages = value.get().unwrap_or(DEFAULT_POST_MESSAGES),
        "send-events" => reporting.send_events = value.get().unwrap_or(DEFAULT_SEND_EVENTS),
        "interval" => reporting.interval = arrays::interval_from(value, DEFAULT_INTERVAL),
        _ => {}
    }
}

/// Reads a property.
pub(super) fn get(
    settings: &Settings,
    reporting: &Reporting,
    pspec: &glib::ParamSpec,
) -> glib::Value {
    match pspec.name() {
        "pitch-x" => settings.pitch_x.to_value(),
        "pitch-y" => settings.pitch_y.to_value(),
        "multiples" => arrays::numbers_value(&settings.multiples),
        "threshold" => settings.threshold.to_value(),
        "compare" => settings.compare.to_value(),
        "match-center" => settings.match_center.to_value(),
        "polarity" => settings.polarity.to_value(),
        "rois" => arrays::regions_value(&settings.rois),
        "bit-depth" => settings.bit_depth.to_value(),
        "min-area" => reporting.listing.min_area.to_value(),
        "merge-distance" => reporting.listing.merge_distance.to_value(),
        "max-defects" => (reporting.listing.max_defects as u32).to_value(),
        "fail-defect-pixels" => reporting.limits.defect_pixels.to_value(),
        "fail-defect-count" => reporting.limits.defect_count.to_value(),
        "fail-defect-area" => reporting.limits.defect_area.to_value(),
        "post-messages" => reporting.post_messages.to_value(),
        "send-events" => reporting.send_events.to_value(),
        "interval" => reporting.interval.nseconds().to_value(),
        _ => pspec.default_value().clone(),
    }
}
