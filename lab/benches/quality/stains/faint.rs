//! Precision on frames with faint stains.

use anyhow::Result;

use super::{Levels, SEED_DISCS, StainEffort, Subject, scenes::Scenes};
use crate::{
    detector::Detector,
    measure::{Blobs, Recall},
};

/// Diameters of the stains, px.
const STAINS_PX: [f64; 2] = [12.0, 30.0];
/// Contrasts of the stains, as multiples of C95 with the default factors.
const TIMES_C95: [f64; 3] = [1.0, 2.0, 4.0];

/// Blobs on frames with stains of one diameter and contrast.
#[derive(Clone, Debug)]
pub struct Faint {
    /// Subject.
    pub subject: Subject,
    /// Diameter, px.
    pub diameter_px: f64,
    /// Contrast, grey levels.
    pub contrast: f64,
    /// With `scales=0`, and with the default factors: found and planted stains, and blobs.
    pub found: [(Recall, Blobs); 2],
}

/// Stains of each diameter and contrast on a subject whose C95 are known.
pub fn measure(levels: &Levels, effort: &StainEffort) -> Result<Vec<Faint>> {
    let subject = levels.subject;
    let [alone, across, _] = &levels.reaches;
    let benches = [
        subject.bench(alone.scales, &alone.factors)?,
        subject.bench(across.scales, &across.factors)?,
    ];
    let thresholds = [alone.threshold, across.threshold];
    let mut all = Vec::new();
    for diameter_px in STAINS_PX {
        let Some(c95) = across.c95_of(diameter_px) else {
            continue;
        };
        let scenes = Scenes::new(
            &subject,
            SEED_DISCS,
            diameter_px,
            effort.discs(&subject, diameter_px),
        )?;
        for contrast in TIMES_C95.map(|times| times * c95) {
            let mut found = [(Recall::default(), Blobs::default()); 2];
            for number in 0..scenes.len() {
                let frame = scenes.frame(number, contrast);
                let planted = scenes.planted(number);
                for ((bench, threshold), (recall, blobs)) in
                    benches.iter().zip(thresholds).zip(&mut found)
                {
                    let judgement = bench.judge(&frame, threshold)?;
                    let multiples = Detector::RECOMMENDED.multiples();
                    blobs.add(planted, subject.texture.size(), &judgement, multiples);
                    for defect in planted {
                        recall.add(defect, &judgement);
                    }
                }
            }
            all.push(Faint {
                subject,
                diameter_px,
                contrast,
                found,
            });
        }
    }
    Ok(all)
}
