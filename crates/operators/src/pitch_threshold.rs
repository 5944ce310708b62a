//! Pitch comparison, threshold and packed mask; kernels in `kernels/pitch_threshold.cl`.

mod defects;
mod mask;
mod run_differences;
mod settings;

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    layout::{FrameLayout, SampleType},
    mask::packed_stride,
    ndrange::NdRange,
    pitch::{Axis, threshold_q8},
    region::Rect,
    variant::{PitchVariant, WIDE_MEMORY, pitch_variant, wide_rows},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{Arg, ClBuffer, ClContext, Kernel, Mem, Memory, Meter, ProgramSource};

use defects::Lister;
pub use defects::{Listed, MeasuredDefect};
pub use mask::MaskTarget;
use mask::packed_mask;
use settings::check_forced;
pub use settings::{Compare, PitchSettings, Polarity, judged_pixels};

use super::{
    WARM_UP_ROWS,
    histogram::effective_depth,
    sample_options,
    source::{PlaneImages, plain_group, source_args, target_args},
    to_i32, to_u32,
};

/// Bytes of the two counters of marked pixels.
const COUNTERS: usize = 2 * size_of::<u32>();
/// Bytes of a row per work-item of the wide kernel.
const WIDE_BYTES: usize = 16;
/// Work-items per work-group of the wide kernel.
const WIDE_GROUP: usize = 128;
/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;
/// A pitch comparison for frames of one layout.
#[derive(Debug)]
pub struct PitchThreshold {
    context: Arc<ClContext>,
    kernel: Kernel,
    name: &'static str,
    range: NdRange,
    expand: Kernel,
    expand_group: [usize; 2],
    comparisons: Mem,
    comparison_count: usize,
    rois: Mem,
    roi_count: usize,
    /// Rows per work-item of the wide kernel; `None` for the other kernels.
    wide: Option<usize>,
    /// Number of set bits of the mask: two counters. `slot` selects the next frame's, which is
    /// zero.
    counter: Mem,
    slot: usize,
    clean: bool,
    /// Marked pixels of the last frame.
    marked: u64,
    /// Memory for a packed mask that is then expanded; allocated at first use.
    packed: Option<ClBuffer>,
    lister: Lister,
    theta: i32,
    flags: i32,
    width: usize,
    height: usize,
    judged: u64,
    pitches: [f64; 2],
    images: Option<PlaneImages>,
}

