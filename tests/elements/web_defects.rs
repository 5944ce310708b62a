//! Defects of a web: strips list those of the web as one frame, once.

use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::{DefectResult, Verdict};

use crate::{
    oracle,
    support::{Rig, start},
    webs::{HEIGHTS, JUDGED, Numbers, Web, in_web, line, rows_of},
};

/// The area of the largest defect that is open at the end of each strip: the reference's, from the web's
/// mask of 97 pixels a row.
fn open_areas(packed: &[u8], height: usize, merge_distance: u32) -> Vec<u64> {
    let rows = packed.chunks_exact(13);
    let bit = |row: &[u8], x: usize| row[x / 8] >> (7 - x % 8) & 1 == 1;
    let mask: Vec<bool> = rows
        .flat_map(|row| (0..97).map(|x| bit(row, x)).collect::<Vec<_>>())
        .collect();
    let differences: Vec<_> = mask.iter().map(|&marked| marked.then_some(0.0)).collect();
    let levels: Vec<_> = mask.iter().map(|&marked| marked.then_some(0)).collect();
    let marked = oracle::defects::Web {
        mask: &mask,
        differences: &differences,
        levels: &levels,
        width: 97,
    };
    let rules = oracle::defects::Rules {
        min_area: 1,
        merge_distance,
        max_defects: usize::MAX,
        max_defect_rows: u32::MAX,
    };
    let heights = vec![height; mask.len() / 97 / height];
    oracle::defects::defects_of_web(marked, &heights, &rules)
        .iter()
        .map(|list| list.largest_open)
        .collect()
}

#[test]
fn defects_of_strips_are_those_of_the_whole_web() {
    if start().is_none() {
        return;
    }
    for (format, seed, merge_distance, extra) in [
        (Format::Gray8, 21, 0, ""),
        (Format::Rgb, 25, 0, ""),
        (Format::Gray8, 22, 3, "min-area=4"),
        (Format::Gray8, 23, 9, "pitch-y=0"),
        (
            Format::Gray8,
            24,
            0,
            "classes=\"long: elongation > 3 and major > 8; small: area < 12\"",
        ),
    ] {
        let element = format!(
            "{JUDGED} limits=limits,max-defects=10000 merge-distance={merge_distance} {extra}"
        );
        let web = Web::cloth(format, 97, 360, seed);
        let mask = rows_of(&web.through(&element, 360), 13, 13);
        let results = |height| -> Vec<DefectResult> {
            let strips = web.through(&element, height);
            strips
                .iter()
                .flat_map(|strip| DefectResult::read(strip))
                .collect()
        };
        let whole = results(360);
        let wanted = in_web(&whole);
        assert!(wanted.len() > 5, "{extra}: {}", wanted.len());
        if extra.is_empty() {
            assert!(whole[0].missing_pixels > 0);
            assert!(
                wanted
                    .iter()
                    .any(|(_, _, text)| text.ends_with("pattern-missing"))
            );
        }
        let mut opened = 0;
        for height in HEIGHTS {
            let strips = results(height);
            assert_eq!(in_web(&strips), wanted, "{extra}, strips of {height} rows");
            let ids: Vec<u32> = strips
                .iter()
                .flat_map(|strip| strip.defects.iter().map(|d| d.id))
                .collect();
            let counted: Vec<u32> = (1..=wanted.len() as u32).collect();
            assert_eq!(ids, counted, "{extra}");
            // Each strip tells its place, and the largest defect that may continue.
            for (n, strip) in strips.iter().enumerate() {
                assert_eq!((strip.web, strip.first_line), (0, (n * height) as u64));
            }
            let open: Vec<u64> = strips.iter().map(|strip| strip.open_area).collect();
            assert_eq!(
                open,
                open_areas(&mask, height, merge_distance),
                "{extra}, strips of {height} rows"
            );
            opened += open.iter().filter(|&&area| area > 0).count();
        }
        assert!(opened > 100, "{extra}: {opened} strips end in a defect");
    }
}

