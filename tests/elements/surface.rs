//! `clsurface` in harnesses: what it learns, in a thread of its own, its file, its verdicts, and what it refuses.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_core::{
    learning::{Contrasts, Demand, Learner, Rule},
    surface::{
        CHANNEL_NAMES, CHANNELS, DIMENSIONS, FEATURES, Features, Model, Samples as CellSamples,
    },
};
use clinspect_models::ModelFile;
use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    content::random,
    frames::{ARRANGEMENTS, Arrangement, Frame, PLAIN, read},
    oracle::{Samples, put, surface as oracle},
    reference_picture::Folder,
    support::{Rig, buffer_of, caps_of, constant, start},
};

const SIZE: [usize; 2] = [160, 128];
/// A place without grain.
const SPOT: [usize; 2] = [70, 51];
/// Number of good frames.
const FRAMES: u64 = 10;

/// A material on which nothing repeats; with a spot of the mean level, but without grain.
fn leather_of(
    format: Format,
    arrangement: Arrangement,
    size: [usize; 2],
    seed: u64,
    has_spot: bool,
) -> Frame {
    let mut frame = Frame::poisoned(format, size, arrangement, 128);
    for component in 0..if format == Format::Rgb { 3 } else { 1 } {
        let geometry = frame.geometry(component);
        for y in 0..size[1] {
            for x in 0..size[0] {
                let grain = random(seed, x / 2, y / 3, 0) % 90 + random(seed, x, y, 1) % 30;
                let inside = |at: usize, from: usize| (from..from + 12).contains(&at);
                let is_spot = has_spot && inside(x, SPOT[0]) && inside(y, SPOT[1]);
                let level = if is_spot { 119 } else { 60 + grain };
                put(&mut frame.bytes, &geometry, x, y, level);
            }
        }
    }
    frame
}

fn leather(seed: u64, has_spot: bool) -> Frame {
    leather_of(Format::Gray8, PLAIN, SIZE, seed, has_spot)
}

fn result(buffer: &gst::Buffer) -> DefectResult {
    DefectResult::read(buffer).remove(0)
}

fn grey() -> gst::Caps {
    let caps = gst::Caps::builder("video/x-raw").field("format", "GRAY8");
    caps.build()
}

fn judge(rig: &mut Rig, frame: &Frame, device: &Arc<ClContext>) -> DefectResult {
    result(&rig.pass(buffer_of(frame, device)))
}

fn thresholds(rig: &Rig) -> Vec<f64> {
    let value = rig.only("clsurface").property::<gst::Array>("thresholds");
    value
        .iter()
        .map(|v| v.get::<f64>().expect("a number"))
        .collect()
}

