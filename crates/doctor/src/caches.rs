//! The folders that keep compiled kernels: whether they can be written, whether other users can place code there, and
//! whether the disk has room.

use std::{
    env, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process,
};

use clinspect_opencl::{Cache, check_pocl_cache, pocl_cache_folder};
use nix::sys::statvfs::statvfs;
use serde::Serialize;

use crate::{
    devices::Device,
    report::{Report, Section},
};

/// The beginning of the name of the platform of NVIDIA's driver.
const NVIDIA: &str = "NVIDIA CUDA";
/// Length of the file that is written to see whether there is room.
const TRIAL: usize = 1 << 16;
/// Less free space than this is too little for the kernels of a chain.
const LEAST_FREE: u64 = 64 << 20;

/// A folder.
#[derive(Debug, Serialize)]
struct Folder {
    /// `clinspect`, `pocl`, `nvidia`.
    cache: &'static str,
    folder: PathBuf,
    exists: bool,
    writable: bool,
    /// Bytes; absent if unknown.
    free: Option<u64>,
}

/// Adds the section. `removed`: what was wrong in PoCL's cache before the first probe.
pub fn examine(report: &mut Report, devices: &[Device], removed: Option<String>) {
    let mut section = Section::new("caches", "Caches of compiled kernels");
    if let Some(removed) = removed {
        section.note(removed);
    }
    let mut folders = Vec::new();
    own(&mut section, &mut folders);
    // Without a cache PoCL has no device.
    if devices.is_empty() || devices.iter().any(Device::is_pocl) {
        pocl(&mut section, &mut folders);
    }
    let is_nvidia = |device: &Device| device.platform.contains(NVIDIA);
    if devices.iter().any(is_nvidia) {
        nvidia(&mut section, &mut folders);
    }
    section.set_data(&folders);
    report.add(section);
}

/// The plugin's cache.
fn own(section: &mut Section, folders: &mut Vec<Folder>) {
    const VARIABLE: &str = "CLINSPECT_CACHE_DIR";
    let Some(folder) = Cache::folder() else {
        section.fault(
            "HOME is not set, so compiled kernels and passed self-tests are not kept, and every start is slow",
            format!("set {VARIABLE} to a folder of your own"),
        );
        return;
    };
    let is_writable = look(section, folders, "clinspect", &folder, VARIABLE);
    // The folder's rights, as the elements check them.
    if is_writable && let Err(error) = Cache::open() {
        let mend = format!(
            "chmod go-w {0}; if it belongs to another user, set {VARIABLE} to a folder of your own",
            folder.display()
        );
        section.fault(error.to_string(), mend);
    }
}

/// PoCL's cache. PoCL has no device if it cannot write there.
fn pocl(section: &mut Section, folders: &mut Vec<Folder>) {
    let folder = pocl_cache_folder();
    let is_writable = look(section, folders, "pocl", &folder, "POCL_CACHE_DIR");
    if is_writable && let Err(error) = check_pocl_cache() {
        section.fault(error.to_string(), format!("chmod o-w {}", folder.display()));
    }
}

/// The cache of NVIDIA's driver.
fn nvidia(section: &mut Section, folders: &mut Vec<Folder>) {
    const VARIABLE: &str = "CUDA_CACHE_PATH";
    if env::var_os("CUDA_CACHE_DISABLE").is_some_and(|value| value == "1") {
        section.advise(
            "CUDA_CACHE_DISABLE is 1, so NVIDIA's driver compiles the kernels at every start",
            "unset CUDA_CACHE_DISABLE",
        );
        return;
    }
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".nv/ComputeCache"));
    match env::var_os(VARIABLE).map(PathBuf::from).or_else(home) {
        Some(folder) => {
            look(section, folders, "nvidia", &folder, VARIABLE);
        }
        None => section.advise(
            "HOME is not set, so NVIDIA's driver compiles the kernels at every start",
            format!("set {VARIABLE} to a folder of your own"),
        ),
    }
}

/// Adds what is to say about writing to a folder; whether it can be written.
fn look(
    section: &mut Section,
    folders: &mut Vec<Folder>,
    cache: &'static str,
    folder: &Path,
    variable: &str,
) -> bool {
    let exists = folder.exists();
    // The nearest folder that exists: the others are made at the first use.
    let place = folder
        .ancestors()
        .find(|place| place.exists())
        .unwrap_or(Path::new("/"));
    let place = if place.as_os_str().is_empty() {
        Path::new(".")
    } else {
        place
    };
    let written = try_to_write(place);
    let free = statvfs(place)
        .ok()
        .map(|disk| disk.blocks_available() * disk.fragment_size());
    let shown = folder.display();
    let room = free.map_or(String::new(), |free| format!(", {} free", mebibytes(free)));
    match &written {
        Ok(()) if free.is_some_and(|free| free < LEAST_FREE) => section.advise(
            format!("{cache}: {shown} can be written, but the disk is nearly full{room}"),
            format!("make room on the disk, or set {variable} to a folder on another disk"),
        ),
        Ok(()) if exists => section.ok(format!("{cache}: {shown} can be written{room}")),
        Ok(()) => section.ok(format!(
            "{cache}: {shown} can be written{room}; it is made at the first use"
        )),
        Err(error) => {
            let mend = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    format!("make room on the disk, or set {variable} to a folder on another disk")
                }
                io::ErrorKind::NotADirectory => {
                    format!(
                        "remove the file {}, or set {variable} to a folder of your own",
                        place.display()
                    )
                }
                _ => format!(
                    "sudo chown -R \"$USER\" {}, or set {variable} to a folder of your own",
                    place.display()
                ),
            };
            section.fault(format!("{cache}: {shown} cannot be written: {error}"), mend);
        }
    }
    folders.push(Folder {
        cache,
        folder: folder.to_owned(),
        exists,
        writable: written.is_ok(),
        free,
    });
    written.is_ok()
}

/// Writes a file and removes it: rights, read-only disks and full disks show in no other way.
fn try_to_write(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let user = fs::metadata("/proc/self")?.uid();
    let path = folder.join(format!(".clinspect-doctor-{user}-{}", process::id()));
    // Not through a link that another user made.
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    let written = written.and_then(|mut file| {
        use io::Write;
        file.write_all(&[0; TRIAL])?;
        file.sync_all()
    });
    if !matches!(&written, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
        // Not there if it could not be created.
        let _ = fs::remove_file(&path);
    }
    written
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        few @ 0..10240 => format!("{few} MiB"),
        many => format!("{} GiB", many >> 10),
    }
}