#[test]
fn random_webs_in_random_strips_are_judged_as_one_frame() {
    if start().is_none() {
        return;
    }
    let mut failed = 0;
    for seed in 100..124 {
        let mut numbers = Numbers(seed);
        let mut pick = |of: &[&str]| of[numbers.next(of.len() as u64) as usize].to_string();
        let element = format!(
            "clpitchthreshold line-scan=true limits=limits,max-defects=10000 min-contrast=0 pitch-x=7.35 pitch-y={} multiples={} \
             scales={} threshold={} borders={} edge-margin={} merge-distance={} {} {}",
            pick(&["0", "5.25", "10.5"]),
            pick(&["<1>", "<1,2>"]),
            pick(&["0", "0", "2"]),
            pick(&["25", "40"]),
            pick(&["inward", "skip"]),
            pick(&["0", "2", "5"]),
            pick(&["0", "1", "7"]),
            pick(&["", "rois=<<10,40,60,100>,<20,200,50,55>>"]),
            pick(&[
                "",
                "ignore=ignore,regions=<<0.0,150.0,97.0,150.0,97.0,190.0,0.0,190.0>>"
            ]),
        );
        let height = pick(&["1", "4", "9", "15", "36", "90"]).parse().unwrap();
        let web = Web::cloth(Format::Gray8, 97, 360, seed);
        let [whole, strips] = [360, height].map(|height| {
            let sent = web.through(&element, height);
            let results: Vec<_> = (sent.iter().flat_map(|s| DefectResult::read(s))).collect();
            let fails = results.iter().any(|r| r.verdict == Verdict::Fail);
            failed += usize::from(fails);
            for result in results.iter().filter(|r| !r.defects.is_empty()) {
                assert_eq!(result.verdict, Verdict::Fail, "seed {seed}: {element}");
            }
            let judged: u64 = results.iter().map(|r| r.judged_pixels).sum();
            (rows_of(&sent, 13, 13), in_web(&results), judged, fails)
        });
        assert!(
            strips == whole,
            "seed {seed}, strips of {height} rows: {element}"
        );
    }
    assert!(failed > 10, "{failed} webs failed, which says little");
}

#[test]
fn a_line_over_three_strips_is_listed_once_where_it_ends() {
    if start().is_none() {
        return;
    }
    // Rows 7 to 22 of column 30: it begins in strip 0, fills strip 1 and ends in strip 2 of 10 rows.
    let web = line(50, 7..23);
    let element = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> min-contrast=0 threshold=40 \
                   line-scan=true fail=fail,defect-area=15,defect-count=-1 \
                   mm-per-pixel=<0.5,2>";
    let sent = web.through(element, 10);
    let results: Vec<DefectResult> = sent.iter().flat_map(|s| DefectResult::read(s)).collect();
    let listed: Vec<usize> = results.iter().map(|r| r.defects.len()).collect();
    assert_eq!(listed, [0, 0, 1, 0, 0]);
    let defect = results[2].defects[0];
    assert_eq!(
        (defect.x, defect.y, defect.width, defect.height),
        (30, -13, 1, 16)
    );
    assert_eq!((defect.area, defect.id, defect.flags), (16, 1, 0));
    assert_eq!((defect.centroid_x, defect.centroid_y), (30.5, -5.0));
    // Variance of 16 rows in a line: (16² − 1)/12.
    assert!((defect.major_axis - 4.0 * (255.0_f32 / 12.0).sqrt()).abs() < 1e-4);
    assert_eq!((defect.minor_axis, defect.boundary_length), (0.0, 34));
    assert_eq!(defect.mean_difference, 100.0);
    let open: Vec<u64> = results.iter().map(|r| r.open_area).collect();
    assert_eq!(open, [3, 13, 0, 0, 0]);
    // 16 pixels exceed the area of 15 in the strip that lists the line, not before.
    let failed: Vec<bool> = results.iter().map(|r| r.verdict == Verdict::Fail).collect();
    assert_eq!(failed, [false, false, true, false, false]);
    // Its first pixel lies in column 30 and row 7 of the web: 15 mm across and 14 mm along.
    assert_eq!(results[2].x_mm(&defect), Some(15.0));
    assert!((results[2].y_m(&defect).unwrap() - 0.014).abs() < 1e-9);
    // The box of the region of interest is cut to the strip.
    let roi = sent[2]
        .meta::<gst_video::VideoRegionOfInterestMeta>()
        .unwrap();
    assert_eq!(roi.rect(), (30, 0, 1, 3));
}

