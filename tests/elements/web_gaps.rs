//! GAP events and strips with the flag GAP: lines count, not time.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gstclinspect::results::DefectResult;

use crate::{
    support::{Rig, start},
    web_bad_input::{JUDGED, SMOOTH, WIDTH, bytes, caps, cloth, end, one_web, order, strips, webs},
};

/// What leaves an element: the time of a strip, or time and duration of a gap, in ms.
#[derive(Debug, Clone, PartialEq)]
enum Output {
    Strip(u64),
    Gap(u64, Option<u64>),
}

/// The strips and gaps that leave, in order.
fn watched(rig: &mut Rig) -> Arc<Mutex<Vec<Output>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = seen.clone();
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    let pad = rig.harness().sinkpad().unwrap();
    pad.add_probe(kinds, move |_, info| {
        if let Some(buffer) = info.buffer() {
            let time = buffer.pts().unwrap().mseconds();
            all.lock().unwrap().push(Output::Strip(time));
        } else if let Some(gst::EventView::Gap(gap)) = info.event().map(|event| event.view()) {
            let (time, duration) = gap.get();
            let duration = duration.map(gst::ClockTime::mseconds);
            all.lock()
                .unwrap()
                .push(Output::Gap(time.mseconds(), duration));
        }
        gst::PadProbeReturn::Ok
    });
    seen
}

fn gap(time: u64, duration: impl Into<Option<u64>>) -> gst::Event {
    let duration = duration.into().map(gst::ClockTime::from_mseconds);
    gst::event::Gap::builder(gst::ClockTime::from_mseconds(time))
        .duration(duration)
        .build()
}

fn listed(strips: &[gst::Buffer]) -> Vec<String> {
    let results = strips.iter().flat_map(|strip| DefectResult::read(strip));
    results
        .map(|result| format!("{} {:?} {:?}", result.web, result.verdict, result.defects))
        .collect()
}

