//! Sets each property in each state, then changes caps: every byte of the output must be written for its
//! frame, with the old or the new settings.

use std::sync::Arc;

use clinspect_opencl::ClContext;
use gst::{glib, prelude::*};
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, HistogramResult};

use crate::{
    content::Content,
    frames::{Frame, PLAIN, read},
    support::{Pipeline, buffer_of, caps_of, start},
};

/// Sizes before and after the change of caps, px.
const SIZES: [[usize; 2]; 2] = [[128, 64], [256, 64]];
const OF_EVERY_DEVICE_ELEMENT: [(&str, &str); 4] = [
    ("device", "auto"),
    ("memory-object", "image"),
    ("profile", "true"),
    ("self-test", "never"),
];
const GAUSSIAN: [(&str, &str); 3] = [
    ("kernel-size", "7"),
    ("sigma", "2.5"),
    ("arithmetic", "float"),
];
const UNPACK: [(&str, &str); 2] = [("packing", "none"), ("demosaic", "gradient")];
const FLAT_FIELD: [(&str, &str); 6] = [
    ("mode", "line"),
    ("target", "100"),
    ("min-range", "1"),
    ("average-frames", "2"),
    ("bit-depth", "7"),
    ("location", ""),
];
const HISTOGRAM: [(&str, &str); 13] = [
    ("bins", "16"),
    ("roi", "<3,1,20,5>"),
    ("bit-depth", "8"),
    ("strategy", "private"),
    ("reports", "reports,messages=false"),
    ("reports", "reports,interval=0"),
    ("reports", "reports,message-bins=true"),
    ("alarm-over-exposed", "0.5"),
    ("alarm-under-exposed", "0.5"),
    ("alarm-contrast", "10"),
    ("alarm-drift", "10"),
    ("alarm-drift-reference", "<100.5>"),
    ("alarm-hysteresis", "0.5"),
];
/// Values of properties that every inspector has.
const OF_EVERY_INSPECTOR: [(&str, &str); 22] = [
    ("learn", "learn,frames=2"),
    ("learn", "learn,location=(string)\"\""),
    ("learn", "learn,margin=1"),
    ("min-area", "4"),
    ("merge-distance", "2"),
    ("limits", "limits,max-defects=3"),
    ("fail", "fail,defect-pixels=0"),
    ("fail", "fail,defect-count=-1"),
    ("fail", "fail,corrupted=false"),
    ("fail", "fail,defect-area=0"),
    ("fail", "fail,angle=30.0"),
    ("reports", "reports,messages=false"),
    ("reports", "reports,interval=0"),
    ("reports", "reports,message-defects=true"),
    ("reports", "reports,events=true"),
    ("limits", "limits,max-defect-rows=7"),
    ("limits", "limits,max-runs=5"),
    ("classes", "small: area < 4"),
    ("fail", "fail,classes=other"),
    ("mm-per-pixel", "<0.05,0.04>"),
    ("ignore", "ignore,mask=(string)\"\""),
    ("ignore", "ignore,regions=<<10,-1,70.5,20,4,66>>"),
];

const PITCH_THRESHOLD: [(&str, &str); 20] = [
    ("components", "luma"),
    ("component-limits", "<5.0,6.0,7.0>"),
    ("pitch-x", "9.5"),
    ("pitch-y", "5"),
    ("lattice", "<9.5,1.5,-2.0,7.0>"),
    ("multiples", "<1,2>"),
    ("threshold", "40"),
    ("compare", "minimum"),
    ("match-center", "true"),
    ("polarity", "dark"),
    ("borders", "inward"),
    ("edge-margin", "1"),
    ("scales", "2"),
    ("scale-factors", "<0.5,0.25>"),
    ("min-contrast", "30"),
    ("contrasts", "<16.5>"),
    ("rois", "<<9,1,60,50>>"),
    ("bit-depth", "8"),
    ("difference-gain", "3"),
    ("output", "frame"),
];

const REFERENCE: [(&str, &str); 22] = [
    ("components", "luma"),
    ("component-limits", "<5.0,20.0,6.0,21.0,7.0,22.0>"),
    ("threshold", "90"),
    ("deviation-factor", "0"),
    ("edge-tolerance", "0"),
    ("opening", "3"),
    ("polarity", "dark"),
    ("align", "translation"),
    ("search-range", "3"),
    ("match-score", "0"),
    ("parts", "<1,2>"),
    ("search", "<90.0,0.05>"),
    ("place-score", "0.5"),
    ("edge", "ignore"),
    ("normalize", "gain"),
    ("train-frames", "2"),
    ("difference-gain", "3"),
    ("location", ""),
    ("rois", "<<9,1,60,50>>"),
    ("bit-depth", "8"),
    ("output", "mask"),
    ("memory-object", "buffer"),
];

