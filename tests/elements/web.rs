//! `line-scan=true`: strips of a web give the results of the web as one frame, wherever it is cut.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    frames::read,
    support::{Rig, start},
};

/// A web: rows of bytes.
struct Web {
    format: Format,
    width: usize,
    rows: usize,
    bytes: Vec<u8>,
}

/// Bytes of a pixel row and of its part of the other planes, for formats of one plane.
fn row_bytes(format: Format, width: usize) -> usize {
    match format {
        Format::Gray16Le => 2 * width,
        Format::Rgb => 3 * width,
        _ => width,
    }
}

/// A small generator of reproducible numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % below
    }
}

impl Web {
    /// A cloth of period 7.35 × 5.25 with noise, spots, streaks and a torn place.
    fn cloth(format: Format, width: usize, rows: usize, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let mut grey = vec![0_i64; width * rows];
        for (i, v) in grey.iter_mut().enumerate() {
            let (x, y) = ((i % width) as f64, (i / width) as f64);
            let wave = |at: f64, period: f64| (std::f64::consts::TAU * at / period).cos();
            let level = 110.0 + 45.0 * wave(x, 7.35) + 40.0 * wave(y, 5.25);
            *v = level as i64 + numbers.next(7) as i64;
        }
        for _ in 0..12 {
            let (x, y) = (
                numbers.next(width as u64) as usize,
                numbers.next(rows as u64) as usize,
            );
            let (w, h) = match numbers.next(3) {
                0 => (2, 1 + numbers.next(60) as usize),
                1 => (1 + numbers.next(40) as usize, 2),
                _ => (3, 3),
            };
            let change = if numbers.next(2) == 0 { 70 } else { -70 };
            for row in y..(y + h).min(rows) {
                for column in x..(x + w).min(width) {
                    grey[row * width + column] += change;
                }
            }
        }
        let torn = numbers.next(rows as u64) as usize;
        for row in torn..(torn + 30).min(rows) {
            for column in width / 2..(width / 2 + 50).min(width) {
                grey[row * width + column] = 90;
            }
        }
        let bytes = grey.iter().flat_map(|&v| {
            let v = v.clamp(0, 255) as u8;
            match format {
                Format::Gray16Le => vec![v.wrapping_mul(37), v],
                Format::Rgb => vec![v, v.wrapping_mul(3), 255 - v],
                _ => vec![v],
            }
        });
        Self {
            format,
            width,
            rows,
            bytes: bytes.collect(),
        }
    }

    fn caps(&self, height: usize) -> gst::Caps {
        gst_video::VideoInfo::builder(self.format, self.width as u32, height as u32)
            .fps(gst::Fraction::new(100, 1))
            .build()
            .unwrap()
            .to_caps()
            .unwrap()
    }

    /// The strips of `height` rows, with GStreamer's own strides.
    fn strips(&self, height: usize) -> Vec<gst::Buffer> {
        let info = gst_video::VideoInfo::from_caps(&self.caps(height)).unwrap();
        let (row, stride) = (
            row_bytes(self.format, self.width),
            info.stride()[0] as usize,
        );
        self.bytes
            .chunks_exact(row * height)
            .enumerate()
            .map(|(index, rows)| {
                let mut bytes = vec![0; info.size()];
                for (y, row) in rows.chunks_exact(row).enumerate() {
                    bytes[y * stride..][..row.len()].copy_from_slice(row);
                }
                let mut buffer = gst::Buffer::from_mut_slice(bytes);
                let fields = buffer.get_mut().unwrap();
                fields.set_offset(index as u64);
                fields.set_pts(gst::ClockTime::from_mseconds(10 * index as u64));
                fields.set_duration(gst::ClockTime::from_mseconds(10));
                buffer
            })
            .collect()
    }

    /// What `description` sends for strips of `height` rows.
    fn through(&self, description: &str, height: usize) -> Vec<gst::Buffer> {
        let mut rig = Rig::new(description, &self.caps(height));
        for strip in self.strips(height) {
            if let Err(flow) = rig.push(strip) {
                panic!("{flow:?}: {:?}", rig.errors());
            }
        }
        rig.harness().push_event(gst::event::Eos::new());
        // A queue sends from a thread of its own.
        std::iter::from_fn(|| rig.harness().pull_until_eos().unwrap()).collect()
    }
}

