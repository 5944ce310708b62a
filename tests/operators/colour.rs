//! `Components` compared with the sequential references of its operators: each component by its own reference, then joined.

use std::sync::Arc;

use clinspect_core::{
    components::{Finder, Listed, MeasuredDefect},
    layout::FrameLayout,
};
use clinspect_opencl::{
    ClContext, Meter, buffer_of,
    frame::{COLOUR_FORMATS, layout_of},
};
use clinspect_operators::{
    Align, Component, Components, Inspection, JudgedComponents, MaskTarget, Models, Picture,
    PitchThreshold, Reference, ReferenceSettings, Subject, Submitted, Texture,
};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    defects::ALL,
    device,
    frames::{
        ARRANGEMENTS, Arrangement, Frame, OUTPUT_POISON, PADDED, PLAIN, assert_same, our_memory,
        read,
    },
    oracle::{
        pitch_threshold as oracle, texture as texture_oracle,
        trained::{self, Motion},
    },
    pitch_threshold_job::{self, classic},
    reference_job::{self, motion_of},
    texture,
};

/// What a component marks by the reference.
#[derive(Clone)]
struct ComponentMarks {
    /// By pixel: whether it is marked, and whether that is for want of a pattern.
    mask: Vec<bool>,
    missing: Vec<bool>,
    /// By marked pixel: the difference, grey levels. Empty: not compared.
    differences: Vec<Option<f64>>,
}

/// A component of a frame, or its luma, as a frame of its own.
pub fn grey(input: &Frame, component: Option<usize>) -> Frame {
    let values = |at: usize| input.component(at).values();
    let samples = match component {
        Some(at) => values(at),
        None => {
            let [red, green, blue] = [0, 1, 2].map(values);
            let pixels = red.iter().zip(&green).zip(&blue);
            let luma = pixels.map(|((r, g), b)| (77 * r + 150 * g + 29 * b + 128) / 256);
            luma.collect()
        }
    };
    let mut grey = Frame::poisoned(Format::Gray8, input.size(), PLAIN, 0);
    grey.set(&[samples], &grey.clone());
    grey
}

/// Compares the mask, the counts and the list of a frame with those of the components, joined; twice.
fn check<O: Submitted>(
    device: &Arc<ClContext>,
    input: &Frame,
    operator: &mut Components<O>,
    wanted: &[ComponentMarks],
) {
    const BEFORE: usize = 5;
    let about = || input.describe();
    let size @ [width, height] = input.size();
    let joined = |of: fn(&ComponentMarks) -> &Vec<bool>| -> Vec<bool> {
        (0..width * height)
            .map(|at| wanted.iter().any(|wanted| of(wanted)[at]))
            .collect()
    };
    let mask = joined(|wanted| &wanted.mask);
    let missing = joined(|wanted| &wanted.missing);
    let count = |of: &[bool]| of.iter().filter(|&&set| set).count() as u64;
    let meter = Meter::new(false);
    let frame = input.import(device);
    let subject = Subject::whole(&frame, height, &meter);
    for run in 0..2 {
        let packed = oracle::pack(&mask, width, height);
        let bytes = vec![OUTPUT_POISON; BEFORE + packed.len() + 9];
        let memory = our_memory(device, &meter, &bytes, 3);
        let target = MaskTarget::Packed {
            buffer: buffer_of(&memory).expect("memory of ours"),
            offset: memory.offset() + BEFORE,
        };
        let marked = operator.mark(subject, target).expect("a mask");
        let read = memory.map_readable().expect("a reading map").to_vec();
        let (before, rest) = read.split_at(BEFORE);
        let (found, after) = rest.split_at(packed.len());
        let wrong = (0..packed.len()).find(|&at| found[at] != packed[at]);
        assert_eq!(wrong, None, "byte of the mask of {}, run {run}", about());
        let is_untouched = |bytes: &[u8]| bytes.iter().all(|&byte| byte == OUTPUT_POISON);
        assert!(is_untouched(before) && is_untouched(after), "{}", about());
        let counts = [marked.pixels, marked.missing];
        assert_eq!(counts, [count(&mask), count(&missing)], "{}", about());
        let mut finder = Finder::default();
        let listed = operator.list(subject, target, &mut finder, &ALL);
        check_list(&listed.expect("a list"), &mask, wanted, width, &about());
    }
    let mut grey = Frame::poisoned(Format::Gray8, size, PADDED, OUTPUT_POISON);
    let (output, buffer) = grey.output(device);
    let target = MaskTarget::Grey(&output);
    operator.mark(subject, target).expect("a mask");
    let pixels = mask.iter().map(|&set| if set { 255 } else { 0 });
    grey.set(&[pixels.collect()], input);
    assert_same(&read(&buffer), &grey, || {
        format!("grey mask of {}", about())
    });
}