const SURFACE: [(&str, &str); 6] = [
    ("rois-follow", "true"),
    ("channels", "bright-lines"),
    ("thresholds", "<1.0,1.1,1.2,1.3,1.4,1.5,1.6,1.7>"),
    ("rois", "<<9,1,60,50>>"),
    ("bit-depth", "8"),
    ("output", "mask"),
];
const TEXTURE: [(&str, &str); 12] = [
    ("rois-follow", "true"),
    ("components", "luma"),
    ("component-limits", "<5.0,6.0,7.0>"),
    ("pitch-x", "7.5"),
    ("pitch-y", "5"),
    ("lattice", "<7.5,1.5,-1.0,6.0>"),
    ("thresholds", "<2.0,1.0,1.0,1.0,1.5,1.0>"),
    ("noise-from", "above"),
    ("min-contrast", "100"),
    ("rois", "<<9,1,60,50>>"),
    ("bit-depth", "8"),
    ("output", "mask"),
];

/// Verdict, marked and judged pixels, listed defects, mask in the meta.
type FrameVerdict = (String, u64, u64, usize, Option<Vec<u8>>);

/// The output of an element for one frame.
#[derive(Debug, PartialEq)]
struct Outcome {
    caps: gst::Caps,
    bytes: Vec<u8>,
    judged: Vec<FrameVerdict>,
    counts: Vec<Vec<u32>>,
}

impl Outcome {
    fn of(sample: &gst::Sample) -> Self {
        let buffer = &sample.buffer_owned().unwrap();
        Self {
            caps: sample.caps().unwrap().to_owned(),
            bytes: read(buffer),
            judged: DefectResult::read(buffer)
                .into_iter()
                .map(|r| {
                    let mask = r.mask.as_ref().map(read);
                    let verdict = r.verdict.name().to_owned();
                    (
                        verdict,
                        r.defect_pixels,
                        r.judged_pixels,
                        r.defects.len(),
                        mask,
                    )
                })
                .collect(),
            counts: HistogramResult::read(buffer)
                .into_iter()
                .map(|r| r.counts)
                .collect(),
        }
    }
}

/// The frames in the order in which [`run`] sends them, all different.
fn frames() -> Vec<Frame> {
    [0, 0, 0, 0, 1, 1, 1]
        .into_iter()
        .enumerate()
        .map(|(n, size)| {
            let mut frame = Frame::showing(Format::Gray8, SIZES[size], PLAIN, Content::Random, 0);
            frame.bytes.rotate_left(7 * n);
            frame
        })
        .collect()
}

/// Sends two frames, sets the property in the given state, and sends two more frames, two of another
/// size, and one after a restart.
fn run(line: &str, set: Option<(gst::State, &str, &str)>, device: &Arc<ClContext>) -> Vec<Outcome> {
    let pipeline = Pipeline::new(&format!(
        "appsrc name=in format=time ! {line} name=e ! appsink name=out sync=false"
    ));
    let element: gst::Element = pipeline.get("e");
    let set_in = |state: gst::State| {
        if let Some((_, name, value)) = set.filter(|(wanted, ..)| *wanted == state) {
            element.set_property_from_str(name, value);
        }
    };
    let input: gst_app::AppSrc = pipeline.get("in");
    let output: gst_app::AppSink = pipeline.get("out");
    let push = |frame: &Frame| {
        input.set_caps(Some(&caps_of(frame)));
        input.push_buffer(buffer_of(frame, device)).unwrap();
    };
    let pull = || {
        let sample = output.try_pull_sample(gst::ClockTime::from_seconds(60));
        Outcome::of(&sample.unwrap_or_else(|| {
            panic!(
                "{line}, {set:?}: no frame: {:?}",
                pipeline.bus().unwrap().pop()
            )
        }))
    };
    let frames = frames();
    let mut outcomes = Vec::new();
    set_in(gst::State::Null);
    pipeline.set_state(gst::State::Ready).unwrap();
    set_in(gst::State::Ready);
    pipeline.set_state(gst::State::Paused).unwrap();
    push(&frames[0]);
    output.pull_preroll().unwrap();
    set_in(gst::State::Paused);
    pipeline.set_state(gst::State::Playing).unwrap();
    outcomes.push(pull());
    push(&frames[1]);
    outcomes.push(pull());
    set_in(gst::State::Playing);
    for frame in &frames[2..6] {
        push(frame);
        outcomes.push(pull());
    }
    pipeline.set_state(gst::State::Ready).unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    push(&frames[6]);
    outcomes.push(pull());
    outcomes
}

/// True if a change takes effect while frames flow, false if at the next start.
fn is_live(pspec: &glib::ParamSpec) -> bool {
    pspec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING)
}

/// The values that the test gives a property, at least one for each field of a structure.
fn values_of<'a>(element: &gst::Element, name: &str, values: &[(&str, &'a str)]) -> Vec<&'a str> {
    let known = values.iter().filter(|(known, _)| *known == name);
    let known: Vec<&str> = known.map(|(_, value)| *value).collect();
    let factory = element.factory().unwrap().name();
    assert!(
        !known.is_empty(),
        "{factory}: give {name} a value in this test"
    );
    if let Ok(structure) = element.property_value(name).get::<gst::Structure>() {
        for field in structure.fields() {
            let begin = format!("{name},{field}=");
            let is_known = known.iter().any(|value| value.starts_with(&begin));
            assert!(
                is_known,
                "{factory}: give {field} of {name} a value in this test"
            );
        }
    }
    known
}

