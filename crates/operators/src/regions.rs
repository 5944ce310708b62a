//! The pixels that are judged: regions of interest, and ignored pixels.

use std::sync::Arc;

use clinspect_core::{
    ClError,
    ignored::{Bitmap, Ignored},
    kernels::mask_ignore::IGNORE_BLOCK,
    region::{Rect, area, union_of},
    window::Window,
};
use clinspect_opencl::{Arg, ClContext, Kernel, Mem, Memory, NdRange, Program, Submission};

use crate::{to_i32, to_u32, upload};

/// The regions of interest on the device.
#[derive(Debug)]
pub(crate) struct Rois {
    pub words: Vec<[i32; 4]>,
    pub memory: Mem,
}

impl Rois {
    pub fn new(context: &ClContext, regions: &[Rect]) -> Result<Self, ClError> {
        let words = roi_words(regions)?;
        let memory = upload(context, &words, "regions of interest")?;
        Ok(Self { words, memory })
    }

    /// Takes other regions.
    pub fn replace(&mut self, context: &ClContext, regions: &[Rect]) -> Result<(), ClError> {
        if regions.len() == self.words.len() {
            return self.update(context, regions);
        }
        *self = Self::new(context, regions)?;
        Ok(())
    }

    /// Writes the regions, if they have changed. Their number stays the same.
    pub fn update(&mut self, context: &ClContext, regions: &[Rect]) -> Result<(), ClError> {
        let words = roi_words(regions)?;
        if words != self.words {
            let bytes = bytemuck::cast_slice(&words);
            context.write(&self.memory, 0, bytes, "regions of interest")?;
            self.words = words;
        }
        Ok(())
    }
}

fn roi_words(regions: &[Rect]) -> Result<Vec<[i32; 4]>, ClError> {
    let words = |r: &Rect| {
        let [x0, y0, x1, y1] = [r.x0, r.y0, r.x1, r.y1].map(|v| to_i32(v, "a region"));
        Ok([x0?, y0?, x1?, y1?])
    };
    regions.iter().map(words).collect()
}

const KERNEL: &str = "mask_ignore";
/// Work-items per work-group on a GPU.
const GROUP: usize = 64;
/// Work-items per compute unit of a CPU, in work-groups of one.
const ITEMS_PER_UNIT: usize = 4;

/// The ignored pixels on the device.
#[derive(Debug)]
pub(crate) struct Ignore {
    pixels: Arc<Ignored>,
    /// The rows that are on the device, and the number of the first one.
    bitmap: Arc<Bitmap>,
    first: u64,
    /// The rows are those of pixels that were ignored before.
    is_outdated: bool,
    memory: Mem,
    kernel: Kernel,
    /// Most work-items; `None` for one per block.
    items: Option<usize>,
    group: usize,
}

impl Ignore {
    /// Uploads `rows` rows from row 0 on. `program` has the kernel.
    ///
    /// # Errors
    /// The failing call.
    pub fn new(
        context: &ClContext,
        program: &Program,
        pixels: &Arc<Ignored>,
        rows: usize,
    ) -> Result<Self, ClError> {
        let bitmap = Arc::new(pixels.rows(0, rows));
        let kernel = program.kernel(KERNEL)?;
        let caps = context.caps();
        Ok(Self {
            memory: Self::memory_of(context, &bitmap)?,
            items: caps.is_cpu.then_some(caps.compute_units * ITEMS_PER_UNIT),
            group: if caps.is_cpu {
                1
            } else {
                GROUP.min(context.kernel_work_group(&kernel)?)
            },
            kernel,
            pixels: pixels.clone(),
            bitmap,
            first: 0,
            is_outdated: false,
        })
    }

    /// A bitmap on the device, with zeros up to a whole block.
    fn memory_of(context: &ClContext, bitmap: &Bitmap) -> Result<Mem, ClError> {
        let mut bytes = bitmap.bytes().to_vec();
        bytes.resize(bytes.len().next_multiple_of(IGNORE_BLOCK), 0);
        upload(context, &bytes, "ignored pixels")
    }

    /// The rows that are on the device.
    pub fn bitmap(&self) -> &Arc<Bitmap> {
        &self.bitmap
    }

    /// The same for the kernels, packed as a mask is.
    pub fn memory(&self) -> &Mem {
        &self.memory
    }

    /// Takes `rows` rows from row `first` on, and uploads them if they differ. Returns whether they
    /// differ.
    ///
    /// # Errors
    /// The failing call.
    pub fn show(&mut self, context: &ClContext, first: u64, rows: usize) -> Result<bool, ClError> {
        if self.holds(first, rows) && !std::mem::take(&mut self.is_outdated) {
            return Ok(false);
        }
        let bitmap = self.pixels.rows(first, rows);
        self.first = first;
        if bitmap == *self.bitmap {
            return Ok(false);
        }
        if bitmap.bytes().len() == self.bitmap.bytes().len() {
            context.write(&self.memory, 0, bitmap.bytes(), "ignored pixels")?;
        } else {
            self.memory = Self::memory_of(context, &bitmap)?;
        }
        self.bitmap = Arc::new(bitmap);
        Ok(true)
    }

    /// Other pixels are ignored from the next [`Self::show`] on.
    pub fn replace(&mut self, pixels: &Arc<Ignored>) {
        if *pixels != self.pixels {
            self.pixels = pixels.clone();
            self.is_outdated = true;
        }
    }

