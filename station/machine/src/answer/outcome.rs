//! What the machine is told of a frame.

use std::time::{Duration, Instant};

use clinspect_results::{DefectResult, Verdict};

/// Classes of defects that the machine is told; more are only part of the number of all defects.
pub const CLASSES: usize = 8;

/// What became of a frame. Only [`Self::Pass`] is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was judged in time, and nothing was found.
    Pass,
    /// It was judged in time, and a defect was found.
    Fail,
    /// It was judged in time, and could not be inspected.
    None,
    /// It had no result at its deadline.
    Late,
    /// It never arrived.
    Lost,
    /// It arrived, and was not inspected.
    Fault,
}

impl Outcome {
    /// Every outcome, in the order of their codes.
    pub const ALL: [Self; 6] = [
        Self::Pass,
        Self::Fail,
        Self::None,
        Self::Late,
        Self::Lost,
        Self::Fault,
    ];

    /// Its name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::None => "none",
            Self::Late => "late",
            Self::Lost => "lost",
            Self::Fault => "fault",
        }
    }

    /// Its number for a machine: 1 to 6. 0 is no outcome.
    pub fn code(self) -> u16 {
        self as u16 + 1
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
            Verdict::None => Self::None,
        }
    }
}

/// What the analyzer found in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// [`Outcome::Pass`], [`Outcome::Fail`] or [`Outcome::None`].
    pub verdict: Outcome,
    /// Listed defects.
    pub defects: u32,
    /// Listed defects of the first classes, in the order of the element's classes.
    pub by_class: [u32; CLASSES],
    /// The parts of the last inspection that compares parts.
    pub parts: FoundParts,
}

/// The parts of a frame, for a machine that picks them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundParts {
    /// How many there are.
    pub count: u16,
    /// How many of them failed.
    pub failed: u16,
    /// Where the first one that passed lies, else the first one: along x and y in 1/1000 mm, or in 1/1000 px if the size of a
    /// pixel is unknown; and its angle, clockwise, in 1/100 degree.
    pub first: [i32; 3],
}

impl FoundParts {
    fn of(result: &DefectResult) -> Option<Self> {
        let parts = &result.parts.as_ref()?.parts;
        let count = |verdict: Option<Verdict>| {
            let of = parts
                .iter()
                .filter(|part| verdict.is_none_or(|of| part.verdict == of));
            u16::try_from(of.count()).unwrap_or(u16::MAX)
        };
        let passed = parts.iter().find(|part| part.verdict == Verdict::Pass);
        let first = passed.or(parts.first()).map(|part| {
            let [x, y] = (part.mm([result.mm_per_pixel_x, result.mm_per_pixel_y]))
                .unwrap_or([part.x, part.y]);
            // Casts of numbers that are too large end at the largest.
            [1000.0 * x, 1000.0 * y, 100.0 * part.angle].map(|of| of.round() as i32)
        });
        Some(Self {
            count: count(None),
            failed: count(Some(Verdict::Fail)),
            first: first.unwrap_or_default(),
        })
    }
}

impl Finding {
    /// Nothing was found, because nothing was judged.
    pub const NOTHING: Self = Self {
        verdict: Outcome::None,
        defects: 0,
        by_class: [0; CLASSES],
        parts: FoundParts {
            count: 0,
            failed: 0,
            first: [0; 3],
        },
    };

    /// What the results of a frame say. A `pass` needs a `pass` of each, and one at least.
    pub fn of(results: &[DefectResult]) -> Self {
        let mut finding = Self::NOTHING;
        let all_pass = results.iter().all(|of| of.verdict == Verdict::Pass);
        if results.iter().any(|of| of.verdict == Verdict::Fail) {
            finding.verdict = Outcome::Fail;
        } else if all_pass && !results.is_empty() {
            finding.verdict = Outcome::Pass;
        }
        let parts = results.iter().rev().find_map(FoundParts::of);
        finding.parts = parts.unwrap_or_default();
        for result in results {
            let defects = u32::try_from(result.defects.len()).unwrap_or(u32::MAX);
            finding.defects = finding.defects.saturating_add(defects);
            for (count, (_, more)) in finding.by_class.iter_mut().zip(result.class_counts()) {
                *count = count.saturating_add(more);
            }
        }
        finding
    }
}

/// The one answer for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The number of the frame or the trigger.
    pub sequence: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether the machine is told: each frame of a camera without a trigger, else the frames of triggers.
    pub is_asked_for: bool,
    /// Whether the outcome drives the machine to reject.
    pub is_reject: bool,
    /// What was found; nothing unless the outcome is a verdict.
    pub finding: Finding,
    /// The number of the part that the machine had named.
    pub part: Option<u32>,
    /// When the frame arrived, or when the trigger came whose frame did not arrive.
    pub arrived: Instant,
    /// From there to the outcome.
    pub latency: Duration,
    /// When the piece was at a known place: the edge at the input, else as `arrived`.
    pub piece_at: Instant,
}

#[cfg(test)]
impl Answer {
    /// An answer that the machine asked for, of a frame in which nothing was listed.
    pub(crate) fn of_test(
        sequence: u64,
        outcome: Outcome,
        arrived: Instant,
        latency: Duration,
    ) -> Self {
        Self {
            sequence,
            outcome,
            is_asked_for: true,
            is_reject: outcome != Outcome::Pass,
            finding: Finding::NOTHING,
            part: None,
            arrived,
            latency,
            piece_at: arrived,
        }
    }
}

#[cfg(test)]
mod tests {
    use clinspect_results::{Part, Parts};

    use super::*;

    #[test]
    fn first_part_is_one_that_passed_in_mm_where_they_are_known() {
        let part = |verdict, x, angle| Part {
            x,
            y: 2.5,
            angle,
            verdict,
            ..Part::default()
        };
        let parts = vec![
            part(Verdict::Fail, 10.0, 1.0),
            part(Verdict::Pass, -20.0, -179.994),
            part(Verdict::None, 30.0, 3.0),
        ];
        let mut result = DefectResult {
            parts: Some(Parts {
                parts,
                ..Parts::default()
            }),
            ..DefectResult::default()
        };
        let found = |result: &DefectResult| Finding::of(&[DefectResult::default(), result.clone()]);
        let expected = |first| FoundParts {
            count: 3,
            failed: 1,
            first,
        };
        assert_eq!(found(&result).parts, expected([-20_000, 2500, -17_999]));
        (result.mm_per_pixel_x, result.mm_per_pixel_y) = (0.5, 0.1);
        assert_eq!(found(&result).parts, expected([-10_000, 250, -17_999]));
        result.parts.as_mut().expect("parts").parts.clear();
        assert_eq!(found(&result).parts, FoundParts::default());
    }
}
