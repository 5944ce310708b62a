//! The launch that counts one plane.

use std::sync::Arc;

use crate::{sample_options, source::source_args, to_i32, to_u32};
use clinspect_core::ClError;
use clinspect_core::{
    kernels::{
        histogram_direct::SAMPLE_TABLES, histogram_pairs::PAIR_TABLE_LEN, histogram_run::BANKS,
    },
    layout::{FrameLayout, PlaneLayout, SampleType},
    variant::{HistogramShape, HistogramVariant, banked_copies},
};
use clinspect_opencl::frame::Plane;
use clinspect_opencl::{
    Arg, ClContext, ClImage, Kernel, Mem, NdRange, Program, ProgramSource, Submission,
};

use super::{COUNTER, HistogramSettings};

/// Longest pattern of a row, in samples, that the kernels support.
const MAX_PERIOD: usize = 4;
/// Device memory for the tables of work-items, bytes.
const TABLE_BUDGET: usize = 64 << 20;
/// Work-items with a table of their own per compute unit of a GPU.
const PRIVATE_ITEMS_PER_UNIT: usize = 128;
/// Work-items per work-group with shared local memory. A pattern of three needs fewer.
const SHARED_GROUP: usize = 1024;
const SHARED_GROUP_OF_THREE: usize = 768;
/// Work-items per work-group of `histogram_run` in a grey plane: so a small frame keeps more compute units busy.
const RUN_GROUP_OF_GREY: usize = 512;
/// Bytes that a work-group of `histogram_run` counts at least: it also clears and sums a table of 32 KiB.
const LEAST_RUN: usize = 4 << 10;
/// Groups that share one table of counters, per compute unit.
const LOCAL_GROUPS_PER_UNIT: usize = 2;

/// What all planes of a frame have in common.
pub(super) struct Plan<'a> {
    pub context: &'a Arc<ClContext>,
    pub layout: &'a FrameLayout,
    pub settings: &'a HistogramSettings,
    pub variant: HistogramVariant,
    /// Counters of a frame.
    pub table_len: usize,
    pub bit_depth: u32,
    /// Number of tables of work-items; 0 if work-groups share one.
    pub tables: usize,
}

/// Number of tables that a variant needs; 0 if work-groups share one.
pub(super) fn table_count(
    context: &ClContext,
    variant: HistogramVariant,
    table_len: usize,
) -> usize {
    let caps = context.caps();
    let fit = TABLE_BUDGET / (table_len * COUNTER);
    match variant {
        HistogramVariant::Pairs | HistogramVariant::Bytes => caps.compute_units,
        HistogramVariant::Direct => {
            SAMPLE_TABLES * caps.compute_units.min(fit / SAMPLE_TABLES).max(1)
        }
        HistogramVariant::Private if caps.is_cpu => caps.compute_units.min(fit).max(1),
        HistogramVariant::Private => (caps.compute_units * PRIVATE_ITEMS_PER_UNIT)
            .min(fit)
            .max(1),
        HistogramVariant::Banked { .. } | HistogramVariant::Local => 0,
    }
}

/// Work-items per work-group of `histogram_banked`.
fn shared_group(context: &ClContext, period: usize) -> usize {
    let caps = context.caps();
    let wish = if period == 3 {
        SHARED_GROUP_OF_THREE
    } else {
        SHARED_GROUP
    };
    wish.min(caps.max_work_group).min(caps.max_work_item[0])
}

/// Work-items per work-group of `histogram_run`; `None` if the device cannot run that kernel on this plane.
fn run_group(context: &ClContext, plane: &PlaneLayout, bytes: bool, bins: usize) -> Option<usize> {
    let caps = context.caps();
    let wish = if plane.lanes.len() == 1 {
        RUN_GROUP_OF_GREY
    } else {
        SHARED_GROUP
    };
    let group = wish.min(caps.max_work_group).min(caps.max_work_item[0]);
    let group = group / BANKS * BANKS;
    let local = (bins * BANKS * COUNTER) as u64;
    let fits = bytes && plane.lanes.len() <= MAX_PERIOD && local <= caps.local_memory;
    (fits && group > 0).then_some(group)
}

