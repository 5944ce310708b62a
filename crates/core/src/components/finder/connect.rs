//! Joins the spans of a strip that touch.

use std::iter::once;

use super::{
    super::{
        parts::{rows_of, share},
        rows::{Mask, count, for_words, remove},
    },
    Finder, Limits,
};

impl Finder {
    /// Finds the spans of the strip and joins those that touch. Afterwards `front` has the spans of the
    /// last row whose defects are open.
    pub(super) fn connect(&mut self, mask: Mask, limits: &Limits, ends: bool) {
        for sums in &self.open {
            self.labels.add(0, sums.area);
        }
        let bands = if self.may_divide(limits) {
            let row = &mut self.band.row;
            self.split.bands(mask, &self.is_set, row)
        } else {
            1
        };
        if bands > 1 {
            self.connect_bands(mask, bands);
        } else {
            self.connect_rows(mask, limits, ends);
        }
        if ends {
            self.front.clear();
        }
    }

    /// Whether the rows of the strip can be read in any order: pixels touch only pixels of the next row, and no
    /// defect is closed by force in this strip, nor was one just above it.
    fn may_divide(&self, limits: &Limits) -> bool {
        let oldest = self.open.first().map_or(0, |sums| sums.first_row.min(0));
        let expires = oldest.saturating_add(i64::from(limits.max_defect_rows.max(1)));
        limits.merge_distance == 0 && !self.past_runs && expires > self.height as i64
    }

    /// The same for a strip that is divided: each band has labels of its own at first.
    fn connect_bands(&mut self, mask: Mask, bands: usize) {
        self.used = bands - 1;
        self.parts
            .resize_with(self.used.max(self.parts.len()), Default::default);
        let parts = &mut self.parts[..self.used];
        self.band.begin(rows_of(0, bands, self.height), self.width);
        for (band, part) in (1..).zip(&mut *parts) {
            part.begin(rows_of(band, bands, self.height), self.width);
        }
        let first = (&mut self.band, &mut self.labels, &mut self.front);
        let others = parts
            .iter_mut()
            .map(|part| (&mut part.band, &mut part.labels, &mut part.front));
        let is_set = &self.is_set;
        share(bands, once(first).chain(others), |(band, labels, front)| {
            band.connect(mask, is_set, labels, front);
        });
        for part in parts {
            part.append_to(&mut self.labels, &mut self.front);
        }
    }

    /// The same for a strip that is not divided.
    fn connect_rows(&mut self, mask: Mask, limits: &Limits, ends: bool) {
        let distance = limits.merge_distance;
        self.band.begin_above(&self.front);
        for y in 0..self.height {
            self.expire(y, limits.max_defect_rows);
            self.band.row_spans.clear();
            // Most rows of most frames are clear, and nothing reads the pixels of a clear row without a distance.
            let mut any = self.is_set[y];
            if any {
                any = mask.read(y, &mut self.band.row);
            }
            if distance > 0 {
                if !any {
                    self.band.row.fill(0);
                }
                self.wide.copy_from_slice(&self.band.row);
                any = self.dilate.step(&mut self.wide, self.width);
            }
            if any {
                let wide = (distance > 0).then_some(&*self.wide);
                (self.band).connect_row(y, self.width, wide, &mut self.labels, &self.front);
                let row = if distance > 0 {
                    &mut self.wide
                } else {
                    &mut self.band.row
                };
                std::mem::swap(row, &mut self.band.above);
            }
            if self.past_runs {
                self.follow_past();
            }
            self.band.end_row(&mut self.front);
        }
        if !ends {
            self.expire(self.height, limits.max_defect_rows);
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
        let mut columns = vec![0; self.last_row.len()];
        let cut_before = self.cut.len();
        self.front.retain(|span| {
            let root = self.labels.root(span.label);
            if root as usize >= self.expired {
                return true;
            }
            self.cut.push(root);
            for_words(span.x0, span.x1, |word, bits| columns[word] |= bits);
            false
        });
        if self.cut.len() > cut_before {
            remove(&mut self.band.above, &columns);
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
        for span in &self.band.row_spans {
            let after = (span.x1 + 1).min(self.width as u32);
            if count(&self.past_row, span.x0.saturating_sub(1), after) > 0 {
                self.continued.push(span.label);
            }
        }
        self.past_row.fill(0);
        self.past_runs = self.past.step(&mut self.past_row, self.width);
    }
}
