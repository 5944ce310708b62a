//! Strips that are uploaded straight into the rows of their web, on a CPU that claims to be a GPU.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_opencl::{
    self as opencl, ClBuffer, ClContext, Completion, Memory, Meter, Rows,
    frame::{ClFrame, Importer, WebRows},
};

use crate::{cases::GPU, layer, stand::Trace, waits::Scenario};

pub const SCENARIOS: [Scenario; 4] = [
    ("the first rows of a strip", first_rows),
    ("rows that the device still reads", rows_in_use),
    ("a strip whose upload fails", failed_upload),
    ("a strip whose last rows fail", failed_later_rows),
];

/// Rows of a strip and bytes of a row: strips are large enough to be uploaded in two parts.
pub const SIDE: usize = 1024;
/// Rows of a strip that are needed before the others.
pub const NEEDED: u64 = 64;
/// Time by which a command is held, ms.
const HELD_MS: u64 = 1500;

pub fn text(error: impl ToString) -> String {
    error.to_string()
}

pub fn picture(number: usize) -> Vec<u8> {
    let byte = |i: usize| (i % 251 + i / SIDE % 7) as u8 ^ (37 * number) as u8;
    (0..SIDE * SIDE).map(byte).collect()
}

struct Web {
    context: Arc<ClContext>,
    importer: Importer,
    rows: WebRows,
    strips: usize,
}

impl Web {
    fn new() -> Result<Self, String> {
        layer::set_rules(GPU);
        let context = opencl::open("auto").map_err(text)?;
        let info = info()?;
        let meter = Meter::new(false);
        let importer = Importer::new(&context, &meter, &info).map_err(text)?;
        let rows = WebRows::new(&context, importer.layout(), &meter).map_err(text)?;
        Ok(Self {
            context,
            importer,
            rows,
            strips: 0,
        })
    }

    /// Adds the next strip, in the memory of `buffer`; `kept` rows before it stay.
    fn add(&mut self, buffer: &mut gst::Buffer, kept: u64) -> Result<ClFrame, String> {
        let writable = buffer.get_mut().ok_or("the strip is still in use")?;
        let copied = writable.copy_from_slice(0, &picture(self.strips));
        copied.map_err(|n| format!("{n} bytes"))?;
        self.strips += 1;
        let past = self.rows.past();
        let (keep, needed) = (past.saturating_sub(kept), past + NEEDED);
        let strip = self
            .importer
            .import_strip(buffer, &mut self.rows, keep, needed);
        strip.map(|(strip, _)| strip).map_err(text)
    }

    /// Adds a strip until its memory is pinned, which allows an upload in two parts.
    fn pinned(&mut self) -> Result<gst::Buffer, String> {
        let mut buffer = memory()?;
        for _ in 0..2 {
            self.add(&mut buffer, 0)?.wait_for_upload().map_err(text)?;
        }
        match self.context.has_pinned(buffer.peek_memory(0)) {
            true => Ok(buffer),
            false => Err("memory is not pinned for its second strip".into()),
        }
    }

    /// Enqueues a copy of the first `count` rows of the last strip.
    fn read(&self, count: u64) -> Result<(ClBuffer, Completion), String> {
        let from = self.rows.past() - SIDE as u64;
        read_rows(&self.context, &self.rows, from, from + count)
    }

    /// Compares the first `count` rows of the last strip.
    fn compare(&self, count: u64) -> Result<(), String> {
        compare(&self.read(count)?, self.strips - 1)
    }
}

/// GRAY8 strips of `SIDE` rows and columns.
pub fn info() -> Result<gst_video::VideoInfo, String> {
    let side = SIDE as u32;
    gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, side, side)
        .build()
        .map_err(text)
}

