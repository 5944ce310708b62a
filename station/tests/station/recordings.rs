//! Recordings of a running camera.

use std::fs;

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::process::{Station, live_camera};

#[test]
fn recorded_frames_are_as_the_camera_sent_them_though_a_filter_smooths() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recordings");
    let folder = sandbox.path().join("frames");
    fs::create_dir(&folder).unwrap();
    // Each pixel is black or white, and a filter makes grey ones.
    let camera = |name: &str, recording: &str| {
        let inspection = "pitch-x = 6, pitch-y = 0, min-contrast = 0, threshold = 9";
        live_camera(name, "checkers-4", inspection)
            + "gaussian = { kernel-size = 3, sigma = 0.5 }\n"
            + recording
    };
    let recording = format!(
        "recording = {{ folder = \"{}\", before = 2, after = 2 }}\n",
        folder.display()
    );
    let mut station = Station::start(&sandbox, &camera("checked", &recording));
    station.wait_until("frames are recorded", |station| {
        station.camera("checked")["recorded"].as_u64() >= Some(6)
    });
    let (_, _, log) = station.end("TERM");
    let pictures = fs::read_dir(&folder).unwrap();
    let pictures = pictures.map(|file| file.unwrap().path());
    let pictures = pictures.filter(|path| path.extension().is_some_and(|end| end == "png"));
    let mut count = 0;
    for path in pictures {
        let picture = image::open(&path).unwrap().into_luma8();
        let levels: std::collections::BTreeSet<u8> = picture.pixels().map(|of| of.0[0]).collect();
        assert!(
            levels.len() <= 2,
            "{} has levels {levels:?}\n{log}",
            path.display()
        );
        count += 1;
    }
    assert!(count >= 6, "{count} pictures\n{log}");
}
