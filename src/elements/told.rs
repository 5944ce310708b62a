//! Prevents the repetition of reports.

/// The last report.
#[derive(Debug)]
pub struct Told<T>(Option<T>);

impl<T> Default for Told<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> Told<T> {
    /// Stores `report`; returns whether it differs from the last one.
    pub fn is_news(&mut self, report: T) -> bool {
        let news = !self.is_last(&report);
        self.0 = Some(report);
        news
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
    fn told_report_is_news_once_until_it_is_cleared() {
        let mut told = Told::default();
        assert!(told.is_news("a"));
        assert!(!told.is_news("a"));
        assert!(told.is_news("b"));
        told.clear();
        assert!(told.is_news("b"));
    }
}
