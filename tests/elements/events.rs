//! Results as events, sent before each buffer; `clmaskunpack` turns them into metas.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gstclinspect::results::{AlignStep, Alignment, Defect, DefectResult, MOST_DEFECTS, Verdict};
use rand::{Rng, SeedableRng};

use crate::{
    defects::{assert_records, assert_regions},
    mask_unpack::{bitmask, buffer},
    panels::{RECOMMENDED, spotted},
    support::{Rig, buffer_of, caps_of, constant, register, start},
};

const SIZE: [usize; 2] = [131, 79];
/// An empty list of frame numbers.
const NONE: [u64; 0] = [];

/// Events (`E`) and buffers (`B`) on a pad in order, with the frame number.
fn watch(pad: &gst::Pad) -> Arc<Mutex<Vec<(char, u64)>>> {
    let seen = Arc::<Mutex<Vec<(char, u64)>>>::default();
    let list = seen.clone();
    let kinds = gst::PadProbeType::EVENT_DOWNSTREAM | gst::PadProbeType::BUFFER;
    pad.add_probe(kinds, move |_, info| {
        let mut list = list.lock().unwrap();
        match &info.data {
            Some(gst::PadProbeData::Event(event)) if DefectResult::is_event(event) => {
                let result = DefectResult::from_event(event).expect("an event that can be read");
                list.push(('E', result.frame_number));
            }
            Some(gst::PadProbeData::Buffer(buffer)) => {
                list.push(('B', DefectResult::read(buffer)[0].frame_number));
            }
            _ => {}
        }
        gst::PadProbeReturn::Ok
    });
    seen
}

/// The events that an element sends.
fn events(rig: &mut Rig) -> Vec<gst::Event> {
    std::iter::from_fn(|| rig.harness().try_pull_event())
        .filter(|event| DefectResult::is_event(event))
        .collect()
}

/// The event after a transport: its structure converted to text and back.
pub fn through_text(event: &gst::EventRef) -> gst::Event {
    let text = event.structure().unwrap().to_string();
    gst::event::CustomDownstream::new(text.parse::<gst::Structure>().unwrap())
}

/// Asserts that results are equal, with equal bits of floats.
#[track_caller]
pub fn assert_same_bits(actual: &DefectResult, expected: &DefectResult) {
    let bits = |r: &DefectResult| {
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
        let of_frame = [
            r.pitch_x,
            r.pitch_y,
            r.threshold,
            r.mm_per_pixel_x,
            r.mm_per_pixel_y,
            r.mean_level,
        ];
        let of_frame = of_frame.map(f64::to_bits);
        (of_frame, r.defects.iter().map(floats).collect::<Vec<_>>())
    };
    assert_eq!(actual, expected);
    assert_eq!(bits(actual), bits(expected));
}

/// The result for a mask of 16x4 pixels with two marked pixels.
fn result(frame_number: u64) -> DefectResult {
    DefectResult {
        element: "front \"left\", x=(int)1; ü\n".into(),
        frame_number,
        web: 2,
        first_line: 96,
        width: 16,
        height: 4,
        mm_per_pixel_x: 0.1,
        mm_per_pixel_y: 1.0 / 7.0,
        mean_level: 100.0 / 3.0,
        pitch_x: 7.35,
        pitch_y: 1.0 / 3.0,
        threshold: 0.1,
        judged_pixels: 30,
        judged_x: 30,
        judged_y: 0,
        defect_pixels: 2,
        missing_pixels: 0,
        verdict: Verdict::Fail,
        defects: vec![Defect {
            x: 6,
            y: 0,
            width: 2,
            height: 1,
            area: 2,
            centroid_x: 7.1,
            centroid_y: 0.5,
            mean_difference: -0.0,
            peak_difference: f32::MIN_POSITIVE / 4.0,
            polarity: -1,
            id: 9,
            class: 2,
            flags: Defect::CONTINUED | 4 << Defect::LEVEL_SHIFT,
            major_axis: 2.3,
            minor_axis: f32::MIN_POSITIVE,
            orientation: -0.0,
            boundary_length: 6,
        }],
        class_names: vec!["scratch \"x\", y=1".into(), "Löcher".into()],
        channels: vec!["residual-1".into(), "mean-10".into()],
        open_area: 7,
        alignment: Some(Alignment {
            shift_x: -3.25,
            shift_y: 1.0 / 3.0,
            match_score: 0.9,
            matched: true,
            transform: [-3.5, 1.0 + 1.0 / 3e3, -1e-3, 0.1, 1e-3, 0.999],
            misfit: 1.0 / 3.0,
            step: AlignStep::Affine,
            largest_local_shift: 0.7,
        }),
        ..DefectResult::default()
    }
}