/// The elements of these tests, with the name of the first one.
fn elements() -> [(String, &'static str); 4] {
    [
        (SMOOTH.to_owned(), "clgaussian"),
        (JUDGED.to_owned(), "clpitchthreshold"),
        (format!("{JUDGED} output=frame"), "clpitchthreshold"),
        (format!("{SMOOTH} ! {JUDGED}"), "clgaussian"),
    ]
}

#[test]
fn a_gap_event_stays_between_its_strips_and_the_web_goes_on() {
    if start().is_none() {
        return;
    }
    let rows = cloth(96);
    for (element, factory) in elements() {
        let wanted = one_web(&element, strips(&rows, 8), 8);
        let mut rig = Rig::new(&element, &caps(8));
        let left = watched(&mut rig);
        // Before the first strip nothing is held.
        rig.harness().push_event(gap(0, 5));
        assert_eq!(
            *left.lock().unwrap(),
            [Output::Gap(0, Some(5))],
            "{element}"
        );
        let mut expected = vec![Output::Gap(0, Some(5))];
        for (index, mut strip) in strips(&rows, 8).into_iter().enumerate() {
            // The web stands still for 30 ms behind each third strip.
            let time = 10 * index as u64 + 30 * (index as u64 / 3);
            (strip.get_mut().unwrap()).set_pts(gst::ClockTime::from_mseconds(time));
            rig.push(strip).unwrap();
            expected.push(Output::Strip(time));
            if index % 3 == 2 {
                rig.harness().push_event(gap(time + 10, 30));
                expected.push(Output::Gap(time + 10, Some(30)));
            }
        }
        assert!(left.lock().unwrap().len() < expected.len(), "{element}");
        let sent = end(&mut rig);
        assert_eq!(*left.lock().unwrap(), expected, "{element}");
        assert!(bytes(&sent) == bytes(&wanted), "{element}");
        assert_eq!(listed(&sent), listed(&wanted), "{element}");
        assert_eq!(
            webs(&rig, factory),
            [(0, "start".to_owned(), 0)],
            "{element}"
        );
    }
}

#[test]
fn gap_events_while_the_web_stands_become_one() {
    if start().is_none() {
        return;
    }
    let rows = cloth(64);
    // The last gap has a duration, or its end is not known.
    for last in [Some(10), None] {
        let mut rig = Rig::new(SMOOTH, &caps(8));
        let left = watched(&mut rig);
        let mut all = strips(&rows, 8).into_iter();
        for strip in all.by_ref().take(3) {
            rig.push(strip).unwrap();
        }
        // Two strips are held. Hours of gaps must not fill the memory.
        for number in 0..5000 {
            rig.harness().push_event(gap(30 + 10 * number, 10));
        }
        rig.harness().push_event(gap(50_030, last));
        // Another event stays where it came.
        let mark = gst::Structure::new_empty("mark");
        rig.harness()
            .push_event(gst::event::CustomDownstream::new(mark));
        rig.harness().push_event(gap(50_040, 20));
        assert_eq!(*left.lock().unwrap(), [Output::Strip(0)]);
        for mut strip in all {
            let time = strip.pts().unwrap() + gst::ClockTime::from_mseconds(50_030);
            strip.get_mut().unwrap().set_pts(time);
            rig.push(strip).unwrap();
        }
        end(&mut rig);
        let mut expected: Vec<Output> = [0, 10, 20].map(Output::Strip).into();
        expected.push(Output::Gap(30, last.map(|_| 50_010)));
        expected.push(Output::Gap(50_040, Some(20)));
        expected.extend((3..8).map(|strip| Output::Strip(50_030 + 10 * strip)));
        assert_eq!(*left.lock().unwrap(), expected);
    }
}

#[test]
fn a_gap_event_for_missing_data_ends_the_web() {
    if start().is_none() {
        return;
    }
    let rows = cloth(96);
    let (first, second) = rows.split_at(5 * 8 * WIDTH);
    for (element, factory) in elements() {
        let before = one_web(&element, strips(first, 8), 8);
        let after = one_web(&element, strips(second, 8), 8);
        let mut rig = Rig::new(&element, &caps(8));
        let left = watched(&mut rig);
        let mut expected: Vec<Output> = (0..5).map(|strip| Output::Strip(10 * strip)).collect();
        for strip in strips(first, 8) {
            rig.push(strip).unwrap();
        }
        assert!(left.lock().unwrap().len() < 5, "{element}");
        // As a depayloader sends for lost packets; the buffer behind it has DISCONT.
        let lost = gst::event::Gap::builder(gst::ClockTime::from_mseconds(50))
            .duration(gst::ClockTime::from_mseconds(20))
            .gap_flags(gst::GapFlags::DATA);
        rig.harness().push_event(lost.build());
        expected.push(Output::Gap(50, Some(20)));
        assert_eq!(*left.lock().unwrap(), expected, "{element}");
        for (index, mut strip) in strips(second, 8).into_iter().enumerate() {
            let fields = strip.get_mut().unwrap();
            let time = 70 + 10 * index as u64;
            fields.set_pts(gst::ClockTime::from_mseconds(time));
            if index == 0 {
                fields.set_flags(gst::BufferFlags::DISCONT);
            }
            rig.push(strip).unwrap();
            expected.push(Output::Strip(time));
        }
        let sent = end(&mut rig);
        assert_eq!(*left.lock().unwrap(), expected, "{element}");
        let wanted = [before, after].concat();
        assert!(bytes(&sent) == bytes(&wanted), "{element}");
        assert_eq!(
            webs(&rig, factory),
            [(0, "start".to_owned(), 0), (1, "discont".to_owned(), 0)],
            "{element}"
        );
    }
}

#[test]
fn strips_with_the_flag_gap_are_judged_like_others() {
    if start().is_none() {
        return;
    }
    let rows = cloth(96);
    for (element, factory) in elements() {
        let wanted = one_web(&element, strips(&rows, 8), 8);
        let mut rig = Rig::new(&element, &caps(8));
        let is_gap = |index: usize| (4..7).contains(&index) || index == 11;
        for (index, mut strip) in strips(&rows, 8).into_iter().enumerate() {
            if is_gap(index) {
                let fields = strip.get_mut().unwrap();
                fields.set_flags(gst::BufferFlags::GAP);
            }
            rig.push(strip).unwrap();
        }
        let sent = end(&mut rig);
        assert_eq!(order(&sent), order(&wanted), "{element}");
        assert!(bytes(&sent) == bytes(&wanted), "{element}");
        assert_eq!(listed(&sent), listed(&wanted), "{element}");
        assert_eq!(webs(&rig, factory).len(), 1, "{element}");
        // The flag says that pixels mean nothing, which holds for the source's own pixels only.
        let keeps = element.ends_with("output=frame");
        for (index, strip) in sent.iter().enumerate() {
            let has_flag = strip.flags().contains(gst::BufferFlags::GAP);
            assert_eq!(has_flag, keeps && is_gap(index), "{element}, strip {index}");
        }
    }
}
