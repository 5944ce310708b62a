//! docs/elements: each element has a page; the tables equal the output of `gst-inspect-1.0`, and the
//! pipelines run as printed.
//!
//! `CLINSPECT_WRITE_PAGES=1 cargo test --test element_pages` updates the tables.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{collections::BTreeSet, fs, path::PathBuf};

use tools::{Sandbox, exists, run, shell_lines, skip};

/// These lines enclose a generated table.
const BEGIN: &str = "<!-- written by tests/element_pages.rs -->\n";
const END: &str = "<!-- end -->\n";
/// Properties that every element inherits from GStreamer.
const INHERITED: [&str; 2] = ["name", "parent"];
/// Sections of a page, in GStreamer's order.
const SECTIONS: [&str; 4] = ["## Pads", "## Properties", "## Pipelines", "## See also"];

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/elements")
}

/// A property as `gst-inspect-1.0` prints it.
#[derive(Debug, Default, PartialEq)]
struct Property {
    name: String,
    blurb: String,
    flags: String,
    /// Type, range and default.
    kind: String,
    default: String,
    /// Values of an enumeration with their meaning.
    values: Vec<(String, String)>,
    /// Fields of a structure: the lines of the blurb after the first one.
    fields: Vec<String>,
}

/// The properties in the output of `gst-inspect-1.0`.
fn properties(text: &str) -> Vec<Property> {
    let mut found: Vec<Property> = Vec::new();
    let section = text.split("Element Properties:\n").nth(1).unwrap_or("");
    for line in section
        .lines()
        .take_while(|line| !line.starts_with("Element "))
    {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if indent == 2 {
            let (name, blurb) = line.split_once(':').expect("name : blurb");
            found.push(Property {
                name: name.trim().into(),
                blurb: blurb.trim().into(),
                ..Property::default()
            });
        }
        let Some(property) = found.last_mut().filter(|_| indent > 2) else {
            continue;
        };
        if let Some(flags) = line.strip_prefix("flags: ") {
            property.flags = flags.into();
        } else if property.flags.is_empty() {
            property.fields.push(line.into());
        } else if let Some(value) = line.strip_prefix('(') {
            // (0): auto   - Auto: meaning
            let (_, value) = value.split_once("): ").expect("a value of an enumeration");
            let (name, meaning) = value.split_once(" - ").expect("a value and its meaning");
            property
                .values
                .push((name.trim().into(), meaning.trim().into()));
        } else if indent == 24 {
            let (kind, default) = line.split_once("Default:").unwrap_or((line, ""));
            if !kind.trim().is_empty() {
                property.kind = kind.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            if !default.trim().is_empty() {
                property.default = default.trim().into();
            }
        }
    }
    found
}

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// `text` with 0.6 in place of each (double)0.59999999999999998.
fn with_short_doubles(text: &str) -> String {
    let mut parts = text.split("(double)");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([',', '>']).unwrap_or(part.len());
        let number: f64 = part[..end].parse().expect("a double");
        short += &format!("{number}{}", &part[end..]);
    }
    short
}

impl Property {
    /// The type and range in plain words.
    fn type_and_range(&self) -> String {
        let kind = self.kind.trim_end_matches('.');
        let (kind, range) = kind.split_once(". Range: ").unwrap_or((kind, ""));
        let kind = match kind {
            "Unsigned Integer" | "Unsigned Integer64" => "unsigned integer".into(),
            "Integer" | "Integer64" => "integer".into(),
            other if other.starts_with("Enum") => "choice".into(),
            other if other.starts_with("Flags") => "choices, with + between them".into(),
            other if other.starts_with("GstValueArray") => "array".into(),
            other if other.contains("GstStructure") => "structure".into(),
            other => other.to_lowercase(),
        };
        match range.split_once(" - ") {
            // Omit the largest value of a type.
            Some((least, most)) if most.len() > 9 => format!("{kind}, {least} or more"),
            Some((least, most)) => format!("{kind}, {least} to {most}"),
            None => kind,
        }
    }

