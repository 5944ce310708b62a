//! The rules of classes: what holds, what is refused and where, and print -> parse.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_core::classes::{Classes, Features, OTHER, PATTERN_MISSING};
use proptest::prelude::*;

/// A horizontal scratch of 40x2 pixels, 10 grey levels darker.
fn scratch() -> Features {
    Features {
        area: 72.0,
        width: 40.0,
        height: 2.0,
        major: 46.0,
        minor: 2.0,
        boundary: 90.0,
        mean: -10.0,
        peak: -14.5,
        polarity: -1.0,
        level: 2.0,
    }
}

fn class(rules: &str, features: &Features) -> u16 {
    let classes = Classes::parse(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    classes.class_of(features)
}

#[test]
fn first_rule_that_holds_gives_the_class() {
    let rules =
        "scratch: elongation > 4 and major > 20; particle: area < 60 and mean < 0; dark: mean<0";
    assert_eq!(class(rules, &scratch()), 1);
    let dot = Features {
        area: 12.0,
        major: 4.0,
        minor: 3.5,
        ..scratch()
    };
    assert_eq!(class(rules, &dot), 2);
    let blob = Features { area: 60.0, ..dot };
    assert_eq!(class(rules, &blob), 3);
    let bright = Features { mean: 1.0, ..blob };
    assert_eq!(class(rules, &bright), OTHER);
    assert_eq!(class("", &scratch()), OTHER);
}

#[test]
fn every_feature_and_operator_compares_its_own_value() {
    for (feature, value) in [
        ("area", 72.0),
        ("width", 40.0),
        ("height", 2.0),
        ("major", 46.0),
        ("minor", 2.0),
        ("elongation", 23.0),
        ("fill", 0.9),
        ("boundary", 90.0),
        ("mean", -10.0),
        ("peak", -14.5),
        ("polarity", -1.0),
        ("level", 2.0),
    ] {
        for (operator, below, equal, above) in [
            ("<", 0, 0, 1),
            ("<=", 0, 1, 1),
            (">", 1, 0, 0),
            (">=", 1, 1, 0),
        ] {
            for (number, expected) in [(value - 0.5, below), (value, equal), (value + 0.5, above)] {
                let rule = format!("a: {feature} {operator} {number}");
                assert_eq!(class(&rule, &scratch()), expected, "{rule}");
            }
        }
    }
}

#[test]
fn a_defect_without_a_minor_axis_is_infinitely_long() {
    let line = Features {
        minor: 0.0,
        ..scratch()
    };
    assert_eq!(class("a: elongation > 1e308", &line), 1);
    let dot = Features { major: 0.0, ..line };
    assert_eq!(class("a: elongation > 1e308", &dot), 1);
}

#[test]
fn spaces_and_a_last_semicolon_do_not_matter() {
    let tidy = Classes::parse("a-1: area < 60 and mean < -0.5; b_2: peak >= 3").unwrap();
    for same in [
        "a-1:area<60 and mean<-0.5;b_2:peak>=3",
        "  a-1 :\tarea  <60\n and mean< -.5 ; b_2 : peak >=+3 ; ",
    ] {
        assert_eq!(Classes::parse(same).as_ref(), Ok(&tidy), "{same}");
    }
    assert_eq!(tidy.names().collect::<Vec<_>>(), ["a-1", "b_2"]);
    assert_eq!(tidy.number("b_2"), Some(2));
    assert_eq!(tidy.number("other"), Some(OTHER));
    assert_eq!(tidy.number("pattern-missing"), Some(PATTERN_MISSING));
    assert_eq!(tidy.number("c"), None);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    for (rules, words) in [
        (
            "a: aera < 6",
            ["rule 1, column 4", "\"aera\" is no feature", "area, width"],
        ),
        (
            "a: area < 6; b: mean <",
            [
                "rule 2, column 23",
                "the end of the rule is no number",
                "a number",
            ],
        ),
        (
            "a: area < 6; b: mean <; c: area > 1",
            [
                "rule 2, column 23",
                "the end of the rule is no number",
                "a number",
            ],
        ),
        (
            "a: area < 6x",
            ["rule 1, column 11", "\"6x\" is no number", "a number"],
        ),
        (
            "a: area < inf",
            ["rule 1, column 11", "\"inf\" is no number", "a number"],
        ),
        (
            "a: area < nan",
            ["rule 1, column 11", "\"nan\" is no number", "a number"],
        ),
        (
            "a: area < 1e999",
            ["rule 1, column 11", "\"1e999\" is no number", "a number"],
        ),
        (
            "a: area = 6",
            ["rule 1, column 9", "\"=\" is no operator", "<, <=, >, >="],
        ),
        (
            "a: area",
            [
                "rule 1, column 8",
                "the end of the rule is no operator",
                "<, <=, >, >=",
            ],
        ),
        (
            "a area < 6",
            ["rule 1, column 3", "\"area\" follows the name", "a colon"],
        ),
        (
            "a",
            [
                "rule 1, column 2",
                "the end of the rule follows the name",
                "a colon",
            ],
        ),
        (
            "a:",
            [
                "rule 1, column 3",
                "the end of the rule is no feature",
                "area, width",
            ],
        ),
        (
            "a: area < 6 or mean < 0",
            [
                "rule 1, column 13",
                "\"or\" follows a condition",
                "\"and\" or a semicolon",
            ],
        ),
        (
            "a: area < 6 and",
            [
                "rule 1, column 16",
                "the end of the rule is no feature",
                "area, width",
            ],
        ),
        (
            ": area < 6",
            [
                "rule 1, column 1",
                "\":\" is no class name",
                "letters, digits",
            ],
        ),
        (
            "a: area < 6;; b: area < 7",
            [
                "rule 2, column 13",
                "the end of the rule is no class name",
                "letters, digits",
            ],
        ),
        (
            "a.b: area < 6",
            [
                "rule 1, column 1",
                "\"a.b:\" is no class name",
                "letters, digits",
            ],
        ),
        (
            "größe: area < 6",
            [
                "rule 1, column 1",
                "\"größe:\" is no class name",
                "letters, digits",
            ],
        ),
        (
            "ä: area < 6",
            ["rule 1, column 1", "is no class name", "letters, digits"],
        ),
        (
            "other: area < 6",
            [
                "rule 1, column 1",
                "is the name of a class that needs no rule",
                "a class name",
            ],
        ),
        (
            "pattern-missing: area < 6",
            [
                "rule 1, column 1",
                "is the name of a class that needs no rule",
                "a class name",
            ],
        ),
        (
            "a: area < 6; a: mean < 0",
            ["rule 2", "the name \"a\" is taken", "a name of its own"],
        ),
    ] {
        let error = Classes::parse(rules).expect_err(rules);
        for word in words {
            assert!(error.contains(word), "{rules}: \"{error}\" lacks {word}");
        }
    }
}

#[test]
fn class_numbers_end_before_that_of_a_missing_pattern() {
    let rules =
        |count: usize| -> String { (0..count).map(|n| format!("c{n}: area > {n};")).collect() };
    let most = Classes::parse(&rules(65_534)).expect("65534 rules");
    assert_eq!(most.number("c65533"), Some(65_534));
    let error = Classes::parse(&rules(65_535)).expect_err("one too many");
    assert!(
        error.contains("rule 65535") && error.contains("at most 65534"),
        "{error}"
    );
}

fn rule() -> impl Strategy<Value = (String, Vec<(usize, usize, f64)>)> {
    let number = prop_oneof![-1e3..1e3, prop::num::f64::NORMAL, Just(0.0), Just(-0.0)];
    let condition = (0..12_usize, 0..4_usize, number);
    ("[A-Za-z0-9_-]{1,8}", prop::collection::vec(condition, 1..4))
}

const FEATURES: [&str; 12] = [
    "area",
    "width",
    "height",
    "major",
    "minor",
    "elongation",
    "fill",
    "boundary",
    "mean",
    "peak",
    "polarity",
    "level",
];
const OPERATORS: [&str; 4] = ["<", "<=", ">", ">="];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_rules_are_read_as_the_same_rules(rules in prop::collection::vec(rule(), 0..6)) {
        let mut known = std::collections::HashSet::from(["other".to_owned(), "pattern-missing".to_owned()]);
        let texts: Vec<String> = rules
            .iter()
            .filter(|(name, _)| known.insert(name.clone()))
            .map(|(name, conditions)| {
                let conditions: Vec<String> = conditions
                    .iter()
                    .map(|&(f, o, number)| format!("{} {} {number:e}", FEATURES[f], OPERATORS[o]))
                    .collect();
                format!("{name}: {}", conditions.join(" and "))
            })
            .collect();
        let text = texts.join("; ");
        let classes = Classes::parse(&text).map_err(TestCaseError::fail)?;
        prop_assert_eq!(classes.names().len(), texts.len());
        prop_assert_eq!(Classes::parse(&classes.to_string()), Ok(classes));
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "(\\PC|[ab:;<=>. \t]|and|area|mean|1){0,30}") {
        match Classes::parse(&text) {
            Ok(classes) => {
                prop_assert_eq!(Classes::parse(&classes.to_string()), Ok(classes));
            }
            Err(error) => prop_assert!(error.starts_with("rule "), "{}", error),
        }
    }
}
