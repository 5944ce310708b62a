//! The Gaussian of every component plane; kernels in `kernels/gaussian.cl`.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    layout::{FrameLayout, SampleType},
    variant::{
        COLUMN_SAMPLES, GaussianShape, GaussianVariant, RowKernel, gaussian_variant, row_kernel,
        tile_bytes, tile_halo,
    },
    weights::{KERNEL_SIZE_RANGE, weights_f64, weights_q8},
    window::{Reach, Window},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{
    Arg, ClContext, Completion, Kernel, Mem, Meter, NdRange, ProgramSource, Submission,
};
use gst::glib;

use super::{
    WARM_UP_ROWS, sample_options,
    source::{PlaneImages, plain_group, source_args, target_args},
    to_i32, to_u32,
};

/// Bands of rows per compute unit of a CPU: enough to balance the load, few enough to keep adjacent
/// rows together.
const BANDS_PER_UNIT: usize = 4;
/// Each scratch line is this many sums longer than a row needs.
const LINE_PADDING: usize = 32;

/// The number format of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClGaussianArithmetic")]
pub enum Arithmetic {
    /// Integer.
    #[default]
    #[enum_value(name = "Auto: integer", nick = "auto")]
    Auto,
    /// Weights in 1/256, exact sums, one rounding.
    #[enum_value(
        name = "Integer: exact, one rounding, the same bits on every device",
        nick = "integer"
    )]
    Integer,
    /// f32 weights and sums, rounded half to even.
    #[enum_value(
        name = "Float: 32-bit floats, within 1 of the exact value",
        nick = "float"
    )]
    Float,
}

/// The settings of a Gaussian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianSettings {
    /// Taps along each axis, odd, 3..31.
    pub kernel_size: usize,
    /// Standard deviation, px; ≤ 0 derives it from the size.
    pub sigma_px: f64,
    /// The number format of the sums.
    pub arithmetic: Arithmetic,
    /// Read from images instead of buffers.
    pub image: bool,
    /// Forces a variant; refused if the device cannot run it.
    pub variant: Option<GaussianVariant>,
}

impl GaussianSettings {
    /// Checks what neither frames nor a device decide.
    ///
    /// # Errors
    /// [`ClError::Refused`] for an even or out-of-range kernel size.
    pub fn check(&self) -> Result<(), ClError> {
        let taps = self.kernel_size;
        if KERNEL_SIZE_RANGE.contains(&taps) && !taps.is_multiple_of(2) {
            return Ok(());
        }
        let (least, most) = (KERNEL_SIZE_RANGE.start(), KERNEL_SIZE_RANGE.end());
        let why = if KERNEL_SIZE_RANGE.contains(&taps) {
            "even, so the kernel has no centre pixel"
        } else {
            "out of range"
        };
        Err(ClError::Refused(format!(
            "kernel-size={taps} is {why}; set an odd number from {least} to {most}"
        )))
    }
}

/// One launch: a plane whose components are filtered together, or one component of a plane.
#[derive(Debug)]
struct PlaneFilter {
    plane: usize,
    /// Rows of the frame per row of the plane, as a shift.
    subsampling: u32,
    /// The rows to filter.
    rows: Window,
    offset: usize,
    /// Samples per row, and rows.
    extent: [usize; 2],
    lanes: usize,
    copy_lane: i32,
    kernel: Kernel,
    name: &'static str,
    launch: Launch,
}

#[derive(Debug)]
enum Launch {
    Rows {
        items: usize,
        scratch: Mem,
        line_len: usize,
    },
    Bytes {
        items: usize,
    },
    Binomial {
        items: usize,
    },
    Tile {
        columns: usize,
        groups: [usize; 2],
    },
    Direct {
        group: [usize; 2],
    },
}

/// A Gaussian for frames of one layout.
#[derive(Debug)]
pub struct Gaussian {
    context: Arc<ClContext>,
    passes: Vec<PlaneFilter>,
    weights: Mem,
    images: Option<PlaneImages>,
    bytes: usize,
    /// Rows of the frame that an output row needs above and below its own.
    reach: usize,
}

