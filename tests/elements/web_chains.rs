//! Webs through several elements: in a row, with a histogram between them, and in the branches of a tee.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{
    frames::read,
    support::{Pipeline, start},
    webs::{HEIGHTS, JUDGED, Web, in_web, row_bytes, rows_of},
};

/// What the tests compare: rows without padding, defects, sums of judged and marked pixels, and counts.
#[derive(Debug, PartialEq)]
struct Outcome {
    rows: Vec<u8>,
    defects: Vec<(i64, [u32; 4], String)>,
    judged: u64,
    marked: u64,
    counts: Vec<u64>,
}

fn seen(strips: &[gst::Buffer], row: usize) -> Outcome {
    let results: Vec<DefectResult> = strips.iter().flat_map(|s| DefectResult::read(s)).collect();
    let mut counts = Vec::new();
    for result in strips.iter().flat_map(|s| HistogramResult::read(s)) {
        counts.resize(result.counts.len(), 0);
        for (sum, count) in counts.iter_mut().zip(&result.counts) {
            *sum += u64::from(*count);
        }
    }
    let height = results.first().map_or(0, |result| result.height as usize);
    let stride = strips[0].size() / height.max(1);
    Outcome {
        rows: rows_of(strips, row, if height > 0 { stride } else { row }),
        defects: in_web(&results),
        judged: results.iter().map(|r| r.judged_pixels).sum(),
        marked: results.iter().map(|r| r.defect_pixels).sum(),
        counts,
    }
}

#[test]
fn a_chain_gives_for_strips_what_it_gives_for_one_frame() {
    if start().is_none() {
        return;
    }
    for (format, seed, gaussian, extra) in [
        (Format::Gray8, 51, "kernel-size=5 sigma=0.8", ""),
        (Format::Gray8, 52, "kernel-size=7", "output=frame"),
        (
            Format::Gray16Le,
            53,
            "kernel-size=3",
            "threshold=6000 merge-distance=2",
        ),
    ] {
        let web = Web::cloth(format, 97, 360, seed);
        let chain = format!(
            "clgaussian {gaussian} line-scan=true ! clhistogram ! {JUDGED} limits=limits,max-defects=10000 {extra}"
        );
        let row = if extra.contains("frame") {
            row_bytes(format, 97)
        } else {
            13
        };
        let whole = seen(&web.through(&chain, 360), row);
        assert!(whole.defects.len() > 3, "{chain}");
        assert_eq!(whole.counts.iter().sum::<u64>(), 97 * 360, "{chain}");
        for height in HEIGHTS {
            let strips = seen(&web.through(&chain, height), row);
            let what = format!("{chain}, strips of {height} rows");
            assert!(strips.rows == whole.rows, "{what}");
            assert_eq!(strips.defects, whole.defects, "{what}");
            assert!(strips == whole, "{what}");
        }
    }
}

/// What the branches of a tee send for the strips of a web, each from a queue of its own.
fn branches(web: &Web, height: usize, branches: [&str; 2]) -> [Vec<gst::Buffer>; 2] {
    let [first, second] = branches;
    let queue = "queue max-size-buffers=0 max-size-bytes=0 max-size-time=0";
    let sink = "sync=false async=false wait-on-eos=false";
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time ! tee name=t \
         t. ! {queue} ! {first} ! appsink name=first {sink} \
         t. ! {queue} ! {second} ! appsink name=second {sink}"
    ));
    let input: gst_app::AppSrc = pipeline.get("in");
    input.set_caps(Some(&web.caps(height)));
    pipeline.set_state(gst::State::Playing).unwrap();
    for strip in web.strips(height) {
        input.push_buffer(strip).unwrap();
    }
    input.end_of_stream().unwrap();
    let end = pipeline.wait_for_end();
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    ["first", "second"].map(|name| {
        let output: gst_app::AppSink = pipeline.get(name);
        std::iter::from_fn(|| output.try_pull_sample(gst::ClockTime::ZERO))
            .map(|sample| sample.buffer_owned().unwrap())
            .collect()
    })
}

#[test]
fn branches_of_a_tee_do_not_disturb_each_other() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 54);
    let smooth = "clgaussian kernel-size=31 line-scan=true";
    let judge = format!("{JUDGED} limits=limits,max-defects=10000 output=frame");
    let chain = format!("{smooth} ! {JUDGED} limits=limits,max-defects=10000");
    // `output=frame` holds the buffers themselves, which the other branch reads too.
    for lines in [[judge.as_str(), smooth], [judge.as_str(), chain.as_str()]] {
        let wanted = lines.map(|line| web.through(line, 360));
        for height in [1, 8, 45] {
            let sent = branches(&web, height, lines);
            for ((line, sent), wanted) in lines.iter().zip(&sent).zip(&wanted) {
                let what = format!("{line}, strips of {height} rows");
                let offsets: Vec<u64> = sent.iter().map(|strip| strip.offset()).collect();
                assert_eq!(
                    offsets,
                    (0..360 / height as u64).collect::<Vec<_>>(),
                    "{what}"
                );
                let row = if *line == chain { 13 } else { 97 };
                let stride = read(&sent[0]).len() / height;
                let rows = rows_of(sent, row, stride);
                assert!(rows == rows_of(wanted, row, stride), "{what}");
                let listed = |strips: &[gst::Buffer]| {
                    in_web(
                        &strips
                            .iter()
                            .flat_map(|s| DefectResult::read(s))
                            .collect::<Vec<_>>(),
                    )
                };
                assert_eq!(listed(sent), listed(wanted), "{what}");
            }
        }
    }
}
