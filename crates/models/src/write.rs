//! Writes model files.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rawzip::{ZipArchiveWriter, ZipDataWriterConfig, ZipEntryWriter};

use crate::{ModelError, npy};

/// Samples that are converted at a time.
const CHUNK: usize = 1 << 14;

/// An array to write, in C order.
#[derive(Debug, Clone, Copy)]
pub struct ArrayRef<'a> {
    /// The name in the file, without `.npy`.
    pub name: &'a str,
    /// Length of each dimension; none for a scalar.
    pub shape: &'a [usize],
    /// As many samples as the product of the shape.
    pub samples: &'a [u32],
}

/// Writes a model. Readers see either the file before or the whole new file, also after a power cut: the
/// arrays are written into a temporary file of the same folder, which is then renamed. Blocks until
/// the disk has the data.
///
/// # Errors
/// A sentence that says what to do. The file before is unchanged, and no temporary file is left.
pub fn write(path: &Path, arrays: &[ArrayRef]) -> Result<(), ModelError> {
    try_write(path, arrays).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                "create the folder, or set another location"
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "allow writing into the folder, or set another location"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "free disk space, or set another location"
            }
            _ => "set another location",
        };
        ModelError::new(format!(
            "the file {} cannot be written: {error}; {hint}",
            path.display()
        ))
    })
}

fn try_write(path: &Path, arrays: &[ArrayRef]) -> io::Result<()> {
    for array in arrays {
        let count = array.shape.iter().product::<usize>();
        if count != array.samples.len() {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "'{}' has {} samples, and its shape needs {count}",
                    array.name,
                    array.samples.len()
                ),
            ));
        }
    }
    // A link stays, and the file that it names is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    if path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let (file, temporary) = Temporary::create(&path)?;
    let file = archive(BufWriter::new(file), arrays)?;
    // Before the name: after a power cut the name must not belong to a file without its data.
    file.sync_all()?;
    fs::rename(&temporary.0, &path)?;
    // The folder, so that the new name outlives a power cut. The file is whole in any case.
    if let Some(folder) = temporary.0.parent() {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

fn archive(file: BufWriter<File>, arrays: &[ArrayRef]) -> io::Result<File> {
    let mut archive = ZipArchiveWriter::new(file);
    for array in arrays {
        let name = format!("{}.npy", array.name);
        let file = archive.new_file(&name).unix_permissions(0o644);
        let (entry, config) = file.start().map_err(io_error)?;
        one(entry, config, array)?;
    }
    let file = archive.finish().map_err(io_error)?;
    file.into_inner().map_err(|error| error.into_error())
}

fn one<W: Write>(
    mut entry: ZipEntryWriter<'_, W>,
    config: ZipDataWriterConfig,
    array: &ArrayRef,
) -> io::Result<()> {
    let mut data = config.wrap(&mut entry);
    data.write_all(&npy::header(array.shape))?;
    let mut bytes = Vec::with_capacity(4 * CHUNK);
    for samples in array.samples.chunks(CHUNK) {
        bytes.clear();
        bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        data.write_all(&bytes)?;
    }
    let (_, descriptor) = data.finish().map_err(io_error)?;
    entry.finish(descriptor).map_err(io_error)?;
    Ok(())
}

fn io_error(error: rawzip::Error) -> io::Error {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// A file that is removed when it goes out of scope, unless it was renamed.
struct Temporary(PathBuf);

impl Temporary {
    /// Creates a hidden file next to `path`.
    fn create(path: &Path) -> io::Result<(File, Self)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut own = std::ffi::OsString::from(".");
            own.push(name);
            own.push(format!(".{}-{number}.part", std::process::id()));
            let own = path.with_file_name(own);
            match OpenOptions::new().write(true).create_new(true).open(&own) {
                Ok(file) => return Ok((file, Self(own))),
                // Left by a process that was killed and had the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It fails after the rename, when there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}
