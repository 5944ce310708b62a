//! One context and one queue per device in a process.
//!
//! Weak references only: a context lives as long as an element, a memory or a pool uses it, and
//! nothing of ours is left to be torn down at process exit, when drivers are half gone.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use super::{
    context::ClContext,
    device::{DeviceInfo, enumerate},
    handle::CAT,
    pocl_cache,
};
use clinspect_core::ClError;
use clinspect_core::selector::DeviceSelector;

#[derive(Default)]
pub(super) struct Registry {
    /// Process that first used OpenCL; drivers do not survive a fork.
    process: Option<u32>,
    contexts: Vec<(String, usize, Weak<ClContext>)>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

/// The lock under which OpenCL is initialised, contexts are made and programs are built.
pub(super) fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the device that `selector` names, or joins its context where the process has one.
///
/// # Errors
/// [`ClError::Unavailable`] where there is no such device; a failing OpenCL call otherwise.
pub fn open(selector: &str) -> Result<Arc<ClContext>, ClError> {
    let mut registry = lock();
    let process = std::process::id();
    if *registry.process.get_or_insert(process) != process {
        return Err(ClError::Unavailable(
            "OpenCL was used before this process was forked, and drivers do not survive a fork: \
             start the pipeline in a process of its own (spawn instead of fork)"
                .into(),
        ));
    }
    let devices = enumerate()?;
    let list: Vec<(String, bool, bool)> = devices
        .iter()
        .map(|d| (d.name.clone(), d.is_gpu, d.caps.is_cpu))
        .collect();
    let index = DeviceSelector::parse(selector)
        .choose(&list)
        .ok_or_else(|| not_found(selector, &devices))?;
    let device = &devices[index];
    // Frames that are still held somewhere keep the context of a lost device alive.
    registry
        .contexts
        .retain(|(_, _, context)| context.upgrade().is_some_and(|c| !c.has_failed()));
    let key = device.id as usize;
    if let Some(context) = registry
        .contexts
        .iter()
        .find(|(_, id, _)| *id == key)
        .and_then(|(_, _, context)| context.upgrade())
    {
        return Ok(context);
    }
    if device.is_pocl {
        pocl_cache::check()?;
    }
    let context = Arc::new(ClContext::new(device)?);
    gst::info!(CAT, "opened {}: {:?}", device.name, device.caps);
    registry
        .contexts
        .push((device.name.clone(), key, Arc::downgrade(&context)));
    Ok(context)
}

fn not_found(selector: &str, devices: &[DeviceInfo]) -> ClError {
    let names: Vec<String> = devices
        .iter()
        .map(|d| {
            let kind = match (d.is_gpu, d.caps.is_cpu) {
                (true, _) => "gpu",
                (_, true) => "cpu",
                _ => "accelerator",
            };
            format!("{} ({kind})", d.name)
        })
        .collect();
    ClError::Unavailable(format!(
        "no OpenCL device matches device={selector}; there are: {}. Set device, or CLINSPECT_DEVICE \
         that gives its default, to auto, cpu or part of one of these names; a GPU that is missing \
         needs its OpenCL driver installed",
        names.join(", ")
    ))
}
