//! The report: sections of lines, as text or as JSON.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::{Map, Value, json};

/// How a line is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// As it should be.
    Ok,
    /// Something to know.
    Note,
    /// Something to mend.
    Fault,
}

impl Mark {
    /// The word in front of a line; readable without colours.
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok   ",
            Self::Note => "note ",
            Self::Fault => "FAULT",
        }
    }
}

/// A finding.
#[derive(Debug, Serialize)]
struct Line {
    mark: Mark,
    text: String,
    /// What to do.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

/// What was found about one subject.
pub struct Section {
    name: &'static str,
    title: &'static str,
    lines: Vec<Line>,
    data: Value,
}

impl Section {
    /// `name` is the key in the JSON object.
    pub fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            lines: Vec::new(),
            data: Value::Null,
        }
    }

    /// Something is as it should be.
    pub fn ok(&mut self, text: impl Into<String>) {
        self.add(Mark::Ok, text.into(), None);
    }

    /// Something to know.
    pub fn note(&mut self, text: impl Into<String>) {
        self.add(Mark::Note, text.into(), None);
    }

    /// Something to know, and what to do if it matters.
    pub fn advise(&mut self, text: impl Into<String>, mend: impl Into<String>) {
        self.add(Mark::Note, text.into(), Some(mend.into()));
    }

    /// Something to mend, and how.
    pub fn fault(&mut self, text: impl Into<String>, mend: impl Into<String>) {
        self.add(Mark::Fault, text.into(), Some(mend.into()));
    }

    /// A finding whose mark depends on other findings.
    pub fn add(&mut self, mark: Mark, text: String, mend: Option<String>) {
        self.lines.push(Line {
            mark,
            text: printable(&text),
            mend: mend.as_deref().map(printable),
        });
    }

    /// Figures and names for programs.
    pub fn set_data(&mut self, data: &impl Serialize) {
        self.data = serde_json::to_value(data).unwrap_or_default();
    }

    /// Number of lines with this mark.
    pub fn count(&self, mark: Mark) -> usize {
        self.lines.iter().filter(|line| line.mark == mark).count()
    }
}

/// Text without control characters: names of devices and messages of drivers must not steer the terminal.
fn printable(text: &str) -> String {
    let words = text.split(char::is_control).map(str::trim);
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// All sections, printed one by one or together at the end.
pub struct Report {
    is_json: bool,
    sections: Map<String, Value>,
    faults: usize,
    notes: usize,
}

impl Report {
    /// An empty report.
    pub fn new(is_json: bool) -> Self {
        Self {
            is_json,
            sections: Map::new(),
            faults: 0,
            notes: 0,
        }
    }

    /// Adds a section, and prints it at once if the report is text.
    pub fn add(&mut self, section: Section) {
        self.faults += section.count(Mark::Fault);
        self.notes += section.count(Mark::Note);
        if self.is_json {
            let Section {
                name, lines, data, ..
            } = section;
            self.sections
                .insert(name.to_owned(), json!({ "lines": lines, "data": data }));
            return;
        }
        let mut text = format!("{}\n", section.title);
        for Line {
            mark,
            text: of,
            mend,
        } in &section.lines
        {
            text += &format!("  {}  {of}\n", mark.word());
            if let Some(mend) = mend {
                text += &format!("         do: {mend}\n");
            }
        }
        print(&format!("{text}\n"));
    }

    /// Prints the rest; the exit code says whether there are faults.
    pub fn finish(self) -> ExitCode {
        let Self { faults, notes, .. } = self;
        if self.is_json {
            let report = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "faults": faults,
                "notes": notes,
                "sections": self.sections,
            });
            print(&format!("{report:#}\n"));
        } else {
            let count = |number: usize, word: &str| match number {
                1 => format!("1 {word}"),
                _ => format!("{number} {word}s"),
            };
            print(&format!(
                "{}, {}\n",
                count(faults, "fault"),
                count(notes, "note")
            ));
        }
        if faults == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// A reader that is gone, such as `head`, does not matter: the exit code still tells the result.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
