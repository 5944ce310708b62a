//! Reports that are made once.

/// The last report, so that it is not repeated.
#[derive(Debug)]
pub struct Told<T>(Option<T>);

impl<T> Default for Told<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> Told<T> {
    /// Whether `report` differs from the last one, which it then replaces.
    pub fn is_news(&mut self, report: T) -> bool {
        let news = !self.is_last(&report);
        self.0 = Some(report);
        news
    }

    /// Whether `report` was the last one.
    pub fn is_last(&self, report: &T) -> bool {
        self.0.as_ref() == Some(report)
    }

    /// The fault is over: the next report is news.
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
