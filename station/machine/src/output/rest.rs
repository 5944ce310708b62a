//! Sets outputs to rest for a station that has ended.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use clinspect_aravis::Camera;
use plan::{CameraConfig, OutputSettings, Source, Wire};

use super::{CameraLine, GpioOutput, Line};

/// Longest time for all outputs. A camera forgets the program that had it open after about 3 s without a sign of life.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause between two attempts.
const RETRY: Duration = Duration::from_millis(300);

/// Sets the outputs of these cameras to rest, all at the same time, within 10 s. Returns for each camera with
/// an output its name, and a sentence if its output may still be active.
pub fn rest(cameras: &[CameraConfig]) -> Vec<(String, Result<(), String>)> {
    let until = Instant::now() + LIMIT;
    let (results, received) = mpsc::channel();
    let mut waiting = Vec::new();
    for camera in cameras {
        let Some(settings) = camera.output.clone() else {
            continue;
        };
        waiting.push(camera.name.clone());
        let (name, source, results) = (camera.name.clone(), camera.source.clone(), results.clone());
        std::thread::spawn(move || {
            let mut done = set(&settings, &source);
            while done.is_err() && Instant::now() + RETRY < until {
                std::thread::sleep(RETRY);
                done = set(&settings, &source);
            }
            // Nobody waits after the limit.
            let _ = results.send((name, done));
        });
    }
    let mut results = Vec::new();
    while !waiting.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((name, done)) = received.recv_timeout(left) else {
            break;
        };
        waiting.retain(|other| *other != name);
        results.push((name, done));
    }
    let silent = |name| (name, Err("it does not answer".to_owned()));
    results.extend(waiting.into_iter().map(silent));
    results
}

fn set(settings: &OutputSettings, source: &Source) -> Result<(), String> {
    match (&settings.wire, source) {
        (Wire::Gpio { gpio, is_inverted }, _) => GpioOutput::new(gpio, *is_inverted).set(false),
        (Wire::Camera { user_output, line }, Source::Aravis { camera, .. }) => {
            let camera = Arc::new(Camera::open(camera)?);
            CameraLine::new(camera, user_output, line.as_deref()).set(false)
        }
        (Wire::Camera { .. }, Source::Description(_)) => {
            Err("the source of the camera is not aravis".to_owned())
        }
    }
}
