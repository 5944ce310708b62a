//! What readers of GstAnalytics find on a buffer.

#![cfg(feature = "analytics")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use clinspect_results::{Defect, DefectResult, Verdict};
use gst::glib::translate::*;
use gst_analytics::{
    AnalyticsClassificationMtd, AnalyticsMetaRefExt as _, AnalyticsODMtd, AnalyticsRelationMeta,
    RelTypes, ffi,
};

fn defect(id: u32, class: u16, [x, y, width, height]: [i32; 4]) -> Defect {
    Defect {
        id,
        class,
        x,
        y,
        width: width as u32,
        height: height as u32,
        area: 3,
        ..Defect::default()
    }
}

/// A strip of 21x4 with a mask: pixels 0 and 20 of row 1, pixel 9 of row 3.
fn result(defects: Vec<Defect>) -> DefectResult {
    gst::init().unwrap();
    let mut mask = [0; 3 * 4];
    mask[3] = 0b1000_0000;
    mask[5] = 0b0000_1000;
    mask[10] = 0b0100_0000;
    DefectResult {
        element: "judge".into(),
        width: 21,
        height: 4,
        judged_pixels: 84,
        defect_pixels: 3,
        verdict: Verdict::Fail,
        class_names: vec!["spot".into(), "thread".into()],
        defects,
        mask: Some(gst::Buffer::from_slice(mask)),
        ..DefectResult::default()
    }
}

fn attached(results: &[DefectResult]) -> gst::Buffer {
    clinspect_results::register();
    let mut buffer = gst::Buffer::new();
    for result in results {
        result.attach(buffer.make_mut()).unwrap();
    }
    buffer
}

/// Name of the class, and box.
type Detection = (String, [i32; 4]);

/// All detections. Each has exactly one related class of the same name, and is part of `part_of`
/// segmentations.
fn detections(buffer: &gst::Buffer, part_of: usize) -> Vec<Detection> {
    let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
    let entries = meta.iter::<AnalyticsODMtd>();
    entries
        .map(|detection| {
            let name = String::from(detection.obj_type().unwrap().as_str().as_str());
            let at = detection.location().unwrap();
            assert_eq!(at.loc_conf_lvl, 1.0);
            let mut classes = meta.iter_direct_related::<AnalyticsClassificationMtd>(
                detection.id(),
                RelTypes::RELATE_TO,
            );
            let class = classes.next().unwrap();
            assert_eq!((class.len(), class.level(0)), (1, 1.0));
            assert_eq!(class.quark(0).as_str().as_str(), name);
            assert!(classes.next().is_none());
            let parts = segmentations(buffer).into_iter().filter(|(id, _)| {
                meta.relation(*id, detection.id()) == RelTypes::CONTAIN
                    && meta.relation(detection.id(), *id) == RelTypes::IS_PART_OF
            });
            assert_eq!(parts.count(), part_of);
            (name, [at.x, at.y, at.w, at.h])
        })
        .collect()
}

/// Id and mask of each segmentation.
fn segmentations(buffer: &gst::Buffer) -> Vec<(u32, Vec<u8>)> {
    let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
    (0..meta.len() as u32)
        .filter_map(|id| {
            // SAFETY: the meta lives as long as `buffer`. GStreamer fills what it returns TRUE for, and
            // gives a reference to the mask.
            unsafe {
                let mut entry = std::mem::zeroed();
                let found = ffi::gst_analytics_relation_meta_get_segmentation_mtd(
                    meta.as_mut_ptr(),
                    id,
                    &mut entry,
                );
                if found == 0 {
                    return None;
                }
                assert_eq!(
                    ffi::gst_analytics_segmentation_mtd_get_region_count(&entry),
                    1
                );
                assert_eq!(
                    ffi::gst_analytics_segmentation_mtd_get_region_id(&entry, 0),
                    255
                );
                let (mut x, mut y, mut width, mut height) = (-1, -1, 0, 0);
                let mask = ffi::gst_analytics_segmentation_mtd_get_mask(
                    &entry,
                    &mut x,
                    &mut y,
                    &mut width,
                    &mut height,
                );
                let mask: gst::Buffer = from_glib_full(mask);
                assert_eq!((x, y, width, height), (0, 0, 21, 4));
                let layout = mask.meta::<gst_video::VideoMeta>().unwrap();
                assert_eq!(layout.format(), gst_video::VideoFormat::Gray8);
                assert_eq!(
                    (layout.width(), layout.height(), layout.stride()[0]),
                    (21, 4, 21)
                );
                let levels = mask.map_readable().unwrap().to_vec();
                Some((id, levels))
            }
        })
        .collect()
}

