//! What a save, and elements that refuse a recipe, leave to the cameras that run.

use std::fs;

use clinspect_testkit::tools::{Sandbox, has_device};
use config::file::Config;
use serde_json::Value;

use super::{Folder, INSPECTION, STRICT, TOKEN, head, listed, published, refused, results, switch};
use crate::process::{Station, live_camera};

const CAMERAS: [&str; 2] = ["left", "right"];

/// A recipe whose cameras have a mask. `pitch_x` is that of the camera right.
fn masked(pitch_x: u32) -> String {
    let tables = CAMERAS.map(|name| {
        let inspection = match name {
            "right" => INSPECTION.replace("pitch-x = 16", &format!("pitch-x = {pitch_x}")),
            _ => INSPECTION.to_owned(),
        };
        format!(
            "[[camera]]\nname = \"{name}\"\n\
             pitch = {{ {inspection}, threshold = {STRICT}, ignore = {{ mask = \"ignore.pgm\" }} }}\n"
        )
    });
    tables.concat()
}

/// White: only a corner is judged where the ball does not come. Black: all of it.
fn mask(level: u8) -> Vec<(String, Vec<u8>)> {
    let mut file = b"P5 160 120 255\n".to_vec();
    let pixels = (0..160 * 120).map(|at| if at < 320 && at % 160 < 36 { 0 } else { level });
    file.extend(pixels);
    vec![("ignore.pgm".to_owned(), file)]
}

#[test]
fn cameras_that_run_never_meet_files_of_a_later_save() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-kept");
    let (recipes, folder) = super::save::open(&sandbox, "");
    let own = CAMERAS.map(|name| live_camera(name, "ball", INSPECTION));
    // Its pipeline starts again and again.
    let left = own[0].replace("is-live=true", "is-live=true num-buffers=30");
    let file = head(&sandbox, &folder) + &left + &own[1];
    let bases = sandbox.path().join("bases.toml");
    fs::write(&bases, left + &own[1]).unwrap();
    recipes.set_bases(Config::read(&bases).unwrap().cameras);
    let save = |pitch_x, level, before: Option<&str>| {
        let saved = recipes.save("cloth", &masked(pitch_x), &mask(level), before, "test");
        saved.unwrap().hash
    };
    let first = save(16, 0, None);
    fs::write(folder.0.join("active"), "cloth\n").unwrap();
    let mut station = Station::start(&sandbox, &file);
    let judged = |camera: &Value, hash: &str, verdict: &str| {
        let is_under = camera["recipe"]["hash"] == *hash;
        assert!(!is_under || camera["verdict"] == *verdict, "{camera}");
        is_under && camera["status"] == "running"
    };
    for name in CAMERAS {
        station.wait_until("it runs", |s| judged(&s.camera(name), &first, "fail"));
    }

    // Saved, and not used: pipelines that start again read the files of the recipe in force.
    let second = save(500, 255, Some(&first));
    assert_eq!(listed(&station)["recipes"][0]["hash"], *second);
    let restarts = |s: &Station| s.camera("left")["restarts"].as_u64().unwrap();
    let before = restarts(&station);
    station.wait_until("it starts again", |s| {
        restarts(s) >= before + 2 && judged(&s.camera("left"), &first, "fail")
    });

    // Used, and a camera refuses it: all go back to settings and files.
    let (_, why) = refused(&station, "cloth");
    assert!(why.contains("camera right: "), "{why}");
    for name in CAMERAS {
        station.wait_until("it is back", |s| judged(&s.camera(name), &first, "fail"));
    }

    let third = save(16, 255, Some(&second));
    switch(&station, "cloth");
    for name in CAMERAS {
        station.wait_until("nothing is seen", |s| {
            let camera = s.camera(name);
            camera["recipe"]["hash"] == *third && camera["verdict"] == "pass"
        });
    }
    let names = fs::read_dir(&folder.0).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut hidden: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    hidden.sort();
    assert_eq!(
        hidden,
        [".history".to_owned(), format!(".in-force-cloth-{third}")]
    );
}

#[test]
fn elements_that_do_not_start_leave_the_running_ones_and_every_frame() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-refused");
    let folder = Folder::of_two(&sandbox, &["left"]);
    folder.write(
        "broken",
        "[[camera]]\nname = \"left\"\ndevice = \"no-such-device\"\n",
    );
    let file = sandbox.path().join("results");
    let left = published("left", 100, &file);
    let mut station = Station::start(&sandbox, &(head(&sandbox, &folder) + &left));
    station.wait_for_status("left", "running");
    switch(&station, "lenient");
    for _ in 0..3 {
        let (status, why) = refused(&station, "broken");
        assert_eq!(status, 409);
        assert!(
            why.contains("no-such-device") && why.contains("all cameras are as before"),
            "{why}"
        );
        let camera = station.camera("left");
        assert_eq!(
            (&camera["status"], &camera["recipe"]["name"]),
            (&"running".into(), &"lenient".into()),
            "{camera}"
        );
        station.wait_for_frames("left", 20);
    }
    // The one that follows is not hurt.
    switch(&station, "strict");
    station.wait_for_frames("left", 20);
    let camera = station.camera("left");
    assert_eq!(
        (&camera["restarts"], &camera["lost"], &camera["verdict"]),
        (&0.into(), &0.into(), &"fail".into()),
        "{camera}"
    );
    station.end("TERM");
    let mut frames = 0..;
    for report in results(&file) {
        assert_eq!(report["frame"].as_u64(), frames.next(), "{report}");
        assert_ne!(report["recipe"]["name"], "broken", "{report}");
    }
    assert!(frames.start > 100);
}

#[test]
fn what_was_learned_does_not_override_a_later_save() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-learned-then-saved");
    let folder = Folder::of_two(&sandbox, &["left"]);
    let left = live_camera("left", "ball", INSPECTION);
    let mut station = Station::start(&sandbox, &(head(&sandbox, &folder) + &left));
    station.wait_for_status("left", "running");
    switch(&station, "strict");
    station.command("left", "learn", TOKEN);
    station.wait_until("the ball passes", |s| s.camera("left")["verdict"] == "pass");
    let limits = folder.0.join("strict/left-limits.npz");
    station.wait_until("the limits are a file", |_| limits.is_file());
    // Somebody takes the learned limits out; the threshold of the text is as before.
    fs::remove_file(&limits).unwrap();
    let text = fs::read_to_string(folder.0.join("strict.toml")).unwrap();
    folder.write("strict", &(text + "# without learned limits\n"));
    switch(&station, "strict");
    station.wait_for_frames("left", 5);
    assert_eq!(
        station.camera("left")["verdict"],
        "fail",
        "{}",
        station.log()
    );
}
