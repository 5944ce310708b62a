//! The flat field of frames; kernels in `kernels/flat_field*.cl`.

mod sums;

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{
    flat_field::{BadRun, Correction, Shape, UNIT_GAIN},
    kernels::flat_field_items::ITEM_BYTES,
    layout::{Component, FrameLayout, SampleType},
    variant::{FlatFieldVariant, flat_field_variant},
};
use clinspect_opencl::frame::ClFrame;
use clinspect_opencl::{Arg, ClContext, Completion, Kernel, Mem, Meter, NdRange, ProgramSource};
use gst::glib;

pub use sums::FrameSums;

use super::{
    WARM_UP_ROWS, sample_options,
    source::{PlaneImages, plain_group, source_args, target_args},
    to_i32, to_u32,
};

/// Bands of rows per compute unit of a CPU: enough to balance the load.
const BANDS_PER_UNIT: usize = 4;
/// Rows of gains and dark values start at multiples of this number of samples.
const PITCH: usize = 16;
/// Samples of a run that a work-item replaces.
const MOST_RUN: u32 = 64;
/// Numbers of a run in `flat_field_replace`.
const RUN_LEN: usize = 5;
const REPLACE: &str = "flat_field_replace";

/// Which samples share a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClFlatFieldMode")]
pub enum FlatFieldMode {
    /// None.
    #[default]
    #[enum_value(name = "Area: a reference for each sample", nick = "area")]
    Area,
    /// The samples of a column.
    #[enum_value(
        name = "Line: a reference for each column, for line cameras",
        nick = "line"
    )]
    Line,
}

/// The settings of a flat field.
#[derive(Debug, Clone)]
pub struct FlatFieldSettings {
    /// Which samples share a reference.
    pub mode: FlatFieldMode,
    /// Bits of a sample that a camera fills; 0 for the depth of the format.
    pub bit_depth: u32,
    /// The correction, of the shape that frames and mode need; without it no frame can be corrected.
    pub correction: Option<Arc<Correction>>,
    /// Read from images instead of buffers.
    pub image: bool,
    /// Forces a variant.
    pub variant: Option<FlatFieldVariant>,
}

/// The correction of a plane.
#[derive(Debug)]
struct PlaneCorrection {
    gain: Mem,
    dark: Option<Mem>,
    pitch: usize,
    /// Samples per row, and rows.
    extent: [usize; 2],
    kernel: Kernel,
    name: &'static str,
    range: NdRange,
}

/// The bad samples of a component.
#[derive(Debug)]
struct Replacement {
    plane: usize,
    offset: usize,
    step: usize,
    runs: Mem,
    count: usize,
    /// Rows in which the runs are replaced, from the row of each run on.
    rows: usize,
    kernel: Kernel,
    group: [usize; 2],
}

/// A flat field for frames of one layout.
#[derive(Debug)]
pub struct FlatField {
    context: Arc<ClContext>,
    layout: Arc<FrameLayout>,
    shape: Shape,
    most: u32,
    planes: Vec<PlaneCorrection>,
    replacements: Vec<Replacement>,
    images: Option<PlaneImages>,
}

