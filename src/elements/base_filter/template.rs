//! The interface between the parent class and its subclasses.

use std::{any::Any, sync::Arc};

use gst::{glib, prelude::*, subclass::prelude::*};
use gst_base::subclass::prelude::*;

use super::{ClBaseFilter, ClBaseFilterExt, Frame, Learning, Live, frame::Buffers, imp, progress};
use clinspect_core::ClError;
use clinspect_core::{
    layout::FrameLayout,
    window::{Reach, Window},
};
use clinspect_opencl::frame::{ClFrame, Importer, WebRows};
use clinspect_opencl::{ClAllocator, ClContext, Meter};

/// The target of an operator: everything that it depends on besides its settings.
#[derive(Debug, Clone)]
pub struct Target {
    /// The device.
    pub context: Arc<ClContext>,
    /// The layout of the frames.
    pub layout: Arc<FrameLayout>,
    /// `memory-object=image`: kernels read images instead of buffers. `build` obeys or refuses.
    pub images: bool,
    /// Frames are strips of a web.
    pub line_scan: bool,
}

/// Rows from which an element learns: a frame, or rows of a web.
pub struct View<'a> {
    /// The rows on the device.
    pub frame: &'a ClFrame,
    /// Their number.
    pub rows: usize,
    /// The element's counters.
    pub meter: &'a Arc<Meter>,
}

/// The result of negotiation.
pub struct Negotiated<'a> {
    /// Input caps.
    pub incaps: &'a gst::Caps,
    /// Output caps.
    pub outcaps: &'a gst::Caps,
    /// Imports frames.
    pub importer: &'a Importer,
    /// Allocates OpenCL memory.
    pub allocator: &'a ClAllocator,
}

/// What an element that rewrites frames does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The frame is sent as it is, and is not brought to the device.
    Pass,
    /// `process` reads the frame, which is then sent as it is.
    Read,
    /// `process` writes [`Frame::target_frame`], which is the frame itself where its memory is ours to
    /// write.
    Rewrite,
}

