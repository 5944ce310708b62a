//! Outputs and inputs of this PC, on lines that the kernel simulates (gpio-sim). Needs root and a kernel with this module.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device, skip_for_kernel};
use machine::{
    input::{Edges, GpioInput},
    output::{GpioOutput, Line},
};
use plan::{Edge, Gpio, GpioLine, InputSettings};

use crate::process::{Station, live_camera, program};

/// Longest wait for a level: an emulated processor takes minutes to compile the kernels.
const LIMIT: Duration = Duration::from_secs(300);
const CONFIGFS: &str = "/sys/kernel/config/gpio-sim";

/// A chip of two lines that ends with the test. The second is named OUT1.
struct Chip {
    folder: PathBuf,
    device: PathBuf,
    /// Where the kernel shows the lines.
    bank: PathBuf,
}

impl Chip {
    /// `None`, with a reason, if this kernel simulates no lines.
    fn new(name: &str) -> Option<Self> {
        let _ = Command::new("modprobe").arg("gpio-sim").output();
        if !Path::new(CONFIGFS).is_dir() {
            let _ = Command::new("mount")
                .args(["-t", "configfs", "none", "/sys/kernel/config"])
                .output();
        }
        let folder = Path::new(CONFIGFS).join(format!("{name}-{}", std::process::id()));
        let bank = folder.join("bank0");
        if fs::create_dir(&folder)
            .and_then(|()| fs::create_dir(&bank))
            .is_err()
        {
            skip_for_kernel(
                "the kernel simulates no GPIO lines: module gpio-sim with configfs, as root",
            );
            return None;
        }
        fs::write(bank.join("num_lines"), "2").unwrap();
        fs::create_dir(bank.join("line1")).unwrap();
        fs::write(bank.join("line1/name"), "OUT1").unwrap();
        fs::write(folder.join("live"), "1").unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap().trim().to_owned();
        let chip = read(bank.join("chip_name"));
        let device = read(folder.join("dev_name"));
        Some(Self {
            bank: Path::new("/sys/devices/platform").join(device).join(&chip),
            device: Path::new("/dev").join(chip),
            folder,
        })
    }

    fn gpio(&self, line: GpioLine) -> Gpio {
        Gpio {
            chip: self.device.clone(),
            line,
        }
    }

    /// Drives an input from outside.
    fn pull(&self, line: u32, is_high: bool) {
        let file = self.bank.join(format!("sim_gpio{line}/pull"));
        fs::write(file, if is_high { "pull-up" } else { "pull-down" }).unwrap();
    }

    /// The level of the wire.
    fn is_high(&self, line: u32) -> bool {
        let file = self.bank.join(format!("sim_gpio{line}/value"));
        fs::read_to_string(file).unwrap().trim() == "1"
    }

    #[track_caller]
    fn wait_for(&self, line: u32, is_high: bool) {
        let until = Instant::now() + LIMIT;
        while self.is_high(line) != is_high {
            assert!(Instant::now() < until, "line {line} is not {is_high}");
            sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.join("live"), "0");
        for part in ["bank0/line1", "bank0", ""] {
            let _ = fs::remove_dir(self.folder.join(part));
        }
    }
}

#[test]
fn line_by_number_and_by_name_is_set_and_read_back() {
    let Some(chip) = Chip::new("lines") else {
        return;
    };
    let by_number = chip.gpio(GpioLine::Number(0));
    let mut line = GpioOutput::new(&by_number, false);
    for is_active in [false, true, false] {
        line.set(is_active).unwrap();
        assert_eq!(chip.is_high(0), is_active);
    }
    let by_name = chip.gpio(GpioLine::Name("OUT1".to_owned()));
    let mut inverted = GpioOutput::new(&by_name, true);
    for is_active in [false, true, false] {
        inverted.set(is_active).unwrap();
        assert_eq!(chip.is_high(1), !is_active, "active is low");
    }
    // It belongs to the first.
    let why = GpioOutput::new(&by_number, false).set(true).unwrap_err();
    assert!(why.contains("gpioinfo shows"), "{why}");
    let missing = chip.gpio(GpioLine::Name("OUT9".to_owned()));
    let why = GpioOutput::new(&missing, false).set(true).unwrap_err();
    assert!(why.contains("has no line \"OUT9\""), "{why}");
}

