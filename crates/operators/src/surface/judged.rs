//! The pixels of a surface that are judged.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::{Bitmap, Ignored},
    region::Rect,
    surface::{BORDER, CELL},
    window::Window,
};
use clinspect_opencl::{Arg, ClContext, Mem, Program};

use super::SurfaceSettings;
use crate::{
    regions::{self, Ignore, Rois, check_inside, inside_border, or_nowhere},
    to_i32,
};

/// The pixels that are judged.
#[derive(Debug)]
pub(super) struct Judged {
    /// The regions of interest; empty for all pixels.
    regions: Vec<Rect>,
    width: usize,
    pub window: Window,
    /// Those that are judged if none is ignored, in the processed rows and the other rows of their cells, as rectangles
    /// without common pixels.
    rects: Vec<Rect>,
    rois: Rois,
    ignore: Option<Ignore>,
    /// The ignored pixels of the processed rows.
    ignored: Option<Arc<Bitmap>>,
    /// Number of the pixels.
    pub count: u64,
}

/// The window with all rows of the processed cells.
fn with_whole_cells(window: &Window) -> Window {
    let first = window.first - window.first % CELL;
    let end = window.span().end.next_multiple_of(CELL).min(window.height);
    Window {
        first,
        rows: end - first,
        ..*window
    }
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
        let ignored = settings.ignored.as_deref();
        check_inside(&settings.rois, ignored, size, settings.line_scan, BORDER)?;
        let window = Window::frame(height);
        let ignore = (settings.ignored.as_ref())
            .map(|pixels| Ignore::new(context, program, pixels, height))
            .transpose()?;
        let mut judged = Self {
            regions: settings.rois.clone(),
            width,
            window,
            rects: Vec::new(),
            rois: Rois::new(context, or_nowhere(&[]))?,
            ignore,
            ignored: None,
            count: 0,
        };
        judged.take(context, &window)?;
        Ok(judged)
    }

    /// Takes the window of a frame or strip.
    ///
    /// # Errors
    /// The failing call.
    pub fn take(&mut self, context: &ClContext, window: &Window) -> Result<(), ClError> {
        self.window = *window;
        let whole = with_whole_cells(window);
        self.rects = inside_border(&self.regions, self.width, &whole, BORDER);
        (self.rois).replace(context, or_nowhere(&self.rects))?;
        regions::show(&mut self.ignore, context, &whole)?;
        let first_line = window.web_row + window.first as u64;
        let ignore = self.ignore.as_ref();
        self.ignored = ignore.map(|ignore| ignore.rows(first_line, window.rows));
        // The bitmap has the processed rows.
        let mut rects = inside_border(&self.regions, self.width, window, BORDER);
        for rect in &mut rects {
            rect.y0 -= window.first;
            rect.y1 -= window.first;
        }
        self.count = regions::count(&rects, self.ignored.as_ref());
        Ok(())
    }

    /// Other pixels are ignored. Nothing changes for frames without ignored pixels.
    ///
    /// # Errors
    /// The failing call.
    pub fn set_ignored(
        &mut self,
        context: &ClContext,
        pixels: &Arc<Ignored>,
    ) -> Result<(), ClError> {
        if let Some(ignore) = &mut self.ignore {
            ignore.replace(pixels);
        }
        let window = self.window;
        self.take(context, &window)
    }

    /// The kernels' arguments: regions, ignored pixels, and the first row of these. `stand_in`: any memory, which is not read.
    pub fn args<'a>(&'a self, stand_in: &'a Mem) -> Result<[Arg<'a>; 5], ClError> {
        let ignored = self.ignore.as_ref().map_or(stand_in, Ignore::memory);
        let first = with_whole_cells(&self.window).first;
        Ok([
            Arg::Mem(&self.rois.memory),
            Arg::I32(to_i32(self.rois.words.len(), "regions")?),
            Arg::Mem(ignored),
            Arg::I32(i32::from(self.ignore.is_some())),
            Arg::I32(to_i32(first, "a row")?),
        ])
    }

    /// The ignored pixels of the processed rows.
    pub fn ignored(&self) -> Option<&Arc<Bitmap>> {
        self.ignored.as_ref()
    }

    /// Whether a pixel of the processed rows, or of their cells, is judged.
    pub fn is_judged(&self, x: usize, y: usize) -> bool {
        let pixel = Rect::new(x, y, 1, 1);
        let first = with_whole_cells(&self.window).first;
        let bitmap = self.ignore.as_ref().map(Ignore::bitmap);
        (self.rects.iter()).any(|rect| !rect.intersect(&pixel).is_empty())
            && bitmap.is_none_or(|bitmap| !bitmap.get(x, y - first))
    }
}
