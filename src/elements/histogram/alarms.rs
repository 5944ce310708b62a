//! Alarms of `clhistogram` about the lighting.

use gst::glib;

use crate::elements::{
    checked::{CheckedValue, Readable},
    property_table::{Row, properties},
};
use clinspect_core::{
    ClError,
    alarm::{Alarm, Side},
    statistics::Statistics,
};
use clinspect_results::HistogramResult;

/// Threshold of an alarm that is off.
const OFF: f64 = -1.0;
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

    fn side(self) -> Side {
        match self {
            Self::ContrastLost => Side::Below,
            _ => Side::Above,
        }
    }

    fn threshold(self, settings: &AlarmSettings) -> f64 {
        match self {
            Self::OverExposed => settings.over_exposed,
            Self::UnderExposed => settings.under_exposed,
            Self::ContrastLost => settings.contrast,
            Self::LampDrift => settings.drift,
        }
    }
}

/// `<level, ...>`: grey levels, one for each channel.
#[derive(Debug, Clone, Default, PartialEq)]
struct Levels(Vec<f64>);

impl Readable for Levels {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let levels = Vec::<f64>::read(value)?;
        match levels
            .iter()
            .find(|level| !(0.0..=MAX_LEVEL).contains(*level))
        {
            None => Ok(Self(levels)),
            Some(level) => Err(format!("{level} is not a grey level from 0 to {MAX_LEVEL}")),
        }
    }

    fn write(&self) -> glib::SendValue {
        self.0.write()
    }
}

/// Thresholds of the alarms, and the reference of the lamp-drift alarm.
#[derive(Debug, Clone)]
pub(super) struct AlarmSettings {
    over_exposed: f64,
    under_exposed: f64,
    contrast: f64,
    drift: f64,
    /// Medians of the channels that show light; empty if no reference was taken.
    reference: CheckedValue<Levels>,
    hysteresis: f64,
    /// The next frame becomes the reference of the lamp-drift alarm.
    reference_wanted: bool,
}

impl Default for AlarmSettings {
    fn default() -> Self {
        Self {
            over_exposed: OFF,
            under_exposed: OFF,
            contrast: OFF,
            drift: OFF,
            reference: CheckedValue::default(),
            hysteresis: 0.1,
            reference_wanted: false,
        }
    }
}

impl AlarmSettings {
    /// The name of the property that holds the reference.
    pub const REFERENCE: &str = "alarm-drift-reference";

    /// Checks the reference.
    ///
    /// # Errors
    /// [`ClError::Refused`] if it is no array of grey levels.
    pub fn check(&self) -> Result<(), ClError> {
        self.reference.check(Self::REFERENCE, |_| Ok(()))
    }

    /// Why the reference is refused, once: from then on the one before counts.
    pub fn take_refusal(&mut self) -> Option<ClError> {
        self.reference.take_refusal(Self::REFERENCE)
    }

    /// The next frame becomes the reference of the lamp-drift alarm.
    pub fn request_reference(&mut self) {
        self.reference_wanted = true;
    }

    /// Whether the next frame becomes the reference.
    pub fn is_requested(&self) -> bool {
        self.reference_wanted
    }

    /// The request passed on with the settings of a frame: the reference is taken from that frame only.
    pub fn clear_request(&mut self) {
        self.reference_wanted = false;
    }

    /// Takes over the reference of other settings.
    pub fn set_reference(&mut self, other: &Self) {
        self.reference = other.reference.clone();
    }

    /// Takes the reference from a frame if the signal asked for one. Returns the medians that were taken.
    pub fn take_reference(&mut self, result: &HistogramResult, is_rgb: bool) -> Option<Vec<f64>> {
        if !std::mem::take(&mut self.reference_wanted) {
            return None;
        }
        let medians: Vec<f64> = lit(result, is_rgb).iter().map(|s| s.median).collect();
        self.reference = Levels(medians.clone()).into();
        Some(medians)
    }

    /// The reference of a channel.
    fn reference(&self, channel: usize) -> Option<f64> {
        self.reference.usable().0.get(channel).copied()
    }
}

/// The channels that show light; chroma and alpha say nothing about lamps.
fn lit(result: &HistogramResult, is_rgb: bool) -> &[Statistics] {
    let count = if is_rgb { 3 } else { 1 };
    &result.statistics[..count.min(result.statistics.len())]
}

