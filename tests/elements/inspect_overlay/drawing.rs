//! Drawing from the metas of a frame, pixel by pixel.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, HistogramResult, Verdict};

use super::{LEVEL, NOTHING, Picture, caps, counted, drawn, found, frame_at, frame_bytes};
use crate::{
    frames::read,
    support::{Rig, register},
};

const SIZE: [usize; 2] = [400, 300];
const BLUE: [u8; 3] = [255, 0, 0];
const GREEN: [u8; 3] = [0, 255, 0];

/// The overlay with these properties, for BGRx frames.
fn rig(size: [usize; 2], on: &str) -> Rig {
    register();
    Rig::new(&format!("{NOTHING} {on}"), &caps(Format::Bgrx, size))
}

/// A frame with a result.
pub fn with_defects(size: [usize; 2], result: &DefectResult) -> gst::Buffer {
    let mut frame = frame_at(Format::Bgrx, size, 0);
    result.attach(frame.get_mut().unwrap()).unwrap();
    frame
}

/// A frame with a histogram.
pub fn with_histogram(size: [usize; 2], result: &HistogramResult) -> gst::Buffer {
    let mut frame = frame_at(Format::Bgrx, size, 0);
    result.attach(frame.get_mut().unwrap()).unwrap();
    frame
}

fn picture(rig: &mut Rig, size: [usize; 2], frame: gst::Buffer) -> Picture {
    Picture::of(size, drawn(rig, frame))
}

#[test]
fn tint_covers_the_marked_pixels_and_nothing_else() {
    let marked = [[40, 50, 10, 8], [399, 0, 1, 1], [0, 299, 65, 1]];
    let mut rig = rig(SIZE, "show-tint=true tint-color=0xff0000ff");
    let out = picture(&mut rig, SIZE, with_defects(SIZE, &found(SIZE, &marked)));
    for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
        let inside = |&[left, top, width, height]: &[usize; 4]| {
            (left..left + width).contains(&x) && (top..top + height).contains(&y)
        };
        let wanted = if marked.iter().any(inside) {
            BLUE
        } else {
            [LEVEL; 3]
        };
        assert_eq!(out.at(x, y), wanted, "({x}, {y})");
    }
}

#[test]
fn box_has_its_colour_around_the_defect_whose_pixels_show() {
    let mut rig = rig(SIZE, "show-boxes=true box-color=0xff00ff00");
    let result = found(SIZE, &[[40, 50, 10, 8]]);
    let out = picture(&mut rig, SIZE, with_defects(SIZE, &result));
    // One pixel each: gap, shadow, line, shadow.
    assert_eq!(out.changed(), Some([36, 46, 54, 62]));
    for x in 37..53 {
        assert_eq!([out.at(x, 47), out.at(x, 60)], [GREEN; 2], "column {x}");
    }
    for y in 47..61 {
        assert_eq!([out.at(37, y), out.at(52, y)], [GREEN; 2], "row {y}");
    }
    for (x, y) in (49..59).flat_map(|y| (39..51).map(move |x| (x, y))) {
        assert_eq!(out.at(x, y), [LEVEL; 3], "({x}, {y})");
    }
}

#[test]
fn box_of_a_defect_that_began_in_an_earlier_strip_is_drawn_from_the_first_row_on() {
    let mut rig = rig(SIZE, "show-boxes=true box-color=0xff00ff00");
    let began_above = |height| {
        let mut result = found(SIZE, &[[40, 0, 10, 8]]);
        result.first_line = 900;
        result.defects[0] = Defect {
            y: -500,
            height,
            ..result.defects[0]
        };
        result
    };
    let out = picture(&mut rig, SIZE, with_defects(SIZE, &began_above(508)));
    // It is open at the top.
    assert_eq!(out.changed(), Some([36, 0, 54, 12]));
    for x in 37..53 {
        assert_eq!(out.at(x, 10), GREEN, "column {x}");
    }
    for (x, y) in (0..9).flat_map(|y| (39..51).map(move |x| (x, y))) {
        assert_eq!(out.at(x, y), [LEVEL; 3], "({x}, {y})");
    }
    // No row of the picture belongs to this one.
    let out = picture(&mut rig, SIZE, with_defects(SIZE, &began_above(500)));
    assert_eq!(out.changed(), None);
}

