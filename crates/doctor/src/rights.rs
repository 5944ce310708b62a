//! Whether this user may open the device files of GPUs and cameras.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::unistd::{AccessFlags, Gid, Group, access};
use serde::Serialize;

use crate::report::{Report, Section};

/// Folders, and how names of device files begin there.
const FILES: [(&str, &str); 3] = [
    ("/dev/dri", "renderD"),
    ("/dev", "nvidia"),
    ("/dev", "video"),
];

/// A device file.
#[derive(Debug, Serialize)]
struct Device {
    file: PathBuf,
    group: String,
    allowed: bool,
}

/// Adds the section.
pub fn examine(report: &mut Report) {
    let mut section = Section::new("rights", "Rights on GPUs and cameras");
    let mut devices: Vec<Device> = FILES
        .iter()
        .flat_map(|(folder, begin)| list(Path::new(folder), begin))
        .collect();
    devices.sort_by(|a, b| a.file.cmp(&b.file));
    let mut allowed = Vec::new();
    for Device {
        file,
        group,
        allowed: is_allowed,
    } in &devices
    {
        let file = file.display().to_string();
        match is_allowed {
            true => allowed.push(file),
            false => section.fault(
                format!("this user may not open {file}, which belongs to the group {group}"),
                how_to_join(group),
            ),
        }
    }
    if !allowed.is_empty() {
        section.ok(format!("this user may open {}", allowed.join(", ")));
    }
    if devices.is_empty() {
        section.ok(
            "this PC has no device files of GPUs or cameras (/dev/dri, /dev/nvidia*, /dev/video*)",
        );
    }
    section.set_data(&devices);
    report.add(section);
}

/// The command that gives a user the rights of a group.
fn how_to_join(group: &str) -> String {
    match group {
        // Its members could change the whole system.
        "root" => {
            "add a udev rule that gives the file to the group render or video; then restart the PC"
                .into()
        }
        _ => format!(
            "sudo usermod -aG {group} \"$USER\", then log in again; for a service: SupplementaryGroups={group}"
        ),
    }
}

/// Device files of a folder.
fn list(folder: &Path, begin: &str) -> Vec<Device> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        let name = entry.file_name();
        let is_file = entry.file_type().is_ok_and(|kind| !kind.is_dir());
        is_file && name.to_string_lossy().starts_with(begin)
    });
    files
        .filter_map(|entry| {
            let file = entry.path();
            let gid = fs::metadata(&file).ok()?.gid();
            let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
            // The kernel's answer, which knows access lists too.
            let allowed = access(&file, AccessFlags::R_OK | AccessFlags::W_OK).is_ok();
            let group = group.map_or_else(|| gid.to_string(), |group| group.name);
            Some(Device {
                file,
                group,
                allowed,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_join_root() {
        assert!(how_to_join("video").starts_with("sudo usermod -aG video "));
        assert!(!how_to_join("root").contains("usermod"));
    }
}
