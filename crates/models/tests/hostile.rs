//! Files that are cut, that lie about their sizes, or that hold something else: each is refused with a
//! sentence that names the file, the array and what to do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_models::{MAX_SAMPLES, ModelError, ModelFile};
use clinspect_testkit::npz::{archive, header, npy, u32_npy};

const SAMPLES: [u32; 6] = [0, 1, 2, 255, 65_536, u32::MAX];

/// The array `mean` of an archive with this `.npy` file.
fn mean(npy: Vec<u8>, deflate: bool) -> Result<Vec<u32>, ModelError> {
    let file = ModelFile::from_bytes("a.npz", archive(&[("mean.npy", npy)], deflate))?;
    let array = file.array::<2>("mean")?;
    assert_eq!(array.shape, [2, 3]);
    Ok(array.samples)
}

/// `result` is a sentence that names the file and contains `parts`.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, ModelError>, parts: &[&str]) {
    let text = result.expect_err("hostile").to_string();
    assert!(text.starts_with("the file a.npz"), "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part} in: {text}");
    }
}

#[test]
fn well_formed_arrays_are_read_stored_and_deflated() {
    for deflate in [false, true] {
        assert_eq!(mean(u32_npy("(2, 3)", &SAMPLES), deflate).unwrap(), SAMPLES);
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for deflate in [false, true] {
        let whole = archive(&[("mean.npy", u32_npy("(2, 3)", &SAMPLES))], deflate);
        for len in 0..whole.len() {
            let file = ModelFile::from_bytes("a.npz", whole[..len].to_vec());
            assert_refused(
                file.map(|_| len),
                &["cut short", "let the element write it again"],
            );
        }
    }
}

#[test]
fn a_changed_sample_is_found_by_the_checksum() {
    let mut bytes = archive(&[("mean.npy", u32_npy("(2, 3)", &SAMPLES))], false);
    let at = bytes
        .windows(4)
        .position(|word| word == 65_536_u32.to_le_bytes());
    bytes[at.unwrap()] ^= 1;
    let file = ModelFile::from_bytes("a.npz", bytes).unwrap();
    assert_refused(file.array::<2>("mean"), &["'mean' is damaged", "checksum"]);
}

#[test]
fn other_types_and_orders_are_refused_with_the_call_that_converts_them() {
    for (descr, order, parts) in [
        ("'<f4'", "False", ["'<f4'", "astype(numpy.uint32)"]),
        ("'>u4'", "False", ["'>u4'", "astype(numpy.uint32)"]),
        ("'<i8'", "False", ["'<i8'", "astype(numpy.uint32)"]),
        ("'|O'", "False", ["pickle", "numpy.uint32"]),
        ("'<u4'", "True", ["Fortran order", "ascontiguousarray"]),
    ] {
        let file = npy(&header(descr, order, "(2, 3)"), &SAMPLES);
        assert_refused(
            mean(file, false),
            &[&["the array 'mean'"], &parts[..]].concat(),
        );
    }
    let pickle = b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00]".to_vec();
    assert_refused(mean(pickle, false), &["not in NumPy's .npy format"]);
}

#[test]
fn shapes_that_overflow_or_do_not_fit_the_bytes_are_refused() {
    for (shape, part) in [
        ("(18446744073709551615, 2)", "samples are accepted"),
        ("(4294967296, 4294967296)", "samples are accepted"),
        ("(268435457, 1)", "samples are accepted"),
        ("(0, 6)", "samples are accepted"),
        ("(2, 2)", "and its shape [2, 2] needs"),
        ("(3, 3)", "and its shape [3, 3] needs"),
        ("(6,)", "has 1 dimensions, and must have 2"),
        ("(2, 3, 1)", "has 3 dimensions, and must have 2"),
    ] {
        for deflate in [false, true] {
            assert_refused(mean(u32_npy(shape, &SAMPLES), deflate), &["'mean'", part]);
        }
    }
}

