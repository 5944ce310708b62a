//! Strips that a source writes into a web's memory, and that are uploaded to their rows before they come, on a CPU
//! that claims to be a GPU.

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
    strips::{SIDE, SOON, info, memory, picture, read_rows, text},
    waits::Scenario,
};

pub const SCENARIOS: [Scenario; 8] = [
    ("strips written ahead", in_order),
    ("strips written ahead after a loss", after_a_loss),
    ("strips written twice before they come", written_twice),
    ("strips written ahead in any way", in_any_way),
    (
        "a strip that is written while the device reads it",
        written_again,
    ),
    ("rows that are read while strips are written", rows_in_use),
    ("a strip written ahead whose upload fails", failed_upload),
    ("kept rows whose move fails", failed_move),
];

/// A source's memory and the web to which it belongs.
struct Line {
    context: Arc<ClContext>,
    meter: Arc<Meter>,
    importer: Importer,
    allocator: ClAllocator,
    rows: Arc<std::sync::Mutex<WebRows>>,
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
        let rows = Arc::new(std::sync::Mutex::new(
            WebRows::new(&importer).map_err(text)?,
        ));
        let allocator = ClAllocator::for_strips(&context, &meter);
        allocator.set_rows(&rows);
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

    /// Brings a strip to the web; `kept` rows before it stay.
    fn add(&mut self, (number, buffer): (usize, gst::Buffer), kept: u64) -> Result<(), String> {
        let past = self.past();
        let is_last = buffer.is_all_memory_writable();
        let (keep, soon) = (past.saturating_sub(kept), past + SOON);
        let strip = self
            .importer
            .import_strip(&buffer, &self.rows, keep, soon, is_last);
        strip.map_err(text)?.0.wait_for_upload().map_err(text)?;
        self.web.push(number);
        let is_own = buffer.peek_memory(0).allocator() == Some(self.allocator.upcast_ref());
        if is_last && is_own {
            self.free.push(buffer);
        }
        Ok(())
    }

    /// Brings `count` strips that are written `ahead` strips before they come. Returns how many were uploaded before.
    fn play(
        &mut self,
        count: usize,
        ahead: usize,
        kept: u64,
        write: impl Fn(&mut Self) -> Result<(usize, gst::Buffer), String>,
    ) -> Result<usize, String> {
        let mut written = VecDeque::new();
        let mut early = 0;
        for _ in 0..count {
            while written.len() < ahead {
                written.push_back(write(self)?);
            }
            let before = self.meter.totals().bytes_uploaded;
            self.add(written.pop_front().ok_or("no strip")?, kept)?;
            early += usize::from(self.meter.totals().bytes_uploaded == before);
            self.compare(SIDE as u64 + kept)?;
        }
        Ok(early)
    }

    fn past(&self) -> u64 {
        (self.web.len() * SIDE) as u64
    }

    /// Compares the last `count` rows of the web.
    fn compare(&self, count: u64) -> Result<(), String> {
        let from = self.past().saturating_sub(count);
        let rows = self.rows.lock().map_err(text)?;
        let from = from.max(rows.first());
        let (out, done) = read_rows(&self.context, &rows, from, self.past())?;
        drop(rows);
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
        let rows = WebRows::new(&self.importer).map_err(text)?;
        self.rows = Arc::new(std::sync::Mutex::new(rows));
        self.allocator.set_rows(&self.rows);
        self.web.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.web.clear();
        self.rows.lock().unwrap().clear();
    }
}

fn rewrite(buffer: &mut gst::Buffer, number: usize) -> Result<(), String> {
    let writable = buffer.get_mut().ok_or("the strip is still in use")?;
    let mut bytes = writable.map_writable().map_err(text)?;
    bytes.copy_from_slice(&picture(number));
    Ok(())
}

/// A source that is some strips ahead: each strip crosses the bus once, nearly all of them before they come.
fn in_order(_: &Trace) -> Result<(), String> {
    for (ahead, kept) in [(1, 0), (1, SOON), (2, 100), (3, SIDE as u64), (4, 1500)] {
        let mut line = Line::new()?;
        let early = line.play(40, ahead, kept, Line::write)?;
        let sent = line.meter.totals().bytes_uploaded as usize;
        let strips = sent / (SIDE * SIDE);
        if !sent.is_multiple_of(SIDE * SIDE) || strips > 40 + ahead {
            return Err(format!(
                "{ahead} ahead, {kept} rows kept: {sent} bytes for 40 strips"
            ));
        }
        if early < 40 - 2 * ahead {
            return Err(format!(
                "{ahead} ahead, {kept} rows kept: only {early} of 40 before they come"
            ));
        }
        if line.meter.totals().host_maps < 40 {
            return Err("the source's maps are not counted".into());
        }
    }
    Ok(())
}

