//! Bar and panel hide no defect without a mark at their edge, and the verdict has a shape.

use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use super::{LEVEL, NOTHING, Picture, caps, counted, drawn, found, frame_at};
use crate::support::{Rig, register};

const SIZE: [usize; 2] = [400, 300];
const GREEN: [u8; 3] = [0, 255, 0];
const BOTH: &str = "show-verdict=true show-histogram=true";

/// The overlay with these properties, for BGRx frames.
fn rig(on: &str) -> Rig {
    Rig::new(&format!("{NOTHING} {on}"), &caps(Format::Bgrx, SIZE))
}

/// The output for a frame with this result and a histogram.
fn show(rig: &mut Rig, result: &DefectResult) -> Picture {
    let mut frame = frame_at(Format::Bgrx, SIZE, 0);
    let writable = frame.get_mut().unwrap();
    result.attach(writable).unwrap();
    counted("GRAY8", SIZE, 1).attach(writable).unwrap();
    Picture::of(SIZE, drawn(rig, frame))
}

/// The same defects as a list without marked pixels, and as marked pixels without a list.
fn listed_and_marked(defects: &[[usize; 4]]) -> [DefectResult; 2] {
    let listed = DefectResult {
        mask: None,
        ..found(SIZE, defects)
    };
    let marked = DefectResult {
        defects: Vec::new(),
        ..found(SIZE, defects)
    };
    [listed, marked]
}

#[test]
fn bar_and_panel_take_the_first_place_that_hides_no_defect() {
    register();
    // Beside every place of the panel.
    let [top, bottom] = [[3, 17, 1, 1], [3, 282, 1, 1]];
    // A pixel in each corner, clear of the bar: the panel's places are the corners.
    let [tl, tr, bl, br] = [[9, 60], [390, 60], [9, 250], [390, 250]].map(|[x, y]| [x, y, 1, 1]);
    for (defects, position, corner) in [
        (&[][..], "top", "bottom-right"),
        (&[[200, 18, 1, 1]], "top", "bottom-right"),
        (&[top], "bottom", "bottom-right"),
        (&[bottom], "top", "bottom-right"),
        (&[br], "top", "bottom-left"),
        (&[br, bl], "top", "top-right"),
        (&[br, bl, tr], "top", "top-left"),
        (&[top, br], "bottom", "bottom-left"),
        // No place is free: the place that hides the fewest columns and rows.
        (&[top, bottom], "top", "bottom-right"),
        (&[[0, 5, 20, 1], bottom], "bottom", "bottom-right"),
        (&[[390, 240, 1, 9], bl, tr, tl], "top", "bottom-left"),
    ] {
        for result in listed_and_marked(defects) {
            let auto = show(&mut rig(BOTH), &result);
            let at = format!("{BOTH} verdict-position={position} histogram-corner={corner}");
            let wanted = show(&mut rig(&at), &result);
            assert!(auto.bytes == wanted.bytes, "{defects:?}: {at}");
        }
    }
}

#[test]
fn hidden_defects_are_marked_at_the_edges_towards_the_middle() {
    register();
    // Switches on defects, but no box.
    let on = "show-boxes=true max-boxes=0 box-color=0xff00ff00";
    let edge = |from: usize, len: usize| from - 1..from + len + 1;
    for (position, defect, rows) in [
        ("top", [100, 2, 10, 8], 16..18),
        ("bottom", [100, 290, 10, 8], 282..284),
        ("top", [100, 20, 10, 8], 0..0),
    ] {
        for result in listed_and_marked(&[defect]) {
            let on = format!("{on} show-verdict=true verdict-position={position}");
            let out = show(&mut rig(&on), &result);
            for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
                let wanted = rows.contains(&y) && edge(100, 10).contains(&x);
                assert_eq!(out.at(x, y) == GREEN, wanted, "({x}, {y}) {position}");
            }
        }
    }
    for corner in ["top-left", "top-right", "bottom-left", "bottom-right"] {
        let on = format!("{on} show-histogram=true histogram-corner={corner}");
        let panel = show(&mut rig(&on), &found(SIZE, &[]));
        let [left, top, right, bottom] = panel.changed().unwrap();
        let defect = [left + 50, top + 20, 10, 8];
        let inner_row = if corner.starts_with("top") {
            bottom - 2
        } else {
            top
        };
        let inner_column = if corner.ends_with("left") {
            right - 2
        } else {
            left
        };
        for result in listed_and_marked(&[defect]) {
            let out = show(&mut rig(&on), &result);
            for (x, y) in (0..SIZE[1]).flat_map(|y| (0..SIZE[0]).map(move |x| (x, y))) {
                let above = (inner_row..inner_row + 2).contains(&y);
                let beside = (inner_column..inner_column + 2).contains(&x);
                let wanted = above && edge(defect[0], 10).contains(&x)
                    || beside && edge(defect[1], 8).contains(&y);
                assert_eq!(out.at(x, y) == GREEN, wanted, "({x}, {y}) {corner}");
            }
            // The corner of the panel opposite to the marked edges is as without a defect.
            let same = if corner == "top-left" {
                [left, top]
            } else {
                [right - 1, bottom - 1]
            };
            if ["top-left", "bottom-right"].contains(&corner) {
                assert_eq!(out.at(same[0], same[1]), panel.at(same[0], same[1]));
            }
        }
    }
}

