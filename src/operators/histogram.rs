//! Histograms of every component of a frame; kernels in `kernels/histogram.cl`.

use std::sync::Arc;

use crate::{
    error::ClError,
    frame::ClFrame,
    math::{
        layout::{Layout, PlaneLayout, SampleType},
        ndrange::NdRange,
        region::Rect,
        variant::{HistogramShape, HistogramVariant, banked_copies, histogram_variant, local_fits},
    },
    opencl::{Arg, ClContext, Event, Kernel, Mem, Meter, ProgramSource, Step},
};

use super::{
    WARM_UP_ROWS, sample_options,
    source::{PlaneImages, plane_args},
    to_i32, to_u32,
};

/// Samples of a row's pattern that the kernels can tell apart.
const MAX_PERIOD: usize = 4;
/// Device memory that tables of work-items may take, bytes.
const TABLE_BUDGET: usize = 64 << 20;
/// Work-items with a table of their own per compute unit of a GPU.
const PRIVATE_ITEMS_PER_UNIT: usize = 128;
/// Work-items of a group that share local memory, and such groups per compute unit.
const SHARED_GROUP: usize = 512;
const SHARED_GROUPS_PER_UNIT: usize = 2;
/// Counters of a pair table and its distance to the next (`PAIR_TABLE_LEN` of the kernel).
const PAIR_TABLE_LEN: usize = 65_536 + 1_040;
/// Tables of a work-item of `histogram_direct` (`SAMPLE_TABLES` of the kernel).
const SAMPLE_TABLES: usize = 4;
/// Bytes of a counter.
const COUNTER: usize = size_of::<u32>();

/// How counting is asked for: `HistogramVariant` less what the device decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Pairs of bytes.
    Pairs,
    /// A table per work-item.
    Private,
    /// Copies of each counter, one per bank.
    Banked,
    /// One table per work-group.
    Local,
}

/// What to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramSettings {
    /// Bins a channel; a power of two, at most 2^depth.
    pub bins: usize,
    /// Bits of a sample that a camera fills; 0 for what the format holds.
    pub bit_depth: u32,
    /// Pixels to count.
    pub region: Rect,
    /// A strategy to force.
    pub strategy: Option<Strategy>,
    /// Read from images instead of buffers.
    pub image: bool,
}

/// A histogram of frames of one layout.
#[derive(Debug)]
pub struct Histogram {
    context: Arc<ClContext>,
    variant: HistogramVariant,
    passes: Vec<Pass>,
    merge: Option<Merge>,
    out: Mem,
    table_len: usize,
    bins: usize,
    bit_depth: u32,
    images: Option<PlaneImages>,
    bytes: usize,
}

/// One plane's launch.
#[derive(Debug)]
struct Pass {
    plane: usize,
    kernel: Kernel,
    name: &'static str,
    range: NdRange,
    channel: [i32; MAX_PERIOD],
    begin: [i32; MAX_PERIOD],
    end: [i32; MAX_PERIOD],
    rows: [i32; 2],
    last: Launch,
}

/// The arguments in which the strategies differ.
#[derive(Debug)]
enum Launch {
    /// None but the counters.
    Tables,
    Pairs(Mem),
    Shared {
        local_bytes: usize,
    },
}

/// Tables of work-items and the kernel that sums them.
#[derive(Debug)]
struct Merge {
    tables: Mem,
    count: usize,
    kernel: Kernel,
}

/// Bits that samples fill.
///
/// # Errors
/// [`ClError::Refused`] where `bit_depth` does not fit the format.
pub(super) fn effective_depth(bit_depth: u32, sample: SampleType) -> Result<u32, ClError> {
    let bits = sample.bits();
    match bit_depth {
        0 => Ok(bits),
        8 if bits == 8 => Ok(8),
        1..=16 if bits == 16 => Ok(bit_depth),
        _ => Err(ClError::Refused(format!(
            "bit-depth={bit_depth} does not go with {bits}-bit samples: set it to 0{}",
            if bits == 16 { " or to 1..16" } else { "" }
        ))),
    }
}

