//! Histograms of every component of a frame; kernels in `kernels/histogram*.cl`.

mod plane_count;

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    layout::{FrameLayout, PlaneLayout, SampleType},
    region::Rect,
    variant::{
        HistogramShape, HistogramVariant, banked_copies, for_another_size, histogram_variant,
        local_fits, without_banks,
    },
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{Arg, ClContext, Kernel, Meter, NdRange, Reading, ResultMemory, Submission};
use gst::glib;

use plane_count::{Plan, PlaneCount, table_count};

use super::{WARM_UP_ROWS, depth::effective_depth, source::PlaneImages, to_u32};

/// Bytes of a counter.
const COUNTER: usize = size_of::<u32>();

/// How samples are counted: a [`HistogramVariant`] without the parameters that the device decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClHistogramStrategy")]
pub enum Strategy {
    /// The fastest strategy for the device.
    #[default]
    #[enum_value(name = "Auto: the fastest strategy for the device", nick = "auto")]
    Auto,
    /// Counts pairs of bytes.
    #[enum_value(
        name = "Pairs: counters of byte pairs, for CPUs and 8-bit formats",
        nick = "pairs"
    )]
    Pairs,
    /// A table per work-item.
    #[enum_value(name = "Private: a table per work-item", nick = "private")]
    Private,
    /// Copies of each counter, one per bank.
    #[enum_value(
        name = "Banked: copies of each counter in local memory, for GPUs",
        nick = "banked"
    )]
    Banked,
    /// One table per work-group.
    #[enum_value(name = "Local: a table per work-group in local memory", nick = "local")]
    Local,
}

/// The settings of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramSettings {
    /// Bins per channel; a power of two, at most 2^depth.
    pub bins: usize,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
    /// Pixels to count.
    pub region: Rect,
    /// How samples are counted.
    pub strategy: Strategy,
    /// Read from images instead of buffers.
    pub image: bool,
}

/// A histogram of frames of one layout.
#[derive(Debug)]
pub struct Histogram {
    context: Arc<ClContext>,
    variant: HistogramVariant,
    passes: Vec<PlaneCount>,
    tables: Option<Tables>,
    /// Counters of two frames; `slot` selects those of the next frame. The host sums small tables into its own counters.
    out: ResultMemory,
    slot: usize,
    clean: bool,
    table_len: usize,
    bins: usize,
    bit_depth: u32,
    images: Option<PlaneImages>,
    bytes: usize,
}

/// Most counters of all tables that the host sums: about 10 us. A launch takes 15 to 40 us.
const MOST_ON_HOST: usize = 16 << 10;
/// What is read, in messages.
const BINS: &str = "the histogram";

/// Tables of the work-items, all zero between frames.
#[derive(Debug)]
struct Tables {
    memory: ResultMemory,
    count: usize,
    /// The kernel that sums them; `None`: the host does.
    kernel: Option<Kernel>,
}

/// Adds tables of `bins.len()` counters to `bins`, and sets them to zero.
fn take_tables(tables: &mut [u32], bins: &mut [u32]) {
    for table in tables.chunks_exact_mut(bins.len().max(1)) {
        for (bin, counter) in bins.iter_mut().zip(table) {
            *bin += std::mem::take(counter);
        }
    }
}

/// Checks the number of bins of samples that fill `bit_depth` of their `sample_bits` bits.
///
/// # Errors
/// [`ClError::Refused`] for more bins than levels, and for a number that is no power of two.
pub fn check_bins(bins: usize, bit_depth: u32, sample_bits: u32) -> Result<(), ClError> {
    let levels = 1_usize << bit_depth;
    if bins > levels {
        let or_deeper = if bit_depth < sample_bits {
            ", or raise bit-depth"
        } else {
            ""
        };
        return Err(ClError::Refused(format!(
            "bins={bins} is more than the {levels} levels of {bit_depth}-bit samples; lower bins to \
             {levels} or less{or_deeper}"
        )));
    }
    if !bins.is_power_of_two() {
        return Err(ClError::Refused(format!(
            "bins={bins} is not a power of two; set one from 2 to {levels}"
        )));
    }
    Ok(())
}

