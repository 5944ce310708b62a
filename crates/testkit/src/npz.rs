//! `.npz` files with chosen bytes, for tests of the reader.

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};

/// The `.npy` file of an array with this header and these samples.
pub fn npy(header: &str, samples: &[u32]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    bytes
}

/// The header of an array, each value as Python prints it.
pub fn header(descr: &str, fortran_order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n")
}

/// The `.npy` file of an array of `u32` in C order.
pub fn u32_npy(shape: &str, samples: &[u32]) -> Vec<u8> {
    npy(&header("'<u4'", "False", shape), samples)
}

/// An archive with files of these names and contents, deflated if `deflate`.
pub fn archive<B: AsRef<[u8]>>(files: &[(&str, B)], deflate: bool) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in files {
        let method = match deflate {
            true => CompressionMethod::DEFLATE,
            false => CompressionMethod::STORE,
        };
        let file = archive.new_file(*name).compression_method(method);
        let (mut entry, config) = file.start().expect("an entry in memory");
        let inner: Box<dyn Write + '_> = match deflate {
            true => Box::new(DeflateEncoder::new(&mut entry, Compression::default())),
            false => Box::new(&mut entry),
        };
        let mut data = config.wrap(inner);
        data.write_all(bytes.as_ref()).expect("bytes in memory");
        let (inner, descriptor) = data.finish().expect("bytes in memory");
        // Ends the compressed data.
        drop(inner);
        entry.finish(descriptor).expect("an entry in memory");
    }
    archive.finish().expect("an archive in memory")
}
