//! Invalid settings and caps: one error that says what to change, and no output.

use gst::prelude::*;
use gst_video::VideoFormat as Format;

use crate::{
    frames::{Frame, PLAIN},
    support::{Pipeline, buffer_of, caps_of, faults, feed, noise, set_unchecked, start, text},
};

/// Asserts that the element refuses the frame with one error that contains every word.
#[track_caller]
fn assert_refused(element: &str, frame: &Frame, words: &[&str]) {
    let Some(device) = start() else { return };
    let buffers = vec![buffer_of(frame, &device), buffer_of(frame, &device)];
    let fate = feed(element, &caps_of(frame), buffers);
    assert_eq!(fate.received, 0, "{element}");
    assert_eq!(fate.errors.len(), 1, "{element}: {:?}", fate.errors);
    let text = &fate.errors[0].text;
    for word in words {
        assert!(text.contains(word), "{element}: \"{text}\" lacks {word}");
    }
}

fn grey() -> Frame {
    noise(Format::Gray8, [40, 8], PLAIN)
}

fn words16() -> Frame {
    noise(Format::Gray16Le, [40, 8], PLAIN)
}

#[test]
fn pitch_threshold_without_a_pitch_is_refused() {
    let words = ["pitch-x", "pitch-y", "set"];
    assert_refused("clpitchthreshold PUBLISHED pitch-x=0", &grey(), &words);
}

#[test]
fn pitch_threshold_pitch_too_wide_to_judge_a_pixel_is_refused() {
    let too_wide = |name| ["judged", "40x8", name];
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=20",
        &grey(),
        &too_wide("lower pitch-x"),
    );
    // The other direction is judged; defects along this direction would pass unnoticed.
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 pitch-y=4",
        &grey(),
        &too_wide("lower pitch-y"),
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 rois=<<0,0,3,8>>",
        &grey(),
        &["judged", "rois"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=1",
        &noise(Format::Gray8, [1, 1], PLAIN),
        &["judged"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=65536",
        &grey(),
        &["pitch"],
    );
}

