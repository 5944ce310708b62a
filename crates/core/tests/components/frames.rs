//! Frames: webs of one strip.

use crate::{
    ALL, MERGE_DISTANCES, TIGHT, any_layout, any_limits, barred, check, config, merging, noisy,
};
use clinspect_core::components::{Finder, Limits, Listed, RunDifference};
use clinspect_testkit::picture::{MaskLayout, Picture, compare, list};
use proptest::prelude::*;

/// Widths around those of bytes, words and blocks of words; single rows and columns.
const SIZES: [(usize, usize); 19] = [
    (1, 1),
    (15, 1),
    (1, 15),
    (7, 5),
    (8, 5),
    (9, 5),
    (17, 13),
    (63, 9),
    (64, 9),
    (65, 9),
    (127, 7),
    (128, 7),
    (129, 7),
    (511, 4),
    (512, 4),
    (513, 4),
    (575, 3),
    (600, 3),
    (1090, 3),
];

const LAYOUTS: [MaskLayout; 4] = [
    TIGHT,
    MaskLayout { offset: 1, gap: 1 },
    MaskLayout { offset: 3, gap: 8 },
    MaskLayout { offset: 7, gap: 13 },
];

#[test]
fn noise_of_every_size_and_density_equals_the_reference() {
    let mut finder = Finder::default();
    for (seed, (width, height)) in (1..).zip(SIZES) {
        for percent in [1, 5, 15, 30, 50, 75, 95, 100] {
            let picture = Picture::noise(width, height, percent, 7919 * seed + percent);
            for (i, &merge_distance) in MERGE_DISTANCES.iter().enumerate() {
                let layout = LAYOUTS[i % LAYOUTS.len()];
                check(&mut finder, &picture, layout, &merging(merge_distance));
            }
        }
    }
}

#[test]
fn noise_in_a_large_frame_equals_the_reference() {
    let mut finder = Finder::default();
    for (percent, merge_distances) in [(1, [2, 9]), (8, [0, 3]), (25, [0, 1]), (50, [0, 2])] {
        let picture = Picture::noise(331, 157, percent, percent);
        for merge_distance in merge_distances {
            let limits = Limits {
                min_area: 2,
                merge_distance,
                max_defects: 40,
                ..ALL
            };
            check(&mut finder, &picture, TIGHT, &limits);
        }
    }
}

#[test]
fn min_area_and_max_defects_of_noise_list_the_largest() {
    let mut finder = Finder::default();
    for percent in [3, 12, 30] {
        let picture = Picture::noise(90, 41, percent, 5);
        for merge_distance in [0, 2] {
            let all = check(&mut finder, &picture, TIGHT, &merging(merge_distance));
            let count = all.defects.len();
            for max_defects in [0, 1, 2, 10, count - 1, count, count + 1] {
                for min_area in [0, 1, 2, 3, 8, 10_000] {
                    let limits = Limits {
                        min_area,
                        merge_distance,
                        max_defects,
                        ..ALL
                    };
                    check(&mut finder, &picture, TIGHT, &limits);
                }
            }
        }
    }
}

#[test]
fn drawn_mask_has_the_values_worked_out_by_hand() {
    let picture = Picture::drawn(&[
        "##........", //
        "#....#....", //
        "......#...", //
        ".........#", //
        "........#.", //
    ]);
    let found = check(&mut Finder::default(), &picture, TIGHT, &ALL);
    let boxes: Vec<_> = (found.defects.iter())
        .map(|d| (d.x, d.y, d.width, d.height, d.area))
        .collect();
    // The two diagonals have equal areas: the upper one is first.
    assert_eq!(boxes, [(0, 0, 2, 2, 3), (5, 1, 2, 2, 2), (8, 3, 2, 2, 2)]);
    let centroids: Vec<_> = (found.defects.iter())
        .map(|d| (d.centroid_x, d.centroid_y))
        .collect();
    assert_eq!(centroids, [(2.5 / 3.0, 2.5 / 3.0), (6.0, 2.0), (9.0, 4.0)]);
    assert!(!found.overflow);
    // Of the corner's 12 sides two pairs touch. Its moments are 2/9, 2/9 and -1/9, so the eigenvalues are
    // 1/3 and 1/9.
    let corner = found.defects[0];
    assert_eq!(corner.boundary_length, 8);
    assert!((corner.major_axis - 4.0 / 3.0_f64.sqrt()).abs() < 1e-12);
    assert!((corner.minor_axis - 4.0 / 3.0).abs() < 1e-12);
    assert_eq!(corner.orientation, -std::f64::consts::FRAC_PI_4);
    // The moments of a diagonal are all 1/4 in magnitude: eigenvalues 1/2 and 0.
    let [falling, rising] = [found.defects[1], found.defects[2]];
    assert_eq!(falling.orientation, std::f64::consts::FRAC_PI_4);
    assert_eq!(rising.orientation, -std::f64::consts::FRAC_PI_4);
    assert_eq!((falling.minor_axis, falling.boundary_length), (0.0, 8));
    assert!((falling.major_axis - 4.0 * 0.5_f64.sqrt()).abs() < 1e-12);

    // Pixels (1, 0) and (5, 1) have three clear columns between; (6, 2) and (8, 4) one row and column;
    // (0, 1) is no nearer.
    let count = |distance| {
        let found = check(&mut Finder::default(), &picture, TIGHT, &merging(distance));
        found.defects.len()
    };
    assert_eq!([1, 2, 3].map(count), [2, 2, 1]);
}

