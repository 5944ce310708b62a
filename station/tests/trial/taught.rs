//! What is learned is what the analyzer itself learns.

use std::{fs, sync::Arc};

use clinspect_testkit::{support::Rig, tools::Sandbox};
use gst::prelude::*;
use gst_video::VideoFormat;
use run::{
    frame::Frame,
    trial::{Reference, Trial, take, teach},
};
use serde_json::json;

use super::scenes::{camera, labels, panels, start, surfaces};

fn shared(frames: Vec<Frame>) -> Vec<Arc<Frame>> {
    frames.into_iter().map(Arc::new).collect()
}

/// The limits that an element learns from the frames: the message's numbers, by name.
fn learned_by(line: &str, factory: &str, frames: &[Arc<Frame>]) -> gst::Structure {
    let mut rig = Rig::new(line, &frames[0].info().to_caps().unwrap());
    rig.only(factory).emit_by_name::<()>("learn", &[]);
    for (at, frame) in frames.iter().enumerate() {
        let mut buffer = frame.buffer().copy();
        buffer.make_mut().set_offset(at as u64);
        rig.pass(buffer);
    }
    let last = frames[frames.len() - 1].buffer();
    rig.told_while(&format!("{factory}-learned"), || last.copy())
}

#[test]
fn limits_of_a_pattern_and_the_frames_that_set_them_are_those_of_the_element() {
    start();
    let sandbox = Sandbox::new("taught-pattern");
    let frames = shared(panels(VideoFormat::Gray8, 10, &[]));
    let config = camera(
        sandbox.path(),
        "pitch = { pitch-x = 7.35, pitch-y = 7.35, scales = 2, learn = { margin = 0.2, location = \"never.npz\" } }",
    );
    let mut steps = Vec::new();
    let files = sandbox.folder("files");
    fs::create_dir_all(&files).unwrap();
    let taught = teach(&config, &frames, &files, &mut |done| {
        steps.push(done);
        true
    });
    let taught = taught.unwrap();
    assert_eq!(steps, Vec::from_iter(1..=10));
    let line =
        "clpitchthreshold pitch-x=7.35 pitch-y=7.35 scales=2 learn=learn,frames=10,margin=0.2";
    let expected = learned_by(line, "clpitchthreshold", &frames);
    let names: Vec<&str> = taught.limits.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["threshold", "level-1", "level-2"]);
    for limit in &taught.limits {
        let name = limit.name.as_str();
        assert_eq!(limit.value, expected.get::<f64>(name).unwrap(), "{name}");
        let frame = expected.get::<u64>(format!("{name}-frame")).unwrap();
        assert_eq!(limit.frame as u64, frame, "{name}");
    }
    let threshold = expected.get::<f64>("threshold").unwrap();
    let factors = expected.get::<gst::Array>("scale-factors").unwrap();
    let factors: Vec<f64> = factors.iter().map(|of| of.get().unwrap()).collect();
    let contrasts = expected.get::<gst::Array>("contrasts").unwrap();
    let contrasts: Vec<f64> = contrasts.iter().map(|of| of.get().unwrap()).collect();
    let properties =
        json!({ "threshold": threshold, "scale-factors": factors, "contrasts": contrasts });
    assert_eq!(json!(taught.properties), properties);
    // The frame that set a limit demands the most of all, and the limit is above by the margin.
    assert_eq!(taught.demands.len(), 10);
    for (at, limit) in taught.limits.iter().enumerate() {
        let most = taught
            .demands
            .iter()
            .map(|of| of.values[at])
            .fold(0.0, f64::max);
        let of_frame = &taught.demands[limit.frame];
        assert_eq!((of_frame.frame, of_frame.values[at]), (limit.frame, most));
        assert!(limit.value >= most * 1.2 - 0.01, "{limit:?} {most}");
    }
    assert!(taught.left_out.is_empty() && taught.model.is_none());
    assert_eq!(fs::read_dir(&files).unwrap().count(), 0);
}

