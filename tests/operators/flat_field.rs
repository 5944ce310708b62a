//! `operators::FlatField`: sums of frames and the correction, every variant compared with the reference.

use std::sync::Arc;

use clinspect_core::flat_field::{Correction, Reference};
use clinspect_core::variant::FlatFieldVariant;
use clinspect_opencl::frame::{FLAT_FORMATS, layout_of};
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::{FlatField, FlatFieldMode, FlatFieldSettings};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    device,
    frames::{
        ARRANGEMENTS, Arrangement, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, Owner, PADDED, PLAIN,
        Split, Stride, assert_same, read,
    },
    oracle::{
        SampleKind,
        flat_field::{Field, average},
        put,
    },
};

/// A variant to force, and whether it reads an image.
pub type Choice = (Option<FlatFieldVariant>, bool);

/// Every variant, and the one chosen for the device.
pub const CHOICES: [Choice; 5] = [
    (None, false),
    (Some(FlatFieldVariant::Rows), false),
    (Some(FlatFieldVariant::Items { rows: 2 }), false),
    (Some(FlatFieldVariant::Items { rows: 3 }), false),
    (None, true),
];

/// What to correct with.
#[derive(Clone, Copy, Debug)]
pub struct CorrectionCase {
    pub line: bool,
    pub has_dark: bool,
    /// 1/256 grey level.
    pub target: u32,
    /// In 1/255 of the highest level: at 150 about a third of the samples is bad.
    pub min_range: u32,
}

pub const WANTED: CorrectionCase = CorrectionCase {
    line: false,
    has_dark: true,
    target: 0,
    min_range: 8,
};

fn depth(frame: &Frame) -> u32 {
    8 * frame.kind().size() as u32
}

/// Number of components that show light.
fn colors(frame: &Frame) -> usize {
    frame.component_count().min(3)
}

/// Random frames between `low` and `high`, in 1/255 of the highest level, in different memory.
fn references(like: &Frame, count: usize, low: u32, high: u32) -> Vec<Frame> {
    let shades = (0..count).map(|n| {
        let arrangement = ARRANGEMENTS[(n + 3) % ARRANGEMENTS.len()];
        let arrangement = if like.info.n_planes() == 1 && arrangement.split == Split::Planes {
            PADDED
        } else {
            arrangement
        };
        let format = like.info.format();
        let mut frame = Frame::showing(format, like.size(), arrangement, Content::Random, 0);
        let most = (1_u64 << depth(like)) - 1;
        for c in 0..colors(&frame) {
            let geometry = frame.geometry(c);
            for y in 0..geometry.height {
                for x in 0..geometry.width {
                    // Frames differ a little, so that sums do not divide.
                    let value =
                        u64::from(frame.component(c).get(x, y)) * u64::from(high - low) / 255;
                    let value = (value + u64::from(low) * most / 255 + n as u64).min(most);
                    put(&mut frame.bytes, &geometry, x, y, value as u32);
                }
            }
        }
        frame
    });
    shades.collect()
}

/// The device's average of frames, after a comparison with the reference.
fn averaged(
    operator: &FlatField,
    device: &Arc<ClContext>,
    frames: &[Frame],
    line: bool,
) -> Reference {
    let meter = Meter::new(false);
    let mut sums = operator.sums().expect("sums");
    for frame in frames {
        sums.add(&frame.import(device), &meter).expect("a sum");
    }
    let average_of = |c| {
        average(
            &frames.iter().map(|f| f.component(c)).collect::<Vec<_>>(),
            line,
        )
    };
    let expected: Vec<Vec<u32>> = (0..colors(&frames[0])).map(average_of).collect();
    let reference = sums.average().expect("an average");
    let found: Vec<Vec<u32>> = (0..expected.len())
        .map(|c| {
            reference
                .values
                .iter()
                .skip(c)
                .step_by(expected.len())
                .copied()
                .collect()
        })
        .collect();
    assert_eq!(found, expected, "{}, line {line}", frames[0].describe());
    let most = (1 << depth(&frames[0])) - 1;
    let samples = frames
        .iter()
        .flat_map(|f| (0..colors(f)).flat_map(|c| f.component(c).values()));
    let share = samples.clone().filter(|&s| s == most).count() as f64 / samples.count() as f64;
    assert_eq!(sums.saturated(), share);
    assert_eq!(sums.frames(), frames.len() as u64);
    reference
}

