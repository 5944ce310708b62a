//! The properties `pitch-x`, `pitch-y` and `lattice`: after which distances a pattern or a texture repeats.

use crate::elements::checked::CheckedValue;
use clinspect_core::{ClError, lattice::Lattice};

/// The property `lattice`, but for the name of what repeats.
pub fn lattice_blurb(what: &str) -> String {
    format!(
        "Vectors after which the {what} repeats at any angle, <ax, ay, bx, by> in pixels, x to the right and y \
         down, or one vector <ax, ay>; takes the place of pitch-x and pitch-y; empty = pitch-x and pitch-y"
    )
}

/// The vectors that are set by the property `lattice`, if any.
///
/// # Errors
/// [`ClError::Refused`] for numbers that are no lattice.
pub fn lattice_of(numbers: &CheckedValue<Vec<f64>>) -> Result<Option<Lattice>, ClError> {
    Lattice::of_numbers(&numbers.check("lattice", |numbers| Ok(numbers.clone()))?)
}

/// The property `lattice` before other settings in a message.
pub fn lattice_in_words(numbers: &CheckedValue<Vec<f64>>) -> String {
    match numbers.usable() {
        none if none.is_empty() => String::new(),
        numbers => format!("lattice={numbers:?} "),
    }
}

/// Which of the pitches along x and y are estimated: those that are set to a negative value, without a lattice.
pub fn estimated(set: [f64; 2], lattice: &CheckedValue<Vec<f64>>) -> [bool; 2] {
    set.map(|pitch| lattice.usable().is_empty() && pitch < 0.0)
}

/// The pitches in use along x and y, px: those that are set, and the known ones where a negative value asks for an estimate;
/// 0 for unknown, and with a lattice.
pub fn in_use(
    set: [f64; 2],
    lattice: &CheckedValue<Vec<f64>>,
    known: [Option<f64>; 2],
) -> [f64; 2] {
    if !lattice.usable().is_empty() {
        return [0.0; 2];
    }
    [0, 1].map(|axis| {
        if set[axis] < 0.0 {
            known[axis].unwrap_or(0.0)
        } else {
            set[axis]
        }
    })
}
