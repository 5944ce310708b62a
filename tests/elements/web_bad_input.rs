//! Webs that are broken off, cut oddly or refused downstream: no strip is lost, sent twice or sent
//! unjudged.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult};

use crate::{
    frames::read,
    support::{Rig, start},
};

/// Pixels of a row; rows of strips need no padding.
pub const WIDTH: usize = 64;
/// A Gaussian that needs 15 rows below.
pub const SMOOTH: &str = "clgaussian kernel-size=31 line-scan=true";
/// A comparison along both axes that needs 10 rows below the first rows of a web, and later 5.
pub const JUDGED: &str = "clpitchthreshold pitch-x=8 pitch-y=5 multiples=<1> scales=0 min-contrast=0 threshold=40 line-scan=true";
/// A comparison along x.
pub const ALONG_X: &str = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> scales=0 min-contrast=0 threshold=40 \
                       line-scan=true";

pub fn caps(height: usize) -> gst::Caps {
    gst_video::VideoInfo::builder(Format::Gray8, WIDTH as u32, height as u32)
        .fps(gst::Fraction::new(100, 1))
        .build()
        .unwrap()
        .to_caps()
        .unwrap()
}

/// Rows of period 8 × 5 with a spot in every thirteenth row.
pub fn cloth(rows: usize) -> Vec<u8> {
    let pixel = |i: usize| {
        let (x, y) = (i % WIDTH, i / WIDTH);
        let level = 60 + 10 * (x % 8) + 8 * (y % 5);
        let spot = y % 13 == 6 && (x + y) % WIDTH < 3;
        (level + if spot { 80 } else { 0 }) as u8
    };
    (0..WIDTH * rows).map(pixel).collect()
}

/// Strips of `height` rows with times and without offsets.
pub fn strips(rows: &[u8], height: usize) -> Vec<gst::Buffer> {
    let strips = rows.chunks_exact(WIDTH * height).enumerate();
    strips
        .map(|(index, rows)| {
            let mut buffer = gst::Buffer::from_mut_slice(rows.to_vec());
            let fields = buffer.get_mut().unwrap();
            fields.set_pts(gst::ClockTime::from_mseconds(10 * index as u64));
            fields.set_duration(gst::ClockTime::from_mseconds(10));
            buffer
        })
        .collect()
}

pub fn drain(rig: &mut Rig) -> Vec<gst::Buffer> {
    std::iter::from_fn(|| rig.harness().try_pull()).collect()
}

/// What comes out until EOS.
pub fn end(rig: &mut Rig) -> Vec<gst::Buffer> {
    rig.harness().push_event(gst::event::Eos::new());
    drain(rig)
}

pub fn bytes(buffers: &[gst::Buffer]) -> Vec<u8> {
    buffers.iter().flat_map(read).collect()
}

/// The times in units of 10 ms.
pub fn order(buffers: &[gst::Buffer]) -> Vec<u64> {
    let time = |buffer: &gst::Buffer| buffer.pts().unwrap().mseconds() / 10;
    buffers.iter().map(time).collect()
}

/// Number and reason of each web, and the buffers lost before it.
pub fn webs(rig: &Rig, element: &str) -> Vec<(u64, String, u64)> {
    let told = rig.told(&format!("{element}-web"));
    let fields = told.iter().map(|web| {
        let [number, lost] = ["web", "lost-buffers"].map(|name| web.get::<u64>(name).unwrap());
        (number, web.get("reason").unwrap(), lost)
    });
    fields.collect()
}

fn reasons(rig: &Rig, element: &str) -> Vec<String> {
    rig.told(&format!("{element}-web"))
        .iter()
        .map(|web| web.get("reason").unwrap())
        .collect()
}

/// What `element` sends for strips of one web.
pub fn one_web(element: &str, strips: Vec<gst::Buffer>, height: usize) -> Vec<gst::Buffer> {
    let mut rig = Rig::new(element, &caps(height));
    for strip in strips {
        rig.push(strip).unwrap();
    }
    end(&mut rig)
}

