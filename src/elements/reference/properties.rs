//! Properties of `clreference` besides those of every inspector.

use std::sync::Arc;

use gst::{glib, prelude::*};

use crate::elements::{
    checked::CheckedValue,
    inspector::{
        Ignore,
        colour::{self, ColourSettings},
    },
    property_table::{Row, properties},
    text::Location,
};
use clinspect_core::{ClError, reference::MOST_FRAMES};
use clinspect_operators::{
    Align, Component, Limit, Models, NormalizeBy, PartEdge, PartsSettings, Polarity,
    ReferenceSettings,
};

const MAX_THRESHOLD: f64 = 65_535.0;
const MAX_FACTOR: f64 = 1000.0;
const MAX_TOLERANCE: u32 = 64;
const MOST_OPENING: u32 = 3;
const MAX_RANGE: u32 = 256;
const MAX_GAIN: f64 = 256.0;

/// The models in use; two are equal if they are the same objects.
#[derive(Debug, Clone, Default)]
pub struct InUse(pub Option<Models>);

impl PartialEq for InUse {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => {
                let (a, b) = (a.all(), b.all());
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
            }
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

/// Settings of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub threshold: f64,
    pub deviation_factor: f64,
    pub edge_tolerance: u32,
    pub opening: u32,
    pub polarity: Polarity,
    pub align: Align,
    pub search_range: u32,
    pub match_score: f64,
    pub parts: CheckedValue<Vec<u32>>,
    pub search: CheckedValue<Vec<f64>>,
    pub place_score: f64,
    pub edge: PartEdge,
    pub normalize: NormalizeBy,
    pub train_frames: u32,
    pub difference_gain: f64,
    pub rois: CheckedValue<Vec<[u32; 4]>>,
    pub bit_depth: u32,
    pub colour: ColourSettings,
}

/// What an operator is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub properties: Settings,
    /// The trained picture.
    pub model: InUse,
    /// Pixels that are not judged.
    pub ignore: Ignore,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: 20.0,
            deviation_factor: 4.0,
            edge_tolerance: 1,
            opening: 0,
            polarity: Polarity::default(),
            align: Align::default(),
            search_range: 16,
            match_score: 0.3,
            parts: PartsSettings::default().wanted.to_vec().into(),
            search: vec![
                PartsSettings::default().angles,
                PartsSettings::default().scales,
            ]
            .into(),
            place_score: PartsSettings::default().place_score,
            edge: PartEdge::default(),
            normalize: NormalizeBy::default(),
            train_frames: 0,
            difference_gain: 1.0,
            rois: CheckedValue::default(),
            bit_depth: 0,
            colour: ColourSettings::default(),
        }
    }
}

/// The limits of a component in their order.
const LIMITS: [&str; 2] = ["deviation-factor", "threshold"];

impl Settings {
    /// These settings with the limit of a component.
    ///
    /// # Errors
    /// [`ClError::Refused`] for limits that are not usable.
    pub fn of_component(&self, component: Option<Component>) -> Result<Self, ClError> {
        let mut own = self.clone();
        if let Some(limits) = self.colour.limits_of(component, LIMITS.len())?
            && let [factor, threshold] = limits[..]
        {
            if (factor > 0.0) != (self.deviation_factor > 0.0) {
                return Err(ClError::Refused(format!(
                    "component-limits sets the deviation-factor of a component to {factor}, but that of all is {}; \
                     0 switches it off for all components or for none",
                    self.deviation_factor
                )));
            }
            (own.deviation_factor, own.threshold) = (factor, threshold);
        }
        Ok(own)
    }

    /// The comparison of a component of whole frames with its model.
    pub fn comparison(
        &self,
        component: Option<Component>,
        models: Option<&Models>,
    ) -> ReferenceSettings {
        ReferenceSettings {
            model: models.and_then(|models| models.of(component)).cloned(),
            threshold: self.threshold,
            deviation_factor: self.deviation_factor,
            edge_tolerance: self.edge_tolerance,
            opening: self.opening,
            polarity: self.polarity,
            align: match (component, self.align) {
                // All components lie where the luma was found, and parts are read where they were found.
                (Some(_), _) | (None, Align::Any) => Align::None,
                (None, align) => align,
            },
            search_range: self.search_range,
            match_score: self.match_score,
            normalize: self.normalize,
            train_frames: self.train_frames,
            rois: Vec::new(),
            ignored: None,
            bit_depth: self.bit_depth,
        }
    }

    /// Which parts are looked for; `None`: frames are compared whole.
    ///
    /// # Errors
    /// [`ClError::Refused`] for values that are not usable.
    pub fn parts(&self) -> Result<Option<PartsSettings>, ClError> {
        if self.align != Align::Any {
            return Ok(None);
        }
        let two = |numbers: &[f64]| {
            (numbers.try_into())
                .map_err(|_| format!("two numbers are expected, not {}", numbers.len()))
        };
        let wanted = self.parts.check("parts", |parts| {
            let [least, most] = two(&parts.iter().map(|&n| f64::from(n)).collect::<Vec<_>>())?;
            Ok([least as u32, most as u32])
        })?;
        let [angles, scales] = self.search.check("search", |search| two(search))?;
        let parts = PartsSettings {
            wanted,
            angles,
            scales,
            place_score: self.place_score,
            edge: self.edge,
        };
        parts.check()?;
        Ok(Some(parts))
    }

