//! Cloth: the texture comparison, the elements and the peer on the frames of AITEX.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use anyhow::{Context, Result};

use crate::{
    aitex::{self, Frame},
    line::Line,
    peers::{Part, Peers},
    split::{FAILED, Learned, Sample, Split, Tested, mean_at, mean_found},
    texture::Comparison,
};

/// Clean frames that teach; for the elements also [`MORE`].
const LEARN: usize = 10;
const MORE: usize = 16;
/// Fabrics on which no setting was chosen.
const HELD_OUT: [u32; 4] = [2, 4, 5, 6];
/// `g`: the margin of `cltexture`, and that of the peer.
const MARGIN: f64 = 1.3;
pub const PEER_MARGIN: f64 = 1.15;
/// Frequencies that are light for the peer.
const PEER_LIGHT: [usize; 2] = [64, 4];
/// Numbers of failed frames at which the held-out fabrics and random splits are told.
const TOLD: [usize; 2] = [1, 5];

/// How to measure.
pub struct Effort {
    pub splits: u64,
    pub seed: u64,
    pub verbose: bool,
}

/// A user's elements.
struct Method {
    name: &'static str,
    elements: &'static str,
    learning: Learning,
}

/// How the limits are learned.
#[derive(PartialEq, Eq)]
enum Learning {
    /// From the first frames.
    AtStart,
    /// After the signal.
    OnSignal,
    /// Limits are the defaults.
    Never,
}

const METHODS: [Method; 4] = [
    Method {
        name: "`cltexture`",
        elements: "cltexture name=judge",
        learning: Learning::AtStart,
    },
    Method {
        name: "`clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold`",
        elements: "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold name=judge",
        learning: Learning::OnSignal,
    },
    Method {
        name: "the same with `multiples=\"<1>\"`",
        elements: "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold name=judge multiples=\"<1>\"",
        learning: Learning::OnSignal,
    },
    Method {
        name: "`clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold`, `threshold=12` (default), not learned",
        elements: "clgaussian kernel-size=5 sigma=0.8 ! clpitchthreshold name=judge",
        learning: Learning::Never,
    },
];

/// The kinds of defects, by the second number in the name of a picture.
const KINDS: [(&str, &str); 12] = [
    ("002", "broken end"),
    ("006", "broken yarn"),
    ("010", "broken pick"),
    ("016", "weft curling"),
    ("019", "fuzzy ball"),
    ("022", "cut selvage"),
    ("023", "crease"),
    ("025", "warp ball"),
    ("027", "knot"),
    ("029", "contamination"),
    ("030", "nep"),
    ("036", "weft crack"),
];

/// Numbers of found and of all frames by kind of defect.
type ByKind = BTreeMap<&'static str, [usize; 2]>;

/// The kind of the defects of a frame.
fn kind(name: &str) -> &'static str {
    let code = name.split('_').nth(1);
    let known = KINDS.iter().find(|(known, _)| Some(*known) == code);
    known.map_or("other", |(_, kind)| kind)
}

/// Counts of one method.
#[derive(Default, Clone, Copy)]
struct Counts {
    clean: usize,
    failed: usize,
    unjudged: usize,
    defective: usize,
    found: usize,
    unjudged_defective: usize,
    false_blobs: usize,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.clean += other.clean;
        self.failed += other.failed;
        self.unjudged += other.unjudged;
        self.defective += other.defective;
        self.found += other.found;
        self.unjudged_defective += other.unjudged_defective;
        self.false_blobs += other.false_blobs;
    }

    fn row(&self, name: &str) -> String {
        let Self {
            clean,
            failed,
            unjudged,
            defective,
            found,
            unjudged_defective,
            ..
        } = self;
        let each = self.false_blobs as f64 / (*defective).max(1) as f64;
        format!(
            "| {name} | {failed} / {unjudged} of {clean} | {found} of {defective} | {unjudged_defective} | {each:.2} |"
        )
    }
}

