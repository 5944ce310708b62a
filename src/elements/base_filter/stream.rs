//! The interface between the parent class and the stream of a subclass, and the frames that pass it.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    layout::FrameLayout,
    window::{Reach, Window},
};
use clinspect_opencl::{
    ClAllocator, ClContext, Meter,
    frame::{ClFrame, Importer, WebRows},
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

    /// Takes the properties as they are now, before a frame, and applies changed settings.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn follow(&mut self) -> Result<(), ClError>;

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
    /// A whole frame.
    pub(super) fn new(input: ClFrame, importer: &'a Importer, buffers: Buffers<'a>) -> Self {
        Self {
            input,
            window: Window::frame(importer.layout().height),
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
