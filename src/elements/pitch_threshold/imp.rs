//! Implementation of `clpitchthreshold`.

use std::sync::{LazyLock, Mutex};

use gst::{
    glib::{self, subclass::Signal},
    prelude::*,
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    estimate::{Estimation, News, Probes, probes},
    estimated::{Estimated, tell_missing},
    presence::{self, Learned, Presence},
    properties::{Settings, rows},
    steady::Steady,
};
use crate::elements::{
    base_filter::{
        self, ClBaseFilter, ClBaseFilterExt, Frame, Learning, Live, Negotiated, Target, View,
        put_back,
    },
    debug_category,
    inspector::{self, Basis, Ignore, Inspector, InspectorImpl, Picture},
    lock,
    property_table::{PropertyTable, property_methods},
    told::Told,
};
use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    pitch::Axis,
    region::{check_region, user_region},
    threshold::Reached,
    window::Reach,
};
use clinspect_opencl::frame::ClFrame;
use clinspect_operators::{
    Contrast, Listed, Marked, MaskTarget, PitchThreshold, PitchThresholdSettings,
};

/// Instance of `clpitchthreshold`.
#[derive(Default)]
pub struct ClPitchThreshold {
    inspector: Inspector,
    settings: Mutex<Settings>,
    pub(super) estimated: Estimated,
    pub(super) presence: Presence,
}

/// What the element keeps from frame to frame.
#[derive(Default)]
pub struct State {
    estimation: Estimation,
    steady: Steady,
    learned: Learned,
    /// Axes and multiples of the comparisons that judge few pixels.
    weak: Told<Vec<(Axis, u32)>>,
}

/// Compares frames, and copies the lines from which the pitches are estimated.
pub struct Operator {
    pub(super) comparison: PitchThreshold,
    probes: Probes,
    difference_gain: f64,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clpitchthreshold", "OpenCL pitch comparison"));

impl ClPitchThreshold {
    /// Applies new pitches.
    fn learn(
        &self,
        live: &mut Live<Settings, Operator>,
        estimation: &Estimation,
    ) -> Result<(), ClError> {
        let known = estimation.pitches();
        self.estimated.set_pitches(&self.obj(), known);
        gst::info!(CAT, imp = self, "estimated pitches {known:?}");
        let wanted = live
            .settings
            .clone()
            .with_estimates(known, estimation.may_move());
        // Without a pitch this frame could not be judged, so wait for the operator.
        let is_blind = live.operator.comparison.pitches() == [0.0; 2];
        let refusal = if is_blind {
            live.switch(wanted)?
        } else {
            live.follow(wanted)?
        };
        if let Some(refusal) = refusal {
            // The properties were accepted; only the estimated pitches do not fit the frame.
            self.obj().refuse(&refusal, || {});
        }
        self.estimated.post(&self.obj());
        Ok(())
    }

    /// Looks for the pitches in a frame.
    fn estimate(
        &self,
        live: &mut Live<Settings, Operator>,
        estimation: &mut Estimation,
        view: &View,
    ) -> Result<(), ClError> {
        if estimation.follow(live.settings.estimates()) {
            self.estimated
                .set_pitches(&self.obj(), estimation.pitches());
        }
        if !estimation.is_due() {
            return Ok(());
        }
        let news = estimation.look(&mut live.operator.probes, view)?;
        if news.contains(&News::Pitch) {
            self.learn(live, estimation)?;
        }
        for news in news {
            if let News::Missing(axis) = news {
                let is_alone = live.settings.pitches == [0.0; 2];
                tell_missing(&self.obj(), axis, is_alone);
            }
        }
        Ok(())
    }

