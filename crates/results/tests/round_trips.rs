//! Results keep every bit on the way through metas, events and the text of an event (proptest).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_core::statistics::Statistics;
use clinspect_results::{
    AlignStep, Alignment, BlindLimit, Defect, DefectResult, HistogramResult, Part, Parts, Unplaced,
    Verdict,
};
use proptest::{collection::vec, prelude::*, test_runner::RngSeed};

/// The seed is fixed, so that a failure can be repeated.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 300,
        rng_seed: RngSeed::Fixed(15),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Any bits, also those of NaN.
fn float() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits)
}

fn double() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits)
}

fn any_defect() -> impl Strategy<Value = Defect> {
    (
        (any::<[i32; 2]>(), any::<[u32; 3]>(), any::<i32>()),
        (any::<u32>(), any::<[u16; 2]>(), any::<u32>()),
        (vec(float(), 7)),
    )
        .prop_map(|(shape, label, floats)| {
            let ([x, y], [width, height, area], polarity) = shape;
            let (id, [class, flags], boundary_length) = label;
            Defect {
                x,
                y,
                width,
                height,
                area,
                centroid_x: floats[0],
                centroid_y: floats[1],
                mean_difference: floats[2],
                peak_difference: floats[3],
                polarity,
                id,
                class,
                flags,
                major_axis: floats[4],
                minor_axis: floats[5],
                orientation: floats[6],
                boundary_length,
            }
        })
}

/// A name as a class may have it, with letters that a structure's text must escape.
fn name() -> impl Strategy<Value = String> {
    vec(
        prop::sample::select(vec!['a', 'ü', ' ', '"', '\\', ',', '=']),
        1..5,
    )
    .prop_map(String::from_iter)
}

/// Any numbers, also contradictory ones.
fn any_result() -> impl Strategy<Value = DefectResult> {
    // Masks are buffers, which GStreamer must be ready for.
    start();
    (
        (any::<[u64; 9]>(), any::<[u32; 2]>(), vec(double(), 6)),
        (vec(any_defect(), 0..4), vec(name(), 0..3), any::<bool>()),
        (
            prop::sample::select(Verdict::ALL.to_vec()),
            any::<[bool; 3]>(),
        ),
    )
        .prop_map(
            |(numbers, lists, (verdict, [has_mask, has_ignored, corrupted]))| {
                let (counts, [width, height], lengths) = numbers;
                let (defects, class_names, overflow) = lists;
                let mask =
                    |is_there: bool, byte: u8| is_there.then(|| gst::Buffer::from_slice([byte]));
                DefectResult {
                    element: "front \"left\"; ü\n".into(),
                    frame_number: counts[0],
                    web: counts[1],
                    first_line: counts[2],
                    width,
                    height,
                    mm_per_pixel_x: lengths[0],
                    mm_per_pixel_y: lengths[1],
                    pitch_x: lengths[2],
                    pitch_y: lengths[3],
                    lattice: lengths[..(counts[0] % 3) as usize]
                        .iter()
                        .map(|&l| [l, -l])
                        .collect(),
                    threshold: lengths[4],
                    mean_level: lengths[5],
                    alignment: has_ignored.then(|| Alignment {
                        shift_x: lengths[0],
                        shift_y: lengths[1],
                        match_score: lengths[2],
                        matched: overflow,
                        transform: [0, 1, 2, 3, 4, 5].map(|n| lengths[n]),
                        misfit: lengths[3],
                        step: AlignStep::Affine,
                        largest_local_shift: lengths[4],
                    }),
                    parts: has_mask.then(|| Parts {
                        least: width,
                        most: height,
                        parts: (0..counts[1] % 3)
                            .map(|n| Part {
                                x: lengths[0],
                                y: lengths[1],
                                angle: lengths[2],
                                scale: lengths[3],
                                score: lengths[4],
                                inside: lengths[5],
                                poses: height,
                                is_cut: corrupted,
                                judged_pixels: counts[3],
                                defect_pixels: counts[6].wrapping_add(n),
                                verdict,
                            })
                            .collect(),
                        other: overflow.then_some(lengths[0]),
                    }),
                    training: (width % 2 == 0 && height > 0).then_some([width, height]),
                    learning: (width % 3 == 0 && height > 0).then_some([width, height]),
                    blind: (width % 5 == 0).then(|| BlindLimit {
                        name: "threshold.red".into(),
                        marks: lengths[1],
                        reach: lengths[2],
                    }),
                    unplaced: (height % 3 == 0).then_some(Unplaced::Unmatched),
                    judged_pixels: counts[3],
                    judged_x: counts[4],
                    judged_y: counts[5],
                    defect_pixels: counts[6],
                    missing_pixels: counts[7],
                    corrupted,
                    is_moved: false,
                    verdict,
                    defects,
                    overflow,
                    channels: class_names.clone(),
                    class_names,
                    open_area: counts[8],
                    mask: mask(has_mask, 1),
                    ignored: mask(has_ignored, 2),
                }
            },
        )
}