/// Corrects `input` with every choice, into frames of `output` and in place, and compares with the
/// reference.
pub fn check(
    device: &Arc<ClContext>,
    input: &Frame,
    wanted: &CorrectionCase,
    choices: &[Choice],
    output: Arrangement,
) {
    let layout = layout_of(&input.info).expect("a layout");
    let mode = if wanted.line {
        FlatFieldMode::Line
    } else {
        FlatFieldMode::Area
    };
    let settings = |correction, (variant, image)| FlatFieldSettings {
        mode,
        bit_depth: 0,
        correction,
        image,
        variant,
    };
    let taking = FlatField::new(device, &layout, &settings(None, CHOICES[0])).expect("an operator");
    assert!(!taking.corrects());
    let white = averaged(&taking, device, &references(input, 3, 80, 255), wanted.line);
    let dark = (wanted.has_dark)
        .then(|| averaged(&taking, device, &references(input, 2, 0, 50), wanted.line));
    let bits = depth(input);
    let min_range = (wanted.min_range << (bits - 8)) * 256;
    let by_component = |reference: &Reference| -> Vec<Vec<u32>> {
        let count = colors(input);
        let values = |c| {
            reference
                .values
                .iter()
                .skip(c)
                .step_by(count)
                .copied()
                .collect()
        };
        (0..count).map(values).collect()
    };
    let field = Field {
        white: by_component(&white),
        dark: dark.as_ref().map_or_else(
            || vec![vec![0; white.values.len() / colors(input)]; colors(input)],
            by_component,
        ),
        line: wanted.line,
        target: wanted.target << (bits - 8),
        min_range,
        most: (1 << bits) - 1,
    };
    let correction = Correction::new(dark.as_ref(), &white, field.target, min_range);
    let correction = match correction {
        Ok(correction) => correction,
        Err(why) => {
            assert!(2 * field.bad() > white.values.len(), "{why}");
            return;
        }
    };
    assert_eq!(correction.bad, field.bad());
    assert_eq!(u64::from(correction.target), field.level());
    let correction = Arc::new(correction);
    let mut values: Vec<Vec<u32>> = (0..input.component_count())
        .map(|c| input.component(c).values())
        .collect();
    for (c, values) in values.iter_mut().enumerate().take(colors(input)) {
        *values = field.correct(c, input.component(c));
    }
    let shown = |arrangement, poison| {
        let mut frame = Frame::poisoned(input.info.format(), input.size(), arrangement, poison);
        frame.set(&values, input);
        frame
    };
    let meter = Meter::new(false);
    for &choice in choices {
        let about = || format!("{} {wanted:?} {choice:?} to {output:?}", input.describe());
        if choice.1 && (input.kind() != SampleKind::U8 || !device::has_images(device)) {
            continue;
        }
        let settings = settings(Some(correction.clone()), choice);
        let mut operator = FlatField::new(device, &layout, &settings).expect("an operator");
        let format = input.info.format();
        let (to, buffer) =
            Frame::poisoned(format, input.size(), output, OUTPUT_POISON).output(device);
        let done = operator.run(&input.import(device), &to, &meter);
        done.and_then(|done| done.wait("the flat field"))
            .expect("it runs");
        assert_same(&read(&buffer), &shown(output, OUTPUT_POISON), about);
        if input.arrangement.owner == Owner::Ours && input.arrangement.split != Split::Middle {
            let (frame, buffer) = input.output(device);
            let done = operator.run(&frame, &frame, &meter);
            done.and_then(|done| done.wait("the flat field"))
                .expect("it runs");
            let mut expected = input.clone();
            expected.set(&values, input);
            assert_same(&read(&buffer), &expected, || {
                format!("in place: {}", about())
            });
        }
    }
}

#[test]
fn flat_field_every_format_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    assert!(FLAT_FORMATS.contains(&Format::Gbr) && !FLAT_FORMATS.contains(&Format::I420));
    for (f, &format) in FLAT_FORMATS.iter().enumerate() {
        for (i, &size) in SIZES.iter().enumerate() {
            let arrangement = ARRANGEMENTS[(f + i) % ARRANGEMENTS.len()];
            let output = OUTPUT_ARRANGEMENTS[(f + i / 2) % OUTPUT_ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            let wanted = CorrectionCase {
                line: (f + i) % 3 == 0,
                has_dark: i % 2 == 0,
                ..WANTED
            };
            check(&device, &input, &wanted, &CHOICES, output);
        }
    }
}

