//! The network for GigE Vision cameras: receive buffers, and the size of packets.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    cameras::Cameras,
    report::{Mark, Report, Section},
};

/// A camera of 512 x 512 lost frames with 208 KiB, the usual default, and none with this size.
const ENOUGH: u64 = 8 << 20;
/// Packets of this many bytes cost the processor a sixth of the usual 1500.
const JUMBO: u64 = 9000;
/// The kernel's number for Ethernet.
const ETHERNET: &str = "1";

#[derive(Debug, Serialize)]
struct Network {
    /// Bytes.
    rmem_default: Option<u64>,
    rmem_max: Option<u64>,
    interfaces: Vec<Interface>,
}

#[derive(Debug, Serialize)]
struct Interface {
    name: String,
    mtu: u64,
}

/// Adds the section.
pub fn examine(report: &mut Report, cameras: Cameras) {
    let mut section = Section::new("network", "Network for GigE Vision cameras");
    let buffer = |name: &str| number(&Path::new("/proc/sys/net/core").join(name));
    let network = Network {
        rmem_default: buffer("rmem_default"),
        rmem_max: buffer("rmem_max"),
        interfaces: interfaces(),
    };
    judge(&mut section, &network, cameras);
    section.set_data(&network);
    report.add(section);
}

fn judge(section: &mut Section, network: &Network, cameras: Cameras) {
    match (network.rmem_default, network.rmem_max) {
        (Some(default), Some(max)) => {
            let text = format!(
                "receive buffers: {} KiB, at most {} KiB",
                default >> 10,
                max >> 10
            );
            if default >= ENOUGH {
                section.ok(text);
            } else {
                // Only cameras on the network lose frames.
                let mark = if cameras.on_network {
                    Mark::Fault
                } else {
                    Mark::Note
                };
                section.add(
                    mark,
                    format!("{text}: too small for GigE Vision cameras, which lose frames while the processor is busy"),
                    Some(format!(
                        "sudo sysctl -w net.core.rmem_default={ENOUGH} net.core.rmem_max={}; to keep this, write the same \
                         two lines to /etc/sysctl.d/60-clinspect.conf",
                        max.max(ENOUGH)
                    )),
                );
            }
        }
        _ => section.note(
            "the size of the receive buffers is unknown here: /proc/sys/net/core does not show it",
        ),
    }
    for Interface { name, mtu } in &network.interfaces {
        let text = format!("{name}: packets of {mtu} bytes");
        if *mtu < JUMBO && cameras.on_network {
            section.advise(
                format!("{text}; jumbo frames of {JUMBO} bytes need less of the processor"),
                format!(
                    "sudo ip link set {name} mtu {JUMBO}, if the camera and the switch allow it"
                ),
            );
        } else {
            section.ok(text);
        }
    }
}

/// Ethernet interfaces that are switched on.
fn interfaces() -> Vec<Interface> {
    let entries = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let is = |path: PathBuf, value: &str| {
        fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
    };
    let mut found: Vec<Interface> = entries
        .filter(|entry| {
            let path = entry.path();
            is(path.join("type"), ETHERNET) && is(path.join("operstate"), "up")
        })
        .filter_map(|entry| {
            let mtu = number(&entry.path().join("mtu"))?;
            Some(Interface {
                name: entry.file_name().to_string_lossy().into_owned(),
                mtu,
            })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(default: u64, on_network: bool) -> (usize, usize) {
        let network = Network {
            rmem_default: Some(default),
            rmem_max: Some(212_992),
            interfaces: vec![Interface {
                name: "eth0".into(),
                mtu: 1500,
            }],
        };
        let mut section = Section::new("network", "");
        judge(&mut section, &network, Cameras { on_network });
        (section.count(Mark::Fault), section.count(Mark::Note))
    }

    #[test]
    fn small_buffers_are_a_fault_only_with_a_camera_on_the_network() {
        assert_eq!(faults(212_992, true), (1, 1));
        assert_eq!(faults(212_992, false), (0, 1));
        assert_eq!(faults(ENOUGH, true), (0, 1));
        assert_eq!(faults(ENOUGH, false), (0, 0));
    }
}
