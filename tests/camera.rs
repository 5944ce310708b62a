//! A live camera: aravis' simulated GigE Vision camera over loopback, through all three elements, and its Bayer pictures
//! through `clunpack`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_core::unpack::{Demosaic, Encoding, Output, Pattern};
use clinspect_testkit::{
    camera::{Network, Simulated, network, visible},
    encoded::Encoded,
    tools,
};
use std::{collections::BTreeSet, fs, process::Command};

use tools::{Sandbox, exists, run, skip};

const FRAMES: u64 = 25;
/// Small frames: the simulated camera sends each frame in one burst, and on a busy machine sockets lose
/// packets of large frames.
const CAPS: &str = "video/x-raw,format=GRAY8,width=256,height=200,framerate=50/1";

/// `gst-launch-1.0` on a pipeline.
fn receive(sandbox: &Sandbox, pipeline: &str) -> Command {
    let launch = format!("exec gst-launch-1.0 --no-fault -m {pipeline}");
    shell(sandbox, &launch)
}

/// A line for a shell.
fn shell(sandbox: &Sandbox, line: &str) -> Command {
    let mut command = sandbox.command("setpriv");
    visible(&mut command, line);
    command
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

/// What the tests need; `None` as for [`network`].
fn stand(name: &str) -> Option<(Sandbox, Network, Simulated)> {
    if !exists("gst-launch-1.0") {
        skip("gst-launch-1.0 is not installed");
        return None;
    }
    let sandbox = Sandbox::new(name);
    let probe = "videotestsrc num-buffers=1 ! clgaussian ! fakesink";
    if run(&mut sandbox.launch(probe)).code() != Some(0) {
        skip("this machine has no OpenCL device");
        return None;
    }
    let network = network()?;
    Some((sandbox, network, Simulated::start(&[])))
}

#[test]
fn simulated_camera_every_frame_goes_through_all_three_elements() {
    let Some((sandbox, _network, _camera)) = stand("camera") else {
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

/// The camera counts on from pipeline to pipeline, so each of them sees other frames.
#[test]
fn readme_pipelines_with_the_simulated_camera_pass_in_every_order() {
    let Some((sandbox, _network, _camera)) = stand("camera-readme") else {
        return;
    };
    let readme = include_str!("../README.md");
    let mut lines = tools::shell_lines(readme, "gst-launch-1.0");
    lines.retain(|line| line.contains("aravissrc"));
    let [grey, colour] = lines[..] else {
        panic!("{lines:?}")
    };
    for line in [colour, grey, colour, colour, grey, colour] {
        let printed = run(&mut shell(&sandbox, line)).succeeded();
        let output = printed.output();
        assert!(!output.is_empty(), "{line}: {}", printed.text());
        for said in output.lines() {
            assert!(
                said.starts_with("summary=(string)\"pass: 0 defects"),
                "{line}: {said}"
            );
        }
    }
}

#[test]
fn simulated_camera_bayer_pictures_are_unpacked_as_the_reference_says() {
    let Some((sandbox, _network, _camera)) = stand("camera-bayer") else {
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
