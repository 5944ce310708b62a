//! Pixel formats of a GigE Vision camera: asked for, chosen, and refused.

use clinspect_testkit::{
    camera as simulated_camera,
    tools::{Sandbox, has_device},
};

use crate::{
    process::Station,
    simulated::{self, gige_camera, station},
};

/// Formats with their codes in the Pixel Format Naming Convention.
const MONO8: (&str, u32) = ("Mono8", 0x0108_0001);
const MONO12: (&str, u32) = ("Mono12", 0x0110_0005);
const MONO12P: (&str, u32) = ("Mono12p", 0x010c_0047);
const BAYER_RG8: (&str, u32) = ("BayerRG8", 0x0108_0009);
const BAYER_RG12: (&str, u32) = ("BayerRG12", 0x0110_0011);

fn camera(name: &str, lines: &str) -> String {
    gige_camera(name, &format!("{lines}\npitch = {{ pitch-x = 16 }}"))
}

/// What the page says of the frames of the only camera, with these formats and lines of the file.
fn sent(formats: &[(&str, u32)], lines: &str) -> Option<String> {
    let _network = simulated::network_and_device()?;
    let sandbox = Sandbox::new("station-formats");
    let _camera = simulated::with_formats(&sandbox, formats);
    let mut station = station(&sandbox, &camera("left", lines));
    station.wait_for_status("left", "running");
    station.wait_for_frames("left", 5);
    let sent = station.camera("left")["sent"].as_str().unwrap().to_owned();
    station.wait_for_log(&format!("camera left: {sent}"));
    Some(sent)
}

const SIZE: &str = "caps = \"video/x-raw, width=320, height=200\"";

#[test]
fn packed_samples_come_packed_and_are_unpacked_on_the_device() {
    let lines = format!("pixel-format = \"Mono12p\"\n{SIZE}");
    // aravis negotiates the first format; the camera then gets the one that was asked for.
    for formats in [&[MONO8, MONO12P][..], &[BAYER_RG8, MONO12, MONO12P]] {
        let Some(sent) = sent(formats, &lines) else {
            return;
        };
        assert_eq!(
            sent,
            "asked for Mono12p, sends Mono12p, 320x200, 1.5 bytes a pixel; clunpack makes GRAY16_LE of it on the device"
        );
    }
}

#[test]
fn deep_bayer_pictures_come_although_aravis_does_not_know_them() {
    let lines = format!("pixel-format = \"BayerRG12\"\n{SIZE}");
    if let Some(sent) = sent(&[BAYER_RG8, BAYER_RG12], &lines) {
        let expected = "asked for BayerRG12, sends BayerRG12, 320x200, 2 bytes a pixel; clunpack makes RGB of it on the device";
        assert_eq!(sent, expected);
    }
}

#[test]
fn grey_samples_of_two_bytes_come_also_from_a_camera_without_mono16() {
    let lines = format!("pixel-format = \"Mono12\"\n{SIZE}");
    if let Some(sent) = sent(&[MONO8, MONO12], &lines) {
        let expected =
            "asked for Mono12, sends Mono12, 320x200, 2 bytes a pixel; inspected as it comes";
        assert_eq!(sent, expected);
    }
}

#[test]
fn a_camera_without_a_wish_sends_what_needs_no_conversion_else_bayer_pictures() {
    let Some(grey) = sent(&[BAYER_RG8, MONO8], "") else {
        return;
    };
    assert_eq!(
        grey,
        "sends GRAY8, 512x512, 1 byte a pixel; inspected as it comes"
    );
    let colour = sent(&[BAYER_RG8], "").unwrap();
    assert_eq!(
        colour,
        "sends rggb, 512x512, 1 byte a pixel; clunpack makes RGB of it on the device"
    );
}

#[test]
fn bayer_pictures_of_any_source_are_unpacked() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-bayer");
    let source =
        "videotestsrc is-live=true ! video/x-bayer,format=gbrg,width=160,height=120,framerate=30/1";
    let camera = format!(
        "[[camera]]\nname = \"left\"\nsource = \"{source}\"\nunpack = {{ demosaic = \"gradient\" }}\npitch = {{ pitch-x = 16 }}\n"
    );
    let mut station = Station::start(&sandbox, &camera);
    station.wait_for_status("left", "running");
    let expected = "sends gbrg, 160x120, 1 byte a pixel; clunpack makes RGB of it on the device";
    assert_eq!(station.camera("left")["sent"], expected);
    station.wait_for_frames("left", 10);
    station.lost_nothing("left");
}

#[test]
fn a_format_that_the_camera_lacks_is_refused_with_its_line_and_those_that_the_camera_has() {
    let Some(_network) = simulated_camera::network() else {
        return;
    };
    let sandbox = Sandbox::new("station-no-format");
    let _camera = simulated::with_formats(&sandbox, &[MONO8, BAYER_RG8, MONO12P]);
    let lines = format!("pixel-format = \"Mono10p\"\n{SIZE}");
    let mut station = station(&sandbox, &camera("left", &lines));
    station.wait_for_status("left", "settings-refused");
    let text = station.camera("left")["status_text"].clone();
    let begin = "pixel-format = \"Mono10p\" (line 5 of the file) is no format of this camera; it has Mono8, BayerRG8, \
                 and perhaps packed formats: ";
    assert!(text.as_str().unwrap().starts_with(begin), "{text}");
}
