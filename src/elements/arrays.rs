//! Properties that several elements have, and properties that are arrays of numbers.

use std::collections::BTreeMap;

use gst::{glib, prelude::*};

use super::specs;
use clinspect_core::ClError;

/// Array properties whose last value was not usable, each with the reason.
///
/// Such values are refused like other unusable settings, at negotiation or at the next frame: a
/// warning from the property's setter would be lost on an element that has no bus yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unreadable(BTreeMap<String, String>);

impl Unreadable {
    /// Stores or clears the reason of the property `name`; returns the value if it was usable.
    pub fn note<T>(&mut self, name: &str, value: Result<T, String>) -> Option<T> {
        match value {
            Ok(value) => {
                self.0.remove(name);
                Some(value)
            }
            Err(why) => {
                self.0.insert(name.to_owned(), why);
                None
            }
        }
    }

    /// # Errors
    /// [`ClError::Refused`] with the reason, while a property has an unusable value.
    pub fn check(&self) -> Result<(), ClError> {
        match self.0.first_key_value() {
            Some((name, why)) => Err(ClError::Refused(format!("{name}: {why}"))),
            None => Ok(()),
        }
    }
}

/// A property `<x, y, width, height>`.
///
/// The range of the numbers is wide on purpose: for a number outside the range GObject only warns
/// and uses another one. The elements check regions themselves.
pub(super) fn region_spec(
    name: &'static str,
    nick: &'static str,
    blurb: &'static str,
) -> glib::ParamSpec {
    gst::ParamSpecArray::builder(name)
        .nick(nick)
        .blurb(blurb)
        .element_spec(&number_spec())
        .mutable_playing()
        .build()
}

/// A property `<<x, y, width, height>, ...>`.
pub(super) fn regions_spec(
    name: &'static str,
    nick: &'static str,
    blurb: &'static str,
) -> glib::ParamSpec {
    let region = gst::ParamSpecArray::builder("region")
        .nick("Region")
        .blurb("<x, y, width, height>")
        .element_spec(&number_spec())
        .build();
    gst::ParamSpecArray::builder(name)
        .nick(nick)
        .blurb(blurb)
        .element_spec(&region)
        .mutable_playing()
        .build()
}

/// A property `<n, ...>`.
pub(super) fn numbers_spec(
    name: &'static str,
    nick: &'static str,
    blurb: &'static str,
) -> glib::ParamSpec {
    region_spec(name, nick, blurb)
}

fn number_spec() -> glib::ParamSpec {
    glib::ParamSpecInt::builder("number")
        .nick("Number")
        .blurb("A number of pixels")
        .minimum(i32::MIN)
        .maximum(i32::MAX)
        .build()
}

/// The property `bit-depth`.
pub(super) fn bit_depth_spec() -> glib::ParamSpec {
    specs::uint(
        "bit-depth",
        "Bit depth",
        "Significant bits per sample, for cameras that send 10, 12 or 14 bits in GRAY16; \
             0 = from the format",
        0..=16,
        0,
    )
}

/// Reads an array of numbers ≥ 0.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn numbers_from(value: &glib::Value) -> Result<Vec<u32>, String> {
    let array = value
        .get::<gst::Array>()
        .map_err(|_| "an array such as \"<1, 4>\" is expected".to_owned())?;
    array
        .iter()
        .map(|number| {
            number
                .get::<i32>()
                .ok()
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(|| format!("{number:?} is not a number from 0 to {}", i32::MAX))
        })
        .collect()
}

/// Reads `<x, y, width, height>`; an empty array is four zeros.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn region_from(value: &glib::Value) -> Result<[u32; 4], String> {
    let numbers = numbers_from(value)?;
    if numbers.is_empty() {
        return Ok([0; 4]);
    }
    let count = numbers.len();
    numbers
        .try_into()
        .map_err(|_| format!("a region is <x, y, width, height>, not {count} numbers"))
}

/// Reads `<<x, y, width, height>, ...>`.
///
/// # Errors
/// A sentence that says what is wrong.
pub(super) fn regions_from(value: &glib::Value) -> Result<Vec<[u32; 4]>, String> {
    let array = value
        .get::<gst::Array>()
        .map_err(|_| "an array such as \"<<0, 0, 64, 64>>\" is expected".to_owned())?;
    array
        .iter()
        .map(|region| {
            region
                .get::<gst::Array>()
                .map_err(|_| "a region is an array <x, y, width, height>".to_owned())?;
            region_from(region)
        })
        .collect()
}

/// An array of numbers as a property's value.
pub(super) fn numbers_value(numbers: &[u32]) -> glib::Value {
    let clamp = |&n: &u32| i32::try_from(n).unwrap_or(i32::MAX);
    gst::Array::new(numbers.iter().map(clamp)).to_value()
}

/// A region as a property's value.
pub(super) fn region_value(region: [u32; 4]) -> glib::Value {
    numbers_value(&region)
}

/// Regions as a property's value.
pub(super) fn regions_value(regions: &[[u32; 4]]) -> glib::Value {
    let clamp = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    gst::Array::new(regions.iter().map(|r| gst::Array::new(r.map(clamp)))).to_value()
}
