//! Properties are set to anything while frames flow. Every frame is either inspected or answered
//! with an error, values read back are legal, and after a reset to the defaults the element gives
//! the reference's results.

use arbitrary::{Result, Unstructured};
use clinspect_opencl::ClContext;
use gst::{glib, prelude::*};
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult, Verdict};
use std::{ffi::CString, sync::Arc};

use crate::{
    frames::{Frame, PADDED, PLAIN},
    oracle::{
        flat_field::{Field, average},
        histogram::histogram,
        put, surface, texture,
    },
    support::{Rig, buffer_of, caps_of, is_compiling, judged, set_unchecked, start, text},
};

/// The first frame becomes its white reference.
const FLAT_FIELD: &str = "clflatfield average-frames=1";
const ELEMENTS: [&str; 8] = [
    FLAT_FIELD,
    "clgaussian",
    "clhistogram",
    "clpitchthreshold PUBLISHED pitch-x=4",
    "clpitchthreshold PUBLISHED pitch-x=4 output=frame",
    "clreference train-frames=1",
    TEXTURE,
    SURFACE,
];
/// Both pitches and the limits are known, so every frame is judged.
const TEXTURE: &str =
    "cltexture pitch-x=4 pitch-y=4 min-contrast=0 thresholds=<3.0,2.0,1.5,1.25,2.0,1.5>";
const TEXTURE_THRESHOLDS: [f64; texture::CHANNELS] = [3.0, 2.0, 1.5, 1.25, 2.0, 1.5];
/// Dark lines need no model.
const SURFACE: &str = "clsurface channels=dark-lines thresholds=<1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0>";
/// Novelty, of which nothing is known, and all lines.
const EVERY_CHANNEL: u32 = 7;
/// A surface needs more than its border, 8 pixels at each edge.
const SURFACE_LEAST: usize = 17;
/// A texture needs more than its border, and two pitches.
const TEXTURE_ROWS: usize = 12;
const FORMATS: [Format; 3] = [Format::Gray8, Format::Gray16Le, Format::I420];

/// See the module.
pub fn run(data: &[u8]) {
    let Some(device) = start() else { return };
    let _ = body(&mut Unstructured::new(data), &device);
}

fn body(input: &mut Unstructured, device: &Arc<ClContext>) -> Result<()> {
    let line = *input.choose(&ELEMENTS)?;
    let factory = line.split(' ').next().expect("a factory");
    let [narrowest, least] = match line {
        TEXTURE => [12, TEXTURE_ROWS],
        SURFACE => [SURFACE_LEAST; 2],
        _ => [12, 2],
    };
    let size = [
        input.int_in_range(narrowest..=60)?,
        input.int_in_range(least..=24)?,
    ];
    let format = *input.choose(&FORMATS)?;
    let format = match format {
        Format::I420 if line == FLAT_FIELD => Format::Gray8,
        format => format,
    };
    let arrangement = if input.arbitrary()? { PLAIN } else { PADDED };
    let mut frame = Frame::poisoned(format, size, arrangement, 0xa5);
    paint(input, &mut frame)?;
    let mut rig = Rig::new(line, &caps_of(&frame));
    let element = rig.only(factory);
    let before = settings(&element);
    if line == FLAT_FIELD {
        element.emit_by_name::<()>("take-white", &[]);
    }
    rig.pass(buffer_of(&frame, device));
    // What a fresh element warns of, such as a comparison that judges few pixels of small frames.
    let own = rig.warnings();

    let mut steps = String::new();
    for _ in 0..input.int_in_range(1..=6)? {
        for _ in 0..input.int_in_range(1..=4)? {
            steps += &set_any(input, &element)?;
        }
        assert_flows(&mut rig, &frame, device, &steps);
    }

    for (name, value) in &before {
        element.set_property_from_value(name, value);
    }
    let about = format!("{line}, {}: {steps}", frame.describe());
    // Drop the errors and warnings from before the reset.
    let _ = (rig.errors(), rig.warnings());
    // Kernels for earlier settings may still be compiling.
    rig.pass(buffer_of(&frame, device));
    while is_compiling() {
        rig.pass(buffer_of(&frame, device));
    }
    let output = rig.pass(buffer_of(&frame, device));
    for warning in rig.warnings() {
        let is_known = own.iter().any(|known| known.text == warning.text);
        assert!(is_known, "{warning:?}: {about}");
    }
    assert_defaults(line, &frame, &output, &about);
    Ok(())
}

