//! The limit of a comparison with a trained picture that is learned from good frames: the factor on the deviations, or the
//! threshold if it decides alone.

use clinspect_core::{
    ClError,
    learning::{Demand, Rule},
    reference::Deviations,
    threshold::Reached,
};

use super::Reference;
use crate::{Limit, Subject};

const THRESHOLD: Limit = Limit {
    name: "threshold",
    component: None,
    most: 0.0,
    // Pixels are counted by quarters of a grey level.
    step: 0.25,
    rule: Rule {
        margin: 0.15,
        allowed: 0.0,
    },
};
const FACTOR: Limit = Limit {
    name: "deviation-factor",
    component: None,
    most: 1000.0,
    step: 1.0 / 64.0,
    // The third largest of 40 frames is steadier than the largest.
    rule: Rule {
        margin: 0.1,
        allowed: 0.05,
    },
};

impl Reference {
    fn learns_factor(&self) -> bool {
        self.settings.deviation_factor > 0.0
    }

    /// See [`Inspection::limits`](crate::Inspection::limits).
    pub(super) fn learned_limit(&self) -> Limit {
        if self.learns_factor() {
            FACTOR
        } else {
            Limit {
                most: self.base.highest().into(),
                ..THRESHOLD
            }
        }
    }

    /// See [`Inspection::demands`](crate::Inspection::demands).
    pub(super) fn demand_of(&mut self, subject: Subject) -> Result<Option<Demand>, ClError> {
        if self.learns_factor() {
            let is_judged = (self.reading.as_ref()).is_some_and(|reading| reading.is_matched);
            return Ok((self.model.is_some() && is_judged).then_some(Demand::of(f64::INFINITY)));
        }
        let mut reached = Reached::default();
        let is_judged = self.count_limits(subject, &mut reached)?;
        Ok(is_judged.then(|| Demand::of(reached.peak())))
    }

    /// See [`Inspection::try_limits`](crate::Inspection::try_limits).
    pub(super) fn try_value(&mut self, value: Option<f64>) -> Result<(), ClError> {
        let mut deviations = self.settings.deviations();
        let learned = match self.learns_factor() {
            true => &mut deviations.factor,
            false => &mut deviations.threshold,
        };
        if let Some(value) = value {
            *learned = value;
        }
        self.set_deviations(&deviations)
    }

    fn set_deviations(&mut self, deviations: &Deviations) -> Result<(), ClError> {
        match (&mut self.model, &self.settings.model) {
            (Some(device), Some(model)) => device.set_limits(&self.base, model, deviations),
            _ => Ok(()),
        }
    }
}
