//! `line-scan=true`: strips of a web give the results of the web as one frame, wherever it is cut.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    frames::read,
    support::{Rig, start},
    webs::{HEIGHTS, JUDGED, Numbers, Web, row_bytes, rows_of},
};

#[test]
fn gaussian_of_strips_is_that_of_the_whole_web() {
    if start().is_none() {
        return;
    }
    for (format, size, arithmetic) in [
        (Format::Gray8, 5, "integer"),
        (Format::Gray8, 31, "float"),
        (Format::Gray16Le, 9, "integer"),
        (Format::Rgb, 3, "integer"),
    ] {
        // On a GPU strips of the second width are uploaded straight into the web's rows.
        for width in [97, 128] {
            let web = Web::cloth(format, width, 360, size as u64);
            let element = format!("clgaussian kernel-size={size} arithmetic={arithmetic}");
            let info = gst_video::VideoInfo::from_caps(&web.caps(360)).unwrap();
            let (row, stride) = (row_bytes(format, width), info.stride()[0] as usize);
            let frame = rows_of(&web.through(&element, 360), row, stride);
            for height in HEIGHTS {
                let strips = web.through(&format!("{element} line-scan=true"), height);
                assert_eq!(strips.len(), 360 / height);
                assert!(
                    rows_of(&strips, row, stride) == frame,
                    "{format:?}, {size} taps, strips of {height} rows"
                );
            }
        }
    }
}

#[test]
fn masks_and_counts_of_strips_are_those_of_the_whole_web() {
    if start().is_none() {
        return;
    }
    for (seed, extra) in [
        (1, ""),
        (2, "borders=skip multiples=<1,2,4>"),
        (
            3,
            "compare=average match-center=false min-contrast=0 polarity=dark",
        ),
        (4, "pitch-y=0"),
        (5, "pitch-y=33.5 multiples=<1,3> edge-margin=0"),
        (6, "rois=<<5,13,60,200>,<30,100,67,300>>"),
        (7, "pitch-x=0"),
        (8, "lattice=<16.35,1.2,-1.1,16.2> scales=0"),
        (
            9,
            "lattice=<5.5,-9.25> scales=0 min-contrast=0 multiples=<1,2> compare=average",
        ),
    ] {
        for format in [Format::Gray8, Format::Gray16Le, Format::Rgb] {
            // Samples of 16 bits are 256 times as large.
            let scale = if format == Format::Gray16Le {
                " threshold=10240"
            } else {
                ""
            };
            let element = format!("{JUDGED} {extra}{scale}");
            let width = if seed % 2 == 0 { 128 } else { 97 };
            let web = Web::cloth(format, width, 360, seed);
            let whole = web.through(&element, 360);
            let mask = read(&whole[0]);
            let result = &DefectResult::read(&whole[0])[0];
            assert!(
                result.defect_pixels > 0 && result.judged_pixels > 0,
                "{extra}"
            );
            for height in HEIGHTS {
                let strips = web.through(&element, height);
                assert_eq!(strips.len(), 360 / height, "{extra}");
                let masks: Vec<u8> = strips.iter().flat_map(read).collect();
                assert!(
                    masks == mask,
                    "{extra}, {format:?}, strips of {height} rows"
                );
                let results: Vec<DefectResult> = strips
                    .iter()
                    .flat_map(|strip| DefectResult::read(strip))
                    .collect();
                let sum = |count: fn(&DefectResult) -> u64| results.iter().map(count).sum::<u64>();
                assert_eq!(
                    sum(|r| r.judged_pixels),
                    result.judged_pixels,
                    "{extra} {height}"
                );
                assert_eq!(sum(|r| r.judged_x), result.judged_x, "{extra} {height}");
                assert_eq!(sum(|r| r.judged_y), result.judged_y, "{extra} {height}");
                assert_eq!(
                    sum(|r| r.defect_pixels),
                    result.defect_pixels,
                    "{extra} {height}"
                );
                assert_eq!(
                    sum(|r| r.missing_pixels),
                    result.missing_pixels,
                    "{extra} {height}"
                );
            }
        }
    }
}

/// Times and offsets of strips in order.
fn places(strips: &[gst::Buffer]) -> Vec<(u64, u64)> {
    let place = |buffer: &gst::Buffer| (buffer.offset(), buffer.pts().unwrap().mseconds());
    strips.iter().map(place).collect()
}

/// All that a strip carries beside its pixels and results.
#[derive(Debug, PartialEq)]
struct Carried {
    times: [Option<gst::ClockTime>; 3],
    offsets: [u64; 2],
    flags: gst::BufferFlags,
    /// Of a meta that an element before attached.
    taken_at: Vec<gst::ClockTime>,
    foreign: Option<u32>,
}

