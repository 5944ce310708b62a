//! Settings of which GObject cannot check every value: arrays and structures.

use gst::{glib, prelude::*};

use super::property_table::Field;
use clinspect_core::ClError;

/// The value of a property that is an array or a structure.
///
/// A value that is not usable is refused like other unusable settings, at negotiation or at the
/// next frame: a warning from the property's setter would be lost on an element that has no bus yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedValue<T> {
    /// The last usable value.
    usable: T,
    /// Why the value that was set after it is not usable.
    why: Option<String>,
}

impl<T> From<T> for CheckedValue<T> {
    fn from(usable: T) -> Self {
        Self { usable, why: None }
    }
}

impl<T> CheckedValue<T> {
    /// What `use_it` makes of the value of the property `name`.
    ///
    /// # Errors
    /// [`ClError::Refused`] with the reason, if the value is not usable or `use_it` refuses it.
    pub fn check<U>(
        &self,
        name: &str,
        use_it: impl FnOnce(&T) -> Result<U, String>,
    ) -> Result<U, ClError> {
        let used = match &self.why {
            None => use_it(&self.usable),
            Some(why) => Err(why.clone()),
        };
        used.map_err(|why| ClError::Refused(format!("{name}: {why}")))
    }

    /// Why the value that was set last is not usable, once: from then on the last usable value counts.
    pub fn take_refusal(&mut self, name: &str) -> Option<ClError> {
        let why = self.why.take()?;
        Some(ClError::Refused(format!("{name}: {why}")))
    }

    /// The last usable value.
    pub fn usable(&self) -> &T {
        &self.usable
    }

    /// The last usable value.
    pub fn usable_mut(&mut self) -> &mut T {
        &mut self.usable
    }
}

impl<T: Readable> Field for CheckedValue<T> {
    fn to_property(&self) -> glib::SendValue {
        self.usable.write()
    }

    fn set_property(&mut self, value: &glib::Value) -> Result<(), String> {
        match T::read(value) {
            Ok(usable) => *self = usable.into(),
            Err(why) => self.why = Some(why),
        }
        Ok(())
    }
}

/// A setting that is read from a property's value, which may be unusable.
pub trait Readable: Sized {
    /// Reads a property's value.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn read(value: &glib::Value) -> Result<Self, String>;
    /// The setting as a property's value.
    fn write(&self) -> glib::SendValue;
}

/// `<n, ...>`, numbers ≥ 0.
impl Readable for Vec<u32> {
    fn read(value: &glib::Value) -> Result<Self, String> {
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

    fn write(&self) -> glib::SendValue {
        write_numbers(self).to_send_value()
    }
}

/// `<x, ...>`, finite numbers.
impl Readable for Vec<f64> {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let array = value
            .get::<gst::Array>()
            .map_err(|_| "an array such as \"<0.6, 0.3>\" is expected".to_owned())?;
        array.iter().map(|number| real(number)).collect()
    }

    fn write(&self) -> glib::SendValue {
        gst::Array::new(self).to_send_value()
    }
}

/// `<x, y, width, height>`; an empty array is four zeros.
impl Readable for [u32; 4] {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let numbers = Vec::<u32>::read(value)?;
        if numbers.is_empty() {
            return Ok([0; 4]);
        }
        let count = numbers.len();
        numbers
            .try_into()
            .map_err(|_| format!("a region is <x, y, width, height>, not {count} numbers"))
    }

    fn write(&self) -> glib::SendValue {
        write_numbers(self).to_send_value()
    }
}

/// `<<x, y, width, height>, ...>`.
impl Readable for Vec<[u32; 4]> {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let array = value
            .get::<gst::Array>()
            .map_err(|_| "an array such as \"<<0, 0, 64, 64>>\" is expected".to_owned())?;
        array
            .iter()
            .map(|region| {
                region
                    .get::<gst::Array>()
                    .map_err(|_| "a region is an array <x, y, width, height>".to_owned())?;
                <[u32; 4]>::read(region)
            })
            .collect()
    }

    fn write(&self) -> glib::SendValue {
        gst::Array::new(self.iter().map(|region| write_numbers(region))).to_send_value()
    }
}

/// A finite number, whole or not.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn real(value: &glib::Value) -> Result<f64, String> {
    let whole = |_| value.get::<i32>().map(f64::from);
    let number = value.get::<f64>().or_else(whole).ok();
    number
        .filter(|n| n.is_finite())
        .ok_or_else(|| format!("{value:?} is not a number"))
}

fn write_numbers(numbers: &[u32]) -> gst::Array {
    gst::Array::new(
        numbers
            .iter()
            .map(|&n| i32::try_from(n).unwrap_or(i32::MAX)),
    )
}
