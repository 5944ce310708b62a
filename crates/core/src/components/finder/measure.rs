//! Adds up the pixels of defects and collects their runs.

use super::{
    super::{
        Run,
        labels::Span,
        rows::{Mask, add_runs},
        sums::RowSums,
    },
    Finder, NONE,
};

impl Finder {
    /// Adds up the listed and the open defects, and collects their runs.
    pub(super) fn measure(&mut self, mask: Mask) {
        let listed = self.listed.len();
        let mut severed = self.severed.iter().peekable();
        let mut start = 0;
        for (y, &end) in self.row_ends.iter().enumerate() {
            let spans = &self.spans[start..end];
            start = end;
            let is_severed = severed.next_if(|(row, _)| *row == y);
            let number_of = |span: &Span| self.numbers[span.label as usize];
            if spans.iter().all(|span| number_of(span) == NONE) {
                continue;
            }
            mask.read(y, &mut self.row);
            if y > 0 {
                mask.read(y - 1, &mut self.last_row);
            }
            if let Some((_, columns)) = is_severed {
                remove(&mut self.last_row, columns);
            }
            for group in spans.chunk_by(|a, b| number_of(a) == number_of(b)) {
                let number = number_of(&group[0]);
                if number == NONE {
                    continue;
                }
                let (x0, x1) = (group[0].x0, group[group.len() - 1].x1);
                let run = Run {
                    y: y as u32,
                    defect: number,
                    ..Run::default()
                };
                let sums = RowSums::of_columns(&self.row, &self.last_row, x0, x1);
                if sums.area == 0 {
                    // The columns are only those that a pixel above reaches.
                    continue;
                }
                add_runs(&self.row, x0, x1, run, &mut self.runs);
                let number = number as usize;
                let of_defect = if number < listed {
                    &mut self.listed[number]
                } else {
                    &mut self.open[number - listed]
                };
                of_defect.add_row(y as i64, &sums);
            }
        }
        if let Some(last) = self.height.checked_sub(1) {
            mask.read(last, &mut self.last_row);
            if let Some((_, columns)) = severed.next_if(|(row, _)| *row == self.height) {
                remove(&mut self.last_row, columns);
            }
        }
    }
}

/// Clears some columns of a row.
fn remove(row: &mut [u64], columns: &[u64]) {
    for (row, columns) in row.iter_mut().zip(columns) {
        *row &= !columns;
    }
}
