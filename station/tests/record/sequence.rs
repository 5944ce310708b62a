//! Which frames are recorded, and under which names.

use std::{fs, sync::Arc};

use clinspect_results::report::{Report, ReportedOutcome};
use clinspect_testkit::tools::Sandbox;
use gst_video::VideoFormat;
use plan::RecordingSettings;
use run::recording::Recorder;

use crate::support::{
    alarms, all_whole, camera, files, frame, info, load, recorded, report, report_at, send,
    settings, until,
};

fn roles(failed: &[u64], context: &[u64]) -> Vec<(u64, String)> {
    let failed = failed.iter().map(|&frame| (frame, "failed".into()));
    let context = context.iter().map(|&frame| (frame, "context".into()));
    let mut all: Vec<_> = failed.chain(context).collect();
    all.sort();
    all
}

#[test]
fn failed_frames_and_those_around_are_recorded_once() {
    let sandbox = Sandbox::new("record-around");
    // The verdicts of frames 0, 1, …; frames before and after; the frames expected: failed, context.
    type Case = (&'static str, u32, u32, &'static [u64], &'static [u64]);
    let cases: [Case; 7] = [
        ("ppfpp", 0, 0, &[2], &[]),
        ("ppfpp", 1, 0, &[2], &[1]),
        ("ppfpp", 0, 1, &[2], &[3]),
        ("pnfnpppp", 50, 2, &[2], &[0, 1, 3, 4]),
        // The frames between two failures are both after the one and before the other.
        ("ppppfppfpppp", 2, 2, &[4, 7], &[2, 3, 5, 6, 8, 9]),
        ("pfppppfp", 2, 1, &[1, 6], &[0, 2, 4, 5, 7]),
        ("nnpp", 2, 2, &[], &[]),
    ];
    for (index, (verdicts, before, after, failed, context)) in cases.into_iter().enumerate() {
        let folder = sandbox.folder(&format!("case-{index}"));
        let camera = camera("left");
        let settings = RecordingSettings {
            before,
            after,
            ..settings(&folder)
        };
        let verdicts: Vec<_> = verdicts
            .chars()
            .map(|letter| match letter {
                'p' => "pass",
                'n' => "none",
                _ => "fail",
            })
            .collect();
        send(
            Recorder::new(settings, camera.clone()).unwrap(),
            0,
            &verdicts,
        );
        assert_eq!(recorded(&folder), roles(failed, context), "case {index}");
        assert_eq!(all_whole(&folder), failed.len() + context.len());
        assert_eq!(
            load(&camera.counters.recorded),
            (failed.len() + context.len()) as u64
        );
        assert_eq!(load(&camera.counters.recording_queue), 0);
        assert!(alarms(&camera).is_empty());
    }
}

#[test]
fn a_name_comes_from_camera_time_and_frame_number() {
    let sandbox = Sandbox::new("record-names");
    let folder = sandbox.folder("out");
    let recorder = Recorder::new(settings(&folder), camera("Press_2-left")).unwrap();
    let info = info(VideoFormat::Gray8, 4, 4);
    let times = [
        "2026-04-11T10:15:30.123456Z",
        "../../../../tmp/owned.png\0",
        "2026-04-11T10:15:30.12345/Z",
        "2026-04-11T10:15:30.123456Zé",
        "",
    ];
    for (number, time) in (7..).zip(times) {
        recorder.frame(&frame(&info, 0), &info, &report_at(number, "fail", time));
    }
    recorder.frame(
        &frame(&info, 0),
        &info,
        &report_at(u64::MAX, "fail", times[0]),
    );
    drop(recorder);
    let unknown = |number| format!("Press_2-left_00000000T000000.000000Z_{number:010}_failed");
    let mut expected = vec![
        "Press_2-left_20260411T101530.123456Z_0000000007_failed".to_owned(),
        "Press_2-left_20260411T101530.123456Z_18446744073709551615_failed".to_owned(),
    ];
    expected.extend((8..12).map(unknown));
    let mut expected: Vec<_> = expected
        .iter()
        .flat_map(|name| [format!("{name}.json"), format!("{name}.png")])
        .collect();
    expected.sort();
    assert_eq!(files(&folder), expected);
    // The results beside the picture are those of the frame, whatever its name.
    let json = std::fs::read(folder.join(&expected[0])).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(
        (&json["frame"], &json["time"]),
        (&8.into(), &times[1].into())
    );
}

#[test]
fn names_of_cameras_that_are_no_file_names_are_refused() {
    let sandbox = Sandbox::new("record-camera-names");
    for name in ["", "..", "a/b", "a\0", "a b", "ä", "a.b", &"a".repeat(101)] {
        let refused = Recorder::new(settings(sandbox.path()), camera(name)).err();
        let refused = refused
            .unwrap_or_else(|| panic!("{name:?} is accepted"))
            .to_string();
        assert!(refused.contains("letters, digits"), "{refused}");
    }
}

#[test]
fn settings_have_limits_and_are_checked() {
    let least = RecordingSettings::new("/var/lib/x".into());
    assert_eq!((least.max_count, least.max_bytes), (10_000, 10_000_000_000));
    assert_eq!((least.before, least.after, least.max_age_hours), (0, 0, 0));
    least.check().unwrap();
    let most = RecordingSettings {
        before: 50,
        after: 50,
        ..least.clone()
    };
    most.check().unwrap();
    let too_many = RecordingSettings { after: 51, ..most }.check().unwrap_err();
    assert_eq!(
        too_many,
        "after = 51 is too large; set a number from 0 to 50"
    );
    let unnamed = RecordingSettings::new("".into()).check().unwrap_err();
    assert!(unnamed.contains("folder is empty"), "{unnamed}");
}

#[test]
fn a_burst_beyond_the_queue_is_counted_and_never_waits() {
    let sandbox = Sandbox::new("record-burst");
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
    let info = info(VideoFormat::Gray8, 640, 480);
    let picture = frame(&info, 1);
    for number in 0..1000 {
        recorder.frame(&picture, &info, &report(number, "fail"));
    }
    let counted = || {
        let counters = &camera.counters;
        [&counters.recorded, &counters.recording_dropped].map(load)
    };
    until("each frame is counted", || {
        counted().iter().sum::<u64>() == 1000
    });
    let [recorded, dropped] = counted();
    // A call that waited for the writer would find room.
    assert!(dropped > 0, "the writer is as fast as a copy");
    assert_eq!(all_whole(&folder) as u64, recorded);
}

#[test]
fn recordings_carry_the_number_and_the_outcome_of_the_frame() {
    let sandbox = Sandbox::new("record-outcome");
    let folder = sandbox.folder("recordings");
    let recorder = Recorder::new(settings(&folder), camera("left")).unwrap();
    let info = info(VideoFormat::Gray8, 16, 8);
    let mut late = Report::clone(&report(1, "fail"));
    late.outcome = Some(ReportedOutcome {
        epoch: 77,
        sequence: 1234,
        outcome: "late",
        latency_ms: 50.5,
        part: Some(9),
    });
    recorder.frame(&frame(&info, 1), &info, &Arc::new(late));
    // It writes what waits.
    drop(recorder);
    let json = folder.join(
        files(&folder)
            .iter()
            .find(|of| of.ends_with(".json"))
            .unwrap(),
    );
    let results: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let of = |key| results[key].clone();
    assert_eq!(
        (
            of("epoch"),
            of("sequence"),
            of("outcome"),
            of("part"),
            of("verdict")
        ),
        (
            77.into(),
            1234.into(),
            "late".into(),
            9.into(),
            "fail".into()
        )
    );
    let picture = fs::File::open(json.with_extension("png")).unwrap();
    let reader = png::Decoder::new(std::io::BufReader::new(picture))
        .read_info()
        .unwrap();
    let texts = reader.info().uncompressed_latin1_text.iter();
    let mut texts: Vec<_> = texts.map(|of| (&*of.keyword, &*of.text)).collect();
    texts.sort();
    assert_eq!(texts, [("number", "77 1234"), ("outcome", "late")]);
}
