//! What stops a camera is told apart, and the others go on.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use clinspect_testkit::tools::{Sandbox, has_device};
use serde_json::{Value, json};

use crate::process::{Station, TOKEN, live_camera, writing};

fn camera(name: &str, source: &str, more: &str) -> String {
    format!("[[camera]]\nname = \"{name}\"\nsource = \"{source}\"\n{more}\n")
}

#[test]
fn troubles_are_told_apart_and_the_others_go_on() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-trouble");
    let small = "video/x-raw,format=GRAY8,width=160,height=120,framerate=30/1";
    let good = live_camera("good", "black", "pitch-x = 16, min-contrast = 0");
    let cameras = [
        good,
        camera("ends", &format!("videotestsrc num-buffers=3 ! {small}"), ""),
        camera(
            "fails",
            &format!("videotestsrc is-live=true ! {small} ! identity error-after=10"),
            "",
        ),
        camera("silent", "appsrc is-live=true", "start-timeout = 1"),
        camera(
            "colour",
            "videotestsrc is-live=true ! video/x-raw,format=RGB15",
            "",
        ),
        camera(
            "refused",
            &format!("videotestsrc is-live=true ! {small}"),
            "pitch = { pitch-x = 5000, pitch-y = 0 }",
        ),
        camera(
            "even",
            &format!("videotestsrc is-live=true ! {small}"),
            "gaussian = { kernel-size = 4 }",
        ),
        camera(
            "no-device",
            &format!("videotestsrc is-live=true ! {small}"),
            "device = \"no such device\"",
        ),
    ];
    let mut station = Station::start(&sandbox, &cameras.concat());
    station.wait_for_status("good", "running");
    for (name, trouble) in [
        ("ends", "camera lost: the source has ended"),
        ("fails", "camera lost: identity"),
        ("silent", "camera lost: no frame for"),
        (
            "colour",
            "settings refused: clpitchthreshold takes no frames",
        ),
        ("refused", "settings refused"),
        ("even", "settings refused"),
        ("no-device", "device lost"),
    ] {
        station.wait_for_log(&format!("ERROR camera {name}: {trouble}"));
    }
    station.wait_for_frames("good", 10);
    station.lost_nothing("good");
    // A camera that is lost at each start is not started without pause.
    let restarts = station.camera("ends")["restarts"].as_u64().unwrap();
    assert!(restarts < 6, "{restarts}");
}

#[test]
fn damaged_kernels_in_the_drivers_cache_are_removed_and_told() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-damaged-cache");
    let [pocl, own] = ["pocl", "own"].map(|name| sandbox.folder(name));
    fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
    let camera = live_camera("left", "black", "pitch-x = 16, min-contrast = 0");
    let run = || {
        let mut station = Station::start_with(&sandbox, &camera, |command| {
            (command.env("POCL_CACHE_DIR", &pocl)).env("CLINSPECT_CACHE_DIR", &own)
        });
        station.wait_for_frames("left", 5);
        station
    };
    run().end("TERM");
    let find = Command::new("find")
        .arg(&pocl)
        .args(["-name", "*.so"])
        .output();
    let kernels = String::from_utf8(find.unwrap().stdout).unwrap();
    for path in kernels.lines() {
        let mut bytes = fs::read(path).unwrap();
        let half = bytes.len() / 2;
        bytes[half..].fill(0);
        fs::write(path, bytes).unwrap();
    }
    let mut station = run();
    if !kernels.is_empty() {
        station.wait_for_log("compiled kernels in PoCL's cache");
    }
}

/// A camera that is lost every second, with a ball that fails, and these lines.
fn camera_that_is_lost(more: &str) -> String {
    let source = "videotestsrc is-live=true pattern=ball ! video/x-raw,width=160,height=120,framerate=30/1 \
        ! videobalance contrast=0.2 ! videoconvert ! video/x-raw,format=GRAY8 ! identity error-after=60";
    camera("left", source, more)
}

const INSPECTION: &str = "pitch-x = 16, pitch-y = 0, multiples = [1], min-contrast = 0, threshold = 10, learn = { frames = 10 }";

#[test]
fn results_that_wait_outlive_the_pipelines() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-waits");
    let folder = sandbox.path().join("later");
    let results = folder.join("results");
    let publish = format!(
        "pitch = {{ {INSPECTION} }}\npublish = {{ location = \"{}\" }}\n",
        results.display()
    );
    let mut station = Station::start(&sandbox, &camera_that_is_lost(&publish));
    station.wait_for_log("ERROR camera left: results cannot be written");
    station.wait_until("the camera was lost and runs again", |s| {
        let camera = s.camera("left");
        // Results of before must not pass for new ones.
        assert!(
            camera["status"] == "running" || camera["verdict"] == Value::Null,
            "{camera}"
        );
        camera["restarts"].as_u64() > Some(0) && camera["status"] == "running"
    });
    let before = station.camera("left");
    fs::create_dir(&folder).unwrap();
    station.wait_for_log("camera left: results are written");
    let lines = || fs::read_to_string(&results).unwrap_or_default();
    let wanted = before["frames"].as_u64().unwrap() as usize;
    station.wait_until("all results are there", |_| {
        lines().lines().count() >= wanted
    });
    assert_eq!(station.camera("left")["publish_dropped"], 0);
    let text = lines();
    let numbers = text.lines().map(|line| {
        let report: Value = serde_json::from_str(line).unwrap();
        report["frame"].as_u64().unwrap()
    });
    let numbers: Vec<u64> = numbers.take(wanted).collect();
    assert_eq!(numbers[0], 0, "the results of the first pipeline");
}

