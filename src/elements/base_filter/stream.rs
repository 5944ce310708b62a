//! The stream of a subclass, which the parent class calls; the frames that pass it, and its operator, whose settings change
//! while they do.

use std::sync::Arc;

use gst::{glib, prelude::*};

use super::build::{Build, Pending, report};
use crate::elements::last_report::LastReport;
use clinspect_core::{
    ClError,
    layout::FrameLayout,
    window::{Reach, Window},
};
use clinspect_opencl::{
    ClAllocator, ClContext, Meter,
    frame::{ClFrame, Importer, WebRows},
    without_compiler,
};
use clinspect_operators::{Subject, Trial};

/// The frames for which an operator is built, and the device.
#[derive(Debug, Clone)]
pub struct Target {
    /// The device.
    pub context: Arc<ClContext>,
    /// The layout of the frames.
    pub layout: Arc<FrameLayout>,
    /// Bits of a sample that the format fills.
    pub depth: u32,
    /// `memory-object=image`: kernels read images instead of buffers. An operator obeys or refuses.
    pub images: bool,
    /// Frames are strips of a web.
    pub line_scan: bool,
    /// Tests the operator before the first frame.
    pub trial: Trial,
}

impl Target {
    /// The setting `bit-depth` of operators: the property, or the format's depth where that leaves bits of a sample
    /// unused.
    pub fn bit_depth(&self, property: u32) -> u32 {
        if property == 0 && self.depth < self.layout.sample.bits() {
            self.depth
        } else {
            property
        }
    }

    /// Checks that a web can hold the rows that an operator needs.
    ///
    /// # Errors
    /// [`ClError::Refused`] if the rows do not fit in the device's memory.
    pub fn check_reach(&self, reach: &Reach) -> Result<(), ClError> {
        if self.line_scan {
            WebRows::check(&self.context, &self.layout, reach)?;
        }
        Ok(())
    }
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
    /// What operators are built for.
    pub target: Target,
}

/// What an element learns from the rows of a stream, such as pitches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Learning {
    /// Nothing.
    #[default]
    Off,
    /// The element has learned, and checks from time to time whether the result still holds.
    Known,
    /// The element has not learned yet: the first strips of a web wait for the rows from which it learns.
    Needed,
}

/// Rows from which an element learns: a frame, or rows of a web.
pub struct View<'a> {
    /// The rows on the device.
    pub frame: &'a ClFrame,
    /// Their number.
    pub rows: usize,
    /// Whether they are of a web, from which an element learns from time to time only.
    pub is_web: bool,
    /// The element's counters.
    pub meter: &'a Arc<Meter>,
}

/// What an element that rewrites frames does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The frame is sent as it is, and is not brought to the device.
    Pass,
    /// [`FrameStream::process`] reads the frame, which is then sent as it is.
    Read,
    /// [`FrameStream::process`] writes [`Frame::target_frame`], which is the frame itself where its memory
    /// is ours to write.
    Rewrite,
}

/// An element's work from its start to its stop: the operator, and what the element keeps from frame to
/// frame. The parent class calls it from the streaming thread only.
pub trait FrameStream: Send {
    /// Builds the operator for new caps; compiles kernels if necessary. What the element has learned stays,
    /// as far as it fits the frames.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that do not fit the frames or each other; a failing call.
    fn negotiate(&mut self, caps: &Negotiated) -> Result<(), ClError>;

    /// Takes the properties as they are now, before a frame, and applies changed settings. Nothing has changed since the last
    /// call with the same `revision`.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn follow(&mut self, revision: u64) -> Result<(), ClError>;

    /// Rows of a web that a strip needs besides its own.
    fn reach(&self) -> Reach {
        Reach::default()
    }

    /// Whether the element learns from frames.
    fn learning(&self) -> Learning {
        Learning::Off
    }

    /// Learns from rows: from each frame, or from many rows of a web at a time.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn learn(&mut self, _view: &View) -> Result<(), ClError> {
        Ok(())
    }

    /// Nothing is learned from the next frame, because it is corrupted.
    fn leave_out(&mut self) {}

    /// The next strip is the first one of a web.
    fn begin_web(&mut self) {}

    /// What to do with the next frame, if the element [rewrites](super::ClBaseFilterImpl::REWRITES) frames.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn treatment(&mut self) -> Result<Treatment, ClError> {
        Ok(Treatment::Rewrite)
    }

    /// Processes a frame; returns an event to push before the buffer.
    ///
    /// `frame.input` is the frame on the device. An element with an output buffer of its own writes
    /// [`Frame::target_frame`], which has the input's format and size, or [`Frame::target`]; the parent
    /// class has allocated it and copied timestamps and metas.
    ///
    /// Commands may still run when `process` returns, except those that read a frame whose
    /// [`taken`](ClFrame::taken) is `Wrapped`: wait for them, because the source may overwrite that memory
    /// once the frame is sent.
    ///
    /// # Errors
    /// The reason why the frame is not pushed.
    fn process(&mut self, frame: &mut Frame) -> Result<Option<gst::Event>, ClError>;

    /// The stream has ended. Frames may follow all the same, after a flush or in another stream.
    fn end(&mut self) {}
}

