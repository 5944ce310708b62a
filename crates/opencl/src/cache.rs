//! The folder in which the plugin keeps compiled programs and passed self-tests.
//!
//! What is kept is code that the next start runs, so a folder or a file that another user may write is not used.

use std::{
    collections::hash_map::DefaultHasher,
    env,
    fs::{self, DirBuilder, File, OpenOptions},
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

use super::handle::CAT;
use clinspect_core::ClError;

/// Environment variable that names the folder.
const VARIABLE: &str = "CLINSPECT_CACHE_DIR";
/// The permission bits that let a group and every user write.
const OTHERS_WRITE: u32 = 0o022;
/// Bytes of all files together; the files that were not used for longest are removed.
const MOST_BYTES: u64 = 256 << 20;
/// A compiler that did not return this often is not called again.
const MOST_ATTEMPTS: u8 = 2;
/// First bytes of each file.
const MAGIC: &[u8] = b"clinspect cache 1\n";
/// Suffix of files that count attempts.
const ATTEMPTS: &str = "attempts";
/// Suffix of files that are being written.
const PART: &str = "part";

/// The user's folder.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The folder, by environment variables: the one of this plugin, `XDG_CACHE_HOME`, `HOME`.
    pub fn folder() -> Option<PathBuf> {
        if let Some(folder) = env::var_os(VARIABLE) {
            return Some(folder.into());
        }
        let caches = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        caches.or_else(home).map(|caches| caches.join("clinspect"))
    }

    /// Opens the folder; creates it if necessary.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] if there is no folder, if it cannot be written, or if others may write it; with what
    /// to do.
    pub fn open() -> Result<Self, ClError> {
        let unusable = |why: String| {
            ClError::Unavailable(format!(
                "compiled kernels and passed self-tests are not kept, so every start is slow: {why}; set {VARIABLE} \
                 to a folder of your own"
            ))
        };
        let folder = Self::folder().ok_or_else(|| unusable("HOME is not set".into()))?;
        let at = |error: io::Error| unusable(format!("{}: {error}", folder.display()));
        let mut create = DirBuilder::new();
        create
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(at)?;
        let data = fs::metadata(&folder).map_err(at)?;
        if !is_own(&data) {
            return Err(unusable(format!(
                "another user can write to {} (owner {}, mode {:o}); remove the permission with chmod go-w",
                folder.display(),
                data.uid(),
                data.mode() & 0o7777,
            )));
        }
        Ok(Self { folder })
    }

    /// The content that was kept under `key`.
    pub fn read(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        match read_whole(&path, key) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                gst::warning!(CAT, "{} is not used: {error}", path.display());
                None
            }
        }
    }

    /// Keeps `content` under `key`. Readers see the whole content or none, also after a power cut. A failure is logged:
    /// the next start is slower.
    pub fn write(&self, key: &str, content: &[u8]) {
        let path = self.path(key);
        match self.try_write(&path, key, content) {
            Ok(()) => self.remove_unused(),
            Err(error) => gst::warning!(CAT, "cannot write {}: {error}", path.display()),
        }
    }

    /// Removes what is kept under `key`.
    pub fn remove(&self, key: &str) {
        let _ = fs::remove_file(self.path(key));
    }

    /// Records that a compiler is called that may end the process. The record goes when the result is dropped.
    ///
    /// # Errors
    /// [`ClError::Unavailable`] if the process ended during the last attempts.
    pub fn attempt(&self, key: &str, what: &str) -> Result<Option<Attempt>, ClError> {
        match self.begin(key) {
            Some(attempt) if attempt.before >= MOST_ATTEMPTS => {
                let path = attempt.path.clone();
                attempt.keep();
                Err(ClError::Unavailable(format!(
                    "the driver's compiler did not return the last {MOST_ATTEMPTS} times that it compiled {what}: it ended the \
                     process, or the process was killed; update the driver, or set device to another device (remove {} to try again)",
                    path.display()
                )))
            }
            begun => Ok(begun),
        }
    }

    /// Records an attempt that may end the process. The record goes when the result is dropped. `None` while another
    /// process makes the same attempt, or if the record cannot be written.
    pub(super) fn begin(&self, key: &str) -> Option<Attempt> {
        let path = self.path(key).with_extension(ATTEMPTS);
        let begun = Attempt::begin(&path);
        begun.unwrap_or_else(|error| {
            gst::debug!(
                CAT,
                "cannot record an attempt in {}: {error}",
                path.display()
            );
            None
        })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{:016x}", hash(key.as_bytes())))
    }

    fn try_write(&self, path: &Path, key: &str, content: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{number}.{PART}", process::id()));
        let written = (|| {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&part)?;
            file.write_all(MAGIC)?;
            for block in [key.as_bytes(), content] {
                file.write_all(&(block.len() as u64).to_le_bytes())?;
                file.write_all(&hash(block).to_le_bytes())?;
                file.write_all(block)?;
            }
            // Before the name: after a power cut the name must not belong to a file without its data.
            file.sync_all()?;
            fs::rename(&part, path)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// Removes the files that were not used for longest, if all are too large together.
    fn remove_unused(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((data.modified().ok()?, data.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, len, _)| len).sum();
        for (_, len, path) in &files {
            if bytes <= MOST_BYTES {
                break;
            }
            if fs::remove_file(path).is_ok() {
                bytes -= len;
            }
        }
    }
}

/// Whether the file or folder belongs to the user of this process, and nobody else may write it.
fn is_own(data: &fs::Metadata) -> bool {
    // The owner of this process's entry is the user that it runs as.
    let user = fs::metadata("/proc/self").map(|process| process.uid());
    user.is_ok_and(|user| user == data.uid()) && data.mode() & OTHERS_WRITE == 0
}

fn read_whole(path: &Path, key: &str) -> io::Result<Vec<u8>> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut file = File::open(path)?;
    let data = file.metadata()?;
    if !data.is_file() || !is_own(&data) {
        return Err(invalid("another user can write it"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let cut = || invalid("it was cut short or changed");
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(cut)?;
    let (kept_key, rest) = block(rest).ok_or_else(cut)?;
    if kept_key != key.as_bytes() {
        // Another key has the same hash.
        return Err(io::ErrorKind::NotFound.into());
    }
    let (content, rest) = block(rest).ok_or_else(cut)?;
    if !rest.is_empty() {
        return Err(cut());
    }
    // The files that were not used for longest are removed first.
    let _ = file.set_modified(SystemTime::now());
    Ok(content.to_owned())
}

/// A block that begins with its length and its checksum, and what follows.
fn block(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (block, rest) = rest.split_at_checked(len)?;
    (hash(block) == u64::from_le_bytes(*sum)).then_some((block, rest))
}

/// A hash that is the same in every process; another version of Rust may have another one, and then compiles again.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A call of a compiler, or a start, that is under way. The file is locked meanwhile: an attempt of a process that lives does not
/// count as one that failed.
#[derive(Debug)]
pub struct Attempt {
    file: File,
    path: PathBuf,
    /// Attempts before this one that did not return.
    before: u8,
    is_kept: bool,
}

impl Attempt {
    /// `None` while another process compiles the same.
    fn begin(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(path)?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let mut counted = [0];
        let before = file.read(&mut counted)?.min(1) as u8 * counted[0];
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&[before.saturating_add(1)])?;
        Ok(Some(Self {
            file,
            path: path.to_owned(),
            before,
            is_kept: false,
        }))
    }

    /// Attempts before this one that did not return.
    pub(super) fn before(&self) -> u8 {
        self.before
    }

    /// Ends the attempt as one that did not return.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}
