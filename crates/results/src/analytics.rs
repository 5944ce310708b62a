//! Defects and the mask as GstAnalytics, for elements and tools that read no GstClDefectMeta.

use std::{
    collections::BTreeMap,
    mem::MaybeUninit,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use clinspect_core::mask::unpack_row;
use gst::glib::{self, Quark, translate::*};
use gst_analytics::{
    AnalyticsRelationMeta, AnalyticsRelationMetaClassificationExt as _,
    AnalyticsRelationMetaInitParams, AnalyticsRelationMetaODExt as _, RelTypes, ffi,
};

use super::DefectResult;

/// Defects of a frame that are attached, the largest first. The meta holds a byte for each pair of
/// its entries.
const MOST_DETECTIONS: usize = 256;
/// The comparison is exact: there is no probability to report.
const CONFIDENCE: f32 = 1.0;
/// Level of a marked pixel in the mask of the segmentation, and the id of their region.
const MARKED: u32 = 255;
/// Names of classes that become quarks. Quarks are never freed, and events from a network name classes.
const MOST_NAMES: usize = 1000;
/// What GLib's quark of a class is if there are more.
const OTHER: &str = "other";
/// Bytes of an entry in the meta, roughly; it grows if they do not suffice.
const ENTRY_BYTES: usize = 64;

/// Attaches an object detection for each defect, a classification for each class, and a segmentation
/// if the result has the mask of the frame. Without a marked pixel nothing is attached.
///
/// # Errors
/// GStreamer refuses an entry.
pub(super) fn attach(
    result: &DefectResult,
    buffer: &mut gst::BufferRef,
) -> Result<(), glib::BoolError> {
    let in_frame = |defect| Some((defect, result.box_in_frame(defect)?));
    let defects: Vec<_> = result
        .defects
        .iter()
        .filter_map(in_frame)
        .take(MOST_DETECTIONS)
        .collect();
    let mask = if result.defect_pixels > 0 {
        unpacked(result)?
    } else {
        None
    };
    if defects.is_empty() && mask.is_none() {
        return Ok(());
    }
    if buffer.meta::<AnalyticsRelationMeta>().is_none() {
        let entries = defects.len() + result.class_names.len() + 3;
        let params = AnalyticsRelationMetaInitParams::new(entries, entries * ENTRY_BYTES);
        AnalyticsRelationMeta::add_full(buffer, &params);
    }
    let meta = buffer.meta_mut::<AnalyticsRelationMeta>();
    let mut meta = meta.ok_or_else(|| glib::bool_error!("the buffer takes no analytics meta"))?;
    let segmentation = match mask {
        Some(mask) => Some(add_segmentation(
            &meta,
            mask,
            [result.width, result.height],
        )?),
        None => None,
    };
    let mut classes = BTreeMap::new();
    for (defect, [x, y, width, height]) in defects {
        let quark = quark(result.class_name(defect.class));
        let class = match classes.get(&defect.class) {
            Some(&class) => class,
            None => {
                let class = meta.add_one_cls_mtd(CONFIDENCE, quark)?.id();
                classes.insert(defect.class, class);
                class
            }
        };
        let [x, y, width, height] = [x, y, width, height].map(|at| at as i32);
        let detection = meta
            .add_od_mtd(quark, x, y, width, height, CONFIDENCE)?
            .id();
        meta.set_relation(RelTypes::RELATE_TO, detection, class)?;
        if let Some(segmentation) = segmentation {
            meta.set_relation(RelTypes::CONTAIN, segmentation, detection)?;
            meta.set_relation(RelTypes::IS_PART_OF, detection, segmentation)?;
        }
    }
    Ok(())
}

/// The quark of a class.
fn quark(name: &str) -> Quark {
    static NAMES: AtomicUsize = AtomicUsize::new(0);
    if let Some(known) = Quark::try_from_str(name) {
        return known;
    }
    let is_room = NAMES.fetch_update(Relaxed, Relaxed, |count| {
        (count < MOST_NAMES).then_some(count + 1)
    });
    Quark::from_str(if is_room.is_ok() { name } else { OTHER })
}

/// The mask as a GRAY8 picture, 0 and 255; `None` if the result has none, or one that is too short.
fn unpacked(result: &DefectResult) -> Result<Option<gst::Buffer>, glib::BoolError> {
    let Some(mask) = &result.mask else {
        return Ok(None);
    };
    let mask = mask.map_readable()?;
    let [width, height] = [result.width as usize, result.height as usize];
    let packed = width.div_ceil(8);
    if width == 0 || mask.len() < packed * height {
        return Ok(None);
    }
    let mut levels = vec![0; width * height];
    for (row, packed) in levels
        .chunks_exact_mut(width)
        .zip(mask.chunks_exact(packed))
    {
        unpack_row(packed, row);
    }
    let mut picture = gst::Buffer::from_mut_slice(levels);
    let format = gst_video::VideoFormat::Gray8;
    gst_video::VideoMeta::add_full(
        picture.make_mut(),
        gst_video::VideoFrameFlags::empty(),
        format,
        result.width,
        result.height,
        &[0],
        &[result.width as i32],
    )?;
    Ok(Some(picture))
}

/// Adds the mask of the whole frame, with one region. The crate of GStreamer has no function for it.
fn add_segmentation(
    meta: &AnalyticsRelationMeta,
    mask: gst::Buffer,
    [width, height]: [u32; 2],
) -> Result<u32, glib::BoolError> {
    let mut regions = [MARKED];
    let mut entry = MaybeUninit::<ffi::GstAnalyticsSegmentationMtd>::uninit();
    // SAFETY: the meta lives on a buffer that the caller may write. GStreamer takes the reference to
    // the mask, which has a GstVideoMeta, copies the ids, and fills `entry` if it returns TRUE.
    let id = unsafe {
        let is_added: bool = from_glib(ffi::gst_analytics_relation_meta_add_segmentation_mtd(
            meta.as_mut_ptr(),
            mask.into_glib_ptr(),
            ffi::GST_SEGMENTATION_TYPE_SEMANTIC,
            regions.len(),
            regions.as_mut_ptr(),
            0,
            0,
            width,
            height,
            entry.as_mut_ptr(),
        ));
        is_added.then(|| entry.assume_init().id)
    };
    id.ok_or_else(|| glib::bool_error!("the analytics meta takes no segmentation"))
}