/// A noisy pattern of four columns.
fn paint(input: &mut Unstructured, frame: &mut Frame) -> Result<()> {
    let noise = input.bytes(64.min(input.len()))?;
    for component in 0..frame.component_count() {
        let geometry = frame.geometry(component);
        for y in 0..geometry.height {
            for x in 0..geometry.width {
                let at = (y * geometry.width + x) * 7 % 64;
                let level = (x % 4) as u32 * 40 + u32::from(*noise.get(at).unwrap_or(&0)) / 2;
                put(&mut frame.bytes, &geometry, x, y, level);
            }
        }
    }
    Ok(())
}

/// The writable properties that may change while frames flow.
fn mutable(element: &gst::Element) -> Vec<glib::ParamSpec> {
    let playing = gst::PARAM_FLAG_MUTABLE_PLAYING;
    let own = |pspec: &glib::ParamSpec| pspec.owner_type().name().starts_with("GstCl");
    let properties = element.list_properties();
    let mut specs: Vec<glib::ParamSpec> = properties
        .iter()
        .filter(|pspec| own(pspec) && pspec.flags().contains(glib::ParamFlags::WRITABLE))
        .filter(|pspec| pspec.flags().contains(playing) || pspec.name() == "device")
        .cloned()
        .collect();
    // GObject's order differs in every process.
    specs.sort_by(|a, b| a.name().cmp(b.name()));
    specs
}

fn settings(element: &gst::Element) -> Vec<(String, glib::Value)> {
    mutable(element)
        .iter()
        .map(|pspec| {
            (
                pspec.name().to_owned(),
                element.property_value(pspec.name()),
            )
        })
        .collect()
}

/// Sets a property to a legal or an illegal value; returns which.
fn set_any(input: &mut Unstructured, element: &gst::Element) -> Result<String> {
    let specs = mutable(element);
    let pspec = input.choose(&specs)?;
    let name = pspec.name();
    let value = any_value(input, pspec, &element.property_value(name))?;
    let steps = format!("{name} = {value:?}; ");
    set_unchecked(element, &CString::new(name).expect("a name"), &value);
    let read = element.property_value(name);
    assert!(
        read.type_().is_a(pspec.value_type()),
        "{steps} reads {read:?}"
    );
    assert!(is_legal(pspec, &read), "{steps} reads {read:?}");
    if let Ok(structure) = read.get::<gst::Structure>() {
        let factory = element.factory().expect("a factory");
        let fresh = factory.create().build().expect("an element");
        assert_eq!(types(&structure), types(&fresh.property(name)), "{steps}");
    }
    Ok(steps)
}

/// The fields of a structure and their types.
fn types(structure: &gst::Structure) -> Vec<(String, glib::Type)> {
    let fields = structure.iter();
    fields
        .map(|(name, value)| (name.to_string(), value.type_()))
        .collect()
}

/// Whether a number lies in the property's range.
fn is_legal(pspec: &glib::ParamSpec, read: &glib::Value) -> bool {
    if let Some(spec) = pspec.downcast_ref::<glib::ParamSpecDouble>() {
        let value = read.get::<f64>().expect("a double");
        // GObject accepts doubles that equal a bound as floats (seen with GLib 2.74).
        let slack =
            |bound: f64| bound.abs() * f64::from(f32::EPSILON) + f64::from(f32::MIN_POSITIVE);
        let [low, high] = [spec.minimum(), spec.maximum()];
        let range = low - slack(low)..=high + slack(high);
        return range.contains(&value);
    }
    if let Some(spec) = pspec.downcast_ref::<glib::ParamSpecUInt>() {
        let value = read.get::<u32>().expect("an unsigned integer");
        return (spec.minimum()..=spec.maximum()).contains(&value);
    }
    true
}

