//! More failures than the writer writes at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_results::report::{Inspection, ReportedDefect};
use clinspect_testkit::tools::Sandbox;
use gst_video::VideoFormat;
use plan::RecordingSettings;
use run::recording::Recorder;

use crate::support::{
    alarms, all_whole, camera, files, frame, info, load, recorded, report, settings, until,
};

#[test]
fn a_failed_frame_takes_the_place_of_context_frames() {
    let sandbox = Sandbox::new("record-displaced");
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let settings = RecordingSettings {
        before: 40,
        ..settings(&folder)
    };
    let recorder = Recorder::new(settings, camera.clone()).unwrap();
    // The writer is busy with this frame while the others come.
    let large = info(VideoFormat::Gray8, 4096, 4096);
    recorder.frame(&frame(&large, 0), &large, &report(0, "fail"));
    let queued = || load(&camera.counters.recording_queue);
    until("the large frame is compressed", || queued() == 0);
    let small = info(VideoFormat::Gray8, 16, 8);
    let picture = frame(&small, 1);
    let mut number = 0;
    let mut send = |count, verdict| {
        for _ in 0..count {
            number += 1;
            recorder.frame(&picture, &small, &report(number, verdict));
        }
    };
    // Of 128 places 90 are taken, then 38 of 40 frames before the next failure fit.
    send(90, "fail");
    send(40, "pass");
    send(1, "fail");
    let [full, dropped] = [queued(), load(&camera.counters.recording_dropped)];
    // No context frame is left to give way to these.
    send(37, "fail");
    let without_context = load(&camera.counters.recording_dropped);
    send(1, "fail");
    let beyond = load(&camera.counters.recording_dropped);
    assert_eq!(
        files(&folder),
        [""; 0],
        "the writer was faster than this test"
    );
    assert_eq!((full, dropped), (128, 3));
    assert_eq!(without_context, 40);
    assert_eq!(beyond, 41);
    until("all are written", || load(&camera.counters.recorded) == 129);
    let failed = (0..=90).chain(131..=168);
    let failed: Vec<_> = failed.map(|number| (number, "failed".to_owned())).collect();
    assert_eq!(recorded(&folder), failed);
    assert_eq!(all_whole(&folder), 129);
}

#[test]
fn a_recorder_that_is_left_behind_ends_alone_and_stops_no_other() {
    let sandbox = Sandbox::new("record-behind");
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
    // These take longer to write than the end of a recorder waits.
    let large = info(VideoFormat::Rgb, 1280, 960);
    let picture = frame(&large, 1);
    for number in 0..70 {
        recorder.frame(&picture, &large, &report(number, "fail"));
    }
    drop(recorder);
    let sent = 70 - load(&camera.counters.recording_dropped);
    let counted = || {
        let counters = &camera.counters;
        let numbers = [
            &counters.recorded,
            &counters.recording_errors,
            &counters.recording_queue,
        ];
        numbers.map(load)
    };
    let before = counted();
    // Each of these begins while the other one writes.
    let end = Instant::now() + Duration::from_secs(180);
    while (recorded(&folder).len() as u64) < sent {
        assert!(Instant::now() < end, "recordings are missing");
        drop(Recorder::new(settings(&folder), camera.clone()).unwrap());
    }
    assert_eq!(
        counted(),
        before,
        "the camera's numbers are the last recorder's"
    );
    assert_eq!(before[2], 0, "the queue of no recorder is shown");
    let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
    let small = info(VideoFormat::Gray8, 16, 8);
    recorder.frame(&frame(&small, 1), &small, &report(1000, "fail"));
    drop(recorder);
    assert_eq!(counted()[0], before[0] + 1);
    assert_eq!(all_whole(&folder) as u64, sent + 1);
    assert_eq!(files(&folder).len() as u64, 2 * (sent + 1));
    assert!(alarms(&camera).is_empty());
}

#[test]
fn results_of_very_many_defects_count_as_bytes_that_wait() {
    let sandbox = Sandbox::new("record-results");
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let around = RecordingSettings {
        before: 10,
        ..settings(&folder)
    };
    let recorder = Recorder::new(around, camera.clone()).unwrap();
    let info = info(VideoFormat::Gray8, 16, 8);
    for number in 0..7 {
        let mut report = report(number, if number == 6 { "fail" } else { "pass" });
        // 40 MiB: three of them fit before a failure.
        let count = (40 << 20) / size_of::<ReportedDefect>();
        let inspection = Inspection {
            defects: Vec::with_capacity(count),
            ..Inspection::default()
        };
        Arc::get_mut(&mut report)
            .unwrap()
            .inspections
            .push(inspection);
        recorder.frame(&frame(&info, number), &info, &report);
    }
    drop(recorder);
    let numbers = recorded(&folder).into_iter().map(|(number, _)| number);
    assert_eq!(Vec::from_iter(numbers), [3, 4, 5, 6]);
}
