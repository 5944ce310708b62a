//! Whether a limit can see: one that no defect of half the range of the pattern, texture or model reaches finds nothing.
//!
//! # Source
//! docs/semantics.md, "Limits that cannot see".

/// Half of a pattern's range, in standard deviations of its samples. If its lines, or the gaps between them, cover 3 % of the
/// pixels, its range is six deviations. The range of a denser pattern is smaller.
const HALF_RANGE: f64 = 3.0;

/// What a limit sees, in grey levels of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// The name of the limit, such as `threshold` or `threshold.red`.
    pub name: String,
    /// Least difference that the limit marks.
    pub limit: f64,
    /// The difference of a defect of half the range.
    pub reach: f64,
}

impl Sight {
    /// Whether a defect of half the range is not marked.
    pub fn is_blind(&self) -> bool {
        self.limit > self.reach
    }

    /// The larger, the blinder.
    fn ratio(&self) -> f64 {
        self.limit / self.reach
    }

    /// The limit that sees best, the first of equals; `None` without limits.
    pub fn best(sights: impl IntoIterator<Item = Self>) -> Option<Self> {
        let better = |best: Self, next: Self| {
            if next.ratio() < best.ratio() {
                next
            } else {
                best
            }
        };
        sights.into_iter().reduce(better)
    }
}

/// The difference of a defect of half the range of a pattern with this contrast (see
/// [`Tiles::median_deviation`](crate::presence::Tiles::median_deviation)), in grey levels of a sample of `depth` bits. If the
/// contrast was not measured, the highest level: no sample differs by more.
pub fn reach_of_contrast(contrast: Option<f64>, depth: u32) -> f64 {
    let highest = f64::from((1_u32 << depth) - 1);
    let levels = f64::from(1_u32 << depth.saturating_sub(8));
    contrast.map_or(highest, |contrast| {
        (HALF_RANGE * contrast * levels).min(highest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(name: &str, limit: f64, reach: f64) -> Sight {
        Sight {
            name: name.into(),
            limit,
            reach,
        }
    }

    #[test]
    fn limit_of_half_the_range_sees_and_one_above_is_blind() {
        assert!(!sight("threshold", 93.0, 93.0).is_blind());
        assert!(sight("threshold", 93.0 + 1.0 / 256.0, 93.0).is_blind());
        // A component without the pattern shows nothing.
        assert!(sight("threshold.red", 1.0 / 256.0, 0.0).is_blind());
    }

    #[test]
    fn reach_follows_the_contrast_and_the_depth() {
        for (contrast, depth, expected) in [
            (Some(31.0), 8, 93.0),
            (Some(31.0), 12, 1488.0),
            (Some(31.0), 16, 23_808.0),
            (Some(5.0), 6, 15.0),
            (Some(100.0), 8, 255.0),
            (Some(0.0), 8, 0.0),
            (None, 8, 255.0),
            (None, 10, 1023.0),
        ] {
            assert_eq!(reach_of_contrast(contrast, depth), expected);
        }
    }

    #[test]
    fn best_sight_is_the_first_of_the_lowest_ratio() {
        let all = [
            sight("a", 50.0, 10.0),
            sight("b", 5.0, 0.0),
            sight("c", 12.0, 10.0),
            sight("d", 24.0, 20.0),
        ];
        assert_eq!(Sight::best(all), Some(sight("c", 12.0, 10.0)));
        assert_eq!(Sight::best([]), None);
    }
}
