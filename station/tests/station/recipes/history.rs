//! The way back to what a recipe was before a save.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use clinspect_testkit::tools::Sandbox;
use config::recipes::{Action, Recipes, SaveError};
use serde_json::{Value, json};

use super::{Folder, STRICT, head, save::open};
use crate::process::{Station, TOKEN, live_camera};

const OWN: &str = "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n";

fn text(threshold: usize) -> String {
    format!("[[camera]]\nname = \"left\"\npitch = {{ pitch-x = 16, threshold = {threshold} }}\n")
}

#[track_caller]
fn save(recipes: &Recipes, threshold: usize, files: &[(&str, &[u8])]) {
    let hash = recipes
        .exists("cloth")
        .then(|| recipes.hash("cloth").unwrap());
    let files: Vec<(String, Vec<u8>)> = (files.iter())
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    let saved = recipes.save(
        "cloth",
        &text(threshold),
        &files,
        hash.as_deref(),
        "page 127.0.0.1",
    );
    saved.unwrap();
}

/// The files of a recipe with their contents.
fn files(recipes: &Recipes) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let files = recipes.files("cloth");
    (files.iter())
        .map(|path| (name(path), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn recipe_becomes_what_it_was_with_its_files_and_can_be_brought_forward_again() {
    let sandbox = Sandbox::new("recipe-back");
    let (recipes, _) = open(&sandbox, OWN);
    save(
        &recipes,
        10,
        &[("left-a.npz", b"first"), ("left-b.npz", b"same")],
    );
    assert_eq!(
        recipes.versions("cloth"),
        [],
        "there is nothing before the first save"
    );
    let first = (recipes.hash("cloth").unwrap(), files(&recipes));
    save(
        &recipes,
        20,
        &[("left-a.npz", b"second"), ("left-c.npz", b"new")],
    );
    let second = (recipes.hash("cloth").unwrap(), files(&recipes));
    // The line changes a file without a save, as learned limits do.
    let limits = sandbox.path().join("recipes/cloth/left-limits.npz");
    fs::write(&limits, b"learned").unwrap();
    let learned = (recipes.hash("cloth").unwrap(), files(&recipes));
    save(&recipes, 30, &[("left-limits.npz", b"")]);

    let versions = recipes.versions("cloth");
    let hashes: Vec<&str> = versions.iter().map(|of| of.hash.as_str()).collect();
    assert_eq!(hashes, [&learned.0, &first.0]);
    assert_ne!(second.0, learned.0);
    assert_eq!(
        recipes.version_text("cloth", &versions[1].id).unwrap(),
        text(10)
    );

    let back = recipes
        .go_back("cloth", &versions[1].id, "page 127.0.0.1")
        .unwrap();
    assert_eq!((back.hash, files(&recipes)), first);
    let newest = &recipes.changes()[0];
    assert_eq!(
        (newest.action, newest.to.as_str()),
        (Action::Restore, "cloth")
    );
    // What it was until now is a version, too.
    let versions = recipes.versions("cloth");
    assert_eq!(versions.len(), 3);
    assert_eq!(
        recipes.version_text("cloth", &versions[0].id).unwrap(),
        text(30)
    );
    recipes
        .go_back("cloth", &versions[1].id, "page 127.0.0.1")
        .unwrap();
    assert_eq!((recipes.hash("cloth").unwrap(), files(&recipes)), learned);
}

#[test]
fn last_fifty_versions_are_kept_and_a_save_that_changes_nothing_is_none() {
    let sandbox = Sandbox::new("recipe-fifty");
    let (recipes, _) = open(&sandbox, OWN);
    for threshold in 0..53 {
        save(&recipes, threshold, &[]);
    }
    save(&recipes, 52, &[]);
    let versions = recipes.versions("cloth");
    let texts = versions
        .iter()
        .map(|of| recipes.version_text("cloth", &of.id).unwrap());
    assert_eq!(
        texts.collect::<Vec<_>>(),
        (2..52).rev().map(text).collect::<Vec<_>>()
    );
}

#[test]
fn unchanged_files_of_versions_take_no_room() {
    let sandbox = Sandbox::new("recipe-room");
    let (recipes, _) = open(&sandbox, OWN);
    save(&recipes, 1, &[("left-model.npz", &[7; 1 << 16])]);
    (2..6).for_each(|threshold| save(&recipes, threshold, &[]));
    let model = &recipes.files("cloth")[0];
    assert_eq!(fs::metadata(model).unwrap().nlink(), 5);
}

#[test]
fn way_back_that_is_not_possible_changes_nothing() {
    let sandbox = Sandbox::new("recipe-no-back");
    let (recipes, _) = open(&sandbox, OWN);
    save(&recipes, 1, &[]);
    save(&recipes, 2, &[]);
    let version = recipes.versions("cloth")[0].id.clone();
    let hash = recipes.hash("cloth").unwrap();
    for (name, id) in [
        ("cloth", "1732752000000-13891a8b9fdc53d7"),
        ("cloth", "../../../../../tmp"),
        ("other", version.as_str()),
        ("../cloth", version.as_str()),
    ] {
        assert!(recipes.go_back(name, id, "page").is_err(), "{name} {id}");
        assert!(recipes.version_text(name, id).is_err(), "{name} {id}");
    }
    // A version that fits the station no more, because somebody changed its file.
    let of_version = sandbox.path().join("recipes/.history/cloth").join(&version);
    fs::write(
        of_version.join("cloth.toml"),
        "[[camera]]\nname = \"left\"\npitch = { treshold = 1 }\n",
    )
    .unwrap();
    let error = recipes.go_back("cloth", &version, "page").unwrap_err();
    assert!(matches!(error, SaveError::Mistakes(_)), "{error}");
    assert_eq!(recipes.hash("cloth").unwrap(), hash);
    assert_eq!(
        recipes.versions("cloth").len(),
        1,
        "a refused way back is no version"
    );
}

#[test]
fn cameras_follow_the_way_back_of_the_recipe_in_force() {
    let sandbox = Sandbox::new("recipe-back-live");
    let folder = Folder::of_two(&sandbox, &["left"]);
    let text = format!(
        "{}{}",
        head(&sandbox, &folder),
        live_camera("left", "ball", super::INSPECTION)
    );
    fs::write(folder.0.join("active"), "lenient\n").unwrap();
    let station = Station::start(&sandbox, &text);
    // A version as a save leaves it, in which every frame fails.
    let strict = fs::read_to_string(folder.0.join("strict.toml")).unwrap();
    assert!(strict.contains(&STRICT.to_string()));
    let id = "1732752000000-13891a8b9fdc53d7";
    let version = folder.0.join(".history/lenient").join(id);
    fs::create_dir_all(&version).unwrap();
    fs::write(version.join("lenient.toml"), &strict).unwrap();

    let body = json!({ "version": id }).to_string();
    let (status, _) = station.post(
        "/api/recipes/lenient/back",
        &body,
        "wrong-wrong-wrong-wrong",
    );
    assert_eq!(status, 401);
    let (status, answer) = station.post("/api/recipes/lenient/back", &body, TOKEN);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (status, &answer["problem"]),
        (200, &Value::Null),
        "{answer}"
    );
    assert!(answer["milliseconds"].is_u64(), "{answer}");
    assert_eq!(
        fs::read_to_string(folder.0.join("lenient.toml")).unwrap(),
        strict
    );
    let listed: Value = serde_json::from_str(&station.get("/api/recipes")).unwrap();
    assert_eq!(listed["active"]["hash"], answer["hash"]);
    assert_eq!(listed["changes"][1]["action"], "restore");
}
