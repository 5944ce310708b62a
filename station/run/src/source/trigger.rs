//! A GenICam camera that takes a frame at each command of the station, or at each edge at one of its lines.

use clinspect_aravis::Camera;
use gst::prelude::*;
use plan::SOFTWARE;

use super::aravis;

/// The triggers that release frames, in the order of preference. All are switched off but one.
const SELECTORS: [&str; 3] = ["FrameStart", "FrameBurstStart", "AcquisitionStart"];

/// One trigger of this kind releases as many frames as this feature says.
const BURST: (&str, &str) = ("FrameBurstStart", "AcquisitionBurstFrameCount");

/// Lets the camera of `bin`, which has not started, wait for its trigger: the command `TriggerSoftware`, or an edge at a line.
/// `by` is the entry of `TriggerSource`.
///
/// # Errors
/// The camera has no such trigger, or does not answer; a sentence.
pub fn trigger_by(by: &str, camera: &Camera, bin: &gst::Bin) -> Result<(), String> {
    let told = |why: String| match by {
        SOFTWARE => format!("trigger = \"software\": {why}"),
        line => format!("trigger-source = {line:?}: {why}"),
    };
    let features = features(by, camera).map_err(told)?;
    let Some(element) = bin.by_name(aravis::NAME) else {
        return Ok(());
    };
    // The source sets a frame rate at the start, which switches triggers off, and these features after that.
    let before = element.property::<Option<String>>("features");
    let all = before.into_iter().chain([features]);
    element.set_property("features", all.collect::<Vec<_>>().join(" "));
    Ok(())
}

/// Lets a camera that waits for the station's trigger take frames by itself: it kept that setting since a station ended.
/// Other triggers belong to people.
///
/// # Errors
/// The camera does not answer, or refuses it; a sentence.
pub fn end_trigger_by_software(camera: &Camera) -> Result<(), String> {
    for (feature, ours) in [("TriggerMode", "On"), ("TriggerSource", SOFTWARE)] {
        if !camera.has(feature)? || camera.text(feature)? != ours {
            return Ok(());
        }
    }
    camera.set_text("TriggerMode", "Off")
}

/// As `arv_camera_set_trigger` does, in the form of the property `features`.
fn features(by: &str, camera: &Camera) -> Result<String, String> {
    let is_software = by == SOFTWARE;
    let command = is_software.then_some("TriggerSoftware");
    for needed in ["TriggerMode", "TriggerSource"].into_iter().chain(command) {
        if !camera.has(needed)? {
            let advice = match is_software {
                true => "trigger it by a line, and set trigger = \"next-frame\"",
                false => "it cannot be triggered by a line",
            };
            return Err(format!("this camera has no {needed}; {advice}"));
        }
    }
    if !camera.has_entry("TriggerSource", by)? {
        return Err(
            "this camera has no such entry of TriggerSource; arv-tool-0.8 features lists them"
                .to_owned(),
        );
    }
    let mut features = Vec::new();
    if camera.has("AcquisitionFrameRateEnable")? {
        features.push("AcquisitionFrameRateEnable=false".to_owned());
    }
    if camera.has("TriggerSelector")? {
        let mut chosen = None;
        for selector in SELECTORS {
            if camera.has_entry("TriggerSelector", selector)? {
                features.push(format!("TriggerSelector={selector} TriggerMode=Off"));
                // In continuous mode this one releases frames without end.
                let releases_one = selector != "AcquisitionStart";
                chosen = chosen.or(releases_one.then_some(selector));
            }
        }
        let chosen = chosen.ok_or(
            "this camera has no trigger that releases one frame: none of FrameStart and FrameBurstStart in TriggerSelector",
        )?;
        features.push(format!("TriggerSelector={chosen}"));
        let (burst, count) = BURST;
        if chosen == burst && camera.has(count)? {
            features.push(format!("{count}=1"));
        }
    }
    features.push(format!("TriggerMode=On TriggerSource={by}"));
    Ok(features.join(" "))
}
