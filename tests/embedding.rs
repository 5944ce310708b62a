//! The examples for integrators in Rust, Python and C, run as processes; all find the same spot.
//!
//! `cargo test` builds the Rust examples; before `cargo test --test embedding` alone, run
//! `cargo build --examples`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{fs, path::Path};

use gst::prelude::*;
use tools::{Run, Sandbox, example, exists, has_device, run, skip};

#[test]
fn embed_frames_of_our_pool_are_not_copied_and_results_come_as_values() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("embed");
    let done = run(&mut sandbox.command(example("embed").to_str().unwrap())).succeeded();
    // 20 of 80 x 60 squares of 8 px are bright: a quarter of 200 and three of 60.
    let medians = done
        .lines("frame ")
        .into_iter()
        .filter(|l| l.contains("median"));
    for (number, line) in medians.enumerate() {
        // The spot of level 20 covers 16 bright and 8 dark pixels, which lowers the sum by 3200.
        let mean = if number % 5 == 4 { "94.96" } else { "95.00" };
        assert_eq!(line, format!("frame {number}: median 60, mean {mean}"));
    }
    let failed: Vec<String> = done
        .lines("frame ")
        .into_iter()
        .filter(|l| l.ends_with(": fail"))
        .collect();
    assert_eq!(
        failed,
        ["frame 4: fail", "frame 9: fail"],
        "{}",
        done.text()
    );
    assert_eq!(
        done.lines("bus: "),
        ["bus: frame 4 failed", "bus: frame 9 failed"]
    );
    assert_eq!(
        done.lines("12 frames"),
        ["12 frames, 12 of them in memory of the device, 0 copied"],
        "{}",
        done.text()
    );
}

/// Records the default pattern, in which frames 20 to 24 of 60 fail.
fn record(sandbox: &Sandbox, args: &[&str]) -> Run {
    let program = example("record_failures");
    let mut command = sandbox.command(program.to_str().unwrap());
    run(command.arg("--output").arg(sandbox.path()).args(args))
}

fn names(folder: &Path, end: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(end))
        .collect();
    names.sort();
    names
}

#[test]
fn record_failures_writes_the_failed_frames_with_those_around_them_as_pictures() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("record-png");
    let done = record(&sandbox, &["--before", "4", "--after", "3"]).succeeded();
    assert_eq!(
        done.lines("60 frames"),
        ["60 frames, 5 failed"],
        "{}",
        done.text()
    );
    let expected: Vec<String> = (0..4 + 5 + 3)
        .map(|i| format!("failure-000020-{i:04}.png"))
        .collect();
    assert_eq!(names(sandbox.path(), ".png"), expected, "{}", done.text());
    // Only the five failed frames contain the spot.
    for (i, name) in expected.iter().enumerate() {
        let picture = image::open(sandbox.path().join(name)).unwrap().to_rgb8();
        assert_eq!((picture.width(), picture.height()), (320, 240));
        let white = picture.get_pixel(173, 124).0.iter().all(|&v| v > 240);
        assert_eq!(white, (4..9).contains(&i), "{name}");
    }
}

#[test]
fn record_failures_writes_a_film_whose_frames_can_be_read() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("record-mkv");
    // More frames requested before the failure than exist, and a failure at the end of the stream.
    let args = ["--format", "mkv", "--before", "100", "--after", "100"];
    let done = record(&sandbox, &args).succeeded();
    assert_eq!(
        names(sandbox.path(), ".mkv"),
        ["failure-000020.mkv"],
        "{}",
        done.text()
    );
    let film = sandbox.path().join("failure-000020.mkv");
    let line = format!(
        "filesrc location={} ! matroskademux ! jpegdec ! fakesink name=end",
        film.display()
    );
    let pipeline = gst::parse::launch(&line)
        .unwrap()
        .downcast::<gst::Pipeline>()
        .unwrap();
    let frames = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = frames.clone();
    let pad = pipeline.by_name("end").unwrap().static_pad("sink").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing).unwrap();
    let kinds = [gst::MessageType::Eos, gst::MessageType::Error];
    let last = pipeline
        .bus()
        .unwrap()
        .timed_pop_filtered(gst::ClockTime::from_seconds(30), &kinds);
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(last.map(|m| m.type_()), Some(gst::MessageType::Eos));
    assert_eq!(frames.load(std::sync::atomic::Ordering::Relaxed), 60);
}

