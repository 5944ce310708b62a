//! `rois-follow=true`: regions lie where an element ahead has found the part, and nothing is judged where it has not.

use gst_video::VideoFormat as Format;
use gstclinspect::results::{AlignStep, Alignment, DefectResult, Unplaced, Verdict};

use crate::{
    content::random,
    frames::{Frame, PLAIN, read},
    oracle::put,
    reference_picture::{frame_of, level, noisy},
    support::{Rig, buffer_of, caps_of, start},
};

const SIZE: [usize; 2] = [220, 160];
/// In the model's picture.
const ROI: [f64; 4] = [60.0, 40.0, 100.0, 80.0];

/// Both elements, with limits that noise exceeds.
const ELEMENTS: [&str; 2] = [
    "clsurface channels=dark-lines thresholds=<0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5> output=frame",
    "cltexture pitch-x=8 pitch-y=9.5 min-contrast=0 thresholds=<1.0,1.0,0.9,0.9,1.0,1.0> output=frame",
];

fn material(seed: u64) -> Frame {
    let mut frame = Frame::poisoned(Format::Gray8, SIZE, PLAIN, 128);
    let geometry = frame.geometry(0);
    for y in 0..SIZE[1] {
        for x in 0..SIZE[0] {
            let value = 60 + random(seed, x / 2, y / 3, 0) % 90 + random(seed, x, y, 1) % 30;
            put(&mut frame.bytes, &geometry, x, y, value);
        }
    }
    frame
}

/// The same with a spot of 12 pixels a side.
fn spotted(seed: u64, [left, top]: [usize; 2]) -> Frame {
    let mut frame = material(seed);
    let geometry = frame.geometry(0);
    for (x, y) in (0..12 * 12).map(|n| (n % 12, n / 12)) {
        put(&mut frame.bytes, &geometry, left + x, top + y, 250);
    }
    frame
}

/// A result of an element that has compared the frame with a model.
fn found_at(transform: [f64; 6]) -> DefectResult {
    DefectResult {
        element: "ahead".into(),
        width: SIZE[0] as u32,
        height: SIZE[1] as u32,
        alignment: Some(Alignment {
            match_score: 0.9,
            matched: true,
            transform,
            step: AlignStep::Affine,
            ..Alignment::default()
        }),
        judged_pixels: 100,
        verdict: Verdict::Pass,
        ..DefectResult::default()
    }
}

/// A turn by degrees about a place, then a shift.
fn turn(degrees: f64, [cx, cy]: [f64; 2], [dx, dy]: [f64; 2]) -> [f64; 6] {
    let (s, c) = degrees.to_radians().sin_cos();
    [
        cx - c * cx + s * cy + dx,
        c,
        -s,
        cy - s * cx - c * cy + dy,
        s,
        c,
    ]
}

/// Passes a frame that these results lie on; returns what `element` says, which comes last.
fn judge(rig: &mut Rig, buffer: gst::Buffer, ahead: &[DefectResult]) -> DefectResult {
    let mut buffer = buffer.copy();
    for result in ahead {
        result.attach(buffer.make_mut()).expect("a meta");
    }
    let output = rig.pass(buffer);
    let mut results = DefectResult::read(&output);
    assert_eq!(results.len(), ahead.len() + 1);
    results.remove(ahead.len())
}

fn mask(result: &DefectResult) -> Vec<u8> {
    read(result.mask.as_ref().expect("a mask"))
}

/// The corners of [`ROI`] in the frame. The centre of pixel (x, y) of the model goes where the transform says.
fn corners(t: [f64; 6]) -> [[f64; 2]; 4] {
    let [x, y, width, height] = ROI;
    [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]].map(|[dx, dy]| {
        let (x, y) = (x + dx - 0.5, y + dy - 0.5);
        [
            t[0] + t[1] * x + t[2] * y + 0.5,
            t[3] + t[4] * x + t[5] * y + 0.5,
        ]
    })
}

