//! Recipes as files: mistakes, and a start with a recipe that cannot be used.

use std::{fs, process::Command};

use clinspect_testkit::tools::{Sandbox, has_device};

use super::{Folder, INSPECTION, LENIENT, TOKEN, head, listed, refused, switch};
use crate::process::{Station, live_camera, program};

#[test]
fn check_tells_every_mistake_of_every_recipe_with_its_place() {
    let sandbox = Sandbox::new("station-recipe-check");
    let folder = Folder::new(&sandbox);
    let camera = |keys: &str| format!("[[camera]]\nname = \"left\"\n{keys}\n");
    folder.write(
        "good",
        &camera("pitch = { threshold = 12 }\nhistogram = {}"),
    );
    folder.write(
        "keys",
        &(camera("treshold = 3\npitch = { pich-x = 2 }") + "listen = \"x\"\n"),
    );
    folder.write(
        "other-cameras",
        "[[camera]]\nname = \"right\"\npitch = {}\n",
    );
    folder.write("syntax", "[[camera]\n");
    folder.write(
        "files",
        &camera("reference = { location = \"../left.npz\", ignore = { mask = \"missing.png\" } }"),
    );
    folder.write("two words", "");
    let file = sandbox.path().join("station.toml");
    let own = live_camera("left", "ball", INSPECTION);
    fs::write(&file, format!("{}{own}", head(&sandbox, &folder))).unwrap();
    let mut command = Command::new(program());
    let done = command.args(["--check"]).arg(&file).output().unwrap();
    let told = String::from_utf8(done.stdout).unwrap();
    let told = told.replace(folder.0.to_str().unwrap(), "FOLDER");
    assert_eq!(done.status.code(), Some(1), "{told}");
    for wanted in [
        "FOLDER/keys.toml:3:1: [[camera]] has no key treshold",
        "FOLDER/keys.toml:4:11: pitch has no key pich-x; did you mean pitch-x?",
        "FOLDER/other-cameras.toml:1:1: the recipe lacks the camera left of the station's file",
        "FOLDER/other-cameras.toml:1:1: the camera has no source",
        "FOLDER/syntax.toml:1:",
        "FOLDER/files.toml:3:26: location = \"../left.npz\" leads out of the recipe's folder",
        "FOLDER/files/missing.png",
        "FOLDER/two words.toml:1:1: A recipe's name has 1 to 64 letters",
    ] {
        assert!(told.contains(wanted), "{wanted}\n{told}");
    }
    assert!(!told.contains("good.toml"), "{told}");
}

#[test]
fn check_leaves_hidden_files_out_and_tells_an_active_that_names_no_recipe() {
    let sandbox = Sandbox::new("station-recipe-hidden");
    let folder = Folder::new(&sandbox);
    folder.write("cloth", "[[camera]]\nname = \"left\"\npitch = {}\n");
    fs::write(folder.0.join("._cloth.toml"), "x").unwrap();
    std::os::unix::fs::symlink("somebody@host.1", folder.0.join(".#cloth.toml")).unwrap();
    let file = sandbox.path().join("station.toml");
    let own = live_camera("left", "ball", INSPECTION);
    fs::write(&file, format!("{}{own}", head(&sandbox, &folder))).unwrap();
    for (active, wanted) in [
        (None, None),
        (Some("cloth\r\n"), None),
        (
            Some("gone"),
            Some("there is no recipe gone; name one of: cloth"),
        ),
        (
            Some("cloth.toml"),
            Some("holds no name of a recipe; name one of: cloth"),
        ),
        (Some(""), Some("holds no name of a recipe")),
        (Some("two words"), Some("holds no name of a recipe")),
    ] {
        if let Some(active) = active {
            fs::write(folder.0.join("active"), active).unwrap();
        }
        let mut command = Command::new(program());
        let done = command.args(["--check"]).arg(&file).output().unwrap();
        let told = String::from_utf8(done.stdout).unwrap();
        let code = i32::from(wanted.is_some());
        assert_eq!(done.status.code(), Some(code), "{active:?}: {told}");
        assert!(
            told.contains(wanted.unwrap_or("no mistake")),
            "{active:?}: {told}"
        );
    }
}

