//! Ignored pixels, compared with the reference.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use clinspect_core::{
    ignored::{Bitmap, Ignored, Polygon},
    region::{Rect, union_of},
};
use clinspect_testkit::oracle::{ignore::ignored, pitch_threshold::pack};
use proptest::prelude::*;

fn of_polygons(width: usize, polygons: &[Vec<f64>]) -> Ignored {
    let polygons = polygons.iter().map(|p| Polygon::new(p).expect("a polygon"));
    Ignored::new(width, None, None, polygons.collect()).expect("no picture")
}

/// The rows of a bitmap as text.
fn text(bitmap: &Bitmap) -> Vec<String> {
    let stride = bitmap.width().div_ceil(8);
    (bitmap.bytes().chunks(stride))
        .map(|row| {
            let bits = (0..bitmap.width()).map(|x| row[x / 8] >> (7 - x % 8) & 1);
            bits.map(|bit| if bit == 1 { '#' } else { '.' }).collect()
        })
        .collect()
}

#[test]
fn a_rectangle_covers_the_pixels_whose_centres_are_inside() {
    let square = of_polygons(10, &[vec![2.0, 1.0, 5.0, 1.0, 5.0, 3.0, 2.0, 3.0]]);
    assert_eq!(
        text(&square.rows(0, 4)),
        ["..........", "..###.....", "..###.....", ".........."]
    );
    // Left and upper edges through centres are inside, right and lower ones are not.
    let centres = of_polygons(10, &[vec![2.5, 0.5, 5.5, 0.5, 5.5, 2.5, 2.5, 2.5]]);
    assert_eq!(
        text(&centres.rows(0, 4)),
        ["..###.....", "..###.....", "..........", ".........."]
    );
    // 1/512 px right of a centre is rounded away from zero, to 1/256 px right of it.
    let beside = of_polygons(
        10,
        &[vec![
            2.5 + 1.0 / 512.0,
            0.0,
            4.0,
            0.0,
            4.0,
            1.0,
            2.5 + 1.0 / 512.0,
            1.0,
        ]],
    );
    assert_eq!(text(&beside.rows(0, 1)), ["...#......"]);
}

#[test]
fn a_polygon_around_twice_is_empty_and_two_polygons_are_joined() {
    // Drawn twice around, the inside is outside by the even-odd rule; as two polygons it is not.
    let around = [0.0, 0.0, 4.0, 0.0, 4.0, 2.0, 0.0, 2.0];
    let twice = [&around[..], &around[..]].concat();
    assert_eq!(
        text(&of_polygons(5, &[twice]).rows(0, 2)),
        [".....", "....."]
    );
    let two = of_polygons(5, &[around.to_vec(), around.to_vec()]);
    assert_eq!(text(&two.rows(0, 2)), ["####.", "####."]);
}

#[test]
fn a_selvedge_of_a_long_web_is_drawn_in_any_row() {
    let far = (1_u64 << 45) as f64;
    let web = of_polygons(20, &[vec![-5.0, -1.0, 3.0, -1.0, 3.0, far, -5.0, far]]);
    for first in [0, 12_345_678_901, (1 << 45) - 2] {
        assert_eq!(
            text(&web.rows(first, 2)),
            ["###.................", "###................."]
        );
        assert!(!web.is_uniform(first, 2));
    }
    for first in [1 << 45, u64::MAX] {
        assert_eq!(text(&web.rows(first, 1)), ["...................."]);
        assert!(web.is_uniform(first, 1));
    }
}

#[test]
fn polygons_that_cannot_be_drawn_are_refused_with_a_sentence() {
    for (numbers, word) in [
        (vec![], "at least three points"),
        (vec![0.0; 4], "4 numbers"),
        (vec![0.0; 7], "7 numbers"),
        (
            vec![0.0, 0.0, 1.0, f64::NAN, 0.0, 1.0],
            "NaN is no coordinate",
        ),
        (
            vec![0.0, 0.0, 1.0, f64::INFINITY, 0.0, 1.0],
            "inf is no coordinate",
        ),
        (vec![0.0, 0.0, 1.0, -3.6e13, 0.0, 1.0], "-2^45 to 2^45"),
    ] {
        let error = Polygon::new(&numbers).expect_err(word);
        assert!(error.contains(word), "\"{error}\" lacks {word}");
    }
    assert!(Polygon::new(&[-3.5e13; 6]).is_ok());
}