/// The mask of [`result`].
fn mask() -> gst::Buffer {
    buffer(&[0b11, 0, 0, 0, 0, 0, 0, 0])
}

fn unpack() -> Rig {
    register();
    Rig::new("clmaskunpack", &bitmask(16, 4, 2))
}

fn announce(rig: &mut Rig, result: &DefectResult) {
    assert!(rig.harness().push_event(through_text(&result.to_event())));
}

/// Frame numbers of the results on the output for a mask.
#[track_caller]
fn found(rig: &mut Rig, mask: gst::Buffer) -> Vec<u64> {
    let output = rig.pass(mask);
    let results = DefectResult::read(&output);
    results.iter().map(|result| result.frame_number).collect()
}

fn discontinuous(mut mask: gst::Buffer) -> gst::Buffer {
    mask.make_mut().set_flags(gst::BufferFlags::DISCONT);
    mask
}

#[test]
fn events_precede_their_buffers_while_they_are_wanted() {
    let Some(device) = start() else { return };
    let frame = spotted(SIZE).next(5);
    for output in ["mask", "frame"] {
        let line = format!("clpitchthreshold {RECOMMENDED} output={output}");
        let mut rig = Rig::new(&line, &caps_of(&frame));
        let element = rig.only("clpitchthreshold");
        let reports: gst::Structure = element.property("reports");
        assert_eq!(reports.get("events"), Ok(false));
        let seen = watch(&element.static_pad("src").unwrap());
        for send in [false, true, true, false, true] {
            let reports = gst::Structure::builder("reports").field("events", send);
            element.set_property("reports", reports.build());
            rig.pass(buffer_of(&frame, &device));
        }
        let expected = [
            ('B', 0),
            ('E', 1),
            ('B', 1),
            ('E', 2),
            ('B', 2),
            ('B', 3),
            ('E', 4),
            ('B', 4),
        ];
        assert_eq!(*seen.lock().unwrap(), expected, "{output}");
    }
}

#[test]
fn event_holds_the_meta_bit_for_bit_also_as_text() {
    let Some(device) = start() else { return };
    let mut panels = spotted(SIZE);
    let clean = constant(SIZE, 77);
    let frames = [panels.next(5), panels.next(9), clean];
    let whole = format!("<<0,0,{0},{1}>,<0,0,{0},{1}>>", SIZE[0], SIZE[1]);
    for (more, listed) in [
        ("", true),
        ("threshold=4 output=frame", true),
        ("limits=limits,max-defects=0", false),
        (&format!("rois=\"{whole}\""), true),
    ] {
        let line = format!("clpitchthreshold {RECOMMENDED} reports=reports,events=true {more}");
        let mut rig = Rig::new(&line, &caps_of(&frames[0]));
        for (i, frame) in frames.iter().enumerate() {
            let output = rig.pass(buffer_of(frame, &device));
            let mut expected = DefectResult::read(&output).remove(0);
            // The event does not contain the mask.
            expected.mask = None;
            assert_eq!(!expected.defects.is_empty(), i < 2 && listed, "{more}");
            let events = events(&mut rig);
            assert_eq!(events.len(), 1);
            let fields = events[0].structure().unwrap();
            assert_eq!(fields.name(), "GstClDefectMeta");
            assert_eq!(fields.get::<u32>("version"), Ok(2));
            for event in [&events[0], &through_text(&events[0])] {
                let read = DefectResult::from_event(event).expect("a result");
                assert_same_bits(&read, &expected);
            }
        }
    }
    let difficult = result(u64::MAX);
    let read = DefectResult::from_event(&through_text(&difficult.to_event())).unwrap();
    assert_same_bits(&read, &difficult);
}

