//! Text, JSON, exit codes and the documented names.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{has_device, run};

use crate::stand::Stand;

const SECTIONS: [&str; 9] = [
    "gstreamer",
    "drivers",
    "devices",
    "self-test",
    "speed",
    "caches",
    "rights",
    "cameras",
    "network",
];
const PAGE: &str = include_str!("../../../../docs/doctor.md");

/// Free space changes from run to run.
fn without_free_space(text: &str) -> &str {
    match text.rfind(", ") {
        Some(at) if text.ends_with(" free") => &text[..at],
        _ => text,
    }
}

#[test]
fn text_and_json_say_the_same() {
    let stand = Stand::new("same");
    // The caches are there in both runs then.
    stand.told("--no-speed");
    let told = stand.told("--no-speed");
    let text = run(&mut stand.command("--no-speed"));
    assert_eq!(text.code(), told.code, "{}", text.text());
    let mut expected = Vec::new();
    for section in SECTIONS.into_iter().filter(|name| *name != "speed") {
        for [mark, text, mend] in told.lines(section) {
            let word = if mark == "fault" { "FAULT" } else { &mark };
            expected.push(format!("{word} {}", without_free_space(&text)));
            if !mend.is_empty() {
                expected.push(format!("do: {mend}"));
            }
        }
    }
    let output = text.output();
    let lines = output.lines().filter(|line| line.starts_with("  "));
    let lines: Vec<String> = lines
        .map(|line| {
            let line = without_free_space(line).trim();
            let (word, rest) = line.split_once(' ').unwrap();
            format!("{word} {}", rest.trim())
        })
        .collect();
    assert_eq!(lines, expected);
    // The last line counts.
    let count = |mark: &str| {
        expected
            .iter()
            .filter(|line| line.starts_with(mark))
            .count()
    };
    assert_eq!(told.json["faults"], count("FAULT "));
    assert_eq!(told.json["notes"], count("note "));
    assert_eq!(told.code, Some((count("FAULT ") > 0).into()));
}

#[test]
fn page_names_every_section_and_field() {
    let told = Stand::new("page").told("--no-speed");
    let mut names: Vec<String> = SECTIONS.map(str::to_owned).into();
    for section in SECTIONS.into_iter().filter(|name| *name != "speed") {
        let data = told.data(section);
        let entry = data.get(0).unwrap_or(data);
        names.extend(
            entry
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone()),
        );
    }
    names.extend(
        [
            "cameras_at_30",
            "frames_per_second",
            "state",
            "width",
            "height",
        ]
        .map(str::to_owned),
    );
    for name in names {
        assert!(
            PAGE.contains(&format!("`{name}`")),
            "docs/doctor.md lacks `{name}`"
        );
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let stand = Stand::new("usage");
    for arguments in ["--speed", "--limit 0", "--device", "probe nothing"] {
        let done = run(&mut stand.command(arguments));
        assert_eq!(done.code(), Some(2), "{arguments}: {}", done.text());
        assert_eq!(done.output(), "", "{arguments}");
    }
    let help = run(&mut stand.command("--help")).succeeded();
    for option in ["--json", "--no-speed", "--device", "--limit"] {
        assert!(help.output().contains(option), "{option}");
        assert!(PAGE.contains(option), "docs/doctor.md lacks {option}");
    }
    assert!(!help.output().contains("COMMAND"), "{}", help.output());
}

#[test]
fn plugins_that_are_not_found_are_named_with_their_folder() {
    let stand = Stand::new("no-plugin").with("GST_PLUGIN_PATH", "/nowhere/plugins");
    let told = stand.told("--no-speed");
    assert_eq!(told.code, Some(1));
    told.says(
        "gstreamer",
        "fault",
        &["GST_PLUGIN_PATH names /nowhere/plugins"],
    );
    // The program lies beside the plugins in these tests.
    told.says(
        "gstreamer",
        "fault",
        &["clpitchthreshold", "export GST_PLUGIN_PATH=/"],
    );
    told.says("gstreamer", "note", &["inspectpublish"]);
    if has_device() {
        told.says(
            "self-test",
            "note",
            &["not tried", "clreference, clsurface, cltexture"],
        );
        assert!(told.states().iter().all(|state| *state == "not-tried"));
    }
}

#[test]
fn plugin_that_cannot_be_loaded_is_named() {
    let stand = Stand::new("blacklist");
    let plugin = stand.sandbox.path().join("plugins/libgstclinspect.so");
    fs::remove_file(&plugin).unwrap();
    let library = stand.library("int this_is_no_plugin(void) { return 1; }");
    fs::rename(library, &plugin).unwrap();
    let told = stand.told("--no-speed");
    assert_eq!(told.code, Some(1));
    told.says(
        "gstreamer",
        "fault",
        &["refuses to load", "libgstclinspect.so", "registry."],
    );
}

/// A stand whose `arv-tool-0.8` is this shell script.
fn with_tool(name: &str, script: &str) -> Stand {
    let stand = Stand::new(name);
    let tools = stand.sandbox.folder("tools");
    let tool = tools.join("arv-tool-0.8");
    fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    stand.with("PATH", format!("{}:{path}", tools.display()))
}

#[test]
fn cameras_of_aravis_are_listed() {
    let stand = with_tool(
        "cameras",
        "echo 'Aravis-Fake-GV01 (127.0.0.1)'; echo 'Maker-U-7 (USB3)'",
    );
    let told = stand.with_drivers(&[]).told("--no-speed");
    told.says(
        "cameras",
        "ok",
        &["aravissrc camera-name=\"Aravis-Fake-GV01\""],
    );
    told.says("cameras", "ok", &["aravissrc camera-name=\"Maker-U-7\""]);
    assert_eq!(told.data("cameras")[0]["name"], "Aravis-Fake-GV01");
}

#[test]
fn no_plugin_for_cameras_is_no_fault_of_the_search() {
    let stand = Stand::new("no-provider");
    let empty = stand.sandbox.folder("empty");
    let stand = stand.with("GST_PLUGIN_SYSTEM_PATH_1_0", empty);
    let told = stand.with_drivers(&[]).told("--no-speed");
    told.says("gstreamer", "note", &["v4l2src", "sudo apt install"]);
    told.has_no("cameras", "fault");
}

#[test]
fn search_for_cameras_that_hangs_is_ended() {
    let stand = with_tool("hung-cameras", "sleep 600");
    let began = Instant::now();
    let told = stand.with_drivers(&[]).told("--no-speed --limit 10");
    assert!(
        began.elapsed() < Duration::from_secs(25),
        "{:?}",
        began.elapsed()
    );
    told.says(
        "cameras",
        "fault",
        &["arv-tool-0.8", "did not end within 10 s"],
    );
}