impl FlatField {
    /// Prepares kernels for frames of `layout`: compiles them and runs them once.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a bit depth that the format does not have, a correction of another
    /// shape, or a variant or image that cannot be used; a failing OpenCL call.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &FlatFieldSettings,
    ) -> Result<Self, ClError> {
        let meter = Meter::new(false);
        let small = layout.cut(WARM_UP_ROWS);
        let frame = ClFrame::scratch(context, &small, &meter)?;
        for has_dark in [false, true] {
            let mut unit = Correction::unit(Shape::of(&small, is_line(settings)), has_dark);
            unit.runs.push(BadRun {
                component: 0,
                row: 0,
                first: 0,
                count: 1,
                neighbours: [Some(0), None],
            });
            let settings = FlatFieldSettings {
                correction: Some(Arc::new(unit)),
                ..settings.clone()
            };
            let mut warm = Self::prepare(context, &small, &settings)?;
            warm.run(&frame, &frame, &meter)?.wait("the flat field")?;
        }
        let without = FlatFieldSettings {
            correction: None,
            ..settings.clone()
        };
        let warm = Self::prepare(context, &small, &without)?;
        warm.sums()?.add(&frame, &meter)?;
        Self::prepare(context, layout, settings)
    }

    fn prepare(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        settings: &FlatFieldSettings,
    ) -> Result<Self, ClError> {
        let shape = Shape::of(layout, is_line(settings));
        let mut built = Self {
            context: context.clone(),
            layout: layout.clone().into(),
            shape,
            most: highest_level(layout.sample, settings.bit_depth)?,
            planes: Vec::new(),
            replacements: Vec::new(),
            images: None,
        };
        if settings.image {
            built.images = Some(PlaneImages::new(context, layout)?);
        }
        let Some(correction) = &settings.correction else {
            return Ok(built);
        };
        if correction.shape != shape {
            return Err(ClError::Refused(
                "the references have another size than the frames; take both again".into(),
            ));
        }
        let image = settings.image;
        let variant =
            (settings.variant).unwrap_or_else(|| flat_field_variant(context.caps(), image));
        if variant == (FlatFieldVariant::Items { rows: 0 }) {
            return Err(ClError::Refused("a work-item has at least one row".into()));
        }
        if image && variant == FlatFieldVariant::Rows {
            return Err(ClError::Refused("Rows reads buffers, not images".into()));
        }
        for plane in 0..layout.planes.len() {
            let plane = PlaneCorrection::new(context, layout, plane, correction, (variant, image))?;
            built.planes.push(plane);
        }
        for (index, component) in layout.components.iter().enumerate().take(shape.components) {
            let runs = correction.runs.iter();
            let runs: Vec<i32> = runs
                .filter(|run| run.component as usize == index)
                .flat_map(numbers)
                .collect();
            if !runs.is_empty() {
                let rows = if shape.rows == 1 { layout.height } else { 1 };
                let replacement = Replacement::new(context, layout, component, &runs, rows)?;
                built.replacements.push(replacement);
            }
        }
        Ok(built)
    }

    /// Whether there is a correction.
    pub fn corrects(&self) -> bool {
        !self.planes.is_empty()
    }

    /// The layout of the frames.
    pub fn layout(&self) -> &Arc<FrameLayout> {
        &self.layout
    }

    /// The shape of references for these frames.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Names of the kernels, one for each plane.
    pub fn kernels(&self) -> impl Iterator<Item = &'static str> {
        self.planes.iter().map(|plane| plane.name)
    }

    /// Sums of frames, for a reference.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub fn sums(&self) -> Result<FrameSums, ClError> {
        FrameSums::new(&self.context, &self.layout, self.shape, self.most)
    }

    /// Enqueues the correction of a frame; `output` may be `input`. The completion is that of the last
    /// command.
    ///
    /// # Errors
    /// [`ClError::Input`] without a correction. The failing call; the output's contents are then
    /// undefined.
    pub fn run(
        &mut self,
        input: &ClFrame,
        output: &ClFrame,
        meter: &Meter,
    ) -> Result<Completion, ClError> {
        let mut submission = self.context.submit(meter, self.layout.bytes());
        if let Some(images) = &mut self.images {
            images.update(input, &mut submission)?;
        }
        for (index, plane) in self.planes.iter_mut().enumerate() {
            let image = self.images.as_ref().and_then(|images| images.get(index));
            let [src, src_offset, src_stride] = source_args(input.plane(index)?, image, 0)?;
            let [dst, dst_offset, dst_stride] = target_args(output.plane(index)?, 0)?;
            let [samples, rows] = plane.extent;
            let mut args = vec![
                src,
                src_offset,
                src_stride,
                dst,
                dst_offset,
                dst_stride,
                Arg::I32(to_i32(samples, "a row")?),
                Arg::I32(to_i32(rows, "a height")?),
                Arg::Mem(&plane.gain),
                Arg::I32(to_i32(plane.pitch, "a row")?),
                Arg::U32(self.most),
            ];
            args.extend(plane.dark.as_ref().map(Arg::Mem));
            submission.run(&mut plane.kernel, plane.name, &args, &plane.range)?;
        }
        for bad in &mut self.replacements {
            let [dst, offset, stride] = target_args(output.plane(bad.plane)?, bad.offset)?;
            let args = [
                dst,
                offset,
                stride,
                Arg::Mem(&bad.runs),
                Arg::I32(to_i32(bad.count, "a number of runs")?),
                Arg::I32(to_i32(bad.rows, "a height")?),
                Arg::U32(to_u32(bad.step, "a step")?),
            ];
            let range = NdRange::cover([bad.count, bad.rows], bad.group);
            submission.run(&mut bad.kernel, REPLACE, &args, &range)?;
        }
        submission.pass_on()
    }
}