/// The buffers of a frame.
pub(super) enum Buffers<'a> {
    /// The input buffer is also the output.
    InPlace(&'a mut gst::BufferRef),
    /// Input and output are separate buffers.
    Pair(&'a gst::BufferRef, &'a mut gst::BufferRef),
}

impl Buffers<'_> {
    pub fn input(&self) -> &gst::BufferRef {
        match self {
            Self::InPlace(buffer) => buffer,
            Self::Pair(input, _) => input,
        }
    }
}

/// A frame on the device, and its buffers.
pub struct Frame<'a> {
    /// The frame on the device; of a web, the rows around the strip too.
    pub input: ClFrame,
    /// The rows to process.
    pub window: Window,
    /// Number of the web since the start; 0 without webs.
    pub web: u64,
    /// The source flagged rows that the result depends on as corrupted.
    pub is_corrupted: bool,
    importer: &'a Importer,
    buffers: Buffers<'a>,
}

/// Whether the source flagged a buffer as corrupted: packets of the camera were lost, or a decoder concealed an error.
pub(super) fn is_corrupted(buffer: &gst::BufferRef) -> bool {
    buffer.flags().contains(gst::BufferFlags::CORRUPTED)
}

impl<'a> Frame<'a> {
    /// The rows of a window; `input` holds them.
    pub(super) fn new(
        input: ClFrame,
        window: Window,
        importer: &'a Importer,
        buffers: Buffers<'a>,
    ) -> Self {
        Self {
            input,
            window,
            web: 0,
            is_corrupted: is_corrupted(buffers.input()),
            importer,
            buffers,
        }
    }

    /// Format and size.
    pub fn info(&self) -> &gst_video::VideoInfo {
        self.importer.info()
    }

    /// The rows to process, for an operator that marks defects.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            frame: &self.input,
            window: self.window,
            meter: self.meter(),
        }
    }

    /// The element's counters.
    pub fn meter(&self) -> &Arc<Meter> {
        self.importer.meter()
    }

    /// Number of the frame's first row in its web; 0 without a web.
    pub fn first_line(&self) -> u64 {
        self.window.web_row + self.window.first as u64
    }

    /// The input buffer.
    pub fn buffer(&self) -> &gst::BufferRef {
        self.buffers.input()
    }

    /// The output buffer, for metas.
    pub fn output(&mut self) -> &mut gst::BufferRef {
        match &mut self.buffers {
            Buffers::InPlace(buffer) => buffer,
            Buffers::Pair(_, output) => output,
        }
    }

    /// The output buffer to write.
    ///
    /// # Errors
    /// [`ClError::Input`] if input and output are the same buffer.
    pub fn target(&self) -> Result<&gst::BufferRef, ClError> {
        match &self.buffers {
            Buffers::InPlace(_) => Err(ClError::Input(
                "the element has no output buffer of its own".into(),
            )),
            Buffers::Pair(_, output) => Ok(output),
        }
    }

    /// The output frame to write, of the input's format and size; the input itself if it is rewritten in
    /// place.
    ///
    /// # Errors
    /// [`ClError::Input`] if the output buffer has no OpenCL memory.
    pub fn target_frame(&self) -> Result<ClFrame, ClError> {
        self.importer.output(match &self.buffers {
            Buffers::InPlace(buffer) => buffer,
            Buffers::Pair(_, output) => output,
        })
    }
}

/// The error of a frame that came before its caps.
pub fn before_caps() -> ClError {
    ClError::Input("received a frame before its caps".into())
}

/// Settings, and the operator that was built from them.
#[derive(Debug)]
pub struct InForce<S, O> {
    /// The operator in use.
    pub operator: O,
    /// Its settings.
    pub settings: S,
    /// Grows with each operator of the element, and with each change of the one in use: as long as it stays, what an element
    /// derives from settings and operator does.
    pub number: u64,
}

impl<S, O> InForce<S, O> {
    /// The operator was changed for the frames from now on.
    pub fn note_change(&mut self) {
        self.number += 1;
    }
}

