//! Sequential code for comparison with the operators: plain loops on one thread, vectorised only by the
//! compiler. docs/semantics.md defines the results; `frames` checks that the device gives the same.

use clinspect_core::{
    lattice::VectorComparison,
    mask::packed_stride,
    pitch::{Axis, Comparison},
};

/// A GRAY8 frame without padding.
#[derive(Debug, Clone, Copy)]
pub struct Grey<'a> {
    pub samples: &'a [u8],
    pub width: usize,
    pub height: usize,
}

impl<'a> Grey<'a> {
    fn row(&self, y: usize) -> &'a [u8] {
        &self.samples[y * self.width..][..self.width]
    }
}

/// Gaussian with weights in 1/256 and one rounding; edges are repeated.
pub fn gaussian(frame: Grey, weights: &[u32], out: &mut [u8]) {
    let radius = weights.len() / 2;
    let mut padded = vec![0_u16; frame.width + 2 * radius];
    // Horizontal sums; row y is in line y modulo the number of lines.
    let mut lines = vec![vec![0_u16; frame.width]; weights.len()];
    let mut sums = vec![0_u32; frame.width];
    let mut ready = 0;
    for (y, out) in out.chunks_exact_mut(frame.width).enumerate() {
        while ready <= (y + radius).min(frame.height - 1) {
            let line = &mut lines[ready % weights.len()];
            filter_row(frame.row(ready), weights, &mut padded, line);
            ready += 1;
        }
        sums.fill(1 << 15);
        for (tap, &weight) in weights.iter().enumerate() {
            let row = (y + tap).saturating_sub(radius).min(frame.height - 1);
            for (sum, &value) in sums.iter_mut().zip(&lines[row % weights.len()]) {
                *sum += weight * u32::from(value);
            }
        }
        for (out, &sum) in out.iter_mut().zip(&sums) {
            *out = (sum >> 16) as u8;
        }
    }
}

fn filter_row(row: &[u8], weights: &[u32], padded: &mut [u16], sums: &mut [u16]) {
    let radius = weights.len() / 2;
    let (first, last) = (row[0], row[row.len() - 1]);
    padded[..radius].fill(first.into());
    padded[radius + row.len()..].fill(last.into());
    for (to, &from) in padded[radius..].iter_mut().zip(row) {
        *to = from.into();
    }
    sums.fill(0);
    for (tap, &weight) in weights.iter().enumerate() {
        for (sum, &value) in sums.iter_mut().zip(&padded[tap..]) {
            // The weights sum to 256, so the sum fits.
            *sum += weight as u16 * value;
        }
    }
}

/// Counts of the 256 grey levels.
pub fn histogram(frame: Grey) -> Vec<u32> {
    // Four tables: equal neighbours do not wait for the same counter.
    let mut tables = [[0_u32; 256]; 4];
    let (groups, rest) = frame.samples.as_chunks::<4>();
    for group in groups {
        for (table, &sample) in tables.iter_mut().zip(group) {
            table[usize::from(sample)] += 1;
        }
    }
    for &sample in rest {
        tables[0][usize::from(sample)] += 1;
    }
    (0..256)
        .map(|level| tables.iter().map(|table| table[level]).sum())
        .collect()
}

/// Packed mask of `compare=minimum match-center=true`, and the number of its set bits.
pub fn compare(frame: Grey, comparisons: &[Comparison], theta: i32, mask: &mut [u8]) -> u64 {
    let (width, height) = (frame.width, frame.height);
    let mut marked = vec![0_u8; width];
    let mut count = 0;
    for (y, out) in mask.chunks_exact_mut(packed_stride(width)).enumerate() {
        marked.fill(0);
        for c in comparisons {
            let judged = VectorComparison::from(c).judged(width, height, None);
            let Some(judged) = judged.first().filter(|r| (r.y0..r.y1).contains(&y)) else {
                continue;
            };
            let columns = judged.x0..judged.x1;
            let marked = &mut marked[columns.clone()];
            let (near, far) = (c.whole as usize, c.margin());
            let taps = match c.axis {
                Axis::X => [0, -1, 1]
                    .map(|by| at(frame.row(y), &columns, by))
                    .into_iter()
                    .chain(
                        [
                            -(near as isize),
                            -(far as isize),
                            near as isize,
                            far as isize,
                        ]
                        .map(|by| at(frame.row(y), &columns, by)),
                    )
                    .collect::<Vec<_>>(),
                Axis::Y => [y, y - 1, y + 1, y - near, y - far, y + near, y + far]
                    .map(|row| at(frame.row(row), &columns, 0))
                    .to_vec(),
            };
            if let [centre, before, after, l0, l1, r0, r1] = taps[..] {
                mark(c, theta, [centre, before, after, l0, l1, r0, r1], marked);
            }
        }
        for (byte, pixels) in out.iter_mut().zip(marked.chunks(8)) {
            *byte = pixels
                .iter()
                .enumerate()
                .fold(0, |bits, (i, &pixel)| bits | pixel << (7 - i));
            count += u64::from(byte.count_ones());
        }
    }
    count
}

/// The columns of a row, shifted by some pixels.
fn at<'a>(row: &'a [u8], columns: &std::ops::Range<usize>, by: isize) -> &'a [u8] {
    &row[columns.start.wrapping_add_signed(by)..columns.end.wrapping_add_signed(by)]
}

fn mark(c: &Comparison, theta: i32, taps: [&[u8]; 7], marked: &mut [u8]) {
    let len = marked.len();
    // Slices of equal length let the compiler drop its bounds checks.
    let [centre, before, after, l0, l1, r0, r1] = taps.map(|tap| &tap[..len]);
    let (f, a) = (c.fraction, c.blur);
    for x in 0..len {
        let s = |tap: &[u8]| i32::from(tap[x]);
        let middle = 256 * s(centre) + a * (s(before) - 2 * s(centre) + s(after));
        let left = middle - ((256 - f) * s(l0) + f * s(l1));
        let right = middle - ((256 - f) * s(r0) + f * s(r1));
        let bright = left.min(right) >= theta;
        let dark = left.max(right) <= -theta;
        marked[x] |= u8::from(bright | dark);
    }
}