/// Rows without the stride's padding.
fn rows_of(buffers: &[gst::Buffer], row: usize, stride: usize) -> Vec<u8> {
    let rows = buffers.iter().flat_map(|buffer| {
        let bytes = read(buffer);
        bytes
            .chunks_exact(stride)
            .flat_map(|line| line[..row].to_vec())
            .collect::<Vec<u8>>()
    });
    rows.collect()
}

/// The heights at which the tests cut a web of 360 rows.
const HEIGHTS: [usize; 7] = [1, 3, 8, 20, 45, 120, 360];

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
        let web = Web::cloth(format, 97, 360, size as u64);
        let element = format!("clgaussian kernel-size={size} arithmetic={arithmetic}");
        let info = gst_video::VideoInfo::from_caps(&web.caps(360)).unwrap();
        let (row, stride) = (row_bytes(format, 97), info.stride()[0] as usize);
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

/// Settings along both axes, with borders and presence.
const JUDGED: &str = "clpitchthreshold pitch-x=7.35 pitch-y=5.25 threshold=40 min-contrast=15 scales=3 line-scan=true";

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
    ] {
        for format in [Format::Gray8, Format::Gray16Le] {
            // Samples of 16 bits are 256 times as large.
            let scale = if format == Format::Gray8 {
                ""
            } else {
                " threshold=10240"
            };
            let element = format!("{JUDGED} {extra}{scale}");
            let web = Web::cloth(format, 97, 360, seed);
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

/// Times, offsets and verdicts of strips in order.
fn places(strips: &[gst::Buffer]) -> Vec<(u64, u64)> {
    let place = |buffer: &gst::Buffer| (buffer.offset(), buffer.pts().unwrap().mseconds());
    strips.iter().map(place).collect()
}

#[test]
fn strips_leave_in_order_with_their_own_times_and_metas() {
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
        let strips = web.through(&element, 8);
        let wanted: Vec<(u64, u64)> = (0..45).map(|i| (i, 10 * i)).collect();
        assert_eq!(places(&strips), wanted, "{element}");
        if element.contains("histogram") {
            let counted = strips
                .iter()
                .filter(|strip| gstclinspect::results::HistogramResult::read(strip).len() == 1);
            assert_eq!(counted.count(), 45);
        }
        if element.contains("output=frame") {
            let bytes: Vec<u8> = rows_of(&strips, 97, 100);
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
    let ignoring = format!("{judged} ignore-mask={}", file.display());
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

/// A listed defect with its place in the web: the first row and the rest of its box, and its features.
fn in_web(results: &[DefectResult]) -> Vec<(i64, [u32; 4], String)> {
    let mut all: Vec<(i64, [u32; 4], String)> = results
        .iter()
        .flat_map(|result| {
            result.defects.iter().map(|d| {
                let row = result.first_line as i64 + i64::from(d.y);
                // Rounded: a 32-bit float has fewer digits left at a large y.
                let centre = result.first_line as f64 + f64::from(d.centroid_y);
                let features = format!(
                    "{} {centre:.2} {} {} {} {} {} {} {} {} {}",
                    d.centroid_x,
                    d.mean_difference,
                    d.peak_difference,
                    d.polarity,
                    d.major_axis,
                    d.minor_axis,
                    d.orientation,
                    d.boundary_length,
                    d.level(),
                    result.class_name(d.class),
                );
                (row, [d.x as u32, d.width, d.height, d.area], features)
            })
        })
        .collect();
    all.sort_by_key(|(row, place, _)| (*row, *place));
    all
}

#[test]
fn defects_of_strips_are_those_of_the_whole_web() {
    if start().is_none() {
        return;
    }
    for (seed, extra) in [
        (21, ""),
        (22, "merge-distance=3 min-area=4"),
        (23, "pitch-y=0 merge-distance=9"),
        (
            24,
            "classes=\"long: elongation > 3 and major > 8; small: area < 12\"",
        ),
    ] {
        let element = format!("{JUDGED} max-defects=10000 {extra}");
        let web = Web::cloth(Format::Gray8, 97, 360, seed);
        let results = |height| -> Vec<DefectResult> {
            let strips = web.through(&element, height);
            strips
                .iter()
                .flat_map(|strip| DefectResult::read(strip))
                .collect()
        };
        let whole = results(360);
        let wanted = in_web(&whole);
        assert!(wanted.len() > 5, "{extra}: {}", wanted.len());
        if extra.is_empty() {
            assert!(whole[0].missing_pixels > 0);
            assert!(
                wanted
                    .iter()
                    .any(|(_, _, text)| text.ends_with("pattern-missing"))
            );
        }
        for height in HEIGHTS {
            let strips = results(height);
            assert_eq!(in_web(&strips), wanted, "{extra}, strips of {height} rows");
            let ids: Vec<u32> = strips
                .iter()
                .flat_map(|strip| strip.defects.iter().map(|d| d.id))
                .collect();
            let counted: Vec<u32> = (1..=wanted.len() as u32).collect();
            assert_eq!(ids, counted, "{extra}");
            // Each strip tells its place.
            for (n, strip) in strips.iter().enumerate() {
                assert_eq!((strip.web, strip.first_line), (0, (n * height) as u64));
                assert_eq!(
                    strip.open_area > 0,
                    strip.defects.len() < wanted.len() && strip.open_area > 0
                );
            }
        }
    }
}

#[test]
fn random_webs_in_random_strips_are_judged_as_one_frame() {
    if start().is_none() {
        return;
    }
    let mut failed = 0;
    for seed in 100..124 {
        let mut numbers = Numbers(seed);
        let mut pick = |of: &[&str]| of[numbers.next(of.len() as u64) as usize].to_string();
        let element = format!(
            "clpitchthreshold line-scan=true max-defects=10000 min-contrast=0 pitch-x=7.35 pitch-y={} multiples={} \
             scales={} threshold={} borders={} edge-margin={} merge-distance={} {} {}",
            pick(&["0", "5.25", "10.5"]),
            pick(&["<1>", "<1,2>"]),
            pick(&["0", "0", "2"]),
            pick(&["25", "40"]),
            pick(&["inward", "skip"]),
            pick(&["0", "2", "5"]),
            pick(&["0", "1", "7"]),
            pick(&["", "rois=<<10,40,60,100>,<20,200,50,55>>"]),
            pick(&[
                "",
                "ignore-regions=<<0.0,150.0,97.0,150.0,97.0,190.0,0.0,190.0>>"
            ]),
        );
        let height = pick(&["1", "4", "9", "15", "36", "90"]).parse().unwrap();
        let web = Web::cloth(Format::Gray8, 97, 360, seed);
        let [whole, strips] = [360, height].map(|height| {
            let sent = web.through(&element, height);
            let results: Vec<_> = (sent.iter().flat_map(|s| DefectResult::read(s))).collect();
            let fails = results.iter().any(|r| r.verdict == Verdict::Fail);
            failed += usize::from(fails);
            for result in results.iter().filter(|r| !r.defects.is_empty()) {
                assert_eq!(result.verdict, Verdict::Fail, "seed {seed}: {element}");
            }
            let judged: u64 = results.iter().map(|r| r.judged_pixels).sum();
            (rows_of(&sent, 13, 13), in_web(&results), judged, fails)
        });
        assert!(
            strips == whole,
            "seed {seed}, strips of {height} rows: {element}"
        );
    }
    assert!(failed > 10, "{failed} webs failed, which says little");
}

/// A flat web with a bright line of one column.
fn line(rows: usize, marked: std::ops::Range<usize>) -> Web {
    let mut web = Web {
        format: Format::Gray8,
        width: 64,
        rows,
        bytes: vec![100; 64 * rows],
    };
    for row in marked {
        web.bytes[64 * row + 30] = 200;
    }
    web
}

#[test]
fn a_line_over_three_strips_is_listed_once_where_it_ends() {
    if start().is_none() {
        return;
    }
    // Rows 7 to 22 of column 30: it begins in strip 0, fills strip 1 and ends in strip 2 of 10 rows.
    let web = line(50, 7..23);
    let element = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> min-contrast=0 threshold=40 \
                   line-scan=true fail-defect-area=15 fail-defect-count=-1 mm-per-pixel-x=0.5 \
                   mm-per-pixel-y=2";
    let sent = web.through(element, 10);
    let results: Vec<DefectResult> = sent.iter().flat_map(|s| DefectResult::read(s)).collect();
    let listed: Vec<usize> = results.iter().map(|r| r.defects.len()).collect();
    assert_eq!(listed, [0, 0, 1, 0, 0]);
    let defect = results[2].defects[0];
    assert_eq!(
        (defect.x, defect.y, defect.width, defect.height),
        (30, -13, 1, 16)
    );
    assert_eq!((defect.area, defect.id, defect.flags), (16, 1, 0));
    assert_eq!((defect.centroid_x, defect.centroid_y), (30.5, -5.0));
    // Variance of 16 rows in a line: (16² − 1)/12.
    assert!((defect.major_axis - 4.0 * (255.0_f32 / 12.0).sqrt()).abs() < 1e-4);
    assert_eq!((defect.minor_axis, defect.boundary_length), (0.0, 34));
    assert_eq!(defect.mean_difference, 100.0);
    let open: Vec<u64> = results.iter().map(|r| r.open_area).collect();
    assert_eq!(open, [3, 13, 0, 0, 0]);
    // 16 pixels exceed the area of 15 in the strip that lists the line, not before.
    let failed: Vec<bool> = results.iter().map(|r| r.verdict == Verdict::Fail).collect();
    assert_eq!(failed, [false, false, true, false, false]);
    // Its first pixel lies in column 30 and row 7 of the web: 15 mm across and 14 mm along.
    assert_eq!(results[2].x_mm(&defect), Some(15.0));
    assert!((results[2].y_m(&defect).unwrap() - 0.014).abs() < 1e-9);
    // The box of the region of interest is cut to the strip.
    let roi = sent[2]
        .meta::<gst_video::VideoRegionOfInterestMeta>()
        .unwrap();
    assert_eq!(roi.rect(), (30, 0, 1, 3));
}

#[test]
fn a_defect_fails_the_strip_that_lists_it_although_nothing_is_judged_there() {
    if start().is_none() {
        return;
    }
    // The line ends in row 29; the rows from 30 on are not judged, but only they tell that it ends.
    let web = line(50, 15..30);
    let element = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> min-contrast=0 threshold=40 line-scan=true";
    for unjudged in [
        "rois=<<0,0,64,30>>",
        "ignore-regions=<<0.0,30.0,64.0,30.0,64.0,50.0,0.0,50.0>>",
    ] {
        for (height, wanted) in [
            (50, vec![Verdict::Fail]),
            (
                10,
                vec![
                    Verdict::Pass,
                    Verdict::Pass,
                    Verdict::Pass,
                    Verdict::Fail,
                    Verdict::None,
                ],
            ),
        ] {
            let sent = web.through(&format!("{element} {unjudged}"), height);
            let verdicts: Vec<_> = (sent.iter().flat_map(|s| DefectResult::read(s)))
                .map(|result| result.verdict)
                .collect();
            assert_eq!(verdicts, wanted, "{unjudged}, strips of {height} rows");
        }
    }
}

#[test]
fn an_endless_line_is_cut_and_continued() {
    if start().is_none() {
        return;
    }
    let web = line(400, 5..400);
    let element = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> min-contrast=0 threshold=40 \
                   line-scan=true max-defect-rows=100";
    let results: Vec<DefectResult> = web
        .through(element, 10)
        .iter()
        .flat_map(|strip| DefectResult::read(strip))
        .collect();
    let listed: Vec<(u32, u16)> = results
        .iter()
        .flat_map(|strip| strip.defects.iter().map(|d| (d.area, d.flags)))
        .collect();
    assert_eq!(listed.iter().map(|(area, _)| area).sum::<u32>(), 395);
    assert_eq!(
        listed.first().map(|d| d.1),
        Some(gstclinspect::results::Defect::CUT)
    );
    assert_eq!(
        listed.last().map(|d| d.1),
        Some(gstclinspect::results::Defect::CONTINUED)
    );
    assert!(listed.len() >= 4, "{listed:?}");
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

#[test]
fn stats_count_the_listed_defects_by_class() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 24);
    let element = format!("{JUDGED} classes=\"long: elongation > 3 and major > 8\"");
    let mut rig = Rig::new(&element, &web.caps(20));
    for strip in web.strips(20) {
        rig.push(strip).unwrap();
    }
    rig.harness().push_event(gst::event::Eos::new());
    let mut listed = std::collections::BTreeMap::<String, u64>::new();
    while let Some(strip) = rig.harness().try_pull() {
        for result in DefectResult::read(&strip) {
            for defect in &result.defects {
                *listed
                    .entry(result.class_name(defect.class).to_owned())
                    .or_default() += 1;
            }
        }
    }
    assert!(listed.len() > 1, "{listed:?}");
    let stats: gst::Structure = rig.only("clpitchthreshold").property("stats");
    let counts: gst::Structure = stats.get("class-counts").unwrap();
    for (name, count) in &listed {
        assert_eq!(counts.get::<u64>(name), Ok(*count), "{name}");
    }
}
