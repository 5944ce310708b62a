//! Frames whose GstVideoMeta has any offsets, strides, planes, size and format, in one or two
//! memories, ours or foreign: counted as the reference counts the bytes, or refused with one error.
//! Metas with our names, valid or not, are attached too.

use arbitrary::{Result, Unstructured};
use clinspect_opencl::{ClContext, Meter};
use gst::glib::translate::IntoGlib;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult};
use std::sync::Arc;

use super::metas::{assert_read, attach_any};
use crate::{
    frames::{foreign_memory, our_memory},
    oracle::{Geometry, SampleKind, histogram::histogram},
    support::{Rig, start},
};

const FORMATS: [Format; 10] = [
    Format::Gray8,
    Format::Rgb,
    Format::Bgrx,
    Format::Gray16Le,
    Format::Gray16Be,
    Format::I420,
    Format::Nv12,
    Format::Yuy2,
    Format::Y444,
    Format::Y42b,
];
const LUMA: [Format; 6] = [
    Format::Gray8,
    Format::Gray16Le,
    Format::I420,
    Format::Nv12,
    Format::Y444,
    Format::Y42b,
];
const PLANES: usize = 4;

/// The layout of a GstVideoMeta, or of the caps if there is none.
#[derive(Clone, Debug)]
struct Described {
    format: Format,
    size: [u32; 2],
    planes: usize,
    offsets: [usize; PLANES],
    strides: [i32; PLANES],
}

/// See the module.
pub fn run(data: &[u8]) {
    let Some(device) = start() else { return };
    let _ = body(&mut Unstructured::new(data), &device);
}

fn body(input: &mut Unstructured, device: &Arc<ClContext>) -> Result<()> {
    let element = *input.choose(&[
        "clhistogram",
        "clgaussian",
        "clpitchthreshold PUBLISHED pitch-x=1",
    ])?;
    let formats: &[Format] = if element.contains("pitch") {
        &LUMA
    } else {
        &FORMATS
    };
    let format = *input.choose(formats)?;
    // Wider than high: with a pitch of 1 some pixels can be judged.
    let size = [input.int_in_range(3..=40)?, input.int_in_range(1..=20)?];
    let info = gst_video::VideoInfo::builder(format, size[0], size[1])
        .build()
        .expect("GStreamer knows the format");
    let planes = info.n_planes() as usize;
    let mut described = Described {
        format,
        size,
        planes,
        offsets: [0; PLANES],
        strides: [0; PLANES],
    };
    described.offsets[..planes].copy_from_slice(&info.offset()[..planes]);
    described.strides[..planes].copy_from_slice(&info.stride()[..planes]);
    let by_caps = described.clone();
    let has_meta = input.ratio(7_u8, 8_u8)?;
    if has_meta {
        distort(input, &mut described)?;
    }
    // As long as the caps demand, exactly as long as the planes need, a byte less, or any length.
    let needed = end_of_planes(&described, &info).filter(|&end| end < 100_000);
    let len = match (input.int_in_range(0..=3)?, needed) {
        (0, _) => input.int_in_range(0..=2 * info.size())?,
        (1, Some(needed)) => needed,
        (2, Some(needed)) => needed - 1,
        _ => info.size(),
    };
    let owners = [input.arbitrary()?, input.arbitrary()?];
    let cut = if input.arbitrary()? {
        input.int_in_range(0..=len)?
    } else {
        len
    };
    let base = input.int_in_range(0..=5)?;
    let mut buffer = gst::Buffer::new();
    let mut right = [0; 2];
    let wants_metas = input.ratio(1_u8, 8_u8)?;
    if wants_metas {
        right = attach_any(input, buffer.make_mut())?;
    }
    let mut bytes = input.bytes(len.min(input.len()))?.to_vec();
    bytes.resize(len, 0x37);
    let meter = Meter::new(false);
    for (part, ours) in [&bytes[..cut], &bytes[cut..]].into_iter().zip(owners) {
        if !part.is_empty() {
            buffer.make_mut().append_memory(if ours {
                our_memory(device, &meter, part, base)
            } else {
                foreign_memory(part, base)
            });
        }
    }
    if has_meta {
        add_raw_meta(buffer.make_mut(), &described);
    }

    // Grey rows without a meta that are too short for padding follow each other directly.
    let [(height, row), ..] = rows(&info)[..] else {
        unreachable!("a format has a plane")
    };
    let is_short = end_of_planes(&by_caps, &info).is_some_and(|end| len < end);
    if !has_meta && info.n_components() == 1 && is_short && len as u128 >= height * row {
        described.strides[0] = row as i32;
    }
    let geometry = components(&described, &by_caps, &info, len);
    let about = format!("{element}: {len} bytes cut at {cut}, {described:?} for {info:?}");
    let mut rig = Rig::new(element, &info.to_caps().expect("caps"));
    let pushed = rig.push(buffer);
    let Some(geometry) = geometry else {
        assert_eq!(pushed, Err(gst::FlowError::Error), "{about}");
        assert!(rig.is_silent(), "{about}");
        assert_eq!(rig.errors().len(), 1, "{about}");
        return Ok(());
    };
    assert!(pushed.is_ok(), "{pushed:?}, {:?}: {about}", rig.errors());
    let output = rig.harness().pull().expect("a buffer comes out");
    match element {
        "clhistogram" => {
            right[1] += 1;
            let counted = HistogramResult::read(&output)
                .pop()
                .expect("our meta is the last");
            assert!(counted.element.contains("clhistogram"), "{about}");
            for (channel, geometry) in geometry.iter().enumerate() {
                let bits = 8 * geometry.depth.size() as u32;
                let region = [0, 0, geometry.width, geometry.height];
                let expected = histogram(geometry.samples(&bytes), region, bits, 256);
                assert_eq!(counted.channel(channel), Some(&expected[..]), "{about}");
            }
        }
        "clgaussian" => {}
        _ => {
            right[0] += 1;
            let found = DefectResult::read(&output)
                .pop()
                .expect("our meta is the last");
            let settings = crate::support::pitch_threshold_settings(1.0, 0.0, 10.0);
            let expected =
                crate::oracle::pitch_threshold::compare(geometry[0].samples(&bytes), &settings);
            assert_eq!(found.defect_pixels, expected.defect_pixels, "{about}");
            assert_eq!(found.judged_pixels, expected.judged_pixels, "{about}");
        }
    }
    assert_read(&output, right);
    Ok(())
}

