//! `PartFinder` compared with its sequential reference: the same poses, motions, scores and samples from every format and memory.

use clinspect_core::{
    ClError,
    place::{Cut, ONE, Pose, Region, TURN},
    reference::{Aligner, Model, Warp},
};
use clinspect_opencl::{
    ClContext, Memory, Meter,
    frame::{ClFrame, layout_of},
};
use clinspect_operators::{FoundPart, PartFinder, PartSettings};
use clinspect_testkit::parts::{Part, Placed, View};
use gst_video::VideoFormat as Format;
use std::sync::Arc;

use crate::{
    device,
    frames::{ARRANGEMENTS, Arrangement, Frame, PADDED, PLAIN},
    oracle::{
        Geometry, SampleKind,
        part::Motion,
        place::{self as oracle, Picture},
        put,
    },
};

pub const SIZE: [usize; 2] = [241, 190];

pub fn view(bits: u32, seed: u64) -> View {
    View {
        bits,
        seed,
        ..View::new(SIZE[0], SIZE[1])
    }
}

/// A frame with these samples, and noise in other planes.
pub fn frame(format: Format, picture: &Picture, arrangement: Arrangement) -> Frame {
    let size = [picture.width, picture.height];
    let content = crate::content::Content::Random;
    let mut frame = Frame::showing(format, size, arrangement, content, 0);
    let geometry = frame.geometry(0);
    for (at, &sample) in picture.samples.iter().enumerate() {
        let (x, y) = (at % picture.width, at / picture.width);
        put(&mut frame.bytes, &geometry, x, y, sample as u32);
    }
    frame
}

fn wide(pose: &Pose) -> oracle::Pose {
    oracle::Pose {
        x: pose.x.into(),
        y: pose.y.into(),
        angle: pose.angle.into(),
        scale: pose.scale.into(),
        score: pose.score.into(),
    }
}

/// What the definition makes of a part.
struct Expected {
    model: oracle::Model,
    aligner: Aligner,
    cut: Cut,
    centre2: [i64; 2],
}

impl Expected {
    fn new(picture: &Picture, region: &[bool], cut: Cut, centre2: [i64; 2]) -> Self {
        let columns = picture.width / 4;
        let samples: Vec<bool> = (0..picture.width * picture.height)
            .map(|at| {
                let [x, y] = [at % picture.width / 4, at / picture.width / 4];
                x < columns && region.get(y * columns + x).is_some_and(|&set| set)
            })
            .collect();
        let of_cut = Picture {
            width: cut.size[0],
            height: cut.size[1],
            bits: picture.bits,
            samples: cut.of(&picture.samples, picture.width),
        };
        let is_part =
            |x: usize, y: usize| samples[(y + cut.first[1]) * picture.width + x + cut.first[0]];
        Self {
            model: oracle::Model::new(picture, &samples, &[256]).expect("edges"),
            // How the fit is found is tested apart.
            aligner: Aligner::of_part(&sums(&of_cut), cut.size, is_part).expect("a fit"),
            cut,
            centre2,
        }
    }

    /// Checks a part that was found, and what is read of the frame there.
    fn check(&mut self, found: &FoundPart, frame: &Picture, read: &[i64]) {
        let first = self.cut.first.map(|v| v as i64);
        let motion = |fit: &Warp| {
            let [c, a, b, f, d, e] = fit.coefficients.map(i64::from);
            Motion::new(
                &wide(&found.pose),
                self.centre2,
                first,
                [[c, a, b], [f, d, e]],
            )
        };
        let through = motion(&Warp::default()).read(frame, self.cut.size);
        let fit = self.aligner.find(&sums(&through));
        let motion = motion(&fit.warp);
        assert_eq!(found.motion.coefficients[..], motion.0.concat()[..]);
        let expected = motion.read(frame, self.cut.size);
        assert_eq!(read, expected.samples);
        let [same, all] = self.model.same_edges(&expected, first);
        assert_eq!(found.place_score, fit.score.min(same as f64 / all as f64));
        assert_eq!(found.step, fit.step);
    }
}

