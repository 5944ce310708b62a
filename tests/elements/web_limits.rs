//! Webs at the limits of what is judged and listed: stains that only coarse levels see, strips with too many
//! runs, and pixels that are not judged.

use gst_video::VideoFormat as Format;
use gstclinspect::results::{Defect, DefectResult, Verdict};

use crate::{
    frames::read,
    ignored::Scratch,
    support::start,
    webs::{HEIGHTS, Numbers, Web, in_web, line, rows_of},
};

const WIDTH: usize = 160;
const ROWS: usize = 360;

/// Results of the strips.
fn results(strips: &[gst::Buffer]) -> Vec<DefectResult> {
    strips.iter().flat_map(|s| DefectResult::read(s)).collect()
}

/// Sum of a count over the strips.
fn sum(results: &[DefectResult], count: fn(&DefectResult) -> u64) -> u64 {
    results.iter().map(count).sum()
}

/// A pattern of period 8 x 8 with noise, and stains far below its amplitude. At least one stain crosses a
/// seam of each of [`HEIGHTS`].
fn stained(format: Format) -> Web {
    let mut web = Web::cloth(format, WIDTH, ROWS, 1);
    let mut numbers = Numbers(31);
    let stains = [
        (40, 120, 9, 9),
        (100, 240, 12, -8),
        (60, 245, 8, -10),
        (120, 118, 11, 8),
        (40, 228, 9, 9),
    ];
    let levels = (0..WIDTH * ROWS).map(|i| {
        let (x, y) = ((i % WIDTH) as i64, (i / WIDTH) as i64);
        let pattern = 5 * (x % 8) + 5 * (y % 8);
        let stain = stains
            .iter()
            .find(|(cx, cy, r, _)| (x - cx).pow(2) + (y - cy).pow(2) <= r * r);
        let noise = numbers.next(5) as i64;
        (80 + pattern + noise + stain.map_or(0, |stain| stain.3)) as u8
    });
    web.bytes = match format {
        Format::Gray16Le => levels.flat_map(|v| [37, v]).collect(),
        _ => levels.collect(),
    };
    web
}

#[test]
fn stains_that_only_coarse_levels_see_are_listed_once_over_seams() {
    if start().is_none() {
        return;
    }
    for (format, scales, threshold) in [
        (Format::Gray8, 2, 16),
        (Format::Gray8, 3, 16),
        (Format::Gray16Le, 3, 16 * 256),
    ] {
        let element = format!(
            "clpitchthreshold line-scan=true pitch-x=8 pitch-y=8 multiples=<1,4> min-contrast=0 \
             scales={scales} threshold={threshold} merge-distance=2 limits=limits,max-defects=10000"
        );
        let web = stained(format);
        // Pixels alone see nothing.
        let alone = web.through(
            &element.replace(&format!("scales={scales}"), "scales=0"),
            ROWS,
        );
        assert_eq!(results(&alone)[0].defect_pixels, 0, "{format:?}");
        let whole = web.through(&element, ROWS);
        let wanted = in_web(&results(&whole));
        let coarse = |results: &[DefectResult], below: i32| {
            let listed = results.iter().flat_map(|result| &result.defects);
            listed
                .filter(|defect| defect.level() > 0 && defect.y < below)
                .count()
        };
        assert!(coarse(&results(&whole), i32::MAX) >= 4, "{wanted:?}");
        for height in HEIGHTS {
            let strips = web.through(&element, height);
            let what = format!("{format:?}, {scales} scales, strips of {height} rows");
            assert!(
                rows_of(&strips, 20, 20) == rows_of(&whole, 20, 20),
                "{what}"
            );
            let found = results(&strips);
            assert_eq!(in_web(&found), wanted, "{what}");
            // A negative `y`: the stain began in a strip before.
            assert_eq!(coarse(&found, 0) > 0, height < ROWS, "{what}");
        }
    }
}

/// Settings without presence, whose differences depend on the row of tiles.
const PLAIN: &str = "clpitchthreshold pitch-x=7.35 pitch-y=5.25 threshold=40 min-contrast=0 limits=limits,max-defects=10000";

