//! Exposure, gain and black level of a GigE Vision camera: set at the start, changed while frames flow, refused.

use std::fs;

use clinspect_aravis::{Camera, Control};
use clinspect_testkit::{
    camera::{Simulated, inside},
    tools::Sandbox,
};
use config::{file::Config, recipes::Recipes};
use plan::{Controls, Source};

use crate::simulated::{self, NAME, gige_camera, station};

/// aravis' simulated camera with a black level from 0 to 255 and an exposure from 10 to 1000000 µs.
const WITH_BLACK_LEVEL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/aravis/tests/camera.xml"
);

fn camera(controls: &str) -> String {
    let keys = format!(
        "caps = \"video/x-raw, width=320, height=200\"\n{controls}\npitch = {{ pitch-x = 16 }}"
    );
    gige_camera("left", &keys)
}

/// What the camera has now: exposure, gain, black level. No station may run.
fn in_camera() -> String {
    let text = inside("controls::inside_controls", &[]);
    let told = text.lines().find_map(|line| line.strip_prefix("it has "));
    told.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
#[ignore = "in_camera runs it"]
fn inside_controls() {
    let camera = Camera::open(NAME).unwrap();
    let of = |control| camera.get(control).unwrap().unwrap().value;
    let controls = [Control::Exposure, Control::Gain, Control::BlackLevel];
    println!("\nit has {:?}", controls.map(of));
}

#[test]
fn the_camera_is_set_at_the_start_and_changed_while_frames_flow() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-controls");
    let _camera = Simulated::start(&["-g", WITH_BLACK_LEVEL]);
    let lines = "exposure = 2000\ngain = 3\nblack-level = 30";
    let mut running = station(&sandbox, &camera(lines));
    running.wait_for_status("left", "running");
    running.wait_for_frames("left", 5);
    running.end("TERM");
    assert_eq!(in_camera(), "[2000.0, 3.0, 30.0]");

    let mut running = station(&sandbox, &camera("gain = 6"));
    running.wait_for_status("left", "running");
    running.reload(&camera("exposure = 4000\ngain = 6\nblack-level = 17"));
    running.wait_for_log("camera left: the new settings are in force; no frame was left out");
    // A value out of the range is refused, and nothing has changed.
    running.reload(&camera("exposure = 5000\ngain = 6\nblack-level = 256"));
    running.wait_for_log(
        "black-level = 256: out of this camera's range; set a number from 0 to 255; the camera continues with the previous \
         settings",
    );
    running.wait_for_frames("left", 5);
    assert_eq!(running.camera("left")["restarts"], 0);
    running.end("TERM");
    assert_eq!(in_camera(), "[4000.0, 6.0, 17.0]");
}

#[test]
fn a_camera_that_refuses_a_value_inspects_no_frame_and_tells_its_range() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-controls-refused");
    for (description, controls, told) in [
        (
            &["-g", WITH_BLACK_LEVEL][..],
            "exposure = 5",
            "exposure = 5: out of this camera's range; set a number from 10 to 1000000 µs",
        ),
        (
            &[],
            "black-level = 5",
            "black-level = 5: this camera has no black level that can be set; leave black-level out",
        ),
    ] {
        let _camera = Simulated::start(description);
        let mut running = station(&sandbox, &camera(controls));
        running.wait_for_status("left", "settings-refused");
        running.wait_for_log(told);
        let seen = running.camera("left");
        let inspected = ["pass", "fail", "none"].map(|verdict| seen[verdict].as_u64().unwrap());
        assert_eq!(inspected, [0; 3], "{seen}");
    }
}

#[test]
fn a_recipe_names_what_differs_and_the_rest_stays_as_in_the_stations_file() {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    let sandbox = Sandbox::new("station-controls-recipe");
    let file = sandbox.path().join("station.toml");
    fs::write(&file, camera("exposure = 2000\ngain = 3")).unwrap();
    let cameras = Config::read(&file).unwrap().cameras;
    let (recipes, _switches) = Recipes::open(sandbox.folder("recipes"), cameras).unwrap();
    let controls = |lines: &str| {
        let text = format!("[[camera]]\nname = \"left\"\n{lines}\n");
        let cameras = recipes.check_text("bright", &text).unwrap();
        let Source::Aravis { controls, caps, .. } = &cameras[0].source else {
            panic!("{:?}", cameras[0].source);
        };
        assert!(caps.is_some());
        *controls
    };
    let file = Controls {
        exposure: Some(2000.0),
        gain: Some(3.0),
        black_level: None,
    };
    assert_eq!(controls(""), file);
    let expected = Controls {
        exposure: Some(500.0),
        black_level: Some(8.0),
        ..file
    };
    assert_eq!(controls("exposure = 500\nblack-level = 8"), expected);
}
