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

use crate::{inspection::PackedMask, to_u32};

/// Lists the defects of a mask, and measures their pixels.
#[derive(Debug)]
pub struct Lister {
    differences: RunDifferences,
    pub(crate) scanner: Scanner,
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
    /// The runs in this memory are being collected and measured.
    Submitted(Mem),
    /// The differences of the runs that the scanner has read.
    Measured(Vec<RunDifference>),
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

/// Finds the defects of a mask.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Where masks cross a bus to the host.
    marked: Option<MarkedRuns>,
}

impl Scanner {
    /// Prepares scans with a kernel of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program, has_bus: bool) -> Result<Self, ClError> {
        Ok(Self {
            marked: has_bus
                .then(|| MarkedRuns::new(context, program))
                .transpose()?,
        })
    }

    /// Runs that the device has collected of the last mask; the largest number if it did not.
    pub fn count(&self) -> usize {
        let read = self.marked.as_ref().map(|marked| marked.read.len());
        read.and_then(|read| read.checked_sub(1))
            .unwrap_or(CAPACITY)
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
        let [width, height] = mask.size;
        let stride = packed_stride(width);
        if let Some(marked) = &mut self.marked
            && marked.read(context, mask, meter)?
        {
            let HostMask { bytes, is_set } = marked.mask(mask.size);
            return Ok(finder.scan_rows(bytes, stride, width, is_set, limits, ends));
        }
        mask.buffer.read_with(|bytes| {
            let bytes = bytes.get(mask.offset..).unwrap_or(&[]);
            finder.scan(bytes, stride, width, height, limits, ends)
        })
    }
}

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
}

impl Lister {
    /// Prepares lists with the kernels of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program, has_bus: bool) -> Result<Self, ClError> {
        Ok(Self {
            differences: RunDifferences::new(context, program)?,
            scanner: Scanner::new(context, program, has_bus)?,
            ahead: Ahead::Off,
        })
    }

    /// The results of the last [`Self::measure`].
    pub fn results(&self) -> &[RunDifference] {
        &self.differences.results
    }

    /// Enqueues the collection of a mask's marks and their measurement. `args`: see [`Self::measure`].
    ///
    /// # Errors
    /// The failing call.
    pub(crate) fn measure_ahead(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        [frame_args, more_args]: [&[Arg]; 2],
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let (Ahead::Wanted(count), Some(marked)) =
            (std::mem::take(&mut self.ahead), &mut self.scanner.marked)
        else {
            return Ok(());
        };
        let runs = marked.submit(context, mask, count, submission)?;
        let mask_args = [
            Arg::Reads(Memory::Buffer(mask.buffer)),
            Arg::U64(mask.offset as u64),
        ];
        let args = [frame_args, &mask_args, more_args].concat();
        self.differences
            .submit(context, &args, &runs, 1 + count, submission)?;
        self.ahead = Ahead::Submitted(runs);
        Ok(())
    }

    /// Where what [`Self::measure_ahead`] collects and measures is read from: the memory, offset and length.
    pub fn parts_ahead(&self) -> Vec<(&Mem, usize, usize)> {
        match (&self.ahead, &self.scanner.marked) {
            (Ahead::Submitted(runs), Some(marked)) => vec![
                (runs, 0, size_of_val(&*marked.read)),
                (
                    &self.differences.out,
                    0,
                    size_of_val(&*self.differences.results),
                ),
            ],
            _ => Vec::new(),
        }
    }

    /// Where it is read to.
    pub fn outs_ahead(&mut self) -> Vec<&mut [u8]> {
        match (&self.ahead, &mut self.scanner.marked) {
            (Ahead::Submitted(_), Some(marked)) => vec![
                bytemuck::cast_slice_mut(&mut marked.read),
                bytemuck::cast_slice_mut(&mut self.differences.results),
            ],
            _ => Vec::new(),
        }
    }

    /// Takes what was read, if anything was. `is_last`: no pixel was marked or cleared afterwards.
    pub fn take_ahead(&mut self, is_last: bool) {
        if !matches!(self.ahead, Ahead::Submitted(_)) {
            return;
        }
        let ahead = std::mem::take(&mut self.ahead);
        if let (Ahead::Submitted(runs), Some(marked)) = (ahead, &mut self.scanner.marked)
            && marked.take(runs)
            && is_last
        {
            let count = marked.read.len();
            self.ahead = Ahead::Measured(self.differences.results[..count].to_vec());
        }
    }

    /// The mask of this size whose marks were measured ahead.
    pub(crate) fn measured_mask(&mut self, size: [usize; 2]) -> Option<HostMask<'_>> {
        let marked = self.scanner.marked.as_mut()?;
        matches!(self.ahead, Ahead::Measured(_)).then(|| marked.mask(size))
    }

    /// The differences of runs of the mask that was measured ahead: of the pieces that the device has made of them.
    pub fn measured(&mut self, runs: &[Run]) -> Vec<RunDifference> {
        let (Ahead::Measured(differences), Some(marked)) = (&self.ahead, &self.scanner.marked)
        else {
            return Vec::new();
        };
        let pieces = marked.read.iter().zip(differences).skip(1);
        let mut pieces: Vec<(&Run, &RunDifference)> = pieces.collect();
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

    /// Notes that a frame with these runs was listed.
    pub fn note_listed(&mut self, count: usize) {
        let room = (2 * count).next_power_of_two().max(LEAST_AHEAD);
        self.ahead = match self.scanner.marked {
            Some(_) if room <= MOST_AHEAD => Ahead::Wanted(room),
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

    /// Enqueues the measurement of `count` runs in `runs`, and makes room for the results.
    fn submit(
        &mut self,
        context: &Arc<ClContext>,
        frame_args: &[Arg],
        runs: &Mem,
        count: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        self.make_room(context, count)?;
        let args = (&mut self.kernel, runs, &self.out);
        launch(context, args, frame_args, count, submission)
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
    ]);
    let range = if context.caps().is_cpu {
        NdRange::groups(count.min(MOST_CPU_ITEMS), 1)
    } else {
        let group = RUN_GROUP.min(context.kernel_work_group(kernel)?);
        NdRange::groups(count.div_ceil(group), group)
    };
    submission.run(kernel, RUN_DIFFERENCES, &args, &range)
}

const MASK_RUNS: &str = "mask_runs";
/// Runs that the device memory holds.
const CAPACITY: usize = 4096;
/// Work-items per work-group.
const MASK_RUNS_GROUP: usize = 128;

/// A mask on the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostMask<'a> {
    /// The packed rows, in which no other bits are set than those of marked pixels.
    pub bytes: &'a [u8],
    /// By row: whether it has a marked pixel.
    pub is_set: &'a [bool],
}

