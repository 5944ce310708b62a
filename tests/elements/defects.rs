//! The list of defects in meta, regions and messages, and the verdict from the list.

use std::iter;

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, Verdict};

use crate::{
    frames::{ARRANGEMENTS, PADDED, PLAIN, read},
    oracle::pitch_threshold::{self, compare},
    panels::{DEFAULT, ListSettings, RECOMMENDED, listed, recommended, spotted, without_ids},
    support::{
        Rig, buffer_at, buffer_of, caps_of, constant, noise, pitch_threshold_settings, start,
    },
};

const SIZE: [usize; 2] = [203, 151];
/// Low enough for noise to add defects of a pixel or two.
const THRESHOLD: f64 = 9.0;

fn line(more: &str) -> String {
    format!(
        "clpitchthreshold {RECOMMENDED} reports=reports,message-defects=true threshold={THRESHOLD} {more}"
    )
}

#[track_caller]
fn assert_structure(fields: &gst::StructureRef, defect: &Defect) {
    assert_eq!(fields.name(), "defect");
    for (name, value) in [
        ("width", defect.width),
        ("height", defect.height),
        ("area", defect.area),
        ("class", defect.class.into()),
        ("flags", defect.flags.into()),
        ("level", defect.level().into()),
        ("boundary-length", defect.boundary_length),
    ] {
        assert_eq!(fields.get::<u32>(name), Ok(value), "{name}");
    }
    for (name, value) in [
        ("x", defect.x),
        ("y", defect.y),
        ("polarity", defect.polarity),
    ] {
        assert_eq!(fields.get::<i32>(name), Ok(value), "{name}");
    }
    for (name, value) in [
        ("centroid-x", defect.centroid_x),
        ("centroid-y", defect.centroid_y),
        ("mean-difference", defect.mean_difference),
        ("peak-difference", defect.peak_difference),
        ("major-axis", defect.major_axis),
        ("minor-axis", defect.minor_axis),
        ("orientation", defect.orientation),
    ] {
        assert_eq!(fields.get::<f64>(name), Ok(f64::from(value)), "{name}");
    }
}

/// A list with the ids that the output has where the list has none: an element counts ids over all
/// frames.
fn numbered(output: &gst::BufferRef, wanted: &[Defect]) -> Vec<Defect> {
    let results = DefectResult::read(output).into_iter().take(1);
    let read: Vec<Defect> = results.flat_map(|result| result.defects).collect();
    assert!(read.iter().all(|defect| defect.id > 0));
    let ids = read.iter().map(|defect| defect.id).chain(iter::repeat(0));
    let with = |(wanted, id): (&Defect, u32)| match wanted.id {
        0 => Defect { id, ..*wanted },
        _ => *wanted,
    };
    wanted.iter().zip(ids).map(with).collect()
}

/// Compares `defects-data` with a list, byte by byte.
#[track_caller]
pub fn assert_records(output: &gst::BufferRef, wanted: &[Defect]) {
    let wanted = numbered(output, wanted);
    let meta = gst::meta::CustomMeta::from_buffer(output, "GstClDefectMeta").unwrap();
    let fields = meta.structure();
    let data = fields.get::<gst::glib::Bytes>("defects-data").unwrap();
    let expected: Vec<u8> = wanted
        .iter()
        .flat_map(|d| {
            let ([c, l], [f, g]) = (d.class.to_le_bytes(), d.flags.to_le_bytes());
            [
                d.x.to_le_bytes(),
                d.y.to_le_bytes(),
                d.width.to_le_bytes(),
                d.height.to_le_bytes(),
                d.area.to_le_bytes(),
                d.centroid_x.to_le_bytes(),
                d.centroid_y.to_le_bytes(),
                d.mean_difference.to_le_bytes(),
                d.peak_difference.to_le_bytes(),
                d.polarity.to_le_bytes(),
                d.id.to_le_bytes(),
                [c, l, f, g],
                d.major_axis.to_le_bytes(),
                d.minor_axis.to_le_bytes(),
                d.orientation.to_le_bytes(),
                d.boundary_length.to_le_bytes(),
            ]
        })
        .flatten()
        .collect();
    // Compared first, because a difference of typed lists is easier to read.
    assert_eq!(DefectResult::read(output)[0].defects, wanted[..]);
    assert_eq!(fields.get::<u32>("version"), Ok(2));
    assert_eq!(data.len(), 64 * wanted.len());
    assert!(data[..] == expected[..], "defects-data");
    assert_eq!(fields.get::<u32>("defect-count"), Ok(wanted.len() as u32));
}

