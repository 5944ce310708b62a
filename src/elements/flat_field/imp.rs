//! Implementation of `clflatfield`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::{
    glib::{self, subclass::Signal},
    prelude::*,
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::taking::{Kind, References, Taking};
use crate::elements::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, Frame, Live, Negotiated, Target,
        Treatment, put_back,
    },
    debug_category, lock, pad_templates,
    property_table::{PropertyTable, properties, property_methods},
    text::Location,
};
use clinspect_core::{ClError, flat_field::Shape};
use clinspect_opencl::{Taken, frame::FLAT_FORMATS};
use clinspect_operators::{FlatField, FlatFieldMode, FlatFieldSettings};

/// Frames that were corrected, and frames that were sent as they came.
const COUNTS: [&str; 2] = ["frames-corrected", "frames-unchanged"];

/// Settings that may change while frames flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    target: f64,
    min_range: f64,
    bit_depth: u32,
}

/// What the operator is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    values: Values,
    mode: FlatFieldMode,
    references: References,
}

/// All properties.
#[derive(Debug, Clone)]
struct Properties {
    values: Values,
    mode: FlatFieldMode,
    average_frames: u32,
    location: Location,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            values: Values {
                target: 0.0,
                min_range: 8.0,
                bit_depth: 0,
            },
            mode: FlatFieldMode::default(),
            average_frames: 16,
            location: Location::default(),
        }
    }
}

/// Instance of `clflatfield`.
#[derive(Default)]
pub struct ClFlatField {
    properties: Mutex<Properties>,
    /// The properties that take effect at the start, as they were then.
    latched: Mutex<(FlatFieldMode, Location)>,
    /// The reference that a signal wants; the last signal wins.
    wanted: Mutex<Option<Kind>>,
}

/// State that is kept from frame to frame.
#[derive(Default)]
pub struct State {
    references: References,
    taking: Option<Taking>,
    /// The warning that frames pass unchanged was posted.
    is_told: bool,
    /// `location` names a file that does not exist.
    is_absent: bool,
}

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| debug_category("clflatfield", "OpenCL flat field"));

static PROPERTIES: LazyLock<PropertyTable<ClFlatField>> = LazyLock::new(|| {
    let rows = properties!(Properties {
        choice_at_start(
            "mode", "Mode", "Which samples share a reference: none, or those of a column"
        ) = mode;
        double(
            "target", "Target",
            "Level of an even white surface after the correction, in grey levels; 0 = the mean of the \
             white reference above the dark one",
            0.0..=65_535.0
        ) = values.target;
        double(
            "min-range", "Minimum range",
            "Samples whose white reference is less than this above the dark one are bad and replaced by \
             their neighbours, in grey levels",
            1.0..=65_535.0
        ) = values.min_range;
        uint(
            "average-frames", "Average frames",
            "Number of frames that take-dark and take-white average",
            1..=1024
        ) = average_frames;
        bit_depth() = values.bit_depth;
        file_at_start(
            "location", "Location",
            "File of the references, an .npz of NumPy with the arrays dark and white in 1/256 grey level: \
             read when frames start, written when a reference was taken; \"\" = none"
        ) = location;
    });
    PropertyTable::new(&CAT).with(|this| &this.properties, rows)
});

#[glib::object_subclass]
impl ObjectSubclass for ClFlatField {
    const NAME: &'static str = "GstClFlatField";
    type Type = super::ClFlatField;
    type ParentType = ClBaseFilter;
}

impl ObjectImpl for ClFlatField {
    property_methods!(PROPERTIES);

    fn signals() -> &'static [Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            let signal = |name: &str, kind: Kind| {
                let signal = Signal::builder(name).action();
                let signal = signal.class_handler(move |args| {
                    let element = args.first()?.get::<super::ClFlatField>().ok()?;
                    *lock(&element.imp().wanted) = Some(kind);
                    None
                });
                signal.build()
            };
            vec![
                signal("take-dark", Kind::Dark),
                signal("take-white", Kind::White),
            ]
        });
        SIGNALS.as_ref()
    }
}

