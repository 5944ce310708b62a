//! A picture and its reduced levels.

/// Scale of the finest level, px; the device sums 4x4 samples.
pub const FINEST: usize = 4;

/// Integers in rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plane {
    pub width: usize,
    pub height: usize,
    pub values: Vec<i32>,
}

impl Plane {
    pub fn row(&self, y: usize) -> &[i32] {
        &self.values[y * self.width..][..self.width]
    }

    /// The sums of 2x2 values.
    fn halved(&self) -> Self {
        let (width, height) = (self.width / 2, self.height / 2);
        let mut values = Vec::with_capacity(width * height);
        for y in 0..height {
            let pairs = |y| self.row(y).as_chunks::<2>().0.iter();
            let rows = pairs(2 * y).zip(pairs(2 * y + 1));
            values.extend(rows.map(|([a, b], [c, d])| a + b + c + d));
        }
        Self {
            width,
            height,
            values,
        }
    }
}

/// The levels from the finest to the one of scale `coarsest`, in 1/16 grey level. `sums`: sums of 4x4 samples in grey levels
/// of 8 bits, row by row.
pub fn levels(sums: &[u16], [width, height]: [usize; 2], coarsest: usize) -> Vec<Plane> {
    let mut summed = Plane {
        width,
        height,
        values: sums.iter().map(|&sum| i32::from(sum)).collect(),
    };
    let mut levels = Vec::new();
    let mut scale = FINEST;
    while scale < coarsest {
        let half = summed.halved();
        levels.push(mean(&summed, scale));
        summed = half;
        scale *= 2;
    }
    levels.push(mean(&summed, scale));
    levels
}

/// The means of the sums that belong to a pixel of a level, half up.
fn mean(summed: &Plane, scale: usize) -> Plane {
    let bits = 2 * (scale / FINEST).ilog2();
    let half = (1 << bits) / 2;
    Plane {
        values: summed.values.iter().map(|s| (s + half) >> bits).collect(),
        ..*summed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_means_half_up_and_drop_what_fills_no_pixel() {
        let sums: Vec<u16> = vec![1, 2, 3, 4, 5, 9, 10, 8, 4095, 4095, 4095, 4095, 0, 0, 1];
        let levels = levels(&sums, [5, 3], 8);
        assert_eq!(
            levels[0].values,
            sums.iter().map(|&s| i32::from(s)).collect::<Vec<_>>()
        );
        // Means of 5.5 and of 1027.5.
        assert_eq!(levels[1].values, [6, 1028]);
        assert_eq!([levels[1].width, levels[1].height], [2, 1]);
    }
}