#[test]
fn unpack_event_becomes_meta_and_regions_of_the_next_mask_only() {
    let mut rig = unpack();
    announce(&mut rig, &result(5));
    let output = rig.pass(mask());
    let read = DefectResult::read(&output);
    assert_eq!(read.len(), 1);
    assert_same_bits(&read[0], &result(5));
    assert_records(&output, &result(5).defects);
    assert_regions(&output, &result(5).defects);
    // The event became a meta and is not forwarded.
    assert!(events(&mut rig).is_empty());
    assert_eq!(found(&mut rig, mask()), NONE);

    // A mask's own meta takes precedence over an event.
    announce(&mut rig, &result(6));
    let mut own = mask();
    result(7).attach(own.make_mut()).unwrap();
    assert_eq!(found(&mut rig, own), [7]);
    assert_eq!(found(&mut rig, mask()), NONE);
}

#[test]
fn unpack_other_events_pass() {
    let mut rig = unpack();
    let other = gst::event::CustomDownstream::new(gst::Structure::new_empty("GstClOther"));
    assert!(rig.harness().push_event(other));
    let named = |event: &gst::Event| event.has_name("GstClOther");
    assert!(std::iter::from_fn(|| rig.harness().try_pull_event()).any(|event| named(&event)));
}

#[test]
fn unpack_event_of_a_lost_mask_reaches_no_other() {
    let mut rig = unpack();
    // Two events in a row: the mask of the first is lost.
    announce(&mut rig, &result(1));
    announce(&mut rig, &result(2));
    assert_eq!(found(&mut rig, mask()), [2]);
    // A gap: the event may belong to a lost mask.
    announce(&mut rig, &result(3));
    assert_eq!(found(&mut rig, discontinuous(mask())), NONE);
    assert_eq!(found(&mut rig, mask()), NONE);
    announce(&mut rig, &result(4));
    assert_eq!(found(&mut rig, mask()), [4]);
    // A flush, and a new stream.
    announce(&mut rig, &result(5));
    assert!(rig.harness().push_event(gst::event::FlushStart::new()));
    assert!(rig.harness().push_event(gst::event::FlushStop::new(true)));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(rig.harness().push_event(gst::event::Segment::new(&segment)));
    assert_eq!(found(&mut rig, mask()), NONE);
    announce(&mut rig, &result(6));
    assert!(
        rig.harness()
            .push_event(gst::event::StreamStart::new("other"))
    );
    assert_eq!(found(&mut rig, mask()), NONE);
    // A mask that contradicts the event: more marked pixels, or another size.
    announce(&mut rig, &result(7));
    assert_eq!(found(&mut rig, buffer(&[0b111, 0, 0, 0, 0, 0, 0, 0])), NONE);
    let mut smaller = result(8);
    smaller.height = 3;
    announce(&mut rig, &smaller);
    assert_eq!(found(&mut rig, mask()), NONE);
    // If a station starts late, caps arrive after the first event.
    announce(&mut rig, &result(9));
    rig.renegotiate(&bitmask(16, 4, 3));
    let padded = buffer(&[0b11, 0, 0xff, 0, 0, 0xff, 0, 0, 0xff, 0, 0]);
    assert_eq!(found(&mut rig, padded), [9]);
}

