//! Tables whose keys are the properties of an element.

use std::{collections::BTreeMap, fmt, path::Path};

use gst::{glib, prelude::*};
use gstinspectpublish::InspectPublish;
use plan::Properties;
use run::properties::set;
use toml::{
    Spanned,
    de::{DeArray, DeValue},
};

use super::{
    files::comes_with_the_service,
    mistakes::Mistakes,
    nearest::nearest,
    table::{Table, integer, number, unknown},
};

/// The property of `inspectpublish` that names a file with a password.
const CREDENTIALS: &str = "credentials-file";

/// Reads a table. `set_by_station` are properties that the file cannot set, with what to do instead.
///
/// Values are checked against the element's description, and by an element that runs nowhere, so that
/// a mistake is found before a camera runs.
pub fn read(
    table: &Table<'_, '_>,
    factory: &str,
    set_by_station: &[(&str, &str)],
    mistakes: &mut Mistakes<'_>,
) -> Properties {
    let mut properties = Properties::default();
    let mut wrong = Vec::new();
    let mut structures = BTreeMap::new();
    let Ok(element) = gst::ElementFactory::make(factory).build() else {
        let text = format!("the element {factory} is missing; install its GStreamer plugin");
        mistakes.add(&table.span, text);
        return properties;
    };
    let specs = element.list_properties();
    let writable = specs.iter().filter(|spec| {
        let name = spec.name();
        spec.flags().contains(glib::ParamFlags::WRITABLE)
            && !["name", "parent"].contains(&name)
            && set_by_station.iter().all(|(reserved, _)| *reserved != name)
    });
    let known: Vec<&str> = writable.map(|spec| spec.name()).collect();
    for (key, span, value) in table.entries() {
        if let Some((_, instead)) = set_by_station.iter().find(|(name, _)| *name == key) {
            mistakes.add(&span, format!("the station sets {key} itself; {instead}"));
            continue;
        }
        if !known.contains(&key) {
            unknown(key, &span, &table.name, &known, mistakes);
            continue;
        }
        let Some(spec) = element.find_property(key) else {
            continue;
        };
        let text = if spec.value_type() == gst::Structure::static_type() {
            let structure = structure(&element, key, value, mistakes);
            structure.and_then(|structure| {
                let text = structure.to_value().serialize();
                structures.insert(key, structure);
                text.map(Into::into)
                    .map_err(|error| error.message.into_owned())
            })
        } else {
            in_notation(&spec, value.get_ref())
        };
        match text.and_then(|text| Ok((parsed(&spec, &text)?, text))) {
            Ok((of_property, text)) => {
                element.set_property_from_value(key, &of_property);
                properties.set(key, text);
            }
            Err(why) => {
                wrong.push(key);
                mistakes.add(&value.span(), format!("{key}: {why}"));
            }
        }
    }
    if let Some((path, span)) = table.text(CREDENTIALS)
        && element.has_property(CREDENTIALS)
        && comes_with_the_service(Path::new(path), CREDENTIALS, &span, mistakes)
    {
        set(&element, CREDENTIALS, None);
    }
    if mistakes.asks_elements() {
        let is_known = |key: &str| known.contains(&key);
        ask(&element, table, is_known, structures, wrong, mistakes);
    }
    if mistakes.is_check()
        && let Err(why) = gstclinspect::check_sight(&element)
    {
        let entries = table.entries();
        let named = entries.iter().find(|(key, _, _)| why.starts_with(key));
        let span = named.map_or(table.span.clone(), |(_, _, value)| value.span());
        mistakes.add(&span, why);
    }
    properties
}

