//! Joins the spans of a strip that touch.

use super::{
    super::{
        labels::END,
        rows::{Mask, count, find_edges, for_words},
    },
    Finder, Limits,
};

impl Finder {
    /// Finds the spans of the strip and joins those that touch. Afterwards `front` has the spans of the
    /// last row whose defects are open, without [`END`].
    pub(super) fn connect(&mut self, mask: Mask, limits: &Limits, ends: bool) {
        let distance = limits.merge_distance;
        for sums in &self.open {
            self.labels.add(0, sums.area);
        }
        self.front.push(END);
        for y in 0..self.height {
            self.expire(y, limits.max_defect_rows);
            self.row_spans.clear();
            // Most rows of most frames are clear, and nothing reads the pixels of a clear row without a distance.
            let mut any = self.is_set[y];
            if any {
                any = mask.read(y, &mut self.row);
            }
            if distance > 0 {
                if !any {
                    self.row.fill(0);
                }
                self.wide.copy_from_slice(&self.row);
                any = self.dilate.step(&mut self.wide, self.width);
            }
            if any {
                self.connect_row(y, distance);
            }
            if self.past_runs {
                self.follow_past();
            }
            self.spans.extend_from_slice(&self.row_spans);
            self.row_ends.push(self.spans.len());
            self.row_spans.push(END);
            std::mem::swap(&mut self.front, &mut self.row_spans);
        }
        if ends {
            self.front.clear();
        } else {
            self.expire(self.height, limits.max_defect_rows);
            self.front.pop();
        }
    }

    fn connect_row(&mut self, y: usize, distance: u32) {
        let (row, front, spans) = (&self.row, &self.front, &mut self.row_spans);
        let y = y as u32;
        if distance == 0 {
            let count = find_edges(row, self.width, &mut self.edges);
            let edges = &self.edges[..count];
            let area = |x0, x1| u64::from(x1 - x0);
            self.labels.connect(y, edges, front, spans, area);
        } else {
            let count_edges = find_edges(&self.wide, self.width, &mut self.edges);
            let edges = &self.edges[..count_edges];
            let area = |x0, x1| count(row, x0, x1);
            self.labels.connect(y, edges, front, spans, area);
        }
    }

    /// The strip's row in which a label began.
    pub(super) fn first_row(&self, label: usize) -> i64 {
        match self.open.get(label) {
            Some(sums) => sums.first_row,
            None => i64::from(self.labels.row(label)),
        }
    }

    /// Closes by force the defects that began `max_rows` rows above row `y` and are still open.
    fn expire(&mut self, y: usize, max_rows: u32) {
        let begin = y as i64 - i64::from(max_rows.max(1));
        let mut any = false;
        // Labels are in the order of their first rows.
        while self.expired < self.labels.len() && self.first_row(self.expired) <= begin {
            any |= self.labels.is_root(self.expired);
            self.expired += 1;
        }
        if !any {
            return;
        }
        let mut columns = vec![0; self.row.len()];
        let cut_before = self.cut.len();
        self.front.retain(|span| {
            let root = self.labels.root(span.label);
            if span.x0 == END.x0 || root as usize >= self.expired {
                return true;
            }
            self.cut.push(root);
            for_words(span.x0, span.x1, |word, bits| columns[word] |= bits);
            false
        });
        if self.cut.len() > cut_before {
            self.dilate.take(&columns, &mut self.past);
            for (past, columns) in self.past_row.iter_mut().zip(&columns) {
                *past |= columns;
            }
            self.past_runs = true;
            self.severed.push((y, columns));
        }
    }

    /// Notes the row's spans that touch the end of a defect that was closed by force.
    fn follow_past(&mut self) {
        for span in &self.row_spans {
            let after = (span.x1 + 1).min(self.width as u32);
            if count(&self.past_row, span.x0.saturating_sub(1), after) > 0 {
                self.continued.push(span.label);
            }
        }
        self.past_row.fill(0);
        self.past_runs = self.past.step(&mut self.past_row, self.width);
    }
}
