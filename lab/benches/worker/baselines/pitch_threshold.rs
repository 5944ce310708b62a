//! The pitch comparison with one pixel per work-item: the difference alone, a mask of bytes, and a
//! mask packed through local memory.

use std::time::Instant;

use opencl3::{kernel::Kernel, memory::Buffer};

use crate::{
    Contestant, Error,
    device::{Arg, Device, cover},
    oracle::pitch_threshold::distance_q8,
    protocol::{Frame, Settings, Times},
    steps::{RunStep, Steps, total_ns},
};

const SOURCE: &str = include_str!("../../baselines/pitch_threshold.cl");
/// Work-items of a group, as published.
const GROUP: [usize; 2] = [64, 4];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// The difference in whole grey levels, a byte a pixel.
    Difference,
    /// The mask, a byte a pixel.
    Unpacked,
    /// The mask, a bit a pixel.
    Packed,
}

/// `variant` is a list of words: difference, unpacked or packed, and a group such as 64x1.
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
    let mut output = Output::Packed;
    let mut group = GROUP;
    for word in settings.variant.split_whitespace() {
        match (word, word.split_once('x')) {
            ("difference", _) => output = Output::Difference,
            ("unpacked", _) => output = Output::Unpacked,
            ("packed", _) => output = Output::Packed,
            (_, Some((x, y))) => group = [x.parse()?, y.parse()?],
            _ => return Err(format!("no baseline knows {word}").into()),
        }
    }
    if output == Output::Difference && settings.threshold.fract() != 0.0 {
        return Err("the difference has whole grey levels; set a whole threshold".into());
    }
    let (name, row) = match output {
        Output::Difference => ("pitch_threshold_difference", frame.width),
        Output::Unpacked => ("pitch_threshold_unpacked", frame.width),
        Output::Packed => ("pitch_threshold_pixel", frame.width.div_ceil(8)),
    };
    let host = frame.spread()?;
    let out = vec![0; row * frame.height];
    let options = format!("-DGROUP_X={} -DGROUP_Y={}", group[0], group[1]);
    Ok(Box::new(Pixel {
        kernel: device.kernel(SOURCE, &options, name)?,
        src: device.filled(&host)?,
        dst: device.buffer(out.len())?,
        distance: distance_q8(1, settings.pitch_x),
        threshold: settings.threshold,
        transfers: settings.transfers,
        output,
        group,
        host,
        out,
        frame: frame.clone(),
        device,
        steps: Steps::default(),
    }))
}

struct Pixel {
    kernel: Kernel,
    src: Buffer<u8>,
    dst: Buffer<u8>,
    host: Vec<u8>,
    out: Vec<u8>,
    distance: usize,
    threshold: f64,
    transfers: bool,
    output: Output,
    group: [usize; 2],
    frame: Frame,
    device: Device,
    steps: Steps,
}

impl Contestant for Pixel {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        let mut run = Vec::new();
        if self.transfers {
            let event = self.device.write(&mut self.src, &self.host)?;
            run.push(RunStep::of("upload", &event, self.host.len())?);
        }
        let args = [
            Arg::Buffer(&self.src),
            Arg::Buffer(&self.dst),
            Arg::I32(self.frame.stride.try_into()?),
            Arg::I32(self.frame.width.try_into()?),
            Arg::I32(self.frame.height.try_into()?),
            Arg::I32((self.distance >> 8).try_into()?),
            Arg::I32((self.distance & 255).try_into()?),
            Arg::I32((256.0 * self.threshold).round() as i32),
        ];
        let global = cover([self.frame.width, self.frame.height], self.group);
        let kernel = self
            .device
            .launch(&self.kernel, &args, global, self.group)?;
        if self.transfers {
            let event = self.device.read(&self.dst, &mut self.out)?;
            let moved = self.host.len() + self.out.len();
            run.push(RunStep::of("kernel", &kernel, moved)?);
            run.push(RunStep::of("download", &event, self.out.len())?);
        } else {
            kernel.wait()?;
            let moved = self.host.len() + self.out.len();
            run.push(RunStep::of("kernel", &kernel, moved)?);
        }
        let wall_ns = started.elapsed().as_nanos() as u64;
        let device_ns = total_ns(&run);
        self.steps.note(run);
        Ok(Times { wall_ns, device_ns })
    }

    /// The packed mask, whatever the kernel wrote.
    fn result(&mut self) -> Result<Vec<u8>, Error> {
        self.device.download(&self.dst, &mut self.out)?;
        // Whole grey levels reach a whole threshold exactly where the difference does.
        let least = match self.output {
            Output::Packed => return Ok(self.out.clone()),
            Output::Difference => self.threshold as u8,
            Output::Unpacked => 1,
        };
        let rows = self.out.chunks_exact(self.frame.width);
        Ok(rows
            .flat_map(|row| row.chunks(8))
            .map(|pixels| {
                let marks = pixels.iter().map(|&value| u8::from(value >= least));
                let byte = marks.fold(0, |byte, mark| byte << 1 | mark);
                byte << (8 - pixels.len())
            })
            .collect())
    }

    fn about(&self) -> serde_json::Value {
        self.steps.about()
    }
}
