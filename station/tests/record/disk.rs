//! A disk that is full, a folder that is missing, a process that is killed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{self, Sandbox};
use gst_video::VideoFormat;
use plan::RecordingSettings;
use run::recording::Recorder;

use crate::support::{
    alarms, all_whole, camera, files, frame, info, is_whole, load, recorded, report, settings,
    until,
};

/// The attempts of these tests come faster than each minute.
const RETRY: Duration = Duration::from_millis(200);

/// A small disk, unmounted at the end.
struct Disk(PathBuf);

impl Disk {
    /// `None` if this process may not mount.
    fn new(folder: PathBuf) -> Option<Self> {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "clinspect-test"])
            .arg(&folder)
            .stderr(Stdio::null())
            .status();
        mount
            .is_ok_and(|status| status.success())
            .then_some(Self(folder))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_recording_and_the_frames_go_on() {
    let sandbox = Sandbox::new("record-full");
    let Some(disk) = Disk::new(sandbox.folder("disk")) else {
        return tools::skip("a test of a full disk must mount one, as root");
    };
    let folder = disk.0.join("recordings");
    let camera = camera("left");
    let recorder = Recorder::with_retry(settings(&folder), camera.clone(), RETRY).unwrap();
    let info = info(VideoFormat::Gray8, 640, 480);
    let picture = frame(&info, 1);
    let mut sent = 0;
    let mut fail = || {
        let start = Instant::now();
        recorder.frame(&picture, &info, &report(sent, "fail"));
        sent += 1;
        std::thread::sleep(Duration::from_millis(5));
        start.elapsed()
    };
    // Three frames of noise fit.
    let is_stopped = || camera.counters.recording_stopped.load(Relaxed);
    while !is_stopped() {
        fail();
    }
    let left = files(&folder);
    assert_eq!(
        left.len(),
        6,
        "half a file stays on the full disk: {left:?}"
    );
    // Several attempts fail.
    let calls: Vec<_> = (0..200).map(|_| fail()).collect();
    let slowest = calls.iter().max().unwrap();
    assert!(
        *slowest < Duration::from_secs(1),
        "a frame waited {slowest:?}"
    );
    assert_eq!(all_whole(&folder), 3);
    let told = alarms(&camera);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("No space left on device"), "{told:?}");
    assert!(told[0].contains("free some space"), "{told:?}");

    // Somebody makes room: recording continues by itself.
    for name in files(&folder) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let recorded = load(&camera.counters.recorded);
    assert_eq!(recorded, 3);
    let end = Instant::now() + Duration::from_secs(20);
    while load(&camera.counters.recorded) == recorded {
        assert!(
            Instant::now() < end,
            "nothing is recorded after room was made"
        );
        fail();
    }
    drop(recorder);
    assert_eq!(alarms(&camera)[1], "recording continues");
    let counters = &camera.counters;
    let counted = [
        &counters.recorded,
        &counters.recording_errors,
        &counters.recording_dropped,
    ];
    assert_eq!(
        counted.map(load).iter().sum::<u64>(),
        sent,
        "each frame is counted once"
    );
}

#[test]
fn a_missing_folder_is_an_alarm_and_is_used_once_it_is_there() {
    let sandbox = Sandbox::new("record-missing");
    let parent = sandbox.path().join("mount-point");
    let folder = parent.join("recordings");
    let camera = camera("left");
    let recorder = Recorder::with_retry(settings(&folder), camera.clone(), RETRY).unwrap();
    let info = info(VideoFormat::Gray8, 16, 8);
    let fail = |number| recorder.frame(&frame(&info, 1), &info, &report(number, "fail"));
    let is_stopped = || camera.counters.recording_stopped.load(Relaxed);
    until("an alarm", || !alarms(&camera).is_empty());
    assert!(is_stopped());
    fail(0);
    assert_eq!(load(&camera.counters.recording_errors), 1);
    fs::create_dir(&parent).unwrap();
    until("recording is possible", || !is_stopped());
    fail(1);
    until("a recording", || load(&camera.counters.recorded) == 1);

    // It vanishes while the station runs, and comes back.
    fs::remove_dir_all(&parent).unwrap();
    fail(2);
    until("stopped again", is_stopped);
    fs::create_dir(&parent).unwrap();
    until("recording is possible again", || !is_stopped());
    fail(3);
    drop(recorder);
    assert_eq!(all_whole(&folder), 1);
    let told = alarms(&camera);
    assert_eq!(told.len(), 4, "{told:?}");
    for (text, part) in told
        .iter()
        .zip(["make the folder", "continues"].iter().cycle())
    {
        assert!(text.contains(part), "{told:?}");
    }
}

