//! `Parts` compared with the definition: the marks of each part, where they lie in the frame, and what is told of the parts.

use std::sync::Arc;

use clinspect_core::{
    components::{Finder, Limits},
    ignored::{Ignored, Polygon},
    reference::Model,
};
use clinspect_opencl::{
    ClBuffer, ClContext, Meter,
    frame::{ClFrame, layout_of},
};
use clinspect_operators::{
    Align, Component, Inspection, JudgedComponents, MaskTarget, Models, NormalizeBy, PartEdge,
    PartPixels, Parts, PartsSettings, Picture as Drawn, Polarity, ReferenceSettings, Subject,
};
use clinspect_testkit::parts::{Part, Placed};
use gst_video::VideoFormat as Format;

use crate::{
    device,
    frames::{ARRANGEMENTS, Arrangement, Frame, PADDED, PLAIN},
    oracle::{part::Motion, place::Picture, put},
    part_finder::{MIDDLE, SIZE, frame, view},
};

/// Grey levels of 8 bits.
const THRESHOLD: i64 = 30;

/// What is compared, and how it is found.
struct Scene {
    /// Of each component that is judged.
    planes: Vec<Picture>,
}

impl Scene {
    fn grey(picture: Picture) -> Self {
        Self {
            planes: vec![picture],
        }
    }

    /// Red as drawn, green with half the contrast, blue inverted.
    fn colours(picture: &Picture) -> [Picture; 3] {
        let map = |change: fn(i64) -> i64| Picture {
            samples: picture.samples.iter().map(|&s| change(s)).collect(),
            ..picture.clone()
        };
        [map(|s| s), map(|s| s / 2 + 40), map(|s| 255 - s)]
    }

    fn colour(picture: &Picture, are_apart: bool) -> Self {
        let planes = Self::colours(picture);
        if are_apart {
            return Self {
                planes: planes.to_vec(),
            };
        }
        let luma = |at: usize| {
            let [r, g, b] = [0, 1, 2].map(|n| planes[n].samples[at]);
            (77 * r + 150 * g + 29 * b + 128) >> 8
        };
        Self::grey(Picture {
            samples: (0..picture.samples.len()).map(luma).collect(),
            ..picture.clone()
        })
    }
}

/// A rectangle of a frame becomes brighter or darker.
fn spoil(picture: &mut Picture, [x0, y0, width, height]: [usize; 4]) {
    for (x, y) in (y0..y0 + height).flat_map(|y| (x0..x0 + width).map(move |x| (x, y))) {
        let sample = &mut picture.samples[y * picture.width + x];
        let half = 1 << (picture.bits - 1);
        *sample += if *sample < half { half } else { -half };
    }
}

/// What the definition says of a frame.
struct Expected {
    /// By part, in the order of the numbers: the marked pixels of the trained part.
    counts: Vec<u64>,
    /// Of the frame.
    mask: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Case {
    format: Format,
    bits: u32,
    bit_depth: u32,
    judged: JudgedComponents,
}

const GREY: Case = Case {
    format: Format::Gray8,
    bits: 8,
    bit_depth: 0,
    judged: JudgedComponents::Luma,
};

impl Case {
    fn scene(&self, picture: &Picture) -> Scene {
        match self.format {
            Format::Rgb | Format::Bgrx => {
                Scene::colour(picture, self.judged == JudgedComponents::Each)
            }
            _ => Scene::grey(picture.clone()),
        }
    }

    fn frame(&self, picture: &Picture, arrangement: Arrangement) -> Frame {
        if !matches!(self.format, Format::Rgb | Format::Bgrx) {
            return frame(self.format, picture, arrangement);
        }
        let size = [picture.width, picture.height];
        let content = crate::content::Content::Random;
        let mut frame = Frame::showing(self.format, size, arrangement, content, 0);
        for (component, plane) in Scene::colours(picture).iter().enumerate() {
            let geometry = frame.geometry(component);
            for (at, &sample) in plane.samples.iter().enumerate() {
                let (x, y) = (at % picture.width, at / picture.width);
                put(&mut frame.bytes, &geometry, x, y, sample as u32);
            }
        }
        frame
    }