/// `now`: the property's value.
fn any_value(
    input: &mut Unstructured,
    pspec: &glib::ParamSpec,
    now: &glib::Value,
) -> Result<glib::Value> {
    let kind = pspec.value_type();
    if kind.is_a(glib::Type::ENUM) {
        return any_enum(input, kind);
    }
    if kind.is_a(glib::Type::FLAGS) {
        let class = glib::FlagsClass::with_type(kind).expect("flags");
        let mut flags = class.builder();
        let chosen = input.int_in_range(0..=EVERY_CHANNEL)?;
        for value in class.values().iter().filter(|v| v.value() & chosen != 0) {
            flags = flags.set(value.value());
        }
        return Ok(flags.build().expect("flags"));
    }
    if let Ok(now) = now.get::<gst::Structure>() {
        return Ok(any_structure(input, &now)?.to_value());
    }
    Ok(any_of(input, kind)?.into())
}

fn any_of(input: &mut Unstructured, kind: glib::Type) -> Result<glib::SendValue> {
    Ok(match kind {
        glib::Type::F64 => any_double(input)?.to_send_value(),
        glib::Type::U32 => any_number(input)?.to_send_value(),
        glib::Type::U64 => {
            let numbers = [0, 1, 1_000_000_000, u64::MAX - 1, u64::MAX];
            input.choose(&numbers)?.to_send_value()
        }
        glib::Type::I64 => {
            let numbers = [-1, 0, 1, 100, i64::MAX, i64::MIN, -2];
            input.choose(&numbers)?.to_send_value()
        }
        glib::Type::I32 => input.arbitrary::<i32>()?.to_send_value(),
        glib::Type::BOOL => input.arbitrary::<bool>()?.to_send_value(),
        glib::Type::STRING => {
            let text = any_text(input)?.try_into_send_value::<String>();
            text.expect("a string")
        }
        kind if kind == gst::Array::static_type() => any_array(input)?.to_send_value(),
        kind => panic!("no values of type {kind}"),
    })
}

/// Some fields of `now` with values of the same or any type, and fields that it does not have.
fn any_structure(input: &mut Unstructured, now: &gst::Structure) -> Result<gst::Structure> {
    let array = gst::Array::static_type();
    let kinds = [
        glib::Type::F64,
        glib::Type::U32,
        glib::Type::U64,
        glib::Type::I64,
        glib::Type::I32,
        glib::Type::BOOL,
        glib::Type::STRING,
        array,
    ];
    let known = types(now);
    let mut any = gst::Structure::new_empty("any");
    for _ in 0..input.int_in_range(0..=4)? {
        let (name, kind) = input.choose(&known)?;
        let name = match input.int_in_range(0..=15)? {
            0 => "unknown",
            _ => name,
        };
        match input.int_in_range(0..=7)? {
            0 => any.set(name, now),
            1 | 2 => {
                let kind = *input.choose(&kinds)?;
                any.set_value(name, any_of(input, kind)?);
            }
            _ => any.set_value(name, any_of(input, *kind)?),
        }
    }
    Ok(any)
}

fn any_double(input: &mut Unstructured) -> Result<f64> {
    let numbers = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        -0.0,
        0.0,
        -1.0,
        -0.5,
        0.5,
        1.0,
        4.0,
        65_535.0,
        65_536.0,
        65_536.000_001,
    ];
    Ok(match input.int_in_range(0..=2)? {
        0 => *input.choose(&numbers)?,
        1 => f64::from(input.arbitrary::<i16>()?) / 256.0,
        _ => input.arbitrary()?,
    })
}

fn any_number(input: &mut Unstructured) -> Result<u32> {
    let numbers = [
        0,
        1,
        2,
        3,
        5,
        8,
        10,
        16,
        31,
        256,
        1024,
        65_536,
        100_000,
        u32::MAX,
    ];
    if input.ratio(7_u8, 8_u8)? {
        Ok(*input.choose(&numbers)?)
    } else {
        input.arbitrary()
    }
}

