//! Disjoint sets.

use super::Blob;

/// Disjoint sets of the integers from 0, each set a tree whose root is its least member.
#[derive(Debug, Default)]
pub(super) struct Forest {
    /// A member nearer to the root; never larger than the member itself.
    parents: Vec<u32>,
}

impl Forest {
    /// Makes each integer below `len` a set of its own.
    pub(super) fn reset(&mut self, len: usize) {
        self.parents.clear();
        self.parents.extend((0..).take(len));
    }

    /// Adds the next integer as a set of its own, and returns it.
    pub(super) fn grow(&mut self) -> u32 {
        let member = self.parents.len() as u32;
        self.parents.push(member);
        member
    }

    /// The least member of a set.
    ///
    /// Halves the path to the root, so any sequence of calls takes near-linear time.
    pub(super) fn root(&mut self, mut member: u32) -> u32 {
        loop {
            let parent = self.parents[member as usize];
            if parent == member {
                return member;
            }
            let grandparent = self.parents[parent as usize];
            self.parents[member as usize] = grandparent;
            member = grandparent;
        }
    }

    /// Joins the set of `member` with the set whose root is `root`; returns the common root.
    pub(super) fn join(&mut self, root: u32, member: u32) -> u32 {
        let other = self.root(member);
        let (least, most) = if other < root {
            (other, root)
        } else {
            (root, other)
        };
        self.parents[most as usize] = least;
        least
    }

    /// Sums the blobs of each set; sets are numbered in the order of their least members.
    ///
    /// `blobs` has one blob per member before and one per set after. Afterwards only
    /// [`Self::number`], [`Self::numbers`] and [`Self::reset`] are valid. Linear time.
    pub(super) fn fold(&mut self, blobs: &mut Vec<Blob>) {
        let mut sets = 0;
        for member in 0..blobs.len() {
            let parent = self.parents[member] as usize;
            if parent == member {
                blobs[sets] = blobs[member];
                self.parents[member] = sets as u32;
                sets += 1;
            } else {
                // A parent comes before its members and has its number already.
                let number = self.parents[parent];
                let blob = blobs[member];
                blobs[number as usize].add(&blob);
                self.parents[member] = number;
            }
        }
        blobs.truncate(sets);
    }

    /// The number of the member's set, after [`Self::fold`].
    pub(super) fn number(&self, member: u32) -> u32 {
        self.parents[member as usize]
    }

    /// By member: the number of its set, after [`Self::fold`].
    pub(super) fn numbers(&mut self) -> &mut [u32] {
        &mut self.parents
    }
}
