//! `clinspect-station try`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clinspect_testkit::{
    panel::PanelSpec,
    scenes::{Sequence, panels},
    tools::Sandbox,
};
use serde_json::Value;

use crate::process::program;

/// What it prints, what it complains of, and its exit code.
fn tried(recipe: &Path, frames: &Path, more: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(program());
    command.arg("try").arg(recipe).arg("--frames").arg(frames);
    let done = command.args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr), done.status.code())
}

/// A recipe for the camera left.
fn recipe(sandbox: &Sandbox, settings: &str) -> PathBuf {
    let file = sandbox.path().join("panel.toml");
    let text = format!(
        "[[camera]]\nname = \"left\"\ngaussian = {{ kernel-size = 5, sigma = 0.8 }}\npitch = {{ {settings} }}\n"
    );
    fs::write(&file, text).unwrap();
    file
}

const RIGHT: &str = "threshold = 16.0, min-area = 3";
/// No limit of this frame is told to see nothing, because its contrast is not measured.
const BLIND: &str = "threshold = 200.0, min-contrast = 0";

/// Eight frames, the third and the sixth with defects, sorted into good and failed.
fn frames(sandbox: &Sandbox) -> PathBuf {
    let (drawn, folder) = (sandbox.folder("drawn"), sandbox.folder("frames"));
    let spec = PanelSpec {
        width: 320,
        height: 240,
        noise_sigma: 2.0,
        ..PanelSpec::default()
    };
    let sequence = Sequence {
        frames: 8,
        ..Sequence::default()
    };
    let defects = panels(&drawn, spec, sequence).unwrap();
    for (at, defects) in defects.iter().enumerate() {
        let of = if defects.is_empty() { "good" } else { "failed" };
        fs::create_dir_all(folder.join(of)).unwrap();
        let name = format!("{at:06}.png");
        fs::rename(drawn.join(&name), folder.join(of).join(&name)).unwrap();
    }
    folder
}

#[test]
fn files_that_are_no_pictures_are_named_and_hidden_ones_are_not() {
    let sandbox = Sandbox::new("try-others");
    let folder = frames(&sandbox);
    for name in [
        "good/a.tif",
        "failed/b.BMP",
        "good/._000000.png",
        "good/.hidden.png",
        "good/Thumbs.db",
    ] {
        fs::write(folder.join(name), "no picture").unwrap();
    }
    fs::create_dir(folder.join("good/more")).unwrap();
    let (text, why, code) = tried(&recipe(&sandbox, RIGHT), &folder, &[]);
    assert_eq!(code, Some(0), "{text}{why}");
    assert_eq!(text, "left: good: 6 of 6 pass\nleft: failed: 2 of 2 fail\n");
    assert!(
        why.ends_with("pictures: good/a.tif, good/more, failed/b.BMP\n"),
        "{why}"
    );
}

#[test]
fn a_change_that_lets_failed_frames_pass_exits_with_1_until_people_accept_it() {
    let sandbox = Sandbox::new("try");
    let folder = frames(&sandbox);
    let file = recipe(&sandbox, RIGHT);
    let (text, why, code) = tried(&file, &folder, &[]);
    assert_eq!(code, Some(0), "{text}{why}");
    assert_eq!(text, "left: good: 6 of 6 pass\nleft: failed: 2 of 2 fail\n");
    let kept = folder.join(".clinspect-try.json");
    let first = fs::read(&kept).unwrap();
    recipe(&sandbox, BLIND);
    for _ in 0..2 {
        let (text, _, code) = tried(&file, &folder, &[]);
        assert_eq!(code, Some(1), "{text}");
        let expected = "left: good: 6 of 6 pass\nleft: failed: 0 of 2 fail\n  \
                        failed/000002.png  pass (new)\n  failed/000005.png  pass (new)\n";
        assert_eq!(text, expected);
        assert_eq!(
            fs::read(&kept).unwrap(),
            first,
            "only the first run keeps its table"
        );
    }
    let (json, _, code) = tried(&file, &folder, &["--json"]);
    assert_eq!(code, Some(1));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["is_good"], false);
    assert_eq!(json["recipe"]["name"], "panel");
    assert_eq!(json["recipe"]["hash"].as_str().unwrap().len(), 16);
    let camera = &json["cameras"][0];
    assert_eq!(
        camera["good"],
        serde_json::json!({ "pass": 6, "fail": 0, "none": 0 })
    );
    assert_eq!(
        camera["failed"],
        serde_json::json!({ "pass": 2, "fail": 0, "none": 0 })
    );
    let row = &camera["rows"][6];
    assert_eq!(
        (&row["name"], &row["before"]),
        (&"failed/000002.png".into(), &"fail".into())
    );
    assert_eq!(
        (&row["verdict"], &row["is_new"]),
        (&"pass".into(), &true.into())
    );
    let (_, _, code) = tried(&file, &folder, &["--accept"]);
    assert_eq!(code, Some(0));
    let (text, _, code) = tried(&file, &folder, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("failed/000005.png  pass (as before)"),
        "{text}"
    );
    // Better than before is no reason to fail.
    recipe(&sandbox, RIGHT);
    assert_eq!(tried(&file, &folder, &[]).2, Some(0));
    // A good frame that fails is told with its largest defect.
    let bad = folder.join("failed/000002.png");
    fs::copy(bad, folder.join("good/9.png")).unwrap();
    let (text, _, code) = tried(&file, &folder, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("good/9.png  fail (new); largest defect: other, "),
        "{text}"
    );
}