#[test]
fn a_small_file_does_not_become_a_large_array() {
    // The shape, and the size in the directory, of an array of 1 GiB in a file of some bytes.
    let start = u32_npy(&format!("({MAX_SAMPLES}, 1)"), &[0]);
    let needed = start.len() as u32 - 4 + 4 * MAX_SAMPLES as u32;
    for deflate in [false, true] {
        let mut bytes = archive(&[("mean.npy", &start)], deflate);
        let directory = bytes
            .windows(4)
            .rposition(|four| four == b"PK\x01\x02")
            .unwrap();
        bytes[directory + 24..directory + 28].copy_from_slice(&needed.to_le_bytes());
        let file = ModelFile::from_bytes("a.npz", bytes).unwrap();
        assert_refused(file.array::<2>("mean"), &["'mean'", "unpacked from"]);
    }
}

#[test]
fn more_data_than_the_directory_says_is_refused() {
    // Deflated zeros: 4 MiB are in the archive, and the directory and the shape speak of 24 bytes.
    let start = u32_npy("(2, 3)", &[]);
    let bomb = [start.clone(), vec![0; 4 << 20]].concat();
    let mut bytes = archive(&[("mean.npy", bomb)], true);
    assert!(bytes.len() < 8192);
    let directory = bytes
        .windows(4)
        .rposition(|four| four == b"PK\x01\x02")
        .unwrap();
    let said = start.len() as u32 + 24;
    bytes[directory + 24..directory + 28].copy_from_slice(&said.to_le_bytes());
    let file = ModelFile::from_bytes("a.npz", bytes).unwrap();
    assert_refused(file.array::<2>("mean"), &["'mean' is damaged"]);
}

#[test]
fn missing_double_and_packed_otherwise_arrays_are_refused() {
    let npy = u32_npy("(2, 3)", &SAMPLES);
    let bytes = archive(&[("dark.npy", &npy), ("readme", &npy)], false);
    let file = ModelFile::from_bytes("a.npz", bytes.clone()).unwrap();
    assert!(file.has("dark") && !file.has("mean") && !file.has("readme"));
    assert_refused(
        file.array::<2>("mean"),
        &["'mean' is missing", "name a file that this element wrote"],
    );

    let double = archive(&[("dark.npy", &npy), ("dark.npy", &npy)], false);
    let file = ModelFile::from_bytes("a.npz", double);
    assert_refused(file.map(|_| ()), &["two arrays 'dark'"]);

    let directory = bytes
        .windows(4)
        .position(|four| four == b"PK\x01\x02")
        .unwrap();
    for (offset, value, part) in [
        (10, 12, "BZIP2"),
        (10, 77, "unknown method"),
        (8, 9, "encrypted"),
    ] {
        let mut bytes = bytes.clone();
        bytes[directory + offset] = value;
        let file = ModelFile::from_bytes("a.npz", bytes).unwrap();
        assert_refused(file.array::<2>("dark"), &["'dark' is", part, "numpy.savez"]);
    }
}

#[test]
fn a_flood_of_arrays_is_refused() {
    let names: Vec<String> = (0..1001).map(|number| format!("{number}.npy")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), b"")).collect();
    let file = ModelFile::from_bytes("a.npz", archive(&files, false));
    assert_refused(file.map(|_| ()), &["more than 1000 arrays"]);
}

#[test]
fn other_files_are_refused_and_a_missing_one_is_told_apart() {
    let open = |path: &str| ModelFile::open(path.as_ref()).map(|_| ()).expect_err(path);
    let missing = open("/nonexistent/a.npz");
    assert!(missing.is_missing(), "{missing}");
    for (path, part) in [
        ("/", "is not a file"),
        ("/dev/zero", "is not a file"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "not an .npz file",
        ),
    ] {
        let error = open(path);
        assert!(!error.is_missing());
        assert!(error.to_string().contains(part), "{error}");
    }
}
