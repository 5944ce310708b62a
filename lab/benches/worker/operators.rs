//! The crate's operators, on frames that stay on the device or are transferred in each run.

use std::{sync::Arc, time::Instant};

use clinspect_core::{
    ClError,
    components::{Finder, Limits},
    lattice::Lattice,
    layout::FrameLayout,
    mask::packed_stride,
    region::Rect,
    scales::SCALE_FACTORS,
    texture::CHANNELS,
    variant::GaussianVariant,
};
use clinspect_opencl::frame::{ClFrame, Importer};
use clinspect_opencl::{ClAllocator, ClContext, Meter, Step, buffer_of};
use clinspect_operators::{
    Align, Arithmetic, Borders, Compare, Components, Contrast, FlatField, Gaussian,
    GaussianSettings, Histogram, HistogramSettings, Inspection, JudgedComponents, MaskTarget,
    NoiseFrom, PitchThreshold, PitchThresholdSettings, Polarity, Reference, Strategy, Subject,
    Texture, TextureSettings, Unpack,
};
use gst::prelude::*;
use serde_json::{Value, json};

use crate::{
    Contestant, Error, flat_field,
    protocol::{Frame, Settings, Times},
    skip,
    steps::{self, Steps},
    trained, unpack,
};

/// The list that is timed: the defaults of the element, for a frame of any number of runs.
const LIST: Limits = Limits {
    min_area: 1,
    merge_distance: 0,
    max_defects: 100,
    max_runs: usize::MAX,
    max_defect_rows: u32::MAX,
};

/// A task and its output.
enum Operator {
    Histogram(Box<Histogram>, Vec<u32>),
    Gaussian(Box<Gaussian>, ClFrame, gst::Buffer),
    FlatField(Box<FlatField>, ClFrame, gst::Buffer),
    Unpack(Box<Unpack>, ClFrame, gst::Buffer),
    Marks(Box<dyn Inspection>, gst::Memory),
    /// Finds where the frame lies in the model.
    Align(Box<Reference>),
    /// Lists the defects of a mask that was made before; areas of the listed ones.
    List(Box<PitchThreshold>, gst::Memory, Box<Finder>, Vec<u32>),
}

struct OperatorRun {
    operator: Operator,
    context: Arc<ClContext>,
    importer: Importer,
    meter: Arc<Meter>,
    /// The resident frame; `None` if each run uploads its frame from `host`.
    resident: Option<ClFrame>,
    host: gst::Buffer,
    /// How an output frame lies in memory.
    output: Frame,
    transfers: bool,
    measured_ns: u64,
    steps: Steps,
}

/// A buffer of system memory or of the allocator, with the frame's stride and base.
fn buffer(
    frame: &Frame,
    info: &gst_video::VideoInfo,
    bytes: Vec<u8>,
    allocator: Option<&ClAllocator>,
) -> Result<gst::Buffer, Error> {
    let mut buffer = gst::Buffer::new();
    let writable = buffer.make_mut();
    writable.append_memory(match allocator {
        None => gst::Memory::from_slice(bytes),
        Some(allocator) => {
            let params = gst::AllocationParams::new(gst::MemoryFlags::empty(), 0, frame.base, 0);
            let mut memory = allocator.alloc(bytes.len(), Some(&params))?;
            memory.make_mut().map_writable()?.copy_from_slice(&bytes);
            memory
        }
    });
    gst_video::VideoMeta::add_full(
        writable,
        gst_video::VideoFrameFlags::empty(),
        info.format(),
        info.width(),
        info.height(),
        &[0],
        &[i32::try_from(frame.stride)?],
    )?;
    Ok(buffer)
}

/// How an output frame lies in memory: as the input, or as in the pool of `clgaussian`.
fn output_frame(frame: &Frame, settings: &Settings) -> Frame {
    let mut to = frame.clone();
    if settings.output_at_words {
        to.stride = frame.row().next_multiple_of(4);
        to.base = 0;
    }
    to
}

pub fn info_of(frame: &Frame) -> Result<gst_video::VideoInfo, Error> {
    let format = match frame.channels {
        1 => gst_video::VideoFormat::Gray8,
        3 => gst_video::VideoFormat::Rgb,
        n => return Err(format!("no format has {n} channels here").into()),
    };
    let (width, height) = (frame.width.try_into()?, frame.height.try_into()?);
    Ok(gst_video::VideoInfo::builder(format, width, height).build()?)
}

