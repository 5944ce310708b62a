//! The template of the elements that mark defects in a mask: list, verdict, counts, metas,
//! messages, events, and the forms in which masks are sent.

mod caps;
mod masks;
mod properties;

use std::sync::{LazyLock, Mutex, MutexGuard};

use gst::{prelude::*, subclass::prelude::*};
use gst_base::{prelude::*, subclass::prelude::*};

use super::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, Frame, Live, MessageGate, Negotiated,
        Target,
    },
    lock, pad_templates,
    property_table::PropertyTable,
};
use clinspect_core::ClError;
use clinspect_core::components::Limits;
use clinspect_operators::{JudgedPixels, Listed, Marked, MaskTarget, MeasuredDefect};
use clinspect_results::{Defect, DefectResult, Verdict};
use masks::Masks;
use properties::{Output, Reporting};

const COUNTS: [&str; 3] = ["frames-passed", "frames-failed", "frames-unjudged"];

/// What every inspector has besides its own settings.
#[derive(Default)]
pub struct Inspector {
    reporting: Mutex<Reporting>,
    /// The value of `output`, latched at the start.
    output: Mutex<Option<Output>>,
}

impl Inspector {
    fn reporting(&self) -> MutexGuard<'_, Reporting> {
        lock(&self.reporting)
    }

    /// The value of `output` since the start; later changes do not count.
    fn output(&self) -> Output {
        let started = *lock(&self.output);
        started.unwrap_or_else(|| self.reporting().output)
    }
}

/// The table with the properties that every inspector has.
pub fn with_properties<T: InspectorImpl>(table: PropertyTable<T>) -> PropertyTable<T> {
    table.with(|this| &this.inspector().reporting, properties::rows())
}

/// Pad templates of an inspector.
pub fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
        LazyLock::new(|| pad_templates(&caps::sink_template(), &caps::src_template()));
    TEMPLATES.as_ref()
}

/// The comparison of a frame.
pub struct Basis {
    /// Pixels that could be judged.
    pub judged: JudgedPixels,
    /// Pitches along x and y, px; 0 for none.
    pub pitches: [f64; 2],
    /// Threshold, grey levels.
    pub threshold: f64,
}

/// An element that marks the defects of a frame in a mask. Its `MODE` is `Both`.
pub trait InspectorImpl:
    BaseTransformImpl + ObjectSubclass<Type: IsA<ClBaseFilter> + IsA<gst::Element>>
{
    /// Name of the message with the results.
    const MESSAGE: &'static str;
    /// Settings from which an operator is built.
    type Settings: Clone + PartialEq + Send + Sync + 'static;
    /// Marks defects on the device.
    type Operator: Send + 'static;
    /// State that the element keeps from frame to frame until it stops.
    type State: Default + Send + 'static;

    /// The part that all inspectors have.
    fn inspector(&self) -> &Inspector;

    /// The current settings.
    fn settings(&self, state: &Self::State) -> Self::Settings;

    /// See [`ClBaseFilterImpl::restore`].
    fn restore(&self, refused: &Self::Settings, in_force: &Self::Settings);

    /// See [`ClBaseFilterImpl::build`].
    ///
    /// # Errors
    /// See there.
    fn build(target: &Target, settings: &Self::Settings) -> Result<Self::Operator, ClError>;

    /// Caps were negotiated.
    fn set_up(&self, _state: &mut Self::State) {}

    /// Examines a frame before its defects are marked.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn look(
        &self,
        _live: &mut Live<Self::Settings, Self::Operator>,
        _state: &mut Self::State,
        _frame: &Frame,
    ) -> Result<(), ClError> {
        Ok(())
    }

    /// Marks the defects of a frame; returns the numbers of marked pixels.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn mark(
        operator: &mut Self::Operator,
        frame: &Frame,
        mask: MaskTarget,
    ) -> Result<Marked, ClError>;

    /// Lists the defects of the frame that was marked last.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn list(
        operator: &mut Self::Operator,
        frame: &Frame,
        mask: MaskTarget,
        limits: &Limits,
    ) -> Result<Listed, ClError>;

    /// The comparison in use.
    fn basis(live: &Live<Self::Settings, Self::Operator>) -> Basis;

    /// Other settings in force, for messages: "property=value ...".
    fn in_words(live: &Live<Self::Settings, Self::Operator>) -> String;
}

/// State that an inspector keeps from frame to frame.
pub struct State<T> {
    masks: Option<Masks>,
    gate: MessageGate,
    verdict: Option<Verdict>,
    own: T,
}

impl<T: Default> Default for State<T> {
    fn default() -> Self {
        Self {
            masks: None,
            gate: MessageGate::default(),
            verdict: None,
            own: T::default(),
        }
    }
}

