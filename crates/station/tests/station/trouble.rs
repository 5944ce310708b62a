//! What stops a camera is told apart, and the others go on.

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::process::{Station, live_camera};

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
            "videotestsrc is-live=true ! video/x-raw,format=RGB",
            "",
        ),
        camera(
            "refused",
            &format!("videotestsrc is-live=true ! {small}"),
            "pitch = { pitch-x = 5000, pitch-y = 0 }",
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
