//! The list of a mask's defects: its marked pixels are collected, and measured on the device.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, MeasuredDefect, Run, RunDifference},
    mask::packed_stride,
};
use clinspect_opencl::{
    Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, NdRange, Program, Submission,
};

use crate::{
    frame_results::{FrameResults, HostMask, MOST_RUNS},
    inspection::PackedMask,
    to_i32, to_u32,
};

/// Lists the defects of a mask, and measures their pixels.
#[derive(Debug)]
pub struct Lister {
    differences: RunDifferences,
    pub(crate) results: FrameResults,
    /// Masks cross a bus to the host: the device collects their runs.
    has_bus: bool,
    /// How the next frame is listed.
    pub(crate) ahead: Ahead,
}

/// The list of a frame that follows a listed one: its marks are collected and measured by the commands that make them, and
/// the host waits once. Frames with defects often come in a row.
#[derive(Debug, Default)]
pub(crate) enum Ahead {
    /// The next frame is listed when its marks are known.
    #[default]
    Off,
    /// The next frame has at most this many runs, if it is like the last one.
    Wanted(usize),
    /// The runs of this frame are being collected and measured.
    Submitted,
    /// The runs of this frame, and their differences, were read.
    Measured,
}

/// Most runs that are measured before they are known.
const MOST_AHEAD: usize = 1024;
/// Fewest runs for which there is room.
const LEAST_AHEAD: usize = 64;

/// Completes a defect whose pixels are marked by channels: `run_differences` of `kernels/strongest.cl` packs the channel and
/// its excess into the peak, in which the finder counts units of 1/512. `limit`: of a channel, in its unit.
pub(crate) fn unpack_channel(
    defect: &mut MeasuredDefect,
    channel_bits: u32,
    limit: impl Fn(usize) -> Option<f64>,
) {
    let packed = (512.0 * defect.peak_difference) as i64;
    let size = packed.unsigned_abs();
    let channel = (size & ((1 << channel_bits) - 1)) as usize;
    let excess = (size >> channel_bits) as f64 / 256.0;
    defect.level = channel as u8;
    defect.peak_difference = excess * limit(channel).unwrap_or(0.0) * packed.signum() as f64;
}

/// Finds the defects of masks of which no runs are measured yet.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Where masks cross a bus to the host.
    collecting: Option<(Kernel, FrameResults)>,
    /// The counters are known: nothing has failed.
    is_clean: bool,
}

impl Scanner {
    /// Prepares scans with a kernel of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program, has_bus: bool) -> Result<Self, ClError> {
        let collecting = || {
            Ok::<_, ClError>((
                program.kernel(MASK_RUNS)?,
                FrameResults::new(context, true)?,
            ))
        };
        Ok(Self {
            collecting: has_bus.then(collecting).transpose()?,
            is_clean: true,
        })
    }

    /// The runs of the defects that are listed with this mask, and of those that stay open. `ends`: the web ends with this
    /// mask. The host reads only the mask.
    ///
    /// # Errors
    /// The failing call.
    pub fn scan<'f>(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        (finder, limits, ends): (&'f mut Finder, &Limits, bool),
        meter: &Arc<Meter>,
    ) -> Result<&'f [Run], ClError> {
        let Some((kernel, results)) = (self.collecting.as_mut()).filter(|_| mask.is_collected())
        else {
            return mask.scan((finder, limits, ends));
        };
        let [width, height] = mask.size;
        let mut submission = context.submit(meter, packed_stride(width) * height);
        if !std::mem::replace(&mut self.is_clean, false) {
            results.clear(&mut submission)?;
        }
        let range = mask.words(context, kernel)?;
        let [runs, room, _, slot, rows] = results.collect(mask.pixels as usize, height, false)?;
        let [bytes, offset] = mask.args();
        let args = [
            bytes,
            offset,
            Arg::I32(to_i32(width, "a mask")?),
            runs,
            room,
            runs,
            slot,
            rows,
        ];
        submission.run(kernel, MASK_RUNS, &args, &range)?;
        let (memory, out) = results.read();
        submission.read(memory, 0, out, "runs of a mask")?;
        results.take_runs();
        self.is_clean = true;
        let HostMask { bytes, is_set } = results.mask(mask.size);
        Ok(finder.scan_rows(bytes, packed_stride(width), width, is_set, limits, ends))
    }
}

const MASK_RUNS: &str = "mask_runs";
/// Work-items per work-group of a kernel that collects runs.
const COLLECTING_GROUP: usize = 128;

/// A packed mask on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceMask<'a> {
    pub buffer: &'a ClBuffer,
    /// Offset of the first row, bytes.
    pub offset: usize,
    /// Width and height, px.
    pub size: [usize; 2],
    /// Number of marked pixels.
    pub pixels: u64,
}