/// Changes the meta: to almost valid values, or to any values.
fn distort(input: &mut Unstructured, described: &mut Described) -> Result<()> {
    for _ in 0..input.int_in_range(0..=3)? {
        let plane = input.int_in_range(0..=PLANES - 1)?;
        match input.int_in_range(0..=7)? {
            0 => described.offsets[plane] = input.int_in_range(0..=3000)?,
            1 => described.offsets[plane] = input.arbitrary()?,
            2 => {
                let more = input.int_in_range(-4..=40)?;
                described.strides[plane] = described.strides[plane].saturating_add(more);
            }
            3 => described.strides[plane] = input.arbitrary()?,
            4 => described.strides[plane] = -described.strides[plane].saturating_abs(),
            5 => described.planes = input.int_in_range(0..=PLANES)?,
            6 => described.format = *input.choose(&FORMATS)?,
            _ => {
                let side = input.int_in_range(0..=1)?;
                described.size[side] = input.arbitrary()?;
            }
        }
    }
    Ok(())
}

/// Attaches a GstVideoMeta without GStreamer's own checks.
fn add_raw_meta(buffer: &mut gst::BufferRef, described: &Described) {
    // SAFETY: the buffer is writable, and the arrays hold GST_VIDEO_MAX_PLANES entries as the
    // function reads them; the fields set afterwards are plain data.
    unsafe {
        let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
            buffer.as_mut_ptr(),
            gst_video::ffi::GST_VIDEO_FRAME_FLAG_NONE,
            described.format.into_glib(),
            described.size[0],
            described.size[1],
            described.planes as u32,
            &raw const described.offsets,
            &raw const described.strides,
        );
        assert!(!meta.is_null());
    }
}

/// Rows, and bytes per row, of each plane of `info`.
fn rows(info: &gst_video::VideoInfo) -> Vec<(u128, u128)> {
    let description = info.format_info();
    (0..info.n_planes())
        .map(|plane| {
            let members = (0..info.n_components())
                .filter(|&c| description.plane()[c as usize] == plane)
                .map(|c| {
                    let samples = description.scale_width(c as u8, info.width()) as u128;
                    let step = description.pixel_stride()[c as usize] as u128;
                    let rows = description.scale_height(c as u8, info.height()) as u128;
                    (samples, step, rows)
                });
            let members: Vec<_> = members.collect();
            let step = members.iter().map(|m| m.1).max().expect("a component");
            let row = members.iter().map(|m| (m.0 * m.1).div_ceil(step) * step);
            let count = members.iter().map(|m| m.2).max().expect("a component");
            (count, row.max().expect("a component"))
        })
        .collect()
}

/// End of the last plane, if it can be represented.
fn end_of_planes(described: &Described, info: &gst_video::VideoInfo) -> Option<usize> {
    let ends = rows(info).into_iter().enumerate().map(|(i, (rows, row))| {
        let stride = u128::try_from(described.strides[i]).ok()?;
        usize::try_from(described.offsets[i] as u128 + stride * (rows - 1) + row).ok()
    });
    ends.collect::<Option<Vec<usize>>>()?.into_iter().max()
}

/// Position of the components in the bytes; `None` if the frame contradicts its caps.
fn components(
    described: &Described,
    by_caps: &Described,
    info: &gst_video::VideoInfo,
    len: usize,
) -> Option<Vec<Geometry>> {
    let same = (described.format, described.size, described.planes)
        == (by_caps.format, by_caps.size, by_caps.planes);
    if !same {
        return None;
    }
    for (i, (rows, row)) in rows(info).into_iter().enumerate() {
        let stride = u128::try_from(described.strides[i])
            .ok()
            .filter(|&s| s > 0)?;
        let end = described.offsets[i] as u128 + stride * (rows - 1) + row;
        if (stride < row && rows > 1) || end > len as u128 {
            return None;
        }
    }
    let description = info.format_info();
    let depth = match info.format() {
        Format::Gray16Le => SampleKind::U16Le,
        Format::Gray16Be => SampleKind::U16Be,
        _ => SampleKind::U8,
    };
    let component = |c: usize| {
        let plane = description.plane()[c] as usize;
        Geometry {
            offset: described.offsets[plane] + description.poffset()[c] as usize,
            stride: described.strides[plane] as usize,
            pixel_stride: description.pixel_stride()[c] as usize,
            width: description.scale_width(c as u8, info.width()) as usize,
            height: description.scale_height(c as u8, info.height()) as usize,
            depth,
        }
    };
    Some((0..info.n_components() as usize).map(component).collect())
}
