//! Exactly one outcome for each frame, and `late` by the deadline, as a reader of the results sees them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

use clinspect_testkit::tools::{Sandbox, has_device, opencl_layer, write_layer_rules};
use serde_json::Value;

use crate::process::Station;

/// The published results of all cameras.
fn results(file: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(file).unwrap();
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// The outcomes by camera, after a check that each number from 1 on has exactly one.
#[track_caller]
fn outcomes(results: &[Value]) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut numbers = BTreeSet::new();
    let mut outcomes: BTreeMap<_, BTreeMap<_, u64>> = BTreeMap::new();
    for result in results {
        assert_eq!(result["epoch"], results[0]["epoch"]);
        let number = result["sequence"].as_u64().unwrap();
        assert!(numbers.insert(number), "two outcomes of {number}: {result}");
        let outcome = result["outcome"].as_str().unwrap();
        if ["pass", "fail", "none"].contains(&outcome) {
            assert_eq!(result["verdict"], outcome, "{result}");
        }
        let camera = result["camera"].as_str().unwrap();
        let of_camera = outcomes.entry(camera.to_owned()).or_default();
        *of_camera.entry(outcome.to_owned()).or_default() += 1;
    }
    let all = numbers.len() as u64;
    assert_eq!(numbers.last(), Some(&all), "a number has no outcome");
    outcomes
}

fn camera(name: &str, source: &str, file: &Path, lines: &str) -> String {
    format!(
        "[[camera]]\nname = \"{name}\"\nsource = \"videotestsrc is-live=true pattern=black {source},framerate=30/1\"\n\
         publish = {{ method = \"file\", location = \"{}\" }}\n{lines}\n",
        file.display()
    )
}

const SMALL: &str = "! video/x-raw,format=GRAY8,width=160,height=120";
const PITCH: &str = "pitch = { pitch-x = 16, min-contrast = 0 }";

#[test]
fn frames_of_every_chain_have_one_outcome_each_until_the_station_ends() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-outcomes");
    let file = sandbox.path().join("results");
    let chains = [
        ("plain", SMALL, PITCH),
        (
            "all",
            SMALL,
            "gaussian = {}\nhistogram = {}\npitch = { pitch-x = 16, min-contrast = 0 }",
        ),
        (
            "web",
            SMALL,
            "pitch = { pitch-x = 0, pitch-y = 16, multiples = [1], min-contrast = 0, line-scan = true }",
        ),
        (
            "texture",
            SMALL,
            "texture = { thresholds = [9, 9, 9, 9, 9, 9] }",
        ),
        (
            "bayer",
            "! video/x-bayer,format=rggb,width=160,height=120",
            PITCH,
        ),
    ];
    let cameras = chains.map(|(name, source, lines)| {
        let deadline = "machine = { deadline-ms = 20000 }\n";
        camera(name, source, &file, &format!("{deadline}{lines}"))
    });
    let mut station = Station::start(&sandbox, &cameras.concat());
    for (name, ..) in chains {
        station.wait_for_status(name, "running");
        station.wait_for_frames(name, 30);
    }
    let (status, _, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    let outcomes = outcomes(&results(&file));
    for (name, ..) in chains {
        let of_camera = &outcomes[name];
        let judged = ["pass", "fail", "none"].map(|of| of_camera.get(of).unwrap_or(&0));
        let judged = judged.into_iter().sum::<u64>();
        assert!(judged >= 30, "{outcomes:?}");
        // Frames have this outcome alone that found no place in the queue, because kernels were compiled, or that came after
        // the end of the stream: more on a busy PC, but never as many as those that were judged.
        assert!(
            *of_camera.get("fault").unwrap_or(&0) < judged,
            "{outcomes:?}"
        );
    }
}

#[test]
fn device_that_hangs_makes_frames_late_at_their_deadline_and_the_camera_goes_on() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-late");
    let (file, rules) = (sandbox.path().join("results"), sandbox.path().join("rules"));
    let layer = sandbox.path().join("layer.so");
    opencl_layer(&layer);
    let deadline = format!("machine = {{ deadline-ms = 50 }}\n{PITCH}");
    let cameras = camera("left", SMALL, &file, &deadline);
    let mut station = Station::start_with(&sandbox, &cameras, |command| {
        command
            .env("OPENCL_LAYERS", &layer)
            .env("CLINSPECT_LAYER_RULES", &rules)
    });
    station.wait_for_status("left", "running");
    station.wait_for_frames("left", 20);
    let late = |station: &Station| station.camera("left")["late"].as_u64().unwrap();
    // The first frames wait until the kernels are compiled.
    let before = late(&station);
    write_layer_rules(&rules, "clEnqueueNDRangeKernel 3 stall 1500\n");
    // More than the queue holds: the source goes on, and the queue drops frames.
    station.wait_until("frames are late", |station| late(station) >= before + 30);
    station.wait_for_frames("left", 20);
    let (status, _, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("device lost"), "{log}");
    let results = results(&file);
    let outcomes = &outcomes(&results)["left"];
    assert!(
        outcomes["late"] >= 30 && outcomes["pass"] >= 20,
        "{outcomes:?}"
    );
    let latencies = results.iter().filter(|of| of["outcome"] == "late");
    let mut latencies: Vec<f64> = latencies
        .map(|of| of["latency_ms"].as_f64().unwrap())
        .collect();
    latencies.sort_by(f64::total_cmp);
    let [median, most] = [
        latencies[latencies.len() / 2],
        latencies[latencies.len() - 1],
    ];
    eprintln!("late {median:.2} ms after the arrival, at most {most:.2} ms");
    // A late verdict is in the record beside its outcome.
    let late = results.iter().filter(|of| of["outcome"] == "late");
    assert!(late.clone().any(|of| of["verdict"] == "pass"), "{late:?}");
    assert!(latencies[0] >= 50.0, "{latencies:?}");
    let slack = Duration::from_millis(10).as_secs_f64() * 1e3;
    assert!(median < 50.0 + slack, "{median} ms, at most {most} ms");
}
