//! Whole frames through each element's operator, compared with sequential loops.

use std::sync::Arc;

use clinspect_core::{
    layout::FrameLayout,
    mask::packed_stride,
    pitch::{Comparison, threshold_q8},
    region::Rect,
    weights::weights_q8,
};
use clinspect_opencl::frame::{Importer, layout_of};
use clinspect_opencl::{ClAllocator, ClContext, Meter, buffer_of, new_video_pool};
use clinspect_operators::{
    Arithmetic, Borders, Compare, Contrast, Gaussian, GaussianSettings, Histogram,
    HistogramSettings, Inspection, MaskTarget, PitchThreshold, PitchThresholdSettings, Polarity,
    Strategy, Subject,
};
use gst::prelude::*;
use serde::Serialize;

use crate::{
    Effort, Error,
    common::panel::{PanelGenerator, PanelSpec},
    sequential::{self, Grey},
    timing::median_ms,
};

const SIZES: [[usize; 2]; 8] = [
    [64, 48],
    [96, 72],
    [160, 120],
    [240, 180],
    [320, 240],
    [640, 480],
    [1280, 720],
    [1920, 1080],
];
const KERNEL_SIZE: usize = 5;
const SIGMA_PX: f64 = 0.8;
const THRESHOLD: f64 = 10.0;
const PLANTED: usize = 8;
const SEED: u64 = 1;

/// An element's cost by frame size.
#[derive(Debug, Serialize)]
pub struct ElementCost {
    pub element: &'static str,
    pub settings: &'static str,
    pub sizes: Vec<SizeCost>,
    /// The smallest measured size from which on all sizes are faster than the sequential loops,
    /// with frame and result on the host.
    pub faster_from: Option<[usize; 2]>,
    /// The same with frame and result on the device.
    pub faster_from_on_device: Option<[usize; 2]>,
}

/// Times for one frame size.
#[derive(Debug, Serialize)]
pub struct SizeCost {
    pub size: [usize; 2],
    pub sequential_ms: f64,
    /// Frame in host memory, result in host memory.
    pub host_ms: f64,
    /// Frame and result in device memory, except counts.
    pub on_device_ms: f64,
}

/// The measured settings of `clgaussian`.
pub fn gaussian_settings() -> GaussianSettings {
    GaussianSettings {
        kernel_size: KERNEL_SIZE,
        sigma_px: SIGMA_PX,
        arithmetic: Arithmetic::Integer,
        image: false,
        variant: None,
    }
}

/// The measured settings of `clhistogram`.
pub fn histogram_settings(region: Rect) -> HistogramSettings {
    HistogramSettings {
        bins: 256,
        bit_depth: 0,
        region,
        strategy: Strategy::Auto,
        image: false,
    }
}

/// The measured settings of `clpitchthreshold`: the default comparisons, as the sequential code makes
/// them, without borders and without the search for missing patterns.
pub fn pitch_threshold_settings() -> PitchThresholdSettings {
    let panel = PanelSpec::default();
    PitchThresholdSettings {
        line_scan: false,
        may_be_blind: false,
        is_steady: true,
        pitch_x: panel.pitch_x,
        pitch_y: panel.pitch_y,
        lattice: None,
        multiples: vec![1, 4],
        threshold: THRESHOLD,
        compare: Compare::Minimum,
        match_center: true,
        polarity: Polarity::Both,
        borders: Borders::Skip,
        edge_margin: 0,
        scales: 0,
        scale_factors: Vec::new(),
        contrast: Contrast::Off,
        rois: Vec::new(),
        ignored: None,
        bit_depth: 0,
        image: false,
        variant: None,
    }
}

/// The layout of a GRAY8 frame.
///
/// # Errors
/// No video frame has this size.
pub fn layout(size: [usize; 2]) -> Result<FrameLayout, Error> {
    Ok(layout_of(&info(size)?)?)
}

fn info([width, height]: [usize; 2]) -> Result<gst_video::VideoInfo, Error> {
    let format = gst_video::VideoFormat::Gray8;
    let (width, height) = (u32::try_from(width)?, u32::try_from(height)?);
    Ok(gst_video::VideoInfo::builder(format, width, height).build()?)
}

