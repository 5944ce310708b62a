//! Defects of a web that repeat with a period along it: a damaged roller leaves a mark at the same place across, once each
//! turn. docs/semantics.md defines a row.
//!
//! A [`Finder`] has no clock and no lock; [`Watch`] gives it a camera's defects and tells what it finds.

mod chance;
mod lanes;
mod limits;
mod row;
mod search;
mod watch;

use std::collections::VecDeque;

use lanes::{Lanes, Mark};
pub use limits::Limits;
pub use row::Row;
pub use watch::Watch;

/// Most rows of a web that are kept. The oldest that has ended goes first; if none has ended, no further row is found.
const MOST_ROWS: usize = 32;
/// Parts of the memory in which marks are counted.
const PARTS: f64 = 16.0;

/// What the newest mark, or the end of a strip, changed.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A row was found.
    Found(Row),
    /// The period of a row was told twice as long as it is, because of turns without a mark.
    Halved(Row),
    /// A row has ended.
    Ended(Row),
}

/// Finds the rows of one web.
#[derive(Debug)]
pub struct Finder {
    limits: Limits,
    lanes: Lanes,
    /// The first line that was seen.
    start: f64,
    /// Parts of the web with the number of marks in each, the newest last.
    counts: VecDeque<(f64, u32)>,
    rows: VecDeque<Row>,
    found: u32,
    /// Room for the marks of a place.
    marks: Vec<Mark>,
}

impl Finder {
    /// No marks yet on a web of `width` px, seen from a line on.
    pub fn new(limits: Limits, width: f64, start: f64) -> Self {
        let lanes = Lanes::new(width, limits.across, limits.gap, limits.memory());
        Self {
            limits,
            lanes,
            start,
            counts: VecDeque::new(),
            rows: VecDeque::new(),
            found: 0,
            marks: Vec::new(),
        }
    }

    /// The rows of the web, the oldest first.
    pub fn rows(&self) -> &VecDeque<Row> {
        &self.rows
    }

    /// Takes a defect: the middle of its box along the web in lines and across in px, and its length in lines. Defects come
    /// in their order along the web. A defect that is longer than a turn may be has no place.
    pub fn add(&mut self, line: f64, across: f64, length: f64) -> Option<News> {
        if length > self.limits.gap {
            return None;
        }
        let limits = &self.limits;
        let mut rows = self.rows.iter_mut().filter(|row| row.is_active);
        if rows.any(|row| row.take(line, across, limits)) {
            return None;
        }
        if !self.lanes.add(line, across) {
            return None;
        }
        self.count(line);
        self.lanes.at(line, across, &mut self.marks);
        let per_km = self.per_km(line);
        let seen = line - self.start;
        let found = search::row_to_the_newest(&self.marks, seen, per_km, &self.limits)?;
        let limits = &self.limits;
        let mut rows = self.rows.iter_mut().filter(|row| row.is_active);
        let joined = rows.find_map(|row| {
            let period = row.period;
            row.join(&found, limits)
                .then(|| (row.period < period).then(|| row.clone()))
        });
        if let Some(halved) = joined {
            return halved.map(News::Halved);
        }
        if !self.has_room() {
            return None;
        }
        self.found += 1;
        let row = Row::new(self.found, &found);
        self.rows.push_back(row.clone());
        Some(News::Found(row))
    }

    /// Takes the end of a strip: the web was seen up to a line. Returns the rows that end.
    pub fn pass(&mut self, line: f64) -> Vec<News> {
        let ended = self.rows.iter_mut().filter_map(|row| {
            let ends = row.end_at(line);
            ends.then(|| News::Ended(row.clone()))
        });
        ended.collect()
    }

    fn has_room(&mut self) -> bool {
        if self.rows.len() < MOST_ROWS {
            return true;
        }
        let ended = self.rows.iter().position(|row| !row.is_active);
        ended.is_some_and(|at| self.rows.remove(at).is_some())
    }

    /// Counts a mark in its part of the web.
    fn count(&mut self, line: f64) {
        let length = self.limits.memory() / PARTS;
        match self.counts.back_mut() {
            Some((begin, count)) if line < *begin + length => *count += 1,
            _ => self.counts.push_back((line, 1)),
        }
        let oldest = line - self.limits.memory();
        while self
            .counts
            .front()
            .is_some_and(|(begin, _)| *begin < oldest)
        {
            self.counts.pop_front();
        }
    }

    /// Marks of a kilometre, as dense as the newest ones.
    fn per_km(&self, line: f64) -> f64 {
        let marks: f64 = self.counts.iter().map(|(_, count)| f64::from(*count)).sum();
        let length = (line - self.start).min(self.limits.memory()).max(1.0);
        marks * self.limits.lines_per_km / length
    }
}
