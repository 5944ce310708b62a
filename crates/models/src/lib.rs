//! Model files: what an element learned from frames, as arrays of `u32` in an `.npz` file of NumPy.
//!
//! An `.npz` file is a ZIP archive with one `.npy` file per array, stored (`numpy.savez`) or deflated
//! (`numpy.savez_compressed`). [`ModelFile`] reads both; [`write`](fn@write) stores.
//!
//! A model file may come from anywhere. The reader allocates no more than a sane file of that length
//! can hold, checks every size before it reads and every checksum after it has read, and loads no
//! pickles. All errors are sentences that name the file, the array, and what to do.

use std::fmt;

mod npy;
mod read;
mod write;

pub use read::{MAX_SAMPLES, ModelFile};
pub use write::{ArrayRef, write};

/// An array with `D` dimensions, in C order: the last index changes fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array<const D: usize> {
    /// Length of each dimension; none is 0.
    pub shape: [usize; D],
    /// As many samples as the product of the shape.
    pub samples: Vec<u32>,
}

/// Why a model file cannot be read or written: a sentence for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    text: String,
    is_missing: bool,
}

impl ModelError {
    fn new(text: String) -> Self {
        Self {
            text,
            is_missing: false,
        }
    }

    /// Whether there is no file of that name, so that a model may be learned and written there.
    pub fn is_missing(&self) -> bool {
        self.is_missing
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ModelError {}