/// A strip with defects that a sender could have found in it.
fn strip() -> impl Strategy<Value = DefectResult> {
    // Continued, cut, and a level.
    let flags = (0..4_u16, 0..32_u16).prop_map(|(cut, level)| cut | level << Defect::LEVEL_SHIFT);
    let defect = (
        (0..40_i32, -50..30_i32, 1..8_u32, 1..60_u32),
        (1..=100_u32, 0..=4_u32, -1..=1_i32, flags),
        (vec(-1e6..1e6_f32, 5), vec(0.0..1e6_f32, 2), 0..=4_u16),
    );
    (
        any_result(),
        (0..1_u64 << 40, 1..=60_u32, vec(0.0..1e3_f64, 6)),
        vec(defect, 0..6),
    )
        .prop_map(|(result, (lines, height, lengths), defects)| {
            let (width, first_line) = (48, 50 + lines);
            let names = result.class_names.len() as u16;
            let mut marked = 0;
            let defects: Vec<Defect> = (1..)
                .zip(defects)
                .map(|(id, (shape, numbers, (floats, axes, class)))| {
                    let (x, y, width, rows) = shape;
                    let (share, sides, polarity, flags) = numbers;
                    let rows = rows.min((height as i32 - y).max(1) as u32);
                    let y = y.min(height as i32 - rows as i32);
                    let area = (width * rows * share / 100).max(1);
                    // A defect that began above may have all these pixels there.
                    let above = width * (-y).clamp(0, rows as i32) as u32;
                    marked += u64::from(area.saturating_sub(above));
                    Defect {
                        x,
                        y,
                        width,
                        height: rows,
                        area,
                        centroid_x: floats[0],
                        centroid_y: floats[1],
                        mean_difference: floats[2],
                        peak_difference: floats[3],
                        polarity,
                        id: id * 7,
                        class: if class == 4 {
                            u16::MAX
                        } else {
                            class.min(names)
                        },
                        flags,
                        major_axis: axes[0].max(axes[1]),
                        minor_axis: axes[0].min(axes[1]),
                        orientation: floats[4],
                        boundary_length: sides * area,
                    }
                })
                .collect();
            let pixels = u64::from(width) * u64::from(height);
            let defect_pixels = marked.min(pixels);
            // Leave out defects that have no room in the strip.
            let fits = marked <= pixels;
            DefectResult {
                first_line,
                width,
                height,
                mm_per_pixel_x: lengths[0],
                mm_per_pixel_y: lengths[1],
                pitch_x: lengths[2],
                pitch_y: lengths[3],
                lattice: vec![[lengths[2], -1.0]],
                threshold: lengths[4],
                mean_level: lengths[5],
                alignment: result.overflow.then(|| Alignment {
                    shift_x: -lengths[0],
                    shift_y: lengths[1],
                    match_score: 0.75,
                    matched: true,
                    transform: [0, 1, 2, 3, 4, 5].map(|n| lengths[n] - 500.0),
                    misfit: lengths[2],
                    step: AlignStep::Start,
                    largest_local_shift: lengths[3],
                }),
                judged_pixels: pixels,
                judged_x: pixels,
                judged_y: 0,
                defect_pixels,
                missing_pixels: defect_pixels / 2,
                parts: None,
                // A frame of a training is not judged.
                training: None,
                learning: result.learning.map(|[good, all]| [good.min(all), all]),
                verdict: if height % 2 == 0 {
                    Verdict::None
                } else {
                    Verdict::Fail
                },
                blind: (height % 2 == 0).then(|| BlindLimit {
                    name: "residual-33".into(),
                    marks: lengths[0] + 1.0,
                    reach: lengths[0],
                }),
                unplaced: None,
                corrupted: false,
                open_area: result.open_area % (u64::from(width) * (first_line + 1)),
                defects: if fits { defects } else { Vec::new() },
                mask: None,
                ignored: None,
                ..result
            }
        })
}

/// The text of a result shows every bit: two NaN compare as equal, two zeros of different signs do
/// not. Floats of defects are compared by their bits.
fn bits(result: &DefectResult) -> (String, Vec<[u32; 7]>) {
    let floats = |d: &Defect| {
        [
            d.centroid_x,
            d.centroid_y,
            d.mean_difference,
            d.peak_difference,
            d.major_axis,
            d.minor_axis,
            d.orientation,
        ]
        .map(f32::to_bits)
    };
    let defects = result.defects.iter().map(floats).collect();
    (format!("{result:?}"), defects)
}

fn start() {
    gst::init().unwrap();
    clinspect_results::register();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn meta_keeps_every_bit(sent in any_result()) {
        start();
        let mut buffer = gst::Buffer::new();
        sent.attach(buffer.make_mut()).unwrap();
        let read = DefectResult::read(&buffer);
        prop_assert_eq!(read.len(), 1);
        prop_assert_eq!(bits(&read[0]), bits(&sent));
    }

    #[test]
    fn regions_lie_in_the_frame(sent in any_result()) {
        start();
        let mut buffer = gst::Buffer::new();
        sent.attach(buffer.make_mut()).unwrap();
        for region in buffer.iter_meta::<gst_video::VideoRegionOfInterestMeta>() {
            let (x, y, width, height) = region.rect();
            prop_assert!(width > 0 && u64::from(x) + u64::from(width) <= u64::from(sent.width));
            prop_assert!(height > 0 && u64::from(y) + u64::from(height) <= u64::from(sent.height));
        }
    }

    #[test]
    fn event_of_a_strip_keeps_every_bit_also_as_text(sent in strip()) {
        start();
        let event = sent.to_event();
        let text = event.structure().unwrap().to_string();
        let through_text = gst::event::CustomDownstream::new(text.parse::<gst::Structure>().unwrap());
        for event in [event, through_text] {
            let read = DefectResult::from_event(&event);
            prop_assert_eq!(read.as_ref().map(bits), Some(bits(&sent)));
        }
    }
}

