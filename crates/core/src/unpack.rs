//! What cameras send: packed samples and Bayer pictures, and what they are unpacked to.

use crate::ClError;
use crate::layout::SampleType;

/// Samples of 10 or 12 bits without padding between them. The first two are streams of bits, the others
/// share a byte between two samples.
///
/// # Source
/// EMVA, GenICam Pixel Format Naming Convention 2.4; `Packed` also GigE Vision 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Sample i begins at bit 10 i, the least significant bit first.
    Mono10p,
    /// Sample i begins at bit 12 i, the least significant bit first.
    Mono12p,
    /// Bytes a, b, c hold `a << 2 | (b & 3)` and `c << 2 | (b >> 4 & 3)`.
    Mono10Packed,
    /// Bytes a, b, c hold `a << 4 | (b & 15)` and `c << 4 | b >> 4`.
    Mono12Packed,
}

impl Packing {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Mono10p,
        Self::Mono12p,
        Self::Mono10Packed,
        Self::Mono12Packed,
    ];

    /// The name in the Pixel Format Naming Convention.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mono10p => "Mono10p",
            Self::Mono12p => "Mono12p",
            Self::Mono10Packed => "Mono10Packed",
            Self::Mono12Packed => "Mono12Packed",
        }
    }

    /// Bits of a sample.
    pub fn bits(self) -> u32 {
        match self {
            Self::Mono10p | Self::Mono10Packed => 10,
            Self::Mono12p | Self::Mono12Packed => 12,
        }
    }

    /// Samples of the shortest row of whole bytes; a group.
    pub fn group_samples(self) -> usize {
        match self {
            Self::Mono10p => 4,
            Self::Mono12p | Self::Mono10Packed | Self::Mono12Packed => 2,
        }
    }

    /// Bytes of a group.
    pub fn group_bytes(self) -> usize {
        match self {
            Self::Mono10p => 5,
            Self::Mono12p | Self::Mono10Packed | Self::Mono12Packed => 3,
        }
    }

    /// Bytes of a row of `width` samples.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a row that ends inside a byte, or is too long.
    pub fn row_bytes(self, width: usize) -> Result<usize, ClError> {
        let samples = self.group_samples();
        if !width.is_multiple_of(samples) {
            return Err(ClError::Refused(format!(
                "a row of {width} samples of {} ends inside a byte; set the camera's Width to a multiple of \
                 {samples}, such as {}",
                self.name(),
                (width - width % samples).max(samples)
            )));
        }
        (width / samples)
            .checked_mul(self.group_bytes())
            .ok_or_else(|| ClError::Refused(format!("a row of {width} samples is too long")))
    }
}

/// The colours of the upper left 2 x 2 samples, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Blue, green; green, red.
    Bggr,
    /// Green, blue; red, green.
    Gbrg,
    /// Green, red; blue, green.
    Grbg,
    /// Red, green; green, blue.
    Rggb,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bggr, Self::Gbrg, Self::Grbg, Self::Rggb];

    /// The name in caps of `video/x-bayer`; those of deeper samples append the bits and the order of bytes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bggr => "bggr",
            Self::Gbrg => "gbrg",
            Self::Grbg => "grbg",
            Self::Rggb => "rggb",
        }
    }

    /// Column and row of the first red sample, each 0 or 1.
    pub fn red(self) -> [usize; 2] {
        match self {
            Self::Rggb => [0, 0],
            Self::Grbg => [1, 0],
            Self::Gbrg => [0, 1],
            Self::Bggr => [1, 1],
        }
    }
}

/// How the two colours that a Bayer sample lacks are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Demosaic {
    /// The mean of the two or four nearest samples of the colour.
    #[default]
    Bilinear,
    /// The same with the gradient of the sample's own colour, from 5 x 5 samples.
    Gradient,
}

impl Demosaic {
    /// The fewest columns and rows of a frame: the border is mirrored without repeating the edge.
    pub fn least_size(self) -> usize {
        match self {
            Self::Bilinear => 2,
            Self::Gradient => 3,
        }
    }
}

/// How the samples of a frame are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Grey samples without padding.
    Packed(Packing),
    /// A colour per sample, in one byte (8 bits) or in the lower bits of two (10, 12, 14 or 16 bits).
    Bayer {
        /// Which colour is where.
        pattern: Pattern,
        /// Bits of a sample.
        bits: u32,
        /// The most significant byte of two comes first.
        big_endian: bool,
    },
}

impl Encoding {
    /// Bits of a sample.
    pub fn bits(self) -> u32 {
        match self {
            Self::Packed(packing) => packing.bits(),
            Self::Bayer { bits, .. } => bits,
        }
    }

    /// How a Bayer sample is stored; `None` for packed samples.
    pub fn sample(self) -> Option<SampleType> {
        match self {
            Self::Packed(_) => None,
            Self::Bayer { bits: 8, .. } => Some(SampleType::U8),
            Self::Bayer {
                big_endian: true, ..
            } => Some(SampleType::U16Be),
            Self::Bayer { .. } => Some(SampleType::U16Le),
        }
    }

    /// Bytes of a row of `width` samples, without padding.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a row that ends inside a byte, or is too long.
    pub fn row_bytes(self, width: usize) -> Result<usize, ClError> {
        match (self, self.sample()) {
            (Self::Packed(packing), _) => packing.row_bytes(width),
            (_, sample) => width
                .checked_mul(sample.map_or(1, SampleType::bytes))
                .ok_or_else(|| ClError::Refused(format!("a row of {width} samples is too long"))),
        }
    }