impl<T: InspectorImpl> ClBaseFilterImpl for T {
    const TASK: &'static str = "judging a frame";
    const COUNTS: &'static [&'static str] = &COUNTS;
    type Settings = T::Settings;
    type Operator = T::Operator;
    type State = State<T::State>;

    fn settings(&self, state: &State<T::State>) -> T::Settings {
        InspectorImpl::settings(self, &state.own)
    }

    fn restore(&self, refused: &T::Settings, in_force: &T::Settings) {
        InspectorImpl::restore(self, refused, in_force);
    }

    fn build(target: &Target, settings: &T::Settings) -> Result<T::Operator, ClError> {
        <T as InspectorImpl>::build(target, settings)
    }

    fn started(&self) {
        let inspector = self.inspector();
        let output = inspector.reporting().output;
        *lock(&inspector.output) = Some(output);
        let element = self.obj();
        let element: &ClBaseFilter = element.upcast_ref();
        // With a meta the frame passes in place, without a copy.
        element.set_in_place(output == Output::Frame);
    }

    fn stopped(&self) {
        *lock(&self.inspector().output) = None;
    }

    fn other_caps(&self, direction: gst::PadDirection, caps: &gst::Caps) -> Option<gst::Caps> {
        Some(match self.inspector().output() {
            Output::Mask => caps::transform(direction, caps),
            Output::Frame => caps.clone(),
        })
    }

    fn set_up(&self, state: &mut State<T::State>, caps: &Negotiated) -> Result<(), ClError> {
        InspectorImpl::set_up(self, &mut state.own);
        state.masks = Some(match self.inspector().output() {
            Output::Frame => Masks::in_meta(caps)?,
            Output::Mask => Masks::as_buffers(caps)?,
        });
        Ok(())
    }

    fn process(
        &self,
        live: &mut Live<T::Settings, T::Operator>,
        state: &mut State<T::State>,
        frame: &mut Frame,
    ) -> Result<Option<gst::Event>, ClError> {
        self.look(live, &mut state.own, frame)?;
        let reporting = *self.inspector().reporting();
        let masks = state.masks.as_ref();
        let masks =
            masks.ok_or_else(|| ClError::Input("received a frame before its caps".into()))?;
        let ((marked, listed), mask) = masks.write(frame, |mask| {
            inspect::<T>(&mut live.operator, frame, mask, &reporting.listing)
        })?;

        let element = self.obj();
        let element: &ClBaseFilter = element.upcast_ref();
        let Basis {
            judged,
            pitches: [pitch_x, pitch_y],
            threshold,
        } = T::basis(live);
        let defects: Vec<Defect> = listed.defects.iter().map(record).collect();
        let result = DefectResult {
            element: element.name().into(),
            frame_number: element.frame_number(frame.buffer()),
            width: frame.info().width(),
            height: frame.info().height(),
            pitch_x,
            pitch_y,
            threshold,
            judged_pixels: judged.any,
            judged_x: judged.x,
            judged_y: judged.y,
            defect_pixels: marked.pixels,
            missing_pixels: marked.missing,
            verdict: Verdict::new(
                judged.any,
                marked.pixels,
                &defects,
                listed.overflow,
                &reporting.limits,
            ),
            defects,
            overflow: listed.overflow,
            mask,
        };
        result.attach(frame.output()).map_err(|error| {
            ClError::Input(format!("cannot attach a meta to the buffer: {error}"))
        })?;
        let [passed, failed, unjudged] = COUNTS;
        element.count(match result.verdict {
            Verdict::Pass => passed,
            Verdict::Fail => failed,
            Verdict::None => unjudged,
        });
        let changed = state.verdict.replace(result.verdict) != Some(result.verdict);
        let times = element.frame_times(frame.buffer());
        // A change of the verdict restarts the interval.
        if state
            .gate
            .opens(&reporting.messages, times.running_time, changed)
        {
            let summary = Some(result.summary());
            element.post(times.message(element, T::MESSAGE, summary, |fields| {
                result.write_scalars(fields);
                fields.set("settings", T::in_words(live));
                if reporting.message_defects {
                    fields.set("defects", result.defect_structures());
                }
            }));
        }
        Ok(reporting.send_events.then(|| result.to_event()))
    }
}

/// Marks the defects of a frame, and lists them if a list is wanted.
fn inspect<T: InspectorImpl>(
    operator: &mut T::Operator,
    frame: &Frame,
    mask: MaskTarget,
    limits: &Limits,
) -> Result<(Marked, Listed), ClError> {
    let marked = T::mark(operator, frame, mask)?;
    let listed = if marked.pixels > 0 && limits.max_defects > 0 {
        T::list(operator, frame, mask, limits)?
    } else {
        // Without a list, any marked pixel means overflow.
        Listed {
            overflow: marked.pixels > 0,
            ..Listed::default()
        }
    };
    Ok((marked, listed))
}

fn record(defect: &MeasuredDefect) -> Defect {
    Defect {
        x: defect.x.try_into().unwrap_or(0),
        y: defect.y.try_into().unwrap_or(0),
        width: defect.width,
        height: defect.height,
        area: defect.area,
        centroid_x: defect.centroid_x as f32,
        centroid_y: defect.centroid_y as f32,
        mean_difference: defect.mean_difference as f32,
        peak_difference: defect.peak_difference as f32,
        polarity: defect.polarity,
    }
}
