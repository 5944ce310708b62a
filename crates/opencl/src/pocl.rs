//! What the CPU driver PoCL needs: whole files in its cache, and a processor for each of its threads.
//!
//! **The cache.** PoCL loads compiled kernels from its cache without a check, and a damaged file ends the process
//! inside the driver, or computes wrong. PoCL 3.1 to 6.0 flush the bitcode of a program to the disk before they give it
//! its name, but not the machine code of a kernel: a power cut, or a full disk, may leave such a file
//! empty, short or filled with zeros. So the files are checked before PoCL reads them. Files that are too short for their
//! headers, and files that changed since a complete start ([`super::start`]) are removed: PoCL compiles them again.
//!
//! **The threads**, on a machine with two processors.
//! PoCL has a thread per processor and wakes them all for each kernel. Linux often queues two of them on one
//! processor, and does not move them while they sleep more often than its migration cost (0.5 ms): a kernel of
//! a millisecond then takes twice as long on two processors. PoCL has a setting for this, `POCL_AFFINITY`. It is an
//! environment variable, which a library must not set while other threads run, and with it PoCL ignores which
//! processors the process may use. If the user sets it, the threads stay as PoCL made them.

use std::{
    collections::BTreeMap,
    env,
    ffi::{CStr, c_char},
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    mem,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use super::{
    cache::{Cache, hash},
    handle::CAT,
};
use clinspect_core::ClError;

/// Another process may be writing files right now; a file that stays short for longer is truncated.
const WRITING: Duration = Duration::from_secs(2);
/// Another process checks the files within this time.
const CHECKING: Duration = Duration::from_secs(10);
/// Time between two checks of such a file, or of that process.
const PAUSE: Duration = Duration::from_millis(20);
/// Depth of PoCL's folders: hash, hash, kernel, group size.
const DEPTH: usize = 5;

/// First bytes of the names under which PoCL writes files, before it gives them their own.
const TEMPORARY: &[u8] = b"tempfile";

/// PoCL's default if the environment names no folder.
const PUBLIC: &str = "/tmp/pocl/kcache";
/// The permission bit that lets every user write.
const OTHERS_WRITE: u32 = 0o002;

/// PoCL's cache folder, by PoCL's own rules.
pub fn cache_folder() -> PathBuf {
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

/// Removes damaged files from the cache, and says so in a sentence; refuses a cache in which other users could place code.
///
/// # Errors
/// [`ClError::Unavailable`] with the file or folder and what to do.
pub fn check_cache() -> Result<Option<String>, ClError> {
    let folder = cache_folder();
    if let Some(place) = foreign(&folder) {
        return Err(ClError::Unavailable(format!(
            "another user can put code into PoCL's cache, because {} is not writable by you alone; set \
             POCL_CACHE_DIR to a folder of your own, or remove the others' write permission",
            place.display()
        )));
    }
    // A process that starts has checked the files already, and now writes some.
    let removed = alone(|| {
        let mut damaged = cut_files(&folder);
        damaged.extend(changed_files(&folder));
        remove(
            &damaged,
            "a power cut, a full disk or a failing disk damaged them",
        )
    });
    removed.unwrap_or(Ok(None))
}

/// Runs `remove` if no process is within a start, this one included: then no file in PoCL's cache is being written or
/// loaded. Processes that start meanwhile wait.
pub(super) fn alone<T>(remove: impl FnOnce() -> T) -> Option<T> {
    // The lock is the folder's own, and ends with the file. A cache that does not exist yet has no file to remove.
    let lock = File::open(cache_folder()).ok();
    let is_alone = lock.as_ref().is_none_or(|lock| lock.try_lock().is_ok());
    is_alone.then(remove)
}

/// This process' part of the lock of PoCL's cache: no process removes files while it lives.
#[derive(Debug)]
pub(super) struct Together(#[expect(dead_code, reason = "holds the lock")] File);

/// Waits until no process removes files. `None` if there is no cache yet, or if it takes too long.
pub(super) fn together() -> Option<Together> {
    let lock = File::open(cache_folder()).ok()?;
    let end = Instant::now() + CHECKING;
    while lock.try_lock_shared().is_err() {
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(PAUSE);
    }
    Some(Together(lock))
}

/// Removes compiled files, because of `why`; returns a sentence about it, if there are any.
///
/// # Errors
/// [`ClError::Unavailable`] with the file that cannot be removed and what to do.
fn remove(files: &[PathBuf], why: &str) -> Result<Option<String>, ClError> {
    let folder = cache_folder();
    for file in files {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ClError::Unavailable(format!(
                    "the compiled kernel {} cannot be used, because {why}, and cannot be removed ({error}); remove \
                     the folder {}, and PoCL compiles it again",
                    file.display(),
                    folder.display()
                )));
            }
            _ => gst::warning!(CAT, "removed {}: {why}", file.display()),
        }
    }
    let sentence = format!(
        "{} compiled kernels in PoCL's cache {} were removed, because {why}; PoCL compiles them again, so this start \
         takes longer",
        files.len(),
        folder.display()
    );
    Ok((!files.is_empty()).then_some(sentence))
}

