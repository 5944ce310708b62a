//! Properties of `clpitchthreshold` besides those of every inspector.

use std::sync::LazyLock;

use gst::{glib, prelude::*};

use crate::elements::{
    arrays::{self, Unreadable},
    property_table::{Access, PropertyTable, field, properties},
};
use clinspect_operators::{Compare, Polarity};

/// Value of a pitch property that asks for an estimate.
const ESTIMATE: f64 = -1.0;
const MAX_PITCH: f64 = 65_536.0;
const MAX_THRESHOLD: f64 = 65_535.0;

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Pitch along x, px; 0 for no comparison, negative for an estimate.
    pub pitch_x: f64,
    /// Pitch along y, likewise.
    pub pitch_y: f64,
    pub multiples: Vec<u32>,
    pub threshold: f64,
    pub compare: Compare,
    pub match_center: bool,
    pub polarity: Polarity,
    pub rois: Vec<[u32; 4]>,
    pub bit_depth: u32,
    pub unreadable: Unreadable,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pitch_x: ESTIMATE,
            pitch_y: 0.0,
            multiples: vec![1],
            threshold: 10.0,
            compare: Compare::default(),
            match_center: false,
            polarity: Polarity::default(),
            rois: Vec::new(),
            bit_depth: 0,
            unreadable: Unreadable::default(),
        }
    }
}

impl Settings {
    /// Whether the pitch along x, and along y, is estimated.
    pub fn estimates(&self) -> [bool; 2] {
        [self.pitch_x < 0.0, self.pitch_y < 0.0]
    }
}

/// Descriptions of the read-only estimated pitches.
pub(super) fn estimated_specs() -> [glib::ParamSpec; 2] {
    [
        estimated_spec("estimated-pitch-x", "Estimated pitch along x", "x"),
        estimated_spec("estimated-pitch-y", "Estimated pitch along y", "y"),
    ]
}

fn estimated_spec(name: &'static str, nick: &'static str, axis: &str) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(nick)
        .blurb(&format!(
            "Pitch along {axis} estimated from the frames, in pixels; 0 = unknown or not \
             estimated"
        ))
        .minimum(0.0)
        .maximum(MAX_PITCH)
        .read_only()
        .build()
}

pub(super) static TABLE: LazyLock<PropertyTable<Settings>> = LazyLock::new(|| {
    properties!(Settings {
        double(
            "pitch-x", "Pitch along x",
            "Distance after which the pattern repeats along a row, in pixels, at least 1; \
             0 = no comparison along rows, -1 = estimate from the frames",
            ESTIMATE..=MAX_PITCH
        ) = pitch_x;
        double(
            "pitch-y", "Pitch along y",
            "Distance after which the pattern repeats along a column, in pixels, at least 1; \
             0 = no comparison along columns, -1 = estimate from the frames",
            ESTIMATE..=MAX_PITCH
        ) = pitch_y;
        double(
            "threshold", "Threshold",
            "Minimum difference at which a pixel is marked, in grey levels of a sample",
            0.0..=MAX_THRESHOLD
        ) = threshold;
        choice("compare", "Compare", "How a pixel is compared with its two neighbours") = compare;
        boolean(
            "match-center", "Match center",
            "Blur the pixel as interpolation blurs its neighbours, so that edges are not marked if \
             the pitch is not a whole number"
        ) = match_center;
        choice("polarity", "Polarity", "Which deviations are marked") = polarity;
    })
    .with([
        (
            arrays::numbers_spec(
                "multiples",
                "Multiples",
                "Multiples of the pitches at which a pixel is compared, such as <1> or <1, 4>; a pixel \
                 that differs at one of them is marked",
            ),
            Access::new(
                |s: &Settings| arrays::numbers_value(&s.multiples),
                |s: &mut Settings, value| {
                    let multiples = arrays::numbers_from(value);
                    if let Some(multiples) = s.unreadable.note("multiples", multiples) {
                        s.multiples = multiples;
                    }
                },
            ),
        ),
        (
            arrays::regions_spec(
                "rois",
                "Regions of interest",
                "Pixels to judge, <<x, y, width, height>, ...>; empty = whole frame",
            ),
            Access::new(
                |s: &Settings| arrays::regions_value(&s.rois),
                |s: &mut Settings, value| {
                    let rois = arrays::regions_from(value);
                    if let Some(rois) = s.unreadable.note("rois", rois) {
                        s.rois = rois;
                    }
                },
            ),
        ),
        (arrays::bit_depth_spec(), field!(Settings, bit_depth)),
    ])
});