#[test]
fn pictures_fit_the_frame_or_one_row_of_a_web() {
    let picture = |width, rows| {
        Some(Arc::new(Bitmap::from_pixels(width, rows, |x, y| {
            x == 1 + y
        })))
    };
    let frame = Ignored::new(10, Some(2), picture(10, 2), Vec::new()).expect("a frame's size");
    assert_eq!(text(&frame.rows(0, 2)), [".#........", "..#......."]);
    let web = Ignored::new(10, None, picture(10, 1), Vec::new()).expect("a row");
    assert_eq!(text(&web.rows(77, 2)), [".#........", ".#........"]);
    assert!(web.is_uniform(77, 2) && !frame.is_uniform(0, 2));
    let error = Ignored::new(10, Some(2), picture(10, 1), Vec::new()).expect_err("one row");
    assert!(
        error.contains("10x1") && error.contains("the frames have 10x2"),
        "{error}"
    );
    let error = Ignored::new(10, None, picture(10, 2), Vec::new()).expect_err("two rows");
    assert!(
        error.contains("10x2") && error.contains("a web has 10x1"),
        "{error}"
    );
}

/// Coordinates on pixel borders, on centres, 1/256 px beside them, and far outside.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-20..120_i32).prop_map(|n| f64::from(n) / 2.0),
        (-20..120_i32, -2..3_i32).prop_map(|(n, d)| f64::from(n) / 2.0 + f64::from(d) / 512.0),
        -10.0..60.0_f64,
        prop_oneof![Just(-3e13), Just(3e13), Just(-1e6), Just(1e6)],
    ]
}

fn polygon() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(coordinate(), 3..9).prop_flat_map(|xs| {
        let ys = prop::collection::vec(coordinate(), xs.len());
        ys.prop_map(move |ys| xs.iter().zip(ys).flat_map(|(&x, y)| [x, y]).collect())
    })
}

fn rect() -> impl Strategy<Value = Rect> {
    (0..45_usize, 0..35_usize, 0..50_usize, 0..40_usize)
        .prop_map(|(x, y, w, h)| Rect::new(x, y, w, h))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn polygons_equal_the_reference_in_any_window(
        polygons in prop::collection::vec(polygon(), 0..4),
        width in prop_oneof![1..50_usize, 64..300_usize],
        first in prop_oneof![0..40_u64, Just(1_000_000_000_u64)],
        rows in 1..40_usize,
    ) {
        let pixels = of_polygons(width, &polygons);
        let expected = ignored(&polygons, width, first as i64, rows);
        let bitmap = pixels.rows(first, rows);
        prop_assert_eq!(bitmap.bytes(), pack(&expected, width, rows));
        if pixels.is_uniform(first, rows) {
            prop_assert!(expected.iter().all(|&ignored| !ignored));
        }
    }

    #[test]
    fn judged_pixels_are_counted_as_one_by_one(
        polygons in prop::collection::vec(polygon(), 0..4),
        width in 1..50_usize,
        rows in 1..40_usize,
        a in prop::collection::vec(rect(), 0..4),
        b in prop::collection::vec(rect(), 0..4),
    ) {
        let ignored = ignored(&polygons, width, 0, rows);
        let bitmap = of_polygons(width, &polygons).rows(0, rows);
        let inside = |rects: &[Rect], x, y| {
            rects.iter().any(|r| r.x0 <= x && x < r.x1 && r.y0 <= y && y < r.y1)
        };
        let mut expected = 0;
        for y in 0..rows {
            for x in 0..width {
                expected += u64::from(inside(&a, x, y) && inside(&b, x, y) && !ignored[y * width + x]);
            }
        }
        let whole = [Rect::new(0, 0, width, rows)];
        let union: Vec<Rect> = union_of(&a, &b).iter().map(|r| r.intersect(&whole[0])).filter(|r| !r.is_empty()).collect();
        prop_assert_eq!(bitmap.count_judged(&union), expected);
    }
}