impl Carried {
    fn by(strip: &gst::Buffer) -> Self {
        let foreign = gst::meta::CustomMeta::from_buffer(strip, "TestForeignMeta").ok();
        Self {
            times: [strip.pts(), strip.dts(), strip.duration()],
            offsets: [strip.offset(), strip.offset_end()],
            // Whether a buffer's memory has changed says nothing about the strip.
            flags: strip.flags() - gst::BufferFlags::TAG_MEMORY,
            taken_at: strip
                .iter_meta::<gst::ReferenceTimestampMeta>()
                .map(|meta| meta.timestamp())
                .collect(),
            foreign: foreign.map(|meta| meta.structure().get("strip").unwrap()),
        }
    }
}

/// Strips of which each carries something else; the strip of this number begins a second web.
fn laden(web: &Web, height: usize, second: usize) -> Vec<gst::Buffer> {
    let mut strips = web.strips(height);
    let clock = gst::Caps::new_empty_simple("timestamp/x-camera");
    let mut numbers = Numbers(5);
    for (index, strip) in strips.iter_mut().enumerate() {
        let fields = strip.get_mut().unwrap();
        let time = |add| gst::ClockTime::from_useconds(10_000 * index as u64 + add);
        // Times are not even: a camera that an encoder triggers.
        fields.set_pts(time(numbers.next(9000)));
        fields.set_dts(time(numbers.next(9000)));
        fields.set_duration(gst::ClockTime::from_useconds(numbers.next(9000)));
        fields.set_offset_end(index as u64 + 1 + numbers.next(5));
        for (every, flag) in [
            (2, gst::BufferFlags::MARKER),
            (3, gst::BufferFlags::RESYNC),
            (5, gst::BufferFlags::HEADER),
            (7, gst::BufferFlags::DROPPABLE),
        ] {
            if index % every == 1 {
                fields.set_flags(flag);
            }
        }
        if index == second {
            fields.set_flags(gst::BufferFlags::DISCONT);
        }
        if index % 4 != 3 {
            gst::ReferenceTimestampMeta::add(fields, &clock, time(7), None);
        }
        let mut meta = gst::meta::CustomMeta::add(fields, "TestForeignMeta").unwrap();
        meta.mut_structure().set("strip", index as u32);
    }
    strips
}

#[test]
fn strips_leave_in_order_with_their_own_times_flags_and_metas() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 8);
    for element in [
        "clgaussian kernel-size=31 line-scan=true".to_owned(),
        JUDGED.to_owned(),
        format!("{JUDGED} output=frame"),
        format!("clgaussian line-scan=true ! clhistogram name=h ! queue ! {JUDGED}"),
    ] {
        let strips = laden(&web, 8, 21);
        let wanted: Vec<Carried> = strips.iter().map(Carried::by).collect();
        let mut rig = Rig::new(&element, &web.caps(8));
        for strip in strips {
            rig.push(strip).unwrap();
        }
        rig.harness().push_event(gst::event::Eos::new());
        let sent: Vec<_> = std::iter::from_fn(|| rig.harness().pull_until_eos().unwrap()).collect();
        let found: Vec<Carried> = sent.iter().map(Carried::by).collect();
        assert_eq!(found, wanted, "{element}");
        if element.contains("pitch") {
            let results: Vec<_> = sent.iter().flat_map(|s| DefectResult::read(s)).collect();
            let place = |r: &DefectResult| (r.web, r.first_line, r.frame_number);
            let places: Vec<_> = results.iter().map(place).collect();
            let wanted = (0..45).map(|i| {
                if i < 21 {
                    (0, 8 * i, i)
                } else {
                    (1, 8 * (i - 21), i)
                }
            });
            assert_eq!(places, wanted.collect::<Vec<_>>(), "{element}");
        }
        if element.contains("histogram") {
            let mut smooth = Rig::new("clgaussian line-scan=true", &web.caps(8));
            for strip in laden(&web, 8, 21) {
                smooth.push(strip).unwrap();
            }
            smooth.harness().push_event(gst::event::Eos::new());
            for strip in &sent {
                let mut counts = vec![0; 256];
                for row in read(&smooth.harness().try_pull().unwrap()).chunks_exact(100) {
                    row[..97].iter().for_each(|&v| counts[usize::from(v)] += 1);
                }
                let counted = gstclinspect::results::HistogramResult::read(strip);
                assert_eq!(counted.len(), 1);
                assert!(counted[0].counts == counts, "strip {}", strip.offset());
            }
        }
        if element.contains("output=frame") {
            let bytes: Vec<u8> = rows_of(&sent, 97, 100);
            assert!(bytes == web.bytes);
        }
    }
}

