//! `Surface` compared with its sequential reference: features, masks, counts, lists and peaks; and what it learns.

use clinspect_core::{
    ClError,
    learning::{Contrasts, Learner},
    surface::{CHANNEL_NAMES, CHANNELS, ChannelsInUse, Features},
    window::Window,
};
use clinspect_opencl::{Meter, frame::layout_of};
use clinspect_operators::{Inspection, Subject, Surface, SurfaceSettings};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    channels::{Packed, assert_mask},
    content::{Content, random},
    device,
    frames::{ARRANGEMENTS, Frame, PADDED, PLAIN},
    oracle::put,
    surface_job::{EVERY_CHANNEL, JOB, Job, check, features, learn, leather, outcome},
};

const FORMATS: [Format; 5] = [
    Format::Gray8,
    Format::Gray16Le,
    Format::Gray16Be,
    Format::I420,
    Format::Nv12,
];

#[test]
fn surface_every_format_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    let mut arrangements = ARRANGEMENTS.iter().cycle();
    let mut marked = [0; CHANNELS];
    let sizes = [
        [17, 17],
        [19, 40],
        [20, 20],
        [31, 63],
        [64, 64],
        [97, 130],
        [200, 70],
        [330, 301],
    ];
    for format in FORMATS {
        for size in SIZES.into_iter().chain(sizes) {
            let arrangement = *arrangements.next().expect("a cycle");
            let found = check(&device, &leather(format, size, arrangement, 0, 3), &JOB);
            for (sum, count) in marked.iter_mut().zip(found) {
                *sum += count;
            }
        }
    }
    assert!(
        marked.iter().all(|&count| count > 0),
        "pixels by channel: {marked:?}"
    );
}

#[test]
fn surface_every_content_and_depth_equals_reference() {
    let Some(device) = device::open() else { return };
    for content in Content::ALL {
        let input = Frame::showing(Format::Gray8, [150, 101], PADDED, content, 0);
        check(&device, &input, &JOB);
    }
    for bit_depth in [3, 9, 10, 12, 14, 16] {
        for content in [Content::BeyondDepth, Content::Random] {
            let input = Frame::showing(Format::Gray16Le, [90, 75], PADDED, content, bit_depth);
            check(&device, &input, &Job { bit_depth, ..JOB });
        }
    }
}

#[test]
fn surface_regions_ignored_pixels_and_images_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = leather(Format::Gray8, [211, 133], PADDED, 0, 3);
    for rois in [
        vec![],
        vec![[0, 0, 30, 30], [20, 11, 99, 110], [150, 2, 61, 131]],
    ] {
        for ignored in [vec![], vec![vec![40.0, 20.0, 160.0, 33.3, 70.5, 120.0]]] {
            let job = Job {
                image: !ignored.is_empty(),
                rois: rois.clone(),
                ignored,
                ..JOB
            };
            check(&device, &input, &job);
        }
    }
}

#[test]
fn surface_channels_alone_equal_reference() {
    let Some(device) = device::open() else { return };
    let input = leather(Format::Gray8, [150, 141], PADDED, 0, 3);
    for [novelty, dark_lines, bright_lines] in [
        [true, false, false],
        [false, true, false],
        [false, false, true],
        [true, false, true],
    ] {
        let channels = ChannelsInUse {
            novelty,
            dark_lines,
            bright_lines,
        };
        let marked = check(&device, &input, &Job { channels, ..JOB });
        for (channel, &count) in marked.iter().enumerate() {
            let is_used = channels.numbers().any(|number| number == channel);
            assert!(is_used || count == 0, "{channel} of {channels:?}");
        }
    }
    // Over limits of 0 the excess of many lines is cut off.
    let lines = Job {
        channels: ChannelsInUse {
            novelty: false,
            ..EVERY_CHANNEL
        },
        limits: [0.0; 2],
        ..JOB
    };
    check(&device, &input, &lines);
}

