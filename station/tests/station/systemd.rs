//! What systemd is told, on a socket of the test.

use std::{
    os::unix::net::UnixDatagram,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::process::{Station, live_camera};

/// The socket that systemd would listen on.
struct Socket(UnixDatagram);

impl Socket {
    fn new(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        let limit = Some(Duration::from_millis(100));
        socket.set_read_timeout(limit).unwrap();
        Self(socket)
    }

    /// The messages of the next `time`.
    fn told(&self, time: Duration) -> Vec<String> {
        let until = Instant::now() + time;
        let mut told = Vec::new();
        let mut bytes = [0; 4096];
        while Instant::now() < until {
            if let Ok(length) = self.0.recv(&mut bytes) {
                told.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
        }
        told
    }

    /// Waits for a message that contains `part`.
    #[track_caller]
    fn wait_for(&self, part: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        let mut bytes = [0; 4096];
        while Instant::now() < until {
            if let Ok(length) = self.0.recv(&mut bytes) {
                let message = String::from_utf8_lossy(&bytes[..length]);
                if message.contains(part) {
                    return message.into_owned();
                }
            }
        }
        panic!("systemd was not told {part}");
    }
}

fn under_systemd(sandbox: &Sandbox, cameras: &str) -> (Station, Socket) {
    let path = sandbox.path().join("notify");
    let socket = Socket::new(&path);
    let prepare = |command: &mut Command| {
        command.env("NOTIFY_SOCKET", &path);
        command.env("WATCHDOG_USEC", "1000000");
        // Setting it for the process that is started here is systemd's part.
        command.env_remove("WATCHDOG_PID");
    };
    let station = Station::start_with(sandbox, cameras, |command| {
        prepare(command);
        command
    });
    (station, socket)
}

fn watchdogs(told: &[String]) -> usize {
    told.iter()
        .filter(|text| text.contains("WATCHDOG=1"))
        .count()
}

#[test]
fn systemd_hears_of_start_reload_watchdog_and_stop() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-systemd");
    let good = live_camera("good", "black", "pitch-x = 16, min-contrast = 0");
    // A camera that cannot start does not hold up the start of the station.
    let lost = "[[camera]]\nname = \"lost\"\nsource = \"filesrc location=/nonexistent\"\n";
    let (mut station, socket) = under_systemd(&sandbox, &format!("{good}{lost}"));
    socket.wait_for("READY=1");
    assert_eq!(station.camera("good")["status"], "running");
    let told = socket.told(Duration::from_secs(3));
    assert!((4..=8).contains(&watchdogs(&told)), "{told:?}");

    station.reload(&good);
    let reloading = socket.wait_for("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    socket.wait_for("READY=1");
    station.wait_for_log("camera lost: stopped");

    let (status, _, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    socket.wait_for("STOPPING=1");
}

#[test]
fn camera_that_hangs_stops_the_watchdog_and_not_the_end() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-hangs");
    let fifo = sandbox.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let good = live_camera("good", "black", "pitch-x = 16, min-contrast = 0");
    // Nobody writes into the FIFO, so opening it never ends.
    let hangs = format!(
        "[[camera]]\nname = \"hangs\"\nsource = \"filesrc location={}\"\n",
        fifo.display()
    );
    let (mut station, socket) = under_systemd(&sandbox, &format!("{good}{hangs}"));
    station.wait_for_status("good", "running");
    station.wait_for_log("ERROR a camera's supervisor does not answer: hangs");
    // The first look has nothing to compare with.
    socket.told(Duration::from_secs(1));
    let told = socket.told(Duration::from_secs(2));
    assert_eq!(watchdogs(&told), 0, "{told:?}");
    station.wait_for_frames("good", 5);
    let (status, took, log) = station.end("TERM");
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < Duration::from_secs(12), "{took:?}\n{log}");
    assert!(log.contains("camera hangs does not stop"), "{log}");
}
