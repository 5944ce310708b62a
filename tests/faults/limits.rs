//! Devices with unusually low limits: elements adapt with the same results, or refuse with an error that
//! says what to do.

use clinspect_testkit::support::Pipeline;
use gst::prelude::*;

use crate::{
    layer,
    stand::{Case, Frame, Stand, Trace},
};

/// The elements and settings to run on each device.
const ELEMENTS: &[(&str, &str)] = &[
    ("clgaussian", "GRAY8"),
    ("clgaussian kernel-size=31", "RGB"),
    ("clgaussian memory-object=image", "I420"),
    ("clhistogram", "RGB"),
    ("clhistogram bins=65536", "GRAY16_LE"),
    ("clhistogram strategy=local", "GRAY8"),
    ("clhistogram strategy=banked", "GRAY8"),
    ("clhistogram memory-object=image", "NV12"),
    ("clunpack packing=mono12p", "GRAY16_LE"),
    ("clflatfield location=WHITE", "GRAY8"),
    ("clreference train-frames=1 threshold=20", "GRAY8"),
    (
        "clreference train-frames=1 threshold=20 output=frame",
        "GRAY16_LE",
    ),
    ("clpitchthreshold pitch-x=8 output=frame", "GRAY8"),
    ("clpitchthreshold pitch-x=8 pitch-y=8", "GRAY16_LE"),
    ("clpitchthreshold pitch-x=8 memory-object=image", "GRAY8"),
    ("clpitchthreshold", "GRAY8"),
    (
        "clsurface channels=novelty+dark-lines learn=learn,frames=2",
        "GRAY8",
    ),
    (
        "clsurface learn=learn,frames=2 memory-object=image output=frame",
        "GRAY8",
    ),
    (
        "cltexture pitch-x=8 pitch-y=8 learn=learn,frames=2",
        "GRAY8",
    ),
    (
        "cltexture pitch-x=8 pitch-y=8 thresholds=<3.0,2.0,1.5,1.2,2.0,1.5> memory-object=image output=frame",
        "GRAY8",
    ),
];

/// Kinds of devices; every limit is applied to each.
const KINDS: &[(&str, &str)] = &[
    ("cpu", ""),
    ("gpu", "lie type 4\nlie unified 0\n"),
    ("gpu with the host's memory", "lie type 4\nlie unified 1\n"),
];

const LIMITS: &[&str] = &[
    "work-group 1",
    "work-group 16",
    "work-group 64",
    "work-group 100",
    "kernel-work-group 1",
    "kernel-work-group 7",
    "local-memory 0",
    "local-memory 1024",
    "local-memory 4096",
    "images 0",
    "image-size 16",
    "allocation 1000",
    "allocation 100000",
    "compute-units 1",
    "compute-units 1000",
    "compiler 0",
    "available 0",
    "little-endian 0",
    "address-bits 32",
    "alignment-bits 32768",
];

/// Limits with which a device must be refused, and a word of the error.
const REFUSED: &[(&str, &str)] = &[
    ("allocation 1000", "1000"),
    ("compiler 0", "compiler"),
    ("available 0", "available"),
    ("little-endian 0", "big-endian"),
];

/// Elements whose frames are larger than the device's largest buffer, and that the source writes into their memory.
pub const TOO_LARGE: &[&str] = &[
    "video/x-raw,format=RGB,width=8000,height=4000 ! clgaussian",
    "video/x-raw,format=GRAY8,width=8000,height=4000 ! clpitchthreshold pitch-x=8",
    "video/x-raw,format=GRAY8,width=8000,height=4000 ! clhistogram",
    "video/x-raw,format=GRAY8,width=8000,height=4000 ! clreference",
    "video/x-bayer,format=rggb,width=8000,height=4000 ! clunpack",
    "video/x-raw,format=GRAY8,width=8000,height=4000 ! identity ! clhistogram",
];