    /// Whether frames of `size` (width and height) can be unpacked to `output`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for rows that end inside a byte, frames that are too small, bits that Bayer
    /// frames do not have, or an output in colour of grey samples.
    pub fn check(
        self,
        demosaic: Demosaic,
        output: Output,
        [width, height]: [usize; 2],
    ) -> Result<(), ClError> {
        self.row_bytes(width)?;
        let refuse = |text| Err(ClError::Refused(text));
        match self {
            Self::Packed(packing) => {
                if output.is_colour() {
                    return refuse(format!(
                        "{} is grey and cannot become {}; ask for GRAY8 or GRAY16_LE",
                        packing.name(),
                        output.name()
                    ));
                }
                if width == 0 || height == 0 {
                    return refuse(format!("a frame of {width}x{height} has no samples"));
                }
            }
            Self::Bayer { bits, .. } => {
                if !matches!(bits, 8 | 10 | 12 | 14 | 16) {
                    return refuse(format!(
                        "Bayer samples have 8, 10, 12, 14 or 16 bits, not {bits}"
                    ));
                }
                let least = demosaic.least_size();
                if width < least || height < least {
                    let other = match demosaic {
                        Demosaic::Gradient
                            if width.min(height) >= Demosaic::Bilinear.least_size() =>
                        {
                            ", or set demosaic=bilinear"
                        }
                        _ => "",
                    };
                    return refuse(format!(
                        "a Bayer frame of {width}x{height} is too small; send at least \
                         {least}x{least}{other}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What a frame is unpacked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// Red, green, blue, a byte each.
    Rgb,
    /// Blue, green, red, a byte each.
    Bgr,
    /// Red, green, blue and 255, a byte each.
    Rgbx,
    /// A byte.
    Gray8,
    /// Two bytes, least significant first: 0 to 2^bits - 1.
    Gray16Le,
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Rgb,
        Self::Bgr,
        Self::Rgbx,
        Self::Gray8,
        Self::Gray16Le,
    ];

    /// The name of GStreamer's video format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rgb => "RGB",
            Self::Bgr => "BGR",
            Self::Rgbx => "RGBx",
            Self::Gray8 => "GRAY8",
            Self::Gray16Le => "GRAY16_LE",
        }
    }

    /// Whether a pixel has red, green and blue.
    pub fn is_colour(self) -> bool {
        matches!(self, Self::Rgb | Self::Bgr | Self::Rgbx)
    }

    /// Bytes of a pixel.
    pub fn pixel_bytes(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Rgbx => 4,
            Self::Gray8 => 1,
            Self::Gray16Le => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_bytes_of_packings() {
        let bytes = |packing: Packing, width| packing.row_bytes(width).expect("whole bytes");
        assert_eq!(bytes(Packing::Mono10p, 1920), 2400);
        assert_eq!(bytes(Packing::Mono12p, 1922), 2883);
        assert_eq!(bytes(Packing::Mono10Packed, 6), 9);
        assert_eq!(bytes(Packing::Mono12Packed, 2), 3);
    }

    #[test]
    fn rows_that_end_inside_a_byte_are_refused() {
        for (packing, width, near) in [
            (Packing::Mono10p, 1922, "1920"),
            (Packing::Mono12p, 641, "640"),
            (Packing::Mono10Packed, 1, "2"),
            (Packing::Mono12Packed, 3, "2"),
        ] {
            let error = packing.row_bytes(width).expect_err("inside a byte");
            let text = error.to_string();
            assert!(text.contains("ends inside a byte"), "{text}");
            assert!(text.ends_with(&format!("such as {near}")), "{text}");
        }
        assert!(Packing::Mono12p.row_bytes(usize::MAX - 1).is_err());
    }

    #[test]
    fn what_cannot_be_unpacked_is_refused() {
        let bayer = |bits| Encoding::Bayer {
            pattern: Pattern::Rggb,
            bits,
            big_endian: false,
        };
        let packed = Encoding::Packed(Packing::Mono12p);
        let (linear, gradient) = (Demosaic::Bilinear, Demosaic::Gradient);
        assert_eq!(bayer(8).check(linear, Output::Rgb, [2, 2]), Ok(()));
        assert_eq!(bayer(16).check(gradient, Output::Gray16Le, [3, 3]), Ok(()));
        assert_eq!(packed.check(gradient, Output::Gray8, [2, 1]), Ok(()));
        for (refused, says) in [
            (bayer(8).check(linear, Output::Rgb, [1, 9]), "at least 2x2"),
            (
                bayer(8).check(gradient, Output::Rgb, [9, 2]),
                "set demosaic=bilinear",
            ),
            (bayer(9).check(linear, Output::Rgb, [9, 9]), "not 9"),
            (packed.check(linear, Output::Bgr, [4, 4]), "GRAY16_LE"),
            (packed.check(linear, Output::Gray8, [5, 4]), "inside a byte"),
            (packed.check(linear, Output::Gray8, [4, 0]), "no samples"),
        ] {
            let text = refused.expect_err(says).to_string();
            assert!(text.contains(says), "{text}");
        }
    }
}