#[test]
fn flat_field_every_arrangement_of_memory_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::Argb,
        Format::Gbr,
        Format::Gray16Be,
    ] {
        for size in [[15, 1], [1, 15], [35, 7], [80, 5]] {
            for (n, arrangement) in ARRANGEMENTS.into_iter().enumerate() {
                let input = Frame::showing(format, size, arrangement, Content::Random, 0);
                let wanted = CorrectionCase {
                    line: n % 2 == 0,
                    ..WANTED
                };
                let output = OUTPUT_ARRANGEMENTS[n % OUTPUT_ARRANGEMENTS.len()];
                check(&device, &input, &wanted, &CHOICES, output);
            }
        }
    }
}

/// Targets that clip, the largest gain, and up to half of the samples bad.
#[test]
fn flat_field_targets_and_bad_samples_equal_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Bgrx,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        for arrangement in [PLAIN, PADDED] {
            let input = Frame::showing(format, [203, 9], arrangement, Content::Random, 0);
            for (target, min_range) in
                [(0, 130), (65_280, 8), (1, 90), (65_280, 150), (65_280, 180)]
            {
                for (line, has_dark) in [(false, true), (true, false)] {
                    let wanted = CorrectionCase {
                        line,
                        has_dark,
                        target,
                        min_range,
                    };
                    check(&device, &input, &wanted, &CHOICES, PADDED);
                }
            }
        }
    }
}

/// The operator is warmed up with fewer rows.
#[test]
fn flat_field_of_more_rows_than_the_warm_up_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Bgr, Format::Gray16Le] {
        for line in [false, true] {
            let size = [33, clinspect_operators::WARM_UP_ROWS + 7];
            let input = Frame::showing(format, size, PLAIN, Content::Random, 0);
            let wanted = CorrectionCase {
                line,
                min_range: 130,
                ..WANTED
            };
            check(&device, &input, &wanted, &CHOICES, PADDED);
        }
    }
}

#[test]
fn flat_field_of_a_12_bit_camera_ends_at_its_highest_level() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray16Le, Format::Gray16Be] {
        let input = Frame::showing(format, [65, 4], PADDED, Content::Random, 0);
        let frames = Arrangement {
            stride: Stride::Multiple(64),
            ..PLAIN
        };
        check_depth(&device, &input, frames);
    }
}

/// Compares a correction that clips at 12 bits with the reference.
fn check_depth(device: &Arc<ClContext>, input: &Frame, output: Arrangement) {
    let layout = layout_of(&input.info).expect("a layout");
    let count = input.size()[0] * input.size()[1];
    let field = Field {
        white: vec![vec![1000 * 256; count]],
        dark: vec![vec![0; count]],
        line: false,
        target: 3000 * 256,
        min_range: 256,
        most: 4095,
    };
    let reference = Reference {
        shape: clinspect_core::flat_field::Shape::of(&layout, false),
        values: field.white[0].clone(),
    };
    let correction = Correction::new(None, &reference, field.target, 256).expect("gains");
    let settings = FlatFieldSettings {
        mode: FlatFieldMode::Area,
        bit_depth: 12,
        correction: Some(Arc::new(correction)),
        image: false,
        variant: None,
    };
    let mut operator = FlatField::new(device, &layout, &settings).expect("an operator");
    let (to, buffer) =
        Frame::poisoned(input.info.format(), input.size(), output, OUTPUT_POISON).output(device);
    let done = operator.run(&input.import(device), &to, &Meter::new(false));
    done.and_then(|done| done.wait("the flat field"))
        .expect("it runs");
    let mut expected = Frame::poisoned(input.info.format(), input.size(), output, OUTPUT_POISON);
    expected.set(&[field.correct(0, input.component(0))], input);
    assert!(input.component(0).values().iter().any(|&s| s > 4095));
    assert_same(&read(&buffer), &expected, || input.describe());
}

#[test]
fn flat_field_refuses_what_does_not_fit() {
    let Some(device) = device::open() else { return };
    let input = Frame::showing(Format::Gray8, [16, 4], PLAIN, Content::Random, 0);
    let layout = layout_of(&input.info).expect("a layout");
    let other = clinspect_core::flat_field::Shape {
        rows: 3,
        width: 16,
        components: 1,
    };
    let settings = FlatFieldSettings {
        mode: FlatFieldMode::Area,
        bit_depth: 0,
        correction: Some(Arc::new(Correction::unit(other, false))),
        image: false,
        variant: None,
    };
    let error = FlatField::new(&device, &layout, &settings)
        .unwrap_err()
        .to_string();
    assert!(error.contains("another size"), "{error}");
    let deep = FlatFieldSettings {
        bit_depth: 12,
        correction: None,
        ..settings
    };
    let error = FlatField::new(&device, &layout, &deep)
        .unwrap_err()
        .to_string();
    assert!(error.contains("bit-depth=12"), "{error}");
}
