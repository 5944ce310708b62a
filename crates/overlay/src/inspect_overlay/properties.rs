//! Properties of `inspectoverlay`.

use std::path::PathBuf;

use gst::{
    glib::{
        self,
        translate::{FromGlib, IntoGlib},
    },
    prelude::*,
};

/// Position of the histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstInspectOverlayCorner")]
pub enum OverlayCorner {
    /// At the top left.
    #[enum_value(name = "Top left", nick = "top-left")]
    TopLeft,
    /// At the top right.
    #[enum_value(name = "Top right", nick = "top-right")]
    TopRight,
    /// At the bottom left.
    #[enum_value(name = "Bottom left", nick = "bottom-left")]
    BottomLeft,
    /// At the bottom right.
    #[default]
    #[enum_value(name = "Bottom right", nick = "bottom-right")]
    BottomRight,
}

/// Position of the verdict bar.
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

/// The settings and their properties: name, field, type, default, and the arguments of the
/// ParamSpec.
macro_rules! settings {
    ($($name:literal $field:ident: $type:ty = $default:expr, $spec:ident($($what:expr),*);)*) => {
        /// Settings of the overlay. Colours are ARGB.
        #[derive(Debug, Clone, PartialEq)]
        pub(super) struct Settings {
            $(pub $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        pub(super) fn param_specs() -> Vec<glib::ParamSpec> {
            vec![$($spec($name, $default, $($what),*)),*]
        }

        /// Sets a property. GObject has checked type and range; it refuses NaN too.
        pub(super) fn set(settings: &mut Settings, name: &str, value: &glib::Value) {
            match name {
                $($name => settings.$field = <$type>::of(value),)*
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
    "scale" scale: f64 = 1.0,
        number("Scale of text, lines and panel; 1 = default for the frame's size", 0.25, 8.0);
    "show-defects" show_defects: bool = true,
        switch("Draw defects: tint, boxes and labels, each if its own property is on");
    "show-tint" show_tint: bool = true, switch("Tint the pixels that the mask marks");
    "show-boxes" show_boxes: bool = true, switch("Draw a box around each defect");
    "show-labels" show_labels: bool = true,
        switch("Write area in pixels and mean difference in grey levels beside each box if there is room");
    "defects-opacity" defects_opacity: f64 = 1.0,
        number("Opacity of tint, boxes and labels; 0 = not drawn, 1 = full", 0.0, 1.0);
    "defects-element" defects_element: String = String::new(), element("GstClDefectMeta");
    "tint-color" tint_color: u32 = 0xb0ff_2d20, color("the tint on marked pixels");
    "box-color" box_color: u32 = 0xffff_d60a, color("boxes and their labels");
    "max-boxes" max_boxes: u32 = 100,
        count("Maximum number of boxes, for the largest defects; 0 = none", 10_000);
    "show-histogram" show_histogram: bool = true,
        switch("Draw the histogram of each channel with median, 5th and 95th percentile");
    "histogram-corner" histogram_corner: OverlayCorner = OverlayCorner::default(),
        choice("Where the histograms are drawn");
    "histogram-opacity" histogram_opacity: f64 = 0.85,
        number("Opacity of the histograms; 0 = not drawn, 1 = full", 0.0, 1.0);
    "histogram-element" histogram_element: String = String::new(), element("GstClHistogramMeta");
    "show-verdict" show_verdict: bool = true,
        switch("Draw a bar with the verdict and the counts");
    "verdict-position" verdict_position: OverlayPosition = OverlayPosition::default(),
        choice("Where the bar with the verdict is drawn");
    "verdict-opacity" verdict_opacity: f64 = 0.85,
        number("Opacity of the bar with the verdict; 0 = not drawn, 1 = full", 0.0, 1.0);
}

impl Settings {
    /// Whether anything can be visible.
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

/// Converts a property's value to a setting.
trait Setting: Default {
    fn of(value: &glib::Value) -> Self;
}

macro_rules! plain_setting {
    ($($type:ty)*) => {$(
        impl Setting for $type {
            fn of(value: &glib::Value) -> Self {
                value.get().unwrap_or_default()
            }
        }
    )*};
}

plain_setting!(f64 u32 bool OverlayCorner OverlayPosition);

impl Setting for String {
    /// Read as a path: a C program may set any bytes, and glib-rs panics on a string that is not
    /// UTF-8.
    fn of(value: &glib::Value) -> Self {
        let name = value.get::<Option<PathBuf>>().ok().flatten();
        name.map_or_else(Self::new, |name| name.to_string_lossy().into_owned())
    }
}

/// A property's name as words.
fn nick(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + &rest.replace('-', " ")
}

fn switch(name: &'static str, default: bool, blurb: &'static str) -> glib::ParamSpec {
    let spec = glib::ParamSpecBoolean::builder(name).default_value(default);
    spec.nick(&nick(name))
        .blurb(blurb)
        .mutable_playing()
        .build()
}

fn number(name: &'static str, of: f64, blurb: &str, least: f64, most: f64) -> glib::ParamSpec {
    let spec = glib::ParamSpecDouble::builder(name).default_value(of);
    let spec = spec.minimum(least).maximum(most);
    spec.nick(&nick(name))
        .blurb(blurb)
        .mutable_playing()
        .build()
}

fn count(name: &'static str, default: u32, blurb: &str, most: u32) -> glib::ParamSpec {
    let spec = glib::ParamSpecUInt::builder(name).default_value(default);
    let spec = spec.maximum(most);
    spec.nick(&nick(name))
        .blurb(blurb)
        .mutable_playing()
        .build()
}

fn color(name: &'static str, default: u32, what: &str) -> glib::ParamSpec {
    let example = "0xAARRGGBB (0xffff0000 = opaque red)";
    let blurb = format!("Colour of {what}, {example}; 0x{default:08x} by default");
    count(name, default, &blurb, u32::MAX)
}

fn element(name: &'static str, default: String, meta: &str) -> glib::ParamSpec {
    let blurb = format!(
        "Name of the element whose {meta} is shown if a frame has several; empty = the last"
    );
    let spec = glib::ParamSpecString::builder(name).default_value(default.as_str());
    spec.nick(&nick(name))
        .blurb(&blurb)
        .mutable_playing()
        .build()
}

fn choice<T>(name: &'static str, default: T, blurb: &str) -> glib::ParamSpec
where
    T: StaticType + FromGlib<i32> + IntoGlib<GlibType = i32>,
{
    let spec = glib::ParamSpecEnum::builder_with_default(name, default);
    spec.nick(&nick(name))
        .blurb(blurb)
        .mutable_playing()
        .build()
}