impl GstObjectImpl for ClFlatField {}

impl ElementImpl for ClFlatField {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "OpenCL flat field",
                "Filter/Effect/Video",
                "Evens out lamps, lenses and sensors with a dark and a white reference, on an OpenCL \
                 device",
                "gst-plugin-clinspect developers",
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = gst_video::VideoCapsBuilder::new()
                .format_list(FLAT_FORMATS.iter().copied())
                .build();
            pad_templates(&caps, &caps)
        });
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for ClFlatField {
    // The parent class rewrites in place by itself, where the memory allows.
    const MODE: BaseTransformMode = BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;
}

impl ClBaseFilterImpl for ClFlatField {
    const TASK: &'static str = "evening out a frame";
    const COUNTS: &'static [&'static str] = &COUNTS;
    const REWRITES: bool = true;
    type Settings = Settings;
    type Operator = FlatField;
    type State = State;

    fn settings(&self, state: &State) -> Settings {
        Settings {
            values: lock(&self.properties).values.clone(),
            mode: lock(&self.latched).0,
            references: state.references.clone(),
        }
    }

    fn restore(&self, refused: &Settings, in_force: &Settings) {
        let now = &mut lock(&self.properties).values;
        put_back(now, &refused.values, &in_force.values);
    }

    fn started(&self) {
        let properties = lock(&self.properties).clone();
        *lock(&self.latched) = (properties.mode, properties.location);
    }

    fn set_up(&self, state: &mut State, caps: &Negotiated) -> Result<(), ClError> {
        let layout = caps.importer.layout();
        if let Some(taking) = state.taking.take_if(|taking| taking.layout != *layout) {
            let (old, new) = (&taking.layout, layout);
            let why = format!(
                "the frames changed from {}x{} to {}x{} while they were averaged; emit take-{} again",
                old.width,
                old.height,
                new.width,
                new.height,
                taking.kind.name()
            );
            self.refuse_reference(taking.kind, &why, state);
        }
        let (mode, Location(location)) = lock(&self.latched).clone();
        let shape = Shape::of(layout, mode == FlatFieldMode::Line);
        if fits(state, shape) {
            return Ok(());
        }
        state.is_told = false;
        state.is_absent = false;
        if !location.as_os_str().is_empty() {
            let most = 256 * ((1 << layout.sample.bits()) - 1);
            let found = super::file::read(&location, shape, most);
            let values = lock(&self.properties).values.clone();
            let usable = found.and_then(|found| {
                let correction =
                    (found.as_ref()).map(|found| found.correction(values.target, values.min_range));
                correction.transpose().map(|_| found)
            });
            match usable {
                Ok(Some(found)) => state.references = found,
                Ok(None) => state.is_absent = true,
                Err(why) => {
                    state.is_told = true;
                    gst::element_imp_warning!(
                        self,
                        gst::ResourceError::Read,
                        ("{why}"),
                        ["location={}: frames pass unchanged", location.display()]
                    );
                }
            }
        }
        Ok(())
    }

    fn build(target: &Target, settings: &Settings) -> Result<FlatField, ClError> {
        let Values {
            target: level,
            min_range,
            bit_depth,
        } = settings.values;
        let shape = Shape::of(&target.layout, settings.mode == FlatFieldMode::Line);
        let white = settings.references.white.as_ref();
        let correction = if white.is_some_and(|white| white.shape == shape) {
            let correction = settings.references.correction(level, min_range);
            correction.map_err(ClError::Refused)?.map(Arc::new)
        } else {
            None
        };
        FlatField::new(
            &target.context,
            &target.layout,
            &FlatFieldSettings {
                mode: settings.mode,
                bit_depth,
                correction,
                image: target.images,
                variant: None,
            },
        )
    }

    fn treatment(
        &self,
        live: &mut Live<Settings, FlatField>,
        state: &mut State,
    ) -> Result<Treatment, ClError> {
        let wanted = lock(&self.wanted).take();
        if let Some(kind) = wanted {
            match live.operator.sums() {
                Ok(sums) => {
                    state.taking = Some(Taking {
                        kind,
                        layout: live.operator.layout().clone(),
                        sums,
                        wanted: lock(&self.properties).average_frames.into(),
                    });
                }
                Err(ClError::Refused(why)) => self.refuse_reference(kind, &why, state),
                Err(error) => return Err(error),
            }
        }
        if state.taking.is_some() {
            return Ok(Treatment::Read);
        }
        if live.operator.corrects() {
            return Ok(Treatment::Rewrite);
        }
        if !std::mem::replace(&mut state.is_told, true) && !fits(state, live.operator.shape()) {
            let Location(location) = lock(&self.latched).1.clone();
            let absent = state.is_absent.then_some(&*location);
            let why = state.references.why_unchanged(absent);
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{why}"));
        }
        self.obj().count(COUNTS[1]);
        Ok(Treatment::Pass)
    }

    fn ended(&self, state: &mut State) {
        if let Some(taking) = &state.taking {
            let why = taking.why_unfinished();
            gst::element_imp_warning!(self, gst::StreamError::Format, ("{why}"));
        }
    }

    fn process(
        &self,
        live: &mut Live<Settings, FlatField>,
        state: &mut State,
        frame: &mut Frame,
    ) -> Result<Option<gst::Event>, ClError> {
        if let Some(taking) = &mut state.taking {
            taking.sums.add(&frame.input, frame.meter())?;
            self.obj().count(COUNTS[1]);
            if taking.sums.frames() >= taking.wanted
                && let Some(taking) = state.taking.take()
            {
                self.finish(&taking, state, frame)?;
            }
            return Ok(None);
        }
        let output = frame.target_frame()?;
        let done = live.operator.run(&frame.input, &output, frame.meter())?;
        // The source may reuse its memory as soon as the frame is pushed. OpenCL memory needs no
        // wait, because its next user is ordered after the kernel.
        if frame.input.taken() == Taken::Wrapped {
            done.wait("the flat field")?;
        }
        self.obj().count(COUNTS[0]);
        Ok(None)
    }
}

