//! `clreference align=any`: parts anywhere in a frame, each judged by itself.

use std::sync::Arc;

use clinspect_opencl::ClContext;
use clinspect_testkit::parts::{Part, Placed, View};
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, NoneReason, Verdict};

use crate::{
    frames::{Frame, PLAIN},
    oracle::put,
    reference_picture::Folder,
    support::{Rig, buffer_of, caps_of, start},
};

const SIZE: [usize; 2] = [420, 320];
const TRAINED: usize = 8;

fn board() -> Part {
    Part::board(5, 120.0, 90.0)
}

/// A frame with boards, and a square of `side` px on those that are spoiled.
fn frame(seed: u64, placed: &[Placed], spoiled: &[usize]) -> Frame {
    lit_frame((1.0, 0.0), seed, placed, spoiled)
}

/// The same in light of this strength, which falls along x by a share.
fn lit_frame(
    (light, falling): (f64, f64),
    seed: u64,
    placed: &[Placed],
    spoiled: &[usize],
) -> Frame {
    let view = View {
        seed,
        light,
        falling,
        ..View::new(SIZE[0], SIZE[1])
    };
    let picture = view.draw(&board(), placed);
    let mut frame = Frame::poisoned(Format::Gray8, SIZE, PLAIN, 128);
    let geometry = frame.geometry(0);
    for (at, &sample) in picture.samples.iter().enumerate() {
        let (x, y) = (at % SIZE[0], at / SIZE[0]);
        let is_spoiled = spoiled.iter().any(|&n| {
            let [dx, dy] = [x as f64 - placed[n].at[0], y as f64 - placed[n].at[1]];
            dx.abs().max(dy.abs()) < 6.0
        });
        let sample = if is_spoiled {
            (sample + 128) % 256
        } else {
            sample
        };
        put(&mut frame.bytes, &geometry, x, y, sample as u32);
    }
    frame
}

/// A board somewhere.
fn somewhere(n: usize) -> Placed {
    let n = n as f64;
    Placed::new(120.0 + 37.0 * n % 170.0, 110.0 + 23.0 * n % 100.0, 47.0 * n)
}

/// Passes frames.
struct Line {
    rig: Rig,
    device: Arc<ClContext>,
}

impl Line {
    fn new(properties: &str, device: &Arc<ClContext>) -> Self {
        let element = format!(
            "clreference align=any edge-tolerance=2 threshold=40 opening=3 output=frame {properties}"
        );
        let caps = caps_of(&frame(0, &[], &[]));
        Self {
            rig: Rig::new(&element, &caps),
            device: device.clone(),
        }
    }

    fn pass(&mut self, frame: &Frame) -> DefectResult {
        let output = self.rig.pass(buffer_of(frame, &self.device));
        let mut results = DefectResult::read(&output);
        results.pop().expect("a result")
    }

    /// Trains with boards anywhere.
    fn trained(properties: &str, device: &Arc<ClContext>) -> Self {
        let mut line = Self::new(&format!("train-frames={TRAINED} {properties}"), device);
        for n in 0..TRAINED {
            let result = line.pass(&frame(n as u64, &[somewhere(n)], &[]));
            assert_eq!(result.none_reason(), Some(NoneReason::Training), "{n}");
        }
        assert!(line.rig.warnings().is_empty(), "{:?}", line.rig.warnings());
        line
    }
}

#[test]
fn part_is_judged_wherever_it_lies() {
    let Some(device) = start() else { return };
    let mut line = Line::trained("", &device);
    for n in 20..32 {
        let placed = somewhere(n);
        let good = line.pass(&frame(n as u64, &[placed], &[]));
        assert_eq!(good.verdict, Verdict::Pass, "{n}: {good:?}");
        let parts = good.parts.expect("parts");
        let part = parts.parts[0];
        let angle = (part.angle - placed.angle.to_degrees() + 180.0).rem_euclid(360.0);
        assert!((angle - 180.0).abs() < 0.5, "{part:?}");
        assert_eq!((part.verdict, part.defect_pixels), (Verdict::Pass, 0));
        let found = good.alignment.expect("one part");
        assert!(found.matched && found.match_score == part.score);
        let bad = line.pass(&frame(n as u64, &[placed], &[0]));
        assert_eq!(bad.verdict, Verdict::Fail, "{n}");
        // The defect lies where the part was spoiled.
        let defect = bad.defects[0];
        let [x, y] = placed.at;
        let far = (f64::from(defect.centroid_x) - x).hypot(f64::from(defect.centroid_y) - y);
        assert!(defect.part() == 1 && far < 6.0, "{defect:?}");
        assert_eq!(bad.parts.expect("parts").parts[0].verdict, Verdict::Fail);
    }
}