#[test]
fn taught_settings_pass_the_good_frames_of_grey_colour_and_16_bits() {
    start();
    let sandbox = Sandbox::new("taught-formats");
    for (format, depth) in [
        (VideoFormat::Gray8, 0),
        (VideoFormat::Gray16Le, 12),
        (VideoFormat::Rgb, 0),
    ] {
        let frames = panels(format, 12, &[10, 11]);
        let (good, bad) = frames.split_at(10);
        let table = |limits: &str| format!("pitch = {{ bit-depth = {depth}{limits} }}");
        let config = camera(sandbox.path(), &table(""));
        let good: Vec<_> = good
            .iter()
            .map(|of| Arc::new(Frame::read(&of.png(&[]).unwrap()).unwrap()))
            .collect();
        let taught = teach(&config, &good, sandbox.path(), &mut |_| true).unwrap();
        assert!(taught.left_out.is_empty(), "{format}");
        let limits = taught
            .properties
            .iter()
            .map(|(name, value)| format!(", {name} = {value}"));
        let config = camera(sandbox.path(), &table(&limits.collect::<String>()));
        let mut trial = Trial::start(&config, good[0].info()).unwrap();
        let mut verdict = |frame: &Frame| trial.judge(frame).unwrap().report.verdict;
        let first: Vec<_> = good.iter().map(|of| verdict(of)).collect();
        let again: Vec<_> = good.iter().map(|of| verdict(of)).collect();
        assert!(!first.contains(&"fail"), "{format}: {first:?}");
        assert_eq!(again, ["pass"; 10], "{format}");
        assert_eq!(
            bad.iter().map(verdict).collect::<Vec<_>>(),
            ["fail"; 2],
            "{format}"
        );
    }
}

#[test]
fn a_model_goes_into_the_folder_and_nothing_into_the_files_of_the_camera() {
    start();
    let sandbox = Sandbox::new("taught-model");
    let of_camera = sandbox.path().join("in-force.npz");
    fs::write(&of_camera, "in force").unwrap();
    let files = sandbox.folder("files");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("left-reference.npz"), "an older one").unwrap();
    let table = |location: &str, more: &str| {
        format!("reference = {{ align = \"translation\", location = \"{location}\"{more} }}")
    };
    let of_camera_text = of_camera.display().to_string();
    let config = camera(sandbox.path(), &table(&of_camera_text, ""));
    let frames = labels(14, &[13]);
    let good = shared(labels(12, &[]));
    let taught = teach(&config, &good, &files, &mut |_| true).unwrap();
    assert_eq!(fs::read_to_string(&of_camera).unwrap(), "in force");
    let model = taught.model.unwrap();
    assert_eq!(model, files.join("left-reference.npz"));
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1);
    let factor = taught.properties["deviation-factor"].as_f64().unwrap();
    assert_eq!(taught.limits[0].value, factor);
    let more = format!(", deviation-factor = {factor:?}");
    let config = camera(sandbox.path(), &table(&model.display().to_string(), &more));
    let mut trial = Trial::start(&config, frames[0].info()).unwrap();
    for frame in &good {
        assert_eq!(trial.judge(frame).unwrap().report.verdict, "pass");
    }
    assert_eq!(trial.judge(&frames[13]).unwrap().report.verdict, "fail");
}

/// The file of its limits is the model; limits of the text win over those of the file.
#[test]
fn a_surface_is_taught_with_its_model_and_its_limits_can_be_moved() {
    start();
    let sandbox = Sandbox::new("taught-surface");
    let files = sandbox.folder("files");
    fs::create_dir_all(&files).unwrap();
    let table = |location: &str, more: &str| {
        format!("surface = {{ learn = {{ location = \"{location}\" }}{more} }}")
    };
    let config = camera(sandbox.path(), &table("never.npz", ""));
    let good = shared(surfaces(12, &[]));
    let bad = surfaces(14, &[13]).remove(13);
    let taught = teach(&config, &good, &files, &mut |_| true).unwrap();
    let model = taught.model.unwrap();
    assert_eq!(model, files.join("left-limits.npz"));
    assert_eq!(fs::read_dir(&files).unwrap().count(), 1);
    let names: Vec<&str> = taught.limits.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["novelty"]);
    let limit = taught.limits[0].value;
    assert_eq!(taught.properties["thresholds"], json!([limit]));
    let model = model.display().to_string();
    let judge = |more: &str, frame: &Frame| {
        let config = camera(sandbox.path(), &table(&model, more));
        let mut trial = Trial::start(&config, frame.info()).unwrap();
        trial.judge(frame).unwrap().report.verdict
    };
    let learned = format!(", thresholds = [{limit:?}]");
    for more in ["", &learned] {
        assert_eq!(judge(more, &good[3]), "pass", "{more}");
        assert_eq!(judge(more, &bad), "fail", "{more}");
    }
    assert_eq!(judge(", thresholds = [0.5]", &good[3]), "fail");
}

