//! Rules of classes from words and any characters: they are read and printed as the same rules, or
//! refused with a place inside the text.

use arbitrary::{Result, Unstructured};
use clinspect_core::classes::{Classes, Features, OTHER, OWN_NAMES};

const WORDS: [&str; 25] = [
    "scratch",
    "a",
    "b",
    "other",
    ": ",
    ":",
    ";",
    "; ",
    " and ",
    "and",
    " ",
    "area",
    "width",
    "elongation",
    "polarity",
    "level",
    "mean",
    " < ",
    "<=",
    ">",
    ">=",
    "=",
    "12.5",
    "-1e3",
    "\u{e4}",
];

/// See the module.
pub fn run(data: &[u8]) {
    // Too few bytes for a case.
    let _ = body(&mut Unstructured::new(data));
}

fn body(input: &mut Unstructured) -> Result<()> {
    let mut text = String::new();
    while !input.is_empty() {
        if input.ratio(1_u8, 16_u8)? {
            text.push(input.arbitrary()?);
        } else if input.ratio(1_u8, 4_u8)? {
            text += "a: area < 5";
        } else {
            text += input.choose(&WORDS)?;
        }
        check(&text);
        if input.ratio(1_u8, 12_u8)? {
            text.clear();
        }
    }
    Ok(())
}

fn check(text: &str) {
    let classes = match Classes::parse(text) {
        Ok(classes) => classes,
        Err(error) => {
            let column = error.split_once("column ").map(|(_, rest)| {
                let digits = rest.split(':').next().expect("a first part");
                digits.parse::<usize>().expect("a column")
            });
            let past = text.chars().count() + 1;
            let is_inside = column.is_none_or(|column| (1..=past).contains(&column));
            assert!(error.starts_with("rule ") && is_inside, "{text:?}: {error}");
            return;
        }
    };
    assert_eq!(
        Classes::parse(&classes.to_string()).as_ref(),
        Ok(&classes),
        "{text:?}"
    );
    for (index, name) in classes.names().enumerate() {
        assert!(OWN_NAMES.iter().all(|(own, _)| *own != name), "{text:?}");
        assert_eq!(
            classes.number(name).map(usize::from),
            Some(index + 1),
            "{text:?}"
        );
    }
    let class = classes.class_of(&Features::default());
    assert!(
        class == OTHER || usize::from(class) <= classes.names().len(),
        "{text:?}"
    );
}
