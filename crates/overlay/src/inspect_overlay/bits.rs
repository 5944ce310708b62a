//! The marked pixels of a frame, read from a mask of either form and any size.

use clinspect_core::mask::packed_stride;

/// Pixels of a word of [`Bits`].
pub(super) const WORD: usize = 64;
/// Pixels of a GRAY8 mask are marked from this level on. A codec may blur them to values between 0
/// and 255.
const MARKED_LEVEL: u8 = 128;

/// The layout of a mask in its buffer.
#[derive(Debug, Clone)]
pub(super) struct MaskFormat {
    /// Width and height, px.
    pub size: [usize; 2],
    /// Bytes from row to row.
    pub stride: usize,
    /// Whether the mask is GRAY8; otherwise it is packed bits, most significant first.
    pub is_grey: bool,
}

impl MaskFormat {
    /// Packed rows of minimum length.
    pub fn packed(size: [usize; 2]) -> Self {
        Self {
            size,
            stride: packed_stride(size[0]),
            is_grey: false,
        }
    }

    /// Bytes of a row without padding.
    pub fn row_len(&self) -> usize {
        if self.is_grey {
            self.size[0]
        } else {
            packed_stride(self.size[0])
        }
    }
}

/// Marked pixels of a frame. Bit 63 of a row's first word is the first pixel; bits after the last
/// pixel are clear.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bits {
    width: usize,
    words: Vec<u64>,
}

impl Bits {
    /// The words of a row.
    pub fn row(&self, y: usize) -> &[u64] {
        let len = self.width.div_ceil(WORD);
        self.words.get(y * len..(y + 1) * len).unwrap_or_default()
    }

    /// Number of marked pixels.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The marked pixels on diagonal stripes, `width` px wide. Stripe `number` of 0..4 and each fourth
    /// one after it are taken. Widths are rounded up to a power of two, so that the stripes are the
    /// same in every word; the maximum is a quarter of a word.
    pub fn striped(&self, width: usize, number: usize) -> Self {
        let width = width.clamp(1, WORD / 4).next_power_of_two();
        let is_taken = |x: usize| x / width % 4 == number;
        let first = (0..WORD).fold(0, |word, x| word << 1 | u64::from(is_taken(x)));
        let rows = self.words.chunks(self.width.div_ceil(WORD).max(1));
        let words = (0..).zip(rows).flat_map(|(y, row)| {
            // Each row begins one pixel later in the pattern.
            let stripes = first.rotate_left(y % WORD as u32);
            row.iter().map(move |word| word & stripes)
        });
        Self {
            width: self.width,
            words: words.collect(),
        }
    }

    /// The marked pixels of a frame of `size` pixels. The mask may have another size: each marked
    /// pixel of the mask then marks every pixel of the frame that it touches.
    ///
    /// # Errors
    /// A sentence if the buffer does not hold such a mask.
    pub fn read(
        buffer: &gst::BufferRef,
        format: &MaskFormat,
        size: [usize; 2],
    ) -> Result<Self, String> {
        let map = buffer
            .map_readable()
            .map_err(|_| "the mask cannot be read".to_owned())?;
        let (mut offset, mut format) = (0, format.clone());
        if format.is_grey
            && let Some(meta) = buffer.meta::<gst_video::VideoMeta>()
        {
            offset = meta.offset().first().copied().unwrap_or(0);
            let stride = meta.stride().first().copied().unwrap_or(0);
            format.stride = usize::try_from(stride).unwrap_or(0);
        }
        Self::from_bytes(map.get(offset..).unwrap_or_default(), &format, size)
    }