#[test]
fn surface_of_channels_that_mark_a_pixel_alike_names_the_first() {
    let Some(device) = device::open() else { return };
    let centre = 40;
    let showing = |level: &dyn Fn(bool, bool) -> u32| {
        let content = Content::Constant(128);
        let mut frame = Frame::showing(Format::Gray8, [81, 81], PLAIN, content, 0);
        let geometry = frame.geometry(0);
        for at in 0..81 {
            let level_at = |x, y| level(x == centre, y == centre);
            put(
                &mut frame.bytes,
                &geometry,
                at,
                centre,
                level_at(at, centre),
            );
            put(
                &mut frame.bytes,
                &geometry,
                centre,
                at,
                level_at(centre, at),
            );
        }
        frame
    };
    // Mirrored at a diagonal, a dot is the same, and a bright line across a dark one is a dark one across a bright one.
    let dot = |level: u32| move |x: bool, y: bool| if x && y { level } else { 128 };
    let cross = |along_x: u32| {
        move |x: bool, y: bool| match (x, y) {
            (false, true) => along_x,
            (true, false) => 256 - along_x,
            _ => 128,
        }
    };
    let lines = ChannelsInUse {
        novelty: false,
        ..EVERY_CHANNEL
    };
    let at_centre = |channels| Job {
        channels,
        rois: vec![[centre as u32, centre as u32, 1, 1]],
        ..JOB
    };
    for (input, first, other) in [
        (showing(&dot(20)), "dark-2", "dark-6"),
        (showing(&dot(230)), "bright-2", "bright-6"),
        (showing(&cross(60)), "dark-0", "bright-4"),
        (showing(&cross(196)), "dark-4", "bright-0"),
    ] {
        let job = at_centre(lines);
        let wanted = outcome(&input, &job);
        let number = |name| CHANNEL_NAMES.iter().position(|&n| n == name).expect("one");
        let peak = wanted.peaks[number(first)];
        assert_eq!(peak, wanted.peaks[number(other)], "{first} {other}");
        let strongest = wanted.strongest[centre * 81 + centre];
        assert_eq!(
            strongest.abs() & 31,
            number(first) as i64,
            "{first} {other}"
        );
        check(&device, &input, &job);
    }
    // Over limits of 0 the excess of novelty and that of a line are cut off.
    let input = leather(Format::Gray8, [150, 141], PADDED, 0, 3);
    let [x, y] = [110, 22];
    for (channels, strongest) in [(lines, -(32 << 20) - 3), (EVERY_CHANNEL, 32 << 20)] {
        let job = Job {
            channels,
            limits: [0.0; 2],
            rois: vec![[x as u32, y as u32, 1, 1]],
            ..JOB
        };
        assert_eq!(outcome(&input, &job).strongest[y * 150 + x], strongest);
        check(&device, &input, &job);
    }
}

#[test]
fn surface_at_a_peak_marks_nothing_and_below_it_does() {
    let Some(device) = device::open() else { return };
    let input = leather(Format::Gray8, [170, 99], PLAIN, 0, 3);
    let layout = layout_of(&input.info).expect("a layout");
    let mut operator = Surface::new(&device, &layout, &JOB.settings(&input)).expect("an operator");
    let frame = input.import(&device);
    let meter = Meter::new(false);
    let subject = Subject::whole(&frame, 99, &meter);
    let packed = Packed::new(&device, [170, 99]);
    let before = operator.mark(subject, packed.target()).expect("a mask");
    let demands = operator
        .demands(subject)
        .expect("demands")
        .expect("a model");
    for (channel, demand) in demands.iter().enumerate() {
        for (limit, is_marked) in [(demand.peak, false), (demand.peak - 1.0 / 256.0, true)] {
            let mut limits = [f64::INFINITY; CHANNELS];
            limits[channel] = limit;
            operator.try_limits(Some(&limits)).expect("a trial");
            let marked = operator.mark(subject, packed.target()).expect("a mask");
            assert_eq!(marked.pixels > 0, is_marked, "channel {channel} at {limit}");
        }
    }
    operator.try_limits(None).expect("the end of the trial");
    let after = operator.mark(subject, packed.target()).expect("a mask");
    assert_eq!(after, before);
}

