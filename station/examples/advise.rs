//! Prints what the set-up page would advise for pictures: `cargo run --example advise -- good-*.png`.

use std::{fs, process::ExitCode, sync::Arc, time::Instant};

use run::frame::Frame;
use setup::advice::advise;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    gst::init().map_err(|error| error.to_string())?;
    let read = |path: String| -> Result<Arc<Frame>, String> {
        let bytes = fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        let frame = Frame::read(&bytes).map_err(|why| format!("{path}: {why}"))?;
        Ok(Arc::new(frame))
    };
    let frames = std::env::args()
        .skip(1)
        .map(read)
        .collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let advice = advise(&frames)?;
    eprintln!("{} ms", start.elapsed().as_millis());
    println!(
        "{}",
        serde_json::to_string_pretty(&advice).map_err(|error| error.to_string())?
    );
    Ok(())
}
