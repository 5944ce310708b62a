//! The finder: from strips of a packed mask to lists of defects.

mod connect;
mod measure;
mod select;
#[cfg(test)]
mod tests;

use super::{
    Limits, Listed, Run, RunDifference,
    band::Band,
    dilate::Dilate,
    labels::{Labels, Span},
    parts::{Part, Split},
    rows::{Mask, count_runs, is_set, words_of},
    sums::Sums,
};

/// Number of a defect that is neither listed nor open.
const NONE: u32 = u32::MAX;

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
        let listed = self.listed.len();
        for (run, difference) in self.runs.iter().zip(differences) {
            let number = run.defect as usize;
            let sums = if number < listed {
                self.listed.get_mut(number)
            } else {
                self.open.get_mut(number - listed)
            };
            if let Some(sums) = sums {
                sums.add_difference((i64::from(run.y), run.x0), difference);
            }
        }
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

    /// Finds the defects of the rows that `is_set` tells.
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
