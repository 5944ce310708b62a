//! Packed samples and Bayer pictures become grey or colour; kernels in `kernels/unpack.cl` and
//! `kernels/demosaic*.cl`.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    kernels::{
        self,
        demosaic_items::{ITEM_PIXELS, ITEM_ROWS},
    },
    layout::{Component, FrameLayout, SampleType},
    unpack::{Demosaic, Encoding, Output, Packing},
    variant::{UnpackVariant, unpack_variant},
};
use clinspect_opencl::{
    Arg, ClContext, Completion, Kernel, Meter, NdRange, ProgramSource, frame::ClFrame,
};

use super::{
    WARM_UP_ROWS, sample_options,
    self_test::Trial,
    source::{plain_group, source_args, target_args},
    to_i32,
};

/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;

/// Unpacks frames of one size.
#[derive(Debug)]
pub struct Unpack {
    context: Arc<ClContext>,
    kernel: Kernel,
    name: &'static str,
    range: NdRange,
    size: [usize; 2],
    /// Bytes of a frame and of its result.
    bytes: usize,
}

impl Unpack {
    /// Prepares the kernel for frames of `size`, width and height in samples: compiles it, runs it once, and tests its
    /// results.
    ///
    /// # Errors
    /// [`ClError::Refused`] for what [`Encoding::check`] refuses; [`ClError::Unavailable`] for a wrong result; a failing
    /// OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        encoding: Encoding,
        demosaic: Demosaic,
        output: Output,
        size: [usize; 2],
        trial: &Trial,
    ) -> Result<Self, ClError> {
        let built = Self::untested(context, encoding, demosaic, output, size, None)?;
        trial.unpack(encoding, demosaic, output, size)?;
        Ok(built)
    }

    /// The same without the test; `variant` forces a variant.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn untested(
        context: &Arc<ClContext>,
        encoding: Encoding,
        demosaic: Demosaic,
        output: Output,
        size: [usize; 2],
        variant: Option<UnpackVariant>,
    ) -> Result<Self, ClError> {
        encoding.check(demosaic, output, size)?;
        let built = |size| Self::build(context, encoding, demosaic, output, size, variant);
        let small = [size[0], size[1].min(WARM_UP_ROWS)];
        let meter = Meter::new(false);
        let scratch =
            |row_bytes| ClFrame::scratch(context, &bytes_layout(row_bytes, small[1])?, &meter);
        let from = scratch(encoding.row_bytes(size[0])?)?;
        let to = scratch(size[0] * output.pixel_bytes())?;
        built(small)?.run(&from, &to, &meter)?.wait("unpacking")?;
        built(size)
    }

    fn build(
        context: &Arc<ClContext>,
        encoding: Encoding,
        demosaic: Demosaic,
        output: Output,
        size @ [width, height]: [usize; 2],
        variant: Option<UnpackVariant>,
    ) -> Result<Self, ClError> {
        let variant = variant.unwrap_or_else(|| unpack_variant(context.caps()));
        let (source, name, options, item) = match encoding {
            Encoding::Packed(packing) => {
                let is_stream = matches!(packing, Packing::Mono10p | Packing::Mono12p);
                let options = format!(
                    "-DSAMPLE_BITS={} -DBIT_STREAM={} -DOUT_BYTES={}",
                    packing.bits(),
                    u8::from(is_stream),
                    output.pixel_bytes()
                );
                let name = match variant {
                    UnpackVariant::Rows => "unpack_rows",
                    UnpackVariant::Items => "unpack_items",
                };
                (
                    ProgramSource::Unpack,
                    name,
                    options,
                    [kernels::unpack::BLOCK, 1],
                )
            }
            Encoding::Bayer { pattern, bits, .. } => {
                let sample = encoding.sample().unwrap_or(SampleType::U8);
                let [red_x, red_y] = pattern.red();
                let options = format!(
                    "{} -DSAMPLE_BITS={bits} -DRED_X={red_x} -DRED_Y={red_y} -DGRADIENT={} -DOUTPUT={}",
                    sample_options(sample, false),
                    u8::from(demosaic == Demosaic::Gradient),
                    output_number(output),
                );
                let (source, name) = match variant {
                    UnpackVariant::Rows => (ProgramSource::DemosaicRows, "demosaic_rows"),
                    UnpackVariant::Items => (ProgramSource::DemosaicItems, "demosaic_items"),
                };
                (source, name, options, [ITEM_PIXELS, ITEM_ROWS])
            }
        };
        let kernel = context.program(source, &options)?.kernel(name)?;
        let range = match variant {
            UnpackVariant::Rows => {
                let items = context.caps().compute_units * BANDS_PER_UNIT;
                NdRange::groups(items.min(height.max(1)), 1)
            }
            UnpackVariant::Items => NdRange::cover(
                [width.div_ceil(item[0]), height.div_ceil(item[1])],
                plain_group(context, &kernel)?,
            ),
        };
        Ok(Self {
            context: context.clone(),
            kernel,
            name,
            range,
            size,
            bytes: (encoding.row_bytes(width)? + width * output.pixel_bytes()) * height,
        })
    }

    /// The name of the kernel.
    pub fn kernel(&self) -> &'static str {
        self.name
    }

    /// Enqueues the unpacking of a frame, whose plane holds the rows of bytes, into another memory.
    ///
    /// # Errors
    /// The failing call; the output's contents are then undefined.
    pub fn run(
        &mut self,
        input: &ClFrame,
        output: &ClFrame,
        meter: &Meter,
    ) -> Result<Completion, ClError> {
        let [src, src_offset, src_stride] = source_args(input.plane(0)?, None, 0)?;
        let [dst, dst_offset, dst_stride] = target_args(output.plane(0)?, 0)?;
        let args = [
            src,
            src_offset,
            src_stride,
            dst,
            dst_offset,
            dst_stride,
            Arg::I32(to_i32(self.size[0], "a width")?),
            Arg::I32(to_i32(self.size[1], "a height")?),
        ];
        let mut submission = self.context.submit(meter, self.bytes);
        submission.run(&mut self.kernel, self.name, &args, &self.range)?;
        submission.pass_on()
    }
}

/// The number of an output in `demosaic.cl`.
fn output_number(output: Output) -> u8 {
    match output {
        Output::Rgb => 0,
        Output::Bgr => 1,
        Output::Rgbx => 2,
        Output::Gray8 => 3,
        Output::Gray16Le => 4,
    }
}

/// Rows of bytes.
fn bytes_layout(row_bytes: usize, height: usize) -> Result<FrameLayout, ClError> {
    let bytes = Component {
        plane: 0,
        offset: 0,
        pixel_stride: 1,
        width: row_bytes,
        height,
        w_sub: 0,
        h_sub: 0,
    };
    FrameLayout::new(row_bytes, height, SampleType::U8, vec![bytes])
        .ok_or_else(|| ClError::Refused(format!("rows of {row_bytes} bytes are not supported")))
}
