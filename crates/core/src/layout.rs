//! How the components of a frame lie in its planes.

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// One byte.
    U8,
    /// Two bytes, least significant first.
    U16Le,
    /// Two bytes, most significant first.
    U16Be,
}

impl SampleType {
    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16Le | Self::U16Be => 2,
        }
    }

    /// Bits of a sample.
    pub fn bits(self) -> u32 {
        8 * self.bytes() as u32
    }
}

/// One component (R, Y, ...) of a format, in the order of the format's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Plane that holds the component.
    pub plane: usize,
    /// Bytes from the start of a row to the component's first sample.
    pub offset: usize,
    /// Bytes between neighbouring samples.
    pub pixel_stride: usize,
    /// Samples per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Horizontal subsampling as a shift.
    pub w_sub: u32,
    /// Vertical subsampling as a shift.
    pub h_sub: u32,
}

/// One plane: rows of a byte pattern that repeats every `period` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaneLayout {
    /// Bytes of a row that hold pixels, padding bytes of a pixel included.
    pub row_bytes: usize,
    /// Rows.
    pub rows: usize,
    /// Component of each sample of the pattern; `None` is padding (the `x` of RGBx).
    pub lanes: Vec<Option<usize>>,
    /// Neighbouring samples of each component are a whole pattern apart (false for YUY2, UYVY and
    /// the like).
    pub uniform: bool,
}

/// A picture's size and memory pattern, without strides and offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameLayout {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// How a sample is stored.
    pub sample: SampleType,
    /// The planes.
    pub planes: Vec<PlaneLayout>,
    /// The components.
    pub components: Vec<Component>,
}

impl FrameLayout {
    /// Derives the planes from the components.
    ///
    /// Returns `None` if a component does not fit the model: samples whose distance is not a
    /// multiple of the sample size, or two components in one place.
    pub fn new(
        width: usize,
        height: usize,
        sample: SampleType,
        components: Vec<Component>,
    ) -> Option<Self> {
        let size = sample.bytes();
        let plane_count = components.iter().map(|c| c.plane + 1).max()?;
        let mut planes = Vec::with_capacity(plane_count);
        for plane in 0..plane_count {
            let members: Vec<(usize, &Component)> = components
                .iter()
                .enumerate()
                .filter(|(_, c)| c.plane == plane)
                .collect();
            let period = members.iter().map(|(_, c)| c.pixel_stride).max()?;
            if period == 0 || period % size != 0 {
                return None;
            }
            let mut lanes = vec![None; period / size];
            let mut patterns = 0;
            for &(index, c) in &members {
                if c.pixel_stride == 0
                    || period % c.pixel_stride != 0
                    || c.offset % size != 0
                    || c.pixel_stride % size != 0
                    || c.offset >= period
                {
                    return None;
                }
                for k in 0..period / c.pixel_stride {
                    let lane = &mut lanes[(c.offset + k * c.pixel_stride) % period / size];
                    if lane.replace(index).is_some() {
                        return None;
                    }
                }
                patterns = patterns.max((c.width * c.pixel_stride).div_ceil(period));
            }
            planes.push(PlaneLayout {
                row_bytes: patterns * period,
                rows: members.iter().map(|(_, c)| c.height).max()?,
                uniform: members.iter().all(|(_, c)| c.pixel_stride == period),
                lanes,
            });
        }
        Some(Self {
            width,
            height,
            sample,
            planes,
            components,
        })
    }

    /// Frames of 8-bit grey with as many pixels as these.
    pub fn grey(&self) -> Self {
        let (width, height) = (self.width, self.height);
        Self {
            width,
            height,
            sample: SampleType::U8,
            planes: vec![PlaneLayout {
                row_bytes: width,
                rows: height,
                lanes: vec![Some(0)],
                uniform: true,
            }],
            components: vec![Component {
                plane: 0,
                offset: 0,
                pixel_stride: 1,
                width,
                height,
                w_sub: 0,
                h_sub: 0,
            }],
        }
    }

    /// Bytes of a frame whose rows and planes have no padding between them.
    pub fn bytes(&self) -> usize {
        self.planes.iter().map(|p| p.row_bytes * p.rows).sum()
    }

    /// Rows of the frame per row of a plane, as a shift.
    pub fn row_shift(&self, plane: usize) -> u32 {
        let members = self.components.iter().filter(|c| c.plane == plane);
        members.map(|c| c.h_sub).max().unwrap_or(0)
    }

    /// The largest [`Self::row_shift`].
    pub fn largest_row_shift(&self) -> u32 {
        self.components.iter().map(|c| c.h_sub).max().unwrap_or(0)
    }

    /// The layout of the first plane alone.
    pub fn first_plane(&self) -> Self {
        let mut first = self.clone();
        first.planes.truncate(1);
        first.components.retain(|c| c.plane == 0);
        first
    }

    /// The layout of a single plane with `rows` rows.
    #[must_use]
    pub fn of_rows(&self, rows: usize) -> Self {
        let mut other = self.first_plane();
        other.height = rows;
        other.planes.iter_mut().for_each(|plane| plane.rows = rows);
        (other.components.iter_mut()).for_each(|component| component.height = rows);
        other
    }

    /// The layout of the first plane alone, of pictures of another size.
    #[must_use]
    pub fn of_size(&self, [width, height]: [usize; 2]) -> Self {
        let mut other = self.of_rows(height);
        other.width = width;
        for plane in &mut other.planes {
            plane.row_bytes = width * plane.lanes.len() * self.sample.bytes();
        }
        (other.components.iter_mut()).for_each(|component| component.width = width);
        other
    }

    /// The same layout with at most `rows` rows.
    pub fn cut(&self, rows: usize) -> Self {
        let mut small = self.clone();
        small.height = small.height.min(rows);
        for plane in &mut small.planes {
            plane.rows = plane.rows.min(rows);
        }
        for component in &mut small.components {
            component.height = component.height.min(rows);
        }
        small
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(plane: usize, offset: usize, pixel_stride: usize, width: usize) -> Component {
        Component {
            plane,
            offset,
            pixel_stride,
            width,
            height: 2,
            w_sub: 0,
            h_sub: 0,
        }
    }

    #[test]
    fn layout_bgrx_has_a_padding_lane() {
        let layout = FrameLayout::new(
            5,
            2,
            SampleType::U8,
            vec![
                component(0, 2, 4, 5),
                component(0, 1, 4, 5),
                component(0, 0, 4, 5),
            ],
        )
        .expect("layout");
        assert_eq!(
            layout.planes[0].lanes,
            vec![Some(2), Some(1), Some(0), None]
        );
        assert_eq!(layout.planes[0].row_bytes, 20);
        assert!(layout.planes[0].uniform);
    }

    #[test]
    fn layout_yuy2_of_odd_width_ends_with_a_whole_pattern() {
        let layout = FrameLayout::new(
            5,
            2,
            SampleType::U8,
            vec![
                component(0, 0, 2, 5),
                component(0, 1, 4, 3),
                component(0, 3, 4, 3),
            ],
        )
        .expect("layout");
        let plane = &layout.planes[0];
        assert_eq!(plane.lanes, vec![Some(0), Some(1), Some(0), Some(2)]);
        assert_eq!(plane.row_bytes, 12);
        assert!(!plane.uniform);
    }

    #[test]
    fn layout_two_components_in_one_place_is_refused() {
        assert_eq!(
            FrameLayout::new(
                5,
                2,
                SampleType::U8,
                vec![component(0, 0, 1, 5), component(0, 0, 1, 5)]
            ),
            None
        );
    }
}