    /// Warns once of comparisons that can judge less than half of the regions' pixels.
    fn warn_weak(&self, live: &Live<Settings, Operator>, told: &mut Told<Vec<(Axis, u32)>>) {
        let comparison = &live.operator.comparison;
        let weak = comparison.weak_comparisons();
        let names: Vec<(Axis, u32)> = weak.iter().map(|c| (c.axis, c.multiple)).collect();
        if !told.is_news(names) {
            return;
        }
        let [x, y] = comparison.pitches();
        let is_alone = live.settings.multiples.usable().len() == 1;
        for weak in weak {
            let advice = if is_alone {
                String::new()
            } else {
                format!(", or set multiples without {}", weak.multiple)
            };
            let (name, pitch) = match weak.axis {
                Axis::X => ("pitch-x", x),
                Axis::Y => ("pitch-y", y),
            };
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "multiple {} of {}={} compares less than half of the pixels to be judged, \
                     because their neighbours {} pixels away lie outside the frame; use larger \
                     frames{}",
                    weak.multiple,
                    name,
                    // An estimated pitch has many digits.
                    (1000.0 * pitch).round() / 1000.0,
                    weak.margin(),
                    advice
                )
            );
        }
    }
}

static PROPERTIES: LazyLock<PropertyTable<ClPitchThreshold>> = LazyLock::new(|| {
    let table = inspector::with_properties(PropertyTable::<ClPitchThreshold>::new(&CAT));
    base_filter::with_line_scan(table)
        .with(|this| &this.settings, rows())
        .with_read_only(Estimated::spec(), |this| this.estimated.get().to_value())
});

#[glib::object_subclass]
impl ObjectSubclass for ClPitchThreshold {
    const NAME: &'static str = "GstClPitchThreshold";
    type Type = super::ClPitchThreshold;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClPitchThreshold {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [glib::subclass::Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            vec![
                presence::signal(),
                inspector::learn_threshold::<ClPitchThreshold>(),
            ]
        });
        SIGNALS.as_ref()
    }
}

impl GstObjectImpl for ClPitchThreshold {}

impl ElementImpl for ClPitchThreshold {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "OpenCL pitch comparison",
                "Filter/Analyzer/Video",
                "Compares a repeating pattern with itself on an OpenCL device, and sends a \
                 1-bit defect mask with a verdict",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        inspector::templates()
    }
}

