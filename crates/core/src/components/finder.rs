//! The finder: from strips of a packed mask to lists of defects.

#[cfg(test)]
mod tests;

use std::iter::once;

use super::{
    COMPONENTS, CONTINUED, CUT, Limits, Listed, Run, RunDifference,
    band::Band,
    dilate::Dilate,
    labels::Labels,
    parts::{Part, Split, rows_of, share},
    rows::{Mask, add_runs, count, count_runs, for_words, is_set, remove, words_of},
    sums::{RowSums, Sums},
    touches::Span,
};

/// Number of a defect that is neither listed nor open.
const NONE: u32 = u32::MAX;
/// Stands for the numbers of open defects before they have one.
const OPEN: u32 = u32::MAX - 1;
/// The sums of more defects are not added up by several threads: each thread would need a copy.
const MOST_SUMS: usize = 1 << 12;

/// Finds the defects of a web, strip by strip. The working memory grows to what the busiest strip needs.
#[derive(Debug, Default)]
pub struct Finder {
    width: usize,
    /// Open defects, in the scan order of their first pixels. In the next strip they have the first
    /// labels.
    open: Vec<Sums>,
    /// Spans of the last widened row whose defects are open.
    front: Vec<Span>,
    dilate: Dilate,
    /// The end of defects that were closed by force: how far it still reaches, and where it reached in
    /// the row before. New pixels there continue such a defect.
    past: Dilate,
    past_row: Vec<u64>,
    past_runs: bool,
    /// The last row, without the pixels of defects that were closed by force with that row.
    last_row: Vec<u64>,

    // The strip's own memory.
    /// By row: whether it may have a marked pixel.
    is_set: Vec<bool>,
    wide: Vec<u64>,
    labels: Labels,
    split: Split,
    /// The first rows: all of a strip that is not divided.
    band: Band,
    /// The bands below: the first `used` ones. The others keep their memory.
    parts: Vec<Part>,
    used: usize,
    /// Labels that were closed by force, and labels that continue such a defect.
    cut: Vec<u32>,
    continued: Vec<u32>,
    /// Rows whose row above holds pixels of defects that were closed by force, with their columns.
    severed: Vec<(usize, Vec<u64>)>,
    /// By label: the number of its defect, or [`NONE`].
    numbers: Vec<u32>,
    ranks: Vec<u128>,
    runs: Vec<Run>,
    /// The sums of listed and of open defects while these are measured.
    sums: Vec<Sums>,
    listed: Vec<Sums>,
    overflow: bool,
    /// Rows of the strip.
    height: usize,
    /// Labels below were closed by force if they were still open.
    expired: usize,
}

impl Finder {
    /// Begins a new web: forgets open defects.
    pub fn reset(&mut self) {
        self.open.clear();
        self.front.clear();
        self.dilate.clear();
        self.past.clear();
        self.past_row.clear();
        self.past_runs = false;
        self.last_row.clear();
    }