#[test]
fn a_web_ends_at_discont_offset_caps_flush_and_eos() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 9);
    let strips = || web.strips(20);
    let mut rig = Rig::new(JUDGED, &web.caps(20));
    let mut told: Vec<(u64, String, u64)> = Vec::new();
    let mut came = 0;
    let mut push = |rig: &mut Rig, buffer: gst::Buffer| {
        rig.push(buffer).unwrap();
        came += 1;
        for web in rig.told("clpitchthreshold-web") {
            let reason: String = web.get("reason").unwrap();
            told.push((
                web.get("web").unwrap(),
                reason,
                web.get("lost-buffers").unwrap(),
            ));
        }
    };
    for strip in strips().into_iter().take(6) {
        push(&mut rig, strip);
    }
    // Three buffers are lost.
    let mut all = strips();
    push(&mut rig, all.remove(9));
    push(&mut rig, all.remove(9));
    // The camera starts again.
    push(&mut rig, all.remove(0));
    let mut discont = all.remove(0);
    discont
        .get_mut()
        .unwrap()
        .set_flags(gst::BufferFlags::DISCONT);
    push(&mut rig, discont);
    rig.renegotiate(&web.caps(40));
    push(&mut rig, web.strips(40).remove(0));
    rig.harness().push_event(gst::event::Eos::new());
    let wanted = [
        (0, "start", 0),
        (1, "offset", 3),
        (2, "offset", 0),
        (3, "discont", 0),
        (4, "caps", 0),
    ];
    let wanted = wanted.map(|(web, reason, lost)| (web, reason.to_owned(), lost));
    assert_eq!(told, wanted);
    let sent: Vec<gst::Buffer> = std::iter::from_fn(|| rig.harness().try_pull()).collect();
    assert_eq!(sent.len(), came);
    // Each of the webs is judged as a frame of its rows.
    let first: Vec<u8> = sent.iter().take(6).flat_map(read).collect();
    let mut alone = Web::cloth(Format::Gray8, 97, 360, 9);
    alone.rows = 120;
    alone.bytes.truncate(120 * 97);
    assert!(first == read(&alone.through(JUDGED, 120)[0]));
}

#[test]
fn a_flush_drops_what_is_held_and_begins_a_web() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 10);
    let mut rig = Rig::new("clgaussian kernel-size=31 line-scan=true", &web.caps(8));
    for strip in web.strips(8).into_iter().take(2) {
        rig.push(strip).unwrap();
    }
    assert!(rig.is_silent());
    rig.harness().push_event(gst::event::FlushStart::new());
    rig.harness()
        .push_event(gst::event::FlushStop::builder(true).build());
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    rig.harness().push_event(gst::event::Segment::new(&segment));
    let strips = web.strips(8);
    for strip in strips.into_iter().take(3) {
        rig.push(strip).unwrap();
    }
    rig.harness().push_event(gst::event::Eos::new());
    let sent: Vec<gst::Buffer> = std::iter::from_fn(|| rig.harness().try_pull()).collect();
    assert_eq!(places(&sent), [(0, 0), (1, 10), (2, 20)]);
    let reasons: Vec<String> = rig
        .told("clgaussian-web")
        .iter()
        .map(|web| web.get("reason").unwrap())
        .collect();
    assert_eq!(reasons, ["start", "flush"]);
}

#[test]
fn events_stay_between_the_strips_they_came_between() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 11);
    let mut rig = Rig::new("clgaussian kernel-size=31 line-scan=true", &web.caps(8));
    for (index, strip) in web.strips(8).into_iter().take(6).enumerate() {
        rig.push(strip).unwrap();
        let mark = gst::Structure::builder("mark")
            .field("after", index as u32)
            .build();
        rig.harness()
            .push_event(gst::event::CustomDownstream::new(mark));
    }
    let marks = |rig: &mut Rig| -> Vec<u32> {
        std::iter::from_fn(|| rig.harness().try_pull_event())
            .filter_map(|event| event.structure()?.get("after").ok())
            .collect()
    };
    // Six strips of 8 rows came; 15 rows below are needed, so four have left.
    let sent = std::iter::from_fn(|| rig.harness().try_pull()).count();
    assert_eq!(sent, 4);
    assert_eq!(marks(&mut rig), [0, 1, 2, 3]);
    rig.harness().push_event(gst::event::Eos::new());
    assert_eq!(std::iter::from_fn(|| rig.harness().try_pull()).count(), 2);
    assert_eq!(marks(&mut rig), [4, 5]);
}

