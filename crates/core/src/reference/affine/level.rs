//! Reduced pictures: grey levels of 8 bits in rows that are padded to whole vectors.

/// Samples that are computed together.
pub const LANES: usize = 4;
/// Pixels on each side over which the mean is taken that is taken away.
const MEAN_REACH: usize = 4;
/// Samples of a vector.
pub type Lanes = [f32; LANES];

/// A picture whose rows are whole vectors; the samples behind a row's last pixel are 0.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    pub width: usize,
    pub height: usize,
    /// Samples of a row.
    pub stride: usize,
    pub values: Vec<f32>,
}

impl Grid {
    /// A picture of zeros.
    pub fn new([width, height]: [usize; 2]) -> Self {
        let mut grid = Self::default();
        grid.resize([width, height]);
        grid
    }

    fn resize(&mut self, [width, height]: [usize; 2]) {
        self.width = width;
        self.height = height;
        self.stride = width.next_multiple_of(LANES);
        self.values.clear();
        self.values.resize(self.stride * height, 0.0);
    }

    /// The pixels of a row.
    pub fn row(&self, y: usize) -> &[f32] {
        let at = y * self.stride;
        self.values.get(at..at + self.width).unwrap_or(&[])
    }

    /// The pixels of a row.
    pub fn row_mut(&mut self, y: usize) -> &mut [f32] {
        let at = y * self.stride;
        self.values.get_mut(at..at + self.width).unwrap_or(&mut [])
    }

    /// A row with its padding, as vectors.
    pub fn lanes(&self, y: usize) -> &[Lanes] {
        let at = y * self.stride;
        let row = self.values.get(at..at + self.stride).unwrap_or(&[]);
        row.as_chunks().0
    }

    /// Takes sums of 4x4 samples.
    pub fn set_sums(&mut self, sums: &[u16], size: [usize; 2]) {
        self.resize(size);
        for (y, sums) in sums.chunks_exact(size[0].max(1)).enumerate() {
            for (value, &sum) in self.row_mut(y).iter_mut().zip(sums) {
                *value = f32::from(sum) / 16.0;
            }
        }
    }

    /// The same, less their mean over the pixels at most 4 away that lie in the picture.
    pub fn set_sums_less_mean(&mut self, sums: &[u16], size @ [width, height]: [usize; 2]) {
        self.resize(size);
        // Sums over all pixels above and left.
        let stride = width + 1;
        let mut totals = vec![0_i64; stride * (height + 1)];
        for y in 0..height {
            let mut row = 0;
            for x in 0..width {
                row += i64::from(sums[y * width + x]);
                totals[(y + 1) * stride + x + 1] = totals[y * stride + x + 1] + row;
            }
        }
        let near =
            |at: usize, n: usize| [at.saturating_sub(MEAN_REACH), (at + MEAN_REACH + 1).min(n)];
        for y in 0..height {
            let [y0, y1] = near(y, height);
            for (x, value) in self.row_mut(y).iter_mut().enumerate() {
                let [x0, x1] = near(x, width);
                let at = |x: usize, y: usize| totals[y * stride + x];
                let total = at(x1, y1) + at(x0, y0) - at(x0, y1) - at(x1, y0);
                let pixels = ((x1 - x0) * (y1 - y0)) as i64;
                // Exact up to the quotient.
                let more = i64::from(sums[y * width + x]) * pixels - total;
                *value = more as f32 / (16 * pixels) as f32;
            }
        }
    }

    /// Becomes the means of 2x2 pixels of another picture.
    pub fn set_half_of(&mut self, whole: &Self) {
        self.resize([whole.width / 2, whole.height / 2]);
        for y in 0..self.height {
            let (above, below) = (whole.row(2 * y), whole.row(2 * y + 1));
            let pairs = above
                .as_chunks::<2>()
                .0
                .iter()
                .zip(below.as_chunks::<2>().0);
            for (value, (a, b)) in self.row_mut(y).iter_mut().zip(pairs) {
                *value = 0.25 * (a[0] + a[1] + b[0] + b[1]);
            }
        }
    }

