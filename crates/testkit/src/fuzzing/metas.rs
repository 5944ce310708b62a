//! Metas with our names that another element made: valid, with wrong types, missing fields or
//! absurd counts. The readers accept the valid ones and ignore the others, accepted results are
//! safe to use, an element passes all metas on, and `inspectoverlay` draws the drawable parts.

use arbitrary::{Result, Unstructured};
use gst::{glib, prelude::*};
use gstclinspect::results::{DEFECT_META, DefectResult, HISTOGRAM_META, HistogramResult};

use crate::support::{Rig, register};

/// Fields of a defect meta with one value.
const DEFECT_FIELDS: [(&str, Kind); 11] = [
    ("element", Kind::Text),
    ("frame-number", Kind::U64),
    ("width", Kind::U32),
    ("height", Kind::U32),
    ("pitch-x", Kind::F64),
    ("pitch-y", Kind::F64),
    ("threshold", Kind::F64),
    ("judged-pixels", Kind::U64),
    ("defect-pixels", Kind::U64),
    ("overflow", Kind::Bool),
    ("verdict", Kind::Verdict),
];
/// Fields that senders of earlier versions lack.
const LATER_DEFECT_FIELDS: [(&str, Kind); 13] = [
    ("judged-x", Kind::U64),
    ("judged-y", Kind::U64),
    ("missing-pixels", Kind::U64),
    ("web", Kind::U64),
    ("first-line", Kind::U64),
    ("open-area", Kind::U64),
    ("mm-per-pixel-x", Kind::F64),
    ("mm-per-pixel-y", Kind::F64),
    ("mean-level", Kind::F64),
    ("classes", Kind::Text),
    ("channels", Kind::Text),
    ("trained-frames", Kind::U32),
    ("train-frames", Kind::U32),
];
/// Fields of a histogram meta with one value.
const HISTOGRAM_FIELDS: [(&str, Kind); 7] = [
    ("version", Kind::U32),
    ("element", Kind::Text),
    ("frame-number", Kind::U64),
    ("format", Kind::Text),
    ("width", Kind::U32),
    ("height", Kind::U32),
    ("bit-depth", Kind::U32),
];
/// Fields of a histogram meta with a value per channel.
const STATISTICS: [&str; 14] = [
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
];
/// Bytes per record of version 1 and of version 2.
const RECORDS: [usize; 2] = [40, 64];
/// Side of the frame for the overlay; has room for a panel.
const DRAWN: u32 = 320;

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    U32,
    U64,
    F64,
    Bool,
    Text,
    Verdict,
}

/// See the module.
pub fn run(data: &[u8]) {
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    register();
    let caps = "video/x-bitmask,width=8,height=1,framerate=1/1,stride=1,bit-order=msb-first";
    let caps: gst::Caps = caps.parse().expect("caps");
    let mut buffer = gst::Buffer::from_slice([0x80_u8]);
    let expected = attach_any(input, buffer.make_mut())?;
    assert_read(&buffer, expected);
    let passed = Rig::new("clmaskunpack", &caps).pass(buffer);
    assert_read(&passed, expected);

    let caps = format!("video/x-raw,format=GRAY8,width={DRAWN},height={DRAWN},framerate=1/1");
    let caps: gst::Caps = caps.parse().expect("caps");
    let size = (DRAWN * DRAWN) as usize;
    let mut frame = gst::Buffer::with_size(size).expect("a frame");
    let writable = frame.make_mut();
    passed.foreach_meta(|meta| {
        let all = &gst::meta::MetaTransformCopy::new(..);
        meta.transform(writable, all).expect("a copy");
        std::ops::ControlFlow::Continue(())
    });
    assert_read(&frame, expected);
    let drawn = Rig::new("inspectoverlay show-ignored=true", &caps).pass(frame);
    assert_eq!(drawn.size(), size);
    assert_read(&drawn, expected);
    Ok(())
}

/// Attaches some metas; returns how many of them the readers accept: defects', histograms'.
pub fn attach_any(input: &mut Unstructured, buffer: &mut gst::BufferRef) -> Result<[usize; 2]> {
    let mut right = [0; 2];
    for _ in 0..input.int_in_range(1..=3)? {
        let histogram: bool = input.arbitrary()?;
        let (fields, whole) = if histogram {
            histogram_fields(input)?
        } else {
            defect_fields(input)?
        };
        let name = if histogram {
            HISTOGRAM_META
        } else {
            DEFECT_META
        };
        let mut meta = gst::meta::CustomMeta::add(buffer, name).expect("a registered meta");
        let structure = meta.mut_structure();
        for (field, value) in fields {
            structure.set_value(field, value);
        }
        right[usize::from(histogram)] += usize::from(whole);
    }
    Ok(right)
}

