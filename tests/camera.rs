//! A live camera: aravis' simulated GigE Vision camera over loopback, through all three elements, and its Bayer pictures
//! through `clunpack`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_core::unpack::{Demosaic, Encoding, Output, Pattern};
use clinspect_testkit::{encoded::Encoded, tools};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tools::{Sandbox, exists, run, skip};

const CAMERA: &str = "arv-fake-gv-camera-0.8";
/// UDP port of the GigE Vision control protocol.
const CONTROL_PORT: u16 = 3956;
const FRAMES: u64 = 25;
/// Small frames: the simulated camera sends each frame in one burst, and on a busy machine sockets lose
/// packets of large frames.
const CAPS: &str = "video/x-raw,format=GRAY8,width=256,height=200,framerate=50/1";

/// The camera process. It ends with the test; only one camera exists at a time.
struct Camera {
    process: Child,
    _alone: File,
}

impl Camera {
    fn start() -> Self {
        let lock = File::create(std::env::temp_dir().join("clinspect-camera.lock")).unwrap();
        lock.lock().unwrap();
        // A second camera would start and share the port with the first.
        wait_until("no other camera is running", || !is_bound(CONTROL_PORT));
        // The kernel ends the camera even if the test is killed.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", CAMERA, "-i", "127.0.0.1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut camera = Self {
            process,
            _alone: lock,
        };
        wait_until("the camera listens", || {
            let ended = camera.process.try_wait().unwrap();
            assert!(ended.is_none(), "the camera ended: {ended:?}");
            is_bound(CONTROL_PORT)
        });
        camera
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// True if a socket on this machine is bound to the UDP port.
fn is_bound(port: u16) -> bool {
    let sockets = fs::read_to_string("/proc/net/udp").unwrap();
    sockets.contains(&format!(":{port:04X} "))
}

/// `gst-launch-1.0` on a pipeline. aravis uses raw sockets if it may, and raw sockets see no loopback
/// traffic: as root, drop that capability.
fn receive(sandbox: &Sandbox, pipeline: &str) -> Command {
    let launch = format!("exec gst-launch-1.0 --no-fault -m {pipeline}");
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| {
        use std::os::unix::fs::MetadataExt;
        m.uid() == 0
    });
    if is_root {
        let mut command = sandbox.command("capsh");
        command.args(["--drop=cap_net_raw", "--", "-c", &launch]);
        command
    } else {
        let mut command = sandbox.command("sh");
        command.args(["-c", &launch]);
        command
    }
}

/// Frame numbers in the element messages of this name.
fn told(lines: &[String], name: &str) -> Vec<u64> {
    lines
        .iter()
        .filter(|line| line.contains(&format!("): {name}, ")))
        .map(|line| {
            let (_, rest) = line.split_once("frame-number=(guint64)").unwrap();
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            digits.parse().unwrap()
        })
        .collect()
}

/// What the tests need; `None`: they are skipped, with a line that says so.
fn stand(name: &str) -> Option<(Sandbox, Camera)> {
    for program in [CAMERA, "gst-launch-1.0", "capsh", "setpriv"] {
        if !exists(program) {
            skip(&format!("{program} is not installed"));
            return None;
        }
    }
    let sandbox = Sandbox::new(name);
    let probe = "videotestsrc num-buffers=1 ! clgaussian ! fakesink";
    if run(&mut sandbox.launch(probe)).code() != Some(0) {
        skip("this machine has no OpenCL device");
        return None;
    }
    Some((sandbox, Camera::start()))
}

#[test]
fn simulated_camera_every_frame_goes_through_all_three_elements() {
    let Some((sandbox, _camera)) = stand("camera") else {
        return;
    };
    let pipeline = format!(
        "aravissrc camera-name=Aravis-Fake-GV01 num-buffers={FRAMES} ! {CAPS} ! clgaussian kernel-size=5 ! \
         tee name=t t. ! queue ! clhistogram name=h reports=reports,interval=0 ! fakesink sync=false \
         t. ! queue ! clpitchthreshold name=p pitch-x=16 threshold=20 reports=reports,interval=0 ! \
         fakesink sync=false"
    );
    let received = run(&mut receive(&sandbox, &pipeline)).succeeded();
    let lines: Vec<String> = received.output().lines().map(str::to_owned).collect();
    let histograms = told(&lines, "clhistogram");
    let masks = told(&lines, "clpitchthreshold");
    assert_eq!(histograms.len() as u64, FRAMES, "{}", received.text());
    assert_eq!(
        masks, histograms,
        "both branches of the tee use the same frame numbers"
    );
    let different: BTreeSet<&u64> = histograms.iter().collect();
    assert_eq!(different.len() as u64, FRAMES, "{histograms:?}");
    assert!(histograms.is_sorted(), "{histograms:?}");
    // The frame is not black.
    let message = lines.iter().find(|line| line.contains("): clhistogram, "));
    let message = message.unwrap();
    assert!(message.contains("width=(uint)256"), "{message}");
    assert!(!message.contains("maximum=(double)< 0 >"), "{message}");
}

#[test]
fn simulated_camera_bayer_pictures_are_unpacked_as_the_reference_says() {
    let Some((sandbox, _camera)) = stand("camera-bayer") else {
        return;
    };
    // aravis pads these rows to 256 bytes.
    let size = [254, 100];
    for pattern in Pattern::ALL {
        let name = pattern.name();
        let [sent, got] = ["sent", "got"].map(|kind| sandbox.path().join(format!("{name}.{kind}")));
        let pipeline = format!(
            "aravissrc camera-name=Aravis-Fake-GV01 num-buffers=2 ! \
             video/x-bayer,format={name},width={},height={},framerate=50/1 ! tee name=t \
             t. ! queue ! filesink location={} \
             t. ! queue ! clunpack ! video/x-raw,format=RGB ! filesink location={}",
            size[0],
            size[1],
            sent.display(),
            got.display()
        );
        run(&mut receive(&sandbox, &pipeline)).succeeded();
        let [sent, got] = [sent, got].map(|path| fs::read(path).unwrap());
        assert_eq!(
            (sent.len(), got.len()),
            (2 * 256 * 100, 2 * 764 * 100),
            "{name}"
        );
        for (sent, got) in sent.chunks(256 * 100).zip(got.chunks(764 * 100)) {
            let rows = sent.chunks(256).flat_map(|row| &row[..size[0]]);
            let frame = Encoded {
                encoding: Encoding::Bayer {
                    pattern,
                    bits: 8,
                    big_endian: false,
                },
                size,
                bytes: rows.copied().collect(),
            };
            assert!(frame.bytes.iter().any(|&sample| sample != frame.bytes[0]));
            let wanted = frame.unpacked(Demosaic::Bilinear, Output::Rgb, got);
            assert!(wanted == got, "{name}");
        }
    }
}
