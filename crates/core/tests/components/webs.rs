//! Webs cut into strips.

use crate::{ALL, TIGHT, any_layout, any_limits, barred, check, config, lists, merging, noisy};
use clinspect_core::components::{CONTINUED, CUT, Finder, Limits, Listed, MeasuredDefect};
use clinspect_testkit::picture::Picture;
use proptest::prelude::*;

/// Cuts `height` rows into strips; `cuts` are numbers from 0 to 1.
fn strips(height: usize, cuts: &[f64]) -> Vec<usize> {
    let mut rows: Vec<usize> = cuts
        .iter()
        .map(|cut| (cut * height as f64) as usize)
        .collect();
    rows.extend([0, height]);
    rows.sort_unstable();
    rows.dedup();
    rows.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The defects of all strips, with rows of the web.
fn of_web(lists: &[Listed], heights: &[usize]) -> Vec<MeasuredDefect> {
    let mut defects = Vec::new();
    let mut first = 0;
    for (list, height) in lists.iter().zip(heights) {
        defects.extend(list.defects.iter().map(|defect| MeasuredDefect {
            y: defect.y + first as i32,
            // The rounding depends on the strip's row 0.
            centroid_y: ((defect.centroid_y + first as f64) * 1e6).round(),
            ..*defect
        }));
        first += height;
    }
    defects.sort_by_key(|d| (d.y, d.x, d.area, d.height, d.boundary_length, d.width));
    defects
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_web_equals_the_reference_and_one_frame(
        picture in prop_oneof![noisy(), barred()],
        cuts in prop::collection::vec(0.0_f64..1.0, 0..12),
        layout in any_layout(),
        limits in any_limits(),
    ) {
        let mut finder = Finder::default();
        let heights = strips(picture.height, &cuts);
        lists(&mut finder, &picture, &heights, layout, &limits);
        // The limit on the number counts per strip.
        let limits = Limits { max_defects: usize::MAX, ..limits };
        let cut = lists(&mut finder, &picture, &heights, layout, &limits);
        let whole = check(&mut finder, &picture, layout, &limits);
        prop_assert_eq!(of_web(&cut, &heights), of_web(&[whole], &[picture.height]));
    }

    #[test]
    fn any_web_of_strips_of_one_row_equals_the_reference(
        picture in noisy(),
        limits in any_limits(),
    ) {
        let heights = vec![1; picture.height];
        lists(&mut Finder::default(), &picture, &heights, TIGHT, &limits);
    }
}

#[test]
fn defect_over_three_strips_has_the_values_worked_out_by_hand() {
    let picture = Picture::drawn(&[
        "........", //
        ".##.....", //
        // The second strip.
        "..##....", //
        // The third one.
        "...##...", //
        "........", //
        "......#.", //
    ]);
    let heights = [2, 1, 3];
    let lists = lists(&mut Finder::default(), &picture, &heights, TIGHT, &ALL);
    let counts: Vec<_> = (lists.iter())
        .map(|list| (list.defects.len(), list.largest_open))
        .collect();
    assert_eq!(counts, [(0, 2), (0, 4), (2, 0)]);
    let defect = lists[2].defects[0];
    assert_eq!(
        (defect.x, defect.y, defect.width, defect.height),
        (1, -2, 4, 3)
    );
    assert_eq!((defect.area, defect.flags), (6, 0));
    assert_eq!((defect.centroid_x, defect.centroid_y), (3.0, -0.5));
    // Six pixels have 24 sides; five pairs of neighbours hide two each.
    assert_eq!(defect.boundary_length, 14);
    // Differences: 37 · ((7x + 13y + xy) mod 9 - 4) of the pixels (1, 1), (2, 1), (2, 2) … (4, 3).
    let differences = [-1.0, -2.0, 4.0, 4.0, 2.0, 3.0].map(|d| 37.0 * d / 512.0);
    assert_eq!(
        defect.mean_difference,
        differences.iter().sum::<f64>() / 6.0
    );
    assert_eq!(defect.peak_difference, differences[2]);
    assert_eq!(defect.polarity, 0);
    let dot = lists[2].defects[1];
    assert_eq!((dot.x, dot.y, dot.area), (6, 2, 1));
}

#[test]
fn arms_that_meet_two_strips_later_are_one_defect() {
    let picture = Picture::drawn(&[
        "#......#", //
        "#......#", //
        // The second strip.
        "#......#", //
        // The third one.
        "#......#", //
        "########", //
        "........", //
    ]);
    let heights = [2, 1, 3];
    let lists = lists(&mut Finder::default(), &picture, &heights, TIGHT, &ALL);
    let counts: Vec<_> = (lists.iter())
        .map(|list| (list.defects.len(), list.largest_open))
        .collect();
    assert_eq!(counts, [(0, 2), (0, 3), (1, 0)]);
    let defect = lists[2].defects[0];
    assert_eq!(
        (defect.x, defect.y, defect.width, defect.height),
        (0, -3, 8, 5)
    );
    assert_eq!(defect.area, 16);
}

#[test]
fn gap_over_a_border_is_bridged_up_to_the_merge_distance() {
    let picture = Picture::drawn(&["#", ".", ".", "#"]);
    for heights in [&[1, 3][..], &[2, 2], &[3, 1], &[1, 1, 1, 1]] {
        for (distance, count) in [(1, 2), (2, 1)] {
            let lists = lists(
                &mut Finder::default(),
                &picture,
                heights,
                TIGHT,
                &merging(distance),
            );
            let found: usize = lists.iter().map(|list| list.defects.len()).sum();
            assert_eq!(found, count, "{heights:?} at {distance}");
        }
    }
}

#[test]
fn column_that_never_ends_is_closed_by_force() {
    // Strips of 65536 lines: with 100 000 lines per second they are six minutes.
    const HEIGHT: usize = 1 << 16;
    const STRIPS: usize = 549;
    const MOST: u32 = 1 << 24;
    let limits = Limits {
        max_defect_rows: MOST,
        ..ALL
    };
    let mut finder = Finder::default();
    let mask = vec![0x20; HEIGHT];
    let measured = vec![Default::default(); HEIGHT];
    let mut cut = Vec::new();
    let mut memory = Vec::new();
    for strip in 0..STRIPS {
        let runs = finder.scan(&mask, 1, 8, HEIGHT, &limits, false);
        assert_eq!(runs.len(), HEIGHT);
        memory.push(runs.as_ptr());
        let list = finder.list(&measured);
        assert!(list.largest_open < u64::from(MOST), "strip {strip}");
        cut.extend(list.defects);
    }
    // Nothing grows with the web.
    assert!(memory.iter().all(|&at| at == memory[0]));
    assert_eq!(cut.len(), (STRIPS * HEIGHT) >> 24);
    for (i, defect) in cut.iter().enumerate() {
        let flags = if i == 0 { CUT } else { CUT | CONTINUED };
        assert_eq!(
            (defect.area, defect.height, defect.flags),
            (MOST, MOST, flags)
        );
        // The variance of 0, 1, … n - 1 is (n² - 1) / 12.
        let n = f64::from(MOST);
        assert_eq!(defect.major_axis, 4.0 * ((n * n - 1.0) / 12.0).sqrt());
        assert_eq!(defect.boundary_length, 2 * MOST + 2);
    }
}

#[test]
fn column_of_ten_hours_has_as_many_pixels_as_lines() {
    // A strip per line and a low limit: 22 500 forced ends, about those of ten hours at 10 000 lines per second with
    // the default of 16384 rows.
    let limits = Limits {
        max_defect_rows: 16,
        ..merging(3)
    };
    let mut finder = Finder::default();
    let mut area = 0;
    let lines = 360_000;
    for line in 0..lines {
        let runs = finder.scan(&[0x20], 1, 8, 1, &limits, line + 1 == lines);
        assert_eq!(runs.len(), 1);
        let list = finder.list(&[Default::default()]);
        area += list.defects.iter().map(|d| u64::from(d.area)).sum::<u64>();
        assert!(list.largest_open < 16);
    }
    assert_eq!(area, lines);
}

#[test]
fn strip_of_too_many_runs_closes_what_is_open() {
    let mut finder = Finder::default();
    let limits = Limits { max_runs: 3, ..ALL };
    // A column of two rows stays open.
    let runs = finder.scan(&[0x40, 0x40], 1, 8, 2, &limits, false).to_vec();
    assert_eq!((runs.len(), finder.has_open()), (2, true));
    assert_eq!(finder.list(&[Default::default(); 2]).largest_open, 2);
    // The lamp fails.
    assert!(finder.scan(&[0x55], 1, 8, 1, &limits, false).is_empty());
    let list = finder.list(&[]);
    let found: Vec<_> = (list.defects.iter())
        .map(|defect| (defect.area, defect.y, defect.flags))
        .collect();
    assert_eq!(
        (found, list.overflow, list.largest_open),
        (vec![(2, -2, CUT)], true, 0)
    );
    assert!(!finder.has_open());
    // The next strip is listed again.
    finder.scan(&[0x40], 1, 8, 1, &limits, true);
    let list = finder.list(&[Default::default()]);
    assert_eq!((list.defects.len(), list.defects[0].flags), (1, 0));
}

#[test]
fn new_web_forgets_what_is_open() {
    let mut finder = Finder::default();
    for reset in [false, true] {
        finder.scan(&[0x40], 1, 8, 1, &merging(3), false);
        finder.list(&[Default::default()]);
        assert!(finder.has_open());
        if reset {
            finder.reset();
        } else {
            // Another width begins a new web too.
            finder.pass(16, 9, &merging(3), false);
            assert_eq!(finder.list(&[]), Listed::default());
        }
        assert!(!finder.has_open());
        finder.scan(&[0x40], 1, 8, 1, &merging(3), true);
        assert_eq!(finder.list(&[Default::default()]).defects[0].area, 1);
    }
}

#[test]
fn strip_that_was_not_listed_lacks_only_its_differences() {
    let mut finder = Finder::default();
    for _ in 0..3 {
        finder.scan(&[0x40], 1, 8, 1, &ALL, false);
    }
    finder.pass(8, 1, &ALL, false);
    let list = finder.list(&[]);
    let defect = list.defects[0];
    assert_eq!((defect.y, defect.height, defect.area), (-3, 3, 3));
}
