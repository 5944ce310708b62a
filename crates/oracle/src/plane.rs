//! Samples of one component in memory: packed, planar, padded or offset.

/// How one sample is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleKind {
    /// One byte.
    U8,
    /// Two bytes, least significant first.
    U16Le,
    /// Two bytes, most significant first.
    U16Be,
}

impl SampleKind {
    /// Bytes of one sample.
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16Le | Self::U16Be => 2,
        }
    }
}

/// Samples of one component of a frame in memory.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    /// The memory that holds the component, with other components and padding.
    pub data: &'a [u8],
    /// Bytes before the first sample.
    pub offset: usize,
    /// Bytes between the starts of two rows.
    pub stride: usize,
    /// Bytes between two samples of a row.
    pub pixel_stride: usize,
    /// Samples in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// How a sample is stored.
    pub depth: SampleKind,
}

impl Samples<'_> {
    /// The sample in column `x` of row `y`, in grey levels.
    pub fn get(&self, x: usize, y: usize) -> u32 {
        let at = self.geometry().position(x, y);
        match self.depth {
            SampleKind::U8 => u32::from(self.data[at]),
            SampleKind::U16Le => u32::from(u16::from_le_bytes([self.data[at], self.data[at + 1]])),
            SampleKind::U16Be => u32::from(u16::from_be_bytes([self.data[at], self.data[at + 1]])),
        }
    }

    /// All samples in grey levels, row-major, `width * height` of them.
    pub fn values(&self) -> Vec<u32> {
        (0..self.height)
            .flat_map(|y| (0..self.width).map(move |x| self.get(x, y)))
            .collect()
    }

    /// The layout without the memory, for `put` into a frame of the same layout.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            offset: self.offset,
            stride: self.stride,
            pixel_stride: self.pixel_stride,
            width: self.width,
            height: self.height,
            depth: self.depth,
        }
    }
}

/// The memory layout of one component; the fields are those of [`Samples`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes before the first sample.
    pub offset: usize,
    /// Bytes between the starts of two rows.
    pub stride: usize,
    /// Bytes between two samples of a row.
    pub pixel_stride: usize,
    /// Samples in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// How a sample is stored.
    pub depth: SampleKind,
}

impl Geometry {
    /// The component of this layout in `data`.
    pub fn samples<'a>(&self, data: &'a [u8]) -> Samples<'a> {
        Samples {
            data,
            offset: self.offset,
            stride: self.stride,
            pixel_stride: self.pixel_stride,
            width: self.width,
            height: self.height,
            depth: self.depth,
        }
    }

    /// Index of the first byte of the sample in column `x` of row `y`.
    ///
    /// Panics for a position outside the component instead of reading a neighbouring row.
    pub fn position(&self, x: usize, y: usize) -> usize {
        assert!(
            x < self.width && y < self.height,
            "sample ({x}, {y}) is outside {} x {}",
            self.width,
            self.height
        );
        self.offset + y * self.stride + x * self.pixel_stride
    }
}

/// Writes `value` (grey levels) to column `x` of row `y` and to no other byte.
pub fn put(data: &mut [u8], geometry: &Geometry, x: usize, y: usize, value: u32) {
    let at = geometry.position(x, y);
    match geometry.depth {
        SampleKind::U8 => {
            assert!(value <= 0xff, "{value} does not fit a byte");
            data[at] = value as u8;
        }
        SampleKind::U16Le | SampleKind::U16Be => {
            assert!(value <= 0xffff, "{value} does not fit two bytes");
            let bytes = if geometry.depth == SampleKind::U16Le {
                (value as u16).to_le_bytes()
            } else {
                (value as u16).to_be_bytes()
            };
            data[at..at + 2].copy_from_slice(&bytes);
        }
    }
}