/// A subclass of [`ClBaseFilter`].
///
/// The parent class opens the device at the start, imports each frame, requests an operator for new
/// caps and new settings, and posts errors. A frame whose `process` fails is not pushed.
pub trait ClBaseFilterImpl: BaseTransformImpl + ObjectSubclass<Type: IsA<ClBaseFilter>> {
    /// The element's work on a frame, for error messages: "filtering a frame".
    const TASK: &'static str;
    /// Names of the element's own counts in `stats`.
    const COUNTS: &'static [&'static str] = &[];
    /// The element rewrites frames, in place where their memory allows; [`Self::treatment`] says which.
    const REWRITES: bool = false;
    /// What an operator is built from, and nothing else: each change builds another operator. `()` if
    /// the element has no such properties.
    type Settings: Clone + PartialEq + Send + Sync + 'static;
    /// Works on the device.
    type Operator: Send + 'static;
    /// State that the element keeps from frame to frame until it stops.
    type State: Default + Send + 'static;

    /// The settings as they are now; called before each frame in the streaming thread.
    fn settings(&self, state: &Self::State) -> Self::Settings;

    /// Puts the settings in force back into the properties, unless these changed after the refused
    /// settings were read; see [`put_back`](super::put_back).
    fn restore(&self, refused: &Self::Settings, in_force: &Self::Settings);

    /// Checks the properties, as far as neither frames nor a device decide. `images`:
    /// `memory-object=image`.
    ///
    /// # Errors
    /// The refusal of [`Self::build`] at every frame.
    fn check(&self, _images: bool) -> Result<(), ClError> {
        Ok(())
    }

    /// Builds an operator, possibly on another thread while frames flow.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that do not fit the frames or each other; a failing call.
    fn build(target: &Target, settings: &Self::Settings) -> Result<Self::Operator, ClError>;

    /// Rows of a web that a strip needs besides its own.
    fn reach(_operator: &Self::Operator) -> Reach {
        Reach::default()
    }

    /// Whether the element learns from frames.
    fn learning(
        &self,
        _live: &Live<Self::Settings, Self::Operator>,
        _state: &Self::State,
    ) -> Learning {
        Learning::Off
    }

    /// Learns from rows: from each frame, or from many rows of a web at a time.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn look(
        &self,
        _live: &mut Live<Self::Settings, Self::Operator>,
        _state: &mut Self::State,
        _view: &View,
    ) -> Result<(), ClError> {
        Ok(())
    }

    /// The next strip is the first one of a web.
    fn web_begins(
        &self,
        _live: &mut Live<Self::Settings, Self::Operator>,
        _state: &mut Self::State,
    ) {
    }

    /// The stream has ended. Frames may follow all the same, after a flush or in another stream.
    fn ended(&self, _state: &mut Self::State) {}

    /// Processes a frame; returns an event to push before the buffer.
    ///
    /// `frame.input` is the frame on the device. An element that is `NeverInPlace` writes
    /// [`Frame::target_frame`], which has the input's format and size, or [`Frame::target`]; the parent
    /// class has allocated it and copied timestamps and metas.
    ///
    /// Commands may still run when `process` returns, except those that read a frame whose
    /// [`taken`](clinspect_opencl::frame::ClFrame::taken) is `Wrapped`: wait for them, because the source
    /// may overwrite that memory once the frame is sent.
    ///
    /// # Errors
    /// The reason why the frame is not pushed.
    fn process(
        &self,
        live: &mut Live<Self::Settings, Self::Operator>,
        state: &mut Self::State,
        frame: &mut Frame,
    ) -> Result<Option<gst::Event>, ClError>;

    /// What an element that [`REWRITES`](Self::REWRITES) does with the next frame.
    fn treatment(
        &self,
        _live: &mut Live<Self::Settings, Self::Operator>,
        _state: &mut Self::State,
    ) -> Result<Treatment, ClError> {
        Ok(Treatment::Rewrite)
    }

    /// The element starts: properties that take effect at the start (`mutable_ready`) are read here,
    /// once.
    fn started(&self) {}

    /// The element has stopped.
    fn stopped(&self) {}

    /// Caps for the other pad, given `caps` on the pad of `direction`, the preferred ones first;
    /// `None` if input and output caps are the same.
    fn other_caps(&self, _direction: gst::PadDirection, _caps: &gst::Caps) -> Option<gst::Caps> {
        None
    }

    /// Caps were negotiated; an operator is built next.
    ///
    /// # Errors
    /// The reason why frames of these caps cannot be processed.
    fn set_up(&self, _state: &mut Self::State, _caps: &Negotiated) -> Result<(), ClError> {
        Ok(())
    }
}

/// A subclass's [`ClBaseFilterImpl::State`].
pub(super) type AnyState = Box<dyn Any + Send>;

/// The operator and the state of a subclass.
pub(super) struct Work {
    live: Box<dyn Any + Send>,
    state: AnyState,
}

impl Work {
    pub fn into_state(self) -> AnyState {
        self.state
    }
}

/// An event to send before the buffer, or why the frame cannot be sent on.
type Processed = Result<Option<gst::Event>, ClError>;

/// Checks caps and builds the operator; takes the state, which stays if that fails. `[images, line_scan]`
/// are the modes latched at the start.
type SetUp =
    fn(&ClBaseFilter, &mut Option<AnyState>, &Negotiated, [bool; 2]) -> Result<Work, ClError>;
/// Processes a strip: the rows around it, its place in them, and the number of its web.
type ProcessStrip =
    fn(&ClBaseFilter, &mut Work, &mut Importer, Buffers, (ClFrame, Window, u64)) -> Processed;
/// Learns from a frame with this number of rows.
type Look = fn(&ClBaseFilter, &mut Work, &ClFrame, usize, &Arc<Meter>) -> Result<(), ClError>;