/// The pixels of the group of marked pixels that touch, from one of them on.
fn group(mask: &[bool], width: usize, from: usize) -> Vec<usize> {
    let (mut group, mut seen) = (vec![from], vec![false; mask.len()]);
    seen[from] = true;
    let mut next = 0;
    while next < group.len() {
        let (x, y) = (group[next] % width, group[next] / width);
        next += 1;
        for j in y.saturating_sub(1)..(y + 2).min(mask.len() / width) {
            for i in x.saturating_sub(1)..(x + 2).min(width) {
                let at = j * width + i;
                if mask[at] && !std::mem::replace(&mut seen[at], true) {
                    group.push(at);
                }
            }
        }
    }
    group
}

/// Compares component and differences of each listed defect with those of its pixels.
fn check_list(
    listed: &Listed,
    mask: &[bool],
    wanted: &[ComponentMarks],
    width: usize,
    about: &str,
) {
    let pixels: u32 = listed.defects.iter().map(|defect| defect.area).sum();
    let all = mask.iter().filter(|&&set| set).count();
    assert!(listed.overflow || pixels as usize == all, "{about}");
    for defect in &listed.defects {
        let MeasuredDefect { x, y, width: w, .. } = *defect;
        let row = y as usize * width;
        let first = (x as usize..x as usize + w as usize).map(|x| row + x);
        let groups = first
            .filter(|&at| mask[at])
            .map(|at| group(mask, width, at));
        let same = |group: &Vec<usize>| group.len() == defect.area as usize;
        let mut groups = groups.filter(same);
        let group = groups.next().expect("a group with these pixels");
        let shares: Vec<Vec<usize>> = wanted
            .iter()
            .map(|wanted| {
                group
                    .iter()
                    .copied()
                    .filter(|&at| wanted.mask[at])
                    .collect()
            })
            .collect();
        let largest = shares.iter().map(Vec::len).max().expect("components");
        let strongest = shares.iter().position(|share| share.len() == largest);
        assert_eq!(defect.component, strongest, "{about} {defect:?} {shares:?}");
        let strongest = strongest.expect("a component");
        let differences = &wanted[strongest].differences;
        if differences.is_empty() {
            continue;
        }
        let of = |&at: &usize| differences[at].expect("a difference");
        let sum: f64 = shares[strongest].iter().map(of).sum();
        assert_eq!(defect.mean_difference, sum / largest as f64, "{about}");
        let peak = shares[strongest]
            .iter()
            .map(of)
            .map(f64::abs)
            .fold(0.0, f64::max);
        assert_eq!(defect.peak_difference.abs(), peak, "{about}");
        let is_missing = group
            .iter()
            .any(|&at| wanted.iter().any(|wanted| wanted.missing[at]));
        assert_eq!(defect.is_missing, is_missing, "{about}");
    }
}

fn build<O: Submitted>(
    device: &Arc<ClContext>,
    input: &Frame,
    judged: JudgedComponents,
    make: impl FnMut(&FrameLayout, Option<Component>) -> O,
) -> Components<O> {
    let layout = layout_of(&input.info).expect("a layout");
    let mut make = make;
    Components::new(device, &layout, judged, |layout, component| {
        Ok(make(layout, component))
    })
    .unwrap_or_else(|error| panic!("{}: {error}", input.describe()))
}

/// Jobs of red, green and blue that differ in their thresholds.
fn pitch_jobs(threshold: f64, min_contrast: f64, scales: usize) -> [pitch_threshold_job::Job; 3] {
    [0.0, 17.5, 9.0].map(|more| pitch_threshold_job::Job {
        pitch: [3.25, 2.0],
        scales,
        min_contrast,
        ..classic(3.25, threshold + more)
    })
}