/// The next message named `name`, for which good frames are sent: a thread learns while they flow.
#[track_caller]
fn wait_for(rig: &mut Rig, name: &str, device: &Arc<ClContext>) -> gst::Structure {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(120) {
        if let Some(told) = rig.told(name).pop() {
            return told;
        }
        judge(rig, &leather(500, false), device);
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{name} is not told: {:?}", rig.warnings());
}

fn line(description: &str) -> String {
    format!("clsurface {description}")
}

/// A rig that has learned from good frames 0 to 9.
fn learned(description: &str, device: &Arc<ClContext>) -> Rig {
    let learn = format!("learn=learn,frames={FRAMES}");
    let mut rig = Rig::new(
        &line(&format!("{learn} {description}")),
        &caps_of(&leather(0, false)),
    );
    for seed in 0..FRAMES {
        let result = judge(&mut rig, &leather(seed, false), device);
        assert_eq!(result.verdict, Verdict::None, "frame {seed}");
        assert_eq!(result.learning, Some([seed as u32 + 1, FRAMES as u32]));
        assert_eq!(result.judged_pixels, 0);
    }
    wait_for(&mut rig, "clsurface-learned", device);
    // The settings of the message count for the next frame, whose kernels are compiled.
    rig
}

/// `clsurface` that learns from ten frames and keeps what it learns in a file.
fn with_file(path: &Path, description: &str) -> Rig {
    let learn = format!(
        "learn=\"learn,frames={FRAMES},location=(string){}\"",
        path.display()
    );
    Rig::new(
        &line(&format!("{learn} {description}")),
        &caps_of(&leather(0, false)),
    )
}

/// Learns into a file.
pub fn teach(path: &Path, description: &str, device: &Arc<ClContext>) -> Vec<f64> {
    let mut rig = with_file(path, description);
    for seed in 0..FRAMES {
        judge(&mut rig, &leather(seed, false), device);
    }
    rig.harness().push_event(gst::event::Eos::new());
    let limits = thresholds(&rig);
    assert!(!limits.is_empty(), "the end waits for the learning");
    drop(rig);
    assert!(path.exists(), "the stop waits for the file");
    limits
}

pub fn narrow(cell: &[i64; FEATURES]) -> Features {
    cell.map(|feature| i16::try_from(feature).unwrap())
}

fn features(frame: &Frame) -> Vec<Features> {
    let outcome = oracle::compare(frame.component(0), &definition(None, [None; CHANNELS]));
    outcome.features.iter().map(narrow).collect()
}

pub fn definition(model: Option<&Model>, limits: [Option<i64>; CHANNELS]) -> oracle::Settings {
    let wide = |values: &[i32]| values.iter().copied().map(i64::from).collect::<Vec<_>>();
    let wide_rows = |rows: &[[i32; DIMENSIONS]]| rows.iter().map(|row| wide(row)).collect();
    let model = model.map(|model| oracle::Model {
        mean: wide(model.mean()),
        weights: wide_rows(model.weights()),
        prototypes: wide_rows(model.prototypes()),
    });
    oracle::Settings {
        model: model.unwrap_or_default(),
        limits,
        depth: 8,
        rois: Vec::new(),
        ignored: Vec::new(),
    }
}

/// The model of every `step`-th of the good frames, by the definition.
fn model_of(all: &[Vec<Features>], from: usize, step: usize) -> Model {
    let some = all.iter().skip(from).step_by(step);
    let mut samples = CellSamples::new(some.clone().map(Vec::len).sum());
    some.for_each(|cells| samples.add(cells));
    Model::learn(&samples).expect("a model")
}

/// The limits of novelty and of the dark lines that the good frames give, by the definition, and the model.
fn definition_of_learning() -> (Vec<f64>, Model) {
    let good: Vec<Frame> = (0..FRAMES).map(|seed| leather(seed, false)).collect();
    let all: Vec<Vec<Features>> = good.iter().map(features).collect();
    let halves = [model_of(&all, 1, 2), model_of(&all, 0, 2)];
    let limits = limits_of(good.len(), |n| {
        (good[n].component(0), &halves[n % 2], Vec::new())
    });
    (limits, model_of(&all, 0, 1))
}

/// The limits of novelty and of the dark lines that frames give: each with its samples, the model that judges it, and its regions.
pub fn limits_of<'a>(
    frames: usize,
    of: impl Fn(usize) -> (Samples<'a>, &'a Model, Vec<[usize; 4]>),
) -> Vec<f64> {
    let used = 0..9;
    let mut limits = [None; CHANNELS];
    limits[..used.end].fill(Some(1 << 30));
    let mut learner = Learner::new(frames);
    for n in 0..frames {
        let (samples, model, rois) = of(n);
        let settings = oracle::Settings {
            rois,
            ..definition(Some(model), limits)
        };
        let outcome = oracle::compare(samples, &settings);
        let demands = used.clone().map(|k| Demand {
            peak: outcome.peaks[k] as f64 / 256.0,
            typical: Some(outcome.typical[k] / 256.0),
        });
        learner.add(n as u64, &demands.collect::<Vec<_>>(), Contrasts::default());
    }
    let rule = Rule {
        margin: 0.3,
        allowed: 0.0,
    };
    let learned = learner.learned(&vec![rule; used.len()]).expect("limits");
    learned.iter().map(|learned| learned.limit).collect()
}