/// The checksum of each compiled file, by its path in the folder of the cache.
type Sums = BTreeMap<String, u64>;

/// The key of the checksums in the plugin's cache.
fn sums_key(folder: &Path) -> String {
    format!("checksums of the compiled kernels in {}", folder.display())
}

/// The checksums of the files as they are now.
fn sums(folder: &Path) -> Sums {
    let files = compiled_files(folder).into_iter().filter_map(|path| {
        let name = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        Some((name, hash(&fs::read(path).ok()?)))
    });
    files.collect()
}

/// The checksums that a complete start kept.
fn kept_sums(folder: &Path) -> Sums {
    let kept = Cache::open()
        .ok()
        .and_then(|cache| cache.read(&sums_key(folder)));
    let kept = kept
        .and_then(|kept| String::from_utf8(kept).ok())
        .unwrap_or_default();
    let line = |line: &str| {
        let (sum, name) = line.split_once(' ')?;
        Some((name.to_owned(), u64::from_str_radix(sum, 16).ok()?))
    };
    kept.lines().filter_map(line).collect()
}

/// Keeps the checksums of all files: a start with them was complete.
pub(super) fn keep_sums(cache: &Cache) {
    let folder = cache_folder();
    let now = sums(&folder);
    if now != kept_sums(&folder) {
        let lines: Vec<String> = now
            .iter()
            .map(|(name, sum)| format!("{sum:016x} {name}"))
            .collect();
        cache.write(&sums_key(&folder), lines.join("\n").as_bytes());
    }
}

/// The files whose content is another than in the last complete start.
fn changed_files(folder: &Path) -> Vec<PathBuf> {
    let (kept, now) = (kept_sums(folder), sums(folder));
    let changed = now
        .iter()
        .filter(|(name, sum)| kept.get(*name).is_some_and(|kept| kept != *sum));
    changed.map(|(name, _)| folder.join(name)).collect()
}

/// Removes the files that no complete start has used, or all, because the last start was not complete; returns a
/// sentence about it, if there are any.
pub(super) fn remove_suspects(all: bool) -> Option<String> {
    let folder = cache_folder();
    let kept = if all { Sums::new() } else { kept_sums(&folder) };
    let is_suspect = |path: &PathBuf| {
        let name = path.strip_prefix(&folder).ok().and_then(Path::to_str);
        name.is_none_or(|name| !kept.contains_key(name))
    };
    let mut suspects = compiled_files(&folder);
    suspects.retain(is_suspect);
    let why = "the last start on this device ended inside the driver or failed, and may have loaded a damaged one";
    remove(&suspects, why).unwrap_or_else(|error| Some(error.to_string()))
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
    let mut short = compiled_files(folder);
    short.retain(|path| is_short(path));
    let end = Instant::now() + WRITING;
    while !short.is_empty() && Instant::now() < end {
        thread::sleep(PAUSE);
        short.retain(|path| is_short(path));
    }
    short
}

