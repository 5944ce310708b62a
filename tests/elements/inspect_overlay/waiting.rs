//! Duration of a frame's wait for its mask, and the events that end the wait.

use std::{
    thread,
    time::{Duration, Instant},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;

use super::{
    NOTHING, buffer_at, caps, frame_at,
    mask_pad::{LONG, Pads, SIZE, bitmask_caps, tinted},
    packed,
};
use crate::{
    frames::read,
    support::{Pipeline, register},
};

/// Time after which another thread surely waits; longer than any wait with default settings.
const A_WHILE: Duration = Duration::from_millis(300);

/// Frames and masks from two appsrc, not live.
struct Fed {
    pipeline: Pipeline,
    frames: gst_app::AppSrc,
    masks: gst_app::AppSrc,
    out: gst_app::AppSink,
}

impl Fed {
    fn new() -> Self {
        register();
        let overlay = NOTHING.replace("show-tint=false", "show-tint=true tint-color=0xff0000ff");
        let pipeline = Pipeline::new(&format!(
            "appsrc name=frames format=time ! {overlay} ! appsink name=out sync=false  \
             appsrc name=masks format=time ! o.mask"
        ));
        let [frames, masks]: [gst_app::AppSrc; 2] = ["frames", "masks"].map(|n| pipeline.get(n));
        frames.set_caps(Some(&caps(Format::Bgrx, SIZE)));
        masks.set_caps(Some(&bitmask_caps(SIZE)));
        pipeline.set_state(gst::State::Playing).unwrap();
        let out = pipeline.get("out");
        Self {
            pipeline,
            frames,
            masks,
            out,
        }
    }

    fn frame(&self, ms: u64) {
        let frame = frame_at(Format::Bgrx, SIZE, ms);
        self.frames.push_buffer(frame).unwrap();
    }

    fn mask(&self, x: usize, ms: u64) {
        let mask = buffer_at(&packed(SIZE, &[[x, 10, 1, 1]]), ms);
        self.masks.push_buffer(mask).unwrap();
    }

    /// Timestamp and tinted columns of the next frame, if one leaves within this time.
    fn next(&self, limit: Duration) -> Option<(u64, Vec<usize>)> {
        let limit = gst::ClockTime::try_from(limit).unwrap();
        let frame = self.out.try_pull_sample(limit)?.buffer_owned().unwrap();
        Some((frame.pts().unwrap().mseconds(), tinted(read(&frame))))
    }
}

#[test]
fn frames_that_are_not_live_wait_for_their_masks() {
    let fed = Fed::new();
    (0..4).for_each(|n| fed.frame(40 * n));
    fed.mask(5, 0);
    assert_eq!(fed.next(LONG), Some((0, vec![5])));
    assert_eq!(fed.next(A_WHILE), None);
    // A later mask shows that there is none for 80 ms.
    fed.mask(6, 40);
    assert_eq!(fed.next(LONG), Some((40, vec![6])));
    assert_eq!(fed.next(A_WHILE), None);
    fed.mask(8, 120);
    assert_eq!(fed.next(LONG), Some((80, vec![])));
    assert_eq!(fed.next(LONG), Some((120, vec![8])));
    // EOS of the masks shows that there is none for 160 ms.
    fed.frame(160);
    assert_eq!(fed.next(A_WHILE), None);
    fed.masks.end_of_stream().unwrap();
    assert_eq!(fed.next(LONG), Some((160, vec![])));
    fed.frames.end_of_stream().unwrap();
    assert_eq!(fed.pipeline.wait_for_end().type_(), gst::MessageType::Eos);
}

#[test]
fn gap_in_the_masks_lets_its_frames_go_on() {
    let fed = Fed::new();
    (0..4).for_each(|n| fed.frame(40 * n));
    fed.mask(5, 0);
    let gap = gst::event::Gap::builder(gst::ClockTime::from_mseconds(40))
        .duration(gst::ClockTime::from_mseconds(80));
    assert_eq!(fed.next(LONG), Some((0, vec![5])));
    assert!(fed.masks.send_event(gap.build()));
    assert_eq!(fed.next(LONG), Some((40, vec![])));
    assert_eq!(fed.next(LONG), Some((80, vec![])));
    assert_eq!(fed.next(A_WHILE), None);
    fed.mask(6, 120);
    assert_eq!(fed.next(LONG), Some((120, vec![6])));
}

#[test]
fn stream_ends_with_the_frames_although_masks_go_on() {
    let fed = Fed::new();
    fed.frame(0);
    fed.frames.end_of_stream().unwrap();
    (0..9).for_each(|n| fed.mask(5, 40 * n));
    assert_eq!(fed.next(LONG), Some((0, vec![5])));
    assert_eq!(fed.next(LONG), None);
    assert_eq!(fed.pipeline.wait_for_end().type_(), gst::MessageType::Eos);
}

#[test]
fn frame_without_a_timestamp_goes_on_without_a_mask() {
    let fed = Fed::new();
    fed.mask(5, 0);
    let mut untimed = frame_at(Format::Bgrx, SIZE, 0);
    untimed.get_mut().unwrap().set_pts(None);
    fed.frames.push_buffer(untimed).unwrap();
    fed.frame(0);
    let sample = fed.out.try_pull_sample(gst::ClockTime::from_seconds(20));
    let first = sample.unwrap().buffer_owned().unwrap();
    assert_eq!((first.pts(), tinted(read(&first))), (None, vec![]));
    assert_eq!(fed.next(LONG), Some((0, vec![5])));
}

#[test]
fn live_masks_may_take_as_long_as_their_branch_says() {
    register();
    // The branch reports 2 s and takes 250 ms; the camera's latency is one frame.
    let line = NOTHING.replace("show-verdict=false", "verdict-position=top");
    let pipeline = Pipeline::new(&format!(
        "videotestsrc is-live=true num-buffers=20 ! video/x-raw,format=GRAY8,width=160,height=120,\
         framerate=50/1 ! tee name=t  t. ! queue ! {line} ! appsink name=out sync=false  \
         t. ! queue ! identity name=slow ! queue name=late min-threshold-time=250000000 ! o.mask"
    ));
    let pad = pipeline
        .get::<gst::Element>("slow")
        .static_pad("src")
        .unwrap();
    let answers = gst::PadProbeType::QUERY_UPSTREAM | gst::PadProbeType::PULL;
    pad.add_probe(answers, |_, info| {
        if let Some(query) = info.query_mut()
            && let gst::QueryViewMut::Latency(latency) = query.view_mut()
        {
            let (live, min, _) = latency.result();
            latency.set(live, min + gst::ClockTime::from_seconds(2), None);
        }
        gst::PadProbeReturn::Ok
    });
    let out: gst_app::AppSink = pipeline.get("out");
    pipeline.set_state(gst::State::Playing).unwrap();
    for n in 0..20 {
        let sample = out.try_pull_sample(gst::ClockTime::from_seconds(20));
        let frame = read(&sample.unwrap().buffer_owned().unwrap());
        // The colour of NO VERDICT (a mask without meta); the colour of NO MASK is brighter.
        assert!(
            (80..140).contains(&frame[2 * 160 + 2]),
            "{n}: {}",
            frame[2 * 160 + 2]
        );
    }
}

#[test]
fn live_frame_goes_on_at_its_deadline() {
    let ms = gst::ClockTime::from_mseconds;
    let mut pads = Pads::new("");
    pads.frames.set_upstream_latency(ms(30));
    pads.masks.set_upstream_latency(ms(30));
    for n in 0..3 {
        let frame = frame_at(Format::Bgrx, SIZE, 40 * n);
        pads.frames.push(frame).unwrap();
        assert!(pads.frames.wait_for_clock_id_waits(1, 20).is_ok());
        assert!(pads.frames.try_pull().is_none());
        pads.frames.crank_single_clock_wait().unwrap();
        let out = pads.frames.pull().unwrap();
        assert_eq!(tinted(read(&out)), [0; 0]);
        let clock = pads.frames.testclock().unwrap();
        assert_eq!(clock.time(), ms(40 * n + 130));
    }
    // A late mask is dropped; the next mask is drawn.
    pads.mask(5, 80);
    pads.mask(6, 120);
    assert_eq!(pads.frame(120), [6]);
}

#[test]
fn latency_is_that_of_the_slower_branch_and_the_inspection() {
    let ms = gst::ClockTime::from_mseconds;
    let mut pads = Pads::new("");
    pads.frames.set_upstream_latency(ms(33));
    pads.masks.set_upstream_latency(ms(200));
    assert_eq!(pads.frames.query_latency(), Some(ms(300)));
    pads.element.set_property("latency", 5_000_000_u64);
    assert_eq!(pads.frames.query_latency(), Some(ms(205)));
    pads.element.set_property("latency", 100_000_000_u64);
    let pad = pads.element.static_pad("mask").unwrap();
    pads.element.release_request_pad(&pad);
    assert_eq!(pads.frames.query_latency(), Some(ms(33)));
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
    element.release_request_pad(&pad);
    assert_eq!(told(), 1);
    // A latency that the application set stays.
    element.set_property("latency", 5_000_000_u64);
    assert_eq!(told(), 1);
    let pad = element.request_pad_simple("mask").unwrap();
    element.release_request_pad(&pad);
    assert_eq!(told(), 0);
    assert_eq!(element.property::<u64>("latency"), 5_000_000);
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
    let mut query = gst::query::Latency::new();
    assert!(pipeline.get::<gst::Element>("o").query(&mut query));
    assert!(!query.result().0);
}

/// Sends a frame that waits for its mask, and calls `wake`; if `goes_on`, the frame must leave then.
#[track_caller]
fn assert_woken(what: &str, goes_on: bool, wake: impl FnOnce(&gst::Element, &gst::Pad)) {
    let mut pads = Pads::new("");
    let pad = pads.element.static_pad("mask").unwrap();
    pads.frames.push(frame_at(Format::Bgrx, SIZE, 0)).unwrap();
    assert!(pads.frames.wait_for_clock_id_waits(1, 20).is_ok(), "{what}");
    let begin = Instant::now();
    wake(&pads.element, &pad);
    if goes_on {
        assert_eq!(tinted(read(&pads.frames.pull().unwrap())), [0; 0], "{what}");
    }
    let took = begin.elapsed();
    assert!(took < LONG, "{what}: {took:?}");
}

#[test]
fn whatever_ends_the_masks_ends_the_wait() {
    assert_woken("end of stream", true, |_, pad| {
        assert!(pad.send_event(gst::event::Eos::new()));
    });
    assert_woken("gap", true, |_, pad| {
        let gap = gst::event::Gap::builder(gst::ClockTime::ZERO)
            .duration(gst::ClockTime::from_mseconds(40));
        assert!(pad.send_event(gap.build()));
    });
    assert_woken("release of the pad", true, |element, pad| {
        element.release_request_pad(pad);
    });
    assert_woken("flush of the frames", false, |element, _| {
        let pad = element.static_pad("sink").unwrap();
        assert!(pad.send_event(gst::event::FlushStart::new()));
    });
    assert_woken("stop", false, |element, _| {
        element.set_state(gst::State::Null).unwrap();
    });
}

#[test]
fn ended_masks_are_not_waited_for_and_a_new_stream_of_them_is() {
    let mut pads = Pads::new("");
    pads.mask(5, 0);
    assert!(pads.masks.push_event(gst::event::Eos::new()));
    assert_eq!(pads.frame(0), [5]);
    for n in 1..5 {
        assert_eq!(pads.frame(40 * n), [0; 0]);
    }
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    for event in [
        gst::event::StreamStart::new("again"),
        gst::event::Caps::new(&bitmask_caps(SIZE)),
        gst::event::Segment::new(&segment),
    ] {
        assert!(pads.masks.push_event(event));
    }
    pads.frames.push(frame_at(Format::Bgrx, SIZE, 200)).unwrap();
    assert!(pads.frames.wait_for_clock_id_waits(1, 20).is_ok());
    pads.mask(6, 200);
    assert_eq!(tinted(read(&pads.frames.pull().unwrap())), [6]);
}

#[test]
fn pad_that_is_not_linked_is_not_waited_for() {
    register();
    for request_first in [true, false] {
        let pipeline = Pipeline::new(
            "videotestsrc num-buffers=50 ! video/x-raw,width=64,height=48 ! \
             inspectoverlay name=o ! fakesink sync=false",
        );
        let element: gst::Element = pipeline.get("o");
        let request = || assert!(!element.request_pad_simple("mask").unwrap().is_linked());
        if request_first {
            request();
        }
        pipeline.set_state(gst::State::Paused).unwrap();
        pipeline.state(gst::ClockTime::from_seconds(20)).0.unwrap();
        if !request_first {
            request();
        }
        // A seek does not wait for the unlinked pad either.
        let flags = gst::SeekFlags::FLUSH;
        pipeline.seek_simple(flags, gst::ClockTime::ZERO).unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        assert_eq!(pipeline.wait_for_end().type_(), gst::MessageType::Eos);
    }
}

#[test]
fn mask_caps_are_asked_for_before_masks() {
    let mut pads = Pads::unfed("");
    let pad = pads.element.static_pad("mask").unwrap();
    let wanted = pad.query_caps(None);
    assert!(wanted.can_intersect(&bitmask_caps(SIZE)));
    assert!(!wanted.can_intersect(&super::caps(Format::Bgrx, SIZE)));
    thread::sleep(A_WHILE);
    assert_eq!(pads.frame_in_vain(0), [0; 0]);
}

const HOUR: u64 = 3_600_000;

#[test]
fn frame_an_hour_ahead_without_its_mask_does_not_stop_the_picture() {
    let fed = Fed::new();
    fed.frame(0);
    fed.mask(5, 0);
    assert_eq!(fed.next(LONG), Some((0, vec![5])));
    fed.frame(HOUR);
    // One mask may be a late one.
    fed.mask(6, 40);
    assert_eq!(fed.next(A_WHILE), None);
    fed.mask(7, 80);
    assert_eq!(fed.next(LONG), Some((HOUR, vec![])));
    for (mask, ms) in [(6, 40), (7, 80)] {
        fed.frame(ms);
        assert_eq!(fed.next(LONG), Some((ms, vec![mask])));
    }
}

#[test]
fn frames_and_masks_that_jump_together_stay_together() {
    let fed = Fed::new();
    for (n, ms) in [0, HOUR, HOUR + 40, 80, 120].into_iter().enumerate() {
        fed.frame(ms);
        fed.mask(n, ms);
        assert_eq!(fed.next(LONG), Some((ms, vec![n])));
    }
}

#[test]
fn mask_an_hour_ahead_hides_no_other_mask() {
    let fed = Fed::new();
    fed.frame(0);
    fed.mask(5, HOUR);
    assert_eq!(fed.next(LONG), Some((0, vec![])));
    for n in 1..4 {
        fed.mask(n, 40 * n as u64);
        fed.frame(40 * n as u64);
        assert_eq!(fed.next(LONG), Some((40 * n as u64, vec![n])));
    }
    // The frame that the mask belongs to.
    fed.frame(HOUR);
    fed.mask(6, HOUR + 40);
    assert_eq!(fed.next(LONG), Some((HOUR, vec![5])));
}

#[test]
fn live_frame_an_hour_ahead_waits_for_a_second_at_most() {
    let seconds = gst::ClockTime::from_seconds;
    let mut pads = Pads::new("");
    for n in [0, HOUR, 40] {
        pads.frames.push(frame_at(Format::Bgrx, SIZE, n)).unwrap();
        assert!(pads.frames.wait_for_clock_id_waits(1, 20).is_ok());
        pads.frames.crank_single_clock_wait().unwrap();
        let out = pads.frames.pull().unwrap();
        assert_eq!(out.pts(), Some(gst::ClockTime::from_mseconds(n)));
        let clock = pads.frames.testclock().unwrap();
        assert!(clock.time() < seconds(3), "{}", clock.time());
    }
}
