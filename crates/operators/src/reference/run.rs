//! Compares a frame with the model.

use std::sync::Arc;

use clinspect_core::{ClError, mask::packed_stride, ndrange::NdRange};
use clinspect_opencl::{Arg, ClBuffer, Kernel, Mem, Memory, Meter, Submission, frame::ClFrame};

use super::{Base, Reading, Reference, Show, model::DeviceModel};
use crate::{
    MaskTarget,
    pitch_threshold::{Expand, Marked, packed_mask},
    source::plain_group,
    to_i32, to_u32,
};

/// Two counters of marked pixels, of which the kernel clears the other one.
type Counters = [u32; 2];
/// Pixels that the kernel marks together.
const BLOCK: usize = 16;
/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;
/// Rows per work-item of a GPU, a constant of its program.
pub(super) const GPU_ROWS: usize = 2;

/// The kernels that mark, and their memory.
#[derive(Debug)]
pub(super) struct Marker {
    plain: Kernel,
    read: Kernel,
    group: [usize; 2],
    expand: Expand,
    counters: Mem,
    slot: usize,
    is_clean: bool,
    /// Limits of a comparison without a model, which are not read.
    nothing: Mem,
}

impl Marker {
    pub fn new(base: &Base) -> Result<Self, ClError> {
        let read = base.program.kernel("reference_mark_read")?;
        let counters = base.context.device_memory(size_of::<Counters>())?;
        Ok(Self {
            plain: base.program.kernel("reference_mark")?,
            group: plain_group(&base.context, &read)?,
            read,
            expand: Expand::new(&base.context, &base.program)?,
            counters,
            slot: 0,
            is_clean: false,
            nothing: base.context.device_memory(BLOCK)?,
        })
    }

    /// Enqueues the comparison. `reading` is `None` if nothing is judged.
    fn mark(
        &mut self,
        base: &Base,
        model: Option<&DeviceModel>,
        frame: &ClFrame,
        reading: Option<&Reading>,
        mask: (Memory, usize),
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        if !self.is_clean {
            submission.zero(&self.counters, size_of::<Counters>(), "the pixel counters")?;
            self.is_clean = true;
        }
        let [width, height] = base.size;
        let blocks = width.div_ceil(BLOCK);
        let (item_blocks, item_rows, range) = if base.context.caps().is_cpu {
            let bands = (BANDS_PER_UNIT * base.context.caps().compute_units).min(height);
            let rows = height.div_ceil(bands);
            (blocks, rows, NdRange::tiles([1, height.div_ceil(rows)], 1))
        } else {
            let items = [blocks, height.div_ceil(GPU_ROWS)];
            (1, GPU_ROWS, NdRange::cover(items, self.group))
        };
        let plain = Reading::plain();
        let reading = reading.unwrap_or(&plain);
        let (limits, stride) = match model {
            Some(model) => (&model.limits, model.limit_stride),
            None => (&self.nothing, 0),
        };
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend([
            reading.judged_arg()?,
            reading.shift_arg(),
            reading.level_arg(base),
            Arg::Mem(limits),
            Arg::U32(to_u32(stride, "a stride")?),
            Arg::Writes(mask.0),
            Arg::U64(mask.1 as u64),
            Arg::I32(to_i32(item_blocks, "blocks")?),
            Arg::I32(to_i32(item_rows, "rows")?),
            Arg::Mem(&self.counters),
            Arg::U32(to_u32(self.slot, "a counter")?),
        ]);
        let (kernel, name) = if reading.is_plain() {
            (&mut self.plain, "reference_mark")
        } else {
            (&mut self.read, "reference_mark_read")
        };
        submission.run(kernel, name, &args, &range)
    }

    /// Waits, and reads the count of the frame.
    fn count(&mut self, submission: Submission) -> Result<u64, ClError> {
        let mut counts = Counters::default();
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        submission.read(&self.counters, 0, bytes, "the pixel count")?;
        let count = counts[self.slot];
        self.slot = 1 - self.slot;
        Ok(count.into())
    }
}

impl Reference {
    /// Finds where a frame lies in the model, and its brightness, without comparing it. Waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn find(&mut self, frame: &ClFrame, meter: &Meter) -> Result<(), ClError> {
        self.reading = None;
        if let Some(model) = self.model.as_mut().filter(|_| !self.is_blind) {
            self.reading = Some(model.reader.read(frame, meter)?);
        }
        Ok(())
    }

    /// Compares a frame, writes its mask, waits, and returns the number of marked pixels.
    ///
    /// # Errors
    /// The failing call; the mask's contents are then undefined.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<Marked, ClError> {
        self.marked = Marked::default();
        self.find(frame, meter)?;
        let result = self.mark(frame, target, meter);
        if result.is_err() {
            // The frame may be counted in part.
            self.marker.is_clean = false;
        }
        self.marked.pixels = result?;
        Ok(self.marked)
    }

    fn mark(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        let base = &self.base;
        if matches!(target, MaskTarget::Grey(_)) && self.packed.is_none() {
            let bytes = packed_stride(base.size[0]) * base.size[1];
            self.packed = Some(Arc::new(ClBuffer::new(&base.context, bytes, meter)?));
        }
        let (mask, offset) = packed_mask(target, &self.packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        let mask = Memory::Buffer(mask);
        let mut submission = base.context.submit(meter, base.bytes());
        let (model, reading) = (self.model.as_ref(), self.reading.as_ref());
        (self.marker).mark(base, model, frame, reading, (mask, offset), &mut submission)?;
        (self.marker.expand).run(mask, target, base.size, &mut submission)?;
        self.marker.count(submission)
    }

    /// Runs each kernel once.
    pub(super) fn warm_up_marks(
        &mut self,
        frame: &ClFrame,
        out: &ClFrame,
        meter: &Arc<Meter>,
    ) -> Result<(), ClError> {
        self.run(frame, MaskTarget::Grey(out), meter)?;
        let mut shifted = Reading::plain();
        shifted.shift.x = 1;
        self.reading = Some(shifted);
        self.mark(frame, MaskTarget::Grey(out), meter)?;
        self.show(frame, out, Show::Model, meter)?;
        self.warm_up_list(frame, meter)
    }
}
