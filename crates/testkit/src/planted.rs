//! Ground truth of what a generator planted in a frame.

/// Changes below this many grey levels (of 8 bits) are left out, which bounds the box.
const LEAST_CHANGE: f64 = 0.25;

/// A planted defect of a kind `K`.
#[derive(Clone, Debug, PartialEq)]
pub struct Planted<K> {
    /// Kind.
    pub kind: K,
    /// Centre, px; after the move to the nearest place where the kind can be.
    pub x: f64,
    /// Centre, px.
    pub y: f64,
    /// Size, px; the kind says of what.
    pub size_px: f64,
    /// Signed change before the optics, grey levels of 8 bits.
    pub contrast: f64,
    /// Signed change of the most changed pixel after the optics, grey levels of 8 bits, before
    /// uneven light and noise.
    pub peak: f64,
    /// Every pixel that differs from the clean frame: x, y, width, height.
    pub bbox: [usize; 4],
    /// Per pixel of the box: changed by at least half of the peak.
    footprint: Vec<bool>,
}

/// A drawn defect: its ground truth, and the change of each pixel of its box.
pub(crate) struct Patch<K> {
    /// Ground truth.
    pub truth: Planted<K>,
    /// Change in grey levels of 8 bits, row-major.
    pub change: Vec<f32>,
}

impl<K> Planted<K> {
    /// A defect that is not drawn yet.
    pub(crate) fn new(kind: K, [x, y]: [f64; 2], size_px: f64, contrast: f64) -> Self {
        Self {
            kind,
            x,
            y,
            size_px,
            contrast,
            peak: 0.0,
            bbox: [0; 4],
            footprint: Vec::new(),
        }
    }

    /// The same with another kind.
    pub fn of_kind<L>(self, kind: L) -> Planted<L> {
        Planted {
            kind,
            x: self.x,
            y: self.y,
            size_px: self.size_px,
            contrast: self.contrast,
            peak: self.peak,
            bbox: self.bbox,
            footprint: self.footprint,
        }
    }

    /// Crops a drawing (left, top, width, height, and the changes row by row) to the pixels that
    /// change visibly, and records them; `None` if no pixel does.
    pub(crate) fn drawn(mut self, bounds: [usize; 4], change: &[f64]) -> Option<Patch<K>> {
        let [left, top, width, _] = bounds;
        let (mut x0, mut y0, mut x1, mut y1) = (usize::MAX, usize::MAX, 0, 0);
        for (i, value) in change.iter().enumerate() {
            if value.abs() >= LEAST_CHANGE {
                let (x, y) = (i % width, i / width);
                (x0, x1) = (x0.min(x), x1.max(x + 1));
                (y0, y1) = (y0.min(y), y1.max(y + 1));
            }
            if value.abs() > self.peak.abs() {
                self.peak = *value;
            }
        }
        if x1 == 0 {
            return None;
        }
        let cut: Vec<f64> = (y0..y1)
            .flat_map(|y| &change[y * width + x0..y * width + x1])
            .copied()
            .collect();
        self.bbox = [left + x0, top + y0, x1 - x0, y1 - y0];
        self.footprint = cut
            .iter()
            .map(|v| v.abs() >= 0.5 * self.peak.abs())
            .collect();
        Some(Patch {
            truth: self,
            change: cut.iter().map(|&v| v as f32).collect(),
        })
    }

    /// Whether the defect changes the pixel by at least half of its peak.
    pub fn covers(&self, x: usize, y: usize) -> bool {
        let [left, top, width, height] = self.bbox;
        x >= left
            && y >= top
            && x - left < width
            && y - top < height
            && self.footprint[(y - top) * width + (x - left)]
    }

    /// The covered pixels, in scan order.
    pub fn pixels(&self) -> impl Iterator<Item = (usize, usize)> {
        let [left, top, width, _] = self.bbox;
        (0..self.footprint.len())
            .filter(|&i| self.footprint[i])
            .map(move |i| (left + i % width, top + i / width))
    }
}