impl Gaussian {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once.
    ///
    /// # Errors
    /// [`ClError::Refused`] for an even or out-of-range kernel size, a frame that is too large for
    /// an image, or a forced variant that the device cannot run; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &GaussianSettings,
    ) -> Result<Self, ClError> {
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        // The warm-up uses the tiles of the whole frame.
        let mut warm = Self::prepare(context, &small, settings, layout)?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        warm.run(&input, &output, &meter)?.wait("the Gaussian")?;
        Self::prepare(context, layout, settings, layout)
    }

    /// The kernels for frames of `whole`, for smaller test frames.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub(crate) fn for_trial(
        context: &Arc<ClContext>,
        small: &FrameLayout,
        settings: &GaussianSettings,
        whole: &FrameLayout,
    ) -> Result<Self, ClError> {
        Self::prepare(context, small, settings, whole)
    }

    /// The device.
    pub(crate) fn context(&self) -> &Arc<ClContext> {
        &self.context
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &GaussianSettings,
        whole: &FrameLayout,
    ) -> Result<Self, ClError> {
        settings.check()?;
        let taps = settings.kernel_size;
        let bytes: Vec<u8> = match settings.arithmetic {
            Arithmetic::Auto | Arithmetic::Integer => weights_q8(taps, settings.sigma_px)
                .iter()
                .flat_map(|w| w.to_ne_bytes())
                .collect(),
            Arithmetic::Float => weights_f64(taps, settings.sigma_px)
                .iter()
                .flat_map(|&w| (w as f32).to_ne_bytes())
                .collect(),
        };
        let weights = context.device_memory(bytes.len())?;
        context.write(&weights, 0, &bytes, "weights")?;
        let images = settings
            .image
            .then(|| PlaneImages::new(context, layout))
            .transpose()?;
        let mut passes = Vec::new();
        for (index, plane) in layout.planes.iter().enumerate() {
            if plane.uniform {
                let samples = plane.row_bytes / layout.sample.bytes();
                let copy_lane = plane.lanes.iter().position(Option::is_none);
                let copy_lane = copy_lane.map_or(Ok(-1), |lane| to_i32(lane, "a lane"))?;
                let view = View {
                    plane: index,
                    offset: 0,
                    samples,
                    rows: plane.rows,
                    lanes: plane.lanes.len(),
                    copy_lane,
                    pitch: 1,
                };
                passes.push(PlaneFilter::new(context, layout, settings, whole, view)?);
            } else {
                for c in layout.components.iter().filter(|c| c.plane == index) {
                    let view = View {
                        plane: index,
                        offset: c.offset,
                        samples: c.width,
                        rows: c.height,
                        lanes: 1,
                        copy_lane: -1,
                        pitch: c.pixel_stride / layout.sample.bytes(),
                    };
                    passes.push(PlaneFilter::new(context, layout, settings, whole, view)?);
                }
            }
        }
        Ok(Self {
            context: context.clone(),
            passes,
            weights,
            images,
            bytes: layout.bytes(),
            reach: (taps / 2) << layout.largest_row_shift(),
        })
    }

    /// Names of the kernels, one for each plane or component.
    pub fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.passes.iter().map(|pass| pass.name)
    }

    /// Rows of a web that a strip needs besides its own.
    pub fn reach(&self) -> Reach {
        Reach {
            both: self.reach,
            ..Reach::default()
        }
    }

    /// From now on the rows of a window are filtered, until then whole frames.
    pub fn take(&mut self, window: &Window) {
        for pass in &mut self.passes {
            pass.rows = window.subsampled(pass.subsampling);
        }
    }

    /// Enqueues the filter; the completion is that of the last plane. `input` holds the rows of the window, `output` the
    /// processed ones.
    ///
    /// # Errors
    /// The failing call; the output's contents are then undefined.
    pub fn run(
        &mut self,
        input: &ClFrame,
        output: &ClFrame,
        meter: &Meter,
    ) -> Result<Completion, ClError> {
        let context = self.context.clone();
        context.together(|| self.enqueue(input, output, context.submit(meter, self.bytes)))
    }

    fn enqueue(
        &mut self,
        input: &ClFrame,
        output: &ClFrame,
        mut submission: Submission,
    ) -> Result<Completion, ClError> {
        if let Some(images) = &mut self.images {
            images.update(input, &mut submission)?;
        }
        for pass in &mut self.passes {
            let image = self
                .images
                .as_ref()
                .and_then(|images| images.get(pass.plane));
            let (from, to) = (input.plane(pass.plane)?, output.plane(pass.plane)?);
            let [src, src_offset, src_stride] = source_args(from, image, pass.offset)?;
            let [dst, dst_offset, dst_stride] = target_args(to, pass.offset)?;
            let mut args = vec![
                src,
                src_offset,
                src_stride,
                dst,
                dst_offset,
                dst_stride,
                Arg::I32(to_i32(pass.extent[0], "a row")?),
                Arg::I32(to_i32(pass.extent[1], "a height")?),
                Arg::I32(to_i32(pass.rows.first, "a row")?),
                Arg::I32(to_i32(pass.rows.height, "a height")?),
                Arg::I32(pass.copy_lane),
            ];
            // What a kernel has as constants is no argument.
            if !matches!(pass.launch, Launch::Tile { .. }) {
                args.push(Arg::I32(to_i32(pass.lanes, "a pattern")?));
            }
            if !matches!(pass.launch, Launch::Binomial { .. }) {
                args.push(Arg::Mem(&self.weights));
            }
            let range = match &pass.launch {
                Launch::Rows {
                    items,
                    scratch,
                    line_len,
                } => {
                    args.push(Arg::Mem(scratch));
                    args.push(Arg::U32(to_u32(*line_len, "a line")?));
                    NdRange::groups(*items, 1)
                }
                Launch::Bytes { items } | Launch::Binomial { items } => NdRange::groups(*items, 1),
                Launch::Tile { columns, groups } => NdRange::tiles(*groups, *columns),
                Launch::Direct { group } => NdRange::cover(pass.extent, *group),
            };
            submission.run(&mut pass.kernel, pass.name, &args, &range)?;
        }
        submission.pass_on()
    }
}

