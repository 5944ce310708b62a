//! What begins a web: another stream, offsets that do not follow, DISCONT, a buffer that cannot be read.

use gstclinspect::results::DefectResult;

use crate::{
    support::{Rig, start},
    web_bad_input::{
        ALONG_X, JUDGED, SMOOTH, WIDTH, bytes, caps, cloth, drain, end, one_web, order, strips,
        webs,
    },
};

/// Begins a stream, as a source does that plays the next file.
fn begin_stream(rig: &mut Rig, height: usize) {
    rig.harness()
        .push_event(gst::event::StreamStart::new("the next roll"));
    rig.harness()
        .push_event(gst::event::Caps::new(&caps(height)));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    rig.harness().push_event(gst::event::Segment::new(&segment));
}

#[test]
fn each_stream_through_an_element_is_a_web_that_begins_with_start() {
    if start().is_none() {
        return;
    }
    let rows = cloth(120);
    for (element, factory) in [
        (SMOOTH.to_owned(), "clgaussian"),
        (JUDGED.to_owned(), "clpitchthreshold"),
        (format!("{JUDGED} output=frame"), "clpitchthreshold"),
    ] {
        // The stream before ends with EOS or is only replaced; the next one has the same caps or others.
        for (has_eos, height) in [(true, 8), (false, 8), (true, 20), (false, 20)] {
            let what = format!("{element}, EOS {has_eos}, then {height} rows");
            let mut rig = Rig::new(&element, &caps(8));
            for strip in strips(&rows, 8) {
                rig.push(strip).unwrap();
            }
            assert_eq!(webs(&rig, factory), [(0, "start".to_owned(), 0)], "{what}");
            if has_eos {
                rig.harness().push_event(gst::event::Eos::new());
            }
            begin_stream(&mut rig, height);
            // The strips of the stream before do not wait for rows of the next one.
            let first = drain(&mut rig);
            assert_eq!(order(&first), (0..15).collect::<Vec<u64>>(), "{what}");
            for (offset, mut strip) in strips(&rows, height).into_iter().enumerate() {
                // The next file's offsets begin anew.
                strip.get_mut().unwrap().set_offset(offset as u64);
                rig.push(strip).unwrap();
            }
            assert_eq!(webs(&rig, factory), [(1, "start".to_owned(), 0)], "{what}");
            let second = end(&mut rig);
            let wanted = one_web(&element, strips(&rows, 8), 8);
            assert!(bytes(&first) == bytes(&wanted), "{what}");
            let wanted = one_web(&element, strips(&rows, height), height);
            assert_eq!(order(&second), order(&wanted), "{what}");
            assert!(bytes(&second) == bytes(&wanted), "{what}");
            for (number, sent) in [&first, &second].into_iter().enumerate() {
                let mut line = 0;
                for result in sent.iter().flat_map(|strip| DefectResult::read(strip)) {
                    let place = (result.web, result.first_line);
                    assert_eq!(place, (number as u64, line), "{what}");
                    line += u64::from(result.height);
                }
            }
        }
    }
}

#[test]
fn offsets_that_jump_back_separate_webs_that_are_judged_alone() {
    if start().is_none() {
        return;
    }
    let rows = cloth(128);
    for (element, factory) in [(SMOOTH, "clgaussian"), (JUDGED, "clpitchthreshold")] {
        let mut rig = Rig::new(element, &caps(8));
        let far = u64::MAX - 5;
        let offsets = [
            4,
            5,
            6,
            7,
            2,
            3,
            4,
            5,
            far,
            far + 1,
            far + 2,
            far + 3,
            0,
            1,
            2,
            3,
        ];
        for (mut strip, offset) in strips(&rows, 8).into_iter().zip(offsets) {
            strip.get_mut().unwrap().set_offset(offset);
            rig.push(strip).unwrap();
        }
        let sent = end(&mut rig);
        assert_eq!(order(&sent), (0..16).collect::<Vec<u64>>(), "{element}");
        let wanted = [
            (0, "start", 0),
            (1, "offset", 0),
            // A jump forward counts as lost buffers, however far it is.
            (2, "offset", far - 6),
            (3, "offset", 0),
        ];
        let wanted = wanted.map(|(web, reason, lost)| (web, reason.to_owned(), lost));
        assert_eq!(webs(&rig, factory), wanted, "{element}");
        for (sent, rows) in sent.chunks(4).zip(rows.chunks(4 * 8 * WIDTH)) {
            let alone = one_web(element, strips(rows, 8), 8);
            assert!(bytes(sent) == bytes(&alone), "{element}");
        }
    }
}

