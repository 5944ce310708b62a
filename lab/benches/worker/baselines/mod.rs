//! Published forms of the three algorithms, rewritten from their descriptions and corrected;
//! kernels in `benches/baselines/`.

mod gaussian;
mod histogram;
mod histogram_bytes;
mod pitch_threshold;

use crate::{
    Contestant, Error,
    device::Device,
    protocol::{Frame, Settings},
};

pub fn prepare(
    task: &str,
    frame: &Frame,
    settings: &Settings,
) -> Result<Box<dyn Contestant>, Error> {
    let device = Device::open(&settings.device)?;
    match task {
        "histogram" => histogram::prepare(device, frame, settings),
        "gaussian" => gaussian::prepare(device, frame, settings),
        "pitch_threshold" => pitch_threshold::prepare(device, frame, settings),
        _ => Err(format!("no baseline is called {task}").into()),
    }
}
