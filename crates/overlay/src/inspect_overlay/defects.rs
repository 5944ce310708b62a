//! Boxes around defects, and their labels.

use super::{
    canvas::{Canvas, Colour},
    colours::ColourSpace,
    placement::{Area, Placement},
    properties::Settings,
    shapes::Shape,
    text,
};
use clinspect_results::Defect;

/// Maximum number of labels; each must avoid all labels before it.
const MOST_LABELS: usize = 200;
/// Background of a label, and of the outline that keeps a box visible on bright pictures.
const BACKGROUND: Colour = Colour(0xc810_1418);
const SHADOW: Colour = Colour(0x8000_0000);

/// Boxes and labels of a frame's defects; labels avoid `kept_clear`.
pub(super) fn draw(
    layout: &Placement,
    settings: &Settings,
    colours: &ColourSpace,
    found: &[(Area, &Defect)],
    kept_clear: &[Area],
) -> Vec<Shape> {
    let opacity = settings.defects_opacity;
    let colour = Colour(settings.box_color);
    let lines = [SHADOW, colour, SHADOW].map(|colour| colours.pixel(colour.pixel(), opacity));
    let line = layout.line;
    let labelled = if settings.show_labels { MOST_LABELS } else { 0 };
    let (mut boxes, mut labels) = (Vec::new(), Vec::new());
    let mut taken = kept_clear.to_vec();
    let drawn = found.iter().take(settings.max_boxes as usize);
    for (index, (inner, defect)) in drawn.enumerate() {
        // The box surrounds the defect's pixels: one pixel of distance, the line, and a shadow on
        // each side.
        let outer = inner.inset(-(3 * line + 1));
        boxes.push(Shape::Box {
            outer,
            line,
            colours: lines,
        });
        if index >= labelled {
            continue;
        }
        let text = label(defect.area, defect.mean_difference);
        let width = text::width(&text, layout.small) + 4 * line;
        let size = [width, layout.small + 2 * line];
        let Some(place) = place(outer, size, layout.frame, &taken) else {
            continue;
        };
        taken.push(place);
        let mut canvas = Canvas::new(place, BACKGROUND);
        let (x, y) = (place.x + line * 2, place.y + line);
        let style = (layout.small, colour.with_alpha(0xff));
        canvas.text(&text, x, y, style);
        labels.push(canvas.finish(colours, opacity));
    }
    // Labels are drawn above all boxes.
    boxes.extend(labels);
    boxes
}

/// Area and, if it is finite, mean difference.
fn label(area: u32, difference: f32) -> String {
    let area = format!("{area} px");
    if difference.is_finite() {
        // Clamp the difference: a meta may contain any number.
        let difference = difference.clamp(-99_999.0, 99_999.0);
        let sign = if difference < 0.0 { '\u{2212}' } else { '+' };
        format!("{area} {sign}{:.0}", difference.abs())
    } else {
        area
    }
}

/// A free place for a label beside a box and inside the frame.
fn place(outer: Area, [width, height]: [i32; 2], frame: Area, taken: &[Area]) -> Option<Area> {
    let inside = |x: i32| x.min(frame.right() - width).max(frame.x);
    let (left, right) = (inside(outer.x), inside(outer.right() - width));
    let (above, below) = (outer.y - height, outer.bottom());
    let candidates = [
        (left, above),
        (right, above),
        (left, below),
        (right, below),
        (outer.right(), outer.y),
        (outer.x - width, outer.y),
    ];
    candidates
        .into_iter()
        .map(|(x, y)| Area::new(x, y, width, height))
        .find(|rect| rect.and(frame) == *rect && !taken.iter().any(|other| other.touches(*rect)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_numbers_only() {
        assert_eq!(label(17, -12.4), "17 px \u{2212}12");
        assert_eq!(label(17, f32::NAN), "17 px");
        assert_eq!(label(17, f32::INFINITY), "17 px");
        assert_eq!(label(17, 1e30), "17 px +99999");
    }

    #[test]
    fn labels_lie_in_the_frame_and_not_on_each_other() {
        let frame = Area::new(0, 0, 200, 100);
        let mut taken = vec![Area::new(0, 0, 200, 20)];
        for outer in [
            Area::new(10, 25, 20, 20),
            Area::new(12, 27, 20, 20),
            Area::new(190, 80, 30, 30),
            Area::new(-10, 50, 20, 20),
        ] {
            let Some(place) = place(outer, [50, 12], frame, &taken) else {
                continue;
            };
            assert_eq!(place.and(frame), place);
            assert!(taken.iter().all(|other| !other.touches(place)));
            taken.push(place);
        }
        assert!(taken.len() >= 4);
        assert_eq!(place(Area::new(5, 5, 1, 1), [201, 12], frame, &[]), None);
    }
}