/// Whether [`JOB`] marks a defect in a good leather, with a model and limits of other good frames.
#[test]
fn surface_learned_from_good_frames_passes_others_and_fails_a_defect() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let size @ [width, height] = [160, 128];
    let grain = |seed: u64, spot: Option<[usize; 2]>| {
        let mut frame = Frame::showing(Format::Gray8, size, PLAIN, Content::Constant(0), 0);
        let geometry = frame.geometry(0);
        for y in 0..height {
            for x in 0..width {
                let level = 60 + random(seed, x / 2, y / 3, 0) % 90 + random(seed, x, y, 1) % 30;
                let inside = |&[left, top]: &[usize; 2]| {
                    (left..left + 12).contains(&x) && (top..top + 12).contains(&y)
                };
                // A spot without grain has the mean level of the others.
                let level = if spot.as_ref().is_some_and(inside) {
                    119
                } else {
                    level
                };
                put(&mut frame.bytes, &geometry, x, y, level);
            }
        }
        frame
    };
    let channels = ChannelsInUse {
        dark_lines: false,
        bright_lines: false,
        ..EVERY_CHANNEL
    };
    let job = Job { channels, ..JOB };
    let good: Vec<Frame> = (10..20).map(|seed| grain(seed, None)).collect();
    let layout = layout_of(&good[0].info).expect("a layout");
    let mut operator =
        Surface::new(&device, &layout, &job.settings(&good[0])).expect("an operator");
    let packed = Packed::new(&device, size);
    let mut learner = Learner::new(good.len());
    let features: Vec<Vec<Features>> = good.iter().map(|frame| features(frame, &job)).collect();
    let model_of = |from: usize, step: usize| learn(features.iter().skip(from).step_by(step));
    for (n, input) in good.iter().enumerate() {
        operator
            .set_model(&model_of(1 - n % 2, 2))
            .expect("a model");
        let frame = input.import(&device);
        let subject = Subject::whole(&frame, height, &meter);
        operator.mark(subject, packed.target()).expect("a mask");
        let demands = operator
            .demands(subject)
            .expect("demands")
            .expect("a model");
        learner.add(n as u64, &demands, Contrasts::default());
    }
    let rules: Vec<_> = operator.limits().iter().map(|limit| limit.rule).collect();
    let learned = learner.learned(&rules).expect("limits");
    operator.set_model(&model_of(0, 1)).expect("a model");
    let limits: Vec<f64> = learned.iter().map(|learned| learned.limit).collect();
    operator.try_limits(Some(&limits)).expect("the limits");
    for (seed, spot) in [
        (30, None),
        (31, None),
        (32, Some([70, 51])),
        (33, Some([90, 17])),
    ] {
        let input = grain(seed, spot);
        let frame = input.import(&device);
        let subject = Subject::whole(&frame, height, &meter);
        operator.mark(subject, packed.target()).expect("a mask");
        let mask = packed.read(width);
        let is_marked = match spot {
            Some([x, y]) => mask[(y + 6) * width + x + 6],
            None => mask.contains(&true),
        };
        assert_eq!(is_marked, spot.is_some(), "frame {seed} at {limits:?}");
    }
}

