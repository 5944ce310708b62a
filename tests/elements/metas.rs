//! Data on buffers: our metas, other metas, timestamps and flags.

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult, Verdict};

use crate::{
    frames::{Frame, PLAIN},
    results::assert_counted,
    support::{
        ON_DEVICE, Pipeline, Rig, buffer_at, buffer_of, caps_of, constant, judged, noise, start,
    },
};

const SIZE: [usize; 2] = [40, 6];

fn frame() -> Frame {
    noise(Format::Gray8, SIZE, PLAIN)
}

#[test]
fn histogram_meta_holds_every_field_of_the_contract() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Rgb, SIZE, PLAIN);
    let mut rig = Rig::new(
        "clhistogram name=front roi=\"<1,2,30,4>\"",
        &caps_of(&frame),
    );
    let mut buffer = buffer_of(&frame, &device);
    buffer.get_mut().unwrap().set_offset(77);
    let output = rig.pass(buffer);
    let meta = gst::meta::CustomMeta::from_buffer(&output, "GstClHistogramMeta").unwrap();
    let fields = meta.structure();
    assert_eq!(fields.get::<u32>("version"), Ok(1));
    assert_eq!(fields.get::<&str>("element"), Ok("front"));
    assert_eq!(fields.get::<u64>("frame-number"), Ok(77));
    assert_eq!(fields.get::<&str>("format"), Ok("RGB"));
    assert_eq!(fields.get::<u32>("width"), Ok(40));
    assert_eq!(fields.get::<u32>("height"), Ok(6));
    assert_eq!(fields.get::<u32>("bit-depth"), Ok(8));
    assert_eq!(fields.get::<u32>("bins"), Ok(256));
    assert_eq!(fields.get::<u32>("channels"), Ok(3));
    let roi = fields.get::<gst::Array>("roi").unwrap();
    let roi: Vec<u32> = roi.iter().map(|v| v.get().unwrap()).collect();
    assert_eq!(roi, [1, 2, 30, 4]);
    let bins = fields.get::<gst::glib::Bytes>("bins-data").unwrap();
    assert_eq!(bins.len(), 3 * 256 * 4);
    let sum: u32 = bins
        .as_chunks::<4>()
        .0
        .iter()
        .map(|w| u32::from_le_bytes(*w))
        .sum();
    assert_eq!(sum, 3 * 30 * 4);
    for name in [
        "minimum",
        "maximum",
        "mean",
        "stddev",
        "median",
        "p1",
        "p5",
        "p95",
        "p99",
        "saturated-low",
        "saturated-high",
        "entropy",
        "otsu-threshold",
        "otsu-separability",
    ] {
        let array = fields.get::<gst::Array>(name).unwrap();
        assert_eq!(array.iter().filter(|v| v.is::<f64>()).count(), 3, "{name}");
    }
    let counts = fields.get::<gst::Array>("count").unwrap();
    assert_eq!(counts.iter().filter(|v| v.is::<u64>()).count(), 3);
    // The typed reader returns the same.
    let results = HistogramResult::read(&output);
    assert_eq!(results.len(), 1);
    assert_eq!(
        (results[0].element.as_str(), results[0].frame_number),
        ("front", 77)
    );
    assert_counted(&frame, &results[0], [1, 2, 30, 4]);
}

