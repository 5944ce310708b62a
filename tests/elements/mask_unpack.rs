//! `clmaskunpack`, which needs no device.

use crate::{
    frames::{foreign_memory, read},
    support::{Rig, register},
};

/// Caps of packed masks.
pub fn bitmask(width: i32, height: i32, stride: i32) -> gst::Caps {
    gst::Caps::builder("video/x-bitmask")
        .field("width", width)
        .field("height", height)
        .field("framerate", gst::Fraction::new(10, 1))
        .field("stride", stride)
        .field("bit-order", "msb-first")
        .build()
}

/// A mask of these bytes in system memory.
pub fn buffer(bytes: &[u8]) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    buffer
        .get_mut()
        .unwrap()
        .append_memory(foreign_memory(bytes, 3));
    buffer
}

#[test]
fn mask_unpack_padded_stride_gives_every_pixel() {
    register();
    for (width, height, stride) in [
        (1, 1, 1),
        (8, 3, 1),
        (9, 3, 2),
        (13, 5, 7),
        (64, 2, 64),
        (1, 4, 9),
    ] {
        let (w, h, s) = (width as usize, height as usize, stride as usize);
        // Padding bits and bytes are set; the output must ignore them.
        let mut packed = vec![0xff_u8; s * h];
        let marked = |x: usize, y: usize| (x * 7 + y * 3) % 5 < 2;
        for y in 0..h {
            for x in (0..w).filter(|&x| !marked(x, y)) {
                packed[y * s + x / 8] &= !(0x80 >> (x % 8));
            }
        }
        // The last row needs no padding.
        packed.truncate(s * (h - 1) + w.div_ceil(8));
        let mut rig = Rig::new("clmaskunpack", &bitmask(width, height, stride));
        let output = rig.pass(buffer(&packed));
        let info = gst_video::VideoInfo::from_caps(&rig.output_caps()).unwrap();
        assert_eq!(info.format(), gst_video::VideoFormat::Gray8);
        assert_eq!((info.width(), info.height()), (width as u32, height as u32));
        assert_eq!(info.fps(), gst::Fraction::new(10, 1));
        let bytes = read(&output);
        for y in 0..h {
            for x in 0..w {
                let expected = if marked(x, y) { 255 } else { 0 };
                let at = y * info.stride()[0] as usize + x;
                assert_eq!(bytes[at], expected, "({x}, {y}) of {width}x{height}");
            }
        }
    }
}

#[test]
fn mask_unpack_short_mask_is_one_error() {
    register();
    let mut rig = Rig::new("clmaskunpack", &bitmask(16, 4, 3));
    let flow = rig.push(buffer(&[0; 3 * 3 + 1]));
    assert_eq!(flow, Err(gst::FlowError::Error));
    assert!(rig.is_silent());
    let errors = rig.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].text.contains("10 bytes"), "{errors:?}");
    rig.pass(buffer(&[0; 3 * 3 + 2]));
}

#[test]
fn mask_unpack_stride_under_a_row_is_refused() {
    register();
    let caps = bitmask(17, 4, 2);
    let fate = crate::support::feed("clmaskunpack", &caps, vec![buffer(&[0; 64])]);
    assert_eq!(fate.received, 0);
    assert_eq!(fate.errors.len(), 1, "{:?}", fate.errors);
    let text = &fate.errors[0].text;
    for word in ["stride=2", "3 bytes", "17 pixels", "correct the stride"] {
        assert!(text.contains(word), "\"{text}\" lacks {word}");
    }
}

#[test]
fn mask_unpack_of_packed_masks_equals_the_grey_form() {
    let Some(device) = crate::support::start() else {
        return;
    };
    let frame = crate::support::noise(gst_video::VideoFormat::Gray8, [43, 9], crate::frames::PLAIN);
    let caps = crate::support::caps_of(&frame);
    let element = "clpitchthreshold PUBLISHED pitch-x=3.5 pitch-y=2 threshold=40";
    let grey = "video/x-raw".parse::<gst::Caps>().unwrap();
    let mut direct = Rig::between(element, &caps, &grey);
    let line = format!("{element} ! video/x-bitmask ! clmaskunpack");
    let mut unpacked = Rig::new(&line, &caps);
    let pixels = |output: &gst::Buffer| -> Vec<u8> {
        let bytes = read(output);
        bytes
            .chunks(44)
            .flat_map(|row| row[..43].to_vec())
            .collect()
    };
    let direct = direct.pass(crate::support::buffer_of(&frame, &device));
    let unpacked = unpacked.pass(crate::support::buffer_of(&frame, &device));
    assert_eq!(pixels(&direct), pixels(&unpacked));
    assert!(pixels(&direct).contains(&255));
}

/// Near the largest width the frame size overflows in GStreamer, and GLib aborts the process if an
/// allocation fails.
#[test]
fn mask_unpack_few_bytes_under_huge_caps_allocate_nothing() {
    register();
    for (width, height, stride) in [
        (i32::MAX, 1, i32::MAX),
        (i32::MAX - 1, i32::MAX, i32::MAX),
        (i32::MAX - 64, 1, i32::MAX),
        (65_536, 65_536, 8192),
    ] {
        let caps = bitmask(width, height, stride);
        let fate = crate::support::feed("clmaskunpack", &caps, vec![buffer(&[0; 64])]);
        assert_eq!(fate.received, 0, "{caps}");
        assert!(fate.errors.len() <= 1, "{caps}: {:?}", fate.errors);
    }
}