/// The samples that are counted: channel, begin and end of each sample of the pattern, and rows.
#[derive(Debug, Default)]
struct Pattern {
    channel: [i32; MAX_PERIOD],
    begin: [i32; MAX_PERIOD],
    end: [i32; MAX_PERIOD],
    rows: [i32; 2],
}

impl Pattern {
    fn new(plan: &Plan, plane: &PlaneLayout) -> Result<Self, ClError> {
        let layout = plan.layout;
        let period = plane.lanes.len();
        let mut pattern = Self {
            channel: [-1; MAX_PERIOD],
            ..Self::default()
        };
        for (lane, component) in plane.lanes.iter().enumerate() {
            let Some(c) = *component else { continue };
            let info = &layout.components[c];
            let part =
                plan.settings
                    .region
                    .subsample(info.w_sub, info.h_sub, info.width, info.height);
            // A component can have several samples in a pattern (the luma of YUY2).
            let step = info.pixel_stride / layout.sample.bytes();
            let first = (lane - info.offset / layout.sample.bytes()) / step;
            let repeats = period / step;
            let patterns = |x: usize| to_i32(x.saturating_sub(first).div_ceil(repeats), "a region");
            pattern.channel[lane] = to_i32(c, "a channel")?;
            pattern.begin[lane] = patterns(part.x0)?;
            pattern.end[lane] = patterns(part.x1)?;
            pattern.rows = [to_i32(part.y0, "a region")?, to_i32(part.y1, "a region")?];
        }
        Ok(pattern)
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        (0..MAX_PERIOD).filter(|&lane| self.channel[lane] >= 0)
    }

    /// The smallest begin and the largest end.
    fn span(&self) -> [i32; 2] {
        [
            self.used().map(|lane| self.begin[lane]).min().unwrap_or(0),
            self.used().map(|lane| self.end[lane]).max().unwrap_or(0),
        ]
    }

    /// The plane's first channel, and its number of channels.
    fn channels(&self) -> [usize; 2] {
        let channel = |lane: usize| self.channel[lane].max(0) as usize;
        let first = self.used().map(channel).min().unwrap_or(0);
        let last = self.used().map(channel).max().unwrap_or(0);
        [first, last - first + 1]
    }
}

/// The kernel arguments that depend on the strategy.
#[derive(Debug)]
enum Extra {
    /// No further argument.
    Tables,
    /// The pair tables, and their length in bytes.
    Pairs(Mem, usize),
    /// Length of the counters in local memory, bytes.
    Local(usize),
    /// The plane's counters.
    Banked(PlaneTable),
}

/// A plane's counters among those of a frame.
#[derive(Debug, Clone, Copy)]
struct PlaneTable {
    len: usize,
    first: usize,
}

impl PlaneTable {
    /// The kernel arguments `table_len`, `add_to` and `zero_from`; `frame_len` counters per frame.
    fn args(self, frame_len: usize, slot: usize) -> Result<[Arg<'static>; 3], ClError> {
        let at = |slot: usize| to_u32(slot * frame_len + self.first, "a table");
        Ok([
            Arg::U32(to_u32(self.len, "a table")?),
            Arg::U32(at(slot)?),
            Arg::U32(at(1 - slot)?),
        ])
    }
}

/// The faster kernel for rows without gaps between them.
#[derive(Debug)]
struct RunCount {
    kernel: Kernel,
    /// Most work-groups, and work-items of each.
    groups: [usize; 2],
}

/// The launch that counts one plane.
#[derive(Debug)]
pub(super) struct PlaneCount {
    pub plane: usize,
    pub program: Arc<Program>,
    kernel: Kernel,
    name: &'static str,
    range: NdRange,
    pattern: Pattern,
    /// Bytes of an unpadded row of which every sample is counted; 0 if some are not.
    whole_row: usize,
    /// Counts rows without gaps between them.
    run: Option<RunCount>,
    extra: Extra,
    is_direct: bool,
    bins: u32,
    shift: u32,
}

