//! Results as events from a network: consistent ones arrive unchanged, contradictory ones are
//! ignored, and `clmaskunpack` attaches to a mask only the mask's own result.

use std::collections::HashSet;

use arbitrary::{Result, Unstructured};
use clinspect_core::mask::packed_stride;
use gst::{glib, prelude::*};
use gstclinspect::results::{AlignStep, Alignment, Defect, DefectResult, Part, Parts, Verdict};

use crate::{
    frames::foreign_memory,
    support::{Rig, register},
};

const MAX_SIDE: u32 = 40;

/// See the module.
pub fn run(data: &[u8]) {
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    register();
    let size = [
        input.int_in_range(1..=MAX_SIDE)?,
        input.int_in_range(1..=MAX_SIDE)?,
    ];
    let (mask, marked) = mask(input, size)?;
    let sent = result(input, size, marked)?;
    let mut fields = sent.to_event().structure().expect("fields").to_owned();
    let spoiled = spoil(input, &mut fields)?;
    // As rtpgstpay sends it.
    let fields = if spoiled && input.arbitrary()? {
        fields
    } else {
        let text = fields.to_string();
        text.parse().expect("GStreamer's own text")
    };
    let event = gst::event::CustomDownstream::new(fields);
    let read = DefectResult::from_event(&event);
    match &read {
        // Floats print with enough digits to be told apart, and printed NaN equals itself.
        Some(read) if !spoiled => assert_eq!(format!("{read:?}"), format!("{sent:?}")),
        Some(read) => assert_can_be(read),
        None => assert!(spoiled, "{sent:?} was refused"),
    }

    let [width, height] = size;
    let stride = packed_stride(width as usize);
    let caps = format!(
        "video/x-bitmask,width={width},height={height},framerate=1/1,stride={stride},\
         bit-order=msb-first"
    );
    let mut rig = Rig::new("clmaskunpack", &caps.parse().expect("caps"));
    assert!(rig.harness().push_event(event));
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().expect("a new buffer");
    writable.append_memory(foreign_memory(&mask, 1));
    let fits = |r: &DefectResult| [r.width, r.height] == size && r.defect_pixels == marked;
    let expected: Vec<String> = read
        .iter()
        .filter(|read| fits(read))
        .map(|read| format!("{read:?}"))
        .collect();
    let found = |buffer: &gst::Buffer| -> Vec<String> {
        let results = DefectResult::read(buffer);
        results.iter().map(|result| format!("{result:?}")).collect()
    };
    assert_eq!(found(&rig.pass(buffer.clone())), expected);
    assert!(
        found(&rig.pass(buffer)).is_empty(),
        "a result is attached to a second mask"
    );
    Ok(())
}

