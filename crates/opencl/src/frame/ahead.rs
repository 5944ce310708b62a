//! Strips on their way to their rows before they reach the element: their source's thread uploads them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use clinspect_core::ClError;

use super::{ClFrame, upload::Span, web_rows::WebRows};
use crate::{Completion, event::Event, log::CAT};

/// The web to which the memory of an allocator belongs, once there is one.
#[derive(Debug, Default)]
pub(crate) struct Destination(Mutex<Weak<Mutex<WebRows>>>);

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

/// A strip on its way.
#[derive(Debug)]
struct Coming {
    number: u64,
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
    /// Number of the strip that was written last, and of the one that came last.
    written: u64,
    come: u64,
    /// Number of the last strip that is not on its way: those behind it have no place before it comes.
    without_place: u64,
    strips: VecDeque<Coming>,
    /// Rows of the next strip that the strip before it needs.
    pub soon: usize,
    /// Rows that are kept when a strip comes.
    pub kept: usize,
    /// The last upload of a strip that will not be taken.
    stray: Option<Completion>,
}

impl Ahead {
    pub fn new(spans: Vec<Span>) -> Self {
        Self {
            spans,
            written: 0,
            come: 0,
            without_place: 0,
            strips: VecDeque::new(),
            soon: 0,
            kept: 0,
            stray: None,
        }
    }

    /// Forgets the strips that are on their way: they will be uploaded again when they come.
    pub fn forget(&mut self) {
        if let Some(last) = self.strips.pop_back() {
            self.stray = Some(last.last);
            self.strips.clear();
            self.without_place = self.written;
        }
    }

    /// An upload that still writes into the memory although its strip was forgotten.
    pub fn stray(&mut self) -> Option<&Completion> {
        self.stray = self.stray.take().filter(|stray| !stray.last.has_ended());
        self.stray.as_ref()
    }

    fn take_back(&mut self, number: u64) {
        if self.strips.back().is_some_and(|last| last.number == number) {
            self.stray = self.strips.pop_back().map(|last| last.last);
        }
    }
}

impl WebRows {
    /// See [`Destination::send`].
    unsafe fn send_ahead(&mut self, bytes: &[u8]) -> (StripNumber, Option<Arc<Event>>) {
        self.ahead.written += 1;
        let number = self.ahead.written;
        let mut last = None;
        // SAFETY: the caller keeps the bytes.
        let sent = unsafe { self.try_ahead(bytes, &mut last) };
        match sent {
            Ok(true) => {}
            Ok(false) => self.ahead.without_place = number,
            Err(error) => {
                // The element uploads the strip itself, and tells if that fails.
                gst::warning!(CAT, "a strip is not uploaded before it comes: {error}");
                self.ahead.without_place = number;
                if let Some(last) = &last {
                    self.ahead.stray = Some(self.completion(last.clone()));
                }
            }
        }
        (StripNumber(number), last)
    }

    /// Returns whether the strip is on its way; `last`: the last upload that reads the bytes.
    unsafe fn try_ahead(
        &mut self,
        bytes: &[u8],
        last: &mut Option<Arc<Event>>,
    ) -> Result<bool, ClError> {
        let Some(memory) = self.memory.clone() else {
            return Ok(false);
        };
        let ahead = &self.ahead;
        let end = ahead.spans.last().map_or(0, |span| span.skip + span.len);
        if ahead.without_place > ahead.come || end == 0 || bytes.len() < end {
            return Ok(false);
        }
        let Some(row) = self.next_place() else {
            return Ok(false);
        };
        let before = ahead.strips.back().map(|strip| &strip.last);
        let before = before.or(self.copied.as_ref()).map(|c| c.last.clone());
        let (spans, count, rows) = self.parts(&memory, &ahead.spans, row, ahead.soon)?;
        let mut writes = memory.begin_writes(before.as_ref())?;
        let mut soon = None;
        for (index, span) in spans.iter().enumerate() {
            let part = &bytes[span.skip..span.skip + span.len];
            // SAFETY: the caller keeps the bytes.
            let written = unsafe { writes.write(span.start, part.as_ptr(), part.len()) };
            *last = writes.last();
            written?;
            if index + 1 == count && count < spans.len() {
                soon = writes.last();
            }
        }
        let Some(event) = writes.end() else {
            return Ok(false);
        };
        let coming = Coming {
            number: self.ahead.written,
            row,
            soon: soon.map(|event| (rows, self.completion(event))),
            last: self.completion(event),
        };
        self.ahead.strips.push_back(coming);
        Ok(true)
    }

    /// Row of the memory for the next strip: behind the last one, or near the start of the memory, behind a place
    /// for the rows that are kept then. `None` if there are rows that are still needed.
    fn next_place(&self) -> Option<usize> {
        let past = self.at + self.rows;
        let last = self.ahead.strips.back().map(|strip| strip.row);
        let end = last.map_or(past, |row| row + self.height);
        let is_behind = last.is_none_or(|row| row >= past);
        if is_behind && end + self.height <= self.capacity {
            return Some(end);
        }
        let row = if is_behind {
            self.ahead.kept.next_multiple_of(self.step)
        } else {
            end
        };
        (row + self.height <= self.at).then_some(row)
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
        let ahead = &mut self.ahead;
        ahead.come = ahead.come.max(number.0);
        let is_next = ahead.strips.front().map(|strip| strip.number) == Some(number.0);
        let Some(strip) = is_next.then(|| ahead.strips.pop_front()).flatten() else {
            return Ok(None);
        };
        let lies_there = ahead
            .spans
            .iter()
            .map(Span::place)
            .eq(spans.iter().map(Span::place));
        self.drop_rows(keep);
        let is_behind = strip.row == self.at + self.rows;
        if !lies_there || !(is_behind || self.move_before(strip.row)?) {
            // The others lie behind this one.
            self.ahead.strips.push_front(strip);
            self.ahead.forget();
            return Ok(None);
        }
        let past = self.past();
        self.soon = strip.soon.map(|(rows, soon)| (past + rows as u64, soon));
        self.copied = Some(strip.last.clone());
        self.rows += self.height;
        Ok(Some((self.frame(past, self.past())?, strip.last)))
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
