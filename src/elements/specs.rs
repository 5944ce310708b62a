//! Descriptions of properties that may change while frames flow.

use std::ops::RangeInclusive;

use gst::{glib, prelude::*};

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

/// Default of [`interval`].
pub const DEFAULT_INTERVAL_NS: u64 = 100_000_000;

/// A time in nanoseconds, without the value that GStreamer uses for "none".
pub fn interval(name: &str, nick: &str, blurb: &str, default: u64) -> glib::ParamSpec {
    glib::ParamSpecUInt64::builder(name)
        .nick(nick)
        .blurb(blurb)
        .maximum(u64::MAX - 1)
        .default_value(default)
        .mutable_playing()
        .build()
}
