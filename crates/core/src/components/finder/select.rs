//! Decides which defects are listed, and gives them numbers.

use super::{
    super::{CONTINUED, CUT, sums::Sums},
    Finder, Limits, NONE,
};

/// Stands for the numbers of open defects before they have one.
const OPEN: u32 = u32::MAX - 1;

impl Finder {
    /// Closes the open defects by force, and lists nothing else.
    pub(super) fn give_up(&mut self, limits: &Limits) {
        self.listed.append(&mut self.open);
        let min_area = u64::from(limits.min_area);
        self.listed.retain(|sums| sums.area >= min_area);
        // The sort is stable: equal areas stay in scan order.
        self.listed.sort_by_key(|sums| std::cmp::Reverse(sums.area));
        self.listed.truncate(limits.max_defects);
        for sums in &mut self.listed {
            sums.flags |= CUT;
        }
        self.overflow = true;
        self.reset();
    }

    /// Decides which defects are listed and which are open, and gives them numbers: listed ones first.
    /// Open ones get the sums of the strips before.
    pub(super) fn select(&mut self, limits: &Limits) {
        self.labels.flatten();
        let labels = &self.labels;
        let mut open: Vec<usize> = (self.front.iter())
            .map(|span| labels.flat_root(span.label as usize))
            .collect();
        open.sort_unstable();
        open.dedup();
        self.numbers.clear();
        self.numbers.resize(labels.len(), NONE);
        for &label in &open {
            self.numbers[label] = OPEN;
        }

        let min_area = u64::from(limits.min_area);
        self.ranks.clear();
        for label in 0..labels.len() {
            let area = labels.area(label);
            if labels.is_root(label) && area >= min_area && self.numbers[label] == NONE {
                self.ranks.push(rank(area, label));
            }
        }
        self.overflow = self.ranks.len() > limits.max_defects;
        if self.overflow {
            self.ranks.select_nth_unstable(limits.max_defects);
            self.ranks.truncate(limits.max_defects);
        }
        self.ranks.sort_unstable();

        let listed = self.ranks.iter().map(|&rank| label_of(rank));
        let mut sums = Vec::with_capacity(self.ranks.len() + open.len());
        for label in listed.chain(open) {
            self.numbers[label] = sums.len() as u32;
            sums.push(Sums::new(self.first_row(label)));
        }
        for label in 0..self.labels.len() {
            self.numbers[label] = self.numbers[self.labels.flat_root(label)];
        }
        for (&number, before) in self.numbers.iter().zip(&self.open) {
            if let Some(sums) = sums.get_mut(number as usize) {
                sums.merge(before);
            }
        }
        for (labels, flag) in [(&self.cut, CUT), (&self.continued, CONTINUED)] {
            for &label in labels {
                if let Some(sums) = sums.get_mut(self.numbers[label as usize] as usize) {
                    sums.flags |= flag;
                }
            }
        }
        self.sums = sums;
        for span in &mut self.front {
            span.label = self.numbers[span.label as usize] - self.ranks.len() as u32;
        }
    }
}

/// A sort key: lower for a larger area, then for a defect whose first pixel comes earlier.
fn rank(area: u64, label: usize) -> u128 {
    u128::from(!area) << 64 | label as u128
}

/// The label of a rank.
fn label_of(rank: u128) -> usize {
    rank as u64 as usize
}
