//! Caps that a neighbour could send, made of strings that GStreamer's parser accepts. Every element
//! answers queries with caps that its pads can have, and the layout derived from fixed caps agrees
//! with GStreamer's. No device is needed.

use arbitrary::{Result, Unstructured};
use clinspect_opencl::frame::layout_of;
use gst::prelude::*;

use crate::support::register;

const ELEMENTS: [&str; 8] = [
    "clunpack",
    "clunpack packing=mono12p",
    "clflatfield",
    "clgaussian",
    "clhistogram",
    "clpitchthreshold",
    "clpitchthreshold output=frame",
    "clmaskunpack",
];
const MEDIA: [&str; 7] = [
    "video/x-bayer",
    "video/x-raw",
    "video/x-raw(memory:DMABuf)",
    "video/x-raw(ANY)",
    "video/x-bitmask",
    "image/x-portable-bitmap",
    "audio/x-raw",
];
const FIELDS: [&str; 13] = [
    "format",
    "width",
    "height",
    "framerate",
    "max-framerate",
    "stride",
    "bit-order",
    "colorimetry",
    "chroma-site",
    "interlace-mode",
    "pixel-aspect-ratio",
    "views",
    "multiview-mode",
];
const NUMBERS: [i32; 17] = [
    0,
    1,
    2,
    7,
    8,
    33,
    64,
    640,
    32_767,
    65_535,
    65_536,
    46_341,
    -1,
    i32::MIN,
    i32::MAX,
    i32::MAX - 1,
    i32::MAX / 4,
];
const WORDS: [&str; 26] = [
    "rggb",
    "bggr12le",
    "GRAY8",
    "GRAY16_LE",
    "GRAY16_BE",
    "GRAY10_LE32",
    "RGB",
    "BGRx",
    "ARGB",
    "I420",
    "YV12",
    "NV12",
    "NV21",
    "Y42B",
    "Y444",
    "YUY2",
    "UYVY",
    "v210",
    "ENCODED",
    "NV12_64Z32",
    "RGB8P",
    "msb-first",
    "lsb-first",
    "bt709",
    "interleaved",
    "nonsense",
];

/// See the module.
pub fn run(data: &[u8]) {
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    register();
    let line = *input.choose(&ELEMENTS)?;
    let element = gst::parse::bin_from_description(line, false).expect("an element of ours");
    let element = element.iterate_elements().into_iter().flatten().next();
    let element = element.expect("an element of ours");
    let filter = if input.arbitrary()? {
        Some(caps(input)?)
    } else {
        None
    };
    let caps = caps(input)?;

    for name in ["sink", "src"] {
        let pad = element.static_pad(name).expect("a pad");
        let template = pad.pad_template_caps();
        let answer = pad.query_caps(filter.as_ref());
        assert!(answer.is_subset(&template), "{line} {name}: {answer}");
        if let Some(filter) = &filter {
            assert!(
                answer.is_subset(filter),
                "{line} {name}: {answer} of {filter}"
            );
        }
        let accepted = caps.is_fixed() && pad.query_accept_caps(&caps);
        assert!(
            !accepted || caps.can_intersect(&template),
            "{line} {name}: {caps}"
        );
    }
    assert_transformed(&element, line, &caps);
    if caps.is_fixed() {
        assert_laid_out(&caps);
    }
    Ok(())
}

/// The element's answer to caps stays inside the template of the other pad.
fn assert_transformed(element: &gst::Element, line: &str, caps: &gst::Caps) {
    for (here, there) in [("sink", "src"), ("src", "sink")] {
        let peer = gst::Pad::builder(match here {
            "sink" => gst::PadDirection::Src,
            _ => gst::PadDirection::Sink,
        })
        .query_function({
            let caps = caps.clone();
            move |pad, parent, query| match query.view_mut() {
                gst::QueryViewMut::Caps(asked) => {
                    let filter = asked.filter_owned();
                    let answer = match filter {
                        Some(filter) => {
                            filter.intersect_with_mode(&caps, gst::CapsIntersectMode::First)
                        }
                        None => caps.clone(),
                    };
                    asked.set_result(&answer);
                    true
                }
                _ => gst::Pad::query_default(pad, parent, query),
            }
        })
        .build();
        peer.set_active(true).expect("an active pad");
        let ours = element.static_pad(here).expect("a pad");
        let linked = match here {
            "sink" => peer.link_full(&ours, gst::PadLinkCheck::empty()),
            _ => ours.link_full(&peer, gst::PadLinkCheck::empty()),
        };
        linked.expect("pads of one direction each");
        let other = element.static_pad(there).expect("a pad");
        let answer = other.query_caps(None);
        let template = other.pad_template_caps();
        assert!(
            answer.is_subset(&template),
            "{line}: {caps} becomes {answer}"
        );
        let _ = match here {
            "sink" => peer.unlink(&ours),
            _ => ours.unlink(&peer),
        };
        let _ = peer.set_active(false);
    }
}

