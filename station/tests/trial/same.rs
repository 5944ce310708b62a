//! A trial says what the running pipeline says.

use clinspect_results::{DefectResult, HistogramResult, report::Report};
use clinspect_testkit::{
    support::Rig,
    tools::{Sandbox, alone},
};
use gst_video::VideoFormat;
use plan::CameraConfig;
use run::{frame::Frame, trial::Trial};

use super::scenes::{camera, labels, panels, start};

/// Report without its time and frame numbers, mask and counts of each frame from a pipeline of these elements.
fn of_pipeline(elements: &str, frames: &[Frame]) -> Vec<(Report, Vec<u8>, Vec<u32>)> {
    let mut rig = Rig::new(elements, &frames[0].info().to_caps().unwrap());
    let each = frames.iter().enumerate().map(|(at, frame)| {
        let mut buffer = frame.buffer().copy();
        buffer.make_mut().set_offset(at as u64);
        let buffer = rig.pass(buffer);
        let report = Report::of(&buffer, None, String::new()).unwrap();
        let mask = DefectResult::read(&buffer).pop().unwrap().mask.unwrap();
        let mask = mask.map_readable().unwrap().to_vec();
        let counts = HistogramResult::read(&buffer).pop().unwrap().counts;
        (plain(report), mask, counts)
    });
    each.collect()
}

fn of_trial(config: &CameraConfig, frames: &[Frame]) -> Vec<(Report, Vec<u8>, Vec<u32>)> {
    let mut trial = Trial::start(config, frames[0].info()).unwrap();
    let each = frames.iter().map(|frame| {
        let judged = trial.judge(frame).unwrap();
        let counts = judged.histogram.unwrap().counts;
        (plain(judged.report), judged.mask.bits, counts)
    });
    each.collect()
}

/// Names and times differ in every pipeline.
fn plain(mut report: Report) -> Report {
    report.time.clear();
    for inspection in &mut report.inspections {
        inspection.element.clear();
    }
    for histogram in &mut report.histograms {
        histogram.element.clear();
    }
    report
}

#[test]
fn frame_by_frame_a_trial_gives_the_verdicts_masks_and_counts_of_the_pipeline() {
    start();
    let sandbox = Sandbox::new("trial-same");
    let pitch = "clpitchthreshold output=frame reports=\"reports, messages=false\"";
    for (format, bits, threshold) in [
        (VideoFormat::Gray8, 0, 30),
        (VideoFormat::Gray16Le, 12, 480),
        (VideoFormat::Rgb, 0, 30),
    ] {
        let frames = panels(format, 6, &[2, 4]);
        let config = camera(
            sandbox.path(),
            &format!(
                "gaussian = {{ kernel-size = 5, sigma = 0.8 }}\n\
                 pitch = {{ threshold = {threshold}, min-area = 3, bit-depth = {bits} }}"
            ),
        );
        let line = format!(
            "clgaussian kernel-size=5 sigma=0.8 ! clhistogram bit-depth={bits} ! {pitch} \
             threshold={threshold} min-area=3 bit-depth={bits}"
        );
        let expected = of_pipeline(&line, &frames);
        let verdicts: Vec<_> = expected.iter().map(|(of, ..)| of.verdict).collect();
        assert!(verdicts.contains(&"pass"), "{format}: {verdicts:?}");
        assert!(verdicts.contains(&"fail"), "{format}: {verdicts:?}");
        assert_eq!(of_trial(&config, &frames), expected, "{format}");
    }
}

#[test]
fn a_label_is_compared_with_the_model_of_the_file_which_is_only_read() {
    start();
    let sandbox = Sandbox::new("trial-model");
    let model = sandbox.path().join("model.npz");
    let (model, good) = (model.display(), labels(12, &[]));
    let train = format!(
        "clhistogram ! clreference train-frames=12 align=translation location={model} output=frame"
    );
    of_pipeline(&train, &good);
    let written = std::fs::read(model.to_string()).unwrap();
    let frames = labels(16, &[13, 15]);
    let line = format!(
        "clhistogram ! clreference align=translation threshold=40 min-area=4 location={model} output=frame"
    );
    let expected = of_pipeline(&line, &frames);
    let verdicts: Vec<_> = expected.iter().map(|(of, ..)| of.verdict).collect();
    assert!(
        verdicts.contains(&"pass") && verdicts[13] == "fail",
        "{verdicts:?}"
    );
    let table = |train: &str| {
        format!(
            "reference = {{ align = \"translation\", threshold = 40.0, min-area = 4, location = \"{model}\"{train} }}"
        )
    };
    let config = camera(sandbox.path(), &table(""));
    assert_eq!(of_trial(&config, &frames), expected);
    // Without a model a camera would train one, and write it.
    std::fs::remove_file(model.to_string()).unwrap();
    let config = camera(sandbox.path(), &table(", train-frames = 3"));
    let of = of_trial(&config, &frames);
    assert!(
        of.iter()
            .all(|(of, ..)| of.verdict == "none" && of.training().is_none())
    );
    assert!(!std::path::Path::new(&model.to_string()).exists());
    std::fs::write(model.to_string(), &written).unwrap();
    assert_eq!(of_trial(&config, &frames), expected);
    assert_eq!(std::fs::read(model.to_string()).unwrap(), written);
}

