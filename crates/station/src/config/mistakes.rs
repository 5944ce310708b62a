//! Mistakes in a file, with the places where they are.

use std::{fmt, ops::Range};

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

/// The mistakes found so far.
pub struct Mistakes<'t> {
    text: &'t str,
    found: Vec<Mistake>,
    /// Lines that are no TOML.
    broken: Vec<usize>,
    /// Whether the text is correct TOML. What a broken line was to say is not missing.
    is_whole: bool,
}

impl<'t> Mistakes<'t> {
    /// No mistake in `text` yet.
    pub fn of(text: &'t str) -> Self {
        Self {
            text,
            found: Vec::new(),
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

    /// Adds a mistake at `span`, bytes of the text.
    pub fn add(&mut self, span: &Range<usize>, text: impl Into<String>) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        if self.broken.contains(&line) {
            // The value of a broken line is a guess.
            return;
        }
        self.found.push(Mistake {
            line,
            column: before[line_start..].chars().count() + 1,
            text: text.into(),
        });
    }

    /// Adds a mistake about something that the table at `span` lacks.
    pub fn add_missing(&mut self, span: &Range<usize>, text: impl Into<String>) {
        if self.is_whole {
            self.add(span, text);
        }
    }

    /// The mistakes in the order of the text.
    pub fn into_sorted(mut self) -> Vec<Mistake> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}
