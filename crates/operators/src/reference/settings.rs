//! The settings of a comparison with a trained picture.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::Ignored,
    layout::FrameLayout,
    reference::{Deviations, JudgedArea, MOST_FRAMES, Model, Normalize, check_size, sight},
    region::Rect,
    sight::Sight,
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
    /// By a shift, a turn, and scales.
    #[enum_value(
        name = "Affine: frames are also turned and stretched to where they fit the model best",
        nick = "affine"
    )]
    Affine,
    /// By an affine motion and local shifts.
    #[enum_value(
        name = "Local: as affine, and parts of up to 64 pixels may be shifted by up to 2 pixels",
        nick = "local"
    )]
    Local,
    /// By a search for parts: see [`Parts`](crate::Parts).
    #[enum_value(
        name = "Any: parts are searched in the whole frame, at any angle, and each is compared by itself",
        nick = "any"
    )]
    Any,
}

impl Align {
    /// # Errors
    /// [`ClError::Refused`] if frames of this size cannot be aligned so.
    pub fn check(self, size: [usize; 2], search_range: u32) -> Result<(), ClError> {
        match self {
            Self::None | Self::Any => Ok(()),
            Self::Translation | Self::Affine | Self::Local => {
                check_size(size, search_range as usize).map_err(ClError::Refused)
            }
        }
    }
}

/// # Errors
/// [`ClError::Refused`] for a square that marks cannot be opened with.
pub fn check_opening(opening: u32) -> Result<(), ClError> {
    if matches!(opening, 0 | 3) {
        return Ok(());
    }
    Err(ClError::Refused(format!(
        "opening={opening} is neither 0 nor 3; set 3 to leave out marks that are thinner than 3 pixels, or 0 to keep them"
    )))
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
    /// Side of the square that marked pixels must fill, px: 3, or 0 for none.
    pub opening: u32,
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
    /// What the limits see of the model, for samples with `depth` significant bits. `None` without a model, or if no pixel
    /// is judged.
    pub fn sight(&self, depth: u32) -> Option<Sight> {
        let model = self.model.as_ref()?;
        let [_, height] = model.size();
        let ignored = self.ignored.as_ref().map(|ignored| ignored.rows(0, height));
        let judged = JudgedArea::new(model, &self.rois, ignored.as_ref());
        sight(model, &judged, &self.deviations(), depth)
    }

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
        check_opening(self.opening)?;
        self.align.check(size, self.search_range)?;
        match &self.model {
            Some(model) => (model.check_fits(size, layout.sample.bits())).map_err(ClError::Refused),
            None => Ok(()),
        }
    }

    /// The bits of a sample, and whether the light of parts is followed.
    pub(super) fn of_parts(&self) -> (u32, bool) {
        (self.bit_depth, self.normalize == NormalizeBy::Gain)
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