#[test]
fn a_defect_fails_the_strip_that_lists_it_although_nothing_is_judged_there() {
    if start().is_none() {
        return;
    }
    // The line ends in row 29; the rows from 30 on are not judged, but only they tell that it ends.
    let web = line(50, 15..30);
    let element = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> min-contrast=0 threshold=40 line-scan=true";
    for unjudged in [
        "rois=<<0,0,64,30>>",
        "ignore=ignore,regions=<<0.0,30.0,64.0,30.0,64.0,50.0,0.0,50.0>>",
    ] {
        for (height, wanted) in [
            (50, vec![Verdict::Fail]),
            (
                10,
                vec![
                    Verdict::Pass,
                    Verdict::Pass,
                    Verdict::Pass,
                    Verdict::Fail,
                    Verdict::None,
                ],
            ),
        ] {
            let sent = web.through(&format!("{element} {unjudged}"), height);
            let verdicts: Vec<_> = (sent.iter().flat_map(|s| DefectResult::read(s)))
                .map(|result| result.verdict)
                .collect();
            assert_eq!(verdicts, wanted, "{unjudged}, strips of {height} rows");
        }
    }
}

#[test]
fn an_endless_line_is_cut_and_continued() {
    if start().is_none() {
        return;
    }
    let web = line(400, 5..400);
    let element = "clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> min-contrast=0 threshold=40 \
                   line-scan=true limits=limits,max-defect-rows=100";
    let results: Vec<DefectResult> = web
        .through(element, 10)
        .iter()
        .flat_map(|strip| DefectResult::read(strip))
        .collect();
    let listed: Vec<(u32, u16)> = results
        .iter()
        .flat_map(|strip| strip.defects.iter().map(|d| (d.area, d.flags)))
        .collect();
    assert_eq!(listed.iter().map(|(area, _)| area).sum::<u32>(), 395);
    assert_eq!(
        listed.first().map(|d| d.1),
        Some(gstclinspect::results::Defect::CUT)
    );
    assert_eq!(
        listed.last().map(|d| d.1),
        Some(gstclinspect::results::Defect::CONTINUED)
    );
    assert!(listed.len() >= 4, "{listed:?}");
}

#[test]
fn stats_count_the_listed_defects_by_class() {
    if start().is_none() {
        return;
    }
    let web = Web::cloth(Format::Gray8, 97, 360, 24);
    let element = format!("{JUDGED} classes=\"long: elongation > 3 and major > 8\"");
    let mut rig = Rig::new(&element, &web.caps(20));
    for strip in web.strips(20) {
        rig.push(strip).unwrap();
    }
    rig.harness().push_event(gst::event::Eos::new());
    let mut listed = std::collections::BTreeMap::<String, u64>::new();
    while let Some(strip) = rig.harness().try_pull() {
        for result in DefectResult::read(&strip) {
            for defect in &result.defects {
                *listed
                    .entry(result.class_name(defect.class).to_owned())
                    .or_default() += 1;
            }
        }
    }
    assert!(listed.len() > 1, "{listed:?}");
    let stats: gst::Structure = rig.only("clpitchthreshold").property("stats");
    let counts: gst::Structure = stats.get("class-counts").unwrap();
    for (name, count) in &listed {
        assert_eq!(counts.get::<u64>(name), Ok(*count), "{name}");
    }
}
