//! Counts the pixels of good frames by the highest threshold that marks them; kernel `reference_reached`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    reference::{Deviations, Limits, Model, mean_range},
    threshold::Reached,
};
use clinspect_opencl::{Arg, Kernel, Mem, NdRange};

use super::{Base, Reference, ReferenceSettings, reader::DeviceModel};
use crate::{Subject, to_i32, to_u32, upload};

const KERNEL: &str = "reference_reached";

/// The kernel and its memory; made when frames are counted first.
#[derive(Debug)]
pub(super) struct Reach {
    kernel: Kernel,
    group: [usize; 2],
    /// The limits at a threshold of 0.
    limits: Mem,
    /// The highest and the lowest mean around each pixel.
    means: [Mem; 2],
    /// A counter per quarter of a grey level.
    counts: Mem,
    read: Vec<u32>,
}

impl Reach {
    fn new(
        base: &Base,
        settings: &ReferenceSettings,
        model: &Arc<Model>,
        device: &DeviceModel,
    ) -> Result<Self, ClError> {
        let (kernel, group) = base.kernel(KERNEL)?;
        let deviations = Deviations {
            threshold: 0.0,
            ..settings.deviations()
        };
        let limits = Limits::new(model, device.reader.judged(), &deviations);
        let bytes = base.sample.bytes();
        let limits = limits.to_bytes(device.limit_stride / bytes, bytes);
        let [highest, lowest] = mean_range(model, deviations.edge_tolerance);
        let len = Reached::last(base.depth) + 1;
        Ok(Self {
            kernel,
            group,
            limits: upload(&base.context, &limits, "the limits")?,
            means: [
                upload(&base.context, &highest, "the model")?,
                upload(&base.context, &lowest, "the model")?,
            ],
            counts: base.context.device_memory(len * size_of::<u32>())?,
            read: Vec::new(),
        })
    }
}

impl Reference {
    /// See [`Self::count_reached`].
    pub(super) fn count_limits(
        &mut self,
        subject: Subject,
        reached: &mut Reached,
    ) -> Result<bool, ClError> {
        let base = &self.base;
        let (Some(device), Some(model), Some(reading)) =
            (&self.model, &self.settings.model, &self.reading)
        else {
            return Ok(false);
        };
        if !reading.is_matched {
            return Ok(false);
        }
        let mut reach = match self.reach.take() {
            Some(reach) => reach,
            None => Reach::new(base, &self.settings, model, device)?,
        };
        let last = Reached::last(base.depth);
        let [highest, lowest] = &reach.means;
        let frame = device.reader.aligned(subject.frame, reading);
        let mut args = base.frame_args(frame.plane(0)?)?.to_vec();
        args.extend(device.reader.judged_args(reading)?);
        args.extend([
            reading.level_arg(base),
            Arg::Mem(&reach.limits),
            Arg::U32(to_u32(device.limit_stride, "a stride")?),
            Arg::Mem(highest),
            Arg::Mem(lowest),
            Arg::Mem(&reach.counts),
            Arg::I32(to_i32(last, "counts")?),
        ]);
        let range = NdRange::cover(base.size, reach.group);
        let mut submission = base.context.submit(subject.meter, base.bytes());
        let bytes = (last + 1) * size_of::<u32>();
        submission.zero(&reach.counts, bytes, "the counts of differences")?;
        submission.run(&mut reach.kernel, KERNEL, &args, &range)?;
        reach.read.resize(last + 1, 0);
        let read = bytemuck::cast_slice_mut(&mut reach.read);
        submission.read(&reach.counts, 0, read, "the counts of differences")?;
        let judged = u32::try_from(reading.judged_pixels()).unwrap_or(u32::MAX);
        reach.read.push(judged);
        reached.add(&reach.read);
        self.reach = Some(reach);
        Ok(true)
    }
}
