//! What elements with held strips answer, keep and refuse.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::DefectResult;

use crate::{
    support::{ON_DEVICE, Rig, start},
    web_bad_input::{
        Counted, JUDGED, SMOOTH, WIDTH, bytes, caps, cloth, drain, end, order, strips,
    },
};

/// Asks from upstream; downstream answers that all is consumed.
fn is_drained(rig: &mut Rig, asked: &Arc<AtomicUsize>) -> bool {
    let mut query = gst::query::Drain::new();
    let before = asked.load(Ordering::Relaxed);
    let answer = rig.harness().srcpad().unwrap().peer_query(&mut query);
    assert_eq!(
        asked.load(Ordering::Relaxed),
        before + 1,
        "downstream is asked"
    );
    answer
}

#[test]
fn drain_query_gives_memory_back_and_says_that_strips_are_held() {
    if start().is_none() {
        return;
    }
    let rows = cloth(64);
    for element in [
        SMOOTH.to_owned(),
        JUDGED.to_owned(),
        format!("{JUDGED} output=frame"),
    ] {
        let alive = Arc::new(AtomicUsize::new(0));
        let counted = |rows: &[u8]| {
            let mut strips = strips(rows, 8);
            for (strip, rows) in strips.iter_mut().zip(rows.chunks(8 * WIDTH)) {
                alive.fetch_add(1, Ordering::Relaxed);
                let memory = gst::Memory::from_slice(Counted(rows.to_vec(), alive.clone()));
                let strip = strip.get_mut().unwrap();
                strip.replace_all_memory(memory);
                // As a source does that sends parts of its buffers.
                gst::meta::ParentBufferMeta::add(strip, &strip.copy());
            }
            strips
        };
        let mut wanted = Rig::new(&element, &caps(8));
        let mut rig = Rig::new(&element, &caps(8));
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let sink = rig.harness().sinkpad().unwrap();
        sink.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, info| {
            if info
                .query()
                .is_some_and(|query| query.type_() == gst::QueryType::Drain)
            {
                count.fetch_add(1, Ordering::Relaxed);
                return gst::PadProbeReturn::Handled;
            }
            gst::PadProbeReturn::Ok
        });
        // Before the first strip.
        assert!(is_drained(&mut rig, &asked), "{element}");
        for (strip, same) in counted(&rows).into_iter().zip(strips(&rows, 8)) {
            rig.push(strip).unwrap();
            wanted.push(same).unwrap();
        }
        let mut sent = drain(&mut rig);
        assert!(sent.len() < 8, "{element}");
        let copies: Vec<gst::Buffer> = sent.iter().map(|b| b.copy_deep().unwrap()).collect();
        sent.clear();
        assert!(!is_drained(&mut rig, &asked), "{element}");
        assert_eq!(alive.load(Ordering::Relaxed), 0, "{element}");
        assert!(rig.is_silent(), "the web goes on");
        // The strips leave as if nothing had been asked.
        sent = [copies, end(&mut rig)].concat();
        let wanted = end(&mut wanted);
        assert_eq!(order(&sent), order(&wanted), "{element}");
        assert!(bytes(&sent) == bytes(&wanted), "{element}");
        let results = |strips: &[gst::Buffer]| -> Vec<String> {
            let results = strips.iter().flat_map(|strip| DefectResult::read(strip));
            results
                .map(|result| format!("{:?}", result.defects))
                .collect()
        };
        assert_eq!(results(&sent), results(&wanted), "{element}");
        assert!(is_drained(&mut rig, &asked), "{element}");
    }
}

