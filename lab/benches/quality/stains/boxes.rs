//! How much the boxes of small defects grow.

use anyhow::Result;

use super::{Levels, SEED_DISCS, StainEffort, scenes::Scenes};
use crate::{common::panel::PlantedDefect, detector::Judgement};

/// Diameters and contrasts of the discs.
const DISCS: [(f64, f64); 4] = [(1.5, 80.0), (3.0, 30.0), (3.0, 80.0), (6.0, 80.0)];

/// Growth of the boxes of discs of one kind, default settings against `scales=0`.
#[derive(Clone, Debug)]
pub struct BoxGrowth {
    /// Diameter, px.
    pub diameter_px: f64,
    /// Contrast, grey levels.
    pub contrast: f64,
    /// Growth of the longer side by disc, px, ascending.
    pub growth_px: Vec<i64>,
}

impl BoxGrowth {
    /// The growth that this share of the discs does not exceed, px.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let last = self.growth_px.len().checked_sub(1)?;
        self.growth_px
            .get((share * last as f64).round() as usize)
            .copied()
    }
}

/// Width and height of the blob on a defect.
fn size_of_blob(defect: &PlantedDefect, judgement: &Judgement) -> Option<[i64; 2]> {
    let blobs = &judgement.result.defects;
    let on = |blob: &&gstclinspect::results::Defect| {
        judgement.marked_in(blob).any(|(x, y)| defect.covers(x, y))
    };
    let blob = blobs.iter().find(on)?;
    Some([blob.width, blob.height].map(i64::from))
}

/// The subject's discs of each kind.
pub fn measure(levels: &Levels, effort: &StainEffort) -> Result<Vec<BoxGrowth>> {
    let [alone, across, _] = &levels.reaches;
    let benches = [alone, across].map(|reach| levels.subject.bench(reach.scales, &reach.factors));
    let [bench_alone, bench_across] = benches;
    let (bench_alone, bench_across) = (bench_alone?, bench_across?);
    DISCS
        .iter()
        .map(|&(diameter_px, contrast)| {
            let scenes = Scenes::new(&levels.subject, SEED_DISCS, diameter_px, effort.discs[1])?;
            let mut growth_px = Vec::new();
            for number in 0..scenes.len() {
                let frame = scenes.frame(number, contrast);
                let before = bench_alone.judge(&frame, alone.threshold)?;
                let after = bench_across.judge(&frame, across.threshold)?;
                for defect in scenes.planted(number) {
                    let sizes = size_of_blob(defect, &before).zip(size_of_blob(defect, &after));
                    growth_px.extend(sizes.map(|(a, b)| (b[0] - a[0]).max(b[1] - a[1])));
                }
            }
            growth_px.sort_unstable();
            Ok(BoxGrowth {
                diameter_px,
                contrast,
                growth_px,
            })
        })
        .collect()
}
