//! Tests of the golden references: the golden vectors of docs/semantics.md, values
//! computed by hand or by another program, and the detection of a change of one pixel.

use clinspect_testkit::oracle;
use oracle::gaussian::{gaussian_f64, gaussian_integer, weights_f64, weights_q8};
use oracle::histogram::{Statistics, chroma_region, histogram, statistics};
use oracle::pitch_threshold::{
    Compare, Outcome, Polarity, Settings, compare, contrast, difference, distance_q8, pack,
};
use oracle::unpack::{Bayer, sample};
use oracle::{Geometry, SampleKind, Samples, put};

/// A GRAY8 plane without padding.
fn plane(data: &[u8], width: usize) -> Samples<'_> {
    Samples {
        data,
        offset: 0,
        stride: width,
        pixel_stride: 1,
        width,
        height: data.len() / width,
        depth: SampleKind::U8,
    }
}

/// Reproducible bytes without a pattern (a linear congruential generator's high bits).
fn noise(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

/// Odd sizes, single rows and columns.
const SIZES: [(usize, usize); 6] = [(1, 1), (15, 1), (1, 15), (17, 13), (33, 5), (64, 9)];

#[track_caller]
fn assert_close(left: f64, right: f64) {
    // A few roundings of f64 on values below 2^16.
    assert!((left - right).abs() <= 1e-9, "{left} is not {right}");
}

// ---- Samples ------------------------------------------------------------------------------

const KINDS: [SampleKind; 3] = [SampleKind::U8, SampleKind::U16Le, SampleKind::U16Be];

#[test]
fn samples_of_each_kind_read_in_their_byte_order() {
    let data = [9, 0x12, 0x34, 9, 0xab, 0xcd];
    let mut geometry = Geometry {
        offset: 1,
        stride: 3,
        pixel_stride: 2,
        width: 1,
        height: 2,
        depth: SampleKind::U8,
    };
    let mut read = |depth| {
        geometry.depth = depth;
        geometry.samples(&data).values()
    };
    assert_eq!(read(SampleKind::U8), [0x12, 0xab]);
    assert_eq!(read(SampleKind::U16Le), [0x3412, 0xcdab]);
    assert_eq!(read(SampleKind::U16Be), [0x1234, 0xabcd]);
}

#[test]
fn put_in_padded_plane_reads_back_and_leaves_other_bytes() {
    for depth in KINDS {
        let geometry = Geometry {
            offset: 3,
            stride: 17,
            pixel_stride: 4,
            width: 4,
            height: 3,
            depth,
        };
        let mut data = vec![0xa5; 3 + 17 * 3];
        put(&mut data, &geometry, 2, 1, 0x5a);
        assert_eq!(geometry.samples(&data).get(2, 1), 0x5a);
        let first = 3 + 17 + 8;
        for (at, &byte) in data.iter().enumerate() {
            let written = (first..first + depth.size()).contains(&at);
            assert!(written || byte == 0xa5, "byte {at} changed for {depth:?}");
        }
        assert_eq!(geometry.samples(&data).geometry(), geometry);
    }
}

#[test]
#[should_panic(expected = "outside")]
fn samples_past_the_row_are_refused() {
    plane(&[0; 12], 4).get(4, 0);
}

// ---- Histogram ----------------------------------------------------------------------------

#[test]
fn histogram_of_small_plane_counts_by_hand() {
    let data = [0, 63, 64, 255, 128, 128];
    assert_eq!(histogram(plane(&data, 3), [0, 0, 3, 2], 8, 4), [2, 1, 2, 1]);
    assert_eq!(histogram(plane(&data, 3), [1, 0, 2, 1], 8, 4), [1, 1, 0, 0]);
    assert_eq!(histogram(plane(&data, 3), [0, 0, 3, 2], 8, 1), [6]);
}

#[test]
fn histogram_of_constant_plane_counts_past_a_byte() {
    let data = vec![77; 300 * 7];
    let counts = histogram(plane(&data, 300), [0, 0, 300, 7], 8, 256);
    assert_eq!(counts[77], 2100);
    assert_eq!(counts.iter().sum::<u32>(), 2100);
}

#[test]
fn histogram_of_any_region_sums_to_its_samples() {
    for (width, height) in SIZES {
        let data = noise(width * height, 1);
        for region in [
            [0, 0, width, height],
            [width / 2, height / 3, width, height],
            [width, 0, 5, 5],
            [0, 0, 0, 0],
            [1, 1, usize::MAX, usize::MAX],
        ] {
            let columns = region[0].saturating_add(region[2]).min(width) - region[0].min(width);
            let rows = region[1].saturating_add(region[3]).min(height) - region[1].min(height);
            let counts = histogram(plane(&data, width), region, 8, 256);
            assert_eq!(counts.iter().sum::<u32>() as usize, columns * rows);
        }
    }
}

#[test]
fn histogram_of_packed_component_ignores_the_others() {
    // BGRx with an offset and padded rows; all bytes except red are poison.
    let geometry = Geometry {
        offset: 7,
        stride: 11,
        pixel_stride: 4,
        width: 2,
        height: 2,
        depth: SampleKind::U8,
    };
    let mut data = vec![200; 7 + 22];
    for (x, y, value) in [(0, 0, 1), (1, 0, 2), (0, 1, 2), (1, 1, 3)] {
        put(&mut data, &geometry, x, y, value);
    }
    let counts = histogram(geometry.samples(&data), [0, 0, 2, 2], 8, 256);
    assert_eq!(counts[..5], [0, 1, 2, 1, 0]);
    assert_eq!(counts[200], 0);
}

#[test]
fn histogram_of_16_bit_samples_above_depth_counts_in_last_bin() {
    for depth in [SampleKind::U16Le, SampleKind::U16Be] {
        let geometry = Geometry {
            offset: 0,
            stride: 10,
            pixel_stride: 2,
            width: 5,
            height: 1,
            depth,
        };
        let mut data = vec![0; 10];
        for (x, value) in [0, 3, 4, 1023, 1024].into_iter().enumerate() {
            put(&mut data, &geometry, x, 0, value);
        }
        let counts = histogram(geometry.samples(&data), [0, 0, 5, 1], 10, 256);
        assert_eq!((counts[0], counts[1], counts[255]), (2, 1, 2));
        assert_eq!(counts.iter().sum::<u32>(), 5);
        let full = histogram(geometry.samples(&data), [0, 0, 5, 1], 16, 65536);
        assert_eq!((full[3], full[1023], full[1024]), (1, 1, 1));
    }
}

#[test]
fn histogram_with_one_pixel_mutated_moves_one_count() {
    let (width, height) = (17, 13);
    let mut data = noise(width * height, 2);
    let region = [0, 0, width, height];
    let before = histogram(plane(&data, width), region, 8, 256);
    for at in 0..data.len() {
        let (old, new) = (data[at], data[at] ^ 1);
        data[at] = new;
        let mut expected = before.clone();
        expected[usize::from(old)] -= 1;
        expected[usize::from(new)] += 1;
        assert_ne!(expected, before);
        assert_eq!(histogram(plane(&data, width), region, 8, 256), expected);
        data[at] = old;
    }
}

#[test]
fn chroma_region_of_odd_region_grows_outward() {
    // 4:2:0 of a 9 x 7 frame: 5 x 4 chroma samples.
    assert_eq!(chroma_region([0, 0, 9, 7], 1, 1, 5, 4), [0, 0, 5, 4]);
    assert_eq!(chroma_region([2, 2, 4, 2], 1, 1, 5, 4), [1, 1, 2, 1]);
    assert_eq!(chroma_region([3, 3, 1, 1], 1, 1, 5, 4), [1, 1, 1, 1]);
    assert_eq!(chroma_region([3, 3, 2, 2], 1, 1, 5, 4), [1, 1, 2, 2]);
    assert_eq!(chroma_region([8, 6, 1, 1], 1, 1, 5, 4), [4, 3, 1, 1]);
}

#[test]
fn chroma_region_by_subsampling_shrinks_each_axis_alone() {
    assert_eq!(chroma_region([3, 3, 4, 4], 0, 0, 9, 7), [3, 3, 4, 4]);
    assert_eq!(chroma_region([3, 3, 4, 4], 1, 0, 5, 7), [1, 3, 3, 4]);
    assert_eq!(chroma_region([3, 3, 4, 4], 2, 2, 3, 2), [0, 0, 2, 2]);
}

#[test]
fn chroma_region_past_the_component_is_clipped() {
    assert_eq!(chroma_region([4, 0, 100, 100], 1, 1, 5, 4), [2, 0, 3, 4]);
    assert_eq!(chroma_region([100, 100, 2, 2], 1, 1, 5, 4), [5, 4, 0, 0]);
    assert_eq!(chroma_region([3, 3, 0, 2], 1, 1, 5, 4), [0; 4]);
}

#[test]
fn statistics_of_nothing_are_zero() {
    let s = statistics(&[0; 256], 8);
    assert_eq!(s.count, 0);
    assert_eq!((s.mean, s.stddev, s.entropy, s.p99), (0.0, 0.0, 0.0, 0.0));
}

#[test]
fn statistics_of_constant_region_have_no_spread() {
    let mut bins = [0; 256];
    bins[77] = 1000;
    assert_eq!(
        statistics(&bins, 8),
        Statistics {
            count: 1000,
            minimum: 77.0,
            maximum: 77.0,
            mean: 77.0,
            stddev: 0.0,
            median: 77.0,
            p1: 77.0,
            p5: 77.0,
            p95: 77.0,
            p99: 77.0,
            saturated_low: 0.0,
            saturated_high: 0.0,
            entropy: 0.0,
            otsu_threshold: 0.0,
            otsu_separability: 0.0,
        }
    );
}

#[test]
fn statistics_of_two_values_are_those_by_hand() {
    // Four bins of 64 grey levels; the lower edges are 0, 64, 128 and 192.
    assert_eq!(
        statistics(&[2, 0, 0, 2], 8),
        Statistics {
            count: 4,
            minimum: 0.0,
            maximum: 192.0,
            mean: 96.0,
            stddev: 96.0,
            median: 0.0,
            p1: 0.0,
            p5: 0.0,
            p95: 192.0,
            p99: 192.0,
            saturated_low: 0.5,
            saturated_high: 0.5,
            entropy: 1.0,
            otsu_threshold: 0.0,
            otsu_separability: 1.0,
        }
    );
}

#[test]
fn statistics_of_uniform_region_are_those_by_hand() {
    let s = statistics(&[5, 5, 5, 5], 2);
    assert_eq!((s.count, s.minimum, s.maximum), (20, 0.0, 3.0));
    assert_eq!((s.mean, s.median, s.entropy), (1.5, 1.0, 2.0));
    assert_close(s.stddev, 1.25_f64.sqrt());
    assert_eq!((s.saturated_low, s.saturated_high), (0.25, 0.25));
    // Split after 1: class means 0.5 and 2.5, so 0.25 * 2² of a variance of 1.25.
    assert_eq!(s.otsu_threshold, 1.0);
    assert_close(s.otsu_separability, 0.8);
}

#[test]
fn statistics_of_unequal_classes_are_those_by_hand() {
    // n = 8, sum = 29, sum of squares = 197.
    let s = statistics(&[3, 1, 0, 0, 0, 0, 0, 4], 3);
    assert_close(s.mean, 3.625);
    assert_close(s.stddev, 735.0_f64.sqrt() / 8.0);
    assert_eq!((s.saturated_low, s.saturated_high), (0.375, 0.5));
    assert_close(s.entropy, 0.5 + 0.375 * (8.0_f64 / 3.0).log2() + 0.375);
    // Split after 1 (or any empty bin behind it): (29*4 - 8*1)² / (4*4) = 729 of 735.
    assert_eq!(s.otsu_threshold, 1.0);
    assert_close(s.otsu_separability, 729.0 / 735.0);
}

#[test]
fn statistics_of_symmetric_region_take_the_first_otsu_maximum() {
    assert_eq!(statistics(&[7, 7, 7, 0], 2).otsu_threshold, 0.0);
    assert_eq!(statistics(&[0, 9, 0, 9], 2).otsu_threshold, 1.0);
}

#[test]
fn statistics_of_largest_counts_stay_exact() {
    let s = statistics(&[u32::MAX, 0, 0, u32::MAX], 16);
    assert_eq!(s.count, 2 * u64::from(u32::MAX));
    assert_eq!((s.mean, s.stddev), (24576.0, 24576.0));
    assert_eq!((s.otsu_threshold, s.otsu_separability), (0.0, 1.0));
}

#[test]
fn percentile_of_hundred_values_is_the_first_bin_that_reaches_it() {
    let s = statistics(&[1; 128], 7);
    // 128 values: 100c >= 128p first at c = 2, 7, 64, 122 and 127, in bin c - 1.
    assert_eq!(
        (s.p1, s.p5, s.median, s.p95, s.p99),
        (1.0, 6.0, 63.0, 121.0, 126.0)
    );
    // Exactly p percent in the first bin is enough; one sample less is not.
    assert_eq!(statistics(&[5, 95], 1).p5, 0.0);
    assert_eq!(statistics(&[4, 96], 1).p5, 1.0);
    assert_eq!(statistics(&[95, 5], 1).p95, 0.0);
    assert_eq!(statistics(&[94, 6], 1).p95, 1.0);
}

// ---- Gaussian -----------------------------------------------------------------------------

const SIGMAS: [f64; 16] = [
    -1.0, 0.0, 0.05, 0.3, 0.5, 0.8, 0.849, 1.0, 1.1, 1.5, 2.0, 2.5, 3.3, 5.0, 20.0, 1000.0,
];

#[test]
fn weights_q8_of_derived_sigma_are_the_fixed_tables() {
    for sigma in [0.0, -1.0] {
        assert_eq!(weights_q8(3, sigma), [64, 128, 64]);
        assert_eq!(weights_q8(5, sigma), [16, 64, 96, 64, 16]);
        assert_eq!(weights_q8(7, sigma), [8, 28, 56, 72, 56, 28, 8]);
        assert_eq!(weights_q8(9, sigma), [4, 13, 30, 51, 60, 51, 30, 13, 4]);
    }
}

#[test]
fn weights_q8_of_other_sigma_carry_the_error_inwards() {
    // By hand from 256 * w: 2.256 6.949 16.669 31.142 45.312 and the rest in the centre.
    assert_eq!(
        weights_q8(11, 0.0),
        [2, 7, 17, 31, 45, 52, 45, 31, 17, 7, 2]
    );
    // By hand from 0.813 2.299 5.543 11.387 19.935 29.740 37.806, carrying -0.187 0.112 -0.346
    // 0.041 -0.024 -0.284.
    assert_eq!(
        weights_q8(15, 2.5),
        [1, 2, 6, 11, 20, 30, 38, 40, 38, 30, 20, 11, 6, 2, 1]
    );
    assert_eq!(weights_q8(3, 0.3), [1, 254, 1]);
    assert_eq!(weights_q8(3, 0.05), [0, 256, 0]);
}

#[test]
fn weights_of_every_size_and_sigma_sum_to_one_and_mirror() {
    for n in (3..=31).step_by(2) {
        for step in 0..200 {
            let sigma = f64::from(step) * 0.061 - 0.1;
            let q8 = weights_q8(n, sigma);
            assert_eq!(q8.len(), n);
            assert_eq!(q8.iter().sum::<u32>(), 256, "n {n} sigma {sigma}");
            assert!(q8.iter().eq(q8.iter().rev()));
            let exact = weights_f64(n, sigma);
            assert_close(exact.iter().sum(), 1.0);
            assert!(exact.iter().eq(exact.iter().rev()));
        }
    }
}

#[test]
fn weights_f64_of_small_kernel_are_the_gaussian() {
    let side = (-0.5_f64 / (0.8 * 0.8)).exp();
    for sigma in [0.8, 0.0] {
        let weights = weights_f64(3, sigma);
        assert_close(weights[0], side / (1.0 + 2.0 * side));
        assert_close(weights[1], 1.0 / (1.0 + 2.0 * side));
    }
}

#[test]
fn gaussian_of_constant_is_constant() {
    for (width, height) in SIZES {
        for value in [0, 1, 128, 255] {
            let data = vec![value; width * height];
            for n in [3, 5, 9, 31] {
                for sigma in SIGMAS {
                    let out = gaussian_integer(plane(&data, width), n, sigma);
                    assert!(out.iter().all(|&v| v == u32::from(value)));
                    for v in gaussian_f64(plane(&data, width), n, sigma) {
                        assert_close(v, f64::from(value));
                    }
                }
            }
        }
    }
}

#[test]
fn gaussian_of_impulse_is_the_product_of_weights() {
    for n in [3, 5, 9, 15, 31] {
        let size = 2 * n + 1;
        let geometry = Geometry {
            offset: 0,
            stride: size * 2,
            pixel_stride: 2,
            width: size,
            height: size,
            depth: SampleKind::U16Le,
        };
        let mut data = vec![0; size * size * 2];
        put(&mut data, &geometry, n, n, 65535);
        for sigma in [0.0, 0.8, 4.0] {
            let q8 = weights_q8(n, sigma);
            let exact = weights_f64(n, sigma);
            let integer = gaussian_integer(geometry.samples(&data), n, sigma);
            let float = gaussian_f64(geometry.samples(&data), n, sigma);
            for y in 0..size {
                for x in 0..size {
                    // The impulse is tap n + n/2 - x of the row around x.
                    let (i, j) = (n + n / 2 - x.min(n + n / 2), n + n / 2 - y.min(n + n / 2));
                    let inside = x <= n + n / 2 && y <= n + n / 2 && i < n && j < n;
                    let (a, b) = if inside {
                        (u64::from(q8[i]) * u64::from(q8[j]), exact[i] * exact[j])
                    } else {
                        (0, 0.0)
                    };
                    assert_eq!(u64::from(integer[y * size + x]), (a * 65535 + 32768) >> 16);
                    assert_close(float[y * size + x], b * 65535.0);
                }
            }
        }
    }
}

#[test]
fn gaussian_at_borders_clamps_to_the_edge() {
    // [64 128 64] along a row of one; the column passes a constant through.
    assert_eq!(
        gaussian_integer(plane(&[100, 0, 0, 200], 4), 3, 0.0),
        [75, 25, 50, 150]
    );
    assert_eq!(
        gaussian_integer(plane(&[100, 0, 0, 200], 1), 3, 0.0),
        [75, 25, 50, 150]
    );
    // A corner: (3/4)² of it remains there, and 7.5625 + 0.5 rounds once.
    assert_eq!(
        gaussian_integer(plane(&[121, 0, 0, 0, 0, 0, 0, 0, 0], 3), 3, 0.0),
        [68, 23, 0, 23, 8, 0, 0, 0, 0]
    );
    // A kernel much wider than the plane: each end gets half of the taps outside the centre.
    let centre = weights_q8(31, 0.0)[15];
    let near = 128 + centre / 2;
    let expected = (near * 200 + 128) >> 8;
    assert_eq!(gaussian_integer(plane(&[200, 0], 2), 31, 0.0)[0], expected);
}

#[test]
fn gaussian_integer_of_exact_half_rounds_up() {
    assert_eq!(
        gaussian_integer(plane(&[0, 0, 1, 0, 0, 3, 0, 0], 8), 3, 0.0),
        [0, 0, 1, 0, 1, 2, 1, 0]
    );
}

#[test]
fn gaussian_of_padded_component_ignores_everything_else() {
    let (width, height) = (17, 13);
    let samples = noise(width * height, 3);
    let expected = gaussian_integer(plane(&samples, width), 7, 0.0);
    for depth in KINDS {
        let geometry = Geometry {
            offset: 5,
            stride: width * 4 + 9,
            pixel_stride: 4,
            width,
            height,
            depth,
        };
        let mut data = vec![0xff; 5 + geometry.stride * height];
        for y in 0..height {
            for x in 0..width {
                put(&mut data, &geometry, x, y, samples[y * width + x].into());
            }
        }
        assert_eq!(gaussian_integer(geometry.samples(&data), 7, 0.0), expected);
    }
}

#[test]
fn gaussian_integer_of_noise_is_near_the_f64_gaussian() {
    let data = noise(64 * 48, 4);
    for n in (3..=31).step_by(2) {
        for sigma in [0.5, 1.1, 3.3, 12.0] {
            // Q8 against exact weights: each pass is off by at most 255 * the weights' difference.
            let error: f64 = weights_q8(n, sigma)
                .iter()
                .zip(weights_f64(n, sigma))
                .map(|(&q8, exact)| (f64::from(q8) / 256.0 - exact).abs())
                .sum();
            let bound = 0.5 + 2.0 * 255.0 * error + 1e-9;
            let integer = gaussian_integer(plane(&data, 64), n, sigma);
            let float = gaussian_f64(plane(&data, 64), n, sigma);
            for (a, b) in integer.iter().zip(float) {
                assert!((f64::from(*a) - b).abs() <= bound);
            }
        }
    }
}

#[test]
fn gaussian_with_one_pixel_mutated_differs() {
    let (width, height) = (17, 13);
    let mut data = noise(width * height, 5);
    for (n, sigma) in [(3, 0.0), (5, 0.8)] {
        let integer = gaussian_integer(plane(&data, width), n, sigma);
        let float = gaussian_f64(plane(&data, width), n, sigma);
        for at in 0..data.len() {
            data[at] ^= 0x80;
            assert_ne!(gaussian_integer(plane(&data, width), n, sigma), integer);
            assert_ne!(gaussian_f64(plane(&data, width), n, sigma), float);
            data[at] ^= 0x80;
        }
    }
}

/// 8 x 5 samples, and the result of `cv2.GaussianBlur(source, (n, n), sigma, BORDER_REPLICATE)` of
/// opencv-python-headless 5.0.0 and 4.6.0, which give the same bytes.
const OPENCV_SOURCE: [u8; 40] = [
    255, 74, 229, 241, 169, 65, 6, 160, 149, 106, 38, 175, 188, 205, 175, 229, 98, 249, 10, 255,
    95, 86, 147, 198, 66, 39, 106, 213, 171, 45, 167, 57, 69, 81, 55, 14, 153, 178, 215, 0,
];
const OPENCV_BLURRED: [(usize, f64, [u32; 40]); 6] = [
    (
        3,
        0.0,
        [
            192, 143, 167, 201, 168, 106, 93, 145, 156, 127, 126, 165, 168, 142, 149, 184, 117,
            116, 117, 157, 151, 127, 149, 168, 82, 87, 104, 141, 139, 125, 129, 102, 69, 69, 67,
            88, 131, 163, 141, 61,
        ],
    ),
    (
        5,
        0.8,
        [
            194, 146, 170, 197, 164, 108, 94, 145, 153, 128, 125, 167, 165, 145, 149, 182, 116,
            122, 114, 158, 147, 128, 147, 164, 81, 88, 102, 140, 140, 125, 131, 101, 70, 71, 70,
            88, 132, 156, 142, 62,
        ],
    ),
    (
        7,
        0.0,
        [
            180, 168, 167, 165, 150, 132, 128, 142, 150, 144, 147, 152, 148, 140, 140, 151, 118,
            120, 127, 138, 142, 140, 139, 139, 92, 97, 106, 121, 133, 136, 129, 113, 77, 80, 88,
            105, 125, 133, 120, 89,
        ],
    ),
    (
        9,
        0.0,
        [
            177, 168, 164, 159, 148, 136, 133, 142, 150, 146, 147, 148, 145, 140, 139, 144, 122,
            123, 128, 135, 138, 138, 136, 135, 98, 102, 110, 121, 129, 132, 125, 114, 82, 85, 94,
            108, 121, 126, 115, 94,
        ],
    ),
    (
        15,
        2.5,
        [
            170, 164, 157, 150, 144, 140, 138, 139, 150, 147, 145, 141, 139, 136, 134, 134, 130,
            130, 130, 131, 131, 130, 127, 124, 111, 113, 116, 120, 122, 122, 118, 112, 95, 99, 104,
            110, 114, 113, 107, 98,
        ],
    ),
    (
        31,
        0.0,
        [
            155, 151, 147, 143, 139, 136, 132, 130, 145, 142, 139, 135, 132, 128, 125, 122, 135,
            133, 130, 127, 124, 121, 118, 115, 125, 124, 121, 119, 116, 113, 110, 107, 116, 115,
            113, 111, 108, 105, 102, 98,
        ],
    ),
];

#[test]
fn gaussian_integer_of_opencv_source_equals_opencv() {
    for (n, sigma, blurred) in OPENCV_BLURRED {
        assert_eq!(
            gaussian_integer(plane(&OPENCV_SOURCE, 8), n, sigma),
            blurred,
            "n {n} sigma {sigma}"
        );
    }
}

// ---- Pitch comparison ---------------------------------------------------------------------

/// The published formula with a pitch along x.
fn settings(pitch_x: f64) -> Settings {
    Settings {
        vectors: Vec::new(),
        pitch_x,
        pitch_y: 0.0,
        multiples: vec![1],
        threshold: 10.0,
        compare: Compare::Average,
        match_center: false,
        polarity: Polarity::Both,
        inward: false,
        edge_margin: 0,
        scales: 0,
        scale_factors: Vec::new(),
        min_contrast: 0.0,
        bit_depth: 0,
        rois: Vec::new(),
        ignored: Vec::new(),
    }
}

/// One row of `width` zeros with the given samples.
fn row(width: usize, set: &[(usize, u8)]) -> Vec<u8> {
    let mut row = vec![0; width];
    for &(x, value) in set {
        row[x] = value;
    }
    row
}

fn marked(outcome: &Outcome) -> Vec<usize> {
    (0..outcome.mask.len())
        .filter(|&at| outcome.mask[at])
        .collect()
}

fn judged(outcome: &Outcome) -> Vec<usize> {
    (0..outcome.judged.len())
        .filter(|&at| outcome.judged[at])
        .collect()
}

const FROM_TEN: [usize; 4] = [10, 0, 54, 1];

#[test]
fn pitch_threshold_golden_whole_pitch_average_leaves_ghost() {
    let data = row(64, &[(10, 50), (20, 150), (30, 50)]);
    let s = Settings {
        rois: vec![FROM_TEN],
        ..settings(10.0)
    };
    let outcome = compare(plane(&data, 64), &s);
    assert_eq!(outcome.packed, [0, 0x20, 0x08, 0x02, 0, 0x80, 0, 0]);
    assert_eq!(marked(&outcome), [10, 20, 30, 40]);
    assert_eq!(outcome.defect_pixels, 4);
    assert_eq!(outcome.judged_pixels, 44);
    let differences = difference(plane(&data, 64), &s);
    assert_eq!(differences[10], Some(-25.0));
    assert_eq!(differences[20], Some(100.0));
    assert_eq!(differences[40], Some(-25.0));
    assert_eq!(differences[21], None);
}

#[test]
fn pitch_threshold_golden_whole_pitch_minimum_has_no_ghost() {
    let data = row(64, &[(10, 50), (20, 150), (30, 50)]);
    let s = Settings {
        compare: Compare::Minimum,
        rois: vec![FROM_TEN],
        ..settings(10.0)
    };
    let outcome = compare(plane(&data, 64), &s);
    assert_eq!(outcome.packed, [0, 0, 0x08, 0, 0, 0, 0, 0]);
    assert_eq!(difference(plane(&data, 64), &s)[20], Some(100.0));
}

#[test]
fn pitch_threshold_golden_half_pitch_fires_at_exactly_the_threshold() {
    let data = row(64, &[(10, 50), (11, 100), (20, 125), (29, 50), (30, 100)]);
    for (threshold, third_byte) in [(50.0, 0x0c), (50.01, 0x00)] {
        let s = Settings {
            threshold,
            rois: vec![FROM_TEN],
            ..settings(9.5)
        };
        let outcome = compare(plane(&data, 64), &s);
        assert_eq!(
            outcome.packed,
            [0, 0x10, third_byte, 0x02, 0, 0, 0, 0],
            "T = {threshold}"
        );
    }
}

#[test]
fn distance_of_fractional_pitch_is_rounded_once() {
    assert_eq!(distance_q8(1, 9.5), 9 * 256 + 128);
    // 256 * 3 * 7.35 = 5644.8, where three times the rounded distance of one pitch is 5646.
    assert_eq!(distance_q8(3, 7.35), 5645);
    assert_eq!(distance_q8(4, 7.35), 7526);
}

#[test]
fn pitch_threshold_judged_of_whole_pitch_needs_both_neighbours() {
    let data = row(64, &[]);
    let outcome = compare(plane(&data, 64), &settings(10.0));
    assert_eq!(judged(&outcome), (10..=53).collect::<Vec<_>>());
    assert_eq!(outcome.judged_pixels, 44);
}

#[test]
fn pitch_threshold_judged_of_fractional_pitch_needs_one_sample_more() {
    let data = row(64, &[]);
    for match_center in [false, true] {
        let s = Settings {
            match_center,
            ..settings(10.25)
        };
        let outcome = compare(plane(&data, 64), &s);
        assert_eq!(judged(&outcome), (11..=52).collect::<Vec<_>>());
    }
}

#[test]
fn pitch_threshold_judged_below_one_pixel_covers_the_matched_centre() {
    // P = 0, F = 128: the judged rule leaves x - 1 and x + 1 in the row.
    let s = Settings {
        match_center: true,
        ..settings(0.5)
    };
    let outcome = compare(plane(&row(5, &[]), 5), &s);
    assert_eq!(judged(&outcome), [1, 2, 3]);
}

#[test]
fn pitch_threshold_judged_of_frame_too_small_is_nothing() {
    for (width, expected) in [(20, 0), (21, 1)] {
        let data = vec![9; width];
        let outcome = compare(plane(&data, width), &settings(10.0));
        assert_eq!(outcome.judged_pixels, expected);
    }
    let far = settings(1e12);
    assert_eq!(compare(plane(&[0], 1), &far).judged_pixels, 0);
    let off = settings(0.0);
    assert_eq!(compare(plane(&[0; 64], 64), &off).judged_pixels, 0);
    let unknown = settings(-1.0);
    assert_eq!(compare(plane(&[0; 64], 64), &unknown).judged_pixels, 0);
}

#[test]
fn pitch_threshold_judged_in_regions_is_their_union_inside_the_frame() {
    let data = vec![0; 64 * 4];
    let s = Settings {
        rois: vec![[0, 1, 12, 1], [11, 1, 3, 1], [50, 2, 100, 100]],
        ..settings(10.0)
    };
    let outcome = compare(plane(&data, 64), &s);
    let expected: Vec<usize> = (64 + 10..64 + 14)
        .chain(128 + 50..128 + 54)
        .chain(192 + 50..192 + 54)
        .collect();
    assert_eq!(judged(&outcome), expected);
    assert_eq!(outcome.judged_pixels, 12);
}

#[test]
fn pitch_threshold_neighbours_outside_the_region_are_still_read() {
    let data = row(64, &[(20, 100)]);
    let s = Settings {
        rois: vec![[20, 0, 1, 1]],
        ..settings(10.0)
    };
    let outcome = compare(plane(&data, 64), &s);
    assert_eq!((marked(&outcome), outcome.judged_pixels), (vec![20], 1));
}

#[test]
fn pitch_threshold_neighbours_in_adjacent_rows_are_never_read() {
    // Bright rows above and below: a tap past the row would make the ends of row 1 dark.
    let mut data = vec![255; 64 * 3];
    data[64..128].fill(0);
    let outcome = compare(plane(&data, 64), &settings(10.5));
    assert_eq!(outcome.defect_pixels, 0);
}

#[test]
fn pitch_threshold_region_from_seven_to_seventy_keeps_its_last_column() {
    let data = row(128, &[(70, 100)]);
    let s = Settings {
        compare: Compare::Minimum,
        rois: vec![[7, 0, 64, 1]],
        ..settings(5.0)
    };
    assert_eq!(marked(&compare(plane(&data, 128), &s)), [70]);
}

#[test]
fn pitch_threshold_difference_of_whole_range_is_not_truncated() {
    // -255 truncated to 8 bits is +1.
    let mut data = vec![255; 30];
    data[15] = 0;
    let s = Settings {
        threshold: 255.0,
        ..settings(10.0)
    };
    assert_eq!(marked(&compare(plane(&data, 30), &s)), [15]);
    assert_eq!(difference(plane(&data, 30), &s)[15], Some(-255.0));
}

#[test]
fn pitch_threshold_matched_centre_gets_the_neighbours_blur() {
    // P = 2, F = 128, A = 32 (32.5 cut); C = 256*90 + 32*(20 - 180 + 20) = 18560, L = R = 1280.
    let data = [0, 0, 10, 20, 90, 20, 10, 0, 0];
    for kind in [Compare::Average, Compare::Minimum] {
        for (match_center, expected) in [(true, 67.5), (false, 85.0)] {
            let s = Settings {
                compare: kind,
                match_center,
                ..settings(2.5)
            };
            assert_eq!(difference(plane(&data, 9), &s)[4], Some(expected));
        }
    }
}

#[test]
fn pitch_threshold_matched_centre_weight_is_rounded_half_up() {
    // F = 16: F * (256-F) / 512 = 7.5, so A = 8 and C = 256*128 - 8*2*128 = 256*120.
    let data = [0, 0, 0, 0, 128, 0, 0, 0, 0];
    let s = Settings {
        match_center: true,
        ..settings(2.0625)
    };
    assert_eq!(difference(plane(&data, 9), &s)[4], Some(120.0));
}

#[test]
fn pitch_threshold_matched_centre_of_whole_pitch_is_the_plain_centre() {
    let data = noise(64 * 9, 6);
    let plain = settings(7.0);
    let matched = Settings {
        match_center: true,
        ..settings(7.0)
    };
    assert_eq!(
        difference(plane(&data, 64), &plain),
        difference(plane(&data, 64), &matched)
    );
}

#[test]
fn pitch_threshold_matched_centre_of_clean_pattern_has_smaller_residual() {
    let pitch = 7.35;
    let data: Vec<u8> = (0..600)
        .map(|x| {
            let phase = std::f64::consts::TAU * f64::from(x) / pitch;
            (128.0 + 60.0 * phase.cos()).round() as u8
        })
        .collect();
    for kind in [Compare::Average, Compare::Minimum] {
        let residual = |match_center| {
            let s = Settings {
                threshold: 0.0,
                compare: kind,
                match_center,
                ..settings(pitch)
            };
            difference(plane(&data, 600), &s)
                .into_iter()
                .flatten()
                .fold(0.0_f64, |most, d| most.max(d.abs()))
        };
        assert!(
            residual(true) < 2.0 && residual(false) > 4.0,
            "{} and {}",
            residual(true),
            residual(false)
        );
    }
}

#[test]
fn pitch_threshold_polarity_selects_one_sign() {
    let data = row(64, &[(20, 40)]);
    let fired = |polarity, kind| {
        let s = Settings {
            polarity,
            compare: kind,
            ..settings(10.0)
        };
        marked(&compare(plane(&data, 64), &s))
    };
    // The ghosts of a bright dot are dark; the left ghost at 10 is judged too.
    assert_eq!(fired(Polarity::Both, Compare::Average), [10, 20, 30]);
    assert_eq!(fired(Polarity::Bright, Compare::Average), [20]);
    assert_eq!(fired(Polarity::Dark, Compare::Average), [10, 30]);
    assert_eq!(fired(Polarity::Dark, Compare::Minimum), [0_usize; 0]);

    let mut dark = vec![100; 64];
    dark[20] = 60;
    let s = Settings {
        polarity: Polarity::Dark,
        compare: Compare::Minimum,
        ..settings(10.0)
    };
    assert_eq!(marked(&compare(plane(&dark, 64), &s)), [20]);
    assert_eq!(difference(plane(&dark, 64), &s)[20], Some(-40.0));
}

#[test]
fn pitch_threshold_minimum_difference_is_the_smaller_one() {
    let data = row(64, &[(10, 30), (20, 100), (30, 60)]);
    let s = Settings {
        compare: Compare::Minimum,
        ..settings(10.0)
    };
    assert_eq!(difference(plane(&data, 64), &s)[20], Some(40.0));
}

#[test]
fn pitch_threshold_minimum_fires_at_exactly_the_threshold_on_each_side() {
    // The judged sample differs by 40 from one neighbour and by 60 from the other.
    for (left, centre, right) in [
        (60, 100, 40),
        (40, 100, 60),
        (140, 100, 160),
        (160, 100, 140),
    ] {
        for (threshold, expected) in [(40.0, 1), (40.01, 0)] {
            let s = Settings {
                threshold,
                compare: Compare::Minimum,
                ..settings(1.0)
            };
            let outcome = compare(plane(&[left, centre, right], 3), &s);
            assert_eq!(
                outcome.defect_pixels, expected,
                "{left} {right} {threshold}"
            );
        }
    }
}

#[test]
fn pitch_threshold_is_rounded_to_its_nearest_256th() {
    // C - L = C - R = 256*51 - (256-F)*1, against 50.01 * 256 = 12802.56 and 50.001 * 256 =
    // 12800.256.
    let data = [0, 0, 1, 0, 51, 0, 1, 0, 0];
    for (f, threshold, expected) in [
        (3.0, 50.01, 1),
        (2.0, 50.01, 0),
        (0.0, 50.001, 1),
        (0.0, 50.01, 0),
    ] {
        for kind in [Compare::Average, Compare::Minimum] {
            let s = Settings {
                threshold,
                compare: kind,
                rois: vec![[4, 0, 1, 1]],
                ..settings(2.0 + f / 256.0)
            };
            let outcome = compare(plane(&data, 9), &s);
            assert_eq!(outcome.defect_pixels, expected, "F = {f}, T = {threshold}");
        }
    }
}

#[test]
fn pitch_threshold_along_columns_equals_along_rows_transposed() {
    let (width, height) = (33, 40);
    let data = noise(width * height, 7);
    let transposed: Vec<u8> = (0..width * height)
        .map(|at| data[(at % height) * width + at / height])
        .collect();
    for kind in [Compare::Average, Compare::Minimum] {
        let s = Settings {
            pitch_y: 6.3,
            multiples: vec![1, 2],
            compare: kind,
            match_center: true,
            ..settings(0.0)
        };
        let t = Settings {
            pitch_x: 6.3,
            pitch_y: 0.0,
            ..s.clone()
        };
        let down = difference(plane(&data, width), &s);
        let along = difference(plane(&transposed, height), &t);
        for y in 0..height {
            for x in 0..width {
                assert_eq!(down[y * width + x], along[x * height + y]);
            }
        }
    }
}

#[test]
fn pitch_threshold_of_several_comparisons_is_their_union() {
    let (width, height) = (65, 50);
    let data = noise(width * height, 8);
    let every = Settings {
        pitch_y: 5.75,
        multiples: vec![1, 4],
        compare: Compare::Minimum,
        threshold: 60.0,
        ..settings(7.35)
    };
    let all = compare(plane(&data, width), &every);
    let strongest = difference(plane(&data, width), &every);
    let mut mask = vec![false; width * height];
    let mut judged = vec![false; width * height];
    let mut largest = vec![0.0_f64; width * height];
    for multiple in [1, 4] {
        for (pitch_x, pitch_y) in [(7.35, 0.0), (0.0, 5.75)] {
            let one = Settings {
                pitch_x,
                pitch_y,
                multiples: vec![multiple],
                ..every.clone()
            };
            let outcome = compare(plane(&data, width), &one);
            let differences = difference(plane(&data, width), &one);
            assert!(outcome.defect_pixels > 0 && outcome.defect_pixels < all.defect_pixels);
            for at in 0..width * height {
                mask[at] |= outcome.mask[at];
                judged[at] |= outcome.judged[at];
                largest[at] = largest[at].max(differences[at].map_or(0.0, f64::abs));
            }
        }
    }
    assert_eq!((all.mask, all.judged), (mask, judged));
    for at in 0..width * height {
        assert_eq!(strongest[at].map_or(0.0, f64::abs), largest[at]);
    }
}

#[test]
fn pitch_threshold_difference_of_equal_magnitudes_is_the_first_comparison() {
    // Row neighbours 50 below, column neighbours 50 above the centre.
    let mut data = vec![100; 9];
    data[3] = 50;
    data[5] = 50;
    data[1] = 150;
    data[7] = 150;
    let s = Settings {
        pitch_y: 1.0,
        ..settings(1.0)
    };
    assert_eq!(difference(plane(&data, 3), &s)[4], Some(50.0));
    data[1] = 160;
    assert_eq!(difference(plane(&data, 3), &s)[4], Some(-55.0));
}

#[test]
fn pitch_threshold_of_16_bit_samples_compares_in_grey_levels() {
    for depth in [SampleKind::U16Le, SampleKind::U16Be] {
        let geometry = Geometry {
            offset: 6,
            stride: 70,
            pixel_stride: 2,
            width: 30,
            height: 1,
            depth,
        };
        let mut data = vec![0; 76];
        put(&mut data, &geometry, 15, 0, 65535);
        let s = Settings {
            threshold: 65535.0,
            ..settings(10.0)
        };
        let outcome = compare(geometry.samples(&data), &s);
        assert_eq!(marked(&outcome), [15]);
        assert_eq!(difference(geometry.samples(&data), &s)[15], Some(65535.0));
    }
}

#[test]
fn pitch_threshold_of_padded_plane_ignores_the_padding() {
    let (width, height) = (33, 9);
    let samples = noise(width * height, 9);
    let s = Settings {
        pitch_y: 2.5,
        threshold: 70.0,
        match_center: true,
        ..settings(6.25)
    };
    let expected = compare(plane(&samples, width), &s);
    assert!(expected.defect_pixels > 0);
    for poison in [0, 255] {
        let geometry = Geometry {
            offset: 13,
            stride: width + 11,
            pixel_stride: 1,
            width,
            height,
            depth: SampleKind::U8,
        };
        let mut data = vec![poison; 13 + geometry.stride * height];
        for y in 0..height {
            for x in 0..width {
                put(&mut data, &geometry, x, y, samples[y * width + x].into());
            }
        }
        assert_eq!(compare(geometry.samples(&data), &s), expected);
    }
}

#[test]
fn pitch_threshold_with_one_pixel_mutated_differs() {
    let (width, height) = (17, 5);
    let s = settings(4.0);
    let clean = vec![100; width * height];
    assert_eq!(compare(plane(&clean, width), &s).defect_pixels, 0);
    for at in 0..clean.len() {
        let mut data = clean.clone();
        data[at] = 140;
        let outcome = compare(plane(&data, width), &s);
        // The pixel itself if it is judged, else a pixel one pitch away: every pixel is a
        // tap of a judged pixel, because the row is longer than two pitches.
        let x = at % width;
        let expected: Vec<usize> = [x.checked_sub(4), Some(x), Some(x + 4)]
            .into_iter()
            .flatten()
            .filter(|x| (4..=12).contains(x))
            .map(|x| at / width * width + x)
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(marked(&outcome), expected);
        assert_eq!(outcome.packed, pack(&outcome.mask, width, height));
        assert_ne!(outcome.packed, vec![0; 3 * height]);
    }
}

// ---- Borders ------------------------------------------------------------------------------

#[test]
fn pitch_threshold_inward_reads_two_distances_away_on_the_other_side() {
    // D = round(576.512) = 577: P = 2, F = 65. D2 = round(1153.024) = 1153: P2 = 4, F2 = 129, where
    // twice the rounded distance is 1154.
    // x = 0: R = 191·s[2] + 65·s[3] = 0, L = 127·s[4] + 129·s[5] = 127·40 = 5080, C = 25600;
    // the smaller difference is 20520/256. x = 9: L = 0, R = 127·s[5] + 129·s[4] = 129·40 = 5160;
    // the smaller difference is 20440/256.
    let data = row(10, &[(0, 100), (4, 40), (9, 100)]);
    let s = Settings {
        compare: Compare::Minimum,
        inward: true,
        ..settings(2.252)
    };
    let differences = difference(plane(&data, 10), &s);
    assert_eq!(differences[0], Some(80.15625));
    assert_eq!(differences[9], Some(79.84375));
    let outcome = compare(plane(&data, 10), &s);
    assert_eq!(outcome.judged_along, [10, 0]);
}

#[test]
fn pitch_threshold_inward_judges_where_the_replacement_is_inside() {
    // P = 2, P2 = 4. In five samples x = 1 needs s[3] and s[5], x = 3 needs s[1] and s[-1].
    for (n, expected) in [
        (4, vec![]),
        (5, vec![0, 2, 4]),
        (6, vec![0, 1, 2, 3, 4, 5]),
        (7, vec![0, 1, 2, 3, 4, 5, 6]),
    ] {
        let s = Settings {
            inward: true,
            ..settings(2.0)
        };
        assert_eq!(
            judged(&compare(plane(&row(n, &[]), n), &s)),
            expected,
            "{n}"
        );
    }
}

#[test]
fn pitch_threshold_edge_margin_leaves_out_the_end_that_lacks_the_neighbour() {
    // P = 3 in ten samples: 0 to 2 lack the left neighbour, 7 to 9 the right one. Of these the
    // margin leaves 2 and 7.
    let s = Settings {
        inward: true,
        edge_margin: 2,
        ..settings(3.0)
    };
    let data = row(10, &[]);
    assert_eq!(
        judged(&compare(plane(&data, 10), &s)),
        (2..=7).collect::<Vec<_>>()
    );
    // Both neighbours inside: a margin beyond them changes nothing.
    let wide = Settings {
        edge_margin: 9,
        ..s.clone()
    };
    assert_eq!(
        judged(&compare(plane(&data, 10), &wide)),
        (3..=6).collect::<Vec<_>>()
    );
    // Along both axes each comparison judges 6 columns or rows of 10; 4 x 4 pixels have none.
    let both = Settings { pitch_y: 3.0, ..s };
    let outcome = compare(plane(&[0; 100], 10), &both);
    assert_eq!(outcome.judged_along, [60, 60]);
    assert_eq!(outcome.judged_pixels, 84);
}

#[test]
fn pitch_threshold_matched_centre_at_the_edge_clamps() {
    // P = 1, F = 128, A = 32; P2 = 3, F2 = 0. x = 0: C = 256·100 + 32·(100 − 200 + 20) = 23040,
    // R = 128·20 = 2560, L = 256·s[3] = 0: the smaller difference is 20480/256. x = 5 mirrors it.
    let data = row(6, &[(0, 100), (1, 20), (4, 20), (5, 100)]);
    let s = Settings {
        compare: Compare::Minimum,
        match_center: true,
        inward: true,
        ..settings(1.5)
    };
    let differences = difference(plane(&data, 6), &s);
    assert_eq!([differences[0], differences[5]], [Some(80.0); 2]);
}

// ---- Presence -----------------------------------------------------------------------------

/// 16 x 32 samples in four tiles of 8 x 16: 100 everywhere; 90 and 110 in turn (deviation 10); 40;
/// 160. The mean of all tiles is 100.
fn four_tiles() -> Vec<u8> {
    let sample = |x: usize, y: usize| match (x < 8, y < 16) {
        (true, true) => 100,
        (false, true) => [90, 110][x % 2],
        (true, false) => 40,
        (false, false) => 160,
    };
    (0..16 * 32).map(|at| sample(at % 16, at / 16)).collect()
}

/// Judges x = 4 to 11, marks nothing by comparison, and looks for a deviation of 10.
fn presence_settings() -> Settings {
    Settings {
        threshold: 255.0,
        min_contrast: 10.0,
        ..settings(4.0)
    }
}

const AT: [usize; 4] = [4, 8, 16 * 16 + 4, 16 * 16 + 8];

#[test]
fn presence_marks_judged_pixels_of_tiles_below_the_deviation() {
    // A deviation of exactly min-contrast is enough. Three tiles have 4 judged columns of 16 rows.
    let data = four_tiles();
    let s = presence_settings();
    let outcome = compare(plane(&data, 16), &s);
    assert_eq!(outcome.missing_pixels, 3 * 64);
    assert_eq!(outcome.defect_pixels, 3 * 64);
    let differences = difference(plane(&data, 16), &s);
    assert_eq!(
        AT.map(|at| differences[at]),
        [Some(0.0), None, Some(-60.0), Some(60.0)]
    );
    // Not brighter than the mean: dark.
    assert!(differences[4].is_some_and(f64::is_sign_negative));
    assert_eq!(differences[3], None);
    for (min_contrast, missing) in [(0.0, 0), (10.0625, 4 * 64)] {
        let s = Settings {
            min_contrast,
            ..s.clone()
        };
        assert_eq!(compare(plane(&data, 16), &s).missing_pixels, missing);
    }
}

#[test]
fn presence_ignores_polarity_and_sums_up_outside_the_regions() {
    let data = four_tiles();
    for polarity in [Polarity::Bright, Polarity::Dark] {
        let s = Settings {
            polarity,
            rois: vec![[4, 16, 1, 1]],
            ..presence_settings()
        };
        let outcome = compare(plane(&data, 16), &s);
        assert_eq!(marked(&outcome), [16 * 16 + 4]);
        assert_eq!(outcome.missing_pixels, 1);
        let differences = difference(plane(&data, 16), &s);
        assert_eq!(differences[16 * 16 + 4], Some(-60.0));
    }
}

#[test]
fn presence_difference_of_a_half_is_rounded_away_from_zero() {
    // One more in a tile of 128 samples raises that tile's mean by 2/256, that of all four by 0.5/256.
    let mut data = four_tiles();
    data[0] += 1;
    let differences = difference(plane(&data, 16), &presence_settings());
    let q8 = AT.map(|at| differences[at].map(|d| 256.0 * d));
    assert_eq!(q8, [Some(2.0), None, Some(-15361.0), Some(15360.0)]);
}

#[test]
fn presence_of_10_bit_samples_is_that_of_their_upper_8_bits() {
    let geometry = Geometry {
        offset: 2,
        stride: 34,
        pixel_stride: 2,
        width: 16,
        height: 32,
        depth: SampleKind::U16Le,
    };
    let mut data = vec![0; 2 + 34 * 32];
    for (at, &v) in four_tiles().iter().enumerate() {
        // The lower two bits differ from sample to sample.
        let low = (at % 3) as u32;
        put(
            &mut data,
            &geometry,
            at % 16,
            at / 16,
            4 * u32::from(v) + low,
        );
    }
    let s = Settings {
        threshold: 1023.0,
        bit_depth: 10,
        ..presence_settings()
    };
    let differences = difference(geometry.samples(&data), &s);
    assert_eq!(
        AT.map(|at| differences[at]),
        [Some(0.0), None, Some(-60.0), Some(60.0)]
    );
}

#[test]
fn presence_in_overlapping_tiles_takes_the_larger_difference() {
    // Tiles of 8 columns begin at 0, 8 and 12, and have the means 10, 25 and 40; the mean is 25.
    // The comparison marks only x = 11 (10 − 25) and x = 12 (40 − 25).
    let mut s = Settings {
        threshold: 15.0,
        min_contrast: 16.0,
        ..settings(1.0)
    };
    let line = |x: usize| if x < 12 { 10 } else { 40 };
    let data: Vec<u8> = (0..20 * 16).map(|at| line(at % 20)).collect();
    let of_row: Vec<Option<f64>> = difference(plane(&data, 20), &s)[..20].to_vec();
    let expected = |x: usize| match x {
        0 | 19 => None,
        1..=7 => Some(-15.0),
        8..=10 => Some(0.0),
        11 => Some(-15.0),
        _ => Some(15.0),
    };
    assert_eq!(of_row, (0..20).map(expected).collect::<Vec<_>>());
    // Two tiles at 0 and 4 differ by -7.5 and 7.5 from their mean; the first counts in 4 to 7.
    s.threshold = 255.0;
    let line = |x: usize| if x < 8 { 10 } else { 40 };
    let data: Vec<u8> = (0..12 * 16).map(|at| line(at % 12)).collect();
    let of_row = &difference(plane(&data, 12), &s)[1..11];
    assert_eq!(of_row[..7], [Some(-7.5); 7]);
    assert_eq!(of_row[7..], [Some(7.5); 3]);
}

#[test]
fn presence_difference_of_a_comparison_comes_before_an_equal_one_of_a_tile() {
    // Upper tile: 20, and 28 in column 4: mean 21, deviation 2.6. Lower tile: 37. The mean is 29, so
    // the tiles differ by -8 and 8; the comparison at x = 4 by 8, at x = 3 and x = 5 by -4.
    let sample = |x: usize, y: usize| match (x, y < 16) {
        (4, true) => 28,
        (_, true) => 20,
        _ => 37,
    };
    let data: Vec<u8> = (0..8 * 32).map(|at| sample(at % 8, at / 8)).collect();
    let s = Settings {
        threshold: 8.0,
        min_contrast: 3.0,
        ..settings(1.0)
    };
    let differences = difference(plane(&data, 8), &s);
    let upper = [-8.0, -8.0, -8.0, 8.0, -8.0, -8.0].map(Some);
    assert_eq!(differences[1..7], upper);
    assert_eq!(differences[31 * 8 + 1..31 * 8 + 7], [Some(8.0); 6]);
    let outcome = compare(plane(&data, 8), &s);
    assert_eq!((outcome.missing_pixels, outcome.defect_pixels), (192, 192));
}

#[test]
fn contrast_is_the_lower_median_of_the_tiles() {
    // Two tiles of 8 x 16 with the deviations 10 and 4.
    let sample = |x: usize| [[10, 30], [16, 24]][x / 8][x % 2];
    let data: Vec<u8> = (0..16 * 16).map(|at| sample(at % 16)).collect();
    assert_eq!(contrast(plane(&data, 16), &settings(2.0)), Some(4.0));
}

#[test]
fn contrast_needs_the_pattern_along_each_axis_in_use() {
    let data: Vec<u8> = (0..8 * 16).map(|at| [10, 30][at % 2]).collect();
    let see = |data: &[u8], pitch_x, pitch_y| {
        let s = Settings {
            pitch_y,
            ..settings(pitch_x)
        };
        contrast(plane(data, 8), &s)
    };
    assert_eq!(see(&data, 2.0, 0.0), Some(10.0));
    assert_eq!(see(&data, 2.0, 1.0), Some(10.0));
    assert_eq!(see(&data, 0.0, 1.0), Some(10.0));
    // The neighbours at 1 are opposite, those at 2.5 are the mean of both values.
    assert_eq!(see(&data, 1.0, 0.0), None);
    assert_eq!(see(&data, 1.0, 1.0), None);
    assert_eq!(see(&data, 2.5, 0.0), None);
    assert_eq!(see(&data, 0.0, 0.0), None);
    assert_eq!(see(&[7; 128], 2.0, 0.0), None);
    // A checkerboard is opposite one row further on.
    let checkers: Vec<u8> = (0..8 * 16)
        .map(|at| [10, 30][(at % 8 + at / 8) % 2])
        .collect();
    assert_eq!(see(&checkers, 2.0, 2.0), Some(10.0));
    assert_eq!(see(&checkers, 2.0, 1.0), None);
}

#[test]
fn contrast_is_seen_from_a_correlation_of_one_half() {
    // Deviations of the upper row 1, -1, 0, of the lower row 1, 0, -1: 1 / (√2·√2).
    let s = Settings {
        pitch_y: 1.0,
        ..settings(0.0)
    };
    let half = contrast(plane(&[101, 99, 100, 101, 100, 99], 3), &s);
    assert_close(half.expect("a contrast"), (4.0_f64 / 6.0).sqrt());
    // 10, -10, 0 and 10, 1, -11: 90 / √(200·222) = 0.43.
    assert_eq!(contrast(plane(&[110, 90, 100, 110, 101, 89], 3), &s), None);
}

// ---- Comparison along vectors -------------------------------------------------------------

#[test]
fn lattice_along_the_axes_equals_the_pitches() {
    let (width, height) = (43, 37);
    let data = noise(width * height, 11);
    for (compare_with, inward, match_center) in [
        (Compare::Minimum, true, true),
        (Compare::Average, true, false),
        (Compare::Minimum, false, true),
    ] {
        let pitches = Settings {
            pitch_y: 4.75,
            multiples: vec![2, 1],
            compare: compare_with,
            inward,
            match_center,
            edge_margin: 2,
            // Tiles of 16 x 16, of which some are below the deviation of noise.
            min_contrast: 73.0,
            rois: vec![[1, 2, 30, 33], [20, 0, 23, 20]],
            ..settings(6.3)
        };
        let expected = compare(plane(&data, width), &pitches);
        assert!(expected.defect_pixels > 0 && expected.missing_pixels > 0);
        for vectors in [[[6.3, 0.0], [0.0, 4.75]], [[-6.3, 0.0], [0.0, -4.75]]] {
            let lattice = Settings {
                vectors: vectors.to_vec(),
                // They do not count.
                pitch_x: 9.0,
                pitch_y: 0.0,
                ..pitches.clone()
            };
            assert_eq!(compare(plane(&data, width), &lattice), expected);
            let differences = difference(plane(&data, width), &lattice);
            assert_eq!(differences, difference(plane(&data, width), &pitches));
        }
    }
}

/// A frame of 9 x 7 zeros with these samples.
fn spots(set: &[(usize, usize, u8)]) -> Vec<u8> {
    let mut data = vec![0; 9 * 7];
    for &(x, y, value) in set {
        data[9 * y + x] = value;
    }
    data
}

#[test]
fn lattice_neighbours_are_interpolated_along_both_axes() {
    let s = Settings {
        vectors: vec![[2.5, 1.25]],
        ..settings(0.0)
    };
    // The neighbour at +v of (4, 3) lies between (6, 4), (7, 4), (6, 5) and (7, 5); the one at -v between (2, 2), (1, 2),
    // (2, 1) and (1, 1). R = (80 + 40) / 2 * 3 / 4 + (16 + 0) / 2 / 4 = 47; L = 20 / 2 * 3 / 4 + 8 / 2 / 4 = 8.5.
    let data = spots(&[
        (4, 3, 100),
        (6, 4, 80),
        (7, 4, 40),
        (6, 5, 16),
        (2, 2, 20),
        (1, 1, 8),
    ]);
    let at = 9 * 3 + 4;
    let average = difference(plane(&data, 9), &s)[at];
    assert_eq!(average, Some(100.0 - (47.0 + 8.5) / 2.0));
    let minimum = Settings {
        compare: Compare::Minimum,
        ..s.clone()
    };
    assert_eq!(difference(plane(&data, 9), &minimum)[at], Some(53.0));
    // Weights of the centre: A = 32 along x, (64 * 192 + 256) / 512 = 24 along y. 100 * 192 / 256 * 208 / 256.
    let matched = Settings {
        match_center: true,
        ..minimum
    };
    let centre = 100.0 * 192.0 / 256.0 * 208.0 / 256.0;
    assert_eq!(
        difference(plane(&data, 9), &matched)[at],
        Some(centre - 47.0)
    );
    // Columns 3 to 5 and rows 2 to 4 have all samples in the frame.
    let outcome = compare(plane(&data, 9), &s);
    assert_eq!((outcome.judged_pixels, outcome.judged_along), (9, [9, 0]));
}

#[test]
fn lattice_inward_keeps_away_from_each_edge_beyond_which_the_neighbour_lies() {
    let s = Settings {
        vectors: vec![[2.0, 1.0]],
        inward: true,
        edge_margin: 1,
        ..settings(0.0)
    };
    let outcome = compare(plane(&spots(&[]), 9), &s);
    let row = |y: usize| -> Vec<usize> {
        let row = &outcome.judged[9 * y..9 * y + 9];
        (0..9).filter(|&x| row[x]).collect()
    };
    // Row 0 is the row above which the neighbour at -v lies: closer than 1 px.
    assert!(row(0).is_empty());
    // Row 1: from column 2 on both neighbours, up to column 6. Column 1 lacks the left one; the one at +2v is there. Column
    // 7 lacks the right one, and the one at -2v lies above the frame.
    assert_eq!(row(1), [1, 2, 3, 4, 5, 6]);
    assert_eq!(row(3), [1, 2, 3, 4, 5, 6, 7]);
    assert!(row(6).is_empty());
}

#[test]
fn lattice_transposed_or_reversed_marks_the_transposed_or_the_same_pixels() {
    let (width, height) = (33, 40);
    let data = noise(width * height, 7);
    let transposed: Vec<u8> = (0..width * height)
        .map(|at| data[(at % height) * width + at / height])
        .collect();
    let s = Settings {
        vectors: vec![[6.3, -1.75], [2.2, 5.1]],
        multiples: vec![1, 2],
        inward: true,
        match_center: true,
        ..settings(0.0)
    };
    let t = Settings {
        vectors: vec![[1.75, -6.3], [5.1, 2.2]],
        ..s.clone()
    };
    let (own, other) = (
        compare(plane(&data, width), &s),
        compare(plane(&transposed, height), &t),
    );
    assert!(own.defect_pixels > 0);
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let places = (y * width + x, x * height + y);
        assert_eq!(own.mask[places.0], other.mask[places.1]);
        assert_eq!(own.judged[places.0], other.judged[places.1]);
    }
}