#[test]
fn pixels_that_are_not_judged_are_hatched_if_asked() {
    let ignored = [40, 50, 100, 80];
    let result = DefectResult {
        ignored: found(SIZE, &[ignored]).mask,
        ..found(SIZE, &[])
    };
    let mut rig = rig(SIZE, "");
    let frame = || with_defects(SIZE, &result);
    assert_eq!(picture(&mut rig, SIZE, frame()).changed(), None);
    rig.only("inspectoverlay")
        .set_property("show-ignored", true);
    let out = picture(&mut rig, SIZE, frame());
    let mut counts = [0; 3];
    for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
        let inside = (40..140).contains(&x) && (50..130).contains(&y);
        let level = out.at(x, y)[0];
        if inside {
            counts[usize::from(level < LEVEL) + 2 * usize::from(level > LEVEL)] += 1;
        } else {
            assert_eq!(level, LEVEL, "({x}, {y})");
        }
    }
    // A quarter of the pixels lies on dark stripes, a quarter on light ones.
    assert_eq!(counts, [4000, 2000, 2000]);
    assert_eq!(out.at(60, 70), out.at(61, 69), "the stripes are diagonal");
    // A mask that does not fit its size leaves the rest of the overlay.
    let short = DefectResult {
        ignored: Some(gst::Buffer::from_slice([0xff; 9])),
        ..found(SIZE, &[])
    };
    assert_eq!(
        picture(&mut rig, SIZE, with_defects(SIZE, &short)).changed(),
        None
    );
}

#[test]
fn opacity_mixes_the_defects_with_the_picture() {
    let line = "show-tint=true show-boxes=true tint-color=0xff0000ff defects-opacity=0.5";
    let mut rig = rig(SIZE, line);
    let out = picture(
        &mut rig,
        SIZE,
        with_defects(SIZE, &found(SIZE, &[[40, 50, 10, 8]])),
    );
    let [b, g, r] = out.at(45, 55);
    assert!(b.abs_diff(127 + LEVEL / 2) <= 1, "{b}");
    assert!(
        g.abs_diff(LEVEL / 2) <= 1 && r.abs_diff(LEVEL / 2) <= 1,
        "{g} {r}"
    );
}

#[test]
fn labels_lie_beside_boxes_where_there_is_room() {
    let on = "show-boxes=true show-labels=true";
    let mut rig = rig(SIZE, on);
    let out = picture(
        &mut rig,
        SIZE,
        with_defects(SIZE, &found(SIZE, &[[100, 150, 10, 8]])),
    );
    let [left, top, right, bottom] = out.changed().unwrap();
    assert_eq!([left, bottom], [96, 162]);
    assert!(top < 140 && right > 130, "{top} {right}");
    // There is no room above the box, so the label is below.
    let out = picture(
        &mut rig,
        SIZE,
        with_defects(SIZE, &found(SIZE, &[[100, 2, 10, 8]])),
    );
    let [_, top, _, bottom] = out.changed().unwrap();
    assert!(top == 0 && bottom > 20, "{top} {bottom}");
}

#[test]
fn labels_have_a_line_for_the_position_if_the_size_of_a_pixel_is_known() {
    let mut rig = rig(SIZE, "show-boxes=true show-labels=true");
    let plain = found(SIZE, &[[100, 150, 10, 8]]);
    let classes = DefectResult {
        class_names: vec!["scratch".into()],
        ..plain.clone()
    };
    let placed = DefectResult {
        mm_per_pixel_x: 0.1,
        mm_per_pixel_y: 0.1,
        ..plain.clone()
    };
    let mut size = |result: &DefectResult| {
        let out = picture(&mut rig, SIZE, with_defects(SIZE, result));
        let [_, top, right, _] = out.changed().unwrap();
        [right, 146 - top]
    };
    let [plain, classes, placed] = [&plain, &classes, &placed].map(&mut size);
    // One more word in the same line; one more line of 11 px.
    assert!(classes[0] > plain[0] && classes[1] == plain[1]);
    assert!(placed[0] > plain[0] && placed[1] == plain[1] + 11);
}

#[test]
fn panel_lies_in_the_corner_that_is_chosen() {
    let [width, height] = SIZE;
    let mut rig = rig(SIZE, "show-histogram=true");
    let element = rig.only("inspectoverlay");
    for channels in [1, 3] {
        let histogram = counted("RGB", SIZE, channels);
        let mut sizes = Vec::new();
        for (corner, right, below) in [
            ("top-left", false, false),
            ("top-right", true, false),
            ("bottom-left", false, true),
            ("bottom-right", true, true),
        ] {
            element.set_property_from_str("histogram-corner", corner);
            let out = picture(&mut rig, SIZE, with_histogram(SIZE, &histogram));
            let [x0, y0, x1, y1] = out.changed().unwrap();
            // Half a line of text from the edges.
            assert_eq!(if right { width - x1 } else { x0 }, 6, "{corner}");
            assert_eq!(if below { height - y1 } else { y0 }, 6, "{corner}");
            sizes.push([x1 - x0, y1 - y0]);
        }
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
    }
}

