//! A defect, and its record in `defects-data`.

/// Bytes per record. The first 40 bytes are a record of version 1, whose x and y were unsigned.
pub(super) const RECORD: usize = 64;
const RECORD_OF_VERSION_1: usize = 40;

/// One defect.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Defect {
    /// Left edge of its box, px.
    pub x: i32,
    /// Top edge of its box, px; negative if the defect began in an earlier strip of the web.
    pub y: i32,
    /// Width of its box, px.
    pub width: u32,
    /// Height of its box, px.
    pub height: u32,
    /// Marked pixels.
    pub area: u32,
    /// Mean of its pixels' centres along x, px; the centre of pixel 0 is 0.5.
    pub centroid_x: f32,
    /// Mean of its pixels' centres along y, px.
    pub centroid_y: f32,
    /// Mean difference of its pixels, grey levels; positive is brighter than the neighbours.
    pub mean_difference: f32,
    /// Difference of largest magnitude, grey levels.
    pub peak_difference: f32,
    /// 1 if all its pixels are brighter, -1 if all are darker, otherwise 0.
    pub polarity: i32,
    /// Number of the defect, counted from 1 since the element's start; 0 in results of version 1.
    pub id: u32,
    /// [`Self::OTHER`], [`Self::PATTERN_MISSING`], or the number of a class, from 1.
    pub class: u16,
    /// [`Self::CONTINUED`] and [`Self::CUT`]; from bit [`Self::PART_SHIFT`] on the [`Self::part`], then the [`Self::level`], then
    /// the [`Self::component`].
    pub flags: u16,
    /// Major axis of the ellipse with the same second moments, px; 0 in results of version 1.
    pub major_axis: f32,
    /// Minor axis of that ellipse, px.
    pub minor_axis: f32,
    /// Angle of the major axis, radians from +x towards +y.
    pub orientation: f32,
    /// Pixel sides between a pixel of the defect and a pixel that is not of it.
    pub boundary_length: u32,
}

impl Defect {
    /// Class of a defect that no rule describes.
    pub const OTHER: u16 = 0;
    /// Class of places where the pattern is missing.
    pub const PATTERN_MISSING: u16 = u16::MAX;
    /// Flag: the rest of a defect that was cut.
    pub const CONTINUED: u16 = 1;
    /// Flag: the defect is longer than a list can wait for, so it was closed before its end.
    pub const CUT: u16 = 2;

    /// First of the six bits of [`Self::flags`] with the part.
    pub const PART_SHIFT: u32 = 2;
    pub(super) const PART_BITS: u16 = 0x3f << Self::PART_SHIFT;
    /// First of the five bits of [`Self::flags`] with the level.
    pub const LEVEL_SHIFT: u32 = 8;
    /// The bits of [`Self::flags`] with the level.
    pub(super) const LEVEL_BITS: u16 = 0x1f << Self::LEVEL_SHIFT;
    /// The first of the two bits of [`Self::flags`] with the component, counted from 1.
    pub const COMPONENT_SHIFT: u32 = 13;
    pub(super) const COMPONENT_BITS: u16 = 3 << Self::COMPONENT_SHIFT;

    /// The number of the part that has it, from 1; 0 where frames are compared whole.
    pub fn part(&self) -> u8 {
        ((self.flags & Self::PART_BITS) >> Self::PART_SHIFT) as u8
    }

    /// The bits of [`Self::flags`] for a part.
    pub fn part_flags(part: u32) -> u16 {
        (part as u16) << Self::PART_SHIFT & Self::PART_BITS
    }

    /// The finest level that marks one of its pixels: 0 for single pixels, k for the means of blocks of
    /// 2^k pixels a side. 0 also if the pattern is missing at all its pixels.
    pub fn level(&self) -> u8 {
        ((self.flags & Self::LEVEL_BITS) >> Self::LEVEL_SHIFT) as u8
    }

    /// The component of the colour that marks most of its pixels: 0 for red, 1 for green, 2 for blue; `None` if components
    /// were not judged apart.
    pub fn component(&self) -> Option<u8> {
        let number = (self.flags & Self::COMPONENT_BITS) >> Self::COMPONENT_SHIFT;
        (number as u8).checked_sub(1)
    }

    /// The bits of [`Self::flags`] for a component.
    pub fn component_flags(component: Option<usize>) -> u16 {
        let number = component.map_or(0, |component| component as u16 + 1);
        (number << Self::COMPONENT_SHIFT) & Self::COMPONENT_BITS
    }

    /// Major axis over minor axis; infinite if the minor axis is 0.
    pub fn elongation(&self) -> f32 {
        if self.minor_axis == 0.0 {
            f32::INFINITY
        } else {
            self.major_axis / self.minor_axis
        }
    }

    /// Area over the area of the box, 0 to 1.
    pub fn fill(&self) -> f64 {
        f64::from(self.area) / (f64::from(self.width) * f64::from(self.height))
    }