#[test]
fn broken_recipe_at_the_start_runs_no_camera_until_people_choose_another() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-start");
    let folder = Folder::new(&sandbox);
    folder.write(
        "broken",
        "[[camera]]\nname = \"left\"\npitch = { pich-x = 1 }\n",
    );
    folder.thresholds("lenient", &["left"], LENIENT);
    let left = live_camera("left", "ball", INSPECTION);
    let file = head(&sandbox, &folder) + &left;
    for (active, why) in [
        ("gone\n", "there is no recipe gone"),
        ("broken\n", "broken.toml:3:11: pitch has no key pich-x"),
        ("../station\n", "active holds no name of a recipe"),
    ] {
        fs::write(folder.0.join("active"), active).unwrap();
        let mut station = Station::start(&sandbox, &file);
        station.wait_for_log(why);
        let recipes = listed(&station);
        assert!(
            recipes["problem"].as_str().unwrap().contains(why),
            "{recipes}"
        );
        assert_eq!(recipes["active"], serde_json::Value::Null);
        assert!(station.get("/healthz").contains(why));
        assert_eq!(station.get("/api/cameras"), "[]");
        let mistakes = recipes["recipes"][0]["mistakes"].as_array().unwrap();
        assert!(
            mistakes[0].as_str().unwrap().starts_with("3:11: "),
            "{recipes}"
        );
        let (status, told) = refused(&station, "broken");
        assert_eq!(status, 409);
        assert!(told.contains("broken.toml:3:11: "), "{told}");
        switch(&station, "lenient");
        station.wait_for_status("left", "running");
        assert_eq!(station.get("/healthz"), "Every camera runs.\n");
        assert_eq!(listed(&station)["problem"], serde_json::Value::Null);
        assert_eq!(folder.active().as_deref(), Some("lenient"));
    }
}

#[test]
fn station_without_a_camera_of_its_own_runs_those_of_a_recipe_and_a_reload_reads_it_again() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-own");
    let folder = Folder::new(&sandbox);
    let cloth = live_camera(
        "left",
        "ball",
        &format!("{INSPECTION}, threshold = {LENIENT}"),
    );
    folder.write("cloth", &cloth);
    folder.write(
        "pair",
        &(cloth.clone() + &live_camera("right", "black", INSPECTION)),
    );
    let file = head(&sandbox, &folder);
    let mut station = Station::start(&sandbox, &file);
    assert_eq!(station.get("/api/cameras"), "[]");
    switch(&station, "cloth");
    assert_eq!(station.camera("left")["verdict"], "pass");
    switch(&station, "pair");
    assert_eq!(station.camera("right")["status"], "running");
    switch(&station, "cloth");
    assert!(station.camera("right").is_null());
    let hash = listed(&station)["active"]["hash"].clone();
    folder.write("cloth", &live_camera("left", "ball", INSPECTION));
    station.reload(&file);
    station.wait_until("the ball fails", |s| s.camera("left")["verdict"] == "fail");
    let active = listed(&station)["active"].clone();
    assert_eq!(active["name"], "cloth");
    assert_ne!(active["hash"], hash);
    let changes = folder.changes();
    let last = changes.last().unwrap();
    assert_eq!(
        (&last["who"], &last["from"], &last["to"], &last["hash"]),
        (
            &"reload".into(),
            &"cloth".into(),
            &"cloth".into(),
            &active["hash"]
        ),
        "{last}"
    );
    // A reload with a mistake in the recipe changes nothing.
    folder.write("cloth", "[[camera]]\nname = \"left\"\n");
    station.reload(&file);
    station.wait_for_log("cloth.toml:1:1: the camera has no source");
    station.wait_for_frames("left", 3);
    assert_eq!(listed(&station)["active"], active);
    assert_eq!(folder.changes(), changes);
}

#[test]
fn names_that_are_paths_are_refused_and_the_token_is_needed() {
    let sandbox = Sandbox::new("station-recipe-names");
    let folder = Folder::new(&sandbox);
    fs::write(sandbox.path().join("x.toml"), "").unwrap();
    let station = Station::start(&sandbox, &head(&sandbox, &folder));
    let long = "a".repeat(65);
    for name in [
        "../x",
        "..",
        "",
        "a/b",
        "/etc/passwd",
        "x\0",
        "ä",
        "x.toml",
        "two words",
        &long,
    ] {
        let (status, why) = refused(&station, name);
        assert_eq!(status, 422, "{name:?}: {why}");
        assert!(why.contains("1 to 64 letters"), "{why}");
    }
    assert_eq!(refused(&station, "x").0, 409);
    for body in [
        "",
        "x",
        "{}",
        "{\"name\": 3}",
        "{\"name\": \"x\", \"more\": 1}",
    ] {
        let (status, why) = station.post("/api/recipe", body, TOKEN);
        assert!((400..423).contains(&status), "{body}: {status} {why}");
    }
    let body = "{\"name\": \"x\"}";
    assert_eq!(
        station
            .post("/api/recipe", body, "wrong-wrong-wrong-wrong")
            .0,
        401
    );
    assert_eq!(folder.active(), None);
    let changes = folder.changes();
    assert_eq!(
        changes.len(),
        1,
        "only the name that could be one: {changes:?}"
    );
    assert_eq!(changes[0]["who"], "page 127.0.0.1");
}