/// A frame in host memory and in device memory, with the importer for operators.
struct Bench {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    allocator: ClAllocator,
    importer: Importer,
    info: gst_video::VideoInfo,
    size: [usize; 2],
    samples: Vec<u8>,
    host: gst::Buffer,
    device: gst::Buffer,
    runs: u32,
}

impl Bench {
    fn new(context: &Arc<ClContext>, size: [usize; 2], runs: u32) -> Result<Self, Error> {
        let spec = PanelSpec {
            width: size[0],
            height: size[1],
            ..PanelSpec::default()
        };
        let samples = PanelGenerator::new(spec, SEED)?
            .next_random(PLANTED)
            .samples;
        let info = info(size)?;
        let meter = Meter::new(false);
        let allocator = ClAllocator::new(context, &meter);
        let memory = allocator
            .upcast_ref::<gst::Allocator>()
            .alloc(info.size(), None)?;
        let mut device = gst::Buffer::new();
        device.make_mut().append_memory(memory);
        device
            .make_mut()
            .copy_from_slice(0, &samples)
            .map_err(|_| "a frame is not written")?;
        Ok(Self {
            context: context.clone(),
            importer: Importer::new(context, &meter, &info)?,
            meter,
            allocator,
            info,
            size,
            host: gst::Buffer::from_slice(samples.clone()),
            samples,
            device,
            runs,
        })
    }

    fn grey(&self) -> Grey<'_> {
        Grey {
            samples: &self.samples,
            width: self.size[0],
            height: self.size[1],
        }
    }

    fn gaussian(&mut self) -> Result<SizeCost, Error> {
        let weights = weights_q8(KERNEL_SIZE, SIGMA_PX);
        let mut expected = vec![0; self.samples.len()];
        let sequential_ms = median_ms(self.runs, || {
            sequential::gaussian(self.grey(), &weights, &mut expected);
            Ok(())
        })?;
        let caps = self.info.to_caps()?;
        let size = u32::try_from(self.info.size())?;
        let pool = new_video_pool(&self.allocator, &caps, size, 1, false)?;
        pool.set_active(true)?;
        let layout = self.importer.layout().clone();
        let mut operator = Gaussian::new(&self.context, &layout, &gaussian_settings())?;
        let mut filter = |bench: &mut Self, on_device: bool, check: bool| -> Result<(), Error> {
            let input = if on_device {
                &bench.device
            } else {
                &bench.host
            };
            let frame = bench.importer.import(input)?;
            let out = pool.acquire_buffer(None)?;
            let to = bench.importer.output(&out)?;
            operator
                .run(&frame, &to, &bench.meter)?
                .wait("the Gaussian")?;
            if !on_device {
                let mapped = out.map_readable()?;
                agree(!check || mapped[..] == expected[..], "clgaussian")?;
            }
            Ok(())
        };
        filter(self, false, true)?;
        let host_ms = median_ms(self.runs, || filter(self, false, false))?;
        let on_device_ms = median_ms(self.runs, || filter(self, true, false))?;
        pool.set_active(false)?;
        Ok(self.cost(sequential_ms, host_ms, on_device_ms))
    }

    fn histogram(&mut self) -> Result<SizeCost, Error> {
        let mut expected = Vec::new();
        let sequential_ms = median_ms(self.runs, || {
            expected = sequential::histogram(self.grey());
            Ok(())
        })?;
        let layout = self.importer.layout().clone();
        let region = Rect::new(0, 0, self.size[0], self.size[1]);
        let mut operator = Histogram::new(&self.context, &layout, &histogram_settings(region))?;
        let mut bins = Vec::new();
        let mut count = |bench: &mut Self, on_device: bool| -> Result<(), Error> {
            let input = if on_device {
                &bench.device
            } else {
                &bench.host
            };
            let frame = bench.importer.import(input)?;
            operator.run(&frame, &bench.meter, &mut bins)?;
            agree(bins == expected, "clhistogram")
        };
        let host_ms = median_ms(self.runs, || count(self, false))?;
        let on_device_ms = median_ms(self.runs, || count(self, true))?;
        Ok(self.cost(sequential_ms, host_ms, on_device_ms))
    }

    fn pitch(&mut self) -> Result<SizeCost, Error> {
        let settings = pitch_threshold_settings();
        let comparisons: Vec<Comparison> = settings.along_axes()?;
        let theta = threshold_q8(THRESHOLD);
        let mut expected = vec![0; packed_stride(self.size[0]) * self.size[1]];
        let mut marked = 0;
        let sequential_ms = median_ms(self.runs, || {
            marked = sequential::compare(self.grey(), &comparisons, theta, &mut expected);
            Ok(())
        })?;
        let layout = self.importer.layout().clone();
        let mut operator = PitchThreshold::new(&self.context, &layout, &settings)?;
        let mask = self
            .allocator
            .upcast_ref::<gst::Allocator>()
            .alloc(expected.len(), None)?;
        let mut judge = |bench: &mut Self, on_device: bool, check: bool| -> Result<(), Error> {
            let input = if on_device {
                &bench.device
            } else {
                &bench.host
            };
            let frame = bench.importer.import(input)?;
            let buffer = buffer_of(&mask).ok_or("the mask is not in OpenCL memory")?;
            let target = MaskTarget::Packed { buffer, offset: 0 };
            let count =
                operator.mark(Subject::whole(&frame, bench.size[1], &bench.meter), target)?;
            agree(count.pixels == marked, "clpitchthreshold")?;
            if !on_device {
                let mapped = mask.map_readable()?;
                agree(!check || mapped[..] == expected[..], "clpitchthreshold")?;
            }
            Ok(())
        };
        judge(self, false, true)?;
        let host_ms = median_ms(self.runs, || judge(self, false, false))?;
        let on_device_ms = median_ms(self.runs, || judge(self, true, false))?;
        Ok(self.cost(sequential_ms, host_ms, on_device_ms))
    }

    fn cost(&self, sequential_ms: f64, host_ms: f64, on_device_ms: f64) -> SizeCost {
        SizeCost {
            size: self.size,
            sequential_ms,
            host_ms,
            on_device_ms,
        }
    }
}