#[test]
fn defect_meta_holds_every_field_of_the_contract() {
    let Some(device) = start() else { return };
    let frame = frame();
    let line = "clpitchthreshold name=panel PUBLISHED pitch-x=4.5 pitch-y=2 threshold=12.5";
    let mut rig = Rig::new(line, &caps_of(&frame));
    let output = rig.pass(buffer_of(&frame, &device));
    let expected = judged(&frame, 4.5, 2.0, 12.5);
    let meta = gst::meta::CustomMeta::from_buffer(&output, "GstClDefectMeta").unwrap();
    let fields = meta.structure();
    assert_eq!(fields.get::<u32>("version"), Ok(2));
    assert_eq!(fields.get::<&str>("element"), Ok("panel"));
    assert_eq!(fields.get::<u64>("frame-number"), Ok(0));
    assert_eq!(fields.get::<u32>("width"), Ok(40));
    assert_eq!(fields.get::<u32>("height"), Ok(6));
    for name in ["web", "first-line", "open-area"] {
        assert_eq!(fields.get::<u64>(name), Ok(0), "{name}");
    }
    for name in ["mm-per-pixel-x", "mm-per-pixel-y", "mean-level"] {
        assert_eq!(fields.get::<f64>(name), Ok(0.0), "{name}");
    }
    assert!(!fields.has_field("classes"));
    assert_eq!(fields.get::<f64>("pitch-x"), Ok(4.5));
    assert_eq!(fields.get::<f64>("pitch-y"), Ok(2.0));
    assert_eq!(fields.get::<f64>("threshold"), Ok(12.5));
    assert_eq!(
        fields.get::<u64>("judged-pixels"),
        Ok(expected.judged_pixels)
    );
    assert_eq!(
        fields.get::<u64>("defect-pixels"),
        Ok(expected.defect_pixels)
    );
    assert_eq!(fields.get::<&str>("verdict"), Ok("fail"));
    assert_eq!(DefectResult::read(&output)[0].verdict, Verdict::Fail);
}

#[test]
fn two_elements_of_a_kind_append_a_meta_each() {
    let Some(device) = start() else { return };
    let frame = frame();
    let line = "clhistogram name=a bins=16 ! clgaussian ! clhistogram name=b";
    let mut rig = Rig::new(line, &caps_of(&frame));
    let results = HistogramResult::read(&rig.pass(buffer_of(&frame, &device)));
    let found: Vec<(&str, u32)> = results
        .iter()
        .map(|r| (r.element.as_str(), r.bins))
        .collect();
    assert_eq!(found, [("a", 16), ("b", 256)]);

    let line = "clpitchthreshold name=a PUBLISHED pitch-x=4 ! video/x-raw ! clpitchthreshold name=b PUBLISHED pitch-x=2";
    let mut rig = Rig::new(line, &caps_of(&frame));
    let results = DefectResult::read(&rig.pass(buffer_of(&frame, &device)));
    let found: Vec<(&str, f64)> = results
        .iter()
        .map(|r| (r.element.as_str(), r.pitch_x))
        .collect();
    assert_eq!(found, [("a", 4.0), ("b", 2.0)]);
}

#[test]
fn our_metas_survive_queue_convert_filter_and_comparison() {
    let Some(device) = start() else { return };
    let frame = frame();
    for rest in [
        "queue",
        "identity",
        "videoconvert ! capsfilter caps=video/x-raw,format=RGB",
        "clgaussian",
        "clpitchthreshold PUBLISHED pitch-x=4",
        "clpitchthreshold PUBLISHED pitch-x=4 ! video/x-bitmask ! clmaskunpack",
        "clpitchthreshold PUBLISHED pitch-x=4 ! videoconvert ! capsfilter caps=video/x-raw,format=I420",
    ] {
        let line = format!("clhistogram name=h ! {rest}");
        let mut rig = Rig::new(&line, &caps_of(&frame));
        let output = rig.pass(buffer_of(&frame, &device));
        let results = HistogramResult::read(&output);
        assert_eq!(results.len(), 1, "{rest}");
        assert_counted(&frame, &results[0], [0, 0, 40, 6]);
        let judged = DefectResult::read(&output).len();
        assert_eq!(
            judged,
            usize::from(rest.contains("clpitchthreshold")),
            "{rest}"
        );
    }
}