// ---- Packed mask --------------------------------------------------------------------------

#[test]
fn pack_of_numpy_examples_equals_numpy() {
    // The example of numpy.packbits' documentation, and rows of 13 bits packed by numpy 2.4.6.
    let example = [true, false, true, false, true, false];
    assert_eq!(pack(&example, 3, 2), [160, 64]);
    let rows = ["0100111110000", "0011011010001", "1110111011000"];
    let mask: Vec<bool> = rows
        .iter()
        .flat_map(|row| row.bytes().map(|bit| bit == b'1'))
        .collect();
    assert_eq!(pack(&mask, 13, 3), [79, 128, 54, 136, 238, 192]);
}

#[test]
fn pack_of_any_mask_follows_the_bit_rule() {
    for (width, height) in SIZES {
        let mask: Vec<bool> = noise(width * height, 10)
            .iter()
            .map(|v| v & 64 > 0)
            .collect();
        let packed = pack(&mask, width, height);
        let stride = width.div_ceil(8);
        assert_eq!(packed.len(), stride * height);
        for y in 0..height {
            for x in 0..stride * 8 {
                let bit = packed[y * stride + (x >> 3)] >> (7 - (x & 7)) & 1;
                let expected = x < width && mask[y * width + x];
                assert_eq!(bit == 1, expected, "({x}, {y}) of {width} x {height}");
            }
        }
    }
}