#[test]
fn light_that_falls_over_a_part_is_followed() {
    let Some(device) = start() else { return };
    let mut line = Line::trained("normalize=gain", &device);
    for (n, light) in [(0.6, 0.0), (1.15, 0.0), (1.0, 0.4), (0.8, -0.3)]
        .into_iter()
        .enumerate()
    {
        let placed = somewhere(n + 4);
        let good = line.pass(&lit_frame(light, 80, &[placed], &[]));
        assert_eq!(good.verdict, Verdict::Pass, "{light:?}: {good:?}");
        let bad = line.pass(&lit_frame(light, 80, &[placed], &[0]));
        assert_eq!(bad.verdict, Verdict::Fail, "{light:?}");
    }
}

#[test]
fn frames_without_the_whole_part_are_none_and_tell_why() {
    let Some(device) = start() else { return };
    let mut line = Line::trained("", &device);
    let placed = somewhere(3);
    let mirrored = Placed {
        is_mirrored: true,
        ..placed
    };
    let cut = Placed::new(50.0, 150.0, 20.0);
    for (placed, reason) in [
        (vec![], NoneReason::Missing),
        (vec![mirrored], NoneReason::Other),
        (vec![cut], NoneReason::Cut),
    ] {
        let result = line.pass(&frame(40, &placed, &[]));
        assert_eq!(result.none_reason(), Some(reason), "{result:?}");
        assert_eq!((result.defect_pixels, result.defects.len()), (0, 0));
    }
    // A part that the edge cuts is the next frame's.
    line.rig
        .only("clreference")
        .set_property_from_str("edge", "ignore");
    let both = line.pass(&frame(41, &[Placed::new(250.0, 150.0, 77.0), cut], &[]));
    assert_eq!(both.verdict, Verdict::Pass, "{both:?}");
    assert_eq!(both.parts.expect("parts").parts.len(), 1);
}

#[test]
fn parts_are_counted_and_each_has_its_verdict() {
    let Some(device) = start() else { return };
    let four = [
        Placed::new(100.0, 90.0, 10.0),
        Placed::new(310.0, 90.0, 200.0),
        Placed::new(100.0, 230.0, 300.0),
        Placed::new(310.0, 230.0, 110.0),
    ];
    let mut line = Line::trained("parts=<2,3>", &device);
    for (count, spoiled, verdict) in [
        (1, &[][..], Verdict::Fail),
        (2, &[], Verdict::Pass),
        (3, &[], Verdict::Pass),
        (3, &[1], Verdict::Fail),
        (3, &[0, 2], Verdict::Fail),
        (4, &[], Verdict::Fail),
    ] {
        let result = line.pass(&frame(50, &four[..count], spoiled));
        assert_eq!(result.verdict, verdict, "{count} {spoiled:?}: {result:?}");
        let parts = result.parts.expect("parts");
        assert_eq!(
            ([parts.least, parts.most], parts.parts.len()),
            ([2, 3], count)
        );
        for placed in &four[..count] {
            let near = |part: &&gstclinspect::results::Part| {
                (part.x - placed.at[0]).hypot(part.y - placed.at[1]) < 3.0
            };
            let at = parts
                .parts
                .iter()
                .position(|part| near(&part))
                .expect("the part");
            let n = four
                .iter()
                .position(|other| other.at == placed.at)
                .expect("it");
            let expected = if spoiled.contains(&n) {
                Verdict::Fail
            } else {
                Verdict::Pass
            };
            assert_eq!(parts.parts[at].verdict, expected);
            let own = (result.defects.iter()).filter(|defect| usize::from(defect.part()) == at + 1);
            assert_eq!(own.count() > 0, spoiled.contains(&n));
        }
        // What limits allow a part, they allow each.
    }
    let fail = "fail, defect-count=1";
    line.rig
        .only("clreference")
        .set_property_from_str("fail", fail);
    let result = line.pass(&frame(50, &four[..3], &[0, 2]));
    assert_eq!(result.verdict, Verdict::Pass, "{result:?}");
    line.rig
        .only("clreference")
        .set_property_from_str("fail", "fail, angle=90");
    let result = line.pass(&frame(50, &four[..2], &[]));
    let verdicts = result
        .parts
        .expect("parts")
        .parts
        .iter()
        .map(|part| part.verdict)
        .collect::<Vec<_>>();
    assert_eq!(
        (result.verdict, verdicts.contains(&Verdict::Pass)),
        (Verdict::Fail, true)
    );
}

