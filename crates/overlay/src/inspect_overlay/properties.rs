//! Properties of `inspectoverlay`.

use std::path::PathBuf;

use gst::{glib, prelude::*};

const DEFAULT_MASK_TIMEOUT: gst::ClockTime = gst::ClockTime::from_mseconds(100);
const DEFAULT_SHOWN: bool = true;
const DEFAULT_DEFECTS_OPACITY: f64 = 1.0;
const DEFAULT_PANEL_OPACITY: f64 = 0.85;
const DEFAULT_TINT_COLOR: u32 = 0xb0ff_2d20;
const DEFAULT_BOX_COLOR: u32 = 0xffff_d60a;
const DEFAULT_MAX_BOXES: u32 = 100;
const MOST_BOXES: u32 = 10_000;
const DEFAULT_SCALE: f64 = 1.0;
const LEAST_SCALE: f64 = 0.25;
const MOST_SCALE: f64 = 8.0;

/// Where the histograms are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectOverlayCorner")]
pub enum OverlayCorner {
    /// Above, at the left.
    #[enum_value(name = "Top left", nick = "top-left")]
    TopLeft,
    /// Above, at the right.
    #[enum_value(name = "Top right", nick = "top-right")]
    TopRight,
    /// Below, at the left.
    #[enum_value(name = "Bottom left", nick = "bottom-left")]
    BottomLeft,
    /// Below, at the right.
    #[default]
    #[enum_value(name = "Bottom right", nick = "bottom-right")]
    BottomRight,
}

/// Where the verdict is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectOverlayPosition")]
pub enum OverlayPosition {
    /// Along the upper edge.
    #[default]
    #[enum_value(name = "Top: along the upper edge", nick = "top")]
    Top,
    /// Along the lower edge.
    #[enum_value(name = "Bottom: along the lower edge", nick = "bottom")]
    Bottom,
}

/// What is drawn, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub mask_timeout: gst::ClockTime,
    pub scale: f64,
    pub show_defects: bool,
    pub show_tint: bool,
    pub show_boxes: bool,
    pub show_labels: bool,
    pub defects_opacity: f64,
    pub defects_element: String,
    /// ARGB.
    pub tint_color: u32,
    /// ARGB.
    pub box_color: u32,
    pub max_boxes: u32,
    pub show_histogram: bool,
    pub histogram_corner: OverlayCorner,
    pub histogram_opacity: f64,
    pub histogram_element: String,
    pub show_verdict: bool,
    pub verdict_position: OverlayPosition,
    pub verdict_opacity: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mask_timeout: DEFAULT_MASK_TIMEOUT,
            scale: DEFAULT_SCALE,
            show_defects: DEFAULT_SHOWN,
            show_tint: DEFAULT_SHOWN,
            show_boxes: DEFAULT_SHOWN,
            show_labels: DEFAULT_SHOWN,
            defects_opacity: DEFAULT_DEFECTS_OPACITY,
            defects_element: String::new(),
            tint_color: DEFAULT_TINT_COLOR,
            box_color: DEFAULT_BOX_COLOR,
            max_boxes: DEFAULT_MAX_BOXES,
            show_histogram: DEFAULT_SHOWN,
            histogram_corner: OverlayCorner::default(),
            histogram_opacity: DEFAULT_PANEL_OPACITY,
            histogram_element: String::new(),
            show_verdict: DEFAULT_SHOWN,
            verdict_position: OverlayPosition::default(),
            verdict_opacity: DEFAULT_PANEL_OPACITY,
        }
    }
}

impl Settings {
    /// Whether anything could show.
    pub fn draws_anything(&self) -> bool {
        self.draws_defects() || self.draws_verdict() || self.draws_histogram()
    }

    pub fn draws_defects(&self) -> bool {
        self.show_defects && self.defects_opacity > 0.0 && (self.show_tint || self.show_boxes)
    }

    pub fn draws_histogram(&self) -> bool {
        self.show_histogram && self.histogram_opacity > 0.0
    }

    pub fn draws_verdict(&self) -> bool {
        self.show_verdict && self.verdict_opacity > 0.0
    }
}