#[test]
fn what_is_learned_and_marked_is_what_the_definition_gives() {
    let Some(device) = start() else { return };
    let folder = Folder::new("surface-definition");
    let path = folder.0.join("surface.npz");
    let found = teach(&path, "channels=novelty+dark-lines", &device);
    let (wanted, model) = definition_of_learning();
    assert_eq!(found, wanted);
    // The file holds the model of all frames.
    let file = ModelFile::open(&path).expect("a file");
    let stored = |name: &str| file.array::<2>(name).expect("an array").samples;
    let unsigned = |values: &[i32]| values.iter().map(|v| v.cast_unsigned()).collect::<Vec<_>>();
    assert_eq!(
        stored("surface_weights"),
        unsigned(model.weights().as_flattened())
    );
    assert_eq!(
        stored("surface_prototypes"),
        unsigned(model.prototypes().as_flattened())
    );

    let mut limits = [None; CHANNELS];
    for (limit, value) in limits.iter_mut().zip(&wanted) {
        *limit = Some((256.0 * value).round() as i64);
    }
    let mut arrangements = ARRANGEMENTS.iter();
    for (format, memory) in [
        (Format::Gray8, "buffer"),
        (Format::Gray8, "image"),
        (Format::Gray8, "buffer"),
        (Format::I420, "buffer"),
        (Format::Nv12, "image"),
        (Format::Rgb, "buffer"),
    ] {
        let arrangement = match format {
            Format::Rgb => PLAIN,
            _ => *arrangements.next().expect("an arrangement"),
        };
        let frame = leather_of(format, arrangement, SIZE, 70, true);
        let description = format!("channels=novelty+dark-lines memory-object={memory}");
        let learn = format!("learn=\"learn,location=(string){}\"", path.display());
        let text = line(&format!("{description} {learn}"));
        let mut rig = Rig::between(&text, &caps_of(&frame), &grey());
        let output = rig.pass(buffer_of(&frame, &device));
        let outcome = oracle::compare(
            leather(70, true).component(0),
            &definition(Some(&model), limits),
        );
        let mask = outcome.mask.iter().map(|&set| if set { 255 } else { 0 });
        assert_eq!(
            read(&output),
            mask.collect::<Vec<u8>>(),
            "{format:?} {memory}"
        );
        let result = result(&output);
        let judged = outcome.judged.iter().filter(|&&judged| judged).count();
        assert_eq!(result.judged_pixels, judged as u64);
        assert_eq!(result.channels, CHANNEL_NAMES);
        assert!(rig.warnings().is_empty());
    }
}

#[test]
fn good_frames_pass_after_learning_and_a_spot_fails() {
    let Some(device) = start() else { return };
    let mut rig = learned("", &device);
    let limits = thresholds(&rig);
    assert_eq!(limits.len(), 1);
    for seed in 30..38 {
        let good = judge(&mut rig, &leather(seed, false), &device);
        assert_eq!(
            (good.verdict, good.learning),
            (Verdict::Pass, None),
            "{seed}"
        );
    }
    let bad = judge(&mut rig, &leather(40, true), &device);
    assert_eq!(bad.verdict, Verdict::Fail);
    let largest = bad.defects[0];
    let holds =
        |at: usize, from: i32, length: u32| (from..from + length as i32).contains(&(at as i32 + 6));
    assert!(holds(SPOT[0], largest.x, largest.width) && holds(SPOT[1], largest.y, largest.height));
    assert_eq!(bad.channel(&largest), Some("novelty"));
    assert!(f64::from(largest.peak_difference) > limits[0]);
    // Frames of another size are judged by the same model.
    for [width, height] in [[240, 96], [64, 200]] {
        let frame = leather_of(Format::Gray8, PLAIN, [width, height], 50, false);
        rig.renegotiate(&caps_of(&frame));
        let other = judge(&mut rig, &frame, &device);
        assert_eq!((other.verdict, other.learning), (Verdict::Pass, None));
        assert_eq!(other.judged_pixels, ((width - 16) * (height - 16)) as u64);
    }
    assert!(rig.warnings().is_empty());
    // A frame without contrast is none that passes, in any light.
    for level in [0, 119, 255] {
        rig.renegotiate(&caps_of(&constant(SIZE, level)));
        let blank = judge(&mut rig, &constant(SIZE, level), &device);
        assert_eq!((blank.verdict, blank.defect_pixels), (Verdict::None, 0));
        let blind = blank.blind.expect("a reason");
        assert_eq!((&*blind.name, blind.reach), ("novelty", 0.0));
    }
    assert_eq!(rig.warnings().len(), 1);
}

