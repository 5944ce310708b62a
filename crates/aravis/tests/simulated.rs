//! aravis' simulated GigE Vision camera: found, read, set.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_aravis::{Camera, Control, Value, cameras};
use clinspect_testkit::camera::{Simulated, inside, network};
use gst::prelude::*;

const NAME: &str = "Aravis-Fake-GV01";
/// aravis' simulated camera with a black level from 0 to 255.
const WITH_BLACK_LEVEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/camera.xml");

#[test]
fn the_camera_is_found_and_its_controls_are_read_and_set() {
    if let Some(_network) = network() {
        let _camera = Simulated::start(&["-g", WITH_BLACK_LEVEL]);
        inside("inside_controls", &[]);
    }
}

#[test]
#[ignore = "the test above runs it"]
fn inside_controls() {
    let found = cameras().unwrap();
    let [camera] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((&*camera.vendor, &*camera.model), ("Aravis", "Fake"));
    assert_eq!((&*camera.serial, &*camera.address), ("GV01", "127.0.0.1"));
    assert_eq!(camera.protocol, "GigEVision");

    let camera = Camera::open(&camera.id).unwrap();
    assert_eq!(camera.pixel_formats().unwrap(), ["Mono8", "Mono16"]);
    for (control, value, [least, most]) in [
        (Control::Exposure, 2000.0, [10.0, 1e6]),
        (Control::Gain, 12.0, [0.0, 24.0]),
        (Control::BlackLevel, 30.0, [0.0, 255.0]),
    ] {
        let before = camera.get(control).unwrap().unwrap().value;
        assert_ne!(before, value);
        camera.set(control, value).unwrap();
        let wanted = Value { value, least, most };
        assert_eq!(camera.get(control), Ok(Some(wanted)), "{control}");
    }
    // Another one cannot open it now.
    let error = Camera::open("Aravis-Fake-GV02").err().unwrap();
    assert!(error.contains("GV02"), "{error}");
}

#[test]
fn a_control_that_the_camera_lacks_is_told() {
    if let Some(_network) = network() {
        let _camera = Simulated::start(&[]);
        inside("inside_without_black_level", &[]);
    }
}

#[test]
#[ignore = "the test above runs it"]
fn inside_without_black_level() {
    let camera = Camera::open(NAME).unwrap();
    assert_eq!(camera.get(Control::BlackLevel), Ok(None));
    let refused = camera.set(Control::BlackLevel, 1.0).unwrap_err();
    assert_eq!(refused, "this camera has no black level that can be set");
    assert!(camera.get(Control::Exposure).unwrap().is_some());
}

#[test]
fn the_camera_of_an_element_is_set_before_frames_flow() {
    if let Some(_network) = network() {
        let _camera = Simulated::start(&["-g", WITH_BLACK_LEVEL]);
        inside("inside_element", &[]);
    }
}

#[test]
#[ignore = "the test above runs it"]
fn inside_element() {
    gst::init().unwrap();
    let element = gst::ElementFactory::make("aravissrc")
        .property("camera-name", NAME)
        .build()
        .unwrap();
    element.set_state(gst::State::Ready).unwrap();
    let held = element.property::<Option<gst::glib::Object>>("camera");
    let camera = Camera::of(&held.unwrap()).unwrap();
    camera.set(Control::BlackLevel, 17.0).unwrap();
    assert_eq!(
        camera.get(Control::BlackLevel).unwrap().unwrap().value,
        17.0
    );
    // It has the element's own camera, not another one of the same name.
    element.set_property("exposure", 4321.0);
    assert_eq!(
        camera.get(Control::Exposure).unwrap().unwrap().value,
        4321.0
    );
    element.set_state(gst::State::Null).unwrap();
    let other = element.upcast_ref::<gst::glib::Object>();
    let error = Camera::of(other).err().unwrap();
    assert!(error.ends_with("is no camera of aravis"), "{error}");
}
