//! Implementation of `clflatfield`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::{
    glib::{
        self,
        subclass::{ObjectImplRef, Signal},
    },
    prelude::*,
    subclass::prelude::*,
};
use gst_base::subclass::{BaseTransformMode, prelude::*};

use super::{
    references::{self, References},
    taking::{Kind, Taking},
};
use crate::elements::{
    base_filter::{
        ClBaseFilter, ClBaseFilterExt, ClBaseFilterImpl, Frame, FrameStream, Live, Negotiated,
        Target, Treatment, put_back,
    },
    debug_category, element_class, lock, pad_templates,
    property_table::{PropertyTable, properties, property_methods},
    text::Location,
};
use clinspect_core::{ClError, flat_field::Shape, layout::FrameLayout};
use clinspect_opencl::{ImportPath, frame::FLAT_FORMATS};
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

fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
        let caps = gst_video::VideoCapsBuilder::new()
            .format_list(FLAT_FORMATS.iter().copied())
            .build();
        pad_templates(&caps, &caps)
    });
    TEMPLATES.as_ref()
}

element_class!(
    ClFlatField: ClBaseFilter,
    "GstClFlatField",
    templates(),
    "OpenCL flat field",
    "Filter/Effect/Video",
    "Evens out lamps, lenses and sensors with a dark and a white reference, on an OpenCL \
     device",
);

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

    fn open(&self) -> Box<dyn FrameStream> {
        let properties = lock(&self.properties).clone();
        *lock(&self.latched) = (properties.mode, properties.location);
        Box::new(FlatFieldStream {
            live: Live::new(&*self.obj()),
            references: References::default(),
            taking: None,
            is_warned: false,
            is_absent: false,
            element: self.ref_counted(),
        })
    }
}

/// The work of a running element.
struct FlatFieldStream {
    element: ObjectImplRef<ClFlatField>,
    live: Live<Settings, FlatField>,
    references: References,
    taking: Option<Taking>,
    /// The warning that frames pass unchanged was posted.
    is_warned: bool,
    /// `location` names a file that does not exist.
    is_absent: bool,
}

/// Builds the operator.
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
    let settings = FlatFieldSettings {
        mode: settings.mode,
        bit_depth: target.bit_depth(bit_depth),
        correction,
        image: target.images,
        variant: None,
    };
    let operator = FlatField::new(&target.context, &target.layout, &settings)?;
    target.trial.flat_field(&target.layout, &settings)?;
    Ok(operator)
}

impl FrameStream for FlatFieldStream {
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError> {
        self.prepare_references(&caps.target.layout);
        let target = caps.target.clone();
        let settings = settings(&self.element, &self.references);
        self.live
            .start(settings, move |settings| build(&target, settings))
    }

    fn follow(&mut self, revision: u64) -> Result<(), ClError> {
        let Self {
            element,
            live,
            references,
            ..
        } = self;
        let now = &element.properties;
        let wanted = || settings(element, references);
        live.follow(revision, wanted, |refused, in_force| {
            put_back(&mut lock(now).values, &refused.values, &in_force.values);
        })
    }

    fn treatment(&mut self) -> Result<Treatment, ClError> {
        let wanted = lock(&self.element.wanted).take();
        if let Some(kind) = wanted {
            let operator = &mut self.live.in_force()?.operator;
            match operator.sums() {
                Ok(sums) => {
                    self.taking = Some(Taking {
                        kind,
                        layout: operator.layout().clone(),
                        sums,
                        wanted: lock(&self.element.properties).average_frames.into(),
                    });
                }
                Err(ClError::Refused(why)) => self.refuse_reference(kind, &why),
                Err(error) => return Err(error),
            }
        }
        if self.taking.is_some() {
            return Ok(Treatment::Read);
        }
        let operator = &self.live.in_force()?.operator;
        if operator.corrects() {
            return Ok(Treatment::Rewrite);
        }
        let shape = operator.shape();
        if !std::mem::replace(&mut self.is_warned, true) && !self.fits(shape) {
            let Location(location) = lock(&self.element.latched).1.clone();
            let absent = self.is_absent.then_some(&*location);
            let why = self.references.why_unchanged(absent);
            gst::element_warning!(self.element.obj(), gst::LibraryError::Settings, ("{why}"));
        }
        self.element.obj().count(COUNTS[1]);
        Ok(Treatment::Pass)
    }

