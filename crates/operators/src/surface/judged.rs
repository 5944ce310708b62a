//! The pixels of a surface that are judged.

use std::sync::Arc;

use clinspect_core::{ClError, ignored::Bitmap, region::Rect, surface::BORDER, window::Window};
use clinspect_opencl::{Arg, ClContext, Mem, Program};

use super::SurfaceSettings;
use crate::{
    regions::{self, Ignore, Rois, check_inside, inside_border, or_nowhere},
    to_i32,
};

/// The pixels that are judged.
#[derive(Debug)]
pub(super) struct Judged {
    /// Those that are judged if none is ignored, as rectangles without common pixels.
    rects: Vec<Rect>,
    rois: Rois,
    ignore: Option<Ignore>,
    /// Number of the pixels.
    pub count: u64,
}

impl Judged {
    /// The judged pixels of frames. `program` has the kernel that ignores pixels.
    ///
    /// # Errors
    /// [`ClError::Refused`] if no pixel is judged; the failing call.
    pub fn new(
        context: &ClContext,
        program: &Program,
        size @ [width, height]: [usize; 2],
        settings: &SurfaceSettings,
    ) -> Result<Self, ClError> {
        check_inside(
            &settings.rois,
            settings.ignored.as_deref(),
            size,
            false,
            BORDER,
        )?;
        let window = Window::frame(height);
        let rects = inside_border(&settings.rois, width, &window, BORDER);
        let mut ignore = (settings.ignored.as_ref())
            .map(|pixels| Ignore::new(context, program, pixels, height))
            .transpose()?;
        let shown = regions::show(&mut ignore, context, &window)?;
        Ok(Self {
            count: regions::count(&rects, shown),
            rois: Rois::new(context, or_nowhere(&rects))?,
            rects,
            ignore,
        })
    }

    /// The kernels' arguments: regions and ignored pixels. `stand_in`: any memory, which is not read.
    pub fn args<'a>(&'a self, stand_in: &'a Mem) -> Result<[Arg<'a>; 4], ClError> {
        let ignored = self.ignore.as_ref().map_or(stand_in, Ignore::memory);
        Ok([
            Arg::Mem(&self.rois.memory),
            Arg::I32(to_i32(self.rois.words.len(), "regions")?),
            Arg::Mem(ignored),
            Arg::I32(i32::from(self.ignore.is_some())),
        ])
    }

    /// The ignored pixels.
    pub fn ignored(&self) -> Option<&Arc<Bitmap>> {
        self.ignore.as_ref().map(Ignore::bitmap)
    }

    /// Whether a pixel is judged.
    pub fn is_judged(&self, x: usize, y: usize) -> bool {
        let pixel = Rect::new(x, y, 1, 1);
        let mut inside = self.rects.iter().map(|rect| rect.intersect(&pixel));
        inside.any(|pixel| !pixel.is_empty() && regions::count(&[pixel], self.ignored()) > 0)
    }
}
