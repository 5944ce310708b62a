//! Strips in OpenCL memory, which are copied to the rows of their web, on a CPU that claims to be a GPU.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_opencl::{
    self as opencl, ClAllocator, ClContext, Meter,
    frame::{Importer, WebRows},
};
use gst::prelude::*;

use crate::{
    cases::GPU,
    layer,
    stand::Trace,
    strips::{NEEDED, SIDE, info, memory, picture, read_rows, text},
    waits::Scenario,
};

pub const SCENARIOS: [Scenario; 6] = [
    ("strips in OpenCL memory", in_order),
    ("strips in OpenCL memory in any order", in_any_order),
    (
        "a strip that is written while the device reads it",
        written_again,
    ),
    ("rows that are read while strips are written", rows_in_use),
    ("a strip in OpenCL memory whose upload fails", failed_upload),
    ("kept rows whose move fails", failed_move),
];

/// A source of strips, and their web.
struct Line {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    importer: Importer,
    allocator: ClAllocator,
    rows: WebRows,
    /// Buffers that nobody uses.
    free: Vec<gst::Buffer>,
    /// The number of the next strip.
    number: usize,
    /// The strips of the web.
    web: Vec<usize>,
}

impl Line {
    fn new() -> Result<Self, String> {
        layer::set_rules(GPU);
        let context = opencl::open("auto").map_err(text)?;
        let meter = Meter::new(false);
        let importer = Importer::new(&context, &meter, &info()?).map_err(text)?;
        let rows = WebRows::new(&context, importer.layout(), &meter).map_err(text)?;
        let allocator = ClAllocator::new(&context, &meter);
        Ok(Self {
            context,
            meter,
            importer,
            allocator,
            rows,
            free: Vec::new(),
            number: 0,
            web: Vec::new(),
        })
    }

    /// A buffer of the source's pool.
    fn buffer(&mut self) -> Result<gst::Buffer, String> {
        if let Some(buffer) = self.free.pop() {
            return Ok(buffer);
        }
        let mut buffer = gst::Buffer::new();
        let memory = self.allocator.alloc(SIDE * SIDE, None).map_err(text)?;
        buffer.make_mut().append_memory(memory);
        Ok(buffer)
    }

    /// Writes the next strip.
    fn write(&mut self) -> Result<(usize, gst::Buffer), String> {
        let mut buffer = self.buffer()?;
        let number = self.number;
        self.number += 1;
        rewrite(&mut buffer, number)?;
        Ok((number, buffer))
    }

    /// Adds a strip to the web; `kept` rows before it stay.
    fn add(&mut self, (number, buffer): (usize, gst::Buffer), kept: u64) -> Result<(), String> {
        let past = self.past();
        let is_last = buffer.is_all_memory_writable();
        let (keep, needed) = (past.saturating_sub(kept), past + NEEDED);
        let strip = self
            .importer
            .import_strip(&buffer, &mut self.rows, keep, needed);
        strip.map_err(text)?.0.wait_for_upload().map_err(text)?;
        self.web.push(number);
        let is_own = buffer.peek_memory(0).allocator() == Some(self.allocator.upcast_ref());
        if is_last && is_own {
            self.free.push(buffer);
        }
        Ok(())
    }

    /// Adds `count` strips, each of which is written when `ahead` strips before it were not added yet.
    fn play(&mut self, count: usize, ahead: usize, kept: u64) -> Result<(), String> {
        let mut written = VecDeque::new();
        for _ in 0..count {
            while written.len() < ahead {
                written.push_back(self.write()?);
            }
            self.add(written.pop_front().ok_or("no strip")?, kept)?;
            self.compare(SIDE as u64 + kept)?;
        }
        Ok(())
    }

    fn past(&self) -> u64 {
        (self.web.len() * SIDE) as u64
    }