fn shown_spec(name: &'static str, nick: &'static str, blurb: &'static str) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(DEFAULT_SHOWN)
        .mutable_playing()
        .build()
}

fn opacity_spec(name: &'static str, nick: &'static str, what: &str, of: f64) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(nick)
        .blurb(&format!("Opacity of {what}; 0 = not drawn, 1 = full"))
        .minimum(0.0)
        .maximum(1.0)
        .default_value(of)
        .mutable_playing()
        .build()
}

fn color_spec(name: &'static str, nick: &'static str, what: &str, of: u32) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(name)
        .nick(nick)
        .blurb(&format!(
            "Colour of {what}, 0xAARRGGBB (0xffff0000 = opaque red); 0x{of:08x} by default"
        ))
        .default_value(of)
        .mutable_playing()
        .build()
}

fn element_spec(name: &'static str, nick: &'static str, meta: &str) -> glib::ParamSpec {
    glib::ParamSpecString::builder(name)
        .nick(nick)
        .blurb(&format!(
            "Name of the element whose {meta} is shown where a frame has several; empty = the last"
        ))
        .default_value(Some(""))
        .mutable_playing()
        .build()
}

pub(super) fn param_specs() -> Vec<glib::ParamSpec> {
    vec![
        glib::ParamSpecUInt64::builder("mask-timeout")
            .nick("Mask timeout")
            .blurb(
                "Longest time that a frame waits for its mask, in nanoseconds, while there is a \
                 mask pad; part of a live pipeline's latency; 0 = masks are only used where they \
                 come first",
            )
            .maximum(u64::MAX - 1)
            .default_value(DEFAULT_MASK_TIMEOUT.nseconds())
            .mutable_playing()
            .build(),
        glib::ParamSpecDouble::builder("scale")
            .nick("Scale")
            .blurb("Factor on the sizes of text, lines and panel, which follow the frame's size")
            .minimum(LEAST_SCALE)
            .maximum(MOST_SCALE)
            .default_value(DEFAULT_SCALE)
            .mutable_playing()
            .build(),
        shown_spec(
            "show-defects",
            "Show defects",
            "Draw defects: tint, boxes and labels, as far as each is on",
        ),
        shown_spec(
            "show-tint",
            "Show tint",
            "Tint the pixels that the mask marks",
        ),
        shown_spec("show-boxes", "Show boxes", "Draw a box around each defect"),
        shown_spec(
            "show-labels",
            "Show labels",
            "Write area in pixels and mean difference in grey levels beside each box, where there \
             is room",
        ),
        opacity_spec(
            "defects-opacity",
            "Defects opacity",
            "tint, boxes and labels",
            DEFAULT_DEFECTS_OPACITY,
        ),
        element_spec("defects-element", "Defects element", "GstClDefectMeta"),
        color_spec(
            "tint-color",
            "Tint color",
            "the tint on marked pixels",
            DEFAULT_TINT_COLOR,
        ),
        color_spec(
            "box-color",
            "Box color",
            "boxes and their labels",
            DEFAULT_BOX_COLOR,
        ),
        glib::ParamSpecUInt::builder("max-boxes")
            .nick("Maximum boxes")
            .blurb("Most boxes drawn, those of the largest defects; 0 = none")
            .maximum(MOST_BOXES)
            .default_value(DEFAULT_MAX_BOXES)
            .mutable_playing()
            .build(),
        shown_spec(
            "show-histogram",
            "Show histogram",
            "Draw the histogram of each channel with median, 5th and 95th percentile",
        ),
        glib::ParamSpecEnum::builder_with_default("histogram-corner", OverlayCorner::default())
            .nick("Histogram corner")
            .blurb("Where the histograms are drawn")
            .mutable_playing()
            .build(),
        opacity_spec(
            "histogram-opacity",
            "Histogram opacity",
            "the histograms",
            DEFAULT_PANEL_OPACITY,
        ),
        element_spec(
            "histogram-element",
            "Histogram element",
            "GstClHistogramMeta",
        ),
        shown_spec(
            "show-verdict",
            "Show verdict",
            "Draw a bar with the verdict and the counts",
        ),
        glib::ParamSpecEnum::builder_with_default("verdict-position", OverlayPosition::default())
            .nick("Verdict position")
            .blurb("Where the bar with the verdict is drawn")
            .mutable_playing()
            .build(),
        opacity_spec(
            "verdict-opacity",
            "Verdict opacity",
            "the bar with the verdict",
            DEFAULT_PANEL_OPACITY,
        ),
    ]
}

