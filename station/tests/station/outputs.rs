//! An output of a simulated camera, and a camera that the station triggers.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_aravis::Camera;
use clinspect_testkit::{
    camera::{self as simulated_camera, inside, visible},
    tools::Sandbox,
};
use config::file::Config;
use gst::prelude::*;
use machine::{
    answer::{Answer, Line as Answers, Outcome},
    output::{CameraLine, Line},
};
use plan::Trigger;
use run::{state::Status, supervisor::Supervisor};

use crate::{
    process::program,
    simulated::{self, gige_camera, station, trigger, user_output},
};

/// Nothing of the simulated camera's picture is a defect, or everything.
const PASSES: &str = "pitch-x = 16, min-contrast = 0, threshold = 255";
const FAILS: &str = "pitch-x = 16, min-contrast = 0, threshold = 1";

fn camera(pulse_ms: u32, pitch: &str) -> String {
    let keys = format!(
        "caps = \"video/x-raw, format=GRAY8, width=320, height=200\"\nsilence = 1\n\
         output = {{ kind = \"camera-line\", pulse-ms = {pulse_ms} }}\npitch = {{ {pitch} }}"
    );
    gige_camera("left", &keys)
}

/// How often the output became active within this time, and the share of the time in which it was active.
fn watch(time: Duration) -> (u32, f64) {
    let begin = Instant::now();
    let (mut edges, mut active, mut looks) = (0, 0, 0);
    let mut before = user_output().unwrap();
    while begin.elapsed() < time {
        let now = user_output().unwrap();
        edges += u32::from(now && !before);
        active += u32::from(now);
        looks += 1;
        before = now;
        sleep(Duration::from_millis(1));
    }
    (edges, f64::from(active) / f64::from(looks))
}

#[track_caller]
fn wait_for_output(is_active: bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while user_output() != Some(is_active) {
        assert!(Instant::now() < until, "the output is not {is_active}");
        sleep(Duration::from_millis(5));
    }
}

/// What the command `rest` does with this file: its exit code, its time and its log.
fn rest(file: &Path) -> (Option<i32>, Duration, String) {
    let begin = Instant::now();
    let line = format!("exec {} rest {}", program(), file.display());
    let done = visible(&mut Command::new("setpriv"), &line).output();
    let done = done.unwrap();
    let log = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), begin.elapsed(), log)
}

#[test]
fn output_of_a_camera_has_a_pulse_for_each_frame_that_passes_while_frames_flow() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-output");
    let _camera = simulated::with_output(&sandbox);
    let mut station = station(&sandbox, &camera(15, PASSES));
    station.wait_for_status("left", "running");
    station.wait_for_frames("left", 10);
    let frames = |station: &crate::process::Station| {
        let camera = station.camera("left");
        ["pass", "fail", "none"].map(|of| camera[of].as_u64().unwrap())
    };
    let before = frames(&station);
    let (edges, share) = watch(Duration::from_secs(4));
    let [pass, fail, none] = frames(&station);
    assert_eq!((fail, none), (0, 0));
    let passed = pass - before[0];
    println!("{edges} pulses for {passed} frames; active for {share:.2} of the time");
    // A frame at each end. Two pulses look like one if nobody looked in the rest between them.
    let edges = u64::from(edges);
    assert!(passed >= 40 && edges <= passed + 2 && 2 * edges >= passed);
    assert!((0.15..0.65).contains(&share), "{share}");

    station.reload(&camera(15, FAILS));
    station.wait_for_log("the new settings are in force");
    let (edges, share) = watch(Duration::from_secs(2));
    assert_eq!((edges, share), (0, 0.0));
    assert!(frames(&station)[1] > 20);
    station.end("TERM");
}

#[test]
fn output_rests_at_the_end_of_the_station_and_when_the_camera_was_lost() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-output-end");
    let simulated = simulated::with_output(&sandbox);
    // Each frame passes, so the pulse never ends.
    let mut running = station(&sandbox, &camera(10_000, PASSES));
    running.wait_for_status("left", "running");
    wait_for_output(true);
    drop(simulated);
    running.wait_for_log("the output cannot be set: ");
    running.wait_for_status("left", "camera-lost");

    let _simulated = simulated::with_output(&sandbox);
    wait_for_output(false);
    running.wait_for_status("left", "running");
    wait_for_output(true);
    let (status, took, log) = running.end("TERM");
    assert_eq!(user_output(), Some(false), "{log}");
    assert_eq!(status.code(), Some(0), "{log}");
    println!("the station ended within {took:?}");
}