/// Compares the regions of interest of type `defect` with a list.
#[track_caller]
pub fn assert_regions(output: &gst::BufferRef, wanted: &[Defect]) {
    assert_boxes(output, wanted);
    let regions = output
        .iter_meta::<gst_video::VideoRegionOfInterestMeta>()
        .filter(|region| region.roi_type() == "defect");
    for (region, defect) in regions.zip(wanted) {
        let fields = region.param("defect").unwrap();
        assert_structure(fields, defect);
        assert_eq!(fields.get::<u32>("id"), Ok(region.id() as u32));
    }
}

/// The same without the parameters, which GStreamer's converters drop.
#[track_caller]
pub fn assert_boxes(output: &gst::BufferRef, wanted: &[Defect]) {
    let regions: Vec<_> = output
        .iter_meta::<gst_video::VideoRegionOfInterestMeta>()
        .filter(|region| region.roi_type() == "defect")
        .collect();
    assert_eq!(regions.len(), wanted.len());
    for (region, defect) in regions.iter().zip(numbered(output, wanted)) {
        let [x, y] = [defect.x, defect.y].map(|at| at as u32);
        let rect = (x, y, defect.width, defect.height);
        assert_eq!(region.rect(), rect, "region {}", defect.id);
        assert_eq!(region.id(), defect.id as i32);
    }
}

#[track_caller]
fn assert_told(message: &gst::StructureRef, wanted: &[Defect]) {
    let told = message.get::<gst::Array>("defects").unwrap();
    assert_eq!(told.len(), wanted.len().min(16));
    for (value, defect) in told.iter().zip(wanted) {
        assert_structure(&value.get::<gst::Structure>().unwrap(), defect);
    }
    let count = wanted.len() as u32;
    assert_eq!(message.get::<u32>("defect-count"), Ok(count));
}

#[test]
fn defects_in_meta_regions_and_messages_equal_the_reference() {
    let Some(device) = start() else { return };
    let mut panels = spotted(SIZE);
    let mut coarse = 0;
    for format in [
        Format::Gray8,
        Format::I420,
        Format::Nv12,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        let scale = f64::from(1_u32 << (8 * (noise(format, [1, 1], PLAIN).kind().size() - 1)));
        let threshold = THRESHOLD * scale;
        for (wanted_caps, arrangement) in [
            ("video/x-bitmask", PLAIN),
            ("video/x-raw,format=GRAY8", PADDED),
            ("image/x-portable-bitmap", ARRANGEMENTS[3]),
        ] {
            let frame = panels.next_as(format, arrangement, 9);
            let element = format!(
                "clpitchthreshold {RECOMMENDED} reports=reports,interval=0,message-defects=true threshold={threshold} \
                 scale-factors=<0.3,0.15,0.07>"
            );
            let caps = wanted_caps.parse().unwrap();
            let mut rig = Rig::between(&element, &caps_of(&frame), &caps);
            let output = rig.pass(buffer_at(&frame, &device, 0));
            let settings = pitch_threshold::Settings {
                scale_factors: vec![0.3, 0.15, 0.07],
                ..recommended(threshold)
            };
            let (wanted, overflow) = listed(&frame, &settings, DEFAULT);
            assert!(wanted.len() > 16, "{} defects say little", wanted.len());
            coarse += wanted.iter().filter(|defect| defect.level() > 0).count();
            assert_records(&output, &wanted);
            assert_regions(&output, &wanted);
            let told = rig.told("clpitchthreshold");
            assert_eq!(told.len(), 1);
            assert_told(&told[0], &wanted);
            assert_eq!(told[0].get::<bool>("overflow"), Ok(overflow));
            assert_eq!(told[0].get::<&str>("verdict"), Ok("fail"));
        }
    }
    assert!(coarse > 0, "no defect is of a coarser level");
}

