//! `operators::Unpack`: packed samples and Bayer pictures, every variant compared with the reference.

use std::sync::Arc;

use clinspect_core::layout::SampleType;
use clinspect_core::unpack::{Demosaic, Encoding, Output, Packing, Pattern};
use clinspect_core::variant::UnpackVariant;
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::{SelfTest, Trial, Unpack};
use gst_video::{VideoFormat as Format, VideoInfo};

use crate::{
    content::Content,
    device,
    frames::{
        ARRANGEMENTS, Arrangement, Frame, OUTPUT_ARRANGEMENTS, OUTPUT_POISON, PADDED, PLAIN,
        assert_same, read,
    },
    oracle::{
        SampleKind, Samples,
        unpack::{Bayer, sample},
    },
};

/// Every variant, and the one chosen for the device.
const CHOICES: [Option<UnpackVariant>; 3] =
    [None, Some(UnpackVariant::Rows), Some(UnpackVariant::Items)];
const METHODS: [Demosaic; 2] = [Demosaic::Bilinear, Demosaic::Gradient];

/// What is unpacked to what.
#[derive(Clone, Copy, Debug)]
pub struct UnpackCase {
    pub encoding: Encoding,
    pub demosaic: Demosaic,
    pub output: Output,
}

/// Every pattern with every depth. A compilation for each combination with orders of bytes, outputs and methods would take
/// too long.
pub fn bayers() -> impl Iterator<Item = Encoding> {
    let kinds = [
        (8, false),
        (10, false),
        (12, true),
        (14, false),
        (16, true),
        (16, false),
    ];
    kinds.into_iter().flat_map(|(bits, big_endian)| {
        Pattern::ALL.map(|pattern| Encoding::Bayer {
            pattern,
            bits,
            big_endian,
        })
    })
}

/// The components of a pixel by the reference.
fn pixel(wanted: &UnpackCase, rows: Samples, x: usize, y: usize) -> Vec<u32> {
    let values = match wanted.encoding {
        Encoding::Packed(packing) => {
            let first = rows.offset + y * rows.stride;
            vec![sample(&rows.data[first..], packing.name(), x)]
        }
        Encoding::Bayer { pattern, bits, .. } => {
            let (depth, bytes) = match wanted.encoding.sample().expect("Bayer") {
                SampleType::U8 => (SampleKind::U8, 1),
                SampleType::U16Le => (SampleKind::U16Le, 2),
                SampleType::U16Be => (SampleKind::U16Be, 2),
            };
            let bayer = Bayer {
                samples: Samples {
                    pixel_stride: bytes,
                    width: rows.width / bytes,
                    depth,
                    ..rows
                },
                bits,
                pattern: pattern.name(),
                gradient: wanted.demosaic == Demosaic::Gradient,
            };
            if wanted.output.is_colour() {
                bayer.pixel(x, y).to_vec()
            } else {
                vec![bayer.luma(x, y)]
            }
        }
    };
    let is_deep = wanted.output == Output::Gray16Le;
    let shift = if is_deep {
        0
    } else {
        wanted.encoding.bits() - 8
    };
    values.into_iter().map(|value| value >> shift).collect()
}

/// Unpacks a random frame with every choice, and compares with the reference.
pub fn check(
    device: &Arc<ClContext>,
    wanted: &UnpackCase,
    size @ [width, height]: [usize; 2],
    [from, to]: [Arrangement; 2],
) {
    let row = wanted.encoding.row_bytes(width).expect("whole bytes");
    let input = Frame::showing(Format::Gray8, [row, height], from, Content::Random, 0);
    let rows = input.component(0);
    let format = Format::from_string(wanted.output.name());
    let mut expected = Frame::poisoned(format, size, to, OUTPUT_POISON);
    let mut components = vec![Vec::new(); expected.component_count()];
    for y in 0..height {
        for x in 0..width {
            for (component, value) in components.iter_mut().zip(pixel(wanted, rows, x, y)) {
                component.push(value);
            }
        }
    }
    // The fourth byte of RGBx is 255.
    let white = Frame::poisoned(format, size, PLAIN, 255);
    expected.set(&components, &white);
    for choice in CHOICES {
        let UnpackCase {
            encoding,
            demosaic,
            output,
        } = *wanted;
        let built = Unpack::untested(device, encoding, demosaic, output, size, choice);
        let mut operator = built.expect("an operator");
        let target = Frame::poisoned(format, size, to, OUTPUT_POISON);
        let (frame, buffer) = target.output(device);
        let done = operator.run(&input.import(device), &frame, &Meter::new(false));
        done.and_then(|done| done.wait("unpacking"))
            .expect("it runs");
        assert_same(&read(&buffer), &expected, || {
            format!("{wanted:?} {width}x{height} {choice:?} {from:?} to {to:?}")
        });
    }
}

