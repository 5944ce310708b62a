//! The settings of a comparison with parts that lie anywhere.

use clinspect_core::{
    ClError,
    place::{ONE, SCALES, TURN},
};
use gst::glib;

/// What a part is that the frame's edge cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClReferenceEdge")]
pub enum PartEdge {
    /// One that cannot be judged.
    #[default]
    #[enum_value(
        name = "None: a part that the edge of the frame cuts counts, and the frame does not pass",
        nick = "none"
    )]
    None,
    /// None of this frame's.
    #[enum_value(
        name = "Ignore: a part that the edge of the frame cuts does not count; another frame shows it whole",
        nick = "ignore"
    )]
    Ignore,
}

/// Most parts of a frame: the search looks for two more, and a defect has six bits for the number of its part.
pub const MOST_PARTS: u32 = 60;
/// Largest share by which parts are smaller or larger.
const MOST_SCALED: f64 = 0.1;

/// Which parts are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct PartsSettings {
    /// Least and most parts of a frame.
    pub wanted: [u32; 2],
    /// Most that parts are turned to both sides, degrees.
    pub angles: f64,
    /// Most that parts are smaller or larger: a share of their size.
    pub scales: f64,
    /// Least place score of a part.
    pub place_score: f64,
    /// What a part is that the frame's edge cuts.
    pub edge: PartEdge,
}

impl Default for PartsSettings {
    fn default() -> Self {
        Self {
            wanted: [1, 1],
            angles: 180.0,
            scales: 0.0,
            place_score: 0.7,
            edge: PartEdge::default(),
        }
    }
}

impl PartsSettings {
    /// # Errors
    /// [`ClError::Refused`] for numbers that contradict each other.
    pub fn check(&self) -> Result<(), ClError> {
        let Self {
            wanted: [least, most],
            angles,
            scales,
            ..
        } = self;
        if !(1..=MOST_PARTS).contains(most) || least > most {
            return Err(ClError::Refused(format!(
                "parts=<{least}, {most}> is no range; set the least and the most parts of a frame, the most from 1 to {MOST_PARTS}"
            )));
        }
        if !(0.0..=180.0).contains(angles) || !(0.0..=MOST_SCALED).contains(scales) {
            return Err(ClError::Refused(format!(
                "search=<{angles}, {scales}> is no range; set degrees from 0 to 180, and a share of the size from 0 to \
                 {MOST_SCALED}"
            )));
        }
        Ok(())
    }

    /// Most that parts are turned, 1/16384 turn.
    pub(super) fn most_angle(&self) -> i32 {
        (self.angles / 360.0 * f64::from(TURN)).round() as i32
    }

    /// The scales that are tried, 1/256.
    pub(super) fn tried_scales(&self) -> Vec<i32> {
        let step = (SCALES[1] - SCALES[0]) as f64 / f64::from(ONE);
        let steps = (self.scales / step).ceil() as i32;
        let near = |scale: &i32| (scale - ONE).abs() <= steps * (SCALES[1] - SCALES[0]);
        SCALES.into_iter().filter(near).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_those_within_the_share_and_one_step_more() {
        let tried = |scales| {
            PartsSettings {
                scales,
                ..PartsSettings::default()
            }
            .tried_scales()
        };
        assert_eq!(tried(0.0), [256]);
        assert_eq!(tried(0.03), [243, 256, 269]);
        assert_eq!(tried(0.05), [243, 256, 269]);
        assert_eq!(tried(0.1), SCALES);
    }

    #[test]
    fn ranges_that_contradict_themselves_are_refused() {
        let parts = PartsSettings::default();
        assert!(parts.check().is_ok());
        for wanted in [[0, 0], [2, 1], [1, 61]] {
            let other = PartsSettings {
                wanted,
                ..parts.clone()
            };
            assert!(other.check().is_err(), "{wanted:?}");
        }
        for [angles, scales] in [[-1.0, 0.0], [181.0, 0.0], [f64::NAN, 0.0], [9.0, 0.2]] {
            let other = PartsSettings {
                angles,
                scales,
                ..parts.clone()
            };
            assert!(other.check().is_err(), "{angles} {scales}");
        }
    }
}
