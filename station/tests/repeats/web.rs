//! A web of lines of 0.1 mm, 1.6 m wide.

use clinspect_testkit::marks::{MarkedWeb, Place};
use plan::RepeatSettings;
use run::repeats::{Finder, Limits, News};

/// Height and width of a pixel, mm.
pub const PIXEL: f64 = 0.1;
/// Width of the web, mm.
pub const WIDTH: f64 = 1600.0;
/// Length of a small defect, lines.
const LENGTH: f64 = 10.0;

/// The web of a seed.
pub fn web(seed: u64) -> MarkedWeb {
    MarkedWeb { width: WIDTH, seed }
}

/// A finder at the beginning of a web.
pub fn finder(settings: &RepeatSettings) -> Finder {
    let width = WIDTH / PIXEL;
    Finder::new(Limits::new(settings, width, PIXEL), width, 0.0)
}

/// Gives the finder a defect.
pub fn add(finder: &mut Finder, [along, across]: Place) -> Option<News> {
    let line = (along / PIXEL).round();
    let found = finder.add(line, across / PIXEL, LENGTH);
    finder.pass(line);
    found
}

/// RepeatSettings that know the circumferences, m.
pub fn known(periods: &[f64]) -> RepeatSettings {
    RepeatSettings {
        periods_m: periods.to_vec(),
        ..RepeatSettings::default()
    }
}
