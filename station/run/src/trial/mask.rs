//! The marked pixels of a frame.

use png::{BitDepth, ColorType};

/// Index 0 is a pixel that is not marked, 1 is a marked one.
const PALETTE: [u8; 6] = [0, 0, 0, 255, 0, 0];
const ALPHA: [u8; 2] = [0, 255];

/// A bit per pixel: the packed mask of docs/semantics.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The rows, each of whole bytes, the most significant bit first; 1 is a marked pixel.
    pub bits: Vec<u8>,
}

impl Mask {
    /// A PNG picture: marked pixels are red, the others transparent.
    ///
    /// # Errors
    /// A sentence if the bits do not fit the size.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, self.width, self.height);
        // A row of a PNG with two colours is packed as that of a mask.
        encoder.set_color(ColorType::Indexed);
        encoder.set_depth(BitDepth::One);
        encoder.set_palette(&PALETTE[..]);
        encoder.set_trns(&ALPHA[..]);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.bits)?;
            writer.finish()
        });
        written.map_err(|error| error.to_string())?;
        Ok(png)
    }

    /// Whether a pixel is marked; none outside the frame is.
    pub fn is_marked(&self, x: u32, y: u32) -> bool {
        let stride = self.width.div_ceil(8) as usize;
        let byte = y as usize * stride + (x >> 3) as usize;
        let byte = self.bits.get(byte).filter(|_| x < self.width);
        byte.is_some_and(|byte| byte >> (7 - (x & 7)) & 1 == 1)
    }
}
