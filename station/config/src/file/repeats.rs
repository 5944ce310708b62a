//! The table `[camera.repeats]`: which defects of a web repeat.

use std::ops::Range;

use plan::{CameraConfig, RepeatSettings};
use toml::de::DeValue;

use super::{
    mistakes::Mistakes,
    table::{Table, number, wrong_type},
};

/// Periods, m and lines.
const PERIODS_M: Range<f64> = 0.01..100.0;
const PERIODS_LINES: Range<f64> = 20.0..1e7;
/// Least marks of a row: two give a period, and one more could be chance.
const COUNTS: Range<u64> = 3..50;
/// Shares of the width and of the period.
const ACROSS: Range<f64> = 0.0005..0.25;
const ALONG: Range<f64> = 0.0005..0.05;

/// Reads the table, if there is one; `Some(None)` if it is `false`.
pub(super) fn read(
    camera: &mut Table<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Option<RepeatSettings>> {
    if camera.is_false("repeats") {
        return Some(None);
    }
    let mut table = camera.table("repeats", mistakes)?;
    let mut settings = RepeatSettings {
        periods_m: numbers(&mut table, "periods-m", PERIODS_M, mistakes).unwrap_or_default(),
        periods_lines: numbers(&mut table, "periods-lines", PERIODS_LINES, mistakes)
            .unwrap_or_default(),
        range_m: range(&mut table, "range-m", PERIODS_M, mistakes),
        range_lines: range(&mut table, "range-lines", PERIODS_LINES, mistakes),
        ..RepeatSettings::default()
    };
    if let Some(count) = table.whole("count", COUNTS, mistakes) {
        settings.count = u32::try_from(count).unwrap_or(u32::MAX);
    }
    if let Some(across) = table.number("across", ACROSS, mistakes) {
        settings.across = across;
    }
    if let Some(along) = table.number("along", ALONG, mistakes) {
        settings.along = along;
    }
    if settings.range_m.is_some() && settings.range_lines.is_some() {
        let text = "repeats has both range-m and range-lines; keep one of them";
        mistakes.add(&table.place("range-lines"), text);
    }
    table.finish(mistakes);
    Some(Some(settings))
}

/// Notes settings that cannot work with the analyzer of the camera. `table` is the camera's.
pub(super) fn check(
    settings: &RepeatSettings,
    camera: &CameraConfig,
    table: &Table<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) {
    let element = camera.analyzer.factory();
    if camera.analysis.get("line-scan") != Some("true") {
        let text = format!(
            "repeats are looked for on a web, and {element} inspects single frames; set line-scan = true in its table, or \
             leave repeats out"
        );
        mistakes.add(&table.place("repeats"), text);
    } else if settings.needs_metres() && camera.analysis.get("mm-per-pixel").is_none() {
        let text = format!(
            "repeats names periods in metres, and the size of a pixel is not known; set mm-per-pixel in the table of \
             {element}, or write periods-lines and range-lines"
        );
        mistakes.add(&table.place("repeats"), text);
    }
}

/// An array of numbers within the range; `None` if one of them is a mistake.
fn numbers(
    table: &mut Table<'_, '_>,
    key: &'static str,
    range: Range<f64>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Vec<f64>> {
    let value = table.value(key)?;
    let DeValue::Array(values) = value.get_ref() else {
        wrong_type(key, "an array of numbers", value, mistakes);
        return None;
    };
    let numbers = values.iter().map(|value| {
        let number = number(value.get_ref());
        match number {
            None => wrong_type(key, "an array of numbers", value, mistakes),
            Some(number) if !(range.start..=range.end).contains(&number) => {
                let (least, most) = (range.start, range.end);
                let text = format!(
                    "{key} holds {number}, which is out of range; set numbers from {least} to {most}"
                );
                mistakes.add(&value.span(), text);
                return None;
            }
            Some(_) => {}
        }
        number
    });
    // All of them are read, so that each mistake is told.
    let numbers: Vec<Option<f64>> = numbers.collect();
    numbers.into_iter().collect()
}

/// The shortest and the longest period.
fn range(
    table: &mut Table<'_, '_>,
    key: &'static str,
    range: Range<f64>,
    mistakes: &mut Mistakes<'_>,
) -> Option<[f64; 2]> {
    let numbers = numbers(table, key, range, mistakes)?;
    if let [least, most] = numbers[..]
        && least < most
    {
        return Some([least, most]);
    }
    let text = format!(
        "{key} needs two numbers, the shortest period and the longest, such as {key} = [{}]",
        if key == "range-m" {
            "0.1, 3"
        } else {
            "1000, 30000"
        }
    );
    mistakes.add(&table.place(key), text);
    None
}
