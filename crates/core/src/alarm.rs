//! An alarm with hysteresis.

/// On which side of the threshold a value raises the alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Values above it.
    Above,
    /// Values below it.
    Below,
}

/// An alarm's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alarm {
    raised: bool,
}

impl Alarm {
    /// Takes a value; returns the new state if it changed.
    ///
    /// `threshold` < 0 switches the alarm off and clears it. A raised alarm is cleared once the
    /// value is on the good side of the threshold by at least `hysteresis` × threshold
    /// (`hysteresis` in 0..1), so a value that wavers around the threshold does not raise the alarm
    /// with every frame.
    pub fn update(
        &mut self,
        value: f64,
        side: Side,
        threshold: f64,
        hysteresis: f64,
    ) -> Option<bool> {
        let raised = if threshold < 0.0 {
            false
        } else {
            match (side, self.raised) {
                (Side::Above, false) => value > threshold,
                (Side::Above, true) => value > threshold * (1.0 - hysteresis),
                (Side::Below, false) => value < threshold,
                (Side::Below, true) => value < threshold * (1.0 + hysteresis),
            }
        };
        let changed = raised != self.raised;
        self.raised = raised;
        changed.then_some(raised)
    }

    /// Whether the alarm is raised.
    pub fn is_raised(&self) -> bool {
        self.raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(side: Side, values: &[f64]) -> Vec<Option<bool>> {
        let mut alarm = Alarm::default();
        values
            .iter()
            .map(|&value| alarm.update(value, side, 10.0, 0.1))
            .collect()
    }

    #[test]
    fn alarm_above_rings_once_and_clears_below_the_hysteresis() {
        assert_eq!(
            follow(Side::Above, &[10.0, 10.1, 9.5, 12.0, 9.0, 9.5, 10.5]),
            [None, Some(true), None, None, Some(false), None, Some(true)]
        );
    }

    #[test]
    fn alarm_below_rings_once_and_clears_above_the_hysteresis() {
        assert_eq!(
            follow(Side::Below, &[10.0, 9.9, 10.5, 11.0, 10.5]),
            [None, Some(true), None, Some(false), None]
        );
    }

    #[test]
    fn alarm_switched_off_clears() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.update(11.0, Side::Above, 10.0, 0.1), Some(true));
        assert_eq!(alarm.update(11.0, Side::Above, -1.0, 0.1), Some(false));
        assert_eq!(alarm.update(11.0, Side::Above, -1.0, 0.1), None);
    }
}