/// Notes what the element refuses of its properties, in its words. `is_known` tells whether a key is a
/// property; `structures` are the structures that were set; `wrong` are keys of whose values a mistake was told.
fn ask<'t>(
    element: &gst::Element,
    table: &Table<'t, '_>,
    is_known: impl Fn(&str) -> bool,
    mut structures: BTreeMap<&'t str, gst::Structure>,
    mut wrong: Vec<&'t str>,
    mistakes: &mut Mistakes<'_>,
) {
    let factory = element.factory();
    let Some(unset) = factory.and_then(|factory| factory.create().build().ok()) else {
        return;
    };
    let mut entries = table.entries();
    entries.retain(|(key, _, _)| is_known(key));
    while let Err(why) = refusal(element) {
        // The sentence begins with the property that is wrong.
        let is_end = |c: char| !c.is_ascii_lowercase() && c != '-';
        let words = || why.split(is_end);
        let named = words().filter_map(|word| entries.iter().find(|(key, _, _)| *key == word));
        let named: Vec<_> = named.collect();
        // A refusal with a key of which a mistake was told may be due to that mistake.
        let is_news = !named.iter().any(|(key, _, _)| wrong.contains(key));
        let Some((key, _, value)) = named.first() else {
            if is_news {
                mistakes.add(&table.span, why.as_str());
            }
            return;
        };
        // The field of a structure comes next.
        let structure = structures.get_mut(key);
        let field = structure.and_then(|structure| {
            let field = words().skip(1).find(|word| structure.has_field(*word))?;
            structure.remove_field(field);
            Some((field, &*structure))
        });
        if is_news {
            let fields = value.get_ref().as_table();
            let of_field = field.and_then(|(field, _)| fields?.get(field));
            mistakes.add(&of_field.unwrap_or(value).span(), why.as_str());
        }
        // So that the element tells its next refusal.
        match field {
            Some((_, others)) => element.set_property(key, others),
            None if wrong.contains(key) => return,
            None => {
                element.set_property_from_value(key, &unset.property_value(key));
                wrong.push(key);
            }
        }
    }
}

/// What the element refuses before a camera runs.
fn refusal(element: &gst::Element) -> Result<(), String> {
    gstclinspect::check_settings(element)?;
    let publish = element.downcast_ref::<InspectPublish>();
    publish.map_or(Ok(()), InspectPublish::check)
}

/// The structure that a table describes. The property of the element, which has its default, has all fields; the
/// element itself checks their ranges.
///
/// # Errors
/// The value is no table.
fn structure(
    element: &gst::Element,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    mistakes: &mut Mistakes<'_>,
) -> Result<gst::Structure, String> {
    let default: gst::Structure = element.property(key);
    let known: Vec<&str> = default.fields().map(|name| name.as_str()).collect();
    let table = value.get_ref().as_table().ok_or_else(|| {
        let example = known.first().unwrap_or(&"field");
        wanted(
            value.get_ref(),
            &format!("a table such as {{ {example} = … }}"),
        )
    })?;
    let mut structure = gst::Structure::new_empty(key);
    for (name, span, value) in Table::new(table, value.span(), key).entries() {
        match default
            .value(name)
            .map(|default| field(default, value.get_ref()))
        {
            Ok(Ok(value)) => structure.set_value(name, value),
            Ok(Err(why)) => mistakes.add(&value.span(), format!("{key}: {name}: {why}")),
            Err(_) => unknown(name, &span, key, &known, mistakes),
        }
    }
    Ok(structure)
}

/// The value of a field that has the type of `default`.
fn field(default: &glib::Value, value: &DeValue<'_>) -> Result<glib::SendValue, String> {
    let (read, what) = match default.type_() {
        glib::Type::BOOL => (
            value.as_bool().map(|choice| choice.to_send_value()),
            "true or false",
        ),
        glib::Type::F64 => (
            number(value).map(|number| number.to_send_value()),
            "a number",
        ),
        glib::Type::STRING => (
            value.as_str().map(|text| text.to_send_value()),
            "a string in quotes",
        ),
        kind if kind == gst::Array::static_type() => {
            let values = value.as_array().map(numbers).transpose()?;
            (
                values.map(|values| values.to_send_value()),
                "an array such as [1, 4]",
            )
        }
        _ => {
            let whole = integer(value).and_then(|number| i64::try_from(number).ok());
            (whole.map(|number| number.to_send_value()), "a whole number")
        }
    };
    read.ok_or_else(|| wanted(value, what))
}

/// Numbers, in arrays as deep as those of the file.
fn numbers(values: &DeArray<'_>) -> Result<gst::Array, String> {
    let values = values.iter().map(|value| match value.get_ref() {
        DeValue::Array(values) => Ok(numbers(values)?.to_send_value()),
        other => match number(other) {
            Some(number) => Ok(number.to_send_value()),
            None => Err(wanted(other, "a number")),
        },
    });
    Ok(gst::Array::from_values(
        values.collect::<Result<Vec<_>, String>>()?,
    ))
}