/// The operator in use, and its replacement when settings change.
///
/// If the kernels for new settings are compiled already, the next frame uses them. Otherwise a
/// thread compiles them, frames continue with the operator in use, and the first frame after the
/// compilation switches. If settings are refused, the operator stays in use, and the element warns once.
pub struct Live<S, O> {
    element: glib::WeakRef<gst::Element>,
    /// `None` before the first caps, and after caps that were refused.
    in_force: Option<InForce<S, O>>,
    build: Option<Build<S, O>>,
    /// The revision of the properties that was applied last; see [`Self::follow`].
    revision: Option<u64>,
    /// [`InForce::number`] before the operator in use.
    number: u64,
    refused: LastReport<S>,
    pending: Option<Pending<S, O>>,
}

impl<S: Clone + PartialEq + Send + 'static, O: Send + 'static> Live<S, O> {
    /// Without an operator; `element` posts messages.
    pub fn new(element: &impl IsA<gst::Element>) -> Self {
        Self {
            element: element.upcast_ref::<gst::Element>().downgrade(),
            in_force: None,
            build: None,
            revision: None,
            number: 0,
            refused: LastReport::default(),
            pending: None,
        }
    }

    /// Builds the operator for new caps; compiles kernels if necessary. From now on `build` makes an operator for
    /// each change of the settings, possibly on another thread.
    ///
    /// # Errors
    /// The error of `build`.
    pub fn start(
        &mut self,
        settings: S,
        build: impl Fn(&S) -> Result<O, ClError> + Send + Sync + 'static,
    ) -> Result<(), ClError> {
        // Two operators for large frames may not fit in the device's memory.
        self.release_operator();
        self.pending = None;
        self.revision = None;
        self.refused.clear();
        let element = self.element.clone();
        let build = move |settings: &S| report(&element, || build(settings));
        let operator = build(&settings)?;
        self.put_in_force(operator, settings);
        self.build = Some(Arc::new(build));
        Ok(())
    }

    fn put_in_force(&mut self, operator: O, settings: S) {
        self.release_operator();
        self.in_force = Some(InForce {
            operator,
            settings,
            number: self.number + 1,
        });
    }

    fn release_operator(&mut self) {
        if let Some(before) = self.in_force.take() {
            self.number = before.number;
        }
    }

    /// The operator in use and its settings; `None` before caps were accepted.
    pub fn get(&self) -> Option<&InForce<S, O>> {
        self.in_force.as_ref()
    }

    /// The operator in use and its settings.
    ///
    /// # Errors
    /// [`ClError::Input`] before caps were accepted.
    pub fn in_force(&mut self) -> Result<&mut InForce<S, O>, ClError> {
        self.in_force.as_mut().ok_or_else(before_caps)
    }

