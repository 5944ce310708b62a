//! Elements that rewrite frames: in place where the frame's memory is ours to write, else into a buffer of
//! their pool. Frames that need no change are sent as they came.

use gst::subclass::prelude::*;
use gst_base::subclass::{
    base_transform::{GenerateOutputSuccess, InputBuffer, PrepareOutputBufferSuccess},
    prelude::*,
};

use super::{
    imp::ClBaseFilter,
    stream::{Buffers, Treatment},
};
use clinspect_core::ClError;

impl ClBaseFilter {
    /// Takes the frame that was submitted, and returns the one to send.
    pub(super) fn rewrite(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        let Some(mut buffer) = self.take_queued_buffer() else {
            return Ok(GenerateOutputSuccess::NoOutput);
        };
        let (treatment, is_ours) = self.treatment(&buffer).map_err(|error| {
            self.faults.post(&self.obj(), &error, self.task());
            gst::FlowError::Error
        })?;
        match treatment {
            Treatment::Pass => {}
            Treatment::Read => {
                self.process(Buffers::InPlace(buffer.make_mut()))?;
            }
            Treatment::Rewrite => {
                if is_ours && let Some(buffer) = buffer.get_mut() {
                    self.process(Buffers::InPlace(buffer))?;
                } else {
                    let prepared = self.prepare_output_buffer(InputBuffer::Readable(&buffer))?;
                    let PrepareOutputBufferSuccess::Buffer(mut output) = prepared else {
                        return Err(gst::FlowError::Error);
                    };
                    self.process(Buffers::Pair(&buffer, output.make_mut()))?;
                    buffer = output;
                }
            }
        }
        Ok(GenerateOutputSuccess::Buffer(buffer))
    }

    /// Applies the settings; says what to do with the frame, and whether it lies in memory of this device
    /// that nobody else uses.
    fn treatment(&self, buffer: &gst::BufferRef) -> Result<(Treatment, bool), ClError> {
        self.with_running(|running| {
            let (stream, for_caps) = running.parts()?;
            for_caps.importer.check(buffer)?;
            stream.follow()?;
            let treatment = stream.treatment()?;
            let is_ours =
                buffer.is_all_memory_writable() && for_caps.importer.output(buffer).is_ok();
            Ok((treatment, is_ours))
        })
    }
}
