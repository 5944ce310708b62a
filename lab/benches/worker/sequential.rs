//! The sequential references of the tests, as a yardstick.

use std::time::Instant;

use clinspect_core::scales::SCALE_FACTORS;

use crate::{
    Contestant, Error,
    oracle::{
        SampleKind, Samples, gaussian, histogram,
        pitch_threshold::{self, Compare, Polarity},
        texture,
    },
    protocol::{Frame, Settings, Times},
};

struct Sequential {
    task: Task,
    frame: Frame,
    bytes: Vec<u8>,
    settings: Settings,
    result: Vec<u8>,
}

enum Task {
    Histogram,
    Gaussian,
    Pitch,
    Texture,
}

pub fn prepare(
    task: &str,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let task = match task {
        "histogram" => Task::Histogram,
        "gaussian" => Task::Gaussian,
        "pitch_threshold" => Task::Pitch,
        "texture" => Task::Texture,
        _ => return Err(format!("there is no reference for {task}").into()),
    };
    Ok(Box::new(Sequential {
        task,
        bytes: frame.spread()?,
        frame: frame.clone(),
        settings: settings.clone(),
        result: Vec::new(),
    }))
}

impl Sequential {
    fn component(&self, c: usize) -> Samples<'_> {
        Samples {
            data: &self.bytes,
            offset: c,
            stride: self.frame.stride,
            pixel_stride: self.frame.channels,
            width: self.frame.width,
            height: self.frame.height,
            depth: SampleKind::U8,
        }
    }

    fn compute(&self) -> Vec<u8> {
        let channels = self.frame.channels;
        let settings = &self.settings;
        match self.task {
            Task::Histogram => {
                let region = settings.region_of(&self.frame);
                (0..channels)
                    .flat_map(|c| histogram::histogram(self.component(c), region, 8, 256))
                    .flat_map(u32::to_le_bytes)
                    .collect()
            }
            Task::Gaussian => {
                let mut out = vec![0; self.frame.row() * self.frame.height];
                for c in 0..channels {
                    let (n, sigma) = (settings.kernel_size, settings.sigma);
                    let filtered = gaussian::gaussian_integer(self.component(c), n, sigma);
                    for (pixel, value) in out.chunks_exact_mut(channels).zip(filtered) {
                        pixel[c] = value as u8;
                    }
                }
                out
            }
            Task::Pitch => {
                let settings = pitch_threshold::Settings {
                    vectors: Vec::new(),
                    pitch_x: settings.pitch_x,
                    pitch_y: settings.pitch_y,
                    multiples: settings.multiples.clone(),
                    threshold: settings.threshold,
                    compare: if settings.minimum {
                        Compare::Minimum
                    } else {
                        Compare::Average
                    },
                    match_center: settings.match_center,
                    polarity: Polarity::Both,
                    inward: settings.inward,
                    edge_margin: 2,
                    scales: settings.scales as u32,
                    scale_factors: SCALE_FACTORS.to_vec(),
                    min_contrast: settings.min_contrast,
                    bit_depth: 0,
                    rois: Vec::new(),
                    ignored: Vec::new(),
                };
                pitch_threshold::compare(self.component(0), &settings).packed
            }
            Task::Texture => {
                let q8 = (256.0 * settings.threshold).round() as i64;
                let settings = texture::Settings {
                    vectors: [[settings.pitch_x, 0.0], [0.0, settings.pitch_y]]
                        .map(|vector| vector.map(|length| (16.0 * length).round() as i64)),
                    thresholds: [q8; texture::CHANNELS],
                    depth: 8,
                    above: false,
                    rois: Vec::new(),
                    ignored: Vec::new(),
                };
                let mask = texture::compare(self.component(0), &settings).mask;
                let rows = mask.chunks(self.frame.width);
                rows.flat_map(|row| {
                    row.chunks(8).map(|pixels| {
                        let bits = pixels.iter().enumerate();
                        bits.fold(0, |byte, (at, &set)| byte | u8::from(set) << (7 - at))
                    })
                })
                .collect()
            }
        }
    }
}

impl Contestant for Sequential {
    fn run(&mut self) -> Result<Times, Error> {
        let started = Instant::now();
        self.result = self.compute();
        Ok(Times {
            wall_ns: started.elapsed().as_nanos() as u64,
            device_ns: 0,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.result.clone())
    }
}