impl<'a> DeviceMask<'a> {
    /// A mask of unknown marks.
    pub fn of((buffer, offset): PackedMask<'a>, size: [usize; 2]) -> Self {
        Self {
            buffer,
            offset,
            size,
            pixels: 0,
        }
    }

    /// Whether all of its runs are collected where it crosses a bus.
    fn is_collected(&self) -> bool {
        self.pixels <= MOST_RUNS as u64
    }

    /// A kernel's arguments.
    fn args(&self) -> [Arg<'a>; 2] {
        [
            Arg::Reads(Memory::Buffer(self.buffer)),
            Arg::U64(self.offset as u64),
        ]
    }

    /// The work-items of a kernel that collects runs: one per 4 bytes of a row.
    fn words(&self, context: &ClContext, kernel: &Kernel) -> Result<NdRange, ClError> {
        let [width, height] = self.size;
        let words = packed_stride(width).div_ceil(size_of::<u32>()) * height;
        let group = COLLECTING_GROUP.min(context.kernel_work_group(kernel)?);
        Ok(NdRange::groups(words.div_ceil(group), group))
    }

    /// Reads the mask, and scans it: see [`Scanner::scan`].
    ///
    /// # Errors
    /// The failing call.
    pub fn scan<'f>(
        &self,
        (finder, limits, ends): (&'f mut Finder, &Limits, bool),
    ) -> Result<&'f [Run], ClError> {
        let [width, height] = self.size;
        self.buffer.read_with(|bytes| {
            let bytes = bytes.get(self.offset..).unwrap_or(&[]);
            finder.scan(bytes, packed_stride(width), width, height, limits, ends)
        })
    }
}

impl Lister {
    /// Prepares lists with the kernels of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program, has_bus: bool) -> Result<Self, ClError> {
        Ok(Self {
            differences: RunDifferences::new(context, program)?,
            results: FrameResults::new(context, has_bus)?,
            has_bus,
            ahead: Ahead::Off,
        })
    }

    /// The results of the last [`Self::measure`].
    pub fn results(&self) -> &[RunDifference] {
        &self.differences.results
    }

    /// Whether the device collects the runs of this mask.
    pub(crate) fn collects(&self, mask: &DeviceMask) -> bool {
        self.has_bus && mask.is_collected()
    }

    /// Enqueues the collection of at most `room` runs of a mask, and their measurement. `args`: see [`Self::measure`].
    ///
    /// # Errors
    /// The failing call.
    pub(crate) fn collect(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        [frame_args, more_args]: [&[Arg]; 2],
        room: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let kernel = &mut self.differences.kernel;
        let range = mask.words(context, kernel)?;
        let of_runs = self.results.collect(room, mask.size[1], true)?;
        let args = [frame_args, &mask.args(), more_args, &of_runs].concat();
        submission.run(kernel, RUN_DIFFERENCES, &args, &range)?;
        self.ahead = Ahead::Submitted;
        Ok(())
    }

    /// Takes what was read, if runs were collected. `is_last`: no pixel was marked or cleared afterwards.
    pub fn take_collected(&mut self, is_last: bool) {
        if matches!(self.ahead, Ahead::Submitted) {
            let is_whole = self.results.take_runs();
            self.ahead = if is_whole && is_last {
                Ahead::Measured
            } else {
                Ahead::Off
            };
        }
    }

    /// The mask of this size whose runs were measured.
    pub(crate) fn measured_mask(&mut self, size: [usize; 2]) -> Option<HostMask<'_>> {
        matches!(self.ahead, Ahead::Measured).then(|| self.results.mask(size))
    }

    /// The differences of runs of the mask whose pieces were measured.
    pub fn measured(&self, runs: &[Run]) -> Vec<RunDifference> {
        let (pieces, differences) = (self.results.runs(), self.results.differences());
        let mut pieces: Vec<(&Run, &RunDifference)> = pieces.iter().zip(differences).collect();
        pieces.sort_unstable_by_key(|(run, _)| (run.y, run.x0));
        let of_run = |run: &Run| {
            let first = pieces.partition_point(|(piece, _)| (piece.y, piece.x0) < (run.y, run.x0));
            let inside = pieces[first..].iter();
            let inside = inside.take_while(|(piece, _)| piece.y == run.y && piece.x1 <= run.x1);
            inside.fold(RunDifference::default(), |sum, (_, piece)| {
                sum.joined(piece)
            })
        };
        runs.iter().map(of_run).collect()
    }

    /// Notes that a frame was listed: the next one may be like it.
    pub fn note_listed(&mut self) {
        let room = (2 * self.results.runs().len())
            .next_power_of_two()
            .max(LEAST_AHEAD);
        self.ahead = match self.ahead {
            Ahead::Measured if room <= MOST_AHEAD => Ahead::Wanted(room),
            _ => Ahead::Off,
        };
    }

    /// Measures the marked pixels of runs. `frame_args` are the arguments of kernel `run_differences` before the mask,
    /// `more_args` those between the mask and the runs.
    ///
    /// The device sums the differences, so the frame is not transferred.
    ///
    /// # Errors
    /// The failing call.
    pub fn measure(
        &mut self,
        context: &Arc<ClContext>,
        (buffer, offset): (&ClBuffer, usize),
        [frame_args, more_args]: [&[Arg]; 2],
        runs: &[Run],
        meter: &Arc<Meter>,
    ) -> Result<&[RunDifference], ClError> {
        let mask_args = [Arg::Reads(Memory::Buffer(buffer)), Arg::U64(offset as u64)];
        let args = [frame_args, &mask_args, more_args].concat();
        self.differences.run(context, &args, runs, meter)
    }
}

