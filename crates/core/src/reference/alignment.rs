//! The shift of a frame against a picture, from patches with structure.
//!
//! All sums are exact integers, so the shift is the same on every device.

/// Steps of a shift per pixel.
pub const QUARTERS: i32 = 4;
/// Sides of patches, px; the largest that fits.
const SIDES: [usize; 3] = [32, 16, 8];
/// The frame is divided into this many areas along each axis, so that patches are spread.
const AREAS: usize = 4;
/// Patches of an area.
const AREA_PATCHES: usize = 2;
/// The search begins with sums of blocks of 2^COARSEST pixels a side.
const COARSEST: u32 = 2;
/// Pixels, and sums of blocks of 2x2 and of 4x4 pixels.
const LEVELS: usize = COARSEST as usize + 1;
/// Candidates that are refined, after the search with blocks of 4 and of 2 pixels.
const KEPT: [usize; 2] = [8, 4];

/// A shift along x and y, in 1/4 px: the frame is read at `(x + dx, y + dy)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Shift {
    /// Along x.
    pub x: i32,
    /// Along y.
    pub y: i32,
}

impl Shift {
    /// Whole pixels along x and y.
    pub fn whole(self) -> [i32; 2] {
        [self.x, self.y].map(|v| v.div_euclid(QUARTERS))
    }

    /// The rest, 0 to 3 quarters.
    pub fn rest(self) -> [i32; 2] {
        [self.x, self.y].map(|v| v.rem_euclid(QUARTERS))
    }

    fn plus(self, x: i32, y: i32) -> Self {
        Self {
            x: self.x + x,
            y: self.y + y,
        }
    }

    fn is_within(self, range: usize) -> bool {
        let most = range as i32 * QUARTERS;
        self.x.abs() <= most && self.y.abs() <= most
    }
}

/// Where a frame fits best.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Match {
    /// The shift.
    pub shift: Shift,
    /// The correlation there, 0 to 1.
    pub score: f64,
}

/// Samples in rows.
#[derive(Debug, Clone, Default)]
struct Grid {
    width: usize,
    values: Vec<i16>,
}

impl Grid {
    fn row(&self, x: usize, y: usize, len: usize) -> &[i16] {
        let at = y * self.width + x;
        self.values.get(at..at + len).unwrap_or(&[])
    }

    /// A row of `N` samples; the search stays inside the grid.
    fn part<const N: usize>(&self, x: usize, y: usize) -> &[i16; N] {
        self.row(x, y, N).try_into().unwrap_or(&[0; N])
    }

    /// Sums of blocks of 2x2 samples, from sample `first` on along both axes.
    fn halve(&self, first: usize, out: &mut Self) {
        let height = self.values.len() / self.width.max(1);
        let [width, rows] = [self.width, height].map(|n| n.saturating_sub(first) / 2);
        out.width = width;
        out.values.clear();
        for y in 0..rows {
            let row = |y| self.row(first, y, 2 * width).chunks_exact(2);
            let pairs = row(first + 2 * y).zip(row(first + 2 * y + 1));
            out.values
                .extend(pairs.map(|(a, b)| a[0] + a[1] + b[0] + b[1]));
        }
    }
}

/// Sums over the pixels of all patches, each patch around its own means.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    product: i64,
    frame: i64,
    model: i64,
}

