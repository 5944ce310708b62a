//! A measured defect in the forms that rules of classes and results have.

use clinspect_core::classes::Features;
use clinspect_core::components::MeasuredDefect;
use clinspect_results::Defect;

/// A defect as it is sent.
pub(super) fn record(defect: &MeasuredDefect, id: u32, class: u16) -> Defect {
    Defect {
        x: defect.x,
        y: defect.y,
        width: defect.width,
        height: defect.height,
        area: defect.area,
        centroid_x: defect.centroid_x as f32,
        centroid_y: defect.centroid_y as f32,
        mean_difference: defect.mean_difference as f32,
        peak_difference: defect.peak_difference as f32,
        polarity: defect.polarity,
        id,
        class,
        flags: defect.flags | u16::from(defect.level) << Defect::LEVEL_SHIFT,
        major_axis: defect.major_axis as f32,
        minor_axis: defect.minor_axis as f32,
        orientation: defect.orientation as f32,
        boundary_length: defect.boundary_length,
    }
}

/// The features of a defect for the rules of the classes.
pub(super) fn features(defect: &MeasuredDefect) -> Features {
    Features {
        area: f64::from(defect.area),
        width: f64::from(defect.width),
        height: f64::from(defect.height),
        major: defect.major_axis,
        minor: defect.minor_axis,
        boundary: f64::from(defect.boundary_length),
        mean: defect.mean_difference,
        peak: defect.peak_difference,
        polarity: f64::from(defect.polarity),
        level: f64::from(defect.level),
    }
}
