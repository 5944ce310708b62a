//! Regions of interest.

use crate::elements::{base_filter::Target, checked::CheckedValue};
use clinspect_core::{
    ClError,
    region::{Rect, check_region, user_region},
};

/// Checks regions of interest as far as no frame decides.
///
/// # Errors
/// [`ClError::Refused`] for a region that no frame can have.
pub fn check_regions(rois: &CheckedValue<Vec<[u32; 4]>>) -> Result<(), ClError> {
    rois.check("rois", |rois| {
        rois.iter().copied().try_for_each(check_region)
    })
}

/// The regions of interest in the frames of a target.
///
/// # Errors
/// [`ClError::Refused`] for a region outside the frames.
pub fn regions(rois: &CheckedValue<Vec<[u32; 4]>>, target: &Target) -> Result<Vec<Rect>, ClError> {
    let width = target.layout.width;
    // A web has no last row.
    let height = if target.line_scan {
        1 << 32
    } else {
        target.layout.height
    };
    rois.check("rois", |rois| {
        let rois = rois.iter();
        rois.map(|&roi| user_region(roi, width, height)).collect()
    })
}
