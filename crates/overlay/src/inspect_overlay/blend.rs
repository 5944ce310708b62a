//! Blends premultiplied pixels over a row of a frame.

use super::colours::Pixel;

/// The meaning of a frame's fourth component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alpha {
    /// No alpha, or alpha with which the other components are premultiplied.
    Plain,
    /// Alpha with which the other components are not premultiplied.
    Straight,
}

/// A row of a frame, unpacked to 8-bit or 16-bit samples.
#[derive(Debug)]
pub(super) enum Row<'a> {
    Bytes(&'a mut [[u8; 4]], Alpha),
    Words(&'a mut [[u16; 4]], Alpha),
}

/// Number of pixels blended together, so that the compiler uses vector instructions.
const AT_ONCE: usize = 4;

/// A sample of 8 or 16 bits.
pub(super) trait Sample: Copy + Into<u32> {
    const MOST: u32;
    fn of(level: u32) -> Self;
    /// Blends a premultiplied `source` with `alpha` over the sample; `source` is at most `alpha`.
    fn under(self, source: u16, alpha: u16) -> Self;
}

/// `$wide` has twice the bits of the sample, and no more: smaller types give more vector lanes.
macro_rules! sample {
    ($sample:ident, $wide:ident) => {
        impl Sample for $sample {
            const MOST: u32 = $sample::MAX as u32;

            fn of(level: u32) -> Self {
                level.min(Self::MOST) as Self
            }

            #[inline(always)]
            fn under(self, source: u16, alpha: u16) -> Self {
                let (most, bits) = ($wide::from($sample::MAX), $sample::BITS);
                let kept = $wide::from(self) * (most - $wide::from(alpha)) + (most / 2 + 1);
                ($wide::from(source) + ((kept + (kept >> bits)) >> bits)) as Self
            }
        }
    };
}

sample!(u8, u16);
sample!(u16, u32);

impl Row<'_> {
    /// Blends a colour over the pixels `begin..end` that lie in the row.
    pub fn fill(&mut self, begin: i32, end: i32, colour: Pixel) {
        let [begin, end] = [begin, end].map(|x| usize::try_from(x).unwrap_or(0));
        match self {
            Self::Bytes(row, alpha) => fill(part(row, begin, end), colour, *alpha),
            Self::Words(row, alpha) => fill(part(row, begin, end), colour, *alpha),
        }
    }

    /// Blends pixels over those from `begin` on that lie in the row.
    pub fn over(&mut self, begin: i32, source: &[Pixel]) {
        let hidden = usize::try_from(-begin).unwrap_or(0).min(source.len());
        let source = &source[hidden..];
        let begin = usize::try_from(begin).unwrap_or(0);
        let end = begin.saturating_add(source.len());
        match self {
            Self::Bytes(row, alpha) => over(part(row, begin, end), source, *alpha),
            Self::Words(row, alpha) => over(part(row, begin, end), source, *alpha),
        }
    }
}

fn part<T>(row: &mut [T], begin: usize, end: usize) -> &mut [T] {
    let end = end.min(row.len());
    row.get_mut(begin..end).unwrap_or_default()
}

/// Whether each component is simply the sum of source and attenuated row. This does not hold for
/// pixels with a straight alpha below full.
fn is_plain<T: Sample>(row: &[[T; 4]], alpha: Alpha) -> bool {
    alpha == Alpha::Plain || row.iter().all(|pixel| pixel[0].into() == T::MOST)
}

fn fill<T: Sample>(row: &mut [[T; 4]], colour: Pixel, alpha: Alpha) {
    if u32::from(colour[0]) >= T::MOST {
        row.fill(colour.map(|c| T::of(u32::from(c))));
    } else if is_plain(row, alpha) {
        fill_plain(row, colour, colour[0]);
    } else {
        for pixel in row {
            *pixel = over_straight(*pixel, colour);
        }
    }
}

/// Blends a premultiplied colour over pixels, ignoring the pixels' own alpha. The colour's alpha
/// may be any of its components.
pub(super) fn fill_plain<T: Sample>(row: &mut [[T; 4]], colour: [u16; 4], alpha: u16) {
    for pixel in row {
        for (sample, source) in pixel.iter_mut().zip(colour) {
            *sample = sample.under(source, alpha);
        }
    }
}

fn over<T: Sample>(row: &mut [[T; 4]], source: &[Pixel], alpha: Alpha) {
    if !is_plain(row, alpha) {
        for (pixel, &source) in row.iter_mut().zip(source) {
            *pixel = over_straight(*pixel, source);
        }
        return;
    }
    // Both slices must have the same length, so that their groups match.
    let source = &source[..source.len().min(row.len())];
    let (groups, rest) = row.as_chunks_mut::<AT_ONCE>();
    let (sources, last) = source.as_chunks::<AT_ONCE>();
    for (pixels, source) in groups.iter_mut().zip(sources) {
        let pixels = pixels.as_flattened_mut();
        let source = source.as_flattened();
        for n in 0..4 * AT_ONCE {
            pixels[n] = pixels[n].under(source[n], source[n / 4 * 4]);
        }
    }
    for (pixel, source) in rest.iter_mut().zip(last) {
        *pixel = std::array::from_fn(|n| pixel[n].under(source[n], source[0]));
    }
}