    /// Compares the last `count` rows of the web.
    fn compare(&self, count: u64) -> Result<(), String> {
        let from = self.past().saturating_sub(count);
        let from = from.max(self.rows.first());
        let (out, done) = read_rows(&self.context, &self.rows, from, self.past())?;
        done.wait("rows").map_err(text)?;
        let from = from as usize * SIDE;
        let web = self.web[from / (SIDE * SIDE)..].iter();
        let expected: Vec<u8> = web.flat_map(|&number| picture(number)).collect();
        let expected = &expected[from % (SIDE * SIDE)..];
        match out.read_with(|bytes| bytes == expected).map_err(text)? {
            true => Ok(()),
            false => Err(format!("rows of the strips {:?} are wrong", self.web)),
        }
    }

    /// Another web gets the strips of the same memory.
    fn change_web(&mut self) -> Result<(), String> {
        let rows = WebRows::new(&self.context, self.importer.layout(), &self.meter);
        self.rows = rows.map_err(text)?;
        self.web.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.web.clear();
        self.rows.clear();
    }
}

fn rewrite(buffer: &mut gst::Buffer, number: usize) -> Result<(), String> {
    let writable = buffer.get_mut().ok_or("the strip is still in use")?;
    let mut bytes = writable.map_writable().map_err(text)?;
    bytes.copy_from_slice(&picture(number));
    Ok(())
}

/// Each strip is uploaded once, also from a source that is some strips ahead.
fn in_order(_: &Trace) -> Result<(), String> {
    for (ahead, kept) in [(1, 0), (1, NEEDED), (2, 100), (3, SIDE as u64), (4, 1500)] {
        let mut line = Line::new()?;
        line.play(40, ahead, kept)?;
        let totals = line.meter.totals();
        if totals.bytes_uploaded as usize != line.number * SIDE * SIDE {
            return Err(format!(
                "{} bytes for {} strips",
                totals.bytes_uploaded, line.number
            ));
        }
        if totals.host_maps < 40 {
            return Err("the source's maps are not counted".into());
        }
    }
    Ok(())
}

/// Strips that are lost, written twice, in another order, shared with others, or in another memory; webs that end.
fn in_any_order(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    let mut random = 1_u64;
    let mut next = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut written: VecDeque<(usize, gst::Buffer)> = VecDeque::new();
    let mut shared = Vec::new();
    // Uploads are slow, so a missing wait has wrong rows.
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 1+ hold 3"));
    for step in 0..400 {
        match next(24) {
            0 => drop(written.pop_front()),
            1 => {
                if let Some((number, buffer)) = written.back_mut().filter(|s| s.1.is_writable()) {
                    *number = line.number;
                    line.number += 1;
                    rewrite(buffer, *number)?;
                }
            }
            2 => {
                if let Some((number, buffer)) = written.front_mut().filter(|s| s.1.is_writable()) {
                    *number = line.number;
                    line.number += 1;
                    rewrite(buffer, *number)?;
                }
            }
            3 if written.len() > 1 => written.swap(0, 1),
            4 => {
                let mut own = memory()?;
                rewrite(&mut own, line.number)?;
                written.push_back((line.number, own));
                line.number += 1;
            }
            5 => {
                let strip = written.back();
                shared.extend(strip.map(|(number, buffer)| (*number, buffer.clone())));
            }
            6 if next(3) == 0 => match next(3) {
                0 => line.change_web()?,
                _ => line.clear(),
            },
            7..15 if written.len() < 4 => written.push_back(line.write()?),
            _ => {
                let strip = match written.pop_front() {
                    Some(strip) => strip,
                    None => line.write()?,
                };
                let kept = next(3) * 700;
                line.add(strip, kept)?;
                line.compare(SIDE as u64 + kept)
                    .map_err(|e| format!("step {step}: {e}"))?;
            }
        }
        while shared.len() > 2 {
            // A reader that shares a strip still reads what was written.
            let (number, buffer) = shared.remove(0);
            let bytes = buffer.map_readable().map_err(text)?;
            if *bytes != picture(number) {
                return Err(format!("step {step}: a shared strip has changed"));
            }
        }
    }
    layer::set_rules(GPU);
    Ok(())
}