    fn from_bytes(
        bytes: &[u8],
        format: &MaskFormat,
        [width, height]: [usize; 2],
    ) -> Result<Self, String> {
        let (stride, len) = (format.stride, format.row_len());
        let [mask_width, mask_height] = format.size;
        let unpack = if format.is_grey {
            unpack_levels
        } else {
            unpack_bits
        };
        // Check before the allocation: sizes come from caps and metas, which may be wrong.
        let needed = mask_height
            .checked_sub(1)
            .and_then(|rows| stride.checked_mul(rows)?.checked_add(len));
        if mask_width == 0 || stride < len || needed.is_none_or(|needed| bytes.len() < needed) {
            return Err(format!(
                "{} bytes are too few for a mask of {mask_width}x{mask_height} pixels with rows of {stride} \
                 bytes",
                bytes.len()
            ));
        }
        let row_words = width.div_ceil(WORD);
        let mut words = vec![0; row_words * height];
        let mut source = vec![0; mask_width.div_ceil(WORD)];
        let mut scaled = vec![0; row_words];
        let padding = source.len() * WORD - mask_width;
        for (y, row) in bytes.chunks(stride).take(mask_height).enumerate() {
            unpack(&row[..len], &mut source);
            if let Some(last) = source.last_mut() {
                *last &= u64::MAX << padding;
            }
            if [mask_width, mask_height] == [width, height] {
                words[y * row_words..][..row_words].copy_from_slice(&source);
                continue;
            }
            if source.iter().all(|&word| word == 0) {
                continue;
            }
            scale_row(&source, mask_width, &mut scaled, width);
            let [first, end] = span([y, y + 1], mask_height, height);
            for target in words.chunks_mut(row_words.max(1)).take(end).skip(first) {
                for (target, word) in target.iter_mut().zip(&scaled) {
                    *target |= word;
                }
            }
        }
        Ok(Self { width, words })
    }
}

fn unpack_bits(row: &[u8], words: &mut [u64]) {
    for (bytes, word) in row.chunks(WORD / 8).zip(words) {
        let mut whole = [0; WORD / 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_be_bytes(whole);
    }
}

fn unpack_levels(row: &[u8], words: &mut [u64]) {
    for (pixels, word) in row.chunks(WORD).zip(words) {
        let bits = pixels.iter().fold(0, |bits, &level| {
            bits << 1 | u64::from(level >= MARKED_LEVEL)
        });
        *word = bits << (WORD - pixels.len());
    }
}

/// The range of the `to` equal parts that parts `begin..end` of the `from` equal parts touch.
pub(super) fn span([begin, end]: [usize; 2], from: usize, to: usize) -> [usize; 2] {
    let [begin, end, from, to] = [begin, end, from, to].map(|n| n as u128);
    [begin * to / from, (end * to).div_ceil(from)].map(|n| n as usize)
}

/// The runs of marked pixels in a row, as half-open ranges; none reaches into the next word.
pub(super) fn runs(words: &[u64]) -> impl Iterator<Item = [usize; 2]> {
    let words = words.iter().zip((0..).step_by(WORD));
    words.flat_map(|(&word, left)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let begin = rest.leading_zeros();
            let end = begin + rest.checked_shl(begin)?.leading_ones();
            rest &= u64::MAX.checked_shr(end).unwrap_or(0);
            Some([begin, end].map(|bit| left + bit as usize))
        })
    })
}

