//! The verdict on a frame, and the limits that decide it.

use super::{Defect, NoPart, Parts, defects::DefectResult};

/// The verdict on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// No limit was exceeded.
    Pass,
    /// A limit was exceeded, or the frame was not found in the picture to compare it with.
    Fail,
    /// No limit was exceeded, but no pixel could be judged, or no limit can see a defect.
    #[default]
    None,
}

/// Why the verdict is `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoneReason {
    /// The frame trains the element.
    Training,
    /// No limit can see a defect.
    BlindLimit,
    /// It is not known where the part lies that the regions follow.
    Unplaced,
    /// Nothing in the frame is like the part.
    Missing,
    /// What is in the frame is like the part, but not surely the part.
    Other,
    /// The frame's edge cuts a part.
    Cut,
    /// No pixel could be judged, because the pattern, a model or limits are missing.
    NothingJudged,
}

impl NoneReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Training,
        Self::BlindLimit,
        Self::Unplaced,
        Self::Missing,
        Self::Other,
        Self::Cut,
        Self::NothingJudged,
    ];

    /// The name in reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::BlindLimit => "blind-limit",
            Self::Unplaced => "unplaced",
            Self::Missing => "missing",
            Self::Other => "other",
            Self::Cut => "cut",
            Self::NothingJudged => "nothing-judged",
        }
    }
}

impl DefectResult {
    /// Why the verdict is `none`, if it is.
    pub fn none_reason(&self) -> Option<NoneReason> {
        (self.verdict == Verdict::None).then_some(if self.training.is_some() {
            NoneReason::Training
        } else if self.blind.is_some() {
            NoneReason::BlindLimit
        } else if self.unplaced.is_some() {
            NoneReason::Unplaced
        } else {
            match self.parts.as_ref().and_then(Parts::why_none) {
                Some(NoPart::Missing) => NoneReason::Missing,
                Some(NoPart::Other) => NoneReason::Other,
                Some(NoPart::Cut) => NoneReason::Cut,
                None => NoneReason::NothingJudged,
            }
        })
    }
}

/// Limits of a frame, or of each part of a frame whose parts are compared by themselves; it fails above them. A negative limit
/// is off.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictLimits {
    /// Maximum number of marked pixels.
    pub defect_pixels: i64,
    /// Maximum number of listed defects that count.
    pub defect_count: i64,
    /// Maximum area of a listed defect that counts, and of a defect that is still open, px.
    pub defect_area: i64,
    /// Most that a part, or a frame that is aligned, may be turned, degrees.
    pub angle: f64,
    /// A frame that its source flagged as corrupted fails.
    pub corrupted: bool,
    /// Classes whose defects count, besides [`Defect::PATTERN_MISSING`]; empty: all classes.
    pub classes: Vec<u16>,
}

impl VerdictLimits {
    /// Whether any marked pixel fails a frame, if every defect is listed.
    pub fn fails_for_any_pixel(&self) -> bool {
        self.defect_pixels == 0 || (self.defect_count == 0 && self.classes.is_empty())
    }

    /// Whether an angle, degrees, is above the limit.
    pub(super) fn turned(&self, angle: f64) -> bool {
        self.angle >= 0.0 && angle.abs() > self.angle
    }

