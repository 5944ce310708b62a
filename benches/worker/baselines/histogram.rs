//! Histograms: a table per work-item merged on the host or on the device, and byte counters.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use crate::{
    Contestant, Error,
    device::{Arg, Device, device_ns},
    protocol::{Frame, Settings, Times},
    skip,
};

const SOURCE: &str = include_str!("../../baselines/histogram.cl");
const BINS: usize = 256;
const COUNTER: usize = size_of::<u32>();
/// Pixels per work-item with a table: as many as the table has counters. Merging then costs as much
/// as counting, as in the publication.
const CHUNK: usize = 768;
/// Work-items of a group with tables.
const TABLE_GROUP: usize = 64;
/// Most bytes of tables per run; larger frames get larger chunks.
const TABLE_BUDGET: usize = 512 << 20;
/// Work-items of a group with byte counters.
const BYTE_ITEMS: usize = 128;
const BYTE_GROUPS_PER_UNIT: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Merge {
    Host,
    Device,
}

pub fn prepare(
    device: Device,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let counters = frame.channels * BINS;
    let options = format!("-DCHANNELS={}", frame.channels);
    let src = device.filled(&frame.spread()?)?;
    let merge = match settings.variant.as_str() {
        "table, merged on the host" => Merge::Host,
        "table, merged on the device" => Merge::Device,
        "bytes" => return bytes(device, frame, src, &options),
        other => return Err(format!("no baseline is called {other}").into()),
    };
    let pixels = frame.width * frame.height;
    let most = (TABLE_BUDGET / (counters * COUNTER)).max(1);
    let chunk = CHUNK.max(pixels.div_ceil(most));
    let group = TABLE_GROUP.min(device.work_group()?);
    let items = pixels.div_ceil(chunk).next_multiple_of(group);
    Ok(Box::new(Tables {
        count: device.kernel(SOURCE, &options, "histogram_table")?,
        merge: device.kernel(SOURCE, &options, "histogram_merge")?,
        on: merge,
        tables: device.buffer(items * counters * COUNTER)?,
        out: device.buffer(counters * COUNTER)?,
        host: vec![0; items * counters * COUNTER],
        bins: vec![0; counters],
        items,
        group,
        chunk,
        src,
        frame: frame.clone(),
        device,
    }))
}

struct Tables {
    count: Kernel,
    merge: Kernel,
    on: Merge,
    src: Buffer<u8>,
    tables: Buffer<u8>,
    out: Buffer<u8>,
    host: Vec<u8>,
    bins: Vec<u32>,
    items: usize,
    group: usize,
    chunk: usize,
    frame: Frame,
    device: Device,
}

impl Contestant for Tables {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let args = [
            Arg::Buffer(&self.src),
            Arg::Buffer(&self.tables),
            Arg::I32(self.frame.stride.try_into()?),
            Arg::I32(self.frame.width.try_into()?),
            Arg::I32(self.frame.height.try_into()?),
            Arg::I32(self.chunk.try_into()?),
        ];
        let counted = self
            .device
            .launch(&self.count, &args, [self.items, 1], [self.group, 1])?;
        let device_ns = match self.on {
            Merge::Host => {
                self.device.download(&self.tables, &mut self.host)?;
                self.bins.fill(0);
                for table in self.host.chunks_exact(self.bins.len() * COUNTER) {
                    for (bin, count) in self.bins.iter_mut().zip(table.chunks_exact(COUNTER)) {
                        *bin += u32::from_ne_bytes(count.try_into()?);
                    }
                }
                // Merging on the host is part of the cost, though not device time.
                started.elapsed().as_nanos() as u64
            }
            Merge::Device => {
                let args = [
                    Arg::Buffer(&self.tables),
                    Arg::Buffer(&self.out),
                    Arg::I32(self.items.try_into()?),
                ];
                let range = [self.bins.len(), 1];
                let merged = self.device.launch(&self.merge, &args, range, [BINS, 1])?;
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.bins);
                self.device.download(&self.out, bytes)?;
                device_ns(&counted, &merged)?
            }
        };
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.bins.iter().flat_map(|n| n.to_le_bytes()).collect())
    }
}

fn bytes(
    device: Device,
    frame: &Frame,
    src: Buffer<u8>,
    options: &str,
) -> Result<Box<dyn Contestant>, Error> {
    let items = BYTE_ITEMS.min(device.work_group()?);
    if device.local_memory()? < items * BINS {
        return Err(skip(format!(
            "{items} x {BINS} bytes of local memory are too much"
        )));
    }
    Ok(Box::new(Bytes {
        kernel: device.kernel(SOURCE, options, "histogram_bytes")?,
        out: device.buffer(frame.channels * BINS * COUNTER)?,
        bins: vec![0; frame.channels * BINS],
        groups: device.units()? * BYTE_GROUPS_PER_UNIT,
        items,
        src,
        frame: frame.clone(),
        device,
    }))
}

struct Bytes {
    kernel: Kernel,
    src: Buffer<u8>,
    out: Buffer<u8>,
    bins: Vec<u32>,
    groups: usize,
    items: usize,
    frame: Frame,
    device: Device,
}

impl Contestant for Bytes {
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