/// A source that writes a strip again does not wait for the copy that reads it, and does not disturb it.
fn written_again(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    for _ in 0..2 {
        let strip = line.write()?;
        line.add(strip, 0)?;
    }
    layer::set_rules(&format!("{GPU}clEnqueueCopyBuffer 1 hold 500"));
    let begun = Instant::now();
    let strip = line.write()?;
    line.add(strip, 0)?;
    // The strip's buffer is the only free one.
    let next = line.write()?;
    let waited = begun.elapsed();
    layer::set_rules(GPU);
    line.compare(SIDE as u64)?;
    if waited >= Duration::from_millis(500) {
        return Err(format!("the source waited for {waited:?}"));
    }
    line.add(next, 0)?;
    line.compare(SIDE as u64)
}

/// A copy waits for the commands that read what it overwrites.
fn rows_in_use(_: &Trace) -> Result<(), String> {
    for kept in [0, NEEDED, SIDE as u64] {
        let mut line = Line::new()?;
        // All commands that read wait behind the first one.
        layer::set_rules(&format!("{GPU}clEnqueueCopyBuffer 1 hold 1500"));
        let mut reads = Vec::new();
        for _ in 0..14 {
            let strip = line.write()?;
            // The source has memory enough: it never waits for the device.
            let number = strip.0;
            line.add(strip, kept)?;
            line.free.clear();
            let from = line.past() - SIDE as u64;
            let read = read_rows(&line.context, &line.rows, from, line.past())?;
            reads.push((number, read));
        }
        layer::set_rules(GPU);
        for (number, (out, done)) in &reads {
            done.wait("rows").map_err(text)?;
            let picture = picture(*number);
            if !out.read_with(|bytes| bytes == picture).map_err(text)? {
                return Err(format!("rows of strip {number} were overwritten"));
            }
        }
    }
    Ok(())
}

/// The failure of an upload reaches each reader of its rows or of later ones, but not the next web.
fn failed_upload(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    for _ in 0..2 {
        let strip = line.write()?;
        line.add(strip, NEEDED)?;
        line.compare(SIDE as u64)?;
    }
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 1 late -5"));
    let strip = line.write()?;
    layer::set_rules(GPU);
    line.add(strip, NEEDED)?;
    // The commands on this memory have failed, and so would the next map.
    line.free.clear();
    for _ in 0..2 {
        if line.compare(SIDE as u64).is_ok() {
            return Err("rows that were not uploaded can be read".into());
        }
        let strip = line.write()?;
        line.add(strip, NEEDED)?;
        line.free.clear();
    }
    line.clear();
    let strip = line.write()?;
    line.add(strip, 0)?;
    line.compare(SIDE as u64)
}

/// The failure of the copy that moves the kept rows reaches all who read rows of that web.
fn failed_move(_: &Trace) -> Result<(), String> {
    let copies = |line: &mut Line| {
        let before = layer::Report::now().ok_or("no report")?;
        let strip = line.write()?;
        line.add(strip, NEEDED)?;
        let now = layer::Report::now().ok_or("no report")?;
        let calls = now.calls_since(&before);
        Ok::<_, String>(calls.get("clEnqueueCopyBuffer").copied().unwrap_or(0))
    };
    let mut line = Line::new()?;
    let mut count = 0;
    // The copy of a strip is one call, the move of the rows before it is another.
    while copies(&mut line)? < 2 {
        count += 1;
        if count > 12 {
            return Err("no rows were moved".into());
        }
    }
    let mut line = Line::new()?;
    for _ in 0..count {
        copies(&mut line)?;
        line.compare(SIDE as u64)?;
    }
    layer::set_rules(&format!("{GPU}clEnqueueCopyBuffer 1 late -5"));
    if copies(&mut line)? < 2 {
        return Err("the rows were not moved again".into());
    }
    layer::set_rules(GPU);
    for _ in 0..3 {
        if line.compare(SIDE as u64).is_ok() {
            return Err("rows can be read although others of their web were not moved".into());
        }
        copies(&mut line)?;
    }
    line.clear();
    let strip = line.write()?;
    line.add(strip, 0)?;
    line.compare(SIDE as u64)
}