#[test]
fn webs_of_one_strip_are_judged_as_frames() {
    if start().is_none() {
        return;
    }
    let rows = cloth(120);
    for element in [SMOOTH, JUDGED] {
        for height in [1, 2, 40, 120] {
            if height < 11 && element == JUDGED {
                // Frames of so few rows are refused without a web.
                continue;
            }
            let frame = element.replace(" line-scan=true", "");
            let mut rig = Rig::new(&frame, &caps(height));
            let alone: Vec<gst::Buffer> = strips(&rows, height)
                .into_iter()
                .map(|strip| rig.pass(strip))
                .collect();
            for by_offset in [false, true] {
                let mut rig = Rig::new(element, &caps(height));
                for mut strip in strips(&rows, height) {
                    let fields = strip.get_mut().unwrap();
                    if by_offset {
                        // A counter that never moves.
                        fields.set_offset(7);
                    } else {
                        fields.set_flags(gst::BufferFlags::DISCONT);
                    }
                    rig.push(strip).unwrap();
                }
                let sent = end(&mut rig);
                assert_eq!(order(&sent), order(&alone), "{element} {height}");
                assert!(bytes(&sent) == bytes(&alone), "{element} {height}");
            }
        }
    }
    // Rows that have no neighbours along y are sent unmarked, not refused.
    let sent = one_web(JUDGED, strips(&rows, 1), 1);
    assert_eq!(order(&sent), (0..120).collect::<Vec<u64>>());
}

/// Bytes that are counted while they live.
pub struct Counted(pub Vec<u8>, pub Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_line_without_end_holds_few_buffers() {
    if start().is_none() {
        return;
    }
    let mut rows = vec![100; 2 * WIDTH];
    (rows[30], rows[WIDTH + 30]) = (200, 200);
    // With output=frame a strip waits for the row below; the rows of a mask were copied.
    for (output, limit) in [("mask", 0), ("frame", 1)] {
        let element = format!("{ALONG_X} limits=limits,max-defect-rows=64 output={output}");
        let mut rig = Rig::new(&element, &caps(2));
        let alive = Arc::new(AtomicUsize::new(0));
        let (mut sent, mut listed) = (0, Vec::new());
        let mut take = |buffer: gst::Buffer| {
            sent += 1;
            let results = DefectResult::read(&buffer);
            listed.extend(results.iter().flat_map(|r| r.defects.clone()));
        };
        for _ in 0..3000 {
            alive.fetch_add(1, Ordering::Relaxed);
            let strip = gst::Buffer::from_slice(Counted(rows.clone(), alive.clone()));
            rig.push(strip).unwrap();
            while let Some(buffer) = rig.harness().try_pull() {
                take(buffer);
            }
            assert!(alive.load(Ordering::Relaxed) <= limit, "{output}");
        }
        end(&mut rig).into_iter().for_each(take);
        assert_eq!(sent, 3000);
        // 6000 rows in pieces of 64.
        assert_eq!(listed.iter().map(|d| d.area).sum::<u32>(), 6000);
        assert_eq!(listed.len(), 6000_usize.div_ceil(64));
        assert!(
            listed[1..93]
                .iter()
                .all(|d| d.flags == Defect::CUT | Defect::CONTINUED)
        );
    }
}

#[test]
fn held_strips_leave_at_eos_and_are_dropped_by_state_changes() {
    if start().is_none() {
        return;
    }
    let rows = cloth(64);
    for (element, factory) in [(SMOOTH, "clgaussian"), (JUDGED, "clpitchthreshold")] {
        let wanted = one_web(element, strips(&rows, 8), 8);
        assert_eq!(order(&wanted), [0, 1, 2, 3, 4, 5, 6, 7]);
        let mut rig = Rig::new(element, &caps(8));
        let tested = rig.only(factory);
        rig.push(strips(&rows, 8).remove(0)).unwrap();
        for state in [gst::State::Ready, gst::State::Null] {
            tested.set_state(state).unwrap();
            assert!(rig.is_silent(), "{element} {state:?}");
            tested.set_state(gst::State::Playing).unwrap();
            // The pads lost their sticky events.
            rig.harness()
                .push_event(gst::event::StreamStart::new("again"));
            rig.renegotiate(&caps(8));
            let segment = gst::FormattedSegment::<gst::ClockTime>::new();
            rig.harness().push_event(gst::event::Segment::new(&segment));
            reasons(&rig, factory);
            for strip in strips(&rows, 8) {
                rig.push(strip).unwrap();
            }
            assert_eq!(reasons(&rig, factory), ["start"], "{element} {state:?}");
            let mut sent = drain(&mut rig);
            // The next state change finds held strips.
            let held = 8 - sent.len();
            assert!(held > 0);
            let missing = wanted[sent.len()..].to_vec();
            sent.extend(missing);
            assert!(bytes(&sent) == bytes(&wanted), "{element} {state:?}");
        }
        assert!(rig.errors().is_empty());
    }
}

/// Lets downstream refuse buffers while the returned flag is set.
fn refusing(rig: &mut Rig) -> Arc<AtomicBool> {
    let refuses = Arc::new(AtomicBool::new(false));
    let flag = refuses.clone();
    let pad = rig.harness().sinkpad().unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if flag.load(Ordering::Relaxed) {
            info.flow_res = Err(gst::FlowError::NotLinked);
            return gst::PadProbeReturn::Handled;
        }
        gst::PadProbeReturn::Ok
    });
    refuses
}

