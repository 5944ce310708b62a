//! Properties of `clpitchthreshold` besides those of every inspector.

use gst::{glib, prelude::*};

use crate::elements::{
    checked::CheckedValue,
    inspector::{
        Ignore,
        colour::{self, ColourSettings},
        contrast,
        repeats::{estimated, in_use, lattice_blurb, lattice_in_words, lattice_of},
    },
    property_table::{Row, properties},
};
use clinspect_core::{
    ClError,
    components::COMPONENTS,
    lattice::Lattice,
    learning::Contrasts,
    scales::{MAX_SCALES, SCALE_FACTORS},
};
use clinspect_operators::{
    Borders, Compare, Component, Contrast, PitchThresholdSettings, Polarity,
};

/// Value of a pitch property that asks for an estimate.
const ESTIMATE: f64 = -1.0;
/// Value of `min-contrast` for half of the pattern's own contrast.
const AUTOMATIC: f64 = -1.0;
const MAX_CONTRAST: f64 = 255.0;
const MAX_PITCH: f64 = 65_536.0;
const MAX_THRESHOLD: f64 = 65_535.0;
const MAX_GAIN: f64 = 256.0;

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Pitch along x, px; 0 for no comparison, negative for an estimate.
    pub pitch_x: f64,
    /// Pitch along y, likewise.
    pub pitch_y: f64,
    /// One or two vectors, x and y in px, that take the place of both pitches; empty for the pitches.
    pub lattice: CheckedValue<Vec<f64>>,
    pub multiples: CheckedValue<Vec<u32>>,
    pub threshold: f64,
    pub compare: Compare,
    pub match_center: bool,
    pub polarity: Polarity,
    pub borders: Borders,
    pub edge_margin: u32,
    /// Number of coarser levels.
    pub scales: u32,
    /// Thresholds of the levels as parts of the threshold.
    pub scale_factors: CheckedValue<Vec<f64>>,
    /// Minimum contrast, grey levels of 8 bits; 0 for no search for the pattern, negative for half of
    /// the pattern's own contrast.
    pub min_contrast: f64,
    /// By component the contrast of the pattern in good frames, grey levels of 8 bits; empty for that of the first frame that
    /// shows the pattern.
    pub contrasts: CheckedValue<Vec<f64>>,
    pub rois: CheckedValue<Vec<[u32; 4]>>,
    pub bit_depth: u32,
    pub difference_gain: f64,
    pub colour: ColourSettings,
}

/// What an operator is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub properties: Settings,
    /// Pitches in use along x and y, px: set or estimated; 0 for none.
    pub pitches: [f64; 2],
    /// The estimated vectors in use, instead of pitches.
    pub lattice: Option<Lattice>,
    /// Pixels that are not judged.
    pub ignore: Ignore,
    /// The plan will stay as it is for long, so kernels are compiled for it alone.
    pub is_steady: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pitch_x: ESTIMATE,
            pitch_y: ESTIMATE,
            lattice: CheckedValue::default(),
            multiples: vec![1, 4].into(),
            threshold: 12.0,
            compare: Compare::default(),
            match_center: true,
            polarity: Polarity::default(),
            borders: Borders::default(),
            edge_margin: 2,
            scales: 0,
            scale_factors: SCALE_FACTORS.to_vec().into(),
            min_contrast: AUTOMATIC,
            contrasts: CheckedValue::default(),
            rois: CheckedValue::default(),
            bit_depth: 0,
            difference_gain: 1.0,
            colour: ColourSettings::default(),
        }
    }
}

impl Settings {
    /// Whether the pitch along x, and along y, is estimated.
    pub fn estimates(&self) -> [bool; 2] {
        estimated([self.pitch_x, self.pitch_y], &self.lattice)
    }

    /// Whether the lattice is estimated: both pitches are, and no blocks are compared, which lie along rows and columns.
    pub fn estimates_lattice(&self) -> bool {
        self.estimates() == [true; 2] && self.scales == 0
    }