#[test]
fn offsets_may_count_bytes() {
    if start().is_none() {
        return;
    }
    let rows = cloth(120);
    let mut rig = Rig::new(SMOOTH, &caps(8));
    let mut told = Vec::new();
    for (index, mut strip) in strips(&rows, 8).into_iter().enumerate() {
        // As rawvideoparse does behind filesrc; two strips are lost, and later the file starts again.
        let number = match index {
            ..6 => index,
            6..10 => index + 2,
            10.. => index - 10,
        };
        (strip.get_mut().unwrap()).set_offset((number * 8 * WIDTH) as u64);
        rig.push(strip).unwrap();
        for web in rig.told("clgaussian-web") {
            let reason: String = web.get("reason").unwrap();
            told.push((index, reason, web.get::<u64>("lost-buffers").unwrap()));
        }
    }
    let wanted = [(0, "start", 0), (6, "offset", 2), (10, "offset", 0)];
    assert_eq!(
        told,
        wanted.map(|(at, why, lost)| (at, why.to_owned(), lost))
    );
    assert_eq!(order(&end(&mut rig)), (0..15).collect::<Vec<u64>>());
}

#[test]
fn rows_that_all_have_the_flag_discont_are_judged_along_x_alone() {
    if start().is_none() {
        return;
    }
    let rows = cloth(60);
    // Frames of one row, without a comparison along y, which a row alone cannot have.
    let frames = ALONG_X.replace(" line-scan=true", "");
    let mut alone = Rig::new(&frames, &caps(1));
    let wanted: Vec<gst::Buffer> = strips(&rows, 1)
        .into_iter()
        .map(|row| alone.pass(row))
        .collect();
    let counts = |strips: &[gst::Buffer]| -> Vec<(u64, u64, u64, usize)> {
        let results = strips.iter().flat_map(|strip| DefectResult::read(strip));
        results
            .map(|r| (r.judged_x, r.judged_y, r.defect_pixels, r.defects.len()))
            .collect()
    };
    assert!(counts(&wanted).iter().any(|(_, _, marked, _)| *marked > 0));
    for output in ["mask", "frame"] {
        let mut rig = Rig::new(&format!("{JUDGED} output={output}"), &caps(1));
        for (index, mut strip) in strips(&rows, 1).into_iter().enumerate() {
            let fields = strip.get_mut().unwrap();
            fields.set_flags(gst::BufferFlags::DISCONT);
            rig.push(strip).unwrap();
            // Each row leaves with the next one.
            assert_eq!(rig.harness().buffers_in_queue() as usize, index, "{output}");
        }
        let sent = end(&mut rig);
        assert_eq!(order(&sent), order(&wanted), "{output}");
        if output == "mask" {
            assert!(bytes(&sent) == bytes(&wanted));
        } else {
            assert!(bytes(&sent) == rows);
        }
        assert_eq!(counts(&sent), counts(&wanted), "{output}");
        let told = webs(&rig, "clpitchthreshold");
        assert_eq!(told.len(), 60, "{output}");
        for (number, (web, reason, lost)) in told.iter().enumerate() {
            let why = if number == 0 { "start" } else { "discont" };
            assert_eq!((*web, reason.as_str(), *lost), (number as u64, why, 0));
        }
    }
}

#[test]
fn a_buffer_that_cannot_be_read_is_an_error_and_ends_the_web() {
    if start().is_none() {
        return;
    }
    let rows = cloth(128);
    for (element, factory) in [
        (SMOOTH.to_owned(), "clgaussian"),
        (JUDGED.to_owned(), "clpitchthreshold"),
        (format!("{JUDGED} output=frame"), "clpitchthreshold"),
    ] {
        for has_offsets in [false, true] {
            let what = format!("{element}, offsets {has_offsets}");
            let mut rig = Rig::new(&element, &caps(8));
            for (index, mut strip) in strips(&rows, 8).into_iter().enumerate() {
                let fields = strip.get_mut().unwrap();
                if has_offsets {
                    fields.set_offset(index as u64);
                }
                if index == 6 {
                    // Half of its rows are missing.
                    fields.set_size(4 * WIDTH);
                    assert_eq!(webs(&rig, factory), [(0, "start".to_owned(), 0)], "{what}");
                    assert_eq!(rig.push(strip), Err(gst::FlowError::Error), "{what}");
                    assert_eq!(rig.errors().len(), 1, "{what}");
                    // The strips before it are judged as the last ones of a web.
                    assert_eq!(rig.harness().buffers_in_queue(), 6, "{what}");
                } else {
                    rig.push(strip).unwrap();
                }
            }
            let sent = end(&mut rig);
            let before = one_web(&element, strips(&rows[..6 * 8 * WIDTH], 8), 8);
            let after = one_web(&element, strips(&rows[7 * 8 * WIDTH..], 8), 8);
            assert_eq!(sent.len(), 15, "{what}");
            assert!(bytes(&sent) == bytes(&[before, after].concat()), "{what}");
            let wanted = [(1, "discont".to_owned(), 1)];
            assert_eq!(webs(&rig, factory), wanted, "{what}");
            assert!(rig.errors().is_empty(), "{what}");
        }
    }
}