/// Read as a path: a C program may set any bytes, and glib-rs panics on a string that is no UTF-8.
fn name_from(value: &glib::Value) -> String {
    let name = value.get::<Option<PathBuf>>().ok().flatten();
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Sets a property. GObject has checked type and range; it refuses NaN too.
pub(super) fn set(settings: &mut Settings, name: &str, value: &glib::Value) {
    let shown = || value.get().unwrap_or(DEFAULT_SHOWN);
    match name {
        "mask-timeout" => {
            settings.mask_timeout = value
                .get::<u64>()
                .ok()
                .filter(|&ns| ns < u64::MAX)
                .map_or(DEFAULT_MASK_TIMEOUT, gst::ClockTime::from_nseconds);
        }
        "scale" => settings.scale = value.get().unwrap_or(DEFAULT_SCALE),
        "show-defects" => settings.show_defects = shown(),
        "show-tint" => settings.show_tint = shown(),
        "show-boxes" => settings.show_boxes = shown(),
        "show-labels" => settings.show_labels = shown(),
        "defects-opacity" => {
            settings.defects_opacity = value.get().unwrap_or(DEFAULT_DEFECTS_OPACITY);
        }
        "defects-element" => settings.defects_element = name_from(value),
        "tint-color" => settings.tint_color = value.get().unwrap_or(DEFAULT_TINT_COLOR),
        "box-color" => settings.box_color = value.get().unwrap_or(DEFAULT_BOX_COLOR),
        "max-boxes" => settings.max_boxes = value.get().unwrap_or(DEFAULT_MAX_BOXES),
        "show-histogram" => settings.show_histogram = shown(),
        "histogram-corner" => settings.histogram_corner = value.get().unwrap_or_default(),
        "histogram-opacity" => {
            settings.histogram_opacity = value.get().unwrap_or(DEFAULT_PANEL_OPACITY);
        }
        "histogram-element" => settings.histogram_element = name_from(value),
        "show-verdict" => settings.show_verdict = shown(),
        "verdict-position" => settings.verdict_position = value.get().unwrap_or_default(),
        "verdict-opacity" => {
            settings.verdict_opacity = value.get().unwrap_or(DEFAULT_PANEL_OPACITY);
        }
        _ => {}
    }
}

/// Reads a property.
pub(super) fn get(settings: &Settings, pspec: &glib::ParamSpec) -> glib::Value {
    match pspec.name() {
        "mask-timeout" => settings.mask_timeout.nseconds().to_value(),
        "scale" => settings.scale.to_value(),
        "show-defects" => settings.show_defects.to_value(),
        "show-tint" => settings.show_tint.to_value(),
        "show-boxes" => settings.show_boxes.to_value(),
        "show-labels" => settings.show_labels.to_value(),
        "defects-opacity" => settings.defects_opacity.to_value(),
        "defects-element" => settings.defects_element.to_value(),
        "tint-color" => settings.tint_color.to_value(),
        "box-color" => settings.box_color.to_value(),
        "max-boxes" => settings.max_boxes.to_value(),
        "show-histogram" => settings.show_histogram.to_value(),
        "histogram-corner" => settings.histogram_corner.to_value(),
        "histogram-opacity" => settings.histogram_opacity.to_value(),
        "histogram-element" => settings.histogram_element.to_value(),
        "show-verdict" => settings.show_verdict.to_value(),
        "verdict-position" => settings.verdict_position.to_value(),
        "verdict-opacity" => settings.verdict_opacity.to_value(),
        _ => pspec.default_value().clone(),
    }
}