/// Marks each of the `to` pixels of a row that a marked one of the `from` pixels touches.
fn scale_row(source: &[u64], from: usize, target: &mut [u64], to: usize) {
    target.fill(0);
    for run in runs(source) {
        let [first, end] = span(run, from, to);
        for x in first..end {
            if let Some(word) = target.get_mut(x / WORD) {
                *word |= 1 << (WORD - 1 - x % WORD);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_marked(bits: &Bits, x: usize, y: usize) -> bool {
        bits.row(y)[x / WORD] >> (WORD - 1 - x % WORD) & 1 == 1
    }

    fn marked(x: usize, y: usize) -> bool {
        (x * 7 + y * 3).is_multiple_of(11)
    }

    fn pixels([width, height]: [usize; 2]) -> impl Iterator<Item = (usize, usize)> {
        (0..height).flat_map(move |y| (0..width).map(move |x| (x, y)))
    }

    /// The mask of `marked`. The padding is set, to show that it does not count.
    fn bytes(format: &MaskFormat) -> Vec<u8> {
        let mut bytes = vec![0xff; format.stride * (format.size[1] - 1) + format.row_len()];
        for (x, y) in pixels(format.size) {
            let row = &mut bytes[y * format.stride..];
            if format.is_grey {
                row[x] = if marked(x, y) { 128 } else { 127 };
            } else if !marked(x, y) {
                row[x / 8] &= !(0x80 >> (x % 8));
            }
        }
        bytes
    }

    #[test]
    fn masks_of_both_forms_give_every_pixel() {
        for size in [[1, 1], [8, 3], [63, 2], [64, 2], [65, 5], [131, 4]] {
            for (extra, is_grey) in [(0, false), (3, false), (0, true), (3, true)] {
                let mut format = MaskFormat {
                    is_grey,
                    ..MaskFormat::packed(size)
                };
                format.stride = format.row_len() + extra;
                let bits = Bits::from_bytes(&bytes(&format), &format, size);
                assert!(bits.is_ok(), "{format:?}: {bits:?}");
                let Ok(bits) = bits else { continue };
                let mut count = 0;
                for (x, y) in pixels(size) {
                    let wanted = marked(x, y);
                    assert_eq!(is_marked(&bits, x, y), wanted, "({x}, {y}) of {format:?}");
                    count += u64::from(wanted);
                }
                assert_eq!(bits.count(), count, "{format:?}");
            }
        }
    }

    #[test]
    fn stripes_are_diagonal_and_continue_over_words() {
        let format = MaskFormat::packed([200, 70]);
        let bits = Bits::from_bytes(&bytes(&format), &format, format.size);
        assert!(bits.is_ok(), "{bits:?}");
        let Ok(bits) = bits else { return };
        for (asked, width) in [(0, 1), (1, 1), (2, 2), (3, 4), (16, 16), (99, 16)] {
            for number in 0..4 {
                let striped = bits.striped(asked, number);
                for (x, y) in pixels(format.size) {
                    let wanted = marked(x, y) && (x + y) / width % 4 == number;
                    let is_marked = is_marked(&striped, x, y);
                    assert_eq!(is_marked, wanted, "({x}, {y}) {number} of {asked} px");
                }
            }
        }
    }

    #[test]
    fn masks_of_another_size_mark_what_they_touch() {
        let format = MaskFormat::packed([60, 20]);
        for size in [[120, 40], [30, 10], [64, 21], [7, 3], [1, 1], [60, 40]] {
            let bits = Bits::from_bytes(&bytes(&format), &format, size);
            assert!(bits.is_ok(), "{bits:?}");
            let Ok(bits) = bits else { continue };
            for (x, y) in pixels(size) {
                // Pixels of the mask that overlap this one, as open intervals.
                let overlaps = |at: usize, n: usize, other: usize, m: usize| {
                    at * m < (other + 1) * n && other * n < (at + 1) * m
                };
                let wanted = pixels(format.size).any(|(mx, my)| {
                    marked(mx, my) && overlaps(x, size[0], mx, 60) && overlaps(y, size[1], my, 20)
                });
                assert_eq!(is_marked(&bits, x, y), wanted, "({x}, {y}) of {size:?}");
            }
        }
    }

    #[test]
    fn masks_that_do_not_fit_their_bytes_are_refused() {
        for (len, stride, mask) in [
            (0, 1, [1, 1]),
            (5, 1, [8, 6]),
            (64, 1, [9, 2]),
            (64, 8, [0, 4]),
            (64, 8, [4, 0]),
            (64, usize::MAX, [8, usize::MAX]),
            (64, usize::MAX / 8 + 1, [usize::MAX, 2]),
        ] {
            let format = MaskFormat {
                stride,
                ..MaskFormat::packed(mask)
            };
            let bits = Bits::from_bytes(&vec![255; len], &format, [8, 8]);
            assert!(bits.is_err(), "{len} {stride} {mask:?}");
        }
    }
}