/// After a strip was lost, or taken from other memory, those behind it are uploaded before they come again.
fn after_a_loss(_: &Trace) -> Result<(), String> {
    for is_lost in [true, false] {
        let mut line = Line::new()?;
        let mut written = VecDeque::new();
        let mut early = Vec::new();
        for step in 0..20 {
            while written.len() < 3 {
                written.push_back(line.write()?);
            }
            let before = line.meter.totals().bytes_uploaded;
            let mut strip = written.pop_front().ok_or("no strip")?;
            if step == 8 && is_lost {
                strip = written.pop_front().ok_or("no strip")?;
            } else if step == 8 {
                strip.1 = memory()?;
                rewrite(&mut strip.1, strip.0)?;
            }
            line.add(strip, SOON)?;
            early.push(line.meter.totals().bytes_uploaded == before);
            line.compare(SIDE as u64 + SOON)?;
        }
        if early[14..].iter().filter(|early| **early).count() < 5 {
            return Err(format!("before they come: {early:?}"));
        }
    }
    Ok(())
}

/// An element in place writes each strip again: the strips still have a place before they come.
fn written_twice(_: &Trace) -> Result<(), String> {
    for ahead in [1, 2] {
        let mut line = Line::new()?;
        let early = line.play(20, ahead, SOON, |line| {
            let mut strip = line.write()?;
            rewrite(&mut strip.1, strip.0)?;
            Ok(strip)
        })?;
        if early < 20 - 2 * ahead {
            return Err(format!(
                "{ahead} ahead: only {early} of 20 before they come"
            ));
        }
    }
    Ok(())
}

/// Strips that are lost, written twice, in another order, shared with others, or in another memory; webs that end.
fn in_any_way(_: &Trace) -> Result<(), String> {
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
    // Uploads are slow, so a missing wait shows.
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
            // Who shares a strip still reads what was written.
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

/// Who writes a strip again waits for the upload that reads it.
fn written_again(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    for _ in 0..2 {
        let strip = line.write()?;
        line.add(strip, 0)?;
    }
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 1 hold 500"));
    let begun = Instant::now();
    let strip = line.write()?;
    line.add(strip, 0)?;
    // The strip's buffer is the only free one.
    let next = line.write()?;
    let waited = begun.elapsed();
    layer::set_rules(GPU);
    line.compare(SIDE as u64)?;
    if waited < Duration::from_millis(500) {
        return Err(format!("the source waited for {waited:?}"));
    }
    line.add(next, 0)?;
    line.compare(SIDE as u64)
}

/// An upload ahead waits for the commands that read what it overwrites.
fn rows_in_use(_: &Trace) -> Result<(), String> {
    for kept in [0, SOON, SIDE as u64] {
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
            let rows = line.rows.lock().map_err(text)?;
            let from = line.past() - SIDE as u64;
            reads.push((number, read_rows(&line.context, &rows, from, line.past())?));
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

/// The failure of an upload ahead reaches who reads its rows or later ones, but not the next web.
fn failed_upload(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    for _ in 0..2 {
        let strip = line.write()?;
        line.add(strip, SOON)?;
        line.compare(SIDE as u64)?;
    }
    layer::set_rules(&format!("{GPU}clEnqueueWriteBuffer 1 late -5"));
    let strip = line.write()?;
    layer::set_rules(GPU);
    line.add(strip, SOON)?;
    for _ in 0..2 {
        if line.compare(SIDE as u64).is_ok() {
            return Err("rows that were not uploaded can be read".into());
        }
        let strip = line.write()?;
        line.add(strip, SOON)?;
    }
    line.clear();
    let strip = line.write()?;
    line.add(strip, 0)?;
    line.compare(SIDE as u64)
}

/// The failure of the copy that moves the kept rows reaches all who read rows of that web.
fn failed_move(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    let mut written = VecDeque::from([line.write()?, line.write()?]);
    for _ in 0..2 {
        written.push_back(line.write()?);
        let strip = written.pop_front().ok_or("no strip")?;
        line.add(strip, SOON)?;
        line.compare(SIDE as u64)?;
    }
    let mut is_moved = false;
    for _ in 0..12 {
        written.push_back(line.write()?);
        let strip = written.pop_front().ok_or("no strip")?;
        let before = layer::Report::now().ok_or("no report")?;
        layer::set_rules(&format!("{GPU}clEnqueueCopyBuffer 1 late -5"));
        line.add(strip, SOON)?;
        layer::set_rules(GPU);
        let calls = layer::Report::now()
            .ok_or("no report")?
            .calls_since(&before);
        is_moved = calls.contains_key("clEnqueueCopyBuffer");
        if is_moved {
            break;
        }
        line.compare(SIDE as u64)?;
    }
    if !is_moved {
        return Err("no rows were moved".into());
    }
    // The uploads of the strips behind them began before the copy.
    for _ in 0..2 {
        if line.compare(SIDE as u64).is_ok() {
            return Err("rows can be read although others of their web were not moved".into());
        }
        let strip = written.pop_front().ok_or("no strip")?;
        line.add(strip, SOON)?;
    }
    if line.compare(SIDE as u64).is_ok() {
        return Err("rows can be read although others of their web were not moved".into());
    }
    line.clear();
    let strip = line.write()?;
    line.add(strip, 0)?;
    line.compare(SIDE as u64)
}