    fn end(&mut self) {
        if let Some(taking) = &self.taking {
            let why = taking.why_unfinished();
            gst::element_warning!(self.element.obj(), gst::StreamError::Format, ("{why}"));
        }
    }

    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError> {
        if let Some(taking) = &mut self.taking {
            if !frame.is_corrupted {
                taking.sums.add(&frame.input, frame.meter())?;
            }
            self.element.obj().count(COUNTS[1]);
            if taking.sums.frames() >= taking.wanted
                && let Some(taking) = self.taking.take()
            {
                self.finish(&taking, frame)?;
            }
            return Ok(None);
        }
        let output = frame.target_frame()?;
        let done = self
            .live
            .in_force()?
            .operator
            .run(&frame.input, &output, frame.meter())?;
        // The source may reuse its memory as soon as the frame is pushed. OpenCL memory needs no
        // wait, because its next user is ordered after the kernel.
        if frame.input.taken() == ImportPath::Wrapped {
            done.wait("the flat field")?;
        }
        self.element.obj().count(COUNTS[0]);
        Ok(None)
    }
}

/// The settings as they are now.
fn settings(element: &ClFlatField, references: &References) -> Settings {
    Settings {
        values: lock(&element.properties).values.clone(),
        mode: lock(&element.latched).0,
        references: references.clone(),
    }
}

impl FlatFieldStream {
    /// Reads the references from the file, if those in force do not fit the frames.
    fn prepare_references(&mut self, layout: &Arc<FrameLayout>) {
        if let Some(taking) = self.taking.take_if(|taking| taking.layout != *layout) {
            let (old, new) = (&taking.layout, layout);
            let why = format!(
                "the frames changed from {}x{} to {}x{} while they were averaged; emit take-{} again",
                old.width,
                old.height,
                new.width,
                new.height,
                taking.kind.name()
            );
            self.refuse_reference(taking.kind, &why);
        }
        let (mode, Location(location)) = lock(&self.element.latched).clone();
        let shape = Shape::of(layout, mode == FlatFieldMode::Line);
        if self.fits(shape) {
            return;
        }
        self.is_warned = false;
        self.is_absent = false;
        if !location.as_os_str().is_empty() {
            let most = 256 * ((1 << layout.sample.bits()) - 1);
            let found = references::read(&location, shape, most);
            let values = lock(&self.element.properties).values.clone();
            let usable = found.and_then(|found| {
                let correction =
                    (found.as_ref()).map(|found| found.correction(values.target, values.min_range));
                correction.transpose().map(|_| found)
            });
            match usable {
                Ok(Some(found)) => self.references = found,
                Ok(None) => self.is_absent = true,
                Err(why) => {
                    self.is_warned = true;
                    gst::element_warning!(
                        self.element.obj(),
                        gst::ResourceError::Read,
                        ("{why}"),
                        ["location={}: frames pass unchanged", location.display()]
                    );
                }
            }
        }
    }

    /// Whether there is a white reference for frames whose references have `shape`.
    fn fits(&self, shape: Shape) -> bool {
        let white = self.references.white.as_ref();
        white.is_some_and(|white| white.shape == shape)
    }

    /// Ends an average: posts the reference, or why it was not taken.
    fn finish(&mut self, taking: &Taking, frame: &Frame) -> Result<(), ClError> {
        let reference = taking.sums.average()?;
        let Values {
            target, min_range, ..
        } = lock(&self.element.properties).values;
        let Location(location) = lock(&self.element.latched).1.clone();
        let limits = [target, min_range];
        match taking.finish(reference, &mut self.references, limits, &location) {
            Ok(taken) => {
                let element = self.element.obj();
                element.revise();
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
            Err(why) => self.refuse_reference(taking.kind, &why),
        }
        Ok(())
    }

    /// Warns that a reference was not taken.
    fn refuse_reference(&self, kind: Kind, why: &str) {
        let before = match kind {
            Kind::Dark => &self.references.dark,
            Kind::White => &self.references.white,
        };
        let stays = if before.is_some() {
            "the one before stays in force"
        } else {
            "there is none"
        };
        let name = kind.name();
        gst::element_warning!(
            self.element.obj(),
            gst::ResourceError::Settings,
            ("the {name} reference was not taken, {stays}: {why}")
        );
    }
}
