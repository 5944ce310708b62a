//! Mistakes in a file, with the places where they are.

use std::{fmt, fs, ops::Range, os::unix::fs::PermissionsExt, path::Path};

use plan::Place;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What is wrong, and what to do.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

/// What a configuration is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The station starts.
    Start,
    /// Cameras that run change to it.
    Run,
    /// `--check`: the service starts later, as another user.
    Check,
    /// A draft, whose sources the station chose itself. To make one takes seconds for a network camera that is open.
    Draft,
}

/// The mistakes found so far.
pub struct Mistakes<'t> {
    text: &'t str,
    file: &'t Path,
    purpose: Purpose,
    found: Vec<Mistake>,
    notes: Vec<Mistake>,
    /// Lines that are no TOML.
    broken: Vec<usize>,
    /// Whether the text is correct TOML. What a broken line was to say is not missing.
    is_whole: bool,
}

impl<'t> Mistakes<'t> {
    /// No mistake in `text`, the text of `file`, yet.
    pub fn of(text: &'t str, file: &'t Path, purpose: Purpose) -> Self {
        Self {
            text,
            file,
            purpose,
            found: Vec::new(),
            notes: Vec::new(),
            broken: Vec::new(),
            is_whole: true,
        }
    }

    /// Adds a mistake of the TOML syntax.
    pub fn add_syntax(&mut self, at: usize, text: &str) {
        self.is_whole = false;
        self.add(&(at..at), text);
        self.broken
            .extend(self.found.last().map(|mistake| mistake.line));
    }

    /// Whether elements are asked what they refuse.
    pub fn asks_elements(&self) -> bool {
        self.purpose != Purpose::Start
    }

    /// Whether sources are made to see whether they can be.
    pub fn asks_sources(&self) -> bool {
        self.purpose != Purpose::Draft
    }

    /// Whether the file is checked only.
    pub fn is_check(&self) -> bool {
        self.purpose == Purpose::Check
    }

    /// The command that takes the file from other users; `None` if they cannot read it.
    pub fn command_to_hide_file(&self) -> Option<String> {
        let about = fs::metadata(self.file).ok()?;
        let is_open = about.permissions().mode() & 0o004 != 0;
        is_open.then(|| format!("chmod o= {}", self.file.display()))
    }

    /// Adds a mistake at `span`, bytes of the text.
    pub fn add(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let mistake = self.at(span, text.into());
        // The value of a broken line is a guess.
        if !self.broken.contains(&mistake.line) {
            self.found.push(mistake);
        }
    }

    /// Adds a remark that is no mistake.
    pub fn note(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let note = self.at(span, text.into());
        self.notes.push(note);
    }

    /// Where `span` is, bytes of the text.
    pub fn place(&self, span: &Range<usize>) -> Place {
        let Mistake { line, .. } = self.at(span, String::new());
        Place { line }
    }

    fn at(&self, span: &Range<usize>, text: String) -> Mistake {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Mistake {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            text,
        }
    }

    /// Adds a mistake about something that the table at `span` lacks.
    pub fn add_missing(&mut self, span: &Range<usize>, text: impl Into<String>) {
        if self.is_whole {
            self.add(span, text);
        }
    }

    /// The mistakes and the notes, in the order of the text.
    pub fn into_sorted(mut self) -> [Vec<Mistake>; 2] {
        self.found.sort();
        self.found.dedup();
        self.notes.sort();
        [self.found, self.notes]
    }
}