    /// Whether rows and columns are compared although the pattern may be turned. Without a search for the pattern nothing
    /// looks at it.
    pub fn may_be_turned(&self) -> bool {
        self.lattice.usable().is_empty()
            && !self.estimates_lattice()
            && self.contrast() != Contrast::Off
    }

    /// These settings with the limits of a component.
    ///
    /// # Errors
    /// [`ClError::Refused`] for limits that are not usable.
    pub fn of_component(&self, component: Option<Component>) -> Result<Self, ClError> {
        let mut own = self.clone();
        let limits = self.colour.limits_of(component, 1 + self.scales as usize)?;
        own.set_limits(&limits.unwrap_or_default());
        Ok(own)
    }

    /// Takes learned limits: that of the pixels, then those of the levels.
    pub fn set_limits(&mut self, limits: &[f64]) {
        let Some((&threshold, levels)) = limits.split_first() else {
            return;
        };
        self.threshold = threshold;
        if threshold > 0.0 && !levels.is_empty() {
            // Factors of levels that are not in use stay.
            let factors = self.scale_factors.usable_mut();
            factors.resize(factors.len().max(levels.len()), 0.0);
            for (factor, limit) in factors.iter_mut().zip(levels) {
                *factor = limit / threshold;
            }
        }
    }

    /// Sets the limits that are learned to the same values.
    pub fn forget_limits(&mut self) {
        self.threshold = 0.0;
        self.scale_factors = CheckedValue::default();
        self.contrasts = CheckedValue::default();
        self.colour.forget_limits();
    }

    /// The settings in force for messages; `contrast` are the minimum contrasts in use.
    pub fn in_words(&self, contrast: impl Iterator<Item = Contrast>) -> String {
        let nick = |value: glib::Value| {
            glib::EnumValue::from_value(&value).map_or("", |(_, choice)| choice.nick())
        };
        let contrast = contrast::in_words(contrast);
        let lattice = lattice_in_words(&self.lattice);
        format!(
            "{lattice}compare={} match-center={} multiples={:?} scales={} scale-factors={:?} polarity={} borders={} \
             min-contrast={contrast} component-limits={:?}",
            nick(self.compare.to_value()),
            self.match_center,
            self.multiples.usable(),
            self.scales,
            self.scale_factors.usable(),
            nick(self.polarity.to_value()),
            nick(self.borders.to_value()),
            self.colour.limits(),
        )
    }

    /// The comparison of whole frames at these pitches, or along estimated vectors.
    ///
    /// # Errors
    /// [`ClError::Refused`] for an array that is not usable.
    pub fn comparison(
        &self,
        [pitch_x, pitch_y]: [f64; 2],
        vectors: Option<Lattice>,
    ) -> Result<PitchThresholdSettings, ClError> {
        let [along_x, along_y] = self.estimates();
        self.contrasts
            .check("contrasts", |contrasts| check_contrasts(contrasts))?;
        Ok(PitchThresholdSettings {
            may_be_blind: along_x || along_y,
            is_steady: false,
            pitch_x,
            pitch_y,
            lattice: lattice_of(&self.lattice)?.or(vectors),
            multiples: self.multiples.check("multiples", |m| Ok(m.clone()))?,
            threshold: self.threshold,
            compare: self.compare,
            match_center: self.match_center,
            polarity: self.polarity,
            borders: self.borders,
            edge_margin: self.edge_margin,
            scales: self.scales as usize,
            scale_factors: self
                .scale_factors
                .check("scale-factors", |f| Ok(f.clone()))?,
            contrast: self.contrast(),
            rois: Vec::new(),
            ignored: None,
            bit_depth: self.bit_depth,
            line_scan: false,
            image: false,
            variant: None,
        })
    }

    /// The minimum contrast for an operator.
    pub fn contrast(&self) -> Contrast {
        match self.min_contrast {
            0.0 => Contrast::Off,
            level if level > 0.0 => Contrast::Known(level),
            _ => Contrast::Unknown,
        }
    }

