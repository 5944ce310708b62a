//! The limits of a pitch comparison that are learned from good frames: the threshold of the pixels, and one for each
//! coarser level.

use clinspect_core::{
    ClError,
    learning::{Demand, Rule},
    pitch::threshold_q8,
    scales::MAX_SCALES,
    sight::{Sight, reach_of_contrast},
    threshold::Reached,
};

use super::{Contrast, PitchThreshold};
use crate::{Limit, Subject, depth::effective_depth};

/// The first is that of the pixels.
const NAMES: [&str; 1 + MAX_SCALES] = ["threshold", "level-1", "level-2", "level-3", "level-4"];
/// Pixels are counted by quarters of a grey level.
const PIXEL_STEP: f64 = 0.25;
/// Limits of a level that are tried, of all its range.
const LEVEL_STEPS: f64 = 16_384.0;
const RULE: Rule = Rule {
    margin: 0.15,
    allowed: 0.0,
};

/// What was in force before a trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct BeforeTrial {
    contrast: Contrast,
}

impl PitchThreshold {
    fn depth(&self) -> Result<u32, ClError> {
        effective_depth(self.settings.bit_depth, self.sample)
    }

    /// The highest grey level.
    fn highest(&self) -> Result<f64, ClError> {
        Ok(f64::from((1_u32 << self.depth()?) - 1))
    }

    /// See [`Inspection::limits`](crate::Inspection::limits).
    pub(super) fn learned_limits(&self) -> Vec<Limit> {
        // The depth was checked when the comparison was made.
        let most = self.highest().unwrap_or(255.0);
        let names = NAMES.iter().take(1 + self.settings.scales).enumerate();
        names
            .map(|(at, &name)| Limit {
                name,
                component: None,
                most,
                step: if at == 0 {
                    PIXEL_STEP
                } else {
                    (most + 1.0) / LEVEL_STEPS
                },
                rule: RULE,
            })
            .collect()
    }

    /// See [`Inspection::demands`](crate::Inspection::demands). What a level demands has to be found by trials.
    pub(super) fn demands_of(&mut self, subject: Subject) -> Result<Option<Vec<Demand>>, ClError> {
        let mut reached = Reached::default();
        if !self.count_reached(subject, &mut reached)? {
            return Ok(None);
        }
        let mut demands = vec![Demand::of(f64::INFINITY); 1 + self.settings.scales];
        if let Some(pixels) = demands.first_mut() {
            *pixels = Demand::of(reached.peak());
        }
        Ok(Some(demands))
    }

    /// See [`Inspection::try_limits`](crate::Inspection::try_limits).
    pub(super) fn try_values(&mut self, values: Option<&[f64]>) -> Result<(), ClError> {
        // No difference is as large as this.
        let never = self.highest()? + 1.0;
        let thetas = match values {
            Some(values) => {
                let before = BeforeTrial {
                    contrast: self.contrast,
                };
                self.before_trial.get_or_insert(before);
                if let Contrast::Known(_) = self.contrast {
                    // No tile has less contrast.
                    self.contrast = Contrast::Known(0.0);
                }
                let thetas = values.iter().map(|value| threshold_q8(value.min(never)));
                // A level with the threshold 0 would mark nearly every block.
                let mut thetas: Vec<i64> = thetas.map(|theta| i64::from(theta.max(1))).collect();
                thetas.resize(1 + self.settings.scales, i64::from(threshold_q8(never)));
                thetas
            }
            None => {
                if let Some(BeforeTrial { contrast }) = self.before_trial.take() {
                    self.contrast = contrast;
                }
                self.thetas()?
            }
        };
        if let Some((&pixels, levels)) = thetas.split_first() {
            self.theta = i32::try_from(pixels).unwrap_or(i32::MAX / 2);
            if let Some(scales) = &mut self.scales {
                let regions = self.settings.regions(self.width, &self.window);
                scales.set_thresholds(&self.context, levels, &self.window, &regions)?;
            }
        }
        Ok(())
    }

    /// The thresholds of the pixels and of the levels, 1/256 grey level.
    fn thetas(&self) -> Result<Vec<i64>, ClError> {
        let mut thetas = vec![i64::from(threshold_q8(self.settings.threshold))];
        thetas.extend(self.settings.scale_thresholds_q8()?);
        Ok(thetas)
    }

    /// See [`Inspection::sights`](crate::Inspection::sights).
    pub(super) fn sights_of(&self, values: Option<&[f64]>) -> Result<Vec<Sight>, ClError> {
        let thetas = match values {
            Some(values) => (values.iter())
                .map(|&value| i64::from(threshold_q8(value)))
                .collect(),
            None => self.thetas()?,
        };
        let contrast = match self.contrast {
            // The minimum is half of it.
            Contrast::Known(minimum) if self.is_measured => Some(2.0 * minimum),
            _ => None,
        };
        let reach = reach_of_contrast(contrast, self.depth()?);
        let sight = |(&name, theta): (&&str, i64)| Sight {
            name: name.into(),
            limit: theta as f64 / 256.0,
            reach,
        };
        Ok(NAMES.iter().zip(thetas).map(sight).collect())
    }
}
