//! The rows of a web that are still needed, on the device.

use std::sync::Arc;

use clinspect_core::{ClError, layout::FrameLayout, window::Reach};

use super::{
    ClFrame, Plane, PlaneMemory, ROW_ALIGNMENT,
    upload::{Mapped, SECOND_PART, Span, Uploader},
};
use crate::{
    Arg, ClBuffer, ClContext, Completion, ImportPath, Kernel, Meter, NdRange, ProgramSource, Rows,
    Submission, queue::Event,
};

/// Name of the kernel that copies on a CPU.
const KERNEL: &str = "copy_rows";
/// Bands of rows per compute unit of a CPU.
const BANDS_PER_UNIT: usize = 4;
/// The memory holds this many times the rows that are kept while a strip is added. The kept rows are moved when it
/// is full: with one held strip, every seventh strip.
const ROOM: usize = 4;

/// A plane of the kept rows.
#[derive(Debug)]
struct WebPlane {
    row_bytes: usize,
    stride: usize,
    /// Rows of the frame per row of the plane, as a shift.
    shift: u32,
}

impl WebPlane {
    /// Bytes of a row, and the rows of the plane for `rows` rows of the frame.
    fn extent(&self, rows: usize) -> [usize; 2] {
        [self.row_bytes, rows.div_ceil(1 << self.shift)]
    }
}

/// The last rows of a web. Each strip is uploaded or copied behind the one before; a plane's rows are
/// adjacent, so any part of them is a frame for kernels.
#[derive(Debug)]
pub struct WebRows {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    /// Copies rows on a CPU.
    copier: Option<Kernel>,
    planes: Vec<WebPlane>,
    /// Number of rows that the memory holds.
    capacity: usize,
    memory: Option<Arc<ClBuffer>>,
    /// Row of the memory at which the kept rows begin.
    at: usize,
    /// Number of the web's row that is the first kept one.
    first: u64,
    /// Number of kept rows.
    rows: usize,
    /// Rows of a strip.
    height: usize,
    /// Rows in the memory start at multiples of this.
    step: usize,
    /// The last copy or upload into the memory. Each waits for the one before, so a failure reaches all readers of the
    /// rows, although a kernel waits for the last one only.
    copied: Option<Completion>,
    /// The first part of the last strip, if it was uploaded in two parts.
    first_part: Option<FirstPart>,
}

/// The rows of a strip that were uploaded before the others.
#[derive(Debug)]
struct FirstPart {
    /// Number of the web's row behind these rows.
    end: u64,
    uploaded: Completion,
}

impl WebRows {
    /// No rows yet, of strips of `layout`; `meter` counts the copies.
    pub fn new(
        context: &Arc<ClContext>,
        layout: &FrameLayout,
        meter: &Arc<Meter>,
    ) -> Result<Self, ClError> {
        let copier = if context.caps().is_cpu {
            Some(
                context
                    .program(ProgramSource::CopyRows, "")?
                    .kernel(KERNEL)?,
            )
        } else {
            None
        };
        Ok(Self {
            context: context.clone(),
            meter: meter.clone(),
            copier,
            planes: planes(layout),
            capacity: 0,
            memory: None,
            at: 0,
            first: 0,
            rows: 0,
            height: layout.height,
            step: 1 << layout.largest_row_shift(),
            copied: None,
            first_part: None,
        })
    }

    /// Checks that the rows fit into a buffer that `context` allows.
    ///
    /// # Errors
    /// [`ClError::Refused`] if they do not.
    pub fn check(context: &ClContext, layout: &FrameLayout, reach: &Reach) -> Result<(), ClError> {
        let (height, above, below) = (layout.height, reach.above(), reach.below());
        // A held strip waits for the rows below it. The strip that brings them is added before the held one is sent.
        let most = (2 * height).saturating_add(above).saturating_add(below);
        let bytes = bytes(&planes(layout), capacity(most));
        let limit = context.caps().max_allocation;
        if bytes.is_none_or(|bytes| bytes as u64 > limit) {
            return Err(ClError::Refused(format!(
                "strips need {above} rows of the web above them and {below} below, {} bytes in one buffer, \
                 over the {limit} that {} allows: set smaller pitches, smaller multiples or smaller \
                 strips, or set device to another one",
                bytes.unwrap_or(usize::MAX),
                context.device_name(),
            )));
        }
        Ok(())
    }

    /// Forgets all rows: a web begins.
    pub fn clear(&mut self) {
        (self.at, self.first, self.rows) = (0, 0, 0);
        (self.copied, self.first_part) = (None, None);
    }

    /// Number of the web's first row that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of the web's rows that were added.
    pub fn past(&self) -> u64 {
        self.first + self.rows as u64
    }

    /// Whether the planes of the web have these strides.
    pub(super) fn has_strides(&self, strides: &[usize]) -> bool {
        let own = self.planes.iter().map(|plane| &plane.stride);
        own.eq(strides)
    }

