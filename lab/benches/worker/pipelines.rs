//! Whole pipelines, at full speed or one frame at a time.

use std::time::Instant;

use clinspect_opencl::Step;
use gst::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    Contestant, Error,
    line::Line,
    protocol::{Frame, Settings, Times},
    skip,
};

struct Pipelines {
    lines: Vec<Line>,
    latency: bool,
}

/// Pipelines that each live for one frame.
struct Starts {
    frame: Frame,
    settings: Settings,
}

pub fn prepare(frame: &Frame, settings: &Settings) -> Result<Box<dyn Contestant>, Error> {
    check_elements(&settings.pipeline)?;
    if settings.start {
        return Ok(Box::new(Starts {
            frame: frame.clone(),
            settings: settings.clone(),
        }));
    }
    if settings.gpus > 0 {
        let gpus = clinspect_opencl::devices()?
            .iter()
            .filter(|d| d.is_gpu)
            .count();
        if gpus < settings.gpus {
            return Err(skip(format!("the machine has {gpus} GPUs")));
        }
    }
    let lines = (0..settings.pipelines.max(1))
        .map(|number| Line::new(frame, settings, number).and_then(Line::playing))
        .collect::<Result<Vec<_>, _>>()?;
    if settings.web {
        lines.iter().try_for_each(Line::begin_web)?;
    } else if settings.source == "proposed" {
        // The frame before the proposal.
        lines.iter().try_for_each(|line| line.wait().map(drop))?;
    }
    Ok(Box::new(Pipelines {
        lines,
        latency: settings.latency,
    }))
}

/// Skips a pipeline of which GStreamer has not all elements.
pub fn check_elements(pipeline: &str) -> Result<(), Error> {
    for word in pipeline.split(['!', ' ']).filter(|w| !w.is_empty()) {
        if !word.contains('=') && gst::ElementFactory::find(word).is_none() {
            return Err(skip(format!("GStreamer has no element {word} here")));
        }
    }
    Ok(())
}

impl Contestant for Starts {
    fn run(&mut self) -> Result<Times, Error> {
        let line = Line::new(&self.frame, &self.settings, 0)?;
        let started = Instant::now();
        let line = line.playing()?;
        line.push()?;
        Ok(Times {
            wall_ns: (line.wait()? - started).as_nanos() as u64,
            device_ns: 0,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

impl Contestant for Pipelines {
    fn run(&mut self) -> Result<Times, Error> {
        let times = self.run_many(1)?;
        times
            .into_iter()
            .next()
            .ok_or_else(|| "the run has no time".into())
    }

    /// Latency runs: the time of each frame; other runs: the mean time per frame.
    fn run_many(&mut self, times: u32) -> Result<Vec<Times>, Error> {
        let time = |wall_ns| Times {
            wall_ns,
            device_ns: 0,
        };
        if self.latency {
            let line = self.lines.first().ok_or("there is no pipeline")?;
            return (0..times)
                .map(|_| {
                    let pushed = line.push()?;
                    Ok(time((line.wait()? - pushed).as_nanos() as u64))
                })
                .collect();
        }
        let started = Instant::now();
        let done: Result<Vec<()>, String> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .lines
                .iter_mut()
                .map(|line| scope.spawn(move || line.run(times).map_err(|e| e.to_string())))
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())))
                .collect()
        });
        done?;
        let frames = u64::from(times) * self.lines.len() as u64;
        Ok(vec![time(started.elapsed().as_nanos() as u64 / frames)])
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    /// By element: the rate of each step, MB/s, and how frames reached the device.
    fn about(&self) -> Value {
        let mut about = Map::new();
        let Some(line) = self.lines.first() else {
            return Value::Null;
        };
        if let Some(steps) = line.meter.as_ref().and_then(|meter| meter.steps()) {
            let upload = steps.iter().find(|(step, _)| *step == Step::Upload);
            let rate = upload.map_or(0.0, |(_, profile)| profile.mean_rate());
            about.insert("source".into(), json!({"upload": rate.round()}));
        }
        for element in line.pipeline.iterate_recurse().into_iter().flatten() {
            if element.find_property("stats").is_none() {
                continue;
            }
            let Ok(stats) = element.property_value("stats").get::<gst::Structure>() else {
                continue;
            };
            let mut fields = Map::new();
            for step in Step::ALL {
                let name = step.name();
                if let Ok(rate) = stats.get::<f64>(format!("{name}-mean-mbps")) {
                    fields.insert(name.into(), json!(rate.round()));
                }
                if let Ok(ns) = stats.get::<u64>(format!("{name}-mean-ns")) {
                    fields.insert(format!("{name}-ns"), json!(ns));
                }
            }
            for way in ["zero-copy", "wrapped", "copied"] {
                if let Ok(frames) = stats.get::<u64>(format!("frames-{way}")) {
                    fields.insert(way.into(), json!(frames));
                }
            }
            let name = element.factory().map(|f| f.name().to_string());
            // GStreamer's sinks have a property of this name too.
            if let Some(name) = name.filter(|name| name.starts_with("cl")) {
                about.insert(name, Value::Object(fields));
            }
        }
        Value::Object(about)
    }
}