#[test]
fn panel_shows_the_histogram_of_each_frame() {
    let mut rig = rig(SIZE, "show-histogram=true");
    let one = counted("RGB", SIZE, 3);
    let mut other = one.clone();
    other.statistics[1].median = 30.0;
    let mut counts = one.clone();
    counts.counts[300] += 500;
    let mut show = |histogram: &HistogramResult| drawn(&mut rig, with_histogram(SIZE, histogram));
    let first = show(&one);
    assert!(show(&one) == first);
    assert!(show(&other) != first);
    assert!(show(&counts) != first);
    assert!(show(&one) == first);
    let mut next = one.clone();
    next.frame_number += 1;
    assert!(show(&next) == first);
}

#[test]
fn verdict_has_its_colour_at_the_chosen_edge() {
    let mut rig = rig(SIZE, "show-verdict=true");
    let element = rig.only("inspectoverlay");
    let mut seen = Vec::new();
    for (verdict, colour) in [
        (Verdict::Pass, [0x4a, 0xa3, 0x1f]),
        (Verdict::Fail, [0x20, 0x2d, 0xd9]),
        (Verdict::None, [0x80, 0x72, 0x6b]),
    ] {
        let result = DefectResult {
            verdict,
            ..found(SIZE, &[])
        };
        for (position, row) in [("top", 2), ("bottom", SIZE[1] - 3)] {
            element.set_property_from_str("verdict-position", position);
            let out = picture(&mut rig, SIZE, with_defects(SIZE, &result));
            assert_eq!(out.at(1, row), colour, "{verdict:?} {position}");
            let [left, top, right, bottom] = out.changed().unwrap();
            assert_eq!([left, right], [0, SIZE[0]]);
            // One and a half lines of text.
            assert_eq!(bottom - top, 18, "{position}");
            seen.push([top, bottom]);
        }
    }
    assert_eq!(seen[..2], [[0, 18], [SIZE[1] - 18, SIZE[1]]]);
}

#[test]
fn panel_and_bar_do_not_lie_on_each_other() {
    let on = "show-verdict=true show-histogram=true";
    let mut rig = rig(SIZE, on);
    let element = rig.only("inspectoverlay");
    let histogram = counted("RGB", SIZE, 1);
    for position in ["top", "bottom"] {
        element.set_property_from_str("verdict-position", position);
        for corner in ["top-left", "top-right", "bottom-left", "bottom-right"] {
            element.set_property_from_str("histogram-corner", corner);
            let mut frame = with_defects(SIZE, &found(SIZE, &[]));
            histogram.attach(frame.get_mut().unwrap()).unwrap();
            let both = picture(&mut rig, SIZE, frame);
            // The changes of each part alone add up to the changes of both.
            let count = |picture: &Picture| {
                picture
                    .bytes
                    .chunks(4)
                    .filter(|p| p[..3] != [LEVEL; 3])
                    .count()
            };
            element.set_property("show-verdict", false);
            let panel = picture(&mut rig, SIZE, with_histogram(SIZE, &histogram));
            element.set_property("show-verdict", true);
            let bar = picture(&mut rig, SIZE, with_defects(SIZE, &found(SIZE, &[])));
            assert_eq!(
                count(&both),
                count(&panel) + count(&bar),
                "{position} {corner}"
            );
        }
    }
}

#[test]
fn verdict_lies_above_boxes_and_boxes_above_the_tint() {
    let on = "show-verdict=true show-boxes=true show-tint=true tint-color=0xff0000ff \
              box-color=0xff00ff00";
    let mut rig = rig(SIZE, on);
    let mut judged =
        |marked: &[[usize; 4]]| picture(&mut rig, SIZE, with_defects(SIZE, &found(SIZE, marked)));
    // One box, but not its defect, crosses the verdict chip; the other box crosses marked pixels.
    let crossed = judged(&[[8, 19, 20, 4], [40, 50, 10, 8], [30, 40, 30, 8]]);
    let plain = judged(&[]);
    for (x, y) in (0..18).flat_map(|y| (0..60).map(move |x| (x, y))) {
        assert_eq!(crossed.at(x, y), plain.at(x, y), "({x}, {y})");
    }
    for x in 37..53 {
        assert_eq!(crossed.at(x, 47), GREEN, "column {x}");
    }
}

