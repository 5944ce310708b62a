//! Pixels that are not judged: a mask picture and polygons.

use std::sync::Arc;

use super::{mask::packed_stride, region::Rect};

mod polygon;

pub use polygon::Polygon;

/// One bit per pixel in the rows of a packed mask (docs/semantics.md, "Packed mask"): 1 = ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    width: usize,
    bytes: Vec<u8>,
}

impl Bitmap {
    /// A clear bitmap.
    pub fn new(width: usize, rows: usize) -> Self {
        Self {
            width,
            bytes: vec![0; packed_stride(width) * rows],
        }
    }

    /// A bitmap whose pixel (x, y) is `is_set(x, y)`.
    pub fn from_pixels(
        width: usize,
        rows: usize,
        mut is_set: impl FnMut(usize, usize) -> bool,
    ) -> Self {
        let mut bitmap = Self::new(width, rows);
        for y in 0..rows {
            for (at, byte) in bitmap.row_mut(y).iter_mut().enumerate() {
                for x in (8 * at)..width.min(8 * at + 8) {
                    *byte |= u8::from(is_set(x, y)) << (7 - x % 8);
                }
            }
        }
        bitmap
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.bytes.len() / packed_stride(self.width).max(1)
    }

    /// The packed rows.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a pixel is set; pixels outside are clear.
    pub fn get(&self, x: usize, y: usize) -> bool {
        let byte = self.row(y).get(x / 8).copied().unwrap_or(0);
        byte & (0x80 >> (x % 8)) != 0
    }

    fn row(&self, y: usize) -> &[u8] {
        let stride = packed_stride(self.width);
        self.bytes.get(y * stride..(y + 1) * stride).unwrap_or(&[])
    }

    fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let stride = packed_stride(self.width);
        (self.bytes.get_mut(y * stride..(y + 1) * stride)).unwrap_or(&mut [])
    }

    /// A packed row whose bits are set where a bit of any of the rows is set.
    pub(crate) fn any_of_rows(&self, rows: std::ops::Range<usize>) -> Vec<u8> {
        let mut any = vec![0; packed_stride(self.width)];
        for y in rows {
            for (any, byte) in any.iter_mut().zip(self.row(y)) {
                *any |= byte;
            }
        }
        any
    }

    /// Sets the pixels that are clear in a bitmap of the same size.
    fn add_clear(&mut self, other: &Self) {
        let stride = packed_stride(self.width).max(1);
        // Bits past the width stay 0.
        let last = 0xff_u8 << (8 * stride - self.width);
        let rows = self.bytes.chunks_exact_mut(stride);
        for (row, others) in rows.zip(other.bytes.chunks_exact(stride)) {
            for (byte, other) in row.iter_mut().zip(others) {
                *byte |= !other;
            }
            if let Some(byte) = row.last_mut() {
                *byte &= last;
            }
        }
    }

    /// Number of pixels that are not ignored, in rectangles without common pixels.
    pub fn count_judged(&self, rects: &[Rect]) -> u64 {
        let whole = Rect::new(0, 0, self.width, self.rows());
        let area = |r: &Rect| r.width() as u64 * r.height() as u64;
        let rects = rects.iter().map(|rect| (rect, rect.intersect(&whole)));
        rects
            .map(|(all, inside)| {
                let ignored: u64 = (inside.y0..inside.y1)
                    .map(|y| count_bits(self.row(y), inside.x0, inside.x1))
                    .sum();
                area(all) - ignored
            })
            .sum()
    }
}

/// Number of bits from `x0` to `x1` that are set.
pub(crate) fn count_bits(row: &[u8], x0: usize, x1: usize) -> u64 {
    if x0 >= x1 {
        return 0;
    }
    let (first, last) = (x0 / 8, (x1 - 1) / 8);
    let Some(bytes) = row.get(first..=last) else {
        return 0;
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let all: u32 = (words
        .iter()
        .map(|word| u64::from_ne_bytes(*word).count_ones()))
    .chain(rest.iter().map(|byte| byte.count_ones()))
    .sum();
    let before = bytes[0] & !(0xff >> (x0 % 8));
    let after = bytes[last - first] & ((0xff_u16 >> ((x1 - 1) % 8 + 1)) as u8);
    u64::from(all - before.count_ones() - after.count_ones())
}

/// The ignored pixels of a frame, or of a web, whose rows count from its first row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ignored {
    width: usize,
    picture: Option<Arc<Bitmap>>,
    /// The picture's only row holds for every row.
    repeats: bool,
    polygons: Vec<Polygon>,
    /// If there are any, pixels outside all of them are ignored, too.
    regions: Option<Vec<Polygon>>,
}

impl Ignored {
    /// The pixels of the picture and of the polygons in rows of `width` pixels. `height`: rows of the
    /// frame; `None` for a web, whose picture has one row that holds for every row.
    ///
    /// # Errors
    /// A sentence, if the picture has another size.
    pub fn new(
        width: usize,
        height: Option<usize>,
        picture: Option<Arc<Bitmap>>,
        polygons: Vec<Polygon>,
    ) -> Result<Self, String> {
        if let Some(picture) = &picture {
            let found = (picture.width(), picture.rows());
            let expected = (width, height.unwrap_or(1));
            if found != expected {
                let what = match height {
                    Some(_) => "the frames have",
                    None => "a picture for the columns of a web has",
                };
                return Err(format!(
                    "the picture has {}x{} pixels, but {what} {}x{}; use a picture of that size",
                    found.0, found.1, expected.0, expected.1
                ));
            }
        }
        Ok(Self {
            width,
            picture,
            repeats: height.is_none(),
            polygons,
            regions: None,
        })
    }

    /// The same pixels, and all outside of these regions.
    #[must_use]
    pub fn outside(&self, regions: Vec<Polygon>) -> Self {
        Self {
            regions: Some(regions),
            ..self.clone()
        }
    }

    /// Whether no pixel is ignored, whatever the row.
    pub fn is_empty(&self) -> bool {
        self.picture.is_none() && self.polygons.is_empty() && self.regions.is_none()
    }

    /// Whether all rows from `first` on have the same pixels as a bitmap of the same height that
    /// begins at any other row for which this is true.
    pub fn is_uniform(&self, first: u64, rows: usize) -> bool {
        (self.picture.is_none() || self.repeats)
            && self.regions.is_none()
            && !self.polygons.iter().any(|p| p.touches(first, rows))
    }

    /// The ignored pixels of `rows` rows from row `first` on.
    pub fn rows(&self, first: u64, rows: usize) -> Bitmap {
        let mut bitmap = Bitmap::new(self.width, rows);
        if let Some(picture) = &self.picture {
            for y in 0..rows {
                let from = if self.repeats {
                    Some(0)
                } else {
                    usize::try_from(first).ok().and_then(|f| f.checked_add(y))
                };
                // Rows past the picture have no pixel of it.
                let from = from.map_or(&[][..], |from| picture.row(from));
                let row = bitmap.row_mut(y);
                if from.len() == row.len() {
                    row.copy_from_slice(from);
                }
            }
        }
        for polygon in &self.polygons {
            polygon.draw(first, &mut bitmap);
        }
        if let Some(regions) = &self.regions {
            let mut inside = Bitmap::new(self.width, rows);
            regions
                .iter()
                .for_each(|region| region.draw(first, &mut inside));
            bitmap.add_clear(&inside);
        }
        bitmap
    }
}
