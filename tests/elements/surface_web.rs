//! `clsurface line-scan=true`: strips of a web are judged as the whole web is, wherever it is cut.

use std::path::Path;

use clinspect_core::surface::{CHANNELS, Model, Samples};
use clinspect_models::ModelFile;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    content::random,
    frames::{Frame, PLAIN, read},
    oracle::surface as oracle,
    reference_picture::Folder,
    support::start,
    surface::{definition, limits_of, narrow, teach},
    webs::{Numbers, Web, in_web},
};

/// Grain with cracks and with places without grain.
fn web(width: usize, rows: usize, seed: u64, has_defects: bool) -> Web {
    let grain =
        |x: usize, y: usize| 60 + random(seed, x / 2, y / 3, 0) % 90 + random(seed, x, y, 1) % 30;
    let mut bytes: Vec<u8> = (0..width * rows)
        .map(|at| grain(at % width, at / width) as u8)
        .collect();
    let mut numbers = Numbers(seed);
    for n in 0..if has_defects { rows / 40 } else { 0 } {
        let mut next = |below: usize| numbers.next(below as u64) as usize;
        let (x, y) = (next(width), next(rows));
        let (w, h, level) = match n % 3 {
            0 => (14, 14, 119),
            1 => (3, 80, 20),
            _ => (60, 3, 20),
        };
        for row in y..(y + h).min(rows) {
            bytes[row * width..][x..(x + w).min(width)].fill(level);
        }
    }
    Web {
        format: Format::Gray8,
        width,
        rows,
        bytes,
    }
}

fn with_file(path: &Path, settings: &str) -> String {
    format!(
        "clsurface line-scan=true channels=novelty+dark-lines learn=\"learn,location=(string){}\" {settings}",
        path.display()
    )
}

#[test]
fn marks_counts_and_defects_of_strips_are_those_of_the_whole_web() {
    let Some(device) = start() else { return };
    let folder = Folder::new("surface-web");
    let path = folder.0.join("surface.npz");
    teach(&path, "channels=novelty+dark-lines", &device);
    // The last row of tiles has rows of a part of one more; 720 rows have a half of one.
    for (seed, rows, settings) in [
        (1, 720, ""),
        (2, 720, "rois=<<5,13,60,500>,<30,300,67,420>>"),
        (
            3,
            735,
            "ignore=\"ignore,regions=<<10,10,90,200,20,690>>\" merge-distance=2",
        ),
        (4, 45, ""),
    ] {
        let text = with_file(&path, settings);
        let web = web(97, rows, seed, true);
        let whole = web.through(&text, rows);
        let mask = read(&whole[0]);
        let result = &DefectResult::read(&whole[0])[0];
        let is_marked = result.defect_pixels > 0 || rows < 100;
        assert!(is_marked && result.judged_pixels > 0, "{text}");
        // A frame of the same rows has the same marks.
        let frame = web.through(&text.replace("line-scan=true", ""), rows);
        assert!(read(&frame[0]) == mask, "{text}");
        for height in [1, 3, 5, 8, 15, 45, 105, 120, 360] {
            if rows % height != 0 || (height == 1 && rows > 100) {
                continue;
            }
            let strips = web.through(&text, height);
            let masks: Vec<u8> = strips.iter().flat_map(read).collect();
            assert!(
                masks == mask,
                "{settings}, strips of {height} of {rows} rows"
            );
            let results: Vec<DefectResult> = strips
                .iter()
                .flat_map(|strip| DefectResult::read(strip))
                .collect();
            let sum = |count: fn(&DefectResult) -> u64| results.iter().map(count).sum::<u64>();
            assert_eq!(
                sum(|r| r.judged_pixels),
                result.judged_pixels,
                "{settings} {height}"
            );
            assert_eq!(
                sum(|r| r.defect_pixels),
                result.defect_pixels,
                "{settings} {height}"
            );
            assert_eq!(
                in_web(&results),
                in_web(std::slice::from_ref(result)),
                "{settings} {height}"
            );
        }
    }
}

#[test]
fn model_and_limits_of_strips_are_those_of_the_web_around_them() {
    let Some(_device) = start() else { return };
    let folder = Folder::new("surface-web-learn");
    let path = folder.0.join("surface.npz");
    let (height, strips) = (32, 10);
    let web = web(97, height * strips, 8, false);
    let text = with_file(&path, "").replace("learn,", "learn,frames=10,");
    let sent = web.through(&text, height);
    assert_eq!(sent.len(), strips);
    for strip in &sent {
        assert_eq!(DefectResult::read(strip)[0].verdict, Verdict::None);
    }
    let mut frame = Frame::poisoned(Format::Gray8, [97, height * strips], PLAIN, 0);
    let padding = frame.clone();
    frame.set(
        &[web.bytes.iter().copied().map(u32::from).collect()],
        &padding,
    );
    let part = |n: usize| vec![[0, n * height, 97, height]];
    let of_strips: Vec<_> = (0..strips)
        .map(|n| {
            let settings = definition(None, [None; CHANNELS]);
            let settings = oracle::Settings {
                rois: part(n),
                ..settings
            };
            let outcome = oracle::compare(frame.component(0), &settings);
            outcome.features.iter().map(narrow).collect::<Vec<_>>()
        })
        .collect();
    let model = |from: usize, step: usize| {
        let some = of_strips.iter().skip(from).step_by(step);
        let mut samples = Samples::new(some.clone().map(Vec::len).sum());
        some.for_each(|cells| samples.add(cells));
        Model::learn(&samples).expect("a model")
    };
    let file = ModelFile::open(&path).expect("a file");
    let stored = |name: &str| file.array::<2>(name).expect("an array").samples;
    let unsigned = |values: &[i32]| values.iter().map(|v| v.cast_unsigned()).collect::<Vec<_>>();
    assert_eq!(
        stored("surface_prototypes"),
        unsigned(model(0, 1).prototypes().as_flattened())
    );
    let halves = [model(1, 2), model(0, 2)];
    let limits = limits_of(strips, |n| (frame.component(0), &halves[n % 2], part(n)));
    let wanted: Vec<u32> = limits
        .iter()
        .map(|limit| (256.0 * limit).round() as u32)
        .collect();
    let found = file.array::<1>("surface_limits").expect("limits").samples;
    assert_eq!(found[..wanted.len()], wanted);
}
