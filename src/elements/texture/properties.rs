//! Properties of `cltexture` besides those of every inspector.

use gst::{glib, prelude::*};

use crate::elements::{
    checked::CheckedValue,
    inspector::{
        Ignore, Regions, RoiSettings,
        colour::{self, ColourSettings},
        contrast,
        repeats::{estimated, in_use, lattice_blurb, lattice_in_words, lattice_of},
        roi_rows,
    },
    property_table::{Row, properties},
};
use clinspect_core::{
    ClError,
    lattice::Lattice,
    texture::{CHANNEL_NAMES, CHANNELS, FLATNESS, FLATNESS_NAME, MAX_THRESHOLD},
};
use clinspect_operators::{Component, Contrast, NoiseFrom, TextureSettings};

/// Value of a pitch property that asks for an estimate.
const ESTIMATE: f64 = -1.0;
/// Value of `min-contrast` for half of the texture's own contrast.
const AUTOMATIC: f64 = -1.0;
const MAX_CONTRAST: f64 = 255.0;
const MAX_PITCH: f64 = 65_536.0;

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Pitch along x, px; negative for an estimate.
    pub pitch_x: f64,
    /// Pitch along y, likewise.
    pub pitch_y: f64,
    /// One or two vectors, x and y in px, that take the place of both pitches; empty for the pitches.
    pub lattice: CheckedValue<Vec<f64>>,
    /// Thresholds of the channels in units of the local noise; empty: not learned.
    pub thresholds: CheckedValue<Vec<f64>>,
    pub noise_from: NoiseFrom,
    /// Minimum contrast, grey levels of 8 bits; 0 for no search for the texture, negative for half of its own contrast.
    pub min_contrast: f64,
    pub rois: RoiSettings,
    pub bit_depth: u32,
    pub colour: ColourSettings,
}

/// What an operator is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub properties: Settings,
    /// Pixels that are not judged.
    pub ignore: Ignore,
}

impl Plan {
    /// The pixels that are judged.
    pub fn regions(&self) -> Regions<'_> {
        Regions {
            rois: &self.properties.rois,
            ignore: &self.ignore,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pitch_x: ESTIMATE,
            pitch_y: ESTIMATE,
            lattice: CheckedValue::default(),
            thresholds: CheckedValue::default(),
            noise_from: NoiseFrom::default(),
            min_contrast: AUTOMATIC,
            rois: RoiSettings::default(),
            bit_depth: 0,
            colour: ColourSettings::default(),
        }
    }
}

impl Settings {
    /// Whether the pitch along x, and along y, is estimated.
    pub fn estimates(&self) -> [bool; 2] {
        estimated([self.pitch_x, self.pitch_y], &self.lattice)
    }

    /// Whether the lattice is estimated.
    pub fn estimates_lattice(&self) -> bool {
        self.estimates() == [true; 2]
    }

    /// The vectors in use, px: those set, or the estimated ones.
    ///
    /// # Errors
    /// [`ClError::Refused`] for numbers that are no lattice.
    pub fn vectors(&self, estimated: Option<Lattice>) -> Result<Option<Lattice>, ClError> {
        let estimated = estimated.filter(|_| self.estimates_lattice());
        Ok(lattice_of(&self.lattice)?.or(estimated))
    }

    /// The pitches in use along x and y, px: those set, and the estimated ones where estimates are wanted; none with a
    /// lattice.
    pub fn pitches(&self, known: [Option<f64>; 2]) -> [f64; 2] {
        in_use([self.pitch_x, self.pitch_y], &self.lattice, known)
    }

    /// These settings with the limits of a component.
    ///
    /// # Errors
    /// [`ClError::Refused`] for limits that are not usable.
    pub fn of_component(&self, component: Option<Component>) -> Result<Self, ClError> {
        let mut own = self.clone();
        if let Some(limits) = self.colour.limits_of(component, CHANNELS + 1)? {
            own.thresholds = limits.into();
        }
        Ok(own)
    }