/// Arrangements of a frame in one plane, another pair for each `n`.
fn arrangements(n: usize) -> [Arrangement; 2] {
    [
        ARRANGEMENTS[n % ARRANGEMENTS.len()],
        OUTPUT_ARRANGEMENTS[n % OUTPUT_ARRANGEMENTS.len()],
    ]
}

#[test]
fn unpack_every_packing_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    let mut n = 0;
    for packing in Packing::ALL {
        for output in [Output::Gray8, Output::Gray16Le] {
            let wanted = UnpackCase {
                encoding: Encoding::Packed(packing),
                demosaic: Demosaic::default(),
                output,
            };
            // Around the vectors of 16 samples, whose loads read past the bytes that they use.
            for width in [1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 33] {
                let size = [width * packing.group_samples(), 1 + n % 5];
                check(&device, &wanted, size, arrangements(n));
                n += 1;
            }
        }
    }
}

/// Odd sizes, and sizes around the vectors of 32 pixels and the work-items of 8 and 16.
#[test]
fn unpack_bayer_of_every_kind_equals_reference() {
    let Some(device) = device::open() else { return };
    for (n, encoding) in bayers().enumerate() {
        let wanted = UnpackCase {
            encoding,
            demosaic: METHODS[n / 2 % 2],
            output: Output::ALL[n % 5],
        };
        let widths = if n % 6 == 0 { 2..=72 } else { 33..=38 };
        for width in widths.chain([101]) {
            let least = wanted.demosaic.least_size();
            let size = [width.max(least), least + width % 4];
            check(&device, &wanted, size, arrangements(n + width));
        }
    }
}

/// The operator is warmed up with fewer rows.
#[test]
fn unpack_of_more_rows_than_the_warm_up_equals_reference() {
    let Some(device) = device::open() else { return };
    let height = clinspect_operators::WARM_UP_ROWS + 7;
    let packed = Encoding::Packed(Packing::Mono12p);
    for (encoding, output) in [
        (packed, Output::Gray16Le),
        (bayers().next().expect("Bayer"), Output::Rgb),
    ] {
        let wanted = UnpackCase {
            encoding,
            demosaic: Demosaic::Gradient,
            output,
        };
        check(&device, &wanted, [66, height], [PLAIN, PADDED]);
    }
}

#[test]
fn unpack_passes_its_self_test() {
    let Some(device) = device::open() else { return };
    let info = VideoInfo::builder(Format::Gray8, 8, 8).build();
    let trial = Trial::new(&device, &info.expect("an info"), SelfTest::Always);
    let packed = Packing::ALL.map(Encoding::Packed).into_iter();
    let encodings = packed.chain(bayers().step_by(5));
    for (n, encoding) in encodings.enumerate() {
        for output in [Output::Gray8, Output::Gray16Le, Output::Rgbx] {
            if output.is_colour() && matches!(encoding, Encoding::Packed(_)) {
                continue;
            }
            let size = [[4, 3], [1924, 7], [132, 101]][n % 3];
            let built = Unpack::new(&device, encoding, METHODS[n % 2], output, size, &trial);
            assert!(built.is_ok(), "{encoding:?} {output:?}: {built:?}");
        }
    }
}

#[test]
fn unpack_refuses_what_does_not_fit() {
    let Some(device) = device::open() else { return };
    let refusal = |encoding, output, size| {
        let built = Unpack::untested(&device, encoding, Demosaic::Gradient, output, size, None);
        built.expect_err("a refusal").to_string()
    };
    let packed = Encoding::Packed(Packing::Mono10p);
    let why = refusal(packed, Output::Gray8, [6, 4]);
    assert!(why.contains("ends inside a byte"), "{why}");
    let why = refusal(packed, Output::Rgb, [8, 4]);
    assert!(why.contains("GRAY16_LE"), "{why}");
    let why = refusal(bayers().next().expect("Bayer"), Output::Rgb, [2, 9]);
    assert!(why.contains("at least 3x3"), "{why}");
}

#[test]
fn small_unpacking_equals_reference() {
    let Some(device) = device::open() else { return };
    for (n, packing) in Packing::ALL.into_iter().enumerate() {
        let wanted = UnpackCase {
            encoding: Encoding::Packed(packing),
            demosaic: Demosaic::default(),
            output: [Output::Gray8, Output::Gray16Le][n % 2],
        };
        for width in [4, 24, 52] {
            check(&device, &wanted, [width, 2], [[PLAIN, PADDED][n % 2]; 2]);
        }
    }
    for (n, encoding) in bayers().step_by(7).enumerate() {
        let wanted = UnpackCase {
            encoding,
            demosaic: METHODS[n % 2],
            output: Output::ALL[n % 5],
        };
        for width in [3, 40] {
            check(&device, &wanted, [width, 3], [[PADDED, PLAIN][n % 2]; 2]);
        }
    }
}
