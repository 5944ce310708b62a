//! The overlay in pipelines with the elements whose results it draws.

use gst::prelude::*;

use super::mask_pad;
use crate::{
    frames::read,
    support::{Pipeline, faults, register, start},
};

const FRAMES: usize = 100;
const SOURCE: &str = "videotestsrc num-buffers=100 pattern=ball ! \
                      video/x-raw,format=GRAY8,width=320,height=240,framerate=25/1";
const JUDGE: &str = "clpitchthreshold name=p PUBLISHED pitch-x=7.35 merge-distance=3";
const OUT: &str = "appsink name=out sync=false";

/// Runs a pipeline to EOS; returns the frames that reach `out`.
#[track_caller]
fn frames(line: &str) -> Vec<Vec<u8>> {
    let pipeline = Pipeline::new(line);
    let out: gst_app::AppSink = pipeline.get("out");
    pipeline.set_state(gst::State::Playing).unwrap();
    let frames = std::iter::from_fn(|| out.try_pull_sample(gst::ClockTime::from_seconds(60)))
        .map(|sample| read(&sample.buffer_owned().unwrap()))
        .collect();
    assert_eq!(
        pipeline.wait_for_end().type_(),
        gst::MessageType::Eos,
        "{line}"
    );
    frames
}

/// Applications that push frames often leave the framerate out of the caps.
#[test]
fn frames_and_masks_whose_caps_have_no_framerate_are_taken() {
    register();
    let without = |caps: &gst::Caps| {
        let mut caps = caps.clone();
        let structure = caps.make_mut().structure_mut(0).unwrap();
        structure.remove_field("framerate");
        caps
    };
    let grey = super::caps(gst_video::VideoFormat::Gray8, mask_pad::SIZE);
    for masks in [
        None,
        Some(mask_pad::bitmask_caps(mask_pad::SIZE)),
        Some(grey),
    ] {
        let mut pads = mask_pad::Pads::unfed("");
        let frames = super::caps(gst_video::VideoFormat::Bgrx, mask_pad::SIZE);
        pads.frames.set_src_caps(without(&frames));
        match &masks {
            Some(masks) => {
                pads.masks.set_src_caps(without(masks));
                let mut bytes = vec![0; mask_pad::SIZE[0] * mask_pad::SIZE[1]];
                if masks.structure(0).unwrap().name() == "video/x-raw" {
                    bytes[10 * mask_pad::SIZE[0] + 5] = 255;
                } else {
                    bytes = super::packed(mask_pad::SIZE, &[[5, 10, 1, 1]]);
                }
                pads.masks.push(super::buffer_at(&bytes, 0)).unwrap();
                assert_eq!(pads.frame(0), [5], "{masks}");
            }
            None => {
                assert!(pads.masks.push_event(gst::event::Eos::new()));
                assert_eq!(pads.frame(0), [0; 0]);
            }
        }
        let sent = pads.frames.sinkpad().unwrap().current_caps().unwrap();
        let rate = sent.structure(0).unwrap().get::<gst::Fraction>("framerate");
        assert_eq!(rate, Ok(gst::Fraction::new(0, 1)));
    }
}

#[test]
fn mask_pad_draws_what_the_metas_of_the_frames_draw() {
    if start().is_none() {
        return;
    }
    let plain = frames(&format!("{SOURCE} ! {OUT}"));
    let metas = frames(&format!(
        "{SOURCE} ! {JUDGE} output=frame ! inspectoverlay ! {OUT}"
    ));
    assert_eq!(metas.len(), FRAMES);
    assert!(
        metas
            .iter()
            .zip(&plain)
            .all(|(drawn, plain)| drawn != plain)
    );
    // The smallest queues, and masks as GRAY8.
    for (queue, format) in [
        ("queue", "video/x-bitmask"),
        ("queue max-size-buffers=1", "video/x-bitmask"),
        ("queue", "video/x-raw,format=GRAY8"),
    ] {
        let masks = frames(&format!(
            "{SOURCE} ! tee name=t  t. ! {queue} ! inspectoverlay name=o ! {OUT}  t. ! {queue} ! {JUDGE} ! {format} ! o.mask"
        ));
        assert_eq!(masks.len(), FRAMES, "{queue} {format}");
        for (n, (mask, meta)) in masks.iter().zip(&metas).enumerate() {
            assert!(mask == meta, "{queue} {format}: frame {n}");
        }
    }
}

