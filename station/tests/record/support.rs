//! Cameras, reports and frames without a pipeline.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use clinspect_results::report::Report;
use gst_video::VideoFormat;
use machine::answer::Line;
use plan::RecordingSettings;
use run::{
    recording::Recorder,
    state::{Camera, Status},
};

/// A camera that nothing runs.
pub fn camera(name: &str) -> Arc<Camera> {
    let (camera, _requests) = Camera::new(name, &Line::new().unwrap());
    camera.status.send_replace(Status::Running);
    Arc::new(camera)
}

/// Results of a frame that was captured `frame` seconds after 10 o'clock.
pub fn report(frame: u64, verdict: &'static str) -> Arc<Report> {
    let [minute, second] = [frame / 60 % 60, frame % 60];
    let hour = 10 + frame / 3600;
    report_at(
        frame,
        verdict,
        &format!("2026-04-11T{hour:02}:{minute:02}:{second:02}.250000Z"),
    )
}

pub fn report_at(frame: u64, verdict: &'static str, time: &str) -> Arc<Report> {
    Arc::new(Report {
        camera: Some("left".into()),
        frame: Some(frame),
        ..Report::empty(verdict, time.into())
    })
}

/// RecordingSettings without limits and without frames around a failed one.
pub fn settings(folder: &Path) -> RecordingSettings {
    RecordingSettings {
        folder: folder.into(),
        before: 0,
        after: 0,
        max_count: 0,
        max_age_hours: 0,
        max_bytes: 0,
    }
}

pub fn info(format: VideoFormat, width: u32, height: u32) -> gst_video::VideoInfo {
    gst::init().unwrap();
    gst_video::VideoInfo::builder(format, width, height)
        .build()
        .unwrap()
}

/// Bytes that do not compress, different for each seed.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(next).collect()
}

/// A frame of noise.
pub fn frame(info: &gst_video::VideoInfo, seed: u64) -> gst::Buffer {
    gst::Buffer::from_mut_slice(noise(info.size(), seed))
}

/// Names of the files in a folder, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = names
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Frame number and role of the PNG files in a folder, by name.
pub fn recorded(folder: &Path) -> Vec<(u64, String)> {
    let png = files(folder)
        .into_iter()
        .filter_map(|name| Some(name.strip_suffix(".png")?.to_owned()));
    png.map(|name| {
        let parts: Vec<_> = name.split('_').collect();
        (parts[2].parse().unwrap(), parts[3].to_owned())
    })
    .collect()
}

/// A picture is whole and has its results beside it.
#[track_caller]
pub fn is_whole(picture: &Path) {
    let opened = image::ImageReader::open(picture).unwrap().decode();
    opened.unwrap_or_else(|error| panic!("{}: {error}", picture.display()));
    let json = std::fs::read(picture.with_extension("json")).unwrap();
    let _: serde_json::Value = serde_json::from_slice(&json).unwrap();
}

/// Every picture in a folder is whole and has its results beside it.
pub fn all_whole(folder: &Path) -> usize {
    let pictures: Vec<PathBuf> = files(folder)
        .iter()
        .filter(|name| name.ends_with(".png") && !name.starts_with('.'))
        .map(|name| folder.join(name))
        .collect();
    pictures.iter().for_each(|picture| is_whole(picture));
    pictures.len()
}

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

/// Texts of a camera's alarms.
pub fn alarms(camera: &Camera) -> Vec<String> {
    camera
        .history()
        .alarms
        .iter()
        .map(|(_, text)| text.clone())
        .collect()
}

/// Sends small frames with these verdicts, numbered from `first`, and waits until they are written.
pub fn send(recorder: Recorder, first: u64, verdicts: &[&'static str]) {
    let info = info(VideoFormat::Gray8, 16, 8);
    for (frame, verdict) in (first..).zip(verdicts) {
        recorder.frame(&self::frame(&info, frame), &info, &report(frame, verdict));
    }
}
