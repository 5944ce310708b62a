//! The frame's own colours, in GStreamer's unpacked row format.

/// A premultiplied pixel of the frame's unpacked form: A, Y, U, V or A, R, G, B, of 8 or 16 bits.
pub(super) type Pixel = [u16; 4];

/// The matrix for caps without one. GStreamer assumes BT.709 for high-definition video.
const BT709: (f64, f64) = (0.2126, 0.0722);

/// Converts drawn pixels to the frame's colours.
#[derive(Debug, Clone)]
pub(super) struct ColourSpace {
    /// For each component of a [`Pixel`]: its factors for B, G, R, A of 0..255.
    matrix: [[f32; 4]; 4],
}

impl ColourSpace {
    /// The conversion for a frame's colorimetry.
    pub fn of(info: &gst_video::VideoInfo) -> Self {
        let unpacked = info.format_info().unpack_format();
        let unpacked = gst_video::VideoFormatInfo::from_format(unpacked);
        let colorimetry = info.colorimetry();
        let (offset, scale) = unpacked.range_offsets(colorimetry.range());
        // For R, G, B in 0..1: Y in 0..1 and U, V in -0.5..0.5; or R, G, B.
        let components = if unpacked.is_yuv() {
            let (kr, kb) = colorimetry.matrix().kr_kb().unwrap_or(BT709);
            let luma = [kr, 1.0 - kr - kb, kb];
            let chroma = |full: [f64; 3], k: f64| {
                let part = |n: usize| (full[n] - luma[n]) / (2.0 * (1.0 - k));
                [part(0), part(1), part(2)]
            };
            let (u, v) = (chroma([0.0, 0.0, 1.0], kb), chroma([1.0, 0.0, 0.0], kr));
            [luma, u, v]
        } else {
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        };
        let bits = unpacked.depth().first().copied().unwrap_or(8).min(16);
        let opaque = f64::from((1_u32 << bits) - 1);
        let mut matrix = [[0.0, 0.0, 0.0, (opaque / 255.0) as f32]; 4];
        for (index, [r, g, b]) in components.into_iter().enumerate() {
            // The offset of a premultiplied component is scaled with alpha.
            let parts = [b, g, r].map(|part| part * f64::from(scale[index]));
            let parts = [parts[0], parts[1], parts[2], f64::from(offset[index])];
            matrix[1 + index] = parts.map(|part| (part / 255.0) as f32);
        }
        Self { matrix }
    }

    /// A premultiplied B, G, R, A as a pixel of the frame, faded to `opacity` (0 = transparent, 1 =
    /// unchanged).
    pub fn pixel(&self, drawn: [u8; 4], opacity: f64) -> Pixel {
        let drawn = drawn.map(|level| f32::from(level) * opacity.clamp(0.0, 1.0) as f32);
        let components = self.matrix.map(|parts| {
            let sum: f32 = parts.iter().zip(drawn).map(|(part, n)| part * n).sum();
            (sum + 0.5) as u16
        });
        // Blending requires components of at most alpha; full-range chroma can exceed it by half a
        // level.
        components.map(|component| component.min(components[0]))
    }

    /// Converts many pixels; neighbours are often equal.
    pub fn pixels(&self, drawn: &[[u8; 4]], opacity: f64) -> Vec<Pixel> {
        let mut last = ([0; 4], [0; 4]);
        let convert = |&pixel: &[u8; 4]| {
            if pixel != last.0 {
                last = (pixel, self.pixel(pixel, opacity));
            }
            last.1
        };
        drawn.iter().map(convert).collect()
    }
}

#[cfg(test)]
mod tests {
    use gst_video::{VideoColorimetry, VideoFormat as Format};

    use super::*;

    const WHITE: [u8; 4] = [255; 4];
    const RED: [u8; 4] = [0, 0, 255, 255];

    fn space(format: Format, colorimetry: &str) -> Option<ColourSpace> {
        gst::init().ok();
        let colorimetry = colorimetry.parse::<VideoColorimetry>().ok()?;
        let info = gst_video::VideoInfo::builder(format, 64, 48).colorimetry(&colorimetry);
        Some(ColourSpace::of(&info.build().ok()?))
    }

    #[test]
    fn colours_are_those_of_the_frames_colorimetry() {
        for (format, colorimetry, drawn, wanted) in [
            (Format::I420, "bt709", WHITE, [255, 235, 128, 128]),
            (Format::I420, "bt709", RED, [255, 63, 102, 240]),
            (Format::I420, "bt601", RED, [255, 81, 90, 240]),
            (Format::I420, "1:4:0:0", WHITE, [255, 255, 128, 128]),
            (Format::Gray8, "1:4:0:0", RED, [255, 76, 85, 255]),
            (Format::Bgrx, "sRGB", RED, [255, 255, 0, 0]),
            (Format::Rgb, "2:1:0:0", WHITE, [255, 235, 235, 235]),
            (
                Format::I42010le,
                "bt709",
                WHITE,
                [65_535, 60_160, 32_768, 32_768],
            ),
            (
                Format::Gray16Le,
                "1:4:0:0",
                WHITE,
                [65_535, 65_535, 32_768, 32_768],
            ),
            (Format::Argb64, "sRGB", RED, [65_535, 65_535, 0, 0]),
        ] {
            let found = space(format, colorimetry).map(|space| space.pixel(drawn, 1.0));
            assert_eq!(found, Some(wanted), "{format} {colorimetry}");
        }
    }

    #[test]
    fn faded_pixels_are_premultiplied() {
        let space = space(Format::I420, "bt709");
        let half = space.as_ref().map(|space| space.pixel(WHITE, 0.5));
        assert_eq!(half, Some([128, 118, 64, 64]));
        let clear = space.map(|space| space.pixels(&[[0; 4], WHITE, [0; 4]], 1.0));
        assert_eq!(clear, Some(vec![[0; 4], [255, 235, 128, 128], [0; 4]]));
    }
}