    /// The contrasts that are set, if they are those of so many components.
    pub fn contrasts_of(&self, components: usize) -> Option<Contrasts> {
        let set = self.contrasts.usable();
        let of = |component| set.get(component).copied().unwrap_or(0.0);
        (set.len() == components).then(|| Contrasts(std::array::from_fn(of)))
    }

    /// The pitches in use along x and y, px: those set, and the estimated ones where estimates are wanted; none with a
    /// lattice.
    pub fn pitches(&self, known: [Option<f64>; 2]) -> [f64; 2] {
        in_use([self.pitch_x, self.pitch_y], &self.lattice, known)
    }
}

/// Refuses contrasts that are those of no frame.
fn check_contrasts(contrasts: &[f64]) -> Result<(), String> {
    let count = contrasts.len();
    if ![0, 1, COMPONENTS].contains(&count) {
        return Err(format!(
            "{count} numbers are no contrasts of components; set 1 or {COMPONENTS}, or none"
        ));
    }
    let is_one = |contrast: &&f64| (0.0..=MAX_CONTRAST).contains(*contrast);
    match contrasts.iter().find(|contrast| !is_one(contrast)) {
        Some(contrast) => Err(format!(
            "{contrast} is no contrast; set 0 to {MAX_CONTRAST}"
        )),
        None if count > 0 && contrasts.iter().all(|&contrast| contrast == 0.0) => Err(
            "a pattern is seen in one component at least; set none for that of the first frame"
                .into(),
        ),
        None => Ok(()),
    }
}

pub(super) fn rows() -> Vec<Row<Settings>> {
    let colour = colour::rows("threshold, then those of the levels in use");
    let lattice = lattice_blurb("pattern");
    let mut rows = properties!(Settings {
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
        reals("lattice", "Lattice", &lattice) = lattice;
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
        choice(
            "borders", "Borders", "How pixels near the frame's edge, which lack a neighbour, are compared"
        ) = borders;
        uint(
            "edge-margin", "Edge margin",
            "With borders=inward: number of pixels at each edge that are not compared across that edge, \
             because a filter before this element computes them without their neighbours outside the frame; \
             half of the filter's kernel-size, rounded down; 0 = no filter",
            0..=65_536
        ) = edge_margin;
        uint(
            "scales", "Scales",
            "Number of coarser levels, which also compare means of blocks of 2, 4, 8 and 16 pixels a side, \
             so that stains fainter than the noise are marked; 0 = compare pixels only",
            0..=MAX_SCALES as u32
        ) = scales;
        reals(
            "scale-factors", "Scale factors",
            "Thresholds of the coarser levels as fractions of threshold, the finest level first; at least \
             as many numbers as scales"
        ) = scale_factors;
        double(
            "min-contrast", "Minimum contrast",
            "Tiles whose standard deviation is below this are marked, because the pattern is missing \
             there, in grey levels of 8 bits; 0 = do not look for the pattern, -1 = half of \
             the contrast in estimates",
            AUTOMATIC..=MAX_CONTRAST
        ) = min_contrast;
        reals(
            "contrasts", "Contrasts",
            "With min-contrast=-1: contrast of the pattern in good frames, in grey levels of 8 bits; of components that are \
             judged apart those of red, green and blue; empty, or of other components = that of the first frame \
             that shows the pattern. The signal learn sets them, take-contrast empties them"
        ) = contrasts;
        numbers(
            "multiples", "Multiples",
            "Multiples of the pitches at which a pixel is compared, such as <1> or <1, 4>; a pixel \
             that differs at one of them is marked"
        ) = multiples;
        regions(
            "rois", "Regions of interest",
            "Pixels to judge, <<x, y, width, height>, ...>; empty = whole frame"
        ) = rois;
        bit_depth() = bit_depth;
        double(
            "difference-gain", "Difference gain",
            "With output=difference: grey levels of the picture per grey level of difference",
            0.0..=MAX_GAIN
        ) = difference_gain;
    });
    rows.extend(
        colour
            .into_iter()
            .map(|row| row.within(|settings: &mut Settings| &mut settings.colour)),
    );
    rows
}