    /// [`Self::apply`] with the settings that `wanted` returns, before a frame. Without another `revision` of the properties,
    /// and without a replacement on its way, there is nothing to apply.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn follow(
        &mut self,
        revision: u64,
        wanted: impl FnOnce() -> S,
        restore: impl FnOnce(&S, &S),
    ) -> Result<(), ClError> {
        if self.revision == Some(revision) && self.pending.is_none() {
            return Ok(());
        }
        self.revision = Some(revision);
        self.apply(wanted(), restore)
    }

    /// Applies settings. Builds no program in this thread, unless the system can start no other; a
    /// driver may still generate code for a kernel's first launch. If the settings are refused, the element warns once,
    /// and `restore` gets the refused settings and those in force, to set the properties back.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn apply(&mut self, wanted: S, restore: impl FnOnce(&S, &S)) -> Result<(), ClError> {
        let finished = self.pending.take_if(|pending| pending.is_finished());
        if !self.is_new(&wanted)? {
            return Ok(());
        }
        match finished.map(|mut pending| (pending.take_result(), pending.settings.clone())) {
            Some((result, settings)) if settings == wanted => {
                return self.take(settings, result, restore);
            }
            // The settings changed again meanwhile, but these are newer than the ones in use.
            Some((Ok(operator), settings)) => {
                self.put_in_force(operator, settings);
            }
            // The settings that were refused are no longer wanted.
            Some((Err(ClError::Refused(_)), _)) | None => {}
            Some((Err(error), _)) => return Err(error),
        }
        if (self.pending.as_ref()).is_some_and(|pending| pending.settings == wanted) {
            return Ok(());
        }
        let build = self.build.clone().ok_or_else(before_caps)?;
        if let Some(result) = without_compiler(|| build(&wanted)) {
            return self.take(wanted, result, restore);
        }
        if self.pending.is_none() {
            self.pending = Pending::start(wanted.clone(), &build);
            if self.pending.is_none() {
                return self.switch(wanted, restore);
            }
        }
        Ok(())
    }

    /// [`Self::apply`], but waits for a compiler if necessary.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn switch(&mut self, wanted: S, restore: impl FnOnce(&S, &S)) -> Result<(), ClError> {
        self.pending = None;
        if !self.is_new(&wanted)? {
            return Ok(());
        }
        let build = self.build.clone().ok_or_else(before_caps)?;
        let result = build(&wanted);
        self.take(wanted, result, restore)
    }

    /// Whether the settings are neither in use nor refused.
    fn is_new(&mut self, wanted: &S) -> Result<bool, ClError> {
        if *wanted == self.in_force()?.settings {
            self.refused.clear();
            return Ok(false);
        }
        Ok(!self.refused.is_last(wanted))
    }

    fn take(
        &mut self,
        settings: S,
        result: Result<O, ClError>,
        restore: impl FnOnce(&S, &S),
    ) -> Result<(), ClError> {
        match result {
            Ok(operator) => {
                self.put_in_force(operator, settings);
                self.refused.clear();
                Ok(())
            }
            Err(error @ ClError::Refused(_)) => {
                self.refused.is_new(settings.clone());
                // The properties are set back, which ends the refusal.
                self.revision = None;
                if let (Some(element), Some(in_force)) = (self.element.upgrade(), &self.in_force) {
                    refuse(&element, &error, || restore(&settings, &in_force.settings));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Posts a warning that settings are refused, and sets the properties back with `restore`.
pub fn refuse(element: &gst::Element, error: &ClError, restore: impl FnOnce()) {
    let values = || -> Vec<(glib::ParamSpec, String)> {
        let specs = element.list_properties();
        let specs = specs.iter().cloned();
        specs
            .filter(|spec| spec.flags().contains(glib::ParamFlags::READWRITE))
            .map(|spec| {
                let value = element.property_value(spec.name());
                (spec, format!("{value:?}"))
            })
            .collect()
    };
    let before = values();
    restore();
    for ((spec, before), (_, after)) in before.iter().zip(values()) {
        if *before != after {
            element.notify_by_pspec(spec);
        }
    }
    gst::element_warning!(
        element,
        gst::LibraryError::Settings,
        ("{}", error),
        ["the properties have their previous values again"]
    );
}

/// Replaces `settings` by `in_force` if they are still the refused ones.
pub fn put_back<T: Clone + PartialEq>(settings: &mut T, refused: &T, in_force: &T) {
    if settings == refused {
        *settings = in_force.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(n: &i32) -> Result<i32, ClError> {
        if *n < 0 {
            Err(ClError::Refused("negative".into()))
        } else {
            Ok(10 * n)
        }
    }

    #[test]
    fn live_refused_settings_leave_the_operator_and_are_told_once() {
        gst::init().expect("GStreamer");
        let bin = gst::Bin::new();
        let mut live = Live::new(&bin);
        assert!(live.apply(1, |_, _| ()).is_err(), "before caps");
        live.start(1, build).expect("live");
        let mut restored = Vec::new();
        let mut follow = |wanted: i32| {
            let restore = |refused: &i32, in_force: &i32| restored.push((*refused, *in_force));
            live.apply(wanted, restore).expect("no failing call");
            let InForce {
                operator, settings, ..
            } = live.in_force().expect("an operator");
            (*operator, *settings)
        };
        assert_eq!(follow(-1), (10, 1));
        assert_eq!(follow(-1), (10, 1));
        assert_eq!(follow(2), (20, 2));
        assert_eq!(follow(-1), (20, 2));
        assert_eq!(restored, [(-1, 1), (-1, 2)]);
    }

    #[test]
    fn live_an_operator_after_a_changed_one_has_another_number() {
        gst::init().expect("GStreamer");
        let mut live = Live::new(&gst::Bin::new());
        let mut numbers = Vec::new();
        for settings in [1, 2] {
            live.start(settings, build).expect("live");
            for wanted in [settings, settings + 5] {
                live.apply(wanted, |_, _| ()).expect("no failing call");
                let in_force = live.in_force().expect("an operator");
                numbers.push(in_force.number);
                in_force.note_change();
                numbers.push(in_force.number);
            }
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn live_asks_for_the_settings_of_a_revision_once_and_after_a_refusal_again() {
        gst::init().expect("GStreamer");
        let bin = gst::Bin::new();
        let mut live = Live::new(&bin);
        live.start(1, build).expect("live");
        let mut asked = Vec::new();
        for (revision, wanted) in [(7, 1), (7, 1), (8, 2), (8, 2), (9, -1), (9, 2), (9, 2)] {
            let settings = || {
                asked.push((revision, wanted));
                wanted
            };
            live.follow(revision, settings, |_, _| ())
                .expect("no failing call");
        }
        assert_eq!(asked, [(7, 1), (8, 2), (9, -1), (9, 2)]);
    }
}