#[test]
fn frames_are_judged_by_the_model_before_while_another_is_learned() {
    let Some(device) = start() else { return };
    let mut rig = learned("", &device);
    let before = thresholds(&rig);
    // The model of the message judges the next frame.
    judge(&mut rig, &leather(30, false), &device);
    rig.only("clsurface").emit_by_name::<()>("learn", &[]);
    for seed in 0..FRAMES {
        let of = judge(&mut rig, &leather(100 + seed, false), &device);
        assert_eq!(
            (of.verdict, of.learning),
            (Verdict::Pass, Some([seed as u32 + 1, 10]))
        );
        if seed == 3 {
            // A corrupted frame teaches nothing.
            let mut flagged = buffer_of(&leather(200, true), &device);
            let buffer = flagged.get_mut().expect("one owner");
            buffer.set_flags(gst::BufferFlags::CORRUPTED);
            let of = result(&rig.pass(flagged));
            assert_eq!(of.learning, Some([seed as u32 + 1, 10]));
        }
    }
    wait_for(&mut rig, "clsurface-learned", &device);
    assert_ne!(thresholds(&rig), before);
    assert!(rig.warnings().is_empty());
}

#[test]
fn a_fault_among_the_good_frames_is_named_and_can_be_forgotten() {
    let Some(device) = start() else { return };
    let mut rig = Rig::new(
        "clsurface learn=learn,frames=8",
        &caps_of(&leather(0, false)),
    );
    for seed in 0..7 {
        judge(&mut rig, &leather(seed, false), &device);
    }
    let fault = judge(&mut rig, &leather(7, true), &device).frame_number;
    let told = wait_for(&mut rig, "clsurface-learned", &device);
    assert_eq!(told.get::<u64>("novelty-frame"), Ok(fault));
    let blind = thresholds(&rig);
    assert_eq!(told.get::<f64>("novelty"), Ok(blind[0]));
    judge(&mut rig, &leather(60, false), &device);
    assert_eq!(
        judge(&mut rig, &leather(77, true), &device).verdict,
        Verdict::Pass
    );
    let element = rig.only("clsurface");
    element.emit_by_name::<()>("forget", &[&9999_u64]);
    judge(&mut rig, &leather(60, false), &device);
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.contains("frame 9999 cannot be forgotten"));
    element.emit_by_name::<()>("forget", &[&fault]);
    let told = wait_for(&mut rig, "clsurface-learned", &device);
    assert_eq!(told.get::<u32>("missing-frames"), Ok(1));
    // The next good frame takes the place of the forgotten one.
    let told = wait_for(&mut rig, "clsurface-learned", &device);
    assert_eq!(told.get::<u32>("missing-frames"), Ok(0));
    let seeing = thresholds(&rig);
    assert!(seeing[0] < 0.8 * blind[0], "{seeing:?} {blind:?}");
    judge(&mut rig, &leather(60, false), &device);
    assert_eq!(
        judge(&mut rig, &leather(77, true), &device).verdict,
        Verdict::Fail
    );
}

#[test]
fn file_is_in_force_from_the_first_frame_on_and_nothing_is_learned_unasked() {
    let Some(device) = start() else { return };
    let folder = Folder::new("surface-file");
    let path = folder.0.join("surface.npz");
    let limits = teach(&path, "", &device);
    let bytes = std::fs::read(&path).expect("a file");
    let mut rig = with_file(&path, "");
    for seed in 0..FRAMES + 2 {
        let bad = judge(&mut rig, &leather(seed, true), &device);
        assert_eq!((bad.verdict, bad.learning), (Verdict::Fail, None));
    }
    let read = thresholds(&rig);
    // The file holds 1/256.
    assert_eq!(read, [(256.0 * limits[0]).round() / 256.0]);
    assert!(rig.told("clsurface-learned").is_empty() && rig.warnings().is_empty());
    rig.only("clsurface")
        .emit_by_name::<()>("forget", &[&2_u64]);
    judge(&mut rig, &leather(3, false), &device);
    assert!(rig.warnings()[0].text.contains("cannot be forgotten"));
    drop(rig);
    assert_eq!(std::fs::read(&path).expect("a file"), bytes);

    // Frames that are too small for a cell are not passed by novelty, whose pixels all lie in cells.
    let small = leather_of(Format::Gray8, PLAIN, [19, 19], 1, false);
    let learn = format!("learn=\"learn,location=(string){}\"", path.display());
    let mut rig = Rig::new(&line(&learn), &caps_of(&small));
    let of = judge(&mut rig, &small, &device);
    assert_eq!((of.verdict, of.judged_pixels), (Verdict::None, 0));
}

