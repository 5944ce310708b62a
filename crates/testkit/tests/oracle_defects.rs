//! The golden reference's lists of defects, compared with examples computed by hand.

use clinspect_testkit::oracle::defects::{Defect, List, Rules, Web, defects, defects_of_web};

/// A drawing as a mask, its differences and its levels: `+` is 20 above, `*` 60 above, `-` 30 below,
/// `=` 60 below, all at level 0; a digit is 1 above at that level, and `?` is 1 above for want of a pattern.
fn drawing(rows: &[&str]) -> (Vec<bool>, Vec<Option<f64>>, Vec<Option<u32>>) {
    let differences: Vec<Option<f64>> = rows
        .iter()
        .flat_map(|row| row.bytes())
        .map(|c| match c {
            b'+' => Some(20.0),
            b'*' => Some(60.0),
            b'-' => Some(-30.0),
            b'=' => Some(-60.0),
            b'?' | b'0'..=b'9' => Some(1.0),
            _ => None,
        })
        .collect();
    let levels = (rows.iter().flat_map(|row| row.chars()))
        .map(|c| match c {
            '.' | '?' => None,
            c => Some(c.to_digit(10).unwrap_or(0)),
        })
        .collect();
    let mask = differences.iter().map(Option::is_some).collect();
    (mask, differences, levels)
}

const RULES: Rules = Rules {
    min_area: 1,
    merge_distance: 0,
    max_defects: usize::MAX,
    max_defect_rows: u32::MAX,
};

/// The lists of a drawing cut into strips.
fn listed_in(rows: &[&str], heights: &[usize], rules: &Rules) -> Vec<List> {
    let (mask, differences, levels) = drawing(rows);
    let web = Web {
        mask: &mask,
        differences: &differences,
        levels: &levels,
        width: rows[0].len(),
    };
    defects_of_web(web, heights, rules)
}

/// The list of a drawing.
fn listed(rows: &[&str], rules: &Rules) -> List {
    listed_in(rows, &[rows.len()], rules).remove(0)
}

/// x, y and area of each defect of a list.
fn places_of(list: &List) -> Vec<(i64, i64, u32)> {
    list.defects.iter().map(|d| (d.x, d.y, d.area)).collect()
}

/// x, y and area of each defect of a drawing.
fn places(rows: &[&str], min_area: u32, merge_distance: u32) -> Vec<(i64, i64, u32)> {
    places_of(&listed(
        rows,
        &Rules {
            min_area,
            merge_distance,
            ..RULES
        },
    ))
}

#[test]
fn defects_of_empty_mask_are_none() {
    assert_eq!(listed(&["....", "...."], &RULES), List::default());
}

#[test]
fn defects_of_one_component_are_described() {
    let list = listed(&[".....", ".++..", "...*.", "....."], &RULES);
    assert!(!list.overflow);
    let defect = Defect {
        x: 1,
        y: 1,
        width: 3,
        height: 2,
        area: 3,
        // Centres 1.5, 2.5, 3.5 and 1.5, 1.5, 2.5.
        centroid_x: 2.5,
        centroid_y: 5.5 / 3.0,
        mean_difference: 100.0 / 3.0,
        peak_difference: 60.0,
        polarity: 1,
        level: 0,
        is_continued: false,
        is_cut: false,
        // The axes are checked below.
        major_axis: list.defects[0].major_axis,
        minor_axis: list.defects[0].minor_axis,
        orientation: list.defects[0].orientation,
        // 12 sides, of which one pair of pixels hides two.
        boundary_length: 10,
    };
    assert_eq!(list.defects, [defect]);
    // Moments 6/9, 3/9, 2/9: the eigenvalues are (8 ± √52) / 18.
    let axis = |sign: f64| 4.0 * ((8.0 + sign * 52.0_f64.sqrt()) / 18.0).sqrt();
    assert!((defect.major_axis - axis(1.0)).abs() < 1e-12);
    assert!((defect.minor_axis - axis(-1.0)).abs() < 1e-12);
    assert!((defect.orientation - 0.5 * 6.0_f64.atan2(4.0)).abs() < 1e-12);
}

#[test]
fn defects_by_sign_have_their_polarity() {
    let found = listed(&["--.+..+-", "........"], &RULES).defects;
    let summary: Vec<_> = found
        .iter()
        .map(|d| (d.x, d.polarity, d.mean_difference, d.peak_difference))
        .collect();
    assert_eq!(
        summary,
        [
            (0, -1, -30.0, -30.0),
            (6, 0, -5.0, -30.0),
            (3, 1, 20.0, 20.0)
        ]
    );
}

#[test]
fn defects_have_the_finest_level_of_their_pixels() {
    let found = listed(&["33.4?2.?.0*4", "............"], &RULES).defects;
    let levels: Vec<_> = found.iter().map(|d| (d.x, d.level)).collect();
    assert_eq!(levels, [(3, 2), (9, 0), (0, 3), (7, 0)]);
}

#[test]
fn defects_of_equal_peaks_report_the_first_in_scan_order() {
    // A flood fill from the first pixel reaches the bright peak before the dark one.
    let found = listed(&[".+.=", "+.+.", "*..."], &RULES).defects;
    assert_eq!((found.len(), found[0].peak_difference), (1, -60.0));
}

#[test]
fn defects_touching_by_corner_are_one() {
    assert_eq!(places(&["+..", ".+.", "+.+"], 1, 0), [(0, 0, 4)]);
    // The last column and the first of the next row do not touch.
    assert_eq!(places(&["...+", "+..."], 1, 0), [(3, 0, 1), (0, 1, 1)]);
}

