//! Which spans of a row touch which spans of the row above.

/// A span of columns of one row: `x0 ≤ x < x1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub x0: u32,
    pub x1: u32,
    pub label: u32,
}

/// A span of a row touches a span of the row above. Both are counted from 1, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Touch {
    pub above: u32,
    pub span: u32,
}

/// Calls `visit` with the spans of a row that touch spans of the row above, also at corners, from left to right. Takes
/// a step per span.
pub(super) fn for_touches(above: &[Span], row: &[Span], mut visit: impl FnMut(Touch)) {
    let mut rest = (1..).zip(above).peekable();
    for (number, span) in (1..).zip(row) {
        while rest.next_if(|(_, above)| above.x1 < span.x0).is_some() {}
        while let Some(&(above, touching)) = rest.peek() {
            if touching.x0 > span.x1 {
                break;
            }
            visit(Touch {
                above,
                span: number,
            });
            // A span that reaches farther may also touch the next one.
            if touching.x1 > span.x1 {
                break;
            }
            rest.next();
        }
    }
}

/// Finds what [`for_touches`] finds, from the pixels of both rows, and returns the number of touches. Takes a step
/// per word and per span. `touches` holds at least as many as the rows have spans.
///
/// Two spans touch if one begins where the other has a pixel, or one column after it. A word shows this for 64 columns
/// at once. In noise no comparison of columns could be foreseen, and each wrong guess costs as much as twenty steps.
pub(super) fn find_touches(above: &[u64], row: &[u64], touches: &mut [Touch]) -> usize {
    let mut count = 0;
    let mut last = Touch::default();
    let (mut above_before, mut row_before) = (0, 0);
    for (&above, &row) in above.iter().zip(row) {
        let (above_left, row_left) = (above >> 1 | above_before << 63, row >> 1 | row_before << 63);
        (above_before, row_before) = (above, row);
        let (begins_above, begins) = (above & !above_left, row & !row_left);
        let touching = begins & (above | above_left) | begins_above & (row | row_left);
        if touching == 0 {
            last.above += begins_above.count_ones();
            last.span += begins.count_ones();
            continue;
        }
        // Column 0 becomes the lowest bit, which is cheaper to clear.
        let [begins_above, begins, touching] =
            [begins_above, begins, touching].map(u64::reverse_bits);
        let mut rest = begins_above | begins;
        while rest != 0 {
            let x = rest.trailing_zeros();
            last.above += (begins_above >> x & 1) as u32;
            last.span += (begins >> x & 1) as u32;
            if let Some(touch) = touches.get_mut(count) {
                *touch = last;
            }
            // The next one overwrites it if it does not touch.
            count += (touching >> x & 1) as usize;
            rest &= rest - 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::{
        super::rows::{find_edges, inside},
        *,
    };

    /// The spans of a row: first column and one past the last one.
    fn spans(row: &[u64], width: usize) -> Vec<[u32; 2]> {
        let mut edges = vec![0; width + 1];
        let count = find_edges(row, width, &mut edges);
        edges[..count].as_chunks().0.to_vec()
    }

    fn labelled(row: &[u64], width: usize) -> Vec<Span> {
        let span = |[x0, x1]: [u32; 2]| Span { x0, x1, label: 0 };
        spans(row, width).into_iter().map(span).collect()
    }

    /// A row of any density.
    fn noise(random: &mut ChaCha8Rng, words: usize, width: usize) -> Vec<u64> {
        let rounds = random.random_range(0..6);
        let fills: bool = random.random();
        let mut row = vec![0; words];
        for word in &mut row {
            *word = random.random();
            for _ in 0..rounds {
                let more: u64 = random.random();
                *word = if fills { *word | more } else { *word & more };
            }
        }
        row[words - 1] &= inside(width);
        row
    }

    #[test]
    fn touches_of_any_rows_equal_those_of_all_pairs_of_spans() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        for words in 1..=4 {
            for _ in 0..2000 {
                let width = words * 64 - random.random_range(0..64);
                let [above, row] = [(); 2].map(|()| noise(&mut random, words, width));
                let mut expected = Vec::new();
                for (span, [x0, x1]) in (1..).zip(spans(&row, width)) {
                    for (above, [above_x0, above_x1]) in (1..).zip(spans(&above, width)) {
                        if above_x0 <= x1 && x0 <= above_x1 {
                            expected.push(Touch { above, span });
                        }
                    }
                }
                let row_spans = labelled(&row, width);
                let mut walked = Vec::new();
                for_touches(&labelled(&above, width), &row_spans, |touch| {
                    walked.push(touch)
                });
                assert_eq!(walked, expected, "{above:x?} above {row:x?}");
                let mut touches = vec![Touch::default(); width + 1];
                let count = find_touches(&above, &row, &mut touches);
                assert_eq!(touches[..count], expected, "{above:x?} above {row:x?}");
            }
        }
    }
}
