//! Disjoint sets.

use super::Blob;

/// Disjoint sets of the integers from 0, each set a tree whose root is its least member.
#[derive(Debug, Default)]
pub(super) struct Forest {
    /// Nearer to the root, never above the member itself.
    parents: Vec<u32>,
}

impl Forest {
    /// Makes sets of one member each of the integers below `len`.
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
    /// Halves the path that it takes: any sequence of calls is near-linear.
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

    /// Joins the set of `member` with the one whose root is `root`, and returns the root of both.
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

    /// Adds up the blobs of each set, numbered in the order of their least members.
    ///
    /// One blob per member before, one per set after. Of the forest only [`Self::number`] and
    /// [`Self::reset`] have a meaning then. Linear.
    pub(super) fn fold(&mut self, blobs: &mut Vec<Blob>) {
        let mut sets = 0;
        for member in 0..blobs.len() {
            let parent = self.parents[member] as usize;
            if parent == member {
                blobs[sets] = blobs[member];
                self.parents[member] = sets as u32;
                sets += 1;
            } else {
                // A parent comes before its members, so that it has its number already.
                let number = self.parents[parent];
                let blob = blobs[member];
                blobs[number as usize].add(&blob);
                self.parents[member] = number;
            }
        }
        blobs.truncate(sets);
    }

    /// The number of the set of `member`, after [`Self::fold`].
    pub(super) fn number(&self, member: u32) -> u32 {
        self.parents[member as usize]
    }

    /// The numbers of all members' sets, after [`Self::fold`].
    pub(super) fn numbers(&mut self) -> &mut [u32] {
        &mut self.parents
    }
}
