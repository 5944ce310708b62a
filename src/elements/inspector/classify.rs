//! The properties `classes` and `fail-classes`, and the classes of defects.

use crate::elements::{
    property_table::{Row, properties},
    text::Text,
};
use clinspect_core::{
    ClError,
    classes::{Classes, Features, PATTERN_MISSING},
};

/// The rules of the classes, and the classes that count for the verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    classes: Text,
    fail_classes: Text,
}

/// Gives defects their classes.
#[derive(Debug)]
pub struct Classifier {
    classes: Classes,
    /// Numbers of the classes that count for the verdict; empty: all.
    counted: Vec<u16>,
}

impl Classifier {
    /// Reads the rules.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a rule that cannot be read, or a name that no class has.
    pub fn new(rules: &Rules) -> Result<Self, ClError> {
        let refused = |name, why| ClError::Refused(format!("{name}: {why}"));
        let classes = Classes::parse(&rules.classes.0).map_err(|why| refused("classes", why))?;
        let names = rules.fail_classes.0.split(',').map(str::trim);
        let counted = names
            .filter(|name| !name.is_empty())
            .map(|name| {
                classes.number(name).ok_or_else(|| {
                    refused(
                        "fail-classes",
                        format!(
                            "no class has the name \"{name}\"; use names of classes, other, or \
                             pattern-missing, with commas between them"
                        ),
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { classes, counted })
    }

    /// The class of a defect; `is_missing`: a pixel of it is marked only for want of a pattern.
    pub fn class_of(&self, features: &Features, is_missing: bool) -> u16 {
        if is_missing {
            PATTERN_MISSING
        } else {
            self.classes.class_of(features)
        }
    }

    /// Numbers of the classes that count for the verdict; empty: all.
    pub fn counted(&self) -> &[u16] {
        &self.counted
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
        text(
            "fail-classes", "Fail at classes",
            "Names of the classes whose defects count for fail-defect-count and fail-defect-area, with \
             commas between them; defects where the pattern is missing always count; empty = all"
        ) = fail_classes;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classifier(classes: &str, fail_classes: &str) -> Result<Classifier, ClError> {
        Classifier::new(&Rules {
            classes: Text(classes.into()),
            fail_classes: Text(fail_classes.into()),
        })
    }

    #[test]
    fn named_classes_count_and_a_missing_pattern_has_its_own() {
        let rules = "small: area < 10; large: area > 50";
        let all = classifier(rules, " ").expect("rules");
        assert!(all.counted().is_empty());
        let some = classifier(rules, "large, other").expect("rules");
        assert_eq!(some.counted(), [2, 0]);
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