    /// States in which the property may be set.
    fn mutable(&self) -> &'static str {
        if !self.flags.contains("writable") {
            "read only"
        } else if self.flags.contains("changeable only in NULL or READY") {
            "NULL, READY"
        } else {
            "always"
        }
    }

    fn row(&self) -> String {
        // The default of an enumeration or of flags is printed as number and quoted name.
        let default = match self.default.rsplit_once(", ") {
            Some((_, name)) if ["Enum", "Flags"].iter().any(|k| self.kind.starts_with(k)) => name,
            _ => &self.default,
        };
        // Arrays as a user types them.
        let default = default.trim_matches('"').replace("(int)", "");
        let default = default.replace("< ", "<").replace(" >", ">");
        let default = with_short_doubles(&default);
        let default = match self.mutable() {
            "read only" => String::new(),
            _ => format!("`{}`", default.trim()).replace("``", ""),
        };
        let values: String = self
            .values
            .iter()
            .map(|(name, meaning)| {
                // Omit the nick, which repeats the name.
                let meaning = meaning
                    .split_once(": ")
                    .map_or(&**meaning, |(_, rest)| rest);
                format!("<br>`{name}`: {}", cell(meaning))
            })
            .collect();
        let fields = self.fields.iter().map(|field| {
            let end = field.find([' ', ':']).expect("a field and its meaning");
            let (name, meaning) = field.split_at(end);
            format!("<br>`{name}`{}", cell(meaning))
        });
        let values = values + &fields.collect::<String>();
        format!(
            "| `{}` | {} | {default} | {} | {}{values} |\n",
            self.name,
            self.type_and_range(),
            self.mutable(),
            cell(&self.blurb)
        )
    }
}

/// The table of the element's own properties.
fn property_table(text: &str) -> String {
    let mut table =
        "| property | type | default | may be set in | meaning |\n|---|---|---|---|---|\n"
            .to_owned();
    for property in properties(text) {
        if !INHERITED.contains(&&*property.name) {
            table += &property.row();
        }
    }
    table
}

/// A pad template as `gst-inspect-1.0` prints it: name, presence, and each of its caps in a line.
fn pads(text: &str) -> Vec<(String, String, Vec<String>)> {
    let mut found: Vec<(String, String, Vec<String>)> = Vec::new();
    let section = text.split("Pad Templates:\n").nth(1).unwrap_or("");
    for line in section
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '))
    {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some((_, name)) = line.split_once(" template: ") {
            found.push((name.trim_matches('\'').into(), String::new(), Vec::new()));
        }
        let Some((_, presence, caps)) = found.last_mut() else {
            continue;
        };
        if let Some(word) = line.strip_prefix("Availability: ") {
            *presence = word.to_lowercase();
        } else if indent == 6 {
            caps.push(format!("`{line}`"));
        } else if let (true, Some((field, value)), Some(last)) =
            (indent > 6, line.split_once(": "), caps.last_mut())
        {
            // Omit a range of all values.
            let all = ["[ 1, 2147483647 ]", "[ 0/1, 2147483647/1 ]"].contains(&value);
            let value = value.replace("(string)", "");
            *last += &if all {
                format!(", {field}")
            } else {
                format!(", {field} {}", value.trim_matches(['{', '}', ' ']))
            };
        }
    }
    found
}

fn pad_table(text: &str) -> String {
    let mut table = "| pad | presence | caps |\n|---|---|---|\n".to_owned();
    for (name, presence, caps) in pads(text) {
        table += &format!("| `{name}` | {presence} | {} |\n", caps.join("<br>"));
    }
    table
}

/// The page with its two generated tables replaced.
fn with_tables(page: &str, tables: [String; 2]) -> String {
    let mut parts = page.split(BEGIN);
    let mut written = parts.next().unwrap_or("").to_owned();
    for table in tables {
        let part = parts.next().expect("a page has two generated tables");
        let (_, after) = part.split_once(END).expect("a generated table has an end");
        written += &format!("{BEGIN}{table}{END}{after}");
    }
    assert!(parts.next().is_none(), "a page has two generated tables");
    written
}

/// The output of `gst-inspect-1.0` for each element of our plugins.
fn elements(sandbox: &Sandbox) -> Vec<(String, String)> {
    let inspect = |what: &str| {
        run(sandbox.command("gst-inspect-1.0").arg(what))
            .succeeded()
            .output()
    };
    // `inspectoverlay` and `inspectpublish` each name a plugin and an element.
    let listing = |plugin: &str| {
        run(sandbox
            .command("gst-inspect-1.0")
            .args(["--plugin", plugin]))
        .succeeded()
        .output()
    };
    let listed = ["clinspect", "inspectoverlay", "inspectpublish"]
        .map(listing)
        .concat();
    let names = listed.lines().filter_map(|line| {
        let (name, title) = line.strip_prefix("  ")?.split_once(": ")?;
        (!name.starts_with(' ') && !name.contains(' ') && !title.is_empty())
            .then(|| name.to_owned())
    });
    names.map(|name| (name.clone(), inspect(&name))).collect()
}

