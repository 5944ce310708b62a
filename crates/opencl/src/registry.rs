//! One context per device in a process.
//!
//! The registry holds weak references: a context lives as long as an element, a memory or a pool
//! uses it. So nothing is left to release at process exit, when drivers may be unloaded already.

use std::sync::{Arc, Weak};

use super::{
    context::ClContext,
    context::DeviceContext,
    device::{DeviceInfo, enumerate, lock_driver},
    handle::CAT,
    pocl_cache,
    sync::{Lock, Rank},
};
use clinspect_core::ClError;
use clinspect_core::selector::DeviceSelector;

struct Registry {
    /// The process that first used OpenCL; drivers do not survive a fork.
    process: Option<u32>,
    /// The devices found last; valid while a context lives.
    devices: Vec<DeviceInfo>,
    /// Contexts and the ids of their devices.
    contexts: Vec<(usize, Weak<DeviceContext>)>,
}

/// Never locked during a driver call, except to release a context.
static REGISTRY: Lock<Registry> = Lock::new(
    Rank::Registry,
    Registry {
        process: None,
        devices: Vec::new(),
        contexts: Vec::new(),
    },
);

impl Registry {
    /// The open context of the device that `selector` names.
    ///
    /// # Errors
    /// OpenCL was used before this process was forked.
    fn opened(&mut self, selector: &DeviceSelector) -> Result<Option<Arc<DeviceContext>>, ClError> {
        let process = std::process::id();
        if *self.process.get_or_insert(process) != process {
            return Err(ClError::Unavailable(
                "OpenCL was used before this process was forked, and drivers do not survive a \
                 fork: start the pipeline in a process of its own (spawn instead of fork)"
                    .into(),
            ));
        }
        // Frames in use elsewhere may keep the context of a failed device alive.
        self.contexts
            .retain(|(_, context)| context.upgrade().is_some_and(|c| !c.has_failed()));
        if self.contexts.is_empty() {
            self.devices.clear();
        }
        let Some(index) = choose(selector, &self.devices) else {
            return Ok(None);
        };
        let id = self.devices[index].id as usize;
        let known = self.contexts.iter().find(|(known, _)| *known == id);
        Ok(known.and_then(|(_, context)| context.upgrade()))
    }
}

/// Opens the device that `selector` names for an element. All elements on a device share its context.
///
/// # Errors
/// [`ClError::Unavailable`] if there is no such device; otherwise the failing OpenCL call.
pub fn open(selector: &str) -> Result<Arc<ClContext>, ClError> {
    ClContext::new(opened(selector)?, false).map(Arc::new)
}

/// Like [`open`]; the device takes the times of the element's commands, for a [`Meter`](super::Meter) that measures.
///
/// # Errors
/// See [`open`].
pub fn open_profiled(selector: &str) -> Result<Arc<ClContext>, ClError> {
    ClContext::new(opened(selector)?, true).map(Arc::new)
}

/// The context that the process already has for the device, or a new one.
fn opened(selector: &str) -> Result<Arc<DeviceContext>, ClError> {
    let parsed = DeviceSelector::parse(selector);
    if let Some(context) = REGISTRY.lock().opened(&parsed)? {
        return Ok(context);
    }
    let _driver = lock_driver();
    // Another thread may have opened the device meanwhile.
    if let Some(context) = REGISTRY.lock().opened(&parsed)? {
        return Ok(context);
    }
    let devices = enumerate()?;
    let index = choose(&parsed, &devices).ok_or_else(|| not_found(selector, &devices))?;
    let device = &devices[index];
    if device.is_pocl {
        pocl_cache::check()?;
    }
    let context = Arc::new(DeviceContext::new(device)?);
    gst::info!(CAT, "opened {}: {:?}", device.name, device.caps);
    let mut registry = REGISTRY.lock();
    registry
        .contexts
        .push((device.id as usize, Arc::downgrade(&context)));
    registry.devices = devices;
    Ok(context)
}

/// Every usable device, in the order that `gpu:N` and `cpu:N` count them.
///
/// # Errors
/// [`ClError::Unavailable`] with what to install if there is no device.
pub fn devices() -> Result<Vec<DeviceInfo>, ClError> {
    let _driver = lock_driver();
    enumerate()
}

/// The value of the property `device` that selects each device: gpu:N, cpu:N, or the name of a device
/// that is neither.
pub fn selectors(devices: &[DeviceInfo]) -> Vec<String> {
    let (mut gpus, mut cpus) = (0.., 0..);
    let mut number = |device: &DeviceInfo| match (device.is_gpu, device.caps.is_cpu) {
        (true, _) => gpus.next().map(|n| format!("gpu:{n}")),
        (_, true) => cpus.next().map(|n| format!("cpu:{n}")),
        _ => None,
    };
    let selector = |device: &DeviceInfo| number(device).unwrap_or_else(|| device.name.clone());
    devices.iter().map(selector).collect()
}

fn choose(selector: &DeviceSelector, devices: &[DeviceInfo]) -> Option<usize> {
    let list: Vec<(String, bool, bool)> = devices
        .iter()
        .map(|d| (d.name.clone(), d.is_gpu, d.caps.is_cpu))
        .collect();
    selector.choose(&list)
}

fn not_found(selector: &str, devices: &[DeviceInfo]) -> ClError {
    let listed = selectors(devices).into_iter().zip(devices);
    let names: Vec<String> = listed
        .map(|(selector, device)| format!("{selector} ({})", device.name))
        .collect();
    ClError::Unavailable(format!(
        "no OpenCL device matches device={selector}; available: {}. Set device (or CLINSPECT_DEVICE, \
         its default) to auto, to one of these or to part of a name; if a GPU is missing, install its \
         OpenCL driver",
        names.join(", ")
    ))
}
