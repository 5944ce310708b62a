//! The rows of a busy strip in parts, each read by a thread of its own.

use std::{
    ops::Range,
    sync::{Mutex, OnceLock, PoisonError},
    thread,
};

use super::{
    Run,
    band::Band,
    labels::Labels,
    rows::{Mask, count_runs},
    sums::Sums,
    touches::Span,
};

/// A strip of fewer runs is read by one thread, which takes about 2 ms. At half as many runs two threads save nothing,
/// and lose if other work keeps the processors busy.
const LEAST_RUNS: usize = 1 << 17;
/// More threads would wait for memory, and take processors from OpenCL.
const MOST_BANDS: usize = 4;
/// The runs of one row in so many are counted; the others are estimated from them.
const SAMPLED: usize = 16;

/// When and how a strip is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    /// Strips of fewer runs are not divided.
    pub least_runs: usize,
    /// Bands of a divided strip.
    pub bands: usize,
}

impl Default for Split {
    fn default() -> Self {
        // The answer takes several system calls.
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = *PROCESSORS.get_or_init(|| {
            thread::available_parallelism().map_or(1, |processors| processors.get())
        });
        Self {
            least_runs: LEAST_RUNS,
            bands: processors.min(MOST_BANDS),
        }
    }
}

impl Split {
    /// The number of bands for a strip, of which only rows in `is_set` have pixels. `row` is working memory.
    pub(super) fn bands(&self, mask: Mask, is_set: &[bool], row: &mut [u64]) -> usize {
        let bands = self.bands.min(is_set.len());
        let most = is_set.len().saturating_mul(mask.width.div_ceil(2));
        if bands < 2 || most < self.least_runs {
            return 1;
        }
        let mut runs = 0;
        for (y, _) in (is_set.iter().enumerate().step_by(SAMPLED)).filter(|(_, is_set)| **is_set) {
            mask.read(y, row);
            runs += count_runs(row);
        }
        if runs.saturating_mul(SAMPLED) < self.least_runs {
            return 1;
        }
        bands
    }
}

/// A band below the first one, with what its thread finds.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub band: Band,
    pub labels: Labels,
    /// Spans of the band's last row.
    pub front: Vec<Span>,
    /// The label of the strip that stands for the part's label 0.
    pub first_label: usize,
    pub sums: Vec<Sums>,
    pub runs: Vec<Run>,
}

impl Part {
    /// Begins to read some rows of a strip.
    pub(super) fn begin(&mut self, rows: Range<usize>, width: usize) {
        self.band.begin(rows, width);
        self.labels.clear();
        self.front.clear();
        self.runs.clear();
    }

    /// Appends the part's labels to those of the strip, and joins its first row with `front`, the row above. The
    /// part's last row becomes the front.
    pub(super) fn append_to(&mut self, labels: &mut Labels, front: &mut Vec<Span>) {
        self.first_label = labels.append(&self.labels);
        labels.join_rows(front, self.band.first_row(), self.first_label);
        std::mem::swap(front, &mut self.front);
        for span in front {
            span.label += self.first_label as u32;
        }
    }
}

/// The rows of band `band` if `height` rows make up `bands` bands.
pub(super) fn rows_of(band: usize, bands: usize, height: usize) -> Range<usize> {
    height * band / bands..height * (band + 1) / bands
}

/// Does all `work` with `threads` threads, of which this is one; each takes the next piece until none is left. If
/// threads cannot be started, the others do their work.
pub(super) fn share<W: Send>(
    threads: usize,
    work: impl Iterator<Item = W> + Send,
    act: impl Fn(W) + Sync,
) {
    let work = Mutex::new(work);
    let next = || work.lock().unwrap_or_else(PoisonError::into_inner).next();
    let act_on_all = || {
        while let Some(piece) = next() {
            act(piece);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            let builder = thread::Builder::new().name("clinspect-list".into());
            if builder.spawn_scoped(scope, act_on_all).is_err() {
                break;
            }
        }
        act_on_all();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn bands_hold_each_row_once_and_at_least_one() {
        for bands in 1..=4 {
            for height in bands..40 {
                let rows: Vec<_> = (0..bands)
                    .map(|band| rows_of(band, bands, height))
                    .collect();
                assert!(rows.iter().all(|rows| !rows.is_empty()));
                let all: Vec<_> = rows.into_iter().flatten().collect();
                assert_eq!(all, (0..height).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn all_work_is_done_once_by_any_number_of_threads() {
        // One thread: no other could be started.
        for threads in 1..=5 {
            let done: Vec<_> = (0..4).map(|_| AtomicUsize::new(0)).collect();
            share(threads, done.iter(), |piece| {
                piece.fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|piece| piece.load(Ordering::Relaxed) == 1));
        }
    }
}