#[test]
fn refused_caps_do_not_restart_webs_and_ids() {
    if start().is_none() {
        return;
    }
    let rows = cloth(64);
    let mut rig = Rig::new(JUDGED, &caps(8));
    // Colours of two rows cannot be shared by strips of seven.
    let refused = gst_video::VideoInfo::builder(Format::I420, WIDTH as u32, 7);
    let refused = refused.build().unwrap().to_caps().unwrap();
    // Rows of fewer pixels than the pitch.
    let narrow = gst_video::VideoInfo::builder(Format::Gray8, 4, 8);
    let narrow = narrow.build().unwrap().to_caps().unwrap();
    let mut webs = Vec::new();
    let mut sent = Vec::new();
    for _ in 0..2 {
        for strip in strips(&rows, 8) {
            if let Err(flow) = rig.push(strip) {
                panic!("{flow:?}: {:?}", rig.errors());
            }
        }
        for web in rig.told("clpitchthreshold-web") {
            let reason: String = web.get("reason").unwrap();
            webs.push((web.get::<u64>("web").unwrap(), reason));
        }
        for caps in [&refused, &narrow] {
            rig.harness().push_event(gst::event::Caps::new(caps));
            assert_eq!(rig.errors().len(), 1);
        }
        rig.renegotiate(&caps(8));
        sent.extend(drain(&mut rig));
    }
    let wanted = [(0, "start"), (1, "caps")].map(|(web, reason)| (web, reason.to_owned()));
    assert_eq!(webs, wanted);
    let results: Vec<DefectResult> = sent.iter().flat_map(|s| DefectResult::read(s)).collect();
    let ids: Vec<u32> = results
        .iter()
        .flat_map(|r| &r.defects)
        .map(|d| d.id)
        .collect();
    assert!(ids.len() > 4);
    assert_eq!(ids, (1..=ids.len() as u32).collect::<Vec<u32>>());
    assert_eq!(results.iter().map(|r| r.web).max(), Some(1));
}

#[test]
fn accepted_caps_work_again_after_refused_ones() {
    if start().is_none() {
        return;
    }
    let rows = cloth(8);
    // Rows of more than 4 MiB.
    let refused = gst_video::VideoInfo::builder(Format::Gray8, 5 << 20, 8);
    let refused = refused.build().unwrap().to_caps().unwrap();
    for element in ON_DEVICE {
        let mut rig = Rig::new(element, &caps(8));
        let first = rig.pass(strips(&rows, 8).remove(0));
        rig.harness().push_event(gst::event::Caps::new(&refused));
        assert_eq!(rig.errors().len(), 1, "{element}");
        rig.renegotiate(&caps(8));
        let again = rig.pass(strips(&rows, 8).remove(0));
        assert!(bytes(&[again]) == bytes(&[first]), "{element}");
        assert_eq!(rig.errors().len(), 0, "{element}");
    }
}

#[test]
fn rows_that_the_device_cannot_hold_are_refused() {
    if start().is_none() {
        return;
    }
    // 69 GB.
    let wide = gst_video::VideoInfo::builder(Format::Gray8, 65536, 1);
    let wide = wide.build().unwrap().to_caps().unwrap();
    let element = "clpitchthreshold pitch-x=8 pitch-y=65536 multiples=<1,4> scales=0 min-contrast=0 \
                   line-scan=true";
    let mut rig = Rig::new(element, &wide);
    let errors = rig.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = &errors[0].text;
    assert!(text.contains("262144 rows of the web above"), "{text}");
    assert!(text.contains("set smaller pitches"), "{text}");
    let strip = || gst::Buffer::from_slice(vec![100; 65536]);
    assert!(rig.push(strip()).is_err());
    assert_eq!(rig.errors().len(), 0);

    // While strips come, the pitch before stays in force.
    let mut rig = Rig::new(&element.replace("65536", "1.5"), &wide);
    rig.push(strip()).unwrap();
    let pitch = rig.only("clpitchthreshold");
    pitch.set_property("pitch-y", 65536.0);
    let began = std::time::Instant::now();
    let warnings = loop {
        rig.push(strip()).unwrap();
        let warnings = rig.warnings();
        if !warnings.is_empty() || began.elapsed().as_secs() > 60 {
            break warnings;
        }
    };
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].text.contains("rows of the web above"),
        "{warnings:?}"
    );
    assert_eq!(pitch.property::<f64>("pitch-y"), 1.5);
}
