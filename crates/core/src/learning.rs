//! Limits that are learned from good frames.
//!
//! # Source
//! docs/semantics.md, "Limits that are learned".

use crate::components::COMPONENTS;

/// Demands, limits and contrasts are multiples of 1 / this.
pub const UNITS: f64 = 1024.0;
/// The largest demand and limit: larger ones are cut.
pub const MOST: f64 = (u32::MAX / UNITS as u32) as f64;

/// By component the contrast of a pattern, grey levels of 8 bits; 0 where none was measured or the pattern is not seen. Grey
/// and luma are the first one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Contrasts(pub [f64; COMPONENTS]);

impl Contrasts {
    /// The largest one.
    pub fn largest(&self) -> f64 {
        self.0.into_iter().fold(0.0, f64::max)
    }

    /// Each of them as `change` makes it.
    #[must_use]
    pub fn map(self, change: impl FnMut(f64) -> f64) -> Self {
        Self(self.0.map(change))
    }
}

/// What a frame demands of one limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// The lowest limit at which the frame would have passed.
    pub peak: f64,
    /// The mean over tiles of the largest value in each tile; `None` where the quantity has no tiles.
    pub typical: Option<f64>,
}

impl Demand {
    /// A demand without tiles.
    pub fn of(peak: f64) -> Self {
        Self {
            peak,
            typical: None,
        }
    }

    /// The demand in whole units, so that a file holds it exactly: the peak is rounded up.
    #[must_use]
    fn rounded(self) -> Self {
        let units = |value: f64| {
            // NaN is no smaller than anything.
            let value = if value < MOST { value.max(0.0) } else { MOST };
            (value * UNITS).ceil() / UNITS
        };
        Self {
            peak: units(self.peak),
            typical: self.typical.map(units),
        }
    }
}

/// How a limit follows from the demands of good frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The share of the demand that is added.
    pub margin: f64,
    /// The share of the frames whose demand may be above.
    pub allowed: f64,
}

/// A learned limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// The limit.
    pub limit: f64,
    /// Number of the frame that set it.
    pub frame: u64,
}

/// A good frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Good {
    /// Number of the frame.
    pub frame: u64,
    /// What it demands of each limit.
    pub demands: Vec<Demand>,
    /// The contrasts of its pattern.
    pub contrasts: Contrasts,
}

/// The good frames from which limits are learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Learner {
    wanted: usize,
    good: Vec<Good>,
}

impl Learner {
    /// Without frames; `wanted` are needed.
    pub fn new(wanted: usize) -> Self {
        Self {
            wanted: wanted.max(1),
            good: Vec::new(),
        }
    }

    /// Adds a frame. Frames with another number of demands begin anew, and more frames than needed are not taken.
    pub fn add(&mut self, frame: u64, demands: &[Demand], contrasts: Contrasts) {
        if self.missing() == 0 {
            return;
        }
        let before = self.good.last().map(|good| good.demands.len());
        if before.is_some_and(|before| before != demands.len()) {
            self.good.clear();
        }
        self.good.push(Good {
            frame,
            demands: demands.iter().map(|demand| demand.rounded()).collect(),
            contrasts: contrasts.map(|contrast| (contrast * UNITS).round() / UNITS),
        });
    }

    /// Removes a frame, so that another one is needed in its place. Returns whether it was there.
    pub fn forget(&mut self, frame: u64) -> bool {
        let before = self.good.len();
        self.good.retain(|good| good.frame != frame);
        self.good.len() < before
    }

    /// Number of frames that are needed.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Number of frames that are missing.
    pub fn missing(&self) -> usize {
        self.wanted - self.good.len()
    }

    /// The frames.
    pub fn good(&self) -> &[Good] {
        &self.good
    }

    /// By component the least contrast of the frames that show the pattern.
    pub fn contrasts(&self) -> Contrasts {
        Contrasts(std::array::from_fn(|component| {
            let each = self.good.iter().map(|good| good.contrasts.0[component]);
            let seen = each.filter(|&contrast| contrast > 0.0);
            seen.reduce(f64::min).unwrap_or(0.0)
        }))
    }