#[test]
fn strips_that_downstream_refuses_do_not_enter_the_next_web() {
    if start().is_none() {
        return;
    }
    let rows = cloth(96);
    let wanted = one_web(SMOOTH, strips(&rows, 8), 8);
    let mut rig = Rig::new(SMOOTH, &caps(8));
    let refuses = refusing(&mut rig);
    for strip in strips(&rows, 8).into_iter().take(5) {
        rig.push(strip).unwrap();
    }
    assert_eq!(order(&drain(&mut rig)), [0, 1, 2]);
    // A branch of a tee that is not linked: the end of the web cannot be sent.
    refuses.store(true, Ordering::Relaxed);
    let mut next = strips(&rows, 8);
    (next[0].get_mut().unwrap()).set_flags(gst::BufferFlags::DISCONT);
    assert_eq!(rig.push(next[0].copy()), Err(gst::FlowError::NotLinked));
    refuses.store(false, Ordering::Relaxed);
    for strip in next {
        rig.push(strip).unwrap();
    }
    let sent = end(&mut rig);
    assert_eq!(order(&sent), order(&wanted));
    assert!(bytes(&sent) == bytes(&wanted));
}

#[test]
fn a_strip_that_is_dropped_because_it_is_late_ends_the_web() {
    if start().is_none() {
        return;
    }
    let rows = cloth(96);
    let mut rig = Rig::new(&format!("{SMOOTH} qos=true"), &caps(8));
    let mut all = strips(&rows, 8).into_iter();
    for strip in all.by_ref().take(3) {
        rig.push(strip).unwrap();
    }
    // Late by 5 ms at 25 ms: twice as much is skipped.
    let late = gst::event::Qos::builder(gst::QOSType::Underflow, 2.0, 5_000_000);
    let late = late.timestamp(gst::ClockTime::from_mseconds(25)).build();
    rig.harness().push_upstream_event(late);
    for strip in all {
        rig.push(strip).unwrap();
    }
    let sent = end(&mut rig);
    assert_eq!(order(&sent), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
    let webs = rig.told("clgaussian-web");
    let webs = webs.iter();
    let webs: Vec<(&str, u64)> = webs
        .map(|web| (web.get("reason").unwrap(), web.get("lost-buffers").unwrap()))
        .collect();
    assert_eq!(webs, [("start", 0), ("discont", 1)]);
    let before = one_web(SMOOTH, strips(&rows[..3 * 8 * WIDTH], 8), 8);
    let after = one_web(SMOOTH, strips(&rows[4 * 8 * WIDTH..], 8), 8);
    assert!(bytes(&sent) == [bytes(&before), bytes(&after)].concat());
}

#[test]
fn a_pitch_may_be_estimated_from_the_middle_of_a_web_on() {
    if start().is_none() {
        return;
    }
    let rows = cloth(2000);
    let mut rig = Rig::new(JUDGED, &caps(20));
    let element = rig.only("clpitchthreshold");
    let mut pushed = 0;
    let mut push = |rig: &mut Rig| {
        // 2000 rows are a whole number of periods.
        for strip in strips(&rows, 20) {
            if let Err(flow) = rig.push(strip) {
                panic!("{flow:?}: {:?}", rig.errors());
            }
            pushed += 1;
        }
    };
    push(&mut rig);
    element.set_property("pitch-y", -1.0);
    let began = Instant::now();
    let estimated = || {
        let estimates: gst::Structure = element.property("estimates");
        estimates.get::<f64>("pitch-y").unwrap()
    };
    while estimated() == 0.0 {
        assert!(began.elapsed() < Duration::from_secs(60));
        push(&mut rig);
    }
    let pitch = estimated();
    assert!((pitch - 5.0).abs() < 0.1, "{pitch}");
    let mut sent = drain(&mut rig).len();
    sent += end(&mut rig).len();
    assert_eq!(sent, pushed);
    assert!(rig.errors().is_empty());
}

#[test]
fn a_region_may_reach_to_the_end_of_any_web() {
    if start().is_none() {
        return;
    }
    let rows = cloth(96);
    let region = |height: u32| format!("{ALONG_X} rois=<<0,10,64,{height}>>");
    let wanted = one_web(&region(1000), strips(&rows, 8), 8);
    let sent = one_web(&region(i32::MAX as u32), strips(&rows, 8), 8);
    assert!(bytes(&sent) == bytes(&wanted));
}

#[test]
fn defects_do_not_stay_open_while_no_list_is_made() {
    if start().is_none() {
        return;
    }
    let mut line = vec![100; 8 * WIDTH];
    for row in 0..8 {
        line[WIDTH * row + 30] = 200;
    }
    let strip = |rows: &[u8]| strips(rows, 8).remove(0);
    let mut rig = Rig::new(ALONG_X, &caps(8));
    let element = rig.only("clpitchthreshold");
    // Strips wait for a row below: the second one lets the first one leave.
    rig.push(strip(&line)).unwrap();
    rig.push(strip(&line)).unwrap();
    element.set_property_from_str("limits", "limits, max-defects=0");
    for _ in 0..4 {
        rig.push(strip(&[100; 8 * WIDTH])).unwrap();
    }
    rig.push(strip(&line)).unwrap();
    element.set_property_from_str("limits", "limits");
    let listed: Vec<u32> = end(&mut rig)
        .iter()
        .flat_map(|strip| DefectResult::read(strip))
        .flat_map(|result| result.defects)
        .map(|defect| defect.area)
        .collect();
    assert_eq!(listed.last(), Some(&8));
}

#[test]
fn upstream_is_asked_for_the_buffers_that_are_held() {
    if start().is_none() {
        return;
    }
    let asked = |element: &str| {
        let mut rig = Rig::new(element, &caps(2));
        rig.push(strips(&cloth(2), 2).remove(0)).unwrap();
        let mut query = gst::query::Allocation::new(Some(&caps(2)), true);
        let source = rig.harness().srcpad().unwrap();
        assert!(source.peer_query(&mut query));
        let pools = query.allocation_pools();
        let (pool, _, min, _) = pools.into_iter().next().unwrap();
        let config = pool.unwrap().config();
        assert_eq!(config.params().unwrap().2, min);
        min
    };
    let frames = asked(&ALONG_X.replace(" line-scan=true", ""));
    // The rows of a mask are copied, and their buffers go back.
    assert_eq!(asked(JUDGED), frames);
    // The 10 rows below a web's first ones lie in five strips.
    assert_eq!(asked(&format!("{JUDGED} output=frame")), frames + 5);
}

#[test]
fn a_change_of_the_latency_is_told() {
    if start().is_none() {
        return;
    }
    let messages = |rig: &mut Rig, kernel: Option<u32>| {
        let element = rig.only("clgaussian");
        if let Some(kernel) = kernel {
            element.set_property("kernel-size", kernel);
        }
        let bus = rig.harness().element().unwrap().bus().unwrap();
        let began = Instant::now();
        let mut told = 0;
        loop {
            for strip in strips(&cloth(96), 8) {
                rig.push(strip).unwrap();
            }
            while bus.pop_filtered(&[gst::MessageType::Latency]).is_some() {
                told += 1;
            }
            if told > 0 || began.elapsed() > Duration::from_secs(20) {
                return told;
            }
        }
    };
    let mut rig = Rig::new(SMOOTH, &caps(8));
    // Sinks may have asked before the caps were known.
    assert_eq!(messages(&mut rig, None), 1);
    assert_eq!(messages(&mut rig, Some(5)), 1);
}

#[test]
fn sticky_events_behind_held_strips_outlive_a_flush() {
    if start().is_none() {
        return;
    }
    let mut rig = Rig::new(SMOOTH, &caps(8));
    rig.push(strips(&cloth(8), 8).remove(0)).unwrap();
    let mut tags = gst::TagList::new();
    (tags.get_mut().unwrap()).add::<gst::tags::Title>(&"roll 7", gst::TagMergeMode::Append);
    rig.harness().push_event(gst::event::Tag::new(tags));
    rig.harness().push_event(gst::event::FlushStart::new());
    rig.harness()
        .push_event(gst::event::FlushStop::builder(true).build());
    let sink = rig.harness().sinkpad().unwrap();
    assert!(sink.sticky_event::<gst::event::Tag>(0).is_some());
    assert!(rig.is_silent());
}

#[test]
fn a_picture_of_one_row_ignores_columns_of_the_whole_web() {
    if start().is_none() {
        return;
    }
    let mut line = vec![100; 40 * WIDTH];
    for row in line.chunks_exact_mut(WIDTH) {
        row[30] = 200;
    }
    let picture = |rows: usize| {
        let name = format!("clinspect-web-{rows}-{}.pgm", std::process::id());
        let path = std::env::temp_dir().join(name);
        let pixels = (0..rows * WIDTH).map(|i| u8::from(i % WIDTH == 30));
        let head = format!("P5 {WIDTH} {rows} 255\n").into_bytes();
        std::fs::write(&path, head.into_iter().chain(pixels).collect::<Vec<u8>>()).unwrap();
        path
    };
    let path = picture(1);
    let sent = one_web(
        &format!("{ALONG_X} ignore=ignore,mask={}", path.display()),
        strips(&line, 8),
        8,
    );
    std::fs::remove_file(path).unwrap();
    assert_eq!(order(&sent), [0, 1, 2, 3, 4]);
    for strip in &sent {
        let result = &DefectResult::read(strip)[0];
        // The edge margin leaves 60 of 64 columns, and one of them is ignored.
        assert_eq!((result.defect_pixels, result.judged_pixels), (0, 8 * 59));
    }
    // A picture of a strip would hold for the first strip only.
    let path = picture(8);
    let rig = Rig::new(
        &format!("{ALONG_X} ignore=ignore,mask={}", path.display()),
        &caps(8),
    );
    std::fs::remove_file(path).unwrap();
    let errors = rig.errors();
    assert!(errors.iter().any(|e| e.text.contains("64x1")), "{errors:?}");
}