#[test]
fn ignored_pixels_of_strips_are_those_of_a_frame() {
    if start().is_none() {
        return;
    }
    let ignored = |x: usize| (30..41).contains(&x) || x == 96;
    let picture = |rows: usize| {
        let pixels = (0..97 * rows).map(|i| u8::from(ignored(i % 97)));
        let head = format!("P5 97 {rows} 255\n").into_bytes();
        Scratch::new(&head.into_iter().chain(pixels).collect::<Vec<u8>>())
    };
    let (columns, frame) = (picture(1), picture(ROWS));
    // Polygons across seams, one of them up to beyond the web's end, and one that begins above it.
    let polygons = "ignore=ignore,regions=<<10.5,-3.0,80.0,50.25,20.0,131.0>,<50.0,300.0,97.0,355.0,60.0,500.0>>";
    for (seed, masked, extra) in [
        (41, true, ""),
        (42, false, polygons),
        (43, true, polygons),
        (44, true, "scales=2 merge-distance=3 rois=<<5,13,60,300>>"),
    ] {
        let web = Web::cloth(Format::Gray8, 97, ROWS, seed);
        let with = |file: &Scratch| {
            let mask = format!("ignore=ignore,mask={}", file.path());
            format!("{PLAIN} {extra} {}", if masked { &mask } else { "" })
        };
        // A frame that is no strip.
        let whole = web.through(&with(&frame), ROWS);
        let one = &results(&whole)[0];
        let wanted = in_web(std::slice::from_ref(one));
        assert!(wanted.len() > 4, "{extra}");
        assert!(one.judged_pixels < (97 * ROWS) as u64 * 9 / 10, "{extra}");
        for height in HEIGHTS {
            let element = format!("{} line-scan=true", with(&columns));
            let strips = web.through(&element, height);
            let found = results(&strips);
            let what = format!("{extra}, strips of {height} rows");
            assert!(
                rows_of(&strips, 13, 13) == rows_of(&whole, 13, 13),
                "{what}"
            );
            assert_eq!(in_web(&found), wanted, "{what}");
            assert_eq!(
                sum(&found, |r| r.judged_pixels),
                one.judged_pixels,
                "{what}"
            );
            assert_eq!(
                sum(&found, |r| r.defect_pixels),
                one.defect_pixels,
                "{what}"
            );
        }
    }
}

/// Runs of marked pixels in packed rows.
fn runs(packed: &[u8]) -> usize {
    let rows = packed.chunks_exact(WIDTH / 8);
    rows.map(|row| {
        let bits = row
            .iter()
            .flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1));
        bits.fold((0, 0), |(runs, before), bit| {
            (runs + usize::from(bit == 1 && before == 0), bit)
        })
        .0
    })
    .sum()
}

/// Bright columns over the whole web, and noise in rows 160 to 179.
fn busy() -> Web {
    let mut web = line(ROWS, 0..0);
    web.width = WIDTH;
    let mut numbers = Numbers(7);
    web.bytes = (0..WIDTH * ROWS)
        .map(|i| {
            let (x, y) = (i % WIDTH, i / WIDTH);
            let line = (x == 30 && y < 200) || (x == 90 && (100..150).contains(&y)) || x == 120;
            let noise = (160..180).contains(&y) && numbers.next(3) == 0;
            if line || noise { 200 } else { 100 }
        })
        .collect();
    web
}

#[test]
fn strips_of_too_many_runs_list_only_what_was_open() {
    if start().is_none() {
        return;
    }
    let web = busy();
    let element = |most: usize| {
        format!(
            "clpitchthreshold line-scan=true pitch-x=16 pitch-y=0 multiples=<1> scales=0 min-contrast=0 \
             threshold=40 merge-distance=0 limits=limits,max-defects=10000,max-runs={most}"
        )
    };
    let whole = web.through(&element(1 << 20), ROWS);
    let mask = read(&whole[0]);
    let wanted = in_web(&results(&whole));
    let row = WIDTH / 8;
    for height in [4, 20, 60] {
        let busiest = mask.chunks_exact(row * height).map(runs).max().unwrap();
        // The limit counts for each strip: the web as a whole has more runs.
        assert!(runs(&mask) > busiest);
        let strips = web.through(&element(busiest), height);
        assert!(rows_of(&strips, row, row) == mask);
        let found = results(&strips);
        assert_eq!(in_web(&found), wanted, "strips of {height} rows");
        assert!(found.iter().all(|result| !result.overflow));

        let strips = web.through(&element(busiest - 1), height);
        assert!(rows_of(&strips, row, row) == mask);
        let found = results(&strips);
        let mut listed = 0;
        for (number, (rows, result)) in mask.chunks_exact(row * height).zip(&found).enumerate() {
            let what = format!("strip {number} of {height} rows");
            let is_full = runs(rows) == busiest;
            assert_eq!(result.overflow, is_full, "{what}");
            listed += result
                .defects
                .iter()
                .map(|d| u64::from(d.area))
                .sum::<u64>();
            if !is_full {
                continue;
            }
            assert_eq!(result.verdict, Verdict::Fail, "{what}");
            assert_eq!(result.open_area, 0, "{what}");
            assert!(!result.defects.is_empty(), "{what}");
            for defect in &result.defects {
                assert_eq!(
                    defect.flags & Defect::CUT,
                    Defect::CUT,
                    "{what}: {defect:?}"
                );
                // None of its pixels lies in this strip.
                assert!(defect.y + defect.height as i32 <= 0, "{what}: {defect:?}");
            }
        }
        // Every pixel is listed once, but for those of the strips that overflow.
        let full = mask.chunks_exact(row * height).zip(&found);
        let unlisted = full.filter(|(_, result)| result.overflow);
        let unlisted: u32 = unlisted
            .flat_map(|(rows, _)| rows)
            .map(|byte| byte.count_ones())
            .sum();
        let marked: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(
            listed,
            u64::from(marked - unlisted),
            "strips of {height} rows"
        );
    }
}
