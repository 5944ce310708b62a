//! Twelve pairs of DeepPCB through `clreference`: a template each, and a board with defects.
//!
//! `CLINSPECT_BOARDS` names their folder: `ID_temp.jpg`, `ID_test.jpg`, and `ID.txt` with a line `x0 y0 x1 y1 class` for
//! each defect. Without it, a folder `shared/real/deeppcb` beside the checkout is used.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gst::prelude::*;
use gstclinspect::results::{DefectResult, Verdict};

const PAIRS: usize = 12;
/// As docs/which-element.md recommends for boards.
const RECOMMENDED: &str = "align=local edge-tolerance=0 threshold=120 opening=3 min-area=9";

struct Pair {
    template: gst::Sample,
    board: gst::Sample,
    /// `x0, y0, x1, y1`
    boxes: Vec<[i32; 4]>,
}

/// The pairs; `None` if there is no folder.
fn pairs() -> Option<Vec<Pair>> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/real/deeppcb");
    let folder = std::env::var_os("CLINSPECT_BOARDS").map_or(beside, PathBuf::from);
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("SKIP: CLINSPECT_BOARDS names no folder of boards");
        return None;
    };
    let mut lists: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    lists.sort();
    let pair = |list: PathBuf| {
        let id = list.file_stem().unwrap().to_str().unwrap();
        let picture = |end| decoded(&folder.join(format!("{id}_{end}.jpg")));
        let text = fs::read_to_string(&list).unwrap();
        let area = |line: &str| {
            let numbers = line.split_whitespace().map(|word| word.parse().unwrap());
            let numbers: Vec<i32> = numbers.collect();
            [numbers[0], numbers[1], numbers[2], numbers[3]]
        };
        Pair {
            template: picture("temp"),
            board: picture("test"),
            boxes: text.lines().map(area).collect(),
        }
    };
    Some(lists.into_iter().map(pair).collect())
}

/// A JPEG picture as GRAY8.
fn decoded(path: &Path) -> gst::Sample {
    let pipeline = gst::parse::launch(
        "filesrc name=source ! jpegdec ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=sink sync=false",
    );
    let pipeline = pipeline.unwrap().downcast::<gst::Pipeline>().unwrap();
    let source = pipeline.by_name("source").unwrap();
    source.set_property("location", path);
    let sink = pipeline.by_name("sink").unwrap();
    let sink = sink.downcast::<gst_app::AppSink>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    let sample = sink.pull_sample().unwrap();
    pipeline.set_state(gst::State::Null).unwrap();
    sample
}

/// The result of a board after a training with its template.
fn judged(pair: &Pair, settings: &str) -> DefectResult {
    let (pipeline, source, sink) = super::line(&format!(
        "appsrc name=src format=time ! clreference train-frames=1 {settings} ! appsink name=sink sync=false"
    ));
    pipeline.set_state(gst::State::Playing).unwrap();
    let mut result = None;
    for sample in [&pair.template, &pair.board] {
        source.push_sample(sample).unwrap();
        let judged = sink.pull_sample().unwrap();
        result = DefectResult::read(judged.buffer().unwrap()).pop();
    }
    pipeline.set_state(gst::State::Null).unwrap();
    result.unwrap()
}

/// Found boxes, all boxes, and listed defects outside every box.
fn counts(pairs: &[Pair], settings: &str) -> [usize; 3] {
    let mut counts = [0; 3];
    for pair in pairs {
        let result = judged(pair, settings);
        assert_eq!(result.verdict, Verdict::Fail, "every board has defects");
        let mut found = vec![false; pair.boxes.len()];
        for defect in &result.defects {
            let right = defect.x + defect.width as i32;
            let lower = defect.y + defect.height as i32;
            let mut is_false = true;
            for (&[x0, y0, x1, y1], found) in pair.boxes.iter().zip(&mut found) {
                if defect.x < x1 && right > x0 && defect.y < y1 && lower > y0 {
                    *found = true;
                    is_false = false;
                }
            }
            counts[2] += usize::from(is_false);
        }
        counts[0] += found.iter().filter(|&&found| found).count();
        counts[1] += found.len();
    }
    counts
}

#[test]
fn defects_of_boards_are_found_where_they_are_with_few_false_ones() {
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    let Some(pairs) = pairs() else { return };
    assert_eq!(pairs.len(), PAIRS);
    let [found, boxes, false_ones] = counts(&pairs, RECOMMENDED);
    println!("{found} of {boxes} found, {false_ones} false");
    assert!(found * 100 >= boxes * 98, "{found} of {boxes}");
    assert!(false_ones <= PAIRS / 2, "{false_ones} false defects");
    // A shift alone leaves seams at the edges of turned and stretched boards.
    let shifted = RECOMMENDED.replace("local", "translation");
    let [.., seams] = counts(&pairs, &shifted);
    println!("{seams} false with a shift alone");
    assert!(seams > 4 * PAIRS, "{seams}");
}
