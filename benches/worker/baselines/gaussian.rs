//! The 3x3 Gaussian with one sample per work-item, from buffers and images.

use std::time::Instant;

use opencl3::{
    kernel::Kernel,
    memory::{Buffer, Image},
};

use crate::{
    Contestant, Error,
    device::{Arg, Device, Pixels, cover, device_ns},
    protocol::{Frame, Settings, Times},
    skip,
};

const SOURCE: &str = include_str!("../../baselines/gaussian.cl");

enum Memory {
    Buffers(Buffer<u8>, Buffer<u8>),
    Images(Image, Image),
}

/// `variant` is a list of words: divide, shift, multiply, native, centre, and a group such as
/// 16x16.
pub fn prepare(
    device: Device,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let mut arithmetic = 0;
    let mut centre = 0;
    let mut local = [16, 16];
    for word in settings.variant.split_whitespace() {
        match (word, word.split_once('x')) {
            ("divide", _) => arithmetic = 0,
            ("shift", _) => arithmetic = 1,
            ("multiply", _) => arithmetic = 2,
            ("native", _) => arithmetic = 3,
            ("centre", _) => centre = 1,
            (_, Some((x, y))) => local = [x.parse()?, y.parse()?],
            _ => return Err(format!("no baseline knows {word}").into()),
        }
    }
    if local[0] * local[1] > device.work_group()? {
        return Err(skip("no such work-group here"));
    }
    if settings.image && frame.channels != 1 {
        return Err(skip("the image variant is grey"));
    }
    let options = format!(
        "-DUSE_IMAGE={} -DARITHMETIC={arithmetic} -DCENTRE_FIRST={centre} -DCHANNELS={}",
        u8::from(settings.image),
        frame.channels
    );
    let bytes = frame.spread()?;
    let extent = [frame.row(), frame.height];
    let memory = if settings.image {
        let pixels = if arithmetic < 2 {
            Pixels::Integer
        } else {
            Pixels::Unit
        };
        let mut src = device.image(extent, pixels)?;
        device.upload_image(&mut src, extent, &bytes, frame.stride)?;
        Memory::Images(src, device.image(extent, pixels)?)
    } else {
        Memory::Buffers(device.filled(&bytes)?, device.buffer(bytes.len())?)
    };
    Ok(Box::new(Pixel {
        kernel: device.kernel(SOURCE, &options, "gaussian_pixel")?,
        memory,
        local,
        frame: frame.clone(),
        device,
    }))
}

struct Pixel {
    kernel: Kernel,
    memory: Memory,
    local: [usize; 2],
    frame: Frame,
    device: Device,
}

impl Contestant for Pixel {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let [src, dst] = match &self.memory {
            Memory::Buffers(src, dst) => [Arg::Buffer(src), Arg::Buffer(dst)],
            Memory::Images(src, dst) => [Arg::Image(src), Arg::Image(dst)],
        };
        let extent = [self.frame.row(), self.frame.height];
        let args = [
            src,
            dst,
            Arg::I32(self.frame.stride.try_into()?),
            Arg::I32(extent[0].try_into()?),
            Arg::I32(extent[1].try_into()?),
        ];
        let global = cover(extent, self.local);
        let event = self
            .device
            .launch(&self.kernel, &args, global, self.local)?;
        event.wait()?;
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns: device_ns(&event, &event)?,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        let extent = [self.frame.row(), self.frame.height];
        match &self.memory {
            Memory::Images(_, dst) => self.device.download_image(dst, extent),
            Memory::Buffers(_, dst) => {
                let mut bytes = vec![0; self.frame.stride * self.frame.height];
                self.device.download(dst, &mut bytes)?;
                Ok(bytes
                    .chunks(self.frame.stride)
                    .flat_map(|row| &row[..extent[0]])
                    .copied()
                    .collect())
            }
        }
    }
}
