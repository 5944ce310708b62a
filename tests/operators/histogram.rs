//! `operators::Histogram`: every strategy, format, region and number of bins compared with the
//! reference, and the mistakes of published kernels.

use clinspect_core::ClError;
use clinspect_core::region::Rect;
use clinspect_opencl::frame::{FORMATS, layout_of};
use clinspect_operators::{Histogram, HistogramSettings, Strategy};
use gst_video::VideoFormat as Format;

use crate::{
    SIZES,
    content::Content,
    device,
    frames::{ARRANGEMENTS, Arrangement, Frame, PADDED, PLAIN, Stride},
    histogram_job::{ALL, CHOICES, CountCase, assert_bins, check, count, operator},
    oracle,
};

/// Formats that differ in period, planes, patterns or samples.
const KINDS: [Format; 9] = [
    Format::Gray8,
    Format::Rgb,
    Format::Bgrx,
    Format::Argb,
    Format::I420,
    Format::Nv12,
    Format::Uyvy,
    Format::Gray16Le,
    Format::Gray16Be,
];

fn all_of(bins: usize) -> CountCase {
    CountCase { bins, ..ALL }
}

#[test]
fn histogram_every_format_and_size_equals_reference() {
    let Some(device) = device::open() else { return };
    for (f, &format) in FORMATS.iter().enumerate() {
        for (i, &size) in SIZES.iter().enumerate() {
            let arrangement = ARRANGEMENTS[(f + i) % ARRANGEMENTS.len()];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            check(&device, &input, &ALL, &CHOICES);
        }
    }
}

#[test]
fn histogram_every_arrangement_of_memory_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in KINDS {
        for size in [[15, 1], [1, 15], [65, 7]] {
            for arrangement in ARRANGEMENTS {
                let input = Frame::showing(format, size, arrangement, Content::Random, 0);
                check(&device, &input, &ALL, &CHOICES);
            }
        }
    }
}

#[test]
fn histogram_every_content_equals_reference() {
    let Some(device) = device::open() else { return };
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::Rgbx,
        Format::Nv12,
        Format::Gray16Be,
    ] {
        for content in Content::ALL {
            // Rows of whole and partial steps, enough for the spread test's probes.
            for size in [[192, 64], [259, 67]] {
                let input = Frame::showing(format, size, PADDED, content, 0);
                check(&device, &input, &ALL, &CHOICES);
            }
        }
    }
}

#[test]
fn histogram_every_number_of_bins_equals_reference() {
    let Some(device) = device::open() else { return };
    for (format, deepest) in [(Format::Gray8, 8), (Format::Rgb, 8), (Format::Gray16Le, 16)] {
        let input = Frame::showing(format, [67, 21], PADDED, Content::Random, 0);
        for log2 in 0..=deepest {
            check(&device, &input, &all_of(1 << log2), &CHOICES);
        }
    }
}

#[test]
fn histogram_bit_depth_samples_beyond_it_count_in_the_last_bin() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray16Le, Format::Gray16Be] {
        for bit_depth in [8, 10, 12, 14, 16] {
            for content in [Content::Random, Content::Natural, Content::BeyondDepth] {
                let input = Frame::showing(format, [67, 9], PADDED, content, bit_depth);
                for bins in [16, 1 << bit_depth] {
                    let region = [0; 4];
                    let wanted = CountCase {
                        bins,
                        bit_depth,
                        region,
                    };
                    check(&device, &input, &wanted, &CHOICES);
                }
            }
        }
    }
}

#[test]
fn histogram_region_grows_to_whole_chroma_samples() {
    let Some(device) = device::open() else { return };
    for format in KINDS
        .into_iter()
        .chain([Format::Y42b, Format::Yuv9, Format::Y41b, Format::Yuy2])
    {
        let input = Frame::showing(format, [35, 13], PADDED, Content::Random, 0);
        for region in [
            [0, 0, 1, 1],
            [34, 12, 1, 1],
            [1, 1, 1, 1],
            [3, 5, 7, 3],
            [1, 0, 33, 13],
            [2, 2, 20, 6],
            [33, 0, 2, 13],
            [0, 12, 35, 1],
        ] {
            check(&device, &input, &CountCase { region, ..ALL }, &CHOICES);
        }
    }
}

#[test]
fn histogram_counters_restart_at_every_frame() {
    let Some(device) = device::open() else { return };
    for format in KINDS {
        for choice in CHOICES {
            let frames = [
                Content::Constant(255),
                Content::Random,
                Content::Constant(0),
            ]
            .map(|content| Frame::showing(format, [131, 33], PLAIN, content, 0));
            let Some(mut histogram) = operator(&device, &frames[0], &ALL, choice) else {
                continue;
            };
            for index in [0, 1, 2, 1, 0] {
                let bins = count(&device, &mut histogram, &frames[index]);
                assert_bins(&bins, &ALL.expected(&frames[index]), || {
                    format!("{format} {choice:?}, frame {index}")
                });
            }
        }
    }
}

// ---- mistakes that published kernels make ---------------------------------------------------

#[test]
fn histogram_constant_block_does_not_wrap_at_256_samples() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::Gray16Le] {
        for level in [0, 128, 255] {
            for size in [[256, 1], [16, 16], [512, 128]] {
                let input = Frame::showing(format, size, PLAIN, Content::Constant(level), 0);
                check(&device, &input, &ALL, &CHOICES);
            }
        }
    }
}

