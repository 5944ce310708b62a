//! `operators::Gaussian`: every variant, format and kernel size compared with the reference.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::variant::GaussianVariant;
use clinspect_opencl::frame::FORMATS;
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::{Arithmetic, Gaussian, GaussianSettings};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    device,
    frames::{
        ARRANGEMENTS, Arrangement, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, PADDED, PLAIN,
        Stride, assert_same, read,
    },
    oracle::{
        SampleKind,
        gaussian::{gaussian_f64, gaussian_integer},
    },
};

/// A variant to force, and whether it reads an image.
pub type Choice = (Option<GaussianVariant>, bool);

const ROWS: Choice = (Some(GaussianVariant::Rows), false);
const DIRECT: Choice = (Some(GaussianVariant::Direct), false);
const IMAGE: Choice = (None, true);
const AUTO: Choice = (None, false);

const fn tile(columns: usize, rows: usize) -> Choice {
    (Some(GaussianVariant::Tile { columns, rows }), false)
}

/// Every variant, and the one chosen for the device.
pub const CHOICES: [Choice; 6] = [AUTO, ROWS, tile(128, 12), tile(31, 3), DIRECT, IMAGE];

pub fn settings(
    kernel_size: usize,
    sigma_px: f64,
    arithmetic: Arithmetic,
    (variant, image): Choice,
) -> GaussianSettings {
    GaussianSettings {
        kernel_size,
        sigma_px,
        arithmetic,
        image,
        variant,
    }
}

/// The reason why the device cannot run a variant; the operator must give the same.
fn refusal(device: &ClContext, input: &Frame, s: &GaussianSettings) -> Option<&'static str> {
    let caps = device.caps();
    if s.image {
        return (!device::has_images(device)).then_some("the device has no images");
    }
    let Some(GaussianVariant::Tile { columns, rows }) = s.variant else {
        return None;
    };
    let lanes = (0..input.component_count())
        .map(|c| input.geometry(c).pixel_stride / input.kind().size())
        .max()?;
    // Columns of four samples; packed sums have two bytes, others four.
    let halo = (s.kernel_size / 2 * lanes).div_ceil(4);
    let packed = s.arithmetic == Arithmetic::Integer && input.kind() == SampleKind::U8;
    let bytes = 4 * columns * rows * if packed { 2 } else { 4 };
    if columns > caps.max_work_group || columns > caps.max_work_item[0] {
        Some("the device has no such work-group")
    } else if columns <= 2 * halo {
        Some("the tile is all halo")
    } else {
        (bytes as u64 > caps.local_memory).then_some("the tile is over the local memory")
    }
}

/// Filters `input`; `None` if the variant cannot run: on 16-bit samples, which it must refuse,
/// or on this device, which is a visible skip.
pub fn filter(
    device: &Arc<ClContext>,
    input: &Frame,
    s: &GaussianSettings,
    output: Arrangement,
) -> Option<Vec<u8>> {
    if s.image && input.kind() != SampleKind::U8 {
        assert_refused(input, s, device, "16-bit");
        return None;
    }
    let meter = Meter::new(false);
    let from = input.import(device);
    let layout = clinspect_opencl::frame::layout_of(&input.info).expect("a layout");
    let mut gaussian = match (Gaussian::new(device, &layout, s), refusal(device, input, s)) {
        (Ok(gaussian), None) => gaussian,
        (Err(ClError::Refused(_)), Some(why)) => {
            let what = format!("gaussian {:?} of {} taps", s.variant, s.kernel_size);
            device::skip(&what, why);
            return None;
        }
        // The tile of a component that is filtered alone needs less memory than `refusal` assumes.
        (Ok(gaussian), Some(_)) if !s.image => gaussian,
        (result, why) => panic!(
            "{s:?} on {}: {result:?}, expected {why:?}",
            input.describe()
        ),
    };
    let expected_kernels: &[&str] = match s.variant {
        Some(GaussianVariant::Rows) => &["gaussian_binomial", "gaussian_bytes", "gaussian_rows"],
        Some(GaussianVariant::Tile { .. }) => &["gaussian_tile"],
        Some(GaussianVariant::Direct) => &["gaussian_direct"],
        None if s.image => &["gaussian_direct"],
        None => &[],
    };
    for kernel in gaussian.kernels() {
        if !expected_kernels.is_empty() && !expected_kernels.contains(&kernel) {
            let what = format!("gaussian {:?} of {} taps", s.variant, s.kernel_size);
            device::skip(&what, &format!("the device ran {kernel} instead"));
        }
    }
    let (to, buffer) =
        Frame::poisoned(input.info.format(), input.size(), output, OUTPUT_POISON).output(device);
    gaussian
        .run(&from, &to, &meter)
        .and_then(|event| event.wait("the filter"))
        .expect("the filter runs");
    Some(read(&buffer))
}

