//! `frame::Importer`: the ways of frames to the device, the counts of the meter, and frames that must be
//! refused.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    unpack::{Encoding, Packing},
};
use clinspect_opencl::frame::{Carrier, ClFrame, Importer, layout_of};
use clinspect_opencl::{ClContext, ImportPath, Meter, Totals};
use clinspect_operators::Histogram;
use gst_video::VideoFormat as Format;

use crate::{
    content::Content,
    device,
    encoded::{Encoded, Rows},
    frames::{
        ARRANGEMENTS, Frame, Owner, PADDED, PLAIN, Split, add_video_meta, foreign_memory,
        our_memory,
    },
    histogram_job::{ALL, CHOICES, assert_bins, operator},
};

/// The import of a frame in other memory on this device.
fn foreign(device: &ClContext) -> ImportPath {
    if device.caps().shares_host_memory {
        ImportPath::Wrapped
    } else {
        ImportPath::Copied
    }
}

fn import(
    device: &Arc<ClContext>,
    info: &gst_video::VideoInfo,
    buffer: &gst::BufferRef,
) -> Result<ClFrame, ClError> {
    Importer::new(device, &Meter::new(false), info)?.import(buffer)
}

#[test]
fn frame_in_our_memory_is_taken_in_place_and_others_once() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::I420, Format::Gray16Le] {
        for arrangement in ARRANGEMENTS {
            let input = Frame::showing(format, [33, 7], arrangement, Content::Random, 0);
            let one_plane = input.info.n_planes() == 1;
            let expected = match (arrangement.owner, arrangement.split) {
                // GStreamer merges a plane in two memories into one system memory.
                (_, Split::Middle) => foreign(&device),
                (Owner::Ours, _) => ImportPath::ZeroCopy,
                (Owner::Mixed, Split::Planes) if one_plane => ImportPath::ZeroCopy,
                _ => foreign(&device),
            };
            assert_eq!(
                input.import(&device).taken(),
                expected,
                "{}",
                input.describe()
            );
        }
    }
}

#[test]
fn meter_of_frames_in_our_memory_counts_no_transfer_of_them() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let input = Frame::showing(Format::I420, [64, 33], PLAIN, Content::Random, 0);
    let buffer = input.buffer(&device, &meter);
    let shares = device.caps().shares_host_memory;
    // The test wrote the memory through a map; the contents were undefined, so the map downloaded
    // nothing.
    let filled = Totals {
        host_maps: 1,
        uploads: u64::from(!shares),
        bytes_uploaded: if shares { 0 } else { input.bytes.len() as u64 },
        ..Totals::default()
    };
    assert_eq!(meter.totals(), filled);
    let mut importer = Importer::new(&device, &meter, &input.info).unwrap();
    for _ in 0..3 {
        importer.import(&buffer).unwrap();
    }
    let expected = Totals {
        frames: 3,
        zero_copy: 3,
        ..filled
    };
    assert_eq!(meter.totals(), expected);
}

#[test]
fn meter_of_foreign_frames_counts_one_copy_each_where_memory_is_not_shared() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    let foreign_owner = ARRANGEMENTS[1];
    assert_eq!(foreign_owner.owner, Owner::Foreign);
    let input = Frame::showing(Format::Gray8, [64, 32], foreign_owner, Content::Random, 0);
    let buffer = input.buffer(&device, &meter);
    let mut importer = Importer::new(&device, &meter, &input.info).unwrap();
    for _ in 0..3 {
        importer.import(&buffer).unwrap();
    }
    let totals = meter.totals();
    let expected = if foreign(&device) == ImportPath::Wrapped {
        Totals {
            frames: 3,
            wrapped: 3,
            ..Totals::default()
        }
    } else {
        Totals {
            frames: 3,
            copied: 3,
            uploads: 3,
            bytes_uploaded: 3 * 64 * 32,
            ..Totals::default()
        }
    };
    assert_eq!(totals, expected);
}

#[test]
fn meter_of_an_operator_counts_its_result_and_its_images() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::I420, [64, 33], PLAIN, Content::Random, 0);
    for choice in CHOICES {
        let Some(mut histogram) = operator(&device, &input, &ALL, choice) else {
            continue;
        };
        let meter = Meter::new(true);
        let frame = input.import(&device);
        for _ in 0..2 {
            histogram.run(&frame, &meter, &mut Vec::new()).unwrap();
        }
        let expected = Totals {
            image_copies: if choice.1 { 2 * 3 } else { 0 },
            bytes_downloaded: 2 * 3 * 256 * 4,
            ..Totals::default()
        };
        assert_eq!(meter.totals(), expected, "{choice:?}");
        let steps = meter.steps().expect("profiling is on");
        let counts = steps.map(|(_, profile)| profile.count);
        let reads = if device.caps().shares_results { 0 } else { 2 };
        assert_eq!(
            counts,
            [0, 2, reads],
            "upload, kernel and download of {choice:?}"
        );
    }
}

