//! The numbers of the station in the text format of Prometheus, version 0.0.4.
//!
//! Written by hand: the format is a line per number, and the numbers are counted in
//! [`run::state`] already, so a crate for metrics would hold them a second time.

use std::{
    fmt::{Display, Write},
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use clinspect_results::{
    NoneReason,
    report::{Progress, Report},
};
use config::recipes::{Recipes, SWITCH_BUCKETS};
use machine::{
    answer::{Machine, Outcome},
    modbus::Modbus,
};
use run::state::{Camera, Counters, LATENCY_BUCKETS, Status, Trouble, VERDICTS};

/// A number that a camera has once.
struct Number {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Counters) -> &AtomicU64,
}

const NUMBERS: [Number; 13] = [
    Number {
        name: "clinspect_frames_total",
        kind: "counter",
        help: "Frames that were inspected.",
        value: |of| &of.frames,
    },
    Number {
        name: "clinspect_corrupted_frames_total",
        kind: "counter",
        help: "Frames that their source flagged as corrupted.",
        value: |of| &of.corrupted,
    },
    Number {
        name: "clinspect_repeats",
        kind: "gauge",
        help: "Repeats of the newest web that have not ended.",
        value: |of| &of.repeats_now,
    },
    Number {
        name: "clinspect_repeats_total",
        kind: "counter",
        help: "Repeats that were found on webs.",
        value: |of| &of.repeats,
    },
    Number {
        name: "clinspect_lost_buffers_total",
        kind: "counter",
        help: "Buffers that the source lost.",
        value: |of| &of.lost,
    },
    Number {
        name: "clinspect_restarts_total",
        kind: "counter",
        help: "Restarts of the pipeline.",
        value: |of| &of.restarts,
    },
    Number {
        name: "clinspect_publish_queue_length",
        kind: "gauge",
        help: "Results that wait to be published.",
        value: |of| &of.publish_queue,
    },
    Number {
        name: "clinspect_publish_dropped_total",
        kind: "counter",
        help: "Results that were not published because the queue was full.",
        value: |of| &of.publish_dropped,
    },
    Number {
        name: "clinspect_publish_errors_total",
        kind: "counter",
        help: "Attempts to publish that failed.",
        value: |of| &of.publish_errors,
    },
    Number {
        name: "clinspect_recording_queue_length",
        kind: "gauge",
        help: "Frames that wait to be recorded.",
        value: |of| &of.recording_queue,
    },
    Number {
        name: "clinspect_recorded_frames_total",
        kind: "counter",
        help: "Frames that were recorded: failed ones, and those before and after them.",
        value: |of| &of.recorded,
    },
    Number {
        name: "clinspect_recording_dropped_total",
        kind: "counter",
        help: "Frames that were not recorded because the queue was full.",
        value: |of| &of.recording_dropped,
    },
    Number {
        name: "clinspect_recording_errors_total",
        kind: "counter",
        help: "Frames that could not be recorded.",
        value: |of| &of.recording_errors,
    },
];

/// All numbers. Labels hold names of cameras, classes and devices; nothing of the file's secrets.
pub fn text(cameras: &[Arc<Camera>], recipes: Option<&Recipes>) -> String {
    let mut page = Page::default();
    for number in NUMBERS {
        page.family(number.name, number.kind, number.help);
        for camera in cameras {
            let value = (number.value)(&camera.counters).load(Relaxed);
            page.sample("", &[("camera", &camera.name)], value);
        }
    }
    results(&mut page, cameras);
    outcomes(&mut page, cameras);
    lines(&mut page, cameras);
    newest(&mut page, cameras);
    latency(&mut page, cameras);
    state(&mut page, cameras);
    if let Some(recipes) = recipes {
        of_recipes(&mut page, recipes);
    }
    process(&mut page);
    page.text
}

