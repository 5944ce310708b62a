//! What people are told of repeats.

use std::sync::Arc;

use clinspect_results::{Defect, DefectResult};
use machine::answer::Line;
use plan::RepeatSettings;
use run::{repeats::Watch, state::Camera};

use crate::web::{PIXEL, WIDTH};

/// Lines of a strip: a fifth of a turn.
const STRIP: u64 = 1000;
/// Lines of a turn, 0.5 m.
const PERIOD: u64 = 5000;

/// The alarms of a web that is damaged at these turns, 300 mm from its left edge.
fn alarms(turns: impl Fn(u64) -> bool) -> Vec<String> {
    let (camera, _requests) = Camera::new("web", &Line::new().unwrap());
    let camera = Arc::new(camera);
    let mut watch = Watch::new(RepeatSettings::default());
    for strip in 0..200 {
        let first_line = strip * STRIP;
        let is_damaged = first_line.is_multiple_of(PERIOD) && turns(first_line / PERIOD);
        let defects = is_damaged.then(|| Defect {
            x: 2995,
            y: 400,
            width: 10,
            height: 10,
            ..Defect::default()
        });
        let result = DefectResult {
            width: (WIDTH / PIXEL) as u32,
            height: STRIP as u32,
            first_line,
            mm_per_pixel_x: PIXEL,
            mm_per_pixel_y: PIXEL,
            defects: defects.into_iter().collect(),
            ..DefectResult::default()
        };
        watch.take(&result, &camera);
    }
    let history = camera.history();
    let texts = history.alarms.iter().map(|(_, text)| text.clone());
    texts.collect()
}

#[test]
fn one_alarm_names_period_place_and_roller() {
    assert_eq!(
        alarms(|_| true),
        [
            "defects of web 0 repeat: 5 times, every 0.500 m, 300 mm from the left edge (19 %), from 0.04 m to 2.04 m; look for a \
             roller of this circumference (diameter 159 mm) that is dirty or damaged"
        ]
    );
    assert_eq!(alarms(|turn| turn < 3), [""; 0]);
}

#[test]
fn second_alarm_corrects_a_period_that_turns_without_a_mark_had_doubled() {
    let alarms = alarms(|turn| turn % 2 == 0 || turn > 12);
    let [first, second] = &alarms[..] else {
        panic!("{alarms:?}");
    };
    assert!(first.contains("times, every 1.000 m,"), "{first}");
    assert!(
        second.starts_with("repeat 1 of web 0 comes twice as often as was told: "),
        "{second}"
    );
    assert!(second.contains("every 0.500 m,"), "{second}");
}
