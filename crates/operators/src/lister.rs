//! Lists the defects of a mask that lies on the device.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    components::{Finder, Limits, Listed, Run, RunDifference},
    mask::packed_stride,
    ndrange::NdRange,
};
use clinspect_opencl::{Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, Program};

use crate::{
    inspection::{Subject, Submitted},
    to_u32,
};

/// Lists the defects of a mask, and measures their pixels.
#[derive(Debug)]
pub(crate) struct Lister {
    differences: RunDifferences,
    pub scanner: Scanner,
}

/// Finds the defects of a mask.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Where masks cross a bus to the host.
    set_words: Option<SetWords>,
}

impl Scanner {
    /// Prepares scans with a kernel of a program for buffers. `has_bus`: masks cross a bus to the host.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program, has_bus: bool) -> Result<Self, ClError> {
        Ok(Self {
            set_words: has_bus
                .then(|| SetWords::new(context, program))
                .transpose()?,
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
        let [width, height] = mask.size;
        let stride = packed_stride(width);
        let read = match &mut self.set_words {
            Some(set_words) => set_words.read(context, mask, [stride, height], meter)?,
            None => None,
        };
        match read {
            Some(mask) => {
                Ok(finder.scan_rows(mask.bytes, stride, width, mask.is_set, limits, ends))
            }
            None => mask.buffer.read_with(|bytes| {
                let bytes = bytes.get(mask.offset..).unwrap_or(&[]);
                finder.scan(bytes, stride, width, height, limits, ends)
            }),
        }
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

/// An operator that lists the marks that it alone has made.
pub(crate) trait Lists: Submitted {
    /// The device, and what lists.
    fn lister(&mut self) -> (&Arc<ClContext>, &mut Lister);

    /// Lists the defects of a mask. `ends`: the web ends with this mask.
    ///
    /// # Errors
    /// The failing call.
    fn list_marks(
        &mut self,
        subject: Subject,
        mask: DeviceMask,
        (finder, limits, ends): (&mut Finder, &Limits, bool),
    ) -> Result<Listed, ClError> {
        let (context, lister) = self.lister();
        let web = (&mut *finder, limits, ends);
        let runs = lister.scanner.scan(context, mask, web, subject.meter)?;
        let measured = self.measure(subject, (mask.buffer, mask.offset), runs)?;
        let mut listed = finder.list(measured);
        for defect in &mut listed.defects {
            self.complete(defect);
        }
        Ok(listed)
    }
}

/// Marks a pixel in the packed mask of a warm-up frame, which has no defect, and lists it with `list`.
///
/// # Errors
/// The failing call.
pub(crate) fn warm_up(
    packed: Option<&ClBuffer>,
    list: impl FnOnce(&mut Finder, &Limits) -> Result<Listed, ClError>,
) -> Result<(), ClError> {
    if let Some(packed) = packed {
        packed.write(0, &[0x80], "a mask to warm up with")?;
    }
    let limits = Limits {
        min_area: 0,
        merge_distance: 0,
        max_defects: 1,
        max_runs: usize::MAX,
        max_defect_rows: u32::MAX,
    };
    list(&mut Finder::default(), &limits).map(drop)
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
        })
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
        if runs.len() > self.capacity {
            self.capacity = runs.len().next_power_of_two();
            (self.runs, self.out) = Self::memory(context, self.capacity)?;
        }
        context.write(&self.runs, 0, bytemuck::cast_slice(runs), "runs of defects")?;
        let count = u32::try_from(runs.len())
            .map_err(|_| ClError::Refused(format!("{} runs are too many", runs.len())))?;
        let mut args = frame_args.to_vec();
        args.extend([Arg::Mem(&self.runs), Arg::U32(count), Arg::Mem(&self.out)]);
        let range = if context.caps().is_cpu {
            NdRange::groups(runs.len().min(MOST_CPU_ITEMS), 1)
        } else {
            let group = RUN_GROUP.min(context.kernel_work_group(&self.kernel)?);
            NdRange::groups(runs.len().div_ceil(group), group)
        };
        self.results.resize(runs.len(), RunDifference::default());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.results);
        let mut submission = context.submit(meter, bytes.len());
        submission.run(&mut self.kernel, RUN_DIFFERENCES, &args, &range)?;
        submission.read(&self.out, 0, bytes, "differences of runs")?;
        Ok(&self.results)
    }
}

