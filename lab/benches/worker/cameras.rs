//! Cameras that share a process, a pipeline each: frames per second of all, how evenly they share them, and how long a
//! frame is under way.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gst::prelude::*;
use serde_json::{Value, json};

use crate::{
    Contestant, Error,
    line::{Arrival, Line},
    pipelines::check_elements,
    protocol::{Frame, Settings, Times},
};

/// Frames of each camera before the measurement, at full speed.
const WARM_UP: u32 = 24;
/// The part of the measurement at its beginning that does not count.
const RUN_IN: f64 = 0.1;

/// When frames pass a pad, by timestamp.
type Passages = Arc<Mutex<Vec<(gst::ClockTime, Instant)>>>;

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Frames of all cameras.
    pub frames_per_s: f64,
    /// Frames of the camera with the fewest, divided by the mean.
    pub fairness: f64,
    /// From the first element's sink pad to the last one's source pad, ns, of all frames in rising order.
    pub passed: Vec<u64>,
    /// From the first element's sink pad until the mask is on the host, ns, of all frames in rising order.
    pub read: Vec<u64>,
}

impl Figures {
    /// The figures as fields of an answer.
    fn fields(&self, rate: u64) -> Value {
        json!({
            "rate": rate, "fairness": self.fairness,
            "p50-ns": percentile(&self.passed, 50), "p99-ns": percentile(&self.passed, 99),
            "read-p50-ns": percentile(&self.read, 50), "read-p99-ns": percentile(&self.read, 99),
        })
    }
}

/// The least value that `percent` of `sorted` do not exceed; 0 if there is none.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

struct Camera {
    line: Line,
    arrived: Passages,
    left: Passages,
}

/// Cameras, playing.
pub struct Cameras {
    cameras: Vec<Camera>,
    rate: u64,
    together: bool,
    seconds: f64,
    last: Figures,
}

pub fn prepare(frame: &Frame, settings: &Settings) -> Result<Box<dyn Contestant>, Error> {
    Ok(Box::new(Cameras::new(frame, settings)?))
}

impl Cameras {
    /// `settings.pipelines` cameras with `settings.pipeline` each.
    ///
    /// # Errors
    /// A pipeline does not start.
    pub fn new(frame: &Frame, settings: &Settings) -> Result<Self, Error> {
        check_elements(&settings.pipeline)?;
        let cameras = (0..settings.pipelines.max(1))
            .map(|number| Camera::new(frame, settings, number))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            cameras,
            rate: settings.rate,
            together: settings.together,
            seconds: settings.seconds,
            last: Figures::default(),
        })
    }

    /// Runs all cameras.
    ///
    /// # Errors
    /// A pipeline fails.
    pub fn measure(&mut self) -> Result<Figures, Error> {
        at_once(&mut self.cameras, |camera, _| camera.line.run(WARM_UP))?;
        for camera in &self.cameras {
            camera.forget();
        }
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(self.seconds);
        let counted = [start + Duration::from_secs_f64(self.seconds * RUN_IN), end];
        let (rate, together, count) = (self.rate, self.together, self.cameras.len());
        let arrivals: Vec<Vec<Arrival>> = at_once(&mut self.cameras, |camera, number| {
            let pushed = if rate == 0 {
                camera.line.stream_until(end)
            } else {
                let period = Duration::from_secs(1).div_f64(rate as f64);
                let part = if together {
                    0.0
                } else {
                    number as f64 / count as f64
                };
                camera.push_at_pace(start + period.mul_f64(part), period, end)
            }?;
            (0..pushed).map(|_| camera.line.arrival()).collect()
        })?;
        let mut figures = Figures::default();
        let mut fewest = usize::MAX;
        let mut all = 0;
        for (camera, arrivals) in self.cameras.iter().zip(&arrivals) {
            let frames = camera.latencies(arrivals, counted, &mut figures);
            fewest = fewest.min(frames);
            all += frames;
            camera.line.drop_messages();
        }
        figures.passed.sort_unstable();
        figures.read.sort_unstable();
        figures.frames_per_s = all as f64 / (counted[1] - counted[0]).as_secs_f64();
        figures.fairness = fewest as f64 * self.cameras.len() as f64 / all.max(1) as f64;
        Ok(figures)
    }
}

