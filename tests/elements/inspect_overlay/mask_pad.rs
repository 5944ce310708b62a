//! Masks on the pad `mask`, and the frame that each mask belongs to.

use std::time::Duration;

use gst::prelude::*;
use gst_check::Harness;
use gst_video::VideoFormat as Format;

use super::{LEVEL, NOTHING, Picture, buffer_at, caps, counted, found, frame_at, packed};
use crate::{frames::read, support::register};

pub const SIZE: [usize; 2] = [160, 120];
/// Longest wait of a test.
pub const LONG: Duration = Duration::from_secs(20);
const BLUE: [u8; 3] = [255, 0, 0];

/// An overlay with a mask pad, both fed by the test.
pub struct Pads {
    pub element: gst::Element,
    pub frames: Harness,
    pub masks: Harness,
}

pub fn bitmask_caps([width, height]: [usize; 2]) -> gst::Caps {
    gst::Caps::builder("video/x-bitmask")
        .field("width", width as i32)
        .field("height", height as i32)
        .field("framerate", gst::Fraction::new(25, 1))
        .field("stride", width.div_ceil(8) as i32)
        .field("bit-order", "msb-first")
        .build()
}

impl Pads {
    /// An overlay with a blue tint and these properties.
    pub fn new(on: &str) -> Self {
        let pads = Self::unfed(on);
        Self::feed(pads)
    }

    /// The same without caps on the mask pad.
    pub fn unfed(on: &str) -> Self {
        register();
        let line = format!("{NOTHING} show-tint=true tint-color=0xff0000ff {on}");
        let element = gst::parse::launch(&line).unwrap();
        let mut frames = Harness::with_element(&element, Some("sink"), Some("src"));
        let masks = Harness::with_element(&element, Some("mask"), None);
        frames.set_src_caps(caps(Format::Bgrx, SIZE));
        Self {
            element,
            frames,
            masks,
        }
    }

    fn feed(mut pads: Self) -> Self {
        pads.masks.set_src_caps(bitmask_caps(SIZE));
        pads
    }

    /// Sends a mask with a pixel marked at (x, 10).
    pub fn mask(&mut self, x: usize, ms: u64) {
        let mask = buffer_at(&packed(SIZE, &[[x, 10, 1, 1]]), ms);
        self.masks.push(mask).unwrap();
    }

    /// Sends a frame; returns the columns that are tinted in row 10.
    pub fn frame(&mut self, ms: u64) -> Vec<usize> {
        self.frames.push(frame_at(Format::Bgrx, SIZE, ms)).unwrap();
        tinted(read(&self.frames.pull().unwrap()))
    }

    /// The same for a frame without a mask: advances the clock to the frame's deadline.
    pub fn frame_in_vain(&mut self, ms: u64) -> Vec<usize> {
        self.frames.push(frame_at(Format::Bgrx, SIZE, ms)).unwrap();
        self.frames.crank_single_clock_wait().unwrap();
        tinted(read(&self.frames.pull().unwrap()))
    }
}

/// The columns that are tinted in row 10.
pub fn tinted(bytes: Vec<u8>) -> Vec<usize> {
    let out = Picture::of(SIZE, bytes);
    (0..SIZE[0]).filter(|&x| out.at(x, 10) == BLUE).collect()
}

#[test]
fn each_mask_is_drawn_on_the_frame_of_its_time() {
    let mut pads = Pads::new("");
    pads.mask(5, 0);
    assert_eq!(pads.frame(0), [5]);
    pads.mask(6, 40);
    assert_eq!(pads.frame(40), [6]);
    // There is no mask for 80 ms: a later mask has arrived, so the frame does not wait.
    pads.mask(8, 120);
    assert_eq!(pads.frame(80), [0; 0]);
    // A timestamp rounded in transport.
    assert_eq!(pads.frame(121), [8]);
    pads.mask(9, 160);
    assert_eq!(pads.frame(160), [9]);
}

#[test]
fn newest_of_the_masks_that_have_begun_is_drawn() {
    let mut pads = Pads::new("");
    // More masks than frames; the duration of the first mask is too long.
    let mut lasting = buffer_at(&packed(SIZE, &[[5, 10, 1, 1]]), 0);
    let duration = gst::ClockTime::from_seconds(1);
    lasting.get_mut().unwrap().set_duration(duration);
    pads.masks.push(lasting).unwrap();
    assert_eq!(pads.frame(0), [5]);
    for (x, ms) in [(6, 10), (7, 20)] {
        pads.mask(x, ms);
    }
    assert_eq!(pads.frame_in_vain(25), [7]);
    pads.mask(8, 40);
    assert_eq!(pads.frame(40), [8]);
}

#[test]
fn times_are_running_times_of_either_stream() {
    let mut pads = Pads::new("");
    let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
    segment.set_start(gst::ClockTime::from_seconds(7));
    assert!(pads.masks.push_event(gst::event::Segment::new(&segment)));
    pads.mask(5, 7000);
    assert_eq!(pads.frame(0), [5]);
    pads.mask(6, 7040);
    assert_eq!(pads.frame(40), [6]);
}

#[test]
fn mask_of_another_framerate_holds_while_it_lasts() {
    let mut pads = Pads::new("");
    for (x, ms) in [(5, 0), (6, 120)] {
        let mut mask = buffer_at(&packed(SIZE, &[[x, 10, 1, 1]]), ms);
        mask.get_mut()
            .unwrap()
            .set_duration(gst::ClockTime::from_mseconds(120));
        pads.masks.push(mask).unwrap();
    }
    assert!(pads.masks.push_event(gst::event::Eos::new()));
    for (ms, x) in [(0, 5), (40, 5), (80, 5), (120, 6), (160, 6), (200, 6)] {
        assert_eq!(pads.frame(ms), [x], "{ms} ms");
    }
    assert_eq!(pads.frame(240), [0; 0]);
}