/// Samples that one launch filters: a plane, or a component among others in a plane.
struct View {
    /// Index of the plane.
    plane: usize,
    /// Offset of the first sample, bytes.
    offset: usize,
    /// Samples per row.
    samples: usize,
    rows: usize,
    /// Components that follow each other in a row and are filtered together.
    lanes: usize,
    /// The lane that is copied instead, such as padding; -1 for none.
    copy_lane: i32,
    /// Samples from one sample of a row to the next.
    pitch: usize,
}

impl PlaneFilter {
    fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &GaussianSettings,
        whole: &FrameLayout,
        view: View,
    ) -> Result<Self, ClError> {
        let View {
            plane,
            offset,
            samples,
            rows,
            lanes,
            copy_lane,
            pitch,
        } = view;
        let taps = settings.kernel_size;
        let integer = settings.arithmetic != Arithmetic::Float;
        let shape = GaussianShape {
            taps,
            lanes,
            packed: integer && layout.sample == SampleType::U8,
            extent: whole.planes.first().map_or([0; 2], |largest| {
                [largest.row_bytes / layout.sample.bytes(), largest.rows]
            }),
            image: settings.image,
        };
        let variant = match settings.variant {
            Some(forced) => {
                check_forced(context, forced, &shape)?;
                forced
            }
            None => gaussian_variant(context.caps(), &shape),
        };
        let weights = integer.then(|| weights_q8(taps, settings.sigma_px));
        let bytes = layout.sample == SampleType::U8;
        let rows_by = row_kernel(samples, weights.as_deref(), bytes, pitch);
        let mut options = format!(
            "{} -DTAPS={taps} -DSAMPLE_STEP={pitch} -DFLOAT_ARITHMETIC={}",
            sample_options(layout.sample, settings.image),
            u8::from(!integer),
        );
        if let GaussianVariant::Tile { columns, rows } = variant {
            options += &format!(" -DLANES={lanes} -DTILE_COLUMNS={columns} -DTILE_ROWS={rows}");
        }
        let (source, mut name) = match variant {
            GaussianVariant::Rows => match rows_by {
                RowKernel::Binomial => (ProgramSource::GaussianBinomial, "gaussian_binomial"),
                RowKernel::Bytes => (ProgramSource::GaussianBytes, "gaussian_bytes"),
                RowKernel::Any => (ProgramSource::GaussianRows, "gaussian_rows"),
            },
            GaussianVariant::Tile { .. } => (ProgramSource::GaussianTile, "gaussian_tile"),
            GaussianVariant::Direct => (ProgramSource::Gaussian, "gaussian_direct"),
        };
        let program = context.program(source, &options)?;
        let mut kernel = program.kernel(name)?;
        let halo = (taps - 1) * lanes;
        let mut launch = match variant {
            GaussianVariant::Rows => {
                let items = (context.caps().compute_units * BANDS_PER_UNIT).min(rows.max(1));
                match rows_by {
                    RowKernel::Binomial => Launch::Binomial { items },
                    RowKernel::Bytes => Launch::Bytes { items },
                    RowKernel::Any => {
                        let line_len = samples + halo + LINE_PADDING;
                        let bytes = items * line_len * size_of::<u32>();
                        Launch::Rows {
                            items,
                            scratch: context.device_memory(bytes)?,
                            line_len,
                        }
                    }
                }
            }
            GaussianVariant::Tile {
                columns,
                rows: tile_rows,
            } => {
                let across = COLUMN_SAMPLES * (columns - 2 * tile_halo(taps, lanes));
                Launch::Tile {
                    columns,
                    groups: [samples.div_ceil(across), rows.div_ceil(tile_rows)],
                }
            }
            GaussianVariant::Direct => Launch::Direct {
                group: plain_group(context, &kernel)?,
            },
        };
        if let Launch::Tile { columns, .. } = &launch
            && *columns > context.kernel_work_group(&kernel)?
        {
            // The kernel needs more registers per work-item than the device's limits show.
            name = "gaussian_direct";
            kernel = program.kernel(name)?;
            launch = Launch::Direct {
                group: plain_group(context, &kernel)?,
            };
        }
        let subsampling = layout.row_shift(plane);
        Ok(Self {
            plane,
            subsampling,
            rows: Window::frame(layout.height).subsampled(subsampling),
            offset,
            extent: [samples, rows],
            lanes,
            copy_lane,
            kernel,
            name,
            launch,
        })
    }
}

