//! Whether every operator computes right on every device: the elements' self-test.

use std::time::{Duration, Instant};

use gst::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    devices::Device,
    gstreamer::GStreamerState,
    pipeline,
    probe::{Probe, Trouble},
    report::{Report, Section},
};

/// The operators: an element with settings that need all of its kernels.
pub const OPERATORS: [&str; 9] = [
    "clflatfield",
    "clgaussian",
    "clhistogram",
    "clpitchthreshold",
    "clpitchthreshold scales=4",
    "clpitchthreshold lattice=<8.5,1.25,-1.5,8.25>",
    "clreference",
    "clsurface",
    "cltexture",
];
/// Size of the frames that follow the self-test.
const SIZE: [u32; 2] = [640, 480];
/// Number of these frames.
const FRAMES: u64 = 3;
/// The elements' property.
const PROPERTY: &str = "self-test";

/// A child's answer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Passed {
    /// The element has a self-test; else only frames went through it.
    has_self_test: bool,
    seconds: f64,
}

/// The result of an operator on a device.
#[derive(Debug, Serialize)]
struct Tested {
    device: String,
    operator: &'static str,
    /// `passed`, `no-self-test`, `failed`, `hangs`, `dies`, `not-tried`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs frames through an operator that tests itself first.
///
/// # Errors
/// The element's own error.
pub fn probe(device: &str, operator: usize) -> Result<Passed, String> {
    let operator = OPERATORS.get(operator).ok_or("there is no such operator")?;
    let factory = operator.split(' ').next().unwrap_or_default();
    let element = gst::ElementFactory::make(factory).build();
    let element = element.map_err(|error| error.message.to_string())?;
    let has_self_test = element.find_property(PROPERTY).is_some();
    let always = if has_self_test {
        "self-test=always"
    } else {
        ""
    };
    let chain = format!("{operator} {} {always}", pipeline::device_property(device));
    let began = Instant::now();
    let pipeline = pipeline::new(&chain, SIZE, FRAMES)?;
    let bus = pipeline.bus().ok_or("the pipeline has no bus")?;
    // A failure is an error on the bus.
    let _ = pipeline.set_state(gst::State::Playing);
    let wanted = [gst::MessageType::Error, gst::MessageType::Eos];
    let result = match bus.timed_pop_filtered(gst::ClockTime::NONE, &wanted) {
        Some(message) => match message.view() {
            gst::MessageView::Error(error) => Err(pipeline::error_text(error)),
            _ => Ok(Passed {
                has_self_test,
                seconds: began.elapsed().as_secs_f64(),
            }),
        },
        None => Err("the pipeline ended without a message".into()),
    };
    let _ = pipeline.set_state(gst::State::Null);
    result
}

/// Adds the section; returns the devices on which every operator works.
pub fn examine(
    report: &mut Report,
    limit: Duration,
    devices: &[Device],
    found: &GStreamerState,
) -> Vec<Device> {
    let mut section = Section::new("self-test", "Self-test of the operators");
    let mut results = Vec::new();
    let mut usable = Vec::new();
    for device in devices {
        let tested = test(&mut section, device, limit, (found, devices));
        if tested
            .iter()
            .all(|one| matches!(one.state, "passed" | "no-self-test"))
        {
            usable.push(device.clone());
        }
        results.extend(tested);
    }
    if devices.is_empty() {
        section.note("not run: there is no device");
    }
    section.set_data(&results);
    report.add(section);
    usable
}

/// Tests all operators on a device, which is one of `all`.
fn test(
    section: &mut Section,
    device: &Device,
    limit: Duration,
    (found, all): (&GStreamerState, &[Device]),
) -> Vec<Tested> {
    let Device { selector, name, .. } = device;
    let mut results: Vec<Tested> = Vec::new();
    let mut has_hung = false;
    for (number, operator) in OPERATORS.into_iter().enumerate() {
        let mut tested = Tested {
            device: selector.clone(),
            operator,
            state: "not-tried",
            seconds: None,
            error: None,
        };
        let element = operator.split(' ').next().unwrap_or_default();
        if !has_hung && found.has(element) {
            let probe = Probe::SelfTest {
                device: selector.clone(),
                operator: number,
            };
            let answer = probe.ask_device::<Passed>(limit, device);
            tested.state = match &answer {
                Ok((passed, _)) if passed.has_self_test => "passed",
                Ok(_) => "no-self-test",
                Err(Trouble::Fails(_)) => "failed",
                Err(Trouble::Dies(_)) => "dies",
                Err(Trouble::Hangs(_)) => "hangs",
            };
            // The next operators would take as long.
            has_hung = tested.state == "hangs";
            match answer {
                Ok((passed, mended)) => {
                    tested.seconds = Some(passed.seconds);
                    if let Some(mended) = mended {
                        section.note(format!("{operator} on {selector} ({name}): {mended}"));
                    }
                }
                Err(trouble) => {
                    let verb = match trouble {
                        Trouble::Hangs(_) => "the driver hangs",
                        Trouble::Dies(_) => "the driver crashes",
                        Trouble::Fails(_) => "fails",
                    };
                    section.fault(
                        format!("{operator} on {selector} ({name}): {verb}: {trouble}"),
                        device.advice(all),
                    );
                    tested.error = Some(trouble.to_string());
                }
            }
        }
        results.push(tested);
    }
    let named = |state: &str| -> Vec<&str> {
        let of = results.iter().filter(|one| one.state == state);
        of.map(|one| one.operator).collect()
    };
    for (state, text) in [
        ("passed", "computes right"),
        ("no-self-test", "runs; this version has no self-test"),
    ] {
        if !named(state).is_empty() {
            section.ok(format!("{selector} {text}: {}", named(state).join(", ")));
        }
    }
    let left = named("not-tried");
    if !left.is_empty() {
        let why = if has_hung {
            "the driver hangs"
        } else {
            "GStreamer does not find these elements"
        };
        section.note(format!(
            "{selector}: not tried, because {why}: {}",
            left.join(", ")
        ));
    }
    results
}