/// The fields of a meta of version 1, and a record, as the first release wrote them.
fn version_1() -> (gst::Structure, Vec<u8>) {
    let fields = "GstClDefectMeta, version=(uint)1, element=(string)p, frame-number=(guint64)7, \
                  width=(uint)16, height=(uint)4, pitch-x=(double)7.35, pitch-y=(double)0, \
                  threshold=(double)12, judged-pixels=(guint64)30, defect-pixels=(guint64)2, \
                  defect-count=(uint)1, overflow=(boolean)false, verdict=(string)fail";
    #[rustfmt::skip]
    let record = [
        6, 0, 0, 0,  0, 0, 0, 0,  2, 0, 0, 0,  1, 0, 0, 0,  2, 0, 0, 0,
        0, 0, 0xe0, 0x40,  0, 0, 0, 0x3f, // 7, 0.5
        0, 0, 0xc0, 0xc1,  0, 0, 0xf0, 0xc1, // -24, -30
        0xff, 0xff, 0xff, 0xff,
    ];
    (fields.parse().unwrap(), record.to_vec())
}

#[test]
fn results_of_version_1_are_read_from_metas_and_events() {
    start();
    let expected = DefectResult {
        element: "p".into(),
        frame_number: 7,
        width: 16,
        height: 4,
        pitch_x: 7.35,
        threshold: 12.0,
        judged_pixels: 30,
        defect_pixels: 2,
        verdict: Verdict::Fail,
        defects: vec![Defect {
            x: 6,
            width: 2,
            height: 1,
            area: 2,
            centroid_x: 7.0,
            centroid_y: 0.5,
            mean_difference: -24.0,
            peak_difference: -30.0,
            polarity: -1,
            ..Defect::default()
        }],
        ..DefectResult::default()
    };
    let (mut fields, record) = version_1();
    let mut buffer = gst::Buffer::new();
    let mut meta = gst::meta::CustomMeta::add(buffer.make_mut(), "GstClDefectMeta").unwrap();
    for (name, value) in fields.iter() {
        meta.mut_structure().set_value(name, value.clone());
    }
    let data = gst::glib::Bytes::from_owned(record.clone());
    meta.mut_structure().set("defects-data", data);
    assert_eq!(DefectResult::read(&buffer), std::slice::from_ref(&expected));

    let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
    fields.set("defects-data", hex);
    let event = gst::event::CustomDownstream::new(fields);
    assert_eq!(DefectResult::from_event(&event), Some(expected));
}

#[test]
fn histogram_keeps_its_alarms() {
    start();
    for alarms in [&[][..], &["over-exposed"], &["over-exposed", "lamp-drift"]] {
        let sent = HistogramResult {
            element: "h".into(),
            frame_number: 3,
            format: "GRAY8".into(),
            width: 4,
            height: 2,
            roi: [0, 0, 4, 2],
            bit_depth: 8,
            bins: 2,
            counts: vec![5, 3],
            statistics: vec![Statistics::default()],
            alarms: alarms.iter().map(|&name| name.into()).collect(),
            corrupted: true,
        };
        let mut buffer = gst::Buffer::new();
        sent.attach(buffer.get_mut().unwrap()).unwrap();
        assert_eq!(HistogramResult::read(&buffer), [sent]);
    }
}

#[test]
fn component_of_a_defect_selects_its_channel() {
    let defect = |component: Option<usize>, level: u16| Defect {
        flags: Defect::component_flags(component) | level << Defect::LEVEL_SHIFT,
        ..Defect::default()
    };
    let with = |channels: &[&str]| DefectResult {
        channels: channels.iter().map(|&name| name.into()).collect(),
        ..DefectResult::default()
    };
    let components = with(&["red", "green", "blue"]);
    assert_eq!(components.channel(&defect(Some(1), 0)), Some("green"));
    assert_eq!(components.channel(&defect(Some(2), 3)), Some("blue"));
    let both = with(&["red a", "red b", "green a", "green b", "blue a", "blue b"]);
    assert_eq!(both.channel(&defect(Some(1), 1)), Some("green b"));
    assert_eq!(both.channel(&defect(Some(2), 0)), Some("blue a"));
    assert_eq!(with(&["a", "b"]).channel(&defect(None, 1)), Some("b"));
    for channels in [&[][..], &["a"], &["a", "b"]] {
        assert_eq!(with(channels).channel(&defect(Some(2), 9)), None);
    }
}