#[test]
fn file_that_does_not_fit_is_refused_and_not_replaced_unasked() {
    let Some(device) = start() else { return };
    let folder = Folder::new("surface-refused");
    let other = folder.0.join("novelty.npz");
    teach(&other, "", &device);
    let garbage = folder.0.join("garbage.npz");
    std::fs::write(&garbage, b"not an archive").expect("a file");
    for (path, word) in [
        (&other, "it has no limit of dark-0"),
        (&garbage, "garbage.npz"),
    ] {
        let before = std::fs::read(path).expect("a file");
        let mut rig = with_file(path, "channels=novelty+dark-lines");
        for seed in 0..FRAMES + 1 {
            let of = judge(&mut rig, &leather(seed, false), &device);
            assert_eq!((of.verdict, of.learning), (Verdict::None, None));
        }
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].text.contains(word), "{warnings:?}");
        assert_eq!(std::fs::read(path).expect("a file"), before);
        rig.only("clsurface").emit_by_name::<()>("learn", &[]);
        for seed in 0..FRAMES {
            judge(&mut rig, &leather(seed, false), &device);
        }
        wait_for(&mut rig, "clsurface-learned", &device);
        assert_eq!(thresholds(&rig).len(), 9);
        drop(rig);
        assert_ne!(std::fs::read(path).expect("a file"), before);
        let mut rig = with_file(path, "channels=novelty+dark-lines");
        assert_eq!(
            judge(&mut rig, &leather(9, false), &device).verdict,
            Verdict::Pass
        );
    }
}

