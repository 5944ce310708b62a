//! Copies a few rows or columns of a frame, or its middle, to the host; kernels in `kernels/probe_lines.cl`.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    lattice_estimate::Crop,
    layout::FrameLayout,
    pitch::Axis,
    pitch_estimate::{Lines as PitchLines, probe_lines},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Meter, NdRange, ProgramSource};

use super::{
    sample_options,
    source::{plain_group, source_args},
    to_i32,
};

const KERNEL: &str = "probe_lines";
const BLOCKS: &str = "probe_blocks";

/// The lines of frames of one size, and memory for their samples.
struct Lines {
    lines: Mem,
    count: usize,
    length: usize,
    out: Mem,
}

impl Lines {
    fn new(context: &ClContext, axis: Axis, [width, height]: [usize; 2]) -> Result<Self, ClError> {
        let (across, length) = match axis {
            Axis::X => (height, width),
            Axis::Y => (width, height),
        };
        let indices = probe_lines(across)
            .into_iter()
            .map(|line| to_i32(line, "a line"))
            .collect::<Result<Vec<i32>, _>>()?;
        let bytes: Vec<u8> = indices.iter().flat_map(|i| i.to_ne_bytes()).collect();
        let lines = context.device_memory(bytes.len())?;
        context.write(&lines, 0, &bytes, "probe lines")?;
        let count = indices.len();
        Ok(Self {
            lines,
            count,
            length,
            out: context.device_memory(count * length * size_of::<f32>())?,
        })
    }
}

/// Copies lines along one axis from the first plane of frames of one layout.
#[derive(Debug)]
pub struct Probe {
    context: Arc<ClContext>,
    kernel: Kernel,
    group: [usize; 2],
    axis: Axis,
    /// Size of the frames.
    size: [usize; 2],
    lines: Mem,
    count: usize,
    length: usize,
    out: Mem,
    samples: Vec<f32>,
}

impl Probe {
    /// Prepares the copy along `axis`: of rows for [`Axis::X`], of columns for [`Axis::Y`].
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        axis: Axis,
    ) -> Result<Self, ClError> {
        let size = [layout.width, layout.height];
        let kernel = context
            .program(
                ProgramSource::ProbeLines,
                &sample_options(layout.sample, false),
            )?
            .kernel(KERNEL)?;
        let Lines {
            lines,
            count,
            length,
            out,
        } = Lines::new(context, axis, size)?;
        Ok(Self {
            context: context.clone(),
            group: plain_group(context, &kernel)?,
            kernel,
            axis,
            size,
            lines,
            count,
            length,
            out,
            samples: vec![0.0; count * length],
        })
    }

    /// Takes frames with another number of rows.
    ///
    /// # Errors
    /// A failing OpenCL call.
    fn take_rows(&mut self, rows: usize) -> Result<(), ClError> {
        if self.size[1] != rows {
            self.size[1] = rows;
            let lines = Lines::new(&self.context, self.axis, self.size)?;
            (self.lines, self.count, self.length) = (lines.lines, lines.count, lines.length);
            self.out = lines.out;
            self.samples = vec![0.0; self.count * self.length];
        }
        Ok(())
    }

    /// Samples per line.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Copies the lines of a frame of `rows` rows, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn lines(
        &mut self,
        frame: &ClFrame,
        rows: usize,
        meter: &Meter,
    ) -> Result<PitchLines<'_>, ClError> {
        self.take_rows(rows)?;
        let length = self.length;
        let samples = self.run(frame, meter)?;
        Ok(PitchLines { samples, length })
    }

    /// Copies the lines of a frame, waits, and returns them one after the other.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(&mut self, frame: &ClFrame, meter: &Meter) -> Result<&[f32], ClError> {
        let [src, offset, stride] = source_args(frame.plane(0)?, None, 0)?;
        let args = [
            src,
            offset,
            stride,
            Arg::I32(i32::from(self.axis == Axis::Y)),
            Arg::Mem(&self.lines),
            Arg::I32(to_i32(self.count, "lines")?),
            Arg::I32(to_i32(self.length, "a line")?),
            Arg::Mem(&self.out),
        ];
        let range = NdRange::cover([self.length, self.count], self.group);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.samples);
        let mut submission = self.context.submit(meter, bytes.len());
        submission.run(&mut self.kernel, KERNEL, &args, &range)?;
        submission.read(&self.out, 0, bytes, "probe lines")?;
        Ok(&self.samples)
    }
}

/// Copies the middle of the first plane of frames of one layout, or the means of its blocks.
#[derive(Debug)]
pub struct MiddleProbe {
    context: Arc<ClContext>,
    kernel: Kernel,
    group: [usize; 2],
    /// Memory for the samples of a crop of this size.
    out: Option<([usize; 2], Mem)>,
}

impl MiddleProbe {
    /// Prepares the copy.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn new(context: &Arc<ClContext>, layout: &FrameLayout) -> Result<Self, ClError> {
        let options = sample_options(layout.sample, false);
        let kernel = context
            .program(ProgramSource::ProbeLines, &options)?
            .kernel(BLOCKS)?;
        Ok(Self {
            context: context.clone(),
            group: plain_group(context, &kernel)?,
            kernel,
            out: None,
        })
    }

    /// Fills `samples` with a crop of a frame, row by row, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        frame: &ClFrame,
        crop: Crop,
        samples: &mut Vec<f32>,
        meter: &Meter,
    ) -> Result<(), ClError> {
        let size = [crop.width, crop.height];
        let out = match self.out.take() {
            Some((held, out)) if held == size => out,
            _ => (self.context).device_memory(crop.width * crop.height * size_of::<f32>())?,
        };
        let (_, out) = self.out.insert((size, out));
        let [src, offset, stride] = source_args(frame.plane(0)?, None, 0)?;
        let args = [
            src,
            offset,
            stride,
            Arg::I32(to_i32(crop.x, "a column")?),
            Arg::I32(to_i32(crop.y, "a row")?),
            Arg::I32(to_i32(crop.width, "a width")?),
            Arg::I32(to_i32(crop.height, "a height")?),
            Arg::I32(1 << crop.level),
            Arg::Mem(out),
        ];
        samples.clear();
        samples.resize(crop.width * crop.height, 0.0);
        let range = NdRange::cover(size, self.group);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(samples);
        let mut submission = self.context.submit(meter, bytes.len());
        submission.run(&mut self.kernel, BLOCKS, &args, &range)?;
        submission.read(out, 0, bytes, "the middle of a frame")?;
        Ok(())
    }
}