/// The expected output, including padding.
fn expected(input: &Frame, s: &GaussianSettings, output: Arrangement) -> Frame {
    let mut frame = Frame::poisoned(input.info.format(), input.size(), output, OUTPUT_POISON);
    let components: Vec<Vec<u32>> = (0..input.component_count())
        .map(|c| gaussian_integer(input.component(c), s.kernel_size, s.sigma_px))
        .collect();
    frame.set(&components, input);
    frame
}

/// Compares every choice with the reference.
pub fn check(
    device: &Arc<ClContext>,
    input: &Frame,
    (kernel_size, sigma): (usize, f64),
    choices: &[Choice],
    output: Arrangement,
) {
    let wanted = settings(kernel_size, sigma, Arithmetic::Integer, AUTO);
    let expected = expected(input, &wanted, output);
    for &choice in choices {
        let s = settings(kernel_size, sigma, Arithmetic::Integer, choice);
        if let Some(actual) = filter(device, input, &s, output) {
            assert_same(&actual, &expected, || {
                format!("{} {s:?} to {output:?}", input.describe())
            });
        }
    }
}

/// Formats that differ in samples, lanes, planes, padding or patterns.
const KINDS: [Format; 9] = [
    Format::Gray8,
    Format::Rgb,
    Format::Bgrx,
    Format::Argb,
    Format::I420,
    Format::Nv12,
    Format::Yuy2,
    Format::Gray16Le,
    Format::Gray16Be,
];

#[test]
fn gaussian_every_format_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    for (f, &format) in FORMATS.iter().enumerate() {
        for (i, &size) in SIZES.iter().enumerate() {
            let arrangement = ARRANGEMENTS[(f + i) % ARRANGEMENTS.len()];
            let output = OUTPUT_ARRANGEMENTS[(f + i / 2) % OUTPUT_ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            // A number of taps is a program in each variant, and PoCL compiles most of the time.
            check(&device, &input, ([3, 5][f % 2], 0.0), &CHOICES, output);
        }
    }
}

#[test]
fn gaussian_every_arrangement_of_memory_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in KINDS {
        for size in [[15, 1], [1, 15], [33, 7]] {
            for arrangement in ARRANGEMENTS {
                let input = Frame::showing(format, size, arrangement, Content::Random, 0);
                for output in OUTPUT_ARRANGEMENTS {
                    check(&device, &input, (3, 0.0), &[AUTO, tile(7, 3)], output);
                }
            }
        }
    }
}

#[test]
fn gaussian_every_kernel_size_and_sigma_equals_reference() {
    let Some(device) = device::open() else { return };
    // Lanes and sample sizes change the halo of the smallest and the largest kernels.
    for (format, sizes) in [
        (Format::Gray8, &[3, 5, 7, 9, 15, 31][..]),
        (Format::Rgb, &[3, 7, 31]),
        (Format::Gray16Be, &[3, 7, 31]),
    ] {
        let input = Frame::showing(format, [65, 37], PADDED, Content::Random, 0);
        for &taps in sizes {
            for sigma in [0.0, 0.3, 0.8, 2.0, 10.0] {
                check(&device, &input, (taps, sigma), &CHOICES, PADDED);
            }
        }
    }
}

