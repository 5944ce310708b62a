//! A band: rows of a strip that follow each other, read by one thread.

use std::ops::Range;

use super::{
    labels::{Labels, NEW},
    rows::{Mask, count, find_edges, for_words, words_of},
    touches::{Span, Touch, find_touches, for_touches},
};

/// The spans of a band, and the working memory of the thread that reads it.
#[derive(Debug, Default)]
pub(super) struct Band {
    /// Rows of the strip.
    pub rows: Range<usize>,
    pub spans: Vec<Span>,
    /// By row of the band: where its spans end.
    pub row_ends: Vec<usize>,
    /// The row that is read, and the row above.
    pub row: Vec<u64>,
    pub above: Vec<u64>,
    /// Spans of the row that is read.
    pub row_spans: Vec<Span>,
    edges: Vec<u32>,
    touches: Vec<Touch>,
}

impl Band {
    /// Begins to read some rows of a strip.
    pub(super) fn begin(&mut self, rows: Range<usize>, width: usize) {
        self.rows = rows;
        self.spans.clear();
        self.row_ends.clear();
        self.row.resize(words_of(width), 0);
        self.above.resize(words_of(width), 0);
        self.edges.resize(width + 1, 0);
        self.touches.resize(width + 1, Touch::default());
    }

    /// Marks the pixels of `front` in the row above. Without spans in front nothing reads this row.
    pub(super) fn begin_above(&mut self, front: &[Span]) {
        self.above.fill(0);
        for span in front {
            for_words(span.x0, span.x1, |word, bits| self.above[word] |= bits);
        }
    }

    /// Joins the spans of the band that touch, without a merge distance. `front` is the row above the band and
    /// becomes its last row. Only rows in `is_set` have pixels.
    pub(super) fn connect(
        &mut self,
        mask: Mask,
        is_set: &[bool],
        labels: &mut Labels,
        front: &mut Vec<Span>,
    ) {
        self.begin_above(front);
        for y in self.rows.clone() {
            self.row_spans.clear();
            if is_set[y] && mask.read(y, &mut self.row) {
                self.connect_row(y, mask.width, None, labels, front);
                std::mem::swap(&mut self.row, &mut self.above);
            }
            self.end_row(front);
        }
    }

    /// Gives labels to the spans of `row`, or of `wide`: the row with widened pixels. `above` has the pixels of
    /// `front`.
    pub(super) fn connect_row(
        &mut self,
        y: usize,
        width: usize,
        wide: Option<&[u64]>,
        labels: &mut Labels,
        front: &[Span],
    ) {
        let row = wide.unwrap_or(&self.row);
        let count_edges = find_edges(row, width, &mut self.edges);
        let spans = &mut self.row_spans;
        spans.extend(self.edges[..count_edges].chunks_exact(2).map(|edge| Span {
            x0: edge[0],
            x1: edge[1],
            label: NEW,
        }));
        let touches = &mut self.touches;
        // Rows of few spans are most rows of most frames. After a clear row `above` is not up to date.
        let is_short = front.is_empty() || front.len() + spans.len() < row.len();
        let count_touches = if is_short {
            let mut count = 0;
            for_touches(front, spans, |touch| {
                touches[count] = touch;
                count += 1;
            });
            count
        } else {
            find_touches(&self.above, row, touches)
        };
        let touches = &touches[..count_touches];
        let y = y as u32;
        if wide.is_some() {
            let area = |x0, x1| count(&self.row, x0, x1);
            labels.connect(y, touches, front, spans, area);
        } else {
            let area = |x0, x1| u64::from(x1 - x0);
            labels.connect(y, touches, front, spans, area);
        }
    }

    /// Keeps the spans of the row; they become the front.
    pub(super) fn end_row(&mut self, front: &mut Vec<Span>) {
        self.spans.extend_from_slice(&self.row_spans);
        self.row_ends.push(self.spans.len());
        std::mem::swap(front, &mut self.row_spans);
    }

    /// The spans of the band's first row.
    pub(super) fn first_row(&self) -> &[Span] {
        let end = self.row_ends.first().copied().unwrap_or(0);
        &self.spans[..end]
    }
}
