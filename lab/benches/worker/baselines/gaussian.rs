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

/// Work-items of a group, unless the variant names another.
const GROUP: [usize; 2] = [16, 16];
/// `ARITHMETIC` of the kernel.
const DIVIDE: u8 = 0;
const SHIFT: u8 = 1;
const MULTIPLY: u8 = 2;
const NATIVE: u8 = 3;
const FLOAT_DIVIDE: u8 = 4;

enum Memory {
    Buffers(Buffer<u8>, Buffer<u8>),
    Images(Image, Image),
}

/// `variant` is a list of words: divide, shift, multiply, native or four (divisions); centre or
/// statements; floats (samples are floats in memory); a group such as 16x16, or driver (which then
/// chooses the group). Without a word for the arithmetic the settings choose between shift and
/// multiply.
pub fn prepare(
    device: Device,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let mut arithmetic = if settings.float { MULTIPLY } else { SHIFT };
    let mut defines = String::new();
    let mut local = Some(GROUP);
    let mut floats = false;
    for word in settings.variant.split_whitespace() {
        match (word, word.split_once('x')) {
            ("divide", _) => arithmetic = if settings.float { FLOAT_DIVIDE } else { DIVIDE },
            ("shift", _) => arithmetic = SHIFT,
            ("multiply", _) => arithmetic = MULTIPLY,
            ("native", _) => arithmetic = NATIVE,
            ("four", _) => {
                arithmetic = if settings.float { FLOAT_DIVIDE } else { DIVIDE };
                defines += " -DDIVISIONS=4";
            }
            ("centre", _) => defines += " -DCENTRE_FIRST=1",
            ("statements", _) => defines += " -DSTATEMENTS=1",
            ("floats", _) => floats = true,
            ("driver", _) => local = None,
            (_, Some((x, y))) => local = Some([x.parse()?, y.parse()?]),
            _ => return Err(format!("no baseline knows {word}").into()),
        }
    }
    if local.is_some_and(|[x, y]| device.work_group().is_ok_and(|most| x * y > most)) {
        return Err(skip("no such work-group here"));
    }
    if floats && arithmetic <= SHIFT {
        return Err("integers are not computed from floats in memory".into());
    }
    if settings.image && frame.channels != 1 {
        return Err(skip("the image variant is grey"));
    }
    let options = format!(
        "-DUSE_IMAGE={} -DARITHMETIC={arithmetic} -DCHANNELS={} -DFLOATS={}{defines}",
        u8::from(settings.image),
        frame.channels,
        u8::from(floats),
    );
    let pixels = match (floats, arithmetic <= SHIFT) {
        (true, _) => Pixels::Float,
        (_, true) => Pixels::Integer,
        (_, false) => Pixels::Unit,
    };
    let mut bytes = frame.spread()?;
    if floats {
        bytes = bytes
            .iter()
            .flat_map(|&sample| f32::from(sample).to_ne_bytes())
            .collect();
    }
    let extent = [frame.row(), frame.height];
    let memory = if settings.image {
        let mut src = device.image(extent, pixels)?;
        let stride = frame.stride * pixels.bytes();
        device.upload_image(&mut src, extent, pixels, &bytes, stride)?;
        Memory::Images(src, device.image(extent, pixels)?)
    } else {
        Memory::Buffers(device.filled(&bytes)?, device.buffer(bytes.len())?)
    };
    Ok(Box::new(Pixel {
        kernel: device.kernel(SOURCE, &options, "gaussian_pixel")?,
        memory,
        pixels,
        local,
        frame: frame.clone(),
        device,
    }))
}

struct Pixel {
    kernel: Kernel,
    memory: Memory,
    pixels: Pixels,
    local: Option<[usize; 2]>,
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
        let global = self.local.map_or(extent, |local| cover(extent, local));
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
        let size = self.pixels.bytes();
        let (bytes, stride) = match &self.memory {
            Memory::Images(_, dst) => {
                let bytes = self.device.download_image(dst, extent, self.pixels)?;
                (bytes, extent[0])
            }
            Memory::Buffers(_, dst) => {
                let mut bytes = vec![0; self.frame.stride * self.frame.height * size];
                self.device.download(dst, &mut bytes)?;
                (bytes, self.frame.stride)
            }
        };
        let samples = bytes
            .chunks(stride * size)
            .flat_map(|row| row[..extent[0] * size].chunks_exact(size))
            .map(|sample| match sample.try_into() {
                Ok(float) => f32::from_ne_bytes(float) as u8,
                // A byte.
                Err(_) => sample[0],
            });
        Ok(samples.collect())
    }
}
