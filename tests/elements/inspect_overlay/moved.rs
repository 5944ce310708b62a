//! Pictures that are mirrored, turned, cropped or scaled between the inspection and the overlay.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use super::{
    NOTHING, Picture, buffer_at, caps, found, frame_at,
    mask_pad::{self, Pads, bitmask_caps},
    packed,
};
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
        "videoflip video-direction=90l",
        "videoflip video-direction=ul-lr",
        "videoflip video-direction=ur-ll",
        "videocrop left=8",
        "videocrop right=8",
        // Borders above and below, and at the left and the right; without borders, the elements do not say so.
        "videoscale ! capsfilter caps=video/x-raw,width=64,height=64,pixel-aspect-ratio=1/1",
        "videoconvertscale ! capsfilter caps=video/x-raw,width=128,height=32,pixel-aspect-ratio=1/1",
        "videoscale add-borders=false ! capsfilter caps=video/x-raw,width=64,height=64,pixel-aspect-ratio=1/1",
        "videoscale ! capsfilter caps=video/x-raw,width=64,height=64,pixel-aspect-ratio=1/1 ! \
         videoscale ! capsfilter caps=video/x-raw,width=64,height=32,pixel-aspect-ratio=1/1",
        "videoscale ! capsfilter caps=video/x-raw,width=128,height=64 ! videocrop left=8",
        "videoconvert ! rotate angle=0.5 ! videoconvert",
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

/// The tinted pixels of a frame of these caps behind elements.
#[track_caller]
fn tinted_behind(elements: &str, size: [usize; 2]) -> Option<[usize; 4]> {
    let tint = NOTHING.replace("show-tint=false", "show-tint=true tint-color=0xff0000ff");
    let mut rig = Rig::new(&format!("{elements} ! {tint}"), &caps(Format::Bgrx, SIZE));
    let mut frame = frame_at(Format::Bgrx, SIZE, 0);
    let result = found(SIZE, &[SPOT]);
    result.attach(frame.get_mut().unwrap()).unwrap();
    Picture::of(size, read(&rig.pass(frame))).changed()
}

#[test]
fn marks_follow_a_scaled_picture() {
    register();
    for (elements, size, wanted) in [
        ("identity", SIZE, [8, 6, 18, 14]),
        (
            "videoscale ! capsfilter caps=video/x-raw,width=128,height=64",
            [128, 64],
            [16, 12, 36, 28],
        ),
        (
            "videoscale ! capsfilter caps=video/x-raw,width=32,height=16,pixel-aspect-ratio=1/1",
            [32, 16],
            [4, 3, 9, 7],
        ),
        // The pixels get another shape, and the picture keeps its own.
        (
            "videoconvertscale ! capsfilter caps=video/x-raw,width=64,height=64,pixel-aspect-ratio=2/1",
            [64, 64],
            [8, 12, 18, 28],
        ),
        (
            "videoscale ! capsfilter caps=video/x-raw,width=64,height=64,pixel-aspect-ratio=2/1 ! videoscale ! \
             capsfilter caps=video/x-raw,width=128,height=64,pixel-aspect-ratio=1/1",
            [128, 64],
            [16, 12, 36, 28],
        ),
    ] {
        let tinted = tinted_behind(elements, size);
        assert_eq!(tinted, Some(wanted), "{elements}");
    }
    let turned = tinted_behind("videoflip video-direction=180", SIZE);
    assert_eq!(turned, None);
}

/// The pixels that a mask with one spot tints on frames of another branch.
fn tinted_on(size: [usize; 2], ratio: [i32; 2]) -> Option<[usize; 4]> {
    let mut pads = Pads::new("");
    let mut frames = caps(Format::Bgrx, size);
    let ratio = gst::Fraction::new(ratio[0], ratio[1]);
    frames.make_mut().set("pixel-aspect-ratio", ratio);
    pads.frames.set_src_caps(frames);
    let spot = packed(mask_pad::SIZE, &[[8, 6, 4, 2]]);
    pads.masks.push(buffer_at(&spot, 0)).unwrap();
    let frame = frame_at(Format::Bgrx, size, 0);
    pads.frames.push(frame).unwrap();
    Picture::of(size, read(&pads.frames.pull().unwrap())).changed()
}

#[test]
fn marks_of_the_mask_pad_need_a_picture_of_the_same_shape() {
    for (size, ratio, wanted) in [
        ([160, 120], [1, 1], Some([8, 6, 12, 8])),
        ([160, 120], [2, 1], Some([8, 6, 12, 8])),
        ([320, 240], [1, 1], Some([16, 12, 24, 16])),
        ([320, 240], [2, 1], Some([16, 12, 24, 16])),
        ([80, 60], [1, 1], Some([4, 3, 6, 4])),
        // 90.75 rows.
        ([121, 90], [1, 1], Some([6, 4, 10, 6])),
        // Square pixels became high ones.
        ([160, 60], [1, 2], Some([8, 3, 12, 4])),
        // Turned, cropped, with borders.
        ([120, 160], [1, 1], None),
        ([140, 120], [1, 1], None),
        ([160, 140], [1, 1], None),
        ([640, 360], [1, 1], None),
    ] {
        assert_eq!(tinted_on(size, ratio), wanted, "{size:?} {ratio:?}");
    }
}

#[test]
fn bar_says_why_there_are_no_marks() {
    let wide = [640, 200];
    let bar = |mask_size: [usize; 2], is_judged: bool| {
        let mut pads = Pads::new("show-verdict=true show-boxes=true");
        pads.frames.set_src_caps(caps(Format::Bgrx, wide));
        pads.masks.set_src_caps(bitmask_caps(mask_size));
        let spots = [[8, 90, 4, 2]];
        let mut mask = buffer_at(&packed(mask_size, &spots), 0);
        if is_judged {
            let result = found(mask_size, &spots);
            result.attach(mask.get_mut().unwrap()).unwrap();
        }
        pads.masks.push(mask).unwrap();
        let frame = frame_at(Format::Bgrx, wide, 0);
        pads.frames.push(frame).unwrap();
        Picture::of(wide, read(&pads.frames.pull().unwrap()))
    };
    let high = 20;
    for is_judged in [true, false] {
        let [with, without] = [wide, mask_pad::SIZE].map(|size| bar(size, is_judged));
        assert!(with.changed().unwrap()[3] > 90, "the spot is marked");
        let [left, top, right, bottom] = without.changed().expect("a bar");
        assert_eq!((left, top, right), (0, 0, wide[0]));
        assert!(bottom <= high, "{bottom}");
        let texts = [with, without].map(|of| of.bytes[..4 * wide[0] * high].to_vec());
        assert!(texts[0] != texts[1], "the bar does not say it");
    }
}

/// A receiver that crops for the element shows another part of the picture than the memory holds.
#[test]
fn result_with_a_crop_meta_behind_it_is_moved() {
    register();
    let mut frame = judged();
    assert!(!DefectResult::read(&frame)[0].is_moved);
    gst_video::VideoCropMeta::add(frame.get_mut().unwrap(), (8, 0, 56, 32));
    assert!(DefectResult::read(&frame)[0].is_moved);
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
