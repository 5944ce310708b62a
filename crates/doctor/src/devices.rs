//! The OpenCL devices that the elements can use.

use std::{env, path::Path, time::Duration};

use clinspect_core::selector::DeviceSelector;
use serde::{Deserialize, Serialize};

use crate::{
    drivers::Drivers,
    probe::Probe,
    report::{Report, Section},
};

/// The elements' default of the property `device`.
const DEFAULT: &str = "CLINSPECT_DEVICE";

/// A device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Device {
    /// The value of the property `device` that selects it.
    pub selector: String,
    /// The name that the driver reports.
    pub name: String,
    /// The driver's product.
    pub platform: String,
    platform_version: String,
    driver_version: String,
    version: String,
    is_gpu: bool,
    is_cpu: bool,
    compute_units: usize,
    largest_allocation: u64,
}

/// The devices of all drivers.
///
/// # Errors
/// What to install if there is none.
pub fn probe() -> Result<Vec<Device>, String> {
    let devices = clinspect_opencl::devices().map_err(|error| error.to_string())?;
    let selectors = clinspect_opencl::selectors(&devices);
    let devices = selectors.into_iter().zip(devices);
    let device = devices.map(|(selector, device)| Device {
        selector,
        name: device.name,
        platform: device.platform,
        platform_version: device.platform_version,
        driver_version: device.driver_version,
        version: device.version,
        is_gpu: device.is_gpu,
        is_cpu: device.caps.is_cpu,
        compute_units: device.caps.compute_units,
        largest_allocation: device.caps.max_allocation,
    });
    Ok(device.collect())
}

/// Adds the section; returns the devices to test.
pub fn examine(
    report: &mut Report,
    limit: Duration,
    drivers: &Drivers,
    only: Option<&str>,
) -> Vec<Device> {
    let mut section = Section::new("devices", "OpenCL devices");
    let found = match &drivers.blocked {
        Some(why) => {
            section.note(format!("not asked, because {why}"));
            Vec::new()
        }
        None => match Probe::Devices.ask::<Vec<Device>>(limit, &[]) {
            Ok(devices) => devices,
            Err(trouble) => {
                section.fault(
                    format!("no device can be used: {trouble}"),
                    "mend the faults of the drivers above, then run clinspect-doctor again",
                );
                Vec::new()
            }
        },
    };
    for device in &found {
        let Device {
            selector,
            name,
            platform,
            driver_version,
            version,
            compute_units,
            ..
        } = device;
        section.ok(format!(
            "device={selector}: {name}; {platform}, driver {driver_version}, {version}; {compute_units} compute units"
        ));
    }
    if !found.is_empty() {
        judge_default(&mut section, &found);
        if !found.iter().any(|device| device.is_gpu) && Path::new("/dev/nvidiactl").exists() {
            section.advise(
                "this PC has an NVIDIA GPU, but no OpenCL driver offers it",
                "sudo apt install nvidia-opencl-icd, of the same version as the kernel's driver",
            );
        }
    }
    section.set_data(&found);
    let tested = match only {
        Some(selector) if !found.is_empty() => match choose(selector, &found) {
            Some(device) => vec![device.clone()],
            None => {
                section.fault(
                    format!("no device matches --device {selector}"),
                    format!("choose one of {}", listed(&found)),
                );
                Vec::new()
            }
        },
        _ => found,
    };
    report.add(section);
    tested
}

/// Says which device a pipeline uses that names none.
fn judge_default(section: &mut Section, found: &[Device]) {
    let named = env::var(DEFAULT).unwrap_or_default();
    match choose(&named, found) {
        Some(device) if named.is_empty() => {
            section.ok(format!(
                "a pipeline that names no device uses device={}",
                device.selector
            ));
        }
        Some(device) => section.ok(format!(
            "a pipeline that names no device uses device={}, because {DEFAULT} is {named}",
            device.selector
        )),
        None => section.fault(
            format!("{DEFAULT} is {named}, which matches no device"),
            format!("unset {DEFAULT}, or set it to one of {}", listed(found)),
        ),
    }
}

fn choose<'a>(selector: &str, devices: &'a [Device]) -> Option<&'a Device> {
    let list: Vec<_> = devices
        .iter()
        .map(|d| (d.name.clone(), d.is_gpu, d.is_cpu))
        .collect();
    DeviceSelector::parse(selector)
        .choose(&list)
        .map(|index| &devices[index])
}

fn listed(devices: &[Device]) -> String {
    let selectors: Vec<&str> = devices.iter().map(|device| &*device.selector).collect();
    selectors.join(", ")
}