#[test]
fn nothing_is_marked_if_defects_are_not_drawn() {
    register();
    let result = found(SIZE, &[[100, 2, 10, 8]]);
    let off = format!("{BOTH} verdict-position=top show-boxes=true box-color=0xff00ff00");
    let count = |on: &str| {
        let out = show(&mut rig(&format!("{off} {on}")), &result);
        let pixels = out.bytes.chunks(4).filter(|p| p[..3] == GREEN);
        pixels.count()
    };
    assert_eq!(count("max-boxes=0"), 2 * 12);
    assert_eq!(count("show-defects=false"), 0);
    assert_eq!(count("defects-opacity=0"), 0);
}

/// The verdict's symbol at 160x120.
fn symbol(format: Format, verdict: Verdict) -> Vec<String> {
    let size = [160, 120];
    register();
    let mut rig = Rig::new(&format!("{NOTHING} show-verdict=true"), &caps(format, size));
    let mut frame = frame_at(format, size, 0);
    let result = DefectResult {
        verdict,
        ..found(size, &[])
    };
    result.attach(frame.get_mut().unwrap()).unwrap();
    let bytes = drawn(&mut rig, frame);
    // The green sample of BGRx.
    let (pixel, sample) = if format == Format::Bgrx {
        (4, 1)
    } else {
        (1, 0)
    };
    let level = |x: usize, y: usize| u16::from(bytes[pixel * (160 * y + x) + sample]);
    let background = level(1, 2);
    assert_ne!(background, u16::from(LEVEL));
    // The text's line, after the margin.
    let row = |y| {
        let ink = |x| {
            if 2 * level(x, y) > background + 255 {
                '#'
            } else {
                '.'
            }
        };
        (6..20).map(ink).collect()
    };
    (3..15).map(row).collect()
}

#[test]
fn verdict_has_a_shape_of_its_own_in_grey_and_in_colour() {
    let shapes: [(Verdict, [&str; 12]); 3] = [
        (
            Verdict::Pass,
            [
                "..............",
                "..............",
                "..........##..",
                ".........###..",
                "........###...",
                ".#.....###....",
                ".##...###.....",
                ".###.###......",
                "..#####.......",
                "...###........",
                "..............",
                "..............",
            ],
        ),
        (
            Verdict::Fail,
            [
                "..............",
                "..............",
                "..##....##....",
                "..###..###....",
                "...######.....",
                "....####......",
                "....####......",
                "...######.....",
                "..###..###....",
                "..##....##....",
                "..............",
                "..............",
            ],
        ),
        (
            Verdict::None,
            [
                "..............",
                "..............",
                "..............",
                "..............",
                "..............",
                "..##########..",
                "..##########..",
                "..............",
                "..............",
                "..............",
                "..............",
                "..............",
            ],
        ),
    ];
    for (verdict, shape) in shapes {
        for format in [Format::Gray8, Format::Bgrx] {
            let drawn = symbol(format, verdict);
            assert_eq!(drawn, shape, "{format}\n{}", drawn.join("\n"));
        }
    }
}
