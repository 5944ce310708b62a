//! What a comparison of a surface is built from.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Ignored,
    region::Rect,
    surface::{CHANNELS, ChannelsInUse, Model},
};

/// What was learned from good frames.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedSurface {
    /// What the surface looks like.
    pub model: Arc<Model>,
    /// Limits of the channels in use, in order, in units of the channels.
    pub limits: Vec<f64>,
}

/// Settings of a comparison of a surface.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfaceSettings {
    /// What good frames have shown; without it novelty judges nothing.
    pub model: Option<Arc<Model>>,
    /// Limits of the channels in use, in order, in units of the channels; empty: nothing is judged.
    pub limits: Vec<f64>,
    /// The channels that judge.
    pub channels: ChannelsInUse,
    /// Regions to judge; empty for whole frames.
    pub rois: Vec<Rect>,
    /// Pixels that are not judged.
    pub ignored: Option<Arc<Ignored>>,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
    /// Frames are strips of a web.
    pub line_scan: bool,
    /// Read from images instead of buffers.
    pub image: bool,
}

impl SurfaceSettings {
    /// Checks what neither frames nor a device decide.
    ///
    /// # Errors
    /// [`ClError::Refused`] without a channel, or for limits that do not fit the channels.
    pub fn check(&self) -> Result<(), ClError> {
        if self.channels.numbers().next().is_none() {
            return Err(ClError::Refused(
                "no channel is in use; set channels to novelty, dark-lines or bright-lines".into(),
            ));
        }
        self.limits_q8().map(drop)
    }

    /// The limits of all channels in 1/256; `None` if they are not learned.
    ///
    /// # Errors
    /// [`ClError::Refused`] for limits that do not fit the channels.
    pub(super) fn limits_q8(&self) -> Result<Option<[Option<u32>; CHANNELS]>, ClError> {
        if self.limits.is_empty() {
            return Ok(None);
        }
        let limits = self.channels.limits_q8(&self.limits);
        limits.map(Some).map_err(ClError::Refused)
    }
}
