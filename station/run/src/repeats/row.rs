//! A row that was found, and the marks that follow.

use std::collections::VecDeque;

use super::{limits::Limits, search::MarkRow};

/// A row ends after so many turns without a mark.
const END_TURNS: f64 = 5.0;
/// Weight of the newest turn in the period: the web stretches more or less.
const WEIGHT: f64 = 0.25;
/// Places that are kept for the map, the newest.
const KEPT_PLACES: usize = 64;

/// Marks at the same place across, one for each turn of a roller.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Counts the rows of a web, from 1.
    pub id: u32,
    /// Distance of two turns, lines.
    pub period: f64,
    /// Turns with a mark.
    pub count: u64,
    /// Place across of the left and the right mark, px; the same unless several rows are one.
    pub across: [f64; 2],
    /// Place of the first mark along the web, lines.
    pub first: f64,
    /// Place of the last mark, lines.
    pub last: f64,
    /// Place of the last part of the last mark, lines.
    end: f64,
    /// Whether further marks are expected.
    pub is_active: bool,
    /// The newest marks in their order along the web, one for each turn: line and place across, px.
    pub places: VecDeque<[f64; 2]>,
}

impl Row {
    pub(super) fn new(id: u32, found: &MarkRow) -> Self {
        let across = found.marks.first().map_or(0.0, |mark| mark.across);
        let lines = || found.marks.iter().map(|mark| mark.line);
        let places = found
            .marks
            .iter()
            .rev()
            .map(|mark| [mark.line, mark.across]);
        Self {
            id,
            period: found.period,
            count: found.marks.len() as u64,
            across: [across; 2],
            first: lines().fold(f64::INFINITY, f64::min),
            last: lines().fold(f64::NEG_INFINITY, f64::max),
            end: found
                .marks
                .iter()
                .map(|mark| mark.last)
                .fold(f64::NEG_INFINITY, f64::max),
            is_active: true,
            places: places.collect(),
        }
    }

    fn is_at(&self, across: f64, limits: &Limits) -> bool {
        let [left, right] = self.across;
        (left - limits.across..=right + limits.across).contains(&across)
    }

    /// Takes a mark if it is one of this row, or a part of its last one.
    pub(super) fn take(&mut self, line: f64, across: f64, limits: &Limits) -> bool {
        if !self.is_at(across, limits) {
            return false;
        }
        let turns = turns(line - self.last, self.period, limits);
        let is_part = line - self.end < limits.gap;
        if let Some(turns) = turns.filter(|turns| *turns >= 1.0) {
            let period = (line - self.last) / turns;
            self.period += WEIGHT * (period - self.period);
            self.count += 1;
            self.last = line;
            // A row of one place may wander.
            let [left, right] = self.across;
            if left == right {
                self.across = [across; 2];
            }
            self.places.push_back([line, across]);
            self.keep_places();
        } else if !is_part {
            return false;
        }
        self.end = self.end.max(line);
        true
    }

    /// Takes a row if it is of the same roller: at the same turn elsewhere across (a seam, a wide damage), or at half a turn
    /// in the same place, if turns without a mark had doubled the period.
    pub(super) fn join(&mut self, found: &MarkRow, limits: &Limits) -> bool {
        let Some(newest) = found.marks.first() else {
            return false;
        };
        let is_near = |a: f64, b: f64| (a - b).abs() <= limits.tolerance(b);
        let is_period = is_near(found.period, self.period);
        let is_half = is_near(found.period, self.period / 2.0);
        if is_period && turns(newest.line - self.last, self.period, limits).is_some() {
            let [left, right] = self.across;
            self.across = [left.min(newest.across), right.max(newest.across)];
        } else if (is_period || is_half)
            && self.is_at(newest.across, limits)
            && turns(newest.line - self.last, self.period / 2.0, limits).is_some()
        {
            self.period /= 2.0;
            self.count += found.marks.len() as u64;
            self.first = found
                .marks
                .iter()
                .map(|mark| mark.line)
                .fold(self.first, f64::min);
            self.last = self.last.max(newest.line);
            let between = found.marks.iter().map(|mark| [mark.line, mark.across]);
            self.places.extend(between);
            let places = self.places.make_contiguous();
            places.sort_by(|[a, _], [b, _]| a.total_cmp(b));
            self.keep_places();
        } else {
            return false;
        }
        self.end = self.end.max(newest.last);
        true
    }

    fn keep_places(&mut self) {
        let more = self.places.len().saturating_sub(KEPT_PLACES);
        self.places.drain(..more);
    }

    /// Ends the row if the web has passed too many turns without a mark; true if it ends now.
    pub(super) fn end_at(&mut self, line: f64) -> bool {
        let ends = self.is_active && line - self.last > END_TURNS * self.period;
        self.is_active &= !ends;
        ends
    }
}

/// The whole number of turns in a distance, lines; `None` if the number is not whole.
fn turns(distance: f64, period: f64, limits: &Limits) -> Option<f64> {
    let turns = (distance / period).round();
    let rest = distance - turns * period;
    (rest.abs() <= limits.tolerance(period)).then_some(turns)
}
