//! NumPy reads what this crate writes, and this crate reads what NumPy writes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{path::PathBuf, process::Command};

use clinspect_models::{ArrayRef, ModelFile, write};
use clinspect_testkit::tools::skip;

const PYTHON: &str = "/usr/bin/python3";

/// Runs lines of Python with numpy on a file; `None` if there is no numpy.
#[track_caller]
fn python(lines: &str, path: &PathBuf) -> Option<String> {
    let run = |lines: &str| Command::new(PYTHON).args(["-c", lines]).arg(path).output();
    if !run("import numpy").is_ok_and(|done| done.status.success()) {
        skip("/usr/bin/python3 has no numpy");
        return None;
    }
    let done = run(&format!(
        "import numpy, sys, zipfile\npath = sys.argv[1]\n{lines}"
    ))
    .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{errors}");
    Some(text)
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("clinspect-{name}-{}.npz", std::process::id()))
}

#[test]
fn numpy_reads_what_is_written() {
    let path = file("written");
    let dark: Vec<u32> = (0..70_000).map(|at| at * 61_357).collect();
    write(
        &path,
        &[
            ArrayRef {
                name: "dark",
                shape: &[100, 350, 2],
                samples: &dark,
            },
            ArrayRef {
                name: "frames",
                shape: &[],
                samples: &[u32::MAX],
            },
        ],
    )
    .unwrap();
    let Some(text) = python(
        "file = numpy.load(path)\n\
         assert zipfile.ZipFile(path).testzip() is None\n\
         assert file.files == ['dark', 'frames'], file.files\n\
         dark = file['dark']\n\
         assert dark.dtype == numpy.uint32 and dark.shape == (100, 350, 2)\n\
         steps = numpy.arange(70000, dtype=numpy.uint64) * 61357 % 2 ** 32\n\
         assert (dark.reshape(-1) == steps).all()\n\
         assert file['frames'].shape == () and file['frames'] == 2 ** 32 - 1\n\
         print('equal')",
        &path,
    ) else {
        return;
    };
    assert_eq!(text, "equal\n");
    let read = ModelFile::open(&path).unwrap();
    assert_eq!(read.array::<3>("dark").unwrap().samples, dark);
    assert_eq!(read.scalar("frames"), Ok(u32::MAX));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_numpy_writes_is_read() {
    for call in ["savez", "savez_compressed"] {
        let path = file(call);
        let lines = format!(
            "mean = (numpy.arange(333 * 217, dtype=numpy.uint64) * 7919 % 65536).astype('<u4')\n\
             numpy.{call}(path, mean=mean.reshape(217, 333), frames=numpy.uint32(64))"
        );
        let Some(_) = python(&lines, &path) else {
            return;
        };
        let read = ModelFile::open(&path).unwrap();
        assert_eq!(read.shape("mean"), Ok([217, 333]));
        let mean = read.array::<2>("mean").unwrap();
        let expected = (0..333_u64 * 217).map(|at| (at * 7919 % 65536) as u32);
        assert!(mean.samples.iter().copied().eq(expected));
        assert_eq!(read.scalar("frames"), Ok(64));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_numpy_writes_otherwise_is_refused() {
    for (array, part) in [
        ("numpy.zeros((2, 3))", "'<f8'"),
        ("numpy.zeros((2, 3), '>u4')", "'>u4'"),
        (
            "numpy.asfortranarray(numpy.zeros((2, 3), 'u4'))",
            "Fortran order",
        ),
        ("numpy.array([[None], [{}]])", "pickle"),
        ("numpy.zeros((2, 3), [('a', '<u4')])", "a structure"),
        ("numpy.zeros((2, 0), 'u4')", "samples are accepted"),
    ] {
        let path = file("otherwise");
        let Some(_) = python(&format!("numpy.savez(path, mean={array})"), &path) else {
            return;
        };
        let error = ModelFile::open(&path)
            .unwrap()
            .array::<2>("mean")
            .expect_err(array);
        assert!(error.to_string().contains(part), "{array}: {error}");
        std::fs::remove_file(path).unwrap();
    }
}
