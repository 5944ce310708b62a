//! Reads a TOML table key by key, and notes every mistake.

use std::{ops::Range, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{mistakes::Mistakes, nearest::nearest};

/// A table, and the keys that were asked for.
pub struct Table<'t, 'i> {
    entries: &'t DeTable<'i>,
    /// The table's place in the text.
    pub span: Range<usize>,
    /// The table's name for people, such as `[[camera]]`.
    pub name: String,
    known: Vec<&'static str>,
}

/// A value with its place.
pub type At<T> = (T, Range<usize>);

impl<'t, 'i> Table<'t, 'i> {
    /// The table with these entries.
    pub fn new(entries: &'t DeTable<'i>, span: Range<usize>, name: impl Into<String>) -> Self {
        Self {
            entries,
            span,
            name: name.into(),
            known: Vec::new(),
        }
    }

    /// The entries in the order of the text: key, place of the key, value.
    pub fn entries(&self) -> Vec<(&'t str, Range<usize>, &'t Spanned<DeValue<'i>>)> {
        let mut entries: Vec<_> = (self.entries.iter())
            .map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
            .collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    /// The value of a key.
    pub fn value(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.known.push(key);
        self.entries.get(key)
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether a key says `false`.
    pub fn is_false(&mut self, key: &'static str) -> bool {
        let value = self.entries.get(key);
        let is_false = value.is_some_and(|value| value.get_ref().as_bool() == Some(false));
        if is_false {
            self.known.push(key);
        }
        is_false
    }

    /// The place of a key.
    pub fn place(&self, key: &str) -> Range<usize> {
        let found = self.entries.get_key_value(key);
        found.map_or(self.span.clone(), |(key, _)| key.span())
    }

    /// The value of a key that is a string, with its place.
    pub fn text(&self, key: &str) -> Option<(&'t str, Range<usize>)> {
        let value = self.entries.get(key)?;
        Some((value.get_ref().as_str()?, value.span()))
    }

    /// A string.
    pub fn string(&mut self, key: &'static str, mistakes: &mut Mistakes) -> Option<At<String>> {
        let value = self.value(key)?;
        let DeValue::String(text) = value.get_ref() else {
            wrong_type(key, "a string in quotes", value, mistakes);
            return None;
        };
        Some((text.clone().into_owned(), value.span()))
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str, mistakes: &mut Mistakes) -> Option<bool> {
        let value = self.value(key)?;
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            wrong_type(key, "true or false", value, mistakes);
        }
        boolean
    }

    /// A number within the range, written with or without a point.
    pub fn number(
        &mut self,
        key: &'static str,
        range: Range<f64>,
        mistakes: &mut Mistakes,
    ) -> Option<f64> {
        let value = self.value(key)?;
        let Some(number) = number(value.get_ref()) else {
            wrong_type(key, "a number", value, mistakes);
            return None;
        };
        if !(range.start..=range.end).contains(&number) {
            let (least, most) = (range.start, range.end);
            mistakes.add(
                &value.span(),
                format!("{key} = {number} is out of range; set a number from {least} to {most}"),
            );
            return None;
        }
        Some(number)
    }

    /// A whole number within the range.
    pub fn whole(
        &mut self,
        key: &'static str,
        range: Range<u64>,
        mistakes: &mut Mistakes,
    ) -> Option<u64> {
        let value = self.value(key)?;
        let Some(number) = integer(value.get_ref()) else {
            wrong_type(key, "a whole number", value, mistakes);
            return None;
        };
        let (least, most) = (range.start, range.end);
        let found = (u64::try_from(number).ok()).filter(|n| (least..=most).contains(n));
        if found.is_none() {
            let range = if most >= u64::from(u32::MAX) {
                format!("{least} or more")
            } else {
                format!("a number from {least} to {most}")
            };
            let text = format!("{key} = {number} is out of range; set {range}");
            mistakes.add(&value.span(), text);
        }
        found
    }

    /// A number of seconds.
    pub fn seconds(
        &mut self,
        key: &'static str,
        range: Range<f64>,
        mistakes: &mut Mistakes,
    ) -> Option<Duration> {
        (self.number(key, range, mistakes)).and_then(|s| Duration::try_from_secs_f64(s).ok())
    }

    /// The value of a key that is one of several words.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
        mistakes: &mut Mistakes,
    ) -> Option<T> {
        let (word, span) = self.string(key, mistakes)?;
        let found = choices.iter().find(|(name, _)| *name == word);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            let advice = match nearest(&word, &names) {
                Some(name) => format!("did you mean {name:?}?"),
                None => format!("set one of {}", names.join(", ")),
            };
            mistakes.add(&span, format!("{key} = {word:?} is no choice; {advice}"));
        }
        found.map(|(_, value)| *value)
    }

    /// A table below this one.
    pub fn table(&mut self, key: &'static str, mistakes: &mut Mistakes) -> Option<Table<'t, 'i>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(entries) => Some(Table::new(entries, value.span(), key)),
            _ => {
                wrong_type(key, "a table, as [camera.NAME] or { … }", value, mistakes);
                None
            }
        }
    }

    /// A table, or an array of tables, below this one.
    pub fn tables(&mut self, key: &'static str, mistakes: &mut Mistakes) -> Vec<Table<'t, 'i>> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let values: Vec<&Spanned<DeValue>> = match value.get_ref() {
            DeValue::Array(values) => values.iter().collect(),
            _ => vec![value],
        };
        let mut tables = Vec::new();
        for value in values {
            match value.get_ref() {
                DeValue::Table(entries) => tables.push(Table::new(entries, value.span(), key)),
                _ => wrong_type(key, "a table", value, mistakes),
            }
        }
        tables
    }

    /// Notes the keys that nobody asked for.
    pub fn finish(self, mistakes: &mut Mistakes) {
        for (key, span, _) in self.entries() {
            if !self.known.contains(&key) {
                unknown(key, &span, &self.name, &self.known, mistakes);
            }
        }
    }
}

/// Notes a key that does not exist, with the nearest one that does.
pub fn unknown(
    key: &str,
    span: &Range<usize>,
    table: &str,
    known: &[&str],
    mistakes: &mut Mistakes,
) {
    let advice = match nearest(key, known) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("known keys: {}", known.join(", ")),
    };
    mistakes.add(span, format!("{table} has no key {key}; {advice}"));
}

/// Notes a value of the wrong type.
pub fn wrong_type(key: &str, wanted: &str, value: &Spanned<DeValue<'_>>, mistakes: &mut Mistakes) {
    let found = match value.get_ref().type_str() {
        "integer" => "a whole number",
        "float" => "a number with a point",
        "string" => "a string",
        "boolean" => "true or false",
        "array" => "an array",
        "table" => "a table",
        other => other,
    };
    mistakes.add(&value.span(), format!("{key} is {found}; write {wanted}"));
}

/// The value as a whole number.
pub fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The value as a finite number.
pub fn number(value: &DeValue<'_>) -> Option<f64> {
    let written = (value.as_float()).and_then(|float| float.as_str().parse::<f64>().ok());
    let number = written.or_else(|| integer(value).map(|whole| whole as f64));
    number.filter(|number| number.is_finite())
}
