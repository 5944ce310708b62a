//! The comparison of a surface with what good frames have shown: its channels, and the model that is learned.
//!
//! # Source
//! docs/semantics.md, "Surfaces".

mod learn;

use super::texture::{TILE, threshold_q8};
pub use learn::Samples;

/// Number of features of a cell.
pub const FEATURES: usize = 27;
/// Number of values that a cell's features are projected to.
pub const DIMENSIONS: usize = 12;
/// Number of prototypes.
pub const PROTOTYPES: usize = 128;
/// Side of a cell, px.
pub const CELL: usize = 4;
/// Pixels at each border that are not judged.
pub const BORDER: usize = 8;
/// Cells at each border that are not judged.
pub const BORDER_CELLS: usize = BORDER / CELL;
/// Rows of a web below each row on which its marks depend. The novelty of a cell takes in the cells beside it, and theirs the
/// contrast of four tiles more. The last of these is whole if the web goes on for a tile behind it, and its cells need less
/// than a tile more.
pub const ROWS_BELOW: usize = 6 * TILE + CELL;
/// The same above each row: the last tile of a web may have nearly two of them.
pub const ROWS_ABOVE: usize = ROWS_BELOW + TILE;
/// Number of directions of lines.
pub const DIRECTIONS: usize = 8;
/// Steps along x and y from one box of a line to the next, by direction, px.
pub const STEPS: [[i32; 2]; DIRECTIONS] = [
    [3, 0],
    [3, 1],
    [2, 2],
    [1, 3],
    [0, 3],
    [-1, 3],
    [-2, 2],
    [-3, 1],
];
/// Number of channels: novelty, dark lines and bright lines.
pub const CHANNELS: usize = 1 + 2 * DIRECTIONS;
/// Bits of a channel's number beside its excess.
pub const CHANNEL_BITS: u32 = 5;
/// Number of the channel of dark lines in the first direction.
pub const FIRST_DARK: usize = 1;
/// Number of the channel of bright lines in the first direction.
pub const FIRST_BRIGHT: usize = FIRST_DARK + DIRECTIONS;
/// Names of the channels.
pub const CHANNEL_NAMES: [&str; CHANNELS] = [
    "novelty", "dark-0", "dark-1", "dark-2", "dark-3", "dark-4", "dark-5", "dark-6", "dark-7",
    "bright-0", "bright-1", "bright-2", "bright-3", "bright-4", "bright-5", "bright-6", "bright-7",
];
/// One spread of a projected value.
pub const SPREAD: i32 = 32;
/// Unit of the novelty: a mean squared spread in each dimension, of 3x3 cells.
pub const NOVELTY_UNIT: u32 = 9 * DIMENSIONS as u32 * (SPREAD * SPREAD) as u32;
/// Squared distances to a prototype are cut off here.
pub const FARTHEST: u32 = 1 << 24;
/// Largest novelty, in its units.
pub const MOST_NOVELTY: f64 = 9.0 * FARTHEST as f64 / NOVELTY_UNIT as f64;

/// Bounds of projected values, and of those of prototypes.
const MOST_VALUE: i32 = 1023;
/// Bounds of weights.
const MOST_WEIGHT: i32 = 8191;
/// Bounds of a feature less its mean.
const MOST_FEATURE: i32 = 4095;

/// The features of a cell.
pub type Features = [i16; FEATURES];
/// The projected features of a cell.
pub type Projected = [i32; DIMENSIONS];

/// The channels that judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelsInUse {
    /// Novelty.
    pub novelty: bool,
    /// Dark lines of all directions.
    pub dark_lines: bool,
    /// Bright lines of all directions.
    pub bright_lines: bool,
}

impl ChannelsInUse {
    /// Whether lines are looked for.
    pub fn has_lines(self) -> bool {
        self.dark_lines || self.bright_lines
    }

