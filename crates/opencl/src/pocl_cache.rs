//! The cache of PoCL, the CPU driver.
//!
//! PoCL loads compiled kernels from its cache without a check, and a truncated file ends the process
//! inside the driver. PoCL 3.1 to 6.0 flush the bitcode of a program to the disk before they give it
//! its name, but not the machine code of a kernel: a power cut, or a full disk, may leave such a file
//! empty or short. So the files are checked before PoCL reads them, and truncated ones are removed:
//! PoCL compiles them again. The check only reads headers.

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::cut_file::{is_whole_bitcode, is_whole_elf};
use super::log::CAT;
use clinspect_core::ClError;

/// Another process may be writing files right now; a file that stays short for longer is truncated.
const WRITING: Duration = Duration::from_secs(2);
/// Time between two checks of such a file.
const PAUSE: Duration = Duration::from_millis(20);
/// Depth of PoCL's folders: hash, hash, kernel, group size.
const DEPTH: usize = 5;

/// PoCL's default if the environment names no folder.
const PUBLIC: &str = "/tmp/pocl/kcache";
/// The permission bit that lets every user write.
const OTHERS_WRITE: u32 = 0o002;

/// PoCL's cache folder, by PoCL's own rules.
fn folder() -> PathBuf {
    if let Some(folder) = env::var_os("POCL_CACHE_DIR") {
        return folder.into();
    }
    if let Some(caches) = env::var_os("XDG_CACHE_HOME") {
        return Path::new(&caches).join("pocl/kcache");
    }
    match env::var_os("HOME") {
        Some(home) => Path::new(&home).join(".cache/pocl/kcache"),
        None => PUBLIC.into(),
    }
}

/// Removes truncated files from the cache; refuses a cache in which other users could place code.
///
/// # Errors
/// [`ClError::Unavailable`] with the file or folder and what to do.
pub(super) fn check() -> Result<(), ClError> {
    let folder = folder();
    if let Some(place) = foreign(&folder) {
        return Err(ClError::Unavailable(format!(
            "another user can put code into PoCL's cache, because {} is not writable by you alone; set \
             POCL_CACHE_DIR to a folder of your own, or remove the others' write permission",
            place.display()
        )));
    }
    for cut in cut_files(&folder) {
        fs::remove_file(&cut).map_err(|error| {
            ClError::Unavailable(format!(
                "the compiled kernel {} was cut short by a power cut or a full disk, and cannot be \
                 removed ({error}); remove the folder {}, and PoCL compiles it again",
                cut.display(),
                folder.display()
            ))
        })?;
        gst::warning!(
            CAT,
            "removed {}, which a power cut or a full disk had cut short: PoCL compiles it again",
            cut.display()
        );
    }
    Ok(())
}

/// The folder that lets another user write to the cache.
///
/// A folder from the environment may belong to another user, as home folders in containers do. A
/// folder in `/tmp` may have been made by anybody.
fn foreign(folder: &Path) -> Option<PathBuf> {
    let of = |path: &Path| fs::metadata(path).ok();
    let is_open = of(folder).is_some_and(|data| data.mode() & OTHERS_WRITE != 0);
    if is_open {
        return Some(folder.to_owned());
    }
    if folder != Path::new(PUBLIC) {
        return None;
    }
    // The owner of this process's entry is the user that it runs as.
    let user = of(Path::new("/proc/self"))?.uid();
    [folder, folder.parent()?]
        .into_iter()
        .find(|place| of(place).is_some_and(|data| data.uid() != user))
        .map(Path::to_owned)
}

/// The truncated files in `folder`.
fn cut_files(folder: &Path) -> Vec<PathBuf> {
    let mut short = Vec::new();
    add_short_files(folder, DEPTH, &mut short);
    let end = Instant::now() + WRITING;
    while !short.is_empty() && Instant::now() < end {
        thread::sleep(PAUSE);
        short.retain(|path| is_short(path));
    }
    short
}

/// Adds the files in `folder` and its folders that are short now. Unreadable files are left to PoCL,
/// which reports them.
fn add_short_files(folder: &Path, depth: usize, short: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        // Links are not followed, since they could form circles, and pipes are not opened, since
        // they block.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 0 {
            add_short_files(&path, depth - 1, short);
        } else if kind.is_file() && is_short(&path) {
            short.push(path);
        }
    }
}

fn is_short(path: &Path) -> bool {
    match is_whole(path) {
        Ok(whole) => !whole,
        Err(error) => {
            gst::debug!(CAT, "cannot check {}: {error}", path.display());
            false
        }
    }
}

/// Whether a file is complete; files other than compiled code are accepted.
fn is_whole(path: &Path) -> io::Result<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("so") => is_whole_elf(&mut File::open(path)?),
        Some("bc") => is_whole_bitcode(&mut File::open(path)?),
        _ => Ok(true),
    }
}