#[test]
fn output_of_a_station_that_was_killed_in_a_pulse_is_set_to_rest_by_the_command() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-output-killed");
    let _camera = simulated::with_output(&sandbox);
    let running = station(&sandbox, &camera(10_000, PASSES));
    let file = running.file.clone();
    wait_for_output(true);
    running.end("KILL");
    sleep(Duration::from_millis(300));
    assert_eq!(user_output(), Some(true), "nobody set it to rest");
    let (code, took, log) = rest(&file);
    println!("at rest after {took:?}: {log}");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("camera left: the output is at rest"), "{log}");
    assert_eq!(user_output(), Some(false));
}

#[test]
fn rest_without_the_camera_fails_in_bounded_time() {
    let Some(_network) = simulated_camera::network() else {
        return;
    };
    let sandbox = Sandbox::new("station-rest-alone");
    let file = sandbox.path().join("station.toml");
    fs::write(&file, camera(20, PASSES)).unwrap();
    let (code, took, log) = rest(&file);
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains("ERROR camera left: the output may still be active: "),
        "{log}"
    );
    assert!(took < Duration::from_secs(13), "{took:?}");
}

#[test]
fn time_of_a_write_while_frames_flow() {
    let Some(_network) = simulated_camera::network() else {
        return;
    };
    let sandbox = Sandbox::new("station-output-time");
    let _camera = simulated::with_output(&sandbox);
    sleep(Duration::from_millis(300));
    println!("{}", inside("outputs::inside_time_of_a_write", &[]));
}

#[test]
#[ignore = "the test above runs it"]
fn inside_time_of_a_write() {
    gst::init().unwrap();
    let pipeline = gst::parse::launch(
        "aravissrc name=camera camera-name=Aravis-Fake-GV01 ! video/x-raw,width=320,height=200 ! fakesink name=sink",
    )
    .unwrap();
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    let element = pipeline.by_name("camera").unwrap();
    let sink = pipeline.by_name("sink").unwrap();
    let frames = Arc::new(Mutex::new(0));
    let counted = frames.clone();
    let pad = sink.static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        *counted.lock().unwrap() += 1;
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Ready).unwrap();
    let held = element.property::<Option<gst::glib::Object>>("camera");
    let camera = Arc::new(Camera::of(&held.unwrap()).unwrap());
    pipeline.set_state(gst::State::Playing).unwrap();
    while *frames.lock().unwrap() < 5 {
        sleep(Duration::from_millis(5));
    }
    let mut line = CameraLine::new(camera, "UserOutput0", None);
    let before = *frames.lock().unwrap();
    let mut times = Vec::new();
    for index in 0..300 {
        let begin = Instant::now();
        line.set(index % 2 == 0).unwrap();
        times.push(begin.elapsed());
        // The simulated camera sends no frame while it is asked.
        if index % 20 < 2 {
            assert_eq!(user_output(), Some(index % 2 == 0));
        }
        sleep(Duration::from_millis(10));
    }
    times.sort();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    let more = *frames.lock().unwrap() - before;
    println!(
        "a write takes {median:?} at the median and {most:?} at most, while {more} frames came"
    );
    assert!(more > 20);
    pipeline.set_state(gst::State::Null).unwrap();
}

#[test]
fn camera_that_the_station_triggers_gives_a_frame_for_each_trigger_and_lost_without_one() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    // Without compiled kernels, the first frame waits for seconds: those after it must not be as late.
    let sandbox = Sandbox::new("station-trigger-caches");
    let caches = ["POCL_CACHE_DIR", "CLINSPECT_CACHE_DIR"].map(|name| (name, sandbox.folder(name)));
    let caches = caches
        .each_ref()
        .map(|(name, folder)| (*name, folder.as_path()));
    println!("{}", inside("outputs::inside_trigger", &caches));
}

