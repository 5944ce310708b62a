//! Properties that every inspector has.

use std::sync::LazyLock;

use gst::{glib, prelude::*};

use crate::{
    elements::{
        arrays,
        property_table::{Access, PropertyTable, field},
        specs,
    },
    math::components::Limits,
    results::{MOST_DEFECTS, VerdictLimits},
};

const DEFAULT_INTERVAL: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// What is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchOutput")]
pub(super) enum Output {
    /// The mask.
    #[default]
    #[enum_value(
        name = "Mask: the defect mask, with the results as meta",
        nick = "mask"
    )]
    Mask,
    /// The frame.
    #[enum_value(
        name = "Frame: frames unchanged, with the results and the packed mask as meta",
        nick = "frame"
    )]
    Frame,
}

/// What follows from a mask, and how it is reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reporting {
    pub limits: VerdictLimits,
    pub listing: Limits,
    pub output: Output,
    pub post_messages: bool,
    pub interval: gst::ClockTime,
    pub send_events: bool,
}

impl Default for Reporting {
    fn default() -> Self {
        Self {
            limits: VerdictLimits {
                defect_pixels: 0,
                defect_count: 0,
                defect_area: 0,
            },
            listing: Limits {
                min_area: 1,
                merge_distance: 0,
                max_defects: 100,
            },
            output: Output::default(),
            post_messages: true,
            interval: DEFAULT_INTERVAL,
            send_events: false,
        }
    }
}

pub(super) static TABLE: LazyLock<PropertyTable<Reporting>> = LazyLock::new(|| {
    let default = Reporting::default();
    PropertyTable::new(vec![
        (
            specs::uint(
                "min-area",
                "Minimum area",
                "Defects of fewer marked pixels are not listed; mask and defect-pixels stay as \
                 they are",
                0..=u32::MAX,
                default.listing.min_area,
            ),
            field!(Reporting, listing.min_area),
        ),
        (
            specs::uint(
                "merge-distance",
                "Merge distance",
                "Groups of marked pixels whose boxes lie at most this many pixels apart are one \
                 defect; 0 = only where boxes overlap",
                0..=u32::MAX,
                default.listing.merge_distance,
            ),
            field!(Reporting, listing.merge_distance),
        ),
        (
            specs::uint(
                "max-defects",
                "Maximum defects",
                "Most defects listed, the largest first; 0 = no list, which is fastest",
                0..=MOST_DEFECTS,
                default.listing.max_defects as u32,
            ),
            Access::new(
                |r: &Reporting| (r.listing.max_defects as u32).to_value(),
                |r: &mut Reporting, value| {
                    if let Ok(most) = value.get::<u32>() {
                        r.listing.max_defects = most as usize;
                    }
                },
            ),
        ),
        (
            specs::limit(
                "fail-defect-pixels",
                "Fail at defect pixels",
                "A frame with more marked pixels than this fails; -1 = off",
                default.limits.defect_pixels,
            ),
            field!(Reporting, limits.defect_pixels),
        ),
        (
            specs::limit(
                "fail-defect-count",
                "Fail at defect count",
                "A frame with more listed defects than this fails; -1 = off",
                default.limits.defect_count,
            ),
            field!(Reporting, limits.defect_count),
        ),
        (
            specs::limit(
                "fail-defect-area",
                "Fail at defect area",
                "A frame with a listed defect of more pixels than this fails; -1 = off",
                default.limits.defect_area,
            ),
            field!(Reporting, limits.defect_area),
        ),
        (
            glib::ParamSpecEnum::builder_with_default("output", default.output)
                .nick("Output")
                .blurb("What is sent on")
                .mutable_ready()
                .build(),
            field!(Reporting, output),
        ),
        (
            specs::boolean(
                "post-messages",
                "Post messages",
                "Post a message at every change of the verdict, and otherwise at most once per \
                 interval",
                default.post_messages,
            ),
            field!(Reporting, post_messages),
        ),
        (
            arrays::interval_spec(DEFAULT_INTERVAL),
            Access::new(
                |r: &Reporting| r.interval.nseconds().to_value(),
                |r: &mut Reporting, value| {
                    r.interval = arrays::interval_from(value, DEFAULT_INTERVAL)
                },
            ),
        ),
        (
            specs::boolean(
                "send-events",
                "Send events",
                "Send the results as an event before each buffer too, for transports that drop \
                 metas, such as rtpgstpay",
                default.send_events,
            ),
            field!(Reporting, send_events),
        ),
    ])
});