/// The files in `folder` and its folders that hold compiled code, without those that PoCL still writes. Unreadable
/// folders are left to PoCL, which reports them.
fn compiled_files(folder: &Path) -> Vec<PathBuf> {
    fn add(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
        let entries = fs::read_dir(folder).into_iter().flatten();
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            // Links are not followed, since they could form circles, and pipes are not opened, since
            // they block.
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_written = || entry.file_name().as_encoded_bytes().starts_with(TEMPORARY);
            let is_compiled = || path.extension().is_some_and(|of| of == "so" || of == "bc");
            if kind.is_dir() && depth > 0 {
                add(&path, depth - 1, files);
            } else if kind.is_file() && is_compiled() && !is_written() {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    add(folder, DEPTH, &mut files);
    files
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

/// Whether a file of compiled code is complete.
fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    match path.extension().is_some_and(|extension| extension == "so") {
        true => is_whole_elf(&mut file),
        false => is_whole_bitcode(&mut file),
    }
}

/// Bytes of an ELF-64 header.
const ELF_HEADER: usize = 64;
/// First bytes of LLVM bitcode.
const BITCODE_MAGIC: [u8; 4] = *b"BC\xc0\xde";
/// The abbreviation id ENTER_SUBBLOCK; ids have two bits at the top level.
const ENTER_SUBBLOCK: u32 = 1;

fn length(file: &mut impl Seek) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// The bytes at `offset`; `None` if the file ends before that.
fn read_at<const N: usize>(
    file: &mut (impl Read + Seek),
    offset: u64,
) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(offset))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a little-endian 64-bit ELF file is complete up to the end of its section headers;
/// linkers write those last.
///
/// # Errors
/// The file cannot be read.
///
/// # Source
/// System V ABI, chapter 4: `e_shoff` at byte 40, `e_shentsize` at 58, `e_shnum` at 60.
fn is_whole_elf(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let Some(header) = read_at::<ELF_HEADER>(file, 0)? else {
        return Ok(false);
    };
    let half = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let mut word = [0; 8];
    word.copy_from_slice(&header[40..48]);
    let end = u64::from_le_bytes(word).saturating_add(half(58) * half(60));
    Ok(header.starts_with(b"\x7fELF") && end <= length(file)?)
}

/// Whether the top-level blocks of LLVM bitcode fill the file.
///
/// # Errors
/// The file cannot be read.
///
/// # Source
/// LLVM Bitcode File Format, "Blocks": \[1, vbr8 block id, vbr4 width, align, 32-bit word count\];
/// the ids in use at the top level take one byte.
fn is_whole_bitcode(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    if read_at(file, 0)? != Some(BITCODE_MAGIC) {
        return Ok(false);
    }
    let end = length(file)?;
    let mut at = BITCODE_MAGIC.len() as u64;
    while at < end {
        let Some([a, b, c, d, words @ ..]) = read_at::<8>(file, at)? else {
            return Ok(false);
        };
        if u32::from_le_bytes([a, b, c, d]) & 3 != ENTER_SUBBLOCK {
            return Ok(false);
        }
        at += 8 + 4 * u64::from(u32::from_le_bytes(words));
    }
    // A file with only the magic is not a module.
    Ok(at == end && at > BITCODE_MAGIC.len() as u64)
}

/// The name by which PoCL's threads are found: a new thread has the name of the thread that made it.
const MARK: &CStr = c"pocl-worker";

/// Processors up to which threads are pinned.
const MOST_PROCESSORS: usize = 2;

/// Whether PoCL's threads are pinned, one to each processor.
static ARE_PINNED: AtomicBool = AtomicBool::new(false);

/// Whether each processor that this process may use has a thread of PoCL, and only one.
pub(super) fn has_pinned_threads() -> bool {
    ARE_PINNED.load(Relaxed)
}

/// Runs `initialise`, which makes PoCL's worker threads, and pins these threads. The caller holds
/// [`super::device::lock_driver`].
pub(super) fn with_pinned_threads<T>(initialise: impl FnOnce() -> T) -> T {
    if env::var_os("POCL_AFFINITY").is_some() {
        return initialise();
    }
    let own = name();
    rename(MARK);
    let result = initialise();
    // The system ends the name with a NUL byte.
    if let Ok(own) = CStr::from_bytes_until_nul(&own) {
        rename(own);
    }
    pin(&marked());
    result
}

/// The name of this thread.
fn name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr().cast::<c_char>()) };
    name
}