fn results(page: &mut Page, cameras: &[Arc<Camera>]) {
    page.family(
        "clinspect_verdicts_total",
        "counter",
        "Frames by verdict: pass, fail, none.",
    );
    for camera in cameras {
        for (verdict, count) in VERDICTS.iter().zip(&camera.counters.verdicts) {
            page.sample(
                "",
                &[("camera", &camera.name), ("verdict", verdict)],
                count.load(Relaxed),
            );
        }
    }
    page.family(
        "clinspect_none_total",
        "counter",
        "Frames with the verdict none by reason: training, blind-limit, unplaced, nothing-judged.",
    );
    for camera in cameras {
        for (reason, count) in NoneReason::ALL.iter().zip(&camera.counters.none_reasons) {
            page.sample(
                "",
                &[("camera", &camera.name), ("reason", reason.name())],
                count.load(Relaxed),
            );
        }
    }
    page.family(
        "clinspect_defects_total",
        "counter",
        "Listed defects by class.",
    );
    for camera in cameras {
        let defects = camera.counters.defects.lock();
        for (class, count) in &*defects {
            page.sample("", &[("camera", &camera.name), ("class", class)], count);
        }
    }
}

/// A number of a camera's newest result, if it has the number.
struct ResultNumber {
    name: &'static str,
    help: &'static str,
    value: fn(&Report) -> Option<f64>,
}

const NEWEST: [ResultNumber; 6] = [
    ResultNumber {
        name: "clinspect_learning_missing_frames",
        help: "Good frames that the learning of limits still needs; 0 if nothing is learned.",
        value: |report| {
            let missing = |of: Progress| of.all.saturating_sub(of.frames);
            Some(report.learning().map_or(0, missing).into())
        },
    },
    ResultNumber {
        name: "clinspect_align_rotation_degrees",
        help: "By how much the newest frame is turned clockwise, compared with the model.",
        value: |report| Some(report.alignment()?.rotation_degrees),
    },
    ResultNumber {
        name: "clinspect_align_scale",
        help: "How much larger than the model the newest frame shows the object.",
        value: |report| Some(report.alignment()?.scale),
    },
    ResultNumber {
        name: "clinspect_align_score",
        help: "Correlation of the newest frame with the model, 0 to 1.",
        value: |report| Some(report.alignment()?.match_score),
    },
    ResultNumber {
        name: "clinspect_align_misfit",
        help: "Difference of the newest frame from the model after the alignment, grey levels.",
        value: |report| Some(report.alignment()?.misfit),
    },
    ResultNumber {
        name: "clinspect_largest_local_shift_pixels",
        help: "Longest local shift of the newest frame.",
        value: |report| Some(report.alignment()?.largest_local_shift),
    },
];

fn newest(page: &mut Page, cameras: &[Arc<Camera>]) {
    for number in NEWEST {
        page.family(number.name, "gauge", number.help);
        for camera in cameras {
            let report = camera.newest_report();
            if let Some(value) = report.and_then(|report| (number.value)(&report)) {
                page.sample("", &[("camera", &camera.name)], value);
            }
        }
    }
}

fn outcomes(page: &mut Page, cameras: &[Arc<Camera>]) {
    let help = "Frames by their outcome for the machine: pass, fail, none, late, lost, fault.";
    page.family("clinspect_outcomes_total", "counter", help);
    for camera in cameras {
        for (outcome, count) in Outcome::ALL.iter().zip(camera.machine.outcomes()) {
            let labels = [
                ("camera", camera.name.as_str()),
                ("outcome", outcome.name()),
            ];
            page.sample("", &labels, count);
        }
    }
    let help = "Frames that had no result at their deadline.";
    page.family("clinspect_deadline_misses_total", "counter", help);
    for camera in cameras {
        let late = camera.machine.outcomes()[Outcome::Late as usize];
        page.sample("", &[("camera", &camera.name)], late);
    }
}