/// Times are comparable only if the results are equal.
fn agree(same: bool, element: &str) -> Result<(), Error> {
    if same {
        Ok(())
    } else {
        Err(format!("{element} and the sequential loops disagree").into())
    }
}

/// Measures every element at every size.
///
/// # Errors
/// A failing OpenCL call, or results that differ from the sequential ones.
pub fn measure(context: &Arc<ClContext>, effort: Effort) -> Result<Vec<ElementCost>, Error> {
    type Run = fn(&mut Bench) -> Result<SizeCost, Error>;
    let elements: [(&'static str, &'static str, Run); 3] = [
        ("clgaussian", "kernel-size=5 sigma=0.8", Bench::gaussian),
        ("clhistogram", "bins=256", Bench::histogram),
        (
            "clpitchthreshold",
            "pitch-x=7.35 pitch-y=7.35 multiples=<1,4> compare=minimum match-center=true",
            Bench::pitch,
        ),
    ];
    elements
        .into_iter()
        .map(|(element, settings, run)| {
            let sizes = SIZES
                .into_iter()
                .filter(|size| size[0] <= effort.largest as usize)
                .map(|size| run(&mut Bench::new(context, size, effort.runs)?))
                .collect::<Result<Vec<_>, Error>>()?;
            Ok(ElementCost {
                element,
                settings,
                faster_from: faster_from(&sizes, |cost| cost.host_ms),
                faster_from_on_device: faster_from(&sizes, |cost| cost.on_device_ms),
                sizes,
            })
        })
        .collect()
}

fn faster_from(sizes: &[SizeCost], opencl_ms: fn(&SizeCost) -> f64) -> Option<[usize; 2]> {
    sizes
        .iter()
        .rev()
        .take_while(|cost| opencl_ms(cost) < cost.sequential_ms)
        .last()
        .map(|cost| cost.size)
}