#[test]
fn gaussian_kernel_larger_than_the_frame_clamps_to_its_edges() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::Gray16Be] {
        for size in [[1, 1], [2, 2], [15, 1], [1, 15], [17, 5]] {
            let input = Frame::showing(format, size, PADDED, Content::Random, 0);
            for taps in [7, 31] {
                check(&device, &input, (taps, 0.0), &CHOICES, PLAIN);
            }
        }
    }
}

/// Rows of several tiles of `gaussian_bytes.cl` and `gaussian_binomial.cl` (2048 samples), of one tile, of their
/// vectors (16 and 32 samples), and slightly more; strides with which rows compete for the same cache lines; the highest and lowest sums.
#[test]
fn gaussian_rows_around_a_tile_equal_reference() {
    let Some(device) = device::open() else { return };
    let aligned = Arrangement {
        stride: Stride::Multiple(4096),
        ..PADDED
    };
    for (format, width) in [
        (Format::Gray8, 16),
        (Format::Gray8, 31),
        (Format::Gray8, 32),
        (Format::Gray8, 33),
        (Format::Gray8, 65),
        (Format::Rgb, 11),
        (Format::Bgrx, 9),
        (Format::Gray8, 2048),
        (Format::Gray8, 2049),
        (Format::Gray8, 4101),
        (Format::Rgb, 683),
        (Format::Rgb, 1371),
        (Format::Bgrx, 513),
    ] {
        for (i, content) in [Content::Random, Content::TwoRandom, Content::Constant(255)]
            .into_iter()
            .enumerate()
        {
            let arrangement = [aligned, PADDED][i % 2];
            let input = Frame::showing(format, [width, 5], arrangement, content, 0);
            for kernel in [(3, 0.0), (3, 0.5), (5, 0.0), (5, 0.8), (13, 2.0), (31, 5.0)] {
                check(&device, &input, kernel, &[ROWS], PADDED);
            }
        }
    }
}

#[test]
fn gaussian_every_content_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::Gray16Le,
        Format::Gray16Be,
    ] {
        for content in Content::ALL {
            let input = Frame::showing(format, [67, 21], PADDED, content, 0);
            check(&device, &input, (5, 0.8), &CHOICES, PADDED);
        }
    }
}

#[test]
fn gaussian_sixteen_bits_at_their_highest_level_do_not_overflow() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray16Le, Format::Gray16Be] {
        let input = Frame::showing(format, [33, 9], PLAIN, Content::Constant(255), 0);
        for taps in [3, 31] {
            check(&device, &input, (taps, 0.0), &CHOICES, PLAIN);
        }
    }
}

#[test]
fn gaussian_padding_inside_pixels_is_copied_from_the_input() {
    let Some(device) = device::open() else { return };
    for format in [Format::Rgbx, Format::Bgrx, Format::Xrgb, Format::Xbgr] {
        let mut input = Frame::showing(format, [19, 6], PLAIN, Content::Random, 0);
        assert!(input.has_pixel_padding());
        // Padding that differs from pixel to pixel, and is neither poison nor a filtered value.
        let covered: Vec<bool> = {
            let mut covered = vec![false; input.bytes.len()];
            for c in 0..input.component_count() {
                let geometry = input.geometry(c);
                for y in 0..geometry.height {
                    for x in 0..geometry.width {
                        covered[geometry.position(x, y)] = true;
                    }
                }
            }
            covered
        };
        for (i, byte) in input.bytes.iter_mut().enumerate() {
            if !covered[i] {
                *byte = (i * 37) as u8;
            }
        }
        check(&device, &input, (5, 0.0), &CHOICES, PLAIN);
    }
}

/// f32 arithmetic: a weight is off by 2⁻²⁴ of itself, and a pass of n taps rounds at most
/// n/2 + 3 ≤ 18 times (a sum of two samples, its product, the running sum), so that two passes
/// and their weights stay within 40·2⁻²⁴ of the highest level: 0.16 for 16 bits. Rounding to a
/// whole level adds 0.5.
fn float_tolerance(kind: SampleKind) -> f64 {
    let highest = f64::from((1_u32 << (8 * kind.size())) - 1);
    0.5 + 40.0 * highest / f64::from(1 << 24)
}