/// The first error is that of the element, not the source's word that its stream has an error.
///
/// # Errors
/// What is said instead.
pub fn too_large(line: &&str) -> Result<(), String> {
    layer::set_rules("lie allocation 20000000");
    let pipeline = Pipeline::new(&format!("videotestsrc num-buffers=3 ! {line} ! fakesink"));
    let _ = pipeline.set_state(gst::State::Playing);
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let limit = gst::ClockTime::from_seconds(50);
    let end = pipeline.bus().unwrap().timed_pop_filtered(limit, &ends);
    let end = end.ok_or("no error")?;
    let gst::MessageView::Error(error) = end.view() else {
        return Err("no error".into());
    };
    let text = error.error().to_string();
    match text.contains("are over the 20000000") {
        true => Ok(()),
        false => Err(format!("{:?}: {text}", error.src().map(|src| src.name()))),
    }
}

/// A limit on a device, and the elements to run.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    elements: &'static str,
    format: &'static str,
    kind: &'static str,
    lies: &'static str,
    limit: &'static str,
}

impl Scenario {
    pub fn name(&self) -> String {
        format!(
            "{} {} on a {} with {}",
            self.elements, self.format, self.kind, self.limit
        )
    }

    fn case(&self, lies: &'static str) -> Case {
        Case {
            name: "limits",
            elements: self.elements,
            format: self.format,
            size: [96, 48],
            ours: false,
            lies,
        }
    }
}

/// The scenarios of elements number `which`, or a sample of all.
pub fn scenarios(which: Option<usize>) -> Vec<Scenario> {
    let mut all = Vec::new();
    for (i, (elements, format)) in ELEMENTS.iter().enumerate() {
        for (k, (kind, lies)) in KINDS.iter().enumerate() {
            for (l, limit) in LIMITS.iter().enumerate() {
                // The sample covers every element, kind and limit.
                let chosen = which.map_or(l % ELEMENTS.len() == i && k == l % 3, |w| w == i);
                if chosen {
                    all.push(Scenario {
                        elements,
                        format,
                        kind,
                        lies,
                        limit,
                    });
                }
            }
        }
    }
    all
}

/// Number of values of `which`.
pub const COUNT: usize = ELEMENTS.len();

/// Runs on the device without the limit, then with the limit.
///
/// # Errors
/// The expectation that failed.
pub fn try_one(scenario: &Scenario) -> Result<(), String> {
    let whole = Stand::new(scenario.case("")).live(None);
    if !whole.errors.is_empty() {
        return Err(format!("without limits: {:?}", whole.errors));
    }
    // Leaks one small string per scenario.
    let lies: &'static str = format!("{}lie {}\n", scenario.lies, scenario.limit).leak();
    let mut stand = Stand::new(scenario.case(lies));
    let trace = stand.live(None);
    judge(scenario, &whole, &trace)?;
    let again = stand.live(None);
    // What was learned judges the first frames of the second time.
    let learns = scenario.elements.contains("learn=");
    if !learns && (&again.frames, &again.errors) != (&trace.frames, &trace.errors) {
        return Err(format!(
            "the second time {:?}, not {:?}",
            again.errors, trace.errors
        ));
    }
    Ok(())
}

fn judge(scenario: &Scenario, whole: &Trace, trace: &Trace) -> Result<(), String> {
    let about = |what: &str| Err(format!("{what}: {:?} {:?}", trace.frames, trace.errors));
    let refusal = REFUSED.iter().find(|(limit, _)| *limit == scenario.limit);
    match (trace.errors.first(), refusal) {
        (None, None) if trace.frames == whole.frames => Ok(()),
        (None, None) => about("other results than without limits"),
        // A small result may fit any device.
        (None, Some(("allocation 1000", _))) if trace.frames == whole.frames => Ok(()),
        (None, Some(_)) => about("runs on a device that cannot do it"),
        (Some(error), refusal) => {
            let helps = ["set ", "install", "lower"]
                .iter()
                .any(|word| error.contains(word));
            let says_why = refusal.is_none_or(|(_, word)| error.contains(word));
            if !helps || !says_why {
                return about("a refusal that does not say what to do");
            }
            if trace.errors.iter().any(|other| other != error) {
                return about("more than one error");
            }
            if trace
                .frames
                .iter()
                .any(|frame| matches!(frame, Frame::Out(_)))
            {
                return about("refused, and frames pass");
            }
            Ok(())
        }
    }
}
