//! How long a frame waits for its mask, and what ends the wait.

use std::{
    thread,
    time::{Duration, Instant},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;

use super::{
    buffer_at, frame_at,
    mask_pad::{LONG, Pads, SIZE, bitmask_caps, tinted},
    packed,
};
use crate::{
    frames::read,
    support::{Pipeline, register},
};

/// A timeout longer than any test takes, ns.
const FOR_EVER: &str = "mask-timeout=600000000000";
/// Until another thread surely waits.
const A_WHILE: Duration = Duration::from_millis(50);

#[test]
fn late_mask_delays_the_picture_by_the_timeout_once() {
    let mut pads = Pads::new("mask-timeout=300000000");
    let begin = Instant::now();
    assert_eq!(pads.frame(0), [0; 0]);
    let first = begin.elapsed();
    assert!(first >= Duration::from_millis(300), "{first:?}");
    assert!(first < LONG, "{first:?}");
    // Nothing has come since: the next ones do not wait.
    let begin = Instant::now();
    for n in 1..50 {
        assert_eq!(pads.frame(40 * n), [0; 0]);
    }
    let others = begin.elapsed();
    assert!(others < 49 * Duration::from_millis(300) / 2, "{others:?}");
    // Masks come again, the first of them too late for its frame.
    pads.mask(5, 40);
    pads.mask(6, 2000);
    assert_eq!(pads.frame(2000), [6]);
}

#[test]
fn timeout_of_zero_waits_for_nothing_and_draws_what_is_there() {
    let mut pads = Pads::new("mask-timeout=0");
    pads.mask(5, 40);
    for (ms, x) in [(0, &[][..]), (40, &[5][..]), (80, &[][..])] {
        assert_eq!(pads.frame(ms), x, "{ms} ms");
    }
}

#[test]
fn mask_that_comes_while_its_frame_waits_is_drawn() {
    let mut pads = Pads::new(FOR_EVER);
    let masks = &mut pads.masks;
    let frames = &mut pads.frames;
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(A_WHILE);
            let mask = buffer_at(&packed(SIZE, &[[7, 10, 1, 1]]), 0);
            masks.push(mask).unwrap();
        });
        frames.push(frame_at(Format::Bgrx, SIZE, 0)).unwrap();
    });
    assert_eq!(tinted(read(&pads.frames.pull().unwrap())), [7]);
    assert!(begin.elapsed() < LONG);
}

/// Sends a frame, and does something to the mask pad while it waits; tells whether it came out
/// well before the timeout.
#[track_caller]
fn assert_woken(what: &str, wake: impl FnOnce(&gst::Element, &gst::Pad) + Send) {
    let mut pads = Pads::new(FOR_EVER);
    let element = pads.element.clone();
    let pad = element.static_pad("mask").unwrap();
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(A_WHILE);
            wake(&element, &pad);
        });
        let flow = pads.frames.push(frame_at(Format::Bgrx, SIZE, 0));
        let flushed = matches!(flow, Err(gst::FlowError::Flushing));
        assert!(flow.is_ok() || flushed, "{what}: {flow:?}");
    });
    let took = begin.elapsed();
    assert!(took < LONG, "{what}: {took:?}");
}

#[test]
fn whatever_ends_the_masks_ends_the_wait() {
    assert_woken("end of stream", |_, pad| {
        assert!(pad.send_event(gst::event::Eos::new()));
    });
    assert_woken("gap", |_, pad| {
        let gap = gst::event::Gap::builder(gst::ClockTime::ZERO)
            .duration(gst::ClockTime::from_mseconds(40));
        assert!(pad.send_event(gap.build()));
    });
    assert_woken("flush of the masks", |_, pad| {
        assert!(pad.send_event(gst::event::FlushStart::new()));
    });
    assert_woken("flush of the frames", |element, _| {
        let pad = element.static_pad("sink").unwrap();
        assert!(pad.send_event(gst::event::FlushStart::new()));
    });
    assert_woken("release of the pad", |element, pad| {
        element.release_request_pad(pad);
    });
    assert_woken("stop", |element, _| {
        element.set_state(gst::State::Null).unwrap();
    });
}

#[test]
fn ended_masks_are_not_waited_for() {
    let mut pads = Pads::new(FOR_EVER);
    pads.mask(5, 0);
    assert!(pads.masks.push_event(gst::event::Eos::new()));
    assert_eq!(pads.frame(0), [5]);
    for n in 1..5 {
        assert_eq!(pads.frame(40 * n), [0; 0]);
    }
}

