//! Adds up the pixels of defects and collects their runs.

use std::iter::once;

use super::{
    super::{
        Run,
        band::Band,
        labels::Span,
        parts::share,
        rows::{Mask, add_runs, remove},
        sums::{RowSums, Sums},
    },
    Finder, NONE,
};

/// The sums of more defects are not added up by several threads: each thread would need a copy.
const MOST_SUMS: usize = 1 << 12;

/// What is known of a strip whose spans have defects.
struct Strip<'a> {
    mask: Mask<'a>,
    /// By label: the number of its defect, or [`NONE`].
    numbers: &'a [u32],
    /// The row above the strip.
    above: &'a [u64],
    severed: &'a [(usize, Vec<u64>)],
}

impl Finder {
    /// Adds up the listed and the open defects, and collects their runs.
    pub(super) fn measure(&mut self, mask: Mask) {
        let strip = Strip {
            mask,
            numbers: &self.numbers,
            above: &self.last_row,
            severed: &self.severed,
        };
        let parts = &mut self.parts[..self.used];
        if parts.is_empty() || self.sums.len() > MOST_SUMS {
            strip.measure(&mut self.band, 0, &mut self.sums, &mut self.runs);
            for part in parts {
                strip.measure(
                    &mut part.band,
                    part.first_label,
                    &mut self.sums,
                    &mut self.runs,
                );
            }
        } else {
            for part in &mut *parts {
                part.sums.clear();
                part.sums
                    .extend(self.sums.iter().map(|sums| Sums::new(sums.first_row)));
            }
            let threads = parts.len() + 1;
            let first = (&mut self.band, 0, &mut self.sums, &mut self.runs);
            let others = parts.iter_mut().map(|part| {
                (
                    &mut part.band,
                    part.first_label,
                    &mut part.sums,
                    &mut part.runs,
                )
            });
            share(
                threads,
                once(first).chain(others),
                |(band, first_label, sums, runs)| {
                    strip.measure(band, first_label, sums, runs);
                },
            );
            for part in parts {
                for (sums, more) in self.sums.iter_mut().zip(&part.sums) {
                    sums.merge(more);
                }
                self.runs.extend_from_slice(&part.runs);
            }
        }
        if let Some(last) = self.height.checked_sub(1) {
            mask.read(last, &mut self.last_row);
            let severed = self.severed.last().filter(|(row, _)| *row == self.height);
            if let Some((_, columns)) = severed {
                remove(&mut self.last_row, columns);
            }
        }
    }
}

impl Strip<'_> {
    /// Adds up the defects in a band whose label 0 is `first_label` of the strip, and collects their runs.
    fn measure(&self, band: &mut Band, first_label: usize, sums: &mut [Sums], runs: &mut Vec<Run>) {
        let numbers = &self.numbers[first_label..];
        let number_of = |span: &Span| numbers[span.label as usize];
        let mut severed = self.severed.iter().peekable();
        // The row of the mask that `band.row` holds.
        let mut in_row = None;
        let mut start = 0;
        for (y, &end) in band.rows.clone().zip(&band.row_ends) {
            let spans = &band.spans[start..end];
            start = end;
            let is_severed = severed.next_if(|(row, _)| *row == y);
            if spans.iter().all(|span| number_of(span) == NONE) {
                continue;
            }
            match y.checked_sub(1) {
                None => band.above.copy_from_slice(self.above),
                above if above == in_row => std::mem::swap(&mut band.row, &mut band.above),
                Some(above) => _ = self.mask.read(above, &mut band.above),
            }
            self.mask.read(y, &mut band.row);
            in_row = Some(y);
            if let Some((_, columns)) = is_severed {
                remove(&mut band.above, columns);
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
                let of_row = RowSums::of_columns(&band.row, &band.above, x0, x1);
                if of_row.area == 0 {
                    // The columns are only those that a pixel above reaches.
                    continue;
                }
                add_runs(&band.row, x0, x1, run, runs);
                sums[number as usize].add_row(y as i64, &of_row);
            }
        }
    }
}
