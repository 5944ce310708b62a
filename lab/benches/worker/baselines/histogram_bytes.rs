//! Histograms with byte counters in local memory.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use super::histogram::{BINS, COUNTER, group_of};
use crate::{
    Contestant, Error,
    device::{Arg, Device, device_ns},
    protocol::{Frame, Settings, Times},
    skip,
    steps::{RunStep, Steps, total_ns},
};

const SOURCE: &str = include_str!("../../baselines/histogram_bytes.cl");
/// Work-items of a group, as published.
const ITEMS: usize = 128;
const GROUPS_PER_UNIT: usize = 2;
/// Samples that a work-item of `histogram256` counts: the most that a byte holds.
const MOST_PER_ITEM: usize = 255;

/// `variant`: `bytes`, or `bytes256` and the words `banked` and `one`.
pub fn prepare(
    device: Device,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let mut options = format!("-DCHANNELS={}", frame.channels);
    let mut words = settings.variant.split_whitespace();
    let name = words.next().unwrap_or_default();
    for word in words {
        options += match word {
            "banked" => " -DBANKED=1",
            "one" => " -DMERGE_ONE=1",
            _ => return Err(format!("no baseline knows {word}").into()),
        };
    }
    let is_one_block = match name {
        "bytes" => false,
        "bytes256" => true,
        _ => return Err(format!("no baseline is called {name}").into()),
    };
    if is_one_block && frame.channels != 1 {
        return Err(skip("histogram256 is grey"));
    }
    let items = group_of(&device, settings, ITEMS)?;
    if is_one_block && items != ITEMS {
        return Err(skip(format!("histogram256 has {ITEMS} work-items a group")));
    }
    if device.local_memory()? < items * BINS {
        return Err(skip(format!(
            "{items} x {BINS} bytes of local memory are too much"
        )));
    }
    let src = device.filled(&frame.spread()?)?;
    if is_one_block {
        let pixels = frame.width * frame.height;
        let groups = pixels.div_ceil(ITEMS * MOST_PER_ITEM);
        return Ok(Box::new(OneBlock {
            kernel: device.kernel(SOURCE, &options, "histogram256")?,
            out: device.buffer(groups * BINS * COUNTER)?,
            parts: vec![0; groups * BINS],
            bins: vec![0; BINS],
            groups,
            src,
            frame: frame.clone(),
            device,
            steps: Steps::default(),
        }));
    }
    Ok(Box::new(Blocks {
        kernel: device.kernel(SOURCE, &options, "histogram_bytes")?,
        out: device.buffer(frame.channels * BINS * COUNTER)?,
        bins: vec![0; frame.channels * BINS],
        groups: device.units()? * GROUPS_PER_UNIT,
        items,
        src,
        frame: frame.clone(),
        device,
    }))
}

/// Few groups, which add their counts after each block of pixels.
struct Blocks {
    kernel: Kernel,
    src: Buffer<u8>,
    out: Buffer<u8>,
    bins: Vec<u32>,
    groups: usize,
    items: usize,
    frame: Frame,
    device: Device,
}

impl Contestant for Blocks {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        self.bins.fill(0);
        self.device
            .upload(&mut self.out, bytemuck::cast_slice(&self.bins))?;
        let mut device = 0;
        let mut events = Vec::new();
        for channel in 0..self.frame.channels {
            let args = [
                Arg::Buffer(&self.src),
                Arg::Buffer(&self.out),
                Arg::I32(self.frame.stride.try_into()?),
                Arg::I32(self.frame.width.try_into()?),
                Arg::I32(self.frame.height.try_into()?),
                Arg::I32(channel.try_into()?),
                Arg::Local(self.items * BINS),
            ];
            let global = [self.groups * self.items, 1];
            events.push(
                self.device
                    .launch(&self.kernel, &args, global, [self.items, 1])?,
            );
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.bins);
        self.device.download(&self.out, bytes)?;
        let wall_ns = started.elapsed().as_nanos() as u64;
        for event in &events {
            device += device_ns(event, event)?;
        }
        Ok(Times {
            wall_ns,
            device_ns: device,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.bins.iter().flat_map(|n| n.to_le_bytes()).collect())
    }
}

/// A group for each block; the host adds up their sub-histograms.
struct OneBlock {
    kernel: Kernel,
    src: Buffer<u8>,
    out: Buffer<u8>,
    parts: Vec<u32>,
    bins: Vec<u32>,
    groups: usize,
    frame: Frame,
    device: Device,
    steps: Steps,
}

impl Contestant for OneBlock {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let args = [
            Arg::Buffer(&self.src),
            Arg::Buffer(&self.out),
            Arg::I32(self.frame.stride.try_into()?),
            Arg::I32(self.frame.width.try_into()?),
            Arg::I32(self.frame.height.try_into()?),
            Arg::Local(ITEMS * BINS),
        ];
        let event =
            self.device
                .launch(&self.kernel, &args, [self.groups * ITEMS, 1], [ITEMS, 1])?;
        event.wait()?;
        let moved = self.frame.row() * self.frame.height + self.parts.len() * COUNTER;
        let count = RunStep::of("count", &event, moved)?;
        let merging = Instant::now();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.parts);
        self.device.download(&self.out, bytes)?;
        self.bins.fill(0);
        for part in self.parts.chunks_exact(BINS) {
            for (bin, count) in self.bins.iter_mut().zip(part) {
                *bin += count;
            }
        }
        let merge = RunStep {
            name: "merge",
            start_ns: count.end_ns,
            end_ns: count.end_ns + merging.elapsed().as_nanos() as u64,
            moved: self.parts.len() * COUNTER,
        };
        let run = vec![count, merge];
        let device_ns = total_ns(&run);
        self.steps.note(run);
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.bins.iter().flat_map(|n| n.to_le_bytes()).collect())
    }

    fn about(&self) -> serde_json::Value {
        self.steps.about()
    }
}