    /// The record in `defects-data`: little-endian, in field order.
    fn to_bytes(self) -> [u8; RECORD] {
        let words = [
            self.x as u32,
            self.y as u32,
            self.width,
            self.height,
            self.area,
            self.centroid_x.to_bits(),
            self.centroid_y.to_bits(),
            self.mean_difference.to_bits(),
            self.peak_difference.to_bits(),
            self.polarity as u32,
            self.id,
            u32::from(self.class) | u32::from(self.flags) << 16,
            self.major_axis.to_bits(),
            self.minor_axis.to_bits(),
            self.orientation.to_bits(),
            self.boundary_length,
        ];
        let mut bytes = [0; RECORD];
        for (word, out) in words.iter().zip(bytes.chunks_exact_mut(4)) {
            out.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |i: usize| u32::from_le_bytes(words[i]);
        let float = |i: usize| f32::from_bits(word(i));
        Self {
            x: word(0) as i32,
            y: word(1) as i32,
            width: word(2),
            height: word(3),
            area: word(4),
            centroid_x: float(5),
            centroid_y: float(6),
            mean_difference: float(7),
            peak_difference: float(8),
            polarity: word(9) as i32,
            id: word(10),
            class: word(11) as u16,
            flags: (word(11) >> 16) as u16,
            major_axis: float(12),
            minor_axis: float(13),
            orientation: float(14),
            boundary_length: word(15),
        }
    }
}

/// The defects as `defects-data`.
pub(super) fn to_records(defects: &[Defect]) -> Vec<u8> {
    defects.iter().flat_map(|d| d.to_bytes()).collect()
}

/// The defects in a `defects-data` of this version; `None` if it does not consist of whole records.
pub(super) fn from_records(data: &[u8], version: u32) -> Option<Vec<Defect>> {
    let len = match version {
        0 => return None,
        1 => RECORD_OF_VERSION_1,
        _ => RECORD,
    };
    let records = data.chunks_exact(len);
    let is_whole = records.remainder().is_empty();
    let defects = records.map(|record| {
        let mut bytes = [0; RECORD];
        bytes[..len].copy_from_slice(record);
        Defect::from_bytes(&bytes)
    });
    is_whole.then(|| defects.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by hand from docs/metas.md.
    #[rustfmt::skip]
    const BYTES: [u8; RECORD] = [
        0x05, 0x00, 0x00, 0x00, // x 5
        0xfd, 0xff, 0xff, 0xff, // y -3
        0x07, 0x00, 0x00, 0x00, // width 7
        0x02, 0x01, 0x00, 0x00, // height 258
        0x09, 0x03, 0x00, 0x00, // area 777
        0x00, 0x00, 0x08, 0x41, // centroid x 8.5
        0x00, 0x00, 0x80, 0xbe, // centroid y -0.25
        0x00, 0x00, 0x8c, 0xc1, // mean difference -17.5
        0x00, 0x00, 0xf0, 0xc1, // peak difference -30
        0xff, 0xff, 0xff, 0xff, // polarity -1
        0x04, 0x03, 0x02, 0x01, // id 16909060
        0x02, 0x00,             // class 2
        0x03, 0x02,             // flags: continued, cut, level 2
        0x00, 0x00, 0x20, 0x41, // major axis 10
        0x00, 0x00, 0x20, 0x40, // minor axis 2.5
        0x00, 0x00, 0x40, 0xbf, // orientation -0.75
        0x60, 0x00, 0x00, 0x00, // boundary length 96
    ];

    const DEFECT: Defect = Defect {
        x: 5,
        y: -3,
        width: 7,
        height: 258,
        area: 777,
        centroid_x: 8.5,
        centroid_y: -0.25,
        mean_difference: -17.5,
        peak_difference: -30.0,
        polarity: -1,
        id: 16_909_060,
        class: 2,
        flags: Defect::CONTINUED | Defect::CUT | 2 << Defect::LEVEL_SHIFT,
        major_axis: 10.0,
        minor_axis: 2.5,
        orientation: -0.75,
        boundary_length: 96,
    };

    #[test]
    fn record_has_the_documented_bytes() {
        assert_eq!(to_records(&[DEFECT, DEFECT]), [BYTES, BYTES].concat());
        for version in [2, 3] {
            let read = from_records(&[BYTES, BYTES].concat(), version);
            assert_eq!(read, Some(vec![DEFECT, DEFECT]));
        }
    }

    #[test]
    fn record_of_version_1_has_the_first_ten_fields() {
        let mut bytes = BYTES[..40].to_vec();
        bytes[4..8].copy_from_slice(&[3, 0, 0, 0]);
        let old = Defect {
            y: 3,
            id: 0,
            class: Defect::OTHER,
            flags: 0,
            major_axis: 0.0,
            minor_axis: 0.0,
            orientation: 0.0,
            boundary_length: 0,
            ..DEFECT
        };
        assert_eq!(from_records(&bytes.repeat(3), 1), Some(vec![old; 3]));
        assert_eq!(from_records(&[], 1), Some(Vec::new()));
    }

    #[test]
    fn data_of_other_lengths_or_of_no_version_is_refused() {
        for (len, version) in [(39, 1), (41, 1), (64, 1), (63, 2), (65, 2), (40, 2), (0, 0)] {
            let read = from_records(&vec![0; len], version);
            assert_eq!(read, None, "{len} bytes of version {version}");
        }
    }

    #[test]
    fn component_is_in_the_bits_above_the_level() {
        assert_eq!(DEFECT.component(), None);
        for component in 0..3 {
            let flags = DEFECT.flags | Defect::component_flags(Some(component));
            assert_eq!(flags, DEFECT.flags | (component as u16 + 1) << 13);
            let defect = Defect { flags, ..DEFECT };
            assert_eq!(defect.component(), Some(component as u8));
            assert_eq!(defect.level(), 2);
        }
    }

    #[test]
    fn derived_features_follow_the_record() {
        assert_eq!(DEFECT.level(), 2);
        let all = Defect {
            flags: u16::MAX,
            ..DEFECT
        };
        assert_eq!(all.level(), 31);
        assert_eq!(DEFECT.elongation(), 4.0);
        assert_eq!(DEFECT.fill(), 777.0 / 1806.0);
        for major_axis in [0.0, 10.0] {
            let line = Defect {
                major_axis,
                minor_axis: 0.0,
                ..DEFECT
            };
            assert_eq!(line.elongation(), f32::INFINITY);
        }
    }
}
