//! Kinds of properties for the tables of `property_table`; most may change while frames flow.

use std::ops::RangeInclusive;

use gst::{glib, prelude::*};

use super::{
    checked::CheckedValue,
    structure::{self, Structure},
};

/// An unsigned number.
pub fn uint(
    name: &str,
    nick: &str,
    blurb: &str,
    range: RangeInclusive<u32>,
    default: u32,
) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(*range.start())
        .maximum(*range.end())
        .default_value(default)
        .mutable_playing()
        .build()
}

/// A limit; -1 turns it off.
pub fn limit(name: &str, nick: &str, blurb: &str, default: i64) -> glib::ParamSpec {
    glib::ParamSpecInt64::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(-1)
        .default_value(default)
        .mutable_playing()
        .build()
}

/// A floating-point number.
pub fn double(
    name: &str,
    nick: &str,
    blurb: &str,
    range: RangeInclusive<f64>,
    default: f64,
) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(*range.start())
        .maximum(*range.end())
        .default_value(default)
        .mutable_playing()
        .build()
}

/// On or off.
pub fn boolean(name: &str, nick: &str, blurb: &str, default: bool) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_playing()
        .build()
}

/// On or off, set before the element starts.
pub fn boolean_at_start(name: &str, nick: &str, blurb: &str, default: bool) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_ready()
        .build()
}

/// One of several choices.
pub fn choice<T>(name: &str, nick: &str, blurb: &str, default: T) -> glib::ParamSpec
where
    T: glib::prelude::StaticType
        + glib::translate::FromGlib<i32>
        + glib::translate::IntoGlib<GlibType = i32>,
{
    glib::ParamSpecEnum::builder_with_default(name, default)
        .nick(nick)
        .blurb(blurb)
        .mutable_playing()
        .build()
}

/// One of several choices, chosen before the element starts.
pub fn choice_at_start<T>(name: &str, nick: &str, blurb: &str, default: T) -> glib::ParamSpec
where
    T: glib::prelude::StaticType
        + glib::translate::FromGlib<i32>
        + glib::translate::IntoGlib<GlibType = i32>,
{
    glib::ParamSpecEnum::builder_with_default(name, default)
        .nick(nick)
        .blurb(blurb)
        .mutable_ready()
        .build()
}

/// Any of several choices together.
pub fn flags<T>(name: &str, nick: &str, blurb: &str, default: T) -> glib::ParamSpec
where
    T: glib::prelude::StaticType
        + glib::translate::FromGlib<u32>
        + glib::translate::IntoGlib<GlibType = u32>,
{
    glib::ParamSpecFlags::builder::<T>(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_playing()
        .build()
}

/// A text; "" is the default.
pub fn text<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    glib::ParamSpecString::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(Some(""))
        .mutable_playing()
        .build()
}

/// The path of a file; "" is the default.
pub fn file<T>(name: &str, nick: &str, blurb: &str, default: T) -> glib::ParamSpec {
    text(name, nick, blurb, default)
}

/// The path of a file, set before the element starts; "" is the default.
pub fn file_at_start<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    glib::ParamSpecString::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(Some(""))
        .mutable_ready()
        .build()
}

/// The field `interval` of `reports`, a time without the value that GStreamer uses for "none".
pub fn interval(default: u64) -> glib::ParamSpec {
    glib::ParamSpecUInt64::builder("interval")
        .nick("Interval")
        .blurb("Minimum time between messages, in nanoseconds; 0 = a message per frame")
        .maximum(u64::MAX - 1)
        .default_value(default)
        .mutable_playing()
        .build()
}

/// The property `bit-depth`.
pub fn bit_depth(default: u32) -> glib::ParamSpec {
    uint(
        "bit-depth",
        "Bit depth",
        "Significant bits per sample, for cameras that send 10, 12 or 14 bits in GRAY16; \
         0 = from the format",
        0..=16,
        default,
    )
}

/// A property `<n, ...>`. An array has no default in its description.
pub fn numbers<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    array(name, nick, blurb, &number())
}

/// A property `<x, ...>`. An array has no default in its description.
pub fn reals<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    array(name, nick, blurb, &real("factor", "A factor"))
}

/// A property `<x, y>`. An array has no default in its description.
pub fn pair<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    array(name, nick, blurb, &real("number", "A number"))
}

/// A property `<level, ...>`. An array has no default in its description.
pub fn levels<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    array(name, nick, blurb, &real("level", "A grey level"))
}

/// A property `<x, y, width, height>`.
pub fn region<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    array(name, nick, blurb, &number())
}

/// A property `<<x, y, width, height>, ...>`.
pub fn regions<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    let region = gst::ParamSpecArray::builder("region")
        .nick("Region")
        .blurb("<x, y, width, height>")
        .element_spec(&number())
        .build();
    array(name, nick, blurb, &region)
}

/// A property `<<x0, y0, x1, y1, ...>, ...>`.
pub fn polygons<T>(name: &str, nick: &str, blurb: &str, _default: T) -> glib::ParamSpec {
    let polygon = gst::ParamSpecArray::builder("polygon")
        .nick("Polygon")
        .blurb("<x0, y0, x1, y1, x2, y2, ...>")
        .element_spec(&real("coordinate", "A number of pixels"))
        .build();
    array(name, nick, blurb, &polygon)
}

/// A structure. Its fields are described in the blurb; it has no default in its description.
pub fn structure<S: Structure>(
    nick: &str,
    blurb: &str,
    _default: CheckedValue<S>,
) -> glib::ParamSpec {
    glib::ParamSpecBoxed::builder::<gst::Structure>(S::NAME)
        .nick(nick)
        .blurb(&structure::blurb::<S>(blurb))
        .mutable_playing()
        .build()
}

fn array(name: &str, nick: &str, blurb: &str, element: &glib::ParamSpec) -> glib::ParamSpec {
    gst::ParamSpecArray::builder(name)
        .nick(nick)
        .blurb(blurb)
        .element_spec(element)
        .mutable_playing()
        .build()
}

/// Any double: the user of the array refuses what is out of range, where GObject would use another number.
fn real(name: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(blurb)
        .blurb(blurb)
        .minimum(f64::MIN)
        .maximum(f64::MAX)
        .build()
}

/// The range of the numbers is wide on purpose: for a number outside the range GObject only warns
/// and uses another one. [`super::checked::Readable`] checks them instead.
fn number() -> glib::ParamSpec {
    glib::ParamSpecInt::builder("number")
        .nick("Number")
        .blurb("A number of pixels")
        .minimum(i32::MIN)
        .maximum(i32::MAX)
        .build()
}
