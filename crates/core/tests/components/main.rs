//! Lists of defects compared with the golden reference, which compares all pairs of near pixels: equal
//! boxes, areas, features, differences, order and overflow.

#![allow(clippy::panic, reason = "a test fails by panicking")]

mod frames;
mod webs;

use clinspect_core::components::{Finder, Limits, Listed};
use clinspect_testkit::picture::{MaskLayout, Picture, compare, list};
use proptest::{prelude::*, test_runner::RngSeed};

const TIGHT: MaskLayout = MaskLayout { offset: 0, gap: 0 };

const ALL: Limits = Limits {
    min_area: 0,
    merge_distance: 0,
    max_defects: usize::MAX,
    max_runs: usize::MAX,
    max_defect_rows: u32::MAX,
};

const MERGE_DISTANCES: [u32; 5] = [0, 1, 2, 5, 50];

fn merging(merge_distance: u32) -> Limits {
    Limits {
        merge_distance,
        ..ALL
    }
}

/// The lists of a picture's strips, compared with the reference. The finder has processed other masks.
#[track_caller]
fn lists(
    finder: &mut Finder,
    picture: &Picture,
    heights: &[usize],
    layout: MaskLayout,
    limits: &Limits,
) -> Vec<Listed> {
    let lists = list(finder, picture, heights, layout, limits);
    let compared = lists
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|lists| compare(lists, picture, heights, limits));
    match (lists, compared) {
        (Ok(lists), Ok(())) => lists,
        (_, Err(difference)) | (Err(difference), _) => {
            panic!("{difference}\nwith {limits:?}, {layout:?}, {heights:?} in {picture:?}")
        }
    }
}

/// The same of a frame.
#[track_caller]
fn check(finder: &mut Finder, picture: &Picture, layout: MaskLayout, limits: &Limits) -> Listed {
    lists(finder, picture, &[picture.height], layout, limits)
        .pop()
        .unwrap_or_default()
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
    /// Bars and small rectangles.
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
            Just(0),
            prop::sample::select(MERGE_DISTANCES.to_vec()),
            0_u32..20,
            Just(u32::MAX),
        ],
        max_defects in prop_oneof![Just(usize::MAX), 0_usize..4, 4_usize..60],
        max_defect_rows in prop_oneof![Just(u32::MAX), 1_u32..6, 6_u32..50],
    ) -> Limits {
        Limits { min_area, merge_distance, max_defects, max_defect_rows, ..ALL }
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
