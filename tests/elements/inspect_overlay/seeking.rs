//! Seeks with one source for frames and masks, and with a source for each.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use gst::prelude::*;

use super::mask_pad::LONG;
use crate::{
    frames::read,
    support::{Pipeline, register},
};

/// A picture and a mask whose marked pixels move.
const SOURCE: &str = "videotestsrc pattern=ball animation-mode=frames";
const CAPS: &str = "video/x-raw,format=GRAY8,width=96,height=64,framerate=25/1";
const OVERLAY: &str = "inspectoverlay name=o show-verdict=false tint-color=0xff000000";
const OUT: &str = "appsink name=out sync=false max-buffers=2";
const WAIT: gst::ClockTime = gst::ClockTime::from_seconds(30);
const FRAME: gst::ClockTime = gst::ClockTime::from_mseconds(40);

/// A source for the frames and one for the masks.
fn two_sources() -> Pipeline {
    register();
    Pipeline::new(&format!(
        "{SOURCE} name=frames ! {CAPS} ! {OVERLAY} ! {OUT}  \
         {SOURCE} name=masks ! {CAPS} ! queue ! o.mask"
    ))
}

/// One source for both.
fn one_source() -> Pipeline {
    register();
    Pipeline::new(&format!(
        "{SOURCE} name=frames ! {CAPS} ! tee name=t  t. ! queue ! {OVERLAY} ! {OUT}  \
         t. ! queue ! o.mask"
    ))
}

/// Counts events of a kind that an element's source pad takes from downstream.
fn counted(pipeline: &Pipeline, element: &str, kind: gst::EventType) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let pad = pipeline.get::<gst::Element>(element).static_pad("src");
    pad.unwrap()
        .add_probe(gst::PadProbeType::EVENT_UPSTREAM, move |_, info| {
            if info.event().is_some_and(|event| event.type_() == kind) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
            gst::PadProbeReturn::Ok
        });
    count
}

/// Positions of the next frames, counted in frames.
fn next(pipeline: &Pipeline, count: usize) -> BTreeMap<u64, Vec<u8>> {
    let out: gst_app::AppSink = pipeline.get("out");
    (0..count)
        .map(|_| {
            let sample = out.try_pull_sample(WAIT).expect("a frame in time");
            let frame = sample.buffer_owned().unwrap();
            (frame.pts().unwrap() / FRAME, read(&frame))
        })
        .collect()
}

fn play(pipeline: &Pipeline) {
    pipeline.set_state(gst::State::Playing).unwrap();
    pipeline.state(WAIT).0.unwrap();
}

/// Number of seeks that reach each source.
fn sought(pipeline: &Pipeline, sources: &[&str]) -> Vec<Arc<AtomicUsize>> {
    let count = |source: &&str| counted(pipeline, source, gst::EventType::Seek);
    sources.iter().map(count).collect()
}

/// Sends a seek to a frame into the overlay's source pad, as a sink does.
fn seek(pipeline: &Pipeline, flags: gst::SeekFlags, frame: u64) -> bool {
    let pad = pipeline.get::<gst::Element>("o").static_pad("src").unwrap();
    pad.send_event(gst::event::Seek::new(
        1.0,
        flags | gst::SeekFlags::ACCURATE,
        gst::SeekType::Set,
        FRAME * frame,
        gst::SeekType::None,
        gst::ClockTime::NONE,
    ))
}

#[test]
fn flushing_seek_brings_frames_and_masks_to_the_same_place() {
    let unsought = two_sources();
    play(&unsought);
    let wanted = next(&unsought, 45);
    let mask_of_another_frame_shows = wanted[&0] != wanted[&30];
    assert!(mask_of_another_frame_shows);
    for (pipeline, sources) in [
        (two_sources(), &["frames", "masks"][..]),
        (one_source(), &["frames"][..]),
    ] {
        let seeks = sought(&pipeline, sources);
        play(&pipeline);
        for (round, place) in (1..).zip([30, 3, 12, 0]) {
            next(&pipeline, 3);
            assert!(seek(&pipeline, gst::SeekFlags::FLUSH, place));
            let found = next(&pipeline, 10);
            for (at, frame) in found {
                assert!(
                    (place..place + 10).contains(&at),
                    "{sources:?}: {at} after {place}"
                );
                assert!(
                    frame == wanted[&at],
                    "{sources:?}: frame {at} after {place}"
                );
            }
            // GstAggregator sends a seek up each branch; both branches may end at one source.
            for count in &seeks {
                assert!(count.load(Ordering::Relaxed) >= round, "{sources:?}");
            }
        }
    }
}

#[test]
fn seek_without_flush_reaches_each_source() {
    for (pipeline, sources) in [
        (two_sources(), &["frames", "masks"][..]),
        (one_source(), &["frames"][..]),
    ] {
        let seeks = sought(&pipeline, sources);
        // The seek waits until the source has pushed its current buffer.
        let out: gst_app::AppSink = pipeline.get("out");
        out.set_drop(true);
        play(&pipeline);
        next(&pipeline, 1);
        let begin = std::time::Instant::now();
        assert!(seek(&pipeline, gst::SeekFlags::empty(), 1000));
        let took = begin.elapsed();
        assert!(took < LONG, "{sources:?}: {took:?}");
        for count in &seeks {
            assert!(count.load(Ordering::Relaxed) >= 1, "{sources:?}");
        }
    }
}

#[test]
fn seek_that_a_source_cannot_follow_is_refused_and_the_picture_goes_on() {
    register();
    let stuck =
        |name: &str| format!("appsrc name={name} format=time stream-type=stream caps={CAPS}");
    let [seekable, frames] = [format!("{SOURCE} name=other ! {CAPS}"), stuck("frames")];
    for (frames, masks) in [(&seekable, &stuck("masks")), (&frames, &seekable)] {
        let pipeline = Pipeline::new(&format!("{frames} ! {OVERLAY} ! {OUT}  {masks} ! o.mask"));
        let fixed: gst_app::AppSrc = pipeline
            .by_name("masks")
            .or_else(|| pipeline.by_name("frames"))
            .unwrap()
            .downcast()
            .unwrap();
        let seeks = counted(&pipeline, "other", gst::EventType::Seek);
        let send = |frame: u64| {
            let buffer = super::buffer_at(&[0; 96 * 64], 40 * frame);
            fixed.push_buffer(buffer).unwrap();
        };
        (0..4).for_each(send);
        play(&pipeline);
        next(&pipeline, 2);
        let pad = pipeline.get::<gst::Element>("o").static_pad("src").unwrap();
        let mut query = gst::query::Seeking::new(gst::Format::Time);
        assert!(pad.query(&mut query) && !query.result().0);
        assert!(!seek(&pipeline, gst::SeekFlags::FLUSH, 20));
        assert_eq!(seeks.load(Ordering::Relaxed), 0);
        assert_eq!(next(&pipeline, 2).into_keys().last(), Some(3));
    }
}

#[test]
fn latency_of_the_pipeline_is_told_to_both_sources() {
    let pipeline = two_sources();
    let told =
        ["frames", "masks"].map(|source| counted(&pipeline, source, gst::EventType::Latency));
    let pad = pipeline.get::<gst::Element>("o").static_pad("src").unwrap();
    play(&pipeline);
    next(&pipeline, 1);
    let before = told.each_ref().map(|count| count.load(Ordering::Relaxed));
    pad.send_event(gst::event::Latency::new(FRAME));
    let after = told.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert_eq!(after, before.map(|count| count + 1));
}