    /// Uploads a strip with the strides of the web behind the rows that are there. Rows before the web's row `keep` may
    /// be dropped. From pinned memory, the rows before the web's row `needed` are uploaded first: a command that reads
    /// only these need not wait for the others. Returns the strip, and its upload.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub(super) fn upload(
        &mut self,
        uploader: &mut Uploader,
        parts: Vec<Mapped>,
        spans: &[Span],
        keep: u64,
        needed: u64,
    ) -> Result<(ClFrame, Completion), ClError> {
        let memory = self.make_room(keep)?;
        let past = self.past();
        let mut rows = needed.saturating_sub(past).min(self.height as u64) as usize;
        if rows == 0 || self.frame_bytes(self.height - rows) < SECOND_PART {
            rows = self.height;
        }
        let (mut spans_to, mut rest) = (Vec::new(), Vec::new());
        for (index, (span, plane)) in spans.iter().zip(&self.planes).enumerate() {
            let to = self.place(&memory, self.capacity, index, self.at + self.rows)?;
            let len = span.len.min(plane.stride * (rows >> plane.shift));
            spans_to.push(Span {
                start: to.offset,
                len,
                ..*span
            });
            rest.push(Span {
                start: to.offset + len,
                skip: span.skip + len,
                len: span.len - len,
                ..*span
            });
        }
        let first_part = spans_to.len();
        spans_to.extend(rest.into_iter().filter(|span| span.len > 0));
        let before = self.copied.as_ref().map(|copied| &copied.last);
        // A queue of its own: a command that reads the first rows must not wait for the others.
        let mut writes = memory.begin_writes(self.context.uploads(), before)?;
        let (source, uploaded) = uploader.send(parts, &spans_to, first_part, &mut writes)?;
        self.first_part = uploaded.map(|uploaded| FirstPart {
            end: past + rows as u64,
            uploaded: self.completion(uploaded),
        });
        let copied = self.completion(writes.end().ok_or_else(no_memory)?);
        self.copied = Some(copied.clone());
        self.rows += self.height;
        let strip = ClFrame {
            taken: ImportPath::Copied,
            source,
            ..self.frame(past, self.past())?
        };
        Ok((strip, copied))
    }

    /// Copies a strip behind the rows that are there. Rows before the web's row `keep` may be dropped. The copy is not
    /// flushed: the commands that judge a strip follow.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub(super) fn append(&mut self, strip: &ClFrame, keep: u64) -> Result<Completion, ClError> {
        let memory = self.make_room(keep)?;
        let height = self.height;
        let mut submission = self.context.submit(&self.meter, self.frame_bytes(height));
        submission.after(self.copied.as_ref());
        for (index, plane) in strip.planes().iter().enumerate() {
            let from = Rows {
                memory: plane.memory(),
                offset: plane.offset,
                stride: plane.stride,
            };
            let to = self.place(&memory, self.capacity, index, self.at + self.rows)?;
            let extent = self.planes[index].extent(height);
            copy(&mut submission, self.copier.as_mut(), from, to, extent)?;
        }
        self.rows += height;
        let copied = submission.enqueued()?;
        (self.copied, self.first_part) = (Some(copied.clone()), None);
        Ok(copied)
    }

    /// Makes room for a strip behind the rows from the web's row `keep` on, and returns the memory.
    fn make_room(&mut self, keep: u64) -> Result<Arc<ClBuffer>, ClError> {
        let unneeded = keep.clamp(self.first, self.past()) - self.first;
        let unneeded = unneeded as usize / self.step * self.step;
        self.at += unneeded;
        self.first += unneeded as u64;
        self.rows -= unneeded;
        if self.at + self.rows + self.height > self.capacity {
            self.move_rows()?;
        }
        self.memory.clone().ok_or_else(no_memory)
    }

    /// Moves the kept rows to the start of the memory, or of a larger one. The old and the new place do not overlap:
    /// the memory holds [`ROOM`] times as many rows as are needed and is full, so the kept rows are at its end.
    fn move_rows(&mut self) -> Result<(), ClError> {
        let needed = self.rows + self.height;
        let (before, old_capacity) = (self.memory.clone(), self.capacity);
        let wanted = capacity(needed);
        if wanted > self.capacity {
            let capacity = wanted
                .checked_next_multiple_of(self.step)
                .ok_or_else(no_memory)?;
            let bytes = bytes(&self.planes, capacity).ok_or_else(no_memory)?;
            self.memory = Some(Arc::new(ClBuffer::new(&self.context, bytes, &self.meter)?));
            self.capacity = capacity;
        }
        if let (Some(before), Some(after)) = (&before, self.memory.clone())
            && self.rows > 0
        {
            let bytes = self.frame_bytes(self.rows);
            let mut submission = self.context.submit(&self.meter, bytes);
            submission.after(self.copied.as_ref());
            for index in 0..self.planes.len() {
                let from = self.place(before, old_capacity, index, self.at)?;
                let to = self.place(&after, self.capacity, index, 0)?;
                let extent = self.planes[index].extent(self.rows);
                copy(&mut submission, self.copier.as_mut(), from, to, extent)?;
            }
            (self.copied, self.first_part) = (Some(submission.enqueued()?), None);
        }
        self.at = 0;
        Ok(())
    }

    fn completion(&self, last: Arc<Event>) -> Completion {
        Completion {
            context: self.context.clone(),
            last,
            bytes: 0,
        }
    }

    /// Bytes of `rows` rows of the frame.
    fn frame_bytes(&self, rows: usize) -> usize {
        let extents = self.planes.iter().map(|plane| plane.extent(rows));
        extents.map(|[row_bytes, rows]| row_bytes * rows).sum()
    }

    /// Row `row` of a plane in a memory for `capacity` rows.
    fn place<'a>(
        &self,
        memory: &'a ClBuffer,
        capacity: usize,
        index: usize,
        row: usize,
    ) -> Result<Rows<'a>, ClError> {
        let plane = self.planes.get(index).ok_or_else(no_memory)?;
        let before = self.planes.iter().take(index);
        let start: usize = before.map(|p| p.stride * (capacity >> p.shift)).sum();
        Ok(Rows {
            memory: crate::Memory::Buffer(memory),
            offset: start + (row >> plane.shift) * plane.stride,
            stride: plane.stride,
        })
    }

    /// The kept rows from the web's row `from` on, as a frame. Commands that read it wait for the upload of the rows
    /// before the web's row `until`, and must not read later rows.
    ///
    /// # Errors
    /// [`ClError::Input`] if no strip was added.
    pub fn frame(&self, from: u64, until: u64) -> Result<ClFrame, ClError> {
        let memory = self.memory.as_ref().ok_or_else(no_memory)?;
        let written = match &self.first_part {
            Some(part) if until <= part.end => Some(&part.uploaded),
            _ => self.copied.as_ref(),
        };
        if let Some(written) = written {
            memory.set_part_writer(&written.last);
        }
        let skip = (from.clamp(self.first, self.past()) - self.first) as usize;
        let planes = (0..self.planes.len())
            .map(|index| {
                let rows = self.place(memory, self.capacity, index, self.at + skip)?;
                Ok(Plane {
                    memory: PlaneMemory::Ours(memory.clone()),
                    offset: rows.offset,
                    stride: rows.stride,
                })
            })
            .collect::<Result<_, ClError>>()?;
        Ok(ClFrame {
            planes,
            taken: ImportPath::ZeroCopy,
            source: None,
        })
    }
}

