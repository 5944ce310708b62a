//! The numbers for Prometheus, and the files for Grafana and Prometheus that use them.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use clinspect_results::{Alignment, DefectResult, report::Report};
use clinspect_testkit::tools;
use machine::{answer::Line, modbus::Modbus, output::Output};
use plan::{ModbusSettings, OutputSettings, Wire};
use run::state::{Camera, Status, Trouble};
use web::metrics;

use crate::support::camera;

/// Class names that a file of rules may hold, and worse.
const HOSTILE: [&str; 7] = [
    "spot",
    "a \"quoted\" name",
    "back\\slash\\",
    "line\nbreak",
    "} 7\nclinspect_frames_total{camera=\"left\"} 9",
    "Köper 緯糸 🧵",
    "",
];

/// Cameras in all states, with numbers.
fn cameras() -> Vec<Arc<Camera>> {
    let left = camera("left");
    left.counters.frames.store(1200, Relaxed);
    for (verdict, count) in left.counters.verdicts.iter().zip([1100, 90, 10]) {
        verdict.store(count, Relaxed);
    }
    for (index, bucket) in left.counters.latency.iter().enumerate() {
        bucket.store(index as u64, Relaxed);
    }
    left.counters.latency_sum.store(1_234_567, Relaxed);
    left.counters.publish_connected.store(false, Relaxed);
    left.counters.recording_stopped.store(true, Relaxed);
    for (class, count) in HOSTILE.iter().zip(1..) {
        left.counters.defects.lock().insert((*class).into(), count);
    }
    let result = DefectResult {
        alignment: Some(Alignment {
            match_score: 0.75,
            transform: [0.0, 0.0, -2.0, 0.0, 2.0, 0.0],
            misfit: 2.5,
            largest_local_shift: 0.125,
            ..Alignment::default()
        }),
        learning: Some([7, 24]),
        ..DefectResult::default()
    };
    let mut report = Report::clone(&crate::support::report(1, "pass"));
    report.inspections.push((&result).into());
    left.report.send_replace(Some(Arc::new(report)));
    let machine = &left.machine;
    machine.set_input(Some(Arc::default()));
    let output = OutputSettings {
        wire: Wire::Camera {
            user_output: "UserOutput0".to_owned(),
            line: None,
        },
        pulse: Duration::from_millis(20),
        delay: None,
    };
    let output = Output::start(output, "left", Box::new(drop)).unwrap();
    machine.set_output(Some(Arc::new(output)));
    left.history().device = Some("pthread-\"odd\\name\"".into());
    let troubles = [
        Trouble::CameraLost,
        Trouble::DeviceLost,
        Trouble::SettingsRefused,
    ];
    let failed = troubles.into_iter().enumerate().map(|(index, trouble)| {
        let camera = camera(&format!("failed-{index}"));
        camera
            .status
            .send_replace(Status::Failed(trouble, "a sentence".into()));
        camera
    });
    let starting = camera("starting");
    starting.status.send_replace(Status::Starting);
    [left, starting].into_iter().chain(failed).collect()
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|other| other == line)
}

#[test]
fn each_number_has_its_line() {
    let text = metrics::text(&cameras(), None);
    for line in [
        "clinspect_frames_total{camera=\"left\"} 1200",
        "clinspect_verdicts_total{camera=\"left\",verdict=\"pass\"} 1100",
        "clinspect_verdicts_total{camera=\"left\",verdict=\"fail\"} 90",
        "clinspect_verdicts_total{camera=\"left\",verdict=\"none\"} 10",
        "clinspect_defects_total{camera=\"left\",class=\"spot\"} 1",
        "clinspect_defects_total{camera=\"left\",class=\"a \\\"quoted\\\" name\"} 2",
        "clinspect_defects_total{camera=\"left\",class=\"back\\\\slash\\\\\"} 3",
        "clinspect_defects_total{camera=\"left\",class=\"line\\nbreak\"} 4",
        // 0 + 1 + … + 10 frames; the last bucket has no upper end.
        "clinspect_latency_seconds_bucket{camera=\"left\",le=\"0.002\"} 0",
        "clinspect_latency_seconds_bucket{camera=\"left\",le=\"0.01\"} 3",
        "clinspect_latency_seconds_bucket{camera=\"left\",le=\"2\"} 45",
        "clinspect_latency_seconds_bucket{camera=\"left\",le=\"+Inf\"} 55",
        "clinspect_latency_seconds_count{camera=\"left\"} 55",
        "clinspect_latency_seconds_sum{camera=\"left\"} 1.234567",
        "clinspect_publish_connected{camera=\"left\"} 0",
        "clinspect_publish_connected{camera=\"starting\"} 1",
        "clinspect_recording_stopped{camera=\"left\"} 1",
        "clinspect_recording_stopped{camera=\"starting\"} 0",
        "clinspect_camera_up{camera=\"left\"} 1",
        "clinspect_input_in_force{camera=\"left\"} 1",
        // Its camera has not come.
        "clinspect_output_in_force{camera=\"left\"} 0",
        "clinspect_camera_up{camera=\"starting\"} 0",
        "clinspect_camera_up{camera=\"failed-1\"} 0",
        "clinspect_camera_trouble{camera=\"failed-1\",trouble=\"device lost\"} 1",
        "clinspect_camera_trouble{camera=\"failed-1\",trouble=\"camera lost\"} 0",
        "clinspect_camera_trouble{camera=\"left\",trouble=\"camera lost\"} 0",
        "clinspect_learning_missing_frames{camera=\"left\"} 17",
        "clinspect_align_rotation_degrees{camera=\"left\"} 90",
        "clinspect_align_scale{camera=\"left\"} 2",
        "clinspect_align_score{camera=\"left\"} 0.75",
        "clinspect_align_misfit{camera=\"left\"} 2.5",
        "clinspect_largest_local_shift_pixels{camera=\"left\"} 0.125",
        "clinspect_device_info{camera=\"left\",device=\"pthread-\\\"odd\\\\name\\\"\"} 1",
    ] {
        assert!(has_line(&text, line), "{line} is missing in\n{text}");
    }
    // A camera without results has no number of its newest one.
    assert!(!text.contains("clinspect_align_misfit{camera=\"starting\"}"));
    assert!(!text.contains("clinspect_learning_missing_frames{camera=\"starting\"}"));
    // The hostile class has become no number of its own.
    let left = text
        .lines()
        .filter(|line| line.starts_with("clinspect_frames_total{camera=\"left\"}"));
    assert_eq!(left.count(), 1);
}

