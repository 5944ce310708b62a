//! The map of a roll: where on the web each defect lies, and which planted defects were listed.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    path::Path,
};

use gstclinspect::results::{Defect, DefectResult};
use serde::Serialize;

use crate::{
    common::cloth::{ClothDefect, SECTION_ROWS},
    failure::Failure,
    roll_map,
    settings::Strips,
};

/// Most defects that the map shows, the newest.
const SHOWN: usize = 20_000;
/// A defect is listed at most so many rows after its first one: `max-defect-rows`, and some strips.
const LATEST_ROWS: u64 = 20 * SECTION_ROWS;

/// A defect on the roll.
#[derive(Serialize, Clone)]
pub struct RollLine {
    pub id: u32,
    pub class: String,
    /// Webs that ended before.
    pub web: u64,
    /// First row, counted from the web's first row.
    pub line: u64,
    /// Left edge, px.
    pub x: u32,
    pub width: u32,
    pub height: u32,
    pub area: u32,
    /// The finest level of the comparison that marks a pixel: 0 = single pixels.
    pub level: u8,
    /// Visibility; absent if the size of a pixel or the mean level is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semu: Option<f64>,
    /// Left edge, mm; absent, like the other lengths, if the size of a pixel is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub across_mm: Option<f64>,
    /// First row, m from the web's first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub along_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_mm: Option<[f64; 2]>,
    /// The element closed the defect before its end, or it is the rest of such a defect.
    pub cut: bool,
    /// Kind of the planted defect; empty if none was planted here, absent if the source plants none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planted: Option<&'static str>,
}

impl RollLine {
    /// Headings of [`Self::to_text`].
    pub const HEADER: &str = "    id  class          across        along         size                 area [px]  \
                              visibility, planted kind";

    pub fn to_text(&self) -> String {
        let lengths = match (self.across_mm, self.along_m, self.size_mm) {
            (Some(across), Some(along), Some([width, height])) => [
                format!("{across:.1} mm"),
                format!("{along:.4} m"),
                format!("{width:.1} x {height:.1} mm"),
            ],
            _ => [
                format!("{} px", self.x),
                format!("line {}", self.line),
                format!("{} x {} px", self.width, self.height),
            ],
        };
        let [across, along, size] = lengths;
        let mut text = format!(
            "{:6}  {:13}  {across:12}  {along:12}  {size:18}  {:10}",
            self.id, self.class, self.area
        );
        if self.level > 0 {
            text += &format!("  level {}", self.level);
        }
        if let Some(semu) = self.semu {
            text += &format!("  {semu:.1} SEMU");
        }
        match self.planted {
            Some("") => text += "  not planted",
            Some(kind) => text += &format!("  {kind}"),
            None => {}
        }
        if self.cut {
            text += "  (cut)";
        }
        text
    }
}

/// Planted defects of a kind: how often they were listed.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Listed {
    pub planted: u64,
    pub once: u64,
    pub more_than_once: u64,
    pub not: u64,
}

/// The sum of a roll.
#[derive(Serialize, Default)]
pub struct RollSummary {
    pub webs: u64,
    pub lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_m: Option<f64>,
    pub listed_defects: u64,
    /// Defects where none was planted; absent if the source plants none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_planted: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub planted: BTreeMap<&'static str, Listed>,
}

impl RollSummary {
    pub fn to_text(&self) -> String {
        let mut text = format!("\nroll: {} lines", self.lines);
        if let Some(length) = self.length_m {
            text += &format!(", {length:.3} m");
        }
        let plural = if self.webs == 1 { "" } else { "s" };
        text += &format!(
            " in {} web{plural}, {} defects listed",
            self.webs, self.listed_defects
        );
        if let Some(others) = self.not_planted {
            let all = self.planted.values().fold([0; 4], |[a, b, c, d], kind| {
                let Listed {
                    planted,
                    once,
                    more_than_once,
                    not,
                } = kind;
                [a + planted, b + once, c + more_than_once, d + not]
            });
            let [planted, once, more, not] = all;
            text += &format!(
                ", {others} of them where none was planted\nplanted defects: {planted}; listed once: \
                 {once}, more than once: {more}, not: {not}"
            );
        }
        for (kind, n) in &self.planted {
            text += &format!(
                "\n  {kind:12} {:5} planted {:5} once {:5} more {:5} not",
                n.planted, n.once, n.more_than_once, n.not
            );
        }
        text
    }
}

/// What was found on a roll. A roll is one web after the other.
pub struct Roll {
    strips: Option<Strips>,
    summary: RollSummary,
    /// Planted defects that may still be listed, and how often they were.
    awaited: VecDeque<(ClothDefect, u64)>,
    /// Defects for the map, with their first row on the roll.
    shown: VecDeque<(u64, RollLine)>,
    web: Option<u64>,
    /// Rows of the roll before this web.
    before: u64,
    /// Rows of the web so far.
    rows: u64,
    width: u32,
    mm_per_pixel: [f64; 2],
}