fn planes(layout: &FrameLayout) -> Vec<WebPlane> {
    let planes = layout.planes.iter().enumerate();
    let planes = planes.map(|(index, plane)| WebPlane {
        row_bytes: plane.row_bytes,
        stride: plane.row_bytes.next_multiple_of(ROW_ALIGNMENT),
        shift: layout.row_shift(index),
    });
    planes.collect()
}

/// Rows of a memory for `needed` rows, which are then seldom moved.
fn capacity(needed: usize) -> usize {
    needed.saturating_mul(ROOM)
}

/// Bytes of a memory for `capacity` rows; `None` if their number overflows.
fn bytes(planes: &[WebPlane], capacity: usize) -> Option<usize> {
    planes.iter().try_fold(0_usize, |sum, plane| {
        let rows = capacity >> plane.shift;
        sum.checked_add(plane.stride.checked_mul(rows)?)
    })
}

/// Enqueues a copy of rows that do not overlap; `extent`: bytes of a row, and rows.
fn copy(
    submission: &mut Submission,
    copier: Option<&mut Kernel>,
    from: Rows,
    to: Rows,
    [row_bytes, rows]: [usize; 2],
) -> Result<(), ClError> {
    let Some(kernel) = copier else {
        return submission.copy(from, to, row_bytes, rows);
    };
    let number = |value: usize| {
        u32::try_from(value)
            .map_err(|_| ClError::Refused(format!("a row or a stride of {value} is too large")))
    };
    let args = [
        Arg::Reads(from.memory),
        Arg::U64(from.offset as u64),
        Arg::U32(number(from.stride)?),
        Arg::Writes(to.memory),
        Arg::U64(to.offset as u64),
        Arg::U32(number(to.stride)?),
        Arg::U32(number(row_bytes)?),
        Arg::U32(number(rows)?),
    ];
    let bands = rows.min(BANDS_PER_UNIT * submission.compute_units());
    submission.run(kernel, KERNEL, &args, &NdRange::groups(bands.max(1), 1))
}

fn no_memory() -> ClError {
    ClError::Input("the web has no rows".into())
}