#[test]
fn pack_with_one_pixel_mutated_differs_in_one_bit() {
    let (width, height) = (13, 3);
    let mut mask = vec![false; width * height];
    for at in 0..mask.len() {
        mask[at] = true;
        let ones: u32 = pack(&mask, width, height)
            .iter()
            .map(|byte| byte.count_ones())
            .sum();
        assert_eq!(ones, 1);
        mask[at] = false;
    }
}

#[test]
fn difference_of_spots_is_that_of_their_pixels() {
    let mut data = vec![100; 40 * 9];
    for y in 3..5 {
        data[y * 40 + 20] = 160;
    }
    data[4 * 40 + 21] = 180;
    let s = Settings {
        compare: Compare::Minimum,
        ..settings(8.0)
    };
    let outcome = compare(plane(&data, 40), &s);
    let differences = difference(plane(&data, 40), &s);
    let marked: Vec<_> = differences.iter().flatten().copied().collect();
    assert_eq!((outcome.defect_pixels, marked), (3, vec![60.0, 60.0, 80.0]));
}

#[test]
fn ignored_pixels_of_a_triangle_by_hand() {
    // The slanted edge runs from (4, 0) to (0, 4): the centres (0.5, 3.5), (1.5, 2.5), (2.5, 1.5) and
    // (3.5, 0.5) lie on it, and a right edge is outside.
    let triangle = vec![0.0, 0.0, 4.0, 0.0, 0.0, 4.0];
    let rows = |polygon: &Vec<f64>| {
        let pixels =
            clinspect_testkit::oracle::ignore::ignored(std::slice::from_ref(polygon), 5, 0, 4);
        let row = |row: &[bool]| row.iter().map(|&p| if p { '#' } else { '.' }).collect();
        pixels.chunks(5).map(row).collect::<Vec<String>>()
    };
    assert_eq!(rows(&triangle), ["###..", "##...", "#....", "....."]);
    // From the other side the same edge is a left edge, and its centres are inside.
    let other = vec![4.0, 0.0, 4.0, 4.0, 0.0, 4.0];
    assert_eq!(rows(&other), ["...#.", "..##.", ".###.", "####."]);
}