/// A packed mask, and its number of marked pixels.
fn mask(input: &mut Unstructured, [width, height]: [u32; 2]) -> Result<(Vec<u8>, u64)> {
    let stride = packed_stride(width as usize);
    let mut bytes = vec![0; stride * height as usize];
    input.fill_buffer(&mut bytes)?;
    let at = |x: u32, y: u32| bytes[y as usize * stride + x as usize / 8] >> (7 - x % 8) & 1;
    let marked = (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .map(|(x, y)| u64::from(at(x, y)))
        .sum();
    Ok((bytes, marked))
}

/// A result that is consistent with a mask of `marked` pixels, which is a strip of a web.
fn result(
    input: &mut Unstructured,
    [width, height]: [u32; 2],
    marked: u64,
) -> Result<DefectResult> {
    let pixels = u64::from(width) * u64::from(height);
    let judged_pixels = input.int_in_range(marked..=pixels)?;
    let verdict = if judged_pixels == 0 {
        Verdict::None
    } else {
        *input.choose(&[Verdict::Pass, Verdict::Fail])?
    };
    let first_line = *input.choose(&[0, 5, 1 << 40])?;
    let rows_above = input.int_in_range(0..=first_line.min(50))? as i32;
    let class_names: Vec<String> = (0..input.int_in_range(0..=2)?)
        .map(|_| Ok((*input.choose(&["scratch", "\u{1f50d} \"',="])?).into()))
        .collect::<Result<_>>()?;
    let parts = parts(input, verdict)?;
    let count = |of: &Parts| of.parts.len() as u32;
    let mut left = marked;
    let mut defects = Vec::new();
    while left > 0 && defects.len() < 4 {
        let x = input.int_in_range(0..=width - 1)?;
        let y = input.int_in_range(-rows_above..=height as i32 - 1)?;
        let w = input.int_in_range(1..=width - x)?;
        let h = input.int_in_range(1..=(height as i32 - y) as u32)?;
        // Rows above the strip may hold pixels that are not in the mask.
        let above = u64::from(w) * u64::from(h.min((-y).max(0) as u32));
        let most = (left + above).min(u64::from(w) * u64::from(h)) as u32;
        let area = input.int_in_range(1..=most)?;
        left -= u64::from(area).saturating_sub(above);
        let axes = [finite(input)?, finite(input)?].map(|axis| axis.abs() as f32);
        let named = class_names.len() as u16;
        defects.push(Defect {
            x: x as i32,
            y,
            width: w,
            height: h,
            area,
            centroid_x: finite(input)? as f32,
            centroid_y: finite(input)? as f32,
            mean_difference: finite(input)? as f32,
            peak_difference: finite(input)? as f32,
            polarity: input.int_in_range(-1..=1)?,
            id: u32::MAX - defects.len() as u32,
            class: *input.choose(&[Defect::OTHER, named, Defect::PATTERN_MISSING])?,
            flags: input.int_in_range(0..=3)?
                | Defect::part_flags(input.int_in_range(0..=parts.as_ref().map_or(0, count))?)
                | Defect::component_flags(*input.choose(&[None, Some(0), Some(1), Some(2)])?)
                | input.int_in_range(0..=31_u16)? << Defect::LEVEL_SHIFT,
            major_axis: axes[0].max(axes[1]),
            minor_axis: axes[0].min(axes[1]),
            orientation: finite(input)? as f32,
            boundary_length: input.int_in_range(0..=4 * area)?,
        });
    }
    let judged_x = input.int_in_range(0..=judged_pixels)?;
    let judged_y = input.int_in_range(0..=judged_pixels)?;
    let missing_pixels = input.int_in_range(0..=marked)?;
    Ok(DefectResult {
        element: (*input.choose(&["", "clpitchthreshold0", "\"', x=(int)1; \u{1f50d}\n"])?).into(),
        frame_number: input.arbitrary()?,
        web: input.arbitrary()?,
        first_line,
        width,
        height,
        mm_per_pixel_x: finite(input)?.abs(),
        mm_per_pixel_y: finite(input)?.abs(),
        pitch_x: finite(input)?.abs(),
        pitch_y: finite(input)?.abs(),
        lattice: lattice(input)?,
        threshold: finite(input)?.abs(),
        mean_level: finite(input)?.abs(),
        alignment: alignment(input)?,
        parts,
        training: training(input, verdict)?,
        learning: progress(input)?,
        blind: None,
        unplaced: None,
        judged_pixels,
        judged_x,
        judged_y,
        defect_pixels: marked,
        missing_pixels,
        corrupted: input.arbitrary()?,
        is_moved: false,
        verdict,
        defects,
        overflow: input.arbitrary()?,
        class_names,
        channels: Vec::new(),
        open_area: input.int_in_range(0..=pixels)?,
        mask: None,
        ignored: None,
    })
}

fn training(input: &mut Unstructured, verdict: Verdict) -> Result<Option<[u32; 2]>> {
    if verdict != Verdict::None {
        return Ok(None);
    }
    progress(input)
}

/// Parts that allow a frame to pass.
fn parts(input: &mut Unstructured, verdict: Verdict) -> Result<Option<Parts>> {
    if verdict == Verdict::None || !input.arbitrary()? {
        return Ok(None);
    }
    let mut parts = Vec::new();
    let share = |input: &mut Unstructured| {
        Ok::<_, arbitrary::Error>(f64::from(input.int_in_range(0..=8_u8)?) / 8.0)
    };
    for _ in 0..input.int_in_range(1..=3)? {
        let judged_pixels = input.arbitrary()?;
        parts.push(Part {
            x: finite(input)?,
            y: finite(input)?,
            angle: finite(input)?,
            scale: 0.5 + share(input)?,
            score: share(input)?,
            inside: share(input)?,
            poses: input.arbitrary()?,
            is_cut: false,
            judged_pixels,
            defect_pixels: input.int_in_range(0..=judged_pixels)?,
            verdict: *input.choose(&Verdict::ALL)?,
        });
    }
    let other: bool = input.arbitrary()?;
    Ok(Some(Parts {
        least: input.int_in_range(0..=1)?,
        most: input.int_in_range(3..=u32::MAX)?,
        parts,
        other: other.then(|| share(input)).transpose()?,
    }))
}

/// Some frames of all.
fn progress(input: &mut Unstructured) -> Result<Option<[u32; 2]>> {
    if !input.arbitrary()? {
        return Ok(None);
    }
    let all = input.int_in_range(1..=u32::MAX)?;
    Ok(Some([input.int_in_range(0..=all)?, all]))
}

fn alignment(input: &mut Unstructured) -> Result<Option<Alignment>> {
    if !input.arbitrary()? {
        return Ok(None);
    }
    Ok(Some(Alignment {
        shift_x: finite(input)?,
        shift_y: finite(input)?,
        match_score: f64::from(input.int_in_range(0..=8_u8)?) / 8.0,
        matched: true,
        transform: {
            let mut transform = [0.0; 6];
            for number in &mut transform {
                *number = finite(input)?;
            }
            transform
        },
        misfit: finite(input)?.abs(),
        step: *input.choose(&[AlignStep::Affine, AlignStep::Nothing])?,
        largest_local_shift: finite(input)?.abs(),
    }))
}

/// No vector, or one or two.
fn lattice(input: &mut Unstructured) -> Result<Vec<[f64; 2]>> {
    let count = input.int_in_range(0..=2)?;
    (0..count)
        .map(|_| Ok([finite(input)?, finite(input)?]))
        .collect()
}

/// A number that is also exact as a float.
fn finite(input: &mut Unstructured) -> Result<f64> {
    let value: f32 = input.arbitrary()?;
    Ok(if value.is_finite() { value.into() } else { 0.0 })
}

/// Changes some fields, removes some, or does nothing; returns whether it changed any.
fn spoil(input: &mut Unstructured, fields: &mut gst::Structure) -> Result<bool> {
    let names: Vec<String> = fields.fields().map(|name| name.to_string()).collect();
    let times = input.int_in_range(0..=2)?;
    for _ in 0..times {
        let name = input.choose(&names)?;
        match input.int_in_range(0..=4)? {
            0 => fields.remove_field(name),
            1 => fields.set_value(name, value(input)?),
            2 => fields.set(name.as_str(), input.arbitrary::<u32>()?),
            3 => fields.set(name.as_str(), input.arbitrary::<f64>()?),
            _ => {
                if let Ok(data) = fields.get::<String>("defects-data") {
                    fields.set("defects-data", garbled(input, data)?);
                }
            }
        }
    }
    Ok(times > 0)
}

fn value(input: &mut Unstructured) -> Result<glib::SendValue> {
    Ok(match input.int_in_range(0..=6)? {
        0 => (-1_i32).to_send_value(),
        1 => input.arbitrary::<u64>()?.to_send_value(),
        2 => input.int_in_range(0..=2000_u64)?.to_send_value(),
        3 => None::<&str>.to_send_value(),
        4 => "pass".to_send_value(),
        5 => gst::Array::new([1_i32]).to_send_value(),
        _ => f64::NAN.to_send_value(),
    })
}

/// Other digits, fewer digits, or characters that are not digits.
fn garbled(input: &mut Unstructured, data: String) -> Result<String> {
    let mut letters: Vec<char> = data.chars().collect();
    for _ in 0..input.int_in_range(1..=8)? {
        if letters.is_empty() {
            break;
        }
        let at = input.choose_index(letters.len())?;
        match input.int_in_range(0..=5)? {
            0 => letters.truncate(at),
            1 => letters[at] = *input.choose(&['g', ' ', '\u{fc}', '+', 'F'])?,
            2 => letters.extend("00".repeat(64).chars()),
            _ => letters[at] = *input.choose(&['0', '1', '7', 'f'])?,
        }
    }
    Ok(letters.into_iter().collect())
}

/// Fails on a result that no element could have produced.
fn assert_can_be(result: &DefectResult) {
    let pixels = u64::from(result.width) * u64::from(result.height);
    let parts = result.parts.as_ref().map_or(0, |of| of.parts.len());
    assert!(result.defect_pixels <= result.judged_pixels);
    assert!(result.judged_pixels <= pixels.saturating_mul(parts.max(1) as u64));
    let mut area = 0;
    let mut ids = HashSet::new();
    for defect in &result.defects {
        let [left, top] = [defect.x, defect.y].map(i128::from);
        let (right, bottom) = (
            left + i128::from(defect.width),
            top + i128::from(defect.height),
        );
        assert!(left >= 0 && right <= i128::from(result.width));
        assert!(top + i128::from(result.first_line) >= 0 && bottom <= i128::from(result.height));
        assert!(defect.centroid_x.is_finite() && defect.peak_difference.is_finite());
        assert!(defect.major_axis >= defect.minor_axis && defect.minor_axis >= 0.0);
        assert!(defect.major_axis.is_finite() && defect.orientation.is_finite());
        assert!(defect.flags >> 15 == 0 && usize::from(defect.part()) <= parts);
        assert!(defect.id == 0 || ids.insert(defect.id));
        let names = result.class_names.len();
        assert!(usize::from(defect.class) <= names || defect.class == Defect::PATTERN_MISSING);
        if top >= 0 {
            area += u64::from(defect.area);
        }
    }
    assert!(area <= result.defect_pixels, "{result:?}");
    for defect in &result.defects {
        assert!(!result.position(defect).is_empty());
        let semu = result.semu(defect);
        assert!(semu.is_none_or(|semu| semu.is_finite() && semu >= 0.0));
    }
    assert!(!result.summary().is_empty() && !result.to_string().is_empty());
    let again = DefectResult::from_event(&result.to_event());
    assert_eq!(format!("{again:?}"), format!("{:?}", Some(result)));
}
