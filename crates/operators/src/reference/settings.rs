//! The settings of a comparison with a trained picture.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Ignored,
    layout::FrameLayout,
    reference::{Deviations, MOST_FRAMES, Model, Normalize, Patches},
    region::Rect,
};
use gst::glib;

use crate::{
    Polarity,
    depth::{check_threshold, effective_depth},
};

/// How frames are aligned with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClReferenceAlign")]
pub enum Align {
    /// Not at all.
    #[default]
    #[enum_value(name = "None: frames are compared where they are", nick = "none")]
    None,
    /// By a shift.
    #[enum_value(
        name = "Translation: frames are shifted along x and y to where they fit the model best",
        nick = "translation"
    )]
    Translation,
}

/// How the brightness of frames follows the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClReferenceNormalize")]
pub enum NormalizeBy {
    /// Not at all.
    #[default]
    #[enum_value(name = "None: samples are compared as they are", nick = "none")]
    None,
    /// The mean.
    #[enum_value(name = "Offset: the frame's mean becomes the model's", nick = "offset")]
    Offset,
    /// The mean and the standard deviation.
    #[enum_value(
        name = "Gain: the frame's mean and standard deviation become the model's",
        nick = "gain"
    )]
    Gain,
}

/// The settings of a comparison with a trained picture.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceSettings {
    /// The trained picture.
    pub model: Option<Arc<Model>>,
    /// Least difference that is marked, grey levels.
    pub threshold: f64,
    /// The same in standard deviations of the sample.
    pub deviation_factor: f64,
    /// Limits are the widest of those within this many pixels.
    pub edge_tolerance: u32,
    /// The deviations that are marked.
    pub polarity: Polarity,
    /// How frames are aligned with the model.
    pub align: Align,
    /// Largest shift along x and y, px.
    pub search_range: u32,
    /// Least correlation of a frame that is compared.
    pub match_score: f64,
    /// How the brightness of frames follows the model.
    pub normalize: NormalizeBy,
    /// Frames of a training.
    pub train_frames: u32,
    /// Regions of interest inside the frame; empty for the whole frame.
    pub rois: Vec<Rect>,
    /// Pixels that are not judged.
    pub ignored: Option<Arc<Ignored>>,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
}

impl ReferenceSettings {
    /// # Errors
    /// [`ClError::Refused`] for settings that frames of this layout cannot be compared with.
    pub(super) fn check(&self, layout: &FrameLayout) -> Result<(), ClError> {
        let size = [layout.width, layout.height];
        let depth = effective_depth(self.bit_depth, layout.sample)?;
        check_threshold(self.threshold, depth)?;
        if self.train_frames > MOST_FRAMES {
            return Err(ClError::Refused(format!(
                "train-frames={} is too many; set it to at most {MOST_FRAMES}",
                self.train_frames
            )));
        }
        if self.align == Align::Translation {
            Patches::side_of(size, self.search_range as usize).map_err(ClError::Refused)?;
        }
        match &self.model {
            Some(model) => (model.check_fits(size, layout.sample.bits())).map_err(ClError::Refused),
            None => Ok(()),
        }
    }

    pub(super) fn deviations(&self) -> Deviations {
        Deviations {
            threshold: self.threshold,
            factor: self.deviation_factor,
            edge_tolerance: self.edge_tolerance as usize,
            bright: self.polarity != Polarity::Dark,
            dark: self.polarity != Polarity::Bright,
        }
    }

    pub(super) fn normalize(&self) -> Normalize {
        match self.normalize {
            NormalizeBy::None => Normalize::None,
            NormalizeBy::Offset => Normalize::Offset,
            NormalizeBy::Gain => Normalize::Gain,
        }
    }
}
