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

use tools::{FAINT_SQUARE, Sandbox, example, exists, has_device, run, skip};

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
             6x4 at 170,122: area 24, centre 173.00,124.00, difference 153.66, \
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
    let stained = run(sandbox.command(program.to_str().unwrap()).arg(FAINT_SQUARE)).succeeded();
    let stained = stained.lines("  ");
    assert_eq!(stained.len(), 2);
    assert!(
        stained
            .iter()
            .all(|line| line.ends_with(", class stain, level 2")),
        "{stained:?}"
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
