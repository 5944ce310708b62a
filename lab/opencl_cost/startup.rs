//! Work before the first frame, measured in fresh processes because drivers and compilers keep loaded
//! code.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use clap::ValueEnum;
use clinspect_core::region::Rect;
use clinspect_opencl::ProgramSource;
use clinspect_operators::{Gaussian, Histogram, PitchThreshold};
use serde::{Deserialize, Serialize};

use crate::{Child, Effort, Error, frames, increment, timing::median};

/// Environment variables of the compilers' caches: PoCL, NVIDIA, and others.
pub const CACHES: [&str; 3] = ["POCL_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"];

/// A step's time.
#[derive(Debug, Serialize)]
pub struct Startup {
    pub step: String,
    /// With an empty compiler cache, ms.
    pub cold_ms: f64,
    /// With the cache of the cold run, ms.
    pub warm_ms: f64,
}

/// A measurement of a child process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    pub step: String,
    pub ms: f64,
}

/// Measures in fresh processes, cold and warm.
///
/// # Errors
/// A process does not start, or fails.
pub fn measure(selector: &str, effort: Effort) -> Result<Vec<Startup>, Error> {
    let mut startup = Vec::new();
    for (child, sum) in [
        (Child::Programs, "sum of drivers, context and programs"),
        (Child::Elements, "sum of the elements"),
    ] {
        let steps = measure_child(child, selector, effort)?;
        let sum = Startup {
            step: sum.into(),
            cold_ms: steps.iter().map(|step| step.cold_ms).sum(),
            warm_ms: steps.iter().map(|step| step.warm_ms).sum(),
        };
        startup.extend(steps);
        startup.push(sum);
    }
    Ok(startup)
}

/// The steps of a kind of child process.
///
/// # Errors
/// A process does not start, or fails.
pub fn measure_child(child: Child, device: &str, effort: Effort) -> Result<Vec<Startup>, Error> {
    let mut cold = Vec::new();
    let mut warm = Vec::new();
    for _ in 0..effort.cold_runs {
        let cache = Cache::new()?;
        cold.push(measure_in(&cache.0, child, device, effort)?);
        warm.push(measure_in(&cache.0, child, device, effort)?);
    }
    let first = cold.first().map(Vec::as_slice).unwrap_or_default();
    let steps = first.iter().enumerate().map(|(index, step)| {
        let times = |runs: &[Vec<Step>]| {
            median(
                runs.iter()
                    .filter_map(|run| Some(run.get(index)?.ms))
                    .collect(),
            )
        };
        Startup {
            step: step.step.clone(),
            cold_ms: times(&cold),
            warm_ms: times(&warm),
        }
    });
    Ok(steps.collect())
}

/// An empty folder, removed on drop.
struct Cache(PathBuf);

impl Cache {
    fn new() -> Result<Self, Error> {
        for attempt in 0..100 {
            let name = format!("opencl_cost-{}-{attempt}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            // An existing folder belongs to another process.
            match std::fs::create_dir(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", folder.display()).into()),
            }
        }
        Err("cannot create a folder for an empty compiler cache: every name is taken".into())
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn measure_in(
    cache: &Path,
    child: Child,
    device: &str,
    effort: Effort,
) -> Result<Vec<Step>, Error> {
    let name = child
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default();
    let output = Command::new(std::env::current_exe()?)
        .args(["--child", &name, "--device", device])
        .args(["--count", &effort.count.to_string()])
        .envs(CACHES.map(|variable| (variable, cache)))
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the process that measures {name} failed: {}", why.trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures in this process, and prints the steps for the parent.
///
/// # Errors
/// A failing OpenCL call.
pub fn measure_here(child: Child, device: &str, count: u32) -> Result<(), Error> {
    let steps = match child {
        Child::Increment => increment::measure_here(device, count)?,
        Child::Programs | Child::Elements => measure_ours(child, device)?,
    };
    println!("{}", serde_json::to_string(&steps)?);
    Ok(())
}

fn measure_ours(child: Child, selector: &str) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let mut time = |step: &str, run: &mut dyn FnMut() -> Result<(), Error>| -> Result<(), Error> {
        let started = Instant::now();
        run()?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        let step = step.to_owned();
        steps.push(Step { step, ms });
        Ok(())
    };
    if child == Child::Programs {
        time("load drivers, list devices", &mut || {
            clinspect_opencl::devices()?;
            Ok(())
        })?;
        let mut opened = None;
        time("create context and queue", &mut || {
            opened = Some(clinspect_opencl::open(selector)?);
            Ok(())
        })?;
        let context = opened.ok_or("no context")?;
        for source in ProgramSource::for_any_device() {
            time(&format!("build {}", source.file()), &mut || {
                context.program(source, "")?;
                Ok(())
            })?;
        }
    } else {
        let context = clinspect_opencl::open(selector)?;
        let layout = frames::layout([640, 480])?;
        time("prepare clgaussian", &mut || {
            Gaussian::new(&context, &layout, &frames::gaussian_settings())?;
            Ok(())
        })?;
        time("prepare clhistogram", &mut || {
            let region = Rect::new(0, 0, 640, 480);
            Histogram::new(&context, &layout, &frames::histogram_settings(region))?;
            Ok(())
        })?;
        time("prepare clpitchthreshold", &mut || {
            PitchThreshold::new(&context, &layout, &frames::pitch_threshold_settings())?;
            Ok(())
        })?;
    }
    Ok(steps)
}