/// The property `ignore` with everything outside of these corners: the frame's edge, and the region as a hole.
fn all_but(corners: [[f64; 2]; 4]) -> String {
    let far = 1000.0;
    let outer = [
        [-far, -far],
        [far, -far],
        [far, far],
        [-far, far],
        [-far, -far],
    ];
    let inner = corners.into_iter().chain([corners[0]]);
    let points: Vec<String> = (outer.into_iter().chain(inner))
        .flatten()
        .map(|number| format!("(double){number:.12}"))
        .collect();
    format!("ignore=\"ignore,regions=<<{}>>\"", points.join(","))
}

#[test]
fn regions_follow_a_shift_and_a_turn_as_if_all_else_were_ignored() {
    let Some(device) = start() else { return };
    let frame = material(3);
    let buffer = || buffer_of(&frame, &device);
    let middle = [110.0, 80.0];
    let places = [
        Alignment::translation([0.0; 2]),
        Alignment::translation([7.25, -3.5]),
        Alignment::translation([-12.0, 20.0]),
        turn(2.5, middle, [1.5, 0.75]),
        turn(-30.0, middle, [0.0, 4.0]),
        // A part of the region lies outside.
        Alignment::translation([-90.0, 30.5]),
        turn(10.0, middle, [70.0, -60.0]),
    ];
    for element in ELEMENTS {
        let rois = "rois=<<60,40,100,80>>";
        let mut following = Rig::new(
            &format!("{element} {rois} rois-follow=true"),
            &caps_of(&frame),
        );
        let mut areas = Vec::new();
        for place in places {
            let found = judge(&mut following, buffer(), &[found_at(place)]);
            let still = format!("{element} {}", all_but(corners(place)));
            let wanted = judge(&mut Rig::new(&still, &caps_of(&frame)), buffer(), &[]);
            assert!(wanted.defect_pixels > 0, "{still}");
            assert_eq!(mask(&found), mask(&wanted), "{place:?} {element}");
            assert_eq!(found.judged_pixels, wanted.judged_pixels);
            assert_eq!(found.defects.len(), wanted.defects.len());
            assert_eq!((found.verdict, found.unplaced), (Verdict::Fail, None));
            areas.push(found.judged_pixels);
        }
        // A shift moves all of the region, and a frame's edge cuts it.
        assert_eq!(areas[..3], [8000; 3]);
        assert!(areas[5] < 8000 && areas[6] < 8000, "{areas:?}");
        // A mask of the frame stays where it is.
        let ignore = "ignore=\"ignore,regions=<<0,0,110,0,110,160,0,160>>\"";
        let text = format!("{element} {rois} rois-follow=true {ignore}");
        let mut half = Rig::new(&text, &caps_of(&frame));
        for (shift, area) in [(0.0, 50 * 80), (20.0, 70 * 80)] {
            let place = Alignment::translation([shift, 0.0]);
            let found = judge(&mut half, buffer(), &[found_at(place)]);
            assert_eq!(found.judged_pixels, area, "{shift}");
        }
    }
}

