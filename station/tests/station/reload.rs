//! SIGHUP.

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::process::{Station, live_camera};

const INSPECTION: &str = "pitch-x = 16, pitch-y = 0, multiples = [1], min-contrast = 0";

#[test]
fn roll_map_of_the_pipeline_before_goes_with_it() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-roll");
    let web = |pattern| live_camera("web", pattern, &format!("{INSPECTION}, line-scan = true"));
    let mut station = Station::start(&sandbox, &web("ball"));
    let roll = |station: &Station| {
        let roll = station.get("/api/cameras/web/roll");
        serde_json::from_str::<serde_json::Value>(&roll).unwrap()
    };
    let marks = |station: &Station| roll(station)["marks"].as_array().map_or(0, Vec::len);
    station.wait_until("the ball is on the map", |station| marks(station) > 0);
    assert_eq!(station.camera("web")["is_web"], true);

    // The next pipeline counts its webs from 0, too. Its web has no defect.
    station.reload(&web("black"));
    station.wait_for_log("camera web: starts again with the new settings");
    station.wait_until("the next pipeline inspects its web", |station| {
        let camera = station.camera("web");
        camera["status"] == "running" && camera["is_web"] == true
    });
    station.wait_for_frames("web", 10);
    assert_eq!(roll(&station)["web"], 0);
    assert_eq!(marks(&station), 0, "{}", roll(&station));
}

/// A camera that fails if it sees more defects than `limit`; -1: never.
fn with_limit(limit: i32) -> String {
    let pitch = format!("{INSPECTION}, fail = {{ defect-count = {limit} }}");
    live_camera("changed", "ball", &pitch)
}

#[test]
fn reload_changes_what_changed_and_nothing_else() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-reload");
    let kept = live_camera("kept", "ball", INSPECTION);
    let gone = live_camera("gone", "ball", INSPECTION);
    let before = format!("{kept}{gone}{}", with_limit(0));
    let mut station = Station::start(&sandbox, &before);
    for name in ["kept", "gone", "changed"] {
        station.wait_for_status(name, "running");
    }
    station.wait_until("the ball fails", |s| {
        s.camera("changed")["verdict"] == "fail"
    });

    // A file with mistakes changes nothing, and each mistake is in the log.
    station.reload(&format!(
        "{kept}[[camera]]\nname = \"new\"\nsorce = \"videotestsrc\"\n"
    ));
    station.wait_for_log("station.toml:6:1: the camera has no source");
    station.wait_for_log("station.toml:8:1: [[camera]] has no key sorce; did you mean source?");
    station.wait_for_log("is not used: it has 2 mistakes");
    assert_eq!(station.camera("gone")["status"], "running");

    // A limit changes while frames flow.
    station.reload(&format!("{kept}{gone}{}", with_limit(-1)));
    station.wait_for_log("camera changed: the new settings are in force; no frame was left out");
    station.wait_until("the ball passes", |s| {
        s.camera("changed")["verdict"] == "pass"
    });
    station.lost_nothing("changed");

    // A pipeline with another element starts again; a camera goes, a camera comes.
    let new = live_camera("new", "black", INSPECTION);
    station.reload(&format!("{new}{kept}{}gaussian = {{}}\n", with_limit(0)));
    station.wait_for_log("camera changed: starts again with the new settings");
    station.wait_for_log("camera gone: stopped");
    station.wait_for_status("new", "running");
    station.wait_until("the ball fails again", |s| {
        s.camera("changed")["verdict"] == "fail"
    });
    assert!(station.camera("gone").is_null());
    station.wait_for_frames("kept", 5);
    station.lost_nothing("kept");
}

#[test]
fn setting_that_these_frames_do_not_allow_is_refused_and_the_camera_goes_on() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-refused");
    let camera = |pitch: i32| {
        let inspection = INSPECTION.replace("pitch-x = 16", &format!("pitch-x = {pitch}"));
        live_camera("left", "ball", &inspection)
    };
    let mut station = Station::start(&sandbox, &camera(16));
    station.wait_for_status("left", "running");
    // A pitch that is larger than the frame. No look at the file could tell.
    station.reload(&camera(500));
    station.wait_for_log(
        "the new pitch-x is refused; the camera continues with the previous settings",
    );
    station.wait_for_frames("left", 10);
    station.lost_nothing("left");
    assert_eq!(station.camera("left")["verdict"], "fail");
    // The settings before are those that the next change is compared with.
    station.reload(&camera(16));
    station.reload(&camera(15));
    station.wait_for_log("camera left: the new settings are in force");
    station.lost_nothing("left");
}

#[test]
fn token_of_the_file_is_in_force_after_a_reload() {
    let sandbox = Sandbox::new("station-token");
    let file = sandbox.path().join("token");
    let write = |token: &str| {
        std::fs::write(&file, token).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
    };
    let [old, new] = ["old-token-of-the-station", "new-token-of-the-station"];
    write(old);
    let camera = live_camera("left", "black", INSPECTION);
    let table = format!("token-file = {file:?}\n{camera}");
    let mut station = Station::start(&sandbox, &table);
    let status = |station: &Station, token| station.request("GET", "/api/cameras", b"", token).0;
    assert_eq!([old, new].map(|token| status(&station, token)), [200, 401]);
    write(new);
    station.reload(&table);
    station.wait_until("the new token is right", |station| {
        status(station, new) == 200
    });
    assert_ne!(status(&station, old), 200);
    // A file without a token changes nothing, and is told.
    write("short");
    station.reload(&table);
    station.wait_for_log("ERROR");
    assert_eq!(status(&station, new), 200);
}
