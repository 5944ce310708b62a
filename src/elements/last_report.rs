//! Prevents the repetition of reports.

/// The last report.
#[derive(Debug)]
pub struct LastReport<T>(Option<T>);

impl<T> Default for LastReport<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> LastReport<T> {
    /// Stores `report`; returns whether it differs from the last one.
    pub fn is_new(&mut self, report: T) -> bool {
        let is_new = !self.is_last(&report);
        self.0 = Some(report);
        is_new
    }

    /// Whether `report` was the last one.
    pub fn is_last(&self, report: &T) -> bool {
        self.0.as_ref() == Some(report)
    }

    /// Forgets the last report: the fault is over, and the next report counts as new.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_new_once_until_it_is_cleared() {
        let mut last = LastReport::default();
        assert!(last.is_new("a"));
        assert!(!last.is_new("a"));
        assert!(last.is_new("b"));
        last.clear();
        assert!(last.is_new("b"));
    }
}