impl Histogram {
    /// Prepares kernels for frames of `layout`, compiled and run once.
    ///
    /// # Errors
    /// [`ClError::Refused`] for bins over the depth, a region that could overflow a counter, a
    /// strategy that the device or the format cannot run; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &Layout,
        settings: &HistogramSettings,
    ) -> Result<Self, ClError> {
        let histogram = Self::prepare(context, layout, settings, None)?;
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let warm_settings = HistogramSettings {
            region: Rect::new(0, 0, small.width, small.height),
            ..*settings
        };
        let mut warm = Self::prepare(context, &small, &warm_settings, Some(histogram.variant))?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        warm.run(&input, &meter, &mut Vec::new())?;
        Ok(histogram)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &Layout,
        settings: &HistogramSettings,
        variant: Option<HistogramVariant>,
    ) -> Result<Self, ClError> {
        let bit_depth = effective_depth(settings.bit_depth, layout.sample)?;
        let bins = settings.bins;
        if !bins.is_power_of_two() || bins > 1 << bit_depth {
            return Err(ClError::Refused(format!(
                "bins={bins} is no power of two up to {}, the number of levels of {bit_depth}-bit \
                 samples: lower bins{}",
                1_u32 << bit_depth,
                if layout.sample == SampleType::U8 {
                    ""
                } else {
                    " or raise bit-depth"
                }
            )));
        }
        let region = settings.region;
        let pixels = region.width() as u64 * region.height() as u64;
        if pixels > u64::from(u32::MAX) {
            return Err(ClError::Refused(format!(
                "a region of {pixels} pixels could overflow a 32-bit counter: set a smaller roi"
            )));
        }
        let counters = layout.components.len() * bins;
        let shape = HistogramShape {
            counters,
            bytes: layout.sample == SampleType::U8,
            samples: pixels,
            image: settings.image,
        };
        let variant = match variant {
            Some(variant) => variant,
            None => choose(context, &shape, settings.strategy)?,
        };
        let images = settings
            .image
            .then(|| PlaneImages::new(context, layout))
            .transpose()?;
        let out = context.device_memory(counters * COUNTER)?;
        let mut histogram = Self {
            context: context.clone(),
            variant,
            passes: Vec::new(),
            merge: None,
            out,
            table_len: counters,
            bins,
            bit_depth,
            images,
            bytes: 0,
        };
        let tables = histogram.table_count();
        for (index, plane) in layout.planes.iter().enumerate() {
            if plane.lanes.len() > MAX_PERIOD {
                return Err(ClError::Refused(
                    "a format with more than four samples a pixel is not supported".into(),
                ));
            }
            let pass = histogram.pass(layout, index, plane, settings, tables)?;
            let rows = (pass.rows[1] - pass.rows[0]).max(0) as usize;
            histogram.bytes += rows * plane.row_bytes * region.width() / layout.width.max(1);
            histogram.passes.push(pass);
        }
        if tables > 0 {
            let program = context.program(
                ProgramSource::Histogram,
                &sample_options(layout.sample, false),
            )?;
            let memory = context.device_memory(tables * counters * COUNTER)?;
            context.zero(&memory, tables * counters * COUNTER, "histogram tables")?;
            histogram.merge = Some(Merge {
                tables: memory,
                count: tables,
                kernel: program.kernel("histogram_merge")?,
            });
        }
        Ok(histogram)
    }

    /// The variant that counts.
    pub fn variant(&self) -> HistogramVariant {
        self.variant
    }

    /// Bins a channel.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Bits that samples fill.
    pub fn bit_depth(&self) -> u32 {
        self.bit_depth
    }

    /// Tables of work-items that the variant needs; 0 where groups share one.
    fn table_count(&self) -> usize {
        let caps = self.context.caps();
        match self.variant {
            HistogramVariant::Pairs => caps.compute_units,
            HistogramVariant::Direct => {
                let fit = TABLE_BUDGET / (SAMPLE_TABLES * self.table_len * COUNTER);
                SAMPLE_TABLES * caps.compute_units.min(fit).max(1)
            }
            HistogramVariant::Private => {
                let wish = if caps.is_cpu {
                    caps.compute_units
                } else {
                    caps.compute_units * PRIVATE_ITEMS_PER_UNIT
                };
                wish.min(TABLE_BUDGET / (self.table_len * COUNTER)).max(1)
            }
            HistogramVariant::Banked { .. } | HistogramVariant::Local => 0,
        }
    }

    fn pass(
        &self,
        layout: &Layout,
        index: usize,
        plane: &PlaneLayout,
        settings: &HistogramSettings,
        tables: usize,
    ) -> Result<Pass, ClError> {
        let context = &self.context;
        let period = plane.lanes.len();
        let mut channel = [-1; MAX_PERIOD];
        let mut begin = [0; MAX_PERIOD];
        let mut end = [0; MAX_PERIOD];
        let mut rows = [0; 2];
        for (lane, component) in plane.lanes.iter().enumerate() {
            let Some(c) = *component else { continue };
            let info = &layout.components[c];
            let part = settings
                .region
                .subsample(info.w_sub, info.h_sub, info.width, info.height);
            // Samples of one component repeat within the pattern where it is not the coarsest.
            let step = info.pixel_stride / layout.sample.bytes();
            let first = (lane - info.offset / layout.sample.bytes()) / step;
            let repeats = period / step;
            channel[lane] = to_i32(c, "a channel")?;
            begin[lane] = to_i32(part.x0.saturating_sub(first).div_ceil(repeats), "a region")?;
            end[lane] = to_i32(part.x1.saturating_sub(first).div_ceil(repeats), "a region")?;
            rows = [to_i32(part.y0, "a region")?, to_i32(part.y1, "a region")?];
        }
        let (copies, shared_len) = match self.variant {
            HistogramVariant::Banked { copies } => (copies, self.table_len),
            _ => (1, 1),
        };
        // Frames may start anywhere where host memory is used in place.
        let aligned = !context.caps().shares_host_memory;
        let options = format!(
            "{} -DPERIOD={period} -DCOPIES={copies} -DTABLE_LEN={shared_len} -DALIGNED_BASE={}",
            sample_options(layout.sample, settings.image),
            u8::from(aligned),
        );
        let (source, name) = match self.variant {
            HistogramVariant::Pairs => (ProgramSource::HistogramPairs, "histogram_pairs"),
            HistogramVariant::Direct => (ProgramSource::HistogramDirect, "histogram_direct"),
            HistogramVariant::Private => (ProgramSource::Histogram, "histogram_private"),
            HistogramVariant::Banked { .. } => (ProgramSource::HistogramBanked, "histogram_banked"),
            HistogramVariant::Local => (ProgramSource::Histogram, "histogram_local"),
        };
        let kernel = context.program(source, &options)?.kernel(name)?;
        let (range, last) = match self.variant {
            HistogramVariant::Pairs => {
                let per_item = PAIR_TABLE_LEN * if period == 3 { 3 } else { period.div_ceil(2) };
                let bytes = tables * per_item * COUNTER;
                let memory = context.device_memory(bytes)?;
                context.zero(&memory, bytes, "pair tables")?;
                (NdRange::groups(tables, 1), Launch::Pairs(memory))
            }
            HistogramVariant::Direct => {
                (NdRange::groups(tables / SAMPLE_TABLES, 1), Launch::Tables)
            }
            HistogramVariant::Private => {
                let local = if context.caps().is_cpu { 1 } else { 32 };
                let local = local.min(context.kernel_work_group(&kernel)?);
                let local = if tables.is_multiple_of(local) {
                    local
                } else {
                    1
                };
                (NdRange::groups(tables / local, local), Launch::Tables)
            }
            HistogramVariant::Banked { .. } | HistogramVariant::Local => {
                let group = SHARED_GROUP.min(context.kernel_work_group(&kernel)?);
                let groups = context.caps().compute_units * SHARED_GROUPS_PER_UNIT;
                let launch = match self.variant {
                    // Its counters are part of the program.
                    HistogramVariant::Banked { .. } => Launch::Tables,
                    _ => Launch::Shared {
                        local_bytes: self.table_len * COUNTER,
                    },
                };
                (NdRange::groups(groups, group), launch)
            }
        };
        Ok(Pass {
            plane: index,
            kernel,
            name,
            range,
            channel,
            begin,
            end,
            rows,
            last,
        })
    }

    /// Counts a frame, waits, and leaves the channel-major bins in `bins`.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        meter: &Meter,
        bins: &mut Vec<u32>,
    ) -> Result<(), ClError> {
        let result = self.count(frame, meter, bins);
        if result.is_ok() {
            frame.end_use();
        }
        result
    }

    fn count(
        &mut self,
        frame: &ClFrame,
        meter: &Meter,
        bins: &mut Vec<u32>,
    ) -> Result<(), ClError> {
        let context = &self.context;
        let writers = frame.writers();
        let waits: Vec<&Event> = writers.iter().map(AsRef::as_ref).collect();
        frame.begin_use();
        let mut events = match &mut self.images {
            Some(images) => images.update(frame, &waits, meter)?,
            None => Vec::with_capacity(self.passes.len() + 2),
        };
        if self.merge.is_none() {
            let zeroed = context.zero(&self.out, self.table_len * COUNTER, "histogram counters")?;
            events.push(Arc::new(zeroed));
        }
        let table_len = Arg::U32(to_u32(self.table_len, "a table")?);
        for pass in &mut self.passes {
            let image = self
                .images
                .as_ref()
                .and_then(|images| images.get(pass.plane));
            let plane = frame
                .planes()
                .get(pass.plane)
                .ok_or_else(|| ClError::Input(format!("plane {} is missing", pass.plane)))?;
            let [src, offset, stride] = plane_args(plane, image, 0)?;
            let used = || (0..MAX_PERIOD).filter(|&lane| pass.channel[lane] >= 0);
            let first = used().map(|lane| pass.begin[lane]).min().unwrap_or(0);
            let last = used().map(|lane| pass.end[lane]).max().unwrap_or(0);
            let rows = pass.rows[1] - pass.rows[0];
            if first >= last || rows <= 0 {
                continue;
            }
            let shift = self.bit_depth - self.bins.ilog2();
            let mut args = vec![
                src,
                offset,
                stride,
                Arg::I32x4(pass.channel),
                Arg::I32x4(pass.begin),
                Arg::I32x4(pass.end),
                Arg::I32(first),
                Arg::I32(last),
                Arg::I32(pass.rows[0]),
                Arg::I32(rows),
                Arg::U32(shift),
                Arg::U32(to_u32(self.bins, "bins")?),
            ];
            let target = self.merge.as_ref().map_or(&self.out, |merge| &merge.tables);
            args.extend([Arg::Mem(target), table_len]);
            match &pass.last {
                Launch::Tables => {}
                Launch::Pairs(memory) => args.push(Arg::Mem(memory)),
                Launch::Shared { local_bytes } => args.push(Arg::Local(*local_bytes)),
            }
            let event = context.run(&mut pass.kernel, pass.name, &args, &pass.range, &waits)?;
            events.push(Arc::new(event));
        }
        if let Some(merge) = &mut self.merge {
            let args = [
                Arg::Mem(&merge.tables),
                table_len,
                Arg::U32(to_u32(merge.count, "tables")?),
                Arg::Mem(&self.out),
            ];
            let range = NdRange::linear(self.table_len);
            let event = context.run(&mut merge.kernel, "histogram_merge", &args, &range, &[])?;
            events.push(Arc::new(event));
        }
        if let (Some(first), Some(last)) = (events.first(), events.last()) {
            meter.measure(Step::Kernel, first, last, self.bytes);
        }
        bins.clear();
        bins.resize(self.table_len, 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(bins);
        let waits: Vec<&Event> = events.last().map(AsRef::as_ref).into_iter().collect();
        let read = context.read(&self.out, 0, bytes, &waits, "the histogram")?;
        meter.result(Arc::new(read), bytes.len());
        Ok(())
    }
}