#[test]
fn histogram_and_defects_of_device_memory_are_drawn() {
    if start().is_none() {
        return;
    }
    let line = format!("{SOURCE} ! clgaussian ! clhistogram ! {JUDGE} output=frame");
    let plain = frames(&format!("{line} ! {OUT}"));
    let places = "verdict-position=top histogram-corner=bottom-right";
    let drawn = frames(&format!("{line} ! inspectoverlay {places} ! {OUT}"));
    assert_eq!(drawn.len(), FRAMES);
    for (drawn, plain) in drawn.iter().zip(&plain) {
        // The bar at the top, the panel at the bottom.
        for rows in [0..18 * 320, 180 * 320..200 * 320] {
            assert!(drawn[rows.clone()] != plain[rows]);
        }
    }
}

#[test]
fn seeks_stops_and_pads_that_come_and_go_hang_nothing() {
    if start().is_none() {
        return;
    }
    let pipeline = Pipeline::new(&format!(
        "videotestsrc pattern=ball ! video/x-raw,format=GRAY8,width=64,height=48,framerate=100/1 ! \
         tee name=t  t. ! queue max-size-buffers=2 ! inspectoverlay name=o \
         ! fakesink sync=false  t. ! queue max-size-buffers=2 name=q ! {JUDGE}"
    ));
    let overlay: gst::Element = pipeline.get("o");
    let judge: gst::Element = pipeline.get("p");
    judge
        .link_pads(Some("src"), &overlay, Some("mask"))
        .unwrap();
    for round in 0..6 {
        pipeline.set_state(gst::State::Playing).unwrap();
        let (changed, ..) = pipeline.state(gst::ClockTime::from_seconds(30));
        changed.unwrap();
        for _ in 0..3 {
            pipeline
                .seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO)
                .unwrap();
        }
        if round % 2 == 0 {
            let pad = overlay.static_pad("mask").unwrap();
            // Block the branch first: without a peer pad a push fails.
            let source = judge.static_pad("src").unwrap();
            let probe = source.add_probe(gst::PadProbeType::BLOCK_DOWNSTREAM, |_, _| {
                gst::PadProbeReturn::Ok
            });
            overlay.release_request_pad(&pad);
            overlay.request_pad_simple("mask").unwrap();
            judge
                .link_pads(Some("src"), &overlay, Some("mask"))
                .unwrap();
            source.remove_probe(probe.unwrap());
        }
        pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn masks_without_frames_are_a_warning_that_says_what_to_link() {
    register();
    // gst-launch-1.0 links caps that `sink` does not accept to the mask pad.
    let line = |more: &str| {
        format!(
            "inspectoverlay name=o ! fakesink  appsrc ! video/x-bitmask,width=8,height=1,stride=1,\
             framerate=10/1,bit-order=msb-first ! o. {more}"
        )
    };
    for (more, warns) in [("", true), ("videotestsrc num-buffers=1 ! o.sink", false)] {
        let pipeline = Pipeline::new(&line(more));
        // Without frames the state change does not complete.
        let _ = pipeline.set_state(gst::State::Paused);
        let warnings = faults(&pipeline.bus().unwrap(), gst::MessageType::Warning);
        assert_eq!(warnings.len(), usize::from(warns), "{warnings:?}");
        for warning in warnings {
            assert!(warning.text.contains("o.sink"), "{warning:?}");
            assert!(warning.text.contains("output=frame"), "{warning:?}");
        }
        pipeline.set_state(gst::State::Null).unwrap();
    }
}
