//! The caps of masks.

use clinspect_core::mask::{packed_stride, pbm_header};

/// Media type of a packed mask.
pub const BITMASK: &str = "video/x-bitmask";
/// Media type of a PBM picture.
pub const PBM: &str = "image/x-portable-bitmap";

/// Fields that a mask copies from its frame's caps.
const KEPT: [&str; 4] = ["width", "height", "framerate", "max-framerate"];

/// The template of packed masks.
pub fn bitmask_template() -> gst::Caps {
    gst::Caps::builder(BITMASK)
        .field("width", gst::IntRange::new(1, i32::MAX))
        .field("height", gst::IntRange::new(1, i32::MAX))
        .field("stride", gst::IntRange::new(1, i32::MAX))
        .field("bit-order", "msb-first")
        .build()
}

/// The template of PBM pictures.
pub fn pbm_template() -> gst::Caps {
    gst::Caps::builder(PBM)
        .field("width", gst::IntRange::new(1, i32::MAX))
        .field("height", gst::IntRange::new(1, i32::MAX))
        .build()
}

/// A structure of another media type with the size and framerate of `from`.
pub fn with_size(name: &str, from: &gst::StructureRef) -> gst::Structure {
    let mut structure = gst::Structure::new_empty(name);
    for field in KEPT {
        if let Ok(value) = from.value(field) {
            structure.set_value(field, value.clone());
        }
    }
    structure
}

/// The structure of a packed mask for frames of `from`; a fixed width determines the stride.
pub fn bitmask(from: &gst::StructureRef) -> gst::Structure {
    let mut structure = with_size(BITMASK, from);
    match from.get::<i32>("width") {
        Ok(width) if width > 0 => {
            let stride = packed_stride(width as usize);
            structure.set("stride", i32::try_from(stride).unwrap_or(i32::MAX));
        }
        _ => structure.set("stride", gst::IntRange::new(1, i32::MAX)),
    }
    structure.set("bit-order", "msb-first");
    structure
}

/// Bytes per frame or mask with these fixed caps.
pub fn buffer_size(caps: &gst::Caps) -> Option<usize> {
    let structure = caps.structure(0)?;
    let media = structure.name().as_str();
    if media == "video/x-raw" {
        return Some(gst_video::VideoInfo::from_caps(caps).ok()?.size());
    }
    let width = usize::try_from(structure.get::<i32>("width").ok()?).ok()?;
    let height = usize::try_from(structure.get::<i32>("height").ok()?).ok()?;
    let packed = packed_stride(width).checked_mul(height)?;
    match media {
        BITMASK => Some(packed),
        PBM => packed.checked_add(pbm_header(width, height).len()),
        _ => None,
    }
}