#[test]
fn grey_masks_of_any_size_are_drawn_and_caps_may_change() {
    let mut pads = Pads::new("");
    pads.mask(5, 0);
    assert_eq!(pads.frame(0), [5]);
    pads.masks.set_src_caps(caps(Format::Gray8, SIZE));
    let mut grey = vec![0; SIZE[0] * SIZE[1]];
    grey[10 * SIZE[0] + 7] = 255;
    pads.masks.push(buffer_at(&grey, 40)).unwrap();
    assert_eq!(pads.frame(40), [7]);
    let half = [80, 60];
    pads.masks.set_src_caps(caps(Format::Gray8, half));
    let mut grey = vec![0; 80 * 60];
    grey[5 * 80 + 20] = 255;
    pads.masks.push(buffer_at(&grey, 80)).unwrap();
    assert_eq!(pads.frame(80), [40, 41]);
    pads.masks.set_src_caps(bitmask_caps(half));
    let mask = buffer_at(&packed(half, &[[21, 5, 1, 1]]), 120);
    pads.masks.push(mask).unwrap();
    assert_eq!(pads.frame(120), [42, 43]);
}

#[test]
fn results_on_the_masks_are_drawn() {
    let mut pads = Pads::new("show-boxes=true show-verdict=true show-histogram=true");
    let mut mask = buffer_at(&packed(SIZE, &[]), 0);
    let writable = mask.get_mut().unwrap();
    found(SIZE, &[[60, 40, 10, 10]]).attach(writable).unwrap();
    counted("GRAY8", SIZE, 1).attach(writable).unwrap();
    pads.masks.push(mask).unwrap();
    pads.frames.push(frame_at(Format::Bgrx, SIZE, 0)).unwrap();
    let out = Picture::of(SIZE, read(&pads.frames.pull().unwrap()));
    // Verdict chip of a failed frame, box, panel.
    assert_eq!(out.at(1, 1), [0x20, 0x2d, 0xd9]);
    assert_ne!(out.at(57, 45), [LEVEL; 3]);
    assert_ne!(out.at(140, 100), [LEVEL; 3]);
}

#[test]
fn frame_whose_mask_did_not_come_says_so() {
    let mut pads = Pads::new("show-verdict=true verdict-position=top");
    let chip = |pads: &mut Pads| Picture::of(SIZE, read(&pads.frames.pull().unwrap())).at(1, 1);
    pads.frames.push(frame_at(Format::Bgrx, SIZE, 0)).unwrap();
    pads.frames.crank_single_clock_wait().unwrap();
    assert_eq!(chip(&mut pads), [0x0b, 0x9e, 0xf5]);
    // A mask without a verdict.
    pads.mask(5, 40);
    pads.frames.push(frame_at(Format::Bgrx, SIZE, 40)).unwrap();
    assert_eq!(chip(&mut pads), [0x80, 0x72, 0x6b]);
}

#[test]
fn masks_that_cannot_be_drawn_do_not_stop_the_picture() {
    let mut pads = Pads::new("");
    // Too short for its caps, without timestamp, outside the segment.
    pads.masks.push(buffer_at(&[0xff; 30], 0)).unwrap();
    assert_eq!(pads.frame(0), [0; 0]);
    pads.masks
        .push(gst::Buffer::from_slice(packed(SIZE, &[])))
        .unwrap();
    assert_eq!(pads.frame_in_vain(40), [0; 0]);
    pads.mask(9, 80);
    assert_eq!(pads.frame(80), [9]);
    let mut untimed = frame_at(Format::Bgrx, SIZE, 0);
    untimed.get_mut().unwrap().set_pts(None);
    pads.frames.push(untimed).unwrap();
    // A running clock is past the deadline of running time 0.
    pads.frames.crank_single_clock_wait().unwrap();
    assert_eq!(tinted(read(&pads.frames.pull().unwrap())), [0; 0]);

    let stride = bitmask_caps(SIZE);
    let mut short = stride.copy();
    short.make_mut().set("stride", 19);
    let pad = pads.element.static_pad("mask").unwrap();
    assert!(!pad.send_event(gst::event::Caps::new(&short)));
    pads.masks.set_src_caps(stride);
    pads.mask(4, 120);
    assert_eq!(pads.frame(120), [4]);
}

#[test]
fn there_is_one_mask_pad_and_it_can_be_asked_for_again() {
    register();
    let element = gst::ElementFactory::make("inspectoverlay").build().unwrap();
    for _ in 0..3 {
        let pad = element.request_pad_simple("mask").unwrap();
        let template = element.pad_template("mask").unwrap();
        assert!(element.request_pad(&template, None, None).is_none());
        element.release_request_pad(&pad);
        assert!(element.static_pad("mask").is_none());
    }
}

#[test]
fn flush_forgets_masks_and_ends() {
    let mut pads = Pads::new("");
    pads.mask(5, 0);
    assert!(pads.masks.push_event(gst::event::Eos::new()));
    for (flush, reset) in [(&mut pads.masks, true), (&mut pads.frames, true)] {
        assert!(flush.push_event(gst::event::FlushStart::new()));
        assert!(flush.push_event(gst::event::FlushStop::new(reset)));
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        assert!(flush.push_event(gst::event::Segment::new(&segment)));
    }
    assert_eq!(pads.frame_in_vain(0), [0; 0]);
    pads.mask(6, 40);
    assert_eq!(pads.frame(40), [6]);
}
