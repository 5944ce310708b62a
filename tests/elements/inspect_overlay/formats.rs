//! Every format of the pad template, and many sizes.

use gst_video::VideoFormat as Format;

use super::{LEVEL, NOTHING, buffer_at, caps, counted, drawn, found, frame_at, size_in_bytes};
use crate::support::{Rig, register};

/// Marked rectangles: odd positions, odd sizes, corners.
const MARKED: [[usize; 4]; 5] = [
    [10, 20, 31, 9],
    [3, 3, 1, 1],
    [60, 7, 1, 30],
    [0, 63, 5, 1],
    [96, 0, 1, 65],
];
const SIZE: [usize; 2] = [97, 65];
/// Largest difference from GStreamer's blending, which truncates; 8-bit levels.
const CUT: u16 = 3;

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
        // The same frame again: the element keeps no state of the first.
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
    // Formats whose rows are not interleaved with other rows.
    let size = SIZE;
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
        let bytes: Vec<u8> = (0..size_in_bytes(format, size))
            .map(|n| (n * 31 % 251) as u8)
            .collect();
        let mut frame = buffer_at(&bytes, 0);
        found(size, &[[10, 20, 30, 8]])
            .attach(frame.get_mut().unwrap())
            .unwrap();
        let out = drawn(&mut rig, frame);
        let info = gst_video::VideoInfo::builder(format, 97, 65)
            .build()
            .unwrap();
        let stride = info.stride()[0] as usize;
        for row in (0..20).chain(28..65) {
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

/// A frame on which GStreamer blends a half-transparent colour over the marked pixels.
fn blended_by_gstreamer(bytes: &[u8], info: &gst_video::VideoInfo) -> Vec<u8> {
    let [width, height] = SIZE.map(|n| n as u32);
    // 0x80ff8000, premultiplied, as B, G, R, A.
    let colour = [0, 64, 128, 128];
    let mut pixels = vec![[0; 4]; SIZE[0] * SIZE[1]];
    for [left, top, wide, high] in MARKED {
        for y in top..top + high {
            pixels[y * SIZE[0] + left..][..wide].fill(colour);
        }
    }
    let mut drawn = gst::Buffer::from_mut_slice(pixels.into_flattened());
    gst_video::VideoMeta::add(
        drawn.get_mut().unwrap(),
        gst_video::VideoFrameFlags::empty(),
        Format::Bgra,
        width,
        height,
    )
    .unwrap();
    let flags = gst_video::VideoOverlayFormatFlags::PREMULTIPLIED_ALPHA;
    let rectangle = gst_video::VideoOverlayRectangle::new_raw(&drawn, 0, 0, width, height, flags);
    let composition = gst_video::VideoOverlayComposition::new([&rectangle]).unwrap();
    let mut frame = gst::Buffer::from_mut_slice(bytes.to_vec());
    let writable = frame.get_mut().unwrap();
    let mut mapped = gst_video::VideoFrameRef::from_buffer_ref_writable(writable, info).unwrap();
    composition.blend(&mut mapped).unwrap();
    drop(mapped);
    crate::frames::read(&frame)
}

#[test]
fn tint_is_what_gstreamers_blender_makes_of_it() {
    register();
    for (format, bytes_each) in [
        (Format::I420, 1),
        (Format::Yv12, 1),
        (Format::Nv12, 1),
        (Format::Nv21, 1),
        (Format::Y42b, 1),
        (Format::Y41b, 1),
        (Format::Y444, 1),
        (Format::Yuv9, 1),
        (Format::Yuy2, 1),
        (Format::Uyvy, 1),
        (Format::Nv16, 1),
        (Format::Nv24, 1),
        (Format::Nv1264z32, 1),
        (Format::Nv124l4, 1),
        (Format::Gray8, 1),
        (Format::Rgb, 1),
        (Format::Gbr, 1),
        (Format::Bgrx, 1),
        (Format::I42010le, 2),
        (Format::P01010le, 2),
        (Format::Gray16Le, 2),
    ] {
        // GStreamer's blending supports no other colorimetry.
        let colorimetry = match format {
            Format::Rgb | Format::Gbr | Format::Bgrx => "sRGB",
            _ => "bt709",
        };
        let colorimetry: gst_video::VideoColorimetry = colorimetry.parse().unwrap();
        let info = gst_video::VideoInfo::builder(format, SIZE[0] as u32, SIZE[1] as u32)
            .fps(gst::Fraction::new(25, 1))
            .colorimetry(&colorimetry)
            .build()
            .unwrap();
        let mut bytes: Vec<u8> = (0..info.size()).map(|n| (n * 31 % 251) as u8).collect();
        if format == Format::Bgrx {
            // GStreamer's blending takes the fourth byte for alpha.
            bytes.iter_mut().skip(3).step_by(4).for_each(|x| *x = 255);
        }
        if format == Format::I42010le {
            bytes
                .iter_mut()
                .skip(1)
                .step_by(2)
                .for_each(|high| *high %= 4);
        }
        let line = format!("{NOTHING} show-tint=true tint-color=0x80ff8000");
        let mut rig = Rig::new(&line, &info.to_caps().unwrap());
        let mut frame = buffer_at(&bytes, 0);
        found(SIZE, &MARKED)
            .attach(frame.get_mut().unwrap())
            .unwrap();
        let out = drawn(&mut rig, frame);
        let wanted = blended_by_gstreamer(&bytes, &info);
        assert!(wanted != bytes, "{format}");
        let samples = |bytes: &[u8]| -> Vec<u16> {
            let sample = |pair: &[u8]| pair.iter().rev().fold(0, |n, &b| n << 8 | u16::from(b));
            bytes.chunks(bytes_each).map(sample).collect()
        };
        let most = match (bytes_each, format) {
            (1, _) => CUT,
            (_, Format::I42010le) => CUT << 2,
            _ => CUT << 8,
        };
        let pairs = samples(&out).into_iter().zip(samples(&wanted));
        for (at, (ours, theirs)) in pairs.enumerate() {
            assert!(
                ours.abs_diff(theirs) <= most,
                "{format} sample {at}: {ours} for {theirs}"
            );
        }
    }
}

#[test]
fn colour_of_interlaced_frames_stays_in_its_field_and_in_the_frame() {
    register();
    // The first row of the lower field, and a row whose field has one chroma row more than the
    // other field.
    for (height, row, chroma) in [(16, 1, &[1][..]), (18, 17, &[])] {
        let info = gst_video::VideoInfo::builder(Format::I420, 32, height as u32)
            .fps(gst::Fraction::new(25, 1))
            .interlace_mode(gst_video::VideoInterlaceMode::Interleaved)
            .build()
            .unwrap();
        let line = format!("{NOTHING} show-tint=true tint-color=0xff0000ff");
        let mut rig = Rig::new(&line, &info.to_caps().unwrap());
        let mut frame = buffer_at(&vec![LEVEL; info.size()], 0);
        found([32, height], &[[0, row, 32, 1]])
            .attach(frame.get_mut().unwrap())
            .unwrap();
        let out = drawn(&mut rig, frame);
        let ends = info.offset()[1..].iter().copied().chain([info.size()]);
        for (plane, end) in ends.enumerate() {
            let rows = out[info.offset()[plane]..end].chunks(info.stride()[plane] as usize);
            let changed = rows.enumerate().filter(|(_, row)| row[0] != LEVEL);
            let changed: Vec<usize> = changed.map(|(row, _)| row).collect();
            let wanted = if plane == 0 { &[row][..] } else { chroma };
            assert_eq!(changed, wanted, "plane {plane} of {height} rows");
        }
    }
}

#[test]
fn unused_byte_is_no_alpha() {
    register();
    let size = [16, 16];
    let line = format!("{NOTHING} show-tint=true tint-color=0x80ffffff");
    for x in [0, 255] {
        let mut rig = Rig::new(&line, &caps(Format::Bgrx, size));
        let mut bytes = vec![LEVEL; size_in_bytes(Format::Bgrx, size)];
        bytes
            .iter_mut()
            .skip(3)
            .step_by(4)
            .for_each(|byte| *byte = x);
        let mut frame = buffer_at(&bytes, 0);
        found(size, &[[0, 0, 4, 4]])
            .attach(frame.get_mut().unwrap())
            .unwrap();
        let out = drawn(&mut rig, frame);
        // Half of white, half of the picture.
        assert!(
            out[..3].iter().all(|level| level.abs_diff(178) <= 1),
            "{x}: {:?}",
            &out[..4]
        );
    }
}
