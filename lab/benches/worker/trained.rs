//! The comparison with a trained picture.

use std::sync::Arc;

use clinspect_core::{layout::FrameLayout, reference::Model};
use clinspect_opencl::ClContext;
use clinspect_operators::{Align, NormalizeBy, Polarity, Reference, ReferenceSettings};

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