/// A frame of GRAY16_LE whose width is in bytes.
fn words_of(frame: &Frame) -> Result<gst_video::VideoInfo, Error> {
    let (width, height) = ((frame.width / 2).try_into()?, frame.height.try_into()?);
    Ok(gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray16Le, width, height).build()?)
}

pub fn prepare(
    task: &str,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let context = clinspect_opencl::open_profiled(&settings.device)?;
    let info = if settings.words {
        words_of(frame)?
    } else {
        info_of(frame)?
    };
    let meter = Meter::new(true);
    let allocator = ClAllocator::new(&context, &meter);
    let mut importer = Importer::new(&context, &meter, &info)?;
    let layout = importer.layout().clone();
    let bytes = frame.spread()?;
    let resident = (!settings.transfers)
        .then(|| {
            let on_device = buffer(frame, &info, bytes.clone(), Some(&allocator))?;
            Ok::<_, Error>(importer.import(&on_device)?)
        })
        .transpose()?;
    let mut output = output_frame(frame, settings);
    let operator = match task {
        "histogram" => Operator::Histogram(
            Box::new(histogram(&context, &layout, frame, settings)?),
            Vec::new(),
        ),
        "gaussian" => {
            let operator = gaussian(&context, &layout, settings)?;
            let blank = vec![0; output.stride * output.height];
            let out = buffer(&output, &info, blank, Some(&allocator))?;
            Operator::Gaussian(Box::new(operator), importer.output(&out)?, out)
        }
        "flat" => {
            let operator = flat_field::prepare(&context, &layout, settings)?;
            let blank = vec![0; bytes.len()];
            let out = buffer(frame, &info, blank, Some(&allocator))?;
            Operator::FlatField(Box::new(operator), importer.output(&out)?, out)
        }
        "unpack" => {
            let (operator, to) = unpack::prepare(&context, frame, settings)?;
            let info = info_of(&to)?;
            let blank = vec![0; to.stride * to.height];
            let out = buffer(&to, &info, blank, Some(&allocator))?;
            output = to;
            let frame = Importer::new(&context, &meter, &info)?.output(&out)?;
            Operator::Unpack(Box::new(operator), frame, out)
        }
        "pitch_threshold" => {
            let size = packed_stride(frame.width) * frame.height;
            let mask = allocator.alloc(size, None)?;
            let judged = JudgedComponents::Auto;
            let mut failure = None;
            let operator = Components::new(&context, &layout, judged, |layout, _| {
                pitch(&context, layout, settings).map_err(|why| {
                    let text = why.to_string();
                    failure = Some(why);
                    ClError::Refused(text)
                })
            });
            let operator = operator.map_err(|why| failure.unwrap_or_else(|| why.into()))?;
            Operator::Marks(Box::new(operator), mask)
        }
        "texture" => {
            let size = packed_stride(frame.width) * frame.height;
            let mask = allocator.alloc(size, None)?;
            let wanted = TextureSettings {
                pitches: [settings.pitch_x, settings.pitch_y],
                lattice: None,
                may_turn: false,
                thresholds: vec![settings.threshold; CHANNELS],
                noise_from: NoiseFrom::Around,
                contrast: Contrast::Off,
                rois: Vec::new(),
                ignored: None,
                bit_depth: 0,
                line_scan: false,
                image: settings.image,
                variant: None,
            };
            let operator = refused(settings, Texture::new(&context, &layout, &wanted))?;
            Operator::Marks(Box::new(operator), mask)
        }
        "surface" => {
            let size = packed_stride(frame.width) * frame.height;
            let mask = allocator.alloc(size, None)?;
            let input = (resident.as_ref()).ok_or("surfaces are timed without transfers")?;
            let operator = trained::surface(&context, &layout, input, settings)?;
            Operator::Marks(Box::new(operator), mask)
        }
        "reference" => {
            let size = packed_stride(frame.width) * frame.height;
            let mask = allocator.alloc(size, None)?;
            let operator = trained::prepare(&context, &layout, frame, settings, Align::None)?;
            Operator::Marks(Box::new(operator), mask)
        }
        "align" => {
            let operator =
                trained::prepare(&context, &layout, frame, settings, Align::Translation)?;
            Operator::Align(Box::new(operator))
        }
        "list" => {
            let size = packed_stride(frame.width) * frame.height;
            let mask = allocator.alloc(size, None)?;
            let mut operator = pitch(&context, &layout, settings)?;
            let input = resident
                .as_ref()
                .ok_or("lists are timed without transfers")?;
            let buffer = buffer_of(&mask).ok_or("the mask is not in OpenCL memory")?;
            let subject = Subject::whole(input, frame.height, &meter);
            operator.mark(subject, MaskTarget::Packed { buffer, offset: 0 })?;
            Operator::List(Box::new(operator), mask, Box::default(), Vec::new())
        }
        _ => return Err(format!("no operator is called {task}").into()),
    };
    Ok(Box::new(OperatorRun {
        operator,
        context,
        host: buffer(frame, &info, bytes, None)?,
        importer,
        meter,
        resident,
        output,
        transfers: settings.transfers,
        measured_ns: 0,
        steps: Steps::default(),
    }))
}