/// The value in GStreamer's notation, checked for type and range.
fn in_notation(spec: &glib::ParamSpec, value: &DeValue<'_>) -> Result<String, String> {
    if let Some(range) = whole_range(spec) {
        return in_range(range, value);
    }
    if let Some((least, most)) = real_range(spec) {
        let number = number(value).ok_or_else(|| wanted(value, "a number"))?;
        if !(least..=most).contains(&number) {
            return Err(out_of_range(number, readable(least), readable(most)));
        }
        return Ok(format!("{number:?}"));
    }
    if let Some(spec) = spec.downcast_ref::<gst::ParamSpecArray>() {
        return match value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Array(values) => array(spec.element_spec(), values),
            _ => Err(wanted(value, "an array such as [1, 4]")),
        };
    }
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecEnum>() {
        let class = spec.enum_class();
        let nicks: Vec<&str> = class.values().iter().map(|value| value.nick()).collect();
        let DeValue::String(text) = value else {
            return Err(wanted(value, &format!("one of {}", quoted(&nicks))));
        };
        if nicks.contains(&text.as_ref()) {
            return Ok(text.clone().into_owned());
        }
        let meant = nearest(text, &nicks)
            .map_or(String::new(), |nick| format!("; did you mean \"{nick}\"?"));
        return Err(format!(
            "\"{text}\" is not one of {}{meant}",
            quoted(&nicks)
        ));
    }
    if spec.value_type() == glib::Type::BOOL {
        let boolean = value.as_bool();
        let boolean = boolean.ok_or_else(|| wanted(value, "true or false"))?;
        return Ok(boolean.to_string());
    }
    let DeValue::String(text) = value else {
        return Err(wanted(value, "a string in quotes"));
    };
    if spec.value_type() != glib::Type::STRING {
        return Ok(text.clone().into_owned());
    }
    let text = text.to_value().serialize();
    text.map(Into::into)
        .map_err(|error| error.message.into_owned())
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

fn wanted(value: &DeValue<'_>, what: &str) -> String {
    format!(
        "{what} is expected, not {}",
        match value.type_str() {
            "integer" => "a whole number",
            "float" => "a number with a point",
            "boolean" => "true or false",
            "array" => "an array",
            "table" => "a table",
            "string" => "a string",
            other => other,
        }
    )
}

fn out_of_range(number: impl fmt::Display, least: String, most: String) -> String {
    format!("{number} is out of range; set a number from {least} to {most}")
}

fn readable(limit: f64) -> String {
    if limit.abs() > 1e15 {
        format!("{limit:e}")
    } else {
        limit.to_string()
    }
}

fn in_range((least, most): (i128, i128), value: &DeValue<'_>) -> Result<String, String> {
    let number = integer(value).ok_or_else(|| wanted(value, "a whole number"))?;
    if (least..=most).contains(&number) {
        Ok(number.to_string())
    } else {
        if most >= i128::from(u32::MAX) {
            return Err(format!("{number} is out of range; set {least} or more"));
        }
        Err(out_of_range(number, least.to_string(), most.to_string()))
    }
}

/// The limits of a property that is a whole number.
fn whole_range(spec: &glib::ParamSpec) -> Option<(i128, i128)> {
    macro_rules! range {
        ($($kind:ident),*) => {
            $(if let Some(spec) = spec.downcast_ref::<glib::$kind>() {
                return Some((spec.minimum().into(), spec.maximum().into()));
            })*
        };
    }
    range!(ParamSpecInt, ParamSpecUInt, ParamSpecInt64, ParamSpecUInt64);
    None
}

/// The limits of a property that is a real number.
fn real_range(spec: &glib::ParamSpec) -> Option<(f64, f64)> {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecDouble>() {
        return Some((spec.minimum(), spec.maximum()));
    }
    let spec = spec.downcast_ref::<glib::ParamSpecFloat>()?;
    Some((spec.minimum().into(), spec.maximum().into()))
}

/// A TOML array as `<…>`. Whole numbers may stand for real ones.
fn array(member: Option<&glib::ParamSpec>, values: &DeArray<'_>) -> Result<String, String> {
    let inner = member.and_then(|spec| spec.downcast_ref::<gst::ParamSpecArray>());
    let parts = values.iter().map(|value| match (inner, value.get_ref()) {
        (Some(inner), DeValue::Array(values)) => array(inner.element_spec(), values),
        (Some(_), other) => Err(wanted(other, "an array of arrays such as [[0, 0, 64, 64]]")),
        (None, other) => match member {
            Some(spec) => in_notation(spec, other),
            None => number(other)
                .map(|number| number.to_string())
                .ok_or_else(|| wanted(other, "a number")),
        },
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    Ok(format!("<{}>", parts.join(", ")))
}

/// The value of a property in GStreamer's notation.
fn parsed(spec: &glib::ParamSpec, text: &str) -> Result<glib::Value, String> {
    let value = glib::Value::deserialize_with_pspec(text, spec);
    value.map_err(|_| format!("{text} is no value of this property"))
}