#[test]
fn histogram_length_multiple_of_the_chunk_or_not_counts_each_sample_once() {
    let Some(device) = device::open() else { return };
    // Around the kernels' steps of 16, 24, 32 and 48 bytes, and around whole work-groups of steps.
    for width in [16, 24, 31, 32, 33, 47, 48, 49, 96, 256, 1024, 1025] {
        for format in [Format::Gray8, Format::Rgb, Format::Rgba, Format::Gray16Le] {
            for height in [1, 4] {
                let input = Frame::showing(format, [width, height], PLAIN, Content::Random, 0);
                check(&device, &input, &ALL, &CHOICES);
            }
        }
    }
}

#[test]
fn histogram_first_frame_of_a_new_operator_starts_from_zero() {
    let Some(device) = device::open() else { return };
    for choice in CHOICES {
        let dirty = Frame::showing(Format::Rgb, [131, 65], PLAIN, Content::Random, 0);
        let clean = Frame::showing(Format::Rgb, [131, 65], PLAIN, Content::Constant(255), 0);
        for _ in 0..3 {
            // The second operator's memory may hold the counts of the first.
            if let Some(mut first) = operator(&device, &dirty, &ALL, choice) {
                count(&device, &mut first, &dirty);
            }
            let Some(mut second) = operator(&device, &clean, &ALL, choice) else {
                continue;
            };
            let bins = count(&device, &mut second, &clean);
            assert_bins(&bins, &ALL.expected(&clean), || format!("{choice:?}"));
        }
    }
}

#[test]
fn histogram_many_work_groups_meet_in_one_result() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::Gray16Be] {
        let input = Frame::showing(format, [1021, 517], PADDED, Content::HalfRandom, 0);
        check(&device, &input, &ALL, &CHOICES);
    }
}

#[test]
fn histogram_rows_without_gaps_count_every_byte_once() {
    let Some(device) = device::open() else { return };
    // On GPUs such rows are one run of vectors, several for each work-item, and of bytes before and after
    // them. A region of whole rows starts its run at another byte.
    for format in [
        Format::Gray8,
        Format::Rgb,
        Format::Xrgb,
        Format::Uyvy,
        Format::Nv12,
    ] {
        for (width, before) in [(1026, 0), (1026, 3), (1027, 5)] {
            let arrangement = Arrangement {
                stride: Stride::Padded(0),
                before,
                ..PLAIN
            };
            let size = [width, 515];
            let input = Frame::showing(format, size, arrangement, Content::Random, 0);
            let rows = CountCase {
                region: [0, 6, width as u32, 400],
                ..all_of(64)
            };
            let choices = [(Strategy::Auto, false), (Strategy::Banked, false)];
            check(&device, &input, &ALL, &choices);
            check(&device, &input, &rows, &choices);
        }
    }
}

#[test]
fn histogram_run_broken_by_one_sample_counts_it() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::Nv12, Format::Rgba] {
        // Row y differs in one sample, and every sample of a step differs in some row.
        let size = [96, 96];
        let mut input = Frame::showing(format, size, PLAIN, Content::Constant(128), 0);
        for component in 0..input.component_count() {
            let geometry = input.geometry(component);
            for y in (component..geometry.height).step_by(input.component_count()) {
                oracle::put(&mut input.bytes, &geometry, y % geometry.width, y, 37);
            }
        }
        check(&device, &input, &ALL, &CHOICES);
    }
}

#[test]
fn histogram_runs_of_every_length_are_counted() {
    let Some(device) = device::open() else { return };
    for format in [Format::Gray8, Format::Rgb, Format::Nv12, Format::Rgba] {
        let mut input = Frame::showing(format, [131, 131], PLAIN, Content::Random, 0);
        for component in 0..input.component_count() {
            let geometry = input.geometry(component);
            for y in 0..geometry.height {
                for x in 0..y.min(geometry.width) {
                    let level = 200 + component as u32;
                    oracle::put(&mut input.bytes, &geometry, x, y, level);
                }
            }
        }
        check(&device, &input, &ALL, &CHOICES);
    }
}

// ---- refusals -------------------------------------------------------------------------------

#[test]
fn histogram_settings_that_mean_nothing_are_refused() {
    let Some(device) = device::open() else { return };
    let refused = |format: Format, bins: usize, bit_depth: u32, word: &str| {
        let input = Frame::poisoned(format, [9, 9], PLAIN, 0);
        let wanted = CountCase {
            bins,
            bit_depth,
            ..ALL
        };
        let settings = wanted.settings(&input, (Strategy::Auto, false));
        let layout = layout_of(&input.info).unwrap();
        match Histogram::new(&device, &layout, &settings) {
            Err(ClError::Refused(text)) => assert!(text.contains(word), "{text}"),
            other => panic!("{settings:?}: {other:?} is no refusal"),
        }
    };
    for bins in [0, 3, 255, 257, 512, usize::MAX] {
        refused(Format::Gray8, bins, 0, "bins");
    }
    refused(Format::Gray16Le, 1 << 17, 0, "bins");
    refused(Format::Gray16Le, 2048, 10, "bins");
    refused(Format::Gray16Le, 256, 17, "bit-depth");
    refused(Format::Gray8, 256, 10, "bit-depth");
}

#[test]
fn histogram_region_that_could_overflow_a_counter_is_refused() {
    let Some(device) = device::open() else { return };
    // In one buffer, GStreamer itself refuses such a frame.
    let mut layout = layout_of(&Frame::poisoned(Format::Gray8, [9, 9], PLAIN, 0).info).unwrap();
    (layout.width, layout.height) = (65_537, 65_536);
    let settings = HistogramSettings {
        bins: 256,
        bit_depth: 0,
        region: Rect::new(0, 0, 65_537, 65_536),
        strategy: Strategy::Auto,
        image: false,
    };
    match Histogram::new(&device, &layout, &settings) {
        Err(ClError::Refused(text)) => assert!(text.contains("overflow"), "{text}"),
        other => panic!("{other:?} is no refusal"),
    }
}