/// Refuses a forced variant that this device cannot run.
fn check_forced(
    context: &ClContext,
    variant: GaussianVariant,
    shape: &GaussianShape,
) -> Result<(), ClError> {
    let refused = |why: String| Err(ClError::Refused(format!("{variant:?} {why}")));
    let caps = context.caps();
    match variant {
        GaussianVariant::Direct => Ok(()),
        GaussianVariant::Rows | GaussianVariant::Tile { .. } if shape.image => {
            refused("reads buffers, not images".into())
        }
        GaussianVariant::Rows => Ok(()),
        GaussianVariant::Tile { columns, rows } => {
            let most = caps.max_work_group.min(caps.max_work_item[0]);
            if rows == 0 || !(1..=most).contains(&columns) {
                return refused(format!(
                    "is not a work-group size that {} supports",
                    context.device_name()
                ));
            }
            let halo = 2 * tile_halo(shape.taps, shape.lanes);
            if columns <= halo {
                return refused(format!("has no columns besides its halo of {halo}"));
            }
            let needed = tile_bytes(columns, rows, shape.packed);
            if needed > caps.local_memory {
                return refused(format!(
                    "needs {needed} bytes of local memory, {} has {}",
                    context.device_name(),
                    caps.local_memory
                ));
            }
            Ok(())
        }
    }
}
