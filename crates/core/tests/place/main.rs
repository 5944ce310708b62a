//! Parts at any place and angle, on drawn pictures: exactly what the definition says, and where they were drawn.
#![allow(clippy::expect_used)]

mod parts;

use clinspect_core::place::{Model, ONE, Pose, Region, SCALES, Search, TURN, edge_share};
use clinspect_testkit::{
    oracle::place::{self as oracle, Picture},
    parts::{Part, Placed, View},
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn size(picture: &Picture) -> [usize; 2] {
    [picture.width, picture.height]
}

fn sums(picture: &Picture) -> Vec<u16> {
    picture
        .sums()
        .values
        .iter()
        .map(|&sum| sum as u16)
        .collect()
}

/// The same part for the search under test and for the definition.
struct Trained {
    model: Model,
    expected: oracle::Model,
}

impl Trained {
    /// The part of a picture that stands out from its ground.
    fn new(picture: &Picture, scales: &[i32]) -> Self {
        let region = Region::found(&sums(picture), size(picture)).expect("a region");
        let cells = oracle::found_region(picture).expect("a region");
        let columns = picture.width / 4;
        let is_part = |x: usize, y: usize| {
            x / 4 < columns && cells.get(y / 4 * columns + x / 4).copied().unwrap_or(false)
        };
        let same = Region::new(size(picture), is_part).expect("a region");
        assert_eq!(region, same, "the region that is found");
        Self::with_region(picture, &region, is_part, scales)
    }

    fn with_region(
        picture: &Picture,
        region: &Region,
        is_part: impl Fn(usize, usize) -> bool,
        scales: &[i32],
    ) -> Self {
        let pixels = (0..picture.height).flat_map(|y| (0..picture.width).map(move |x| (x, y)));
        let samples: Vec<bool> = pixels.map(|(x, y)| is_part(x, y)).collect();
        let wide: Vec<i64> = scales.iter().map(|&scale| scale.into()).collect();
        let model = Model::new(&sums(picture), size(picture), region, scales).expect("edges");
        let expected = oracle::Model::new(picture, &samples, &wide).expect("edges");
        assert_eq!(model.is_alike(), expected.alike);
        Self { model, expected }
    }

    /// Searches a frame, and compares with the definition.
    fn find(&self, frame: &Picture, wanted: usize) -> Vec<Vec<Pose>> {
        let mut search = Search::new(size(frame), wanted);
        let found = search.find(&self.model, &sums(frame));
        let plain = |pose: &Pose| oracle::Pose {
            x: pose.x.into(),
            y: pose.y.into(),
            angle: pose.angle.into(),
            scale: pose.scale.into(),
            score: pose.score.into(),
        };
        let plain: Vec<Vec<oracle::Pose>> = found
            .iter()
            .map(|place| place.iter().map(plain).collect())
            .collect();
        assert_eq!(plain, oracle::find(&self.expected, frame, wanted));
        // A second frame finds no traces of the first.
        assert_eq!(search.find(&self.model, &sums(frame)), found);
        found
    }
}

/// Whether a pose is that of a drawn part, up to so many px and degrees.
fn is_at(pose: &Pose, placed: &Placed, px: f64, degrees: f64) -> bool {
    let [x, y] = pose.centre();
    let angle = 360.0 * f64::from(pose.angle) / f64::from(TURN) - placed.angle.to_degrees();
    let angle = (angle + 180.0).rem_euclid(360.0) - 180.0;
    (x - placed.at[0]).hypot(y - placed.at[1]) <= px && angle.abs() <= degrees
}

const MIDDLE: Placed = Placed {
    at: [120.0, 96.0],
    angle: 0.0,
    scale: 1.0,
    is_mirrored: false,
};

/// A part in the middle of a picture of 240x192 px.
fn trained(part: &Part) -> Trained {
    Trained::new(&View::new(240, 192).draw(part, &[MIDDLE]), &[ONE])
}

#[test]
fn board_is_found_at_any_angle() {
    let part = Part::board(3, 90.0, 60.0);
    let trained = trained(&part);
    for (n, degrees) in [0.0, 31.0, 90.0, 147.0, 180.0, 222.5, 301.0, 359.0]
        .into_iter()
        .enumerate()
    {
        let placed = Placed::new(90.0 + 9.3 * n as f64, 100.0 - 3.7 * n as f64, degrees);
        let frame = View {
            seed: n as u64,
            ..View::new(240, 192)
        };
        let found = trained.find(&frame.draw(&part, &[placed]), 1);
        assert!(
            is_at(&found[0][0], &placed, 6.0, 3.0),
            "{placed:?}: {found:?}"
        );
    }
}

#[test]
fn large_part_descends_from_scale_16_and_a_tenth_of_scale_is_found() {
    let part = Part::board(8, 330.0, 220.0);
    let view = View::new(640, 420);
    let picture = view.draw(&part, &[Placed::new(320.0, 210.0, 0.0)]);
    let one = Trained::new(&picture, &[ONE]);
    let placed = Placed::new(300.0, 205.0, 200.0);
    let found = one.find(&view.draw(&part, &[placed]), 1);
    assert!(!one.model.is_alike());
    assert!(is_at(&found[0][0], &placed, 6.0, 1.0), "{found:?}");
    let scaled = Trained::new(&picture, &SCALES);
    // No scale beyond those of the coarsest level is tried.
    let larger = Placed {
        scale: 1.18,
        ..placed
    };
    let found = scaled.find(&view.draw(&part, &[larger]), 1);
    assert!((found.iter().flatten()).all(|pose| (230..=282).contains(&pose.scale)));
    for scale in [0.91, 1.08] {
        let placed = Placed { scale, ..placed };
        let found = scaled.find(&view.draw(&part, &[placed]), 1);
        let of = f64::from(found[0][0].scale) / f64::from(ONE);
        assert!(
            is_at(&found[0][0], &placed, 6.0, 1.0) && (of - scale).abs() < 0.03,
            "{found:?}"
        );
    }
}

#[test]
fn light_cover_noise_and_clutter_do_not_move_a_board() {
    let part = Part::board(5, 96.0, 70.0);
    let trained = trained(&part);
    let placed = Placed::new(110.0, 90.0, 70.0);
    let view = View::new(240, 192);
    for view in [
        View {
            light: 0.5,
            ..view.clone()
        },
        View {
            light: 1.5,
            ..view.clone()
        },
        View {
            bar: [100.0, 108.0, 30.0],
            ..view.clone()
        },
        View {
            noise: 25.0,
            ..view.clone()
        },
        View {
            clutter: 25,
            ..view
        },
    ] {
        let found = trained.find(&view.draw(&part, &[placed]), 1);
        assert!(
            is_at(&found[0][0], &placed, 6.0, 3.0),
            "{view:?}: {found:?}"
        );
    }
}

#[test]
fn few_edges_are_searched_like_many() {
    // More and more of the part has the level of the ground, until its score is too low.
    let part = Part::board(5, 96.0, 70.0);
    let trained = trained(&part);
    let found: Vec<usize> = (0..12)
        .map(|n| {
            let view = View {
                bar: [60.0, 100.0 + 6.0 * f64::from(n), 200.0],
                noise: 0.0,
                ..View::new(240, 192)
            };
            trained
                .find(&view.draw(&part, &[Placed::new(120.0, 90.0, 0.0)]), 1)
                .len()
        })
        .collect();
    assert!(found[0] > 0 && found[11] == 0, "{found:?}");
}

#[test]
fn samples_of_16_bits_give_the_poses_of_8_bits_where_their_sums_agree() {
    let part = Part::board(6, 80.0, 70.0);
    let view = View {
        bits: 12,
        ..View::new(200, 160)
    };
    let trained = Trained::new(&view.draw(&part, &[Placed::new(100.0, 80.0, 0.0)]), &[ONE]);
    let placed = Placed::new(90.0, 85.0, 123.0);
    let found = trained.find(&view.draw(&part, &[placed]), 1);
    assert!(is_at(&found[0][0], &placed, 6.0, 3.0), "{found:?}");
}

#[test]
fn symmetric_parts_have_the_poses_of_the_definition() {
    for (part, is_alike, poses) in [
        (Part::Nut(6, 48.0, 20.0), true, 2..5),
        (Part::Plate(70.0), true, 2..5),
        (Part::Disc(46.0, 0.0), true, 1..5),
        (Part::Disc(46.0, 8.0), true, 1..5),
    ] {
        let trained = trained(&part);
        assert_eq!(trained.model.is_alike(), is_alike, "{part:?}");
        let placed = Placed::new(105.0, 88.0, 40.0);
        let found = trained.find(&View::new(240, 192).draw(&part, &[placed]), 1);
        assert!(
            is_at(&found[0][0], &placed, 6.0, 360.0),
            "{part:?}: {found:?}"
        );
        assert!(poses.contains(&found[0].len()), "{part:?}: {found:?}");
        if let Part::Disc(_, 8.0) = part {
            assert!(
                is_at(&found[0][0], &placed, 6.0, 3.0),
                "a notch tells the angle: {found:?}"
            );
        }
    }
}

#[test]
fn parts_are_counted_up_to_two_more_than_wanted() {
    let part = Part::board(11, 44.0, 30.0);
    let picture = View::new(160, 160).draw(&part, &[Placed::new(80.0, 80.0, 0.0)]);
    let trained = Trained::new(&picture, &[ONE]);
    let grid = |n: usize| {
        let [x, y] = [n % 5, n / 5].map(|n| n as f64);
        Placed::new(40.0 + 58.0 * x, 40.0 + 58.0 * y, 53.0 * n as f64)
    };
    let view = View::new(316, 256);
    for (drawn, wanted, count) in [
        (0, 1, None),
        (1, 1, None),
        (2, 2, Some(2)),
        (20, 2, Some(4)),
    ] {
        let placed: Vec<Placed> = (0..drawn).map(grid).collect();
        let found = trained.find(&view.draw(&part, &placed), wanted);
        let at = |pose: &Pose| placed.iter().any(|placed| is_at(pose, placed, 7.0, 15.0));
        let right = found.iter().filter(|place| at(&place[0])).count();
        assert_eq!(right, drawn.min(wanted + 2), "{found:?}");
        assert!(count.is_none_or(|count| found.len() >= count));
    }
}

#[test]
fn random_scenes_have_the_poses_of_the_definition() {
    let mut random = ChaCha8Rng::seed_from_u64(56);
    let mut places = 0;
    for seed in 0..24 {
        let size = random.random_range(24.0..80.0);
        let part = match seed % 4 {
            0 => Part::board(seed, 1.4 * size, size),
            1 => Part::Nut(random.random_range(3..9), 0.6 * size, 0.2 * size),
            2 => Part::Disc(0.5 * size, random.random_range(0.0..4.0)),
            _ => Part::Plate(size),
        };
        let trained = trained(&part);
        let view = View {
            light: random.random_range(0.4..1.6),
            noise: random.random_range(0.0..12.0),
            clutter: random.random_range(0..12),
            seed,
            ..View::new(random.random_range(150..260), random.random_range(120..220))
        };
        let placed: Vec<Placed> = (0..random.random_range(0..4))
            .map(|_| {
                let [x, y] = view
                    .size
                    .map(|n| random.random_range(-10.0..n as f64 + 10.0));
                Placed {
                    is_mirrored: random.random_bool(0.2),
                    ..Placed::new(x, y, random.random_range(0.0..360.0))
                }
            })
            .collect();
        places += trained
            .find(&view.draw(&part, &placed), random.random_range(1..3))
            .len();
    }
    assert!(places > 24, "{places}");
}

#[test]
fn part_that_the_frame_cuts_and_frames_without_it_are_searched_by_the_definition() {
    let part = Part::board(3, 90.0, 60.0);
    let trained = trained(&part);
    let view = View::new(240, 192);
    let mirrored = Placed {
        is_mirrored: true,
        ..Placed::new(120.0, 90.0, 20.0)
    };
    for placed in [
        Placed::new(16.0, 80.0, 30.0),
        Placed::new(220.0, 180.0, 200.0),
        mirrored,
    ] {
        trained.find(&view.draw(&part, &[placed]), 1);
    }
    let other = Part::board(4, 90.0, 60.0);
    trained.find(&view.draw(&other, &[Placed::new(120.0, 90.0, 20.0)]), 1);
    let empty = view.draw(&part, &[]);
    assert_eq!(trained.find(&empty, 1), Vec::<Vec<Pose>>::new());
    // Frames of other sizes than the trained picture, and smaller than the part.
    for [width, height] in [[61, 43], [4, 4], [3, 9], [250, 30]] {
        trained.find(
            &View::new(width, height).draw(&part, &[Placed::new(20.0, 20.0, 5.0)]),
            1,
        );
    }
}

#[test]
fn score_of_edges_is_one_at_the_place_itself_and_low_for_a_mirror_image_and_another_part() {
    let part = Part::board(3, 90.0, 60.0);
    let view = View::new(240, 192);
    let trained = trained(&part);
    let other = Part::board(4, 90.0, 60.0);
    let mirrored = Placed {
        is_mirrored: true,
        ..MIDDLE
    };
    for (picture, range) in [
        (view.draw(&part, &[MIDDLE]), 1.0..=1.0),
        (
            View {
                light: 0.6,
                seed: 9,
                ..view.clone()
            }
            .draw(&part, &[MIDDLE]),
            0.9..=1.0,
        ),
        (view.draw(&part, &[mirrored]), 0.0..=0.8),
        (view.draw(&other, &[MIDDLE]), 0.0..=0.8),
    ] {
        // The picture from a place on, as the frame is read.
        let first = [24, 36];
        let [width, height] = size(&picture);
        let rows = (first[1]..height).map(|y| &picture.samples[y * width + first[0]..][..180]);
        let read = Picture {
            width: 180,
            height: height - first[1],
            bits: 8,
            samples: rows.flatten().copied().collect(),
        };
        let share = edge_share(&trained.model, &sums(&read), size(&read), first);
        let [same, points] = trained.expected.same_edges(&read, first.map(|v| v as i64));
        assert_eq!(share, same as f64 / points as f64);
        assert!(range.contains(&share), "{share} {range:?}");
    }
}

#[test]
fn region_is_set_or_found_and_refusals_say_what_to_do() {
    let part = Part::board(3, 90.0, 60.0);
    let view = View::new(240, 192);
    let picture = view.draw(&part, &[MIDDLE]);
    // A region that is no whole pixel of level 4.
    let is_part = |x: usize, y: usize| (83..155).contains(&x) && (70..131).contains(&y);
    let region = Region::new(size(&picture), is_part).expect("a region");
    let trained = Trained::with_region(&picture, &region, is_part, &[ONE]);
    trained.find(&view.draw(&part, &[Placed::new(100.0, 80.0, 10.0)]), 1);

    let found = |picture: &Picture| Region::found(&sums(picture), size(picture));
    let empty = view.draw(&part, &[]);
    assert!(oracle::found_region(&empty).is_err());
    let error = found(&empty).expect_err("nothing is drawn");
    assert_eq!(error, "no part stands out from its background; set region");
    let cut = view.draw(&part, &[Placed::new(30.0, 96.0, 0.0)]);
    assert!(oracle::found_region(&cut).is_err());
    let error = found(&cut).expect_err("the part is cut");
    assert_eq!(error, "the part touches the edge of the frame; set region");
    let error = Region::new([240, 192], |_, _| false).expect_err("no pixel");
    assert_eq!(error, "the region holds no pixel; set region");
    // Two pieces, and one that is too small to count.
    let clutter = View {
        clutter: 3,
        seed: 4,
        ..view.clone()
    };
    let pieces = clutter.draw(&Part::Plate(50.0), &[MIDDLE]);
    match (found(&pieces), oracle::found_region(&pieces)) {
        (Ok(region), Ok(cells)) => {
            let is_part = |x: usize, y: usize| cells[y / 4 * 60 + x / 4];
            assert_eq!(region, Region::new([240, 192], is_part).expect("a region"));
        }
        (found, expected) => assert_eq!(found.is_err(), expected.is_err()),
    }

    let spot = view.draw(&Part::Spot(50.0), &[MIDDLE]);
    let is_part = |x: usize, y: usize| (60..180).contains(&x) && (40..150).contains(&y);
    let region = Region::new([240, 192], is_part).expect("a region");
    let error = Model::new(&sums(&spot), [240, 192], &region, &[ONE]).err();
    assert_eq!(error.as_deref(), Some("the part has too few edges"));
    let samples: Vec<bool> = (0..240 * 192)
        .map(|at| is_part(at % 240, at / 240))
        .collect();
    assert!(oracle::Model::new(&spot, &samples, &[256]).is_err());
}

/// `cargo test --release -p clinspect-core --test place -- --ignored --nocapture`
#[test]
#[ignore = "measures, in a release build on a quiet PC"]
fn one_part_in_2048x1536_is_found_in_40_ms_on_one_core() {
    let view = View {
        noise: 5.0,
        ..View::new(2048, 1536)
    };
    for [width, height] in [
        [200.0, 150.0],
        [280.0, 200.0],
        [400.0, 300.0],
        [900.0, 700.0],
    ] {
        let part = Part::board(5, width, height);
        let middle = [1024.0, 768.0];
        let picture = view.draw(&part, &[Placed::new(middle[0], middle[1], 0.0)]);
        let region = Region::found(&sums(&picture), size(&picture)).expect("a region");
        let model = Model::new(&sums(&picture), size(&picture), &region, &[ONE]).expect("edges");
        let placed = Placed::new(800.0, 700.0, 137.0);
        let frame = sums(&view.draw(&part, &[placed]));
        let mut search = Search::new(size(&picture), 1);
        // The thread's time on a core, ns: other programs may run meanwhile.
        let now = || {
            let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
            let on_core = stat.split(' ').next().map(str::parse::<u64>);
            on_core.expect("a number").expect("a number")
        };
        let time = |_| {
            let start = now();
            let found = search.find(&model, &frame);
            assert!(is_at(&found[0][0], &placed, 6.0, 1.0), "{found:?}");
            (now() - start) as f64 / 1e6
        };
        let best = (0..12).map(time).fold(f64::INFINITY, f64::min);
        println!("{width}x{height} px: {best:.1} ms");
        assert!(best <= 40.0, "{best:.1} ms");
    }
}
