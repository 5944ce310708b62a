//! Good pieces that need much higher limits than the others: perhaps they show a defect, and were taught as good.

use run::trial::TeachResult;

/// The pieces above a gap need at least so many times what those below it need.
const TIMES: f64 = 2.0;
/// A gap below this is scatter, in the unit of the limit: grey levels, or standard deviations.
const LEAST_GAP: f64 = 3.0;
/// The same for limits that are shares of the contrast.
const LEAST_SHARE: f64 = 0.3;
/// A gap is so many times the range of what is below it, if several pieces are there.
const RANGES: f64 = 1.5;

/// The frames that need much more than the others, by their places; the others may be fewer.
pub fn of(taught: &TeachResult) -> Vec<usize> {
    let mut suspects = Vec::new();
    for (at, limit) in taught.limits.iter().enumerate() {
        let needs = taught.demands.iter();
        let mut needs: Vec<(f64, usize)> = needs
            .filter_map(|of| Some((*of.values.get(at)?, of.frame)))
            .collect();
        needs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let least = match limit.name.starts_with("level") {
            true => LEAST_SHARE,
            false => LEAST_GAP,
        };
        suspects.extend(above_the_gap(&needs, least));
    }
    suspects.sort_unstable();
    suspects.dedup();
    suspects
}

/// The frames above the widest gap between two needs, if it is one; `needs` are in their order.
fn above_the_gap(needs: &[(f64, usize)], least: f64) -> Vec<usize> {
    let gaps = needs.windows(2).enumerate();
    let widest = gaps.max_by(|a, b| (a.1[1].0 - a.1[0].0).total_cmp(&(b.1[1].0 - b.1[0].0)));
    let Some((at, [below, above])) =
        widest.and_then(|(at, of)| Some((at, <[_; 2]>::try_from(of).ok()?)))
    else {
        return Vec::new();
    };
    let (gap, range) = (above.0 - below.0, below.0 - needs[0].0);
    if gap < least || above.0 < TIMES * below.0 || gap < RANGES * range {
        return Vec::new();
    }
    needs[at + 1..].iter().map(|(_, frame)| *frame).collect()
}

/// What the page says of these pieces of `all`.
pub fn sentence(names: &[String], all: usize) -> String {
    let (need, show, them) = match names.len() {
        1 => ("needs", "it shows", "it"),
        _ => ("need", "they show", "them"),
    };
    format!(
        "{} of {all} pieces {need} much wider limits than the others: {}. If {show} a defect, take {them} out: with these \
         limits such defects pass.",
        names.len(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use run::trial::{Demands, Limit};

    use super::*;

    fn suspects(name: &str, needs: &[f64]) -> Vec<usize> {
        let demands = needs.iter().enumerate();
        of(&TeachResult {
            limits: vec![Limit {
                name: name.to_owned(),
                value: 0.0,
                frame: 0,
            }],
            demands: demands
                .map(|(frame, need)| Demands {
                    frame,
                    values: vec![*need],
                })
                .collect(),
            properties: serde_json::Map::new(),
            model: None,
            left_out: Vec::new(),
            warning: None,
        })
    }

    #[test]
    fn two_groups_and_a_single_piece_far_outside_are_suspect() {
        assert_eq!(
            suspects("residual-1", &[8.0, 47.0, 9.0, 64.0, 8.4, 55.0]),
            [1, 3, 5]
        );
        assert_eq!(suspects("threshold", &[10.0, 11.0, 10.5, 74.0, 12.0]), [3]);
        assert_eq!(suspects("deviation-factor", &[0.0, 0.02, 63.0, 0.0]), [2]);
        assert_eq!(suspects("level-1", &[0.1, 0.12, 0.9]), [2]);
        // Most of them.
        assert_eq!(
            suspects("residual-1", &[5.0, 40.0, 44.0, 50.0, 41.0]),
            [1, 2, 3, 4]
        );
    }

    #[test]
    fn good_pieces_that_scatter_are_not() {
        assert_eq!(
            suspects("residual-1", &[5.6, 3.2, 1.7, 1.2, 6.3, 8.0]),
            [0; 0]
        );
        assert_eq!(
            suspects("deviation-factor", &[0.0, 0.018, 0.001, 0.0]),
            [0; 0]
        );
        assert_eq!(
            suspects("deviation-factor", &[0.0, 3.7, 1.2, 2.8, 0.4]),
            [0; 0]
        );
        assert_eq!(suspects("threshold", &[12.0, 14.0, 19.0, 16.0]), [0; 0]);
        assert_eq!(suspects("threshold", &[12.0]), [0; 0]);
        assert_eq!(suspects("threshold", &[]), [0; 0]);
    }
}
