//! Defects of a packed mask compared with the golden reference, which uses flood fill: equal
//! boxes, areas, centroids, order and overflow, and runs that cover the same pixels.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use clinspect_core::components::{Finder, Found, Limits, Run};
use clinspect_testkit::picture;
use picture::{MaskLayout, Picture, compare, find};
use proptest::{prelude::*, test_runner::RngSeed};

const TIGHT: MaskLayout = MaskLayout { offset: 0, gap: 0 };

const ALL: Limits = Limits {
    min_area: 0,
    merge_distance: 0,
    max_defects: usize::MAX,
};

fn merging(merge_distance: u32) -> Limits {
    Limits {
        merge_distance,
        ..ALL
    }
}

/// Finds the defects, with a finder that has processed another mask, and compares with the reference.
#[track_caller]
fn check(finder: &mut Finder, picture: &Picture, layout: MaskLayout, limits: &Limits) {
    let found = find(finder, picture, layout, limits);
    if let Err(difference) = compare(&found, picture, limits) {
        panic!("{difference}\nwith {limits:?}, {layout:?} in {picture:?}");
    }
}

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

const MERGE_DISTANCES: [u32; 5] = [0, 1, 2, 5, 50];

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
            let all = find(&mut finder, &picture, TIGHT, &merging(merge_distance));
            let count = all.shapes.len();
            for max_defects in [0, 1, 2, 10, count - 1, count, count + 1] {
                for min_area in [0, 1, 2, 3, 8, 10_000] {
                    let limits = Limits {
                        min_area,
                        merge_distance,
                        max_defects,
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
    let found = find(&mut Finder::default(), &picture, TIGHT, &ALL);
    let boxes: Vec<_> = found
        .shapes
        .iter()
        .map(|s| (s.x, s.y, s.width, s.height, s.area))
        .collect();
    // The two diagonals have equal areas: the upper one is first.
    assert_eq!(boxes, [(0, 0, 2, 2, 3), (5, 1, 2, 2, 2), (8, 3, 2, 2, 2)]);
    let centroids: Vec<_> = found
        .shapes
        .iter()
        .map(|s| (s.centroid_x, s.centroid_y))
        .collect();
    assert_eq!(centroids, [(2.5 / 3.0, 2.5 / 3.0), (6.0, 2.0), (9.0, 4.0)]);
    let run = |x0, x1, y, defect| Run { x0, x1, y, defect };
    assert_eq!(
        found.runs,
        [
            run(0, 2, 0, 0),
            run(0, 1, 1, 0),
            run(5, 6, 1, 1),
            run(6, 7, 2, 1),
            run(9, 10, 3, 2),
            run(8, 9, 4, 2),
        ]
    );
    assert!(!found.overflow);

    // The boxes of the diagonals are 2 apart; the box of the corner is 4 from the nearer one.
    let count = |distance| {
        let found = find(&mut Finder::default(), &picture, TIGHT, &merging(distance));
        found.shapes.len()
    };
    assert_eq!([1, 2, 3, 4].map(count), [3, 2, 2, 1]);
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
fn boxes_that_overlap_are_one_defect_at_distance_0() {
    let pictures = [
        // A ring around a dot, and a ring around a ring around a dot.
        Picture::drawn(&["#####", "#...#", "#.#.#", "#...#", "#####"]),
        Picture::of(19, 19, |x, y| {
            let ring = x.abs_diff(9).max(y.abs_diff(9));
            ring % 4 == 0
        }),
        // Two interleaved spirals.
        Picture::drawn(&[
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
        ]),
        // An L, and a dot in its open corner.
        Picture::drawn(&["....", "#.#.", "#...", "####"]),
        // A dot to the right of the hook's top row.
        Picture::drawn(&["#......", "#....#.", "#......", "#######"]),
        // Merging compares the boxes of components, not the box of merged components.
        Picture::drawn(&[
            "#....#....", //
            "#....#....", //
            "######..#.", //
            "..........", //
        ])
        .with_rectangles(&[[3, 1, 1, 1]]),
        Picture::drawn(&[
            "#........", //
            "..#......", //
            "....#....", //
            "......#..", //
            "#.......#", //
            "........#", //
        ]),
    ];
    let mut finder = Finder::default();
    let count = |picture| {
        find(&mut Finder::default(), picture, TIGHT, &ALL)
            .shapes
            .len()
    };
    assert_eq!(count(&pictures[0]), 1);
    assert_eq!(count(&pictures[1]), 1);
    assert_eq!(count(&pictures[2]), 1);
    for picture in &pictures {
        for merge_distance in 0..6 {
            check(&mut finder, picture, TIGHT, &merging(merge_distance));
        }
    }
}

#[test]
fn boxes_at_the_merge_distance_and_one_past_it_differ() {
    for distance in [1, 2, 5, 50] {
        for (dx, dy) in [(1, 0), (0, 1), (1, 1)] {
            for mirrored in [false, true] {
                for (apart, count) in [(distance, 1), (distance + 1, 2)] {
                    let (x, y) = (apart * dx, apart * dy);
                    // Touching pixels are one component at any distance.
                    let picture = Picture::of(60, 60, |px, py| {
                        let px = if mirrored { 59 - px } else { px };
                        (px, py) == (3, 3) || (px, py) == (3 + x, 3 + y)
                    });
                    let limits = merging(distance as u32);
                    let found = find(&mut Finder::default(), &picture, TIGHT, &limits);
                    assert_eq!(found.shapes.len(), count, "{apart} at {distance}");
                }
            }
        }
    }
}

#[test]
fn bars_of_different_depths_with_dots_between_equal_the_reference() {
    // Many pieces side by side that extend below the shape that covers them.
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
    // More columns than one word of the column summary covers.
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
        check(&mut finder, &picture, TIGHT, &limits);
        let found = find(&mut finder, &picture, TIGHT, &limits);
        assert!(found.shapes.len() <= max_defects);
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
        let found = find(&mut finder, &picture, TIGHT, &limits);
        assert_eq!(found.shapes.len(), max_defects.min(count));
        assert_eq!(found.runs.len(), max_defects.min(count));
        assert_eq!(found.overflow, overflow, "{max_defects} of {count}");
        check(&mut finder, &picture, TIGHT, &limits);
    }
    // Defects below min-area do not count.
    let limits = Limits {
        min_area: 2,
        max_defects: 0,
        ..ALL
    };
    let found = find(&mut finder, &picture, TIGHT, &limits);
    assert_eq!(found, Found::default());
}

#[test]
fn area_below_min_area_counts_after_merging() {
    let picture = Picture::drawn(&["#.#......#"]);
    let limits = Limits {
        min_area: 2,
        merge_distance: 2,
        max_defects: 9,
    };
    let found = find(&mut Finder::default(), &picture, TIGHT, &limits);
    assert_eq!(found.shapes.len(), 1);
    assert_eq!(found.shapes[0].area, 2);
    assert_eq!(found.runs.len(), 2);
}

#[test]
fn large_frame_of_ones_has_an_exact_centroid() {
    let (width, height) = (8191_usize, 4097);
    let mask = vec![0xff; width.div_ceil(8) * height];
    let mut finder = Finder::default();
    let found = finder.find(&mask, width.div_ceil(8), width, height, &ALL);
    assert_eq!(found.shapes.len(), 1);
    assert_eq!(found.shapes[0].area as usize, width * height);
    assert_eq!(found.shapes[0].centroid_x, width as f64 / 2.0);
    assert_eq!(found.shapes[0].centroid_y, height as f64 / 2.0);
    assert_eq!(found.runs.len(), height);
}

#[test]
fn mask_without_pixels_or_whole_rows_finds_nothing() {
    let mut finder = Finder::default();
    // Leaves state in the finder.
    finder.find(&[0xff; 4], 2, 16, 2, &ALL);
    for (len, stride, width, height) in [
        (0, 0, 0, 0),
        (8, 0, 8, 4),
        (8, 4, 0, 2),
        (8, 4, 32, 0),
        (0, 4, 32, 2),
        (3, 4, 32, 2),
        (8, 2, 32, 2),
    ] {
        let found = finder.find(&[0xff; 8][..len], stride, width, height, &merging(5));
        if stride != 0 {
            assert_eq!(*found, Found::default(), "{len} {stride} {width} {height}");
        }
    }
    // The second row lacks a byte.
    let found = finder.find(&[0xff; 7], 4, 32, 3, &ALL);
    assert_eq!(found.runs.len(), 1);
    assert_eq!(found.shapes[0].area, 32);
}

#[test]
fn finder_after_its_busiest_frames_keeps_its_memory() {
    let mut finder = Finder::default();
    let busy = TIGHT.pack(&Picture::noise(640, 90, 20, 3));
    let quiet = TIGHT.pack(&Picture::noise(640, 90, 1, 4));
    let mut memory = |mask: &[u8]| {
        let found = finder.find(mask, 80, 640, 90, &merging(2));
        assert!(!found.runs.is_empty());
        (
            found.runs.as_ptr(),
            found.runs.capacity(),
            found.shapes.as_ptr(),
            found.shapes.capacity(),
        )
    };
    // The quieter mask has fewer runs, but more defects.
    memory(&busy);
    let before = memory(&quiet);
    assert_eq!(memory(&busy), before);
    assert_eq!(memory(&quiet), before);
}

#[test]
fn oracle_with_one_pixel_changed_notices() {
    let picture = Picture::noise(23, 11, 30, 9);
    for merge_distance in [0, 3] {
        let limits = merging(merge_distance);
        for at in 0..picture.mask.len() {
            let mut changed = picture.clone();
            changed.mask[at] ^= true;
            let found = find(&mut Finder::default(), &changed, TIGHT, &limits);
            assert!(compare(&found, &changed, &limits).is_ok());
            assert!(
                compare(&found, &picture, &limits).is_err(),
                "pixel {at} changed, at distance {merge_distance}"
            );
        }
    }
}

prop_compose! {
    /// Noise of any density.
    fn noisy()(
        width in 1_usize..150,
        height in 1_usize..40,
        density in prop::sample::select(vec![0.02, 0.1, 0.3, 0.5, 0.8, 0.97]),
    )(
        mask in prop::collection::vec(prop::bool::weighted(density), width * height),
        width in Just(width),
        height in Just(height),
    ) -> Picture {
        Picture { width, height, mask }
    }
}

prop_compose! {
    /// Bars and small rectangles: many adjacent and nested boxes.
    fn barred()(
        width in 20_usize..200,
        height in 20_usize..120,
        rectangles in prop::collection::vec(
            prop_oneof![
                (0_usize..200, 0_usize..120, 1_usize..4, 1_usize..100),
                (0_usize..200, 0_usize..120, 1_usize..100, 1_usize..3),
                (0_usize..200, 0_usize..120, 1_usize..5, 1_usize..5),
            ],
            0..60,
        ),
    ) -> Picture {
        let rectangles: Vec<_> = rectangles.iter().map(|&(x, y, w, h)| [x, y, w, h]).collect();
        Picture::of(width, height, |_, _| false).with_rectangles(&rectangles)
    }
}

prop_compose! {
    fn any_limits()(
        min_area in prop_oneof![Just(0), 1_u32..6, 20_u32..60],
        merge_distance in prop_oneof![
            prop::sample::select(MERGE_DISTANCES.to_vec()),
            0_u32..20,
            Just(u32::MAX),
        ],
        max_defects in prop_oneof![Just(usize::MAX), 0_usize..4, 4_usize..60],
    ) -> Limits {
        Limits { min_area, merge_distance, max_defects }
    }
}

prop_compose! {
    fn any_layout()(offset in 0_usize..9, gap in 0_usize..17) -> MaskLayout {
        MaskLayout { offset, gap }
    }
}

/// The same cases on every run.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 600,
        rng_seed: RngSeed::Fixed(0x0c11_5bec),
        failure_persistence: None,
        ..ProptestConfig::default()
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
            let found = find(&mut finder, picture, layout, &limits);
            prop_assert_eq!(compare(&found, picture, &limits), Ok(()));
        }
    }

    #[test]
    fn any_bars_and_rectangles_equal_the_reference(
        picture in barred(),
        limits in any_limits(),
    ) {
        let found = find(&mut Finder::default(), &picture, TIGHT, &limits);
        prop_assert_eq!(compare(&found, &picture, &limits), Ok(()));
    }
}
