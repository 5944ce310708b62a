//! The web of a line camera: its strips are held until the rows that they need have come.

use std::{collections::VecDeque, ops::Range};

use clinspect_core::{
    ClError,
    window::{Reach, Window},
};
use clinspect_opencl::{
    Completion, ImportPath,
    frame::{ClFrame, Importer, WebRows},
};

use super::stream::{self, Learning};

/// Rows from which an element learns at a time, such as pitches: twice the rows that the search for a
/// pitch of 170 pixels needs.
const LEARNING_ROWS: u64 = 1024;

/// Why a web begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first strip since the start, or since the end of a stream.
    Start,
    /// New caps.
    Caps,
    /// A flush.
    Flush,
    /// A strip has the flag DISCONT.
    Discont,
    /// The offset of a strip is not that of the strip before plus 1.
    Offset,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Caps => "caps",
            Self::Flush => "flush",
            Self::Discont => "discont",
            Self::Offset => "offset",
        }
    }
}

/// A strip that waits.
pub(super) struct Strip {
    /// The input buffer; without memory if only its metas and times are needed.
    pub buffer: gst::Buffer,
    /// Its rows in the web.
    pub rows: Range<u64>,
}

/// What waits, in order.
pub(super) enum QueueEntry {
    Strip(Strip),
    /// An event that came behind a strip.
    Event(gst::Event),
}

/// What is known of a web before its first strip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    /// Counts webs since the start.
    number: u64,
    reason: Reason,
}

impl Default for Beginning {
    fn default() -> Self {
        Self {
            number: 0,
            reason: Reason::Start,
        }
    }
}

/// The strip that came last, while the device may still read it in the source's memory.
struct Incoming {
    // Dropped before the buffer: a pool uses a buffer again only if its memory is not mapped.
    frame: ClFrame,
    copied: Completion,
    _buffer: gst::Buffer,
}

/// A web and its held strips.
pub(super) struct Web {
    rows: WebRows,
    incoming: Option<Incoming>,
    /// Rows of a strip.
    height: usize,
    /// Counts webs since the start.
    number: u64,
    begins: Option<Reason>,
    held: VecDeque<QueueEntry>,
    /// Offset of the last strip.
    offset: Option<u64>,
    /// Bytes of a strip's buffer.
    size: u64,
    /// Offsets count bytes, as those of a file do, instead of buffers.
    counts_bytes: bool,
    /// Strips that were lost since the last message of a web: they were late, or there was an error.
    skipped: u64,
    /// Number of the web's rows at which the element learns again.
    learns_at: u64,
    /// The rows that the source flagged as corrupted, as far as they are kept.
    corrupted: VecDeque<Range<u64>>,
}

impl Web {
    /// Before the first strip.
    ///
    /// # Errors
    /// [`ClError::Refused`] for frames that cannot be strips.
    pub fn new(importer: &Importer, beginning: Beginning) -> Result<Self, ClError> {
        let layout = importer.layout();
        let step = 1 << layout.largest_row_shift();
        if !layout.height.is_multiple_of(step) {
            return Err(ClError::Refused(format!(
                "strips of {} rows of {} cannot be joined, because {step} rows share colour samples; \
                 set line-scan=false or a height that is a multiple of {step}",
                layout.height,
                importer.info().format(),
            )));
        }
        Ok(Self {
            rows: WebRows::new(importer.context(), layout, importer.meter())?,
            incoming: None,
            height: layout.height,
            number: beginning.number,
            begins: Some(beginning.reason),
            held: VecDeque::new(),
            corrupted: VecDeque::new(),
            offset: None,
            size: 1,
            counts_bytes: false,
            skipped: 0,
            learns_at: LEARNING_ROWS,
        })
    }

    /// The beginning of the web that follows with other caps.
    pub fn next(&self) -> Beginning {
        Beginning {
            number: self.number + u64::from(self.begins.is_none()),
            reason: self.begins.unwrap_or(Reason::Caps),
        }
    }

    /// Number of the web since the start.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the strip in `buffer` begins a web while another one is open: why, and the number of
    /// buffers that are lost between them.
    pub fn breaks(&self, buffer: &gst::BufferRef) -> Option<(Reason, u64)> {
        let (follows, lost) = match (self.offset, offset_of(buffer)) {
            (Some(before), Some(offset)) => {
                let step = offset.checked_sub(before).filter(|&step| step > 0);
                let follows = step.is_some_and(|step| step == 1 || step == self.size);
                let unit = if self.counts_bytes { self.size } else { 1 };
                (
                    follows,
                    step.map_or(0, |step| (step / unit).saturating_sub(1)),
                )
            }
            _ => (true, 0),
        };
        let lost = if follows { 0 } else { lost };
        if self.begins.is_some() {
            None
        } else if !follows {
            Some((Reason::Offset, lost))
        } else if buffer.flags().contains(gst::BufferFlags::DISCONT) {
            Some((Reason::Discont, lost))
        } else {
            None
        }
    }