    /// The minimum contrast for an operator.
    pub fn contrast(&self) -> Contrast {
        match (self.min_contrast, self.thresholds.usable().get(CHANNELS)) {
            (0.0, _) => Contrast::Off,
            (level, _) if level > 0.0 => Contrast::Known(level),
            (_, Some(flatness)) => Contrast::Known(FLATNESS / flatness),
            _ => Contrast::Unknown,
        }
    }

    /// The settings in force for messages; `contrast` are the minimum contrasts in use.
    pub fn in_words(&self, contrast: impl Iterator<Item = Contrast>) -> String {
        let contrast = contrast::in_words(contrast);
        let lattice = lattice_in_words(&self.lattice);
        let noise_from = self.noise_from.to_value();
        let noise_from = glib::EnumValue::from_value(&noise_from);
        format!(
            "{lattice}thresholds={:?} noise-from={} min-contrast={contrast} component-limits={:?}",
            self.thresholds.usable(),
            noise_from.map_or("", |(_, choice)| choice.nick()),
            self.colour.limits(),
        )
    }

    /// The comparison of whole frames at these pitches.
    ///
    /// # Errors
    /// [`ClError::Refused`] for thresholds that are not usable.
    pub fn comparison(&self, pitches: [f64; 2]) -> Result<TextureSettings, ClError> {
        for (name, pitch) in [("pitch-x", self.pitch_x), ("pitch-y", self.pitch_y)] {
            if pitch == 0.0 && self.lattice.usable().is_empty() {
                return Err(ClError::Refused(format!(
                    "{name}=0, but a texture is compared along both axes; set {name} to the distance after which the \
                     texture repeats, or to -1 for an estimate"
                )));
            }
        }
        Ok(TextureSettings {
            pitches,
            lattice: self.vectors(None)?,
            may_turn: self.estimates_lattice(),
            thresholds: self.thresholds.check("thresholds", |t| Ok(t.clone()))?,
            noise_from: self.noise_from,
            contrast: self.contrast(),
            rois: Vec::new(),
            ignored: None,
            bit_depth: self.bit_depth,
            line_scan: false,
            image: false,
            variant: None,
        })
    }
}

pub(super) fn rows() -> Vec<Row<Settings>> {
    let thresholds = format!(
        "Thresholds of the {CHANNELS} channels ({}) in units of the local noise, at most {MAX_THRESHOLD}, then the \
         {FLATNESS_NAME} of the flattest tile: {FLATNESS} over its standard deviation in grey levels of 8 bits; empty = \
         learn them from the first frames, which must be good; until then frames get the verdict none",
        CHANNEL_NAMES.join(", ")
    );
    let colour = colour::rows("the numbers of thresholds");
    let lattice = lattice_blurb("texture");
    let mut rows = properties!(Settings {
        double(
            "pitch-x", "Pitch along x",
            "Distance after which the texture repeats along a row, in pixels, at least 2; -1 = estimate from the frames",
            ESTIMATE..=MAX_PITCH
        ) = pitch_x;
        double(
            "pitch-y", "Pitch along y",
            "Distance after which the texture repeats along a column, in pixels, at least 2; -1 = estimate from the \
             frames",
            ESTIMATE..=MAX_PITCH
        ) = pitch_y;
        reals("lattice", "Lattice", &lattice) = lattice;
        reals("thresholds", "Thresholds", &thresholds) = thresholds;
        choice(
            "noise-from", "Noise from", "Which tiles of 32x32 pixels give the local noise"
        ) = noise_from;
        double(
            "min-contrast", "Minimum contrast",
            "Tiles whose standard deviation is below this are marked, because the texture is missing \
             there, in grey levels of 8 bits; 0 = do not look for the texture, -1 = as learned in thresholds, or half of \
             the contrast in estimates",
            AUTOMATIC..=MAX_CONTRAST
        ) = min_contrast;
        bit_depth() = bit_depth;
    });
    rows.extend(
        colour
            .into_iter()
            .map(|row| row.within(|settings: &mut Settings| &mut settings.colour)),
    );
    let rois = roi_rows().into_iter();
    rows.extend(rois.map(|row| row.within(|settings: &mut Settings| &mut settings.rois)));
    rows
}