/// What the peer is asked about a frame.
fn part(frame: &Frame) -> Part<'_> {
    let [width, height] = frame.grey.size;
    let place = [frame.first_column, 0, width, height];
    Part {
        light: PEER_LIGHT,
        ..Part::new(&frame.path, place, &frame.boxes)
    }
}

/// The share in percent.
fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

/// Measures the cloth in a folder.
///
/// # Errors
/// A picture is missing, or a method fails.
pub fn measure(folder: &Path, mut peers: Option<Peers>, effort: &Effort) -> Result<String> {
    let frames = aitex::read(folder)?;
    let mut fabrics: Vec<u32> = frames.iter().map(|frame| frame.fabric).collect();
    fabrics.dedup();
    let mut by_fabric: BTreeMap<u32, Vec<&Frame>> = BTreeMap::new();
    frames
        .iter()
        .for_each(|frame| by_fabric.entry(frame.fabric).or_default().push(frame));
    for (fabric, frames) in &by_fabric {
        let width = frames.first().map_or(0, |frame| frame.grey.size[0]);
        let clean = frames.iter().filter(|frame| frame.is_clean).count();
        eprintln!(
            "fabric {fabric:02}: {width} columns, {clean} clean, {} defective",
            frames.len() - clean
        );
    }

    // The definition.
    let mut comparisons = BTreeMap::new();
    let mut samples = Vec::new();
    let mut pitches = Vec::new();
    let mut is_estimated = Vec::new();
    for frame in &frames {
        let comparison = match comparisons.entry(frame.fabric) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Comparison::new(frame.grey.size)?)
            }
        };
        let measured = comparison.measure(frame)?;
        if effort.verbose {
            let (pitches, peaks) = (measured.pitches, &measured.sample.peaks);
            eprintln!("{}: pitches {pitches:.2?}, peaks {peaks:.1?}", frame.name);
        }
        pitches.push(measured.pitches);
        is_estimated.push(measured.is_estimated);
        samples.push(measured.sample);
    }
    let mut curves = String::from("| method |");
    FAILED
        .iter()
        .try_for_each(|failed| write!(curves, " found % at {failed} |"))?;
    for what in ["held-out fabrics", "random splits"] {
        write!(curves, " {what}, at {} / {} |", TOLD[0], TOLD[1])?;
    }
    writeln!(curves, "\n|{}", "---|".repeat(FAILED.len() + 3))?;
    let name = "definition of `cltexture`, pitches estimated on every frame";
    writeln!(curves, "{}", curve(name, &samples, &fabrics, effort))?;
    let mut users = String::from(
        "| method | clean frames failed / without a verdict | defective found | defective without a verdict | false \
         blobs per defective frame |\n|---|---|---|---|---|\n",
    );
    let split = Split::new(&samples, &fabrics, LEARN, None);
    let mut count_false = |tested: &Tested, learned: &Learned, margin: f64| -> Result<usize> {
        let frame = &frames[tested.at];
        let comparison = comparisons
            .get_mut(&frame.fabric)
            .context("a fabric without frames")?;
        let Some(pitches) = pitches[tested.at] else {
            return Ok(0);
        };
        let mask = comparison.mark(frame, pitches, &learned.limits(margin))?;
        let outcome = mask.outcome(&frame.boxes, 1);
        Ok(outcome.false_blobs)
    };
    let rows = at_margin(&split, &frames, MARGIN, &mut count_false)?;
    let name = format!("definition, g = {MARGIN}, {LEARN} frames");
    tell(&mut users, &name, &rows, effort.verbose)?;
    let mut more = String::new();
    for learn in [LEARN, MORE] {
        let [failed, found] = mean_at(
            &samples,
            &fabrics,
            learn,
            MARGIN,
            effort.splits,
            effort.seed,
        );
        let (failed, found) = (100.0 * failed, 100.0 * found);
        writeln!(more, "| {learn} | {failed:.1} | {found:.1} |")?;
    }

    // The elements.
    let mut kinds = ByKind::new();
    for (number, method) in METHODS.iter().enumerate() {
        for learn in [LEARN, MORE] {
            let mut rows = Vec::new();
            for (fabric, of) in &by_fabric {
                let mut found = ByKind::new();
                rows.push((
                    *fabric,
                    run(
                        method,
                        of,
                        learn,
                        &frames,
                        &split,
                        &mut found,
                        effort.verbose,
                    )?,
                ));
                if number == 0 && learn == LEARN {
                    for (kind, [found, all]) in found {
                        let sums = kinds.entry(kind).or_default();
                        *sums = [sums[0] + found, sums[1] + all];
                    }
                }
            }
            if method.learning == Learning::Never {
                tell(&mut users, method.name, &rows, effort.verbose)?;
                break;
            }
            let name = format!("{}, {learn} frames", method.name);
            tell(&mut users, &name, &rows, effort.verbose)?;
        }
    }
    let mut by_kind = String::new();
    for (kind, [found, all]) in kinds {
        writeln!(by_kind, "| {kind} | {found} of {all} |")?;
    }

    // The peer.
    if let Some(peers) = &mut peers {
        let mut of_peer = Vec::new();
        for (frame, ours) in frames.iter().zip(&samples) {
            let peaks = peers.notch(&part(frame))?;
            of_peer.push(Sample {
                typical: vec![0.0; peaks.peaks.len()],
                peaks: peaks.peaks,
                in_boxes: peaks.boxes,
                ..ours.clone()
            });
        }
        let name = "cv2: FFT notch, three maps";
        writeln!(curves, "{}", curve(name, &of_peer, &fabrics, effort))?;
        let split = Split::new(&of_peer, &fabrics, LEARN, None);
        let mut count_false = |tested: &Tested, learned: &Learned, margin: f64| {
            peers.notch_false(&part(&frames[tested.at]), &learned.limits(margin))
        };
        let rows = at_margin(&split, &frames, PEER_MARGIN, &mut count_false)?;
        let name = format!("{name}, {PEER_MARGIN} times the largest, {LEARN} frames");
        tell(&mut users, &name, &rows, effort.verbose)?;
    }
    let [clean, defective] = [split.clean.len(), split.defective.len()];
    let held = [&split.clean, &split.defective]
        .map(|of| of.iter().filter(|tested| !is_estimated[tested.at]).count());
    Ok(format!(
        "{LEARN} clean frames per fabric teach, {clean} clean and {defective} defective frames test. {} clean and {} \
         defective frames have no estimate of a pitch; the pitch of the frame before is held.\n\nFound at 0, 1, 2, 5 and 10 failed clean frames of {clean} \
         ({} random splits, seed {}):\n\n{curves}\nAs a user runs it, frames in the order of their names:\n\n{users}\n\
         Definition at g = {MARGIN}, mean of random splits:\n\n| frames that teach | clean frames failed % | defective \
         found % |\n|---|---|---|\n{more}\n`cltexture`, {LEARN} frames:\n\n| defect | frames found |\n|---|---|\n{by_kind}",
        held[0], held[1], effort.splits, effort.seed
    ))
}

