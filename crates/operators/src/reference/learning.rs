//! The limit of a comparison with a trained picture that is learned from good frames. A pixel must exceed both, so only one is
//! learned: the factor on the deviations, with the threshold as the smallest difference that matters; or the threshold, if
//! the factor is 0, or if one frame was trained and has no deviations.

use clinspect_core::{
    ClError,
    learning::{Demand, Rule},
    reference::{Deviations, Model},
    threshold::Reached,
};

use super::{Reference, ReferenceSettings};
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

/// Whether the factor is learned, not the threshold. Without a model, `train_frames` will train one.
pub fn learns_factor(factor: f64, model: Option<&Model>, train_frames: u32) -> bool {
    factor > 0.0 && model.map_or(train_frames, Model::frames) != 1
}

impl Reference {
    /// See [`Inspection::limits`](crate::Inspection::limits).
    pub(super) fn learned_limit(&self) -> Limit {
        if self.learns_factor {
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
        if self.learns_factor {
            let is_judged = (self.reading.as_ref()).is_some_and(|reading| reading.is_matched);
            return Ok((self.model.is_some() && is_judged).then_some(Demand::of(f64::INFINITY)));
        }
        let mut reached = Reached::default();
        let is_judged = self.count_limits(subject, &mut reached)?;
        // Opened marks may go below the peak.
        let peak = if self.settings.opening > 0 {
            f64::INFINITY
        } else {
            reached.peak()
        };
        Ok(is_judged.then(|| Demand::of(peak)))
    }

    /// See [`Inspection::try_limits`](crate::Inspection::try_limits).
    pub(super) fn try_value(&mut self, value: Option<f64>) -> Result<(), ClError> {
        self.is_trial = value.is_some();
        let deviations = match value {
            Some(value) => self.settings_with(value).deviations(),
            None => self.settings.deviations(),
        };
        self.set_deviations(&deviations)
    }

    /// The settings with this value of the learned limit.
    pub(super) fn settings_with(&self, value: f64) -> ReferenceSettings {
        let settings = self.settings.clone();
        if self.learns_factor {
            ReferenceSettings {
                deviation_factor: value,
                ..settings
            }
        } else {
            ReferenceSettings {
                threshold: value,
                ..settings
            }
        }
    }

    fn set_deviations(&mut self, deviations: &Deviations) -> Result<(), ClError> {
        // Of several components one limit is tried at a time.
        if self.deviations == *deviations {
            return Ok(());
        }
        self.deviations = *deviations;
        match (&mut self.model, &self.settings.model) {
            (Some(device), Some(model)) => device.set_limits(&self.base, model, deviations),
            _ => Ok(()),
        }
    }
}