#[test]
fn single_pixel_and_a_ring_have_the_features_worked_out_by_hand() {
    let found = check(&mut Finder::default(), &Picture::drawn(&["#"]), TIGHT, &ALL);
    let pixel = found.defects[0];
    assert_eq!(
        (pixel.major_axis, pixel.minor_axis, pixel.orientation),
        (0.0, 0.0, 0.0)
    );
    assert_eq!(pixel.boundary_length, 4);
    // The sides of the hole count too. Moments: 6 of 8 pixels are 1 from the centre, along either axis.
    let ring = Picture::drawn(&["###", "#.#", "###"]);
    let found = check(&mut Finder::default(), &ring, TIGHT, &ALL);
    let axis = 4.0 * 0.75_f64.sqrt();
    assert_eq!(found.defects[0].boundary_length, 12 + 4);
    assert_eq!(
        (found.defects[0].major_axis, found.defects[0].minor_axis),
        (axis, axis)
    );
}

#[test]
fn shapes_that_meet_late_equal_the_reference() {
    let pictures = [
        // Diagonals both ways, and across the border of two words.
        Picture::of(130, 20, |x, y| x % 20 == y || x % 20 == 19 - y),
        Picture::of(130, 20, |x, y| x % 3 == y % 3),
        Picture::of(66, 3, |x, y| (x, y) == (63, 0) || (x, y) == (64, 1)),
        Picture::of(66, 3, |x, y| (x, y) == (64, 0) || (x, y) == (63, 1)),
        Picture::of(66, 3, |x, y| (x, y) == (63, 0) || (x, y) == (65, 1)),
        // Combs whose teeth join below, above, and one by one.
        Picture::of(71, 9, |x, y| x % 2 == 0 || y == 8),
        Picture::of(71, 9, |x, y| x % 2 == 0 || y == 0),
        Picture::of(71, 36, |x, y| x % 2 == 0 || (x / 2) % 36 == y),
        // A checkerboard is one component.
        Picture::of(70, 9, |x, y| (x + y) % 2 == 0),
        Picture::of(70, 9, |x, y| x % 2 == 0 && y % 2 == 0),
        Picture::of(70, 9, |_, y| y % 2 == 0),
        Picture::of(129, 9, |_, _| true),
        Picture::of(129, 9, |_, _| false),
    ];
    let mut finder = Finder::default();
    for picture in &pictures {
        for merge_distance in MERGE_DISTANCES {
            for layout in LAYOUTS {
                check(&mut finder, picture, layout, &merging(merge_distance));
            }
        }
    }
}

#[test]
fn boxes_that_overlap_stay_apart_unless_pixels_are_near() {
    let count = |picture: &Picture, distance| {
        let found = check(&mut Finder::default(), picture, TIGHT, &merging(distance));
        found.defects.len()
    };
    // A ring around a dot.
    let ring = Picture::drawn(&["#####", "#...#", "#.#.#", "#...#", "#####"]);
    assert_eq!([0, 1].map(|distance| count(&ring, distance)), [2, 1]);
    // Two long scratches side by side, whose boxes overlap.
    let scratches = Picture::of(40, 40, |x, y| x == y || x == y + 8);
    // The nearest pixels are 4 columns and 4 rows apart.
    assert_eq!(
        [0, 2, 3].map(|distance| count(&scratches, distance)),
        [2, 2, 1]
    );
    // Two interleaved spirals.
    let spirals = Picture::drawn(&[
        "############", //
        "...........#", //
        "##########.#", //
        "#........#.#", //
        "#.####.#.#.#", //
        "#.#..#.#.#.#", //
        "#.#.##.#.#.#", //
        "#.#....#.#.#", //
        "#.######.#.#", //
        "#........#.#", //
        "##########.#", //
        "...........#", //
    ]);
    for distance in 0..6 {
        count(&spirals, distance);
    }
}