/// Found frames at equal numbers of failed ones.
fn curve(name: &str, samples: &[Sample], fabrics: &[u32], effort: &Effort) -> String {
    let split = Split::new(samples, fabrics, LEARN, None);
    let held_out: Vec<u32> = fabrics
        .iter()
        .copied()
        .filter(|fabric| HELD_OUT.contains(fabric))
        .collect();
    let apart = Split::new(samples, &held_out, LEARN, None);
    let random = mean_found(samples, fabrics, LEARN, effort.splits, effort.seed);
    let mut cells: Vec<String> = FAILED
        .map(|failed| percent(split.found_at(failed)))
        .to_vec();
    cells.push(
        TOLD.map(|failed| percent(apart.found_at(failed)))
            .join(" / "),
    );
    let of = |told| {
        FAILED
            .iter()
            .position(|&failed| failed == told)
            .map_or(0.0, |at| random[at])
    };
    cells.push(TOLD.map(|told| percent(of(told))).join(" / "));
    format!("| {name} | {} |", cells.join(" | "))
}

/// Counts by fabric at a margin.
fn at_margin(
    split: &Split,
    frames: &[Frame],
    margin: f64,
    count_false: &mut dyn FnMut(&Tested, &Learned, f64) -> Result<usize>,
) -> Result<Vec<(u32, Counts)>> {
    let mut rows = Vec::new();
    for (fabric, learned) in &split.learned {
        let of = |tested: &&Tested| frames[tested.at].fabric == *fabric;
        let part = Split {
            clean: split.clean.iter().filter(of).cloned().collect(),
            defective: split.defective.iter().filter(of).cloned().collect(),
            learned: Vec::new(),
        };
        let [failed, found] = part.at(margin);
        let [unjudged, unjudged_defective] = part.unjudged();
        let mut counts = Counts {
            clean: part.clean.len(),
            failed,
            unjudged,
            defective: part.defective.len(),
            found,
            unjudged_defective,
            false_blobs: 0,
        };
        for tested in &part.defective {
            counts.false_blobs += count_false(tested, learned, margin)?;
        }
        rows.push((*fabric, counts));
    }
    Ok(rows)
}