#[test]
fn defects_memory_object_image_equal_the_reference() {
    let Some(device) = start() else { return };
    if !crate::device::has_images(&device) {
        return crate::device::skip("defects of images", "the device has no images");
    }
    let frame = spotted(SIZE).next_as(Format::Gray8, PADDED, 9);
    let mut rig = Rig::new(&line("memory-object=image"), &caps_of(&frame));
    let output = rig.pass(buffer_of(&frame, &device));
    let (wanted, _) = listed(&frame, &recommended(THRESHOLD), DEFAULT);
    assert_records(&output, &wanted);
}

#[test]
fn clean_frame_has_an_empty_list() {
    let Some(device) = start() else { return };
    let frame = constant(SIZE, 90);
    let mut rig = Rig::new(&line(""), &caps_of(&frame));
    let output = rig.pass(buffer_of(&frame, &device));
    assert_records(&output, &[]);
    assert_regions(&output, &[]);
    assert_told(&rig.told("clpitchthreshold")[0], &[]);
    let result = &DefectResult::read(&output)[0];
    assert_eq!((result.verdict, result.overflow), (Verdict::Pass, false));
}

#[test]
fn list_follows_its_properties_while_mask_and_count_stay() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(9);
    let settings = recommended(THRESHOLD);
    let outcome = compare(frame.component(0), &settings);
    let mut rig = Rig::new(&line(""), &caps_of(&frame));
    let element = rig.only("clpitchthreshold");
    let all = listed(&frame, &settings, DEFAULT).0.len() as u32;
    let mut lengths = Vec::new();
    for min_area in [0, 1, 3, 20, 1_000_000] {
        for merge_distance in [0, 1, 4, 1000] {
            for max_defects in [100, all, all - 1, 3, 1] {
                let wanted = ListSettings {
                    min_area,
                    merge_distance,
                    max_defects,
                };
                element.set_property("min-area", min_area);
                element.set_property("merge-distance", merge_distance);
                let limits = gst::Structure::builder("limits").field("max-defects", max_defects);
                element.set_property("limits", limits.build());
                let output = rig.pass(buffer_of(&frame, &device));
                let (expected, overflow) = listed(&frame, &settings, wanted);
                let result = &DefectResult::read(&output)[0];
                assert_eq!(without_ids(&result.defects), expected, "{wanted:?}");
                assert_eq!(result.overflow, overflow, "{wanted:?}");
                assert_eq!(result.defect_pixels, outcome.defect_pixels);
                assert_eq!(read(&output), outcome.packed);
                assert_regions(&output, &expected);
                lengths.push(expected.len());
            }
        }
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 4, "{lengths:?}: the settings change little");
    assert!(rig.warnings().is_empty());
}

#[test]
fn list_of_no_defects_is_empty_and_says_that_there_are_more() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(9);
    let mut rig = Rig::new(&line("limits=limits,max-defects=0"), &caps_of(&frame));
    let output = rig.pass(buffer_of(&frame, &device));
    assert_records(&output, &[]);
    let result = &DefectResult::read(&output)[0];
    assert_eq!((result.verdict, result.overflow), (Verdict::Fail, true));
    let clean = constant(SIZE, 90);
    let output = rig.pass(buffer_of(&clean, &device));
    assert!(!DefectResult::read(&output)[0].overflow);
}

#[test]
fn list_of_a_mask_that_is_all_noise_is_bounded() {
    let Some(device) = start() else { return };
    let frame = noise(Format::Gray8, SIZE, PLAIN);
    let mut rig = Rig::new(
        "clpitchthreshold PUBLISHED pitch-x=2 threshold=110",
        &caps_of(&frame),
    );
    let output = rig.pass(buffer_of(&frame, &device));
    let (expected, overflow) = listed(&frame, &pitch_threshold_settings(2.0, 0.0, 110.0), DEFAULT);
    assert!(overflow && expected.len() == 100);
    assert_records(&output, &expected);
    assert!(DefectResult::read(&output)[0].overflow);
}