#[test]
fn record_failures_says_what_is_missing() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("record-wrong");
    let done = record(&sandbox, &["videotestsrc", "num-buffers=1"]);
    assert_eq!(done.code(), Some(1));
    assert!(
        done.text().contains("put clpitchthreshold output=frame"),
        "{}",
        done.text()
    );
}

#[test]
fn live_plot_shows_bins_and_mask_and_saves_a_picture() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("plot");
    let modules = "import gi, numpy, matplotlib; gi.require_version('GstApp', '1.0')";
    let Some(mut command) = tools::python(&sandbox, modules) else {
        return;
    };
    let picture = sandbox.path().join("plot.png");
    command.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/live_plot.py"
    ));
    let done = run(command
        .arg("--save")
        .arg(&picture)
        .env("MPLCONFIGDIR", sandbox.path()))
    .succeeded();
    let expected: Vec<String> = (0..5)
        .map(|i| format!("frame {i}: [76800, 19200, 19200] samples, 24 pixels marked"))
        .collect();
    assert_eq!(done.lines("frame "), expected, "{}", done.text());
    let picture = image::open(picture).unwrap().to_rgb8();
    // The mask is drawn: a white area with black on all four sides, which no text contains.
    let is = |x: u32, y: u32, level: u8| picture.get_pixel(x, y).0 == [level; 3];
    let margin = 12;
    let spot = (margin..picture.height() - margin).any(|y| {
        (margin..picture.width() - margin).any(|x| {
            let around = [
                (x - margin, y),
                (x + margin, y),
                (x, y - margin),
                (x, y + margin),
            ];
            is(x, y, 255) && around.iter().all(|&(x, y)| is(x, y, 0))
        })
    });
    assert!(spot, "the mask's spot is not in the picture");
}

#[test]
fn c_program_reads_what_the_others_read() {
    if !has_device() {
        return;
    }
    for program in ["cc", "pkg-config"] {
        if !exists(program) {
            return skip(&format!("{program} is not installed"));
        }
    }
    let sandbox = Sandbox::new("c");
    let program = sandbox.path().join("read_results");
    let build = format!(
        "cc -Wall -Wextra -Werror -o {} {}/examples/read_results.c \
         $(pkg-config --cflags --libs gstreamer-1.0 gstreamer-app-1.0) -lm",
        program.display(),
        env!("CARGO_MANIFEST_DIR")
    );
    run(sandbox.command("bash").args(["-c", &build])).succeeded();
    let done = run(&mut sandbox.command(program.to_str().unwrap())).succeeded();
    let frame = |i: u32| {
        format!(
            "frame {i}: channel 0, 76800 samples, median 145\n\
             frame {i}: channel 1, 19200 samples, median 54\n\
             frame {i}: channel 2, 19200 samples, median 34\n\
             frame {i}: fail, 24 pixels, 24 in the mask\n  \
             6x4 at 170,122: area 24, centre 173.00,124.00, difference 154.00, \
             id {}\n",
            i + 1
        )
    };
    assert_eq!(done.output(), (0..3).map(frame).collect::<String>());

    // The names are numbered from 1 on; the spot is none of the first class, and black frames have no pattern.
    let classed = |source: &str, inspection: &str| {
        let line = format!(
            "videotestsrc num-buffers=2 {source} ! video/x-raw,format=GRAY8,width=320,height=240 ! \
             clpitchthreshold pitch-x=16 pitch-y=16 multiples=<1> {inspection} output=frame"
        );
        let mut program = sandbox.command(program.to_str().unwrap());
        run(program.arg(line)).succeeded()
    };
    let classes = "min-contrast=0 classes=\"dot: area < 5; ball: area >= 5\"";
    let named = classed("pattern=ball", classes).lines("  ");
    assert!(!named.is_empty());
    assert!(
        named.iter().all(|line| line.ends_with(", class ball")),
        "{named:?}"
    );
    let classes = "min-contrast=0 classes=\"dot: area < 5\"";
    let other = classed("pattern=ball", classes).lines("  ");
    assert_eq!(other.len(), named.len());
    assert!(
        other.iter().all(|line| line.ends_with(", class other")),
        "{other:?}"
    );
    let black = classed("pattern=black", "min-contrast=20").lines("  ");
    assert!(!black.is_empty());
    assert!(
        black
            .iter()
            .all(|line| line.ends_with(", class pattern-missing")),
        "{black:?}"
    );
}