/// The samples of a part that was read.
pub fn samples_of(read: &ClFrame, [width, height]: [usize; 2], kind: SampleKind) -> Vec<i64> {
    let plane = read.plane(0).expect("a plane");
    let Memory::Buffer(buffer) = plane.memory() else {
        panic!("the part is no buffer");
    };
    let geometry = Geometry {
        offset: plane.offset,
        stride: plane.stride,
        pixel_stride: kind.size(),
        width,
        height,
        depth: kind,
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let read = |bytes: &[u8]| {
        let samples = geometry.samples(bytes);
        pixels.map(|(x, y)| i64::from(samples.get(x, y))).collect()
    };
    buffer.read_with(read).expect("a map")
}

fn sums(picture: &Picture) -> Vec<u16> {
    picture
        .sums()
        .values
        .iter()
        .map(|&sum| sum as u16)
        .collect()
}

pub const MIDDLE: Placed = Placed {
    at: [120.0, 95.0],
    angle: 0.0,
    scale: 1.0,
    is_mirrored: false,
};

/// Searches scenes of a part, and compares what is found and read with the definition.
fn check(
    device: &Arc<ClContext>,
    (format, bits, bit_depth): (Format, u32, u32),
    part: &Part,
    scenes: &[Vec<Placed>],
    arrangements: &mut impl Iterator<Item = Arrangement>,
) {
    let meter = &Meter::new(false);
    let trained = view(bits, 1).draw(part, &[MIDDLE]);
    let mean = trained.samples.iter().map(|&s| 256 * s as u32).collect();
    let sample_bits = if bits > 8 { 16 } else { 8 };
    let deviation = vec![0; trained.samples.len()];
    let model = Model::new(SIZE, sample_bits, 1, mean, deviation).expect("a model");
    let settings = PartSettings {
        model: Arc::new(model),
        region: None,
        scales: vec![ONE],
        most_angle: TURN / 2,
        follows_light: false,
        wanted: 2,
        bit_depth,
    };
    let layout = layout_of(&frame(format, &trained, PLAIN).info).expect("a layout");
    let mut finder = PartFinder::new(device, &layout, &settings).expect("a search");
    let region = oracle::found_region(&trained).expect("a region");
    let [x0, y0, x1, y1] = finder.region().bounds();
    let cut = *finder.cut();
    let centre2 = [x0 + x1, y0 + y1].map(|v| v as i64);
    let mut expected = Expected::new(&trained, &region, cut, centre2);
    for (n, placed) in scenes.iter().enumerate() {
        let picture = view(bits, 10 + n as u64).draw(part, placed);
        let arrangement = arrangements.next().expect("a cycle");
        let input = frame(format, &picture, arrangement);
        let on_device = input.import(device);
        let found = finder.find(&on_device, meter).expect("the search runs");
        let mut poses = oracle::find(&expected.model, &picture, 2);
        assert_eq!(found.len(), poses.len(), "{}", input.describe());
        for (place, poses) in found.iter().zip(&mut poses) {
            assert_eq!(place.len(), poses.len());
            for found in place {
                let at = poses.iter().position(|pose| *pose == wide(&found.pose));
                poses.remove(at.expect("a pose of the definition"));
                finder
                    .read(&on_device, (&found.motion, &found.light), meter)
                    .expect("a part");
                let kind = input.kind();
                let read = samples_of(finder.part(), cut.size, kind);
                expected.check(found, &picture, &read);
            }
            let scores = place.windows(2);
            assert!(
                scores
                    .into_iter()
                    .all(|two| two[0].place_score >= two[1].place_score)
            );
        }
        // All parts but the one that the edge cuts are surely found, and whole.
        let sure = found
            .iter()
            .filter(|place| place[0].place_score >= 0.7 && place[0].inside == 1.0);
        let whole = placed.iter().filter(|placed| placed.at[0] > 55.0).count();
        assert_eq!(sure.count(), whole, "{}: {found:?}", input.describe());
    }
}

#[test]
fn parts_of_every_format_and_memory_are_those_of_the_definition() {
    let Some(device) = device::open() else { return };
    let mut arrangements = ARRANGEMENTS.into_iter().chain([PLAIN, PADDED]).cycle();
    let scenes = [
        vec![Placed::new(100.0, 80.0, 20.0)],
        vec![
            Placed::new(170.0, 120.0, 200.0),
            Placed::new(60.0, 60.0, 95.0),
        ],
        vec![Placed::new(30.0, 90.0, 300.0)],
        vec![],
    ];
    for format in [
        (Format::Gray8, 8, 0),
        (Format::Gray16Le, 12, 12),
        (Format::Gray16Be, 16, 0),
        (Format::I420, 8, 0),
        (Format::Nv12, 8, 0),
    ] {
        let part = Part::board(5, 90.0, 70.0);
        check(&device, format, &part, &scenes, &mut arrangements);
    }
}

#[test]
fn small_part_is_that_of_the_definition() {
    let Some(device) = device::open() else { return };
    let scenes = [vec![Placed::new(100.0, 80.0, 200.0)]];
    for format in [(Format::Gray8, 8, 0), (Format::Gray16Be, 16, 0)] {
        let part = Part::board(5, 40.0, 30.0);
        check(
            &device,
            format,
            &part,
            &scenes,
            &mut [PADDED].into_iter().cycle(),
        );
    }
}

#[test]
fn regions_and_models_that_do_not_fit_are_refused() {
    let Some(device) = device::open() else { return };
    let picture = view(8, 1).draw(&Part::Plate(60.0), &[Placed::new(120.0, 95.0, 0.0)]);
    let mean: Vec<u32> = picture.samples.iter().map(|&s| 256 * s as u32).collect();
    let model = Model::new(SIZE, 8, 1, mean.clone(), vec![0; mean.len()]).expect("a model");
    let settings = PartSettings {
        model: Arc::new(model),
        region: None,
        scales: vec![ONE],
        most_angle: TURN / 2,
        follows_light: false,
        wanted: 1,
        bit_depth: 0,
    };
    let layout = layout_of(&frame(Format::Gray8, &picture, PLAIN).info).expect("a layout");
    let refused = |settings: &PartSettings| match PartFinder::new(&device, &layout, settings) {
        Err(ClError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    let of = |size, first: usize| {
        let is_part =
            move |x: usize, y: usize| (first..first + 20).contains(&x) && (60..80).contains(&y);
        Some(Region::new(size, is_part).expect("a region"))
    };
    let other_size = PartSettings {
        region: of([300, 190], 280),
        ..settings.clone()
    };
    assert!(refused(&other_size).contains("241x190"));
    let plain = PartSettings {
        region: of(SIZE, 20),
        ..settings.clone()
    };
    assert_eq!(refused(&plain), "the part has too few edges");
    let empty = vec![256 * 200; mean.len()];
    let empty = Model::new(SIZE, 8, 1, empty, vec![0; mean.len()]).expect("a model");
    let nothing = PartSettings {
        model: Arc::new(empty),
        ..settings
    };
    assert!(refused(&nothing).ends_with("; set region"));
}
