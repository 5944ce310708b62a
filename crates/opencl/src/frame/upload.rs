//! Uploads of frames in memory of other elements, to a device with memory of its own.

use std::{
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::copiers::{Copiers, Piece};
use crate::{
    ClBuffer, ClContext, HostBytes, Meter,
    buffer::Writes,
    handle::CAT,
    queue::{Event, Pinned},
};
use clinspect_core::ClError;

/// Bytes of a piece of a copy. A piece crosses the bus while later ones are copied; smaller pieces are slower.
const PIECE: usize = 512 << 10;
/// Fewest bytes for which the second part of a strip is a transfer of its own.
pub(super) const SECOND_PART: usize = PIECE;
/// Longest time that a drop waits for the device. A drop waits only after a frame has failed midway.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// A range of bytes to upload: `len` bytes from byte `skip` of part number `part`, to byte `start` of the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub part: usize,
    pub skip: usize,
    pub start: usize,
    pub len: usize,
}

impl Span {
    /// One span for this one and the next, if both lie equally far apart in the source and in the buffer.
    pub fn joined(&self, next: &Self) -> Option<Self> {
        let apart = next.start - self.start;
        let fits = next.part == self.part && next.skip.checked_sub(self.skip) == Some(apart);
        fits.then_some(Self {
            len: apart + next.len,
            ..*self
        })
    }
}

/// A part of a GstBuffer that is mapped for reading.
#[derive(Debug)]
pub(super) enum Mapped {
    Memory(gst::memory::MappedMemory<gst::memory::Readable>),
    Buffer(gst::MappedBuffer<gst::buffer::Readable>),
}

// SAFETY: a mapped GstMemory does not move, and is locked against writers while it is mapped.
unsafe impl HostBytes for Mapped {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Memory(memory) => memory.as_slice(),
            Self::Buffer(buffer) => buffer.as_slice(),
        }
    }
}

/// Mapped memory of a source that an upload reads. It stays mapped until the upload has ended.
#[derive(Debug)]
pub(super) struct Source {
    parts: ManuallyDrop<Vec<Mapped>>,
    context: Arc<ClContext>,
    last: Option<Arc<Event>>,
}

impl Source {
    /// Waits for the upload; the source may overwrite its memory afterwards.
    ///
    /// # Errors
    /// The upload or the wait has failed.
    pub fn wait(&mut self) -> Result<(), ClError> {
        if let Some(last) = &self.last {
            self.context.wait(last, "a frame")?;
        }
        self.last = None;
        Ok(())
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(last) = self.last.take()
            && !last.ends_within(DROP_LIMIT)
        {
            gst::error!(
                CAT,
                "the device may still read a frame; leaking the frame's memory"
            );
            return;
        }
        // SAFETY: the value is dropped only here.
        unsafe { ManuallyDrop::drop(&mut self.parts) };
    }
}

/// Pinned memory through which other memory is uploaded.
#[derive(Debug)]
struct Staging {
    memory: Pinned,
    /// The last upload that reads the memory.
    last: Option<Arc<Event>>,
}

/// Uploads frames of one importer.
#[derive(Debug)]
pub(super) struct Uploader {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    number: u64,
    target: Option<Arc<ClBuffer>>,
    staging: Option<Staging>,
    copiers: Copiers,
}

impl Uploader {
    pub fn new(context: &Arc<ClContext>, meter: &Arc<Meter>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            context: context.clone(),
            meter: meter.clone(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            target: None,
            staging: None,
            copiers: Copiers::new(),
        }
    }

