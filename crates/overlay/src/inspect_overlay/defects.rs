//! Boxes around defects, and their labels.

use super::{
    bits::span,
    canvas::{Canvas, Colour},
    colours::ColourSpace,
    placement::{Area, Placement},
    properties::Settings,
    shapes::Shape,
    text::Type,
};
use clinspect_results::{Defect, DefectResult};

/// Maximum number of labels; each must avoid all labels before it.
const MOST_LABELS: usize = 200;
/// Background of a label, and of the outline that keeps a box visible on bright pictures.
const BACKGROUND: Colour = Colour(0xc810_1418);
const SHADOW: Colour = Colour(0x8000_0000);

/// Boxes and labels of a frame's defects; labels avoid `kept_clear`.
pub(super) fn draw(
    layout: &Placement,
    settings: &Settings,
    (letters, colours): (&mut Type, &ColourSpace),
    result: &DefectResult,
    kept_clear: &[Area],
) -> Vec<Shape> {
    let opacity = settings.defects_opacity;
    let colour = Colour(settings.box_color);
    let lines = [SHADOW, colour, SHADOW].map(|colour| colours.pixel(colour.pixel(), opacity));
    let line = layout.line;
    let labelled = if settings.show_labels { MOST_LABELS } else { 0 };
    let size = [result.width, result.height];
    let found = result.defects.iter().filter_map(|defect| {
        // The box surrounds the defect's pixels: one pixel of distance, the line, and a shadow on
        // each side.
        let outer = scaled(defect, size, layout.frame)?.inset(-(3 * line + 1));
        Some((outer, defect))
    });
    let (mut boxes, mut labels) = (Vec::new(), Vec::new());
    let mut taken = kept_clear.to_vec();
    for (index, (outer, defect)) in found.take(settings.max_boxes as usize).enumerate() {
        boxes.push(Shape::Box {
            outer,
            line,
            colours: lines,
        });
        if index >= labelled {
            continue;
        }
        let text = label(defect);
        let width = Type::width(&text, layout.small) + 4 * line;
        let size = [width, layout.small + 2 * line];
        let Some(place) = place(outer, size, layout.frame, &taken) else {
            continue;
        };
        taken.push(place);
        let mut canvas = Canvas::new(place, BACKGROUND);
        let (x, y) = (place.x + line * 2, place.y + line);
        let style = (layout.small, colour.with_alpha(0xff));
        canvas.text(letters, &text, x, y, style);
        labels.push(Shape::Sprite(canvas.finish(colours, opacity)));
    }
    // Labels are drawn above all boxes.
    boxes.extend(labels);
    boxes
}

/// Area and, if it is finite, mean difference.
fn label(defect: &Defect) -> String {
    let area = format!("{} px", defect.area);
    if defect.mean_difference.is_finite() {
        // Clamp the difference: a meta may contain any number.
        let difference = defect.mean_difference.clamp(-99_999.0, 99_999.0);
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

/// A defect's box in the frame's pixels; the result may refer to another size. `None` if the box
/// lies outside the frame.
fn scaled(defect: &Defect, [width, height]: [u32; 2], frame: Area) -> Option<Area> {
    let along = |at: u32, len: u32, from: u32, to: i32| {
        let end = at.saturating_add(len).min(from);
        let [at, end, from] = [at, end, from].map(|n| n as usize);
        (at < end).then(|| span([at, end], from, to as usize).map(|n| n as i32))
    };
    let [left, right] = along(defect.x, defect.width, width, frame.width)?;
    let [top, bottom] = along(defect.y, defect.height, height, frame.height)?;
    Some(Area::new(left, top, right - left, bottom - top))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(x: u32, y: u32, width: u32, height: u32) -> Defect {
        Defect {
            x,
            y,
            width,
            height,
            area: 17,
            centroid_x: 0.0,
            centroid_y: 0.0,
            mean_difference: -12.4,
            peak_difference: 0.0,
            polarity: -1,
        }
    }

    #[test]
    fn boxes_are_scaled_and_clipped_to_the_frame() {
        let frame = Area::new(0, 0, 200, 100);
        let on = |d: Defect, size| scaled(&d, size, frame);
        let rect = Area::new;
        assert_eq!(on(defect(5, 6, 7, 8), [200, 100]), Some(rect(5, 6, 7, 8)));
        assert_eq!(
            on(defect(5, 6, 7, 8), [100, 50]),
            Some(rect(10, 12, 14, 16))
        );
        assert_eq!(
            on(defect(50, 60, 1, 1), [2000, 1000]),
            Some(rect(5, 6, 1, 1))
        );
        assert_eq!(
            on(defect(190, 90, 50, 50), [200, 100]),
            Some(rect(190, 90, 10, 10))
        );
        for outside in [
            defect(200, 0, 1, 1),
            defect(0, 100, 1, 1),
            defect(0, 0, 0, 4),
        ] {
            assert_eq!(on(outside, [200, 100]), None);
        }
        assert_eq!(on(defect(0, 0, 1, 1), [0, 100]), None);
        let huge = defect(u32::MAX - 1, 0, u32::MAX, u32::MAX);
        assert_eq!(on(huge, [u32::MAX, u32::MAX]), Some(rect(199, 0, 1, 100)));
    }

    #[test]
    fn labels_tell_numbers_only() {
        assert_eq!(label(&defect(0, 0, 1, 1)), "17 px \u{2212}12");
        let difference = |mean_difference| Defect {
            mean_difference,
            ..defect(0, 0, 1, 1)
        };
        assert_eq!(label(&difference(f32::NAN)), "17 px");
        assert_eq!(label(&difference(f32::INFINITY)), "17 px");
        assert_eq!(label(&difference(1e30)), "17 px +99999");
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
        assert_eq!(
            super::place(Area::new(5, 5, 1, 1), [201, 12], frame, &[]),
            None
        );
    }
}