const SET_WORDS: &str = "mask_set_words";
/// Words that the device memory holds.
const CAPACITY: usize = 4096;
/// Work-items per work-group.
const SET_WORDS_GROUP: usize = 128;
/// Two counters of set words, which take turns.
const COUNTERS: usize = 2;
const WORD: usize = size_of::<u32>();

/// The kernel and its memory.
#[derive(Debug)]
pub(super) struct SetWords {
    kernel: Kernel,
    group: usize,
    /// The counters, then the number and the bytes of each word; `None` if the counters are unknown.
    out: Option<Mem>,
    slot: usize,
    read: Vec<u32>,
    /// The last mask, and its words that are not 0.
    mask: Vec<u32>,
    set: Vec<u32>,
    /// By row of the mask: whether it has a marked pixel.
    is_set: Vec<bool>,
}

/// A mask on the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostMask<'a> {
    /// The packed rows.
    pub bytes: &'a [u8],
    /// By row: whether it has a marked pixel.
    pub is_set: &'a [bool],
}

impl SetWords {
    /// Prepares the kernel.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(context: &ClContext, program: &Program) -> Result<Self, ClError> {
        let kernel = program.kernel(SET_WORDS)?;
        Ok(Self {
            group: SET_WORDS_GROUP.min(context.kernel_work_group(&kernel)?),
            kernel,
            out: None,
            slot: 0,
            read: Vec::new(),
            mask: Vec::new(),
            set: Vec::new(),
            is_set: Vec::new(),
        })
    }

    /// A mask of `rows` rows and `stride` bytes a row, in which no other bits are set than those of its marked pixels;
    /// `None` if these are too many.
    ///
    /// # Errors
    /// The failing call.
    pub fn read(
        &mut self,
        context: &Arc<ClContext>,
        mask: DeviceMask,
        [stride, rows]: [usize; 2],
        meter: &Arc<Meter>,
    ) -> Result<Option<HostMask<'_>>, ClError> {
        let pixels = mask.pixels;
        if pixels > CAPACITY as u64 {
            return Ok(None);
        }
        let bytes = stride * rows;
        // After a failure below the counters are unknown, and the memory is made again.
        let out = match self.out.take() {
            Some(out) => out,
            None => {
                let out = context.device_memory((COUNTERS + 2 * CAPACITY) * WORD)?;
                context.zero(&out, COUNTERS * WORD, "the counters of set words")?;
                self.slot = 0;
                out
            }
        };
        let args = [
            Arg::Reads(Memory::Buffer(mask.buffer)),
            Arg::U64(mask.offset as u64),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::Mem(&out),
            Arg::U32(to_u32(self.slot, "a counter")?),
            Arg::U32(to_u32(CAPACITY, "words")?),
        ];
        let words = bytes.div_ceil(WORD);
        let range = NdRange::groups(words.div_ceil(self.group), self.group);
        let mut submission = context.submit(meter, bytes);
        submission.run(&mut self.kernel, SET_WORDS, &args, &range)?;
        // A pixel is in one word.
        self.read.resize(COUNTERS + 2 * pixels as usize, 0);
        let read = bytemuck::cast_slice_mut(&mut self.read);
        submission.read(&out, 0, read, "the set words of a mask")?;
        let (counters, found) = self.read.split_at(COUNTERS);
        let count = counters[self.slot] as usize;
        self.slot = 1 - self.slot;
        self.out = Some(out);
        let found = found.as_chunks().0;
        if count > found.len() {
            return Ok(None);
        }

        if self.mask.len() != words {
            self.set.clear();
            self.mask = vec![0; words];
        }
        for word in self.set.drain(..) {
            self.mask[word as usize] = 0;
        }
        self.is_set.clear();
        self.is_set.resize(rows, false);
        for &[number, value] in &found[..count] {
            let Some(word) = self.mask.get_mut(number as usize) else {
                continue;
            };
            *word = value;
            self.set.push(number);
            // A word may lie in several rows.
            let first = number as usize * WORD;
            for row in first / stride..=(first + WORD - 1) / stride {
                if let Some(is_set) = self.is_set.get_mut(row) {
                    *is_set = true;
                }
            }
        }
        let bytes = bytemuck::cast_slice(&self.mask).get(..bytes);
        let is_set = &self.is_set;
        Ok(bytes.map(|bytes| HostMask { bytes, is_set }))
    }
}
