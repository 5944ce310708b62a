//! Differences before the threshold: drawn, or counted to learn a threshold; kernels in `kernels/pitch_threshold_difference.cl`.

use clinspect_core::{ClError, layout::SampleType, threshold::Reached};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, NdRange, ProgramSource, frame::ClFrame};

use super::PitchThreshold;
use crate::regions::Ignore;
use crate::{
    Subject,
    depth::effective_depth,
    sample_options,
    source::{plain_group, source_args, target_args},
    submitted::Submitted,
    to_i32,
};

/// The kernels and their memory; made when they are needed first.
#[derive(Debug)]
pub(super) struct Differences {
    show: Kernel,
    count: Kernel,
    group: [usize; 2],
    /// A counter per quarter of a grey level, and the judged pixels.
    counts: Option<Mem>,
    read: Vec<u32>,
}

impl Differences {
    fn new(
        context: &ClContext,
        sample: SampleType,
        source: ProgramSource,
    ) -> Result<Self, ClError> {
        // Planes are buffers even where the comparison reads their image.
        let program = context.program(source, &sample_options(sample, false))?;
        let show = program.kernel("pitch_threshold_difference")?;
        Ok(Self {
            group: plain_group(context, &show)?,
            show,
            count: program.kernel("pitch_threshold_reached")?,
            counts: None,
            read: Vec::new(),
        })
    }
}

impl PitchThreshold {
    /// See [`Inspection::draw`](crate::Inspection::draw).
    pub(super) fn draw_difference(
        &mut self,
        subject: Subject,
        out: &ClFrame,
        gain: f64,
    ) -> Result<(), ClError> {
        let mut differences = self.take_differences()?;
        let depth = effective_depth(self.settings.bit_depth, self.sample)?;
        let [dst, dst_offset, dst_stride] = target_args(out.plane(0)?, 0)?;
        let mut args = self.difference_args(subject.frame)?;
        args.extend([
            Arg::I32(to_i32(depth.saturating_sub(8) as usize, "bits")?),
            Arg::I32((256.0 * gain).round() as i32),
            dst,
            dst_offset,
            dst_stride,
        ]);
        let range = NdRange::cover([self.width, self.window.rows], differences.group);
        let (_, bytes) = self.mask_size(&self.window);
        let mut submission = self.context.submit(subject.meter, bytes);
        submission.run(
            &mut differences.show,
            "pitch_threshold_difference",
            &args,
            &range,
        )?;
        submission.send()?.wait("the picture")?;
        self.differences = Some(differences);
        Ok(())
    }

    /// See [`Self::count_reached`].
    pub(super) fn count_differences(
        &mut self,
        subject: Subject,
        reached: &mut Reached,
    ) -> Result<(), ClError> {
        let mut differences = self.take_differences()?;
        let depth = effective_depth(self.settings.bit_depth, self.sample)?;
        let last = Reached::last(depth);
        let len = last + 2;
        let bytes = len * size_of::<u32>();
        let counts = match differences.counts.take() {
            Some(counts) => counts,
            None => self.context.device_memory(bytes)?,
        };
        let mut args = self.difference_args(subject.frame)?;
        args.extend([Arg::Mem(&counts), Arg::I32(to_i32(last, "counts")?)]);
        let range = NdRange::cover([self.width, self.window.rows], differences.group);
        let (_, judged) = self.mask_size(&self.window);
        let mut submission = self.context.submit(subject.meter, judged);
        submission.zero(&counts, bytes, "the counts of differences")?;
        submission.run(
            &mut differences.count,
            "pitch_threshold_reached",
            &args,
            &range,
        )?;
        differences.read.resize(len, 0);
        let read = bytemuck::cast_slice_mut(&mut differences.read);
        submission.read(&counts, 0, read, "the counts of differences")?;
        reached.add(&differences.read);
        differences.counts = Some(counts);
        self.differences = Some(differences);
        Ok(())
    }

    fn take_differences(&mut self) -> Result<Differences, ClError> {
        match self.differences.take() {
            Some(differences) => Ok(differences),
            None => {
                let source = match self.lattice() {
                    Some(_) => ProgramSource::LatticeDifference,
                    None => ProgramSource::PitchThresholdDifference,
                };
                Differences::new(&self.context, self.sample, source)
            }
        }
    }

    /// The arguments that both kernels begin with.
    fn difference_args<'a>(&'a self, frame: &'a ClFrame) -> Result<Vec<Arg<'a>>, ClError> {
        let [src, src_offset, src_stride] = source_args(frame.plane(0)?, None, 0)?;
        let ignored = self.ignore.as_ref().map(Ignore::memory);
        Ok(vec![
            src,
            src_offset,
            src_stride,
            Arg::I32(to_i32(self.width, "a width")?),
            Arg::I32(to_i32(self.window.height, "a height")?),
            Arg::I32(to_i32(self.window.first, "a row")?),
            Arg::I32(to_i32(self.window.rows, "rows")?),
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(self.comparisons_in_use(), "comparisons")?),
            Arg::Mem(&self.rois.memory),
            Arg::I32(to_i32(self.rois.words.len(), "regions")?),
            Arg::I32(self.flags),
            // Where no pixel is ignored the regions stand in for the bitmap, which the kernels do not read.
            Arg::Mem(ignored.unwrap_or(&self.rois.memory)),
            Arg::I32(i32::from(ignored.is_some())),
        ])
    }
}