/// Blends a premultiplied pixel over one with straight alpha.
fn over_straight<T: Sample>(pixel: [T; 4], source: Pixel) -> [T; 4] {
    let kept: u32 = pixel[0].under(0, source[0]).into();
    let alpha = (u32::from(source[0]) + kept).min(T::MOST);
    if alpha == 0 {
        return pixel;
    }
    let mut out = [T::of(alpha); 4];
    for component in 1..4 {
        let source = u64::from(source[component]) * u64::from(T::MOST);
        let sum = source + u64::from(pixel[component].into()) * u64::from(kept);
        let level = (sum + u64::from(alpha) / 2) / u64::from(alpha);
        out[component] = T::of(u32::try_from(level).unwrap_or(T::MOST));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blends a component over another, both in 0..1, in real numbers.
    fn exact(source: f64, alpha: f64, under: f64, under_alpha: f64) -> f64 {
        let kept = under_alpha * (1.0 - alpha);
        (source + under * kept) / (alpha + kept)
    }

    #[test]
    fn bytes_are_blended_to_the_nearest_level() {
        for (alpha, under) in (0..=255).flat_map(|a| (0..=255).map(move |u| (a, u))) {
            for source in [0, alpha / 3, alpha] {
                let mut row = [[255, under, under, under]];
                let colour = [alpha, source, source, source].map(u16::from);
                Row::Bytes(&mut row, Alpha::Plain).over(0, &[colour]);
                let [s, a, u] = [source, alpha, under].map(|n| f64::from(n) / 255.0);
                let wanted = 255.0 * exact(s, a, u, 1.0);
                let off = (f64::from(row[0][2]) - wanted).abs();
                assert!(off <= 0.51, "{source} of {alpha} on {under}: {row:?}");
                assert_eq!(row[0][0], 255);
                let mut filled = [[255, under, under, under]];
                Row::Bytes(&mut filled, Alpha::Plain).fill(0, 1, colour);
                assert_eq!(filled, row);
            }
        }
    }

    #[test]
    fn words_are_blended_to_the_nearest_level() {
        for alpha in (0..=65_535).step_by(257) {
            for under in [0, 1, 300, 32_768, 65_534, 65_535] {
                let source = alpha / 2;
                let mut row = [[65_535, under, under, under]];
                let colour = [alpha, source, source, source];
                Row::Words(&mut row, Alpha::Plain).over(0, &[colour]);
                let [s, a, u] = [source, alpha, under].map(|n| f64::from(n) / 65_535.0);
                let wanted = 65_535.0 * exact(s, a, u, 1.0);
                let off = (f64::from(row[0][3]) - wanted).abs();
                assert!(off <= 0.51, "{source} of {alpha} on {under}: {row:?}");
            }
        }
    }

    #[test]
    fn alpha_of_the_frame_counts_where_it_has_one() {
        for (alpha, below) in (0..=255)
            .step_by(5)
            .flat_map(|a| [0, 3, 128, 254, 255].map(|b| (a, b)))
        {
            let source = alpha / 2;
            let colour = [alpha, source, source, source].map(u16::from);
            let mut row = [[below, 90, 0, 255]; 2];
            let mut line = Row::Bytes(&mut row, Alpha::Straight);
            line.over(0, &[colour]);
            line.fill(1, 2, colour);
            assert_eq!(row[0], row[1], "{alpha} on {below}");
            let [s, a, b] = [source, alpha, below].map(|n| f64::from(n) / 255.0);
            let seen = a + b * (1.0 - a);
            assert!((f64::from(row[0][0]) - 255.0 * seen).abs() <= 0.51);
            if seen > 0.1 {
                let wanted = 255.0 * exact(s, a, 90.0 / 255.0, b);
                let off = (f64::from(row[0][1]) - wanted).abs();
                // The alpha is rounded first.
                assert!(off <= 0.5 + 0.5 / seen, "{alpha} on {below}: {row:?}");
            }
        }
        // A premultiplied frame needs only the sum.
        let mut row = [[100, 50, 50, 50]];
        Row::Bytes(&mut row, Alpha::Plain).fill(0, 1, [51, 51, 0, 0]);
        assert_eq!(row, [[131, 91, 40, 40]]);
    }

    #[test]
    fn what_lies_outside_the_row_is_left_out() {
        let white = [255; 4];
        for (begin, len, wanted) in [
            (-3, 5, [1, 1, 0, 0]),
            (2, 9, [0, 0, 1, 1]),
            (-9, 4, [0; 4]),
            (4, 2, [0; 4]),
            (i32::MAX, 2, [0; 4]),
            (i32::MIN + 1, 2, [0; 4]),
        ] {
            let marked = |row: [[u8; 4]; 4]| row.map(|pixel| u8::from(pixel == [255; 4]));
            let mut row = [[0; 4]; 4];
            Row::Bytes(&mut row, Alpha::Plain).over(begin, &vec![white; len]);
            assert_eq!(marked(row), wanted, "{begin} {len}");
            let mut row = [[0; 4]; 4];
            let end = begin.saturating_add(len as i32);
            Row::Bytes(&mut row, Alpha::Plain).fill(begin, end, white);
            assert_eq!(marked(row), wanted, "{begin} {len}");
        }
    }
}