#[test]
fn the_process_is_measured() {
    let text = metrics::text(&[], None);
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.unwrap_or_else(|| panic!("{name} is missing in\n{text}"));
        value.trim().parse::<f64>().unwrap()
    };
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let age = now.as_secs_f64() - value("process_start_time_seconds ");
    assert!((-0.1..600.0).contains(&age), "the process is {age} s old");
    let memory = value("process_resident_memory_bytes ");
    assert!((1e6..4e9).contains(&memory), "{memory} bytes");
    assert!(value("process_open_fds ") >= 3.0);
}

/// Runs `promtool` with these arguments and this input; it must have nothing to say.
#[track_caller]
fn promtool(arguments: &[&str], input: &str) {
    if !tools::exists("promtool") {
        return tools::skip("promtool is missing: install the package prometheus");
    }
    let child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn promtool_accepts_the_numbers() {
    promtool(&["check", "metrics"], &metrics::text(&cameras(), None));
    promtool(&["check", "metrics"], &metrics::text(&[], None));
    let settings = ModbusSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        allow_from: Vec::new(),
        allow_commands: true,
        heartbeat_timeout: Duration::from_secs(1),
    };
    let cameras = ["left".to_owned()].into_iter();
    let modbus = Modbus::new(settings, cameras, &Line::new().unwrap(), None);
    modbus.numbers.requests.store(70, Relaxed);
    let text = metrics::text(&[], None) + &metrics::of_plcs(&modbus);
    promtool(&["check", "metrics"], &text);
    assert!(has_line(&text, "clinspect_modbus_requests_total 70"));
    assert!(has_line(
        &text,
        "clinspect_modbus_enabled{camera=\"left\"} 0"
    ));
}

/// The names of our numbers in a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("clinspect_") || word.starts_with("process_"))
}

/// The names of all numbers.
fn known() -> BTreeSet<String> {
    let text = metrics::text(&cameras(), None);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| Some(line.split(['{', ' ']).next()?.to_owned()))
        .collect()
}

fn packaged(name: &str) -> String {
    let file = format!("{}/packaging/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every query in a JSON value: of panels, and of variables.
fn queries(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    serde_json::Value::String(text) if name == "expr" || name == "definition" => {
                        found.push(text.clone());
                    }
                    value => queries(value, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_numbers_that_exist() {
    let dashboard: serde_json::Value =
        serde_json::from_str(&packaged("grafana-clinspect.json")).unwrap();
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    let known = known();
    let mut used = BTreeSet::new();
    for query in &found {
        assert!(names(query).count() > 0, "no number in {query}");
        for name in names(query) {
            assert!(known.contains(name), "{name} does not exist: {query}");
            used.insert(name.to_owned());
        }
    }
    // A syntax error in a query is one in a rule too. `label_values` is a function of Grafana.
    let rules: Vec<_> = found
        .iter()
        .filter(|query| !query.contains("label_values"))
        .map(|query| query.replace("$__rate_interval", "1m"))
        .zip(0..)
        .map(|(query, number)| serde_json::json!({"record": format!("q{number}"), "expr": query}))
        .collect();
    let rules = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let sandbox = tools::Sandbox::new("record-dashboard");
    let file = sandbox.path().join("rules.yml");
    std::fs::write(&file, rules.to_string()).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");
    let ids: Vec<_> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|panel| &panel["id"])
        .collect();
    let mut different = ids.clone();
    different.sort_by_key(|id| id.as_u64());
    different.dedup();
    assert_eq!(different.len(), ids.len(), "two panels have the same id");
    assert!(
        used.len() >= 15,
        "the dashboard shows {} numbers only",
        used.len()
    );
}

#[test]
fn the_alerts_ask_for_numbers_that_exist_and_fire() {
    let rules = packaged("prometheus-clinspect-rules.yml");
    let known = known();
    for name in rules
        .lines()
        .filter(|line| line.contains("expr:"))
        .flat_map(names)
    {
        assert!(known.contains(name), "{name} does not exist");
    }
    let folder = format!("{}/packaging", env!("CARGO_MANIFEST_DIR"));
    promtool(
        &[
            "check",
            "rules",
            &format!("{folder}/prometheus-clinspect-rules.yml"),
        ],
        "",
    );
    let cases = format!("{}/tests/record/alerts.yml", env!("CARGO_MANIFEST_DIR"));
    promtool(&["test", "rules", &cases], "");
}