#[test]
fn event_that_no_element_can_have_sent_is_ignored_and_clears_what_was_told() {
    let mut rig = unpack();
    let bytes = |len: usize| "00".repeat(len).to_send_value();
    let record = |at: usize, word: [u8; 4]| {
        let event = result(0).to_event();
        let data = event.structure().unwrap().get::<String>("defects-data");
        let mut data = data.unwrap();
        let word: String = word.iter().map(|byte| format!("{byte:02x}")).collect();
        data.replace_range(2 * at..2 * at + 8, &word);
        data.to_send_value()
    };
    let hostile: Vec<(&str, gst::glib::SendValue)> = vec![
        ("element", 7_u32.to_send_value()),
        ("frame-number", "7".to_send_value()),
        ("frame-number", 7_u32.to_send_value()),
        ("width", (-1_i32).to_send_value()),
        ("width", 7_u32.to_send_value()),
        ("height", 0_u32.to_send_value()),
        ("pitch-x", f64::NAN.to_send_value()),
        ("pitch-y", (-1.0_f64).to_send_value()),
        ("threshold", f64::INFINITY.to_send_value()),
        ("judged-pixels", 65_u64.to_send_value()),
        ("judged-pixels", 1_u64.to_send_value()),
        ("judged-pixels", 0_u64.to_send_value()),
        ("defect-pixels", 1_u64.to_send_value()),
        ("defect-pixels", u64::MAX.to_send_value()),
        ("defect-count", 2_u32.to_send_value()),
        ("defect-count", 0_u32.to_send_value()),
        ("defect-count", u32::MAX.to_send_value()),
        ("overflow", 1_i32.to_send_value()),
        ("verdict", "maybe".to_send_value()),
        ("verdict", "none".to_send_value()),
        ("verdict", None::<&str>.to_send_value()),
        ("defects-data", bytes(63)),
        ("defects-data", bytes(40)),
        ("defects-data", bytes(0)),
        ("defects-data", bytes(128)),
        ("defects-data", "0".repeat(127).to_send_value()),
        ("defects-data", "0".repeat(129).to_send_value()),
        ("defects-data", "zz".repeat(64).to_send_value()),
        ("defects-data", "ü".repeat(64).to_send_value()),
        ("defects-data", None::<&str>.to_send_value()),
        (
            "defects-data",
            gst::Buffer::from_slice([0; 64]).to_send_value(),
        ),
        // A box outside the frame, also if x + width overflows; one above the web; an empty box.
        ("defects-data", record(0, 15_u32.to_le_bytes())),
        ("defects-data", record(0, (-1_i32).to_le_bytes())),
        ("defects-data", record(0, i32::MAX.to_le_bytes())),
        ("defects-data", record(4, 4_u32.to_le_bytes())),
        ("defects-data", record(4, i32::MAX.to_le_bytes())),
        ("defects-data", record(4, (-97_i32).to_le_bytes())),
        ("defects-data", record(8, 0_u32.to_le_bytes())),
        ("defects-data", record(12, u32::MAX.to_le_bytes())),
        // More pixels than the box or the mask has; no pixels.
        ("defects-data", record(16, 3_u32.to_le_bytes())),
        ("defects-data", record(16, 0_u32.to_le_bytes())),
        ("defects-data", record(20, f32::NAN.to_le_bytes())),
        ("defects-data", record(28, f32::INFINITY.to_le_bytes())),
        ("defects-data", record(36, 2_i32.to_le_bytes())),
        // A class without a name, unknown flags, axes that no ellipse has, too many sides.
        ("defects-data", record(44, [3, 0, 0, 0])),
        ("defects-data", record(44, [2, 0, 4, 0])),
        ("defects-data", record(44, [2, 0, 0, 0x80])),
        ("defects-data", record(48, f32::INFINITY.to_le_bytes())),
        ("defects-data", record(48, 0_f32.to_le_bytes())),
        ("defects-data", record(52, f32::NAN.to_le_bytes())),
        ("defects-data", record(52, (-1_f32).to_le_bytes())),
        ("defects-data", record(56, f32::NAN.to_le_bytes())),
        ("defects-data", record(60, 9_u32.to_le_bytes())),
    ];
    let hostile = hostile.into_iter().chain([
        ("version", 0_u32.to_send_value()),
        ("version", 1_u32.to_send_value()),
        ("version", 2_i32.to_send_value()),
        ("judged-x", 31_u64.to_send_value()),
        ("judged-x", 30_u32.to_send_value()),
        ("judged-y", 31_u64.to_send_value()),
        ("missing-pixels", 3_u64.to_send_value()),
        ("web", 2_u32.to_send_value()),
        ("first-line", "96".to_send_value()),
        ("mm-per-pixel-x", f64::NAN.to_send_value()),
        ("mm-per-pixel-y", (-1.0_f64).to_send_value()),
        ("mean-level", f64::INFINITY.to_send_value()),
        ("classes", 2_u32.to_send_value()),
        ("classes", "scratch".to_send_value()),
        ("classes", "scratch;;hole".to_send_value()),
        ("channels", 2_u32.to_send_value()),
        ("channels", "residual-1;;mean-1".to_send_value()),
        // All pixels of the web up to the strip's last row, and one more.
        ("open-area", 1601_u64.to_send_value()),
        ("train-frames", "3".to_send_value()),
        // A frame that trains has no verdict.
        ("train-frames", 3_u32.to_send_value()),
        ("learn-frames", "3".to_send_value()),
        // Without its numbers.
        ("blind-limit", "threshold".to_send_value()),
        ("learned-frames", 3_i32.to_send_value()),
        ("shift-x", f64::NAN.to_send_value()),
        ("match-score", 1.5.to_send_value()),
        ("transform", 1.0.to_send_value()),
        ("transform", gst::Array::new([1.0; 5]).to_send_value()),
        ("transform", gst::Array::new([1_i32; 6]).to_send_value()),
        (
            "transform",
            gst::Array::new([0.0, 1.0, 0.0, f64::INFINITY, 0.0, 1.0]).to_send_value(),
        ),
        ("misfit", (-1.0).to_send_value()),
        ("misfit", "2".to_send_value()),
        ("align-step", "local".to_send_value()),
        ("align-step", 1_u32.to_send_value()),
        ("largest-local-shift", f64::NAN.to_send_value()),
    ]);
    for (name, value) in hostile {
        let mut fields = result(1).to_event().structure().unwrap().to_owned();
        fields.set_value(name, value.clone());
        let event = gst::event::CustomDownstream::new(fields);
        assert_eq!(DefectResult::from_event(&event), None, "{name}: {value:?}");
        announce(&mut rig, &result(2));
        assert!(rig.harness().push_event(event));
        assert_eq!(found(&mut rig, mask()), NONE, "{name}: {value:?}");
    }
    for missing in result(1).to_event().structure().unwrap().fields() {
        let mut fields = result(1).to_event().structure().unwrap().to_owned();
        fields.remove_field(missing);
        let event = gst::event::CustomDownstream::new(fields);
        // Fields that earlier senders lack; the defect's class needs its name.
        let read = DefectResult::from_event(&event).is_some();
        let optional = [
            "judged-x",
            "judged-y",
            "missing-pixels",
            "corrupted",
            "web",
            "first-line",
            "mm-per-pixel-x",
            "mm-per-pixel-y",
            "mean-level",
            "open-area",
            "channels",
            "transform",
            "misfit",
            "align-step",
            "largest-local-shift",
        ];
        assert_eq!(read, optional.contains(&missing.as_str()), "{missing}");
    }
    let empty = gst::Structure::new_empty("GstClDefectMeta");
    for event in [
        gst::event::CustomDownstream::new(empty.clone()),
        gst::event::CustomBoth::new(result(1).to_event().structure().unwrap().to_owned()),
        gst::event::CustomDownstreamOob::new(empty),
    ] {
        assert_eq!(DefectResult::from_event(&event), None, "{event:?}");
        assert!(rig.harness().push_event(event));
    }
    assert_eq!(found(&mut rig, mask()), NONE);
    // A mask in an event is ignored.
    let mut fields = result(1).to_event().structure().unwrap().to_owned();
    fields.set("mask", mask());
    let event = gst::event::CustomDownstream::new(fields);
    assert_same_bits(&DefectResult::from_event(&event).unwrap(), &result(1));
    assert!(rig.errors().is_empty() && rig.warnings().is_empty());
}