#[test]
fn pages_hold_what_gst_inspect_prints() {
    if !exists("gst-inspect-1.0") {
        return skip("gst-inspect-1.0 is not installed");
    }
    let sandbox = Sandbox::new("pages");
    let elements = elements(&sandbox);
    let write = std::env::var("CLINSPECT_WRITE_PAGES").is_ok_and(|value| value == "1");
    for (name, text) in &elements {
        let path = pages().join(format!("{name}.md"));
        let page = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name} has no page"));
        let expected = with_tables(&page, [pad_table(text), property_table(text)]);
        if write {
            fs::write(&path, &expected).unwrap();
        } else {
            assert_eq!(
                page, expected,
                "{name}: update the page with CLINSPECT_WRITE_PAGES=1"
            );
        }
        let found: Vec<usize> = SECTIONS
            .iter()
            .map(|s| page.find(s).unwrap_or_else(|| panic!("{name} lacks {s}")))
            .collect();
        assert!(found.is_sorted(), "{name}: sections in order");
    }
    let names: BTreeSet<String> = elements.into_iter().map(|(name, _)| name + ".md").collect();
    let there: BTreeSet<String> = fs::read_dir(pages())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, names, "a page for each element, and no other page");
}

#[test]
fn reader_sees_ranges_choices_and_arrays() {
    let text = "Element Properties:\n\n\
        \x20 choice              : What: to do\n\
        \x20                       flags: readable, writable, changeable only in NULL or READY state\n\
        \x20                       Enum \"GstX\" Default: 0, \"auto\"\n\
        \x20                          (0): auto             - Auto: by <itself>\n\
        \x20 number              : How many\n\
        \x20                       flags: readable, writable, changeable in NULL, READY, PAUSED or PLAYING state\n\
        \x20                       Double. Range:              -1 -           65536 Default:              -1 \n\
        \x20 rois                : Where\n\
        \x20                       flags: readable\n\
        \x20                       Default: \"<  >\"\n\
        \x20                       GstValueArray of GValues of type \"GstValueArray\"\n\
        \x20 roi                 : Which\n\
        \x20                       flags: readable, writable, changeable in NULL, READY, PAUSED or PLAYING state\n\
        \x20                       Default: \"< (int)0, (int)7 >\"\n\
        \x20                       GstValueArray of GValues of type \"gint\"\n\
        \x20 factors             : How much\n\
        \x20                       flags: readable, writable, changeable in NULL, READY, PAUSED or PLAYING state\n\
        \x20                       Default: \"< (double)0.59999999999999998, (double)2 >\"\n\
        \x20                       GstValueArray of GValues of type \"gdouble\"\n\
        \x20 fail                : When\n\
        \x20                       count (a whole number): More than <this>\n\
        \x20                       flags: readable, writable, changeable in NULL, READY, PAUSED or PLAYING state\n\
        \x20                       Boxed pointer of type \"GstStructure\"\n\
        \x20                                                              count: -1\n\
        Element Actions:\n  \"x\" : void\n";
    let rows: Vec<String> = properties(text).iter().map(Property::row).collect();
    assert_eq!(
        rows,
        [
            "| `choice` | choice | `auto` | NULL, READY | What: to do<br>`auto`: by &lt;itself&gt; |\n",
            "| `number` | double, -1 to 65536 | `-1` | always | How many |\n",
            "| `rois` | array |  | read only | Where |\n",
            "| `roi` | array | `<0, 7>` | always | Which |\n",
            "| `factors` | array | `<0.6, 2>` | always | How much |\n",
            "| `fail` | structure |  | always | When<br>`count` (a whole number): More than &lt;this&gt; |\n",
        ]
    );
}

#[test]
fn pipelines_of_the_pages_run_as_printed() {
    let sandbox = Sandbox::new("page-pipelines");
    for entry in fs::read_dir(pages()).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let lines = shell_lines(&page, "gst-launch-1.0");
        assert!(!lines.is_empty(), "{} shows no pipeline", path.display());
        // Lines of Python make the files of the pipelines behind them.
        for line in shell_lines(&page, "") {
            if line.contains("gst-launch-1.0") {
                sandbox.runs_as_printed(line);
            } else if line.starts_with("python3") {
                sandbox.python_runs_as_printed(line);
            }
        }
    }
    // The pipeline for PBM pictures writes one for each of its three frames.
    let pictures = fs::read_dir(sandbox.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("mask-") && name.ends_with(".pbm"))
        .count();
    assert_eq!(pictures, 3);
}
