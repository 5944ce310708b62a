//! How many rows chance would make: the expected number of false alarms (an a-contrario test).

/// Turns between two neighbours of a row: 2 if one turn between them left no mark.
pub const MOST_TURNS: u32 = 2;
/// A row is tried with each number of its places. The chance falls with each further place, so the sum over all numbers
/// is less than twice the first one.
const LENGTHS: f64 = 2.0;

/// A row that may be chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Places with a mark.
    pub hits: u32,
    /// Turns from the first place to the last.
    pub turns: u32,
    /// Turns between the two newest places, which give the period.
    pub newest_turns: u32,
    /// Length in which a further mark counts as a hit, lines.
    pub window: f64,
}

impl Row {
    /// Turns without a mark.
    pub fn misses(&self) -> u32 {
        (self.turns + 1).saturating_sub(self.hits)
    }
}

/// The marks of a lane among which the row was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lane {
    /// Marks, those of the row included.
    pub marks: usize,
    /// Length of the lane, lines.
    pub length: f64,
}

/// The expected number of rows like this one that end at the newest mark, if the other marks lie anywhere in the lane:
/// uniform and independent of each other. `allowed` is the total length of the periods that are looked for, lines.
pub fn rows_at_a_mark(row: &Row, lane: &Lane, allowed: f64) -> f64 {
    let length = lane.length.max(f64::MIN_POSITIVE);
    // Each other mark gives a period for each number of turns between it and the newest mark.
    let turns = f64::from(MOST_TURNS);
    let sum_of_turns = turns * (turns + 1.0) / 2.0;
    let others = lane.marks.saturating_sub(1) as f64;
    let periods = others * turns.min(sum_of_turns * allowed / length);
    // The places that are hit, and the marks that hit them.
    let further = row.hits.saturating_sub(2);
    let places = row.turns.saturating_sub(row.newest_turns);
    let share = (row.window / length).min(1.0);
    let hits = (0..further).map(|hit| {
        let places = f64::from(places.saturating_sub(hit)) / f64::from(hit + 1);
        let marks = (lane.marks.saturating_sub(2) as f64 - f64::from(hit)).max(0.0);
        places * marks * share
    });
    LENGTHS * periods * hits.product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hits: u32, turns: u32) -> Row {
        Row {
            hits,
            turns,
            newest_turns: 1,
            window: 6.0,
        }
    }

    #[test]
    fn chance_is_the_product_of_its_parts() {
        let lane = Lane {
            marks: 4,
            length: 3000.0,
        };
        // Three other marks with two numbers of turns each; two marks in two windows.
        let expected = 2.0 * (3.0 * 2.0) * (2.0 * 1.0) * (6.0f64 / 3000.0).powi(2);
        let found = rows_at_a_mark(&row(4, 3), &lane, 1e9);
        assert!((found / expected - 1.0).abs() < 1e-12, "{found}");
        // Known periods: 10 lines of 3000, three times for one and two turns.
        let known = rows_at_a_mark(&row(4, 3), &lane, 10.0);
        let ratio = 3.0 * 10.0 / 3000.0 / 2.0;
        assert!((known / found / ratio - 1.0).abs() < 1e-12, "{known}");
        // One of three places is missed: three ways.
        let missed = rows_at_a_mark(&row(4, 4), &lane, 1e9);
        assert!((missed / found / 3.0 - 1.0).abs() < 1e-12, "{missed}");
    }

    #[test]
    fn chance_falls_with_hits_and_grows_with_marks() {
        let lane = |marks| Lane {
            marks,
            length: 10_000.0,
        };
        let of = |hits, marks| rows_at_a_mark(&row(hits, hits - 1), &lane(marks), 1e9);
        assert!((3..20).all(|hits| of(hits + 1, 40) < of(hits, 40)));
        assert!((6..40).all(|marks| of(5, marks + 1) > of(5, marks)));
    }
}