    /// Whether the next strip depends on the strips before: a defect is open, or was closed by force a
    /// moment ago.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty() || self.past_runs
    }

    /// A strip of `height` rows without marked pixels follows; otherwise like [`Self::scan`], without
    /// runs.
    pub fn pass(&mut self, width: usize, height: usize, limits: &Limits, ends: bool) {
        // Clear rows change nothing unless a defect is open.
        let height = if self.has_open() { height } else { 0 };
        self.scan(&[], 0, width, height, limits, ends);
    }

    /// Reads the packed mask of the next strip: `width` × `height` pixels, `stride` bytes per row.
    /// `ends`: the web ends with this strip.
    ///
    /// Returns the runs of the defects that are listed with this strip, and of those that stay open, in
    /// scan order. Pass their differences to [`Self::list`].
    ///
    /// Bits past the width and bytes past the row are ignored. Rows that do not lie completely in `mask`
    /// count as clear. Another width than before begins a new web. Features are exact sums while
    /// the width is below 2²¹.
    ///
    /// Time: one pass over the mask's bytes, then near-linear in the number of runs. Up to three more threads help
    /// for the time of the call if there are many runs; the result does not depend on it. Memory: 12 bytes per run
    /// of the strip, 16 bytes per group of runs, and 16 bytes per returned run; the last two twice where threads
    /// help. Between strips only open defects are kept: at most one per two columns.
    pub fn scan(
        &mut self,
        mask: &[u8],
        stride: usize,
        width: usize,
        height: usize,
        limits: &Limits,
        ends: bool,
    ) -> &[Run] {
        self.begin(width, height, limits.merge_distance);
        let rows = 0..height;
        let mask = Mask {
            bytes: mask,
            stride,
            width,
        };
        self.is_set
            .extend(rows.map(|y| mask.bytes_of(y).is_some_and(is_set)));
        self.find(mask, limits, ends)
    }

    /// Like [`Self::scan`], where it is known which rows have marked pixels: row `y` of the strip, of which there are
    /// `is_set.len()`, is clear and not read unless `is_set[y]`.
    pub fn scan_rows(
        &mut self,
        mask: &[u8],
        stride: usize,
        width: usize,
        is_set: &[bool],
        limits: &Limits,
        ends: bool,
    ) -> &[Run] {
        self.begin(width, is_set.len(), limits.merge_distance);
        self.is_set.extend_from_slice(is_set);
        let mask = Mask {
            bytes: mask,
            stride,
            width,
        };
        self.find(mask, limits, ends)
    }

    /// Takes the differences of the runs that [`Self::scan`] returned, in their order, and lists the
    /// defects that close with this strip.
    pub fn list(&mut self, differences: &[RunDifference]) -> Listed {
        self.add_differences(differences.iter().map(|run| (0, run, 0)));
        self.finish()
    }

    /// [`Self::list`] where the components of a colour are judged apart: the differences of the pixels that each component
    /// marks, and by run the number of these pixels.
    pub fn list_components(
        &mut self,
        differences: &[Vec<RunDifference>; COMPONENTS],
        pixels: &[[u32; COMPONENTS]],
    ) -> Listed {
        for (component, differences) in differences.iter().enumerate() {
            let runs = differences.iter().zip(pixels);
            self.add_differences(runs.map(|(run, pixels)| (component, run, pixels[component])));
        }
        self.finish()
    }

    /// Adds the differences of a component, one for each run, and its number of pixels.
    fn add_differences<'a>(
        &mut self,
        differences: impl Iterator<Item = (usize, &'a RunDifference, u32)>,
    ) {
        let listed = self.listed.len();
        for (run, (component, difference, pixels)) in self.runs.iter().zip(differences) {
            let number = run.defect as usize;
            let sums = if number < listed {
                self.listed.get_mut(number)
            } else {
                self.open.get_mut(number - listed)
            };
            if let Some(sums) = sums {
                sums.add_difference(component, (i64::from(run.y), run.x0), difference, pixels);
            }
        }
    }

    fn finish(&mut self) -> Listed {
        self.runs.clear();
        Listed {
            defects: self.listed.drain(..).map(|sums| sums.defect()).collect(),
            overflow: self.overflow,
            largest_open: self.open.iter().map(|sums| sums.area).max().unwrap_or(0),
        }
    }
}

/// The steps of a scan.
impl Finder {
    fn begin(&mut self, width: usize, height: usize, distance: u32) {
        if width != self.width {
            self.reset();
            self.width = width;
        }
        for sums in &mut self.open {
            sums.advance(self.height as i64);
        }
        self.height = height;
        let words = words_of(width);
        self.dilate.prepare(words, distance);
        self.past.prepare(words, distance);
        for row in [&mut self.past_row, &mut self.last_row, &mut self.wide] {
            row.resize(words, 0);
        }
        self.band.begin(0..height, width);
        self.used = 0;
        self.is_set.clear();
        self.labels.clear();
        self.cut.clear();
        self.continued.clear();
        self.severed.clear();
        self.runs.clear();
        self.listed.clear();
        self.expired = 0;
    }

    /// Finds the defects of the rows that are set in `is_set`.
    fn find(&mut self, mask: Mask, limits: &Limits, ends: bool) -> &[Run] {
        if self.exceeds(mask, limits.max_runs) {
            self.give_up(limits);
        } else {
            self.connect(mask, limits, ends);
            self.select(limits);
            self.measure(mask);
            self.open = self.sums.split_off(self.ranks.len());
            self.listed = std::mem::take(&mut self.sums);
            if ends {
                self.reset();
            }
        }
        &self.runs
    }