    /// Takes learned limits of components; those that were not learned are the components' own before, or the shared ones.
    pub fn take_components(&mut self, learned: &[(Limit, f64)]) {
        let before = self.colour.limits().to_vec();
        let mut limits = Vec::new();
        for (at, component) in Component::ALL.into_iter().enumerate() {
            let shared = [self.deviation_factor, self.threshold];
            for (n, (name, shared)) in LIMITS.into_iter().zip(shared).enumerate() {
                let of = learned
                    .iter()
                    .find(|(limit, _)| limit.component == Some(component) && limit.name == name);
                let own = before.get(at * LIMITS.len() + n).copied();
                limits.push(of.map_or(own.unwrap_or(shared), |&(_, value)| value));
            }
        }
        self.colour.set_limits(limits);
    }

    /// The settings in force, for messages.
    pub fn in_words(&self) -> String {
        let nick = |value: glib::Value| {
            glib::EnumValue::from_value(&value).map_or("", |(_, choice)| choice.nick())
        };
        format!(
            "deviation-factor={} edge-tolerance={} opening={} polarity={} align={} search-range={} match-score={} parts={:?} search={:?} \
             place-score={} edge={} normalize={} component-limits={:?}",
            self.deviation_factor,
            self.edge_tolerance,
            self.opening,
            nick(self.polarity.to_value()),
            nick(self.align.to_value()),
            self.search_range,
            self.match_score,
            self.parts.usable(),
            self.search.usable(),
            self.place_score,
            nick(self.edge.to_value()),
            nick(self.normalize.to_value()),
            self.colour.limits(),
        )
    }
}

/// What takes effect at the start.
#[derive(Debug, Clone, Default)]
pub struct Files {
    pub location: Location,
}

pub(super) fn file_rows() -> Vec<Row<Files>> {
    properties!(Files {
        file_at_start(
            "location", "Location",
            "File of the model, an .npz of NumPy with the arrays mean and deviation in 1/256 grey level, and frames: \
             read when frames start, written after a training; \"\" = none"
        ) = location;
    })
}

pub(super) fn rows() -> Vec<Row<Settings>> {
    let colour = colour::rows("deviation-factor, then threshold,");
    let mut rows = properties!(Settings {
        double(
            "threshold", "Threshold",
            "A pixel is marked if it differs from the mean of the training by more than this, in grey levels of a \
             sample, and by more than deviation-factor demands",
            0.0..=MAX_THRESHOLD
        ) = threshold;
        double(
            "deviation-factor", "Deviation factor",
            "A pixel is marked if it differs from the mean of the training by more than this many standard \
             deviations of that pixel, and by more than threshold; 0 = threshold decides alone",
            0.0..=MAX_FACTOR
        ) = deviation_factor;
        uint(
            "edge-tolerance", "Edge tolerance",
            "Edges may move by this many pixels: a pixel may be as bright or as dark as any pixel within this \
             distance may be; 0 = only its own limits count",
            0..=MAX_TOLERANCE
        ) = edge_tolerance;
        uint(
            "opening", "Opening",
            "3: only marks that fill a square of 3x3 pixels count, so thin seams along edges are left out; 0 = all marks \
             count",
            0..=MOST_OPENING
        ) = opening;
        choice("polarity", "Polarity", "Which deviations are marked") = polarity;
        choice("align", "Align", "How frames are aligned with the model before they are compared") = align;
        uint(
            "search-range", "Search range",
            "With align other than none: largest shift of a frame along x and along y, in pixels",
            1..=MAX_RANGE
        ) = search_range;
        double(
            "match-score", "Match score",
            "With align other than none: a frame whose correlation with the model is lower than this fails, because it \
             shows something else; 0 = every frame is compared",
            0.0..=1.0
        ) = match_score;
        numbers(
            "parts", "Parts",
            "With align=any: least and most parts of a frame, <least, most>; a frame with another number of them fails, one              without a part gets the verdict none"
        ) = parts;
        reals(
            "search", "Search",
            "With align=any: most degrees that parts are turned to either side, and the largest share by which they are              smaller or larger, <angle, scale>; up to <180, 0.1>"
        ) = search;
        double(
            "place-score", "Place score",
            "With align=any: what is less like the part than this is no part: the smaller of its correlation with the              model and the share of the model's edges that it has",
            0.0..=1.0
        ) = place_score;
        choice(
            "edge", "Edge",
            "With align=any: what a part is that the edge of the frame cuts"
        ) = edge;
        choice(
            "normalize", "Normalize",
            "Whether a frame's brightness is brought to that of the model before they are compared"
        ) = normalize;
        uint(
            "train-frames", "Training frames",
            "Number of good frames in a training, which begins at a start without a model and at the signal \
             train; 0 = no training",
            0..=MOST_FRAMES
        ) = train_frames;
        double(
            "difference-gain", "Difference gain",
            "With output=difference: grey levels of the picture per grey level of difference",
            0.0..=MAX_GAIN
        ) = difference_gain;
        regions(
            "rois", "Regions of interest",
            "Pixels to judge, <<x, y, width, height>, ...>; empty = whole frame. With align=any: the part in the first frame of              the training; empty = what stands out from its background, or what ignore leaves of a frame whose edge it              covers"
        ) = rois;
        bit_depth() = bit_depth;
    });
    rows.extend(
        colour
            .into_iter()
            .map(|row| row.within(|settings: &mut Settings| &mut settings.colour)),
    );
    rows
}
