//! `--check` on good and on broken files.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use clinspect_testkit::{
    npz::{archive, u32_npy},
    tools::Sandbox,
};

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
pub fn check(sandbox: &Sandbox, file: &str) -> (String, Option<i32>) {
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
        let file = sandbox.path().join(&name);
        fs::copy(broken.join(&name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let (told, code) = check(&sandbox, &name);
        let expected = broken.join(name.replace(".toml", ".expected"));
        if std::env::var_os("CLINSPECT_WRITE_PAGES").is_some() {
            fs::write(&expected, &told).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        assert!(!told.contains("hidden"), "{told}");
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
    let packaged = folder("../packaging/clinspect-station.toml");
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

#[test]
fn files_of_windows_are_read_or_refused_with_a_sentence() {
    let sandbox = Sandbox::new("station-windows");
    let good = "[[camera]]\r\nname = \"left\"\r\nsource = \"videotestsrc\"\r\n";
    let wide = |text: &str, order: fn(u16) -> [u8; 2]| {
        let units = std::iter::once('\u{feff}').chain(text.chars());
        units.flat_map(|unit| order(unit as u16)).collect()
    };
    for (name, bytes, word, right) in [
        (
            "mark",
            format!("\u{feff}{good}").into_bytes(),
            "no mistake",
            0,
        ),
        ("le", wide(good, u16::to_le_bytes), "it is UTF-16", 1),
        ("be", wide(good, u16::to_be_bytes), "it is UTF-16", 1),
        ("latin", b"# \xE9\r\n".to_vec(), "line 1 holds", 1),
    ] {
        fs::write(sandbox.path().join(name), bytes).unwrap();
        let (told, code) = check(&sandbox, name);
        assert!(told.contains(word) && code == Some(right), "{name}: {told}");
    }
    // The place of a mistake is that of the text.
    let wrong = "\u{feff}nam = 1\r\n";
    fs::write(sandbox.path().join("wrong"), wrong).unwrap();
    let (told, _) = check(&sandbox, "wrong");
    assert!(told.contains("wrong:1:1: "), "{told}");
}

#[test]
fn listen_takes_ipv6_in_brackets_and_refuses_other_forms_with_a_sentence() {
    let sandbox = Sandbox::new("station-listen");
    let camera = "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n";
    for (listen, word) in [
        ("[::1]:0", "no mistake"),
        ("::1:8080", "[::1]:8080"),
        ("[::1]", "[::1]:8080"),
        ("[fe80::1%eth0]:8080", "without a zone"),
    ] {
        let text = format!("listen = \"{listen}\"\n{camera}");
        fs::write(sandbox.path().join("line.toml"), text).unwrap();
        let (told, _) = check(&sandbox, "line.toml");
        assert!(told.contains(word), "{listen}: {told}");
    }
}

#[test]
fn a_check_whose_reader_has_left_ends_with_its_code() {
    let sandbox = Sandbox::new("station-no-reader");
    let good = "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n";
    for (name, text, code) in [("good", good, 0), ("wrong", "nam = 1\n", 1)] {
        fs::write(sandbox.path().join(name), text).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(program());
        let command = command.args(["--check", name]).current_dir(sandbox.path());
        let done = command.stdout(writer).status().unwrap();
        assert_eq!(done.code(), Some(code), "{name}");
    }
}

#[test]
fn credentials_that_come_with_the_service_are_noted_by_a_check_and_needed_to_run() {
    let sandbox = Sandbox::new("station-credentials");
    let own = sandbox.path().join("own");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n\
         token-file = \"/run/credentials/no-such.service/token\"\n\
         [[camera]]\n\
         name = \"left\"\n\
         source = \"videotestsrc\"\n\
         publish = {{ method = \"mqtt\", uri = \"mqtt://localhost\", credentials-file = \"{}\" }}\n",
        own.join("mqtt").display()
    );
    let file = sandbox.path().join("line.toml");
    fs::write(&file, text).unwrap();
    let run = |arguments: &[&str], directory: Option<&PathBuf>| {
        let mut command = Command::new(program());
        command.args(arguments).arg(&file);
        command.env_remove("CREDENTIALS_DIRECTORY");
        command.envs(directory.map(|own| ("CREDENTIALS_DIRECTORY", own)));
        let done = command.output().unwrap();
        let told = [done.stdout, done.stderr].concat();
        (String::from_utf8(told).unwrap(), done.status.code())
    };
    let (told, code) = run(&["--check"], Some(&own));
    assert_eq!(code, Some(0), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let [token, mqtt, end] = lines[..] else {
        panic!("{told}");
    };
    let note = "note: token-file: /run/credentials/no-such.service/token is there only while the service runs";
    assert!(token.contains(&format!(":2:14: {note}")), "{told}");
    assert!(mqtt.contains(":6:75: note: credentials-file: "), "{told}");
    assert!(end.contains("no mistake"), "{told}");

    // Of another folder a missing file is a mistake. A service needs the token; what a camera lacks stops that camera.
    let (told, code) = run(&["--check"], None);
    assert_eq!(
        (told.matches("credentials-file=").count(), code),
        (1, Some(1)),
        "{told}"
    );
    let (told, code) = run(&[], Some(&own));
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("token-file: cannot read"), "{told}");
    assert!(!told.contains("credentials-file"), "{told}");
}

#[test]
fn password_in_a_source_needs_a_file_that_others_cannot_read() {
    let sandbox = Sandbox::new("station-password");
    let file = sandbox.path().join("line.toml");
    let source =
        "rtspsrc location=rtsp://camera.example.org/stream user-id=line user-pw=hidden ! decodebin";
    let text = format!("[[camera]]\nname = \"left\"\nsource = \"{source}\"\n");
    fs::write(&file, text).unwrap();
    for (mode, expected) in [(0o644, 1), (0o640, 0), (0o600, 0)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let (told, code) = check(&sandbox, "line.toml");
        assert_eq!(code, Some(expected), "{mode:o}: {told}");
        assert_eq!(
            told.contains("run: chmod o= line.toml"),
            expected == 1,
            "{told}"
        );
        assert!(!told.contains("hidden"), "{told}");
    }
}

#[test]
fn limit_above_half_of_the_range_of_the_model_in_the_file_is_refused() {
    let sandbox = Sandbox::new("station-blind");
    let mean: Vec<u32> = (0..64).map(|at| 256 * (60 + 100 * (at % 2))).collect();
    let model = archive(
        &[
            ("mean.npy", u32_npy("(8, 8)", &mean)),
            ("deviation.npy", u32_npy("(8, 8)", &[256; 64])),
            ("frames.npy", u32_npy("()", &[5])),
            ("bits.npy", u32_npy("()", &[8])),
        ],
        false,
    );
    fs::write(sandbox.path().join("model.npz"), model).unwrap();
    let checked = |limits: &str| {
        let text = format!(
            "[[camera]]\nname = \"left\"\nsource = \"videotestsrc\"\n\
             reference = {{ location = \"model.npz\", edge-tolerance = 0, {limits} }}\n"
        );
        fs::write(sandbox.path().join("station.toml"), text).unwrap();
        check(&sandbox, "station.toml")
    };
    let (told, code) = checked("threshold = 49, deviation-factor = 4");
    assert_eq!(code, Some(0), "{told}");
    for (limits, column, name, marks) in [
        (
            "threshold = 50, deviation-factor = 4",
            71,
            "threshold",
            "51.0",
        ),
        (
            "threshold = 9, deviation-factor = 50",
            93,
            "deviation-factor",
            "51.0",
        ),
    ] {
        let (told, code) = checked(limits);
        let expected = format!(
            "station.toml:4:{column}: {name} marks differences from {marks} grey levels on, but a defect of half the range of \
             what is inspected differs by 50.0; lower it, or learn it from good frames\n"
        );
        assert_eq!((told, code), (expected, Some(1)));
    }
}