impl Moments {
    /// Pearson's correlation; 0 without structure, and for a negative one.
    fn correlation(&self) -> f64 {
        // The root of a square is exact, so an equal picture has a correlation of 1.
        let scale = (self.frame as f64 * self.model as f64).sqrt();
        if scale > 0.0 {
            (self.product as f64 / scale).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

/// A patch of the picture.
#[derive(Debug, Clone)]
struct Template {
    grid: Grid,
    sum: i64,
    /// `n²·Σm² − (Σm)²`
    spread: i64,
}

impl Template {
    fn new(grid: Grid) -> Self {
        let values = || grid.values.iter().map(|&v| i64::from(v));
        let sum: i64 = values().sum();
        let squares: i64 = values().map(|v| v * v).sum();
        Self {
            sum,
            spread: grid.values.len() as i64 * squares - sum * sum,
            grid,
        }
    }
}

/// Patches of a picture, each at two scales below its own too.
#[derive(Debug, Clone)]
pub struct Patches {
    side: usize,
    range: usize,
    origins: Vec<[usize; 2]>,
    /// By level, then by patch.
    levels: [Vec<Template>; LEVELS],
    /// The same of a frame, with [`Self::margin`] more pixels on each side.
    frame: [Vec<Grid>; LEVELS],
}

impl Patches {
    /// Chooses patches of a picture of bytes for shifts of up to `range` pixels. Patches lie where all pixels
    /// are judged, if there are such places.
    ///
    /// # Errors
    /// A sentence, if the picture is too small.
    pub fn new(
        picture: &[u8],
        [width, height]: [usize; 2],
        range: usize,
        is_judged: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, String> {
        let side = Self::side_of([width, height], range)?;
        let margin = range + 1;
        let origins = choose(picture, [width, height], side, margin, is_judged);
        let mut patches = Self {
            side,
            range,
            levels: Default::default(),
            frame: [(); LEVELS].map(|()| vec![Grid::default(); origins.len()]),
            origins,
        };
        for &[x, y] in &patches.origins {
            let rows = (y..y + side).flat_map(|y| &picture[y * width + x..][..side]);
            let grid = Grid {
                width: side,
                values: rows.map(|&s| i16::from(s)).collect(),
            };
            let mut half = Grid::default();
            grid.halve(0, &mut half);
            let mut quarter = Grid::default();
            half.halve(0, &mut quarter);
            let grids = [grid, half, quarter];
            for (level, grid) in patches.levels.iter_mut().zip(grids) {
                level.push(Template::new(grid));
            }
        }
        Ok(patches)
    }

    /// The side of patches in frames of this size, px.
    ///
    /// # Errors
    /// A sentence, if the frames are too small.
    pub fn side_of([width, height]: [usize; 2], range: usize) -> Result<usize, String> {
        let margins = 2 * (range + 1);
        let fits = |side: &usize| width.min(height) >= side + margins;
        SIDES.into_iter().find(fits).ok_or_else(|| {
            let least = SIDES[SIDES.len() - 1] + margins;
            format!(
                "frames of {width}x{height} pixels are too small to be aligned with search-range={range}, which needs \
                 {least}x{least}; lower search-range, or set align=none"
            )
        })
    }

    /// The first pixel of each patch.
    pub fn origins(&self) -> &[[usize; 2]] {
        &self.origins
    }

    /// Pixels around a patch that the search reads.
    pub fn margin(&self) -> usize {
        self.range + 1
    }

    /// Side of a patch with its margins, px.
    pub fn outer_side(&self) -> usize {
        self.side + 2 * self.margin()
    }

    /// The shift at which a frame correlates best. `samples` are the frame's bytes around each patch, with its
    /// margins, row by row.
    pub fn find(&mut self, samples: &[u8]) -> Match {
        let outer = self.outer_side();
        let margin = self.margin();
        let [whole, half, quarter] = &mut self.frame;
        let places = samples.chunks_exact(outer * outer);
        for (((bytes, whole), half), quarter) in places.zip(whole).zip(half).zip(quarter) {
            whole.width = outer;
            whole.values.clear();
            whole.values.extend(bytes.iter().map(|&s| i16::from(s)));
            // Blocks of both levels begin at whole blocks from the patch's first pixel.
            whole.halve(margin % 2, half);
            half.halve(margin / 2 % 2, quarter);
        }
        let range = self.range as i32;
        let coarse = 1 << COARSEST;
        let steps = range / coarse;
        let first =
            (-steps..=steps).flat_map(|y| (-steps..=steps).map(move |x| [x * coarse, y * coarse]));
        let mut best = self.best_of(COARSEST, first, KEPT[0]);
        for (level, kept) in [(1, KEPT[1]), (0, 1)] {
            let step = 1 << level;
            let mut around: Vec<[i32; 2]> = Vec::new();
            for [x, y] in best {
                let near =
                    (-1..=1).flat_map(|j| (-1..=1).map(move |i| [x + i * step, y + j * step]));
                around.extend(near.filter(|at| at.iter().all(|v| v.abs() <= range)));
            }
            around.sort_unstable_by_key(|&[x, y]| [y, x]);
            around.dedup();
            best = self.best_of(level, around, kept);
        }
        let [x, y] = best.first().copied().unwrap_or_default();
        let mut found = self.at(Shift {
            x: QUARTERS * x,
            y: QUARTERS * y,
        });
        for step in [2, 1] {
            let centre = found.shift;
            for (i, j) in (-1..=1).flat_map(|j| (-1..=1).map(move |i| (i, j))) {
                let shift = centre.plus(i * step, j * step);
                if (i, j) != (0, 0) && shift.is_within(self.range) {
                    let candidate = self.at(shift);
                    if candidate.score > found.score {
                        found = candidate;
                    }
                }
            }
        }
        found
    }

    /// The shifts, whole pixels, of highest correlation at a level; of equals the first.
    fn best_of(
        &self,
        level: u32,
        shifts: impl IntoIterator<Item = [i32; 2]>,
        kept: usize,
    ) -> Vec<[i32; 2]> {
        let scored = shifts.into_iter().map(|at| (self.whole(level, at), at));
        let mut scored: Vec<(f64, [i32; 2])> = scored.collect();
        scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        scored.into_iter().take(kept).map(|(_, at)| at).collect()
    }

    /// The correlation at a shift of whole pixels, which are whole blocks of the level.
    fn whole(&self, level: u32, [x, y]: [i32; 2]) -> f64 {
        let mut moments = Moments::default();
        let start = |v: i32| ((self.margin() as i32 + v) >> level) as usize;
        let at = [start(x), start(y)];
        for (model, frame) in self.levels[level as usize]
            .iter()
            .zip(&self.frame[level as usize])
        {
            match model.grid.width {
                32 => moments.add::<32>(frame, at, model),
                16 => moments.add::<16>(frame, at, model),
                8 => moments.add::<8>(frame, at, model),
                4 => moments.add::<4>(frame, at, model),
                _ => moments.add::<2>(frame, at, model),
            }
        }
        moments.correlation()
    }

    /// The correlation of the frame as it is read at a shift.
    fn at(&self, shift: Shift) -> Match {
        let mut moments = Moments::default();
        let mut read = Grid::default();
        for (model, frame) in self.levels[0].iter().zip(&self.frame[0]) {
            match self.side {
                32 => self.add_at::<32>(frame, shift, &mut read, model, &mut moments),
                16 => self.add_at::<16>(frame, shift, &mut read, model, &mut moments),
                _ => self.add_at::<8>(frame, shift, &mut read, model, &mut moments),
            }
        }
        Match {
            shift,
            score: moments.correlation(),
        }
    }

    /// Adds a patch as it is read at a shift.
    fn add_at<const N: usize>(
        &self,
        frame: &Grid,
        shift: Shift,
        read: &mut Grid,
        model: &Template,
        moments: &mut Moments,
    ) {
        let [x, y] = shift.whole().map(|v| (self.margin() as i32 + v) as usize);
        let [fx, fy] = shift.rest().map(|v| v as i16);
        // A tap of weight 0 may lie outside.
        let right = x + usize::from(fx > 0);
        read.width = N;
        read.values.clear();
        for row in y..y + N {
            let below = row + usize::from(fy > 0);
            let (a, b) = (frame.part::<N>(x, row), frame.part::<N>(right, row));
            let (c, d) = (frame.part::<N>(x, below), frame.part::<N>(right, below));
            let mut values = [0; N];
            for i in 0..N {
                let upper = (4 - fx) * a[i] + fx * b[i];
                let lower = (4 - fx) * c[i] + fx * d[i];
                values[i] = ((4 - fy) * upper + fy * lower + 8) >> 4;
            }
            read.values.extend(values);
        }
        moments.add::<N>(read, [0, 0], model);
    }
}

impl Moments {
    /// Adds a patch of N x N samples of the frame.
    fn add<const N: usize>(&mut self, frame: &Grid, [x, y]: [usize; 2], model: &Template) {
        // A sum of N products fits: 8 of sums of 16 bytes, 16 of sums of 4, or 32 of bytes. Sums by columns need no
        // order, so they are vectors.
        let (mut f, mut ff, mut fm) = ([0_i32; N], [0_i32; N], [0_i32; N]);
        for row in 0..N {
            let (a, b) = (frame.part::<N>(x, y + row), model.grid.part::<N>(0, row));
            for i in 0..N {
                let (a, b) = (i32::from(a[i]), i32::from(b[i]));
                f[i] += a;
                ff[i] += a * a;
                fm[i] += a * b;
            }
        }
        let total = |columns: [i32; N]| columns.iter().map(|&v| i64::from(v)).sum::<i64>();
        let (f, ff, fm) = (total(f), total(ff), total(fm));
        let n = (N * N) as i64;
        self.product += n * fm - f * model.sum;
        self.frame += n * ff - f * f;
        self.model += model.spread;
    }
}

/// The first pixels of the patches with most structure, some in each area of the picture.
fn choose(
    picture: &[u8],
    [width, height]: [usize; 2],
    side: usize,
    margin: usize,
    is_judged: impl Fn(usize, usize) -> bool,
) -> Vec<[usize; 2]> {
    let count = |n: usize| (n - 2 * margin) / side;
    let [columns, rows] = [count(width), count(height)];
    let mut tiles = Vec::with_capacity(columns * rows);
    for j in 0..rows {
        for i in 0..columns {
            let origin = [margin + i * side, margin + j * side];
            let [x0, y0] = origin;
            let mut pixels = (y0..y0 + side).flat_map(|y| (x0..x0 + side).map(move |x| (x, y)));
            let area = [i * AREAS / columns, j * AREAS / rows];
            tiles.push((pixels.all(|(x, y)| is_judged(x, y)), area, origin));
        }
    }
    let any_judged = tiles.iter().any(|&(judged, ..)| judged);
    tiles.retain(|&(judged, ..)| judged || !any_judged);
    let mut chosen = Vec::new();
    for area in (0..AREAS).flat_map(|j| (0..AREAS).map(move |i| [i, j])) {
        let inside = tiles.iter().filter(|&&(_, of, _)| of == area);
        let mut inside: Vec<_> = inside
            .map(|&(_, _, origin)| (structure(picture, width, origin, side), origin))
            .collect();
        // The sort is stable: of equals the first in the picture.
        inside.sort_by(|(a, _), (b, _)| b.cmp(a));
        chosen.extend(
            inside
                .into_iter()
                .take(AREA_PATCHES)
                .map(|(_, origin)| origin),
        );
    }
    chosen
}

/// Sums of the squared differences of neighbours along x and along y: the smaller one, then both.
fn structure(picture: &[u8], width: usize, [x0, y0]: [usize; 2], side: usize) -> [u64; 2] {
    let (mut along_x, mut along_y) = (0_u64, 0_u64);
    for y in y0..y0 + side {
        let at = y * width + x0;
        let row = &picture[at..at + side + 1];
        let next = &picture[at + width..at + width + side];
        for (pair, &below) in row.windows(2).zip(next) {
            along_x += u64::from(pair[0].abs_diff(pair[1])).pow(2);
            along_y += u64::from(pair[0].abs_diff(below)).pow(2);
        }
    }
    [along_x.min(along_y), along_x + along_y]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A smooth picture that does not repeat: levels of a lattice of 7 px, with a cubic between them.
    fn value(x: f64, y: f64) -> f64 {
        let level = |i: f64, j: f64| {
            let hash = (i as i64 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                ^ (j as i64 as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
            (hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40) as f64 / f64::from(1 << 24)
        };
        let ease = |t: f64| t * t * (3.0 - 2.0 * t);
        let (x, y) = (x / 7.0, y / 7.0);
        let (i, j) = (x.floor(), y.floor());
        let (fx, fy) = (ease(x - i), ease(y - j));
        let row = |j: f64| level(i, j) * (1.0 - fx) + level(i + 1.0, j) * fx;
        255.0 * (row(j) * (1.0 - fy) + row(j + 1.0) * fy)
    }

    fn picture(size: [usize; 2], dx: f64, dy: f64) -> Vec<u8> {
        let [width, height] = size;
        let sample =
            |n: usize| value((n % width) as f64 - dx, (n / width) as f64 - dy).round() as u8;
        (0..width * height).map(sample).collect()
    }

    fn around(patches: &Patches, picture: &[u8], width: usize) -> Vec<u8> {
        let (outer, margin) = (patches.outer_side(), patches.margin());
        let rows = patches
            .origins()
            .iter()
            .flat_map(|&[x, y]| (0..outer).map(move |row| (y - margin + row) * width + x - margin));
        rows.flat_map(|at| picture[at..at + outer].to_vec())
            .collect()
    }

    fn found(size: [usize; 2], range: usize, dx: f64, dy: f64) -> Match {
        let mut patches =
            Patches::new(&picture(size, 0.0, 0.0), size, range, |_, _| true).expect("patches");
        let samples = around(&patches, &picture(size, dx, dy), size[0]);
        patches.find(&samples)
    }

    #[test]
    fn shift_is_found_in_quarter_pixels() {
        for (size, range) in [([320, 240], 16), ([64, 57], 5), ([48, 44], 9)] {
            let most = range as i32 * QUARTERS;
            for x in [-most, -9, -4, -1, 0, 2, 3, 11, most - 1] {
                for y in [-most + 1, -6, 0, 1, 7, most] {
                    let (dx, dy) = (f64::from(x) / 4.0, f64::from(y) / 4.0);
                    let found = found(size, range, dx, dy);
                    assert_eq!(found.shift, Shift { x, y }, "{size:?} {range} {found:?}");
                    assert!(found.score > 0.98, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn another_picture_has_a_low_score() {
        let size = [320, 240];
        let mut patches =
            Patches::new(&picture(size, 0.0, 0.0), size, 16, |_, _| true).expect("patches");
        let outer = patches.outer_side();
        let len = outer * outer * patches.origins().len();
        let noise: Vec<u8> = (0..len as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let score = patches.find(&noise).score;
        assert!(score < 0.1, "{score}");
        assert_eq!(patches.find(&vec![200; len]).score, 0.0);
    }

    #[test]
    fn patches_lie_where_pixels_are_judged_and_a_small_frame_is_refused() {
        let size = [320, 240];
        let inside = |x: usize, y: usize| x >= 200 && y < 120;
        let patches = Patches::new(&picture(size, 0.0, 0.0), size, 8, inside).expect("patches");
        assert!(!patches.origins().is_empty());
        assert!(
            patches
                .origins()
                .iter()
                .all(|&[x, y]| x >= 200 && y + 32 <= 120)
        );
        let nowhere =
            Patches::new(&picture(size, 0.0, 0.0), size, 8, |_, _| false).expect("patches");
        assert_eq!(nowhere.origins().len(), AREAS * AREAS * AREA_PATCHES);
        let why = Patches::new(&[0; 41 * 41], [41, 41], 16, |_, _| true).expect_err("too small");
        assert!(why.contains("42x42"), "{why}");
    }
}
