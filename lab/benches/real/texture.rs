//! The texture comparison itself, with the pitches estimated on every frame.

use std::sync::Arc;

use anyhow::{Context, Result};
use clinspect_core::{
    layout::FrameLayout,
    mask::packed_stride,
    pitch::Axis,
    pitch_estimate::{Lines, PitchEstimator},
    region::Rect,
    texture::CHANNELS,
};
use clinspect_opencl::{
    ClAllocator, ClContext, Meter, buffer_of,
    frame::{ClFrame, Importer},
};
use clinspect_operators::{
    Contrast, Inspection, MaskTarget, NoiseFrom, Probe, Subject, Texture, TextureSettings,
};
use gst::prelude::*;

use crate::{
    aitex::Frame,
    marks::{Area, Mask},
    split::Sample,
};

/// Compares frames of one size.
pub struct Comparison {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    importer: Importer,
    layout: FrameLayout,
    probes: [Probe; 2],
    estimators: [PitchEstimator; 2],
    /// Pitches of the last frames that had an estimate.
    held: [Option<f64>; 2],
    texture: Texture,
    mask: gst::Memory,
    size: [usize; 2],
}

/// A frame's measurements.
pub struct Measured {
    /// Along x and y, px.
    pub pitches: Option<[f64; 2]>,
    /// Both pitches were estimated on this frame.
    pub is_estimated: bool,
    pub sample: Sample,
}

fn settings(rois: Vec<Rect>, pitches: [f64; 2]) -> TextureSettings {
    TextureSettings {
        pitches,
        lattice: None,
        may_turn: false,
        thresholds: Vec::new(),
        noise_from: NoiseFrom::Around,
        contrast: Contrast::Off,
        rois,
        ignored: None,
        bit_depth: 0,
        line_scan: false,
        image: false,
        variant: None,
    }
}

impl Comparison {
    /// # Errors
    /// A failing OpenCL call.
    pub fn new(size: [usize; 2]) -> Result<Self> {
        let context = clinspect_opencl::open("auto")?;
        let meter = Meter::new(false);
        let [width, height] = [u32::try_from(size[0])?, u32::try_from(size[1])?];
        let format = gst_video::VideoFormat::Gray8;
        let info = gst_video::VideoInfo::builder(format, width, height).build()?;
        let importer = Importer::new(&context, &meter, &info)?;
        let layout = importer.layout().as_ref().clone();
        let probe = |axis| Probe::new(&context, &layout, axis);
        let bytes = packed_stride(size[0]) * size[1];
        Ok(Self {
            probes: [probe(Axis::X)?, probe(Axis::Y)?],
            estimators: Default::default(),
            held: [None; 2],
            texture: Texture::new(&context, &layout, &settings(Vec::new(), [0.0; 2]))?,
            mask: ClAllocator::new(&context, &meter).alloc(bytes, None)?,
            context,
            meter,
            importer,
            layout,
            size,
        })
    }

    /// Measures a frame at the pitches that are estimated on it. Along an axis without an estimate the pitch of the
    /// frame before is held.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn measure(&mut self, frame: &Frame) -> Result<Measured> {
        let buffer = gst::Buffer::from_slice(frame.grey.samples.clone());
        let on_device = self.importer.import(&buffer)?;
        let mut pitches = [None; 2];
        let along = self.probes.iter_mut().zip(&mut self.estimators);
        for ((probe, estimator), pitch) in along.zip(&mut pitches) {
            let length = probe.length();
            let samples = probe.run(&on_device, &self.meter)?;
            let found = estimator.estimate(&Lines { samples, length });
            *pitch = found.map(|estimate| estimate.pitch_px);
        }
        let mut sample = Sample {
            fabric: frame.fabric,
            is_clean: frame.is_clean,
            pitch_y: pitches[1],
            ..Sample::default()
        };
        let is_estimated = !pitches.contains(&None);
        for (held, pitch) in self.held.iter_mut().zip(pitches) {
            *held = pitch.or(*held);
        }
        let [Some(x), Some(y)] = self.held else {
            return Ok(Measured {
                pitches: None,
                is_estimated,
                sample,
            });
        };
        let pitches = [x, y];
        self.texture.set_repeats(pitches, None)?;
        let [peaks, typical] = peaks(
            &mut self.texture,
            &on_device,
            self.size,
            &self.mask,
            &self.meter,
        )?;
        (sample.peaks, sample.typical) = (peaks, typical);
        for area in &frame.boxes {
            let [peaks, _] = self.in_box(*area, pitches, &on_device)?;
            sample.in_boxes.push(peaks);
        }
        Ok(Measured {
            pitches: Some(pitches),
            is_estimated,
            sample,
        })
    }

    /// The peaks inside a box.
    fn in_box(&self, area: Area, pitches: [f64; 2], frame: &ClFrame) -> Result<[Vec<f64>; 2]> {
        let roi = Rect::new(area.x0, area.y0, area.x1 - area.x0, area.y1 - area.y0);
        match Texture::new(&self.context, &self.layout, &settings(vec![roi], pitches)) {
            Ok(mut inside) => peaks(&mut inside, frame, self.size, &self.mask, &self.meter),
            // No pixel of the box is judged, because the box lies at the frame's border.
            Err(clinspect_core::ClError::Refused(_)) => Ok([vec![0.0; CHANNELS], Vec::new()]),
            Err(error) => Err(error.into()),
        }
    }

    /// Marks a frame with these thresholds.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn mark(&mut self, frame: &Frame, pitches: [f64; 2], thresholds: &[f64]) -> Result<Mask> {
        let buffer = gst::Buffer::from_slice(frame.grey.samples.clone());
        let on_device = self.importer.import(&buffer)?;
        self.texture.set_repeats(pitches, None)?;
        self.texture.try_limits(Some(thresholds))?;
        mark(
            &mut self.texture,
            &on_device,
            self.size,
            &self.mask,
            &self.meter,
        )?;
        self.texture.try_limits(None)?;
        let packed = self.mask.map_readable()?;
        Ok(Mask::unpacked(
            &packed,
            packed_stride(self.size[0]),
            self.size,
        ))
    }
}

fn mark(
    texture: &mut Texture,
    frame: &ClFrame,
    size: [usize; 2],
    mask: &gst::Memory,
    meter: &Arc<Meter>,
) -> Result<()> {
    let buffer = buffer_of(mask).context("the mask is not in OpenCL memory")?;
    let subject = Subject::whole(frame, size[1], meter);
    texture.mark(subject, MaskTarget::Packed { buffer, offset: 0 })?;
    Ok(())
}

/// The peaks of the channels, and their means over the tiles.
fn peaks(
    texture: &mut Texture,
    frame: &ClFrame,
    size: [usize; 2],
    mask: &gst::Memory,
    meter: &Arc<Meter>,
) -> Result<[Vec<f64>; 2]> {
    mark(texture, frame, size, mask, meter)?;
    let peaks = texture.peaks(meter)?.context("the pitches are not known")?;
    Ok([0, 1].map(|which| peaks.iter().map(|of| of[which]).collect()))
}