#[test]
fn pixels_at_the_merge_distance_and_one_past_it_differ() {
    for distance in [1, 2, 5, 50] {
        for (dx, dy) in [(1, 0), (0, 1), (1, 1)] {
            for mirrored in [false, true] {
                for (clear, count) in [(distance, 1), (distance + 1, 2)] {
                    let (x, y) = ((clear + 1) * dx, (clear + 1) * dy);
                    let picture = Picture::of(60, 60, |px, py| {
                        let px = if mirrored { 59 - px } else { px };
                        (px, py) == (3, 3) || (px, py) == (3 + x, 3 + y)
                    });
                    let limits = merging(distance as u32);
                    let found = check(&mut Finder::default(), &picture, TIGHT, &limits);
                    assert_eq!(found.defects.len(), count, "{clear} at {distance}");
                }
            }
        }
    }
}

#[test]
fn bars_of_different_depths_with_dots_between_equal_the_reference() {
    let mut finder = Finder::default();
    for (step, depth) in [(4, 7), (5, 1), (9, 3), (9, 11)] {
        for width in [60, 131] {
            let picture = Picture::of(width, 70, |x, y| {
                let bar = x / step;
                match x % step {
                    0 => y >= bar % 3 && y < 25 + bar * depth % 40,
                    2 => y % 6 == 2 && (x * y) % 5 != 0,
                    _ => false,
                }
            });
            for merge_distance in [0, 1, 2, 3, 5, 8, 20, 50, 1000, u32::MAX] {
                check(&mut finder, &picture, TIGHT, &merging(merge_distance));
            }
        }
    }
}

#[test]
fn frame_of_9000_columns_finds_far_neighbours() {
    // Gaps of many words.
    let marked = [
        (0, 0),
        (8999, 0),
        (4095, 1),
        (4096, 3),
        (100, 4),
        (8998, 4),
        (4500, 4),
    ];
    let picture = Picture::of(9000, 5, |x, y| marked.contains(&(x, y)));
    let mut finder = Finder::default();
    for merge_distance in [0, 1, 2, 4, 100, 404, 4400, 9000] {
        check(&mut finder, &picture, TIGHT, &merging(merge_distance));
    }
}

#[test]
fn ties_are_listed_in_the_scan_order_of_the_first_pixel() {
    // The three are ordered by the first pixel in scan order, not by the left edge or the box's corner.
    let picture = Picture::drawn(&[
        "......#...#", //
        ".....#...#.", //
        "#...#...#..", //
        "#..#...#...", //
        "#.#...#....", //
        "#..........", //
        "#..........", //
    ]);
    let mut finder = Finder::default();
    for max_defects in 0..5 {
        let limits = Limits { max_defects, ..ALL };
        let found = check(&mut finder, &picture, TIGHT, &limits);
        assert!(found.defects.len() <= max_defects);
    }
}

#[test]
fn overflow_says_that_there_were_more_than_are_listed() {
    let picture = Picture::of(70, 9, |x, y| x % 3 == 0 && y % 3 == 0);
    let count = 24 * 3;
    let mut finder = Finder::default();
    for (max_defects, overflow) in [
        (0, true),
        (1, true),
        (count - 1, true),
        (count, false),
        (count + 1, false),
    ] {
        let limits = Limits { max_defects, ..ALL };
        let found = check(&mut finder, &picture, TIGHT, &limits);
        assert_eq!(found.defects.len(), max_defects.min(count));
        assert_eq!(found.overflow, overflow, "{max_defects} of {count}");
    }
    // Defects below min-area do not count.
    let limits = Limits {
        min_area: 2,
        max_defects: 0,
        ..ALL
    };
    let found = check(&mut finder, &picture, TIGHT, &limits);
    assert_eq!(found, Listed::default());
}

#[test]
fn area_below_min_area_counts_after_merging() {
    let picture = Picture::drawn(&["#.#......#"]);
    let limits = Limits {
        min_area: 2,
        merge_distance: 2,
        max_defects: 9,
        ..ALL
    };
    let found = check(&mut Finder::default(), &picture, TIGHT, &limits);
    assert_eq!(found.defects.len(), 1);
    assert_eq!(found.defects[0].area, 2);
}

/// The list of a mask whose pixels do not differ, and the number of runs.
fn list_mask(
    finder: &mut Finder,
    mask: &[u8],
    stride: usize,
    [width, height]: [usize; 2],
    limits: &Limits,
) -> (Listed, usize) {
    let runs = finder.scan(mask, stride, width, height, limits, true).len();
    (finder.list(&vec![RunDifference::default(); runs]), runs)
}

