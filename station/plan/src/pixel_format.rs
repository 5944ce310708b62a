//! The pixel formats of GenICam cameras, and what GStreamer calls them.

use std::fmt;

/// A pixel format of a camera.
///
/// # Source
/// EMVA, GenICam Pixel Format Naming Convention 2.4; `Packed` also GigE Vision 1.2.
#[derive(Debug, PartialEq, Eq)]
pub struct PixelFormat {
    /// The value of the feature `PixelFormat`.
    pub name: &'static str,
    /// Media type and format of the frames. GStreamer has no format for packed samples: their frames are called
    /// `GRAY16_LE`, and only [`Self::packing`] says what the bytes are.
    pub caps: [&'static str; 2],
    /// Bits of a sample.
    pub depth: u32,
    /// Bits of a pixel.
    pub pixel_bits: u32,
    /// Property `packing` of `clunpack`.
    pub packing: Option<&'static str>,
}

const RAW: &str = "video/x-raw";
/// The media type of Bayer pictures.
pub const BAYER: &str = "video/x-bayer";

const fn raw(name: &'static str, format: &'static str, depth: u32, pixel_bits: u32) -> PixelFormat {
    PixelFormat {
        name,
        caps: [RAW, format],
        depth,
        pixel_bits,
        packing: None,
    }
}

const fn packed(
    name: &'static str,
    packing: &'static str,
    depth: u32,
    pixel_bits: u32,
) -> PixelFormat {
    PixelFormat {
        packing: Some(packing),
        ..raw(name, "GRAY16_LE", depth, pixel_bits)
    }
}

const fn bayer(name: &'static str, format: &'static str, depth: u32) -> PixelFormat {
    PixelFormat {
        name,
        caps: [BAYER, format],
        depth,
        pixel_bits: if depth == 8 { 8 } else { 16 },
        packing: None,
    }
}

/// The formats that the station knows.
pub const PIXEL_FORMATS: [PixelFormat; 31] = [
    raw("Mono8", "GRAY8", 8, 8),
    raw("Mono10", "GRAY16_LE", 10, 16),
    raw("Mono12", "GRAY16_LE", 12, 16),
    raw("Mono14", "GRAY16_LE", 14, 16),
    raw("Mono16", "GRAY16_LE", 16, 16),
    packed("Mono10p", "mono10p", 10, 10),
    packed("Mono12p", "mono12p", 12, 12),
    packed("Mono10Packed", "mono10packed", 10, 12),
    packed("Mono12Packed", "mono12packed", 12, 12),
    bayer("BayerBG8", "bggr", 8),
    bayer("BayerGB8", "gbrg", 8),
    bayer("BayerGR8", "grbg", 8),
    bayer("BayerRG8", "rggb", 8),
    bayer("BayerBG10", "bggr10le", 10),
    bayer("BayerGB10", "gbrg10le", 10),
    bayer("BayerGR10", "grbg10le", 10),
    bayer("BayerRG10", "rggb10le", 10),
    bayer("BayerBG12", "bggr12le", 12),
    bayer("BayerGB12", "gbrg12le", 12),
    bayer("BayerGR12", "grbg12le", 12),
    bayer("BayerRG12", "rggb12le", 12),
    bayer("BayerBG14", "bggr14le", 14),
    bayer("BayerGB14", "gbrg14le", 14),
    bayer("BayerGR14", "grbg14le", 14),
    bayer("BayerRG14", "rggb14le", 14),
    bayer("BayerBG16", "bggr16le", 16),
    bayer("BayerGB16", "gbrg16le", 16),
    bayer("BayerGR16", "grbg16le", 16),
    bayer("BayerRG16", "rggb16le", 16),
    raw("RGB8", "RGB", 8, 24),
    raw("BGR8", "BGR", 8, 24),
];

impl PixelFormat {
    /// The format with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PIXEL_FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether the frames need `clunpack` before the elements that inspect.
    pub fn needs_unpack(&self) -> bool {
        self.packing.is_some() || self.caps[0] == BAYER
    }

    /// The `bit-depth` of the grey frames that the elements get; `None` if their format says it.
    pub fn bit_depth(&self) -> Option<u32> {
        (self.caps == [RAW, "GRAY16_LE"] && self.depth < 16).then_some(self.depth)
    }

    /// Bytes of a frame whose rows end at a multiple of four bytes, as those of aravis' GStreamer element do.
    pub fn frame_bytes(&self, width: u64, height: u64) -> u64 {
        (width * u64::from(self.pixel_bits) / 8).next_multiple_of(4) * height
    }
}

/// As in a sentence: `Mono12p (1.5 bytes a pixel)`.
impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = f64::from(self.pixel_bits) / 8.0;
        write!(f, "{} ({})", self.name, bytes_a_pixel(bytes))
    }
}

/// As in a sentence: `1 byte a pixel`.
pub fn bytes_a_pixel(bytes: f64) -> String {
    // Rows that end at a multiple of four bytes have some more.
    let bytes = (bytes * 1000.0).round() / 1000.0;
    let unit = if bytes == 1.0 { "byte" } else { "bytes" };
    format!("{bytes} {unit} a pixel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_what_their_frames_need() {
        let of = |name| PixelFormat::by_name(name).expect("a format");
        for (name, needs_unpack, bit_depth, bytes) in [
            ("Mono8", false, None, 640 * 48),
            ("Mono12", false, Some(12), 640 * 48 * 2),
            ("Mono16", false, None, 640 * 48 * 2),
            ("Mono10p", true, Some(10), 640 * 48 * 5 / 4),
            ("Mono12Packed", true, Some(12), 640 * 48 * 3 / 2),
            ("BayerGB8", true, None, 640 * 48),
            ("BayerRG12", true, None, 640 * 48 * 2),
            ("RGB8", false, None, 640 * 48 * 3),
        ] {
            let format = of(name);
            assert_eq!(format.needs_unpack(), needs_unpack, "{name}");
            assert_eq!(format.bit_depth(), bit_depth, "{name}");
            assert_eq!(format.frame_bytes(640, 48), bytes, "{name}");
        }
        // The simulated camera sent so many: 963 bytes a row, and one more.
        assert_eq!(of("Mono12p").frame_bytes(642, 48), 46_272);
        assert_eq!(of("Mono12p").to_string(), "Mono12p (1.5 bytes a pixel)");
        assert_eq!(of("Mono8").to_string(), "Mono8 (1 byte a pixel)");
        assert_eq!(PixelFormat::by_name("mono8"), None);
    }

    #[test]
    fn every_format_has_a_name_of_its_own_and_the_pattern_of_its_name() {
        for (at, format) in PIXEL_FORMATS.iter().enumerate() {
            let same = PIXEL_FORMATS.iter().position(|of| of.name == format.name);
            assert_eq!(same, Some(at), "{}", format.name);
            if let Some(name) = format.name.strip_prefix("Bayer") {
                // A name has the first two colours; the caps have four, of two rows.
                let (colours, depth) = name.split_at(2);
                let order = if depth == "8" { "" } else { "le" };
                let pattern = match colours {
                    "BG" => "bggr",
                    "GB" => "gbrg",
                    "GR" => "grbg",
                    _ => "rggb",
                };
                let depth = depth.strip_prefix('8').unwrap_or(depth);
                assert_eq!(format.caps[1], format!("{pattern}{depth}{order}"));
            }
        }
    }
}