const RUN_DIFFERENCES: &str = "run_differences";
/// Number of runs that the device memory holds at first; it doubles as needed.
const FIRST_CAPACITY: usize = 1024;
/// Work-items per work-group on a GPU.
const RUN_GROUP: usize = 64;
/// Most work-items on a CPU, in work-groups of one. PoCL would compile the kernel again for more than
/// 65534 work-items, while frames wait.
const MOST_CPU_ITEMS: usize = 256;

/// The kernel and its buffers.
#[derive(Debug)]
pub(super) struct RunDifferences {
    kernel: Kernel,
    runs: Mem,
    out: Mem,
    capacity: usize,
    results: Vec<RunDifference>,
}

impl RunDifferences {
    /// Prepares the kernel of a program for buffers.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let (runs, out) = Self::memory(context, FIRST_CAPACITY)?;
        Ok(Self {
            kernel: program.kernel(RUN_DIFFERENCES)?,
            runs,
            out,
            capacity: FIRST_CAPACITY,
            results: Vec::new(),
        })
    }

    fn memory(context: &ClContext, capacity: usize) -> Result<(Mem, Mem), ClError> {
        Ok((
            context.device_memory(capacity * size_of::<Run>())?,
            context.device_memory(capacity * size_of::<RunDifference>())?,
        ))
    }

    /// Measures `runs` of the frame in `frame_args`, and waits.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        context: &Arc<ClContext>,
        frame_args: &[Arg],
        runs: &[Run],
        meter: &Meter,
    ) -> Result<&[RunDifference], ClError> {
        self.results.clear();
        if runs.is_empty() {
            return Ok(&self.results);
        }
        self.make_room(context, runs.len())?;
        context.write(&self.runs, 0, bytemuck::cast_slice(runs), "runs of defects")?;
        let mut submission = context.submit(meter, size_of_val(runs));
        let args = (&mut self.kernel, &self.runs, &self.out);
        launch(context, args, frame_args, runs.len(), &mut submission)?;
        let read = bytemuck::cast_slice_mut(&mut self.results);
        submission.read(&self.out, 0, read, "differences of runs")?;
        Ok(&self.results)
    }

    /// Makes room for the differences of `count` runs, on the device and on the host.
    fn make_room(&mut self, context: &ClContext, count: usize) -> Result<(), ClError> {
        if count > self.capacity {
            let capacity = count.next_power_of_two();
            (self.runs, self.out) = Self::memory(context, capacity)?;
            self.capacity = capacity;
        }
        self.results.resize(count, RunDifference::default());
        Ok(())
    }
}

fn launch(
    context: &Arc<ClContext>,
    (kernel, runs, out): (&mut Kernel, &Mem, &Mem),
    frame_args: &[Arg],
    count: usize,
    submission: &mut Submission,
) -> Result<(), ClError> {
    let mut args = frame_args.to_vec();
    args.extend([
        Arg::Mem(runs),
        Arg::U32(to_u32(count, "runs")?),
        Arg::Mem(out),
        // No mask is searched for runs.
        Arg::I32(-1),
        Arg::U32(0),
    ]);
    let range = if context.caps().is_cpu {
        NdRange::groups(count.min(MOST_CPU_ITEMS), 1)
    } else {
        let group = RUN_GROUP.min(context.kernel_work_group(kernel)?);
        NdRange::groups(count.div_ceil(group), group)
    };
    submission.run(kernel, RUN_DIFFERENCES, &args, &range)
}
