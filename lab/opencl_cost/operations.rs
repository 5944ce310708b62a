//! Single OpenCL operations, in a process that has warmed up.

use std::{sync::Arc, time::Instant};

use clinspect_opencl::{
    Arg, ClAllocator, ClBuffer, ClContext, Meter, NdRange, ProgramSource, buffer_of,
};
use gst::prelude::*;
use serde::Serialize;

use crate::{
    Effort, Error,
    timing::{median_ms, median_of},
};

/// Bytes of a 1920 × 1080 GRAY8 frame.
const FRAME: usize = 1920 * 1080;
const TRANSFERS: [usize; 5] = [4 << 10, 64 << 10, 1 << 20, FRAME, 16 << 20];

/// One operation's time.
#[derive(Debug, Serialize)]
pub struct Operation {
    pub operation: &'static str,
    pub ms: f64,
}

/// Times to transfer a number of bytes to the device and back.
#[derive(Debug, Serialize)]
pub struct Transfer {
    pub bytes: usize,
    pub upload_ms: f64,
    pub upload_mb_per_s: f64,
    pub download_ms: f64,
    pub download_mb_per_s: f64,
    /// Map for writing, without keeping the contents, and unmap.
    pub map_write_ms: f64,
    /// Map for reading after a write of the device, and unmap.
    pub map_read_ms: f64,
}

/// Measures creating memory and running a kernel.
///
/// # Errors
/// A failing OpenCL call.
pub fn measure(context: &Arc<ClContext>, effort: Effort) -> Result<Vec<Operation>, Error> {
    let runs = effort.runs;
    let meter = Meter::new(false);
    let create = median_of(runs, || {
        let started = Instant::now();
        let buffer = ClBuffer::new(context, FRAME, &meter)?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        drop(buffer);
        Ok(ms)
    })?;
    let create_small = median_of(runs, || {
        let started = Instant::now();
        let mem = context.device_memory(4)?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        drop(mem);
        Ok(ms)
    })?;

    // Eight pixels of a mask: almost no work.
    let meter = Meter::new(false);
    let program = context.program(ProgramSource::PitchThresholdMask, "")?;
    let mut kernel = program.kernel("mask_expand")?;
    let (packed, grey) = (context.device_memory(4)?, context.device_memory(8)?);
    context.write(&packed, 0, &[0; 4], "a mask")?;
    let args = [
        Arg::Mem(&packed),
        Arg::U32(1),
        Arg::Mem(&grey),
        Arg::U64(0),
        Arg::U32(8),
        Arg::I32(8),
        Arg::I32(1),
    ];
    let range = NdRange {
        global: [1, 1],
        local: None,
    };
    let enqueue = median_of(runs, || {
        let started = Instant::now();
        let mut submission = context.submit(&meter, 0);
        submission.run(&mut kernel, "mask_expand", &args, &range)?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        submission.send()?.wait("a kernel")?;
        Ok(ms)
    })?;
    let run = median_ms(runs, || {
        let mut submission = context.submit(&meter, 0);
        submission.run(&mut kernel, "mask_expand", &args, &range)?;
        submission.send()?.wait("a kernel")?;
        Ok(())
    })?;
    Ok([
        ("create a buffer of a 1080p frame", create),
        ("create a buffer of 4 bytes", create_small),
        ("enqueue a kernel", enqueue),
        ("enqueue a kernel and wait for it", run),
    ]
    .map(|(operation, ms)| Operation { operation, ms })
    .into())
}

/// Measures uploads, downloads and maps by size.
///
/// # Errors
/// A failing OpenCL call.
pub fn transfers(context: &Arc<ClContext>, effort: Effort) -> Result<Vec<Transfer>, Error> {
    let fitting = TRANSFERS
        .into_iter()
        .filter(|&bytes| bytes as u64 <= context.caps().max_allocation);
    fitting
        .map(|bytes| transfer(context, bytes, effort.runs))
        .collect()
}

fn transfer(context: &Arc<ClContext>, bytes: usize, runs: u32) -> Result<Transfer, Error> {
    let meter = Meter::new(false);
    let mem = context.device_memory(bytes)?;
    let mut host = vec![1_u8; bytes];
    let upload_ms = median_ms(runs, || {
        context.write(&mem, 0, &host, "a frame")?;
        Ok(())
    })?;
    let download_ms = median_ms(runs, || {
        context.read(&mem, 0, &mut host, "a frame")?;
        Ok(())
    })?;
    // Frames are mapped through GStreamer, as every element does.
    let allocator = ClAllocator::new(context, &meter);
    let mut memory = allocator
        .upcast_ref::<gst::Allocator>()
        .alloc(bytes, None)?;
    let map_write_ms = median_of(runs, || {
        let buffer = buffer_of(&memory).ok_or("the memory is not OpenCL's")?;
        buffer.mark_undefined();
        let started = Instant::now();
        let writable = memory.get_mut().ok_or("the memory is shared")?;
        drop(writable.map_writable()?);
        context.finish()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    })?;
    let map_read_ms = median_of(runs, || {
        let buffer = buffer_of(&memory).ok_or("the memory is not OpenCL's")?;
        // Otherwise the mapping of the round before would be reused.
        buffer.zero("a frame")?;
        let started = Instant::now();
        drop(memory.map_readable()?);
        context.finish()?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    })?;
    let rate = |ms: f64| bytes as f64 / 1e6 / (ms / 1e3);
    Ok(Transfer {
        bytes,
        upload_ms,
        upload_mb_per_s: rate(upload_ms),
        download_ms,
        download_mb_per_s: rate(download_ms),
        map_write_ms,
        map_read_ms,
    })
}