/// A device that refuses forced settings is skipped; that is not a failure.
pub fn refused<T>(
    settings: &Settings,
    made: Result<T, clinspect_core::ClError>,
) -> Result<T, Error> {
    use clinspect_core::ClError;
    match made {
        Err(ClError::Refused(why)) if !settings.variant.is_empty() || settings.image => {
            Err(skip(why))
        }
        other => Ok(other?),
    }
}

fn histogram(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    frame: &Frame,
    settings: &Settings,
) -> Result<Histogram, Error> {
    let strategy = match settings.variant.as_str() {
        "" => Strategy::Auto,
        "pairs" => Strategy::Pairs,
        "private" => Strategy::Private,
        "banked" => Strategy::Banked,
        "local" => Strategy::Local,
        other => return Err(format!("no strategy is called {other}").into()),
    };
    let [x, y, width, height] = settings.region_of(frame);
    let wanted = HistogramSettings {
        bins: 256,
        bit_depth: 0,
        region: Rect::new(x, y, width, height),
        strategy,
        image: settings.image,
    };
    refused(settings, Histogram::new(context, layout, &wanted))
}

fn gaussian(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    settings: &Settings,
) -> Result<Gaussian, Error> {
    let variant = match settings.variant.as_str() {
        "" => None,
        "rows" => Some(GaussianVariant::Rows),
        "direct" => Some(GaussianVariant::Direct),
        other => {
            let (columns, rows) = other
                .strip_prefix("tile ")
                .and_then(|tile| tile.split_once('x'))
                .ok_or_else(|| format!("no variant is called {other}"))?;
            Some(GaussianVariant::Tile {
                columns: columns.parse()?,
                rows: rows.parse()?,
            })
        }
    };
    let wanted = GaussianSettings {
        kernel_size: settings.kernel_size,
        sigma_px: settings.sigma,
        arithmetic: if settings.float {
            Arithmetic::Float
        } else {
            Arithmetic::Integer
        },
        image: settings.image,
        variant,
    };
    refused(settings, Gaussian::new(context, layout, &wanted))
}

fn pitch(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    settings: &Settings,
) -> Result<PitchThreshold, Error> {
    let (sine, cosine) = settings.turned.to_radians().sin_cos();
    let [x, y] = [settings.pitch_x, settings.pitch_y];
    let vectors = [[x * cosine, x * sine], [-y * sine, y * cosine]];
    let vectors = &vectors[..if y == 0.0 { 1 } else { 2 }];
    let is_turned = settings.turned != 0.0;
    let lattice = is_turned.then(|| Lattice::new(vectors)).transpose()?;
    let wanted = PitchThresholdSettings {
        line_scan: false,
        may_be_blind: false,
        is_steady: true,
        pitch_x: settings.pitch_x,
        pitch_y: settings.pitch_y,
        lattice,
        multiples: settings.multiples.clone(),
        threshold: settings.threshold,
        compare: if settings.minimum {
            Compare::Minimum
        } else {
            Compare::Average
        },
        match_center: settings.match_center,
        polarity: Polarity::Both,
        borders: if settings.inward {
            Borders::Inward
        } else {
            Borders::Skip
        },
        edge_margin: 2,
        scales: settings.scales,
        scale_factors: SCALE_FACTORS.to_vec(),
        contrast: if settings.min_contrast > 0.0 {
            Contrast::Known(settings.min_contrast)
        } else {
            Contrast::Off
        },
        rois: Vec::new(),
        ignored: None,
        bit_depth: 0,
        image: settings.image,
        variant: None,
    };
    refused(settings, PitchThreshold::new(context, layout, &wanted))
}

