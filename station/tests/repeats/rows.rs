//! What happens to a row after it was found.

use clinspect_testkit::marks::Place;
use plan::RepeatSettings;
use run::repeats::{Finder, Limits, News};

use crate::web::{PIXEL, WIDTH, add, finder, known};

/// Gives marks, and returns the rows that were found.
fn found(finder: &mut Finder, places: impl IntoIterator<Item = Place>) -> usize {
    let news = places.into_iter().filter_map(|place| add(finder, place));
    news.filter(|news| matches!(news, News::Found(_))).count()
}

/// Turn `turn` of a roller of 500 mm at a place across.
fn mark(turn: u32, across: f64) -> Place {
    [2000.0 + 500.0 * f64::from(turn), across]
}

#[test]
fn row_is_told_once_and_goes_on() {
    let mut finder = finder(&RepeatSettings::default());
    assert_eq!(found(&mut finder, (0..20).map(|turn| mark(turn, 300.0))), 1);
    let row = &finder.rows()[0];
    assert_eq!((row.count, row.period), (20, 5000.0));
    assert_eq!([row.first, row.last], [20_000.0, 115_000.0]);
    assert_eq!(row.across, [3000.0; 2]);
    assert!(row.is_active);
}

#[test]
fn row_ends_after_turns_without_a_mark_and_the_next_one_is_told_again() {
    let mut finder = finder(&RepeatSettings::default());
    found(&mut finder, (0..8).map(|turn| mark(turn, 300.0)));
    let end = mark(7, 300.0)[0] / PIXEL;
    assert_eq!(finder.pass(end + 5.0 * 5000.0), []);
    let news = finder.pass(end + 5.0 * 5000.0 + 1.0);
    assert!(
        matches!(&news[..], [News::Ended(row)] if row.count == 8),
        "{news:?}"
    );
    assert_eq!(finder.pass(end + 1e6), [], "it ends once");
    assert_eq!(
        found(&mut finder, (40..50).map(|turn| mark(turn, 300.0))),
        1
    );
    assert_eq!(finder.rows().len(), 2);
}

#[test]
fn seam_of_each_turn_is_one_row_across_the_web() {
    let mut finder = finder(&RepeatSettings::default());
    let turns = (0..10)
        .flat_map(|turn| (0..80).map(move |piece| mark(turn, 10.0 + 20.0 * f64::from(piece))));
    assert_eq!(found(&mut finder, turns), 1);
    let [left, right] = finder.rows()[0].across;
    assert!(left < 200.0 && right > 15_800.0, "{left} to {right}");
    assert_eq!(
        (finder.rows()[0].count, finder.rows()[0].places.len()),
        (10, 10)
    );
}

#[test]
fn two_rollers_are_two_rows() {
    let mut finder = finder(&RepeatSettings::default());
    let first = (0..12).map(|turn| mark(turn, 300.0));
    let second = (0..16).map(|turn| [2111.0 + 377.0 * f64::from(turn), 900.0]);
    let mut places = Vec::from_iter(first.chain(second));
    places.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!(found(&mut finder, places), 2);
    let periods = finder.rows().iter().map(|row| row.period);
    assert_eq!(Vec::from_iter(periods), [3770.0, 5000.0]);
}

#[test]
fn second_damage_at_the_same_place_is_found_as_soon_as_the_first() {
    let mut finder = finder(&RepeatSettings::default());
    let first = (0..30).map(|turn| mark(turn, 300.0));
    let second = (12..30).map(|turn| [mark(turn, 300.0)[0] + 170.0, 300.0]);
    let mut places = Vec::from_iter(first.chain(second));
    places.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let news = places
        .into_iter()
        .filter_map(|place| add(&mut finder, place));
    let counts = news.map(|news| match news {
        News::Found(row) | News::Halved(row) | News::Ended(row) => row.count,
    });
    assert_eq!(Vec::from_iter(counts), [5, 5]);
}

#[test]
fn marks_between_halve_a_period_that_missing_turns_had_doubled() {
    let mut finder = finder(&RepeatSettings::default());
    // The odd turns come late.
    let turns = (0..12).filter(|turn| turn % 2 == 0).chain(12..30);
    let news = turns.filter_map(|turn| add(&mut finder, mark(turn, 300.0)));
    let news = news.map(|news| match news {
        News::Found(row) => ("found", row.period),
        News::Halved(row) => ("halved", row.period),
        News::Ended(row) => ("ended", row.period),
    });
    assert_eq!(
        Vec::from_iter(news),
        [("found", 10_000.0), ("halved", 5000.0)]
    );
    assert_eq!(finder.rows()[0].period, 5000.0);
}

#[test]
fn parts_of_a_mark_are_one_and_long_defects_have_no_place() {
    let mut finder = finder(&RepeatSettings::default());
    let parts =
        |turn| (0..4).map(move |part| [mark(turn, 300.0)[0] + 9.0 * f64::from(part), 300.0]);
    assert_eq!(found(&mut finder, (0..6).flat_map(parts)), 1);
    assert_eq!(found(&mut finder, (6..40).flat_map(parts)), 0);
    assert_eq!(finder.rows()[0].count, 40);
    let mut finder = self::finder(&RepeatSettings::default());
    let long = (0..20).filter_map(|turn| finder.add(5000.0 * f64::from(turn), 3000.0, 2000.0));
    assert_eq!(long.count(), 0);
}

#[test]
fn only_known_periods_are_found_if_some_are_given() {
    let marks = || (0..20).map(|turn| mark(turn, 300.0));
    assert_eq!(found(&mut finder(&known(&[0.6])), marks()), 0);
    assert_eq!(found(&mut finder(&known(&[0.6, 0.495])), marks()), 1);
    let with_others = RepeatSettings {
        range_m: Some([0.3, 0.55]),
        ..known(&[0.6])
    };
    assert_eq!(found(&mut finder(&with_others), marks()), 1);
}

#[test]
fn web_of_unknown_scale_counts_lines() {
    let width = WIDTH / PIXEL;
    let mut finder = Finder::new(
        Limits::new(&RepeatSettings::default(), width, 0.0),
        width,
        700.0,
    );
    let lines = (0..10).map(|turn| 1000.0 + 1500.0 * f64::from(turn));
    let news = lines.filter_map(|line| finder.add(line, 8000.0, 3.0));
    assert_eq!(news.count(), 1);
}

#[test]
fn many_defects_take_little_time() {
    for (name, step) in [("dense", 1), ("at one place", 501)] {
        let mut finder = finder(&RepeatSettings::default());
        let started = std::time::Instant::now();
        let mut line = 0;
        for at in 0..50_000u32 {
            line += step + step * (at * 7919 % 97) / 97;
            let across = if step == 1 { at * 7919 % 16_000 } else { 8000 };
            finder.add(f64::from(line), f64::from(across), 1.0);
        }
        let each = started.elapsed().as_secs_f64() / 50_000.0;
        println!("{name}: {:.1} us a defect", each * 1e6);
        assert!(each < 100e-6, "{name}: {each} s");
    }
}