impl PitchThreshold {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once. Plane 0 is
    /// judged.
    ///
    /// # Errors
    /// [`ClError::Refused`] for settings that contradict each other or under which no pixel of the
    /// frame can be judged; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &PitchSettings,
    ) -> Result<Self, ClError> {
        let operator = Self::prepare(context, layout, settings)?;
        settings.check_reach(layout.width, layout.height)?;
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let warm_settings = PitchSettings {
            rois: Vec::new(),
            ..settings.clone()
        };
        let mut warm = Self::prepare(context, &small, &warm_settings)?;
        let input = ClFrame::scratch(context, &small, &meter)?;
        let output = ClFrame::scratch(context, &small, &meter)?;
        warm.run(&input, MaskTarget::Grey(&output), &meter)?;
        warm.warm_up_list(&input, &meter)?;
        Ok(operator)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &PitchSettings,
    ) -> Result<Self, ClError> {
        let depth = effective_depth(settings.bit_depth, layout.sample)?;
        let highest = f64::from((1_u32 << depth) - 1);
        if !(0.0..=highest).contains(&settings.threshold) {
            return Err(ClError::Refused(format!(
                "threshold={} is not a grey level of {depth}-bit samples; set it to 0..{highest}",
                settings.threshold
            )));
        }
        let (width, height) = (layout.width, layout.height);
        let comparisons = settings.comparisons()?;
        let judged = judged_pixels(&comparisons, &settings.rois, width, height);
        if judged > u64::from(u32::MAX) {
            return Err(ClError::Refused(format!(
                "{judged} judged pixels could overflow a 32-bit counter; set smaller rois"
            )));
        }
        let whole = [Rect::new(0, 0, width, height)];
        let rois = if settings.rois.is_empty() {
            &whole[..]
        } else {
            &settings.rois
        };
        let comparison_words: Vec<[i32; 4]> = comparisons
            .iter()
            .map(|c| [i32::from(c.axis == Axis::Y), c.whole, c.fraction, c.blur])
            .collect();
        let roi_words = rois
            .iter()
            .map(|r| {
                Ok([
                    to_i32(r.x0, "a region")?,
                    to_i32(r.y0, "a region")?,
                    to_i32(r.x1, "a region")?,
                    to_i32(r.y1, "a region")?,
                ])
            })
            .collect::<Result<Vec<_>, ClError>>()?;
        let images = settings
            .image
            .then(|| PlaneImages::new(context, &layout.first_plane()))
            .transpose()?;
        check_forced(context, settings, layout)?;
        let options = sample_options(layout.sample, settings.image);
        let bytes = layout.sample == SampleType::U8;
        let variant = settings.variant.unwrap_or_else(|| {
            pitch_variant(context.caps(), settings.image, bytes, layout.bytes())
        });
        let minimum = settings.compare == Compare::Minimum;
        let (source, name) = match variant {
            PitchVariant::Bytes => (ProgramSource::PitchThreshold, "pitch_threshold_bytes"),
            PitchVariant::Words => (ProgramSource::PitchWords, "pitch_threshold_words"),
            PitchVariant::Wide { dot4 } => (
                if dot4 {
                    ProgramSource::PitchWideDot
                } else {
                    ProgramSource::PitchWide
                },
                match (minimum, settings.match_center) {
                    (false, false) => "pitch_wide_average",
                    (false, true) => "pitch_wide_average_matched",
                    (true, false) => "pitch_wide_minimum",
                    (true, true) => "pitch_wide_minimum_matched",
                },
            ),
        };
        let kernel = context.program(source, &options)?.kernel(name)?;
        let mut item_rows = 1;
        let range = match variant {
            PitchVariant::Bytes => NdRange::cover(
                [packed_stride(width), height],
                plain_group(context, &kernel)?,
            ),
            PitchVariant::Wide { .. } => {
                let across = width.div_ceil(WIDE_BYTES / layout.sample.bytes());
                item_rows = wide_rows(context.caps(), across * height);
                let group = WIDE_GROUP.min(context.kernel_work_group(&kernel)?);
                NdRange::cover([across, height.div_ceil(item_rows)], [group, 1])
            }
            PitchVariant::Words => {
                let bands = context.caps().compute_units * BANDS_PER_UNIT;
                NdRange::groups(bands.min(height.max(1)), 1)
            }
        };
        // A program for images has no kernel that expands a packed mask from a buffer.
        let plain = context.program(
            ProgramSource::PitchMask,
            &sample_options(layout.sample, false),
        )?;
        let expand = plain.kernel("mask_expand")?;
        Ok(Self {
            context: context.clone(),
            expand_group: plain_group(context, &expand)?,
            kernel,
            name,
            range,
            wide: matches!(variant, PitchVariant::Wide { .. }).then_some(item_rows),
            slot: 0,
            clean: true,
            marked: 0,
            expand,
            comparisons: upload(context, &comparison_words, "comparisons")?,
            comparison_count: comparison_words.len(),
            rois: upload(context, &roi_words, "regions of interest")?,
            roi_count: roi_words.len(),
            counter: counters(context)?,
            packed: None,
            lister: Lister::new(context, &plain)?,
            theta: threshold_q8(settings.threshold),
            flags: settings.flags(),
            width,
            height,
            judged,
            pitches: [settings.pitch_x, settings.pitch_y],
            images,
        })
    }

    /// The pitches along x and y in use, px; 0 for none.
    pub fn pitches(&self) -> [f64; 2] {
        self.pitches
    }

    /// Number of judged pixels of a frame.
    pub fn judged_pixels(&self) -> u64 {
        self.judged
    }

    /// Compares a frame, writes its mask, waits, and returns the number of marked pixels.
    ///
    /// # Errors
    /// The failing call; the mask's contents are then undefined.
    pub fn run(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        let result = self.compare(frame, target, meter);
        self.marked = *result.as_ref().unwrap_or(&0);
        if result.is_ok() {
            self.slot = 1 - self.slot;
        } else {
            // The frame may be counted in part.
            self.clean = false;
        }
        result
    }

    fn compare(
        &mut self,
        frame: &ClFrame,
        target: MaskTarget,
        meter: &Arc<Meter>,
    ) -> Result<u64, ClError> {
        let stride = packed_stride(self.width);
        if matches!(target, MaskTarget::Grey(_)) && self.packed.is_none() {
            self.packed = Some(ClBuffer::new(&self.context, stride * self.height, meter)?);
        }
        let (mask, mask_offset) = packed_mask(target, &self.packed)
            .ok_or_else(|| ClError::Refused("no memory for the packed mask".into()))?;
        let mask = Memory::Buffer(mask);
        let mut submission = self.context.submit(meter);
        if let Some(images) = &mut self.images {
            images.update(frame, &mut submission)?;
        }
        let slot = self.slot;
        if !self.clean {
            self.clean = true;
            submission.zero(&self.counter, COUNTERS, "the pixel counters")?;
        }
        let plane = frame.plane(0)?;
        let image = self.images.as_ref().and_then(|images| images.get(0));
        let [src, src_offset, src_stride] = source_args(plane, image, 0)?;
        let width = Arg::I32(to_i32(self.width, "a width")?);
        let height = Arg::I32(to_i32(self.height, "a height")?);
        let mask_stride = Arg::U32(to_u32(stride, "a stride")?);
        let mut args = vec![
            src,
            src_offset,
            src_stride,
            width,
            height,
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            mask_stride,
            Arg::Mem(&self.comparisons),
            Arg::I32(to_i32(self.comparison_count, "comparisons")?),
            Arg::Mem(&self.rois),
            Arg::I32(to_i32(self.roi_count, "regions")?),
            Arg::I32(self.theta),
            Arg::I32(self.flags),
            Arg::Mem(&self.counter),
            Arg::U32(to_u32(slot, "a counter")?),
        ];
        if let Some(item_rows) = self.wide {
            let memory = plane.aligned_len().filter(|&len| len < WIDE_MEMORY);
            let memory = memory.ok_or_else(|| {
                ClError::Input(format!("{} reads device memory under 2 GiB", self.name))
            })?;
            args.push(Arg::U32(to_u32(memory, "a memory object")?));
            args.push(Arg::I32(to_i32(item_rows, "rows")?));
        }
        submission.run(&mut self.kernel, self.name, &args, &self.range)?;
        if let MaskTarget::Grey(out) = target {
            let [dst, dst_offset, dst_stride] = target_args(out.plane(0)?, 0)?;
            let args = [
                Arg::Reads(mask),
                mask_stride,
                dst,
                dst_offset,
                dst_stride,
                width,
                height,
            ];
            let range = NdRange::cover([stride, self.height], self.expand_group);
            submission.run(&mut self.expand, "mask_expand", &args, &range)?;
        }
        submission.measure(self.width * self.height);
        let mut count = [0_u32];
        let from = slot * size_of::<u32>();
        let bytes = bytemuck::cast_slice_mut(&mut count);
        submission.read(&self.counter, from, bytes, "the pixel count")?;
        Ok(u64::from(count[0]))
    }
}

/// Two counters, set to zero.
fn counters(context: &ClContext) -> Result<Mem, ClError> {
    let mem = context.device_memory(COUNTERS)?;
    let subject = "the pixel counters";
    context.zero(&mem, COUNTERS, subject)?;
    Ok(mem)
}

fn upload(context: &ClContext, words: &[[i32; 4]], subject: &str) -> Result<Mem, ClError> {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    let mem = context.device_memory(bytes.len())?;
    // OpenCL refuses a write of no bytes.
    if !bytes.is_empty() {
        context.write(&mem, 0, bytes, subject)?;
    }
    Ok(mem)
}
