//! A trial says what the running pipeline says.

use clinspect_results::{DefectResult, HistogramResult};
use clinspect_station::{config::CameraConfig, frame::Frame, trial::Trial};
use clinspect_testkit::{support::Rig, tools::Sandbox};
use gst_video::VideoFormat;
use gstinspectpublish::report::Report;

use super::scenes::{camera, panels, start};

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
