//! Tables of what settings say about kept frames.

use clinspect_testkit::tools::Sandbox;
use gst_video::VideoFormat;
use run::{
    frame::Frame,
    trial::{Counts, table},
};

use super::scenes::{camera, frame, kept, panels, start};

#[test]
fn a_table_counts_verdicts_by_label_and_places_that_no_defect_meets() {
    start();
    let sandbox = Sandbox::new("table");
    let of = |threshold: f64| {
        camera(
            sandbox.path(),
            &format!(
                "gaussian = {{ kernel-size = 5, sigma = 0.8 }}\npitch = {{ threshold = {threshold:?}, min-area = 3 }}"
            ),
        )
    };
    let mut frames = kept(panels(VideoFormat::Gray8, 8, &[1, 4, 6]), &[1, 4, 6]);
    let mut done = Vec::new();
    let mut progress = |frames| {
        done.push(frames);
        true
    };
    let right = table(&of(16.0), &frames, &mut progress).unwrap();
    // It is asked before each frame that only warms up, too.
    done.dedup();
    assert_eq!(done, Vec::from_iter(0..=8));
    let counts = |pass, fail| Counts {
        pass,
        fail,
        none: 0,
    };
    assert_eq!((right.good, right.failed), (counts(5, 0), counts(0, 3)));
    assert!(
        right
            .rows
            .iter()
            .all(|row| row.is_right() && row.missed == 0)
    );
    let defect = &right.rows[1].report.inspections[0].defects[0];
    let [x, y] = [defect.x, defect.y].map(|at| u32::try_from(at).unwrap());
    // One place lies on the defect's last pixel. The others touch its box from outside.
    let [right_end, bottom] = [x + defect.width, y + defect.height];
    frames[1].missed = vec![
        [right_end - 1, bottom - 1, 9, 9],
        [right_end, y, 1, 1],
        [x, bottom, 1, 1],
        [x - 1, y, 1, 1],
        [x, y - 1, 1, 1],
    ];
    let marked = table(&of(16.0), &frames, &mut |_| true).unwrap();
    let missed: Vec<_> = marked.rows.iter().map(|row| row.missed).collect();
    assert_eq!(missed, [0, 4, 0, 0, 0, 0, 0, 0]);
    assert!(!marked.rows[1].is_right() && marked.rows[4].is_right());
    assert_eq!((marked.good, marked.failed), (right.good, right.failed));
    let none = table(&of(250.0), &frames, &mut |_| true).unwrap();
    // A limit that no defect reaches judges nothing.
    let unjudged = |none| Counts {
        none,
        ..counts(0, 0)
    };
    assert_eq!((none.good, none.failed), (unjudged(5), unjudged(3)));
    assert_eq!(none.rows[1].missed, 5);
    let all = table(&of(1.0), &frames, &mut |_| true).unwrap();
    assert_eq!((all.good, all.failed), (counts(0, 5), counts(0, 3)));
    // A black frame fails in any place: others show the pattern before the first one counts.
    frames[0].frame = frame(VideoFormat::Gray8, [320, 240], &[0; 320 * 240]).into();
    let there = table(&of(16.0), &frames, &mut |_| true).unwrap();
    frames.reverse();
    let back = table(&of(16.0), &frames, &mut |_| true).unwrap();
    assert_eq!((there.good, back.good), (counts(4, 1), counts(4, 1)));
    for (row, then) in back.rows.iter().rev().zip(&there.rows) {
        assert_eq!((&row.name, row.verdict), (&then.name, then.verdict));
    }
    let why = table(&of(16.0), &frames, &mut |done| done < 2).unwrap_err();
    assert!(why.contains("stopped"), "{why}");
}

#[test]
fn frames_of_other_sizes_and_formats_are_judged_and_those_that_no_element_takes_are_told() {
    start();
    let sandbox = Sandbox::new("table-sizes");
    let config = camera(sandbox.path(), "pitch = { threshold = 25.0, min-area = 3 }");
    let mut frames = panels(VideoFormat::Gray8, 3, &[]);
    frames.extend(panels(VideoFormat::Rgb, 2, &[]));
    frames.extend(panels(VideoFormat::Gray8, 2, &[1]));
    let frames = kept(frames, &[6]);
    let mixed = table(&config, &frames, &mut |_| true).unwrap();
    let verdicts: Vec<_> = mixed.rows.iter().map(|row| row.verdict).collect();
    assert_eq!(
        verdicts,
        ["pass", "pass", "pass", "pass", "pass", "pass", "fail"]
    );
    let format = VideoFormat::I42010le;
    let info = gst_video::VideoInfo::builder(format, 8, 8).build().unwrap();
    let deep = Frame::copy_of(&gst::Buffer::with_size(info.size()).unwrap(), &info).unwrap();
    let frames = kept(vec![deep], &[]);
    let why = table(&config, &frames, &mut |_| true).unwrap_err();
    assert!(
        why.starts_with("frame 0: ") && why.contains("I420_10LE"),
        "{why}"
    );
}