/// Enqueues a copy of the web's rows from `from` to before `until`.
pub fn read_rows(
    context: &Arc<ClContext>,
    rows: &WebRows,
    from: u64,
    until: u64,
) -> Result<(ClBuffer, Completion), String> {
    let frame = rows.frame(from, until).map_err(text)?;
    let plane = frame.plane(0).map_err(text)?;
    let meter = Meter::new(false);
    let count = (until - from) as usize;
    let out = ClBuffer::new(context, count * SIDE, &meter).map_err(text)?;
    let from = Rows {
        memory: plane.memory(),
        offset: plane.offset,
        stride: plane.stride,
    };
    let to = Rows {
        memory: Memory::Buffer(&out),
        offset: 0,
        stride: SIDE,
    };
    let mut submission = context.submit(&meter, count * SIDE);
    submission.copy(from, to, SIDE, count).map_err(text)?;
    let done = submission.send().map_err(text)?;
    Ok((out, done))
}

pub fn memory() -> Result<gst::Buffer, String> {
    gst::Buffer::with_size(SIDE * SIDE).map_err(text)
}

/// Compares rows that were read with those of strip `number`.
fn compare((out, done): &(ClBuffer, Completion), number: usize) -> Result<(), String> {
    done.wait("rows").map_err(text)?;
    let picture = picture(number);
    let is_same = out.read_with(|bytes| picture.starts_with(bytes));
    match is_same.map_err(text)? {
        true => Ok(()),
        false => Err(format!("rows of strip {number} are wrong")),
    }
}

/// A reader of the first rows of a strip does not wait for the others; a reader of all rows waits.
fn first_rows(_: &Trace) -> Result<(), String> {
    let mut web = Web::new()?;
    let mut buffer = web.pinned()?;
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 2 hold {HELD_MS}"));
    let begun = Instant::now();
    let mut strip = web.add(&mut buffer, 0)?;
    web.compare(NEEDED)?;
    if begun.elapsed() > Duration::from_millis(HELD_MS / 2) {
        return Err(format!("the first rows took {:?}", begun.elapsed()));
    }
    web.compare(SIDE as u64)?;
    strip.wait_for_upload().map_err(text)?;
    layer::set_rules(GPU);
    match begun.elapsed() < Duration::from_millis(HELD_MS) {
        true => Err("the strip was not uploaded in two parts".into()),
        false => Ok(()),
    }
}

/// An upload waits for the commands that read what it overwrites: the memory of the rows is used again and again.
fn rows_in_use(_: &Trace) -> Result<(), String> {
    for kept in [0, NEEDED] {
        let mut web = Web::new()?;
        let mut buffer = web.pinned()?;
        // All commands that read wait behind the first one.
        layer::set_rules(&format!("{GPU}clEnqueueCopyBuffer 1 hold {HELD_MS}"));
        let mut reads = Vec::new();
        for _ in 0..14 {
            let number = web.strips;
            let mut strip = web.add(&mut buffer, kept)?;
            reads.push((number, web.read(SIDE as u64)?));
            strip.wait_for_upload().map_err(text)?;
        }
        for (number, read) in &reads {
            compare(read, *number)?;
        }
        layer::set_rules(GPU);
    }
    Ok(())
}

/// The failure of an upload reaches each reader of its rows or of later ones, but not the next web.
fn failed_upload(_: &Trace) -> Result<(), String> {
    let mut web = Web::new()?;
    for _ in 0..2 {
        web.add(&mut memory()?, 0)?;
        web.compare(SIDE as u64)?;
    }
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 1 late -5"));
    web.add(&mut memory()?, NEEDED)?;
    layer::set_rules(GPU);
    for _ in 0..2 {
        web.add(&mut memory()?, NEEDED)?;
        if web.compare(SIDE as u64).is_ok() {
            return Err("rows behind those that failed can be read".into());
        }
    }
    web.rows.clear();
    web.add(&mut memory()?, 0)?;
    web.compare(SIDE as u64)
}

/// The failure of the later part of an upload is an error of the strip, whose first rows are good.
fn failed_later_rows(_: &Trace) -> Result<(), String> {
    let mut web = Web::new()?;
    let mut buffer = web.pinned()?;
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 2 late -5"));
    let mut strip = web.add(&mut buffer, 0)?;
    layer::set_rules(GPU);
    web.compare(NEEDED)?;
    match strip.wait_for_upload() {
        Ok(()) => Err("no error".into()),
        Err(_) => Ok(()),
    }
}