    /// The next strip begins a web. Strips that could not be sent are dropped; returns the events that
    /// came behind them.
    pub fn end(&mut self, reason: Reason) -> Vec<gst::Event> {
        if self.begins.is_none() {
            self.number += 1;
            self.begins = Some(reason);
        }
        self.offset = None;
        self.rows.clear();
        self.learns_at = LEARNING_ROWS;
        let events = self.held.drain(..).filter_map(|held| match held {
            QueueEntry::Strip(_) => None,
            QueueEntry::Event(event) => Some(event),
        });
        events.collect()
    }

    /// The web ends because of an error: the held strips are lost, and so are `strips` that are no longer held.
    /// Those behind them do not continue the web. Returns the held events.
    pub fn fail(&mut self, strips: u64) -> Vec<gst::Event> {
        let held = self
            .held
            .iter()
            .filter(|held| matches!(held, QueueEntry::Strip(_)));
        self.skipped += held.count() as u64 + strips;
        self.end(Reason::Discont)
    }

    /// Counts a strip that was dropped because it was late.
    pub fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Number of strips that were dropped since the last call.
    pub fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    /// Whether something is held.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Copies the strips that keep the memory of their source, which then has all of it again.
    pub fn give_memory_back(&mut self) {
        for held in &mut self.held {
            if let QueueEntry::Strip(strip) = held
                && let Ok(copy) = strip.buffer.copy_deep()
            {
                strip.buffer = copy;
            }
        }
    }

    /// Holds an event behind the strips. GAP events without a strip between them become one: a source may send
    /// them for hours while the web stands still.
    pub fn hold_event(&mut self, event: gst::Event) {
        if let Some(QueueEntry::Event(last)) = self.held.back_mut()
            && let Some(both) = gap_of_both(last, &event)
        {
            *last = both;
            return;
        }
        self.held.push_back(QueueEntry::Event(event));
    }

    /// Adds a strip. Returns why a web begins with it, if one does. Its buffer stays in use until
    /// [`Self::release_source`].
    ///
    /// # Errors
    /// The frame cannot be read; the device is out of memory; a failing call.
    pub fn add(
        &mut self,
        importer: &mut Importer,
        buffer: gst::Buffer,
        reach: &Reach,
        learning: Learning,
        keeps_memory: bool,
    ) -> Result<Option<Reason>, ClError> {
        let past = self.rows.past();
        let oldest = self.held.iter().find_map(|held| match held {
            QueueEntry::Strip(strip) => Some(strip),
            QueueEntry::Event(_) => None,
        });
        let mut keep = oldest.map_or(past, |oldest| oldest.rows.start);
        keep = keep.saturating_sub(reach.above() as u64);
        // The oldest strip is inspected next.
        let needed = oldest.map_or(0, |oldest| end_below(oldest, reach));
        if learning != Learning::Off {
            let next = past + self.height as u64;
            let is_first = self.learns_at == LEARNING_ROWS;
            // The first rows from which the element learns are the first kept ones, so none of them is dropped before.
            let from = if is_first { 0 } else { next };
            keep = keep.min(from.saturating_sub(LEARNING_ROWS));
        }
        let is_corrupted = stream::is_corrupted(&buffer);
        let (frame, copied) = importer.import_strip(&buffer, &mut self.rows, keep, needed)?;
        let offset = offset_of(&buffer);
        if let (Some(before), Some(offset)) = (self.offset, offset) {
            let step = offset.saturating_sub(before);
            self.counts_bytes = step > 1 && step == self.size;
        }
        self.offset = offset;
        self.size = buffer.size() as u64;
        let held = if keeps_memory {
            buffer.clone()
        } else {
            without_memory(&buffer)?
        };
        // The next user of OpenCL memory is ordered after the copy or the upload.
        self.incoming = (frame.taken() != ImportPath::ZeroCopy).then_some(Incoming {
            frame,
            copied,
            _buffer: buffer,
        });
        let rows = past..past + self.height as u64;
        if is_corrupted {
            self.corrupted.push_back(rows.clone());
        }
        let first = self.rows.first();
        while self.corrupted.front().is_some_and(|rows| rows.end <= first) {
            self.corrupted.pop_front();
        }
        self.held
            .push_back(QueueEntry::Strip(Strip { buffer: held, rows }));
        Ok(self.begins.take())
    }

    /// Releases the buffer of the strip that came last, after the device has read it. Called when the strips that it
    /// completes have been sent: the device works on them beside the upload.
    ///
    /// # Errors
    /// The copy or the upload has failed.
    pub fn release_source(&mut self) -> Result<(), ClError> {
        let Some(mut incoming) = self.incoming.take() else {
            return Ok(());
        };
        incoming.frame.wait_for_upload()?;
        if incoming.frame.taken() == ImportPath::Wrapped {
            incoming.copied.wait("a strip")?;
        }
        Ok(())
    }