impl Histogram {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once.
    ///
    /// # Errors
    /// [`ClError::Refused`] for more bins than the depth has levels, a region that could overflow a
    /// counter, or a strategy that the device or the format does not support; a failing OpenCL
    /// call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &HistogramSettings,
    ) -> Result<Self, ClError> {
        let automatic = settings.strategy == Strategy::Auto;
        let histogram = match Self::warmed_up(context, layout, settings, None) {
            // The compiler may need more registers per work-item than the device's limits show, and
            // a driver's own limit for a kernel may be wrong: only the warm-up tells.
            Err(error) if error.is_group_too_large() && automatic => {
                let variant = without_banks(context.caps(), &shape(layout, settings));
                Self::warmed_up(context, layout, settings, Some(variant))
            }
            Err(error) if error.is_group_too_large() => Err(ClError::Refused(format!(
                "{} has too few registers for this strategy's work-groups; set strategy=auto or \
                 another one",
                context.device_name()
            ))),
            warm => warm,
        }?;
        // Frames of another size compile nothing.
        if automatic && let Some(other) = for_another_size(histogram.variant) {
            Self::warm_up(context, layout, settings, other)?;
        }
        Ok(histogram)
    }

    fn warmed_up(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &HistogramSettings,
        variant: Option<HistogramVariant>,
    ) -> Result<Self, ClError> {
        let histogram = Self::prepare(context, layout, settings, variant)?;
        Self::warm_up(context, layout, settings, histogram.variant)?;
        Ok(histogram)
    }

    /// Compiles the kernels of `variant` and runs them once.
    fn warm_up(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &HistogramSettings,
        variant: HistogramVariant,
    ) -> Result<(), ClError> {
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let input = ClFrame::scratch(context, &small, &meter)?;
        // Whole rows and parts of rows are counted by two kernels of `Banked`.
        let narrowest = match variant {
            HistogramVariant::Banked { .. } if small.width > 1 => small.width - 1,
            _ => small.width,
        };
        for width in narrowest..=small.width {
            let warm_settings = HistogramSettings {
                region: Rect::new(0, 0, width, small.height),
                ..*settings
            };
            let mut warm = Self::prepare(context, &small, &warm_settings, Some(variant))?;
            warm.run(&input, &meter, &mut Vec::new())?;
        }
        Ok(())
    }

    /// The kernels of `variant`, for test frames.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub(crate) fn for_trial(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &HistogramSettings,
        variant: HistogramVariant,
    ) -> Result<Self, ClError> {
        Self::prepare(context, layout, settings, Some(variant))
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &HistogramSettings,
        variant: Option<HistogramVariant>,
    ) -> Result<Self, ClError> {
        let bit_depth = effective_depth(settings.bit_depth, layout.sample)?;
        let bins = settings.bins;
        check_bins(bins, bit_depth, layout.sample.bits())?;
        let region = settings.region;
        let pixels = region.width() as u64 * region.height() as u64;
        if pixels > u64::from(u32::MAX) {
            return Err(ClError::Refused(format!(
                "a region of {pixels} pixels could overflow a 32-bit counter; set a smaller roi"
            )));
        }
        let shape = shape(layout, settings);
        let counters = shape.counters;
        let variant = match variant {
            Some(variant) => variant,
            None => choose(context, &shape, settings.strategy)?,
        };
        let images = settings
            .image
            .then(|| PlaneImages::new(context, layout))
            .transpose()?;
        let tables = table_count(context, variant, counters);
        let plan = Plan {
            context,
            layout,
            settings,
            variant,
            table_len: counters,
            bit_depth,
            tables,
        };
        let mut passes = Vec::new();
        let mut bytes = 0;
        for (index, plane) in layout.planes.iter().enumerate() {
            let pass = PlaneCount::new(&plan, index, plane)?;
            bytes += pass.rows() * plane.row_bytes * region.width() / layout.width.max(1);
            passes.push(pass);
        }
        let tables = match passes.first() {
            Some(pass) if tables > 0 => {
                let memory = zeroed(context, tables * counters, "histogram tables")?;
                let is_on_host = memory.is_shared() && tables * counters <= MOST_ON_HOST;
                // Every program of histograms has the merging kernel.
                let kernel = || pass.program.kernel("histogram_merge");
                Some(Tables {
                    memory,
                    count: tables,
                    kernel: (!is_on_host).then(kernel).transpose()?,
                })
            }
            _ => None,
        };
        Ok(Self {
            context: context.clone(),
            variant,
            passes,
            tables,
            out: zeroed(context, 2 * counters, "histogram counters")?,
            slot: 0,
            clean: true,
            table_len: counters,
            bins,
            bit_depth,
            images,
            bytes,
        })
    }

    /// The variant in use.
    pub fn variant(&self) -> HistogramVariant {
        self.variant
    }

    /// Bins per channel.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Number of bits that samples fill.
    pub fn bit_depth(&self) -> u32 {
        self.bit_depth
    }

    /// Counts a frame, waits, and writes the bins to `bins`, channel by channel.
    ///
    /// # Errors
    /// The failing call.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        meter: &Meter,
        bins: &mut Vec<u32>,
    ) -> Result<(), ClError> {
        bins.clear();
        bins.resize(self.table_len, 0);
        let context = self.context.clone();
        let enqueued = context.together(|| {
            let submission = context.submit(meter, self.bytes);
            self.enqueue(frame, submission, bins)
        });
        let result = enqueued.and_then(|reading| match reading {
            Some(reading) => reading.finish(&mut [bytemuck::cast_slice_mut(bins)], BINS),
            None => Ok(()),
        });
        if result.is_ok() {
            if let HistogramVariant::Banked { .. } = self.variant {
                self.slot = 1 - self.slot;
            }
        } else {
            // The frame may be counted in part.
            self.clean = false;
        }
        result
    }

    /// Enqueues the count and returns the read of the bins. Where the host shares their memory, waits and takes them.
    fn enqueue<'a>(
        &mut self,
        frame: &ClFrame,
        mut submission: Submission<'a>,
        bins: &mut [u32],
    ) -> Result<Option<Reading<'a>>, ClError> {
        if let Some(images) = &mut self.images {
            images.update(frame, &mut submission)?;
        }
        // The fast kernels count into one table and clear the next frame's; `local` clears its own.
        let slot = self.slot;
        let out = (self.out.mem(), 2 * self.table_len * COUNTER);
        let mut unclean = Vec::new();
        if !self.clean {
            // The tables of work-items are zero only after a complete frame.
            unclean.extend(self.passes.iter().filter_map(PlaneCount::tables));
            let table_bytes = self.table_len * COUNTER;
            unclean.extend((self.tables.iter()).map(|t| (t.memory.mem(), t.count * table_bytes)));
        }
        if self.variant == HistogramVariant::Local || !self.clean {
            unclean.push(out);
        }
        for (memory, bytes) in unclean {
            submission.zero(memory, bytes, "histogram counters")?;
        }
        self.clean = true;
        let table_len = Arg::U32(to_u32(self.table_len, "a table")?);
        for pass in &mut self.passes {
            let image = self
                .images
                .as_ref()
                .and_then(|images| images.get(pass.plane));
            let plane = frame.plane(pass.plane)?;
            let target = self
                .tables
                .as_ref()
                .map_or(&self.out, |tables| &tables.memory);
            let counters = (target.mem(), self.table_len, slot);
            pass.enqueue(&mut submission, plane, image, counters)?;
        }
        if let Some(Tables {
            memory,
            count,
            kernel,
        }) = &mut self.tables
        {
            let Some(kernel) = kernel else {
                let len = self.table_len * COUNTER;
                let tables = submission.shared_result(memory, len, BINS)?;
                let tables = bytemuck::try_cast_slice_mut(tables)
                    .map_err(|why| ClError::Input(format!("tables of a histogram: {why}")))?;
                take_tables(tables, bins);
                return Ok(None);
            };
            let args = [
                Arg::Mem(memory.mem()),
                table_len,
                Arg::U32(to_u32(*count, "tables")?),
                Arg::Mem(self.out.mem()),
            ];
            let range = NdRange::linear(self.table_len);
            submission.run(kernel, "histogram_merge", &args, &range)?;
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(bins);
        let offset = slot * bytes.len();
        if self.out.is_shared() {
            submission.read_result(&mut self.out, offset, bytes, BINS)?;
            return Ok(None);
        }
        let part = (self.out.mem(), offset, bytes.len());
        submission.begin_reads(&[part], BINS).map(Some)
    }
}

