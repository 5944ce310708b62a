//! Which components of a frame are judged, and the limits of each.

use super::Limit;
use crate::elements::{
    base_filter::Target,
    checked::CheckedValue,
    property_table::{Row, properties},
};
use clinspect_core::{ClError, layout::FrameLayout};
use clinspect_operators::{Component, Components, JudgedComponents, Submitted, Trial, is_colour};

/// The properties `components` and `component-limits`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColourSettings {
    judged: JudgedComponents,
    /// Empty: the components share the element's own limits.
    limits: CheckedValue<Vec<f64>>,
}

impl ColourSettings {
    /// The components' own limits, those of red first; empty if they share the element's.
    pub fn limits(&self) -> &[f64] {
        self.limits.usable()
    }

    /// Whether the components of these operators have limits of their own.
    pub fn has_own<O: Submitted>(&self, operator: &Components<O>) -> bool {
        operator.are_apart() && !self.limits().is_empty()
    }

    /// A limit that all components share, or 0.
    pub fn shared<O: Submitted>(&self, operator: &Components<O>, limit: f64) -> f64 {
        if self.has_own(operator) { 0.0 } else { limit }
    }

    /// The limits of a component, of which the element has `count`; `None` if these are the element's own.
    ///
    /// # Errors
    /// [`ClError::Refused`] for another number of limits, or invalid values.
    pub fn limits_of(
        &self,
        component: Option<Component>,
        count: usize,
    ) -> Result<Option<Vec<f64>>, ClError> {
        let Some(component) = component else {
            return Ok(None);
        };
        self.limits.check("component-limits", |limits| {
            if limits.is_empty() {
                return Ok(None);
            }
            let wanted = Component::ALL.len() * count;
            if limits.len() != wanted {
                return Err(format!(
                    "{} numbers are not the limits of red, green and blue; set {wanted} numbers, or none for limits that \
                     they share",
                    limits.len()
                ));
            }
            let is_one = |limit: &&f64| limit.is_finite() && **limit >= 0.0;
            if let Some(limit) = limits.iter().find(|limit| !is_one(limit)) {
                return Err(format!("{limit} is no limit; set 0 or more"));
            }
            let mut each = Component::ALL.into_iter().zip(limits.chunks(count));
            let own = each.find(|(of, _)| *of == component);
            Ok(own.map(|(_, limits)| limits.to_vec()))
        })
    }

    /// Takes learned limits if they are those of components. Returns whether they are.
    pub fn take(&mut self, learned: &[(Limit, f64)]) -> bool {
        let is_own = learned.iter().any(|(limit, _)| limit.component.is_some());
        if is_own {
            self.set_limits(learned.iter().map(|&(_, value)| value).collect());
        }
        is_own
    }

    /// Sets the limits of the components, those of red first.
    pub fn set_limits(&mut self, limits: Vec<f64>) {
        self.limits = limits.into();
    }

    /// Which components are judged.
    pub fn judged(&self) -> JudgedComponents {
        self.judged
    }

    /// Whether the components of frames are judged apart. Where they cannot be, no operator is built.
    pub fn are_apart(&self, layout: &FrameLayout) -> bool {
        self.judged.are_apart(layout).unwrap_or(false)
    }

    /// Sets the limits that are learned to the same values.
    pub fn forget_limits(&mut self) {
        self.limits = CheckedValue::default();
    }

    /// See [`build`].
    ///
    /// # Errors
    /// See [`Components::new`].
    pub fn build<O: Submitted>(
        &self,
        target: &Target,
        build: impl FnMut(&FrameLayout, Option<Component>) -> Result<O, ClError>,
    ) -> Result<Components<O>, ClError> {
        self::build(target, self.judged, build)
    }
}

/// The operators of the components of frames that are judged.
///
/// # Errors
/// See [`Components::new`].
pub fn build<O: Submitted>(
    target: &Target,
    judged: JudgedComponents,
    build: impl FnMut(&FrameLayout, Option<Component>) -> Result<O, ClError>,
) -> Result<Components<O>, ClError> {
    if is_colour(&target.layout) {
        target.trial.colour(&target.layout)?;
    }
    Components::new(&target.context, &target.layout, judged, build)
}

/// The self-test of the operators that [`build`] makes.
pub fn trial(target: &Target) -> Result<Trial, ClError> {
    if is_colour(&target.layout) {
        target.trial.grey()
    } else {
        Ok(target.trial.clone())
    }
}

/// Names of the channels of a defect; `own` are those of the element.
pub fn channels<O: Submitted>(operator: &Components<O>, own: &[&str]) -> Vec<String> {
    if !operator.are_apart() {
        return own.iter().map(|&name| name.into()).collect();
    }
    let components = Component::ALL.iter().map(|component| component.name());
    if own.is_empty() {
        return components.map(Into::into).collect();
    }
    let all = components.flat_map(|name| own.iter().map(move |own| format!("{name} {own}")));
    all.collect()
}

/// `own`: the names of the element's limits, in their order.
pub fn rows(own: &str) -> Vec<Row<ColourSettings>> {
    let limits = format!(
        "Limits of red, then of green, then of blue, where they are judged apart: {own} of each; empty = those of the \
         other properties. The signal learn sets them"
    );
    properties!(ColourSettings {
        choice(
            "components", "Components",
            "Which components of a frame are judged"
        ) = judged;
        reals("component-limits", "Component limits", &limits) = limits;
    })
}
