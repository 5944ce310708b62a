//! Features compared with those of scikit-image. Skipped, and said so, where it is not installed.

use crate::{ALL, TIGHT, check};
use clinspect_core::components::{Finder, Listed};
use clinspect_testkit::picture::Picture;
use std::{
    io::Write,
    process::{Command, Stdio},
};

/// Exit code of the script without scikit-image.
const CANNOT_RUN: i32 = 77;

/// Says that the test is skipped, past the capture of the test harness.
fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP features: {why}");
}

/// The input of the script.
fn text(picture: &Picture, found: &Listed) -> String {
    let mut text = format!("{} {}\n", picture.width, picture.height);
    for row in picture.mask.chunks(picture.width) {
        text.extend(row.iter().map(|&marked| if marked { '1' } else { '0' }));
        text.push('\n');
    }
    for d in &found.defects {
        let defect = format!(
            "{} {} {} {} {} {} {} {} {}\n",
            d.x,
            d.y,
            d.width,
            d.height,
            d.area,
            d.major_axis,
            d.minor_axis,
            d.orientation,
            d.boundary_length
        );
        text += &defect;
    }
    text
}

#[test]
fn features_of_noise_and_bars_equal_scikit_image() {
    let pictures = [
        Picture::noise(200, 120, 12, 3),
        Picture::noise(200, 120, 35, 4),
        Picture::of(160, 90, |x, y| {
            x / 3 == y || (x + 2 * y) % 40 < 2 || (x > 100 && y % 9 < 4)
        }),
    ];
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/components/regionprops.py"
    );
    for picture in &pictures {
        let found = check(&mut Finder::default(), picture, TIGHT, &ALL);
        let started = Command::new("/usr/bin/python3")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut python) = started else {
            return skip("there is no /usr/bin/python3");
        };
        if let Some(mut input) = python.stdin.take() {
            // A script that cannot run reads nothing.
            let _ = input.write_all(text(picture, &found).as_bytes());
        }
        let done = python.wait_with_output().expect("the script's output");
        let output = String::from_utf8_lossy(&done.stdout);
        if done.status.code() == Some(CANNOT_RUN) {
            return skip(&format!("python3-skimage is not installed: {output}"));
        }
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{output}{errors}");
    }
}