#[test]
fn frames_that_cannot_be_learned_from_are_left_out_and_too_few_are_refused() {
    start();
    let sandbox = Sandbox::new("taught-few");
    let config = camera(sandbox.path(), "pitch = { pitch-x = 7.35, pitch-y = 7.35 }");
    let of_panel = shared(panels(VideoFormat::Gray8, 6, &[]));
    let all = |frames: &[Arc<Frame>]| teach(&config, frames, sandbox.path(), &mut |_| true);
    let why = all(&of_panel[..1]).unwrap_err();
    assert!(why.contains("at least 2"), "{why}");
    let black = super::scenes::frame(VideoFormat::Gray8, [320, 240], &[0; 320 * 240]);
    let black = Arc::new(black);
    let why = all(&vec![black.clone(); 3]).unwrap_err();
    assert!(why.starts_with("only 0 of 3"), "{why}");
    let stopped = teach(&config, &of_panel, sandbox.path(), &mut |done| done < 3);
    let why = stopped.unwrap_err();
    assert!(why.contains("stopped"), "{why}");
    // A frame of another object does not match the others: it has no part in model and limits.
    let config = camera(
        sandbox.path(),
        "reference = { align = \"translation\", location = \"never.npz\" }",
    );
    let all = |frames: &[Arc<Frame>]| {
        let taught = teach(&config, frames, sandbox.path(), &mut |_| true).unwrap();
        (
            taught.limits,
            Vec::from_iter(taught.left_out.into_iter().map(|(at, _)| at)),
            taught.demands.len(),
        )
    };
    let mut of_label = shared(labels(8, &[]));
    let (limits, left_out, demands) = all(&of_label);
    assert_eq!((left_out, demands), (vec![], 8));
    of_label.push(black);
    let (with, left_out, demands) = all(&of_label);
    assert_eq!((with, left_out, demands), (limits, vec![8], 8));
}

#[test]
fn references_are_taken_from_frames_and_the_other_one_is_kept() {
    start();
    let sandbox = Sandbox::new("taught-light");
    let files = sandbox.folder("files");
    fs::create_dir_all(&files).unwrap();
    // The light falls off to the right.
    let level = |x: usize| u8::try_from(200 - x / 4).unwrap();
    let row: Vec<u8> = (0..320).map(level).collect();
    let of = |samples: Vec<u8>| {
        Arc::new(super::scenes::frame(
            VideoFormat::Gray8,
            [320, 240],
            &samples,
        ))
    };
    let (white, dark) = (of(row.repeat(240)), of(vec![4; 320 * 240]));
    let config = camera(sandbox.path(), "pitch = { pitch-x = 8.0, pitch-y = 8.0 }");
    let taken = take(&config, Reference::Dark, &vec![dark; 3], &files).unwrap();
    assert_eq!(taken.file, files.join("left-flat-field.npz"));
    let table = format!(
        "flat-field = {{ location = \"{}\" }}\npitch = {{ pitch-x = 8.0, pitch-y = 8.0 }}",
        taken.file.display()
    );
    let config = camera(sandbox.path(), &table);
    let before = fs::read(&taken.file).unwrap();
    let later = sandbox.folder("later");
    fs::create_dir_all(&later).unwrap();
    let both = take(&config, Reference::White, &vec![white.clone(); 4], &later).unwrap();
    assert!(both.summary.contains("4 frames"), "{}", both.summary);
    assert_eq!(
        fs::read(&taken.file).unwrap(),
        before,
        "the camera's own file is only read"
    );
    let names = |file: &std::path::Path| {
        let file = clinspect_models::ModelFile::open(file).unwrap();
        ["dark", "white"].map(|name| file.has(name))
    };
    assert_eq!(
        (names(&taken.file), names(&both.file)),
        ([true, false], [true, true])
    );
    // Corrected by both, the white frame is even.
    let config = camera(
        sandbox.path(),
        &table.replace(
            &*taken.file.display().to_string(),
            &both.file.display().to_string(),
        ),
    );
    let mut trial = Trial::start(&config, white.info()).unwrap();
    let histogram = trial.judge(&white).unwrap().histogram.unwrap();
    let of = &histogram.statistics[0];
    assert!(of.maximum - of.minimum <= 1.0, "{of:?}");
    let saturated = super::scenes::frame(VideoFormat::Gray8, [320, 240], &[255; 320 * 240]);
    let why = take(&config, Reference::White, &[Arc::new(saturated)], &later).unwrap_err();
    assert!(
        why.contains("highest level") || why.contains("exposure"),
        "{why}"
    );
    assert_eq!(names(&both.file), [true, true]);
    assert!(
        take(&config, Reference::White, &[], &later)
            .unwrap_err()
            .contains("1 to 1024")
    );
}
