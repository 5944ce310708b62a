//! A damaged roller on a drawn web, through the elements.

use std::{fs, path::Path, process::Command};

use clinspect_testkit::{
    cloth::{ClothRoller, ClothSpec},
    scenes,
    tools::{Sandbox, has_device, skip},
};
use serde_json::Value;

use crate::process::Station;

const WIDTH: usize = 512;
/// Circumference, rows.
const PERIOD: f64 = 300.0;

/// A camera that sees the strips of a folder, and the tables behind it.
fn camera(sandbox: &Sandbox, roller: Option<ClothRoller>, tables: &str) -> String {
    let strips = sandbox.folder("strips");
    let spec = ClothSpec {
        width: WIDTH,
        defects: false,
        roller,
        ..ClothSpec::default()
    };
    // 20 turns, 6000 rows. The last strip is followed by the first one.
    scenes::web(&strips, spec, 7, 60, 100).unwrap();
    let [strips, results] = [strips, sandbox.path().join("results")];
    format!(
        "[[camera]]\nname = \"web\"\nsource = \"clfoldersrc location={} rate=60\"\ngaussian = {{ kernel-size = 5, sigma = 0.8, \
         line-scan = true }}\npitch = {{ pitch-x = 16.35, pitch-y = 16.35, min-area = 12, merge-distance = 3, mm-per-pixel = \
         [0.5, 0.5], line-scan = true }}\npublish = {{ method = \"file\", location = \"{}\" }}\n{tables}",
        strips.display(),
        results.display()
    )
}

/// Lines of results, as the tests of `inspectpublish` check them.
fn follows_the_schema(results: &Path) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let [script, schema] = [
        "crates/publish/tests/publish/schema.py",
        "docs/report.schema.json",
    ];
    let mut python = Command::new("/usr/bin/python3");
    let python = python.args(["-B", script, schema]).arg(results);
    let done = python.current_dir(root).output().unwrap();
    if done.status.code() == Some(77) {
        return skip(&String::from_utf8_lossy(&done.stdout));
    }
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn roll(station: &Station) -> Value {
    serde_json::from_str(&station.get("/api/cameras/web/roll")).unwrap()
}

/// 300 rows of 0.5 mm.
const KNOWN: &str = "repeats = { periods-m = [0.15] }\n";
/// The strips come again after 3 m.
const FOUND: &str = "repeats = { range-m = [0.1, 1] }\n";

#[test]
fn damaged_roller_raises_one_alarm_and_is_on_the_map() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-repeats");
    let roller = ClothRoller {
        period_px: PERIOD,
        across: 0.6,
    };
    let mut station = Station::start(&sandbox, &camera(&sandbox, Some(roller), FOUND));
    let alarm = station.wait_for_log("defects of web 0 repeat");
    for part in [
        "every 0.150 m",
        "mm from the left edge (6",
        "(diameter 48 mm)",
    ] {
        assert!(alarm.contains(part), "{alarm}");
    }
    station.wait_until("ten turns", |station| {
        roll(station)["repeats"][0]["count"].as_u64() >= Some(10)
    });
    let roll = roll(&station);
    let repeat = &roll["repeats"][0];
    let period = repeat["period_lines"].as_f64().unwrap();
    assert!((period - PERIOD).abs() < 2.0, "{repeat}");
    assert_eq!(repeat["is_active"], true);
    assert!(repeat["places"].as_array().unwrap().len() >= 10, "{repeat}");
    let across = repeat["places"][0]["across"].as_f64().unwrap();
    assert!((across - 0.61).abs() < 0.01, "{repeat}");
    let metrics = station.get("/metrics");
    for number in ["clinspect_repeats", "clinspect_repeats_total"] {
        let line = format!("{number}{{camera=\"web\"}} 1\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    let log = station.log();
    assert_eq!(log.matches("repeat: ").count(), 1, "{log}");
    station.end("TERM");
    let results = sandbox.path().join("results");
    follows_the_schema(&results);
    let results = fs::read_to_string(results).unwrap();
    let reports = results
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut with_repeats =
        reports.filter(|report: &Value| !report["inspections"][0]["repeats"].is_null());
    let last = with_repeats
        .next_back()
        .expect("a strip that tells the repeat");
    assert_eq!(last["inspections"][0]["repeats"][0]["id"], 1, "{last}");
}

#[test]
fn good_web_and_a_camera_that_does_not_look_raise_no_alarm() {
    if !has_device() {
        return;
    }
    let roller = ClothRoller {
        period_px: PERIOD,
        across: 0.6,
    };
    for (name, roller, tables) in [
        ("station-repeats-good", None, KNOWN),
        ("station-repeats-off", Some(roller), "repeats = false\n"),
    ] {
        let sandbox = Sandbox::new(name);
        let mut station = Station::start(&sandbox, &camera(&sandbox, roller, tables));
        station.wait_for_frames("web", 50);
        assert_eq!(roll(&station)["repeats"], serde_json::json!([]));
        assert!(!station.log().contains("repeat"), "{}", station.log());
    }
}