#[test]
fn large_frame_of_ones_has_exact_features() {
    let (width, height) = (8191_usize, 4097);
    let stride = width.div_ceil(8);
    let mask = vec![0xff; stride * height];
    let (found, runs) = list_mask(&mut Finder::default(), &mask, stride, [width, height], &ALL);
    assert_eq!((found.defects.len(), runs), (1, height));
    let defect = found.defects[0];
    assert_eq!(defect.area as usize, width * height);
    assert_eq!(
        (defect.centroid_x, defect.centroid_y),
        (width as f64 / 2.0, height as f64 / 2.0)
    );
    // The variance of 0, 1, … n - 1 is (n² - 1) / 12.
    let axis = |n: usize| 4.0 * (((n * n - 1) as f64) / 12.0).sqrt();
    assert_eq!(
        (defect.major_axis, defect.minor_axis),
        (axis(width), axis(height))
    );
    assert_eq!(
        (defect.orientation, defect.boundary_length as usize),
        (0.0, 2 * (width + height))
    );
}

#[test]
fn mask_without_pixels_or_whole_rows_finds_nothing() {
    let mut finder = Finder::default();
    // Leaves state in the finder.
    list_mask(&mut finder, &[0xff; 4], 2, [16, 2], &ALL);
    for (len, stride, width, height) in [
        (0, 0, 0, 0),
        (8, 0, 8, 4),
        (8, 4, 0, 2),
        (8, 4, 32, 0),
        (0, 4, 32, 2),
        (3, 4, 32, 2),
        (8, 2, 32, 2),
    ] {
        let mask = &[0xff; 8][..len];
        let (found, _) = list_mask(&mut finder, mask, stride, [width, height], &merging(5));
        assert_eq!(found, Listed::default(), "{len} {stride} {width} {height}");
    }
    // The second row lacks a byte.
    let (found, runs) = list_mask(&mut finder, &[0xff; 7], 4, [32, 3], &ALL);
    assert_eq!((found.defects[0].area, runs), (32, 1));
}

#[test]
fn strip_of_more_runs_than_allowed_is_not_listed() {
    let picture = Picture::drawn(&["#.#.", ".##.", "#..#"]);
    let mask = TIGHT.pack(&picture);
    for (max_runs, overflow) in [(5, false), (4, true), (0, true)] {
        let limits = Limits { max_runs, ..ALL };
        let (found, runs) = list_mask(&mut Finder::default(), &mask, 1, [4, 3], &limits);
        assert_eq!(
            (found.overflow, found.defects.is_empty()),
            (overflow, overflow)
        );
        // Pixels of a defect in a row are one run of columns.
        assert_eq!(runs, if overflow { 0 } else { 3 });
    }
}

#[test]
fn finder_after_its_busiest_frames_keeps_its_memory() {
    let mut finder = Finder::default();
    let busy = TIGHT.pack(&Picture::noise(640, 90, 20, 3));
    let quiet = TIGHT.pack(&Picture::noise(640, 90, 1, 4));
    let mut memory = |mask: &[u8]| finder.scan(mask, 80, 640, 90, &merging(2), true).as_ptr();
    let before = memory(&busy);
    assert_eq!(memory(&quiet), before);
    assert_eq!(memory(&busy), before);
}

#[test]
fn oracle_with_one_pixel_changed_notices() {
    let picture = Picture::noise(23, 11, 30, 9);
    for merge_distance in [0, 3] {
        let limits = merging(merge_distance);
        for at in 0..picture.mask.len() {
            let mut changed = picture.clone();
            changed.mask[at] ^= true;
            let mut finder = Finder::default();
            let found = list(&mut finder, &changed, &[11], TIGHT, &limits).expect("whole runs");
            assert!(compare(&found, &changed, &[11], &limits).is_ok());
            assert!(
                compare(&found, &picture, &[11], &limits).is_err(),
                "pixel {at} changed, at distance {merge_distance}"
            );
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_two_masks_in_one_finder_equal_the_reference(
        first in noisy(),
        second in noisy(),
        layout in any_layout(),
        limits in any_limits(),
    ) {
        let mut finder = Finder::default();
        for picture in [&first, &second] {
            check(&mut finder, picture, layout, &limits);
        }
    }

    #[test]
    fn any_bars_and_rectangles_equal_the_reference(
        picture in barred(),
        limits in any_limits(),
    ) {
        check(&mut Finder::default(), &picture, TIGHT, &limits);
    }
}
