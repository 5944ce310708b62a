//! Recipes: read over the cameras of the file, switched for all cameras or none.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};
use serde_json::Value;

use crate::process::{Station, live_camera, program};

const TOKEN: &str = "a-token-of-the-tests-0123456789";
/// Marks the ball if the threshold is low enough.
const INSPECTION: &str = "pitch-x = 16, pitch-y = 0, multiples = [1], min-contrast = 0";
/// Every frame of a ball fails.
const STRICT: u32 = 30;
/// No difference is larger.
const LENIENT: u32 = 255;

/// A folder of recipes beside a station's file.
struct Folder(PathBuf);

impl Folder {
    fn new(sandbox: &Sandbox) -> Self {
        let folder = sandbox.path().join("recipes");
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(format!("{name}.toml")), text).unwrap();
    }

    /// A recipe with this threshold for each camera.
    fn thresholds(&self, name: &str, cameras: &[&str], threshold: u32) {
        let tables = cameras.iter().map(|camera| {
            format!(
                "[[camera]]\nname = \"{camera}\"\npitch = {{ {INSPECTION}, threshold = {threshold} }}\n"
            )
        });
        self.write(name, &tables.collect::<String>());
    }

    fn active(&self) -> Option<String> {
        let text = fs::read_to_string(self.0.join("active")).ok()?;
        Some(text.trim().to_owned())
    }

    fn changes(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.0.join("changes.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }
}

/// The keys of a station's file before its cameras.
fn head(sandbox: &Sandbox, folder: &Folder) -> String {
    let token = sandbox.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        "allow-writing = true\ntoken-file = {token:?}\nrecipes = {:?}\n",
        folder.0
    )
}

/// A camera whose results are in a file, one JSON a line.
fn published(name: &str, rate: u32, results: &Path) -> String {
    let camera = live_camera(name, "ball", INSPECTION);
    let camera = camera.replace("framerate=30/1", &format!("framerate={rate}/1"));
    format!("{camera}publish = {{ method = \"file\", location = {results:?} }}\n")
}

#[track_caller]
fn switch(station: &Station, name: &str) -> u64 {
    let body = format!("{{\"name\": \"{name}\"}}");
    let (status, answer) = station.post("/api/recipe", &body, TOKEN);
    assert_eq!(status, 200, "{answer}\n{}", station.log());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["milliseconds"].as_u64().unwrap()
}

#[track_caller]
fn refused(station: &Station, name: &str) -> (u16, String) {
    let body = serde_json::json!({ "name": name }).to_string();
    let (status, answer) = station.post("/api/recipe", &body, TOKEN);
    assert_ne!(status, 200, "{answer}");
    (status, answer)
}

fn listed(station: &Station) -> Value {
    serde_json::from_str(&station.get("/api/recipes")).unwrap()
}

/// The results of a file.
fn results(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn every_result_names_the_recipe_that_judged_it_while_frames_flow() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-flow");
    let folder = Folder::new(&sandbox);
    let cameras = ["left", "right"];
    folder.thresholds("strict", &cameras, STRICT);
    folder.thresholds("lenient", &cameras, LENIENT);
    let files = cameras.map(|name| sandbox.path().join(name));
    let tables = [0, 1].map(|at| published(cameras[at], 100, &files[at]));
    let file = head(&sandbox, &folder) + &tables.concat();
    let mut station = Station::start(&sandbox, &file);
    for name in cameras {
        station.wait_for_status(name, "running");
    }
    let mut times = Vec::new();
    for turn in 0..40 {
        let name = ["strict", "lenient"][turn % 2];
        times.push(switch(&station, name));
        for camera in cameras {
            let of_camera = station.camera(camera);
            assert_eq!(of_camera["recipe"]["name"], name, "{of_camera}");
        }
        sleep(Duration::from_millis(300));
    }
    let lost = cameras.map(|name| station.camera(name)["lost"].as_u64());
    assert_eq!(lost, [Some(0); 2], "frames were lost");
    let (status, _, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for file in &files {
        let mut next = None;
        for report in results(file) {
            let recipe = report["recipe"]["name"].as_str();
            let verdict = report["verdict"].as_str().unwrap().to_owned();
            // Without a recipe the file's own threshold is in force, which is low.
            let wanted = if recipe == Some("lenient") {
                "pass"
            } else {
                "fail"
            };
            assert_eq!(verdict, wanted, "{report}");
            let time = report["time"].as_str().unwrap().to_owned();
            assert!(next < Some(time.clone()), "{next:?} before {time}");
            next = Some(time);
            *counts
                .entry((recipe.unwrap_or("none").to_owned(), verdict))
                .or_default() += 1;
        }
    }
    times.sort_unstable();
    eprintln!("{counts:?}; milliseconds {times:?}");
    assert!(counts.values().sum::<usize>() >= 1000, "{counts:?}");
    assert!(counts.len() == 3, "{counts:?}");
}