impl PlaneCount {
    /// Builds the kernel of plane `index`.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a pattern or a work-group size that the kernels do not support; a
    /// failing call.
    pub fn new(plan: &Plan, index: usize, plane: &PlaneLayout) -> Result<Self, ClError> {
        let context = plan.context;
        let period = plane.lanes.len();
        if period > MAX_PERIOD {
            return Err(ClError::Refused(
                "a format with more than four samples per pixel is not supported".into(),
            ));
        }
        let mut pattern = Pattern::new(plan, plane)?;
        let bins = plan.settings.bins;
        let shift = plan.bit_depth - bins.ilog2();
        let mut options = format!(
            "{} -DPERIOD={period}",
            sample_options(plan.layout.sample, plan.settings.image)
        );
        let [begin, end] = pattern.span();
        let row = end.max(0) as usize * period * plan.layout.sample.bytes();
        let is_whole = begin == 0
            && row == plane.row_bytes
            && pattern
                .used()
                .all(|lane| pattern.begin[lane] == 0 && pattern.end[lane] == end);
        let whole_row = if is_whole { row } else { 0 };
        let mut extra = Extra::Tables;
        let mut group_of_run = None;
        if let HistogramVariant::Banked { .. } = plan.variant {
            let [first, channels] = pattern.channels();
            for channel in pattern.channel.iter_mut().filter(|c| **c >= 0) {
                *channel -= to_i32(first, "a channel")?;
            }
            let table_len = channels * bins;
            let shape = HistogramShape {
                counters: plan.table_len,
                plane_counters: table_len,
                bytes: true,
                samples: 0,
                image: false,
            };
            let copies = banked_copies(context.caps(), &shape).unwrap_or(1);
            // Frames in host memory may start at any byte.
            let aligned = !context.caps().shares_host_memory;
            let group = shared_group(context, period);
            options += &format!(
                " -DGROUP_ITEMS={group} -DCOPIES={copies} -DTABLE_LEN={table_len} \
                 -DBIN_SHIFT={shift} -DALIGNED_BASE={}",
                u8::from(aligned),
            );
            let bytes = plan.layout.sample == SampleType::U8;
            let group = run_group(context, plane, bytes, bins);
            // The same program for every region.
            if let Some(group) = group {
                options += &format!(" -DRUN_ITEMS={group}");
            }
            group_of_run = group.filter(|_| whole_row > 0);
            extra = Extra::Banked(PlaneTable {
                len: table_len,
                first: first * bins,
            });
        }
        let (source, name) = match plan.variant {
            HistogramVariant::Pairs => (ProgramSource::HistogramPairs, "histogram_pairs"),
            HistogramVariant::Bytes => (ProgramSource::HistogramPairs, "histogram_bytes"),
            HistogramVariant::Direct => (ProgramSource::HistogramDirect, "histogram_direct"),
            HistogramVariant::Private => (ProgramSource::Histogram, "histogram_private"),
            HistogramVariant::Banked { .. } => (ProgramSource::HistogramBanked, "histogram_banked"),
            HistogramVariant::Local => (ProgramSource::Histogram, "histogram_local"),
        };
        let program = context.program(source, &options)?;
        let kernel = program.kernel(name)?;
        let units = context.caps().compute_units;
        let run = match group_of_run {
            Some(group) => Some(RunCount {
                kernel: program.kernel("histogram_run")?,
                groups: [units, group],
            }),
            None => None,
        };
        let largest = context.kernel_work_group(&kernel)?;
        let range = match plan.variant {
            HistogramVariant::Pairs => {
                let per_item = PAIR_TABLE_LEN * if period == 3 { 3 } else { period.div_ceil(2) };
                let bytes = plan.tables * per_item * COUNTER;
                let memory = context.device_memory(bytes)?;
                context.zero(&memory, bytes, "pair tables")?;
                extra = Extra::Pairs(memory, bytes);
                NdRange::groups(plan.tables, 1)
            }
            HistogramVariant::Bytes => NdRange::groups(plan.tables, 1),
            HistogramVariant::Direct => NdRange::groups(plan.tables / SAMPLE_TABLES, 1),
            HistogramVariant::Private => {
                let local = if context.caps().is_cpu { 1 } else { 32 };
                let local = local.min(largest);
                let local = if plan.tables.is_multiple_of(local) {
                    local
                } else {
                    1
                };
                NdRange::groups(plan.tables / local, local)
            }
            HistogramVariant::Banked { .. } => {
                NdRange::groups(units, shared_group(context, period))
            }
            HistogramVariant::Local => {
                extra = Extra::Local(plan.table_len * COUNTER);
                NdRange::groups(units * LOCAL_GROUPS_PER_UNIT, SHARED_GROUP.min(largest))
            }
        };
        Ok(Self {
            plane: index,
            program,
            kernel,
            name,
            range,
            pattern,
            whole_row,
            run,
            extra,
            is_direct: plan.variant == HistogramVariant::Direct,
            bins: to_u32(bins, "bins")?,
            shift,
        })
    }