    /// The ignored pixels of `rows` rows from row `first` on.
    pub fn rows(&self, first: u64, rows: usize) -> Arc<Bitmap> {
        if self.holds(first, rows) {
            return self.bitmap.clone();
        }
        Arc::new(self.pixels.rows(first, rows))
    }

    /// Whether these rows have the bitmap of those that are on the device.
    fn holds(&self, first: u64, rows: usize) -> bool {
        let before = (self.first, self.bitmap.rows());
        let is_uniform = |(first, rows)| self.pixels.is_uniform(first, rows);
        before == (first, rows)
            || (before.1 == rows && is_uniform(before) && is_uniform((first, rows)))
    }

    /// Clears the ignored pixels of a mask with the rows of [`Self::show`], and subtracts those that
    /// were marked from the counter `slot`.
    ///
    /// # Errors
    /// The failing call.
    pub fn clear(
        &mut self,
        mask: Memory,
        mask_offset: usize,
        counters: &Mem,
        slot: usize,
        submission: &mut Submission,
    ) -> Result<(), ClError> {
        let bytes = self.bitmap.bytes().len();
        let blocks = bytes.div_ceil(IGNORE_BLOCK);
        let items = self.items.map_or(blocks, |items| items.min(blocks)).max(1);
        let args = [
            Arg::Mem(&self.memory),
            Arg::Writes(mask),
            Arg::U64(mask_offset as u64),
            Arg::U32(to_u32(bytes, "a mask")?),
            Arg::U32(to_u32(blocks.div_ceil(items), "blocks")?),
            Arg::Mem(counters),
            Arg::U32(to_u32(slot, "a counter")?),
        ];
        let range = NdRange::groups(items.div_ceil(self.group), self.group);
        submission.run(&mut self.kernel, KERNEL, &args, &range)
    }
}

/// The processed pixels of regions, or of the whole plane without any, that are at least `border` away from each edge of the
/// frame or web, as rectangles without common pixels. Row 0 is the plane's; a region's row 0 is the web's.
pub(crate) fn inside_border(
    rois: &[Rect],
    width: usize,
    window: &Window,
    border: usize,
) -> Vec<Rect> {
    // Rows of the web's border that the plane holds.
    let before = (window.web_row as usize).min(border);
    let top = (border - before).max(window.first);
    let past = window.span().end;
    let bottom = if window.ends {
        past.min(window.height.saturating_sub(border))
    } else {
        past
    };
    if width <= 2 * border || bottom <= top {
        return Vec::new();
    }
    let inner = Rect::new(border, top, width - 2 * border, bottom - top);
    if rois.is_empty() {
        return vec![inner];
    }
    let row = |y: usize| y.saturating_sub(window.web_row as usize).min(window.height);
    let rois: Vec<Rect> = (rois.iter())
        .map(|roi| Rect {
            y0: row(roi.y0),
            y1: row(roi.y1),
            ..*roi
        })
        .collect();
    union_of(&[inner], &rois)
}

/// Refuses regions and ignored pixels that leave no pixel of a frame at least `border` away from its edges. A web has no
/// last row.
///
/// # Errors
/// [`ClError::Refused`] with what to change.
pub(crate) fn check_inside(
    rois: &[Rect],
    ignored: Option<&Ignored>,
    [width, height]: [usize; 2],
    is_web: bool,
    border: usize,
) -> Result<(), ClError> {
    let window = Window::frame(if is_web { 1 << 32 } else { height });
    let judged = inside_border(rois, width, &window, border);
    if judged.is_empty() {
        return Err(ClError::Refused(format!(
            "no pixel of the {width}x{height} frame can be judged, because {border} pixels at each border are not; use \
             larger frames, or set rois to regions inside"
        )));
    }
    if let Some(ignored) = ignored.filter(|_| !is_web)
        && ignored.rows(0, height).count_judged(&judged) == 0
    {
        return Err(ClError::Refused(format!(
            "no pixel of the {width}x{height} frame can be judged, because mask and regions of ignore cover all; leave \
             pixels to judge"
        )));
    }
    Ok(())
}

/// A region without pixels.
const NOWHERE: [Rect; 1] = [Rect {
    x0: 0,
    y0: 0,
    x1: 0,
    y1: 0,
}];

/// The regions; one without pixels if there are none, because memory is never empty.
pub(crate) fn or_nowhere(regions: &[Rect]) -> &[Rect] {
    if regions.is_empty() {
        &NOWHERE
    } else {
        regions
    }
}

/// Shows the device the ignored pixels of a window's rows, if pixels are ignored, and returns them.
///
/// # Errors
/// The failing call.
pub(crate) fn show<'a>(
    ignore: &'a mut Option<Ignore>,
    context: &ClContext,
    window: &Window,
) -> Result<Option<&'a Arc<Bitmap>>, ClError> {
    let Some(ignore) = ignore else {
        return Ok(None);
    };
    let first_line = window.web_row + window.first as u64;
    ignore.show(context, first_line, window.rows)?;
    Ok(Some(ignore.bitmap()))
}

/// The pixels of rectangles without common pixels that are not ignored. The bitmap has the rows from row 0 of the rectangles on.
pub(crate) fn count(rects: &[Rect], ignored: Option<&Arc<Bitmap>>) -> u64 {
    match ignored {
        Some(ignored) => ignored.count_judged(rects),
        None => area(rects),
    }
}
