//! Gives the defects of a camera's web to a [`Finder`], and tells what it finds.

use std::{f64::consts::PI, sync::atomic::Ordering::Relaxed};

use clinspect_results::{Defect, DefectResult, report::ReportedRepeat};
use machine::info;
use plan::RepeatSettings;

use super::{Finder, Limits, News, Row};
use crate::state::{Camera, RollPlace, RollRepeat};

/// The repeats of a camera's webs. A new web begins anew.
#[derive(Debug)]
pub struct Watch {
    settings: RepeatSettings,
    web: Option<Web>,
}

/// The newest web.
#[derive(Debug)]
struct Web {
    scale: Scale,
    finder: Finder,
}

/// What the numbers of a web mean.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    web: u64,
    /// Width of the web, px.
    width: f64,
    /// Width and height of a pixel, mm; 0 if not known.
    pixel: [f64; 2],
}

impl Watch {
    /// No web yet.
    pub fn new(settings: RepeatSettings) -> Self {
        Self {
            settings,
            web: None,
        }
    }

    /// Takes the results of a strip: raises an alarm for each repeat that is found, and puts the repeats into the camera's
    /// history. Returns those that go on.
    pub fn take(&mut self, strip: &DefectResult, camera: &Camera) -> Vec<ReportedRepeat> {
        let scale = Scale::of(strip);
        let begin = strip.first_line as f64;
        let is_new = self.web.as_ref().is_none_or(|web| web.scale != scale);
        if is_new {
            self.web = None;
        }
        let settings = &self.settings;
        let web = self.web.get_or_insert_with(|| {
            let limits = Limits::new(settings, scale.width, scale.pixel[1]);
            let finder = Finder::new(limits, scale.width, begin);
            Web { scale, finder }
        });
        let had_rows = !web.finder.rows().is_empty();
        let all = web.add(strip);
        for news in &all {
            match news {
                News::Found(row) => {
                    camera.counters.repeats.fetch_add(1, Relaxed);
                    // The same strip may show that the row is wider.
                    let rows = web.finder.rows().iter();
                    let now = rows.rev().find(|other| other.id == row.id);
                    let text = web.scale.alarm(now.unwrap_or(row));
                    camera.alarm(format!("defects of web {} repeat: {text}", scale.web));
                }
                News::Halved(row) => {
                    let is_told =
                        |other: &News| matches!(other, News::Found(of) if of.id == row.id);
                    // The alarm of this strip has the right period.
                    if !all.iter().any(is_told) {
                        let (id, text) = (row.id, web.scale.alarm(row));
                        camera.alarm(format!(
                            "repeat {id} of web {} comes twice as often as was told: {text}",
                            scale.web
                        ));
                    }
                }
                News::Ended(row) => {
                    let place = web.scale.place(row);
                    let name = &camera.name;
                    info!(
                        "camera {name}: repeat {} of the web has ended: {} times, {place}",
                        row.id, row.count
                    );
                }
            }
        }
        let rows = web.finder.rows();
        // Most webs have none, and frames come fast.
        if had_rows || is_new || !rows.is_empty() {
            let now = rows.iter().filter(|row| row.is_active).count() as u64;
            camera.counters.repeats_now.store(now, Relaxed);
            camera.history().repeats = rows.iter().map(|row| web.scale.on_roll(row)).collect();
        }
        let active = rows.iter().filter(|row| row.is_active);
        active.map(|row| web.scale.reported(row)).collect()
    }
}

impl Web {
    /// Takes the defects of a strip in their order along the web.
    fn add(&mut self, strip: &DefectResult) -> Vec<News> {
        let first = strip.first_line as f64;
        let line = |defect: &Defect| first + f64::from(defect.y) + f64::from(defect.height) / 2.0;
        let mut defects: Vec<&Defect> = strip.defects.iter().collect();
        defects.sort_by(|a, b| line(a).total_cmp(&line(b)));
        let found = defects.into_iter().filter_map(|defect| {
            let across = f64::from(defect.x) + f64::from(defect.width) / 2.0;
            self.finder
                .add(line(defect), across, f64::from(defect.height))
        });
        let mut news: Vec<News> = found.collect();
        news.extend(self.finder.pass(first + f64::from(strip.height)));
        news
    }
}

impl Scale {
    fn of(strip: &DefectResult) -> Self {
        let pixel = [strip.mm_per_pixel_x, strip.mm_per_pixel_y];
        Self {
            web: strip.web,
            width: f64::from(strip.width),
            pixel,
        }
    }

    /// A place along the web, m; `None` if the size of a pixel is not known.
    fn metres(&self, line: f64) -> Option<f64> {
        let [_, height] = self.pixel;
        (height > 0.0).then_some(line * height / 1000.0)
    }

    fn share(&self, across: f64) -> f64 {
        across / self.width.max(1.0)
    }

    /// "every 0.628 m, 412 mm from the left edge (26 %), from 12.31 m to 15.45 m".
    fn place(&self, row: &Row) -> String {
        let along = |line: f64| match self.metres(line) {
            Some(metres) => format!("{metres:.2} m"),
            None => format!("line {line:.0}"),
        };
        let period = match self.metres(row.period) {
            Some(metres) => format!("{metres:.3} m"),
            None => format!("{:.0} lines", row.period),
        };
        let [left, right] = row.across;
        let percent = |px: f64| format!("{:.0} %", 100.0 * self.share(px));
        let [width, _] = self.pixel;
        let (unit, size) = if width > 0.0 {
            ("mm", width)
        } else {
            ("px", 1.0)
        };
        let across = if left == right {
            format!(
                "{:.0} {unit} from the left edge ({})",
                left * size,
                percent(left)
            )
        } else {
            let [from, to] = [left * size, right * size];
            format!(
                "from {from:.0} to {to:.0} {unit} from the left edge ({} to {})",
                percent(left),
                percent(right)
            )
        };
        format!(
            "every {period}, {across}, from {} to {}",
            along(row.first),
            along(row.last)
        )
    }

    fn alarm(&self, row: &Row) -> String {
        let roller = match self.metres(row.period) {
            Some(metres) => format!(
                "a roller of this circumference (diameter {:.0} mm)",
                1000.0 * metres / PI
            ),
            None => "a roller of this circumference".to_owned(),
        };
        format!(
            "{} times, {}; look for {roller} that is dirty or damaged",
            row.count,
            self.place(row)
        )
    }

    fn reported(&self, row: &Row) -> ReportedRepeat {
        let [left, right] = row.across;
        ReportedRepeat {
            id: row.id,
            period_lines: row.period,
            period_m: self.metres(row.period),
            count: row.count,
            left,
            right,
            first_line: row.first,
            last_line: row.last,
        }
    }

    fn on_roll(&self, row: &Row) -> RollRepeat {
        let places = row.places.iter().map(|&[line, across]| RollPlace {
            line,
            metres: self.metres(line),
            across: self.share(across),
        });
        RollRepeat {
            repeat: self.reported(row),
            across: row.across.map(|across| self.share(across)),
            is_active: row.is_active,
            places: places.collect(),
        }
    }
}
