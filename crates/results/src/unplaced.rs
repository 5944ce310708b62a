//! Regions that follow a part, where the part is not known.

use std::fmt;

/// Why it is not known where the regions of a frame lie, if they follow a part that an element ahead finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unplaced {
    /// No element ahead has compared the frame with a model.
    NoPlace,
    /// The frame does not match the model.
    Unmatched,
    /// The frame was cropped, mirrored, turned or brought to another shape since the part was found.
    Moved,
    /// All regions lie outside the frame.
    Outside,
}

impl Unplaced {
    const ALL: [Self; 4] = [Self::NoPlace, Self::Unmatched, Self::Moved, Self::Outside];

    /// The name in metas and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoPlace => "no-place",
            Self::Unmatched => "unmatched",
            Self::Moved => "moved",
            Self::Outside => "outside",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.name() == name)
    }
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPlace => {
                "no element ahead has looked for the part that the regions follow; link a clreference with a model and \
                 output=frame ahead"
            }
            Self::Unmatched => "the part that the regions follow was not found in the frame",
            Self::Moved => {
                "the frame was cropped, mirrored, turned or brought to another shape after the part was found; link this \
                 element behind clreference"
            }
            Self::Outside => "the regions follow the part, and lie outside the frame",
        })
    }
}
