//! Overlays that the sink draws: downstream accepts a GstVideoOverlayCompositionMeta.

use gst::MetaAPI;
use gst_video::{VideoFormat as Format, VideoOverlayCompositionMeta};

use super::{caps, counted, found, frame_at, frame_bytes};
use crate::{
    frames::read,
    support::{Rig, register},
};

const SIZE: [usize; 2] = [400, 300];
/// Largest difference between a picture blended by GStreamer, which truncates, and an overlay drawn on
/// the frame; 8-bit levels.
const CUT: u8 = 4;

fn rig(takes_compositions: bool) -> Rig {
    register();
    let mut rig = Rig::new("inspectoverlay", &caps(Format::Rgb, SIZE));
    if takes_compositions {
        let api = VideoOverlayCompositionMeta::meta_api();
        rig.harness().add_propose_allocation_meta(api, None);
    }
    rig
}

/// A frame with results.
fn frame() -> gst::Buffer {
    let mut frame = frame_at(Format::Rgb, SIZE, 0);
    let writable = frame.get_mut().unwrap();
    let result = found(SIZE, &[[40, 50, 10, 8], [200, 120, 30, 3]]);
    result.attach(writable).unwrap();
    counted("RGB", SIZE, 3).attach(writable).unwrap();
    frame
}

/// The picture that a sink shows.
fn shown(mut frame: gst::Buffer) -> Vec<u8> {
    let composition = frame.meta::<VideoOverlayCompositionMeta>().unwrap();
    let composition = composition.overlay_owned();
    let info = gst_video::VideoInfo::from_caps(&caps(Format::Rgb, SIZE)).unwrap();
    let frame = frame.make_mut();
    let mut mapped = gst_video::VideoFrameRef::from_buffer_ref_writable(frame, &info).unwrap();
    composition.blend(&mut mapped).unwrap();
    drop(mapped);
    read(&frame.to_owned())
}

#[test]
fn attached_overlay_shows_what_is_drawn_and_leaves_the_pixels() {
    let drawn = read(&rig(false).pass(frame()));
    let out = rig(true).pass(frame());
    assert!(read(&out) == frame_bytes(Format::Rgb, SIZE));
    let shown = shown(out);
    assert!(shown != frame_bytes(Format::Rgb, SIZE));
    for (at, (&shown, &drawn)) in shown.iter().zip(&drawn).enumerate() {
        let (x, y) = (at / 3 % SIZE[0], at / 3 / SIZE[0]);
        assert!(
            shown.abs_diff(drawn) <= CUT,
            "({x}, {y}): {shown} for {drawn}"
        );
    }
}

#[test]
fn attached_overlay_lies_above_those_of_others_and_empty_ones_are_left_out() {
    let mut rig = rig(true);
    let plain = rig.pass(frame_at(Format::Rgb, SIZE, 0));
    assert!(plain.meta::<VideoOverlayCompositionMeta>().is_none());
    let mut others = frame();
    let mut pixels = gst::Buffer::from_mut_slice(vec![255_u8; 4 * 8 * 8]);
    let flags = gst_video::VideoFrameFlags::empty();
    gst_video::VideoMeta::add(pixels.make_mut(), flags, Format::Bgra, 8, 8).unwrap();
    let flags = gst_video::VideoOverlayFormatFlags::empty();
    let rectangle = gst_video::VideoOverlayRectangle::new_raw(&pixels, 1, 2, 8, 8, flags);
    let composition = gst_video::VideoOverlayComposition::new([&rectangle]).unwrap();
    VideoOverlayCompositionMeta::add(others.make_mut(), &composition);
    let out = rig.pass(others);
    assert_eq!(out.iter_meta::<VideoOverlayCompositionMeta>().count(), 1);
    let meta = out.meta::<VideoOverlayCompositionMeta>().unwrap();
    let places: Vec<_> = meta
        .overlay()
        .iter()
        .map(|r| r.render_rectangle())
        .collect();
    assert_eq!(places, [(1, 2, 8, 8), (0, 0, 400, 300)]);
}
