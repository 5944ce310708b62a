//! The properties `classes` and `fail`: the classes of defects, and when a frame fails. A measured defect in the forms
//! that the rules of classes and the results have.

use crate::elements::{
    checked::CheckedValue,
    property_table::{Row, properties},
    structure::{Structure, structure},
    text::Text,
};
use clinspect_core::{
    ClError,
    classes::{Classes, Features, PATTERN_MISSING},
    components::MeasuredDefect,
};
use clinspect_results::{Defect, VerdictLimits};

/// The rules of the classes and of the verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    classes: Text,
    fail: CheckedValue<Fail>,
}

/// When a frame fails; -1 turns a limit off.
#[derive(Debug, Clone, PartialEq)]
struct Fail {
    defect_pixels: i64,
    defect_count: i64,
    defect_area: i64,
    angle: f64,
    corrupted: bool,
    classes: Text,
}

impl Default for Fail {
    fn default() -> Self {
        Self {
            defect_pixels: -1,
            defect_count: 0,
            defect_area: -1,
            angle: -1.0,
            corrupted: true,
            classes: Text::default(),
        }
    }
}

structure!(Fail, "fail" {
    limit(
        "defect-pixels", "Defect pixels",
        "A frame with more marked pixels than this fails; -1 = off"
    ) = defect_pixels;
    limit(
        "defect-count", "Defect count",
        "A frame with more listed defects than this fails; without a list (limits with max-defects=0), \
         a frame with a marked pixel fails; -1 = off"
    ) = defect_count;
    limit(
        "defect-area", "Defect area",
        "A frame with a listed defect of more pixels than this fails; -1 = off"
    ) = defect_area;
    double(
        "angle", "Angle",
        "clreference: a frame or part that is turned by more than this to either side fails, degrees; -1 = off",
        -1.0..=180.0
    ) = angle;
    boolean(
        "corrupted", "Corrupted",
        "A frame that its source flagged as corrupted (lost packets, concealed errors) fails; false = it is judged \
         as any other frame"
    ) = corrupted;
    text(
        "classes", "Classes",
        "Names of the classes whose defects count for defect-count and defect-area, with commas \
         between them; defects where the pattern is missing always count; empty = all"
    ) = classes;
});

/// Gives defects their classes.
#[derive(Debug)]
pub struct Classifier {
    classes: Classes,
    /// When a frame fails.
    pub limits: VerdictLimits,
}

impl Classifier {
    /// Reads the rules.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a rule that cannot be read, or a name that no class has.
    pub fn new(rules: &Rules) -> Result<Self, ClError> {
        let classes = Classes::parse(&rules.classes.0)
            .map_err(|why| ClError::Refused(format!("classes: {why}")))?;
        let limits = rules.fail.check(Fail::NAME, |fail| {
            let names = fail.classes.0.split(',').map(str::trim);
            let counted = names.filter(|name| !name.is_empty()).map(|name| {
                classes.number(name).ok_or_else(|| {
                    format!(
                        "classes: no class has the name \"{name}\"; use names of classes, other, or \
                         pattern-missing, with commas between them"
                    )
                })
            });
            Ok(VerdictLimits {
                defect_pixels: fail.defect_pixels,
                defect_count: fail.defect_count,
                defect_area: fail.defect_area,
                angle: fail.angle,
                corrupted: fail.corrupted,
                classes: counted.collect::<Result<_, _>>()?,
            })
        })?;
        Ok(Self { classes, limits })
    }

    /// The class of a defect; `is_missing`: a pixel of it is marked only for want of a pattern.
    pub fn class_of(&self, features: &Features, is_missing: bool) -> u16 {
        if is_missing {
            PATTERN_MISSING
        } else {
            self.classes.class_of(features)
        }
    }

    /// Names of the classes 1, 2, ...
    pub fn names(&self) -> Vec<String> {
        self.classes.names().map(Into::into).collect()
    }
}

pub(super) fn rows() -> Vec<Row<Rules>> {
    properties!(Rules {
        text(
            "classes", "Classes",
            "Rules that give defects a class; the first rule that holds counts: \"name: condition and condition; \
             ...\", where a condition is a feature (area, width, height, major, minor, elongation, \
             fill, boundary, mean, peak, polarity, level), an operator (<, <=, >, >=) and a number; empty = \
             no classes"
        ) = classes;
        structure("Fail", "When a frame fails, such as \"fail, defect-count=2\"") = fail;
    })
}

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
        flags: defect.flags
            | Defect::part_flags(defect.part)
            | u16::from(defect.level) << Defect::LEVEL_SHIFT
            | Defect::component_flags(defect.component),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn classifier(classes: &str, fail_classes: &str) -> Result<Classifier, ClError> {
        let fail = Fail {
            classes: Text(fail_classes.into()),
            ..Fail::default()
        };
        Classifier::new(&Rules {
            classes: Text(classes.into()),
            fail: fail.into(),
        })
    }

    #[test]
    fn named_classes_count_and_a_missing_pattern_has_its_own() {
        let rules = "small: area < 10; large: area > 50";
        let all = classifier(rules, " ").expect("rules");
        assert!(all.limits.classes.is_empty());
        let some = classifier(rules, "large, other").expect("rules");
        assert_eq!(some.limits.classes, [2, 0]);
        assert_eq!(some.names(), ["small", "large"]);
        let features = Features {
            area: 5.0,
            ..Features::default()
        };
        assert_eq!(some.class_of(&features, false), 1);
        assert_eq!(some.class_of(&features, true), PATTERN_MISSING);
    }

    #[test]
    fn a_name_that_no_class_has_is_refused() {
        for (classes, names, word) in [
            ("small: area < 10", "small,large", "\"large\""),
            ("small: area", "", "classes: rule 1, column 12"),
        ] {
            let error = classifier(classes, names).expect_err(word);
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