#[test]
fn event_with_more_defects_than_any_element_lists_is_ignored() {
    register();
    let numbered = |id| Defect {
        id,
        ..result(0).defects[0]
    };
    let most = |count: u32| DefectResult {
        width: 1024,
        height: 1024,
        judged_pixels: 1 << 20,
        defect_pixels: 1 << 19,
        defects: (1..=count).map(numbered).collect(),
        ..result(0)
    };
    let read = |count| DefectResult::from_event(&most(count).to_event());
    assert_eq!(read(MOST_DEFECTS), Some(most(MOST_DEFECTS)));
    assert_eq!(read(MOST_DEFECTS + 1), None);
}

#[test]
fn event_of_a_strip_has_defects_that_began_above_it() {
    register();
    let above = |y, height, area| Defect {
        y,
        height,
        area,
        ..result(0).defects[0]
    };
    let read = |defects: &[Defect]| {
        let sent = DefectResult {
            defects: defects.to_vec(),
            ..result(0)
        };
        let read = DefectResult::from_event(&through_text(&sent.to_event()));
        assert!(read.is_none() || read == Some(sent), "{defects:?}");
        read.is_some()
    };
    // 2 pixels are marked in the strip; 96 rows of the web lie above it.
    assert!(read(&[above(-96, 100, 2 * 96 + 2)]));
    assert!(!read(&[above(-96, 100, 2 * 96 + 3)]));
    assert!(read(&[above(-5, 5, 10)]));
    assert!(!read(&[above(-97, 5, 10)]));
    assert!(!read(&[above(-5, 10, 10)]));
    // Two defects with one id.
    let first = above(-5, 5, 10);
    assert!(!read(&[first, first]));
    assert!(read(&[first, Defect { id: 1, ..first }]));
}