impl BaseTransformImpl for ClPitchThreshold {
    const MODE: BaseTransformMode = BaseTransformMode::Both;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl InspectorImpl for ClPitchThreshold {
    const MESSAGE: &'static str = "clpitchthreshold";
    type Output = inspector::PitchThresholdOutput;
    type Settings = Settings;
    type Operator = Operator;
    type State = State;

    fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    fn settings(&self, state: &State) -> Settings {
        let settings = lock(&self.settings).clone();
        let settings = Settings {
            ignore: self.inspector.ignore(),
            ..settings.with_estimates(state.estimation.pitches(), false)
        };
        Settings {
            may_move: state.estimation.may_move() || !state.steady.holds(&settings),
            ..settings
        }
    }

    fn restore(&self, refused: &Settings, in_force: &Settings) {
        self.inspector.restore(&refused.ignore, &in_force.ignore);
        let set = |settings: &Settings| Settings {
            ignore: Ignore::default(),
            ..settings.clone().with_estimates([None; 2], false)
        };
        let mut settings = lock(&self.settings);
        let mut now = set(&settings);
        put_back(&mut now, &set(refused), &set(in_force));
        *settings = now;
    }

    fn check(&self, _images: bool) -> Result<(), ClError> {
        let settings = InspectorImpl::settings(self, &State::default());
        (settings.rois).check("rois", |rois| {
            rois.iter().copied().try_for_each(check_region)
        })?;
        settings.comparison()?.check()
    }

    fn build(target: &Target, settings: &Settings) -> Result<Operator, ClError> {
        let layout = &target.layout;
        let rois = settings.rois.check("rois", |rois| {
            let rois = rois.iter();
            // A web has no last row.
            let height = if target.line_scan {
                1 << 32
            } else {
                layout.height
            };
            rois.map(|&roi| user_region(roi, layout.width, height))
                .collect()
        })?;
        let frame_height = (!target.line_scan).then_some(layout.height);
        let comparison = PitchThreshold::new(
            &target.context,
            layout,
            &PitchThresholdSettings {
                rois,
                ignored: settings.ignore.pixels(layout.width, frame_height)?,
                line_scan: target.line_scan,
                image: target.images,
                ..settings.comparison()?
            },
        )?;
        Ok(Operator {
            comparison,
            probes: probes(target, settings.estimates())?,
            difference_gain: settings.difference_gain,
        })
    }

    fn set_up(&self, state: &mut State, _caps: &Negotiated) {
        self.presence.forget(&self.obj(), &mut state.learned);
        self.estimated.set_pitches(&self.obj(), [None; 2]);
        *state = State::default();
    }

    fn look(
        &self,
        live: &mut Live<Settings, Operator>,
        state: &mut State,
        view: &View,
    ) -> Result<(), ClError> {
        self.estimate(live, &mut state.estimation, view)?;
        self.warn_weak(live, &mut state.weak);
        let Live {
            operator, settings, ..
        } = live;
        self.presence
            .look(&self.obj(), settings, operator, &mut state.learned, view)
    }

    fn reach(operator: &Operator) -> Reach {
        operator.comparison.reach()
    }

    fn learning(&self, live: &Live<Settings, Operator>, state: &State) -> Learning {
        let estimates = live.settings.estimates();
        let learns_contrast = live.settings.contrast() == Contrast::Unknown;
        if estimates == [false; 2] && !learns_contrast {
            Learning::Off
        } else if live.operator.comparison.pitches() == [0.0; 2]
            || (learns_contrast && !state.learned.is_known())
        {
            Learning::Needed
        } else {
            Learning::Known
        }
    }

    fn note(live: &mut Live<Settings, Operator>, state: &mut State) {
        state.steady.note(&live.settings);
        // Strips are looked at from time to time only, and the comparison may have been built since then.
        if live.settings.contrast() == Contrast::Unknown {
            let comparison = &mut live.operator.comparison;
            comparison.set_contrast(state.learned.minimum(comparison.pitches()));
        }
    }

    fn mark(operator: &mut Operator, frame: &Frame, mask: MaskTarget) -> Result<Marked, ClError> {
        operator
            .comparison
            .run_window(&frame.input, &frame.window, mask, frame.meter())
    }

    fn list(
        operator: &mut Operator,
        frame: &Frame,
        mask: MaskTarget,
        finder: &mut Finder,
        limits: &Limits,
    ) -> Result<Listed, ClError> {
        let comparison = &mut operator.comparison;
        comparison.list(
            &frame.input,
            mask,
            finder,
            limits,
            frame.ends(),
            frame.meter(),
        )
    }

    fn draw(
        operator: &mut Operator,
        frame: &Frame,
        _picture: Picture,
        out: &ClFrame,
    ) -> Result<(), ClError> {
        let gain = operator.difference_gain;
        (operator.comparison).show_difference(&frame.input, out, gain, frame.meter())
    }

    fn counted_under(settings: &Settings) -> Settings {
        Settings {
            threshold: 0.0,
            may_move: false,
            ..settings.clone()
        }
    }

    fn count_reached(
        operator: &mut Operator,
        frame: &Frame,
        reached: &mut Reached,
    ) -> Result<bool, ClError> {
        let comparison = &mut operator.comparison;
        if !comparison.is_judging() {
            return Ok(false);
        }
        comparison.count_reached(&frame.input, reached, frame.meter())?;
        Ok(true)
    }

    fn set_threshold(&self, threshold: f64) {
        lock(&self.settings).threshold = threshold;
    }

    fn mean_level(operator: &mut Operator) -> Result<Option<f64>, ClError> {
        operator.comparison.mean_level()
    }

    fn basis(live: &Live<Settings, Operator>) -> Basis {
        let comparison = &live.operator.comparison;
        Basis {
            judged: comparison.judged_pixels(),
            pitches: comparison.pitches(),
            threshold: live.settings.threshold,
            alignment: None,
            ignored: comparison.ignored().cloned(),
        }
    }

    fn in_words(live: &Live<Settings, Operator>) -> String {
        live.settings.in_words(live.operator.comparison.contrast())
    }
}