#[test]
fn limits_are_learned_from_parts_and_the_file_serves_a_second_start() {
    let Some(device) = start() else { return };
    let folder = Folder::new("parts");
    let model = folder.0.join("board.npz");
    let location = format!(
        "location={} deviation-factor=0 learn=\"learn, frames=6\"",
        model.display()
    );
    let mut line = Line::trained(&location, &device);
    line.rig
        .only("clreference")
        .emit_by_name::<()>("learn", &[]);
    for n in 0..7 {
        line.pass(&frame(60 + n, &[somewhere(n as usize + 9)], &[]));
    }
    let learned = line.rig.told("clreference-learned");
    assert_eq!(learned.len(), 1, "{:?}", line.rig.warnings());
    let threshold: f64 = line.rig.only("clreference").property("threshold");
    assert_ne!(threshold, 40.0);
    let bad = line.pass(&frame(70, &[somewhere(5)], &[0]));
    let good = line.pass(&frame(71, &[somewhere(6)], &[]));
    assert_eq!((bad.verdict, good.verdict), (Verdict::Fail, Verdict::Pass));
    drop(line);
    let second = format!(
        "location={} deviation-factor=0 threshold={threshold}",
        model.display()
    );
    let mut line = Line::new(&second, &device);
    let again = line.pass(&frame(71, &[somewhere(6)], &[]));
    assert_eq!((again.verdict, again.parts), (good.verdict, good.parts));
}

#[test]
fn frames_of_the_training_teach_the_limit_too() {
    let Some(device) = start() else { return };
    let mut line = Line::new("train-frames=6 learn=\"learn, frames=9\"", &device);
    line.rig
        .only("clreference")
        .emit_by_name::<()>("learn", &[]);
    for n in 0..9 {
        line.pass(&frame(n as u64, &[somewhere(n)], &[]));
    }
    let mut learned = Vec::new();
    // The frames of the training are judged beside those that follow.
    for n in 9..40 {
        line.pass(&frame(n as u64, &[somewhere(n)], &[]));
        learned.extend(line.rig.told("clreference-learned"));
    }
    assert_eq!(learned.len(), 1);
    assert_eq!(learned[0].get::<u32>("frames"), Ok(9));
    let bad = line.pass(&frame(70, &[somewhere(5)], &[0]));
    let good = line.pass(&frame(71, &[somewhere(6)], &[]));
    assert_eq!((bad.verdict, good.verdict), (Verdict::Fail, Verdict::Pass));
}

#[test]
fn training_leaves_out_frames_without_the_part_and_refuses_a_first_one_without() {
    let Some(device) = start() else { return };
    let mut line = Line::new("train-frames=5", &device);
    for n in 0..5 {
        let placed = if n == 2 { vec![] } else { vec![somewhere(n)] };
        line.pass(&frame(n as u64, &placed, &[]));
    }
    let model = line.rig.told("clreference-model");
    assert_eq!(model[0].get::<u32>("frames"), Ok(4));
    let left_out: gst::Array = model[0].get("left-out").expect("numbers");
    let left_out: Vec<u32> = left_out
        .iter()
        .map(|n| n.get().expect("a number"))
        .collect();
    assert_eq!(left_out, [3]);
    assert_eq!(
        line.pass(&frame(9, &[somewhere(4)], &[])).verdict,
        Verdict::Pass
    );
    let mut line = Line::new("train-frames=1", &device);
    line.pass(&frame(0, &[], &[]));
    let warnings = line.rig.warnings();
    assert!(warnings[0].text.contains("shows no part"), "{warnings:?}");
}
