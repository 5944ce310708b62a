//! Properties of `clsurface` besides those of every inspector.

use std::sync::Arc;

use gst::glib;

use crate::elements::{
    checked::CheckedValue,
    inspector::{Ignore, Regions, RoiSettings, roi_rows},
    property_table::{Row, properties},
};
use clinspect_core::{
    ClError,
    surface::{ChannelsInUse, Model},
    texture::MAX_THRESHOLD,
};
use clinspect_operators::SurfaceSettings;

/// The channels that judge.
#[glib::flags(name = "GstClSurfaceChannels")]
pub enum Channels {
    /// Novelty.
    #[flags_value(
        name = "Novelty: places that look like none of the good frames",
        nick = "novelty"
    )]
    NOVELTY = 1,
    /// Dark lines.
    #[flags_value(
        name = "Dark lines: thin lines of about 33 pixels that are darker than both sides, such as cracks",
        nick = "dark-lines"
    )]
    DARK_LINES = 2,
    /// Bright lines.
    #[flags_value(
        name = "Bright lines: the same that are brighter, such as scratches",
        nick = "bright-lines"
    )]
    BRIGHT_LINES = 4,
}

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub channels: Channels,
    /// Thresholds of the channels in use, in units of the channels; empty: not learned.
    pub thresholds: CheckedValue<Vec<f64>>,
    /// Thresholds that the element has set itself.
    pub learned: Vec<f64>,
    pub rois: RoiSettings,
    pub bit_depth: u32,
}

/// What an operator is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub properties: Settings,
    /// What good frames have shown.
    pub model: Option<Arc<Model>>,
    /// Pixels that are not judged.
    pub ignore: Ignore,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            channels: Channels::NOVELTY,
            thresholds: CheckedValue::default(),
            learned: Vec::new(),
            rois: RoiSettings::default(),
            bit_depth: 0,
        }
    }
}

impl Settings {
    /// The channels in use.
    pub fn in_use(&self) -> ChannelsInUse {
        ChannelsInUse {
            novelty: self.channels.contains(Channels::NOVELTY),
            dark_lines: self.channels.contains(Channels::DARK_LINES),
            bright_lines: self.channels.contains(Channels::BRIGHT_LINES),
        }
    }

    /// The thresholds that somebody has set; empty for none.
    pub fn thresholds_by_hand(&self) -> &[f64] {
        let thresholds = self.thresholds.usable();
        if *thresholds == self.learned {
            &[]
        } else {
            thresholds
        }
    }

    /// The settings in force for messages.
    pub fn in_words(&self) -> String {
        let nicks = Channels::all().iter().filter_map(|channel| {
            let is_used = self.channels.contains(channel);
            let class = glib::FlagsClass::new::<Channels>();
            is_used.then(|| {
                class
                    .value(channel.bits())
                    .map(|value| value.nick().to_owned())
            })?
        });
        let nicks: Vec<String> = nicks.collect();
        format!(
            "channels={} thresholds={:?}",
            nicks.join("+"),
            self.thresholds.usable()
        )
    }
}

impl Plan {
    /// The pixels that are judged.
    pub fn regions(&self) -> Regions<'_> {
        Regions {
            rois: &self.properties.rois,
            ignore: &self.ignore,
        }
    }

    /// The comparison of whole frames.
    ///
    /// # Errors
    /// [`ClError::Refused`] for thresholds that are not usable.
    pub fn comparison(&self) -> Result<SurfaceSettings, ClError> {
        let properties = &self.properties;
        let channels = properties.in_use();
        let limits = properties
            .thresholds
            .check("thresholds", |limits| match limits[..] {
                [] => Ok(Vec::new()),
                _ => channels.limits_q8(limits).map(|_| limits.clone()),
            })?;
        let settings = SurfaceSettings {
            model: self.model.clone(),
            limits,
            channels,
            rois: Vec::new(),
            ignored: None,
            bit_depth: properties.bit_depth,
            line_scan: false,
            image: false,
        };
        settings.check()?;
        Ok(settings)
    }
}

pub(super) fn rows() -> Vec<Row<Settings>> {
    let thresholds = format!(
        "Thresholds of the channels in use, at most {MAX_THRESHOLD}: one of novelty, in mean squares of what varies in good \
         frames, and one for each of the 8 directions of dark-lines and of bright-lines, in units of the local noise; empty = \
         learn them with the model from the first frames, which must be good; until then frames get the verdict none"
    );
    let mut rows = properties!(Settings {
        flags("channels", "Channels", "What marks pixels") = channels;
        reals("thresholds", "Thresholds", &thresholds) = thresholds;
        bit_depth() = bit_depth;
    });
    let rois = roi_rows().into_iter();
    rows.extend(rois.map(|row| row.within(|settings: &mut Settings| &mut settings.rois)));
    rows
}