impl ClFlatField {
    /// Ends an average: tells of the reference, or why it was not taken.
    fn finish(&self, taking: &Taking, state: &mut State, frame: &Frame) -> Result<(), ClError> {
        let reference = taking.sums.average()?;
        let Values {
            target, min_range, ..
        } = lock(&self.properties).values;
        let Location(location) = lock(&self.latched).1.clone();
        let limits = [target, min_range];
        match taking.finish(reference, &mut state.references, limits, &location) {
            Ok(taken) => {
                let element = self.obj();
                let times = element.frame_times(frame.buffer());
                let summary = Some(taken.summary());
                element.post(times.message(
                    &*element,
                    "clflatfield-reference",
                    summary,
                    |fields| {
                        fields.set("element", element.name().as_str());
                        taken.write(fields);
                    },
                ));
            }
            Err(why) => self.refuse_reference(taking.kind, &why, state),
        }
        Ok(())
    }

    /// Warns that a reference was not taken.
    fn refuse_reference(&self, kind: Kind, why: &str, state: &State) {
        let before = match kind {
            Kind::Dark => &state.references.dark,
            Kind::White => &state.references.white,
        };
        let stays = if before.is_some() {
            "the one before stays in force"
        } else {
            "there is none"
        };
        let name = kind.name();
        gst::element_imp_warning!(
            self,
            gst::ResourceError::Settings,
            ("the {name} reference was not taken, {stays}: {why}")
        );
    }
}

/// Whether there is a white reference for frames whose references have `shape`.
fn fits(state: &State, shape: Shape) -> bool {
    let white = state.references.white.as_ref();
    white.is_some_and(|white| white.shape == shape)
}