impl Contestant for OperatorRun {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let brought = if self.transfers {
            Some(self.importer.import(&self.host)?)
        } else {
            None
        };
        let input = brought
            .as_ref()
            .or(self.resident.as_ref())
            .ok_or("there is no frame")?;
        let subject = Subject::whole(input, self.importer.layout().height, &self.meter);
        match &mut self.operator {
            Operator::Histogram(operator, bins) => operator.run(input, &self.meter, bins)?,
            Operator::Gaussian(operator, output, out) => {
                operator
                    .run(input, output, &self.meter)?
                    .wait("the Gaussian")?;
                if self.transfers {
                    drop(out.map_readable()?);
                }
            }
            Operator::FlatField(operator, output, out) => {
                operator
                    .run(input, output, &self.meter)?
                    .wait("the flat field")?;
                if self.transfers {
                    drop(out.map_readable()?);
                }
            }
            Operator::Unpack(operator, output, out) => {
                operator
                    .run(input, output, &self.meter)?
                    .wait("unpacking")?;
                if self.transfers {
                    drop(out.map_readable()?);
                }
            }
            Operator::Marks(operator, mask) => {
                let buffer = buffer_of(mask).ok_or("the mask is not in OpenCL memory")?;
                operator.mark(subject, MaskTarget::Packed { buffer, offset: 0 })?;
                if self.transfers {
                    drop(mask.map_readable()?);
                }
            }
            Operator::Align(operator) => operator.find(input, &self.meter)?,
            Operator::List(operator, mask, finder, areas) => {
                let buffer = buffer_of(mask).ok_or("the mask is not in OpenCL memory")?;
                let target = MaskTarget::Packed { buffer, offset: 0 };
                let listed = operator.list(subject, target, finder, &LIST)?;
                areas.clear();
                areas.extend(listed.defects.iter().map(|defect| defect.area));
            }
        }
        let wall_ns = started.elapsed().as_nanos() as u64;
        self.context.finish()?;
        let steps = self.meter.steps().into_iter().flatten();
        let total: u64 = steps
            .filter(|(step, _)| self.transfers || *step == Step::Kernel)
            .map(|(_, profile)| profile.total_ns)
            .sum();
        let device_ns = total - self.measured_ns;
        self.measured_ns = total;
        if self.transfers
            && let Some(timeline) = self.meter.last_frame()
        {
            let written = match &self.operator {
                Operator::Gaussian(_, _, out)
                | Operator::FlatField(_, _, out)
                | Operator::Unpack(_, _, out) => out.size(),
                Operator::Marks(_, mask) => mask.size(),
                Operator::Histogram(..) | Operator::Align(_) | Operator::List(..) => 0,
            };
            self.steps.note(steps::of_frame(&timeline, written));
        }
        Ok(Times { wall_ns, device_ns })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(match &self.operator {
            Operator::Histogram(_, bins) => bins.iter().flat_map(|n| n.to_le_bytes()).collect(),
            Operator::Gaussian(_, _, out)
            | Operator::FlatField(_, _, out)
            | Operator::Unpack(_, _, out) => out
                .map_readable()?
                .chunks(self.output.stride)
                .flat_map(|row| &row[..self.output.row()])
                .copied()
                .collect(),
            Operator::Marks(_, mask) => mask.map_readable()?.to_vec(),
            Operator::Align(_) => Vec::new(),
            Operator::List(_, _, _, areas) => areas.iter().flat_map(|n| n.to_le_bytes()).collect(),
        })
    }

    fn about(&self) -> Value {
        if self.transfers {
            return self.steps.about();
        }
        match &self.operator {
            Operator::Histogram(operator, _) => json!(format!("{:?}", operator.variant())),
            Operator::Gaussian(operator, ..) => json!(operator.kernels().next()),
            Operator::FlatField(operator, ..) => json!(operator.kernels().next()),
            Operator::Unpack(operator, ..) => json!(operator.kernel()),
            Operator::Marks(..) | Operator::Align(..) | Operator::List(..) => Value::Null,
        }
    }
}
