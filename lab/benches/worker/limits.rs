//! Limits set by memory: copies by host threads, reads and copies by the device.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use crate::{
    Contestant, Error,
    device::{Arg, Device, device_ns},
    protocol::{Frame, Settings, Times},
};

const SOURCE: &str = include_str!("../baselines/limits.cl");
/// Bytes of a vector of the kernels.
const VECTOR: usize = 16;
/// Work-items per group, and groups per compute unit of a GPU: enough loads in flight.
const GROUP: usize = 512;
const GROUPS_PER_UNIT: usize = 8;

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
