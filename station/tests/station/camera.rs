//! Cameras: simulated ones with planted faults, and a GigE Vision camera that goes and comes back.

use std::{fs, os::unix::fs::symlink, time::Duration};

use clinspect_testkit::{
    camera::Simulated,
    tools::{Sandbox, has_device},
};

use crate::{
    process::{Station, live_camera},
    simulated::{self, gige_camera},
};

/// The caps of the simulated camera.
const CAPS: &str = "caps = \"video/x-raw, format=GRAY8, width=256, height=200, framerate=25/1\"\n";
/// Marks pixels also where no pattern repeats.
const INSPECTION: &str = "pitch-x = 16, pitch-y = 0, compare = \"minimum\", match-center = false, \
    multiples = [1], borders = \"skip\", min-contrast = 0, threshold = 30";

#[test]
fn planted_fault_gives_verdicts_pictures_and_numbers() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-verdicts");
    let results = sandbox.path().join("results");
    let faulty = live_camera("faulty", "ball", INSPECTION)
        + &format!(
            "histogram = {{}}\npublish = {{ method = \"file\", location = \"{}\", publish = \"fail\" }}\n",
            results.display()
        );
    let clean = live_camera("clean", "black", INSPECTION);
    let mut station = Station::start(&sandbox, &format!("{faulty}{clean}"));
    for name in ["faulty", "clean"] {
        station.wait_for_status(name, "running");
        station.wait_for_frames(name, 30);
        station.lost_nothing(name);
    }
    let (faulty, clean) = (station.camera("faulty"), station.camera("clean"));
    assert_eq!(
        (&faulty["verdict"], &faulty["pass"]),
        (&"fail".into(), &0.into())
    );
    assert_eq!(
        (&clean["verdict"], &clean["fail"]),
        (&"pass".into(), &0.into())
    );
    assert!(faulty["frame_rate"].as_f64().unwrap() > 10.0, "{faulty}");
    // The picture of a failed frame, and its thumbnail.
    station.wait_until("a failure has its picture", |station| {
        station.camera("faulty")["newest_failure"].is_u64()
    });
    let history = station.get("/api/cameras/faulty/history");
    let history: serde_json::Value = serde_json::from_str(&history).unwrap();
    let bins = history["bins"][0].as_array().unwrap();
    let counted: u64 = bins.iter().map(|bin| bin.as_u64().unwrap()).sum();
    assert_eq!((bins.len(), counted), (64, 160 * 120));
    let (status, took, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < Duration::from_secs(8), "{took:?}\n{log}");
    assert!(log.contains("camera faulty: stopped"), "{log}");
    // The end of the stream leaves a whole file.
    let lines = fs::read_to_string(results).unwrap();
    assert!(lines.lines().count() >= 30, "{lines}");
    for line in lines.lines() {
        let report: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&report["camera"], &report["verdict"]),
            (&"faulty".into(), &"fail".into())
        );
    }
}

#[test]
fn pictures_need_no_plugins_but_the_base_ones() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-base-plugins");
    let plugins = sandbox.folder("plugins");
    gst::init().unwrap();
    for plugin in gst::Registry::get().plugins() {
        let source = plugin.source();
        if let ("gstreamer" | "gst-plugins-base", Some(file)) = (&*source, plugin.filename()) {
            symlink(&file, plugins.join(file.file_name().unwrap())).unwrap();
        }
    }
    let camera = live_camera("faulty", "ball", INSPECTION);
    let mut station = Station::start_with(&sandbox, &camera, |command| {
        (command.env("GST_PLUGIN_SYSTEM_PATH_1_0", &plugins))
            .env("GST_REGISTRY", sandbox.path().join("registry"))
    });
    station.wait_until("a failure has its picture", |station| {
        station.camera("faulty")["newest_failure"].is_u64()
    });
    let id = &station.camera("faulty")["newest_failure"];
    for (path, size) in [("failures", (160, 120)), ("thumbnails", (160, 120))] {
        let picture = station.get_bytes(&format!("/{path}/faulty/{id}.jpg"));
        let picture = image::load_from_memory(&picture).unwrap();
        assert_eq!((picture.width(), picture.height()), size);
    }
}

#[test]
fn gige_camera_of_another_program_is_told_as_such() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandboxes = ["station-holds", "station-wants"].map(Sandbox::new);
    let camera =
        |more: &str| gige_camera("gige", &format!("{CAPS}{more}pitch = {{ pitch-x = 16 }}"));
    let _camera = Simulated::start(&[]);
    let mut holds = simulated::station(&sandboxes[0], &camera(""));
    holds.wait_for_frames("gige", 10);
    for more in ["", "exposure = 5000.0\n"] {
        let mut wants = simulated::station(&sandboxes[1], &camera(more));
        wants.wait_for_log("ERROR camera gige: camera lost: ");
        let log = wants.log();
        assert!(log.contains("another program, station or table"), "{log}");
    }
    holds.wait_for_frames("gige", 10);
    assert_eq!(holds.camera("gige")["restarts"], 0);
}

#[test]
fn gige_camera_that_dies_comes_back_and_stops_no_other() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-gige");
    let gige = gige_camera(
        "gige",
        &format!("{CAPS}silence = 1\npitch = {{ pitch-x = 16 }}"),
    );
    let other = live_camera("other", "ball", INSPECTION);

    let camera = Simulated::start(&[]);
    let mut station = simulated::station(&sandbox, &format!("{gige}{other}"));
    station.wait_for_status("gige", "running");
    station.wait_for_status("other", "running");
    station.wait_for_frames("gige", 20);
    drop(camera);
    station.wait_for_status("gige", "camera-lost");
    station.wait_for_log("ERROR camera gige: camera lost: ");
    // A start without a camera fails, and the pause doubles.
    station.wait_for_log("camera gige: still camera lost");
    station.wait_for_log("next start in 2 s");
    let alarms = station.camera("gige")["alarms"].clone();
    let alarms = alarms.as_array().unwrap().iter();
    let losses = alarms.filter(|alarm| alarm["text"].as_str().unwrap().contains("camera lost"));
    assert_eq!(losses.count(), 1, "one alarm for one loss");

    let _camera = Simulated::start(&[]);
    station.wait_for_status("gige", "running");
    station.wait_for_frames("gige", 20);
    assert!(station.camera("gige")["restarts"].as_u64() >= Some(2));
    station.lost_nothing("other");
    let (status, _, log) = station.end("INT");
    assert_eq!(status.code(), Some(0), "{log}");
}