#[test]
fn frame_without_a_found_part_is_none_and_tells_why() {
    let Some(device) = start() else { return };
    let frame = material(3);
    let still = Alignment::translation([0.0; 2]);
    let unmatched = |place| {
        let mut result = found_at(place);
        let found = result.alignment.as_mut().expect("an alignment");
        (found.matched, found.match_score) = (false, 0.1);
        DefectResult {
            verdict: Verdict::Fail,
            judged_pixels: 0,
            ..result
        }
    };
    let other = DefectResult {
        alignment: None,
        ..found_at(still)
    };
    for element in ELEMENTS {
        let text = format!("{element} rois=<<60,40,100,80>> rois-follow=true");
        let mut rig = Rig::new(&text, &caps_of(&frame));
        for (ahead, why) in [
            (vec![found_at(still)], None),
            (vec![], Some(Unplaced::NoPlace)),
            (vec![other.clone()], Some(Unplaced::NoPlace)),
            (vec![unmatched(still)], Some(Unplaced::Unmatched)),
            // The last element that has looked for the part counts.
            (
                vec![found_at(still), unmatched(still)],
                Some(Unplaced::Unmatched),
            ),
            (vec![unmatched(still), found_at(still), other.clone()], None),
            (
                vec![found_at(Alignment::translation([300.0, 0.0]))],
                Some(Unplaced::Outside),
            ),
            (vec![found_at([f64::NAN; 6])], Some(Unplaced::NoPlace)),
            (vec![found_at(still)], None),
        ] {
            let found = judge(&mut rig, buffer_of(&frame, &device), &ahead);
            assert_eq!(found.unplaced, why, "{element}");
            let Some(why) = why else {
                assert_eq!((found.verdict, found.judged_pixels), (Verdict::Fail, 8000));
                continue;
            };
            assert_eq!((found.verdict, found.judged_pixels), (Verdict::None, 0));
            assert!(mask(&found).iter().all(|&byte| byte == 0));
            assert!(
                found.summary().contains(&why.to_string()),
                "{}",
                found.summary()
            );
        }
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].text.contains("link a clreference"),
            "{warnings:?}"
        );
        // The frame was cropped since.
        let mut cropped = buffer_of(&frame, &device);
        let fields = cropped.get_mut().expect("one owner");
        gst_video::VideoCropMeta::add(fields, (0, 0, 100, 100));
        let found = judge(&mut rig, cropped, &[found_at(still)]);
        assert_eq!(
            (found.verdict, found.unplaced),
            (Verdict::None, Some(Unplaced::Moved))
        );
        assert!(rig.warnings()[0].text.contains("cropped"));
    }
}

#[test]
fn places_of_a_frame_of_another_size_are_scaled() {
    let Some(device) = start() else { return };
    let frame = material(3);
    // The part was found in a frame half as large: the model has its size, and is scaled along.
    let half = DefectResult {
        width: SIZE[0] as u32 / 2,
        height: SIZE[1] as u32 / 2,
        ..found_at([5.0, 0.5, 0.0, -4.0, 0.0, 0.5])
    };
    for element in ELEMENTS {
        let text = format!("{element} rois=<<60,40,100,80>> rois-follow=true");
        let mut rig = Rig::new(&text, &caps_of(&frame));
        let found = judge(
            &mut rig,
            buffer_of(&frame, &device),
            std::slice::from_ref(&half),
        );
        let moved = Alignment::translation([10.0, -8.0]);
        let wanted = judge(&mut rig, buffer_of(&frame, &device), &[found_at(moved)]);
        assert_eq!(mask(&found), mask(&wanted));
        assert_eq!(found.judged_pixels, 8000);
    }
}

#[test]
fn frames_without_the_part_teach_nothing() {
    let Some(device) = start() else { return };
    let still = Alignment::translation([0.0; 2]);
    let frame = material(0);
    for element in [
        "clsurface output=frame",
        "cltexture pitch-x=8 pitch-y=9.5 min-contrast=0 output=frame",
    ] {
        let text = format!("{element} rois=<<60,40,100,80>> rois-follow=true learn=learn,frames=4");
        let mut rig = Rig::new(&text, &caps_of(&frame));
        for seed in 0..4 {
            let lost = judge(&mut rig, buffer_of(&material(70 + seed), &device), &[]);
            assert_eq!(lost.learning, Some([seed as u32, 4]), "{element}");
            // Where the regions of the model lie, outside of those of the frame, there is a spot.
            let place =
                Alignment::translation([40.0 + 4.0 * seed as f64, 30.0 + 0.5 * seed as f64]);
            let good = spotted(seed, [66, 46]);
            judge(&mut rig, buffer_of(&good, &device), &[found_at(place)]);
        }
        let factory = element.split(' ').next().expect("a name");
        let told = rig.told_while(&format!("{factory}-learned"), || {
            buffer_of(&material(9), &device)
        });
        assert_eq!(told.get::<u32>("frames"), Ok(4));
        // Outside of the region anything may be.
        let bad = spotted(5, [10, 136]);
        let found = |rig: &mut Rig, place| {
            let of = judge(rig, buffer_of(&bad, &device), &[found_at(place)]);
            of.defect_pixels
        };
        assert_eq!(found(&mut rig, still), 0, "{element}");
        let onto = Alignment::translation([-60.0, 40.0]);
        assert!(found(&mut rig, onto) > 0, "{element}");
    }
}