#[test]
fn branches_of_a_tee_name_the_same_frame_by_the_same_number() {
    if start().is_none() {
        return;
    }
    let line = "videotestsrc num-buffers=5 ! video/x-raw,format=GRAY8,width=64,height=16 ! clgaussian ! \
                tee name=t ! queue ! clhistogram ! appsink name=a sync=false \
                t. ! queue ! clpitchthreshold PUBLISHED pitch-x=8 ! appsink name=b sync=false";
    let pipeline = Pipeline::new(line);
    let (a, b): (gst_app::AppSink, gst_app::AppSink) = (pipeline.get("a"), pipeline.get("b"));
    pipeline.set_state(gst::State::Playing).unwrap();
    for number in 0..5 {
        let (a, b) = (a.pull_sample().unwrap(), b.pull_sample().unwrap());
        let (a, b) = (a.buffer().unwrap(), b.buffer().unwrap());
        assert_eq!(a.pts(), b.pts());
        assert_eq!(HistogramResult::read(a)[0].frame_number, number);
        assert_eq!(DefectResult::read(b)[0].frame_number, number);
        // The other branch has a copy of its own.
        assert!(HistogramResult::read(b).is_empty());
        assert!(DefectResult::read(a).is_empty());
    }
}

#[test]
fn frame_number_is_the_offset_where_valid_else_a_count() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut rig = Rig::new(
        "clhistogram ! clpitchthreshold PUBLISHED pitch-x=4",
        &caps_of(&frame),
    );
    for (offset, expected) in [
        (None, 0),
        (None, 1),
        (Some(1000), 1000),
        (None, 3),
        (Some(7), 7),
        (Some(0), 0),
    ] {
        let mut buffer = buffer_of(&frame, &device);
        if let Some(offset) = offset {
            buffer.get_mut().unwrap().set_offset(offset);
        }
        let output = rig.pass(buffer);
        assert_eq!(HistogramResult::read(&output)[0].frame_number, expected);
        assert_eq!(DefectResult::read(&output)[0].frame_number, expected);
    }
}

/// A buffer with metas, timestamps and flags of other elements.
fn laden(frame: &Frame, device: &std::sync::Arc<ClContext>) -> gst::Buffer {
    let mut buffer = buffer_at(frame, device, 120);
    let writable = buffer.get_mut().unwrap();
    writable.set_dts(gst::ClockTime::from_mseconds(110));
    writable.set_offset(4711);
    writable.set_offset_end(4712);
    writable.set_flags(gst::BufferFlags::DISCONT | gst::BufferFlags::MARKER);
    gst_video::VideoRegionOfInterestMeta::add(writable, "face", (1, 2, 3, 4));
    gst::ReferenceTimestampMeta::add(
        writable,
        &gst::Caps::new_empty_simple("timestamp/x-ptp"),
        gst::ClockTime::from_seconds(9),
        gst::ClockTime::NONE,
    );
    let mut custom = gst::meta::CustomMeta::add(writable, "TestForeignMeta").unwrap();
    custom.mut_structure().set("answer", 42);
    buffer
}

#[track_caller]
fn assert_laden(buffer: &gst::BufferRef, about: &str) {
    assert_eq!(
        buffer.pts(),
        Some(gst::ClockTime::from_mseconds(120)),
        "{about}"
    );
    assert_eq!(buffer.dts(), Some(gst::ClockTime::from_mseconds(110)));
    assert_eq!(buffer.duration(), Some(gst::ClockTime::from_mseconds(10)));
    assert_eq!((buffer.offset(), buffer.offset_end()), (4711, 4712));
    let flags = gst::BufferFlags::DISCONT | gst::BufferFlags::MARKER;
    assert!(buffer.flags().contains(flags), "{about}");
    let rois: Vec<_> = buffer
        .iter_meta::<gst_video::VideoRegionOfInterestMeta>()
        .filter(|roi| roi.roi_type() != "defect")
        .map(|roi| roi.rect())
        .collect();
    assert_eq!(rois, [(1, 2, 3, 4)], "{about}");
    let reference = buffer.meta::<gst::ReferenceTimestampMeta>().expect(about);
    assert_eq!(reference.timestamp(), gst::ClockTime::from_seconds(9));
    let custom = gst::meta::CustomMeta::from_buffer(buffer, "TestForeignMeta").expect(about);
    assert_eq!(custom.structure().get::<i32>("answer"), Ok(42));
}

