//! Colour histograms: a table per work-item, merged on the host or on the device.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use super::histogram_bytes;
use crate::{
    Contestant, Error,
    device::{Arg, Device},
    protocol::{Frame, Settings, Times},
    skip,
    steps::{RunStep, Steps, total_ns},
};

const SOURCE: &str = include_str!("../../baselines/histogram.cl");
pub(super) const BINS: usize = 256;
pub(super) const COUNTER: usize = size_of::<u32>();
/// Pixels per work-item whose table is in private memory, as published.
const PRIVATE_CHUNK: usize = 1024;
/// Pixels per work-item whose table is in global memory: as many as the table has counters. Merging
/// then costs as much as counting, as in the publication.
const GLOBAL_CHUNK: usize = 768;
/// Work-items of a group, unless the settings say another number.
const GROUP: usize = 64;
/// Most bytes of tables per run; larger frames get larger chunks.
const TABLE_BUDGET: usize = 512 << 20;
/// Work-items that share a bin where many merge the tables.
const SLICES: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Merge {
    /// By the host, one thread.
    Host,
    /// By a launch with a work-item per bin.
    Bins,
    /// By the group that ends last, in the same launch.
    Last,
    /// By a launch with many work-items per bin.
    Slices,
}

/// `variant` names where a work-item counts and who merges, such as `private, merged on the host`.
pub fn prepare(
    device: Device,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let variant = settings.variant.as_str();
    if !variant.contains(", merged ") {
        return histogram_bytes::prepare(device, frame, settings);
    }
    let unknown = || format!("no baseline is called {variant}");
    let (place, merged) = variant.split_once(", merged ").ok_or_else(unknown)?;
    let is_private = match place {
        "private" => true,
        "global" => false,
        _ => return Err(unknown().into()),
    };
    let merge = match merged {
        "on the host" => Merge::Host,
        "by a work-item a bin" => Merge::Bins,
        "by the last group" => Merge::Last,
        "by many" => Merge::Slices,
        _ => return Err(unknown().into()),
    };
    let counters = frame.channels * BINS;
    let options = format!(
        "-DCHANNELS={} -DPRIVATE={} -DMERGE_LAST={}",
        frame.channels,
        u8::from(is_private),
        u8::from(merge == Merge::Last),
    );
    let pixels = frame.width * frame.height;
    let most = (TABLE_BUDGET / (counters * COUNTER)).max(1);
    let chunk = if is_private {
        PRIVATE_CHUNK
    } else {
        GLOBAL_CHUNK
    }
    .max(pixels.div_ceil(most));
    let group = group_of(&device, settings, GROUP)?;
    let items = pixels.div_ceil(chunk).next_multiple_of(group);
    let on_host = merge == Merge::Host;
    Ok(Box::new(Tables {
        count: device.kernel(SOURCE, &options, "histogram_table")?,
        merge_bins: device.kernel(SOURCE, &options, "histogram_merge")?,
        merge_slices: device.kernel(SOURCE, &options, "histogram_slices")?,
        merge,
        src: device.filled(&frame.spread()?)?,
        tables: device.buffer(items * counters * COUNTER)?,
        done: device.filled(&[0; COUNTER])?,
        out: device.buffer(counters * COUNTER)?,
        host: vec![
            0;
            if on_host {
                items * counters * COUNTER
            } else {
                0
            }
        ],
        bins: vec![0; counters],
        items,
        group,
        chunk,
        frame: frame.clone(),
        device,
        steps: Steps::default(),
    }))
}

/// The settings' work-items of a group, if the device takes so many.
pub(super) fn group_of(
    device: &Device,
    settings: &Settings,
    default: usize,
) -> Result<usize, Error> {
    let most = device.work_group()?;
    match settings.group {
        0 => Ok(default.min(most)),
        group if group > most => Err(skip("no such work-group here")),
        group => Ok(group),
    }
}

struct Tables {
    count: Kernel,
    merge_bins: Kernel,
    merge_slices: Kernel,
    merge: Merge,
    src: Buffer<u8>,
    tables: Buffer<u8>,
    done: Buffer<u8>,
    out: Buffer<u8>,
    host: Vec<u8>,
    bins: Vec<u32>,
    items: usize,
    group: usize,
    chunk: usize,
    frame: Frame,
    device: Device,
    steps: Steps,
}

impl Tables {
    /// Merges on the device; `None` if the counting kernel has merged.
    fn merge_on_device(&mut self) -> Result<Option<RunStep>, Error> {
        let args = [
            Arg::Buffer(&self.tables),
            Arg::Buffer(&self.out),
            Arg::I32(self.items.try_into()?),
        ];
        let (kernel, slices) = match self.merge {
            Merge::Bins => (&self.merge_bins, 1),
            Merge::Slices => (&self.merge_slices, SLICES),
            Merge::Host | Merge::Last => return Ok(None),
        };
        let bins = self.bins.len();
        let group = BINS.min(self.device.work_group()?);
        let event = self
            .device
            .launch(kernel, &args, [bins, slices], [group, 1])?;
        event.wait()?;
        let moved = self.items * bins * COUNTER;
        Ok(Some(RunStep::of("merge", &event, moved)?))
    }

    /// Reads the tables and adds them up; the step follows `before`.
    fn merge_on_host(&mut self, before: &RunStep) -> Result<RunStep, Error> {
        let started = Instant::now();
        self.device.download(&self.tables, &mut self.host)?;
        self.bins.fill(0);
        for table in self.host.chunks_exact(self.bins.len() * COUNTER) {
            for (bin, count) in self.bins.iter_mut().zip(table.chunks_exact(COUNTER)) {
                *bin += u32::from_ne_bytes(count.try_into()?);
            }
        }
        Ok(RunStep {
            name: "merge",
            start_ns: before.end_ns,
            end_ns: before.end_ns + started.elapsed().as_nanos() as u64,
            moved: self.host.len(),
        })
    }
}

impl Contestant for Tables {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        if self.merge == Merge::Slices {
            self.bins.fill(0);
            self.device
                .upload(&mut self.out, bytemuck::cast_slice(&self.bins))?;
        }
        let args = [
            Arg::Buffer(&self.src),
            Arg::Buffer(&self.tables),
            Arg::I32(self.frame.stride.try_into()?),
            Arg::I32(self.frame.width.try_into()?),
            Arg::I32(self.frame.height.try_into()?),
            Arg::I32(self.chunk.try_into()?),
            Arg::Buffer(&self.done),
            Arg::Buffer(&self.out),
        ];
        let event = self
            .device
            .launch(&self.count, &args, [self.items, 1], [self.group, 1])?;
        event.wait()?;
        let moved = self.frame.row() * self.frame.height + self.items * self.bins.len() * COUNTER;
        let name = if self.merge == Merge::Last {
            "count and merge"
        } else {
            "count"
        };
        let mut run = vec![RunStep::of(name, &event, moved)?];
        if self.merge == Merge::Host {
            run.push(self.merge_on_host(&run[0])?);
        } else {
            run.extend(self.merge_on_device()?);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.bins);
            self.device.download(&self.out, bytes)?;
        }
        // Merging on the host is part of the cost, though not device time.
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
