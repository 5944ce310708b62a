//! Every property changed while frames flow.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::DefectResult;

use super::{caps, counted, found, frame_at};
use crate::{
    frames::read,
    support::{Rig, register},
};

const SIZE: [usize; 2] = [400, 300];

/// A value of each property that is not the default.
const OTHER_VALUES: [(&str, &str); 18] = [
    ("scale", "1.5"),
    ("show-defects", "false"),
    ("show-tint", "false"),
    ("show-boxes", "false"),
    ("show-labels", "false"),
    ("show-ignored", "true"),
    ("defects-opacity", "0.4"),
    ("defects-element", "first"),
    ("tint-color", "0xff00ff00"),
    ("box-color", "0xff0000ff"),
    ("max-boxes", "1"),
    ("show-histogram", "false"),
    ("histogram-corner", "top-left"),
    ("histogram-opacity", "0.3"),
    ("histogram-element", "first"),
    ("show-verdict", "false"),
    ("verdict-position", "bottom"),
    ("verdict-opacity", "0.2"),
];

fn frame() -> gst::Buffer {
    let mut frame = frame_at(Format::Bgrx, SIZE, 0);
    let writable = frame.get_mut().unwrap();
    for (name, x) in [("first", 40), ("second", 100)] {
        let result = DefectResult {
            element: name.into(),
            ignored: found(SIZE, &[[x, 120, 90, 20]]).mask,
            ..found(SIZE, &[[x, 90, 10, 8], [x + 70, 180, 4, 4]])
        };
        result.attach(writable).unwrap();
        let mut histogram = counted("RGB", SIZE, 3);
        histogram.element = name.into();
        histogram.counts[x] = 100_000;
        histogram.attach(writable).unwrap();
    }
    frame
}

#[test]
fn every_property_shows_at_the_next_frame_and_back() {
    register();
    let mut rig = Rig::new("inspectoverlay", &caps(Format::Bgrx, SIZE));
    let element = rig.only("inspectoverlay");
    let before = read(&rig.pass(frame()));
    for (name, value) in OTHER_VALUES {
        let default = element.property_value(name);
        element.set_property_from_str(name, value);
        let changed = read(&rig.pass(frame()));
        assert!(changed != before, "{name}={value}");
        element.set_property_from_value(name, &default);
        assert!(read(&rig.pass(frame())) == before, "{name} and back");
    }
    let own: Vec<String> = element
        .list_properties()
        .iter()
        .filter(|spec| spec.owner_type() == element.type_())
        .map(|spec| spec.name().to_owned())
        .collect();
    assert_eq!(own.len(), OTHER_VALUES.len(), "{own:?}");
}

#[test]
fn every_property_says_what_it_does_and_may_change_while_playing() {
    register();
    let element = gst::ElementFactory::make("inspectoverlay").build().unwrap();
    for spec in element.list_properties() {
        if spec.owner_type() != element.type_() {
            continue;
        }
        let name = spec.name();
        assert!(
            spec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING),
            "{name}"
        );
        assert!(spec.blurb().is_some_and(|blurb| blurb.len() > 10), "{name}");
        assert_eq!(
            element.property_value(name).serialize().unwrap(),
            spec.default_value().serialize().unwrap(),
            "{name}"
        );
    }
}

#[test]
fn names_that_are_no_utf8_select_nothing_and_end_nothing() {
    register();
    let mut rig = Rig::new("inspectoverlay", &caps(Format::Bgrx, SIZE));
    let element = rig.only("inspectoverlay");
    for name in [c"defects-element", c"histogram-element"] {
        crate::support::set_unchecked(&element, name, &crate::support::text(c"n\xe4me"));
    }
    let out = read(&rig.pass(frame()));
    assert!(out == super::frame_bytes(Format::Bgrx, SIZE));
}