fn wait_for_a_restart(station: &mut Station) {
    let restarts = station.camera("left")["restarts"].as_u64();
    station.wait_until("the camera was started again", |s| {
        let camera = s.camera("left");
        camera["restarts"].as_u64() > restarts && camera["verdict"] != Value::Null
    });
}

#[test]
fn learned_threshold_outlives_the_pipeline() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-learned");
    let camera = camera_that_is_lost(&format!("pitch = {{ {INSPECTION} }}\n"));
    let mut station = Station::start(&sandbox, &(writing(&sandbox) + &camera));
    station.wait_until("the ball fails", |s| s.camera("left")["verdict"] == "fail");
    station.command("left", "learn", TOKEN);
    station.wait_for_log("camera left: learned threshold = ");
    let alarms = station.camera("left")["alarms"].to_string();
    assert!(alarms.contains("learned threshold"), "{alarms}");
    wait_for_a_restart(&mut station);
    let before = station.camera("left")["fail"].as_u64();
    station.wait_for_frames("left", 20);
    assert_eq!(
        station.camera("left")["fail"].as_u64(),
        before,
        "the ball passes"
    );
}

#[test]
fn reference_of_the_light_is_taken_at_a_command_and_outlives_the_pipeline() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-light");
    let camera = |light: &str| {
        let elements = format!("pitch = {{ {INSPECTION} }}\nhistogram = {{ {light} }}\n");
        writing(&sandbox) + &camera_that_is_lost(&elements)
    };
    let mut station = Station::start(&sandbox, &camera("alarm-drift = 5"));
    station.wait_for_log("alarm-drift=5 has no reference yet");
    station.wait_for_status("left", "running");
    let offers = station.camera("left")["offers"].to_string();
    assert!(offers.contains("take-reference"), "{offers}");
    station.command("left", "take-reference", TOKEN);
    let line = station.wait_for_log("camera left: learned alarm-drift-reference = [");
    let warnings = |station: &Station| station.log().matches("has no reference yet").count();
    let before = warnings(&station);
    wait_for_a_restart(&mut station);
    station.wait_for_frames("left", 5);
    assert_eq!(warnings(&station), before, "{}", station.log());
    wait_for_light_alarms(&mut station, json!([]));

    // The learned value gives way to one of the file. The line of the log may stand there as it is.
    station.reload(&camera("alarm-drift = 5, alarm-drift-reference = [250]"));
    wait_for_light_alarms(&mut station, json!(["lamp-drift"]));
    let learned = line.split("learned ").nth(1).unwrap();
    let learned = learned.split(';').next().unwrap();
    station.reload(&camera(&format!("alarm-drift = 5, {learned}")));
    wait_for_light_alarms(&mut station, json!([]));
    assert_eq!(warnings(&station), before, "{}", station.log());
}

/// A pattern and a little noise.
const CLOTH: &str = "videotestsrc is-live=true pattern=checkers-8 ! video/x-raw,width=160,height=120,framerate=30/1 ! mix. \
    videotestsrc is-live=true pattern=snow ! video/x-raw,width=160,height=120,framerate=30/1 ! mix. \
    compositor name=mix sink_1::alpha=0.1 ! videoconvert ! video/x-raw,format=GRAY8 ! identity error-after=90";

#[test]
fn limits_of_a_texture_are_learned_once_and_outlive_pipeline_and_station() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-texture");
    let limits = sandbox.path().join("limits.npz");
    let texture = format!(
        "texture = {{ learn = {{ frames = 10, location = \"{}\" }} }}\n",
        limits.display()
    );
    let file = writing(&sandbox) + &camera("left", CLOTH, &texture);
    let mut station = Station::start(&sandbox, &file);
    station.wait_for_log("camera left: cltexture-learned");
    station.wait_for_log("camera left: learned thresholds = [");
    let saved = format!(
        "camera left: the learned limits are in the file {}",
        limits.display()
    );
    station.wait_for_log(&saved);
    station.wait_until("frames are judged", |s| {
        s.camera("left")["pass"].as_u64() > Some(0)
    });
    let offers = station.camera("left")["offers"].to_string();
    assert!(
        offers.contains("learn") && offers.contains("forget"),
        "{offers}"
    );
    wait_for_a_restart(&mut station);
    let learned = |station: &Station| station.log().matches("cltexture-learned").count();
    assert_eq!(learned(&station), 1, "{}", station.log());
    station.command("left", "learn", TOKEN);
    station.wait_until("limits are learned again", |s| learned(s) == 2);
    drop(station);

    let mut station = Station::start(&sandbox, &file);
    station.wait_until("frames are judged", |s| {
        s.camera("left")["pass"].as_u64() > Some(5)
    });
    assert_eq!(learned(&station), 0, "{}", station.log());
}

fn wait_for_light_alarms(station: &mut Station, alarms: Value) {
    station.wait_until(&format!("light alarms are {alarms}"), |station| {
        station.camera("left")["light_alarms"] == alarms
    });
}