#[test]
fn the_last_meta_counts_unless_an_element_is_named() {
    let mut rig = rig(
        SIZE,
        "show-tint=true tint-color=0xff0000ff show-histogram=true",
    );
    let element = rig.only("inspectoverlay");
    let mut frame = frame_at(Format::Bgrx, SIZE, 0);
    let writable = frame.get_mut().unwrap();
    for (name, x) in [("p1", 10), ("p2", 60)] {
        let result = DefectResult {
            element: name.into(),
            ..found(SIZE, &[[x, 20, 5, 5]])
        };
        result.attach(writable).unwrap();
    }
    for (name, channels) in [("h1", 1), ("h2", 3)] {
        let result = HistogramResult {
            element: name.into(),
            ..counted("RGB", SIZE, channels)
        };
        result.attach(writable).unwrap();
    }
    let mut show = |defects: &str, histogram: &str| {
        element.set_property("defects-element", defects);
        element.set_property("histogram-element", histogram);
        let out = picture(&mut rig, SIZE, frame.copy());
        let panel = (0..SIZE[1])
            .filter(|&y| out.at(390, y) != [LEVEL; 3])
            .count();
        ([12, 62].map(|x| out.at(x, 22) == BLUE), panel)
    };
    let (last, three) = show("", "");
    assert_eq!(last, [false, true]);
    assert_eq!(show("p2", "h2"), ([false, true], three));
    let (first, one) = show("p1", "h1");
    assert_eq!(first, [true, false]);
    assert!(0 < one && one < three, "{one} {three}");
    assert_eq!(show("p3", "h3"), ([false, false], 0));
}

#[test]
fn results_of_another_size_are_scaled_to_the_frame() {
    let on = "show-tint=true tint-color=0xff0000ff show-boxes=true box-color=0xff00ff00";
    let mut rig = rig(SIZE, on);
    for (size, marked) in [
        ([200, 150], [50, 40, 10, 5]),
        ([800, 600], [200, 160, 40, 20]),
    ] {
        let out = picture(&mut rig, SIZE, with_defects(SIZE, &found(size, &[marked])));
        for (x, y) in (80..90).flat_map(|y| (100..120).map(move |x| (x, y))) {
            assert_eq!(out.at(x, y), BLUE, "({x}, {y}) from {size:?}");
        }
        assert_eq!(out.changed(), Some([96, 76, 124, 94]), "{size:?}");
        assert_eq!(out.at(97, 77), GREEN);
    }
}

#[test]
fn frames_with_nothing_to_draw_pass_untouched_and_uncopied() {
    register();
    let results = |frame: &mut gst::Buffer| {
        let writable = frame.get_mut().unwrap();
        found(SIZE, &[[40, 50, 10, 8]]).attach(writable).unwrap();
        counted("RGB", SIZE, 3).attach(writable).unwrap();
    };
    for (line, has_results) in [
        ("inspectoverlay", false),
        (NOTHING, true),
        (
            "inspectoverlay defects-opacity=0 histogram-opacity=0 verdict-opacity=0",
            true,
        ),
        (
            "inspectoverlay show-defects=false show-histogram=false show-verdict=false",
            true,
        ),
    ] {
        let mut rig = Rig::new(line, &caps(Format::Bgrx, SIZE));
        let mut frame = frame_at(Format::Bgrx, SIZE, 0);
        if has_results {
            results(&mut frame);
        }
        // The test holds a reference too, so the element must copy a frame before writing.
        let out = rig.pass(frame.clone());
        assert_eq!(out.as_ptr(), frame.as_ptr(), "{line}");
        assert!(read(&out) == frame_bytes(Format::Bgrx, SIZE), "{line}");
    }
}

#[test]
fn frame_that_others_hold_stays_as_it_was() {
    let mut rig = rig(SIZE, "show-tint=true");
    let frame = with_defects(SIZE, &found(SIZE, &[[40, 50, 10, 8]]));
    let out = rig.pass(frame.clone());
    assert!(read(&frame) == frame_bytes(Format::Bgrx, SIZE));
    assert!(read(&out) != frame_bytes(Format::Bgrx, SIZE));
    assert_eq!(DefectResult::read(&out).len(), 1);
    assert_eq!(out.pts(), frame.pts());
}

#[test]
fn caps_that_change_are_followed() {
    let mut rig = rig(
        SIZE,
        "show-tint=true tint-color=0xff0000ff show-verdict=true",
    );
    for size in [SIZE, [64, 40], [700, 500], SIZE] {
        rig.renegotiate(&caps(Format::Bgrx, size));
        let out = picture(
            &mut rig,
            size,
            with_defects(size, &found(size, &[[30, 35, 4, 4]])),
        );
        assert_eq!(out.at(31, 36), BLUE, "{size:?}");
    }
    rig.renegotiate(&caps(Format::Gray8, SIZE));
    let mut frame = frame_at(Format::Gray8, SIZE, 0);
    found(SIZE, &[[30, 35, 4, 4]])
        .attach(frame.get_mut().unwrap())
        .unwrap();
    let out = drawn(&mut rig, frame);
    assert_ne!(out[36 * 400 + 31], LEVEL);
    assert_eq!(out[200 * 400 + 31], LEVEL);
}
