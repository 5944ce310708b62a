//! Negotiation of `clunpack`, by the text of the caps: GStreamer before 1.24 does not know deep Bayer formats, and none
//! knows packed samples.

use std::sync::LazyLock;

use clinspect_core::{
    ClError,
    unpack::{Encoding, Output, Packing, Pattern},
};
use clinspect_opencl::frame::{Carrier, FORMATS};
use gst_video::VideoFormat as Format;

/// Media type of raw video.
const RAW: &str = "video/x-raw";
/// Media type of Bayer pictures.
const BAYER: &str = "video/x-bayer";

/// Fields that unpacked frames copy from the caps of Bayer pictures.
const KEPT: [&str; 5] = [
    "width",
    "height",
    "framerate",
    "max-framerate",
    "pixel-aspect-ratio",
];

/// The value of the field `format` of Bayer pictures.
fn bayer_name(encoding: Encoding) -> Option<String> {
    match encoding {
        Encoding::Packed(_) => None,
        Encoding::Bayer {
            pattern, bits: 8, ..
        } => Some(pattern.name().into()),
        Encoding::Bayer {
            pattern,
            bits,
            big_endian,
        } => {
            let order = if big_endian { "be" } else { "le" };
            Some(format!("{}{bits}{order}", pattern.name()))
        }
    }
}

/// The Bayer formats: name and encoding.
static BAYER_FORMATS: LazyLock<Vec<(String, Encoding)>> = LazyLock::new(|| {
    let depths = [8, 10, 12, 14, 16].into_iter();
    let stored = depths.flat_map(|bits| [(bits, false), (bits, true)]);
    stored
        .filter(|&(bits, big_endian)| bits > 8 || !big_endian)
        .flat_map(|(bits, big_endian)| {
            Pattern::ALL.map(|pattern| Encoding::Bayer {
                pattern,
                bits,
                big_endian,
            })
        })
        .filter_map(|encoding| Some((bayer_name(encoding)?, encoding)))
        .collect()
});

/// Bits of the samples of a format whose caps may label packed samples: grey with two bytes a sample.
fn labelled_bits(format: Format) -> Option<u32> {
    let info = gst_video::VideoFormatInfo::from_format(format);
    let is_label = info.is_gray() && info.is_le() && info.pixel_stride()[0] == 2;
    is_label.then(|| info.depth()[0])
}

/// Raw formats; those that label packed samples come first.
fn labels_first() -> Vec<Format> {
    let mut formats = FORMATS.clone();
    formats.sort_by_key(|&format| labelled_bits(format).is_none());
    formats
}

/// A structure whose format is one of `formats`.
fn of_formats(
    mut structure: gst::Structure,
    formats: impl IntoIterator<Item = &'static str>,
) -> gst::Structure {
    structure.set("format", gst::List::new(formats));
    structure
}

/// A structure of another media type, with the size and the framerate of `from`.
fn with_size(name: &str, from: &gst::StructureRef) -> gst::Structure {
    let mut structure = gst::Structure::new_empty(name);
    for field in KEPT {
        if let Ok(value) = from.value(field) {
            structure.set_value(field, value.clone());
        }
    }
    structure
}

/// Bayer pictures for raw video of `from`, or any.
fn bayer(from: Option<&gst::StructureRef>) -> gst::Structure {
    let structure = match from {
        Some(from) => with_size(BAYER, from),
        None => gst::Structure::builder(BAYER)
            .field("width", gst::IntRange::new(1, i32::MAX))
            .field("height", gst::IntRange::new(1, i32::MAX))
            .field(
                "framerate",
                gst::FractionRange::new(gst::Fraction::new(0, 1), gst::Fraction::new(i32::MAX, 1)),
            )
            .build(),
    };
    of_formats(structure, BAYER_FORMATS.iter().map(|(name, _)| &**name))
}

/// Caps of the sink pad: raw video, and Bayer pictures.
pub(super) fn sink_template() -> gst::Caps {
    let mut caps = src_template();
    caps.make_mut().append_structure(bayer(None));
    caps
}

/// Caps of the source pad: what frames are unpacked to, and raw video that passes.
pub(super) fn src_template() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list(FORMATS.iter().copied())
        .build()
}

/// Whether the structure allows a format that Bayer pictures become.
fn allows_output(structure: &gst::StructureRef) -> bool {
    let outputs = of_formats(
        gst::Structure::new_empty(RAW),
        Output::ALL.map(Output::name),
    );
    structure.can_intersect(&outputs)
}