/// The variant in use, where a strategy is forced or left to the device.
fn choose(
    context: &ClContext,
    shape: &HistogramShape,
    strategy: Option<Strategy>,
) -> Result<HistogramVariant, ClError> {
    let caps = context.caps();
    let refused = |why: &str| {
        Err(ClError::Refused(format!(
            "{why}: set strategy=auto or another one"
        )))
    };
    match strategy {
        None => Ok(histogram_variant(caps, shape)),
        Some(Strategy::Private) => Ok(HistogramVariant::Private),
        Some(Strategy::Pairs) if shape.image || !shape.bytes => {
            refused("strategy=pairs needs 8-bit samples in buffers")
        }
        Some(Strategy::Pairs) => Ok(HistogramVariant::Pairs),
        Some(Strategy::Banked) if shape.image => refused("strategy=banked needs buffers"),
        Some(Strategy::Banked) => match banked_copies(caps, shape) {
            Some(copies) => Ok(HistogramVariant::Banked { copies }),
            None => refused(&format!(
                "strategy=banked needs at least two copies of {} counters in {}'s {} bytes of \
                 local memory",
                shape.counters,
                context.device_name(),
                caps.local_memory
            )),
        },
        Some(Strategy::Local) if local_fits(caps, shape) => Ok(HistogramVariant::Local),
        Some(Strategy::Local) => refused(&format!(
            "strategy=local needs {} counters in {}'s {} bytes of local memory",
            shape.counters,
            context.device_name(),
            caps.local_memory
        )),
    }
}
