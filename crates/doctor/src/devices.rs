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

/// Part of the name of PoCL's platform.
const POCL: &str = "Portable Computing Language";

impl Device {
    /// What to do about a device on which an element fails; `all` are the devices of the PC.
    pub fn advice(&self, all: &[Self]) -> String {
        let update = format!("update the driver ({})", self.platform);
        let others = || all.iter().filter(|other| other.selector != self.selector);
        let instead = others().find(|other| other.is_cpu);
        match instead.or_else(|| others().next()) {
            Some(Self { selector, name, .. }) => {
                // The first CPU needs no number.
                let selector = selector.strip_suffix(":0").unwrap_or(selector);
                format!("{update}, or set device={selector} to use {name}")
            }
            None if self.is_cpu => update,
            None => format!("{update}, or install pocl-opencl-icd and set device=cpu"),
        }
    }

    /// Whether it is a device of PoCL, which keeps compiled kernels in a folder.
    pub fn is_pocl(&self) -> bool {
        self.platform.contains(POCL)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn device(selector: &str, name: &str) -> Device {
        Device {
            selector: selector.into(),
            name: name.into(),
            platform: "Vendor's OpenCL".into(),
            platform_version: String::new(),
            driver_version: String::new(),
            version: String::new(),
            is_gpu: selector.starts_with("gpu"),
            is_cpu: selector.starts_with("cpu"),
            compute_units: 4,
            largest_allocation: 1 << 30,
        }
    }

    #[test]
    fn advice_names_a_device_that_can_be_set_instead() {
        let (gpu, other) = (device("gpu:0", "a GPU"), device("gpu:1", "a second GPU"));
        let (cpu, slow) = (device("cpu:0", "a CPU"), device("cpu:1", "a slow CPU"));
        let all = [gpu.clone(), other.clone(), cpu.clone(), slow];
        let update = "update the driver (Vendor's OpenCL)";
        for (failing, all, instead) in [
            (&gpu, &all[..], ", or set device=cpu to use a CPU"),
            (&cpu, &all[..], ", or set device=cpu:1 to use a slow CPU"),
            (&gpu, &all[..2], ", or set device=gpu:1 to use a second GPU"),
            (
                &gpu,
                &all[..1],
                ", or install pocl-opencl-icd and set device=cpu",
            ),
            (&cpu, &all[2..3], ""),
        ] {
            assert_eq!(failing.advice(all), format!("{update}{instead}"));
        }
    }
}