    /// The numbers of the channels, in order.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..CHANNELS).filter(move |&channel| match channel {
            0 => self.novelty,
            FIRST_DARK..FIRST_BRIGHT => self.dark_lines,
            _ => self.bright_lines,
        })
    }

    /// The limits of all channels in 1/256 from those of the channels in use, in order; `None` for the others.
    ///
    /// # Errors
    /// A sentence for another number of limits, or one that is not a number in its range.
    pub fn limits_q8(self, limits: &[f64]) -> Result<[Option<u32>; CHANNELS], String> {
        let count = self.numbers().count();
        let q8: Vec<u32> = limits.iter().copied().map_while(threshold_q8).collect();
        if q8.len() != count || limits.len() != count {
            let names: Vec<&str> = self
                .numbers()
                .map(|channel| CHANNEL_NAMES[channel])
                .collect();
            return Err(format!(
                "{limits:?} do not fit the channels; set {count} numbers from 0 to {} ({}), or learn them",
                super::texture::MAX_THRESHOLD,
                names.join(", ")
            ));
        }
        let mut all = [None; CHANNELS];
        for (channel, limit) in self.numbers().zip(q8) {
            all[channel] = Some(limit);
        }
        Ok(all)
    }
}

/// What good frames have shown: how features are projected, and the prototypes of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    mean: [i32; FEATURES],
    weights: [Projected; FEATURES],
    prototypes: Vec<Projected>,
}

impl Model {
    /// A model of [`FEATURES`] means, [`DIMENSIONS`] weights of each feature, and [`PROTOTYPES`] prototypes.
    ///
    /// # Errors
    /// A sentence for other lengths, and for numbers beyond the definition's bounds.
    pub fn new(
        mean: [i32; FEATURES],
        weights: [Projected; FEATURES],
        prototypes: Vec<Projected>,
    ) -> Result<Self, String> {
        let check = |name, values: &[i32], least, most| match values
            .iter()
            .find(|value| !(least..=most).contains(*value))
        {
            Some(value) => Err(format!(
                "{name} has {value}, but only {least} to {most} fit"
            )),
            None => Ok(()),
        };
        check("mean", &mean, i16::MIN.into(), i16::MAX.into())?;
        check("weights", weights.as_flattened(), -MOST_WEIGHT, MOST_WEIGHT)?;
        check(
            "prototypes",
            prototypes.as_flattened(),
            -MOST_VALUE,
            MOST_VALUE,
        )?;
        if prototypes.len() != PROTOTYPES {
            return Err(format!(
                "there are {} prototypes instead of {PROTOTYPES}",
                prototypes.len()
            ));
        }
        Ok(Self {
            mean,
            weights,
            prototypes,
        })
    }

    /// Means of the features.
    pub fn mean(&self) -> &[i32; FEATURES] {
        &self.mean
    }

    /// Weights of the features, by feature.
    pub fn weights(&self) -> &[Projected; FEATURES] {
        &self.weights
    }

    /// The prototypes, [`PROTOTYPES`] of them.
    pub fn prototypes(&self) -> &[Projected] {
        &self.prototypes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ChannelsInUse = ChannelsInUse {
        novelty: true,
        dark_lines: true,
        bright_lines: true,
    };

    #[test]
    fn limits_belong_to_the_channels_in_use() {
        let limits = (0..CHANNELS).map(|k| k as f64 / 2.0).collect::<Vec<_>>();
        let all = ALL.limits_q8(&limits).expect("limits");
        assert_eq!(all[3], Some(384));
        let bright = ChannelsInUse {
            novelty: false,
            dark_lines: false,
            ..ALL
        };
        let some = bright.limits_q8(&limits[..8]).expect("limits");
        assert_eq!((some[8], some[9], some[16]), (None, Some(0), Some(896)));
        let wrong = [
            &limits[..7],
            &limits[..9],
            &[f64::NAN; 8],
            &[-1.0; 8],
            &[7e4; 8],
        ];
        for limits in wrong {
            let why = bright.limits_q8(limits).expect_err("no limits");
            assert!(
                why.contains("set 8 numbers from 0 to 65535 (bright-0, "),
                "{why}"
            );
        }
    }

    #[test]
    fn model_beyond_its_bounds_is_refused() {
        let new = |mean, weight, prototype, count| {
            let prototypes = vec![[prototype; DIMENSIONS]; count];
            Model::new(
                [mean; FEATURES],
                [[weight; DIMENSIONS]; FEATURES],
                prototypes,
            )
        };
        assert!(new(-32_768, 8191, -1023, PROTOTYPES).is_ok());
        for (model, part) in [
            (new(32_768, 0, 0, PROTOTYPES), "mean has 32768"),
            (new(0, -8192, 0, PROTOTYPES), "weights has -8192"),
            (new(0, 0, 1024, PROTOTYPES), "prototypes has 1024"),
            (new(0, 0, 0, PROTOTYPES - 1), "127 prototypes"),
        ] {
            assert!(model.expect_err("no model").contains(part), "{part}");
        }
    }
}
