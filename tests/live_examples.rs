//! The live example, run as processes: node and station over RTP.
//!
//! `cargo test` builds the examples; before `cargo test --test live_examples` alone, run
//! `cargo build --examples`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread::{self, sleep},
    time::{Duration, Instant},
};

use tools::{Sandbox, example, has_device, run};

const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Few packets per mask, so that no socket overflows on a busy machine.
const SMALL: &str =
    "videotestsrc is-live=true pattern=ball ! video/x-raw,width=160,height=120,framerate=30/1";
/// Marks pixels also where no pattern repeats.
const INSPECTION: &str = "pitch-x=16 pitch-y=0 compare=minimum match-center=false multiples=<1> borders=skip min-contrast=0 threshold=30";
const UNKNOWN: &str = "a mask without verdict";

/// A process of `remote`, with its output in a file; killed on drop.
struct Remote {
    child: Child,
    output: PathBuf,
}

impl Remote {
    fn start(output: PathBuf, args: &[&str]) -> Self {
        let child = Command::new(example("remote"))
            .args(args)
            .stdout(File::create(&output).unwrap())
            .stderr(Stdio::piped())
            .spawn();
        Self {
            child: child.unwrap(),
            output,
        }
    }

    fn node(output: PathBuf, port: &str, frames: &str) -> Self {
        Self::node_to("127.0.0.1", output, port, frames)
    }

    fn node_to(host: &str, output: PathBuf, port: &str, frames: &str) -> Self {
        let args = [
            "node",
            "--host",
            host,
            "--source",
            SMALL,
            "--inspection",
            INSPECTION,
            "--port",
            port,
            "--frames",
            frames,
        ];
        Self::start(output, &args)
    }

    /// The station, and the port that it prints.
    fn station(output: PathBuf, more: &[&str]) -> (Self, String) {
        Self::station_at("127.0.0.1", output, more)
    }

    fn station_at(address: &str, output: PathBuf, more: &[&str]) -> (Self, String) {
        let args = [&["station", "--address", address], more].concat();
        let mut station = Self::start(output, &args);
        let mut told = BufReader::new(station.child.stderr.take().unwrap());
        let (send, first) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = told.read_line(&mut line);
            let _ = send.send((line, told.into_inner()));
        });
        let (line, told) = first.recv_timeout(LIMIT).expect("the station starts");
        // Keep stderr open, so that printing does not fail.
        station.child.stderr = Some(told);
        let port = line.trim().strip_prefix("listening on port ");
        let port = port.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        (station, port)
    }

    /// The output so far.
    fn text(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            sleep(POLL);
        }
        panic!("the process does not end: {}", self.text());
    }

    #[track_caller]
    fn wait_for(&self, word: &str) {
        let until = Instant::now() + LIMIT;
        while !self.text().contains(word) {
            assert!(Instant::now() < until, "no {word:?} in {}", self.text());
            sleep(POLL);
        }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.end();
    }
}

/// The printed results by frame, and the number of masks without a verdict.
fn frames(text: &str) -> (BTreeMap<u64, String>, usize) {
    let mut frames = BTreeMap::<u64, String>::new();
    let mut number = None;
    let mut unknown = 0;
    for line in text.lines() {
        if line.starts_with(UNKNOWN) {
            unknown += 1;
            number = None;
        } else if let Some(rest) = line.strip_prefix("frame ") {
            let first = rest.split(' ').next().unwrap().parse().unwrap();
            let before = frames.insert(first, line.to_owned() + "\n");
            assert!(before.is_none(), "frame {first} comes twice");
            number = Some(first);
        } else {
            let frame = frames.get_mut(&number.expect("a defect's frame"));
            *frame.unwrap() += &format!("{line}\n");
        }
    }
    (frames, unknown)
}

