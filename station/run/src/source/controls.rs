//! Exposure, gain and black level of a GenICam camera.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clinspect_aravis::{Camera, Control, Value};
use gst::{glib, prelude::*};
use plan::{Controls, Source};

use super::aravis;

/// Share of a value by which a camera may round it: an exposure is a whole number of lines or clock ticks.
const ROUNDED: f64 = 0.05;
/// The same in units of the control, for small values.
const ROUNDED_UNITS: f64 = 1.0;

/// What the file asks for.
fn wished(controls: &Controls) -> impl Iterator<Item = (Control, f64)> {
    let all = [
        (Control::Exposure, controls.exposure),
        (Control::Gain, controls.gain),
        (Control::BlackLevel, controls.black_level),
    ];
    all.into_iter()
        .filter_map(|(control, wish)| Some((control, wish?)))
}

/// Sets an element's camera and reads back what it has. If one value is refused, all are as before.
///
/// # Errors
/// A sentence, which begins with the key of the file.
fn set_all(controls: &Controls, element: &gst::Element) -> Result<(), String> {
    let held = element.property::<Option<glib::Object>>("camera");
    let camera = Camera::of(&held.ok_or("the camera does not open")?)?;
    let mut before = Vec::new();
    for (control, wish) in wished(controls) {
        match set(&camera, control, wish) {
            Ok(value) => before.push((control, value)),
            Err(why) => {
                for (control, value) in before {
                    // The text of the first refusal says what is wrong.
                    let _ = camera.set(control, value);
                }
                return Err(why);
            }
        }
    }
    Ok(())
}

/// The control's key in the file, and its unit.
fn words(control: Control) -> (&'static str, &'static str) {
    match control {
        Control::Exposure => ("exposure", " µs"),
        Control::Gain => ("gain", ""),
        Control::BlackLevel => ("black-level", ""),
    }
}

/// Sets a control, unless the camera has the value already. Returns the value before.
fn set(camera: &Camera, control: Control, wish: f64) -> Result<f64, String> {
    let (key, unit) = words(control);
    let told = |why: String| format!("{key} = {wish}: {why}");
    let lacks = || {
        told(format!(
            "this camera has no {control} that can be set; leave {key} out"
        ))
    };
    let Value { value, least, most } = camera.get(control).map_err(told)?.ok_or_else(lacks)?;
    if !(least..=most).contains(&wish) {
        return Err(told(format!(
            "out of this camera's range; set a number from {least} to {most}{unit}"
        )));
    }
    let is_set = |value: f64| (value - wish).abs() <= ROUNDED_UNITS.max(ROUNDED * wish.abs());
    if value == wish {
        return Ok(value);
    }
    camera.set(control, wish).map_err(told)?;
    match camera.get(control).map_err(told)? {
        Some(now) if is_set(now.value) => Ok(value),
        Some(now) => Err(told(format!(
            "the camera has {}{unit} instead; switch its automatic {control} off",
            now.value
        ))),
        None => Err(lacks()),
    }
}

/// Sets what the file asks of the camera of `bin`, and reads it back.
///
/// # Errors
/// The camera refuses a value, and all are as before; a sentence, which begins with the key of the file.
pub fn set_controls(source: &Source, bin: &gst::Bin) -> Result<(), String> {
    let Source::Aravis { controls, .. } = source else {
        return Ok(());
    };
    let Some(element) = bin
        .by_name(aravis::NAME)
        .filter(|_| *controls != Controls::default())
    else {
        return Ok(());
    };
    set_all(controls, &element)?;
    if let Some(exposure) = controls.exposure {
        element.set_property("exposure", exposure);
    }
    Ok(())
}

/// Lets `aravissrc` set the exposure behind the frame rate, which limits it, and lets no frame pass of a camera that is
/// not set as the file asks.
pub(super) fn prepare(element: &gst::Element, controls: Controls) {
    if let Some(exposure) = controls.exposure {
        element.set_property_from_str("exposure-auto", "off");
        element.set_property("exposure", exposure);
    }
    if controls.gain.is_some() {
        element.set_property_from_str("gain-auto", "off");
    }
    let pad = element.static_pad("src");
    let (Some(pad), false) = (pad, controls == Controls::default()) else {
        return;
    };
    let is_refused = AtomicBool::new(false);
    let of = element.downgrade();
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(kinds, move |_, info| {
        // With the caps the camera has its format and its rate, on which the ranges depend.
        if let Some(event) = info.event()
            && event.type_() == gst::EventType::Caps
            && let Some(element) = of.upgrade()
        {
            let result = set_all(&controls, &element);
            is_refused.store(result.is_err(), Relaxed);
            if let Err(why) = result {
                gst::element_error!(element, gst::ResourceError::Settings, ("{why}"));
            }
        }
        if is_refused.load(Relaxed) && info.buffer().is_some() {
            return gst::PadProbeReturn::Drop;
        }
        gst::PadProbeReturn::Ok
    });
}
