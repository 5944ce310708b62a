//! Alarms of `clhistogram` about the lighting.

use gst::{glib, prelude::*};

use super::properties::Properties;
use crate::elements::{
    property_table::{Access, field},
    specs,
};
use clinspect_core::{
    alarm::{Alarm, Side},
    statistics::Statistics,
};
use clinspect_results::HistogramResult;

/// Threshold of an alarm that is off.
const OFF: f64 = -1.0;
const DEFAULT_HYSTERESIS: f64 = 0.1;
const MAX_LEVEL: f64 = 65_535.0;

/// The kinds of alarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    OverExposed,
    UnderExposed,
    ContrastLost,
    LampDrift,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::OverExposed,
        Self::UnderExposed,
        Self::ContrastLost,
        Self::LampDrift,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::OverExposed => "over-exposed",
            Self::UnderExposed => "under-exposed",
            Self::ContrastLost => "contrast-lost",
            Self::LampDrift => "lamp-drift",
        }
    }

    fn property(self) -> &'static str {
        match self {
            Self::OverExposed => "alarm-over-exposed",
            Self::UnderExposed => "alarm-under-exposed",
            Self::ContrastLost => "alarm-contrast",
            Self::LampDrift => "alarm-drift",
        }
    }

    fn side(self) -> Side {
        match self {
            Self::ContrastLost => Side::Below,
            _ => Side::Above,
        }
    }

    fn spec(self) -> glib::ParamSpec {
        let (nick, blurb, maximum) = match self {
            Self::OverExposed => (
                "Alarm: over-exposed",
                "Raise an alarm if more than this share of the samples is in the highest bin, 0..1; \
                 -1 = off",
                1.0,
            ),
            Self::UnderExposed => (
                "Alarm: under-exposed",
                "Raise an alarm if more than this share of the samples is in the lowest bin, 0..1; \
                 -1 = off",
                1.0,
            ),
            Self::ContrastLost => (
                "Alarm: contrast lost",
                "Raise an alarm if the 95th percentile is less than this above the 5th, in grey \
                 levels; -1 = off",
                MAX_LEVEL,
            ),
            Self::LampDrift => (
                "Alarm: lamp drift",
                "Raise an alarm if the median differs by more than this from the reference of \
                 the signal take-reference, in grey levels; -1 = off",
                MAX_LEVEL,
            ),
        };
        glib::ParamSpecDouble::builder(self.property())
            .nick(nick)
            .blurb(blurb)
            .minimum(OFF)
            .maximum(maximum)
            .default_value(OFF)
            .mutable_playing()
            .build()
    }
}

/// Thresholds of the alarms, in the order of [`Kind::ALL`].
#[derive(Debug, Clone, Copy)]
pub(super) struct AlarmSettings {
    thresholds: [f64; 4],
    hysteresis: f64,
}

impl Default for AlarmSettings {
    fn default() -> Self {
        Self {
            thresholds: [OFF; 4],
            hysteresis: DEFAULT_HYSTERESIS,
        }
    }
}

/// The properties of the alarms.
pub(super) fn rows() -> Vec<(glib::ParamSpec, Access<Properties>)> {
    let thresholds = Kind::ALL.into_iter().enumerate().map(|(i, kind)| {
        let access = Access::new(
            move |p: &Properties| p.alarms.thresholds[i].to_value(),
            move |p: &mut Properties, value: &glib::Value| {
                if let Ok(threshold) = value.get() {
                    p.alarms.thresholds[i] = threshold;
                }
            },
        );
        (kind.spec(), access)
    });
    let hysteresis = specs::double(
        "alarm-hysteresis",
        "Alarm hysteresis",
        "How far past its threshold a value must return to clear an alarm, as a share of the \
             threshold",
        0.0..=1.0,
        DEFAULT_HYSTERESIS,
    );
    thresholds
        .chain([(hysteresis, field!(Properties, alarms.hysteresis))])
        .collect()
}

/// An alarm that was raised or cleared.
#[derive(Debug)]
pub(super) struct AlarmChange {
    element: String,
    frame_number: u64,
    kind: Kind,
    raised: bool,
    channel: usize,
    value: f64,
    threshold: f64,
    reference: Option<f64>,
}

impl AlarmChange {
    /// Writes the fields of the message.
    pub fn write(&self, fields: &mut gst::StructureRef) {
        fields.set("element", &self.element);
        fields.set("frame-number", self.frame_number);
        fields.set("alarm", self.kind.name());
        fields.set("raised", self.raised);
        fields.set("channel", self.channel as u32);
        fields.set("value", self.value);
        fields.set("threshold", self.threshold);
        if let Some(reference) = self.reference {
            fields.set("reference", reference);
        }
    }
}

/// The alarms' states, and the reference medians.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    alarms: [Alarm; 4],
    reference: Option<Vec<f64>>,
}

impl Alarms {
    /// Takes a frame's medians as the reference of the lamp-drift alarm.
    pub fn take_reference(&mut self, result: &HistogramResult) {
        self.reference = Some(result.statistics.iter().map(|s| s.median).collect());
    }

    /// Checks a frame; returns each alarm that was raised or cleared. `channels` is the number of
    /// channels that show light: luma, or red, green and blue.
    pub fn look(
        &mut self,
        settings: &AlarmSettings,
        result: &HistogramResult,
        channels: usize,
    ) -> Vec<AlarmChange> {
        let mut changes = Vec::new();
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            let threshold = settings.thresholds[i];
            let values = result.statistics.iter().take(channels).enumerate();
            let worst = values
                .filter_map(|(channel, s)| Some((channel, self.value(kind, channel, s)?)))
                .max_by(|a, b| match kind.side() {
                    Side::Above => a.1.total_cmp(&b.1),
                    Side::Below => b.1.total_cmp(&a.1),
                });
            // No reference was taken yet.
            let Some((channel, value)) = worst else {
                continue;
            };
            let changed = self.alarms[i].update(value, kind.side(), threshold, settings.hysteresis);
            if let Some(raised) = changed {
                let reference = self.reference.as_ref();
                let reference = reference.filter(|_| kind == Kind::LampDrift);
                changes.push(AlarmChange {
                    element: result.element.clone(),
                    frame_number: result.frame_number,
                    kind,
                    raised,
                    channel,
                    value,
                    threshold,
                    reference: reference.and_then(|r| r.get(channel)).copied(),
                });
            }
        }
        changes
    }

    fn value(&self, kind: Kind, channel: usize, s: &Statistics) -> Option<f64> {
        Some(match kind {
            Kind::OverExposed => s.saturated_high,
            Kind::UnderExposed => s.saturated_low,
            Kind::ContrastLost => s.p95 - s.p5,
            Kind::LampDrift => (s.median - self.reference.as_ref()?.get(channel)?).abs(),
        })
    }
}
