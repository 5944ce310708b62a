//! Looks for a row that ends at the newest mark.

use super::{
    chance::{self, Lane, MOST_TURNS},
    lanes::{MOST_MARKS, Mark},
    limits::{Limits, Periods},
};

/// A turn without a mark, one of so many.
const ONE_MISS_IN: u32 = 3;

/// A row of marks.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkRow {
    /// Distance of two turns, lines.
    pub period: f64,
    /// The marks, the newest first.
    pub marks: Vec<Mark>,
    /// Turns from the first mark to the last.
    pub turns: u32,
    /// Rows like this one that chance makes on a kilometre.
    pub per_km: f64,
}

/// The row that chance explains least, if it explains it too little. `marks` are those at the place of the newest one, which
/// is the last; `seen` is the length of the web so far, and `per_km` are the marks of a kilometre of the whole web.
pub fn row_to_the_newest(
    marks: &[Mark],
    seen: f64,
    per_km: f64,
    limits: &Limits,
) -> Option<MarkRow> {
    let newest = marks.last()?;
    let oldest = marks.first()?;
    let length = match marks.len() < MOST_MARKS {
        true => seen.min(limits.memory()),
        false => newest.line - oldest.line,
    };
    let lane = Lane {
        marks: marks.len(),
        length,
    };
    let mut best: Option<MarkRow> = None;
    for periods in limits.periods() {
        for (at, neighbour) in marks.iter().enumerate().rev().skip(1) {
            for turns in 1..=MOST_TURNS {
                let period = (newest.line - neighbour.line) / f64::from(turns);
                if !periods.allow(period) {
                    continue;
                }
                let limit = best
                    .as_ref()
                    .map_or(limits.most_per_km(), |best| best.per_km);
                let walk = Walk::new(marks, at, (period, turns), limits);
                if let Some(found) = walk.best((&lane, per_km), (limits, periods), limit) {
                    best = Some(found);
                }
            }
        }
    }
    best
}

/// A way back along the marks, from turn to turn.
struct Walk<'m> {
    marks: &'m [Mark],
    /// Places of the row's marks among `marks`, the newest first.
    row: Vec<usize>,
    period: f64,
    turns: u32,
    newest_turns: u32,
    tolerance: f64,
}

impl<'m> Walk<'m> {
    fn new(
        marks: &'m [Mark],
        neighbour: usize,
        (period, turns): (f64, u32),
        limits: &Limits,
    ) -> Self {
        Self {
            marks,
            row: vec![marks.len() - 1, neighbour],
            period,
            turns,
            newest_turns: turns,
            tolerance: limits.tolerance(period),
        }
    }

    /// The length of this row that chance explains least, if the expected number of such rows is at most `limit`.
    fn best(
        mut self,
        (lane, per_km): (&Lane, f64),
        (limits, periods): (&Limits, &Periods),
        mut limit: f64,
    ) -> Option<MarkRow> {
        let mut found = None;
        loop {
            let row = self.as_chance();
            let is_row = row.hits >= limits.count && ONE_MISS_IN * row.misses() <= row.turns + 1;
            if is_row {
                let chance = |lane| chance::rows_at_a_mark(&row, lane, periods.length());
                // Marks may be denser around the row than in the whole lane.
                let per_km = per_km * chance(lane).max(chance(&self.lane_of_row()));
                if per_km <= limit {
                    limit = per_km;
                    found = Some((self.row.len(), self.turns, self.period, per_km));
                }
            }
            if !self.step() {
                break;
            }
        }
        found.map(|(hits, turns, period, per_km)| MarkRow {
            period,
            marks: self.row[..hits].iter().map(|&at| self.marks[at]).collect(),
            turns,
            per_km,
        })
    }

    fn as_chance(&self) -> chance::Row {
        chance::Row {
            hits: u32::try_from(self.row.len()).unwrap_or(u32::MAX),
            turns: self.turns,
            newest_turns: self.newest_turns,
            window: 2.0 * self.tolerance,
        }
    }

    fn oldest(&self) -> usize {
        self.row.last().copied().unwrap_or(0)
    }

    fn newest_line(&self) -> f64 {
        self.marks.last().map_or(0.0, |mark| mark.line)
    }

    /// The lane from the row's first mark to its last.
    fn lane_of_row(&self) -> Lane {
        let first = self.oldest();
        Lane {
            marks: self.marks.len() - first,
            length: self.newest_line() - self.marks[first].line,
        }
    }

    /// Goes to the mark before, over one missing turn at most; false if there is none.
    fn step(&mut self) -> bool {
        let oldest = self.oldest();
        let line = self.marks[oldest].line;
        for turns in 1..=MOST_TURNS {
            let expected = line - f64::from(turns) * self.period;
            let Some(at) = nearest(&self.marks[..oldest], expected, self.tolerance) else {
                continue;
            };
            self.row.push(at);
            self.turns += turns;
            self.period = (self.newest_line() - self.marks[at].line) / f64::from(self.turns);
            return true;
        }
        false
    }
}

/// The mark nearest to a line, within the tolerance.
fn nearest(marks: &[Mark], line: f64, tolerance: f64) -> Option<usize> {
    let from = marks.partition_point(|mark| mark.line < line - tolerance);
    let near = marks[from..]
        .iter()
        .take_while(|mark| mark.line <= line + tolerance);
    let distance = |(_, mark): &(usize, &Mark)| (mark.line - line).abs();
    let nearest = near
        .enumerate()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.map(|(at, _)| from + at)
}