#[test]
fn gaussian_float_is_near_the_f64_reference_and_equal_in_every_variant() {
    let Some(device) = device::open() else { return };
    for (format, kernels) in [
        (
            Format::Gray8,
            &[(3, 0.0), (5, 0.8), (9, 2.0), (31, 10.0)][..],
        ),
        (Format::Bgrx, &[(31, 10.0)]),
        (Format::Yuy2, &[(5, 0.8)]),
        (Format::Gray16Le, &[(3, 0.0), (31, 10.0)]),
        (Format::Gray16Be, &[(5, 0.8)]),
    ] {
        for &(taps, sigma) in kernels {
            for size in [[1, 1], [17, 5], [67, 21]] {
                let input = Frame::showing(format, size, PADDED, Content::Random, 0);
                let mut first: Option<Frame> = None;
                for choice in CHOICES {
                    let s = settings(taps, sigma, Arithmetic::Float, choice);
                    let Some(bytes) = filter(&device, &input, &s, PADDED) else {
                        continue;
                    };
                    match &first {
                        Some(first) => assert_same(&bytes, first, || {
                            format!("{} {s:?} differs from other variants", input.describe())
                        }),
                        None => {
                            let mut frame = Frame::poisoned(format, size, PADDED, OUTPUT_POISON);
                            frame.bytes = bytes;
                            near(&input, &frame, &s);
                            first = Some(frame);
                        }
                    }
                }
            }
        }
    }
}

/// Asserts that every sample is within the tolerance, and that every other byte is exact.
#[track_caller]
fn near(input: &Frame, output: &Frame, s: &GaussianSettings) {
    let tolerance = float_tolerance(input.kind());
    let mut rest = Frame::poisoned(input.info.format(), input.size(), PADDED, OUTPUT_POISON);
    let mut components = Vec::new();
    for c in 0..input.component_count() {
        let values = output.component(c).values();
        let wanted = gaussian_f64(input.component(c), s.kernel_size, s.sigma_px);
        for (at, (&value, &wanted)) in values.iter().zip(&wanted).enumerate() {
            // A NaN fails this comparison.
            assert!(
                (f64::from(value) - wanted).abs() <= tolerance,
                "{} {s:?} component {c} sample {at}: {value} instead of {wanted}",
                input.describe()
            );
        }
        components.push(values);
    }
    rest.set(&components, input);
    assert_same(&output.bytes, &rest, || format!("{s:?} beside its samples"));
}

#[track_caller]
fn assert_refused(input: &Frame, s: &GaussianSettings, device: &Arc<ClContext>, word: &str) {
    let layout = clinspect_opencl::frame::layout_of(&input.info).unwrap();
    match Gaussian::new(device, &layout, s) {
        Err(ClError::Refused(text)) => assert!(text.contains(word), "{text}"),
        other => panic!("{s:?}: {other:?} is no refusal"),
    }
}

#[test]
fn gaussian_kernel_size_even_or_outlying_is_refused() {
    let Some(device) = device::open() else { return };
    let input = Frame::poisoned(Format::Gray8, [9, 9], PLAIN, 0);
    for taps in [0, 1, 2, 4, 30, 32, 33] {
        let s = settings(taps, 0.0, Arithmetic::Integer, AUTO);
        assert_refused(&input, &s, &device, "kernel-size");
    }
}

#[test]
fn gaussian_variant_that_cannot_run_is_refused() {
    let Some(device) = device::open() else { return };
    let grey = Frame::poisoned(Format::Gray8, [9, 9], PLAIN, 0);
    let refused = |choice: Choice, word: &str| {
        let s = settings(3, 0.0, Arithmetic::Integer, choice);
        assert_refused(&grey, &s, &device, word);
    };
    refused((Some(GaussianVariant::Rows), true), "buffer");
    refused((tile(8, 8).0, true), "buffer");
    let group = device.caps().max_work_group;
    refused(tile(group + 1, 1), "work-group");
    refused(tile(0, 1), "work-group");
    // Four columns of four sums of two bytes, and one row more than fits.
    let rows = device.caps().local_memory as usize / 32 + 1;
    if group >= 4 {
        refused(tile(4, rows), "local memory");
        refused(tile(2, 1), "halo");
    }
}
