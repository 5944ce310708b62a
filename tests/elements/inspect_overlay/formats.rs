//! Every format and size of the pad's template.

use gst_video::VideoFormat as Format;

use super::{NOTHING, caps, counted, drawn, found, frame_at};
use crate::support::{Rig, register};

#[test]
fn every_raw_format_is_drawn_on() {
    register();
    let size = [96, 64];
    let formats = Format::iter_raw().filter(|&format| format != Format::Rgb8p);
    for format in formats {
        let mut rig = Rig::new(
            &format!("{NOTHING} show-tint=true tint-color=0xffffffff"),
            &caps(format, size),
        );
        let plain = drawn(&mut rig, frame_at(format, size, 0));
        assert_eq!(plain, super::frame_bytes(format, size), "{format}");
        let mut frame = frame_at(format, size, 40);
        found(size, &[[10, 20, 30, 10]])
            .attach(frame.get_mut().unwrap())
            .unwrap();
        let tinted = drawn(&mut rig, frame);
        assert!(tinted != plain, "{format} shows nothing");
        // The same once more: no state of the first frame shows.
        let mut frame = frame_at(format, size, 80);
        found(size, &[[10, 20, 30, 10]])
            .attach(frame.get_mut().unwrap())
            .unwrap();
        assert!(drawn(&mut rig, frame) == tinted, "{format}");
    }
}

#[test]
fn rows_that_are_not_drawn_on_stay_bit_for_bit() {
    register();
    // The blender takes whole rows apart; formats whose rows are not interleaved with others.
    let size = [97, 65];
    for format in [
        Format::I420,
        Format::Nv12,
        Format::Y42b,
        Format::Yuy2,
        Format::Gray8,
        Format::Gray16Le,
        Format::Gray16Be,
        Format::Rgb,
        Format::Bgrx,
        Format::Rgb16,
        Format::I42010le,
    ] {
        let line = format!("{NOTHING} show-tint=true tint-color=0xffffffff");
        let mut rig = Rig::new(&line, &caps(format, size));
        let bytes: Vec<u8> = (0..super::size_in_bytes(format, size))
            .map(|n| (n * 31 % 251) as u8)
            .collect();
        let mut frame = super::buffer_at(&bytes, 0);
        found(size, &[[10, 20, 30, 8]])
            .attach(frame.get_mut().unwrap())
            .unwrap();
        let out = drawn(&mut rig, frame);
        let info = gst_video::VideoInfo::builder(format, 97, 65)
            .build()
            .unwrap();
        // Tiles are 16 rows high.
        let stride = info.stride()[0] as usize;
        for row in (0..16).chain(32..65) {
            let at = row * stride;
            assert!(
                out[at..at + stride] == bytes[at..at + stride],
                "{format} row {row}"
            );
        }
        assert!(out != bytes, "{format}");
    }
}

#[test]
fn frames_of_every_size_pass() {
    register();
    for format in [
        Format::Bgrx,
        Format::I420,
        Format::Yuy2,
        Format::Gray8,
        Format::V210,
    ] {
        let mut rig = Rig::new("inspectoverlay", &caps(format, [8, 8]));
        for size in [
            [1, 1],
            [15, 1],
            [1, 15],
            [2, 3],
            [63, 17],
            [65, 33],
            [8192, 1],
            [1, 3000],
            [4000, 20],
            [31, 700],
        ] {
            rig.renegotiate(&caps(format, size));
            let mut frame = frame_at(format, size, 0);
            let writable = frame.get_mut().unwrap();
            found(size, &[[0, 0, 1, 1]]).attach(writable).unwrap();
            counted("RGB", size, 3).attach(writable).unwrap();
            let out = drawn(&mut rig, frame);
            assert!(out != super::frame_bytes(format, size), "{format} {size:?}");
        }
    }
}