/// The virtual methods of a subclass.
pub struct Methods {
    pub(super) task: &'static str,
    pub(super) counts: &'static [&'static str],
    pub(super) rewrites: bool,
    pub(super) treatment: fn(&ClBaseFilter, &mut Work) -> Result<Treatment, ClError>,
    pub(super) check: fn(&ClBaseFilter, bool) -> Result<(), ClError>,
    pub(super) started: fn(&ClBaseFilter),
    pub(super) stopped: fn(&ClBaseFilter),
    pub(super) other_caps: fn(&ClBaseFilter, gst::PadDirection, &gst::Caps) -> Option<gst::Caps>,
    pub(super) set_up: SetUp,
    pub(super) process: fn(&ClBaseFilter, &mut Work, &mut Importer, Buffers) -> Processed,
    pub(super) process_strip: ProcessStrip,
    pub(super) follow: fn(&ClBaseFilter, &mut Work) -> Result<(), ClError>,
    pub(super) look: Look,
    pub(super) reach: fn(&Work) -> Reach,
    pub(super) learning: fn(&ClBaseFilter, &Work) -> Learning,
    pub(super) web_begins: fn(&ClBaseFilter, &mut Work),
    pub(super) ended: fn(&ClBaseFilter, &mut Work),
}

/// The class struct: the parent's class struct, then the virtual methods.
#[repr(C)]
pub struct Class {
    parent: gst_base::ffi::GstBaseTransformClass,
    pub(super) methods: Option<&'static Methods>,
}

// SAFETY: the struct begins with the class struct of the parent type, and zeros are a valid value
// of the rest.
unsafe impl ClassStruct for Class {
    type Type = imp::ClBaseFilter;
}

/// The virtual methods of each subclass.
trait HasMethods: ClBaseFilterImpl {
    const METHODS: &'static Methods = &Methods {
        task: Self::TASK,
        counts: Self::COUNTS,
        rewrites: Self::REWRITES,
        treatment: |element, work| {
            let (this, live, state) = typed::<Self>(element, work)?;
            this.imp().treatment(live, state)
        },
        check: |element, images| {
            let this = element.downcast_ref::<Self::Type>();
            this.ok_or_else(other_type)?.imp().check(images)
        },
        started: |element| {
            if let Some(this) = element.downcast_ref::<Self::Type>() {
                this.imp().started();
            }
        },
        stopped: |element| {
            if let Some(this) = element.downcast_ref::<Self::Type>() {
                this.imp().stopped();
            }
        },
        other_caps: |element, direction, caps| {
            let this = element.downcast_ref::<Self::Type>()?;
            this.imp().other_caps(direction, caps)
        },
        set_up: set_up::<Self>,
        process: process::<Self>,
        process_strip: process_strip::<Self>,
        follow: follow::<Self>,
        look: look::<Self>,
        reach: |work| {
            let live = live::<Self>(work);
            live.map_or_else(Reach::default, |live| Self::reach(&live.operator))
        },
        learning: |element, work| {
            let state = work.state.downcast_ref::<Self::State>();
            match (
                element.downcast_ref::<Self::Type>(),
                live::<Self>(work),
                state,
            ) {
                (Some(this), Some(live), Some(state)) => this.imp().learning(live, state),
                _ => Learning::Off,
            }
        },
        web_begins: |element, work| {
            if let Ok((this, live, state)) = typed::<Self>(element, work) {
                this.imp().web_begins(live, state);
            }
        },
        ended: |element, work| {
            if let Ok((this, _, state)) = typed::<Self>(element, work) {
                this.imp().ended(state);
            }
        },
    };
}

impl<T: ClBaseFilterImpl> HasMethods for T {}

// SAFETY: the parent's class_init runs; the methods belong to the type whose class is initialised.
unsafe impl<T: ClBaseFilterImpl> IsSubclassable<T> for ClBaseFilter {
    fn class_init(class: &mut glib::Class<Self>) {
        Self::parent_class_init::<T>(class);
        class.as_mut().methods = Some(T::METHODS);
    }
}

fn other_type() -> ClError {
    ClError::Input("the element's type does not match its class".into())
}

