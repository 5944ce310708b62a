//! Tables.

use std::time::Instant;

use clinspect_station::trial::Trial;
use clinspect_testkit::tools::Sandbox;
use gst_video::VideoFormat;

use super::scenes::{camera, panels, start};

#[test]
fn changes() {
    start();
    let sandbox = Sandbox::new("trial-changes");
    let frames = panels(VideoFormat::Gray8, 6, &[2, 4]);
    let base = "gaussian = { kernel-size = 5, sigma = 0.8 }\npitch = { pitch-x = 7.35, pitch-y = 7.35, threshold = 30.0, min-area = 3 }";
    let config = camera(sandbox.path(), base);
    for change in [
        "threshold = 10.0",
        "threshold = 10.5, min-area = 2",
        "min-area = 1",
        "scales = 3",
        "scales = 2, scale-factors = [0.5, 0.4]",
        "multiples = [1]",
        "multiples = [1, 2, 3]",
        "compare = \"average\"",
        "polarity = \"dark\"",
        "merge-distance = 5",
        "rois = [[0, 0, 100, 100]]",
        "ignore = { regions = [[0, 0, 200, 0, 200, 200, 0, 200]] }",
        "min-contrast = 0.0",
        "match-center = false",
        "pitch-x = 14.7",
        "borders = \"skip\"",
        "edge-margin = 7",
        "limits = { max-defects = 1 }",
        "fail = { defect-count = 100 }",
        "classes = \"big: area > 5\"",
    ] {
        let mut text = base.to_owned();
        for part in change.split(", ").filter(|p| p.contains(" = ")) {
            let key = part.split(" = ").next().unwrap();
            if let Some(at) = text.find(&format!(" {key} = ")) {
                let end = text[at + 1..].find([',', '}']).unwrap() + at + 1;
                text.replace_range(at + 1..end, "");
                text = text
                    .replace(", ,", ",")
                    .replace("{ ,", "{")
                    .replace(", }", " }")
                    .replace("{, ", "{ ");
            }
        }
        let text = text
            .replace(" }", " }")
            .trim_end()
            .trim_end_matches('}')
            .trim_end()
            .trim_end_matches(',')
            .to_owned()
            + ", "
            + change
            + " }";
        let new = camera(sandbox.path(), &text);
        let mut trial = Trial::start(&config, frames[0].info()).unwrap();
        for frame in &frames {
            trial.judge(frame).unwrap();
        }
        let then = Instant::now();
        trial.change(&new).unwrap();
        let changed = trial.judge(&frames[2]).unwrap();
        let took = then.elapsed();
        let then = Instant::now();
        let mut fresh = Trial::start(&new, frames[0].info()).unwrap();
        fresh.judge(&frames[0]).unwrap();
        let first = then.elapsed();
        let expected = fresh.judge(&frames[2]).unwrap();
        eprintln!(
            "{change}: {took:?}, fresh {first:?}: same {}",
            changed.mask == expected.mask
                && changed.report.inspections[0].counts == expected.report.inspections[0].counts
        );
    }
}