    /// Number of rows that are counted.
    pub fn rows(&self) -> usize {
        (self.pattern.rows[1] - self.pattern.rows[0]).max(0) as usize
    }

    /// The plane's own tables and their length in bytes; zero before and after each frame.
    pub fn tables(&self) -> Option<(&Mem, usize)> {
        match &self.extra {
            Extra::Pairs(memory, bytes) => Some((memory, *bytes)),
            _ => None,
        }
    }

    /// Enqueues the count into `counters`; does nothing if no sample is counted. `slot` selects
    /// this frame's table of the two in `counters`.
    ///
    /// # Errors
    /// The failing call.
    pub fn enqueue(
        &mut self,
        submission: &mut Submission,
        plane: &Plane,
        image: Option<&ClImage>,
        (counters, table_len, slot): (&Mem, usize, usize),
    ) -> Result<(), ClError> {
        let [first, mut last] = self.pattern.span();
        let y0 = self.pattern.rows[0];
        let mut rows = self.pattern.rows[1] - y0;
        if first >= last || rows <= 0 {
            return Ok(());
        }
        let mut end = self.pattern.end;
        let [src, offset, stride] = source_args(plane, image, 0)?;
        if let (Some(run), Extra::Banked(table)) = (&mut self.run, &self.extra)
            && plane.stride == self.whole_row
        {
            let start = plane.offset + y0 as usize * plane.stride;
            let bytes = self.whole_row * rows as usize;
            let [most, items] = run.groups;
            let groups = bytes.div_ceil(LEAST_RUN).clamp(1, most);
            let mut args = vec![
                src,
                Arg::U64(start as u64),
                Arg::U64(bytes as u64),
                Arg::I32x4(self.pattern.channel),
                Arg::Mem(counters),
            ];
            args.extend(table.args(table_len, slot)?);
            let range = NdRange::groups(groups, items);
            return submission.run(&mut run.kernel, "histogram_run", &args, &range);
        }
        if let Extra::Banked(_) = self.extra
            && plane.stride == self.whole_row
            && let Some(all) = last
                .checked_mul(rows)
                .filter(|_| plane.stride * rows as usize <= i32::MAX as usize)
        {
            // Without gaps between them, the rows are one long row.
            end = end.map(|e| e * rows);
            (last, rows) = (all, 1);
        }
        let mut args = vec![src, offset, stride];
        // `histogram_direct` counts one channel.
        if !self.is_direct {
            let pattern = [self.pattern.channel, self.pattern.begin, end];
            args.extend(pattern.map(Arg::I32x4));
        }
        args.extend([
            Arg::I32(first),
            Arg::I32(last),
            Arg::I32(y0),
            Arg::I32(rows),
            Arg::U32(self.shift),
            Arg::U32(self.bins),
            Arg::Mem(counters),
        ]);
        match &self.extra {
            Extra::Tables => args.push(Arg::U32(to_u32(table_len, "a table")?)),
            Extra::Pairs(memory, _) => {
                args.push(Arg::U32(to_u32(table_len, "a table")?));
                args.push(Arg::Mem(memory));
            }
            Extra::Local(bytes) => {
                args.push(Arg::U32(to_u32(table_len, "a table")?));
                args.push(Arg::Local(*bytes));
            }
            Extra::Banked(table) => args.extend(table.args(table_len, slot)?),
        }
        submission.run(&mut self.kernel, self.name, &args, &self.range)
    }
}