#[test]
fn elements_pass_foreign_metas_timestamps_offsets_and_flags() {
    let Some(device) = start() else { return };
    let frame = frame();
    for element in ON_DEVICE.into_iter().chain(["clflatfield"]) {
        for (element, wanted) in [
            (element.to_owned(), "ANY"),
            (element.to_owned(), "video/x-raw"),
            (format!("{element} ! clhistogram"), "video/x-raw"),
        ] {
            let wanted = wanted.parse::<gst::Caps>().unwrap();
            let mut rig = Rig::between(&element, &caps_of(&frame), &wanted);
            assert_laden(&rig.pass(laden(&frame, &device)), &element);
            // A frame with another reference is not modified.
            let held = laden(&frame, &device);
            let output = rig.pass(held.clone());
            assert_laden(&output, &element);
            assert_laden(&held, &element);
            assert!(HistogramResult::read(&held).is_empty());
        }
    }
}

#[test]
fn readers_leave_out_a_meta_that_lacks_fields() {
    let Some(device) = start() else { return };
    let frame = constant(SIZE, 5);
    let mut rig = Rig::new(
        "clhistogram ! clpitchthreshold PUBLISHED pitch-x=4",
        &caps_of(&frame),
    );
    let mut buffer = buffer_of(&frame, &device);
    let writable = buffer.get_mut().unwrap();
    for name in ["GstClHistogramMeta", "GstClDefectMeta"] {
        let mut hostile = gst::meta::CustomMeta::add(writable, name).unwrap();
        hostile.mut_structure().set("bins-data", 3);
    }
    let output = rig.pass(buffer);
    assert_eq!(HistogramResult::read(&output).len(), 1);
    assert_eq!(DefectResult::read(&output).len(), 1);
}

/// Any element may attach a meta with our name, so readers must check the contents.
#[test]
fn metas_whose_counts_contradict_their_data_are_left_out() {
    let Some(device) = start() else { return };
    let frame = frame();
    let mut histogram = Rig::new("clhistogram", &caps_of(&frame));
    let counted = histogram.pass(buffer_of(&frame, &device));
    let bytes = |len| gst::glib::Bytes::from_owned(vec![0; len]).to_send_value();
    let columns = |len| gst::Array::new(vec![0.0_f64; len]).to_send_value();
    let contradictions = [
        ("channels", u32::MAX.to_send_value()),
        ("bins", u32::MAX.to_send_value()),
        ("bins", 0_u32.to_send_value()),
        ("bins-data", bytes(0)),
        ("bins-data", bytes(4 * 256 + 1)),
        ("mean", columns(0)),
        ("mean", columns(2)),
        ("count", gst::Array::new([1_u64, 1]).to_send_value()),
    ];
    for (field, value) in contradictions {
        let spoilt = with_field(&counted, "GstClHistogramMeta", field, value);
        assert_eq!(HistogramResult::read(&spoilt), [], "{field}");
    }

    let mut pitch = Rig::new("clpitchthreshold PUBLISHED pitch-x=4", &caps_of(&frame));
    let judged = pitch.pass(buffer_of(&frame, &device));
    for (field, value) in [
        ("defect-count", u32::MAX.to_send_value()),
        ("defects-data", bytes(63)),
        ("defects-data", bytes(0)),
        ("version", 1_u32.to_send_value()),
        ("version", 0_u32.to_send_value()),
        ("version", 2_i32.to_send_value()),
        ("classes", 2_u32.to_send_value()),
        ("first-line", 2_u32.to_send_value()),
    ] {
        let spoilt = with_field(&judged, "GstClDefectMeta", field, value);
        assert_eq!(DefectResult::read(&spoilt), [], "{field}");
    }
}

/// A buffer with a copy of the meta of this name on `from`, with one field changed.
fn with_field(
    from: &gst::Buffer,
    name: &str,
    field: &str,
    value: gst::glib::SendValue,
) -> gst::Buffer {
    let meta = gst::meta::CustomMeta::from_buffer(from, name).unwrap();
    let mut buffer = gst::Buffer::new();
    let mut copy = gst::meta::CustomMeta::add(buffer.make_mut(), name).unwrap();
    let structure = copy.mut_structure();
    for (field, value) in meta.structure().iter() {
        structure.set_value(field, value.clone());
    }
    structure.set_value(field, value);
    buffer
}
