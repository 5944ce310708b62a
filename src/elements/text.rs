//! Settings that are text.

use std::path::PathBuf;

use gst::{glib, prelude::*};

use super::property_table::Field;

/// The value of a text property; NULL is the empty text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Text(pub String);

impl Field for Text {
    fn to_property(&self) -> glib::SendValue {
        self.0.to_send_value()
    }

    fn set_property(&mut self, value: &glib::Value) -> Result<(), String> {
        let text = path(value).unwrap_or_default();
        self.0 = text.to_string_lossy().into_owned();
        Ok(())
    }
}

/// The path of a file.
#[derive(Debug, Clone, Default)]
pub struct Location(pub PathBuf);

impl Field for Location {
    fn to_property(&self) -> glib::SendValue {
        self.0.to_send_value()
    }

    fn set_property(&mut self, value: &glib::Value) -> Result<(), String> {
        self.0 = path(value).unwrap_or_default();
        Ok(())
    }
}

/// The text of a property as a path: a C program may set any bytes, and glib-rs panics on a string that
/// is not UTF-8.
pub fn path(value: &glib::Value) -> Option<PathBuf> {
    value.get::<Option<PathBuf>>().ok().flatten()
}