#[test]
fn pad_that_is_not_linked_is_not_waited_for() {
    register();
    let pipeline = Pipeline::new(&format!(
        "videotestsrc num-buffers=5 ! video/x-raw,width=64,height=48 ! \
         inspectoverlay name=o {FOR_EVER} ! fakesink sync=false"
    ));
    let element: gst::Element = pipeline.get("o");
    let pad = element.request_pad_simple("mask").unwrap();
    assert!(!pad.is_linked());
    pipeline.set_state(gst::State::Playing).unwrap();
    assert_eq!(pipeline.wait_for_end().type_(), gst::MessageType::Eos);
}

#[test]
fn full_queue_blocks_its_sender_until_frames_stop_or_the_pad_closes() {
    let mut pads = Pads::new("mask-timeout=200000000");
    let begin = Instant::now();
    // No frame is under way: what does not fit goes after the timeout.
    for n in 0..10 {
        pads.mask(n as usize, 40 * n);
    }
    assert!(begin.elapsed() >= Duration::from_millis(400));
    assert_eq!(pads.frame(0), [0; 0]);
    for n in 2..10 {
        assert_eq!(pads.frame(40 * n), [n as usize]);
    }
    // Frames have ended: masks are taken and forgotten.
    assert!(pads.frames.push_event(gst::event::Eos::new()));
    let begin = Instant::now();
    for n in 10..60 {
        pads.mask(n as usize, 40 * n);
    }
    assert!(begin.elapsed() < LONG);
}

#[test]
fn latency_includes_the_timeout_while_there_is_the_pad() {
    let ms = gst::ClockTime::from_mseconds;
    let mut pads = Pads::new("mask-timeout=70000000");
    pads.frames.set_upstream_latency(ms(30));
    assert_eq!(pads.frames.query_latency(), Some(ms(100)));
    pads.element.set_property("mask-timeout", 5_000_000_u64);
    assert_eq!(pads.frames.query_latency(), Some(ms(35)));
    let pad = pads.element.static_pad("mask").unwrap();
    pads.element.release_request_pad(&pad);
    assert_eq!(pads.frames.query_latency(), Some(ms(30)));
}

#[test]
fn latency_is_told_anew_when_it_changes() {
    register();
    let pipeline = Pipeline::new("videotestsrc is-live=true ! inspectoverlay name=o ! fakesink");
    let element: gst::Element = pipeline.get("o");
    let bus = pipeline.bus().unwrap();
    let told = || {
        let kinds = [gst::MessageType::Latency];
        std::iter::from_fn(|| bus.pop_filtered(&kinds)).count()
    };
    told();
    let pad = element.request_pad_simple("mask").unwrap();
    assert_eq!(told(), 1);
    element.set_property("mask-timeout", 5_000_000_u64);
    assert_eq!(told(), 1);
    element.release_request_pad(&pad);
    assert_eq!(told(), 1);
    element.set_property("mask-timeout", 6_000_000_u64);
    assert_eq!(told(), 0);
}

#[test]
fn source_that_is_not_live_has_no_latency() {
    register();
    let pipeline = Pipeline::new(
        "videotestsrc name=s ! inspectoverlay name=o ! fakesink  \
         videotestsrc ! video/x-raw,format=GRAY8 ! o.mask",
    );
    pipeline.set_state(gst::State::Paused).unwrap();
    let (changed, ..) = pipeline.state(gst::ClockTime::from_seconds(20));
    changed.unwrap();
    let latency = |name| {
        let mut query = gst::query::Latency::new();
        assert!(pipeline.get::<gst::Element>(name).query(&mut query));
        query.result()
    };
    assert!(!latency("o").0);
    assert_eq!(latency("o"), latency("s"));
}

#[test]
fn mask_caps_are_asked_for_before_masks() {
    let mut pads = Pads::unfed("mask-timeout=0");
    let pad = pads.element.static_pad("mask").unwrap();
    let wanted = pad.query_caps(None);
    assert!(wanted.can_intersect(&bitmask_caps(SIZE)));
    assert!(!wanted.can_intersect(&super::caps(Format::Bgrx, SIZE)));
    assert_eq!(pads.frame(0), [0; 0]);
}