    /// Whether the strip has more than `max_runs` runs.
    fn exceeds(&mut self, mask: Mask, max_runs: usize) -> bool {
        if self.height.saturating_mul(self.width.div_ceil(2)) <= max_runs {
            return false;
        }
        let mut runs = 0;
        for y in 0..self.height {
            if self.is_set[y] {
                mask.read(y, &mut self.band.row);
                runs += count_runs(&self.band.row);
            }
            if runs > max_runs {
                return true;
            }
        }
        false
    }
}

/// Joins the spans of a strip that touch.
impl Finder {
    /// Finds the spans of the strip and joins those that touch. Afterwards `front` has the spans of the
    /// last row whose defects are open.
    fn connect(&mut self, mask: Mask, limits: &Limits, ends: bool) {
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
    fn first_row(&self, label: usize) -> i64 {
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

/// Decides which defects are listed, and gives them numbers.
impl Finder {
    /// Closes the open defects by force, and lists nothing else.
    fn give_up(&mut self, limits: &Limits) {
        self.listed.append(&mut self.open);
        let min_area = u64::from(limits.min_area);
        self.listed.retain(|sums| sums.area >= min_area);
        // The sort is stable: equal areas stay in scan order.
        self.listed.sort_by_key(|sums| std::cmp::Reverse(sums.area));
        self.listed.truncate(limits.max_defects);
        for sums in &mut self.listed {
            sums.flags |= CUT;
        }
        self.overflow = true;
        self.reset();
    }

    /// Decides which defects are listed and which are open, and gives them numbers: listed ones first.
    /// Open ones get the sums of the strips before.
    fn select(&mut self, limits: &Limits) {
        self.labels.flatten();
        let labels = &self.labels;
        let mut open: Vec<usize> = (self.front.iter())
            .map(|span| labels.flat_root(span.label as usize))
            .collect();
        open.sort_unstable();
        open.dedup();
        self.numbers.clear();
        self.numbers.resize(labels.len(), NONE);
        for &label in &open {
            self.numbers[label] = OPEN;
        }

        let min_area = u64::from(limits.min_area);
        self.ranks.clear();
        for label in 0..labels.len() {
            let area = labels.area(label);
            if labels.is_root(label) && area >= min_area && self.numbers[label] == NONE {
                self.ranks.push(rank(area, label));
            }
        }
        self.overflow = self.ranks.len() > limits.max_defects;
        if self.overflow {
            self.ranks.select_nth_unstable(limits.max_defects);
            self.ranks.truncate(limits.max_defects);
        }
        self.ranks.sort_unstable();

        let listed = self.ranks.iter().map(|&rank| label_of(rank));
        let mut sums = Vec::with_capacity(self.ranks.len() + open.len());
        for label in listed.chain(open) {
            self.numbers[label] = sums.len() as u32;
            sums.push(Sums::new(self.first_row(label)));
        }
        for label in 0..self.labels.len() {
            self.numbers[label] = self.numbers[self.labels.flat_root(label)];
        }
        for (&number, before) in self.numbers.iter().zip(&self.open) {
            if let Some(sums) = sums.get_mut(number as usize) {
                sums.merge(before);
            }
        }
        for (labels, flag) in [(&self.cut, CUT), (&self.continued, CONTINUED)] {
            for &label in labels {
                if let Some(sums) = sums.get_mut(self.numbers[label as usize] as usize) {
                    sums.flags |= flag;
                }
            }
        }
        self.sums = sums;
        for span in &mut self.front {
            span.label = self.numbers[span.label as usize] - self.ranks.len() as u32;
        }
    }
}

/// A sort key: lower for a larger area, then for a defect whose first pixel comes earlier.
fn rank(area: u64, label: usize) -> u128 {
    u128::from(!area) << 64 | label as u128
}

/// The label of a rank.
fn label_of(rank: u128) -> usize {
    rank as u64 as usize
}

/// Adds up the pixels of defects and collects their runs.
impl Finder {
    /// Adds up the listed and the open defects, and collects their runs.
    fn measure(&mut self, mask: Mask) {
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

/// What is known of a strip whose spans have defects.
struct Strip<'a> {
    mask: Mask<'a>,
    /// By label: the number of its defect, or [`NONE`].
    numbers: &'a [u32],
    /// The row above the strip.
    above: &'a [u64],
    severed: &'a [(usize, Vec<u64>)],
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