#[test]
fn frames_are_recordings_with_what_people_said_and_lie_in_folders_of_the_cameras() {
    let sandbox = Sandbox::new("try-recorded");
    let sorted = frames(&sandbox);
    let folder = sandbox.folder("recorded");
    let left = folder.join("left");
    fs::create_dir_all(&left).unwrap();
    let record = |from: &str, number: u64, role: &str, verdict: &str| {
        let base = format!("left_20260411T100000.000000Z_{number:010}_{role}");
        fs::copy(sorted.join(from), left.join(format!("{base}.png"))).unwrap();
        if !verdict.is_empty() {
            fs::write(left.join(format!("{base}.verdict.json")), verdict).unwrap();
        }
    };
    record("good/000000.png", 1, "context", "");
    record(
        "good/000001.png",
        2,
        "failed",
        "{\"verdict\": \"false-alarm\"}",
    );
    record("failed/000002.png", 3, "failed", "");
    record(
        "failed/000005.png",
        4,
        "context",
        "{\"verdict\": \"missed\", \"boxes\": [[0, 0, 320, 240], [0, 0, 1, 1]]}",
    );
    let file = recipe(&sandbox, RIGHT);
    let (text, why, code) = tried(&file, &folder, &[]);
    // One of the places has no defect.
    assert_eq!(code, Some(1), "{text}{why}");
    let expected = "left: good: 2 of 2 pass\nleft: failed: 1 of 2 fail\n  \
                    left_20260411T100000.000000Z_0000000004_context  \
                    fail, but 1 of the marked places missed (new); largest defect: other, ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_station_s_file_gives_what_the_recipe_lacks_and_files_lie_beside_the_recipe() {
    let sandbox = Sandbox::new("try-base");
    let folder = frames(&sandbox);
    let station = sandbox.path().join("station.toml");
    let text = "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\ngaussian = { sigma = 0.8 }\n\
                pitch = { threshold = 200.0 }\n";
    fs::write(&station, text).unwrap();
    let file = sandbox.path().join("base.toml");
    fs::write(&file, "[[camera]]\nname = \"left\"\n").unwrap();
    let (text, why, code) = tried(&file, &folder, &["--config", station.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{text}{why}");
    assert!(text.contains("failed: 0 of 2 fail"), "{text}");
    // The picture lies beside the recipe, in the folder of its name: no pixel is judged.
    fs::create_dir(sandbox.path().join("panel")).unwrap();
    let mut mask = b"P5 320 240 255\n".to_vec();
    mask.resize(mask.len() + 320 * 240, 255);
    fs::write(sandbox.path().join("panel/left-ignore.pgm"), mask).unwrap();
    let file = recipe(
        &sandbox,
        "threshold = 16.0, ignore = { mask = \"left-ignore.pgm\" }",
    );
    let (text, why, _) = tried(&file, &folder, &["--json"]);
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{why}"));
    assert_eq!(json["cameras"][0]["failed"]["none"], 2, "{text}");
}

#[test]
fn what_cannot_run_exits_with_2_and_a_sentence() {
    let sandbox = Sandbox::new("try-cannot");
    let folder = frames(&sandbox);
    let file = recipe(&sandbox, RIGHT);
    let empty = sandbox.folder("empty");
    fs::create_dir_all(&empty).unwrap();
    let two = sandbox.path().join("two.toml");
    let of = |name: &str| format!("[[camera]]\nname = \"{name}\"\npitch = {{ }}\n");
    fs::write(&two, of("left") + &of("right")).unwrap();
    let broken = sandbox.path().join("broken.toml");
    fs::write(
        &broken,
        "[[camera]]\nname = \"left\"\npitch = { treshold = 3.0 }\n",
    )
    .unwrap();
    let missing = sandbox.path().join("missing.toml");
    for (recipe, frames, more, part) in [
        (&file, &empty, &[][..], "there are no frames in"),
        (
            &file,
            &sandbox.path().join("nowhere"),
            &[],
            "cannot be read",
        ),
        (
            &file,
            &folder,
            &["--camera", "right"],
            "the recipe has no camera right",
        ),
        (&two, &folder, &[], "name one with --camera"),
        (&broken, &folder, &[], "broken.toml:3:11: "),
        (&missing, &folder, &[], "there is no recipe"),
    ] {
        let (text, why, code) = tried(recipe, frames, more);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{why}");
        assert!(why.contains(part), "{why}");
    }
    assert!(!folder.join(".clinspect-try.json").exists());
    fs::write(folder.join("good/broken.png"), "no picture").unwrap();
    let (_, why, code) = tried(&file, &folder, &[]);
    assert_eq!(code, Some(2), "{why}");
    assert!(
        why.contains("good/broken.png cannot be read: the file is no PNG"),
        "{why}"
    );
    fs::remove_file(folder.join("good/broken.png")).unwrap();
    fs::write(folder.join(".clinspect-try.json"), "{").unwrap();
    let (_, why, code) = tried(&file, &folder, &[]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("no table of an earlier run"), "{why}");
}
