//! What the limits around a model see of a defect of half the model's range.

use super::{Deviations, JudgedArea, Limits, Model};
use crate::sight::Sight;

/// Side of the tiles in which the model's range is measured, px: uneven light is nearly constant there.
const TILE: usize = 32;
/// The mean of a plain surface differs by less within a tile, grey levels of 8 bits.
const PLAIN: u32 = 32;
/// A model sees if more than one judged pixel of this many does: a few pixels, such as saturated ones, have no deviation.
const SHARE: usize = 10;

/// What the limits of samples with `depth` significant bits see. `None` if no pixel is judged.
///
/// A plain model says nothing about the size of defects, which are not parts of it: there the samples' own range counts.
pub fn sight(
    model: &Model,
    judged: &JudgedArea,
    deviations: &Deviations,
    depth: u32,
) -> Option<Sight> {
    let [width, _] = model.size();
    let highest = (1_u32 << depth) - 1;
    let is_judged = |at: usize| judged.is_judged(at % width, at / width);
    let limits = Limits::new(model, judged, deviations);
    let samples = limits.high.iter().zip(&limits.low).zip(model.mean());
    let mut least: Vec<(u32, u32)> = samples
        .enumerate()
        .filter(|&(at, _)| is_judged(at))
        .map(|(at, ((&high, &low), &mean))| {
            // No mean lies outside its limits, so both changes are above 0.
            let (high, low) = (u32::from(high), u32::from(low));
            let brighter = (high < highest).then(|| 256 * (high + 1) - mean);
            let darker = (low > 0).then(|| mean - 256 * (low - 1));
            let change = brighter.into_iter().chain(darker).min();
            (change.unwrap_or(256 * (highest + 1)), at as u32)
        })
        .collect();
    let place = least.len() / SHARE;
    if least.is_empty() {
        return None;
    }
    let (_, &mut (limit, at), _) = least.select_nth_unstable(place);
    let range = range(model, is_judged);
    let is_plain = range < (256 * PLAIN) << depth.saturating_sub(8);
    let v = model.deviation().get(at as usize).copied().unwrap_or(0);
    let is_by_factor = deviations.factor * f64::from(v) > 256.0 * deviations.threshold;
    let name = if is_by_factor {
        "deviation-factor"
    } else {
        "threshold"
    };
    Some(Sight {
        name: name.into(),
        limit: f64::from(limit) / 256.0,
        reach: if is_plain {
            f64::from(highest)
        } else {
            f64::from(range) / 512.0
        },
    })
}