#[test]
fn edges_of_an_input_are_read_with_their_times_and_those_that_were_missed_are_counted() {
    let Some(chip) = Chip::new("input") else {
        return;
    };
    let settings = |edge| InputSettings {
        gpio: chip.gpio(GpioLine::Number(0)),
        edge,
    };
    let wait = Duration::from_millis(200);
    for (edge, is_high) in [(Edge::Rising, true), (Edge::Falling, false)] {
        chip.pull(0, !is_high);
        let mut input = GpioInput::new(&settings(edge));
        input.open().unwrap();
        let before = Instant::now();
        chip.pull(0, is_high);
        let after = Instant::now();
        // The other edge is no trigger.
        chip.pull(0, !is_high);
        sleep(wait);
        let came = input.next(wait).unwrap().unwrap();
        assert!((before..=after).contains(&came.at), "{came:?} {before:?}");
        assert_eq!(came.missed, 0);
        assert_eq!(input.next(wait), Ok(None));
    }
    // The kernel keeps 1024.
    let mut input = GpioInput::new(&settings(Edge::Rising));
    chip.pull(0, false);
    input.open().unwrap();
    for _ in 0..1100 {
        chip.pull(0, true);
        // Else it may see two edges as one.
        sleep(Duration::from_micros(500));
        chip.pull(0, false);
        sleep(Duration::from_micros(500));
    }
    let mut seen = 0;
    let mut missed = 0;
    while let Some(came) = input.next(wait).unwrap() {
        seen += 1;
        missed += came.missed;
    }
    assert_eq!((seen, missed), (1024, 76));
}

#[test]
fn a_chip_that_is_not_there_is_told() {
    let gpio = Gpio {
        chip: "/dev/no-gpiochip".into(),
        line: GpioLine::Number(0),
    };
    let why = GpioOutput::new(&gpio, false).set(false).unwrap_err();
    assert!(why.starts_with("/dev/no-gpiochip: "), "{why}");
}

#[test]
fn line_of_a_station_pulses_for_pass_rests_at_the_end_and_after_a_kill_by_the_command() {
    let Some(chip) = Chip::new("station") else {
        return;
    };
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-gpio");
    let camera = live_camera("left", "black", "pitch-x = 16, min-contrast = 0")
        + &format!(
            "start-timeout = 300\noutput = {{ kind = \"gpio\", chip = \"{}\", line = \"OUT1\", pulse-ms = 10000 }}\n",
            chip.device.display()
        );
    let station = Station::start(&sandbox, &camera);
    chip.wait_for(1, true);
    station.end("TERM");
    assert!(!chip.is_high(1));

    let station = Station::start(&sandbox, &camera);
    let file = station.file.clone();
    chip.wait_for(1, true);
    station.end("KILL");
    let after = chip.is_high(1);
    println!("after a kill in a pulse the line is active: {after}");
    let done = Command::new(program()).arg("rest").arg(file).status();
    assert!(done.unwrap().success());
    assert!(!chip.is_high(1));
}

#[test]
fn edge_at_an_input_gives_one_pulse_if_its_frame_passes() {
    let Some(chip) = Chip::new("barrier") else {
        return;
    };
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-barrier");
    let device = chip.device.display();
    let camera = live_camera("left", "black", "pitch-x = 16, min-contrast = 0");
    // So that no frame comes between an edge and its reading.
    let camera = camera.replace("framerate=30/1", "framerate=2/1")
        + &format!(
            "start-timeout = 300\n\
             machine = {{ trigger = \"input\", frame-within-ms = 1000, input = {{ chip = \"{device}\", line = 0 }} }}\n\
             output = {{ kind = \"gpio\", chip = \"{device}\", line = \"OUT1\", pulse-ms = 1000 }}\n"
        );
    let mut station = Station::start(&sandbox, &camera);
    station.wait_until("results", |of| {
        of.camera("left")["frames"].as_u64() > Some(10)
    });
    assert_eq!(station.camera("left")["input"], "in-force");
    assert!(!chip.is_high(1), "nobody asked for these frames");
    station.wait_for_log("the last 10 frames came without an edge at the input");
    for _ in 0..2 {
        // No edge is taken before a frame could have come of one that nobody saw.
        sleep(Duration::from_secs(2));
        chip.pull(0, true);
        chip.wait_for(1, true);
        chip.pull(0, false);
        chip.wait_for(1, false);
    }
    sleep(Duration::from_secs(1));
    assert!(!chip.is_high(1));
    station.end("TERM");
}

#[test]
fn edges_without_frames_start_the_camera_again() {
    let Some(chip) = Chip::new("no-frames") else {
        return;
    };
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-no-frames");
    let camera = live_camera("left", "black", "pitch-x = 16, min-contrast = 0");
    let camera = camera.replace(
        "framerate=30/1\"",
        "framerate=30/1 ! identity drop-probability=1\"",
    ) + &format!(
        "silence = 1\nmachine = {{ trigger = \"input\", frame-within-ms = 50, input = {{ chip = \"{}\", line = 0 }} }}\n",
        chip.device.display()
    );
    let mut station = Station::start(&sandbox, &camera);
    station.wait_for_status("left", "running");
    for _ in 0..3 {
        chip.pull(0, true);
        sleep(Duration::from_millis(200));
        chip.pull(0, false);
    }
    station.wait_for_log("camera lost: no frame for ");
    station.end("TERM");
}
