//! What is looked for, in pixels and lines.

use plan::RepeatSettings;

/// Turns of the longest period that are remembered.
const MEMORY_TURNS: f64 = 16.0;
/// Share by which a known period may differ from the distance on the web, which stretches.
const STRETCH: f64 = 0.02;
/// A place along the web is known no better, lines.
const LEAST_TOLERANCE: f64 = 2.0;
/// Least distance across that counts as the same place, px.
const LEAST_ACROSS: f64 = 2.0;
/// Rows by chance on a kilometre that are accepted.
const MOST_PER_KM: f64 = 0.01;
/// Lines of a kilometre, if the size of a pixel is not known: 0.1 mm each.
const LINES_PER_KM: f64 = 1e7;
/// Longest gap between the parts of one mark, m and lines.
const GAP_M: f64 = 0.05;
const GAP_LINES: f64 = 500.0;

/// Periods that are looked for, lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Periods(Vec<[f64; 2]>);

impl Periods {
    /// Whether a period is looked for.
    pub fn allow(&self, period: f64) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|[least, most]| (*least..=*most).contains(&period))
    }

    /// The length of all ranges.
    pub fn length(&self) -> f64 {
        self.0.iter().map(|[least, most]| most - least).sum()
    }
}

/// The settings for one web.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Least marks of a row.
    pub count: u32,
    /// Distance across at which two marks are at the same place, px.
    pub across: f64,
    /// Parts of one mark are closer than this, lines; longer marks have no place along the web.
    pub gap: f64,
    /// Lines of a kilometre.
    pub lines_per_km: f64,
    along: f64,
    /// Known periods, and periods that are found.
    periods: Vec<Periods>,
    longest: f64,
}

impl Limits {
    /// The settings on a web of `width` px, whose lines have `mm_per_line`; 0 if that is not known.
    pub fn new(settings: &RepeatSettings, width: f64, mm_per_line: f64) -> Self {
        let is_known = mm_per_line > 0.0;
        let lines_per_m = if is_known { 1000.0 / mm_per_line } else { 0.0 };
        let (known, range) = settings.in_lines(lines_per_m);
        let known: Vec<[f64; 2]> = (known.iter())
            .map(|period| [period * (1.0 - STRETCH), period * (1.0 + STRETCH)])
            .collect();
        let mut periods = Vec::new();
        if !known.is_empty() {
            periods.push(Periods(known));
        }
        periods.extend(range.map(|range| Periods(vec![range])));
        let ranges = || periods.iter().flat_map(|periods| &periods.0);
        let least = ranges()
            .map(|[least, _]| *least)
            .fold(f64::INFINITY, f64::min);
        let longest = ranges().map(|[_, most]| *most).fold(0.0, f64::max);
        let gap = if is_known {
            GAP_M * lines_per_m
        } else {
            GAP_LINES
        };
        Self {
            count: settings.count,
            across: (settings.across * width).max(LEAST_ACROSS),
            gap: gap.min(least / 2.0),
            lines_per_km: if is_known {
                1000.0 * lines_per_m
            } else {
                LINES_PER_KM
            },
            along: settings.along,
            longest,
            periods,
        }
    }

    /// Half the length in which a mark counts as that of a turn, lines.
    pub fn tolerance(&self, period: f64) -> f64 {
        (self.along * period).max(LEAST_TOLERANCE)
    }

    /// Older marks are forgotten, lines.
    pub fn memory(&self) -> f64 {
        MEMORY_TURNS * self.longest
    }

    /// The kinds of periods, which are looked for apart.
    pub fn periods(&self) -> &[Periods] {
        &self.periods
    }

    /// Rows by chance on a kilometre that each kind of periods may cause.
    pub fn most_per_km(&self) -> f64 {
        MOST_PER_KM / self.periods.len().max(1) as f64
    }
}
