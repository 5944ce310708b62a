//! The comparisons with what was trained: a picture, or a surface.

use std::sync::Arc;

use clinspect_core::{
    layout::FrameLayout,
    reference::Model,
    surface::{ChannelsInUse, Model as SurfaceModel, Samples},
};
use clinspect_opencl::{ClContext, Meter, frame::ClFrame};
use clinspect_operators::{
    Align, Inspection, MaskTarget, NormalizeBy, Polarity, Reference, ReferenceSettings, Subject,
    Surface, SurfaceSettings,
};

use crate::{
    Error,
    operators::refused,
    protocol::{Frame, Settings},
};

/// A comparison with a picture that differs from the frame by less than the threshold, but in every 64th row. Twin:
/// `reference_picture` of `peers.py`.
pub fn prepare(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    frame: &Frame,
    settings: &Settings,
    align: Align,
) -> Result<Reference, Error> {
    let mut mean: Vec<u32> = frame
        .read()?
        .iter()
        .map(|s| 256 * u32::from(s & 0xf0))
        .collect();
    for row in mean.chunks_exact_mut(64 * frame.width) {
        row[..frame.width].fill(0);
    }
    let deviation = vec![0; mean.len()];
    let model = Model::new([frame.width, frame.height], 8, 1, mean, deviation)?;
    let wanted = ReferenceSettings {
        model: Some(Arc::new(model)),
        threshold: settings.threshold,
        deviation_factor: 0.0,
        edge_tolerance: 0,
        opening: 0,
        polarity: Polarity::Both,
        align,
        search_range: 16,
        match_score: 0.0,
        normalize: NormalizeBy::None,
        train_frames: 0,
        rois: Vec::new(),
        ignored: None,
        bit_depth: 0,
    };
    refused(settings, Reference::new(context, layout, &wanted))
}

/// A comparison of a surface with what `frame` shows, so that hardly anything is marked. `variant` is `novelty`, the element's
/// default, or `lines`, which looks for dark lines too.
pub fn surface(
    context: &Arc<ClContext>,
    layout: &FrameLayout,
    frame: &ClFrame,
    settings: &Settings,
) -> Result<Surface, Error> {
    let channels = ChannelsInUse {
        novelty: true,
        dark_lines: settings.variant == "lines",
        bright_lines: false,
    };
    let mut wanted = SurfaceSettings {
        model: None,
        limits: channels.numbers().map(|_| settings.threshold).collect(),
        channels,
        rois: Vec::new(),
        ignored: None,
        bit_depth: 0,
        line_scan: false,
        image: settings.image,
    };
    let mut teacher = Surface::new(context, layout, &wanted)?;
    let meter = Meter::new(false);
    let mask = ClFrame::scratch(context, layout, &meter)?;
    let subject = Subject::whole(frame, layout.height, &meter);
    teacher.mark(subject, MaskTarget::Grey(&mask))?;
    let features = teacher.features()?;
    let mut samples = Samples::new(features.len());
    samples.add(&features);
    wanted.model = Some(Arc::new(SurfaceModel::learn(&samples)?));
    refused(settings, Surface::new(context, layout, &wanted))
}
