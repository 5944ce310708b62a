//! The pitch comparison with one pixel per work-item, packed through local memory.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use crate::{
    Contestant, Error,
    device::{Arg, Device, cover, device_ns},
    protocol::{Frame, Settings, Times},
    reference::pitch_threshold::distance_q8,
};

const SOURCE: &str = include_str!("../../baselines/pitch.cl");
const GROUP: usize = 64;

pub fn prepare(
    device: Device,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let plain = settings.pitch_y == 0.0
        && settings.multiples == [1]
        && !settings.minimum
        && !settings.match_center
        && frame.channels == 1;
    if !plain {
        return Err("the baseline is the average along x, grey".into());
    }
    let host = frame.spread()?;
    let mask = vec![0; frame.width.div_ceil(8) * frame.height];
    Ok(Box::new(Pixel {
        kernel: device.kernel(SOURCE, &format!("-DGROUP={GROUP}"), "pitch_pixel")?,
        src: device.filled(&host)?,
        dst: device.buffer(mask.len())?,
        distance: distance_q8(1, settings.pitch_x),
        theta: (256.0 * settings.threshold).round() as i32,
        transfers: settings.transfers,
        host,
        mask,
        frame: frame.clone(),
        device,
    }))
}

struct Pixel {
    kernel: Kernel,
    src: Buffer<u8>,
    dst: Buffer<u8>,
    host: Vec<u8>,
    mask: Vec<u8>,
    distance: usize,
    theta: i32,
    transfers: bool,
    frame: Frame,
    device: Device,
}

impl Contestant for Pixel {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let mut moved = 0;
        if self.transfers {
            moved += self.device.upload(&mut self.src, &self.host)?;
        }
        let args = [
            Arg::Buffer(&self.src),
            Arg::Buffer(&self.dst),
            Arg::I32(self.frame.stride.try_into()?),
            Arg::I32(self.frame.width.try_into()?),
            Arg::I32(self.frame.height.try_into()?),
            Arg::I32((self.distance >> 8).try_into()?),
            Arg::I32((self.distance & 255).try_into()?),
            Arg::I32(self.theta),
        ];
        let global = cover([self.frame.width, self.frame.height], [GROUP, 1]);
        let event = self
            .device
            .launch(&self.kernel, &args, global, [GROUP, 1])?;
        if self.transfers {
            moved += self.device.download(&self.dst, &mut self.mask)?;
        } else {
            event.wait()?;
        }
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns: moved + device_ns(&event, &event)?,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        self.device.download(&self.dst, &mut self.mask)?;
        Ok(self.mask.clone())
    }
}