/// Names this thread.
fn rename(name: &CStr) {
    // SAFETY: the call reads up to the NUL byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// The marked threads, in the order in which they were made.
fn marked() -> Vec<libc::pid_t> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut threads: Vec<libc::pid_t> = tasks
        .flatten()
        .filter(|task| {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            name.trim_end().as_bytes() == MARK.to_bytes()
        })
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads
}

/// Pins each thread to a processor that the process may use.
fn pin(threads: &[libc::pid_t]) {
    let processors = processors();
    // With more processors Linux finds an idle one for most threads (docs/adr/0012).
    if processors.len() > MOST_PROCESSORS || threads.len() != processors.len() {
        return;
    }
    let mut are_pinned = true;
    for (&thread, &processor) in threads.iter().zip(&processors) {
        // SAFETY: a set of bits, for which zero is valid.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: `processor` was found in such a set, so it lies within.
        unsafe { libc::CPU_SET(processor, &mut set) };
        // SAFETY: the set is read during the call only; an unknown thread is an error.
        let result = unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &raw const set) };
        if result != 0 {
            gst::debug!(CAT, "PoCL's thread {thread} stays unpinned");
            are_pinned = false;
        }
    }
    ARE_PINNED.store(are_pinned, Relaxed);
    gst::debug!(
        CAT,
        "{} threads of PoCL on processors {processors:?}",
        threads.len()
    );
}

/// The processors that this thread may use.
fn processors() -> Vec<usize> {
    // SAFETY: a set of bits, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the call writes at most the set's size.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: the numbers lie within the set.
    (0..8 * size_of_val(&set))
        .filter(|&n| unsafe { libc::CPU_ISSET(n, &set) })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// An ELF file of a header, `padding` bytes and two section headers of 64 bytes.
    fn elf(padding: usize) -> Vec<u8> {
        let mut file = vec![0; ELF_HEADER + padding + 128];
        file[..4].copy_from_slice(b"\x7fELF");
        file[40..48].copy_from_slice(&((ELF_HEADER + padding) as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64_u16.to_le_bytes());
        file[60..62].copy_from_slice(&2_u16.to_le_bytes());
        file
    }

    /// Bitcode with one block per entry, of that many words.
    fn bitcode(blocks: &[u32]) -> Vec<u8> {
        let mut file = BITCODE_MAGIC.to_vec();
        for &words in blocks {
            file.extend([0x35, 0x14, 0, 0]);
            file.extend(words.to_le_bytes());
            file.extend(vec![0xff; 4 * words as usize]);
        }
        file
    }

    #[test]
    fn whole_files_are_whole_and_every_cut_is_seen() {
        let elf = elf(100);
        assert!(is_whole_elf(&mut Cursor::new(&elf)).is_ok_and(|whole| whole));
        for len in 0..elf.len() {
            assert!(is_whole_elf(&mut Cursor::new(&elf[..len])).is_ok_and(|whole| !whole));
        }
        let bitcode = bitcode(&[3, 0, 17]);
        // A file that ends after a whole block is a complete, shorter file.
        let ends = [4 + 8 + 12, 4 + 8 + 12 + 8];
        assert!(is_whole_bitcode(&mut Cursor::new(&bitcode)).is_ok_and(|whole| whole));
        for len in (0..bitcode.len()).filter(|len| !ends.contains(len)) {
            assert!(is_whole_bitcode(&mut Cursor::new(&bitcode[..len])).is_ok_and(|whole| !whole));
        }
    }

    #[test]
    fn hostile_lengths_are_cut_files() {
        let mut elf = elf(0);
        elf[40..48].fill(0xff);
        assert!(is_whole_elf(&mut Cursor::new(&elf)).is_ok_and(|whole| !whole));
        let mut bitcode = bitcode(&[1]);
        bitcode[8..12].fill(0xff);
        assert!(is_whole_bitcode(&mut Cursor::new(&bitcode)).is_ok_and(|whole| !whole));
    }
}