#[test]
#[ignore = "the test above runs it"]
fn inside_trigger() {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    gstinspectoverlay::register_static().unwrap();
    let sandbox = Sandbox::new("station-trigger");
    let simulated = simulated::with_output(&sandbox);
    let file = sandbox.path().join("station.toml");
    let text = camera(20, PASSES).replace("output", "machine = { trigger = \"software\" }\noutput");
    let text = format!("[modbus]\nlisten = \"127.0.0.1:0\"\nallow-commands = true\n{text}");
    fs::write(&file, text).unwrap();
    let config = Config::read(&file).unwrap().cameras.remove(0);
    assert!(config.triggered);
    let line = Answers::new().unwrap();
    let told = Arc::new(Mutex::new(Vec::<Answer>::new()));
    let sink = told.clone();
    line.set_sink(Box::new(move |_, answer| {
        sink.lock().unwrap().push(*answer)
    }));
    let supervisor = Supervisor::start(config.clone(), &line).unwrap();
    let camera = &supervisor.camera;
    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        let until = Instant::now() + Duration::from_secs(40);
        while !holds() {
            assert!(
                Instant::now() < until,
                "{what}: {:?}",
                *camera.status.borrow()
            );
            sleep(Duration::from_millis(1));
        }
    };
    let is_running = || *camera.status.borrow() == Status::Running;
    wait("it waits for a trigger", &is_running);
    // Its kernels have run: for a frame that nobody asked for.
    let first = std::mem::take(&mut *told.lock().unwrap());
    let first: Vec<_> = first.iter().map(|of| of.is_asked_for).collect();
    assert_eq!(first, [false]);
    let trigger = || {
        let sequence = camera.machine.arm().unwrap();
        wait("an answer", &|| !told.lock().unwrap().is_empty());
        let answers = std::mem::take(&mut *told.lock().unwrap());
        assert_eq!(answers.len(), 1, "one answer for each number");
        assert_eq!(answers[0].sequence, sequence);
        answers[0]
    };
    let mut times = Vec::new();
    for _ in 0..30 {
        let begin = Instant::now();
        let answer = trigger();
        assert!(answer.is_asked_for);
        assert_eq!(answer.outcome, Outcome::Pass);
        times.push(begin.elapsed());
    }
    times.sort();
    println!(
        "from trigger to outcome: {:?} at the median, {:?} at most",
        times[15], times[29]
    );
    // Longer than aravissrc waits, and than `silence`.
    sleep(Duration::from_secs(4));
    let restarts = &camera.counters.restarts;
    assert_eq!(restarts.load(Relaxed), 0);
    assert_eq!(trigger().outcome, Outcome::Pass);
    // A frame counts a moment after its outcome.
    let frames = || camera.counters.frames.load(Relaxed);
    wait("the frames are counted", &|| frames() > 31);
    assert_eq!(frames(), 1 + 31, "no frame without a trigger");

    // The camera keeps its settings, and a station that does not trigger it gets its frames all the same.
    let mut free = config.clone();
    free.machine.trigger = Trigger::Every;
    supervisor.change(free);
    wait("frames come without a trigger", &|| {
        camera.counters.frames.load(Relaxed) > 40
    });
    supervisor.change(config);
    wait("it starts again", &|| !is_running());
    wait("it waits for a trigger again", &is_running);
    told.lock().unwrap().clear();

    drop(simulated);
    let begin = Instant::now();
    assert_eq!(trigger().outcome, Outcome::Lost);
    println!("lost after {:?}", begin.elapsed());
    wait("the camera is lost", &|| !is_running());
    wait("a trigger can be taken", &|| {
        camera.machine.can_arm().is_ok()
    });
    assert_eq!(trigger().outcome, Outcome::Lost);
    supervisor.stop();
    wait("the end", &|| supervisor.is_over());
}

#[test]
fn camera_waits_for_the_line_that_is_named() {
    let Some(_network) = simulated::network_and_device() else {
        return;
    };
    let sandbox = Sandbox::new("station-line");
    let _camera = simulated::with_output(&sandbox);
    let of_line = |line: &str| {
        let machine = format!(
            "machine = {{ trigger = \"input\", trigger-source = \"{line}\", input = {{ chip = \"/dev/no-gpiochip\", line = 0 }} }}\n"
        );
        camera(20, PASSES) + &machine
    };
    let mut running = station(&sandbox, &of_line("Line0"));
    running.wait_for_log("the input cannot be read: /dev/no-gpiochip: ");
    running.wait_for_status("left", "running");
    sleep(Duration::from_millis(500));
    assert_eq!(trigger(), [Some(1), Some(0)]);
    assert_eq!(running.camera("left")["frames"], 0);
    running.end("TERM");

    let mut running = station(&sandbox, &of_line("Line7"));
    running
        .wait_for_log("trigger-source = \"Line7\": this camera has no such entry of TriggerSource");
    running.end("TERM");
}
