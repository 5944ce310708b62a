//! The visibility of a stain on a display.

use super::{Defect, DefectResult};

/// The visibility of a stain ("mura") as SEMU: its contrast over the contrast at which people just notice a
/// stain of its area. `contrast_percent`: the stain's mean difference in percent of its background;
/// `area_mm2`: its area on the display, mm². At 1 half of the people see the stain.
///
/// # Source
/// SEMI D31-1102, "Definition of Measurement Index (SEMU) for Luminance Mura in FPD Image Quality
/// Inspection" (2002), 6.1 and 6.2.
pub fn semu(contrast_percent: f64, area_mm2: f64) -> f64 {
    contrast_percent.abs() / (1.97 / area_mm2.powf(0.33) + 0.72)
}

impl DefectResult {
    /// The visibility of a defect as [`semu`]; `None` if the size of a pixel or the mean level is unknown,
    /// and for a place where the pattern is missing.
    pub fn semu(&self, defect: &Defect) -> Option<f64> {
        let pixel = [self.mm_per_pixel_x, self.mm_per_pixel_y];
        let is_known = pixel.iter().all(|&mm| mm > 0.0) && self.mean_level > 0.0;
        let contrast = 100.0 * f64::from(defect.mean_difference) / self.mean_level;
        let value = semu(contrast, f64::from(defect.area) * pixel[0] * pixel[1]);
        let is_stain = defect.class != Defect::PATTERN_MISSING;
        (is_known && is_stain && value.is_finite()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semu_has_the_values_worked_out_by_hand() {
        // 1 mm²: 1.97 + 0.72 = 2.69 % is just noticed.
        assert!((semu(2.69, 1.0) - 1.0).abs() < 1e-12);
        assert!((semu(-5.38, 1.0) - 2.0).abs() < 1e-12);
        // 100 mm²: 100^0.33 = 10^0.66 = 4.570882; 1.97 / 4.570882 + 0.72 = 1.150989.
        assert!((semu(1.150_989, 100.0) - 1.0).abs() < 1e-6);
        // 0.01 mm²: 1.97 · 4.570882 + 0.72 = 9.724637.
        assert!((semu(9.724_637, 0.01) - 1.0).abs() < 1e-6);
        assert_eq!(semu(0.0, 4.0), 0.0);
        assert_eq!(semu(5.0, 0.0), 0.0);
    }

    #[test]
    fn semu_of_a_defect_is_relative_to_the_mean_level() {
        let result = DefectResult {
            mm_per_pixel_x: 0.5,
            mm_per_pixel_y: 0.25,
            mean_level: 80.0,
            ..DefectResult::default()
        };
        // 800 px are 100 mm²; 1.6 of 80 grey levels are 2 %.
        let stain = Defect {
            area: 800,
            mean_difference: -1.6,
            ..Defect::default()
        };
        let found = result.semu(&stain).unwrap_or_default();
        assert!((found - 2.0 / 1.150_989).abs() < 1e-6, "{found}");

        let missing = Defect {
            class: Defect::PATTERN_MISSING,
            ..stain
        };
        assert_eq!(result.semu(&missing), None);
        let endless = Defect {
            mean_difference: f32::NAN,
            ..stain
        };
        assert_eq!(result.semu(&endless), None);
        for (mm_per_pixel_x, mm_per_pixel_y, mean_level) in [
            (0.0, 0.25, 80.0),
            (0.5, 0.0, 80.0),
            (0.5, 0.25, 0.0),
            (0.5, f64::NAN, 80.0),
            (0.5, 0.25, -1.0),
        ] {
            let unknown = DefectResult {
                mm_per_pixel_x,
                mm_per_pixel_y,
                mean_level,
                ..DefectResult::default()
            };
            assert_eq!(unknown.semu(&stain), None);
        }
    }
}
