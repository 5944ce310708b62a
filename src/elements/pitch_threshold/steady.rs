//! Decides when kernels are compiled for the pitches.

use super::properties::Settings;

/// Frames with the same settings before kernels are compiled for their pitches: a change of settings must not
/// wait for the compiler, and a slider makes many.
const STEADY_FRAMES: u64 = 30;

/// For how long the settings have been the same.
#[derive(Default)]
pub struct Steady {
    settings: Option<Settings>,
    frames: u64,
}

impl Steady {
    /// Notes the settings of a frame.
    pub fn note(&mut self, settings: &Settings) {
        let settings = Settings {
            may_move: false,
            ..settings.clone()
        };
        self.frames += 1;
        if self.settings.as_ref() != Some(&settings) {
            self.settings = Some(settings);
            self.frames = 0;
        }
    }

    /// Whether these settings have been in use for long enough.
    pub fn holds(&self, settings: &Settings) -> bool {
        self.frames >= STEADY_FRAMES && self.settings.as_ref() == Some(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_steady_after_thirty_frames_without_a_change() {
        let settings = |threshold| Settings {
            threshold,
            ..Settings::default()
        };
        let mut steady = Steady::default();
        assert!(!steady.holds(&settings(10.0)));
        for _ in 0..=STEADY_FRAMES {
            assert!(!steady.holds(&settings(10.0)));
            steady.note(&settings(10.0));
        }
        assert!(steady.holds(&settings(10.0)));
        // Another threshold is not in use yet; the operator in force does not count as a change.
        assert!(!steady.holds(&settings(11.0)));
        steady.note(&Settings {
            may_move: true,
            ..settings(10.0)
        });
        assert!(steady.holds(&settings(10.0)));
        steady.note(&settings(11.0));
        assert!(!steady.holds(&settings(10.0)) && !steady.holds(&settings(11.0)));
    }
}