#[test]
fn pitch_threshold_impossible_settings_are_refused() {
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=0.5",
        &grey(),
        &["pitch-x"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 threshold=255.5",
        &grey(),
        &["threshold", "255"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 bit-depth=10 threshold=1024",
        &words16(),
        &["threshold", "1023"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 bit-depth=10",
        &grey(),
        &["bit-depth=10", "8-bit"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 rois=<<0,0,41,8>>",
        &grey(),
        &["rois", "40x8"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 rois=<<0,0,0,8>>",
        &grey(),
        &["rois", "no pixel"],
    );
}

#[test]
fn pitch_threshold_scale_factors_that_cannot_be_used_are_refused() {
    let too_low = [
        "scale-factor",
        "of level 2",
        "under 1/512 grey level",
        "raise",
    ];
    let too_large = ["scale-factor", "of level 2", "too large", "lower"];
    let missing = ["scale-factors has 1 numbers", "scales=2"];
    // With threshold=8 the lowest factor is 1/4096: the product is rounded up to 1/256.
    for (factors, words) in [
        ("<0.6,0.000244>", &too_low[..]),
        ("<0.6,0.0>", &too_low),
        ("<0.6,-0.3>", &too_low),
        ("<0.6,1e300>", &too_large),
        ("<0.6>", &missing),
    ] {
        let element = format!(
            "clpitchthreshold PUBLISHED pitch-x=4 threshold=8 scales=2 scale-factors={factors}"
        );
        assert_refused(&element, &grey(), words);
    }
    let Some(device) = start() else { return };
    let lowest =
        "clpitchthreshold PUBLISHED pitch-x=4 threshold=8 scales=2 scale-factors=<0.6,0.000245>";
    let fate = feed(lowest, &caps_of(&grey()), vec![buffer_of(&grey(), &device)]);
    assert_eq!(
        (fate.received, fate.errors.len()),
        (1, 0),
        "{:?}",
        fate.errors
    );
}

#[test]
fn histogram_bins_over_the_depth_or_no_power_of_two_are_refused() {
    assert_refused(
        "clhistogram bins=512",
        &grey(),
        &["bins=512", "lower bins to 256"],
    );
    assert_refused(
        "clhistogram bins=100",
        &grey(),
        &["bins=100 is not a power of two; set one from 2 to 256"],
    );
    assert_refused(
        "clhistogram bins=4096 bit-depth=10",
        &words16(),
        &[
            "bins=4096",
            "1024 levels of 10-bit samples",
            "raise bit-depth",
        ],
    );
}

#[test]
fn histogram_region_outside_the_frame_is_refused() {
    assert_refused(
        "clhistogram roi=<1,0,40,8>",
        &grey(),
        &["roi", "outside", "40x8"],
    );
    assert_refused("clhistogram roi=<1,1,0,0>", &grey(), &["roi", "no pixel"]);
    assert_refused(
        "clhistogram roi=<2147483647,2147483647,2147483647,2147483647>",
        &grey(),
        &["roi", "outside"],
    );
}

#[test]
fn histogram_bit_depth_with_bytes_is_refused() {
    assert_refused(
        "clhistogram bit-depth=12",
        &grey(),
        &["bit-depth=12", "8-bit"],
    );
}

#[test]
fn histogram_strategy_that_cannot_run_is_refused() {
    assert_refused("clhistogram strategy=pairs", &words16(), &["strategy"]);
    // If 65 536 counters do not fit into local memory.
    if start().is_some_and(|device| device.caps().local_memory < 65_536 * 4) {
        for strategy in ["banked", "local"] {
            let line = format!("clhistogram strategy={strategy} bins=65536");
            assert_refused(&line, &words16(), &["strategy"]);
        }
    }
    assert_refused(
        "clhistogram strategy=pairs memory-object=image",
        &grey(),
        &["strategy"],
    );
}

#[test]
fn images_of_16_bit_frames_are_refused() {
    for element in [
        "clgaussian",
        "clhistogram",
        "clpitchthreshold PUBLISHED pitch-x=4",
    ] {
        let line = format!("{element} memory-object=image");
        assert_refused(&line, &words16(), &["memory-object=buffer"]);
    }
}

#[test]
fn gaussian_even_kernel_size_is_refused() {
    assert_refused(
        "clgaussian kernel-size=4",
        &grey(),
        &[
            "kernel-size=4 is even, so the kernel has no centre pixel; set an odd number from 3 to 31",
        ],
    );
}

#[test]
fn pitch_threshold_distances_that_no_frame_has_are_refused() {
    for (settings, why) in [
        (
            "pitch-x=0.5 pitch-y=0",
            "pitch-x=0.5 is less than 1 pixel; set pitch-x to",
        ),
        (
            "pitch-x=4 pitch-y=0.3",
            "pitch-y=0.3 is less than 1 pixel; set pitch-y to",
        ),
        (
            "pitch-x=0.3 multiples=<2>",
            "pitch-x=0.3 times 2 (multiples) is less than 1 pixel",
        ),
        (
            "pitch-x=60000 multiples=<40>",
            "pitch-x=60000 times 40 (multiples) is longer than any frame",
        ),
        (
            "pitch-x=4 multiples=<1,0>",
            "multiples is empty or contains 0; set it to positive numbers",
        ),
    ] {
        let element = format!("clpitchthreshold PUBLISHED {settings}");
        assert_refused(&element, &grey(), &[why]);
    }
}

#[test]
fn flat_field_bit_depth_over_the_sample_is_refused() {
    assert_refused(
        "clflatfield bit-depth=12",
        &grey(),
        &["bit-depth=12 is more than the 8 bits of a sample; set it to 0..8"],
    );
}

/// An invalid array must not silently leave the old region in force. A warning when the property is set
/// would be lost with gst-launch, because the element has no bus yet.
#[test]
fn arrays_that_cannot_be_read_before_playing_are_refused() {
    assert_refused("clhistogram roi=<1,1,9>", &grey(), &["roi", "3 numbers"]);
    assert_refused("clhistogram roi=<-1,0,9,9>", &grey(), &["roi"]);
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 rois=<<1,1,9>>",
        &grey(),
        &["rois", "3 numbers"],
    );
    assert_refused(
        "clpitchthreshold PUBLISHED pitch-x=4 multiples=<-1>",
        &grey(),
        &["multiples"],
    );
}

/// A C program may set any bytes; a panic in the setter would abort the process.
#[test]
fn device_that_is_no_utf8_is_refused() {
    if start().is_none() {
        return;
    }
    let pipeline = Pipeline::new("videotestsrc num-buffers=1 ! clhistogram name=h ! fakesink");
    let element: gst::Element = pipeline.get("h");
    set_unchecked(&element, c"device", &text(c"ge\xe4ndert"));
    assert!(pipeline.set_state(gst::State::Playing).is_err());
    let errors = faults(&pipeline.bus().unwrap(), gst::MessageType::Error);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].text.contains("device=ge"), "{errors:?}");
}

/// The warm-up uses rows of the caps' width: these rows took 2 GiB and half a minute.
#[test]
fn frames_wider_than_any_camera_are_refused() {
    if start().is_none() {
        return;
    }
    for element in crate::support::ON_DEVICE {
        for width in [i32::MAX, i32::MAX - 8, 1 << 23] {
            let caps = gst::Caps::builder("video/x-raw")
                .field("format", "GRAY8")
                .field("width", width)
                .field("height", 1)
                .field("framerate", gst::Fraction::new(1, 1))
                .build();
            let fate = feed(element, &caps, vec![gst::Buffer::with_size(64).unwrap()]);
            assert_eq!(fate.received, 0, "{element}, {width}");
            assert_eq!(fate.errors.len(), 1, "{element}: {:?}", fate.errors);
            assert!(fate.errors[0].text.contains("wide"), "{:?}", fate.errors);
        }
    }
}