fn lines(page: &mut Page, cameras: &[Arc<Camera>]) {
    type InForce = fn(&Machine) -> Option<Result<(), String>>;
    let lines: [(_, _, InForce); 2] = [
        (
            "clinspect_output_in_force",
            "1 if outcomes reach the camera's output, 0 if its line cannot be set or the camera does not run.",
            Machine::is_output_in_force,
        ),
        (
            "clinspect_input_in_force",
            "1 if edges at the camera's input are read, 0 if its line cannot be read.",
            Machine::is_input_in_force,
        ),
    ];
    for (name, help, is_in_force) in lines {
        page.family(name, "gauge", help);
        for camera in cameras {
            if let Some(in_force) = is_in_force(&camera.machine) {
                let value = u8::from(in_force.is_ok());
                page.sample("", &[("camera", &camera.name)], value);
            }
        }
    }
}

fn latency(page: &mut Page, cameras: &[Arc<Camera>]) {
    let help = "Time from the arrival of a frame to its result.";
    page.family("clinspect_latency_seconds", "histogram", help);
    for camera in cameras {
        let (name, counters) = (&camera.name, &camera.counters);
        let ends = LATENCY_BUCKETS.iter().map(f64::to_string);
        let mut total = 0;
        for (end, count) in ends.chain(["+Inf".into()]).zip(&counters.latency) {
            total += count.load(Relaxed);
            page.sample("_bucket", &[("camera", name), ("le", &end)], total);
        }
        let sum = counters.latency_sum.load(Relaxed) as f64 / 1e6;
        page.sample("_sum", &[("camera", name)], sum);
        page.sample("_count", &[("camera", name)], total);
    }
}

fn state(page: &mut Page, cameras: &[Arc<Camera>]) {
    page.family(
        "clinspect_camera_up",
        "gauge",
        "1 while frames of the camera are inspected.",
    );
    for camera in cameras {
        let is_up = *camera.status.borrow() == Status::Running;
        page.sample("", &[("camera", &camera.name)], u8::from(is_up));
    }
    let help = "1 for the trouble that stops the camera, if any.";
    page.family("clinspect_camera_trouble", "gauge", help);
    for camera in cameras {
        let now = match *camera.status.borrow() {
            Status::Failed(trouble, _) => Some(trouble),
            Status::Starting | Status::Running => None,
        };
        for trouble in Trouble::ALL {
            let name = trouble.to_string();
            let labels = [("camera", camera.name.as_str()), ("trouble", &name)];
            page.sample("", &labels, u8::from(now == Some(trouble)));
        }
    }
    let help = "1 while results can be published, also of a camera that publishes none.";
    page.family("clinspect_publish_connected", "gauge", help);
    for camera in cameras {
        let is_connected = camera.counters.publish_connected.load(Relaxed);
        page.sample("", &[("camera", &camera.name)], u8::from(is_connected));
    }
    let help = "1 while the folder or the disk refuses recordings.";
    page.family("clinspect_recording_stopped", "gauge", help);
    for camera in cameras {
        let is_stopped = camera.counters.recording_stopped.load(Relaxed);
        page.sample("", &[("camera", &camera.name)], u8::from(is_stopped));
    }
    page.family(
        "clinspect_device_info",
        "gauge",
        "The OpenCL device that inspects; always 1.",
    );
    for camera in cameras {
        // Not held while the page is written: the pipelines take this lock for each frame.
        let device = camera.history().device.clone();
        if let Some(device) = device {
            page.sample("", &[("camera", &camera.name), ("device", &device)], 1);
        }
    }
    page.family(
        "clinspect_build_info",
        "gauge",
        "The version of the station; always 1.",
    );
    page.sample("", &[("version", env!("CARGO_PKG_VERSION"))], 1);
}