/// The marked pixels of a mask, which the device collects.
#[derive(Debug)]
pub(super) struct MarkedRuns {
    kernel: Kernel,
    group: usize,
    /// A run of two counters, then the runs; `None` if the counters are unknown.
    runs: Option<Mem>,
    /// The size of the masks that the runs are of: behind those of the last mask are runs of masks before.
    size: [usize; 2],
    slot: usize,
    read: Vec<Run>,
    /// The last mask, and the bytes that are not 0.
    mask: Vec<u8>,
    set: Vec<usize>,
    /// By row of the mask: whether it has a marked pixel.
    is_set: Vec<bool>,
}

impl MarkedRuns {
    /// Prepares the kernel.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let kernel = program.kernel(MASK_RUNS)?;
        Ok(Self {
            group: MASK_RUNS_GROUP.min(context.kernel_work_group(&kernel)?),
            kernel,
            runs: None,
            size: [0; 2],
            slot: 0,
            read: Vec::new(),
            mask: Vec::new(),
            set: Vec::new(),
            is_set: Vec::new(),
        })
    }

    /// Enqueues the kernel, and makes room for `count` runs on the host. Returns the memory of the runs.
    fn submit(
        &mut self,
        context: &ClContext,
        mask: DeviceMask,
        count: usize,
        submission: &mut Submission,
    ) -> Result<Mem, ClError> {
        // After a failure the counters are unknown, and the memory is made again.
        let runs = match self.runs.take() {
            Some(runs) if self.size == mask.size => runs,
            _ => {
                (self.size, self.slot) = (mask.size, 0);
                let runs = context.device_memory((1 + CAPACITY) * size_of::<Run>())?;
                submission.zero(&runs, (1 + CAPACITY) * size_of::<Run>(), "runs of a mask")?;
                runs
            }
        };
        let [width, height] = mask.size;
        let stride = packed_stride(width);
        let row_words = stride.div_ceil(size_of::<u32>());
        let args = [
            Arg::Reads(Memory::Buffer(mask.buffer)),
            Arg::U64(mask.offset as u64),
            Arg::U32(to_u32(stride, "a mask")?),
            Arg::U32(to_u32(height, "a mask")?),
            Arg::U32(to_u32(row_words, "a mask")?),
            Arg::Mem(&runs),
            Arg::U32(to_u32(self.slot, "a counter")?),
            Arg::U32(to_u32(CAPACITY, "runs")?),
        ];
        let range = NdRange::groups((row_words * height).div_ceil(self.group), self.group);
        submission.run(&mut self.kernel, MASK_RUNS, &args, &range)?;
        self.read.resize(1 + count, Run::default());
        Ok(runs)
    }

    /// Takes what was read of the memory. Returns false if the mask has more runs than were read.
    fn take(&mut self, runs: Mem) -> bool {
        let counters = self.read.first().map_or([0; 2], |run| [run.y, run.defect]);
        let count = counters[self.slot] as usize;
        self.slot = 1 - self.slot;
        self.runs = Some(runs);
        let is_whole = count < self.read.len();
        self.read.truncate(if is_whole { 1 + count } else { 1 });
        is_whole
    }

    /// Collects the marked pixels and waits. Returns false if these are too many.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        meter: &Arc<Meter>,
    ) -> Result<bool, ClError> {
        if mask.pixels > CAPACITY as u64 {
            return Ok(false);
        }
        let mut submission = context.submit(meter, packed_stride(mask.size[0]) * mask.size[1]);
        let runs = self.submit(context, mask, mask.pixels as usize, &mut submission)?;
        let read = bytemuck::cast_slice_mut(&mut self.read);
        submission.read(&runs, 0, read, "runs of a mask")?;
        Ok(self.take(runs))
    }

    /// The mask of what was read.
    fn mask(&mut self, [width, height]: [usize; 2]) -> HostMask<'_> {
        let stride = packed_stride(width);
        if self.mask.len() != stride * height {
            self.set.clear();
            self.mask = vec![0; stride * height];
        }
        for byte in self.set.drain(..) {
            self.mask[byte] = 0;
        }
        self.is_set.clear();
        self.is_set.resize(height, false);
        for run in self.read.iter().skip(1) {
            let Some(is_set) = self.is_set.get_mut(run.y as usize) else {
                continue;
            };
            *is_set = true;
            for x in run.x0..run.x1 {
                let at = run.y as usize * stride + x as usize / 8;
                if let Some(byte) = self.mask.get_mut(at) {
                    if *byte == 0 {
                        self.set.push(at);
                    }
                    *byte |= 0x80 >> (x % 8);
                }
            }
        }
        HostMask {
            bytes: &self.mask,
            is_set: &self.is_set,
        }
    }
}
