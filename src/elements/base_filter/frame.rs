//! A frame in an element.

use std::sync::Arc;

use clinspect_core::{ClError, window::Window};
use clinspect_opencl::Meter;
use clinspect_opencl::frame::{ClFrame, Importer};

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
    pub(super) importer: &'a Importer,
    pub(super) buffers: Buffers<'a>,
}

impl Frame<'_> {
    /// Format and size.
    pub fn info(&self) -> &gst_video::VideoInfo {
        self.importer.info()
    }

    /// The element's counters.
    pub fn meter(&self) -> &Arc<Meter> {
        self.importer.meter()
    }

    /// Number of the frame's first row in its web; 0 without a web.
    pub fn first_line(&self) -> u64 {
        self.window.web_row + self.window.first as u64
    }

    /// Whether the web ends with this strip; true for a frame.
    pub fn ends(&self) -> bool {
        self.window.ends && self.window.span().end == self.window.height
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
