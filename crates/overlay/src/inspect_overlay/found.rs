//! Where the defects of a frame lie, and which of them a drawn part would hide.

use clinspect_results::{Defect, DefectResult};

use super::{
    area::Area,
    bits::{Bits, runs, span},
};

/// The defects and marked pixels of a frame.
pub(super) struct FrameMarks<'a> {
    /// The listed defects that lie in the frame, and the parts of their boxes in it, in the frame's
    /// pixels.
    pub defects: Vec<(Area, &'a Defect)>,
    bits: Option<&'a Bits>,
}

impl<'a> FrameMarks<'a> {
    pub fn new(frame: Area, result: Option<&'a DefectResult>, bits: Option<&'a Bits>) -> Self {
        let listed = result.iter().flat_map(|result| {
            let size = [result.width, result.height];
            let defects = result.defects.iter();
            defects.filter_map(move |defect| {
                Some((scaled(result.box_in_frame(defect)?, size, frame), defect))
            })
        });
        Self {
            defects: listed.collect(),
            bits,
        }
    }

    /// The columns and the rows of `area` in which there are defects.
    pub fn under(&self, area: Area) -> [Vec<i32>; 2] {
        let [mut columns, mut rows] =
            [area.width, area.height].map(|n| vec![false; n.max(0) as usize]);
        let parts = self.defects.iter().map(|(part, _)| part.and(area));
        for part in parts.filter(|part| !part.is_empty()) {
            columns[(part.x - area.x) as usize..][..part.width as usize].fill(true);
            rows[(part.y - area.y) as usize..][..part.height as usize].fill(true);
        }
        if let Some(bits) = self.bits {
            // The marked pixels of all rows in one row: a frame may have very many runs.
            let mut all = vec![0; bits.row(0).len()];
            for (y, is_hidden) in (area.y.max(0) as usize..).zip(&mut rows) {
                all.iter_mut()
                    .zip(bits.row(y))
                    .for_each(|(all, word)| *all |= word);
                *is_hidden |= runs_in(bits.row(y), area).next().is_some();
            }
            for [begin, end] in runs_in(&all, area) {
                columns[begin..end].fill(true);
            }
        }
        [(area.x, columns), (area.y, rows)].map(|(first, is_hidden)| {
            let numbered = (first..).zip(is_hidden);
            numbered
                .filter_map(|(n, is_hidden)| is_hidden.then_some(n))
                .collect()
        })
    }

    /// The place that hides the fewest columns and rows with defects; the first one of equals.
    pub fn freest<const N: usize>(&self, places: [Area; N]) -> Area {
        let hidden = |area: &Area| self.under(*area).iter().flatten().count();
        places.into_iter().min_by_key(hidden).unwrap_or(places[0])
    }
}

/// The runs of a row that lie in the columns of `area`, counted from its left edge.
fn runs_in(row: &[u64], area: Area) -> impl Iterator<Item = [usize; 2]> {
    let clipped = runs(row).map(move |run| run.map(|x| (x as i32 - area.x).clamp(0, area.width)));
    clipped
        .filter(|[begin, end]| begin < end)
        .map(|run| run.map(|x| x as usize))
}

/// The part of a box that lies in a result's picture, in the frame's pixels; the result may refer to
/// another size.
fn scaled([x, y, wide, high]: [u32; 4], [width, height]: [u32; 2], frame: Area) -> Area {
    let along = |at: u32, len: u32, from: u32, to: i32| {
        let [at, len, from] = [at, len, from].map(|n| n as usize);
        span([at, at + len], from, to as usize).map(|n| n as i32)
    };
    let [left, right] = along(x, wide, width, frame.width);
    let [top, bottom] = along(y, high, height, frame.height);
    Area::new(left, top, right - left, bottom - top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_scaled_and_clipped_to_the_frame() {
        let frame = Area::new(0, 0, 200, 100);
        let most = u32::MAX;
        for (at, len, [width, height], wanted) in [
            ([5, 6], [7, 8], [200, 100], Some([5, 6, 7, 8])),
            ([5, 6], [7, 8], [100, 50], Some([10, 12, 14, 16])),
            ([50, 60], [1, 1], [2000, 1000], Some([5, 6, 1, 1])),
            ([190, 90], [50, 50], [200, 100], Some([190, 90, 10, 10])),
            // Defects that began in an earlier strip.
            ([5, -6], [7, 8], [200, 100], Some([5, 0, 7, 2])),
            ([5, -6], [7, 200], [100, 50], Some([10, 0, 14, 100])),
            ([5, -6], [7, 6], [200, 100], None),
            ([-5, i32::MIN], [7, most], [200, 100], Some([0, 0, 2, 100])),
            ([200, 0], [1, 1], [200, 100], None),
            ([0, 100], [1, 1], [200, 100], None),
            ([0, 0], [0, 4], [200, 100], None),
            ([0, 0], [1, 1], [0, 100], None),
            ([i32::MAX, 0], [most; 2], [most; 2], Some([99, 0, 101, 100])),
        ] {
            let result = DefectResult {
                width,
                height,
                defects: vec![Defect {
                    x: at[0],
                    y: at[1],
                    width: len[0],
                    height: len[1],
                    ..Defect::default()
                }],
                ..DefectResult::default()
            };
            let found = FrameMarks::new(frame, Some(&result), None);
            let places: Vec<Area> = found.defects.iter().map(|(place, _)| *place).collect();
            let wanted = wanted.map(|[x, y, width, height]| Area::new(x, y, width, height));
            assert_eq!(places, Vec::from_iter(wanted), "{at:?} {len:?}");
        }
    }
}