    /// The limit that the frames so far give to each quantity; `None` without frames, or if the number of rules is not
    /// that of the demands.
    ///
    /// With the demands in descending order, `M` is number ⌊allowed·N⌋ + 1 of N, and μ the mean of the typical values, or
    /// 0 without tiles. The limit is μ + (1 + margin)·(M − μ).
    pub fn learned(&self, rules: &[Rule]) -> Option<Vec<Learned>> {
        let of = |(at, rule): (usize, &Rule)| {
            let mut each = (self.good.iter())
                .map(|good| Some((good.frame, *good.demands.get(at)?)))
                .collect::<Option<Vec<_>>>()?;
            // The sort is stable: of equals the first frame counts.
            each.sort_by(|(_, a), (_, b)| b.peak.total_cmp(&a.peak));
            let above = (rule.allowed * each.len() as f64) as usize;
            let &(frame, Demand { peak, .. }) = each.get(above.min(each.len().checked_sub(1)?))?;
            let typical = each.iter().map(|(_, demand)| demand.typical);
            let sum: f64 = typical.map(|typical| typical.unwrap_or(0.0)).sum();
            let mean = (sum / each.len() as f64).min(peak);
            let limit = mean + (1.0 + rule.margin) * (peak - mean);
            let limit = (limit.clamp(0.0, MOST) * UNITS).round() / UNITS;
            Some(Learned { limit, frame })
        };
        let fits = self
            .good
            .iter()
            .all(|good| good.demands.len() == rules.len());
        (fits && !rules.is_empty())
            .then(|| rules.iter().enumerate().map(of).collect())
            .flatten()
    }
}

/// The search for the lowest multiple of `step` above 0 at which a frame passes, or `most` if it passes at none below. The frame
/// passes at `most` and above, and fails at all multiples below the first at which it passes.
#[derive(Debug, Clone)]
pub struct Search {
    step: f64,
    most: f64,
    /// In steps: fails at the first one, passes at the second one.
    between: [u64; 2],
}

impl Search {
    /// Nothing was tried yet.
    pub fn new(step: f64, most: f64) -> Self {
        let steps = (most / step).ceil().min(f64::from(u32::MAX)) as u64;
        Self {
            step,
            most,
            between: [0, steps],
        }
    }

    fn middle(&self) -> u64 {
        let [below, at] = self.between;
        below + (at - below) / 2
    }

    /// The limit to try next; `None` if the lowest one is known.
    pub fn next(&self) -> Option<f64> {
        let [below, at] = self.between;
        (at - below > 1).then(|| self.middle() as f64 * self.step)
    }

    /// The frame passes, or fails, at [`Self::next`].
    pub fn tell(&mut self, passes: bool) {
        self.between[usize::from(passes)] = self.middle();
    }

    /// The lowest limit at which the frame passes as far as is known.
    pub fn lowest(&self) -> f64 {
        (self.between[1] as f64 * self.step).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        margin: 0.5,
        allowed: 0.0,
    };

    const UNSEEN: Contrasts = Contrasts([0.0; COMPONENTS]);

    fn learner(wanted: usize, peaks: &[f64]) -> Learner {
        let mut learner = Learner::new(wanted);
        for (frame, &peak) in peaks.iter().enumerate() {
            learner.add(frame as u64, &[Demand::of(peak)], UNSEEN);
        }
        learner
    }

    fn learned(learner: &Learner, rule: Rule) -> Option<(f64, u64)> {
        let learned = learner.learned(&[rule])?;
        Some((learned[0].limit, learned[0].frame))
    }

    #[test]
    fn limit_is_the_largest_demand_with_its_margin() {
        let some = learner(4, &[6.0, 9.0, 8.0]);
        assert_eq!((some.missing(), some.wanted()), (1, 4));
        assert_eq!(learned(&some, RULE), Some((13.5, 1)));
        assert_eq!(learned(&learner(1, &[0.0]), RULE), Some((0.0, 0)));
        assert_eq!(learned(&learner(3, &[]), RULE), None);
        assert_eq!(some.learned(&[]), None);
        assert_eq!(some.learned(&[RULE, RULE]), None);
    }

    #[test]
    fn of_equal_demands_the_first_frame_set_the_limit() {
        assert_eq!(
            learned(&learner(3, &[2.0, 7.0, 7.0]), RULE),
            Some((10.5, 1))
        );
    }

