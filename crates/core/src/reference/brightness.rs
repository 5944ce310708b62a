//! The frame's brightness, brought to the model's.

use super::Totals;

/// How the brightness of frames follows the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalize {
    /// Not at all.
    #[default]
    None,
    /// The mean.
    Offset,
    /// The mean and the standard deviation.
    Gain,
}

/// Sums of a frame's samples over the judged pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameSums {
    /// Sum of the samples.
    pub sum: u64,
    /// Sum of their squares.
    pub squares: u128,
}

/// `s'' = (scale·s' + offset + 2048) >> 12`, clamped to the samples' range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brightness {
    /// `A`
    pub scale: i32,
    /// `B`
    pub offset: i32,
}

impl Default for Brightness {
    /// Samples stay.
    fn default() -> Self {
        Self {
            scale: UNIT_SCALE,
            offset: 0,
        }
    }
}

/// [`Brightness::scale`] of a frame that stays as it is.
pub const UNIT_SCALE: i32 = 4096;
const SCALES: [f64; 2] = [2048.0, 8192.0];

impl Brightness {
    /// The factors that bring a frame to the model; both sums are over the same pixels.
    pub fn new(normalize: Normalize, model: &Totals, frame: &FrameSums) -> Self {
        if normalize == Normalize::None || model.pixels == 0 {
            return Self::default();
        }
        let n = model.pixels;
        let model_mean = model.sum as f64 / 256.0 / n as f64;
        let frame_mean = frame.sum as f64 / n as f64;
        let scale = if normalize == Normalize::Gain {
            let of_model = spread(n, model.sum, model.squares) / 256.0;
            let of_frame = spread(n, frame.sum, frame.squares);
            if of_frame > 0.0 {
                let scale = (f64::from(UNIT_SCALE) * (of_model / of_frame)).round();
                scale.clamp(SCALES[0], SCALES[1]) as i32
            } else {
                UNIT_SCALE
            }
        } else {
            UNIT_SCALE
        };
        let offset = f64::from(UNIT_SCALE) * model_mean - f64::from(scale) * frame_mean;
        Self {
            scale,
            offset: offset.round() as i32,
        }
    }

    /// Whether samples stay as they are.
    pub fn is_unit(&self) -> bool {
        *self == Self::default()
    }
}

/// The population standard deviation from exact sums.
fn spread(n: u64, sum: u64, squares: u128) -> f64 {
    let difference = u128::from(n) * squares - u128::from(sum) * u128::from(sum);
    (difference as f64).sqrt() / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(samples: &[u64]) -> FrameSums {
        FrameSums {
            sum: samples.iter().sum(),
            squares: samples.iter().map(|&s| u128::from(s * s)).sum(),
        }
    }

    fn model(samples: &[u64]) -> Totals {
        Totals {
            pixels: samples.len() as u64,
            sum: samples.iter().map(|s| 256 * s).sum(),
            squares: samples.iter().map(|&s| u128::from(65_536 * s * s)).sum(),
        }
    }

    #[test]
    fn brightness_brings_mean_and_deviation_to_the_models() {
        let (reference, half) = (model(&[100, 140, 180]), frame(&[50, 70, 90]));
        let new = |normalize| Brightness::new(normalize, &reference, &half);
        assert!(new(Normalize::None).is_unit());
        let offset = Brightness {
            scale: 4096,
            offset: 70 * 4096,
        };
        assert_eq!(new(Normalize::Offset), offset);
        assert_eq!(
            new(Normalize::Gain),
            Brightness {
                scale: 8192,
                offset: 0
            }
        );
        // The scale is kept within a half and twice; a flat frame is only shifted.
        let gain = |samples: &[u64]| Brightness::new(Normalize::Gain, &reference, &frame(samples));
        assert_eq!(gain(&[139, 140, 141]).scale, 8192);
        assert_eq!(gain(&[0, 500, 1000]).scale, 2048);
        assert_eq!(
            gain(&[100; 3]),
            Brightness {
                scale: 4096,
                offset: 40 * 4096
            }
        );
        assert!(Brightness::new(Normalize::Gain, &Totals::default(), &half).is_unit());
    }
}