/// Ends the process, whatever happens.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const CHILD: &str = "CLINSPECT_TEST_RECORDS_INTO";
const FIRST: &str = "CLINSPECT_TEST_FIRST_FRAME";

/// No test: the process that `a_killed_process_leaves_whole_files` kills.
#[test]
fn records_until_killed() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let recorder = Recorder::new(
        RecordingSettings {
            max_count: 20,
            ..settings(Path::new(&folder))
        },
        camera("left"),
    )
    .unwrap();
    let info = info(VideoFormat::Gray8, 160, 120);
    let picture = frame(&info, 1);
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    for number in first..first + 1_000_000 {
        recorder.frame(&picture, &info, &report(number, "fail"));
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn a_killed_process_leaves_whole_files() {
    let sandbox = Sandbox::new("record-killed");
    let folder = sandbox.folder("out");
    let mut parts = 0;
    for round in 0..20 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["disk::records_until_killed", "--exact"])
            .env(CHILD, &folder)
            .env(FIRST, (round * 1000).to_string())
            .stdout(Stdio::null())
            .spawn();
        let mut child = Killed(child.unwrap());
        let is_new = |(number, _): &(u64, String)| *number >= round * 1000;
        until("it records", || recorded(&folder).iter().any(is_new));
        std::thread::sleep(Duration::from_micros(20_000 + 1_370 * round));
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        parts += files(&folder)
            .iter()
            .filter(|name| name.ends_with(".part"))
            .count();
        assert!(all_whole(&folder) >= 1);
        drop(Recorder::new(settings(&folder), camera("left")).unwrap());
        let left = files(&folder);
        assert_eq!(left.len(), 2 * all_whole(&folder), "{left:?}");
    }
    println!("{parts} half files of 20 killed processes were removed");
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let sandbox = Sandbox::new("record-reader");
    let folder = sandbox.folder("out");
    let camera = camera("left");
    let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
    // Large enough that a reader could come while the file grows.
    let info = info(VideoFormat::Rgb, 640, 480);
    let picture = frame(&info, 1);
    for number in 0..60 {
        recorder.frame(&picture, &info, &report(number, "fail"));
    }
    let mut seen = BTreeSet::new();
    while load(&camera.counters.recorded) < 60 {
        for name in files(&folder) {
            if name.ends_with(".png") && seen.insert(name.clone()) {
                is_whole(&folder.join(name));
            }
        }
    }
    assert!(seen.len() >= 50, "the reader saw {} files only", seen.len());
}

/// With `cargo test … recordings_per_second -- --ignored --nocapture`, for lab/notes/reliability.md.
#[test]
#[ignore = "a measurement"]
fn recordings_per_second() {
    let sandbox = Sandbox::new("record-speed");
    for (format, width, height) in [
        (VideoFormat::Gray8, 640, 480),
        (VideoFormat::Gray16Le, 640, 480),
        (VideoFormat::Rgb, 640, 480),
        (VideoFormat::I420, 640, 480),
        (VideoFormat::Gray8, 2448, 2048),
    ] {
        let folder = sandbox.folder(&format!("{format}-{width}"));
        let camera = camera("left");
        let recorder = Recorder::new(settings(&folder), camera.clone()).unwrap();
        let info = info(format, width, height);
        let picture = frame(&info, 1);
        let start = Instant::now();
        let mut calls = Vec::new();
        for number in 0..100 {
            let call = Instant::now();
            recorder.frame(&picture, &info, &report(number, "fail"));
            calls.push(call.elapsed());
            until("a place in the queue", || {
                load(&camera.counters.recording_queue) < 4
            });
        }
        until("all are written", || load(&camera.counters.recorded) == 100);
        let rate = 100.0 / start.elapsed().as_secs_f64();
        calls.sort();
        println!(
            "{format} {width}x{height} noise: {rate:.0}/s, a call takes {:?}",
            calls[50]
        );
    }
}