/// Does `work` with each camera, in a thread each.
fn at_once<T: Send>(
    cameras: &mut [Camera],
    work: impl Fn(&mut Camera, usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let work = &work;
    let done: Result<Vec<T>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (cameras.iter_mut().enumerate())
            .map(|(number, camera)| {
                scope.spawn(move || work(camera, number).map_err(|e| e.to_string()))
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect()
    });
    Ok(done?)
}

impl Camera {
    fn new(frame: &Frame, settings: &Settings, number: usize) -> Result<Self, Error> {
        let line = Line::new(frame, settings, number)?;
        let arrived = watch(&line.middle, "sink")?;
        let left = watch(&line.middle, "src")?;
        let line = line.playing()?;
        if settings.source == "proposed" {
            // The frame before the proposal.
            line.wait()?;
        }
        Ok(Self {
            line,
            arrived,
            left,
        })
    }

    fn forget(&self) {
        for passages in [&self.arrived, &self.left] {
            passages
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    }

    /// Number of frames pushed. A camera whose frames are not taken drops those that are due meanwhile.
    fn push_at_pace(&self, first: Instant, period: Duration, end: Instant) -> Result<u64, Error> {
        let mut pushed = 0;
        let mut due = first;
        while due < end {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            self.line.push()?;
            pushed += 1;
            due += period;
            while due < Instant::now() {
                due += period;
            }
        }
        Ok(pushed)
    }

    /// Adds the latencies of the frames that reached the sink within `counted`; their number.
    fn latencies(
        &self,
        arrivals: &[Arrival],
        counted: [Instant; 2],
        figures: &mut Figures,
    ) -> usize {
        let times = |passages: &Passages| -> HashMap<_, _> {
            let passages = passages.lock().unwrap_or_else(PoisonError::into_inner);
            passages.iter().copied().collect()
        };
        let (arrived, left) = (times(&self.arrived), times(&self.left));
        let mut frames = 0;
        for arrival in arrivals {
            if arrival.at < counted[0] || arrival.at > counted[1] {
                continue;
            }
            frames += 1;
            let Some(pts) = arrival.pts else { continue };
            if let (Some(&came), Some(&went)) = (arrived.get(&pts), left.get(&pts)) {
                figures.passed.push((went - came).as_nanos() as u64);
                figures.read.push((arrival.at - came).as_nanos() as u64);
            }
        }
        frames
    }
}

/// Notes when each frame passes this pad.
fn watch(element: &gst::Element, pad: &str) -> Result<Passages, Error> {
    let passages = Passages::default();
    let noted = Arc::clone(&passages);
    let pad = element.static_pad(pad).ok_or("the chain has no such pad")?;
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let pts = info.buffer().and_then(|buffer| buffer.pts());
        if let Some(pts) = pts {
            let now = Instant::now();
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.push((pts, now));
        }
        gst::PadProbeReturn::Ok
    });
    Ok(passages)
}

impl Contestant for Cameras {
    /// The mean time per frame of all cameras together.
    fn run(&mut self) -> Result<Times, Error> {
        self.last = self.measure()?;
        Ok(Times {
            wall_ns: (1e9 / self.last.frames_per_s) as u64,
            device_ns: 0,
        })
    }

    fn result(&mut self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    fn about(&self) -> Value {
        self.last.fields(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentile_is_the_least_value_that_enough_do_not_exceed() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!([50, 99].map(|p| percentile(&hundred, p)), [50, 99]);
        assert_eq!([50, 99].map(|p| percentile(&[3, 7], p)), [3, 7]);
        assert_eq!(percentile(&[], 99), 0);
    }
}