/// Fails unless the readers find this many results, each equal to its meta.
pub fn assert_read(buffer: &gst::BufferRef, [defects, histograms]: [usize; 2]) {
    let found = DefectResult::read(buffer);
    assert_eq!(found.len(), defects, "{buffer:?}");
    for result in found {
        let mut fields = gst::Structure::new_empty("fields");
        result.write_scalars(&mut fields);
        assert!(fields.has_field("verdict"));
        let counted: u32 = result.class_counts().iter().map(|(_, count)| count).sum();
        assert_eq!(counted as usize, result.defects.len());
        assert!(!result.summary().is_empty() && !result.to_string().is_empty());
        assert!(result.defect_structures().len() <= result.defects.len());
        let mut copy = gst::Buffer::new();
        result.attach(copy.make_mut()).expect("a registered meta");
        // Compared as text, because NaN then equals itself.
        let again = DefectResult::read(&copy);
        assert_eq!(format!("{again:?}"), format!("{:?}", [result]));
    }
    let found = HistogramResult::read(buffer);
    assert_eq!(found.len(), histograms, "{buffer:?}");
    for result in found {
        let channels = result.statistics.len();
        assert_eq!(result.bin_arrays().len(), channels);
        for channel in 0..channels {
            let bins = result.channel(channel).expect("a channel with statistics");
            assert_eq!(bins.len(), result.bins as usize);
        }
        assert_eq!(result.channel(channels), None);
        let mut copy = gst::Buffer::new();
        result.attach(copy.make_mut()).expect("a registered meta");
        let again = HistogramResult::read(&copy);
        assert_eq!(format!("{again:?}"), format!("{:?}", [result]));
    }
}

