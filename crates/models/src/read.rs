//! Reads model files.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read},
    path::Path,
};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder, ZipLocator,
};

use crate::{
    Array, ModelError,
    npy::{damaged, read_header},
};

/// Most samples of an array: 16384x16384. They take 1 GiB.
pub const MAX_SAMPLES: usize = 1 << 28;
/// Most files in the archive. Only their names are kept.
const MAX_FILES: usize = 1000;
/// Deflate cannot pack data tighter. A shape that needs more is false.
const MAX_DEFLATE_RATIO: u64 = 1032;
/// Bytes that are converted at a time.
const CHUNK: usize = 1 << 16;

/// An open `.npz` file. Only the names of its arrays have been read.
pub struct ModelFile {
    name: String,
    archive: ZipArchive<Box<dyn ReaderAt + Send>>,
    /// Length of the file, bytes.
    len: u64,
    files: Vec<Entry>,
}

/// A file in the archive.
struct Entry {
    /// Without `.npy`.
    array: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
}

/// An array whose sizes agree.
struct Start<'a, const D: usize> {
    shape: [usize; D],
    /// Number of samples.
    count: usize,
    /// At the first sample.
    data: Box<dyn Read + 'a>,
}

impl ModelFile {
    /// Opens a file and reads the names of its arrays.
    ///
    /// # Errors
    /// A sentence if the file cannot be opened, is no `.npz` file, was cut, or has two arrays of one
    /// name. If there is no such file, [`ModelError::is_missing`] holds.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let name = path.display().to_string();
        let fail = |error: std::io::Error| ModelError {
            text: format!("the file {name} cannot be read: {error}"),
            is_missing: error.kind() == ErrorKind::NotFound,
        };
        // Opening a pipe would wait for a writer.
        let about = fs::metadata(path).map_err(fail)?;
        if !about.is_file() {
            return Err(ModelError::new(format!(
                "the file {name} cannot be read: it is not a file; name an .npz file"
            )));
        }
        let file = File::open(path).map_err(fail)?;
        Self::from_reader(name, Box::new(FileReader::from(file)), about.len())
    }

    /// A file whose bytes are in memory; messages call it `name`.
    ///
    /// # Errors
    /// As [`ModelFile::open`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, ModelError> {
        let len = bytes.len() as u64;
        Self::from_reader(name.into(), Box::new(bytes), len)
    }

    fn from_reader(
        name: String,
        reader: Box<dyn ReaderAt + Send>,
        len: u64,
    ) -> Result<Self, ModelError> {
        let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
        let located = ZipLocator::new().locate_in_reader(reader, &mut buffer, len);
        let archive = located.map_err(|(_, error)| no_archive(&name, &error))?;
        let mut files: Vec<Entry> = Vec::new();
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(|e| no_archive(&name, &e))? {
            let path = String::from_utf8_lossy(entry.file_path().as_ref()).into_owned();
            let Some(array) = path.strip_suffix(".npy") else {
                continue;
            };
            if files.iter().any(|file| file.array == array) {
                return Err(ModelError::new(format!(
                    "the file {name} has two arrays '{array}'; write it with numpy.savez, or let the element write it again"
                )));
            }
            if files.len() == MAX_FILES {
                return Err(ModelError::new(format!(
                    "the file {name} has more than {MAX_FILES} arrays; write only the arrays that the element reads"
                )));
            }
            files.push(Entry {
                array: array.into(),
                place: entry.wayfinder(),
                method: entry.compression_method(),
                is_encrypted: entry.flags().is_encrypted(),
            });
        }
        Ok(Self {
            name,
            archive,
            len,
            files,
        })
    }

    /// Whether the file has an array of this name. The array may still be refused when it is read.
    pub fn has(&self, array: &str) -> bool {
        self.files.iter().any(|file| file.array == array)
    }

    /// The shape of an array, for a caller that knows which one fits. No sample is read.
    ///
    /// # Errors
    /// As [`ModelFile::array`], but for damaged samples.
    pub fn shape<const D: usize>(&self, array: &str) -> Result<[usize; D], ModelError> {
        self.start(array).map(|start| start.shape)
    }

    /// Reads an array of `u32` with `D` dimensions.
    ///
    /// # Errors
    /// A sentence if the array is missing, has another type or number of dimensions, an empty
    /// dimension or more than [`MAX_SAMPLES`] samples, is packed in another way, or is damaged.
    pub fn array<const D: usize>(&self, array: &str) -> Result<Array<D>, ModelError> {
        let mut start = self.start(array)?;
        let samples =
            samples(&mut start.data, start.count).map_err(|why| self.wrong(array, &why))?;
        Ok(Array {
            shape: start.shape,
            samples,
        })
    }

    /// Reads a scalar, which NumPy saves as an array without dimensions.
    ///
    /// # Errors
    /// As [`ModelFile::array`].
    pub fn scalar(&self, array: &str) -> Result<u32, ModelError> {
        let samples = self.array::<0>(array)?.samples;
        samples
            .first()
            .copied()
            .ok_or_else(|| self.wrong(array, "has no sample"))
    }

    fn start<const D: usize>(&self, array: &str) -> Result<Start<'_, D>, ModelError> {
        self.check_start(array)
            .map_err(|why| self.wrong(array, &why))
    }

    fn check_start<const D: usize>(&self, array: &str) -> Result<Start<'_, D>, String> {
        let file = self.files.iter().find(|file| file.array == array);
        let Some(file) = file else {
            return Err("is missing; name a file that this element wrote".into());
        };
        if file.is_encrypted {
            return Err("is encrypted; write it with numpy.savez".into());
        }
        let packed = file.place.compressed_size_hint();
        if packed > self.len {
            return Err(format!(
                "is said to have {packed} bytes in a file of {}; restore the file, or let the element write it again",
                self.len
            ));
        }
        let broken = |error| damaged(&std::io::Error::other(error));
        let entry = self.archive.get_entry(file.place).map_err(broken)?;
        let (reader, ratio): (Box<dyn Read + '_>, _) = match file.method {
            CompressionMethod::STORE => (Box::new(entry.reader()), 1),
            CompressionMethod::DEFLATE => (
                Box::new(DeflateDecoder::new(entry.reader())),
                MAX_DEFLATE_RATIO,
            ),
            other => {
                return Err(format!(
                    "is compressed with {}; write it with numpy.savez or numpy.savez_compressed",
                    other.name().unwrap_or("an unknown method")
                ));
            }
        };
        // It checks size and checksum when the last byte is read.
        let mut data = entry.verifying_reader(reader);
        let (shape, header_len) = read_header(&mut data)?;
        let shape: [usize; D] = shape.try_into().map_err(|shape: Vec<usize>| {
            format!(
                "has {} dimensions, and must have {D}; reshape it, or let the element write the file again",
                shape.len()
            )
        })?;
        let count = shape
            .iter()
            .try_fold(1_usize, |count, &len| count.checked_mul(len))
            .filter(|count| (1..=MAX_SAMPLES).contains(count))
            .ok_or_else(|| {
                format!("has the shape {shape:?}; 1 to {MAX_SAMPLES} samples are accepted")
            })?;
        let (said, needed) = (
            file.place.uncompressed_size_hint(),
            header_len + 4 * count as u64,
        );
        if said != needed || needed > packed.saturating_mul(ratio) {
            return Err(format!(
                "has {said} bytes, unpacked from {packed}, and its shape {shape:?} needs {needed}; \
                 restore the file, or let the element write it again"
            ));
        }
        Ok(Start {
            shape,
            count,
            data: Box::new(data),
        })
    }

    fn wrong(&self, array: &str, why: &str) -> ModelError {
        ModelError::new(format!("the file {}: the array '{array}' {why}", self.name))
    }
}

fn no_archive(name: &str, error: &rawzip::Error) -> ModelError {
    ModelError::new(format!(
        "the file {name} is not an .npz file, or was cut short ({error}); restore the file, or let the element write it again"
    ))
}

fn samples(data: &mut impl Read, count: usize) -> Result<Vec<u32>, String> {
    let mut samples = Vec::new();
    samples.try_reserve_exact(count).map_err(|_| {
        format!(
            "needs {} MiB, which are not free; end other programs",
            (4 * count) >> 20
        )
    })?;
    let mut bytes = vec![0; CHUNK.min(4 * count)];
    while samples.len() < count {
        let len = bytes.len().min(4 * (count - samples.len()));
        let part = &mut bytes[..len];
        data.read_exact(part).map_err(|error| damaged(&error))?;
        let (words, _) = part.as_chunks::<4>();
        samples.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
    }
    Ok(samples)
}
