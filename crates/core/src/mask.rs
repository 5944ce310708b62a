//! The packed 1-bit mask: most significant bit first, rows padded to whole bytes.

/// Bytes of a packed row of `width` pixels.
pub fn packed_stride(width: usize) -> usize {
    width.div_ceil(8)
}

/// The header of a binary PBM picture (P4).
///
/// # Source
/// <https://netpbm.sourceforge.net/doc/pbm.html>
pub fn pbm_header(width: usize, height: usize) -> String {
    format!("P4\n{width} {height}\n")
}

/// Unpacks one row: 1 becomes 255, 0 stays 0.
///
/// `packed` holds at least `ceil(out.len()/8)` bytes.
pub fn unpack_row(packed: &[u8], out: &mut [u8]) {
    for (bits, pixels) in packed.iter().zip(out.chunks_mut(8)) {
        for (i, pixel) in pixels.iter_mut().enumerate() {
            *pixel = if bits & (0x80 >> i) != 0 { 255 } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpack_row_odd_width_ignores_the_padding_bits() {
        let mut out = [7; 11];
        unpack_row(&[0b1000_0001, 0b0101_1111], &mut out);
        assert_eq!(out, [255, 0, 0, 0, 0, 0, 0, 255, 0, 255, 0]);
    }
}
