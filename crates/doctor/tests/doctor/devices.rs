//! On a machine with a device.

use clinspect_testkit::tools::has_device;

use crate::stand::Stand;

/// Number of operators.
const OPERATORS: usize = 9;

#[test]
fn every_operator_passes_on_every_device() {
    if !has_device() {
        return;
    }
    let told = Stand::new("passes").told("--no-speed");
    let devices = told.data("devices").as_array().unwrap();
    for key in ["selector", "name", "platform", "driver_version", "version"] {
        assert_ne!(devices[0][key].as_str().unwrap(), "", "{key}");
    }
    assert_eq!(told.states(), vec!["passed"; OPERATORS * devices.len()]);
    for section in ["gstreamer", "drivers", "devices", "self-test", "caches"] {
        told.has_no(section, "fault");
    }
}

#[test]
fn speed_is_measured_and_said_in_words() {
    if !has_device() {
        return;
    }
    let told = Stand::new("speed").told("--device cpu:0");
    let speeds = told.data("speed").as_array().unwrap();
    let sizes: Vec<_> = speeds
        .iter()
        .map(|speed| speed["width"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, [1920, 2448, 4096]);
    for speed in speeds {
        let rate = speed["frames_per_second"].as_f64().unwrap();
        assert!(rate > 0.0, "{speed}");
        assert_eq!(
            speed["cameras_at_30"],
            (rate / 60.0).floor() as u64,
            "{speed}"
        );
    }
    for size in ["1080p", "5 megapixels", "12 megapixels"] {
        told.says(
            "speed",
            "ok",
            &[size, "with a margin of half", "frames/s measured"],
        );
    }
    // The comparison judged the frames, as in an inspection.
    let text = format!("{:?}", told.lines("speed"));
    assert!(!text.contains("not judged"), "{text}");
}

#[test]
fn device_that_does_not_exist_is_refused_with_the_list() {
    if !has_device() {
        return;
    }
    let stand = Stand::new("no-match").with("CLINSPECT_DEVICE", "gpu:17");
    let told = stand.told("--no-speed --device gpu:16");
    assert_eq!(told.code, Some(1));
    told.says(
        "devices",
        "fault",
        &["--device gpu:16", "choose one of ", "pu:0"],
    );
    told.says("devices", "fault", &["CLINSPECT_DEVICE is gpu:17"]);
    assert!(told.states().is_empty());
}
