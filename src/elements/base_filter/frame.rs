//! A frame on its way through an element.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_opencl::Meter;
use clinspect_opencl::frame::{ClFrame, Importer};

/// The buffers of a frame.
pub(super) enum Buffers<'a> {
    /// The frame goes on as it came.
    InPlace(&'a mut gst::BufferRef),
    /// Another buffer goes on.
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

/// A frame, on the device and as a buffer.
pub struct Frame<'a> {
    /// The frame on the device.
    pub input: ClFrame,
    pub(super) importer: &'a Importer,
    pub(super) buffers: Buffers<'a>,
}

impl Frame<'_> {
    /// Format and size.
    pub fn info(&self) -> &gst_video::VideoInfo {
        self.importer.info()
    }

    /// Where the element's commands are counted.
    pub fn meter(&self) -> &Arc<Meter> {
        self.importer.meter()
    }

    /// The buffer that came in.
    pub fn buffer(&self) -> &gst::BufferRef {
        self.buffers.input()
    }

    /// The buffer that goes on, to take metas.
    pub fn output(&mut self) -> &mut gst::BufferRef {
        match &mut self.buffers {
            Buffers::InPlace(buffer) => buffer,
            Buffers::Pair(_, output) => output,
        }
    }

    /// The buffer to write.
    ///
    /// # Errors
    /// [`ClError::Input`] where frames pass as they are.
    pub fn target(&self) -> Result<&gst::BufferRef, ClError> {
        match &self.buffers {
            Buffers::InPlace(_) => Err(ClError::Input("there is no output buffer".into())),
            Buffers::Pair(_, output) => Ok(output),
        }
    }

    /// The frame to write, of the input's format and size.
    ///
    /// # Errors
    /// [`ClError::Input`] where it does not lie in OpenCL memory.
    pub fn target_frame(&self) -> Result<ClFrame, ClError> {
        self.importer.output(self.target()?)
    }
}