    fn counts(&self, defect: &&Defect) -> bool {
        self.classes.is_empty()
            || defect.class == Defect::PATTERN_MISSING
            || self.classes.contains(&defect.class)
    }
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Pass, Self::Fail, Self::None];

    /// The verdict on a result, from its numbers of pixels and its defects; its own verdict is
    /// ignored.
    ///
    /// If there were more defects than are listed (`overflow`), a limit that the list cannot decide
    /// counts as exceeded: a frame must not pass because its list was truncated. A strip of a web may list a defect
    /// that ended in the strips before, although none of its own pixels is judged; it fails all the same.
    ///
    /// Of a frame with parts the verdicts on them count ([`DefectResult::judge_parts`]), and their number.
    pub fn new(result: &DefectResult, limits: &VerdictLimits) -> Self {
        let exceeds = |n: u64, limit: i64| u64::try_from(limit).is_ok_and(|limit| n > limit);
        let is_large = |defect: &Defect| exceeds(defect.area.into(), limits.defect_area);
        let counted = || result.defects.iter().filter(|defect| limits.counts(defect));
        // Defects that are not listed are at most as large as the last one that is.
        let may_hide_large = match result.defects.last() {
            Some(last) => is_large(last),
            None => limits.defect_area >= 0,
        };
        if let Some(parts) = &result.parts {
            let has = |verdict| parts.parts.iter().any(|part| part.verdict == verdict);
            return if has(Self::Fail)
                || parts.is_miscounted()
                || (limits.corrupted && result.corrupted)
            {
                Self::Fail
            } else if parts.why_none().is_some() || has(Self::None) || result.blind.is_some() {
                Self::None
            } else {
                Self::Pass
            };
        }
        let is_lost = result.alignment.is_some_and(|alignment| !alignment.matched);
        let is_turned = (result.alignment.as_ref())
            .is_some_and(|alignment| limits.turned(alignment.rotation_degrees()));
        if is_lost
            || is_turned
            || (limits.corrupted && result.corrupted)
            || exceeds(result.defect_pixels, limits.defect_pixels)
            || exceeds(counted().count() as u64, limits.defect_count)
            || counted().any(is_large)
            || exceeds(result.open_area, limits.defect_area)
            || (result.overflow && (limits.defect_count >= 0 || may_hide_large))
        {
            Self::Fail
        } else if result.judged_pixels == 0 || result.blind.is_some() {
            Self::None
        } else {
            Self::Pass
        }
    }

    /// The name in metas and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::None => "none",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alignment, BlindLimit};

    const PASSES: Verdict = Verdict::Pass;
    const FAILS: Verdict = Verdict::Fail;

    /// Limits on pixels, count and area, for these classes.
    fn limits(limits: [i64; 3], classes: &[u16]) -> VerdictLimits {
        let [defect_pixels, defect_count, defect_area] = limits;
        VerdictLimits {
            defect_pixels,
            defect_count,
            defect_area,
            angle: -1.0,
            corrupted: false,
            classes: classes.to_vec(),
        }
    }

    /// A result with defects of these areas and classes.
    fn found(defects: &[(u32, u16)]) -> DefectResult {
        let defects = defects.iter().map(|&(area, class)| Defect {
            area,
            class,
            ..Defect::default()
        });
        DefectResult {
            judged_pixels: 20,
            defect_pixels: 15,
            defects: defects.collect(),
            ..DefectResult::default()
        }
    }

    #[track_caller]
    fn assert_each(result: &DefectResult, classes: &[u16], cases: &[([i64; 3], Verdict)]) {
        for &(of, expected) in cases {
            let limits = limits(of, classes);
            assert_eq!(Verdict::new(result, &limits), expected, "{limits:?}");
        }
    }

    #[test]
    fn strip_without_judged_pixels_fails_for_a_defect_of_the_strips_before() {
        let strip = DefectResult {
            judged_pixels: 0,
            defect_pixels: 0,
            ..found(&[(5, 0)])
        };
        assert_each(&strip, &[], &[([0, 0, -1], FAILS), ([-1, -1, 4], FAILS)]);
        assert_each(&strip, &[], &[([0, 1, 5], Verdict::None)]);
        let open = DefectResult {
            open_area: 7,
            ..DefectResult::default()
        };
        assert_each(
            &open,
            &[],
            &[([-1, -1, 6], FAILS), ([-1, -1, 7], Verdict::None)],
        );
    }

    #[test]
    fn verdict_each_limit_fails_above_it_only() {
        let two = found(&[(5, 0), (3, 0)]);
        let pixels = [(-1, PASSES), (0, FAILS), (14, FAILS), (15, PASSES)];
        assert_each(&two, &[], &pixels.map(|(n, wanted)| ([n, -1, -1], wanted)));
        let count = [(0, FAILS), (1, FAILS), (2, PASSES)];
        assert_each(&two, &[], &count.map(|(n, wanted)| ([-1, n, -1], wanted)));
        let area = [(0, FAILS), (4, FAILS), (5, PASSES)];
        assert_each(&two, &[], &area.map(|(n, wanted)| ([-1, -1, n], wanted)));
        let nothing = DefectResult::default();
        assert_each(&nothing, &[], &[([0, 0, 0], Verdict::None)]);
    }

    #[test]
    fn verdict_of_a_cut_list_fails_where_a_limit_needs_the_rest() {
        let cut = |defects: &[(u32, u16)]| DefectResult {
            overflow: true,
            ..found(defects)
        };
        let two = cut(&[(5, 1), (3, 2)]);
        assert_each(&two, &[], &[([-1, 5, -1], FAILS), ([-1, -1, 5], PASSES)]);
        let off = ([-1, -1, -1], PASSES);
        assert_each(&cut(&[]), &[], &[([-1, -1, 5], FAILS), off]);
        // A defect of class 3 that is not listed has at most 3 pixels.
        assert_each(&two, &[3], &[([-1, -1, 2], FAILS), ([-1, -1, 3], PASSES)]);
    }

    #[test]
    fn frame_of_a_blind_limit_never_passes_and_a_found_defect_still_fails_it() {
        let blind = |of: DefectResult| DefectResult {
            blind: Some(BlindLimit {
                name: "threshold".into(),
                marks: 129.0,
                reach: 93.0,
            }),
            ..of
        };
        let off = [-1, -1, -1];
        assert_each(&blind(found(&[])), &[], &[(off, Verdict::None)]);
        let one = blind(found(&[(5, 0)]));
        let cases = [([-1, 0, -1], FAILS), ([-1, 1, -1], Verdict::None)];
        assert_each(&one, &[], &cases);
        assert_eq!(one.none_reason(), Some(NoneReason::BlindLimit));
        let trains = DefectResult {
            training: Some([1, 2]),
            ..one
        };
        assert_eq!(trains.none_reason(), Some(NoneReason::Training));
        let nothing = DefectResult::default();
        assert_eq!(nothing.none_reason(), Some(NoneReason::NothingJudged));
        let passed = DefectResult {
            verdict: PASSES,
            ..nothing
        };
        assert_eq!(passed.none_reason(), None);
    }

    #[test]
    fn any_pixel_fails_a_frame_unless_limits_or_classes_allow_it() {
        for (of, classes, expected) in [
            ([-1, 0, -1], &[][..], true),
            ([-1, 0, -1], &[1], false),
            ([0, -1, -1], &[1], true),
            ([-1, 1, -1], &[], false),
            ([3, -1, 0], &[], false),
        ] {
            assert_eq!(limits(of, classes).fails_for_any_pixel(), expected);
        }
    }

    #[test]
    fn corrupted_frame_fails_unless_it_may_pass() {
        let clean = found(&[]);
        for (is_flagged, fails, expected) in [
            (false, true, PASSES),
            (true, true, FAILS),
            (true, false, PASSES),
        ] {
            let result = DefectResult {
                corrupted: is_flagged,
                ..clean.clone()
            };
            let limits = VerdictLimits {
                corrupted: fails,
                ..limits([-1, 0, -1], &[])
            };
            assert_eq!(Verdict::new(&result, &limits), expected);
        }
    }

    #[test]
    fn verdict_of_a_frame_without_a_match_is_fail() {
        let found = |matched| DefectResult {
            alignment: Some(Alignment {
                matched,
                ..Alignment::default()
            }),
            ..DefectResult::default()
        };
        let off = [-1, -1, -1];
        assert_each(&found(false), &[], &[(off, FAILS)]);
        assert_each(&found(true), &[], &[(off, Verdict::None)]);
    }

    #[test]
    fn verdict_counts_only_the_named_classes() {
        let some = found(&[(9, 2), (5, 1), (1, Defect::OTHER)]);
        for (classes, count, area) in [
            (&[][..], 3, 9),
            (&[1], 1, 5),
            (&[1, 2], 2, 9),
            (&[Defect::OTHER], 1, 1),
        ] {
            let count = [([-1, count - 1, -1], FAILS), ([-1, count, -1], PASSES)];
            assert_each(&some, classes, &count);
            let area = [([-1, -1, area - 1], FAILS), ([-1, -1, area], PASSES)];
            assert_each(&some, classes, &area);
        }
        // Marked pixels count whatever the classes of the defects are.
        assert_each(&some, &[7], &[([-1, 0, 0], PASSES), ([14, 0, 0], FAILS)]);
    }

    #[test]
    fn verdict_always_counts_a_missing_pattern() {
        let missing = found(&[(9, Defect::PATTERN_MISSING)]);
        assert_each(
            &missing,
            &[1],
            &[([-1, 0, -1], FAILS), ([-1, -1, 8], FAILS)],
        );
    }

    #[test]
    fn verdict_fails_while_a_large_defect_is_open() {
        let open = DefectResult {
            open_area: 100,
            ..found(&[])
        };
        let cases = [(-1, PASSES), (99, FAILS), (100, PASSES)];
        assert_each(&open, &[1], &cases.map(|(n, wanted)| ([-1, 0, n], wanted)));
    }
}