#[test]
fn a_reference_ahead_finds_the_part_across_queues_and_a_tee() {
    let Some(device) = start() else { return };
    let settings = "thresholds=<3.0,60.0,60.0,60.0,60.0,60.0,60.0,60.0> channels=dark-lines";
    let text = format!(
        "clreference train-frames=3 align=translation output=frame ! queue ! tee name=t ! queue ! \
         clsurface {settings} rois=<<40,30,60,40>> rois-follow=true output=frame ! queue name=out \
         t. ! queue ! fakesink async=false sync=false"
    );
    let first = frame_of(Format::Gray8, [0, 0], noisy(0));
    let mut rig = Rig::new(&text, &caps_of(&first));
    let last = |output: &gst::Buffer| DefectResult::read(output).pop().expect("a result");
    for n in 0..3 {
        let of = last(&rig.pass(buffer_of(
            &frame_of(Format::Gray8, [0, 0], noisy(n)),
            &device,
        )));
        // A frame that trains has no place yet.
        assert_eq!(
            (of.verdict, of.unplaced),
            (Verdict::None, Some(Unplaced::NoPlace))
        );
    }
    assert!(rig.warnings().is_empty(), "a training is no mistake");
    for shift in [[0, 0], [5, -4], [-7, 3]] {
        // A line across the part: it is marked where the region lies, and nowhere else.
        let frame = frame_of(Format::Gray8, shift, |x, y, s| {
            let [x, y] = [x - shift[0], y - shift[1]];
            let on_line = (15..150).contains(&x) && (50..53).contains(&y);
            if on_line { 0 } else { s }
        });
        let results = DefectResult::read(&rig.pass(buffer_of(&frame, &device)));
        let found = results[0].alignment.expect("an alignment");
        let is_near = |found: f64, shift: i64| (found - shift as f64).abs() < 0.3;
        assert!(
            found.matched && is_near(found.shift_x, shift[0]) && is_near(found.shift_y, shift[1])
        );
        let of = results.last().expect("a result");
        assert_eq!((of.verdict, of.unplaced), (Verdict::Fail, None));
        let line = of.defects.first().expect("a line");
        let (left, right) = (i64::from(line.x), i64::from(line.x) + i64::from(line.width));
        let ends = [left - 40 - shift[0], right - 100 - shift[0]];
        assert!(ends.iter().all(|end| end.abs() <= 1), "{shift:?}: {ends:?}");
    }
    // Another picture.
    let other = frame_of(Format::Gray8, [0, 0], |x, y, _| {
        level(3 * y + 400, 2 * x + 300)
    });
    let of = last(&rig.pass(buffer_of(&other, &device)));
    assert_eq!(
        (of.verdict, of.unplaced),
        (Verdict::None, Some(Unplaced::Unmatched))
    );
}

#[test]
fn regions_cannot_follow_in_a_web_and_lie_inside_the_model() {
    if start().is_none() {
        return;
    }
    for element in ELEMENTS {
        for (settings, word) in [
            ("line-scan=true", "rois-follow=true needs frames"),
            ("rois=<<200,0,40,40>>", "rois"),
        ] {
            let text = format!("{element} rois-follow=true {settings}");
            let mut rig = Rig::new(&text, &caps_of(&material(0)));
            let frame = gst::Buffer::with_size(SIZE[0] * SIZE[1]).expect("memory");
            let _ = rig.push(frame);
            let errors = format!("{:?}", rig.errors());
            assert!(errors.contains(word), "{text}: {errors}");
        }
    }
}
