//! Alarms of `clhistogram`.

use gst::prelude::*;
use gstclinspect::results::{HISTOGRAM_META, HistogramResult};

use crate::support::{Rig, buffer_of, caps_of, constant, start};

const SIZE: [usize; 2] = [40, 6];

/// Alarm, whether it was raised, and the value, of every message since the last call.
fn alarms(rig: &Rig) -> Vec<(String, bool, f64)> {
    rig.told("clhistogram-alarm")
        .iter()
        .map(|message| {
            (
                message.get("alarm").unwrap(),
                message.get("raised").unwrap(),
                message.get("value").unwrap(),
            )
        })
        .collect()
}

#[test]
fn alarms_by_default_are_off() {
    let Some(device) = start() else { return };
    let mut rig = Rig::new("clhistogram", &caps_of(&constant(SIZE, 0)));
    for level in [0, 255, 128] {
        rig.pass(buffer_of(&constant(SIZE, level), &device));
    }
    assert_eq!(alarms(&rig), []);
}

#[test]
fn alarm_over_exposed_is_told_when_raised_and_when_cleared() {
    let Some(device) = start() else { return };
    let line =
        "clhistogram alarm-over-exposed=0.5 alarm-under-exposed=0.5 reports=reports,messages=false";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    let mut told = Vec::new();
    for level in [100, 255, 255, 100, 0, 100] {
        rig.pass(buffer_of(&constant(SIZE, level), &device));
        told.extend(alarms(&rig));
    }
    let expected = [
        ("over-exposed".to_owned(), true, 1.0),
        ("over-exposed".to_owned(), false, 0.0),
        ("under-exposed".to_owned(), true, 1.0),
        ("under-exposed".to_owned(), false, 0.0),
    ];
    assert_eq!(told, expected);
}

/// The alarms in the frame's meta, and the field that holds them.
fn in_meta(frame: &gst::BufferRef) -> (Vec<String>, Option<String>) {
    let mut metas = frame.iter_meta::<gst::Meta>();
    let field = metas.find_map(|meta| {
        let custom = meta.try_as_custom_meta()?;
        custom
            .has_name(HISTOGRAM_META)
            .then(|| custom.structure().get("alarms").ok())
    });
    (
        HistogramResult::read(frame).remove(0).alarms,
        field.unwrap(),
    )
}

#[test]
fn alarms_that_are_raised_are_in_the_meta_of_every_frame() {
    let Some(device) = start() else { return };
    let line = "clhistogram alarm-over-exposed=0.5 alarm-contrast=5";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    let names = ["over-exposed", "contrast-lost"].map(String::from);
    // The second frame changes nothing, so no message tells of its alarms.
    for _ in 0..2 {
        let output = rig.pass(buffer_of(&constant(SIZE, 255), &device));
        assert_eq!(in_meta(&output), (names.to_vec(), Some(names.join(";"))));
    }
    rig.only("clhistogram").set_property("alarm-contrast", -1.0);
    let output = rig.pass(buffer_of(&constant(SIZE, 100), &device));
    assert_eq!(in_meta(&output), (Vec::new(), None));
}

#[test]
fn alarm_contrast_of_a_constant_frame_is_lost() {
    let Some(device) = start() else { return };
    let line = "clhistogram alarm-contrast=5";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    rig.pass(buffer_of(&constant(SIZE, 90), &device));
    assert_eq!(alarms(&rig), [("contrast-lost".to_owned(), true, 0.0)]);
    rig.pass(buffer_of(&constant(SIZE, 90), &device));
    assert_eq!(alarms(&rig), []);
}

