//! The table `[camera.repeats]`.

/// Periods that are looked for on a web whose pixels have a known size, m.
const RANGE_M: [f64; 2] = [0.1, 3.0];
/// The same on other webs, lines.
const RANGE_LINES: [f64; 2] = [1000.0, 30_000.0];

/// What repeats are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatSettings {
    /// Known periods, m.
    pub periods_m: Vec<f64>,
    /// Known periods, lines.
    pub periods_lines: Vec<f64>,
    /// The shortest and the longest period that is found, m.
    pub range_m: Option<[f64; 2]>,
    /// The same, lines.
    pub range_lines: Option<[f64; 2]>,
    /// Least marks of a row.
    pub count: u32,
    /// Marks are at the same place across if they differ by this share of the width at most.
    pub across: f64,
    /// Share of the period by which the distance of two turns may differ.
    pub along: f64,
}

impl Default for RepeatSettings {
    fn default() -> Self {
        Self {
            periods_m: Vec::new(),
            periods_lines: Vec::new(),
            range_m: None,
            range_lines: None,
            count: 4,
            across: 0.01,
            along: 0.005,
        }
    }
}

impl RepeatSettings {
    /// Whether the size of a pixel must be known.
    pub fn needs_metres(&self) -> bool {
        !self.periods_m.is_empty() || self.range_m.is_some()
    }

    /// Known periods and the range of others, lines. `lines_per_m` is 0 if the size of a pixel is not known.
    pub fn in_lines(&self, lines_per_m: f64) -> (Vec<f64>, Option<[f64; 2]>) {
        let is_known = lines_per_m > 0.0;
        let of_metres = self.periods_m.iter().map(|metres| metres * lines_per_m);
        let mut known: Vec<f64> = of_metres.filter(|_| is_known).collect();
        known.extend(&self.periods_lines);
        let of_metres = |range: [f64; 2]| range.map(|metres| metres * lines_per_m);
        let range = (self.range_lines).or(self.range_m.filter(|_| is_known).map(of_metres));
        let without = match is_known {
            true => of_metres(RANGE_M),
            false => RANGE_LINES,
        };
        // Who names periods wants no others.
        let is_free = known.is_empty();
        (known, range.or(is_free.then_some(without)))
    }
}