impl PlaneCorrection {
    fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        index: usize,
        correction: &Correction,
        (variant, image): (FlatFieldVariant, bool),
    ) -> Result<Self, ClError> {
        let plane = &layout.planes[index];
        let samples = plane.row_bytes / layout.sample.bytes();
        let row = samples.next_multiple_of(PITCH);
        let shape = correction.shape;
        // The values of the plane's samples in the order of memory; `other` for alpha and padding.
        let spread = |other: u32, value: &dyn Fn(usize) -> u32| {
            let mut values = vec![other; row * shape.rows];
            let components = layout.components.iter().enumerate().take(shape.components);
            for (c, component) in components.filter(|(_, component)| component.plane == index) {
                let [offset, step] = [component.offset, component.pixel_stride]
                    .map(|bytes| bytes / layout.sample.bytes());
                for (y, line) in values.chunks_exact_mut(row).enumerate() {
                    let line = line.iter_mut().skip(offset).step_by(step).take(shape.width);
                    for (x, place) in line.enumerate() {
                        *place = value((y * shape.width + x) * shape.components + c);
                    }
                }
            }
            values
        };
        let words = |values: &[u32]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|&v| (v as u16).to_ne_bytes())
                .collect()
        };
        let upload = |bytes: &[u8], what: &str| -> Result<Mem, ClError> {
            let memory = context.device_memory(bytes.len())?;
            context.write(&memory, 0, bytes, what)?;
            Ok(memory)
        };
        let gains = spread(UNIT_GAIN.into(), &|at| correction.gain[at].into());
        let gain = upload(&words(&gains), "gains")?;
        drop(gains);
        let dark = correction.dark.as_ref().map(|dark| {
            let values = spread(0, &|at| dark[at]);
            match layout.sample {
                SampleType::U8 => upload(&words(&values), "dark values"),
                _ => upload(bytemuck::cast_slice(&values), "dark values"),
            }
        });
        let dark = dark.transpose()?;
        let options = sample_options(layout.sample, image);
        let (source, name) = match (variant, &dark) {
            (FlatFieldVariant::Rows, None) => (ProgramSource::FlatFieldRows, "flat_field_rows"),
            (FlatFieldVariant::Rows, _) => (ProgramSource::FlatFieldRows, "flat_field_rows_dark"),
            (FlatFieldVariant::Items { .. }, None) => {
                (ProgramSource::FlatFieldItems, "flat_field_items")
            }
            (FlatFieldVariant::Items { .. }, _) => {
                (ProgramSource::FlatFieldItems, "flat_field_items_dark")
            }
        };
        let options = match variant {
            FlatFieldVariant::Rows => options,
            FlatFieldVariant::Items { rows } => format!("{options} -DITEM_ROWS={rows}"),
        };
        let kernel = context.program(source, &options)?.kernel(name)?;
        let range = match variant {
            FlatFieldVariant::Rows => {
                let items = context.caps().compute_units * BANDS_PER_UNIT;
                NdRange::groups(items.min(plane.rows.max(1)), 1)
            }
            FlatFieldVariant::Items { rows } => {
                let items = [
                    plane.row_bytes.div_ceil(ITEM_BYTES),
                    plane.rows.div_ceil(rows),
                ];
                NdRange::cover(items, plain_group(context, &kernel)?)
            }
        };
        Ok(Self {
            gain,
            dark,
            pitch: if shape.rows == 1 { 0 } else { row },
            extent: [samples, plane.rows],
            kernel,
            name,
            range,
        })
    }
}

impl Replacement {
    fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        component: &Component,
        numbers: &[i32],
        rows: usize,
    ) -> Result<Self, ClError> {
        let bytes = bytemuck::cast_slice(numbers);
        let runs = context.device_memory(bytes.len())?;
        context.write(&runs, 0, bytes, "bad samples")?;
        let options = sample_options(layout.sample, false);
        let program = context.program(ProgramSource::FlatField, &options)?;
        let kernel = program.kernel(REPLACE)?;
        Ok(Self {
            plane: component.plane,
            offset: component.offset,
            step: component.pixel_stride,
            runs,
            count: numbers.len() / RUN_LEN,
            rows,
            group: plain_group(context, &kernel)?,
            kernel,
        })
    }
}

fn is_line(settings: &FlatFieldSettings) -> bool {
    settings.mode == FlatFieldMode::Line
}

/// The highest level of a sample of `bit_depth` bits; 0 for the depth of the format.
pub(crate) fn highest_level(sample: SampleType, bit_depth: u32) -> Result<u32, ClError> {
    let bits = if bit_depth == 0 {
        sample.bits()
    } else {
        bit_depth
    };
    if bits > sample.bits() {
        return Err(ClError::Refused(format!(
            "bit-depth={bits} is more than the {0} bits of a sample; set it to 0..{0}",
            sample.bits()
        )));
    }
    Ok((1 << bits) - 1)
}

/// The numbers of a run in `flat_field_replace`; a long run is cut into several.
fn numbers(run: &BadRun) -> impl Iterator<Item = i32> + use<> {
    let run = *run;
    let column = |x: Option<u32>| x.map_or(-1, |x| x as i32);
    let [left, right] = run.neighbours.map(column);
    (0..run.count)
        .step_by(MOST_RUN as usize)
        .flat_map(move |done| {
            let count = (run.count - done).min(MOST_RUN);
            [
                run.row as i32,
                (run.first + done) as i32,
                count as i32,
                left,
                right,
            ]
        })
}