#[test]
fn nothing_is_learned_from_frames_that_show_no_surface_or_from_too_few() {
    let Some(device) = start() else { return };
    let flat = constant(SIZE, 90);
    let mut rig = Rig::new("clsurface learn=learn,frames=2", &caps_of(&flat));
    let begun = Instant::now();
    let warnings = loop {
        let of = judge(&mut rig, &flat, &device);
        assert_eq!(of.verdict, Verdict::None);
        let warnings = rig.warnings();
        if !warnings.is_empty() || begun.elapsed() > Duration::from_secs(60) {
            break warnings;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(
        warnings[0].text.contains("they show no surface"),
        "{warnings:?}"
    );
    assert_eq!(judge(&mut rig, &flat, &device).learning, None);
    assert!(thresholds(&rig).is_empty());

    // A frame is judged by what others have shown.
    let mut rig = Rig::new(
        "clsurface learn=learn,frames=1",
        &caps_of(&leather(0, false)),
    );
    let of = judge(&mut rig, &leather(0, false), &device);
    assert_eq!(of.learning, Some([1, 2]));
    let warnings = rig.warnings();
    assert!(warnings[0].text.contains("from 2 to"), "{warnings:?}");
    rig.harness().push_event(gst::event::Eos::new());
    let warnings = rig.warnings();
    assert!(
        warnings[0]
            .text
            .contains("the stream ended after 1 of 2 good"),
        "{warnings:?}"
    );
}

#[test]
fn other_settings_and_caps_begin_anew_and_a_stop_does_not_wait_long() {
    let Some(device) = start() else { return };
    let mut rig = Rig::new(
        "clsurface learn=learn,frames=4",
        &caps_of(&leather(0, false)),
    );
    let element = rig.only("clsurface");
    for seed in 0..3 {
        judge(&mut rig, &leather(seed, false), &device);
    }
    element.set_property_from_str("min-area", "3");
    let of = judge(&mut rig, &leather(3, false), &device);
    assert_eq!(of.learning, Some([1, 4]));
    // The thread has begun when caps change.
    for seed in 4..7 {
        judge(&mut rig, &leather(seed, false), &device);
    }
    let other = leather_of(Format::Gray8, PLAIN, [100, 90], 1, false);
    rig.renegotiate(&caps_of(&other));
    for n in 1..=4 {
        let of = judge(&mut rig, &other, &device);
        assert_eq!((of.verdict, of.learning), (Verdict::None, Some([n, 4])));
    }
    let begun = Instant::now();
    drop(rig);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_larger_margin_lies_above_the_mean_of_the_tiles_by_as_much() {
    let Some(device) = start() else { return };
    let folder = Folder::new("surface-margin");
    let of = |margin: f64| {
        let path = folder.0.join(format!("{margin}.npz"));
        let learn = format!(
            "learn=\"learn,frames={FRAMES},margin={margin},location=(string){}\"",
            path.display()
        );
        let mut rig = Rig::new(&line(&learn), &caps_of(&leather(0, false)));
        for seed in 0..FRAMES {
            judge(&mut rig, &leather(seed, false), &device);
        }
        rig.harness().push_event(gst::event::Eos::new());
        thresholds(&rig)[0]
    };
    let [none, own, whole] = [0.0, -1.0, 1.0].map(of);
    // The largest value, and its distance from the mean of the tiles. Limits are rounded to 1/1024.
    let expected = none + 0.3 * (whole - none);
    assert!(
        whole > none && (own - expected).abs() < 2.0 / 1024.0,
        "{none} {own} {whole}"
    );
}

#[test]
fn thresholds_of_lines_need_no_model_and_find_a_crack() {
    let Some(device) = start() else { return };
    let list = ["3.0"; 8].join(",");
    let text = format!("clsurface channels=dark-lines thresholds=<{list}>");
    let mut rig = Rig::new(&text, &caps_of(&leather(0, false)));
    let mut cracked = leather(1, false);
    let geometry = cracked.geometry(0);
    for x in 40..110 {
        for y in 60..63 {
            put(&mut cracked.bytes, &geometry, x, y, 20);
        }
    }
    let good = judge(&mut rig, &leather(0, false), &device);
    assert_eq!((good.verdict, good.learning), (Verdict::Pass, None));
    let bad = judge(&mut rig, &cracked, &device);
    assert_eq!(bad.verdict, Verdict::Fail);
    assert_eq!(bad.channel(&bad.defects[0]), Some("dark-0"));
    // Thresholds that no line exceeds see nothing.
    let high = gst::Array::new(vec![60_000.0; 8]);
    rig.only("clsurface").set_property("thresholds", high);
    let blind = judge(&mut rig, &leather(0, false), &device);
    assert_eq!(blind.verdict, Verdict::None);
    assert!(blind.blind.is_some());
    assert!(rig.warnings()[0].text.contains("no limit sees a defect"));
}

#[test]
fn the_channel_with_the_highest_number_is_named() {
    let Some(device) = start() else { return };
    // Bright lines from the upper left to the lower right, one to the right for three down, are those of direction 7.
    let mut list = ["60000.0"; 8];
    list[7] = "2.0";
    let text = format!(
        "clsurface channels=bright-lines thresholds=<{}>",
        list.join(",")
    );
    let mut rig = Rig::new(&text, &caps_of(&leather(0, false)));
    let mut scratched = leather(1, false);
    let geometry = scratched.geometry(0);
    for along in 0..60 {
        for x in 0..3 {
            put(
                &mut scratched.bytes,
                &geometry,
                110 - along + x,
                50 + along / 3,
                250,
            );
        }
    }
    let bad = judge(&mut rig, &scratched, &device);
    assert_eq!(bad.verdict, Verdict::Fail);
    let defect = bad.defects[0];
    assert_eq!(
        (bad.channel(&defect), defect.component()),
        (Some("bright-7"), None)
    );
    assert_eq!(u32::from(defect.level()), 16);
}

#[test]
fn settings_that_cannot_compare_are_refused() {
    if start().is_none() {
        return;
    }
    let caps = caps_of(&constant(SIZE, 0));
    let small = caps_of(&constant([16, 16], 0));
    for (settings, caps, word) in [
        ("channels=0", &caps, "no channel is in use"),
        ("thresholds=<1.0,2.0>", &caps, "set 1 numbers"),
        ("thresholds=<-1.0>", &caps, "set 1 numbers"),
        (
            "channels=dark-lines thresholds=<1.0>",
            &caps,
            "set 8 numbers",
        ),
        ("rois=<<0,0,3,200>>", &caps, "rois"),
        ("", &small, "8 pixels at each border"),
    ] {
        let mut rig = Rig::new(&line(settings), caps);
        let frame = gst::Buffer::with_size(SIZE[0] * SIZE[1]).expect("memory");
        let _ = rig.push(frame);
        let errors = rig.errors();
        let is_told = errors
            .iter()
            .any(|error| format!("{error:?}").contains(word));
        assert!(is_told, "{settings}: {errors:?}");
    }
}
