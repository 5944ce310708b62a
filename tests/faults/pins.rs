//! Memory of a source that the driver keeps pinned, on a CPU that claims to be a GPU.

use std::sync::Arc;

use clinspect_opencl::{
    self as opencl, ClContext, Memory, Meter,
    frame::{ClFrame, Importer},
};

use crate::{cases::GPU, layer, stand::Trace, waits::Scenario};

/// The scenarios. The last ones change the process.
pub const SCENARIOS: [Scenario; 5] = [
    (
        "memory that is freed before its elements stop",
        freed_memory,
    ),
    ("memory that outlives its elements", kept_memory),
    ("memory that a lost queue has read", lost_queue),
    ("memory that cannot be pinned", refused),
    ("a pin that cannot be released", lost),
];

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// An importer on the device, and its frames' number.
struct Line {
    context: Arc<ClContext>,
    importer: Importer,
    frames: u8,
}

impl Line {
    fn new() -> Result<Self, String> {
        layer::set_rules(GPU);
        let context = opencl::open("auto").map_err(text)?;
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 512, 384)
            .build()
            .map_err(text)?;
        let importer = Importer::new(&context, &Meter::new(false), &info).map_err(text)?;
        Ok(Self {
            context,
            importer,
            frames: 0,
        })
    }

    fn memory(&self) -> Result<gst::Buffer, String> {
        gst::Buffer::with_size(self.importer.info().size()).map_err(text)
    }

    /// Imports another picture in the same memory, and compares what the device has.
    fn pass(&mut self, buffer: &mut gst::Buffer) -> Result<(), String> {
        self.frames += 1;
        let picture: Vec<u8> = (0..buffer.size())
            .map(|i| (i % 251) as u8 ^ self.frames)
            .collect();
        let writable = buffer.get_mut().ok_or("the frame is still in use")?;
        writable
            .copy_from_slice(0, &picture)
            .map_err(|n| format!("{n} bytes"))?;
        let frame: ClFrame = self.importer.import(buffer).map_err(text)?;
        let Memory::Buffer(memory) = frame.plane(0).map_err(text)?.memory() else {
            return Err("the frame was not uploaded".into());
        };
        let is_same = memory.read_with(|bytes| bytes.starts_with(&picture));
        match is_same.map_err(text)? {
            true => Ok(()),
            false => Err(format!("frame {} is wrong", self.frames)),
        }
    }

    /// Imports frames until the memory is pinned.
    fn pinned(&mut self) -> Result<gst::Buffer, String> {
        let mut buffer = self.memory()?;
        self.pass(&mut buffer)?;
        self.pass(&mut buffer)?;
        match self.context.has_pinned(buffer.peek_memory(0)) {
            true => Ok(buffer),
            false => Err("memory is not pinned for its second frame".into()),
        }
    }
}

/// The pin is released before the memory's free function returns.
fn freed_memory(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    is_freed_with(line.pinned()?)
}

/// Drops the last reference to pinned memory: the driver then has one buffer less.
fn is_freed_with(buffer: gst::Buffer) -> Result<(), String> {
    let before = layer::memory();
    drop(buffer);
    match layer::memory() - before {
        -1 => Ok(()),
        more => Err(format!("{more} buffers after the memory was freed, not -1")),
    }
}

/// The pin is released with the context, although the source keeps its memory.
fn kept_memory(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    let mut buffer = line.pinned()?;
    drop(line);
    if layer::memory() != 0 {
        return Err(format!("{} buffers without a context", layer::memory()));
    }
    let mut line = Line::new()?;
    for _ in 0..3 {
        line.pass(&mut buffer)?;
    }
    if !line.context.has_pinned(buffer.peek_memory(0)) {
        return Err("the next context does not pin the memory".into());
    }
    Ok(())
}

/// A frame lets go of its memory once the upload has ended, although the queue is lost and refuses the flush.
fn lost_queue(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    // Memory is pinned for its second frame. Nothing reads these frames, so the only flushes are those of the uploads.
    let buffer = line.memory()?;
    for _ in 0..2 {
        line.importer.import(&buffer).map_err(text)?;
    }
    layer::set_rules(&format!("{GPU}clFlush 1 lose -5"));
    let sent = line.importer.import(&buffer).map(drop);
    layer::set_rules(GPU);
    if sent.is_ok() {
        return Err("no error".into());
    }
    is_freed_with(buffer)
}

/// Memory that the driver does not pin is copied, without an error.
fn refused(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    let mut buffer = line.memory()?;
    line.pass(&mut buffer)?;
    layer::set_rules(&format!("{GPU}clCreateBuffer 1 fail -5"));
    for _ in 0..3 {
        line.pass(&mut buffer)?;
    }
    if line.context.has_pinned(buffer.peek_memory(0)) || line.context.has_failed() {
        return Err("a refused pin counts as a pin or as a failure".into());
    }
    Ok(())
}

/// After a pin could not be released, no memory is pinned: the driver may use outdated pages.
fn lost(_: &Trace) -> Result<(), String> {
    let mut line = Line::new()?;
    let buffer = line.pinned()?;
    layer::set_rules(&format!("{GPU}clReleaseMemObject 1 fail -5"));
    drop(buffer);
    let mut buffer = line.memory()?;
    for _ in 0..3 {
        line.pass(&mut buffer)?;
    }
    match line.context.has_pinned(buffer.peek_memory(0)) {
        true => Err("memory is pinned beside a pin that was lost".into()),
        false => Ok(()),
    }
}