/// Runs each property of an element in each state.
fn assert_latched(line: &str, own: &[(&str, &str)]) {
    let Some(device) = start() else { return };
    let is_own = |name: &str| own.iter().any(|(known, _)| *known == name);
    let factory = line.split(' ').next().unwrap();
    let element = gst::ElementFactory::make(factory).build().unwrap();
    let of_inspector = OF_EVERY_INSPECTOR
        .iter()
        .filter(|_| element.has_property("learn"));
    let values: Vec<(&str, &str)> = own
        .iter()
        .chain(of_inspector)
        .chain((OF_EVERY_DEVICE_ELEMENT.iter()).filter(|(name, _)| !is_own(name)))
        .copied()
        .collect();
    let properties = element.list_properties();
    let writable = properties.iter().filter(|pspec| {
        pspec.owner_type().name().starts_with("GstCl")
            && pspec.flags().contains(glib::ParamFlags::WRITABLE)
            // Strips do not leave one by one; tests/elements/web.rs has a test.
            && pspec.name() != "line-scan"
    });
    let old = run(line, None, &device);
    assert!(old.iter().all(|o| o.bytes.iter().any(|&byte| byte != 0)));
    let with_values = writable.flat_map(|pspec| {
        let values = values_of(&element, pspec.name(), &values);
        values.into_iter().map(move |value| (pspec, value))
    });
    for (pspec, value) in with_values {
        let name = pspec.name();
        let new = run(line, Some((gst::State::Null, name, value)), &device);
        for state in [gst::State::Ready, gst::State::Paused, gst::State::Playing] {
            let found = run(line, Some((state, name, value)), &device);
            let set_after = match state {
                gst::State::Ready => 0,
                gst::State::Paused => 1,
                _ => 2,
            };
            for (n, outcome) in found.iter().enumerate() {
                let (is_old, is_new) = (*outcome == old[n], *outcome == new[n]);
                // The first frame after a start or a change of caps uses the current settings.
                let fine = match n {
                    6 => is_new,
                    _ if state == gst::State::Ready => is_new,
                    _ if n < set_after || !is_live(pspec) => is_old,
                    4.. => is_new,
                    _ => is_old || is_new,
                };
                assert!(
                    fine,
                    "{line}, {name}={value} set in {state:?}: frame {n} is {}: {:?} {:?}",
                    match (is_old, is_new) {
                        (true, _) => "the old settings'",
                        (_, true) => "the new settings'",
                        _ => "neither the old nor the new settings'",
                    },
                    outcome.caps,
                    outcome
                        .judged
                        .iter()
                        .map(|j| (&j.0, j.1, j.2))
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
}

#[test]
fn gaussian_properties_in_every_state_leave_no_frame_unwritten() {
    assert_latched("clgaussian", &GAUSSIAN);
}

/// Its settings while it corrects frames are tested in `flat_field.rs`.
#[test]
fn flat_field_properties_in_every_state_leave_frames_unchanged() {
    assert_latched("clflatfield", &FLAT_FIELD);
}

/// Its settings while it unpacks frames are tested in `unpack.rs`.
#[test]
fn unpack_properties_in_every_state_leave_raw_frames_unchanged() {
    assert_latched("clunpack", &UNPACK);
}

#[test]
fn histogram_properties_in_every_state_leave_no_frame_uncounted() {
    assert_latched("clhistogram", &HISTOGRAM);
}

/// The first frame after a start is the model; frames of the other size have none.
#[test]
fn reference_properties_in_every_state_leave_no_frame_unjudged() {
    assert_latched("clreference train-frames=1 output=frame", &REFERENCE);
}

#[test]
fn texture_properties_in_every_state_leave_no_frame_unjudged() {
    assert_latched(
        "cltexture pitch-x=6 pitch-y=4 thresholds=<3.0,2.0,1.5,1.2,2.0,1.5> min-contrast=0 output=frame",
        &TEXTURE,
    );
}

#[test]
fn surface_properties_in_every_state_leave_no_frame_unjudged() {
    assert_latched(
        "clsurface channels=dark-lines thresholds=<2.0,1.8,1.6,1.4,1.2,1.0,0.8,0.6> output=frame",
        &SURFACE,
    );
}

#[test]
fn pitch_threshold_properties_in_every_state_leave_no_mask_unwritten() {
    assert_latched("clpitchthreshold PUBLISHED pitch-x=7.35", &PITCH_THRESHOLD);
}

#[test]
fn pitch_threshold_properties_in_every_state_leave_no_frame_unjudged() {
    let mut values = PITCH_THRESHOLD;
    for (name, value) in &mut values {
        if *name == "output" {
            *value = "mask";
        }
    }
    assert_latched(
        "clpitchthreshold PUBLISHED pitch-x=7.35 output=frame",
        &values,
    );
}