/// Every plane of the layout is a plane of GStreamer's, and fits into it.
fn assert_laid_out(caps: &gst::Caps) {
    let Ok(info) = gst_video::VideoInfo::from_caps(caps) else {
        return;
    };
    let Ok(layout) = layout_of(&info) else {
        return;
    };
    assert_eq!(
        (layout.width, layout.height),
        (info.width() as usize, info.height() as usize)
    );
    assert_eq!(layout.planes.len(), info.n_planes() as usize, "{caps}");
    for (i, plane) in layout.planes.iter().enumerate() {
        // Rows of YUY2 and similar formats end with a whole pair of pixels, as GStreamer's strides
        // do.
        assert!(
            plane.row_bytes <= info.stride()[i] as usize,
            "plane {i} of {caps}"
        );
        let end = plane.row_bytes as u128
            + info.stride()[i] as u128 * plane.rows.saturating_sub(1) as u128
            + info.offset()[i] as u128;
        assert!(end <= info.size() as u128, "plane {i} of {caps}");
    }
    assert!(layout.bytes() <= info.size(), "{caps}");
}

/// Caps of known and unknown media types with fields of any type.
fn caps(input: &mut Unstructured) -> Result<gst::Caps> {
    let mut caps = gst::Caps::new_empty();
    for _ in 0..input.int_in_range(1..=3)? {
        let text = structure(input)?;
        // A string that GStreamer does not accept is not tested.
        if let Ok(more) = text.parse::<gst::Caps>() {
            caps.merge(more);
        }
    }
    Ok(caps)
}

fn structure(input: &mut Unstructured) -> Result<String> {
    let mut text = (*input.choose(&MEDIA)?).to_owned();
    // Complete video caps more often than by chance.
    if input.arbitrary()? {
        let format = input.choose(&WORDS)?;
        let (width, height) = (number(input)?, number(input)?);
        text += &format!(",format={format},width={width},height={height},framerate=30/1");
        if input.arbitrary()? {
            text += &format!(",stride={},bit-order=msb-first", number(input)?);
        }
    }
    for _ in 0..input.int_in_range(0..=4)? {
        let field = input.choose(&FIELDS)?;
        text += &format!(",{field}={}", value(input)?);
    }
    Ok(text)
}

fn number(input: &mut Unstructured) -> Result<i32> {
    if input.arbitrary()? {
        Ok(*input.choose(&NUMBERS)?)
    } else {
        input.arbitrary()
    }
}

/// Avoids two faults of GStreamer: its parser logs a critical for -2³¹, and reads a denominator of
/// 0 as text. In a list with fractions, its comparison of caps (1.22) then reads past the
/// fractions.
fn fraction(input: &mut Unstructured) -> Result<String> {
    let numerator = number(input)?.max(-i32::MAX);
    let denominator = match number(input)?.max(-i32::MAX) {
        0 => 1,
        other => other,
    };
    Ok(format!("{numerator}/{denominator}"))
}

fn value(input: &mut Unstructured) -> Result<String> {
    Ok(match input.int_in_range(0..=7)? {
        0 => number(input)?.to_string(),
        1 => (*input.choose(&WORDS)?).to_owned(),
        2 => fraction(input)?,
        3 => format!("(float){}", f32::from(input.arbitrary::<i16>()?) / 8.0),
        // GStreamer's parser logs a critical for empty ranges.
        4 => {
            let (low, high) = (number(input)?, number(input)?);
            format!("[{},{}]", low.min(high) / 2 - 1, low.max(high) / 2)
        }
        5 => {
            let (low, high) = (number(input)?, number(input)?);
            format!("[{}/1,{}/1]", low.min(high) / 2 - 1, low.max(high) / 2)
        }
        kind => {
            // Values of one type only: GStreamer's comparison logs a critical for lists of several
            // types.
            let kind_of_values = input.int_in_range(0..=2)?;
            let mut values = Vec::new();
            for _ in 0..input.int_in_range(0..=4)? {
                values.push(match kind_of_values {
                    0 => number(input)?.to_string(),
                    1 => (*input.choose(&WORDS)?).to_owned(),
                    _ => fraction(input)?,
                });
            }
            let values = values.join(",");
            if kind == 6 {
                format!("{{{values}}}")
            } else {
                format!("<{values}>")
            }
        }
    })
}