    fn model(&self, picture: &Picture) -> Arc<Model> {
        let mean = picture.samples.iter().map(|&s| 256 * s as u32).collect();
        let deviation = vec![0; picture.samples.len()];
        let bits = if self.bits > 8 { 16 } else { 8 };
        Arc::new(Model::new(SIZE, bits, 1, mean, deviation).expect("a model"))
    }

    fn settings(&self) -> ReferenceSettings {
        ReferenceSettings {
            model: None,
            threshold: (THRESHOLD << (self.bits - 8)) as f64,
            deviation_factor: 0.0,
            edge_tolerance: 0,
            opening: 0,
            polarity: Polarity::Both,
            align: Align::None,
            search_range: 8,
            match_score: 0.0,
            normalize: NormalizeBy::None,
            train_frames: 1,
            rois: Vec::new(),
            ignored: None,
            bit_depth: self.bit_depth,
        }
    }

    fn parts(
        &self,
        device: &Arc<ClContext>,
        (trained, layout): (&Scene, &clinspect_core::layout::FrameLayout),
        settings: &PartsSettings,
        ignored: Option<&Ignored>,
    ) -> Parts {
        let models = Models::new(trained.planes.iter().map(|of| self.model(of)).collect());
        let bitmap = ignored.map(|ignored| ignored.rows(0, SIZE[1]));
        let pixels = PartPixels {
            rois: &[],
            ignored: bitmap.as_ref(),
        };
        let of = |_: Option<Component>| Ok(self.settings());
        Parts::new(
            device,
            layout,
            (self.judged, &models),
            (settings, pixels),
            of,
        )
        .expect("an operator")
    }
}

/// The marks of the parts that were found, by the definition. The poses of each place are those of the operator; the one with
/// the fewest marks counts.
fn expected(
    (trained, scene): (&Scene, &Scene),
    found: &[Vec<Motion>],
    cut: &clinspect_core::place::Cut,
    is_judged: impl Fn(usize, usize) -> bool,
) -> Expected {
    let [width, height] = SIZE;
    let mut mask = vec![false; width * height];
    let mut counts = Vec::new();
    for poses in found {
        let of_pose = |motion: &Motion| {
            let mut marked = vec![false; cut.size[0] * cut.size[1]];
            for (plane, trained) in scene.planes.iter().zip(&trained.planes) {
                let read = motion.read(plane, cut.size);
                for (at, sample) in read.samples.iter().enumerate() {
                    let [x, y] = [at % cut.size[0], at / cut.size[0]];
                    let [tx, ty] = [x + cut.first[0], y + cut.first[1]];
                    let difference = sample - trained.samples[ty * width + tx];
                    marked[at] |= difference.abs() > THRESHOLD << (plane.bits - 8)
                        && is_judged(tx, ty)
                        && motion.is_inside(x as i64, y as i64, SIZE);
                }
            }
            marked
        };
        let all = poses.iter().map(|motion| (motion, of_pose(motion)));
        let count = |marked: &[bool]| marked.iter().filter(|&&set| set).count();
        let (motion, marked) = all.min_by_key(|(_, marked)| count(marked)).expect("a pose");
        counts.push(count(&marked) as u64);
        for at in (0..marked.len()).filter(|&at| marked[at]) {
            let [x, y] = [at % cut.size[0], at / cut.size[0]].map(|v| v as i64);
            for [x, y] in motion.marks(x, y, SIZE) {
                mask[y as usize * width + x as usize] = true;
            }
        }
    }
    Expected { counts, mask }
}

fn bits(bytes: &[u8], [width, height]: [usize; 2]) -> Vec<bool> {
    let stride = width.div_ceil(8);
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    pixels
        .map(|(x, y)| bytes[y * stride + x / 8] >> (7 - x % 8) & 1 == 1)
        .collect()
}

const LIMITS: Limits = Limits {
    min_area: 0,
    merge_distance: 2,
    max_defects: 100,
    max_runs: 100_000,
    max_defect_rows: u32::MAX,
};

/// Compares a frame, and checks it by the definition.
fn check(device: &Arc<ClContext>, case: Case, arrangement: Arrangement, ignored: Option<&Ignored>) {
    let meter = &Arc::new(Meter::new(false));
    let part = Part::board(5, 90.0, 70.0);
    let first = view(case.bits, 1).draw(&part, &[MIDDLE]);
    let trained = case.scene(&first);
    let layout = layout_of(&case.frame(&first, PLAIN).info).expect("a layout");
    let settings = PartsSettings {
        wanted: [2, 2],
        ..PartsSettings::default()
    };
    let mut parts = case.parts(device, (&trained, &layout), &settings, ignored);
    let placed = [
        Placed::new(170.0, 120.0, 200.0),
        Placed::new(60.0, 60.0, 95.0),
    ];
    let mut clean = None;
    for spoiled in [
        &[][..],
        &[[62, 50, 6, 5]],
        &[[62, 50, 6, 5], [165, 110, 9, 3]],
    ] {
        let mut picture = view(case.bits, 10).draw(&part, &placed);
        spoiled.iter().for_each(|&at| spoil(&mut picture, at));
        let scene = case.scene(&picture);
        let input = case.frame(&picture, arrangement);
        let on_device = input.import(device);
        let subject = Subject::whole(&on_device, SIZE[1], meter);
        let stride = SIZE[0].div_ceil(8);
        let mask = ClBuffer::new(device, stride * SIZE[1] + 3, meter).expect("memory");
        let target = MaskTarget::Packed {
            buffer: &mask,
            offset: 3,
        };
        let marked = parts.mark(subject, target).expect("marks");
        let basis = parts.basis();
        let told = basis.parts.expect("parts");
        assert_eq!(told.parts.len(), 2, "{}: {told:?}", input.describe());
        // From top to bottom.
        for (part, placed) in told.parts.iter().zip([&placed[1], &placed[0]]) {
            let far = (part.centre[0] - placed.at[0]).hypot(part.centre[1] - placed.at[1]);
            let turned = (part.angle - placed.angle.to_degrees()).rem_euclid(360.0);
            // The middle of the region's box, which has cells of 4 px.
            assert!(far < 2.0 && turned.min(360.0 - turned) < 0.5, "{part:?}");
        }
        let motions: Vec<Vec<Motion>> = parts
            .poses()
            .map(|poses| {
                let of = |motion: &clinspect_core::place::Motion| {
                    let [c, a, b, f, d, e] = motion.coefficients;
                    Motion([[c, a, b], [f, d, e]])
                };
                poses.iter().map(of).collect()
            })
            .collect();
        let (region, cut) = parts.region();
        let bitmap = ignored.map(|ignored| ignored.rows(0, SIZE[1]));
        let is_judged = |x: usize, y: usize| {
            region.holds(x, y) && !bitmap.as_ref().is_some_and(|bitmap| bitmap.get(x, y))
        };
        let wanted = expected((&trained, &scene), &motions, &cut, is_judged);
        let counts: Vec<u64> = told.parts.iter().map(|part| part.marked).collect();
        assert_eq!(counts, wanted.counts, "{}", input.describe());
        assert_eq!(marked.pixels, wanted.counts.iter().sum::<u64>());
        // Edges of a part that is read between pixels differ, too.
        let clean = clean.get_or_insert(marked.pixels);
        assert!(
            ignored.is_some() || marked.pixels >= *clean + 20 * spoiled.len() as u64,
            "{counts:?}"
        );
        let found = mask
            .read_with(|bytes| bits(&bytes[3..], SIZE))
            .expect("a map");
        assert!(found == wanted.mask, "{}: the mask", input.describe());
        // The same as bytes, and again: a frame leaves no marks behind.
        let out = ClFrame::grey(device, SIZE, meter).expect("memory");
        let again = parts.mark(subject, MaskTarget::Grey(&out)).expect("marks");
        assert_eq!(again, marked);
        let listed = parts.list(subject, target, &mut Finder::default(), &LIMITS);
        let listed = listed.expect("a list");
        for (at, &count) in counts.iter().enumerate() {
            let own = (listed.defects.iter()).filter(|defect| defect.part as usize == at + 1);
            assert_eq!(own.map(|defect| u64::from(defect.area)).sum::<u64>(), count);
        }
        let boxes = |x: usize, y: usize| {
            listed.defects.iter().any(|defect| {
                let along = |at: usize, first: i32, len: u32| {
                    (i64::from(first)..i64::from(first) + i64::from(len)).contains(&(at as i64))
                };
                along(x, defect.x, defect.width) && along(y, defect.y, defect.height)
            })
        };
        for at in (0..wanted.mask.len()).filter(|&at| wanted.mask[at]) {
            assert!(
                boxes(at % SIZE[0], at / SIZE[0]),
                "a mark outside of all boxes"
            );
        }
        for picture in [Drawn::Model, Drawn::Difference(1.0)] {
            parts.draw(subject, picture, &out).expect("a picture");
        }
    }
}

#[test]
fn marks_of_parts_of_every_format_are_those_of_the_definition() {
    let Some(device) = device::open() else { return };
    let mut arrangements = ARRANGEMENTS.into_iter().chain([PADDED]).cycle();
    for (format, bits, bit_depth, judged) in [
        (Format::Gray8, 8, 0, JudgedComponents::Luma),
        (Format::Gray16Le, 12, 12, JudgedComponents::Luma),
        (Format::Gray16Be, 16, 0, JudgedComponents::Luma),
        (Format::I420, 8, 0, JudgedComponents::Luma),
        (Format::Rgb, 8, 0, JudgedComponents::Luma),
        (Format::Bgrx, 8, 0, JudgedComponents::Each),
        (Format::Rgb, 8, 0, JudgedComponents::Each),
    ] {
        let case = Case {
            format,
            bits,
            bit_depth,
            judged,
        };
        check(&device, case, arrangements.next().expect("a cycle"), None);
    }
}

#[test]
fn ignored_pixels_of_a_part_turn_with_it() {
    let Some(device) = device::open() else { return };
    let polygon = Polygon::new(&[90.0, 70.0, 150.0, 70.0, 150.0, 95.0, 90.0, 95.0]);
    let ignored = Ignored::new(
        SIZE[0],
        Some(SIZE[1]),
        None,
        vec![polygon.expect("a polygon")],
    );
    check(&device, GREY, PLAIN, Some(&ignored.expect("pixels")));
}

#[test]
fn cut_parts_and_other_ones_are_told_and_not_compared() {
    let Some(device) = device::open() else { return };
    let meter = &Arc::new(Meter::new(false));
    let part = Part::board(5, 90.0, 70.0);
    let first = view(8, 1).draw(&part, &[MIDDLE]);
    let trained = GREY.scene(&first);
    let layout = layout_of(&GREY.frame(&first, PLAIN).info).expect("a layout");
    let whole = Placed::new(160.0, 90.0, 30.0);
    let mirrored = Placed {
        is_mirrored: true,
        ..whole
    };
    let cut = Placed::new(30.0, 90.0, 80.0);
    for (edge, placed, parts_and_cut) in [
        (PartEdge::None, vec![whole, cut], [2, 1]),
        (PartEdge::Ignore, vec![whole, cut], [1, 0]),
        (PartEdge::None, vec![mirrored], [0, 0]),
        (PartEdge::None, vec![], [0, 0]),
    ] {
        let settings = PartsSettings {
            wanted: [1, 2],
            edge,
            ..PartsSettings::default()
        };
        let mut parts = GREY.parts(&device, (&trained, &layout), &settings, None);
        let input = GREY.frame(&view(8, 3).draw(&part, &placed), PLAIN);
        let on_device = input.import(&device);
        let out = ClFrame::grey(&device, SIZE, meter).expect("memory");
        let subject = Subject::whole(&on_device, SIZE[1], meter);
        parts.mark(subject, MaskTarget::Grey(&out)).expect("marks");
        let told = parts.basis().parts.expect("parts");
        let are_cut = told.parts.iter().filter(|part| part.is_cut);
        assert_eq!(
            [told.parts.len(), are_cut.count()],
            parts_and_cut,
            "{told:?}"
        );
        for part in &told.parts {
            assert_eq!(part.is_cut, part.judged == 0);
        }
        let demands = parts.demands(subject).expect("demands");
        assert_eq!(demands.is_some(), parts_and_cut == [1, 0]);
    }
}
