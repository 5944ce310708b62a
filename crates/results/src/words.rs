//! Results in words, for people.

use std::fmt;

use super::{BlindLimit, Defect, DefectResult, Unplaced, Verdict};

/// Names of the classes that have no rule.
const OTHER: &str = "other";
const PATTERN_MISSING: &str = "pattern-missing";

impl fmt::Display for BlindLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, marks, reach } = self;
        write!(
            f,
            "{name} marks differences from {marks:.1} grey levels on, but a defect of half the range of what is inspected \
             differs by {reach:.1}"
        )
    }
}

impl DefectResult {
    /// The name of a class; `other` for a number without a name.
    pub fn class_name(&self, class: u16) -> &str {
        let names = &self.class_names;
        match class {
            Defect::OTHER => OTHER,
            Defect::PATTERN_MISSING => PATTERN_MISSING,
            _ => names.get(usize::from(class) - 1).map_or(OTHER, |name| name),
        }
    }

    /// Whether the class of a defect is worth showing: there are classes, or the pattern is missing.
    pub fn is_classified(&self, defect: &Defect) -> bool {
        !self.class_names.is_empty() || defect.class != Defect::OTHER
    }

    /// The number of listed defects of each class: `other`, every class with a name in the order of
    /// their numbers, `pattern-missing`.
    pub fn class_counts(&self) -> Vec<(&str, u32)> {
        let named = self.class_names.iter().map(String::as_str);
        let names = [OTHER].into_iter().chain(named).chain([PATTERN_MISSING]);
        let mut counts: Vec<_> = names.map(|name| (name, 0)).collect();
        let last = counts.len() - 1;
        for defect in &self.defects {
            let index = match defect.class {
                Defect::PATTERN_MISSING => last,
                class if usize::from(class) < last => class.into(),
                _ => usize::from(Defect::OTHER),
            };
            counts[index].1 += 1;
        }
        counts
    }

    /// Distance of the left edge of a defect's box from the frame's left edge, mm; `None` if the
    /// width of a pixel is unknown.
    pub fn x_mm(&self, defect: &Defect) -> Option<f64> {
        let mm = f64::from(defect.x) * self.mm_per_pixel_x;
        (self.mm_per_pixel_x > 0.0).then_some(mm)
    }

    /// Distance of the top edge of a defect's box from the first row of the web or frame, m; `None`
    /// if the height of a pixel is unknown.
    pub fn y_m(&self, defect: &Defect) -> Option<f64> {
        let m = self.line(defect) as f64 * self.mm_per_pixel_y / 1000.0;
        (self.mm_per_pixel_y > 0.0).then_some(m)
    }

    /// Row of the top edge of a defect's box, counted from the first row of the web or frame.
    fn line(&self, defect: &Defect) -> i128 {
        i128::from(self.first_line) + i128::from(defect.y)
    }

    /// The place of the upper left corner of a defect's box, such as "12.4 mm, 103.62 m" from the
    /// left edge and the first row of the web or frame, or "12,40" px if the size of a pixel is
    /// unknown. Less than 1 m along y is in mm.
    pub fn position(&self, defect: &Defect) -> String {
        let across = self.x_mm(defect).map(|mm| format!("{mm:.1} mm"));
        let along = self.y_m(defect).map(|m| {
            if m.abs() < 1.0 {
                format!("{:.1} mm", 1000.0 * m)
            } else {
                format!("{m:.2} m")
            }
        });
        let (x, line) = (defect.x, self.line(defect));
        match (across, along) {
            (None, None) => format!("{x},{line}"),
            (across, along) => format!(
                "{}, {}",
                across.unwrap_or_else(|| format!("column {x}")),
                along.unwrap_or_else(|| format!("row {line}")),
            ),
        }
    }

