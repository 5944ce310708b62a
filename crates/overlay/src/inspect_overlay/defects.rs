//! Boxes around defects, and their labels.

use super::{
    area::Area,
    canvas::{Canvas, Colour},
    colours::ColourSpace,
    placement::Placement,
    properties::Settings,
    shapes::Shape,
    text,
};
use clinspect_results::{Defect, DefectResult};

/// Maximum number of labels; each must avoid all labels before it.
const MOST_LABELS: usize = 200;
/// Largest number in a label: a meta may contain any number.
const LARGEST: f32 = 99_999.0;
/// Background of a label, and of the outline that keeps a box visible on bright pictures.
const BACKGROUND: Colour = Colour(0xc810_1418);
const SHADOW: Colour = Colour(0x8000_0000);

/// Boxes and labels of the defects that were `found` in a frame; labels avoid `kept_clear`.
pub(super) fn draw(
    layout: &Placement,
    settings: &Settings,
    colours: &ColourSpace,
    (result, found): (&DefectResult, &[(Area, &Defect)]),
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
        let text = label(result, defect);
        let widths = text.iter().map(|line| text::width(line, layout.small));
        let width = widths.max().unwrap_or(0).saturating_add(4 * line);
        let size = [width, text.len() as i32 * layout.small + 2 * line];
        let Some(place) = place(outer, size, layout.frame, &taken) else {
            continue;
        };
        taken.push(place);
        let mut canvas = Canvas::new(place, BACKGROUND);
        let style = (layout.small, colour.with_alpha(0xff));
        for (row, text) in (0..).zip(&text) {
            let (x, y) = (place.x + line * 2, place.y + line + row * layout.small);
            canvas.text(text, x, y, style);
        }
        labels.push(canvas.finish(colours, opacity));
    }
    // Labels are drawn above all boxes.
    boxes.extend(labels);
    boxes
}

/// The lines of a label: class, if there are classes, area, mean difference, if it is finite, channel or coarser
/// level, and visibility, if it is known; and the position, if the size of a pixel is known.
fn label(result: &DefectResult, defect: &Defect) -> Vec<String> {
    let mut first = format!("{} px", defect.area);
    if result.is_classified(defect) {
        first = format!("{} {first}", result.class_name(defect.class));
    }
    if defect.mean_difference.is_finite() {
        let difference = defect.mean_difference.clamp(-LARGEST, LARGEST);
        let sign = if difference < 0.0 { '\u{2212}' } else { '+' };
        first += &format!(" {sign}{:.0}", difference.abs());
    }
    if let Some(channel) = result.channel(defect) {
        first += &format!(" {channel}");
    } else if defect.level() > 0 {
        first += &format!(" L{}", defect.level());
    }
    if let Some(semu) = result.semu(defect) {
        first += &format!(" {:.1} SEMU", semu.min(LARGEST.into()));
    }
    let is_placed = result.x_mm(defect).or(result.y_m(defect)).is_some();
    let position = is_placed.then(|| result.position(defect));
    [first].into_iter().chain(position).collect()
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
    fn labels_tell_what_is_known() {
        let defect = |mean_difference, class| Defect {
            x: 248,
            y: -20,
            area: 17,
            mean_difference,
            class,
            ..Defect::default()
        };
        let plain = DefectResult::default();
        for (difference, wanted) in [
            (-12.4, "17 px \u{2212}12"),
            (f32::NAN, "17 px"),
            (f32::INFINITY, "17 px"),
            (1e30, "17 px +99999"),
        ] {
            assert_eq!(label(&plain, &defect(difference, 0)), [wanted]);
        }
        let missing = defect(3.0, Defect::PATTERN_MISSING);
        assert_eq!(label(&plain, &missing), ["pattern-missing 17 px +3"]);
        let strip = DefectResult {
            first_line: 2_072_420,
            class_names: vec!["scratch".into()],
            mm_per_pixel_x: 0.05,
            mm_per_pixel_y: 0.05,
            ..plain
        };
        let position = "12.4 mm, 103.62 m";
        let lines = label(&strip, &defect(3.0, 1));
        assert_eq!(lines, ["scratch 17 px +3", position]);
        let lines = label(&strip, &defect(3.0, 0));
        assert_eq!(lines, ["other 17 px +3", position]);
        let stain = Defect {
            area: 40_000,
            flags: 2 << Defect::LEVEL_SHIFT,
            ..defect(-3.0, 1)
        };
        let lines = label(&strip, &stain);
        assert_eq!(lines, ["scratch 40000 px \u{2212}3 L2", position]);
        let display = DefectResult {
            mean_level: 150.0,
            ..strip
        };
        // 2 % over 100 mm² are 1.74, see `clinspect_results::semu`.
        let lines = label(&display, &stain);
        assert_eq!(lines, ["scratch 40000 px \u{2212}3 L2 1.7 SEMU", position]);
        let bright = DefectResult {
            mean_level: f64::MIN_POSITIVE,
            ..display
        };
        let line = label(&bright, &defect(3e-4, 0)).remove(0);
        assert_eq!(line, "other 17 px +0 99999.0 SEMU");
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
