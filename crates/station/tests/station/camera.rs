//! Cameras: simulated ones with planted faults, and a GigE Vision camera that goes and comes back.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use clinspect_testkit::tools::{Sandbox, exists, has_device, skip};

use crate::process::{Station, live_camera, program};

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

const CAMERA: &str = "arv-fake-gv-camera-0.8";
/// UDP port of the GigE Vision control protocol.
const CONTROL_PORT: u16 = 3956;

/// The process of the simulated camera; ends with the test.
struct Simulated(Child);

impl Simulated {
    fn start() -> Self {
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", CAMERA, "-i", "127.0.0.1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(process.unwrap())
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// True if a socket on this machine is bound to the UDP port.
fn is_bound(port: u16) -> bool {
    let sockets = fs::read_to_string("/proc/net/udp").unwrap();
    sockets.contains(&format!(":{port:04X} "))
}

#[test]
fn gige_camera_that_dies_comes_back_and_stops_no_other() {
    for tool in [CAMERA, "capsh", "setpriv"] {
        if !exists(tool) {
            return skip(&format!("{tool} is not installed"));
        }
    }
    if !has_device() {
        return;
    }
    // One simulated camera at a time; tests/camera.rs takes the same lock.
    let lock = File::create(std::env::temp_dir().join("clinspect-camera.lock")).unwrap();
    lock.lock().unwrap();
    assert!(!is_bound(CONTROL_PORT), "another camera is running");
    let sandbox = Sandbox::new("station-gige");
    let gige = "[[camera]]\nname = \"gige\"\naravis = \"Aravis-Fake-GV01\"\n\
        caps = \"video/x-raw, format=GRAY8, width=256, height=200, framerate=25/1\"\n\
        silence = 1\npitch = { pitch-x = 16 }\n";
    let other = live_camera("other", "ball", INSPECTION);
    let file = sandbox.path().join("station.toml");
    fs::write(&file, format!("listen = \"127.0.0.1:0\"\n{gige}{other}")).unwrap();
    // aravis uses raw sockets if it may, and raw sockets see no loopback traffic.
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let line = format!("exec {} {}", program(), file.display());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root {
        command.args(["capsh", "--drop=cap_net_raw", "--"]);
    } else {
        command.arg("sh");
    }
    command.args(["-c", &line]);

    let camera = Simulated::start();
    let mut station = Station::run(&mut command, file);
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

    let _camera = Simulated::start();
    station.wait_for_status("gige", "running");
    station.wait_for_frames("gige", 20);
    assert!(station.camera("gige")["restarts"].as_u64() >= Some(2));
    station.lost_nothing("other");
    let (status, _, log) = station.end("INT");
    assert_eq!(status.code(), Some(0), "{log}");
}
