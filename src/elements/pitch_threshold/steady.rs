//! Decides when kernels are compiled for the settings in use.

use super::properties::Plan;

/// Frames with the same plan before kernels are compiled for it: a change of settings must not wait for the
/// compiler, and a slider makes many.
const STEADY_FRAMES: u64 = 30;

/// For how long the plan has been the same.
#[derive(Default)]
pub struct Steady {
    plan: Option<Plan>,
    frames: u64,
}

impl Steady {
    /// Counts a frame with this plan.
    pub fn count(&mut self, plan: &Plan) {
        self.frames += 1;
        if self.plan.as_ref() != Some(plan) {
            self.plan = Some(plan.clone());
            self.frames = 0;
        }
    }

    /// Whether this plan has been in use for long enough.
    pub fn holds(&self, plan: &Plan) -> bool {
        self.frames >= STEADY_FRAMES && self.plan.as_ref() == Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::properties::{Plan, Settings},
        *,
    };
    use crate::elements::inspector::Ignore;

    #[test]
    fn settings_are_steady_after_thirty_frames_without_a_change() {
        let plan = |threshold| Plan {
            properties: Settings {
                threshold,
                ..Settings::default()
            },
            pitches: [0.0; 2],
            ignore: Ignore::default(),
        };
        let mut steady = Steady::default();
        assert!(!steady.holds(&plan(10.0)));
        for _ in 0..=STEADY_FRAMES {
            assert!(!steady.holds(&plan(10.0)));
            steady.count(&plan(10.0));
        }
        assert!(steady.holds(&plan(10.0)));
        // Another threshold is not in use yet.
        assert!(!steady.holds(&plan(11.0)));
        steady.count(&plan(10.0));
        assert!(steady.holds(&plan(10.0)));
        steady.count(&plan(11.0));
        assert!(!steady.holds(&plan(10.0)) && !steady.holds(&plan(11.0)));
    }
}