/// Numbers, regions, lists of regions, and other values. GStreamer's arrays hold values of one
/// type, also arrays within arrays.
fn any_array(input: &mut Unstructured) -> Result<gst::Array> {
    let (depth, kind) = (input.int_in_range(0..=2)?, input.int_in_range(0..=7)?);
    array_of(input, depth, kind)
}

fn array_of(input: &mut Unstructured, depth: u32, kind: u32) -> Result<gst::Array> {
    let count = if input.arbitrary()? {
        4
    } else {
        input.int_in_range(0..=6)?
    };
    let mut values: Vec<glib::SendValue> = Vec::new();
    for _ in 0..count {
        values.push(match kind {
            _ if depth > 0 => array_of(input, depth - 1, kind)?.to_send_value(),
            0..=4 => input.int_in_range(-1..=64)?.to_send_value(),
            5 => input.arbitrary::<i32>()?.to_send_value(),
            6 => "4".to_send_value(),
            _ => any_double(input)?.to_send_value(),
        });
    }
    Ok(gst::Array::from_values(values))
}

/// A string, NULL, or bytes that are not UTF-8, as a C program may set.
fn any_text(input: &mut Unstructured) -> Result<glib::Value> {
    let texts = [
        c"auto",
        c"cpu:99",
        c"",
        c"a: area < 9; b: mean > 0",
        c"a: area <",
        c"a, other",
        c"/dev/null",
        c"\xff\xfe",
        c"ge\xe4ndert",
    ];
    Ok(if input.ratio(7_u8, 8_u8)? {
        text(input.choose(&texts)?)
    } else {
        None::<&str>.to_value()
    })
}

fn any_enum(input: &mut Unstructured, kind: glib::Type) -> Result<glib::Value> {
    let class = glib::EnumClass::with_type(kind).expect("an enumeration");
    let value = input.choose(class.values())?.value();
    Ok(class.to_value(value).expect("a value of the enumeration"))
}

/// Either a frame comes out inspected, or an error is posted and nothing comes out.
fn assert_flows(rig: &mut Rig, frame: &Frame, device: &Arc<ClContext>, steps: &str) {
    let [width, height] = frame.size();
    match rig.push(buffer_of(frame, device)) {
        Err(flow) => {
            assert!(rig.is_silent(), "{steps}");
            assert!(!rig.errors().is_empty(), "{flow:?}: {steps}");
        }
        Ok(_) => {
            let output = rig.harness().try_pull();
            let output = output.unwrap_or_else(|| panic!("nothing comes out: {steps}"));
            for result in DefectResult::read(&output) {
                assert!(result.judged_pixels <= (width * height) as u64, "{steps}");
                assert!(result.defect_pixels <= result.judged_pixels, "{steps}");
                let is_unmatched = result.alignment.is_some_and(|found| !found.matched);
                let unjudged = if is_unmatched {
                    Verdict::Fail
                } else {
                    Verdict::None
                };
                assert_eq!(
                    result.verdict == unjudged,
                    result.judged_pixels == 0 || result.blind.is_some(),
                    "{steps}"
                );
                let listed: u64 = result.defects.iter().map(|d| u64::from(d.area)).sum();
                assert!(listed <= result.defect_pixels, "{steps}");
                for defect in &result.defects {
                    let part = result.box_in_frame(defect);
                    let place = [
                        defect.x as u32,
                        defect.y as u32,
                        defect.width,
                        defect.height,
                    ];
                    assert_eq!(part, Some(place), "{defect:?} of {width}x{height}: {steps}");
                }
            }
            for result in HistogramResult::read(&output) {
                let counted: u64 = result.counts.iter().map(|&n| u64::from(n)).sum();
                let samples: u64 = result.statistics.iter().map(|s| s.count).sum();
                assert_eq!(counted, samples, "{steps}");
                assert!(counted <= (3 * width * height) as u64, "{steps}");
            }
        }
    }
}

