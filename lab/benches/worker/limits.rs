//! Limits set by memory: copies by host threads, to the device, and reads and copies by the device.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use crate::{
    Contestant, Error,
    device::{Arg, Device, Pinned, device_ns},
    protocol::{Frame, Settings, Times},
};

const SOURCE: &str = include_str!("../baselines/limits.cl");
/// Bytes of a vector of the kernels.
const VECTOR: usize = 16;
/// Work-items per group, and groups per compute unit of a GPU: enough loads in flight.
const GROUP: usize = 512;
const GROUPS_PER_UNIT: usize = 8;

/// Places of a frame that is uploaded again and again, and uploads that are timed together.
const UPLOADS: usize = 8;
const UPLOADS_TIMED: usize = 32;

pub fn prepare(
    task: &str,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let frame = frame.read()?;
    let len = (frame.len() as f64 * settings.copied) as usize;
    let bytes: Vec<u8> = frame.iter().copied().cycle().take(len).collect();
    if task == "memcpy" {
        return Ok(Box::new(HostCopy {
            to: vec![0; bytes.len()],
            from: bytes,
            threads: settings.threads.max(1),
        }));
    }
    let device = Device::open(&settings.device)?;
    if task == "upload" {
        return Ok(Box::new(Upload::new(device, &bytes)?));
    }
    let name = match task {
        "read" => "limit_read",
        "copy" => "limit_copy",
        _ => return Err(format!("no limit is called {task}").into()),
    };
    let is_cpu = clinspect_opencl::open(&settings.device)?.caps().is_cpu;
    let local = if is_cpu {
        1
    } else {
        GROUP.min(device.work_group()?)
    };
    Ok(Box::new(OnDevice {
        kernel: device.kernel(SOURCE, &format!("-DCHUNKED={}", u8::from(is_cpu)), name)?,
        to: device.buffer(bytes.len())?,
        from: device.filled(&bytes)?,
        count: bytes.len() / VECTOR,
        global: device.units()? * local * if is_cpu { 4 } else { GROUPS_PER_UNIT },
        local,
        device,
    }))
}

struct HostCopy {
    from: Vec<u8>,
    to: Vec<u8>,
    threads: usize,
}

impl Contestant for HostCopy {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let part = self.from.len().div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            let mut parts = self.from.chunks(part).zip(self.to.chunks_mut(part));
            let own = parts.next();
            for (from, to) in parts {
                scope.spawn(|| to.copy_from_slice(from));
            }
            if let Some((from, to)) = own {
                to.copy_from_slice(from);
            }
        });
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns: 0,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.to.clone())
    }
}

/// Writes to the device, one after the other without a wait between them.
pub struct Upload {
    pairs: Vec<(Pinned, Buffer<u8>)>,
    device: Device,
}

impl Upload {
    /// `bytes` in several places, so that one write need not wait for the one before.
    pub fn new(device: Device, bytes: &[u8]) -> Result<Self, Error> {
        let pairs = (0..UPLOADS)
            .map(|_| Ok((device.pinned(bytes)?, device.buffer(bytes.len())?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self { pairs, device })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        for (pinned, _) in &self.pairs {
            // At this point a failure cannot be reported.
            let _ = self.device.unpin(pinned);
        }
    }
}

impl Contestant for Upload {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        self.device.write_many(&mut self.pairs, UPLOADS_TIMED)?;
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64 / UPLOADS_TIMED as u64,
            device_ns: 0,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

struct OnDevice {
    kernel: Kernel,
    from: Buffer<u8>,
    to: Buffer<u8>,
    count: usize,
    global: usize,
    local: usize,
    device: Device,
}

impl Contestant for OnDevice {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let args = [
            Arg::Buffer(&self.from),
            Arg::Buffer(&self.to),
            Arg::I32(self.count.try_into()?),
        ];
        let event = self
            .device
            .launch(&self.kernel, &args, [self.global, 1], [self.local, 1])?;
        event.wait()?;
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns: device_ns(&event, &event)?,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}
