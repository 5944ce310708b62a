//! Defects as text.

use std::fmt::Write;

use gstclinspect::results::DefectResult;

/// A line about the frame, and one about each defect, with line ends.
pub fn defect_text(result: &DefectResult) -> String {
    let mut text = format!(
        "frame {} by {}: {}, {} of {} judged pixels, {} defects{}\n",
        result.frame_number,
        result.element,
        result.verdict.name(),
        result.defect_pixels,
        result.judged_pixels,
        result.defects.len(),
        if result.overflow { " and more" } else { "" },
    );
    for d in &result.defects {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {}x{} at {},{}: area {}, centre {:.2},{:.2}, difference {:.2}, peak {:.2}, \
             polarity {}",
            d.width,
            d.height,
            d.x,
            d.y,
            d.area,
            d.centroid_x,
            d.centroid_y,
            d.mean_difference,
            d.peak_difference,
            d.polarity,
        );
    }
    text
}
