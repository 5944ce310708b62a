//! `--check` on good and on broken files.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use clinspect_testkit::tools::Sandbox;

use crate::process::program;

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.join("tests").join(name)
}

/// The files of a folder that end with `.toml`, sorted.
fn files(folder: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names
}

/// What `--check` prints, and its exit code.
fn check(sandbox: &Sandbox, file: &str) -> (String, Option<i32>) {
    let mut command = Command::new(program());
    let command = command.args(["--check", file]).current_dir(sandbox.path());
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    (text, done.status.code())
}

#[test]
fn broken_files_every_mistake_is_told_with_its_place() {
    let sandbox = Sandbox::new("station-broken");
    let broken = folder("broken");
    // Git does not keep the permissions of these.
    for (name, token, mode) in [
        ("token-short", "a".repeat(8), 0o600),
        ("token-readable", "a".repeat(32), 0o644),
    ] {
        let path = sandbox.path().join(name);
        fs::write(&path, token).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let names = files(&broken);
    assert!(names.len() >= 10, "{names:?}");
    let mut wrong = Vec::new();
    for name in names {
        fs::copy(broken.join(&name), sandbox.path().join(&name)).unwrap();
        let (told, code) = check(&sandbox, &name);
        let expected = broken.join(name.replace(".toml", ".expected"));
        if std::env::var_os("CLINSPECT_WRITE_PAGES").is_some() {
            fs::write(&expected, &told).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if told != expected || code != Some(1) {
            wrong.push(format!(
                "{name}, exit {code:?}:\n{told}\nexpected:\n{expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn good_files_have_no_mistake() {
    let sandbox = Sandbox::new("station-good");
    let packaged = folder("../../../packaging/clinspect-station.toml");
    let good = folder("good");
    let mut names = files(&good);
    for name in &names {
        fs::copy(good.join(name), sandbox.path().join(name)).unwrap();
    }
    fs::copy(packaged, sandbox.path().join("packaged.toml")).unwrap();
    names.push("packaged.toml".to_owned());
    let token = sandbox.path().join("token");
    fs::write(&token, "a".repeat(32)).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    for name in names {
        let (told, code) = check(&sandbox, &name);
        assert!(told.contains("no mistake"), "{told}");
        assert_eq!(code, Some(0), "{told}");
    }
}

#[test]
fn file_that_cannot_be_read_is_a_mistake() {
    let sandbox = Sandbox::new("station-no-file");
    let (told, code) = check(&sandbox, "missing.toml");
    assert_eq!(code, Some(1), "{told}");
    let expected = "missing.toml:1:1: the file cannot be read: No such file or directory";
    assert!(told.starts_with(expected), "{told}");
}