#[test]
fn defects_within_merge_distance_are_one() {
    // Two columns lie between.
    assert_eq!(places(&["+..+"], 1, 1), [(0, 0, 1), (3, 0, 1)]);
    assert_eq!(places(&["+..+"], 1, 2), [(0, 0, 2)]);
    // Chebyshev: the larger of 3 columns and 2 rows counts.
    let diagonal = ["+...", "....", "...+"];
    assert_eq!(places(&diagonal, 1, 1).len(), 2);
    assert_eq!(places(&diagonal, 1, 2), [(0, 0, 2)]);
    // Transitive: 3 joins 0 and 6.
    assert_eq!(places(&["+..+..+"], 1, 2), [(0, 0, 3)]);
}

#[test]
fn defects_whose_boxes_overlap_stay_apart() {
    let ring = ["+++++", "+...+", "+.+.+", "+...+", "+++++"];
    assert_eq!(places(&ring, 1, 0), [(0, 0, 16), (2, 2, 1)]);
    assert_eq!(places(&ring, 1, 1), [(0, 0, 17)]);
}

#[test]
fn defects_close_in_the_strip_after_their_reach() {
    let rows = ["+", ".", ".", "+", "."];
    let lists = |heights: &[usize], merge_distance| -> Vec<_> {
        let rules = Rules {
            merge_distance,
            ..RULES
        };
        listed_in(&rows, heights, &rules)
            .iter()
            .map(|list| (places_of(list), list.largest_open))
            .collect()
    };
    // The pixel of row 0 is open at the end of row 1 with a distance of 1.
    assert_eq!(
        lists(&[1, 4], 0),
        [(vec![], 1), (vec![(0, -1, 1), (0, 2, 1)], 0)]
    );
    assert_eq!(
        lists(&[2, 3], 0),
        [(vec![(0, 0, 1)], 0), (vec![(0, 1, 1)], 0)]
    );
    assert_eq!(
        lists(&[2, 3], 1),
        [(vec![], 1), (vec![(0, -2, 1), (0, 1, 1)], 0)]
    );
    assert_eq!(lists(&[2, 3], 2), [(vec![], 1), (vec![(0, -2, 2)], 0)]);
}

#[test]
fn defects_open_for_too_long_are_cut() {
    let rows = ["+", "+", "+", "+", "+"];
    let rules = Rules {
        max_defect_rows: 2,
        ..RULES
    };
    for heights in [&[5][..], &[1, 4], &[2, 3], &[2, 2, 1]] {
        let found: Vec<_> = (listed_in(&rows, heights, &rules).iter())
            .flat_map(|list| list.defects.clone())
            .map(|d| (d.area, d.is_continued, d.is_cut, d.boundary_length))
            .collect();
        assert_eq!(
            found,
            [(2, false, true, 6), (2, true, true, 6), (1, true, false, 4)]
        );
    }
    // A defect that ends with the last row before the limit is open there, unless the web ends.
    let ends = listed_in(&rows[..2], &[2], &rules);
    assert!(!ends[0].defects[0].is_cut);
    let clear = listed(&["+", "+", "."], &rules);
    assert!(clear.defects[0].is_cut);
    // The next one continues it within the merge distance.
    let gap = Rules {
        merge_distance: 2,
        ..rules
    };
    for (rows, is_continued) in [
        (["+", "+", ".", ".", "+"], true),
        (["+", ".", ".", ".", "+"], false),
    ] {
        let found = listed(&rows, &gap).defects;
        assert_eq!(
            (found.len(), found[found.len() - 1].is_continued),
            (2, is_continued)
        );
    }
}

#[test]
fn defects_under_min_area_are_left_out_after_merging() {
    let rows = ["++.+.....", "......+++"];
    assert_eq!(places(&rows, 3, 0), [(6, 1, 3)]);
    assert_eq!(places(&rows, 3, 1), [(0, 0, 3), (6, 1, 3)]);
    assert_eq!(places(&rows, 4, 1), []);
    assert_eq!(places(&rows, 4, 2), [(0, 0, 6)]);
}

#[test]
fn defects_past_the_maximum_keep_the_largest_and_overflow() {
    let rows = [".+..++..+", "........+", "+........", "...+++..."];
    assert_eq!(
        places(&rows, 1, 0),
        [(3, 3, 3), (4, 0, 2), (8, 0, 2), (1, 0, 1), (0, 2, 1)]
    );
    let at_most = |min_area, max_defects| {
        let rules = Rules {
            min_area,
            max_defects,
            ..RULES
        };
        let list = listed(&rows, &rules);
        (places_of(&list), list.overflow)
    };
    assert_eq!(at_most(1, 2), (vec![(3, 3, 3), (4, 0, 2)], true));
    assert!(!at_most(1, 5).1);
    assert!(!at_most(2, 3).1);
    assert_eq!(at_most(1, 0), (vec![], true));
}

#[test]
fn defects_with_one_pixel_mutated_differ() {
    let rows = [".+..++..+", "........+", "+........", "...+++..."];
    let (mut mask, mut differences, levels) = drawing(&rows);
    let list = |mask: &[bool], differences: &[Option<f64>]| {
        let web = Web {
            mask,
            differences,
            levels: &levels,
            width: 9,
        };
        defects(web, &RULES)
    };
    let before = list(&mask, &differences);
    for at in 0..mask.len() {
        let (was, difference) = (mask[at], differences[at]);
        mask[at] = !was;
        differences[at] = if was { None } else { Some(20.0) };
        assert_ne!(list(&mask, &differences), before);
        (mask[at], differences[at]) = (was, difference);
    }
}