/// Runs elements on the frames of a fabric: the clean ones, of which the first ones teach, then the defective ones that
/// the split tests.
fn run(
    method: &Method,
    of: &[&Frame],
    learn: usize,
    all: &[Frame],
    split: &Split,
    kinds: &mut ByKind,
    verbose: bool,
) -> Result<Counts> {
    let Some(first) = of.first() else {
        return Ok(Counts::default());
    };
    let elements = format!(
        "{} learn=\"learn,frames={learn}\" reports=reports,messages=false",
        method.elements
    );
    let line = Line::new(
        &elements,
        first.grey.size,
        method.learning == Learning::OnSignal,
    )?;
    let mut counts = Counts::default();
    for (at, frame) in of.iter().filter(|frame| frame.is_clean).enumerate() {
        let judged = line.judge(&frame.grey)?;
        if at >= learn {
            counts.clean += 1;
            counts.failed += usize::from(judged.is_failed());
            counts.unjudged += usize::from(judged.is_unjudged());
        }
    }
    let tested = split.defective.iter().map(|tested| &all[tested.at]);
    for frame in tested.filter(|frame| frame.fabric == first.fabric) {
        let judged = line.judge(&frame.grey)?;
        let outcome = judged.outcome(&frame.boxes, 1);
        counts.defective += 1;
        counts.unjudged_defective += usize::from(judged.is_unjudged());
        let is_found = outcome.is_found.contains(&true);
        counts.found += usize::from(is_found);
        let [found, all] = kinds.entry(kind(&frame.name)).or_default();
        *found += usize::from(is_found);
        *all += 1;
        if verbose && !is_found {
            eprintln!("{}: missed by {}", frame.name, method.name);
        }
        counts.false_blobs += outcome.false_blobs;
    }
    Ok(counts)
}

/// Writes the row of a method, and with `verbose` a line per fabric.
fn tell(table: &mut String, name: &str, rows: &[(u32, Counts)], verbose: bool) -> Result<()> {
    let mut all = Counts::default();
    for (fabric, counts) in rows {
        all.add(counts);
        if verbose {
            eprintln!("{name}: {}", counts.row(&format!("{fabric:02}")));
        }
    }
    eprintln!("{}", all.row(name));
    writeln!(table, "{}", all.row(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind_of_the_defects() {
        assert_eq!(kind("0012_006_02"), "broken yarn");
        assert_eq!(kind("0012_999_02"), "other");
        assert_eq!(kind("0012"), "other");
    }

    #[test]
    fn rows_are_sums_over_fabrics() {
        let one = Counts {
            clean: 10,
            failed: 1,
            unjudged: 2,
            defective: 4,
            found: 3,
            unjudged_defective: 0,
            false_blobs: 6,
        };
        let mut all = one;
        all.add(&one);
        assert_eq!(all.row("x"), "| x | 2 / 4 of 20 | 6 of 8 | 0 | 1.50 |");
    }
}