#[test]
fn alarm_drift_compares_with_the_reference_and_has_hysteresis() {
    let Some(device) = start() else { return };
    let line = "clhistogram alarm-drift=10 alarm-hysteresis=0.5";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    let pass = |rig: &mut Rig, level| {
        rig.pass(buffer_of(&constant(SIZE, level), &device));
        alarms(rig)
    };
    // No reference exists yet.
    assert_eq!(pass(&mut rig, 200), []);
    rig.only("clhistogram")
        .emit_by_name::<()>("take-reference", &[]);
    assert_eq!(pass(&mut rig, 100), []);
    assert_eq!(pass(&mut rig, 110), []);
    let raised = ("lamp-drift".to_owned(), true, 11.0);
    assert_eq!(pass(&mut rig, 89), [raised]);
    // Below the threshold, but by less than half of it.
    assert_eq!(pass(&mut rig, 92), []);
    let cleared = ("lamp-drift".to_owned(), false, 5.0);
    assert_eq!(pass(&mut rig, 95), [cleared]);
}

/// The property, without the notation of types.
fn reference(element: &gst::Element) -> Vec<f64> {
    let array: gst::Array = element.property("alarm-drift-reference");
    array.iter().map(|level| level.get().unwrap()).collect()
}

#[test]
fn alarm_drift_reference_is_told_and_outlives_a_restart() {
    let Some(device) = start() else { return };
    let line = "clhistogram alarm-drift=10";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    let element = rig.only("clhistogram");
    assert!(reference(&element).is_empty());
    element.emit_by_name::<()>("take-reference", &[]);
    // The second frame must not replace the reference.
    for level in [100, 105] {
        rig.pass(buffer_of(&constant(SIZE, level), &device));
    }
    let told = rig.told("clhistogram-reference");
    assert_eq!(told.len(), 1, "{told:?}");
    let levels: gst::Array = told[0].get("reference").unwrap();
    assert_eq!(levels[0].get::<f64>().unwrap(), 100.0);
    assert_eq!(told[0].get::<u64>("frame-number").unwrap(), 0);
    assert_eq!(reference(&element), [100.0]);
    element.set_state(gst::State::Null).unwrap();
    assert_eq!(reference(&element), [100.0]);
}

#[test]
fn alarm_drift_counts_from_a_reference_that_is_set() {
    let Some(device) = start() else { return };
    let line = "clhistogram alarm-drift=10 alarm-drift-reference=<100>";
    let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
    let pass = |rig: &mut Rig, level| {
        rig.pass(buffer_of(&constant(SIZE, level), &device));
        alarms(rig)
    };
    assert_eq!(pass(&mut rig, 110), []);
    let raised = ("lamp-drift".to_owned(), true, 11.0);
    assert_eq!(pass(&mut rig, 111), [raised]);
    // 70000 is no grey level, so the reference before stays.
    let element = rig.only("clhistogram");
    element.set_property("alarm-drift-reference", gst::Array::new([70_000.0]));
    rig.pass(buffer_of(&constant(SIZE, 100), &device));
    let warnings = rig.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let words = "alarm-drift-reference: 70000 is not a grey level";
    assert!(warnings[0].text.contains(words), "{warnings:?}");
    assert_eq!(reference(&element), [100.0]);
    element.set_property("alarm-drift-reference", gst::Array::new([130.0]));
    let raised = ("lamp-drift".to_owned(), true, 30.0);
    assert_eq!(pass(&mut rig, 100), [raised]);
}

#[test]
fn alarm_drift_without_a_reference_is_told_once() {
    let Some(device) = start() else { return };
    let told = |line: &str, signal: Option<&str>| {
        let mut rig = Rig::new(line, &caps_of(&constant(SIZE, 0)));
        if let Some(signal) = signal {
            rig.only("clhistogram").emit_by_name::<()>(signal, &[]);
        }
        for level in [100, 200] {
            rig.pass(buffer_of(&constant(SIZE, level), &device));
        }
        rig.warnings()
    };
    let missing = told("clhistogram alarm-drift=10", None);
    assert_eq!(missing.len(), 1, "{missing:?}");
    for words in ["alarm-drift=10", "emit take-reference"] {
        assert!(missing[0].text.contains(words), "{missing:?}");
    }
    assert!(told("clhistogram alarm-drift=10", Some("take-reference")).is_empty());
    assert!(told("clhistogram", None).is_empty());
}
