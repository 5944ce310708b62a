//! Strips on their way to their rows before they reach the element: their source's thread uploads them.

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use clinspect_core::ClError;

use super::{ClFrame, upload::Span, web_rows::WebRows};
use crate::{Completion, event::Event, log::CAT};

/// The web to which the memory of an allocator belongs, once there is one.
#[derive(Debug, Default)]
pub(crate) struct Destination(Mutex<Weak<Mutex<WebRows>>>);

/// The number of the next strip that a source writes. No two strips of a process have the same one: a source may keep
/// a strip and send it to another web.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A strip that a source has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StripNumber(u64);

impl Destination {
    /// Strips go to `rows` from now on.
    pub fn set(&self, rows: &Arc<Mutex<WebRows>>) {
        *lock(&self.0) = Arc::downgrade(rows);
    }

    /// Uploads a strip that a source has written, if there is a place for it. Returns its number, and the last
    /// upload that reads the bytes.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until the upload has ended.
    pub unsafe fn send(&self, bytes: &[u8]) -> Option<(StripNumber, Option<Arc<Event>>)> {
        let rows = lock(&self.0).upgrade()?;
        // SAFETY: the caller keeps the bytes.
        Some(unsafe { lock(&rows).send_ahead(bytes) })
    }

    /// The source writes a strip again that has a number.
    pub fn take_back(&self, number: StripNumber) {
        let rows = lock(&self.0).upgrade();
        if let Some(rows) = rows {
            lock(&rows).ahead.take_back(number.0);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way of a strip to its rows.
#[derive(Debug)]
struct Way {
    /// Row of the memory at which it begins.
    row: usize,
    /// Its first rows, and the upload that brings them, if others follow.
    soon: Option<(usize, Completion)>,
    last: Completion,
}

/// What a web knows of the strips that its source has written.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Where the planes of a strip lie in its memory; empty if their rows are not as far apart as the web's.
    spans: Vec<Span>,
    /// The strips that have not come, by their numbers, and their ways, if they are on their way.
    strips: VecDeque<(u64, Option<Way>)>,
    /// Rows of the next strip that the strip before it needs.
    pub soon: usize,
    /// Rows that are kept when a strip comes.
    pub kept: usize,
    /// The last upload. Those before it have ended when it has.
    latest: Option<Completion>,
    /// An upload that may still write into the memory although its strip will not be taken.
    stray: Option<Completion>,
}

impl Ahead {
    pub fn new(spans: Vec<Span>) -> Self {
        Self {
            spans,
            strips: VecDeque::new(),
            soon: 0,
            kept: 0,
            latest: None,
            stray: None,
        }
    }

    /// The strips that are on their way will be uploaded again when they come.
    pub fn forget(&mut self) {
        let ways = self.strips.iter_mut().filter_map(|(_, way)| way.take());
        if ways.count() > 0 {
            self.note_stray();
        }
    }

    /// A web begins: all uploads so far are strays.
    pub fn forget_all(&mut self) {
        self.forget();
        self.note_stray();
        (self.soon, self.kept) = (0, 0);
    }

    fn note_stray(&mut self) {
        self.stray = self.latest.clone();
    }

    /// Number of strips that have not come.
    pub fn count(&self) -> usize {
        self.strips.len()
    }

    /// Whether a strip is on its way to these rows of the memory.
    pub fn uses(&self, rows: &Range<usize>, height: usize) -> bool {
        let mut ways = self.strips.iter().filter_map(|(_, way)| way.as_ref());
        ways.any(|way| way.row < rows.end && rows.start < way.row + height)
    }

    /// An upload that still writes into the memory although its strip was forgotten.
    pub fn stray(&self) -> Option<&Completion> {
        self.stray.as_ref().filter(|stray| !stray.last.has_ended())
    }

    fn take_back(&mut self, number: u64) {
        let index = self.strips.iter().position(|(known, _)| *known == number);
        if let Some((_, Some(_))) = index.and_then(|index| self.strips.remove(index)) {
            self.note_stray();
        }
    }

    /// The way of the strip that has come. Those before it are lost.
    fn take(&mut self, number: u64) -> Option<Way> {
        while self
            .strips
            .front()
            .is_some_and(|(known, _)| *known < number)
        {
            if let Some((_, Some(_))) = self.strips.pop_front() {
                self.note_stray();
            }
        }
        let is_first = self
            .strips
            .front()
            .is_some_and(|(known, _)| *known == number);
        is_first.then(|| self.strips.pop_front()).flatten()?.1
    }
}

impl WebRows {
    /// See [`Destination::send`].
    unsafe fn send_ahead(&mut self, bytes: &[u8]) -> (StripNumber, Option<Arc<Event>>) {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut last = None;
        // SAFETY: the caller keeps the bytes.
        let way = unsafe { self.try_ahead(bytes, &mut last) }.unwrap_or_else(|error| {
            // The element uploads the strip itself, and tells if that fails.
            gst::warning!(CAT, "a strip is not uploaded before it comes: {error}");
            self.ahead.note_stray();
            None
        });
        self.ahead.strips.push_back((number, way));
        (StripNumber(number), last)
    }

    /// Returns the strip's way, if there is a place for it; `last`: the last upload that reads the bytes.
    unsafe fn try_ahead(
        &mut self,
        bytes: &[u8],
        last: &mut Option<Arc<Event>>,
    ) -> Result<Option<Way>, ClError> {
        let Some(memory) = self.memory.clone() else {
            return Ok(None);
        };
        let ahead = &self.ahead;
        let end = ahead.spans.last().map_or(0, |span| span.skip + span.len);
        let Some(row) = self.next_place() else {
            return Ok(None);
        };
        if end == 0 || bytes.len() < end {
            return Ok(None);
        }
        let mut ways = ahead
            .strips
            .iter()
            .rev()
            .filter_map(|(_, way)| way.as_ref());
        let before = ways.next().map(|way| &way.last);
        let before = before.or(self.copied.as_ref()).map(|c| c.last.clone());
        let (spans, count, rows) = self.parts(&memory, &ahead.spans, row, ahead.soon)?;
        let mut writes = memory.begin_writes(before.as_ref())?;
        let mut soon = None;
        for (index, span) in spans.iter().enumerate() {
            let part = &bytes[span.skip..span.skip + span.len];
            // SAFETY: the caller keeps the bytes.
            let written = unsafe { writes.write(span.start, part.as_ptr(), part.len()) };
            *last = writes.last();
            self.ahead.latest = last.clone().map(|last| self.completion(last));
            written?;
            if index + 1 == count && count < spans.len() {
                soon = writes.last();
            }
        }
        Ok(writes.end().map(|event| Way {
            row,
            soon: soon.map(|event| (rows, self.completion(event))),
            last: self.completion(event),
        }))
    }

    /// Row of the memory for the next strip that is written: behind the strips before it, or near the start of the
    /// memory, behind a place for the rows that are kept then. `None` if that is not known, or if there are rows
    /// that are still needed.
    fn next_place(&self) -> Option<usize> {
        let past = self.at + self.rows;
        let strips = self.ahead.strips.iter().rev();
        // These will be uploaded when they come, behind the others.
        let without_way = strips.clone().take_while(|(_, way)| way.is_none()).count();
        let last = strips.filter_map(|(_, way)| way.as_ref()).next();
        let is_behind = last.is_none_or(|way| way.row >= past);
        let end = last.map_or(past, |way| way.row + self.height) + without_way * self.height;
        let limit = if is_behind { self.capacity } else { self.at };
        if end + self.height <= limit {
            return Some(end);
        }
        let row = self.ahead.kept.next_multiple_of(self.step);
        let is_free = is_behind && without_way == 0 && row + self.height <= self.at;
        is_free.then_some(row)
    }

    /// Takes the strip that was uploaded before it came, behind the rows that are there; rows before the web's row
    /// `keep` are no longer needed. `spans`: where its planes lie in its memory. `None` if it must be uploaded now.
    ///
    /// # Errors
    /// A failing call.
    pub(super) fn take_ahead(
        &mut self,
        number: StripNumber,
        spans: &[Span],
        keep: u64,
    ) -> Result<Option<(ClFrame, Completion)>, ClError> {
        let Some(way) = self.ahead.take(number.0) else {
            return Ok(None);
        };
        let own = self.ahead.spans.iter().map(Span::place);
        let lies_there = own.eq(spans.iter().map(Span::place));
        self.drop_rows(keep);
        let is_behind = way.row == self.at + self.rows;
        if !lies_there || !(is_behind || self.move_before(way.row)?) {
            self.ahead.forget();
            self.ahead.note_stray();
            return Ok(None);
        }
        let past = self.past();
        self.soon = way.soon.map(|(rows, soon)| (past + rows as u64, soon));
        self.copied = Some(way.last.clone());
        self.rows += self.height;
        Ok(Some((self.frame(past, self.past())?, way.last)))
    }

    /// Moves the kept rows before the strip at row `row` of the memory. Returns false if they do not fit there.
    fn move_before(&mut self, row: usize) -> Result<bool, ClError> {
        let (Some(memory), true) = (self.memory.clone(), self.rows <= row && row < self.at) else {
            return Ok(false);
        };
        let to = row - self.rows;
        if self.rows > 0 {
            let (memory, capacity) = (&*memory, self.capacity);
            self.moved = Some(self.copy_kept((memory, capacity, self.at), (memory, capacity, to))?);
        }
        self.at = to;
        Ok(true)
    }
}
