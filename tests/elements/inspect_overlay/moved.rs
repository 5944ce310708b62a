//! Pictures that are mirrored, turned, cropped or scaled between the inspection and the overlay.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use super::{NOTHING, caps, found, frame_at};
use crate::{
    frames::read,
    support::{Pipeline, Rig, register, start},
};

const SIZE: [usize; 2] = [64, 32];
/// Left of the middle, so that mirroring moves it.
const SPOT: [usize; 4] = [8, 6, 10, 8];

/// A frame with a result on it.
fn judged() -> gst::Buffer {
    let mut frame = frame_at(Format::I420, SIZE, 0);
    found(SIZE, &[SPOT])
        .attach(frame.get_mut().unwrap())
        .unwrap();
    frame
}

/// The result behind an element, and whether the overlay draws it: its box, its tint, its label.
fn drawn_behind(element: &str) -> (DefectResult, [bool; 3]) {
    let is_drawn = ["show-boxes", "show-tint", "show-labels"].map(|part| {
        let line = |overlay: &str| {
            // RGB behind the element: a change of luma is a change of bytes.
            format!("{element} ! videoconvert ! capsfilter caps=video/x-raw,format=RGB ! {overlay}")
        };
        let off = format!("{part}=false");
        let mut on = format!("{part}=true");
        if part == "show-labels" {
            on = "show-boxes=true show-labels=true".into();
        }
        let overlay = NOTHING.replace(&off, &on);
        let mut with = Rig::new(&line(&overlay), &caps(Format::I420, SIZE));
        let mut without = Rig::new(&line(NOTHING), &caps(Format::I420, SIZE));
        read(&with.pass(judged())) != read(&without.pass(judged()))
    });
    let mut rig = Rig::new(element, &caps(Format::I420, SIZE));
    let result = DefectResult::read(&rig.pass(judged())).remove(0);
    (result, is_drawn)
}

/// Whether all elements of a description are installed; otherwise a visible skip.
fn is_installed(description: &str) -> bool {
    let missing = description.split('!').find(|part| {
        let name = part.split_whitespace().next().unwrap_or_default();
        gst::ElementFactory::find(name).is_none()
    });
    if let Some(missing) = missing {
        crate::device::skip(description, &format!("there is no{missing}"));
    }
    missing.is_none()
}

#[test]
fn moved_pictures_keep_their_verdict_and_get_no_marks() {
    register();
    for element in [
        "videoflip video-direction=horiz",
        "videoflip video-direction=vert",
        "videoflip video-direction=180",
        "videoflip video-direction=90r",
        "videoflip video-direction=ul-lr",
        "videocrop left=8",
        "videocrop bottom=8",
        "videobox left=-8",
        "videobox top=8",
        "videoflip video-direction=horiz ! videoflip video-direction=horiz",
        "jpegenc ! jpegdec ! videocrop left=8",
    ] {
        if !is_installed(element) {
            continue;
        }
        let (result, is_drawn) = drawn_behind(element);
        assert!(result.is_moved, "{element}");
        assert_eq!(result.verdict, Verdict::Fail, "{element}");
        assert_eq!(is_drawn, [false; 3], "{element}");
    }
}

#[test]
fn other_elements_leave_the_marks_where_they_are() {
    register();
    for element in [
        "identity",
        "videoconvert ! capsfilter caps=video/x-raw,format=BGRx",
        "videoscale ! capsfilter caps=video/x-raw,width=128,height=64",
        "videobalance brightness=0.2",
        "gamma gamma=1.5",
        "jpegenc ! jpegdec",
        "videoconvert ! capsfilter caps=video/x-raw,format=GRAY8",
    ] {
        if !is_installed(element) {
            continue;
        }
        let (result, is_drawn) = drawn_behind(element);
        assert!(!result.is_moved, "{element}");
        assert_eq!(is_drawn, [true; 3], "{element}");
    }
}

#[test]
fn verdict_of_a_moved_picture_is_drawn() {
    register();
    let overlay = NOTHING.replace("show-verdict=false", "show-verdict=true");
    let line = |overlay: &str| format!("videoflip video-direction=horiz ! {overlay}");
    let mut with = Rig::new(&line(&overlay), &caps(Format::I420, [320, 240]));
    let mut without = Rig::new(&line(NOTHING), &caps(Format::I420, [320, 240]));
    let frame = || {
        let mut frame = frame_at(Format::I420, [320, 240], 0);
        let result = found([320, 240], &[SPOT]);
        result.attach(frame.get_mut().unwrap()).unwrap();
        frame
    };
    assert!(read(&with.pass(frame())) != read(&without.pass(frame())));
}

#[test]
fn results_of_this_plugin_pass_its_own_elements_in_place() {
    if start().is_none() {
        return;
    }
    let line = "clpitchthreshold pitch-x=8 min-contrast=0 threshold=5 output=frame ! clgaussian ! clhistogram";
    let mut rig = Rig::new(line, &caps(Format::I420, SIZE));
    let result = DefectResult::read(&rig.pass(frame_at(Format::I420, SIZE, 0))).remove(0);
    assert!(!result.is_moved);
}

/// A source that may leave cropping to the sink would send frames of another size than its caps say.
#[test]
fn overlay_offers_no_meta_that_only_the_sink_honours() {
    register();
    let overlay = NOTHING.replace("show-boxes=false", "show-boxes=true");
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time ! videocrop left=4 ! {overlay} ! appsink name=out sync=false"
    ));
    let [source, out]: [gst::Element; 2] = ["in", "out"].map(|name| pipeline.get(name));
    let source = source.downcast::<gst_app::AppSrc>().unwrap();
    let out = out.downcast::<gst_app::AppSink>().unwrap();
    let crop = gst_video::VideoCropMeta::meta_api();
    let pad = out.static_pad("sink").unwrap();
    pad.add_probe(
        gst::PadProbeType::QUERY_DOWNSTREAM,
        move |_, info| match info.query_mut().map(|query| query.view_mut()) {
            Some(gst::QueryViewMut::Allocation(query)) => {
                query.add_allocation_meta::<gst_video::VideoCropMeta>(None);
                query.add_allocation_meta::<gst_video::VideoMeta>(None);
                gst::PadProbeReturn::Handled
            }
            _ => gst::PadProbeReturn::Ok,
        },
    );
    assert!(crop.is_valid());
    source.set_caps(Some(&caps(Format::Bgrx, SIZE)));
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut frame = frame_at(Format::Bgrx, SIZE, 0);
    // Behind videocrop a result is moved; this one is attached there.
    frame.get_mut().unwrap().set_pts(gst::ClockTime::ZERO);
    let cropped = pipeline
        .get::<gst::Element>("o")
        .static_pad("sink")
        .unwrap();
    cropped.add_probe(gst::PadProbeType::BUFFER, |_, info| {
        if let Some(buffer) = info.buffer_mut() {
            let result = found([60, 32], &[SPOT]);
            result.attach(buffer.make_mut()).unwrap();
        }
        gst::PadProbeReturn::Ok
    });
    source.push_buffer(frame).unwrap();
    let sample = out.pull_sample().unwrap().buffer_owned().unwrap();
    assert!(sample.meta::<gst_video::VideoCropMeta>().is_none());
    let bytes = read(&sample);
    assert_eq!(bytes.len(), 60 * 32 * 4);
    assert!(
        bytes.iter().any(|&byte| byte != super::LEVEL),
        "a box is drawn"
    );
}