    /// Becomes another picture smoothed with `[1 2 1]²/16`; the border is repeated.
    pub fn set_smooth_of(&mut self, sharp: &Self, columns: &mut Self) {
        self.resize([sharp.width, sharp.height]);
        columns.resize([sharp.width, 1]);
        let last = sharp.height.saturating_sub(1);
        for y in 0..sharp.height {
            let rows = [y.saturating_sub(1), y, (y + 1).min(last)].map(|y| sharp.row(y));
            for (x, value) in columns.row_mut(0).iter_mut().enumerate() {
                *value = 0.25 * (rows[0][x] + rows[2][x]) + 0.5 * rows[1][x];
            }
            let column = columns.row(0);
            let out = self.row_mut(y);
            let end = column.len() - 1;
            for (value, near) in out[1..].iter_mut().zip(column.windows(3)) {
                *value = 0.25 * (near[0] + near[2]) + 0.5 * near[1];
            }
            out[0] = 0.75 * column[0] + 0.25 * column[end.min(1)];
            out[end] = 0.75 * column[end] + 0.25 * column[end.saturating_sub(1)];
        }
    }
}

/// A level of the model: the picture reduced by `scale`, and what a fit needs of it.
#[derive(Debug, Clone)]
pub struct Level {
    pub scale: usize,
    pub picture: Grid,
    /// Central differences; 0 at the border and where nothing is judged.
    pub gradients: [Grid; 2],
    /// `1/(|∇m|² + 16)`
    pub softness: Grid,
    /// 1 where a pixel counts, else 0.
    pub weight: Grid,
    /// `(x − centre)/R` of each column, padded with 0.
    pub columns: Vec<f32>,
    /// `(y − centre)/R` of each row.
    pub rows: Vec<f64>,
    /// The centre of the full picture, and R, in pixels of the level.
    pub centre: [f64; 2],
    pub radius: f64,
}

/// Squared grey levels that are added to a squared gradient.
const NOISE: f32 = 16.0;

impl Level {
    /// `size` is that of the full picture; `weight` has the size of the level.
    pub fn new(scale: usize, picture: Grid, weight: Grid, size: [usize; 2]) -> Self {
        let (width, height) = (picture.width, picture.height);
        let mut gradients = [(); 2].map(|()| Grid::new([width, height]));
        let mut softness = Grid::new([width, height]);
        for y in 0..height {
            let is_inner = y > 0 && y + 1 < height;
            for x in 0..width {
                let [mut dx, mut dy] = [0.0; 2];
                if weight.row(y)[x] > 0.0 {
                    if x > 0 && x + 1 < width {
                        dx = 0.5 * (picture.row(y)[x + 1] - picture.row(y)[x - 1]);
                    }
                    if is_inner {
                        dy = 0.5 * (picture.row(y + 1)[x] - picture.row(y - 1)[x]);
                    }
                }
                gradients[0].row_mut(y)[x] = dx;
                gradients[1].row_mut(y)[x] = dy;
                softness.row_mut(y)[x] = 1.0 / (dx * dx + dy * dy + NOISE);
            }
        }
        let k = scale as f64;
        // The middle of the full picture, seen from the middle of the level's first block.
        let centre = size.map(|n| ((n as f64 - 1.0) / 2.0 - (k - 1.0) / 2.0) / k);
        let radius = size[0].max(size[1]) as f64 / 2.0 / k;
        let mut columns: Vec<f32> = (0..width)
            .map(|x| ((x as f64 - centre[0]) / radius) as f32)
            .collect();
        columns.resize(picture.stride, 0.0);
        Self {
            scale,
            rows: (0..height)
                .map(|y| (y as f64 - centre[1]) / radius)
                .collect(),
            columns,
            picture,
            gradients,
            softness,
            weight,
            centre,
            radius,
        }
    }

    /// Number of pixels.
    pub fn pixels(&self) -> usize {
        self.picture.width * self.picture.height
    }
}
