//! The settings of a draft: what the page shows and changes of a camera's table.

use std::collections::BTreeMap;

use config::file::ANALYZERS;
use serde_json::{Map, Value};
use toml_edit::{InlineTable, Item, Table};

/// Properties of an analyzer that a file of learned limits replaces.
pub const LIMITS: [&str; 6] = [
    "threshold",
    "thresholds",
    "scale-factors",
    "deviation-factor",
    "component-limits",
    "contrasts",
];
/// Keys with one value.
const VALUES: [&str; 4] = ["pixel-format", "exposure", "gain", "black-level"];
/// Keys with a table that may be missing.
const TABLES: [&str; 3] = ["flat-field", "gaussian", "histogram"];
/// Properties that name files or devices. The page neither sees nor sets them.
const HIDDEN: [&str; 3] = ["location", "mask", "device"];
/// How a remark about learned limits begins.
pub const LEARNED: &str = "Learned from";
/// Columns of a line in a recipe.
const LINE: usize = 100;

/// A camera's settings as the page has them; docs/station-reference.md lists the keys.
pub type Settings = Map<String, Value>;

/// Remarks for the file, by table and key.
pub type Notes = BTreeMap<(&'static str, String), String>;

/// The settings that a camera's table has.
pub fn of_table(table: &Table) -> Settings {
    let mut settings = Settings::new();
    for key in VALUES.iter().chain(&TABLES) {
        // `false` in a recipe leaves out what the station's file has.
        let value = table.get(key).and_then(value_of).filter(|of| *of != false);
        if let Some(value) = value {
            settings.insert((*key).to_owned(), value);
        }
    }
    let analyzer = ANALYZERS.iter().find(|name| table.contains_key(name));
    let analyzer = analyzer.unwrap_or(&ANALYZERS[0]);
    settings.insert("analyzer".to_owned(), (*analyzer).into());
    let analysis = table.get(analyzer).and_then(value_of);
    let analysis = analysis.unwrap_or_else(|| Value::Object(Map::new()));
    settings.insert("analysis".to_owned(), analysis);
    settings
}

/// Whether the analyzer's file of limits has its model, too; then limits of the text win over those of the file.
pub fn keeps_limits_file(settings: &Settings) -> bool {
    settings.get("analyzer").and_then(Value::as_str) == Some("surface")
}

/// Whether the page may send these settings.
///
/// # Errors
/// The key that is wrong, and a sentence.
pub fn check(settings: &Settings) -> Result<(), (String, String)> {
    let no_key = |key: &str| (key.to_owned(), format!("the page has no setting {key}"));
    for (key, value) in settings {
        let is_known = VALUES.contains(&key.as_str())
            || TABLES.contains(&key.as_str())
            || ["analyzer", "analysis", "source", "name"].contains(&key.as_str());
        if !is_known {
            return Err(no_key(key));
        }
        if let Some(hidden) = hidden_in(value) {
            return Err((key.clone(), format!("{hidden} is set by the station")));
        }
    }
    let analyzer = settings.get("analyzer").and_then(Value::as_str);
    if analyzer.is_none_or(|analyzer| !ANALYZERS.contains(&analyzer)) {
        let text = "choose pitch, reference, texture or surface".to_owned();
        return Err(("analyzer".to_owned(), text));
    }
    let tables = TABLES.iter().chain(&["analysis"]);
    for key in tables {
        if settings
            .get(*key)
            .is_some_and(|of| !of.is_object() && !of.is_null())
        {
            let text = format!("{key} is a table of properties");
            return Err(((*key).to_owned(), text));
        }
    }
    Ok(())
}

/// A key that the page may not send.
fn hidden_in(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let found = HIDDEN.iter().find(|hidden| *hidden == key);
            found.copied().or_else(|| hidden_in(value))
        }),
        Value::Array(values) => values.iter().find_map(hidden_in),
        _ => None,
    }
}

