//! The newest marks of a web by their place across.

use std::collections::VecDeque;

/// Most lanes. Wider webs have wider lanes in the search, not in the comparison.
const MOST_LANES: f64 = 512.0;
/// Marks of a lane that are kept, the newest.
pub const MOST_MARKS: usize = 64;

/// A mark, or several in a row along the web that are one: a scratch in pieces, a hole with debris.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Its first place along the web, lines.
    pub line: f64,
    /// The last place of its parts, lines.
    pub last: f64,
    /// Its place across, px.
    pub across: f64,
}

/// The marks, by lanes of the width that counts as the same place across.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<VecDeque<Mark>>,
    /// Width of a lane, px: at least `tolerance`.
    width: f64,
    /// Distance across at which two marks are at the same place, px.
    tolerance: f64,
    /// Marks closer than this along the web are parts of one, lines.
    gap: f64,
    /// Older marks are forgotten, lines.
    memory: f64,
}

impl Lanes {
    /// No marks on a web of `width` px.
    pub fn new(width: f64, tolerance: f64, gap: f64, memory: f64) -> Self {
        let lane = tolerance.max(width / MOST_LANES);
        Self {
            lanes: vec![VecDeque::new(); (width / lane) as usize + 1],
            width: lane,
            tolerance,
            gap,
            memory,
        }
    }

    fn lane_of(&self, across: f64) -> usize {
        // A negative place is that of the left edge.
        ((across / self.width) as usize).min(self.lanes.len() - 1)
    }

    /// Puts a mark to the others at its place; false if it is a part of one of them.
    pub fn add(&mut self, line: f64, across: f64) -> bool {
        let lane = self.lane_of(across);
        let near = lane.saturating_sub(1)..(lane + 2).min(self.lanes.len());
        let mut near = self.lanes[near].iter_mut().flatten();
        let whole = near.find(|mark| {
            mark.last > line - self.gap && (mark.across - across).abs() <= self.tolerance
        });
        if let Some(mark) = whole {
            mark.last = mark.last.max(line);
            return false;
        }
        let oldest = line - self.memory;
        let lane = &mut self.lanes[lane];
        while lane.len() >= MOST_MARKS || lane.front().is_some_and(|mark| mark.line < oldest) {
            lane.pop_front();
        }
        lane.push_back(Mark {
            line,
            last: line,
            across,
        });
        true
    }

    /// The newest marks at a place, in their order along the web, at most [`MOST_MARKS`]; `marks` is overwritten.
    pub fn at(&self, line: f64, across: f64, marks: &mut Vec<Mark>) {
        marks.clear();
        let lane = self.lane_of(across);
        let oldest = line - self.memory;
        let near = lane.saturating_sub(1)..(lane + 2).min(self.lanes.len());
        let near = self.lanes[near].iter().flatten();
        let is_here = |mark: &&Mark| {
            mark.line >= oldest
                && mark.line <= line
                && (mark.across - across).abs() <= self.tolerance
        };
        marks.extend(near.filter(is_here));
        marks.sort_by(|a, b| a.line.total_cmp(&b.line));
        marks.drain(..marks.len().saturating_sub(MOST_MARKS));
    }
}
