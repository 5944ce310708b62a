//! Properties of `inspectoverlay`.

use std::path::PathBuf;

use gst::{glib, prelude::*};

/// Position of the histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectOverlayCorner")]
pub enum OverlayCorner {
    #[default]
    #[enum_value(
        name = "Bottom right, or another corner that hides fewer defects",
        nick = "auto"
    )]
    Auto,
    #[enum_value(name = "Top left", nick = "top-left")]
    TopLeft,
    #[enum_value(name = "Top right", nick = "top-right")]
    TopRight,
    #[enum_value(name = "Bottom left", nick = "bottom-left")]
    BottomLeft,
    #[enum_value(name = "Bottom right", nick = "bottom-right")]
    BottomRight,
}

/// Position of the verdict bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectOverlayPosition")]
pub enum OverlayPosition {
    #[default]
    #[enum_value(name = "Top, or bottom if that hides fewer defects", nick = "auto")]
    Auto,
    #[enum_value(name = "Top: along the upper edge", nick = "top")]
    Top,
    #[enum_value(name = "Bottom: along the lower edge", nick = "bottom")]
    Bottom,
}

/// The settings and their properties: name, field, type, default, ParamSpec and blurb.
macro_rules! settings {
    ($($name:literal $field:ident: $type:ty = $default:expr, $spec:ident$(.$limit:ident($at:expr))*, $blurb:expr;)*) => {
        /// Settings of the overlay. Colours are ARGB.
        #[derive(Debug, Clone, PartialEq)]
        pub(super) struct Settings {
            $(pub $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default.into(),)* }
            }
        }

        pub(super) fn param_specs() -> Vec<glib::ParamSpec> {
            vec![$({
                let spec = glib::$spec::builder($name).default_value($default)$(.$limit($at))*;
                spec.nick(&nick($name)).blurb($blurb).mutable_playing().build()
            }),*]
        }

        /// Sets a property. GObject has checked type and range; it refuses NaN too.
        pub(super) fn set(settings: &mut Settings, name: &str, value: &glib::Value) {
            // A C program may set any bytes, and glib-rs panics on a string that is not UTF-8.
            let text = value.get::<Option<PathBuf>>().ok().flatten();
            let text = text.map(|text| text.to_string_lossy().to_value());
            let value = text.as_ref().unwrap_or(value);
            match name {
                $($name => settings.$field = value.get().unwrap_or_default(),)*
                _ => {}
            }
        }

        /// Reads a property.
        pub(super) fn get(settings: &Settings, pspec: &glib::ParamSpec) -> glib::Value {
            match pspec.name() {
                $($name => settings.$field.to_value(),)*
                _ => pspec.default_value().clone(),
            }
        }
    };
}

settings! {
    "scale" scale: f64 = 1.0, ParamSpecDouble.minimum(0.25).maximum(8.0),
        "Scale of text, lines and panel; 1 = default for the frame's size";
    "show-defects" show_defects: bool = true, ParamSpecBoolean,
        "Draw defects: tint, boxes and labels, each if its own property is on";
    "show-tint" show_tint: bool = true, ParamSpecBoolean, "Tint the pixels that the mask marks";
    "show-boxes" show_boxes: bool = true, ParamSpecBoolean, "Draw a box around each defect";
    "show-labels" show_labels: bool = true, ParamSpecBoolean,
        "Write class, area in pixels, mean difference in grey levels and position in mm and m beside \
         each box if there is room; class and position if they are known";
    "show-ignored" show_ignored: bool = false, ParamSpecBoolean,
        "Hatch the pixels that are not judged, if the results contain them";
    "defects-opacity" defects_opacity: f64 = 1.0, ParamSpecDouble.minimum(0.0).maximum(1.0),
        "Opacity of tint, boxes and labels; 0 = not drawn, 1 = full";
    "defects-element" defects_element: String = "", ParamSpecString,
        "Name of the element whose GstClDefectMeta is shown if a frame has several; empty = the last";
    "tint-color" tint_color: u32 = 0xb0ff_2d20_u32, ParamSpecUInt,
        "Colour of the tint on marked pixels, 0xAARRGGBB (0xffff0000 = opaque red); 0xb0ff2d20 by default";
    "box-color" box_color: u32 = 0xffff_d60a_u32, ParamSpecUInt,
        "Colour of boxes and their labels, 0xAARRGGBB (0xffff0000 = opaque red); 0xffffd60a by default";
    "max-boxes" max_boxes: u32 = 100_u32, ParamSpecUInt.maximum(10_000),
        "Maximum number of boxes, for the largest defects; 0 = none";
    "show-histogram" show_histogram: bool = true, ParamSpecBoolean,
        "Draw the histogram of each channel with median, 5th and 95th percentile";
    "histogram-corner" histogram_corner: OverlayCorner = OverlayCorner::default(), ParamSpecEnum,
        "Where the histograms are drawn";
    "histogram-opacity" histogram_opacity: f64 = 0.85, ParamSpecDouble.minimum(0.0).maximum(1.0),
        "Opacity of the histograms; 0 = not drawn, 1 = full";
    "histogram-element" histogram_element: String = "", ParamSpecString,
        "Name of the element whose GstClHistogramMeta is shown if a frame has several; empty = the last";
    "show-verdict" show_verdict: bool = true, ParamSpecBoolean,
        "Draw a bar with the verdict and the counts";
    "verdict-position" verdict_position: OverlayPosition = OverlayPosition::default(), ParamSpecEnum,
        "Where the bar with the verdict is drawn";
    "verdict-opacity" verdict_opacity: f64 = 0.85, ParamSpecDouble.minimum(0.0).maximum(1.0),
        "Opacity of the bar with the verdict; 0 = not drawn, 1 = full";
}

impl Settings {
    /// Whether anything can be visible.
    pub fn draws_anything(&self) -> bool {
        self.draws_defects() || self.draws_verdict() || self.draws_histogram() || self.show_ignored
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

/// A property's name as words.
fn nick(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + &rest.replace('-', " ")
}