/// Caps for the other pad. Caps that do not fit the packing are refused later, by [`carrier`], with the reason.
pub(super) fn transform(
    direction: gst::PadDirection,
    caps: &gst::CapsRef,
    packing: Option<Packing>,
) -> gst::Caps {
    let grey = [Output::Gray16Le, Output::Gray8].map(Output::name);
    let is_raw = |structure: &&gst::StructureRef| structure.name() == RAW;
    let raw = || caps.iter().filter(is_raw);
    if direction == gst::PadDirection::Sink {
        let unpacked = raw().map(|structure| match packing {
            Some(_) => of_formats(structure.to_owned(), grey),
            None => structure.to_owned(),
        });
        let pictures = caps.iter().filter(|structure| structure.name() == BAYER);
        let outputs = Output::ALL.map(Output::name);
        let pictures = pictures.map(|picture| of_formats(with_size(RAW, picture), outputs));
        return unpacked.chain(pictures).collect();
    }
    let names = labels_first()
        .into_iter()
        .map(|format| format.to_str().as_str());
    let packed = raw().filter_map(|structure| match packing {
        Some(_) => {
            let allowed = of_formats(gst::Structure::new_empty(RAW), grey);
            let fits = structure.can_intersect(&allowed);
            fits.then(|| of_formats(structure.to_owned(), names.clone()))
        }
        None => Some(structure.to_owned()),
    });
    let pictures = raw().filter(|structure| allows_output(structure));
    packed
        .chain(pictures.map(|structure| bayer(Some(structure))))
        .collect()
}

/// How frames of these fixed caps lie in their buffers; `None` for raw video that passes unchanged.
///
/// # Errors
/// [`ClError::Refused`] for caps that do not fit the packing, and for rows that end inside a byte.
pub(super) fn carrier(
    caps: &gst::Caps,
    packing: Option<Packing>,
) -> Result<Option<Carrier>, ClError> {
    let unknown = || ClError::Refused(format!("the frames have caps without a size: {caps}"));
    let structure = caps.structure(0).ok_or_else(unknown)?;
    let is_bayer = structure.name() == BAYER;
    let format = structure.get::<&str>("format").map_err(|_| unknown())?;
    let (encoding, label) = match (packing, is_bayer) {
        (None, false) => return Ok(None),
        (Some(packing), false) => {
            let label = Format::from_string(format);
            check_label(packing, label)?;
            (Encoding::Packed(packing), Some(label))
        }
        (Some(packing), true) => {
            return Err(ClError::Refused(format!(
                "{} is for grey cameras, but the frames are Bayer pictures ({format}); set packing=none",
                property(packing)
            )));
        }
        (None, true) => {
            let mut known = BAYER_FORMATS.iter();
            let found = known.find(|(name, _)| name == format);
            let (_, encoding) = found.ok_or_else(|| {
                ClError::Refused(format!(
                    "Bayer pictures of format {format} are not supported"
                ))
            })?;
            (*encoding, None)
        }
    };
    let length = |field: &str| {
        let length = structure.get::<i32>(field).ok();
        length.and_then(|length| u32::try_from(length).ok())
    };
    let (Some(width), Some(height)) = (length("width"), length("height")) else {
        return Err(unknown());
    };
    let fps = structure.get::<gst::Fraction>("framerate");
    let fps = fps.unwrap_or_else(|_| gst::Fraction::new(0, 1));
    let name = match encoding {
        Encoding::Packed(packing) => packing.name(),
        Encoding::Bayer { .. } => format,
    };
    Carrier::new((encoding, name.into()), [width, height], label, fps).map(Some)
}

/// Whether caps of this format may label packed samples.
fn check_label(packing: Packing, label: Format) -> Result<(), ClError> {
    let (set, bits) = (property(packing), packing.bits());
    match labelled_bits(label) {
        None => Err(ClError::Refused(format!(
            "{set} is for frames with the caps GRAY16_LE, but these are {label}; set packing=none, or the camera's \
             PixelFormat to {}",
            packing.name()
        ))),
        Some(depth) if depth < 16 && depth != bits => Err(ClError::Refused(format!(
            "{set} has samples of {bits} bits, but the caps {label} say {depth}; set packing to the camera's PixelFormat"
        ))),
        Some(_) => Ok(()),
    }
}

/// The setting of the property.
fn property(packing: Packing) -> String {
    format!("packing={}", packing.name().to_lowercase())
}