fn of_recipes(page: &mut Page, recipes: &Recipes) {
    let help = "The recipe in force; always 1.";
    page.family("clinspect_recipe_info", "gauge", help);
    if let Some(active) = &recipes.in_force().borrow().active {
        let labels = [("recipe", active.name.as_str()), ("hash", &active.hash)];
        page.sample("", &labels, 1);
    }
    let numbers = recipes.numbers();
    let help = "Switches of the recipe by result: done, failed.";
    page.family("clinspect_recipe_switches_total", "counter", help);
    for (result, count) in [("done", &numbers.done), ("failed", &numbers.failed)] {
        page.sample("", &[("result", result)], count.load(Relaxed));
    }
    let help = "From the wish for a recipe to the first frames that all cameras judge by it.";
    page.family("clinspect_recipe_switch_seconds", "histogram", help);
    let mut total = 0;
    let ends = SWITCH_BUCKETS.map(|end| end.to_string()).into_iter();
    for (end, count) in ends.chain(["+Inf".to_owned()]).zip(&numbers.buckets) {
        total += count.load(Relaxed);
        page.sample("_bucket", &[("le", &end)], total);
    }
    page.sample("_sum", &[], numbers.sum.load(Relaxed) as f64 / 1e6);
    page.sample("_count", &[], total);
}

/// The numbers of the server for PLCs.
pub fn of_plcs(modbus: &Modbus) -> String {
    let mut page = Page::default();
    let numbers = &modbus.numbers;
    let help = "Whether PLCs can connect: the address can be used.";
    page.family("clinspect_modbus_listening", "gauge", help);
    page.sample("", &[], u8::from(modbus.is_reachable()));
    let help = "Connections of PLCs now.";
    page.family("clinspect_modbus_connections", "gauge", help);
    page.sample("", &[], numbers.connections.load(Relaxed));
    for (name, help, count) in [
        (
            "clinspect_modbus_refused_connections_total",
            "Connections that were closed at once: from elsewhere, or too many.",
            &numbers.refused,
        ),
        (
            "clinspect_modbus_requests_total",
            "Requests of PLCs that were answered.",
            &numbers.requests,
        ),
        (
            "clinspect_modbus_exceptions_total",
            "Requests of PLCs that were answered with an exception.",
            &numbers.exceptions,
        ),
    ] {
        page.family(name, "counter", help);
        page.sample("", &[], count.load(Relaxed));
    }
    let help = "Whether the PLC wants the camera's results, and its heartbeat goes on.";
    page.family("clinspect_modbus_enabled", "gauge", help);
    for shown in modbus.shown() {
        let is_enabled = u8::from(shown.is_enabled);
        page.sample("", &[("camera", &shown.camera)], is_enabled);
    }
    page.text
}

/// Numbers of the process with the names that Prometheus' clients use. Values that Linux does
/// not provide are left out.
fn process(page: &mut Page) {
    if let Some(bytes) = resident_bytes() {
        let help = "Resident memory of the process.";
        page.family("process_resident_memory_bytes", "gauge", help);
        page.sample("", &[], bytes);
    }
    if let Some(files) = fs::read_dir("/proc/self/fd").ok().map(Iterator::count) {
        page.family(
            "process_open_fds",
            "gauge",
            "Open file descriptors of the process.",
        );
        page.sample("", &[], files);
    }
    if let Some(start) = start_time() {
        let help = "Start of the process, seconds since 1970.";
        page.family("process_start_time_seconds", "gauge", help);
        page.sample("", &[], start);
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn start_time() -> Option<f64> {
    // Linux reports times of processes in hundredths of a second on every machine.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything. Field 22 is the start after the boot; the text
    // behind the name begins with field 3.
    let (_, fields) = stat.rsplit_once(')')?;
    let after_boot: f64 = fields.split_whitespace().nth(22 - 3)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()?
        .as_secs_f64();
    Some(now - uptime + after_boot / TICKS)
}

/// The text under construction.
#[derive(Default)]
struct Page {
    text: String,
    /// The metric whose samples follow.
    family: &'static str,
}

impl Page {
    /// Begins a metric.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        // Writing into a String does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A number of the current metric.
    fn sample(&mut self, end: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{}{end}", self.family);
        for (index, (name, value)) in labels.iter().enumerate() {
            let begin = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{begin}{name}=\"{}\"", escaped(value));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('"', "\\\"")
}
