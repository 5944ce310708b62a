//! Recipes: read over the cameras of the file, switched for all cameras or none.

mod files;
mod history;
mod kept;
mod outside;
mod power;
mod save;
mod switch;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clinspect_testkit::tools::Sandbox;
use serde_json::Value;

use crate::process::{Station, TOKEN, live_camera, writing};

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

    /// A folder with the recipes strict and lenient.
    fn of_two(sandbox: &Sandbox, cameras: &[&str]) -> Self {
        let folder = Self::new(sandbox);
        folder.thresholds("strict", cameras, STRICT);
        folder.thresholds("lenient", cameras, LENIENT);
        folder
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
    format!("{}recipes = {:?}\n", writing(sandbox), folder.0)
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
