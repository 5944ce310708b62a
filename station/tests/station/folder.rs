//! Pictures of a folder as a camera.

use std::fs;

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::process::Station;

/// Grey stripes 16 px apart, with a spot or without, as PGM.
fn picture(width: usize, spot: Option<u8>) -> Vec<u8> {
    let mut bytes = format!("P5 {width} 48 255\n").into_bytes();
    let first = bytes.len();
    bytes.extend((0..48 * width).map(|i| [100, 180][i % width / 8 % 2]));
    if let Some(spot) = spot {
        bytes[first + 20 * width + 30] = spot;
    }
    bytes
}

#[test]
fn pictures_of_any_name_and_size_are_inspected_again_and_again() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-folder");
    let folder = sandbox.folder("good \"and\" bad");
    fs::write(folder.join("first one.pgm"), picture(64, None)).unwrap();
    fs::write(folder.join("2.pgm"), picture(64, Some(250))).unwrap();
    // Odd rows are padded in a frame.
    fs::write(folder.join("Third.PGM"), picture(81, None)).unwrap();
    fs::write(folder.join("broken.png"), "no picture").unwrap();
    fs::write(folder.join("wrong.jpg"), "no picture").unwrap();
    // As a Mac and an editor leave them.
    fs::write(folder.join("._2.pgm"), "no picture").unwrap();
    fs::write(folder.join(".hidden.png"), "no picture").unwrap();
    let camera = format!(
        "[[camera]]\nname = \"left\"\nsource = '''clfoldersrc location=\"{}\" rate=50'''\npitch = {{ pitch-x = 16, pitch-y = 0, \
         multiples = [1], min-contrast = 0, threshold = 30 }}\n",
        folder.to_str().unwrap().replace('"', "\\\"")
    );
    let mut station = Station::start(&sandbox, &camera);
    station.wait_for_status("left", "running");
    station.wait_for_frames("left", 30);
    let seen = station.camera("left");
    let count = |verdict: &str| seen[verdict].as_u64().unwrap();
    // One of three fails: that with the spot.
    let [pass, fail] = [count("pass"), count("fail")];
    assert!(fail >= 10 && pass.abs_diff(2 * fail) <= 2, "{seen}");
    station.lost_nothing("left");
    let log = station.log();
    let lines = |word: &str| log.lines().filter(|line| line.contains(word)).count();
    // Ten rounds.
    assert_eq!(
        ["broken.png", "wrong.jpg", "._2", ".hidden"].map(lines),
        [1, 1, 0, 0],
        "{log}"
    );
    assert_eq!(lines("put pictures of one size and format"), 1, "{log}");
}

#[test]
fn a_folder_without_pictures_is_told() {
    let sandbox = Sandbox::new("station-no-pictures");
    let folder = sandbox.folder("nothing");
    let camera = format!(
        "[[camera]]\nname = \"left\"\nsource = \"clfoldersrc location={}\"\npitch = {{ pitch-x = 16 }}\n",
        folder.display()
    );
    let mut station = Station::start(&sandbox, &camera);
    station.wait_for_status("left", "camera-lost");
    station.wait_for_log("holds no picture; put PNG, PNM or JPEG files there");
}