#[test]
fn frame_outlives_its_buffer_and_its_importer() {
    let Some(device) = device::open() else { return };
    for arrangement in ARRANGEMENTS {
        let input = Frame::showing(Format::Nv12, [65, 7], arrangement, Content::Random, 0);
        // `Frame::import` drops both before it returns.
        let frame = input.import(&device);
        let mut other = Frame::showing(Format::Nv12, [65, 7], arrangement, Content::Random, 0);
        other.bytes.fill(3);
        let _second = other.import(&device);
        let mut histogram: Histogram = operator(&device, &input, &ALL, CHOICES[0]).unwrap();
        let mut bins = Vec::new();
        histogram
            .run(&frame, &Meter::new(false), &mut bins)
            .unwrap();
        assert_bins(&bins, &ALL.expected(&input), || input.describe());
    }
}

#[test]
fn input_frame_keeps_every_byte() {
    let Some(device) = device::open() else { return };
    for arrangement in ARRANGEMENTS {
        let input = Frame::showing(Format::Rgb, [33, 7], arrangement, Content::Random, 0);
        let meter = Meter::new(false);
        let buffer = input.buffer(&device, &meter);
        for choice in CHOICES {
            let Some(mut histogram) = operator(&device, &input, &ALL, choice) else {
                continue;
            };
            let frame = import(&device, &input.info, &buffer).unwrap();
            histogram.run(&frame, &meter, &mut Vec::new()).unwrap();
        }
        assert_eq!(
            *buffer.map_readable().unwrap(),
            *input.bytes,
            "{}",
            input.describe()
        );
    }
}

// ---- refusals -------------------------------------------------------------------------------

#[track_caller]
fn assert_input_error(result: Result<ClFrame, ClError>, word: &str) {
    match result {
        Err(ClError::Input(text)) => assert!(text.contains(word), "{text}"),
        other => panic!("{other:?} is no error of the input"),
    }
}

#[test]
fn buffer_shorter_than_its_caps_is_refused() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::I420,
        Format::Yuy2,
        Format::Gray16Be,
    ] {
        let full = Frame::showing(format, [32, 8], PLAIN, Content::Random, 0);
        let bytes = &full.bytes;
        for keep in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            let mut buffer = gst::Buffer::new();
            if keep > 0 {
                let memory = foreign_memory(&bytes[..keep], 0);
                buffer.get_mut().unwrap().append_memory(memory);
            }
            assert_input_error(import(&device, &full.info, &buffer), "bytes");
        }
        let meter = Meter::new(false);
        let mut ours = gst::Buffer::new();
        let memory = our_memory(&device, &meter, &bytes[1..], 1);
        ours.get_mut().unwrap().append_memory(memory);
        assert_input_error(import(&device, &full.info, &ours), "bytes");
    }
}

/// A GRAY8 frame of 32x8 in both kinds of memory, under a GstVideoMeta with these numbers.
#[track_caller]
fn assert_meta_refused(device: &Arc<ClContext>, offset: usize, stride: i32, word: &str) {
    let full = Frame::showing(Format::Gray8, [32, 8], PLAIN, Content::Random, 0);
    let meter = Meter::new(false);
    for memory in [
        our_memory(device, &meter, &full.bytes, 0),
        foreign_memory(&full.bytes, 0),
    ] {
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        writable.append_memory(memory);
        add_video_meta(writable, &full.info, &[offset], &[stride]);
        assert_input_error(import(device, &full.info, &buffer), word);
    }
}

#[test]
fn video_meta_outside_the_data_is_refused() {
    let Some(device) = device::open() else { return };
    for offset in [1, 256, 1 << 40, usize::MAX - 100, usize::MAX] {
        assert_meta_refused(&device, offset, 32, "does not end inside");
    }
    for stride in [33, 64, i32::MAX] {
        assert_meta_refused(&device, 0, stride, "does not end inside");
    }
}

#[test]
fn video_meta_with_a_zero_negative_or_short_stride_is_refused() {
    let Some(device) = device::open() else { return };
    for stride in [0, -1, -32, i32::MIN, 1, 31] {
        assert_meta_refused(&device, 0, stride, "stride");
    }
}

#[test]
fn video_meta_of_other_caps_is_refused() {
    let Some(device) = device::open() else { return };
    let caps = Frame::showing(Format::Gray8, [32, 8], PADDED, Content::Random, 0);
    for (format, size) in [
        (Format::Gray8, [31, 8]),
        (Format::Gray8, [32, 7]),
        (Format::Rgb, [32, 8]),
        (Format::Nv12, [32, 8]),
    ] {
        let other = Frame::showing(format, size, PADDED, Content::Random, 0);
        let buffer = other.buffer(&device, &Meter::new(false));
        assert_input_error(import(&device, &caps.info, &buffer), "GstVideoMeta");
    }
}

