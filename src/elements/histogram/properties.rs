//! Properties of `clhistogram`.

use std::sync::LazyLock;

use gst::prelude::*;

use super::alarms::{self, AlarmSettings};
use crate::elements::{
    arrays::{self, Unreadable},
    property_table::{Access, PropertyTable, field, properties},
    specs,
};
use clinspect_operators::Strategy;

/// Settings from which the operator is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub bins: u32,
    pub roi: [u32; 4],
    pub bit_depth: u32,
    pub strategy: Strategy,
    pub unreadable: Unreadable,
}

/// All properties.
#[derive(Debug, Clone)]
pub(super) struct Properties {
    pub counting: Settings,
    pub post_messages: bool,
    pub interval_ns: u64,
    pub message_bins: bool,
    pub alarms: AlarmSettings,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            counting: Settings {
                bins: 256,
                roi: [0; 4],
                bit_depth: 0,
                strategy: Strategy::default(),
                unreadable: Unreadable::default(),
            },
            post_messages: true,
            interval_ns: specs::DEFAULT_INTERVAL_NS,
            message_bins: false,
            alarms: AlarmSettings::default(),
        }
    }
}

pub(super) static TABLE: LazyLock<PropertyTable<Properties>> = LazyLock::new(|| {
    properties!(Properties {
        uint(
            "bins", "Bins",
            "Bins per channel; a power of two, at most the number of levels of a sample",
            2..=65_536
        ) = counting.bins;
        choice(
            "strategy", "Strategy",
            "How samples are counted; all strategies give the same counts"
        ) = counting.strategy;
        boolean(
            "post-messages", "Post messages",
            "Post a message with the statistics, at most once per interval"
        ) = post_messages;
        interval(
            "interval", "Interval",
            "Minimum time between messages, in nanoseconds; 0 = a message per frame"
        ) = interval_ns;
        boolean(
            "message-bins", "Message bins", "Add the bins to messages, an array per channel"
        ) = message_bins;
    })
    .with([
        (
            arrays::region_spec(
                "roi",
                "Region of interest",
                "Pixels to count, <x, y, width, height>; zeros = whole frame. Chroma grows \
                 outward to whole samples",
            ),
            Access::new(
                |p: &Properties| arrays::region_value(p.counting.roi),
                |p: &mut Properties, value| {
                    let roi = arrays::region_from(value);
                    if let Some(roi) = p.counting.unreadable.note("roi", roi) {
                        p.counting.roi = roi;
                    }
                },
            ),
        ),
        (
            arrays::bit_depth_spec(),
            field!(Properties, counting.bit_depth),
        ),
    ])
    .with(alarms::rows())
});