#[test]
fn a_texture_without_limits_is_not_judged_and_none_are_written() {
    start();
    let sandbox = Sandbox::new("trial-no-limits");
    let limits = sandbox.path().join("limits.npz");
    let frames = panels(VideoFormat::Gray8, 6, &[]);
    let table = format!(
        "texture = {{ learn = {{ frames = 2, location = \"{}\" }} }}",
        limits.display()
    );
    let of = of_trial(&camera(sandbox.path(), &table), &frames);
    let is_unknown = |of: &Report| of.verdict == "none" && of.learning().is_none();
    assert!(of.iter().all(|(of, ..)| is_unknown(of)), "{of:?}");
    assert!(!limits.exists());
}

/// Settings of a panel with a change, and without it.
const PANEL: &str = "pitch-x = 7.35, pitch-y = 7.35, threshold = 30.0, min-area = 3";
const CHANGES: [(&str, &str); 12] = [
    ("threshold = 30.0", "threshold = 12.0"),
    ("min-area = 3", "min-area = 1"),
    ("min-area = 3", "min-area = 3, scales = 3"),
    ("min-area = 3", "min-area = 3, compare = \"average\""),
    ("min-area = 3", "min-area = 3, match-center = false"),
    ("min-area = 3", "min-area = 3, multiples = [1]"),
    ("min-area = 3", "min-area = 3, rois = [[40, 40, 100, 100]]"),
    (
        "min-area = 3",
        "min-area = 3, ignore = { regions = [[0, 0, 200, 0, 200, 200, 0, 200]] }",
    ),
    ("min-area = 3", "min-area = 3, merge-distance = 40"),
    ("min-area = 3", "min-area = 3, limits = { max-defects = 1 }"),
    (
        "min-area = 3",
        "min-area = 3, fail = { defect-count = 1000 }",
    ),
    ("min-area = 3", "min-area = 3, classes = \"big: area > 5\""),
];

#[test]
fn the_next_frame_is_judged_by_changed_settings_though_kernels_are_compiled_first() {
    let test =
        "same::the_next_frame_is_judged_by_changed_settings_though_kernels_are_compiled_first";
    let sandbox = Sandbox::new("trial-change");
    let caches = ["POCL_CACHE_DIR", "CLINSPECT_CACHE_DIR"];
    let folders = caches.map(|name| sandbox.folder(name));
    let empty = [
        (caches[0], folders[0].as_path()),
        (caches[1], folders[1].as_path()),
    ];
    if alone(test, &empty).is_some() {
        return;
    }
    start();
    let frames = panels(VideoFormat::Gray8, 4, &[1, 3]);
    let of = |settings: &str| {
        camera(
            sandbox.path(),
            &format!("gaussian = {{ kernel-size = 5, sigma = 0.8 }}\npitch = {{ {settings} }}"),
        )
    };
    let old = of(PANEL);
    for (before, after) in CHANGES {
        let new = of(&PANEL.replace(before, after));
        let mut trial = Trial::start(&old, frames[0].info()).unwrap();
        for frame in &frames {
            trial.judge(frame).unwrap();
        }
        trial.change(&new).unwrap();
        // The contrast is learned from the first frame.
        let mut fresh = Trial::start(&new, frames[0].info()).unwrap();
        let changed = [0, 1, 2, 3].map(|at: usize| trial.judge(&frames[at]).unwrap());
        let expected = [0, 1, 2, 3].map(|at: usize| fresh.judge(&frames[at]).unwrap());
        for (changed, expected) in changed.into_iter().zip(expected) {
            assert!(changed.mask == expected.mask, "{after}");
            let [changed, expected] =
                [changed, expected].map(|of| of.report.inspections[0].clone());
            assert_eq!(changed.verdict, expected.verdict, "{after}");
            assert_eq!(changed.counts, expected.counts, "{after}");
            assert_eq!(changed.defects.len(), expected.defects.len(), "{after}");
        }
    }
}

#[test]
fn refused_settings_leave_those_before_in_force() {
    start();
    let sandbox = Sandbox::new("trial-refused");
    let frames = panels(VideoFormat::Gray8, 2, &[1]);
    let of = |settings: &str| camera(sandbox.path(), &format!("pitch = {{ {PANEL}{settings} }}"));
    let old = of("");
    let mut trial = Trial::start(&old, frames[0].info()).unwrap();
    let expected = trial.judge(&frames[1]).unwrap().mask;
    // Only a frame tells that the region is outside of it.
    trial.change(&of(", rois = [[0, 0, 1000, 1000]]")).unwrap();
    let why = trial.judge(&frames[1]).unwrap_err();
    assert!(why.contains("rois"), "{why}");
    assert!(trial.judge(&frames[1]).unwrap().mask == expected);
    // The same if other kernels are needed, and so another pipeline.
    trial
        .change(&of(", rois = [[0, 0, 1000, 1000]], compare = \"average\""))
        .unwrap();
    trial.judge(&frames[1]).unwrap_err();
    // The contrast is learned anew, from this frame.
    assert!(trial.judge(&frames[1]).unwrap().mask == expected);
    trial.change(&of(", rois = [[0, 0, 100, 100]]")).unwrap();
    assert!(trial.judge(&frames[1]).unwrap().mask != expected);
}