// ---- What cameras send --------------------------------------------------------------------

#[test]
fn packed_samples_are_those_by_hand() {
    let bytes = [0x34, 0x12, 0xab];
    for (format, by_hand) in [
        ("Mono12p", [0x234, 0xab1]),
        ("Mono12Packed", [0x342, 0xab1]),
        ("Mono10Packed", [0xd2, 0x2ad]),
    ] {
        assert_eq!(
            [0, 1].map(|x| sample(&bytes, format, x)),
            by_hand,
            "{format}"
        );
    }
    let bytes = [1, 2, 3, 4, 5];
    let samples = [0, 1, 2, 3].map(|x| sample(&bytes, "Mono10p", x));
    assert_eq!(samples, [0x201, 0x0302 >> 2, 0x0403 >> 4, 0x0504 >> 6]);
}

fn bayer(samples: Samples<'_>, gradient: bool) -> Bayer<'_> {
    Bayer {
        samples,
        bits: 8,
        pattern: "rggb",
        gradient,
    }
}

#[test]
fn bilinear_colours_are_those_by_hand() {
    let data = [
        10, 20, 31, 40, //
        50, 60, 70, 80, //
        90, 100, 110, 120, //
        130, 140, 150, 160,
    ];
    let picture = bayer(plane(&data, 4), false);
    // The corner's neighbours are mirrored: 20 twice and 50 twice, 60 four times.
    assert_eq!(picture.pixel(0, 0), [10, 35, 60]);
    // (10 + 31 + 1) / 2; 60 below, twice.
    assert_eq!(picture.pixel(1, 0), [21, 20, 60]);
    // (10 + 31 + 90 + 110 + 2) / 4 and (50 + 70 + 20 + 100 + 2) / 4.
    assert_eq!(picture.pixel(1, 1), [60, 60, 60]);
    // (60 + 140 + 1) / 2.
    assert_eq!(picture.pixel(1, 2), [100, 100, 100]);
    // Above 120, twice; left 150, twice; diagonal 110 four times.
    assert_eq!(picture.pixel(3, 3), [110, 135, 160]);
    assert_eq!(
        picture.luma(0, 0),
        (77 * 10 + 150 * 35 + 29 * 60 + 128) / 256
    );
    let first_green = Bayer {
        pattern: "gbrg",
        ..picture
    };
    assert_eq!(first_green.pixel(0, 0), [50, 10, 20]);
}

/// Malvar, He and Cutler 2004, figure 2, times 2: the weights of a missing colour in 1/16.
#[test]
fn gradient_weights_are_those_published() {
    let cross = [
        [0, 0, -2, 0, 0],
        [0, 0, 4, 0, 0],
        [-2, 4, 8, 4, -2],
        [0, 0, 4, 0, 0],
        [0, 0, -2, 0, 0],
    ];
    let row = [
        [0, 0, 1, 0, 0],
        [0, -2, 0, -2, 0],
        [-2, 8, 10, 8, -2],
        [0, -2, 0, -2, 0],
        [0, 0, 1, 0, 0],
    ];
    let column: [[i32; 5]; 5] = std::array::from_fn(|y| std::array::from_fn(|x| row[x][y]));
    let diagonal = [
        [0, 0, -3, 0, 0],
        [0, 4, 0, 4, 0],
        [-3, 0, 12, 0, -3],
        [0, 4, 0, 4, 0],
        [0, 0, -3, 0, 0],
    ];
    let [red, green, blue] = [0, 1, 2];
    for (place, component, weights) in [
        ([4, 4], green, cross),
        ([4, 4], blue, diagonal),
        ([5, 5], green, cross),
        ([5, 5], red, diagonal),
        ([5, 4], red, row),
        ([5, 4], blue, column),
        ([4, 5], red, column),
        ([4, 5], blue, row),
    ] {
        let [x, y]: [usize; 2] = place;
        for (dy, weights) in weights.iter().enumerate() {
            for (dx, &weight) in weights.iter().enumerate() {
                // An impulse of 16 over an even 64 shows the weight.
                let mut data = vec![64; 100];
                data[(y + dy - 2) * 10 + x + dx - 2] += 16;
                let value = bayer(plane(&data, 10), true).pixel(x, y)[component];
                assert_eq!(value as i32 - 64, weight, "{place:?} {component} {dx} {dy}");
            }
        }
    }
}

#[test]
fn gradient_is_rounded_clipped_and_mirrored() {
    let mut data = vec![0; 100];
    data[4 * 10 + 4] = 255;
    let picture = bayer(plane(&data, 10), true);
    // -3 * 255 / 16 is clipped, (8 * 255 + 8) / 16 is rounded half up.
    assert_eq!(picture.pixel(4, 4), [255, 128, 191]);
    assert_eq!(picture.pixel(6, 4), [0, 0, 0]);
    let data = [0, 255, 0, 255, 0, 255, 0, 255, 0];
    let picture = bayer(plane(&data, 3), true);
    // All green samples are 255: (8 * 0 + 16 * 255) / 16 is 255, with the mirrored reds of 0.
    assert_eq!(picture.pixel(0, 0), [0, 255, 0]);
    // Red in the row: (10 * 255 - 8 * 255 - 4 * 255 + 2 * 255) / 16, where (-1, 0) is (1, 0) and (3, 0) is (1, 0).
    assert_eq!(picture.pixel(1, 0), [0, 255, 0]);
}

#[test]
fn deep_samples_are_read_to_their_depth() {
    let data: Vec<u8> = [0xf123_u16, 0x0456, 0x0789, 0x0abc]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect();
    let samples = Samples {
        stride: 4,
        pixel_stride: 2,
        width: 2,
        height: 2,
        depth: SampleKind::U16Be,
        ..plane(&data, 4)
    };
    let picture = Bayer {
        bits: 12,
        ..bayer(samples, false)
    };
    // The bits above the depth are ignored. Green: twice 0x456 and twice 0x789.
    assert_eq!(
        picture.pixel(0, 0),
        [0x123, (0x456_u32 + 0x789).div_ceil(2), 0xabc]
    );
}