/// The properties of the alarms.
pub(super) fn rows() -> Vec<Row<AlarmSettings>> {
    properties!(AlarmSettings {
        double(
            "alarm-over-exposed", "Alarm: over-exposed",
            "Raise an alarm if more than this share of the samples is in the highest bin, 0..1; \
             -1 = off",
            OFF..=1.0
        ) = over_exposed;
        double(
            "alarm-under-exposed", "Alarm: under-exposed",
            "Raise an alarm if more than this share of the samples is in the lowest bin, 0..1; \
             -1 = off",
            OFF..=1.0
        ) = under_exposed;
        double(
            "alarm-contrast", "Alarm: contrast lost",
            "Raise an alarm if the 95th percentile is less than this above the 5th, in grey \
             levels; -1 = off",
            OFF..=MAX_LEVEL
        ) = contrast;
        double(
            "alarm-drift", "Alarm: lamp drift",
            "Raise an alarm if the median differs by more than this from alarm-drift-reference, \
             in grey levels; -1 = off",
            OFF..=MAX_LEVEL
        ) = drift;
        levels(
            AlarmSettings::REFERENCE, "Alarm: reference of the lamp drift",
            "Medians while the light is right, in grey levels: <R, G, B>, or one number for other \
             formats. The signal take-reference sets it from the next frame; empty = none"
        ) = reference;
        double(
            "alarm-hysteresis", "Alarm hysteresis",
            "How far past its threshold a value must return to clear an alarm, as a share of the \
             threshold",
            0.0..=1.0
        ) = hysteresis;
    })
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

/// The alarms' states.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    alarms: [Alarm; 4],
    /// The warning that there is no reference was given.
    is_told: bool,
}

impl Alarms {
    /// Checks a frame; returns each alarm that was raised or cleared.
    pub fn update(
        &mut self,
        settings: &AlarmSettings,
        result: &HistogramResult,
        is_rgb: bool,
    ) -> Vec<AlarmChange> {
        let mut changes = Vec::new();
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            let threshold = kind.threshold(settings);
            let values = lit(result, is_rgb).iter().enumerate();
            let worst = values
                .filter_map(|(channel, s)| Some((channel, value(kind, settings, channel, s)?)))
                .max_by(|a, b| match kind.side() {
                    Side::Above => a.1.total_cmp(&b.1),
                    Side::Below => b.1.total_cmp(&a.1),
                });
            // There is no reference.
            let Some((channel, value)) = worst else {
                continue;
            };
            let changed = self.alarms[i].update(value, kind.side(), threshold, settings.hysteresis);
            if let Some(raised) = changed {
                let is_drift = kind == Kind::LampDrift;
                changes.push(AlarmChange {
                    element: result.element.clone(),
                    frame_number: result.frame_number,
                    kind,
                    raised,
                    channel,
                    value,
                    threshold,
                    reference: settings.reference(channel).filter(|_| is_drift),
                });
            }
        }
        changes
    }

    /// The warning that `alarm-drift` is set and there is no reference, once. The signal may come at any later time, so
    /// the first frame that is not compared is the occasion.
    pub fn why_no_drift(&mut self, settings: &AlarmSettings) -> Option<String> {
        let drift = settings.drift;
        let is_blind = drift >= 0.0 && settings.reference(0).is_none();
        (is_blind && !std::mem::replace(&mut self.is_told, true)).then(|| {
            format!(
                "alarm-drift={drift} has no reference yet, so no lamp-drift alarm can be raised; emit take-reference \
                 while the light is right, set {}, or set alarm-drift=-1",
                AlarmSettings::REFERENCE
            )
        })
    }

    /// Names of the alarms that are raised.
    pub fn raised(&self) -> Vec<String> {
        let states = Kind::ALL.into_iter().zip(&self.alarms);
        let raised = states.filter(|(_, alarm)| alarm.is_raised());
        raised.map(|(kind, _)| kind.name().into()).collect()
    }
}

/// The value of a frame's channel that is compared with the threshold; `None` without a reference.
fn value(kind: Kind, settings: &AlarmSettings, channel: usize, s: &Statistics) -> Option<f64> {
    Some(match kind {
        Kind::OverExposed => s.saturated_high,
        Kind::UnderExposed => s.saturated_low,
        Kind::ContrastLost => s.p95 - s.p5,
        Kind::LampDrift => (s.median - settings.reference(channel)?).abs(),
    })
}