fn levels() -> Vec<u8> {
    let mut levels = vec![0; 21 * 4];
    for at in [21, 21 + 20, 3 * 21 + 9] {
        levels[at] = 255;
    }
    levels
}

#[test]
fn defects_are_detections_with_a_class_and_part_of_the_mask() {
    let buffer = attached(&[result(vec![
        defect(1, 1, [0, 1, 1, 1]),
        defect(2, 0, [20, 1, 1, 1]),
        defect(3, 2, [3, -2, 12, 4]),
        defect(4, 1, [9, 3, 1, 1]),
        defect(5, u16::MAX, [0, 0, 8, 4]),
        // It ended above the strip.
        defect(6, 1, [0, -3, 4, 2]),
    ])]);
    let expected = [
        ("spot", [0, 1, 1, 1]),
        ("other", [20, 1, 1, 1]),
        ("thread", [3, 0, 12, 2]),
        ("spot", [9, 3, 1, 1]),
        ("pattern-missing", [0, 0, 8, 4]),
    ];
    let expected = expected.map(|(name, at)| (name.to_owned(), at));
    assert_eq!(detections(&buffer, 1), expected);
    let masks: Vec<_> = segmentations(&buffer)
        .into_iter()
        .map(|(_, mask)| mask)
        .collect();
    assert_eq!(masks, [levels()]);
    // One classification for each class.
    let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
    assert_eq!(meta.iter::<AnalyticsClassificationMtd>().count(), 4);
    // Our own meta is as always.
    assert_eq!(DefectResult::read(&buffer)[0].defects.len(), 6);
}

#[test]
fn two_elements_share_the_meta() {
    let one = result(vec![defect(1, 1, [0, 1, 1, 1])]);
    let mut two = result(vec![defect(1, 2, [9, 3, 1, 1])]);
    two.mask = None;
    let buffer = attached(&[one, two]);
    assert_eq!(buffer.iter_meta::<AnalyticsRelationMeta>().count(), 1);
    let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
    assert_eq!(meta.iter::<AnalyticsODMtd>().count(), 2);
    assert_eq!(segmentations(&buffer).len(), 1);
}

#[test]
fn nothing_marked_is_nothing_attached() {
    let mut clean = result(Vec::new());
    clean.defect_pixels = 0;
    assert!(attached(&[clean]).meta::<AnalyticsRelationMeta>().is_none());
    let mut unlisted = result(Vec::new());
    unlisted.mask = None;
    assert!(
        attached(&[unlisted])
            .meta::<AnalyticsRelationMeta>()
            .is_none()
    );
    // Marked pixels that are not listed are in the mask.
    let buffer = attached(&[result(Vec::new())]);
    assert_eq!(segmentations(&buffer).len(), 1);
    // A mask that is shorter than the frame is not read.
    let mut short = result(Vec::new());
    short.mask = Some(gst::Buffer::from_slice([255; 11]));
    assert!(attached(&[short]).meta::<AnalyticsRelationMeta>().is_none());
}

#[test]
fn the_largest_256_defects_are_attached() {
    let many = (1..2000).map(|id| defect(id, 1, [(id % 20) as i32, (id / 1000) as i32, 1, 1]));
    let buffer = attached(&[result(many.collect())]);
    let meta = buffer.meta::<AnalyticsRelationMeta>().unwrap();
    assert_eq!(meta.iter::<AnalyticsODMtd>().count(), 256);
}

#[test]
fn names_from_a_network_do_not_fill_the_memory() {
    let mut names = std::collections::BTreeSet::new();
    for number in 0..2000 {
        let mut forged = result(vec![defect(1, 1, [0, 1, 1, 1])]);
        forged.class_names = vec![format!("forged {number}")];
        names.insert(detections(&attached(&[forged]), 1)[0].0.clone());
    }
    assert!((900..=1001).contains(&names.len()), "{} names", names.len());
    assert!(names.contains("other"));
}