/// White pixels of a mask.
fn white(path: &Path) -> usize {
    let picture = image::open(path).unwrap().into_luma8();
    assert_eq!((picture.width(), picture.height()), (160, 120));
    picture.pixels().filter(|pixel| pixel.0[0] == 255).count()
}

#[test]
fn remote_station_prints_what_the_node_found() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("remote");
    let file = |name: &str| sandbox.path().join(name);
    let failed = sandbox.folder("failed");
    let more = ["--port", "0", "--silence", "3", "--failed"];
    let more = [&more[..], &[failed.to_str().unwrap()]].concat();
    let (mut station, port) = Remote::station(file("station"), &more);
    let mut node = Remote::node(file("node"), &port, "30");
    assert!(node.wait().success() && station.wait().success());

    let (found, unknown) = frames(&node.text());
    assert_eq!((found.len(), unknown), (30, 0));
    let (received, unknown) = frames(&station.text());
    // The event of the first mask may be lost.
    assert_eq!((received.len(), unknown), (29, 1));
    assert!(found.values().any(|text| text.lines().count() > 1));
    for (number, text) in &received {
        assert_eq!(text, &found[number]);
        let picture = failed.join(format!("frame-{number:06}.png"));
        let has_failed = text.contains(": fail, ");
        assert_eq!(picture.exists(), has_failed, "{text}");
        if has_failed {
            let begin = format!("fail, {} of ", white(&picture));
            assert!(text.contains(&begin), "{begin}: {text}");
        }
    }
    assert!(fs::read_dir(&failed).unwrap().count() > 0);
}

#[test]
fn remote_sides_take_ipv6_addresses_with_and_without_brackets() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("remote-ipv6");
    let file = |name: &str| sandbox.path().join(name);
    let more = ["--port", "0", "--frames", "5"];
    for (address, host) in [("[::1]", "::1"), ("::1", "[::1]")] {
        let (mut station, port) = Remote::station_at(address, file("station"), &more);
        let mut node = Remote::node_to(host, file("node"), &port, "30");
        assert!(node.wait().success() && station.wait().success());
    }
}

#[test]
fn remote_sides_start_in_any_order_and_anew() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("remote-order");
    let file = |name: &str| sandbox.path().join(name);
    // A first station, to find a free port.
    let (mut first, port) = Remote::station(file("station-1"), &["--port", "0", "--frames", "2"]);
    let mut node = Remote::node(file("node-1"), &port, "0");
    assert!(first.wait().success());
    drop(first);

    // A station that starts late receives caps within a second.
    let late = ["--port", &port, "--frames", "60"];
    let (mut station, _) = Remote::station(file("station-2"), &late);
    station.wait_for("frame ");
    node.end();
    let again = Remote::node(file("node-2"), &port, "0");
    assert!(station.wait().success());

    let sent = [node.text(), again.text()].map(|text| frames(&text).0);
    // The restarted node counts from 0.
    let text = station.text();
    let (before, after) = text.rsplit_once(UNKNOWN).expect("a gap between the nodes");
    let after = after.split_once('\n').unwrap().1;
    for (text, sent) in [(before, &sent[0]), (after, &sent[1])] {
        let (received, _) = frames(text);
        assert!(!received.is_empty());
        for (number, text) in received {
            assert_eq!(Some(&text), sent.get(&number));
        }
    }
}

#[test]
fn remote_node_that_cannot_run_says_why() {
    let sandbox = Sandbox::new("remote-wrong");
    for (args, word) in [
        (["node", "--source", "nosuchelement"], "nosuchelement"),
        (
            ["node", "--inspection", "nosuchproperty=1"],
            "nosuchproperty",
        ),
        (["station", "--port", "99999"], "99999"),
    ] {
        let program = example("remote");
        let done = run(sandbox.command(program.to_str().unwrap()).args(args));
        assert!(matches!(done.code(), Some(1 | 2)), "{}", done.text());
        assert!(done.text().contains(word), "{}", done.text());
    }
}