// ---- verdict --------------------------------------------------------------------------------

#[test]
fn verdict_by_pixels_count_and_area_fails_above_the_limit_only() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(9);
    let settings = recommended(THRESHOLD);
    let pixels = compare(frame.component(0), &settings).defect_pixels as i64;
    let wanted = ListSettings {
        min_area: 2,
        ..DEFAULT
    };
    let (defects, _) = listed(&frame, &settings, wanted);
    let (count, area) = (defects.len() as i64, i64::from(defects[0].area));
    let mut rig = Rig::new(
        &line("min-area=2 reports=reports,interval=0"),
        &caps_of(&frame),
    );
    let element = rig.only("clpitchthreshold");
    for (limits, verdict) in [
        ([0, 0, 0], Verdict::Fail),
        ([-1, -1, -1], Verdict::Pass),
        ([pixels, count, area], Verdict::Pass),
        ([pixels - 1, count, area], Verdict::Fail),
        ([pixels, count - 1, area], Verdict::Fail),
        ([pixels, count, area - 1], Verdict::Fail),
        ([0, -1, -1], Verdict::Fail),
        ([-1, 0, -1], Verdict::Fail),
        ([-1, -1, 0], Verdict::Fail),
        ([pixels, -1, -1], Verdict::Pass),
        ([-1, count, -1], Verdict::Pass),
        ([-1, -1, area], Verdict::Pass),
        ([i64::MAX, i64::MAX, i64::MAX], Verdict::Pass),
    ] {
        let fail = gst::Structure::builder("fail")
            .field("defect-pixels", limits[0])
            .field("defect-count", limits[1])
            .field("defect-area", limits[2]);
        element.set_property("fail", fail.build());
        let output = rig.pass(buffer_of(&frame, &device));
        assert_eq!(
            DefectResult::read(&output)[0].verdict,
            verdict,
            "{limits:?}"
        );
        let told = rig.told("clpitchthreshold");
        assert_eq!(
            told[0].get::<&str>("verdict"),
            Ok(verdict.name()),
            "{limits:?}"
        );
    }
}

/// Frames passed, failed and not judged.
pub fn counts(rig: &Rig) -> [u64; 3] {
    let stats: gst::Structure = rig.only("clpitchthreshold").property("stats");
    ["frames-passed", "frames-failed", "frames-unjudged"].map(|name| stats.get(name).unwrap())
}

#[test]
fn stats_count_the_frames_of_each_verdict() {
    let Some(device) = start() else { return };
    let good = constant(SIZE, 90);
    let bad = spotted(SIZE).next(9);
    for output in ["mask", "frame"] {
        let mut rig = Rig::new(&line(&format!("output={output}")), &caps_of(&good));
        assert_eq!(counts(&rig), [0, 0, 0]);
        for (frame, expected) in [
            (&good, [1, 0, 0]),
            (&bad, [1, 1, 0]),
            (&bad, [1, 2, 0]),
            (&good, [2, 2, 0]),
        ] {
            rig.pass(buffer_of(frame, &device));
            assert_eq!(counts(&rig), expected, "output={output}");
        }
        let element = rig.only("clpitchthreshold");
        // A frame without a pattern has no pitch.
        element.set_property("pitch-x", -1.0);
        element.set_property("pitch-y", 0.0);
        let verdict = |output: &gst::Buffer| DefectResult::read(output)[0].verdict;
        rig.settle(
            || buffer_of(&good, &device),
            |output| verdict(output) == Verdict::None,
            |output| verdict(output) == Verdict::Pass,
        );
        let [passed, failed, unjudged] = counts(&rig);
        assert!(passed >= 2, "output={output}");
        assert_eq!([failed, unjudged], [2, 1], "output={output}");
    }
}