    /// Uploads a frame of at most `size` bytes. Returns the buffer that gets it, and the parts if
    /// the upload still reads them.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub fn upload(
        &mut self,
        parts: Vec<Mapped>,
        spans: &[Span],
        size: usize,
    ) -> Result<(Arc<ClBuffer>, Option<Source>), ClError> {
        let target = match &self.target {
            Some(target) if target.size() >= size => target.clone(),
            _ => Arc::new(ClBuffer::new(&self.context, size, &self.meter)?),
        };
        // Put back after a success only: after a failure the contents are mixed.
        self.target = None;
        // The failure of a command on the frame before is no failure of this one.
        target.mark_undefined();
        let mut writes = target.begin_writes(self.context.commands(), None)?;
        let (source, _) = self.send(parts, spans, spans.len(), &mut writes)?;
        if let Some(last) = writes.end() {
            target.set_writer(&last);
        }
        self.target = Some(target.clone());
        Ok((target, source))
    }

    /// Sends spans of `parts` to the device. Returns the parts if the device still reads them, and the write
    /// after which the device has the first `count` spans.
    ///
    /// # Errors
    /// The device is out of memory; a failing call.
    pub fn send(
        &mut self,
        parts: Vec<Mapped>,
        spans: &[Span],
        count: usize,
        writes: &mut Writes,
    ) -> Result<(Option<Source>, Option<Arc<Event>>), ClError> {
        let is_pinned: Vec<bool> = parts.iter().map(|part| self.is_pinned(part)).collect();
        let is_in_place = |span: &Span| is_pinned.get(span.part).is_some_and(|pinned| *pinned);
        let (in_place, others): (Vec<Span>, Vec<Span>) = spans.iter().partition(|s| is_in_place(s));
        let mut first = None;
        let sent = in_place.iter().enumerate().try_for_each(|(index, span)| {
            let bytes = bytes_of(&parts, span);
            // SAFETY: `Source` keeps the parts until the last write has ended.
            unsafe { writes.write(span.start, bytes.as_ptr(), bytes.len()) }?;
            if index + 1 == count && others.is_empty() {
                first = writes.last();
            }
            Ok(())
        });
        let sent = match sent {
            Ok(()) if !others.is_empty() => self.copy(&parts, &others, writes),
            sent => sent,
        };
        let last = writes.last();
        let source = (!in_place.is_empty()).then(|| Source {
            parts: ManuallyDrop::new(parts),
            context: self.context.clone(),
            last,
        });
        sent.map(|()| (source, first.or_else(|| writes.last())))
    }

    fn is_pinned(&self, part: &Mapped) -> bool {
        let mapped = match part {
            Mapped::Memory(mapped) => mapped,
            Mapped::Buffer(_) => return false,
        };
        (self.context).pin(mapped.memory(), part.bytes(), self.number)
    }

    /// Copies the planes into pinned memory in pieces, each of which is uploaded at once.
    fn copy(
        &mut self,
        parts: &[Mapped],
        spans: &[Span],
        writes: &mut Writes,
    ) -> Result<(), ClError> {
        let total: usize = spans.iter().map(|span| span.len).sum();
        let staging = self.staging(total)?;
        let mut to = staging.memory.address().0;
        let mut pieces = Vec::new();
        let mut starts = Vec::new();
        for span in spans {
            for (index, piece) in bytes_of(parts, span).chunks(PIECE).enumerate() {
                starts.push((span.start + index * PIECE, to, piece.len()));
                pieces.push(Piece {
                    from: piece.as_ptr(),
                    to,
                    len: piece.len(),
                });
                // SAFETY: the staging holds all pieces one after the other.
                to = unsafe { to.add(piece.len()) };
            }
        }
        // SAFETY: `staging.last` below keeps the memory unchanged until the last write has ended;
        // pieces of planes do not overlap, and no upload reads the staging now.
        let copied = unsafe {
            self.copiers.copy(pieces, |index| match starts.get(index) {
                Some(&(start, from, len)) => writes.write(start, from, len),
                None => Ok(()),
            })
        };
        self.staging = Some(Staging {
            memory: staging.memory.for_queue(writes.queue()),
            last: writes.last(),
        });
        copied
    }

    /// Pinned memory of at least `size` bytes that no upload reads any more.
    fn staging(&mut self, size: usize) -> Result<Staging, ClError> {
        if let Some(staging) = self.staging.take() {
            if let Some(last) = &staging.last {
                self.context.wait_for_end(last)?;
            }
            if staging.memory.len() >= size {
                return Ok(staging);
            }
        }
        Ok(Staging {
            memory: self.context.new_pinned(size)?,
            last: None,
        })
    }
}

fn bytes_of<'a>(parts: &'a [Mapped], span: &Span) -> &'a [u8] {
    let bytes = parts.get(span.part).map_or(&[][..], |part| part.bytes());
    bytes.get(span.skip..span.skip + span.len).unwrap_or(&[])
}