fn set_up<T: ClBaseFilterImpl>(
    element: &ClBaseFilter,
    kept: &mut Option<AnyState>,
    caps: &Negotiated,
    [images, line_scan]: [bool; 2],
) -> Result<Work, ClError> {
    let this = element.downcast_ref::<T::Type>().ok_or_else(other_type)?;
    let state = kept.get_or_insert_with(|| Box::new(T::State::default()));
    let state = state.downcast_mut::<T::State>().ok_or_else(other_type)?;
    this.imp().set_up(state, caps)?;
    let target = Target {
        context: caps.importer.context().clone(),
        layout: caps.importer.layout().clone(),
        images,
        line_scan,
    };
    let settings = this.imp().settings(state);
    let reporting = element.downgrade();
    let live = Live::new(settings, move |settings| {
        progress::report(&reporting, || {
            let operator = T::build(&target, settings)?;
            if target.line_scan {
                WebRows::check(&target.context, &target.layout, &T::reach(&operator))?;
            }
            Ok(operator)
        })
    })?;
    let state = kept.take().ok_or_else(other_type)?;
    Ok(Work {
        live: Box::new(live),
        state,
    })
}

fn live<T: ClBaseFilterImpl>(work: &Work) -> Option<&Live<T::Settings, T::Operator>> {
    work.live.downcast_ref()
}

/// The subclass, its operator and its state.
type Typed<'a, T> = (
    &'a <T as ObjectSubclass>::Type,
    &'a mut Live<<T as ClBaseFilterImpl>::Settings, <T as ClBaseFilterImpl>::Operator>,
    &'a mut <T as ClBaseFilterImpl>::State,
);

fn typed<'a, T: ClBaseFilterImpl>(
    element: &'a ClBaseFilter,
    work: &'a mut Work,
) -> Result<Typed<'a, T>, ClError> {
    let this = element.downcast_ref::<T::Type>().ok_or_else(other_type)?;
    let live = work.live.downcast_mut().ok_or_else(other_type)?;
    let state = work.state.downcast_mut().ok_or_else(other_type)?;
    Ok((this, live, state))
}

/// Applies the settings before a frame.
fn follow<T: ClBaseFilterImpl>(element: &ClBaseFilter, work: &mut Work) -> Result<(), ClError> {
    let (this, live, state) = typed::<T>(element, work)?;
    let wanted = this.imp().settings(state);
    if let Some(refusal) = live.follow(wanted.clone())? {
        let in_force = &live.settings;
        element.refuse(&refusal, || this.imp().restore(&wanted, in_force));
    }
    Ok(())
}

fn look<T: ClBaseFilterImpl>(
    element: &ClBaseFilter,
    work: &mut Work,
    frame: &ClFrame,
    rows: usize,
    meter: &Arc<Meter>,
) -> Result<(), ClError> {
    let (this, live, state) = typed::<T>(element, work)?;
    let view = View { frame, rows, meter };
    this.imp().look(live, state, &view)
}

fn process<T: ClBaseFilterImpl>(
    element: &ClBaseFilter,
    work: &mut Work,
    importer: &mut Importer,
    buffers: Buffers,
) -> Processed {
    follow::<T>(element, work)?;
    let input = importer.import(buffers.input())?;
    let rows = importer.layout().height;
    look::<T>(element, work, &input, rows, importer.meter())?;
    let mut frame = Frame {
        input,
        window: Window::frame(rows),
        web: 0,
        importer,
        buffers,
    };
    let (this, live, state) = typed::<T>(element, work)?;
    let event = this.imp().process(live, state, &mut frame)?;
    frame.input.wait_for_upload()?;
    Ok(event)
}

fn process_strip<T: ClBaseFilterImpl>(
    element: &ClBaseFilter,
    work: &mut Work,
    importer: &mut Importer,
    buffers: Buffers,
    (input, window, web): (ClFrame, Window, u64),
) -> Processed {
    let (this, live, state) = typed::<T>(element, work)?;
    let mut frame = Frame {
        input,
        window,
        web,
        importer,
        buffers,
    };
    this.imp().process(live, state, &mut frame)
}