    /// The rows to learn from, if it is time: a frame and its number of rows. `ends`: no more rows come.
    ///
    /// # Errors
    /// Nothing has come.
    pub fn learn_from(&mut self, ends: bool) -> Result<Option<(ClFrame, usize)>, ClError> {
        let (first, past) = (self.rows.first(), self.rows.past());
        let is_first = self.learns_at == LEARNING_ROWS;
        let due = if is_first {
            // Not the web's first rows, if the element did not learn then.
            past >= first + LEARNING_ROWS || (ends && past > 0)
        } else {
            past >= self.learns_at
        };
        if !due {
            return Ok(None);
        }
        // The first rows do not depend on where the web is cut.
        let end = if is_first {
            past.min(first + LEARNING_ROWS)
        } else {
            past
        };
        let from = end.saturating_sub(LEARNING_ROWS).max(first);
        self.learns_at = past + LEARNING_ROWS;
        if self.is_corrupted(from, (end - from) as usize) {
            return Ok(None);
        }
        Ok(Some((self.rows.frame(from, end)?, (end - from) as usize)))
    }

    /// Takes the next held strip or event, if the rows that it needs have come. `ends`: no more rows
    /// come.
    pub fn take(&mut self, reach: &Reach, ends: bool, learning: Learning) -> Option<QueueEntry> {
        let may_leave = match self.held.front()? {
            QueueEntry::Event(_) => true,
            QueueEntry::Strip(strip) => {
                let has_learned = learning != Learning::Needed || self.learns_at > LEARNING_ROWS;
                ends || (has_learned && self.rows.past() >= reach.to_come(&strip.rows))
            }
        };
        may_leave.then(|| self.held.pop_front()).flatten()
    }

    /// The rows of the web around a strip, as a frame and the strip's place in it.
    ///
    /// # Errors
    /// Nothing has come.
    pub fn around(
        &self,
        strip: &Strip,
        reach: &Reach,
        ends: bool,
    ) -> Result<(ClFrame, Window), ClError> {
        let from = strip.rows.start.saturating_sub(reach.above() as u64);
        // Rows of subsampled planes belong to two or four rows.
        let from = (from & !3).max(self.rows.first());
        // Rows further below may still be on their way to the device.
        let past = self.rows.past();
        let until = if ends {
            past
        } else {
            end_below(strip, reach).min(past)
        };
        let window = Window {
            first: (strip.rows.start - from) as usize,
            rows: self.height,
            height: (until - from) as usize,
            web_row: from,
            is_web: true,
            ends,
        };
        Ok((self.rows.frame(from, until)?, window))
    }

    /// Whether the source flagged one of `rows` rows from the web's row `from` on as corrupted.
    pub fn is_corrupted(&self, from: u64, rows: usize) -> bool {
        let end = from + rows as u64;
        let mut corrupted = self.corrupted.iter();
        corrupted.any(|rows| rows.start < end && from < rows.end)
    }

    /// Buffers that are held at most, for the latency.
    pub fn most_held(&self, reach: &Reach, learning: Learning) -> u64 {
        let mut rows = reach.below();
        if learning == Learning::Needed {
            rows = rows.max((LEARNING_ROWS as usize).saturating_sub(self.height));
        }
        rows.div_ceil(self.height.max(1)) as u64
    }
}

/// Number of the web's row behind those that a strip needs, a multiple of 4: rows of subsampled planes belong to two
/// or four rows.
fn end_below(strip: &Strip, reach: &Reach) -> u64 {
    (strip.rows.end + reach.below() as u64).next_multiple_of(4)
}

fn offset_of(buffer: &gst::BufferRef) -> Option<u64> {
    let offset = buffer.offset();
    (offset != gst::ffi::GST_BUFFER_OFFSET_NONE).then_some(offset)
}

/// One GAP event for two.
fn gap_of_both(first: &gst::Event, second: &gst::Event) -> Option<gst::Event> {
    let (gst::EventView::Gap(before), gst::EventView::Gap(gap)) = (first.view(), second.view())
    else {
        return None;
    };
    let offset = second.running_time_offset();
    if first.running_time_offset() != offset {
        return None;
    }
    let ((from, _), (again, duration)) = (before.get(), gap.get());
    let from = from.min(again);
    // Nobody knows where a gap without a duration ends.
    let until = duration.map(|duration| again.saturating_add(duration));
    let both = gst::event::Gap::builder(from)
        .duration(until.map(|until| until.saturating_sub(from)))
        .seqnum(second.seqnum())
        .running_time_offset(offset);
    Some(both.build())
}

/// Times, flags and metas of a buffer.
fn without_memory(buffer: &gst::BufferRef) -> Result<gst::Buffer, ClError> {
    let flags =
        gst::BufferCopyFlags::FLAGS | gst::BufferCopyFlags::TIMESTAMPS | gst::BufferCopyFlags::META;
    buffer
        .copy_region(flags, ..)
        .map_err(|_| ClError::Input("cannot copy the metas of a buffer".into()))
}
