//! The cache of PoCL, the CPU driver.
//!
//! PoCL loads compiled kernels as they lie in its cache, and a file that a power cut or a full disk
//! left short ends the process inside the driver. So the files are looked at before PoCL is: they
//! are read only, and only their headers.

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

/// Another process may be writing a file right now; what is short for longer is cut.
const WRITING: Duration = Duration::from_secs(2);
/// Time between two looks at such a file.
const PAUSE: Duration = Duration::from_millis(20);
/// PoCL's folders go this deep: hash, hash, kernel, group size.
const DEPTH: usize = 5;

/// PoCL's choice where the environment names no folder.
const PUBLIC: &str = "/tmp/pocl/kcache";
/// The permission bit that lets anybody write.
const OTHERS_WRITE: u32 = 0o002;

/// Where PoCL keeps its cache: the rules are PoCL's.
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

/// Refuses a cache that would end the process, or that runs other people's code in it.
///
/// # Errors
/// [`ClError::Unavailable`] with the file or folder, and what to do.
pub(super) fn check() -> Result<(), ClError> {
    let folder = folder();
    if let Some(place) = foreign(&folder) {
        return Err(ClError::Unavailable(format!(
            "another user can put code into PoCL's cache, for {} is not only yours to write: set \
             POCL_CACHE_DIR to a folder of your own, or take the right to write from others",
            place.display()
        )));
    }
    if let Some(cut) = first_cut(&folder, DEPTH) {
        return Err(ClError::Unavailable(format!(
            "the compiled kernel {} was cut short, by a power cut or a full disk: remove the \
             folder {}, and PoCL compiles it anew",
            cut.display(),
            folder.display()
        )));
    }
    Ok(())
}

/// The folder that lets another user write the cache.
///
/// A folder that the environment names may belong to someone else, as home folders in containers
/// do; in `/tmp` anybody may have been there first.
fn foreign(folder: &Path) -> Option<PathBuf> {
    let of = |path: &Path| fs::metadata(path).ok();
    let is_open = of(folder).is_some_and(|data| data.mode() & OTHERS_WRITE != 0);
    if is_open {
        return Some(folder.to_owned());
    }
    if folder != Path::new(PUBLIC) {
        return None;
    }
    // The owner of this process's own entry is who it runs as.
    let user = of(Path::new("/proc/self"))?.uid();
    [folder, folder.parent()?]
        .into_iter()
        .find(|place| of(place).is_some_and(|data| data.uid() != user))
        .map(Path::to_owned)
}

/// The first file in `folder` that stays cut. What cannot be read is left to PoCL, which says so.
fn first_cut(folder: &Path, depth: usize) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.filter_map(Result::ok) {
        let path = entry.path();
        // Links are not followed, so there are no circles, and pipes are not waited for.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 0 {
            if let Some(cut) = first_cut(&path, depth - 1) {
                return Some(cut);
            }
        } else if kind.is_file() && stays_cut(&path) {
            return Some(path);
        }
    }
    None
}

fn stays_cut(path: &Path) -> bool {
    let end = Instant::now() + WRITING;
    loop {
        match is_whole(path) {
            Ok(true) => return false,
            Ok(false) if Instant::now() < end => thread::sleep(PAUSE),
            Ok(false) => return true,
            Err(error) => {
                gst::debug!(CAT, "{} is not looked at: {error}", path.display());
                return false;
            }
        }
    }
}

/// Whether a file has its end; what is no compiled code always has.
fn is_whole(path: &Path) -> io::Result<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("so") => is_whole_elf(&mut File::open(path)?),
        Some("bc") => is_whole_bitcode(&mut File::open(path)?),
        _ => Ok(true),
    }
}