impl Roll {
    /// An empty roll; `strips` is the web in which defects are planted.
    pub fn new(strips: Option<Strips>) -> Self {
        Self {
            strips,
            summary: RollSummary {
                not_planted: strips.map(|_| 0),
                ..RollSummary::default()
            },
            awaited: VecDeque::new(),
            shown: VecDeque::new(),
            web: None,
            before: 0,
            rows: 0,
            width: 0,
            mm_per_pixel: [0.0; 2],
        }
    }

    /// Adds the defects that closed with a strip.
    pub fn take(&mut self, result: &DefectResult) -> Vec<RollLine> {
        // An element that was started anew counts webs and lines from 0 again.
        if self.web != Some(result.web) || result.first_line < self.rows {
            self.web = Some(result.web);
            self.before += self.rows;
            self.rows = 0;
            self.summary.webs += 1;
        }
        let rows = result.first_line..result.first_line + u64::from(result.height);
        self.rows = rows.end;
        self.summary.lines += u64::from(result.height);
        self.width = result.width;
        self.mm_per_pixel = [result.mm_per_pixel_x, result.mm_per_pixel_y];
        self.plant(&rows);
        let lines: Vec<RollLine> = result
            .defects
            .iter()
            .map(|defect| self.line(result, defect))
            .collect();
        self.summary.listed_defects += lines.len() as u64;
        for line in &lines {
            if self.shown.len() == SHOWN {
                self.shown.pop_front();
            }
            self.shown
                .push_back((self.before + line.line, line.clone()));
        }
        lines
    }

    /// Notes the defects that are planted in these rows; counts those that will not be listed any more.
    fn plant(&mut self, rows: &Range<u64>) {
        let Some(strips) = self.strips else { return };
        let planted = strips.spec.planted(strips.seed, rows.clone());
        self.awaited
            .extend(planted.into_iter().map(|defect| (defect, 0)));
        let kept = self.awaited.iter();
        let past = kept.take_while(|(d, _)| d.rows().end + LATEST_ROWS < rows.start);
        for _ in 0..past.count() {
            self.count_first();
        }
    }

    fn count_first(&mut self) {
        let Some((defect, times)) = self.awaited.pop_front() else {
            return;
        };
        let kind = self.summary.planted.entry(defect.kind.name()).or_default();
        kind.planted += 1;
        match times {
            0 => kind.not += 1,
            1 => kind.once += 1,
            _ => kind.more_than_once += 1,
        }
    }

    fn line(&mut self, result: &DefectResult, defect: &Defect) -> RollLine {
        let line = result.first_line.saturating_add_signed(i64::from(defect.y));
        let columns =
            defect.x.max(0) as u64..(i64::from(defect.x) + i64::from(defect.width)) as u64;
        let rows = line..line + u64::from(defect.height);
        let mut planted = self.strips.map(|_| "");
        for (other, times) in &mut self.awaited {
            if other.is_met(columns.clone(), rows.clone()) {
                *times += 1;
                planted = Some(other.kind.name());
            }
        }
        if planted == Some("") {
            *self.summary.not_planted.get_or_insert_default() += 1;
        }
        let [mm_x, mm_y] = self.mm_per_pixel;
        let known = mm_x > 0.0 && mm_y > 0.0;
        RollLine {
            id: defect.id,
            class: result.class_name(defect.class).to_owned(),
            web: self.summary.webs.saturating_sub(1),
            line,
            x: columns.start as u32,
            width: defect.width,
            height: defect.height,
            area: defect.area,
            level: defect.level(),
            semu: result.semu(defect),
            across_mm: known.then_some(columns.start as f64 * mm_x),
            along_m: known.then(|| line as f64 * mm_y / 1e3),
            size_mm: known.then(|| {
                [
                    f64::from(defect.width) * mm_x,
                    f64::from(defect.height) * mm_y,
                ]
            }),
            cut: defect.flags & (Defect::CUT | Defect::CONTINUED) != 0,
            planted,
        }
    }

    /// Draws the map into the folder.
    ///
    /// # Errors
    /// The picture cannot be written.
    pub fn draw(&self, folder: &Path) -> Result<(), Failure> {
        let size = [u64::from(self.width), self.before + self.rows];
        let file = folder.join("roll-map.png");
        roll_map::draw(&file, size, self.mm_per_pixel, &self.shown).map_err(Failure::Runtime)
    }

    /// The sum of the roll.
    pub fn summary(mut self) -> RollSummary {
        while !self.awaited.is_empty() {
            self.count_first();
        }
        let mm = self.mm_per_pixel[1];
        self.summary.length_m = (mm > 0.0).then(|| self.summary.lines as f64 * mm / 1e3);
        self.summary
    }
}
