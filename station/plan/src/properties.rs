//! Properties of an element, as values.

use std::{collections::BTreeMap, fmt};

/// Properties that were set, by name, in GStreamer's notation.
#[derive(Clone, PartialEq, Default)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// No properties.
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// The value of a property, in GStreamer's notation.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Gives a property a value, in GStreamer's notation, if it has none.
    pub fn set_if_missing(&mut self, name: &str, value: String) {
        self.0.entry(name.to_owned()).or_insert(value);
    }

    /// Gives a property a value, in GStreamer's notation.
    pub fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Gives a property its default.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Names only: a value may be a secret.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