#[test]
fn the_latency_has_the_strips_that_are_held() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 12);
    let mut rig = Rig::new("clgaussian kernel-size=31 line-scan=true", &web.caps(8));
    rig.push(web.strips(8).remove(0)).unwrap();
    let mut query = gst::query::Latency::new();
    let sink = rig.harness().sinkpad().unwrap();
    assert!(sink.peer_query(&mut query));
    // Two strips hold the 15 rows below, at 100 strips a second.
    assert_eq!(query.result().1, gst::ClockTime::from_mseconds(20));

    // Without a framerate the answer is that of the source.
    let mut caps = web.caps(8);
    caps.make_mut().set("framerate", gst::Fraction::new(0, 1));
    let mut rig = Rig::new("clgaussian kernel-size=31 line-scan=true", &caps);
    rig.push(web.strips(8).remove(0)).unwrap();
    let mut query = gst::query::Latency::new();
    assert!(rig.harness().sinkpad().unwrap().peer_query(&mut query));
    assert_eq!(query.result().1, gst::ClockTime::ZERO);
    assert!(rig.errors().is_empty());
}

#[test]
fn a_picture_of_one_row_ignores_columns_of_the_web() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 21);
    let file = std::env::temp_dir().join(format!("clinspect-columns-{}.pgm", std::process::id()));
    let picture = [b"P5 97 1 255\n".as_slice(), &[255; 40], &[0; 57]].concat();
    std::fs::write(&file, picture).unwrap();
    // At coarser levels, pixels beside ignored ones are judged by fewer blocks.
    let judged = format!("{JUDGED} scales=0");
    let ignoring = format!("{judged} ignore=ignore,mask={}", file.display());
    for height in [20, 360] {
        let rows = |element: &str| rows_of(&web.through(element, height), 13, 13);
        let mut expected = rows(&judged);
        assert!(expected.chunks(13).any(|row| row[..5] != [0; 5]));
        expected.chunks_mut(13).for_each(|row| row[..5].fill(0));
        let found = rows(&ignoring);
        let wrong = found
            .iter()
            .zip(&expected)
            .enumerate()
            .filter(|(_, (a, b))| a != b);
        let wrong: Vec<_> = wrong.map(|(i, (a, b))| (i / 13, i % 13, *a, *b)).collect();
        assert_eq!(wrong, [], "strips of {height} rows: row, byte");
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn estimated_pitches_and_contrast_do_not_depend_on_the_cut() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 197, 1200, 13);
    let element = "clpitchthreshold threshold=40 line-scan=true";
    let whole = web.through(element, 1200);
    let result = &DefectResult::read(&whole[0])[0];
    assert!((result.pitch_x - 7.35).abs() < 0.1, "{}", result.pitch_x);
    assert!((result.pitch_y - 5.25).abs() < 0.1, "{}", result.pitch_y);
    assert_eq!(result.verdict, Verdict::Fail);
    for height in [10, 75, 400] {
        let strips = web.through(element, height);
        let masks: Vec<u8> = strips.iter().flat_map(read).collect();
        assert!(masks == read(&whole[0]), "strips of {height} rows");
    }
}

#[test]
fn strips_that_cannot_be_joined_are_refused() {
    if start().is_none() {
        return;
    }
    let odd = gst_video::VideoInfo::builder(Format::I420, 64, 7)
        .build()
        .unwrap();
    let rig = Rig::new("clgaussian line-scan=true", &odd.to_caps().unwrap());
    let errors = rig.errors();
    assert!(
        errors.iter().any(|e| e.text.contains("multiple of 2")),
        "{errors:?}"
    );
    let grey = gst_video::VideoInfo::builder(Format::Gray8, 64, 8)
        .build()
        .unwrap();
    let image = "clgaussian line-scan=true memory-object=image";
    let rig = Rig::new(image, &grey.to_caps().unwrap());
    let errors = rig.errors();
    assert!(
        errors.iter().any(|e| e.text.contains("memory-object=auto")),
        "{errors:?}"
    );
}

#[test]
fn line_scan_is_latched_at_the_start() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 14);
    let mut rig = Rig::new("clgaussian kernel-size=31", &web.caps(8));
    rig.only("clgaussian").set_property("line-scan", true);
    let mut strips = web.strips(8);
    rig.push(strips.remove(0)).unwrap();
    assert!(!rig.is_silent());
    let mut rig = Rig::new("clgaussian kernel-size=31 line-scan=true", &web.caps(8));
    rig.only("clgaussian").set_property("line-scan", false);
    rig.push(strips.remove(0)).unwrap();
    assert!(rig.is_silent());
}