#[test]
fn surface_strips_of_a_web_equal_one_frame() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let width = 101;
    for (height, rois) in [
        (683, vec![]),
        (640, vec![[3, 1, 70, 639], [60, 20, 41, 15]]),
        (40, vec![[10, 12, 80, 11]]),
    ] {
        let input = leather(Format::Gray8, [width, height], PLAIN, 0, 3);
        let ignored = vec![vec![40.0, 20.0, 60.0, 33.3, 50.5, 620.0]];
        let job = Job {
            rois,
            ignored,
            ..JOB
        };
        let settings = SurfaceSettings {
            line_scan: true,
            ..job.settings(&input)
        };
        let layout = layout_of(&input.info).expect("a layout");
        let mut operator = Surface::new(&device, &layout, &settings).expect("an operator");
        let reach = operator.reach();
        let wanted = outcome(&input, &job);
        for rows in [4, 7, 64, 150] {
            let mut features = Vec::new();
            let mut peaks = [0.0_f64; CHANNELS];
            let mut judged = 0;
            for first in (0..height).step_by(rows) {
                let rows = rows.min(height - first);
                // What the element has: the rows above and below that the operator asks for.
                let top = first.saturating_sub(reach.above()) & !3;
                let strip = first as u64..(first + rows) as u64;
                let bottom = (reach.to_come(&strip) as usize).min(height);
                let window = Window {
                    first: first - top,
                    rows,
                    height: bottom - top,
                    web_row: top as u64,
                    is_web: true,
                    ends: bottom == height,
                };
                let size = [width, bottom - top];
                let mut part = Frame::poisoned(Format::Gray8, size, PLAIN, 0);
                let all = input.component(0).values();
                part.set(
                    &[all[top * width..bottom * width].to_vec()],
                    &Frame::poisoned(Format::Gray8, size, PLAIN, 0),
                );
                let frame = part.import(&device);
                let subject = Subject {
                    frame: &frame,
                    window,
                    meter: &meter,
                };
                let packed = Packed::new(&device, [width, rows]);
                let marked = operator.mark(subject, packed.target()).expect("a mask");
                let about = || format!("rows {first} to {} of {height}", first + rows);
                let of_strip = &wanted.mask[first * width..(first + rows) * width];
                assert_mask(&packed.read(width), of_strip, width, &about);
                let count = of_strip.iter().filter(|&&set| set).count();
                assert_eq!(marked.pixels, count as u64, "{}", about());
                judged += operator.basis().judged.any;
                features.extend(operator.features().expect("features"));
                let of_strip = operator.peaks(&meter).expect("peaks").expect("a model");
                if rows == 150 && job.rois.is_empty() {
                    // A strip demands of the limits of lines what its own rows need.
                    let rois = vec![[0, first as u32, width as u32, rows as u32]];
                    let own = outcome(
                        &input,
                        &Job {
                            rois,
                            ..job.clone()
                        },
                    );
                    for (k, [peak, _]) in of_strip.into_iter().enumerate().skip(1) {
                        assert_eq!(peak, own.peaks[k] as f64 / 256.0, "{k}, {}", about());
                    }
                }
                for (peak, [of_strip, _]) in peaks.iter_mut().zip(of_strip) {
                    *peak = peak.max(of_strip);
                }
            }
            let pixels = wanted.judged.iter().filter(|&&judged| judged).count();
            assert_eq!(judged, pixels as u64, "{rows} of {height}");
            for (k, peak) in peaks.into_iter().enumerate() {
                assert_eq!(
                    peak,
                    wanted.peaks[k] as f64 / 256.0,
                    "channel {k}, {rows} of {height}"
                );
            }
            // A cell that two strips share counts in both.
            if rows % 4 == 0 && height % rows % 4 == 0 {
                let found = features.iter().map(|cell| cell.map(i64::from));
                assert!(
                    found.eq(wanted.features.iter().copied()),
                    "{rows} of {height}"
                );
            }
        }
    }
}

#[test]
fn surface_without_model_or_limits_judges_nothing() {
    let Some(device) = device::open() else { return };
    let input = leather(Format::Gray8, [90, 70], PLAIN, 0, 3);
    let layout = layout_of(&input.info).expect("a layout");
    let frame = input.import(&device);
    let meter = Meter::new(false);
    let subject = Subject::whole(&frame, 70, &meter);
    let packed = Packed::new(&device, [90, 70]);
    for has_model in [false, true] {
        let mut settings = JOB.settings(&input);
        if has_model {
            settings.limits.clear();
        } else {
            settings.model = None;
        }
        let mut operator = Surface::new(&device, &layout, &settings).expect("an operator");
        let marked = operator.mark(subject, packed.target()).expect("a mask");
        assert_eq!((marked.pixels, operator.basis().judged.any), (0, 0));
        assert_eq!(
            operator.demands(subject).expect("demands").is_some(),
            has_model
        );
        // The features are there to be learned.
        let found = operator.features().expect("features");
        assert_eq!(found, features(&input, &JOB));
    }
    let none = ChannelsInUse {
        novelty: false,
        dark_lines: false,
        bright_lines: false,
    };
    let refused = [
        SurfaceSettings {
            channels: none,
            ..JOB.settings(&input)
        },
        SurfaceSettings {
            limits: vec![1.0; 16],
            ..JOB.settings(&input)
        },
    ];
    for (settings, part) in refused
        .iter()
        .zip(["no channel is in use", "set 17 numbers"])
    {
        match Surface::new(&device, &layout, settings) {
            Err(ClError::Refused(why)) => assert!(why.contains(part), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
