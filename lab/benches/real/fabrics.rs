//! Single photographs of cloth and mesh, each with a defect and without a good frame: whether the strongest mark lies on the
//! defect.

use std::{fmt::Write, path::Path};

use anyhow::Result;
use gstclinspect::results::Verdict;

use crate::{
    line::Line,
    marks::Area,
    peers::{Part, Peers},
    pictures::Grey,
};

/// The defects of `N.jpg`, as this project sees them: number, then first and past-the-last column and row, px. Picture 20 is
/// drawn and shows no defect.
const DEFECTS: [(u32, [usize; 4]); 20] = [
    (1, [90, 236, 460, 262]),
    (2, [120, 230, 455, 252]),
    (3, [55, 222, 225, 244]),
    (3, [220, 246, 430, 272]),
    (4, [108, 0, 126, 225]),
    (5, [104, 0, 117, 225]),
    (6, [244, 95, 305, 440]),
    (7, [100, 220, 400, 268]),
    (8, [225, 185, 282, 300]),
    (9, [242, 170, 264, 512]),
    (10, [0, 190, 512, 298]),
    (11, [0, 214, 512, 260]),
    (12, [200, 0, 226, 385]),
    (13, [230, 0, 266, 512]),
    (14, [228, 150, 282, 315]),
    (15, [224, 208, 274, 268]),
    (16, [86, 92, 112, 115]),
    (17, [68, 85, 107, 100]),
    (18, [122, 78, 154, 112]),
    (19, [44, 54, 84, 92]),
];
const PICTURES: u32 = 19;
/// A mark counts as on the defect up to this distance from its box, px.
const MARGIN_PX: usize = 4;

const METHODS: [&str; 2] = [
    "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold",
    "clpitchthreshold",
];

/// Measures the photographs in a folder.
///
/// # Errors
/// A picture is missing, or a method fails.
pub fn measure(folder: &Path, mut peers: Option<Peers>, verbose: bool) -> Result<String> {
    let mut document = format!(
        "{PICTURES} photographs\n\n| method | strongest mark on the defect | beside it | no verdict |\n|---|---|---|---|\n"
    );
    let mut row = |name: &str, [on, none]: [u32; 2]| -> Result<()> {
        let line = format!("| {name} | {on} | {} | {none} |", PICTURES - on - none);
        eprintln!("{line}");
        Ok(writeln!(document, "{line}")?)
    };
    for elements in METHODS {
        let mut counts = [0; 2];
        for number in 1..=PICTURES {
            let path = folder.join(format!("{number}.jpg"));
            let grey = Grey::jpeg(&path)?;
            let settings = "reports=reports,messages=false difference-gain=0.5";
            let line = Line::of_differences(&format!("{elements} {settings}"), grey.size)?;
            let ([x, y], result) = line.most_different(&grey)?;
            let is_judged = result.verdict != Verdict::None;
            let is_on = is_judged
                && defects(number).any(|defect| defect.grown(MARGIN_PX, grey.size).holds(x, y));
            if verbose {
                let of = (
                    result.verdict,
                    &result.lattice,
                    result.pitch_x,
                    result.pitch_y,
                );
                eprintln!("{}: {of:?}, at {x}, {y}, on {is_on}", path.display());
            }
            counts[0] += u32::from(is_on);
            counts[1] += u32::from(!is_judged);
        }
        row(&format!("`{elements}`"), counts)?;
    }
    if let Some(peers) = &mut peers {
        let mut on = 0;
        for number in 1..=PICTURES {
            let path = folder.join(format!("{number}.jpg"));
            let [width, height] = Grey::jpeg(&path)?.size;
            let boxes: Vec<Area> = defects(number).collect();
            let part = Part {
                light: [width / 64, height / 64],
                ..Part::new(&path, [0, 0, width, height], &boxes)
            };
            let found = peers.notch(&part)?;
            // Of maps with different noise, the one whose peak stands out most.
            let maps = 0..found.peaks.len();
            let strongest = maps.max_by(|&a, &b| {
                let stands_out = |map: usize| found.peaks[map] / found.deviations[map];
                stands_out(a).total_cmp(&stands_out(b))
            });
            let is_on = strongest
                .is_some_and(|map| found.boxes.iter().any(|of| of[map] == found.peaks[map]));
            on += u32::from(is_on);
        }
        row("cv2: FFT notch, three maps", [on, 0])?;
    }
    Ok(document)
}

/// The boxes of a picture's defects.
fn defects(number: u32) -> impl Iterator<Item = Area> {
    let of = DEFECTS.iter().filter(move |(of, _)| *of == number);
    of.map(|&(_, [x0, y0, x1, y1])| Area { x0, y0, x1, y1 })
}