fn check_pitch(device: &Arc<ClContext>, input: &Frame, jobs: &[pitch_threshold_job::Job; 3]) {
    let planes = [0, 1, 2].map(|at| grey(input, Some(at)));
    if jobs[0].is_blind(&planes[0]) {
        return;
    }
    let wanted: Vec<ComponentMarks> = (planes.iter().zip(jobs))
        .map(|(plane, job)| {
            let settings = job.oracle(plane.size());
            let nothing = oracle::Settings {
                threshold: 10_000.0,
                scales: 0,
                ..settings.clone()
            };
            let missing = oracle::compare(plane.component(0), &nothing).mask;
            ComponentMarks {
                mask: oracle::compare(plane.component(0), &settings).mask,
                missing: if job.min_contrast > 0.0 {
                    missing
                } else {
                    vec![false; missing.len()]
                },
                differences: oracle::difference(plane.component(0), &settings),
            }
        })
        .collect();
    let mut operator = build(
        device,
        input,
        JudgedComponents::Each,
        |layout, component| {
            let at = component.expect("a component") as usize;
            let settings = jobs[at].settings(&planes[at], (None, false));
            PitchThreshold::new(device, layout, &settings).expect("a comparison")
        },
    );
    check(device, input, &mut operator, &wanted);
}

