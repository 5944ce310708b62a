//! Properties that are structures: the values that they take, and the sentences that refuse others.

use gst::{glib, prelude::*};
use gst_video::VideoFormat as Format;

use crate::{
    frames::PLAIN,
    support::{Rig, buffer_of, caps_of, noise, start},
};

const ELEMENTS: [&str; 5] = [
    "clhistogram",
    "clpitchthreshold PUBLISHED pitch-x=4",
    "clreference train-frames=1",
    "clsurface",
    "cltexture",
];

fn factory(line: &str) -> &str {
    line.split(' ').next().unwrap()
}

fn element(line: &str) -> gst::Element {
    gst::ElementFactory::make(factory(line)).build().unwrap()
}

/// The writable structures of an element, with all their fields.
fn structures(element: &gst::Element) -> Vec<gst::Structure> {
    let specs = element.list_properties();
    let specs = specs.iter().filter(|&spec| {
        spec.value_type() == gst::Structure::static_type()
            && spec.flags().contains(glib::ParamFlags::WRITABLE)
    });
    specs.map(|spec| element.property(spec.name())).collect()
}

fn with(field: &str, value: &glib::SendValue) -> gst::Structure {
    let mut structure = gst::Structure::new_empty("any-name");
    structure.set_value(field, value.clone());
    structure
}

#[test]
fn fields_that_are_left_out_have_their_defaults() {
    if start().is_none() {
        return;
    }
    let mut count = 0;
    for line in ELEMENTS {
        let element = element(line);
        for default in structures(&element) {
            let name = default.name().as_str();
            for (field, value) in default.iter() {
                element.set_property(name, with(field, value));
                assert_eq!(element.property::<gst::Structure>(name), default);
                count += 1;
            }
            element.set_property(name, None::<gst::Structure>);
            assert_eq!(element.property::<gst::Structure>(name), default);
        }
    }
    assert_eq!(
        count,
        3 + 4 * 18,
        "fields of clhistogram and of four inspectors"
    );
}

#[test]
fn numbers_of_every_type_are_taken() {
    if start().is_none() {
        return;
    }
    let element = element("clpitchthreshold");
    for seven in [
        7_i32.to_send_value(),
        7_u32.to_send_value(),
        7_i64.to_send_value(),
        7_u64.to_send_value(),
        7.0_f64.to_send_value(),
    ] {
        for (name, field, wanted) in [
            ("limits", "max-runs", 7_u32.to_send_value()),
            ("fail", "defect-area", 7_i64.to_send_value()),
            ("reports", "interval", 7_u64.to_send_value()),
            ("learn", "margin", 7.0_f64.to_send_value()),
        ] {
            element.set_property(name, None::<gst::Structure>);
            element.set_property(name, with(field, &seven));
            let read: gst::Structure = element.property(name);
            let (read, wanted) = (read.value(field).unwrap(), &wanted);
            assert_eq!(read.type_(), wanted.type_(), "{seven:?}");
            assert!(GstValueExt::eq(&**read, &**wanted), "{name}: {read:?}");
        }
    }
    // As gst-launch-1.0 reads a number of more than 32 bits.
    element.set_property_from_str("reports", "reports,interval=10000000000");
    let read: gst::Structure = element.property("reports");
    assert_eq!(read.get("interval"), Ok(10_000_000_000_u64));
}

#[test]
fn values_that_do_not_fit_are_refused_once_and_the_old_value_stays() {
    let Some(device) = start() else { return };
    let nested = gst::Structure::builder("fail").field("defect-count", 1);
    let nested = nested.build().to_send_value();
    let array = gst::Array::new([1, 2]).to_send_value();
    let frame = noise(Format::Gray8, [24, 20], PLAIN);
    for (name, field, value, words) in [
        (
            "reports",
            "interval",
            (-1).to_send_value(),
            "-1 is not a whole number, 0 or more",
        ),
        (
            "reports",
            "interval",
            u64::MAX.to_send_value(),
            "is not a whole number, 0 or more",
        ),
        (
            "reports",
            "messages",
            1.to_send_value(),
            "1 is not true or false",
        ),
        (
            "reports",
            "message",
            true.to_send_value(),
            "there is no field \"message\"; the fields are messages, interval,",
        ),
        (
            "limits",
            "max-defects",
            100_001.to_send_value(),
            "100001 is not a whole number from 0 to 100000",
        ),
        (
            "limits",
            "max-defects",
            2.5.to_send_value(),
            "2.5 is not a whole number from 0 to 100000",
        ),
        (
            "limits",
            "max-runs",
            0.to_send_value(),
            "0 is not a whole number, 1 or more",
        ),
        (
            "limits",
            "max-runs",
            (1_u64 << 32).to_send_value(),
            "4294967296 is not a whole number, 1 or more",
        ),
        (
            "fail",
            "defect-count",
            i64::MIN.to_send_value(),
            "is not a whole number, -1 or more",
        ),
        (
            "fail",
            "defect-count",
            "2".to_send_value(),
            "a value of type gchararray is not a whole number",
        ),
        (
            "fail",
            "defect-count",
            nested,
            "a value of type GstStructure is not a whole number",
        ),
        ("fail", "classes", array.clone(), "is not a text"),
        (
            "learn",
            "margin",
            f64::NAN.to_send_value(),
            "NaN is not a number from -1 to 100",
        ),
        (
            "learn",
            "margin",
            f64::INFINITY.to_send_value(),
            "inf is not a number from -1 to 100",
        ),
        (
            "learn",
            "margin",
            true.to_send_value(),
            "true is not a number from -1 to 100",
        ),
        ("ignore", "mask", array.clone(), "is not a text"),
        ("ignore", "regions", 4.to_send_value(), "4 is not an array"),
        (
            "ignore",
            "regions",
            array,
            "an array such as \"<<0, 0, 64, 0, 64, 48>>\" is expected",
        ),
    ] {
        for line in ELEMENTS {
            if !element(line).has_property(name) {
                continue;
            }
            let mut rig = Rig::new(line, &caps_of(&frame));
            let element = rig.only(factory(line));
            rig.pass(buffer_of(&frame, &device));
            let before: gst::Structure = element.property(name);
            element.set_property(name, with(field, &value));
            for count in [1, 0] {
                rig.pass(buffer_of(&frame, &device));
                let warnings = rig.warnings();
                let about = format!("{line}: {name}, {field}={value:?}: {warnings:?}");
                assert_eq!(warnings.len(), count, "{about}");
                for warning in warnings {
                    let begin = format!("{name}: ");
                    assert!(warning.text.starts_with(&begin), "{about}");
                    assert!(warning.text.contains(words), "{about}");
                }
                assert_eq!(element.property::<gst::Structure>(name), before, "{about}");
            }
            // With the frame's caps such a value is an error.
            let error = gstclinspect::check_settings(&{
                let element = self::element(line);
                element.set_property(name, with(field, &value));
                element
            });
            assert!(
                error.is_err_and(|why| why.contains(words)),
                "{line}: {name}, {field}"
            );
        }
    }
}
