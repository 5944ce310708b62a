//! Marked pixels, and whether they lie in the boxes of the defects.

/// Columns and rows, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub x0: usize,
    pub y0: usize,
    pub x1: usize,
    pub y1: usize,
}

impl Area {
    /// The box with `margin` more pixels on each side, as far as the picture goes.
    pub fn grown(self, margin: usize, [width, height]: [usize; 2]) -> Self {
        Self {
            x0: self.x0.saturating_sub(margin),
            y0: self.y0.saturating_sub(margin),
            x1: (self.x1 + margin).min(width),
            y1: (self.y1 + margin).min(height),
        }
    }

    /// Whether the pixel is inside.
    pub fn holds(&self, x: usize, y: usize) -> bool {
        (self.x0..self.x1).contains(&x) && (self.y0..self.y1).contains(&y)
    }
}

/// A picture of marked pixels.
pub struct Mask {
    pub size: [usize; 2],
    pub is_marked: Vec<bool>,
}

/// What a mask finds of a picture's defects.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// By box: whether a blob touches it.
    pub is_found: Vec<bool>,
    /// Number of blobs that touch no box.
    pub false_blobs: usize,
}

impl Mask {
    /// From rows of `stride` bytes with a bit per pixel, most significant first.
    pub fn unpacked(packed: &[u8], stride: usize, [width, height]: [usize; 2]) -> Self {
        let bit = |x: usize, y: usize| {
            (packed.get(y * stride + x / 8)).is_some_and(|byte| byte & (0x80 >> (x % 8)) != 0)
        };
        let rows = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self {
            size: [width, height],
            is_marked: rows.map(|(x, y)| bit(x, y)).collect(),
        }
    }

    /// The blobs: marked pixels that touch each other, diagonally too.
    pub fn blobs(&self) -> Vec<Vec<(usize, usize)>> {
        let [width, height] = self.size;
        let mut is_open = self.is_marked.clone();
        let mut blobs = Vec::new();
        for start in 0..is_open.len() {
            if !std::mem::take(&mut is_open[start]) {
                continue;
            }
            let mut blob = vec![(start % width, start / width)];
            let mut next = 0;
            while let Some(&(x, y)) = blob.get(next) {
                next += 1;
                for near_y in y.saturating_sub(1)..(y + 2).min(height) {
                    for near_x in x.saturating_sub(1)..(x + 2).min(width) {
                        if std::mem::take(&mut is_open[near_y * width + near_x]) {
                            blob.push((near_x, near_y));
                        }
                    }
                }
            }
            blobs.push(blob);
        }
        blobs
    }

    /// The boxes of the blobs.
    pub fn boxes(&self) -> Vec<Area> {
        let of = |blob: &Vec<(usize, usize)>| {
            let empty = Area {
                x0: usize::MAX,
                y0: usize::MAX,
                x1: 0,
                y1: 0,
            };
            blob.iter().fold(empty, |area, &(x, y)| Area {
                x0: area.x0.min(x),
                y0: area.y0.min(y),
                x1: area.x1.max(x + 1),
                y1: area.y1.max(y + 1),
            })
        };
        self.blobs().iter().map(of).collect()
    }

    /// Compares the blobs of at least `min_area` pixels with the boxes of the defects.
    pub fn outcome(&self, boxes: &[Area], min_area: usize) -> Outcome {
        let mut outcome = Outcome {
            is_found: vec![false; boxes.len()],
            false_blobs: 0,
        };
        for blob in self.blobs().iter().filter(|blob| blob.len() >= min_area) {
            outcome.add(blob, boxes);
        }
        outcome
    }

    /// The marked pixels in an area.
    pub fn within(&self, area: Area) -> Vec<(usize, usize)> {
        let pixels = (area.y0..area.y1).flat_map(|y| (area.x0..area.x1).map(move |x| (x, y)));
        let is_marked = |&(x, y): &(usize, usize)| {
            self.is_marked
                .get(y * self.size[0] + x)
                .copied()
                .unwrap_or(false)
        };
        pixels.filter(is_marked).collect()
    }
}

impl Outcome {
    /// Adds the marked pixels of a defect.
    pub fn add(&mut self, pixels: &[(usize, usize)], boxes: &[Area]) {
        let mut is_false = true;
        for (area, is_found) in boxes.iter().zip(&mut self.is_found) {
            if pixels.iter().any(|&(x, y)| area.holds(x, y)) {
                *is_found = true;
                is_false = false;
            }
        }
        self.false_blobs += usize::from(is_false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rows: &[&str]) -> Mask {
        Mask {
            size: [rows[0].len(), rows.len()],
            is_marked: rows
                .iter()
                .flat_map(|row| row.bytes().map(|b| b == b'#'))
                .collect(),
        }
    }

    fn area(x0: usize, y0: usize, x1: usize, y1: usize) -> Area {
        Area { x0, y0, x1, y1 }
    }

    #[test]
    fn blobs_touch_boxes_or_are_false() {
        let mask = drawn(&[
            "#......#", //
            ".#....#.", "........", "....##..",
        ]);
        assert_eq!(
            mask.boxes(),
            [area(0, 0, 2, 2), area(6, 0, 8, 2), area(4, 3, 6, 4)]
        );
        let outcome = mask.outcome(&[area(1, 1, 4, 4), area(2, 0, 4, 1)], 1);
        assert_eq!(
            (outcome.is_found, outcome.false_blobs),
            (vec![true, false], 2)
        );
        // A blob may touch several boxes, and small blobs do not count.
        let outcome = mask.outcome(&[area(4, 3, 5, 4), area(5, 3, 8, 4)], 2);
        assert_eq!(
            (outcome.is_found, outcome.false_blobs),
            (vec![true, true], 2)
        );
        assert_eq!(
            mask.outcome(&[area(0, 0, 8, 4)], 3),
            Outcome {
                is_found: vec![false],
                false_blobs: 0
            }
        );
    }

    #[test]
    fn unpacked_mask_has_the_bits_of_its_rows() {
        let mask = Mask::unpacked(&[0x80, 0x40, 0, 0x01, 0, 0], 3, [10, 2]);
        let expected = drawn(&["#........#", ".......#.."]);
        assert_eq!(mask.is_marked, expected.is_marked);
    }

    #[test]
    fn grown_box_stays_in_the_picture() {
        assert_eq!(area(2, 5, 9, 6).grown(4, [10, 8]), area(0, 1, 10, 8));
    }
}