/// The results with the element's first settings.
fn assert_defaults(line: &str, frame: &Frame, output: &gst::Buffer, about: &str) {
    if line.starts_with("clhistogram") {
        let results = HistogramResult::read(output);
        assert_eq!(results.len(), 1, "{about}");
        for component in 0..frame.component_count() {
            let geometry = frame.geometry(component);
            let region = [0, 0, geometry.width, geometry.height];
            let bits = 8 * geometry.depth.size() as u32;
            let expected = histogram(frame.component(component), region, bits, 256);
            assert_eq!(
                results[0].channel(component),
                Some(&expected[..]),
                "{about}"
            );
        }
    } else if line.starts_with("clpitchthreshold") {
        let results = DefectResult::read(output);
        assert_eq!(results.len(), 1, "{about}");
        let expected = judged(frame, 4.0, 0.0, 10.0);
        assert_eq!(results[0].defect_pixels, expected.defect_pixels, "{about}");
        assert_eq!(results[0].judged_pixels, expected.judged_pixels, "{about}");
    } else if line == TEXTURE {
        let results = DefectResult::read(output);
        assert_eq!(results.len(), 1, "{about}");
        let expected = texture::compare(
            frame.component(0),
            &texture::Settings {
                vectors: [[4 * 16, 0], [0, 4 * 16]],
                thresholds: TEXTURE_THRESHOLDS.map(|threshold| (256.0 * threshold) as i64),
                depth: 8 * frame.kind().size() as u32,
                above: false,
                rois: Vec::new(),
                ignored: Vec::new(),
            },
        );
        let count = |of: &[bool]| of.iter().filter(|&&is| is).count() as u64;
        assert_eq!(results[0].judged_pixels, count(&expected.judged), "{about}");
        assert_eq!(results[0].defect_pixels, count(&expected.mask), "{about}");
    } else if line == SURFACE {
        let results = DefectResult::read(output);
        assert_eq!(results.len(), 1, "{about}");
        let mut limits = [None; surface::CHANNELS];
        limits[1..9].fill(Some(256));
        let settings = surface::Settings {
            model: surface::Model::default(),
            limits,
            depth: 8 * frame.kind().size() as u32,
            rois: Vec::new(),
            ignored: Vec::new(),
        };
        let expected = surface::compare(frame.component(0), &settings);
        let count = |of: &[bool]| of.iter().filter(|&&is| is).count() as u64;
        assert_eq!(results[0].judged_pixels, count(&expected.judged), "{about}");
        assert_eq!(results[0].defect_pixels, count(&expected.mask), "{about}");
    } else if line == FLAT_FIELD {
        assert_even(frame, output, about);
    } else if line.starts_with("clreference") {
        // The model is the frame itself.
        let results = DefectResult::read(output);
        assert_eq!(results.len(), 1, "{about}");
        let [width, height] = frame.size();
        assert_eq!(results[0].judged_pixels, (width * height) as u64, "{about}");
        assert_eq!(results[0].verdict, Verdict::Pass, "{about}");
    } else {
        assert_smoothed(frame, output, about);
    }
}

/// The output of clflatfield's defaults, with the frame as its own white reference.
fn assert_even(frame: &Frame, output: &gst::Buffer, about: &str) {
    let source = frame.component(0);
    let white = average(&[source], false);
    let field = Field {
        dark: vec![vec![0; white.len()]],
        white: vec![white],
        line: false,
        target: 0,
        min_range: 8 * 256,
        most: (1 << (8 * frame.kind().size())) - 1,
    };
    // Corrected in place, so the output has the input's layout.
    let mut shown = frame.clone();
    shown.bytes = crate::frames::read(output);
    assert_eq!(
        shown.component(0).values(),
        field.correct(0, source),
        "{about}"
    );
}

/// The output of clgaussian's defaults.
fn assert_smoothed(frame: &Frame, output: &gst::Buffer, about: &str) {
    let mut shown = Frame::poisoned(frame.info.format(), frame.size(), PLAIN, 0);
    shown.bytes = crate::frames::read(output);
    for component in 0..frame.component_count() {
        let expected =
            crate::oracle::gaussian::gaussian_integer(frame.component(component), 3, 0.0);
        assert_eq!(shown.component(component).values(), expected, "{about}");
    }
}