#[test]
fn components_of_each_format_are_compared_apart_and_joined() {
    let Some(device) = device::open() else { return };
    assert_eq!(COLOUR_FORMATS.len(), 10, "{:?}", *COLOUR_FORMATS);
    for (n, &format) in COLOUR_FORMATS.iter().enumerate() {
        for (i, size) in SIZES.into_iter().chain([[131, 67]]).enumerate() {
            let arrangement = ARRANGEMENTS[(n + i) % ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            check_pitch(&device, &input, &pitch_jobs(120.0, 0.0, 0));
        }
    }
}

#[test]
fn components_without_the_pattern_and_coarser_levels_are_joined_too() {
    let Some(device) = device::open() else { return };
    for content in [Content::Random, Content::Constant(90)] {
        let input = Frame::showing(Format::Bgr, [131, 67], PADDED, content, 0);
        check_pitch(&device, &input, &pitch_jobs(110.0, 74.0, 0));
        check_pitch(&device, &input, &pitch_jobs(140.0, 73.5, 3));
    }
}

#[test]
fn luma_is_compared_as_grey() {
    let Some(device) = device::open() else { return };
    for &format in COLOUR_FORMATS.iter() {
        for size in [[1, 3], [17, 5], [131, 67]] {
            let input = Frame::showing(format, size, PADDED, Content::Random, 0);
            let luma = grey(&input, None);
            let [job, ..] = pitch_jobs(60.0, 0.0, 0);
            if job.is_blind(&luma) {
                continue;
            }
            let expected = job.expected(&luma);
            let mut operator = build(&device, &input, JudgedComponents::Luma, |layout, _| {
                let settings = job.settings(&luma, (None, false));
                PitchThreshold::new(&device, layout, &settings).expect("a comparison")
            });
            let mut mask = Frame::poisoned(Format::Gray8, size, PADDED, OUTPUT_POISON);
            let (output, buffer) = mask.output(&device);
            let frame = input.import(&device);
            let meter = Meter::new(false);
            let subject = Subject::whole(&frame, size[1], &meter);
            let marked = operator
                .mark(subject, MaskTarget::Grey(&output))
                .expect("a mask");
            assert_eq!(
                marked.pixels,
                expected.defect_pixels,
                "{}",
                input.describe()
            );
            let pixels = expected.mask.iter().map(|&set| if set { 255 } else { 0 });
            mask.set(&[pixels.collect()], &input);
            assert_same(&read(&buffer), &mask, || input.describe());
        }
    }
}

#[test]
fn trained_components_are_compared_apart_and_joined() {
    let Some(device) = device::open() else { return };
    let arrangements: [Arrangement; 3] = [PLAIN, PADDED, ARRANGEMENTS[5]];
    for (n, size) in SIZES.into_iter().chain([[131, 67]]).enumerate() {
        let input = Frame::showing(Format::Rgb, size, arrangements[n % 3], Content::Random, 0);
        let planes = [0, 1, 2].map(|at| grey(&input, Some(at)));
        let jobs = [1, 2, 3].map(|seed| reference_job::Job {
            seed,
            threshold: 10.0 * seed as f64,
            ..reference_job::PLAIN_JOB
        });
        let models = [0, 1, 2].map(|at| jobs[at].model(&planes[at]));
        let wanted = [0, 1, 2].map(|at| {
            let model = reference_job::for_oracle(&models[at]);
            let settings = jobs[at].oracle(&planes[at], Motion::default());
            let outcome = trained::compare(planes[at].component(0), &model, &settings);
            ComponentMarks {
                missing: vec![false; outcome.mask.len()],
                differences: outcome.differences,
                mask: outcome.mask,
            }
        });
        let mut operator = build(
            &device,
            &input,
            JudgedComponents::Auto,
            |layout, component| {
                let at = component.expect("a component") as usize;
                let settings = jobs[at].settings(&planes[at], Some(models[at].clone()));
                Reference::new(&device, layout, &settings).expect("a comparison")
            },
        );
        check(&device, &input, &mut operator, &wanted);
        check_pictures(&device, &input, &mut operator, &planes);
    }
}

#[test]
fn components_of_a_moved_frame_are_joined_then_opened_and_placed() {
    let Some(device) = device::open() else { return };
    let size @ [width, height] = [131, 97];
    let turned = Motion {
        affine: [[3 << 20, 20_000, -9_000], [-(2 << 20), 9_000, 14_000]],
        nodes: Vec::new(),
    };
    let input = Frame::showing(Format::Rgb, size, PADDED, Content::Natural, 0);
    let layout = layout_of(&input.info).expect("a layout");
    let planes = [0, 1, 2].map(|at| grey(&input, Some(at)));
    for (align, opening) in [(Align::Affine, 0), (Align::Local, 3), (Align::None, 3)] {
        let jobs = [1, 2, 3].map(|seed| reference_job::Job {
            seed,
            threshold: 8.0,
            deviation_factor: 0.0,
            search_range: Some(8),
            moved: turned.clone(),
            ..reference_job::PLAIN_JOB
        });
        let models = [0, 1, 2].map(|at| jobs[at].model(&planes[at]));
        let settings = |at: usize, align| ReferenceSettings {
            align,
            opening,
            ..jobs[at].settings(&planes[at], Some(models[at].clone()))
        };
        let operator = build(
            &device,
            &input,
            JudgedComponents::Each,
            |layout, component| {
                let at = component.expect("a component") as usize;
                Reference::new(&device, layout, &settings(at, Align::None)).expect("a comparison")
            },
        );
        let all = Models::new(models.to_vec());
        let mut operator = operator
            .with_alignment(&layout, &settings(0, align), Some(&all))
            .expect("an alignment");
        let packed_len = width.div_ceil(8) * height;
        let meter = Meter::new(false);
        let memory = our_memory(&device, &meter, &vec![OUTPUT_POISON; packed_len], 0);
        let target = MaskTarget::Packed {
            buffer: buffer_of(&memory).expect("memory of ours"),
            offset: memory.offset(),
        };
        let frame = input.import(&device);
        let subject = Subject::whole(&frame, height, &meter);
        let marked = operator.mark(subject, target).expect("a mask");
        let found = memory.map_readable().expect("a reading map").to_vec();
        let motion = match operator.leader() {
            Some(leader) => motion_of(leader.warp().expect("the frame was read")),
            None => Motion::default(),
        };
        assert_eq!(align == Align::None, motion.affine == [[0; 3]; 2]);
        let mut mask = vec![false; width * height];
        for at in 0..3 {
            let model = reference_job::for_oracle(&models[at]);
            let settings = jobs[at].oracle(&planes[at], motion.clone());
            let outcome = trained::compare(planes[at].component(0), &model, &settings);
            for (set, marked) in mask.iter_mut().zip(outcome.mask) {
                *set |= marked;
            }
        }
        if opening > 0 {
            mask = trained::opened(&mask, width);
        }
        let count = mask.iter().filter(|&&set| set).count() as u64;
        assert!(count > 0 && count < mask.len() as u64, "{align:?}: {count}");
        assert_eq!(marked.pixels, count, "{align:?}");
        let placed = motion.placed(&mask, width);
        assert_eq!(found, oracle::pack(&placed, width, height), "{align:?}");
        let mut finder = Finder::default();
        let listed = operator
            .list(subject, target, &mut finder, &ALL)
            .expect("a list");
        for at in (0..placed.len()).filter(|&at| placed[at]) {
            let [x, y] = [(at % width) as i32, (at / width) as i32];
            let holds = |d: &MeasuredDefect| {
                (d.x..d.x + d.width as i32).contains(&x)
                    && (d.y..d.y + d.height as i32).contains(&y)
            };
            assert!(listed.defects.iter().any(holds), "{align:?}: {x} {y}");
        }
    }
}

/// The model is drawn as the luma of the components' models, and of the differences the largest one.
fn check_pictures(
    device: &Arc<ClContext>,
    input: &Frame,
    operator: &mut Components<Reference>,
    planes: &[Frame; 3],
) {
    let meter = Meter::new(false);
    let size @ [_, height] = input.size();
    let frame = input.import(device);
    for picture in [Picture::Model, Picture::Difference(1.0)] {
        let mut drawn = Frame::poisoned(Format::Gray8, size, PADDED, OUTPUT_POISON);
        let (output, buffer) = drawn.output(device);
        let subject = Subject::whole(&frame, height, &meter);
        operator.draw(subject, picture, &output).expect("a picture");
        let mut components: Vec<Vec<u32>> = Vec::new();
        let mut parts = operator.all_mut();
        for plane in planes {
            let of_part = Frame::poisoned(Format::Gray8, size, PLAIN, 0);
            let (output, buffer) = of_part.output(device);
            let part = parts.next().expect("a part");
            let frame = plane.import(device);
            let subject = Subject::whole(&frame, height, &meter);
            part.draw(subject, picture, &output).expect("a picture");
            let bytes = read(&buffer);
            components.push(of_part.geometry(0).samples(&bytes).values());
        }
        let pixels = (0..components[0].len()).map(|at| {
            let [r, g, b] = [0, 1, 2].map(|k| components[k][at]);
            if picture == Picture::Model {
                return (77 * r + 150 * g + 29 * b + 128) / 256;
            }
            let far = |v: u32| v.abs_diff(128);
            let most = far(r).max(far(g)).max(far(b));
            [r, g, b]
                .into_iter()
                .find(|&v| far(v) == most)
                .expect("one of them")
        });
        drawn.set(&[pixels.collect()], input);
        assert_same(&read(&buffer), &drawn, || {
            format!("{picture:?} of {}", input.describe())
        });
    }
}

#[test]
fn texture_components_are_compared_apart_and_joined() {
    let Some(device) = device::open() else { return };
    for size in [[64, 40], [131, 97]] {
        let input = Frame::showing(Format::Argb, size, PADDED, Content::Random, 0);
        let planes = [0, 1, 2].map(|at| grey(&input, Some(at)));
        let wanted = [0, 1, 2].map(|at| {
            let settings = texture::JOB.oracle(&planes[at]);
            let outcome = texture_oracle::compare(planes[at].component(0), &settings);
            ComponentMarks {
                missing: vec![false; outcome.mask.len()],
                differences: Vec::new(),
                mask: outcome.mask,
            }
        });
        let mut operator = build(
            &device,
            &input,
            JudgedComponents::Each,
            |layout, component| {
                let at = component.expect("a component") as usize;
                let settings = texture::JOB.settings(&planes[at], None);
                Texture::new(&device, layout, &settings).expect("a comparison")
            },
        );
        check(&device, &input, &mut operator, &wanted);
    }
}

#[test]
fn components_of_grey_and_yuv_are_refused() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Gray16Le, Format::I420, Format::Nv12] {
        let input = Frame::showing(format, [64, 16], PLAIN, Content::Random, 0);
        let layout = layout_of(&input.info).expect("a layout");
        let [job, ..] = pitch_jobs(20.0, 0.0, 0);
        for judged in [
            JudgedComponents::Each,
            JudgedComponents::Auto,
            JudgedComponents::Luma,
        ] {
            let made = Components::new(&device, &layout, judged, |layout, component| {
                assert_eq!(component, None);
                PitchThreshold::new(&device, layout, &job.settings(&input, (None, false)))
            });
            match judged {
                JudgedComponents::Each => {
                    let why = made.expect_err("a refusal").to_string();
                    assert!(why.contains("components=each needs"), "{why}");
                }
                _ => assert!(!made.expect("an operator").are_apart()),
            }
        }
    }
}

#[test]
fn small_components_are_compared_apart_and_joined() {
    let Some(device) = device::open() else { return };
    for (n, format) in [Format::Rgb, Format::Xbgr].into_iter().enumerate() {
        for size in [[1, 3], [17, 5], [33, 7]] {
            let arrangement = [ARRANGEMENTS[5], PADDED][n];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            check_pitch(&device, &input, &pitch_jobs(120.0, 0.0, 0));
        }
    }
}