/// The work that decides the variant.
fn shape(layout: &FrameLayout, settings: &HistogramSettings) -> HistogramShape {
    let channels = |plane: &PlaneLayout| plane.lanes.iter().flatten().count();
    let most = layout.planes.iter().map(channels).max().unwrap_or(0);
    HistogramShape {
        counters: layout.components.len() * settings.bins,
        plane_counters: most * settings.bins,
        bytes: layout.sample == SampleType::U8,
        samples: settings.region.width() as u64 * settings.region.height() as u64,
        image: settings.image,
    }
}

/// Counters, set to zero.
fn zeroed(
    context: &Arc<ClContext>,
    counters: usize,
    subject: &str,
) -> Result<ResultMemory, ClError> {
    ResultMemory::new(context, counters * COUNTER, subject)
}

/// The variant for the strategy, which is either forced or left to the device.
fn choose(
    context: &ClContext,
    shape: &HistogramShape,
    strategy: Strategy,
) -> Result<HistogramVariant, ClError> {
    let caps = context.caps();
    let refused = |why: &str| {
        Err(ClError::Refused(format!(
            "{why}; set strategy=auto or another strategy"
        )))
    };
    match strategy {
        Strategy::Auto => Ok(histogram_variant(caps, shape)),
        Strategy::Private => Ok(HistogramVariant::Private),
        Strategy::Pairs if shape.image || !shape.bytes => {
            refused("strategy=pairs needs 8-bit samples in buffers")
        }
        Strategy::Pairs => Ok(HistogramVariant::Pairs),
        Strategy::Banked if shape.image => refused("strategy=banked needs memory-object=buffer"),
        Strategy::Banked => match banked_copies(caps, shape) {
            Some(copies) => Ok(HistogramVariant::Banked { copies }),
            None => refused(&format!(
                "strategy=banked needs room for two copies of {} counters in {}'s {} bytes of \
                 local memory",
                shape.plane_counters,
                context.device_name(),
                caps.local_memory
            )),
        },
        Strategy::Local if local_fits(caps, shape) => Ok(HistogramVariant::Local),
        Strategy::Local => refused(&format!(
            "strategy=local needs room for {} counters in {}'s {} bytes of local memory",
            shape.counters,
            context.device_name(),
            caps.local_memory
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::take_tables;

    #[test]
    fn take_tables_sums_and_clears_them() {
        let mut tables = [1, 2, 3, 40, 50, 60, 700, 800, 900];
        let mut bins = [0; 3];
        take_tables(&mut tables, &mut bins);
        assert_eq!((bins, tables), ([741, 852, 963], [0; 9]));
        take_tables(&mut tables, &mut bins);
        assert_eq!(bins, [741, 852, 963]);
        take_tables(&mut [], &mut []);
    }
}