/// Writes the settings into a camera's table. Keys that the page does not have stay as they are. `inherits`: the station's
/// file has this camera, so what the page switches off is switched off in words.
pub fn write(settings: &Settings, notes: &Notes, table: &mut Table, inherits: bool) {
    for key in VALUES {
        match settings.get(key).and_then(to_toml) {
            Some(value) => drop(put(table, key, value)),
            None => drop(table.remove(key)),
        }
    }
    for key in TABLES {
        match settings.get(key) {
            Some(Value::Object(fields)) => {
                let mut inline = InlineTable::new();
                for (name, value) in with_hidden(fields, table.get(key)) {
                    inline.insert(&name, value);
                }
                put(table, key, inline.into());
            }
            _ if inherits => drop(put(table, key, false.into())),
            _ => drop(table.remove(key)),
        }
    }
    let analyzer = settings.get("analyzer").and_then(Value::as_str);
    let Some(analyzer) = ANALYZERS.into_iter().find(|of| Some(*of) == analyzer) else {
        return;
    };
    let before = table.get(analyzer).cloned();
    let empty = Map::new();
    let fields = settings.get("analysis").and_then(Value::as_object);
    let fields = with_hidden(fields.unwrap_or(&empty), before.as_ref());
    for other in ANALYZERS.into_iter().filter(|of| *of != analyzer) {
        table.remove(other);
    }
    let mut analysis = match before {
        Some(Item::Table(before)) => before,
        _ => Table::new(),
    };
    let kept: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
    analysis.retain(|name, _| kept.iter().any(|kept| kept == name));
    for (name, value) in fields {
        let is_same = put(&mut analysis, &name, value);
        let note = notes.get(&(analyzer, name.clone()));
        if let Some(mut key) = analysis.key_mut(&name) {
            let decor = key.leaf_decor_mut();
            let before = decor
                .prefix()
                .and_then(|of| of.as_str())
                .unwrap_or_default();
            match note {
                Some(note) => decor.set_prefix(comment(note)),
                // It is no longer true. Other remarks are those of people.
                None if !is_same && before.contains(LEARNED) => decor.set_prefix(""),
                None => {}
            }
        }
    }
    table.insert(analyzer, Item::Table(analysis));
}

/// Lines of a remark.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > LINE {
            lines += &line;
            lines.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line += word;
    }
    lines + &line + "\n"
}

/// Sets a value; one that is the same keeps its text and its remarks. Returns whether it is.
fn put(table: &mut Table, key: &str, value: toml_edit::Value) -> bool {
    let is_same = (table.get(key).and_then(Item::as_value))
        .is_some_and(|before| json_of(before) == json_of(&value));
    if !is_same {
        table.insert(key, Item::Value(value));
    }
    is_same
}

/// The fields that the page sent, and of those that it does not see the ones that are there.
fn with_hidden(
    fields: &Map<String, Value>,
    before: Option<&Item>,
) -> Vec<(String, toml_edit::Value)> {
    let before = before.and_then(Item::as_table_like);
    let old = |name: &str| before.and_then(|of| of.get(name)?.as_value());
    let mut all = Vec::new();
    for (name, value) in fields {
        let Some(mut value) = to_toml(value) else {
            continue;
        };
        if let (Some(new), Some(old)) = (
            value.as_inline_table_mut(),
            old(name).and_then(|of| of.as_inline_table()),
        ) {
            for hidden in HIDDEN {
                if let Some(kept) = old.get(hidden) {
                    new.insert(hidden, kept.clone());
                }
            }
        }
        all.push((name.clone(), value));
    }
    let rest = before.into_iter().flat_map(|of| of.iter());
    for (name, item) in rest.filter(|(name, _)| !fields.contains_key(*name)) {
        let Some(value) = item.as_value() else {
            continue;
        };
        if HIDDEN.contains(&name) {
            all.push((name.to_owned(), value.clone()));
        } else if let Some(old) = value.as_inline_table() {
            let mut kept = InlineTable::new();
            for hidden in HIDDEN {
                if let Some(value) = old.get(hidden) {
                    kept.insert(hidden, value.clone());
                }
            }
            if !kept.is_empty() {
                all.push((name.to_owned(), kept.into()));
            }
        }
    }
    all
}

/// A value of the file for the page, without what it does not see.
fn value_of(item: &Item) -> Option<Value> {
    match item {
        Item::Value(value) => Some(json_of(value)),
        Item::Table(table) => {
            let fields = table.iter().filter(|(name, _)| !HIDDEN.contains(name));
            Some(Value::Object(
                fields
                    .filter_map(|(name, item)| Some((name.to_owned(), value_of(item)?)))
                    .filter(|(_, value)| value.as_object().is_none_or(|of| !of.is_empty()))
                    .collect(),
            ))
        }
        _ => None,
    }
}

fn json_of(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(choice) => (*choice.value()).into(),
        toml_edit::Value::Datetime(time) => time.to_string().into(),
        toml_edit::Value::Array(values) => values.iter().map(json_of).collect(),
        toml_edit::Value::InlineTable(table) => {
            let fields = table.iter().filter(|(name, _)| !HIDDEN.contains(name));
            let fields = fields.map(|(name, value)| (name.to_owned(), json_of(value)));
            Value::Object(fields.collect())
        }
    }
}

