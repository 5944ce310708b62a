//! A strip in bands, compared with the same strip read by one thread.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{super::parts::Split, Finder, Limits, Listed, Run, RunDifference, Span, Sums};

const ALL: Limits = Limits {
    min_area: 1,
    merge_distance: 0,
    max_defects: usize::MAX,
    max_runs: usize::MAX,
    max_defect_rows: u32::MAX,
};

const WIDTHS: [usize; 10] = [1, 2, 7, 8, 63, 64, 65, 130, 201, 333];
/// Heights of the strips of a web: fewer rows than bands, and more.
const WEBS: [[usize; 4]; 5] = [
    [1, 1, 1, 1],
    [3, 1, 2, 4],
    [5, 8, 1, 13],
    [16, 3, 31, 7],
    [0, 33, 64, 2],
];

/// Which pixels are marked.
#[derive(Debug, Clone, Copy)]
enum Pattern {
    Noise(u32),
    Checkerboard,
    /// No two pixels touch.
    Dots,
    /// Teeth that join in the last row only.
    Comb,
}

const PATTERNS: [Pattern; 10] = [
    Pattern::Noise(0),
    Pattern::Noise(1),
    Pattern::Noise(9),
    Pattern::Noise(20),
    Pattern::Noise(53),
    Pattern::Noise(85),
    Pattern::Noise(100),
    Pattern::Checkerboard,
    Pattern::Dots,
    Pattern::Comb,
];

/// A mask of `height` rows with `stride` bytes each; the bits past the width are noise.
fn mask(pattern: Pattern, [width, height]: [usize; 2], stride: usize, seed: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut mask: Vec<u8> = (0..stride * height).map(|_| random.random()).collect();
    for y in 0..height {
        for x in 0..width {
            let is_marked = match pattern {
                Pattern::Noise(percent) => random.random_range(0..100) < percent,
                Pattern::Checkerboard => (x + y) % 2 == 0,
                Pattern::Dots => x % 2 == 0 && y % 2 == 0,
                Pattern::Comb => x % 2 == 0 || y + 1 == height,
            };
            let bit = 0x80 >> (x % 8);
            let byte = &mut mask[y * stride + x / 8];
            *byte = if is_marked { *byte | bit } else { *byte & !bit };
        }
    }
    mask
}

/// Differences with many equal peaks.
fn differences(runs: &[Run]) -> Vec<RunDifference> {
    let of_run = |run: &Run| {
        let value = (run.x0 * 7 + run.y * 13) % 9;
        let peak = i64::from(value) - 4;
        RunDifference {
            sum: peak << 40,
            peak,
            signs: 1 << value,
            is_fine: 0,
        }
    };
    runs.iter().map(of_run).collect()
}

/// What a finder says of a strip, and what it keeps for the next one.
#[derive(Debug, PartialEq)]
struct StripResult {
    runs: Vec<Run>,
    listed: Listed,
    open: Vec<Sums>,
    front: Vec<Span>,
    past: (bool, Vec<u64>),
    last_row: Vec<u64>,
}

fn find(
    finder: &mut Finder,
    mask: &[u8],
    width: usize,
    height: usize,
    limits: &Limits,
    ends: bool,
) -> StripResult {
    let stride = mask.len().checked_div(height).unwrap_or(0);
    let runs = finder
        .scan(mask, stride, width, height, limits, ends)
        .to_vec();
    let listed = finder.list(&differences(&runs));
    StripResult {
        runs,
        listed,
        open: finder.open.clone(),
        front: finder.front.clone(),
        past: (finder.past_runs, finder.past_row.clone()),
        last_row: finder.last_row.clone(),
    }
}

fn finder(bands: usize) -> Finder {
    Finder {
        split: Split {
            least_runs: 0,
            bands,
        },
        ..Finder::default()
    }
}

/// Compares the strips of a web in bands with those of one thread. Returns how many strips were divided.
fn check_web(pattern: Pattern, width: usize, heights: [usize; 4], limits: &Limits) -> usize {
    let mut divided = 0;
    let stride = width.div_ceil(8) + heights[0] % 3;
    let mut finders: Vec<_> = (1..=4).map(finder).collect();
    for (strip, height) in heights.into_iter().enumerate() {
        let seed = (width * 1000 + height * 10 + strip) as u64;
        let mask = mask(pattern, [width, height], stride, seed);
        let ends = strip + 1 == heights.len();
        let mut expected = None;
        for (bands, finder) in (1..).zip(&mut finders) {
            let found = find(finder, &mask, width, height, limits, ends);
            divided += usize::from(finder.used > 0);
            assert!(finder.used < bands.min(height.max(1)));
            match &expected {
                None => expected = Some(found),
                Some(expected) => assert!(
                    found == *expected,
                    "{pattern:?}, strip {strip} of {width} x {heights:?} in {bands} bands, {limits:?}:\n\
                     {found:?}\n{expected:?}"
                ),
            }
        }
    }
    divided
}

#[test]
fn strips_in_bands_equal_strips_read_by_one_thread() {
    for pattern in PATTERNS {
        for width in WIDTHS {
            for heights in WEBS {
                // Each finder of more than one band divides each strip of more than one row.
                let strips = heights.iter().filter(|&&height| height > 1).count();
                assert_eq!(check_web(pattern, width, heights, &ALL), 3 * strips);
                let few = Limits {
                    min_area: 2,
                    max_defects: 5,
                    ..ALL
                };
                check_web(pattern, width, heights, &few);
            }
        }
    }
}

#[test]
fn strips_with_a_merge_distance_or_forced_ends_equal_strips_read_by_one_thread() {
    for pattern in PATTERNS {
        for heights in WEBS {
            let merging = Limits {
                merge_distance: 1,
                ..ALL
            };
            assert_eq!(check_web(pattern, 65, heights, &merging), 0);
            let mut divided = Vec::new();
            for max_defect_rows in [0, 1, 2, 7, 13, 31, 32, 33, 34, 40] {
                let limits = Limits {
                    max_defect_rows,
                    ..ALL
                };
                divided.push(check_web(pattern, 65, heights, &limits));
            }
            assert_eq!(divided[0], 0);
        }
    }
}

#[test]
fn bands_wait_until_no_defect_can_end_by_force() {
    let column = |rows| vec![0x40; rows];
    let limits = Limits {
        max_defect_rows: 10,
        ..ALL
    };
    let mut finder = finder(2);
    let mut used = |rows, ends| {
        find(&mut finder, &column(rows), 8, rows, &limits, ends);
        finder.used
    };
    // The column has 9 rows, and would have 10.
    assert_eq!([used(5, false), used(4, false), used(1, false)], [1, 1, 0]);
    // The strip below the forced end continues the defect.
    assert_eq!(used(2, true), 0);
    assert_eq!([used(9, true), used(10, true)], [1, 0]);
}

#[test]
fn more_sums_than_threads_copy_are_equal_too() {
    // Dots in 340 x 60: 5100 defects.
    check_web(Pattern::Dots, 340, [60, 50, 3, 60], &ALL);
}

#[test]
fn strips_without_pixels_or_with_few_runs_are_not_divided() {
    let mut finder = Finder {
        split: Split {
            least_runs: 1000,
            bands: 4,
        },
        ..Finder::default()
    };
    for (percent, used) in [(0, 0), (1, 0), (25, 3), (0, 0), (100, 0)] {
        let mask = mask(Pattern::Noise(percent), [128, 100], 16, 7);
        find(&mut finder, &mask, 128, 100, &ALL, false);
        assert_eq!(finder.used, used, "{percent} %");
    }
}
