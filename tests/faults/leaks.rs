//! GStreamer's leak tracer, which counts references to its objects, over pipelines of each element.

use crate::tools::{Sandbox, exists, run, skip};

const ELEMENTS: [&str; 8] = [
    "clgaussian",
    "clhistogram",
    "clpitchthreshold pitch-x=8",
    "clpitchthreshold pitch-x=8 output=frame",
    "clflatfield",
    "clreference train-frames=1 threshold=20 output=frame",
    "clsurface output=frame learn=learn,frames=3",
    "cltexture pitch-x=8 pitch-y=4 output=frame learn=learn,frames=3",
];

/// Pipelines, and whether each ends without an error.
const PIPELINES: [(&str, bool); 3] = [
    ("{source} ! {element} ! {element2} ! fakesink", true),
    (
        "{source} ! {element} ! tee name=t t. ! queue ! fakesink t. ! queue ! fakesink",
        true,
    ),
    (
        "{source} ! {element} ! identity error-after=5 ! fakesink",
        false,
    ),
];

const SOURCE: &str = "videotestsrc num-buffers=20 ! video/x-raw,format=GRAY8,width=64,height=32";

#[test]
fn leak_tracer_finds_no_object_of_any_element_alive() {
    if !exists("gst-launch-1.0") {
        return skip("gst-launch-1.0 is not installed");
    }
    let sandbox = Sandbox::new("leaks");
    let first = run(&mut sandbox.launch(&format!("{SOURCE} ! clhistogram ! fakesink")));
    if first.code() != Some(0) && first.text().contains("pocl-opencl-icd") {
        return skip("this machine has no OpenCL device");
    }
    for element in ELEMENTS {
        for (pipeline, ends_well) in PIPELINES {
            let second = if element == "clpitchthreshold pitch-x=8" {
                "identity"
            } else {
                element
            };
            let line = pipeline
                .replace("{source}", SOURCE)
                .replace("{element}", element)
                .replace("{element2}", second);
            let mut launch = sandbox.launch(&line);
            launch
                .env("GST_TRACERS", "leaks(check-refs=true)")
                .env("GST_DEBUG", "GST_TRACER:7")
                .env("GST_DEBUG_NO_COLOR", "1")
                .env("G_DEBUG", "fatal-criticals");
            let ended = run(&mut launch);
            let text = ended.text();
            assert_eq!(ended.code() == Some(0), ends_well, "{line}: {text}");
            assert!(ended.code().is_some(), "{line}: {text}");
            // The tracer logs its formats, which proves that it was active.
            let told = |line: &&str| line.contains("object-alive");
            let (declared, alive): (Vec<&str>, Vec<&str>) = text
                .lines()
                .filter(told)
                .partition(|line| line.contains("gst_tracer_record_build_format"));
            assert!(!declared.is_empty(), "{line}: no tracer: {text}");
            assert!(alive.is_empty(), "{line}: {alive:?}");
        }
    }
}
