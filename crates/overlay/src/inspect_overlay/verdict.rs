//! The bar with the verdict and the counts.

use super::{
    area::Area,
    canvas::{Canvas, Colour},
    placement::Placement,
    text,
};
use clinspect_results::{DefectResult, Verdict};

const BACKGROUND: Colour = Colour(0xe010_1418);
const TEXT: Colour = Colour(0xffff_ffff);
const DARK_TEXT: Colour = Colour(0xff10_1418);
const DETAIL: Colour = Colour(0xffc3_cad2);
const PASS: Colour = Colour(0xff1f_a34a);
const FAIL: Colour = Colour(0xffd9_2d20);
const NONE: Colour = Colour(0xff6b_7280);
const MISSING: Colour = Colour(0xfff5_9e0b);

/// The texts of the bar.
#[derive(Debug)]
pub(super) struct Wording {
    /// A symbol and the verdict: symbols differ without colours too.
    verdict: &'static str,
    colour: Colour,
    counts: String,
    /// What else must be told, if there is room.
    note: Option<String>,
    detail: String,
}

/// Why a result has no marks in the picture.
const NO_PLACES: &str = "no marks: the picture was moved";

impl Wording {
    /// The texts for a judged frame.
    pub fn result(result: &DefectResult) -> Self {
        let (verdict, colour) = match result.verdict {
            Verdict::Pass => ("\u{2713}  PASS", PASS),
            Verdict::Fail => ("\u{2717}  FAIL", FAIL),
            Verdict::None => ("\u{2013}  NONE", NONE),
        };
        Self {
            verdict,
            colour,
            counts: if result.corrupted {
                format!("corrupted \u{b7} {}", counts(result))
            } else {
                counts(result)
            },
            note: note(result),
            detail: format!("{} \u{b7} frame {}", result.element, result.frame_number),
        }
    }

    /// The texts for a mask without a verdict, by its marked pixels, or for a missing mask.
    pub fn mask(marked: Option<u64>) -> Self {
        let (verdict, colour, counts) = match marked {
            Some(marked) => ("\u{2013}  NO VERDICT", NONE, format!("{marked} px marked")),
            None => ("! NO MASK", MISSING, "not inspected".into()),
        };
        Self {
            verdict,
            colour,
            counts,
            note: None,
            detail: String::new(),
        }
    }

    /// The texts for a mask without a verdict whose places in the picture are unknown.
    pub fn no_places() -> Self {
        Self {
            counts: NO_PLACES.into(),
            ..Self::mask(Some(0))
        }
    }

    /// The texts of the bar's middle, the longest first: the first one that fits is shown.
    fn middles(&self) -> impl Iterator<Item = String> {
        let both = (self.note.iter()).map(|note| format!("{} \u{b7} {note}", self.counts));
        let one = self.note.iter().chain([&self.counts]).cloned();
        both.chain(one)
    }
}

fn note(result: &DefectResult) -> Option<String> {
    if result.is_moved {
        return Some(NO_PLACES.into());
    }
    // A frame that is not judged has the progress in the place of its counts.
    let progress = result.progress_in_words();
    progress.filter(|_| result.judged_pixels > 0)
}

fn counts(result: &DefectResult) -> String {
    if result.judged_pixels == 0 {
        let progress = result.progress_in_words();
        return progress.unwrap_or_else(|| "nothing could be judged".into());
    }
    if let Some(blind) = &result.blind {
        return format!("{} is too high to see a defect", blind.name);
    }
    let count = result.defects.len();
    let more = if result.overflow { "+" } else { "" };
    let plural = if count == 1 && more.is_empty() {
        ""
    } else {
        "s"
    };
    let pixels = result.defect_pixels;
    format!("{count}{more} defect{plural} \u{b7} {pixels} px marked")
}

/// Draws the bar in its place.
pub(super) fn draw(layout: &Placement, place: Area, wording: &Wording) -> Canvas {
    let mut canvas = Canvas::new(place, BACKGROUND);
    let (size, margin) = (layout.text, layout.margin);
    let y = place.y + (place.height - size) / 2;
    let chip = Area {
        width: (text::width(wording.verdict, size) + 2 * margin).min(place.width),
        ..place
    };
    canvas.fill(chip, wording.colour);
    let ink = if wording.colour == MISSING {
        DARK_TEXT
    } else {
        TEXT
    };
    canvas.text(wording.verdict, chip.x + margin, y, (size, ink));
    let (left, right) = (chip.right() + margin, place.right() - margin);
    let mut middles = wording.middles();
    if let Some(middle) = middles.find(|middle| left + text::width(middle, size) <= right) {
        let counts = text::width(&middle, size);
        canvas.text(&middle, left, y, (size, TEXT));
        // In small text at the right on the same baseline, if it does not overlap the counts.
        let x = right - text::width(&wording.detail, layout.small);
        if left + counts + 2 * margin <= x {
            let (y, style) = (y + (size - layout.small) * 4 / 5, (layout.small, DETAIL));
            canvas.text(&wording.detail, x, y, style);
        }
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;
    use clinspect_results::BlindLimit;

    #[test]
    fn wording_tells_verdict_and_counts() {
        for (verdict, overflow, wanted) in [
            (Verdict::Fail, false, "✗  FAIL, 0 defects · 5 px marked"),
            (Verdict::Pass, true, "✓  PASS, 0+ defects · 5 px marked"),
            (Verdict::None, false, "–  NONE, nothing could be judged"),
        ] {
            let wording = Wording::result(&DefectResult {
                judged_pixels: u64::from(verdict != Verdict::None),
                defect_pixels: 5,
                verdict,
                overflow,
                ..DefectResult::default()
            });
            let text = format!("{}, {}", wording.verdict, wording.counts);
            assert_eq!(text, wanted);
        }
        let blind = Wording::result(&DefectResult {
            judged_pixels: 9,
            blind: Some(BlindLimit {
                name: "threshold".into(),
                marks: 129.0,
                reach: 93.0,
            }),
            ..DefectResult::default()
        });
        assert_eq!(blind.counts, "threshold is too high to see a defect");
        let trains = Wording::result(&DefectResult {
            training: Some([3, 25]),
            ..DefectResult::default()
        });
        assert_eq!(trains.counts, "training, 3 of 25 frames");
        let learns = Wording::result(&DefectResult {
            judged_pixels: 9,
            learning: Some([7, 24]),
            ..DefectResult::default()
        });
        let middles: Vec<String> = learns.middles().collect();
        assert_eq!(
            middles,
            [
                "0 defects · 0 px marked · learning, 7 of 24 frames",
                "learning, 7 of 24 frames",
                "0 defects · 0 px marked"
            ]
        );
        let moved = Wording::result(&DefectResult {
            is_moved: true,
            ..DefectResult::default()
        });
        assert_eq!(moved.note.as_deref(), Some(NO_PLACES));
    }
}