    /// How far the training is that the frame belongs to, and the learning of limits that is pending, such as
    /// "training, 3 of 25 frames; learning, 3 of 25 frames".
    pub fn progress_in_words(&self) -> Option<String> {
        let named = [("training", self.training), ("learning", self.learning)];
        let parts: Vec<String> = named
            .into_iter()
            .filter_map(|(name, progress)| {
                let [done, all] = progress?;
                Some(format!("{name}, {done} of {all} frames"))
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The verdict as a line, such as "fail: 2 defects (1 scratch, 1 other), 37 of 480000 judged
    /// pixels marked, largest 30 px at 12,40".
    pub fn summary(&self) -> String {
        let summary = self.summary_of_pixels();
        if self.corrupted {
            format!("{summary}, the source flagged the frame as corrupted")
        } else {
            summary
        }
    }

    fn summary_of_pixels(&self) -> String {
        let progress = self.progress_in_words();
        if self.verdict == Verdict::None {
            let blind = self.blind.as_ref().map(BlindLimit::to_string);
            let unplaced = self.unplaced.as_ref().map(Unplaced::to_string);
            let whys = blind.into_iter().chain(unplaced).chain(progress);
            let whys: Vec<String> = whys.collect();
            return if whys.is_empty() {
                "none: no pixel could be judged".into()
            } else {
                format!("none: {}", whys.join("; "))
            };
        }
        if let Some(found) = self.alignment.filter(|found| !found.matched) {
            return format!(
                "fail: the frame does not match the model, score {:.2}",
                found.match_score
            );
        }
        let count = self.defects.len();
        let (more, plural) = match (self.overflow, count) {
            (true, _) => (" or more", "s"),
            (false, 1) => ("", ""),
            (false, _) => ("", "s"),
        };
        let verdict = self.verdict.name();
        let mut line = if self.overflow && count == 0 {
            format!(
                "{verdict}: no list of defects, because max-defects of limits is 0, or more runs are marked than max-runs \
                 of limits allows (learn the limits again, or raise threshold or max-runs)"
            )
        } else {
            format!("{verdict}: {count}{more} defect{plural}")
        };
        let classes: Vec<String> = self
            .class_counts()
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if !self.class_names.is_empty() && !classes.is_empty() {
            line += &format!(" ({})", classes.join(", "));
        }
        line += &format!(
            ", {} of {} judged pixels marked",
            self.defect_pixels, self.judged_pixels
        );
        if self.missing_pixels > 0 {
            line += &format!(", the pattern is missing on {}", self.missing_pixels);
        }
        if let Some(largest) = self.defects.first() {
            let (area, position) = (largest.area, self.position(largest));
            line += &format!(", largest {area} px at {position}");
        }
        if self.open_area > 0 {
            line += &format!(", one of {} px continues", self.open_area);
        }
        if let Some(progress) = progress {
            line += &format!("; {progress}");
        }
        line
    }

    /// The place of the frame in a web; empty for frames and for the first strip.
    fn strip(&self) -> String {
        match (self.web, self.first_line) {
            (0, 0) => String::new(),
            (web, line) => format!(" (web {web}, row {line})"),
        }
    }

    /// A line about a defect, without a line end.
    fn defect_line(&self, d: &Defect) -> String {
        let mut line = format!("{}x{} at {},{}", d.width, d.height, d.x, d.y);
        let position = self.position(d);
        if position != format!("{},{}", d.x, d.y) {
            line += &format!(" ({position})");
        }
        line += &format!(
            ": area {}, centre {:.2},{:.2}, difference {:.2}, peak {:.2}, polarity {}",
            d.area, d.centroid_x, d.centroid_y, d.mean_difference, d.peak_difference, d.polarity,
        );
        if d.id > 0 {
            line += &format!(", id {}", d.id);
        }
        if self.is_classified(d) {
            line += &format!(", class {}", self.class_name(d.class));
        }
        if let Some(channel) = self.channel(d) {
            line += &format!(", channel {channel}");
        } else if d.level() > 0 {
            line += &format!(", level {}", d.level());
        }
        if let Some(semu) = self.semu(d) {
            line += &format!(", {semu:.1} SEMU");
        }
        for (flag, word) in [(Defect::CONTINUED, "continued"), (Defect::CUT, "cut")] {
            if d.flags & flag != 0 {
                line += &format!(", {word}");
            }
        }
        line
    }
}

/// A line about the frame and a line about each defect, each with a line end.
impl fmt::Display for DefectResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "frame {} by {}{}: {}, {} of {} judged pixels, {} defects{}",
            self.frame_number,
            self.element,
            self.strip(),
            self.verdict.name(),
            self.defect_pixels,
            self.judged_pixels,
            self.defects.len(),
            if self.overflow { " and more" } else { "" },
        )?;
        for defect in &self.defects {
            writeln!(f, "  {}", self.defect_line(defect))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(x: i32, y: i32, class: u16) -> Defect {
        Defect {
            x,
            y,
            width: 3,
            height: 60,
            area: 30,
            polarity: -1,
            class,
            ..Defect::default()
        }
    }

    /// A strip with a scratch that began before it, and a place without the pattern.
    fn strip() -> DefectResult {
        DefectResult {
            element: "p".into(),
            frame_number: 7,
            web: 1,
            first_line: 2_072_420,
            judged_pixels: 1000,
            defect_pixels: 37,
            verdict: Verdict::Fail,
            defects: vec![
                Defect {
                    id: 5,
                    flags: Defect::CONTINUED | Defect::CUT,
                    ..defect(248, -20, 1)
                },
                defect(1, 2, Defect::PATTERN_MISSING),
                defect(1, 2, 9),
            ],
            class_names: vec!["scratch".into(), "hole".into()],
            open_area: 400,
            ..DefectResult::default()
        }
    }

    #[test]
    fn positions_are_in_mm_across_and_in_m_along_the_web() {
        let long = defect(248, -20, 0);
        for (mm_x, mm_y, position) in [
            (0.05, 0.05, "12.4 mm, 103.62 m"),
            (0.05, 0.0, "12.4 mm, row 2072400"),
            (0.0, 0.05, "column 248, 103.62 m"),
            (0.0, 0.0, "248,2072400"),
            (f64::NAN, -1.0, "248,2072400"),
        ] {
            let result = DefectResult {
                mm_per_pixel_x: mm_x,
                mm_per_pixel_y: mm_y,
                ..strip()
            };
            assert_eq!(result.position(&long), position);
            assert_eq!(result.x_mm(&long).is_some(), mm_x > 0.0);
            assert_eq!(result.y_m(&long).is_some(), mm_y > 0.0);
        }
        let frame = DefectResult {
            mm_per_pixel_x: 0.5,
            mm_per_pixel_y: 0.25,
            ..DefectResult::default()
        };
        assert_eq!(frame.position(&defect(3, 90, 0)), "1.5 mm, 22.5 mm");
        assert_eq!(frame.position(&defect(3, 4000, 0)), "1.5 mm, 1.00 m");
        let last = DefectResult {
            first_line: u64::MAX,
            ..frame
        };
        assert_eq!(
            last.line(&defect(0, i32::MAX, 0)),
            (1 << 64) + (1 << 31) - 2
        );
    }

    #[test]
    fn classes_have_names_and_counts() {
        let counts = [
            ("other", 1),
            ("scratch", 1),
            ("hole", 0),
            ("pattern-missing", 1),
        ];
        assert_eq!(strip().class_counts(), counts);
        let names = [0, 1, 2, 3, u16::MAX].map(|class| strip().class_name(class).to_owned());
        assert_eq!(
            names,
            ["other", "scratch", "hole", "other", "pattern-missing"]
        );
        let none = DefectResult::default();
        assert_eq!(none.class_counts(), [("other", 0), ("pattern-missing", 0)]);
        assert!(!none.is_classified(&defect(0, 0, 0)));
        assert!(none.is_classified(&defect(0, 0, u16::MAX)));
    }

    #[test]
    fn summary_tells_verdict_classes_and_the_largest() {
        assert_eq!(
            strip().summary(),
            "fail: 3 defects (1 other, 1 scratch, 1 pattern-missing), 37 of 1000 judged pixels \
             marked, largest 30 px at 248,2072400, one of 400 px continues"
        );
        let unmatched = DefectResult {
            verdict: Verdict::Fail,
            alignment: Some(crate::Alignment {
                match_score: 0.127,
                ..crate::Alignment::default()
            }),
            ..DefectResult::default()
        };
        let line = "fail: the frame does not match the model, score 0.13";
        assert_eq!(unmatched.summary(), line);
        let one = DefectResult {
            defects: vec![defect(12, 40, 0)],
            first_line: 0,
            open_area: 0,
            missing_pixels: 4,
            class_names: Vec::new(),
            ..strip()
        };
        assert_eq!(
            one.summary(),
            "fail: 1 defect, 37 of 1000 judged pixels marked, the pattern is missing on 4, \
             largest 30 px at 12,40"
        );
        let cut = DefectResult {
            overflow: true,
            ..one
        };
        assert!(cut.summary().starts_with("fail: 1 or more defects, 37"));
        let flooded = DefectResult {
            defects: Vec::new(),
            ..cut
        };
        assert_eq!(
            flooded.summary(),
            "fail: no list of defects, because max-defects of limits is 0, or more runs are marked than max-runs of \
             limits allows (learn the limits again, or raise threshold or max-runs), 37 of 1000 judged pixels marked, \
             the pattern is missing on 4"
        );
        let none = DefectResult::default();
        assert_eq!(none.summary(), "none: no pixel could be judged");
        let trains = DefectResult {
            training: Some([3, 25]),
            ..none
        };
        assert_eq!(trains.summary(), "none: training, 3 of 25 frames");
        let both = DefectResult {
            learning: Some([2, 24]),
            ..trains
        };
        let line = "none: training, 3 of 25 frames; learning, 2 of 24 frames";
        assert_eq!(both.summary(), line);
        let judged = DefectResult {
            learning: Some([7, 24]),
            judged_pixels: 9,
            verdict: Verdict::Pass,
            ..DefectResult::default()
        };
        assert_eq!(
            judged.summary(),
            "pass: 0 defects, 0 of 9 judged pixels marked; learning, 7 of 24 frames"
        );
    }

    #[test]
    fn text_has_a_line_per_defect_with_all_that_is_known() {
        assert_eq!(
            strip().to_string(),
            "frame 7 by p (web 1, row 2072420): fail, 37 of 1000 judged pixels, 3 defects\n  \
             3x60 at 248,-20 (248,2072400): area 30, centre 0.00,0.00, difference 0.00, peak 0.00, \
             polarity -1, id 5, class scratch, continued, cut\n  \
             3x60 at 1,2 (1,2072422): area 30, centre 0.00,0.00, difference 0.00, peak 0.00, \
             polarity -1, class pattern-missing\n  \
             3x60 at 1,2 (1,2072422): area 30, centre 0.00,0.00, difference 0.00, peak 0.00, \
             polarity -1, class other\n"
        );
        let stain = Defect {
            flags: Defect::CUT | 3 << Defect::LEVEL_SHIFT,
            mean_difference: 8.0,
            ..defect(1, 2, 1)
        };
        let placed = DefectResult {
            mm_per_pixel_x: 0.5,
            mm_per_pixel_y: 0.25,
            mean_level: 200.0,
            defects: vec![stain],
            ..strip()
        };
        // 30 px are 3.75 mm²; 3.75^0.33 = 1.547: 4 % over 1.97 / 1.547 + 0.72 = 1.994.
        assert!(
            placed
                .to_string()
                .ends_with(", class scratch, level 3, 2.0 SEMU, cut\n"),
            "{placed}"
        );
        let old = DefectResult {
            defects: vec![defect(1, 2, 0)],
            overflow: true,
            element: "q".into(),
            ..DefectResult::default()
        };
        assert_eq!(
            old.to_string(),
            "frame 0 by q: none, 0 of 0 judged pixels, 1 defects and more\n  \
             3x60 at 1,2: area 30, centre 0.00,0.00, difference 0.00, peak 0.00, polarity -1\n"
        );
    }
}
