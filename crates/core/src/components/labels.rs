//! Groups of spans that touch.

use super::touches::{Span, Touch, for_touches};

/// Stands for the label of a span that has none yet.
pub(super) const NEW: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Label {
    /// A label of the same group, nearer to the root; never larger than the label itself.
    parent: u32,
    /// Row of the strip in which the label began; unused for labels of open defects.
    row: u32,
    /// Marked pixels.
    area: u64,
}

/// Disjoint sets of labels. The root of a group is its least label, which holds the group's first pixel
/// in scan order.
#[derive(Debug, Default)]
pub(super) struct Labels {
    labels: Vec<Label>,
}

impl Labels {
    pub(super) fn clear(&mut self) {
        self.labels.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Adds a group that begins in row `row` with `area` pixels.
    pub(super) fn add(&mut self, row: u32, area: u64) -> u32 {
        let label = self.labels.len() as u32;
        self.labels.push(Label {
            parent: label,
            row,
            area,
        });
        label
    }

    pub(super) fn row(&self, label: usize) -> u32 {
        self.labels[label].row
    }

    pub(super) fn area(&self, label: usize) -> u64 {
        self.labels[label].area
    }

    pub(super) fn is_root(&self, label: usize) -> bool {
        self.labels[label].parent as usize == label
    }

    /// The least label of a group. Halves the path, so any sequence of calls takes near-linear time.
    pub(super) fn root(&mut self, mut label: u32) -> u32 {
        loop {
            let parent = self.labels[label as usize].parent;
            if parent == label {
                return label;
            }
            let grandparent = self.labels[parent as usize].parent;
            self.labels[label as usize].parent = grandparent;
            label = grandparent;
        }
    }

    /// Joins the group whose root is `root` with the group of `label`; returns the common root.
    fn join(&mut self, root: u32, label: u32) -> u32 {
        let other = self.root(label);
        let (least, most) = (root.min(other), root.max(other));
        self.labels[most as usize].parent = least;
        least
    }

    /// Gives labels to the spans of row `y`, which are [`NEW`]: those that touch spans of the row before, `front`,
    /// take their label. `area` gives the marked pixels between two columns.
    pub(super) fn connect(
        &mut self,
        y: u32,
        touches: &[Touch],
        front: &[Span],
        spans: &mut [Span],
        area: impl Fn(u32, u32) -> u64,
    ) {
        let (mut at, mut label) = (0, 0);
        for touch in touches {
            let root = self.root(front[touch.above as usize - 1].label);
            // A choice without a branch: whether a span touches one more is a matter of chance.
            let known = if touch.span == at { label } else { root };
            if known != root {
                self.labels[known.max(root) as usize].parent = known.min(root);
            }
            label = known.min(root);
            at = touch.span;
            spans[at as usize - 1].label = label;
        }
        for span in spans {
            let area = area(span.x0, span.x1);
            if span.label == NEW {
                span.label = self.add(y, area);
            } else {
                self.labels[span.label as usize].area += area;
            }
        }
    }

    /// Appends the labels of a band below; returns the label that its label 0 becomes.
    pub(super) fn append(&mut self, below: &Self) -> usize {
        let first = self.labels.len();
        self.labels.extend(below.labels.iter().map(|label| Label {
            parent: label.parent + first as u32,
            ..*label
        }));
        first
    }

    /// Joins the groups of the spans of two rows that touch. The labels of the row `below` count from `first`.
    pub(super) fn join_rows(&mut self, above: &[Span], below: &[Span], first: usize) {
        for_touches(above, below, |touch| {
            let root = self.root(below[touch.span as usize - 1].label + first as u32);
            self.join(root, above[touch.above as usize - 1].label);
        });
    }

    /// Makes every label point to its root, and adds up the areas.
    pub(super) fn flatten(&mut self) {
        for label in 0..self.labels.len() {
            let Label { parent, area, .. } = self.labels[label];
            if parent as usize != label {
                // A parent comes before its labels and points to the root already.
                let root = self.labels[parent as usize].parent;
                self.labels[root as usize].area += area;
                self.labels[label].parent = root;
            }
        }
    }

    /// The root of a label, after [`Self::flatten`].
    pub(super) fn flat_root(&self, label: usize) -> usize {
        self.labels[label].parent as usize
    }
}
