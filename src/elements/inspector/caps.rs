//! Negotiation: frames on the sink pad, masks in one of three forms on the source pad.

use clinspect_opencl::frame::{COLOUR_FORMATS, LUMA_FORMATS};
use clinspect_results::mask_caps::{
    BITMASK, PBM, bitmask, bitmask_template, pbm_template, with_size,
};

/// The form of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskForm {
    /// Packed rows.
    Packed,
    /// One byte per pixel.
    Grey,
    /// Packed rows after a PBM header.
    Pbm,
}

impl MaskForm {
    /// The form with these caps.
    pub fn of(caps: &gst::CapsRef) -> Option<Self> {
        match caps.structure(0)?.name().as_str() {
            BITMASK => Some(Self::Packed),
            PBM => Some(Self::Pbm),
            "video/x-raw" => Some(Self::Grey),
            _ => None,
        }
    }
}

/// Formats of frames that can be judged.
fn formats() -> impl Iterator<Item = gst_video::VideoFormat> + Clone {
    LUMA_FORMATS.iter().chain(&*COLOUR_FORMATS).copied()
}

/// Caps of frames that can be judged.
pub(super) fn sink_template() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list(formats())
        .build()
}

/// Caps of masks, the preferred form first.
pub(super) fn src_template() -> gst::Caps {
    let mut caps = bitmask_template();
    let grey = gst_video::VideoCapsBuilder::new()
        .format(gst_video::VideoFormat::Gray8)
        .build();
    caps.merge(grey);
    caps.merge(pbm_template());
    // Frames themselves, with output=frame.
    caps.merge(sink_template());
    caps
}

/// Frame caps to mask caps (`Sink`), or mask caps to frame caps (`Src`).
pub(super) fn transform(direction: gst::PadDirection, caps: &gst::CapsRef) -> gst::Caps {
    let mut out = gst::Caps::new_empty();
    let forms = out.make_mut();
    if direction == gst::PadDirection::Sink {
        for structure in caps.iter() {
            forms.append_structure(bitmask(structure));
        }
        for structure in caps.iter() {
            forms.append_structure(grey(structure));
        }
        for structure in caps.iter() {
            forms.append_structure(with_size(PBM, structure));
        }
    } else {
        for structure in caps.iter() {
            let mut frame = with_size("video/x-raw", structure);
            let formats = formats().map(|format| format.to_str());
            frame.set("format", gst::List::new(formats));
            forms.append_structure(frame);
        }
    }
    out
}

/// Frame caps to the caps of a GRAY8 picture (`Sink`), or the other way (`Src`).
pub(super) fn transform_to_picture(direction: gst::PadDirection, caps: &gst::CapsRef) -> gst::Caps {
    if direction == gst::PadDirection::Src {
        return transform(direction, caps);
    }
    caps.iter().map(grey).collect()
}

/// The structure of a GRAY8 mask.
fn grey(from: &gst::StructureRef) -> gst::Structure {
    // Keep all fields of a grey frame, colorimetry too, so that the frame's own caps match.
    let mut structure = from.to_owned();
    let is_grey = from
        .get::<&str>("format")
        .is_ok_and(|format| format == "GRAY8");
    structure.set("format", "GRAY8");
    if !is_grey {
        // The range of luma, the primaries of a colour and the site of chroma do not apply to a mask.
        structure.remove_fields(["colorimetry", "chroma-site"]);
    }
    structure
}