/// Corrupted text: nothing panics, and accepted results are consistent.
#[test]
fn event_of_garbled_text_does_no_harm() {
    let mut rig = unpack();
    let text = result(3).to_event().structure().unwrap().to_string();
    // Names stay as they are, because GStreamer's parser complains about invalid ones.
    let named = "GstClDefectMeta, ".len();
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(6);
    let mut believed = 0;
    for _ in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(named..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] = random.random_range(1..128),
                1 if at > named => bytes.truncate(at),
                _ => bytes[at] = b'0' + random.random_range(0..10_u8),
            }
        }
        let Some(fields) = String::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse::<gst::Structure>().ok())
        else {
            continue;
        };
        let event = gst::event::CustomDownstream::new(fields);
        let result = DefectResult::from_event(&event);
        assert!(rig.harness().push_event(event));
        let output = rig.pass(mask());
        for read in DefectResult::read(&output) {
            believed += 1;
            assert_eq!(Some(&read), result.as_ref());
            assert_eq!((read.width, read.height, read.defect_pixels), (16, 4, 2));
            let mut defects = read.defects.iter();
            assert!(defects.all(|d| d.x >= 0 && d.x as u32 + d.width <= 16));
        }
    }
    assert!(believed > 0, "no corrupted text was accepted");
    assert!(rig.errors().is_empty());
}
