//! The bar with verdict and counts.

use std::sync::Arc;

use super::{
    canvas::{Canvas, Colour},
    colours::ColourSpace,
    layout::{Layout, Rect},
    shapes::{Piece, Shape},
    text::Type,
};
use clinspect_results::{DefectResult, Verdict};

const BACKGROUND: Colour = Colour(0xe010_1418);
const TEXT: Colour = Colour(0xffff_ffff);
const DETAIL: Colour = Colour(0xffc3_cad2);
const PASS: Colour = Colour(0xff1f_a34a);
const FAIL: Colour = Colour(0xffd9_2d20);
const NONE: Colour = Colour(0xff6b_7280);
const MISSING: Colour = Colour(0xfff5_9e0b);

/// What is known of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known<'a> {
    /// It was judged.
    Result(&'a DefectResult),
    /// There is a mask without a verdict, that marks so many pixels.
    Mask(u64),
    /// It was to have a mask, and has none.
    Missing,
}

/// What the bar tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wording {
    verdict: &'static str,
    colour: Colour,
    counts: String,
    detail: String,
}

impl Wording {
    pub fn new(known: Known) -> Self {
        let plain = |verdict, colour, counts: String| Self {
            verdict,
            colour,
            counts,
            detail: String::new(),
        };
        match known {
            Known::Missing => plain("NO MASK", MISSING, "not inspected in time".into()),
            Known::Mask(count) => plain("NO VERDICT", NONE, format!("{count} px marked")),
            Known::Result(result) => {
                let (verdict, colour) = match result.verdict {
                    Verdict::Pass => ("PASS", PASS),
                    Verdict::Fail => ("FAIL", FAIL),
                    Verdict::None => ("NONE", NONE),
                };
                Self {
                    counts: counts(result),
                    detail: format!("{} \u{b7} frame {}", result.element, result.frame_number),
                    ..plain(verdict, colour, String::new())
                }
            }
        }
    }
}

fn counts(result: &DefectResult) -> String {
    if result.judged_pixels == 0 {
        return "nothing could be judged".into();
    }
    let count = result.defects.len();
    let more = if result.overflow { "+" } else { "" };
    let noun = if count == 1 && !result.overflow {
        "defect"
    } else {
        "defects"
    };
    format!(
        "{count}{more} {noun} \u{b7} {} px marked",
        result.defect_pixels
    )
}

/// The bar as it was drawn the last time.
#[derive(Debug, Default)]
pub(super) struct Bar {
    drawn: Option<(Wording, Rect, f64, Arc<Piece>)>,
}

impl Bar {
    /// The bar, drawn anew where it would look different.
    pub fn draw(
        &mut self,
        layout: &Layout,
        (letters, colours): (&mut Type, &ColourSpace),
        place: Rect,
        opacity: f64,
        wording: Wording,
    ) -> Option<Shape> {
        let same = self
            .drawn
            .take()
            .filter(|(old, at, opaque, _)| *old == wording && *at == place && *opaque == opacity);
        let piece = match same {
            Some((.., piece)) => piece,
            None => {
                let canvas = draw(layout, letters, place, &wording)?;
                Arc::new(canvas.finish(colours, opacity))
            }
        };
        self.drawn = Some((wording, place, opacity, piece.clone()));
        Some(Shape::Piece(piece))
    }
}

fn draw(layout: &Layout, letters: &mut Type, place: Rect, wording: &Wording) -> Option<Canvas> {
    let mut canvas = Canvas::new(place)?;
    canvas.fill(place, BACKGROUND);
    let Layout { text, margin, .. } = *layout;
    let y = place.y + (place.height - text) / 2;
    let chip = Rect {
        width: (Type::width(wording.verdict, text) + 2 * margin).min(place.width),
        ..place
    };
    canvas.fill(chip, wording.colour);
    canvas.text(
        letters,
        wording.verdict,
        chip.x + margin,
        y,
        (text, wording.colour.ink()),
    );
    let room = Rect::new(
        chip.right() + margin,
        place.y,
        place.right() - chip.right() - 2 * margin,
        place.height,
    );
    let counts = Type::width(&wording.counts, text);
    if counts <= room.width {
        canvas.text(letters, &wording.counts, room.x, y, (text, TEXT));
        // In small letters at the right, on the same baseline, where it does not touch the counts.
        let detail = Type::width(&wording.detail, layout.small);
        if counts + 2 * margin + detail <= room.width {
            let y = y + (text - layout.small) * 4 / 5;
            canvas.text(
                letters,
                &wording.detail,
                room.right() - detail,
                y,
                (layout.small, DETAIL),
            );
        }
    }
    Some(canvas)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result() -> DefectResult {
        DefectResult {
            element: "p".into(),
            frame_number: 7,
            width: 10,
            height: 10,
            pitch_x: 2.0,
            pitch_y: 0.0,
            threshold: 1.0,
            judged_pixels: 100,
            defect_pixels: 5,
            verdict: Verdict::Fail,
            defects: Vec::new(),
            overflow: false,
            mask: None,
        }
    }

    #[test]
    fn wording_tells_verdict_and_counts() {
        let words = |result: &DefectResult| {
            let wording = Wording::new(Known::Result(result));
            (wording.verdict, wording.counts)
        };
        let told = words(&result());
        assert_eq!(told, ("FAIL", "0 defects \u{b7} 5 px marked".into()));
        let more = DefectResult {
            overflow: true,
            verdict: Verdict::Pass,
            ..result()
        };
        assert_eq!(
            words(&more),
            ("PASS", "0+ defects \u{b7} 5 px marked".into())
        );
        let nothing = DefectResult {
            judged_pixels: 0,
            verdict: Verdict::None,
            ..result()
        };
        assert_eq!(words(&nothing), ("NONE", "nothing could be judged".into()));
    }
}
