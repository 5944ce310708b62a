//! Settings that change while frames flow.

use std::sync::{Mutex, PoisonError};

use clinspect_core::ClError;

/// An operator with the settings it was made from, remade when they change.
#[derive(Debug)]
pub struct Live<S, O> {
    /// The operator.
    pub operator: O,
    /// What it was made from.
    pub settings: S,
    refused: Option<S>,
}

impl<S: Clone + PartialEq, O> Live<S, O> {
    /// An operator for the settings as they are.
    ///
    /// # Errors
    /// What `build` says.
    pub fn new(settings: S, build: impl FnOnce(&S) -> Result<O, ClError>) -> Result<Self, ClError> {
        Ok(Self {
            operator: build(&settings)?,
            settings,
            refused: None,
        })
    }

    /// Follows a change of settings. Refused ones leave the operator as it was, so that frames
    /// stay inspected; the refusal is returned once.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn follow(
        &mut self,
        current: &Mutex<S>,
        build: impl FnOnce(&S) -> Result<O, ClError>,
    ) -> Result<Option<ClError>, ClError> {
        let wanted = {
            let current = current.lock().unwrap_or_else(PoisonError::into_inner);
            if *current == self.settings || self.refused.as_ref() == Some(&*current) {
                return Ok(None);
            }
            current.clone()
        };
        match build(&wanted) {
            Ok(operator) => {
                self.operator = operator;
                self.settings = wanted;
                self.refused = None;
                Ok(None)
            }
            Err(error @ ClError::Refused(_)) => {
                self.refused = Some(wanted);
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }
}

impl<S, O> Live<S, O> {
    /// Makes the operator anew from the same settings, because of what they do not say. Where
    /// that is refused the operator stays as it was.
    ///
    /// # Errors
    /// What `build` says.
    pub fn remake(&mut self, build: impl FnOnce(&S) -> Result<O, ClError>) -> Result<(), ClError> {
        self.operator = build(&self.settings)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(n: &i32) -> Result<i32, ClError> {
        if *n < 0 {
            Err(ClError::Refused("negative".into()))
        } else {
            Ok(10 * n)
        }
    }

    #[test]
    fn live_refused_settings_leave_the_operator_and_are_told_once() {
        let current = Mutex::new(1);
        let mut live = Live::new(1, build).expect("live");
        *current.lock().expect("lock") = -1;
        assert!(matches!(live.follow(&current, build), Ok(Some(_))));
        assert!(matches!(live.follow(&current, build), Ok(None)));
        assert_eq!((live.operator, live.settings), (10, 1));
        *current.lock().expect("lock") = 2;
        assert!(matches!(live.follow(&current, build), Ok(None)));
        assert_eq!((live.operator, live.settings), (20, 2));
    }
}
