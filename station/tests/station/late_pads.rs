//! Sources whose pads come after the start: files of containers, decoders that choose themselves, and a network camera.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use clinspect_testkit::tools::{Sandbox, has_device};

use crate::{check::check, process::Station};

/// What makes frames of each decoder frames that `clpitchthreshold` takes.
const GREY: &str = "videoconvert ! video/x-raw,format=GRAY8";

/// A film of JPEG pictures with a sound track beside, in a container.
fn film(sandbox: &Sandbox, muxer: &str) -> PathBuf {
    let path = sandbox.path().join(muxer);
    let line = format!(
        "videotestsrc num-buffers=90 pattern=ball ! video/x-raw,format=I420,width=160,height=120,framerate=30/1 \
         ! jpegenc ! queue ! mux. audiotestsrc num-buffers=130 ! audioconvert ! queue ! mux. \
         {muxer} name=mux ! filesink location={}",
        path.display()
    );
    let mut launch = Command::new("gst-launch-1.0");
    let made = launch.arg("-q").args(line.split_whitespace()).status();
    assert!(made.unwrap().success(), "{line}");
    path
}

/// `--check` finds no mistake in cameras with these sources, and each of them runs.
fn run(sandbox: &Sandbox, sources: &[(String, String)]) {
    let cameras = sources.iter().map(|(name, source)| {
        format!(
            "[[camera]]\nname = \"{name}\"\nsource = '''{source}'''\npitch = {{ pitch-x = 16, min-contrast = 0 }}\n"
        )
    });
    let cameras: String = cameras.collect();
    std::fs::write(sandbox.path().join("check.toml"), &cameras).unwrap();
    let (told, code) = check(sandbox, "check.toml");
    assert_eq!(code, Some(0), "{told}");
    let mut station = Station::start(sandbox, &cameras);
    for (name, _) in sources {
        station.wait_for_frames(name, 20);
    }
    let log = station.log();
    for word in ["not-linked", "elayed linking"] {
        assert!(!log.contains(word), "{log}");
    }
}

#[test]
fn pads_of_demuxers_and_decoders_are_linked_when_they_come() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-late-pads");
    let [avi, mkv] = ["avimux", "matroskamux"].map(|muxer| film(&sandbox, muxer));
    let (avi, mkv) = (avi.display(), mkv.display());
    let sources = [
        (
            "avi",
            format!("filesrc location={avi} ! avidemux ! jpegdec ! {GREY}"),
        ),
        (
            "ends-late",
            format!("filesrc location={avi} ! avidemux ! image/jpeg ! jpegdec"),
        ),
        (
            "queued",
            format!("filesrc location={mkv} ! matroskademux ! queue ! jpegdec ! {GREY}"),
        ),
        (
            "named",
            format!(
                "filesrc location={mkv} ! matroskademux name=d d.video_0 ! queue ! jpegdec ! {GREY}"
            ),
        ),
        (
            "decodebin",
            format!("filesrc location={mkv} ! decodebin ! {GREY}"),
        ),
        (
            "decodebin-alone",
            format!("filesrc location={mkv} ! decodebin"),
        ),
        ("uri", format!("uridecodebin uri=file://{avi} ! {GREY}")),
        (
            "uri-named",
            format!(
                "uridecodebin uri=file://{avi} name=d d. ! audioconvert ! fakesink d. ! queue ! {GREY}"
            ),
        ),
    ];
    run(
        &sandbox,
        &sources.map(|(name, source)| (name.to_owned(), source)),
    );
}

/// The process of the server, killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn network_camera_sends_frames_by_rtsp() {
    if !has_device() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/station/rtsp_server.py");
    let mut server = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "/usr/bin/python3"])
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .map(Server)
        .unwrap();
    let mut port = String::new();
    let mut lines = BufReader::new(server.0.stdout.take().unwrap());
    lines.read_line(&mut port).unwrap();
    let source = format!(
        "rtspsrc location=rtsp://127.0.0.1:{}/jpeg latency=20",
        port.trim()
    );
    let sandbox = Sandbox::new("station-rtsp");
    let sources = [
        (
            "depay",
            format!("{source} ! rtpjpegdepay ! jpegdec ! {GREY}"),
        ),
        ("decodebin", format!("{source} ! decodebin ! {GREY}")),
        (
            "queued",
            format!("{source} ! queue ! rtpjpegdepay ! jpegdec ! {GREY}"),
        ),
    ];
    run(
        &sandbox,
        &sources.map(|(name, source)| (name.to_owned(), source)),
    );
}