#[test]
fn memory_that_cannot_be_mapped_is_refused() {
    let Some(device) = device::open() else { return };
    for split in [Split::Whole, Split::Middle] {
        let full = Frame::showing(Format::Gray8, [32, 8], PLAIN, Content::Random, 0);
        let mut buffer = gst::Buffer::new();
        let cut = if split == Split::Whole { 0 } else { 100 };
        let writable = buffer.get_mut().unwrap();
        if cut > 0 {
            writable.append_memory(foreign_memory(&full.bytes[..cut], 0));
        }
        // Not GStreamer's system memory, which is copied without a map.
        let memory = gst::Memory::from_mut_slice(full.bytes[cut..].to_vec());
        writable.append_memory(memory.clone());
        let mut map = std::mem::MaybeUninit::uninit();
        // An exclusive write map locks readers out.
        // SAFETY: the memory lives until it is unmapped below; nothing is written.
        let mapped = unsafe {
            let memory = memory.as_mut_ptr();
            gst::ffi::gst_memory_map(memory, map.as_mut_ptr(), gst::ffi::GST_MAP_WRITE)
        };
        assert_ne!(mapped, 0);
        assert_input_error(import(&device, &full.info, &buffer), "cannot be read");
        // SAFETY: the map above succeeded and filled its record.
        unsafe { gst::ffi::gst_memory_unmap(memory.as_mut_ptr(), map.as_mut_ptr()) };
        import(&device, &full.info, &buffer).expect("readable again");
    }
}

#[test]
fn output_in_foreign_memory_is_refused() {
    let Some(device) = device::open() else { return };
    let meter = Meter::new(false);
    for arrangement in ARRANGEMENTS {
        let frame = Frame::showing(Format::Nv12, [32, 8], arrangement, Content::Random, 0);
        let importer = Importer::new(&device, &meter, &frame.info).unwrap();
        let result = importer.output(&frame.buffer(&device, &meter));
        match (arrangement.owner, arrangement.split) {
            (Owner::Ours, Split::Whole | Split::Planes) => assert!(result.is_ok()),
            _ => assert_input_error(result, "not in OpenCL memory"),
        }
    }
}

#[test]
fn format_outside_the_list_is_refused() {
    for format in [
        Format::P01010le,
        Format::Rgb15,
        Format::Gray10Le32,
        Format::V210,
    ] {
        gst::init().unwrap();
        let info = gst_video::VideoInfo::builder(format, 32, 8)
            .build()
            .unwrap();
        match layout_of(&info) {
            Err(ClError::Refused(text)) => assert!(text.contains("not supported"), "{text}"),
            other => panic!("{format}: {other:?} is no refusal"),
        }
    }
}

#[test]
fn layout_of_a_size_whose_strides_overflow_is_refused() {
    gst::init().unwrap();
    // GStreamer accepts these caps; -1 becomes 2^32 - 1.
    for (format, width, height) in [
        ("RGB", -1, 65_535),
        ("RGB", 1_431_655_765, 4),
        ("GRAY8", 0, 8),
        ("GRAY8", 8, 0),
    ] {
        let caps = gst::Caps::builder("video/x-raw")
            .field("format", format)
            .field("width", width)
            .field("height", height)
            .field("framerate", gst::Fraction::new(1, 1))
            .build();
        let Ok(info) = gst_video::VideoInfo::from_caps(&caps) else {
            continue;
        };
        let refused = layout_of(&info).expect_err("a refusal");
        assert!(refused.to_string().contains("not supported"), "{refused}");
    }
}

/// Rows of packed samples, in a buffer that is longer than they are.
#[test]
fn upload_of_packed_samples_brings_their_rows_and_no_more() {
    let Some(device) = device::open() else { return };
    let size = [640, 8];
    let encoding = Encoding::Packed(Packing::Mono12p);
    let frame = Encoded::random(encoding, size, 1);
    let carrier = || {
        let (name, fps) = ("Mono12p".into(), gst::Fraction::new(0, 1));
        let size = size.map(|length| length as u32);
        Carrier::new((encoding, name), size, Some(Format::Gray16Le), fps).unwrap()
    };
    let meter = Meter::new(false);
    let mut importer = Importer::carrying(&device, &meter, carrier())
        .unwrap()
        .that_uploads();
    let padded = Rows::Described {
        before: 5,
        padding: 16,
    };
    let mut sent = 0;
    for (rows, behind, stride) in [
        (Rows::Dense, 0, 960),
        (Rows::Dense, 2560, 960),
        (padded, 100, 976),
    ] {
        let buffer = frame.buffer(&device, Owner::Foreign, rows, behind);
        let mut imported = importer.import(&buffer).unwrap();
        imported.wait_for_upload().unwrap();
        assert_eq!(imported.taken(), ImportPath::Copied);
        assert_eq!(imported.planes()[0].stride, stride);
        // No padding behind the last row.
        sent += (stride * 7 + 960) as u64;
        assert_eq!(meter.totals().bytes_uploaded, sent, "{rows:?}");
    }
}