type Fields = (Vec<(&'static str, glib::SendValue)>, bool);

fn defect_fields(input: &mut Unstructured) -> Result<Fields> {
    let (mut fields, mut whole) = scalars(input, &DEFECT_FIELDS, true)?;
    let (later, right) = scalars(input, &LATER_DEFECT_FIELDS, false)?;
    fields.extend(later);
    whole &= right;
    let (version, is_number) = if spoil(input)? {
        value(input, Kind::U32)?
    } else {
        (input.int_in_range(1..=2_u32)?.to_send_value(), true)
    };
    whole &= is_number;
    let record = match version.get::<u32>() {
        Ok(0) | Err(_) => {
            whole = false;
            RECORDS[1]
        }
        Ok(1) => RECORDS[0],
        Ok(_) => RECORDS[1],
    };
    fields.push(("version", version));
    let count = input.int_in_range(0..=4)?;
    let len = if spoil(input)? {
        input.int_in_range(0..=4 * record + 3)?
    } else {
        count * record
    };
    let stated = if spoil(input)? {
        input.arbitrary()?
    } else {
        count as u32
    };
    whole &= len % record == 0 && len / record == stated as usize;
    let (data, right) = bytes(input, len)?;
    whole &= right;
    fields.extend(data.map(|data| ("defects-data", data)));
    fields.push(("defect-count", stated.to_send_value()));
    for name in ["mask", "ignored"] {
        if input.ratio(1_u8, 4_u8)? {
            // Only present on a frame; another type is not a mask.
            let mask = if input.arbitrary()? {
                gst::Buffer::from_slice([1_u8]).to_send_value()
            } else {
                7_i32.to_send_value()
            };
            fields.push((name, mask));
        }
    }
    Ok((fields, whole))
}

fn histogram_fields(input: &mut Unstructured) -> Result<Fields> {
    let (mut fields, mut whole) = scalars(input, &HISTOGRAM_FIELDS, true)?;
    let channels = input.int_in_range(1..=4)?;
    let bins = *input.choose(&[2_usize, 4, 16])?;
    let told_bins = if spoil(input)? {
        input.arbitrary()?
    } else {
        bins as u32
    };
    let told_channels = if spoil(input)? {
        input.arbitrary()?
    } else {
        channels as u32
    };
    let len = if spoil(input)? {
        input.int_in_range(0..=300)?
    } else {
        4 * channels * bins
    };
    whole &= told_channels as usize == channels
        && told_bins > 0
        && (told_bins as usize).checked_mul(4 * channels) == Some(len);
    fields.push(("bins", told_bins.to_send_value()));
    fields.push(("channels", told_channels.to_send_value()));
    let (data, right) = bytes(input, len)?;
    whole &= right;
    fields.extend(data.map(|data| ("bins-data", data)));

    let (roi, right) = array(input, 4, Kind::U32)?;
    whole &= right;
    fields.extend(roi.map(|roi| ("roi", roi)));
    let (count, right) = array(input, channels, Kind::U64)?;
    whole &= right;
    fields.extend(count.map(|count| ("count", count)));
    for name in STATISTICS {
        let (values, right) = array(input, channels, Kind::F64)?;
        whole &= right;
        fields.extend(values.map(|values| (name, values)));
    }
    Ok((fields, whole))
}

/// True once in a while.
fn spoil(input: &mut Unstructured) -> Result<bool> {
    input.ratio(1_u8, 32_u8)
}

/// Values of fields. Some fields are left out, which is valid unless they are `needed`.
fn scalars(
    input: &mut Unstructured,
    fields: &[(&'static str, Kind)],
    needed: bool,
) -> Result<Fields> {
    let mut whole = true;
    let mut values = Vec::new();
    for &(name, kind) in fields {
        // The reader of histograms does not check the version.
        let is_read = name != "version";
        if spoil(input)? {
            whole &= !needed || !is_read;
            continue;
        }
        let (value, right) = value(input, kind)?;
        // A text without a value counts as a field that is left out.
        let is_no_text = !needed && matches!(value.get::<Option<&str>>(), Ok(None));
        whole &= right || is_no_text && matches!(kind, Kind::Text) || !is_read;
        values.push((name, value));
    }
    Ok((values, whole))
}

/// A value of this kind or another; returns whether it is valid.
fn value(input: &mut Unstructured, kind: Kind) -> Result<(glib::SendValue, bool)> {
    if spoil(input)? {
        let other = match input.int_in_range(0..=7)? {
            0 => (-1_i32).to_send_value(),
            1 => i64::MIN.to_send_value(),
            2 => 1.0_f32.to_send_value(),
            3 => None::<&str>.to_send_value(),
            4 => gst::Fraction::new(1, 3).to_send_value(),
            5 => gst::IntRange::new(1, 2).to_send_value(),
            6 => gst::Array::new([1_i32]).to_send_value(),
            _ => None::<glib::Bytes>.to_send_value(),
        };
        return Ok((other, false));
    }
    Ok(match kind {
        // Half of the values are possible for the frame.
        Kind::U32 if input.arbitrary()? => {
            let number = *input.choose(&[DRAWN, DRAWN / 2, 1, 0])?;
            (number.to_send_value(), true)
        }
        Kind::U32 => (input.arbitrary::<u32>()?.to_send_value(), true),
        Kind::U64 => (input.arbitrary::<u64>()?.to_send_value(), true),
        Kind::F64 => (input.arbitrary::<f64>()?.to_send_value(), true),
        Kind::Bool => (input.arbitrary::<bool>()?.to_send_value(), true),
        Kind::Text => {
            let words = ["", "clhistogram0", "RGB", "\u{1f50d} \"'\\;,\n"];
            (input.choose(&words)?.to_send_value(), true)
        }
        Kind::Verdict => {
            let words = ["pass", "fail", "none", "PASS", "", "passed"];
            let word = *input.choose(&words)?;
            let right = ["pass", "fail", "none"].contains(&word);
            (word.to_send_value(), right)
        }
    })
}

/// `len` bytes as GBytes, no field, or something else; returns whether it is valid.
fn bytes(input: &mut Unstructured, len: usize) -> Result<(Option<glib::SendValue>, bool)> {
    Ok(match input.int_in_range(0..=63)? {
        0 => (None, false),
        1 => (Some("bytes".to_send_value()), false),
        2 => (
            Some(
                gst::Buffer::with_size(len)
                    .expect("a buffer")
                    .to_send_value(),
            ),
            false,
        ),
        3 => (Some(None::<glib::Bytes>.to_send_value()), false),
        _ => {
            let mut bytes = input.bytes(len.min(input.len()))?.to_vec();
            bytes.resize(len, 0xff);
            (Some(glib::Bytes::from_owned(bytes).to_send_value()), true)
        }
    })
}

/// An array of `len` values of a kind, no field, or something else; returns whether it is valid.
fn array(
    input: &mut Unstructured,
    len: usize,
    kind: Kind,
) -> Result<(Option<glib::SendValue>, bool)> {
    if spoil(input)? {
        let other = match input.int_in_range(0..=2)? {
            0 => None,
            1 => Some(gst::List::new([1.0_f64, 2.0]).to_send_value()),
            _ => Some(1.0_f64.to_send_value()),
        };
        return Ok((other, false));
    }
    let stated = if spoil(input)? {
        input.int_in_range(0..=6)?
    } else {
        len
    };
    // GStreamer's arrays hold values of one type.
    let other = spoil(input)?;
    let mut values = Vec::new();
    for _ in 0..stated {
        values.push(match (kind, other) {
            (Kind::U32, false) => input.arbitrary::<u32>()?.to_send_value(),
            (Kind::U64, false) => input.arbitrary::<u64>()?.to_send_value(),
            (_, false) => input.arbitrary::<f64>()?.to_send_value(),
            (_, true) => input.arbitrary::<i32>()?.to_send_value(),
        });
    }
    let right = stated == len && (stated == 0 || !other);
    Ok((Some(gst::Array::from_values(values).to_send_value()), right))
}
