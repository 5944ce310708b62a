//! The registers of the Modbus server: where each word is.
//!
//! Each camera has a block of [`BLOCK`] addresses. A camera's outputs to the PLC are input registers, and the same words are
//! holding registers [`MIRROR`] addresses higher. What the PLC writes are the first holding registers of the block.

use std::ops::Range;

use plan::MOST_CAMERAS;

/// Addresses from the first register of a camera to the first one of the next camera.
pub const BLOCK: u16 = 100;
/// The input registers are holding registers too, so many addresses higher.
pub const MIRROR: u16 = 1000;
// The blocks end where the mirror begins.
const _: () = assert!(MOST_CAMERAS == (MIRROR / BLOCK) as usize);
/// Words that a camera tells the PLC.
pub const INPUTS: usize = 29;
/// Words that the PLC tells a camera.
pub const COMMANDS: usize = 5;

/// Words that a camera tells the PLC, and those that the PLC wrote.
pub type Inputs = [u16; INPUTS];
/// Words that the PLC writes.
pub type Commands = [u16; COMMANDS];

/// Bits of the first input word.
pub mod told {
    /// Frames of the camera come and are inspected.
    pub const ONLINE: u16 = 1;
    /// The camera takes a trigger; a camera without a trigger sends results.
    pub const READY: u16 = 1 << 1;
    /// A frame waits for its outcome, or a trigger for its frame.
    pub const BUSY: u16 = 1 << 2;
    /// The trigger was taken; its number is in the registers.
    pub const TRIGGER_ACK: u16 = 1 << 3;
    /// The registers hold a result.
    pub const RESULT_VALID: u16 = 1 << 4;
    /// The outcome is `pass`.
    pub const PASS: u16 = 1 << 5;
    /// The outcome drives the machine to reject.
    pub const REJECT: u16 = 1 << 6;
    /// The outcome is `late`.
    pub const LATE: u16 = 1 << 7;
    /// A result found the queue full and was dropped.
    pub const OVERRUN: u16 = 1 << 8;
    /// Another recipe comes into force.
    pub const RECIPE_BUSY: u16 = 1 << 9;
    /// The recipe that the PLC asked for is not in force.
    pub const RECIPE_FAILED: u16 = 1 << 10;
    /// The register with the code of an error is not 0.
    pub const ERROR: u16 = 1 << 11;
    /// The page's address cannot be used: nobody sees the station's alarms.
    pub const PAGE_AWAY: u16 = 1 << 12;
}

/// Bits of the first word that the PLC writes.
pub mod wanted {
    /// Results are wanted.
    pub const ENABLE: u16 = 1;
    /// A frame is wanted.
    pub const TRIGGER: u16 = 1 << 1;
    /// The result was read.
    pub const RESULT_ACK: u16 = 1 << 2;
    /// The recipe with the number in the next register is wanted.
    pub const RECIPE_REQUEST: u16 = 1 << 3;
    /// Forget results and errors.
    pub const CLEAR: u16 = 1 << 4;
}

/// Words of one camera.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// These words of [`Inputs`].
    Inputs(usize, Range<usize>),
    /// These words of [`Commands`].
    Commands(usize, Range<usize>),
}

/// The input registers at these addresses; `None` if one of them is no register. `cameras`: how many there are.
pub fn inputs(first: u16, count: u16, cameras: usize) -> Option<Place> {
    let (camera, words) = within(first, count, cameras, INPUTS)?;
    Some(Place::Inputs(camera, words))
}

/// The holding registers at these addresses; `None` if one of them is no register.
pub fn holding(first: u16, count: u16, cameras: usize) -> Option<Place> {
    match first.checked_sub(MIRROR) {
        Some(first) => inputs(first, count, cameras),
        None => {
            let (camera, words) = within(first, count, cameras, COMMANDS)?;
            Some(Place::Commands(camera, words))
        }
    }
}

/// The camera and its words, if all addresses are within the first words of one block.
fn within(first: u16, count: u16, cameras: usize, size: usize) -> Option<(usize, Range<usize>)> {
    let camera = usize::from(first / BLOCK);
    let begin = usize::from(first % BLOCK);
    let words = begin..begin + usize::from(count);
    (camera < cameras && words.end <= size).then_some((camera, words))
}

/// A number in two registers, the high word first.
pub fn words_of(number: u32) -> [u16; 2] {
    // Each half fits.
    [(number >> 16) as u16, number as u16]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_a_block_are_found_and_those_between_are_none() {
        assert_eq!(inputs(0, 29, 1), Some(Place::Inputs(0, 0..29)));
        assert_eq!(inputs(120, 2, 2), Some(Place::Inputs(1, 20..22)));
        assert_eq!(holding(1000, 29, 1), Some(Place::Inputs(0, 0..29)));
        assert_eq!(holding(1104, 2, 2), Some(Place::Inputs(1, 4..6)));
        assert_eq!(holding(202, 3, 3), Some(Place::Commands(2, 2..5)));
        for (first, count) in [(29, 1), (0, 30), (99, 1), (100, 1), (1000, 1), (65535, 125)] {
            assert_eq!(inputs(first, count, 1), None, "{first} {count}");
        }
        for (first, count) in [(5, 1), (0, 6), (999, 2), (1029, 1), (1100, 1), (2000, 1)] {
            assert_eq!(holding(first, count, 1), None, "{first} {count}");
        }
        // The blocks of ten cameras end where the mirror begins.
        assert_eq!(
            holding(900, 5, MOST_CAMERAS),
            Some(Place::Commands(9, 0..5))
        );
        assert_eq!(
            holding(1900, 29, MOST_CAMERAS),
            Some(Place::Inputs(9, 0..29))
        );
    }
}