    #[test]
    fn share_of_the_frames_may_demand_more() {
        let peaks: Vec<f64> = (1..=40).map(f64::from).collect();
        let rule = |allowed| Rule {
            margin: 0.0,
            allowed,
        };
        // Of 40 frames ⌊0.05·40⌋ = 2 may demand more, so the third largest counts.
        let all = learner(40, &peaks);
        assert_eq!(learned(&all, rule(0.05)), Some((38.0, 37)));
        // Of 19 frames none may.
        assert_eq!(
            learned(&learner(19, &peaks[..19]), rule(0.05)),
            Some((19.0, 18))
        );
        assert_eq!(learned(&all, rule(1.0)), Some((1.0, 0)));
    }

    #[test]
    fn margin_is_taken_above_the_mean_of_the_tiles() {
        let mut learner = Learner::new(2);
        for (frame, peak, typical) in [(7, 12.0, 4.0), (8, 10.0, 2.0)] {
            let demand = Demand {
                peak,
                typical: Some(typical),
            };
            learner.add(frame, &[demand, Demand::of(1.0)], UNSEEN);
        }
        let learned = learner.learned(&[RULE, RULE]).expect("limits");
        assert_eq!((learned[0].limit, learned[0].frame), (3.0 + 1.5 * 9.0, 7));
        assert_eq!((learned[1].limit, learned[1].frame), (1.5, 7));
    }

    #[test]
    fn forgotten_frame_is_missing_and_no_longer_counts() {
        let mut some = learner(3, &[6.0, 60.0, 8.0]);
        assert_eq!(some.missing(), 0);
        some.add(9, &[Demand::of(99.0)], UNSEEN);
        assert_eq!(learned(&some, RULE), Some((90.0, 1)));
        assert!(some.forget(1));
        assert!(!some.forget(1));
        assert_eq!(some.missing(), 1);
        assert_eq!(learned(&some, RULE), Some((12.0, 2)));
        some.add(9, &[Demand::of(10.0)], UNSEEN);
        assert_eq!((some.missing(), learned(&some, RULE)), (0, Some((15.0, 9))));
    }

    #[test]
    fn contrast_is_the_least_of_the_frames_that_show_the_pattern() {
        let mut learner = Learner::new(5);
        assert_eq!(learner.contrasts(), UNSEEN);
        for (frame, contrasts) in [
            (1, [31.0, 0.0, 7.0]),
            (2, [15.5004, 0.0, 9.0]),
            (3, [14.25, 0.0, 0.0]),
            (4, UNSEEN.0),
        ] {
            learner.add(frame, &[Demand::of(1.0)], Contrasts(contrasts));
        }
        assert_eq!(learner.contrasts(), Contrasts([14.25, 0.0, 7.0]));
        assert!(learner.forget(3));
        // A file holds whole units.
        assert_eq!(learner.contrasts(), Contrasts([15.5, 0.0, 7.0]));
    }

    #[test]
    fn frames_with_another_number_of_demands_begin_anew() {
        let mut some = learner(3, &[6.0, 60.0]);
        some.add(9, &[Demand::of(1.0), Demand::of(2.0)], UNSEEN);
        assert_eq!(some.good().len(), 1);
    }

    #[test]
    fn demands_are_whole_units_and_finite() {
        let some = learner(4, &[0.1, f64::INFINITY, -3.0, f64::NAN]);
        let peaks: Vec<f64> = some
            .good()
            .iter()
            .map(|good| good.demands[0].peak)
            .collect();
        assert_eq!(peaks, [103.0 / 1024.0, MOST, 0.0, MOST]);
        assert!((MOST * UNITS) <= f64::from(u32::MAX));
    }

    #[test]
    fn lowest_passing_limit_is_found_in_few_trials() {
        for lowest in [0.25, 0.5, 17.0, 100.0, 254.75, 255.0] {
            let mut trials = 0;
            let mut search = Search::new(0.25, 255.0);
            while let Some(limit) = search.next() {
                trials += 1;
                search.tell(limit >= lowest);
            }
            assert_eq!(search.lowest(), lowest);
            assert!(trials <= 10, "{trials}");
        }
        for most in [0.1, 0.0] {
            let search = Search::new(0.25, most);
            assert_eq!((search.next(), search.lowest()), (None, most));
        }
    }
}