/// The largest difference of two judged pixels of the mean in a tile, 1/256 grey level.
fn range(model: &Model, is_judged: impl Fn(usize) -> bool) -> u32 {
    let [width, height] = model.size();
    let columns = width.div_ceil(TILE);
    let mut tiles = vec![(u32::MAX, 0); columns * height.div_ceil(TILE)];
    for (at, &mean) in model
        .mean()
        .iter()
        .enumerate()
        .filter(|(at, _)| is_judged(*at))
    {
        let tile = at / width / TILE * columns + at % width / TILE;
        if let Some((low, high)) = tiles.get_mut(tile) {
            (*low, *high) = (mean.min(*low), mean.max(*high));
        }
    }
    let ranges = tiles.iter().map(|(low, high)| high.saturating_sub(*low));
    ranges.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Rect;

    const DEVIATIONS: Deviations = Deviations {
        threshold: 20.0,
        factor: 0.0,
        edge_tolerance: 0,
        bright: true,
        dark: true,
    };

    /// Stripes of these two levels of `bits` bits, each a pixel wide, 40x40; the deviation is `v`.
    fn stripes([dark, light]: [u32; 2], bits: u32, v: u32) -> Model {
        let mean = (0..1600).map(|at| 256 * if at % 2 == 0 { dark } else { light });
        Model::new([40, 40], bits, 5, mean.collect(), vec![v; 1600]).expect("a model")
    }

    fn sight_of(model: &Model, deviations: &Deviations, depth: u32) -> Sight {
        let judged = JudgedArea::new(model, &[], None);
        sight(model, &judged, deviations, depth).expect("judged pixels")
    }

    #[test]
    fn threshold_sees_up_to_half_of_the_models_range() {
        let model = stripes([60, 160], 8, 0);
        for (threshold, limit, is_blind) in [
            (20.0, 21.0, false),
            // A change by more than 49, so by 50, is marked.
            (49.0, 50.0, false),
            (50.0, 51.0, true),
            (200.0, 256.0, true),
        ] {
            let of = sight_of(
                &model,
                &Deviations {
                    threshold,
                    ..DEVIATIONS
                },
                8,
            );
            assert_eq!((of.limit, of.reach, of.is_blind()), (limit, 50.0, is_blind));
            assert_eq!(of.name, "threshold");
        }
    }

    #[test]
    fn factor_counts_with_the_deviation_of_the_pixels() {
        let model = stripes([60, 160], 8, 256 * 5);
        for (factor, is_blind) in [(9.0, false), (10.0, true)] {
            let of = sight_of(
                &model,
                &Deviations {
                    factor,
                    ..DEVIATIONS
                },
                8,
            );
            assert_eq!(of.is_blind(), is_blind, "{of:?}");
            assert_eq!(of.name, "deviation-factor");
        }
    }

    #[test]
    fn tolerance_of_edges_as_wide_as_the_stripes_is_blind_and_one_polarity_counts_alone() {
        let wide = Deviations {
            edge_tolerance: 1,
            ..DEVIATIONS
        };
        // No sample is brighter than 255, or darker than 0.
        assert!(sight_of(&stripes([10, 245], 8, 0), &wide, 8).is_blind());
        assert!(!sight_of(&stripes([10, 245], 8, 0), &DEVIATIONS, 8).is_blind());
        assert!(!sight_of(&stripes([60, 160], 8, 0), &wide, 8).is_blind());
        let model = stripes([0, 255], 8, 0);
        let bright = Deviations {
            edge_tolerance: 1,
            dark: false,
            ..DEVIATIONS
        };
        assert_eq!(sight_of(&model, &bright, 8).limit, 256.0);
    }

    #[test]
    fn plain_model_is_compared_with_the_samples_range() {
        for (levels, reach) in [([100, 131], 255.0), ([100, 132], 16.0)] {
            let of = sight_of(&stripes(levels, 8, 0), &DEVIATIONS, 8);
            assert_eq!((of.reach, of.is_blind()), (reach, reach == 16.0));
        }
        // Light that falls by 120 levels across the frame is plain.
        let mean: Vec<u32> = (0..400 * 8).map(|at| 256 * (at % 400 * 3 / 10)).collect();
        let model = Model::new([400, 8], 8, 5, mean, vec![0; 3200]).expect("a model");
        assert_eq!(sight_of(&model, &DEVIATIONS, 8).reach, 255.0);
    }

    #[test]
    fn deep_samples_have_ranges_of_their_depth() {
        let deep = Deviations {
            threshold: 900.0,
            ..DEVIATIONS
        };
        let of = sight_of(&stripes([1000, 2600], 16, 0), &deep, 12);
        assert_eq!((of.limit, of.reach, of.is_blind()), (901.0, 800.0, true));
        let of = sight_of(&stripes([1000, 1511], 16, 0), &deep, 12);
        assert_eq!((of.reach, of.is_blind()), (4095.0, false));
    }

    #[test]
    fn only_judged_pixels_count_and_a_tenth_of_them_is_not_enough() {
        let mut deviation = vec![256 * 50; 1600];
        // 160 of 1600 pixels have no deviation.
        deviation[..160].fill(0);
        let mean = stripes([60, 160], 8, 0).mean().to_vec();
        let model = |deviation: &[u32]| {
            Model::new([40, 40], 8, 5, mean.clone(), deviation.to_vec()).expect("a model")
        };
        let factor = Deviations {
            factor: 4.0,
            ..DEVIATIONS
        };
        assert!(sight_of(&model(&deviation), &factor, 8).is_blind());
        deviation[160] = 0;
        let model = model(&deviation);
        assert!(!sight_of(&model, &factor, 8).is_blind());
        let below = JudgedArea::new(&model, &[Rect::new(0, 20, 40, 20)], None);
        let of = sight(&model, &below, &factor, 8).expect("judged pixels");
        assert!(of.is_blind());
        let nothing = JudgedArea::new(&model, &[Rect::new(0, 0, 0, 0)], None);
        assert_eq!(sight(&model, &nothing, &factor, 8), None);
    }
}