/// `None` for null: the key is left out.
fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(choice) => (*choice).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => {
            let values: toml_edit::Array = values.iter().filter_map(to_toml).collect();
            values.into()
        }
        Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, value) in fields {
                if let Some(value) = to_toml(value) {
                    table.insert(name, value);
                }
            }
            table.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        let document: toml_edit::DocumentMut = text.parse().expect("TOML");
        document.as_table().clone()
    }

    fn settings(text: &str) -> Settings {
        serde_json::from_str(text).expect("settings")
    }

    #[test]
    fn files_and_other_keys_of_a_table_outlive_settings_of_the_page() {
        let before = "# by hand\nname = \"left\"\nsilence = 9\nflat-field = { location = \"w.npz\", target = 90.0 }\n\
                      [pitch]\n# why\nthreshold = 12.0\nmin-area = 4\nignore = { mask = \"m.png\" }\n";
        let mut table = table(before);
        let shown = of_table(&table);
        assert_eq!(shown["flat-field"], serde_json::json!({ "target": 90.0 }));
        assert_eq!(shown["analysis"]["threshold"], 12.0);
        write(
            &settings(
                "{\"flat-field\": {\"target\": 80.0}, \"analyzer\": \"pitch\", \
                 \"analysis\": {\"threshold\": 12.0, \"ignore\": {\"regions\": [[0, 0, 5, 0, 5, 5]]}}}",
            ),
            &Notes::new(),
            &mut table,
            false,
        );
        let text = toml_edit::DocumentMut::from(table).to_string();
        for kept in [
            "# by hand",
            "silence = 9",
            "location = \"w.npz\"",
            "target = 80.0",
            "# why\nthreshold = 12.0",
            "mask = \"m.png\"",
            "regions = [[0, 0, 5, 0, 5, 5]]",
        ] {
            assert!(text.contains(kept), "{kept} is not in:\n{text}");
        }
        assert!(!text.contains("min-area"), "{text}");
    }

    #[test]
    fn another_analyzer_replaces_the_one_before() {
        let mut table = table("name = \"left\"\n[pitch]\nthreshold = 12.0\n");
        let texture = "{\"analyzer\": \"texture\", \"analysis\": {\"min-area\": 4}}";
        let note = (
            ("texture", "min-area".to_owned()),
            "as small as a knot".to_owned(),
        );
        write(&settings(texture), &Notes::from([note]), &mut table, false);
        let text = toml_edit::DocumentMut::from(table).to_string();
        assert!(!text.contains("pitch"), "{text}");
        assert!(
            text.contains("# as small as a knot\nmin-area = 4"),
            "{text}"
        );
    }

    #[test]
    fn what_is_switched_off_stays_off_also_if_the_file_of_the_station_has_it() {
        let mut table = table("name = \"left\"\n");
        let without = settings("{\"analyzer\": \"texture\", \"analysis\": {}, \"gaussian\": null}");
        write(&without, &Notes::new(), &mut table, true);
        assert_eq!(table["gaussian"].as_bool(), Some(false));
        let shown = of_table(&table);
        assert!(!shown.contains_key("gaussian"), "{shown:?}");
        assert_eq!(check(&shown), Ok(()));
        write(&shown, &Notes::new(), &mut table, true);
        assert_eq!(table["gaussian"].as_bool(), Some(false));
    }

    #[test]
    fn settings_that_name_files_devices_or_unknown_keys_are_refused() {
        for (text, key) in [
            ("{\"analyzer\": \"pitch\", \"publish\": {}}", "publish"),
            (
                "{\"analyzer\": \"pitch\", \"analysis\": {\"learn\": {\"location\": \"/etc/x\"}}}",
                "analysis",
            ),
            (
                "{\"analyzer\": \"pitch\", \"analysis\": {\"ignore\": {\"mask\": \"/etc/x\"}}}",
                "analysis",
            ),
            (
                "{\"analyzer\": \"pitch\", \"gaussian\": {\"device\": \"cpu\"}}",
                "gaussian",
            ),
            ("{\"analyzer\": \"rm\"}", "analyzer"),
            ("{}", "analyzer"),
            ("{\"analyzer\": \"pitch\", \"gaussian\": 5}", "gaussian"),
        ] {
            let refused = check(&settings(text)).expect_err("a refusal");
            assert_eq!(refused.0, key, "{text}");
        }
    }
}
