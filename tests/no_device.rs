//! Machines without a usable OpenCL device: the plugin registers and can be inspected, a start is
//! one error that says what to install, and after the repair the plugin works with the same registry.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tools::{Sandbox, exists, run, skip};

const ELEMENTS: [&str; 7] = [
    "clunpack",
    "clflatfield",
    "clgaussian",
    "clhistogram",
    "clpitchthreshold pitch-x=8",
    "clreference",
    "cltexture",
];
const SOURCE: &str = "videotestsrc num-buffers=2 ! video/x-raw,format=GRAY8,width=64,height=16";

/// Inspects and runs the plugin under an environment that hides the device, then without it.
#[track_caller]
fn assert_one_clear_error(name: &str, broken: impl Fn(&Sandbox) -> (&str, OsString), word: &str) {
    if !exists("gst-launch-1.0") || !exists("gst-inspect-1.0") {
        return skip("gst-launch-1.0 and gst-inspect-1.0 are not installed");
    }
    let sandbox = Sandbox::new(name);
    let (variable, value) = broken(&sandbox);

    let mut inspect = sandbox.command("gst-inspect-1.0");
    let listed = run(inspect.arg("clinspect").env(variable, &value)).succeeded();
    for element in [
        "clunpack",
        "clflatfield",
        "clgaussian",
        "clhistogram",
        "clpitchthreshold",
        "clreference",
        "cltexture",
        "clmaskunpack",
    ] {
        assert!(listed.output().contains(element), "{}", listed.text());
        let mut inspect = sandbox.command("gst-inspect-1.0");
        run(inspect.arg(element).env(variable, &value)).succeeded();
    }
    for element in ELEMENTS {
        let line = format!("{SOURCE} ! {element} ! fakesink");
        let failed = run(sandbox.launch(&line).env(variable, &value));
        // A failure, but no crash.
        assert!(failed.code().is_some_and(|c| c != 0), "{}", failed.text());
        let errors = failed.lines("ERROR: from element");
        assert_eq!(errors.len(), 1, "{element}: {}", failed.text());
        assert!(errors[0].contains(word), "{element}: {}", errors[0]);
    }
    // clmaskunpack and inspectoverlay need no device.
    let caps = "video/x-bitmask,width=8,height=2,framerate=1/1,stride=1,bit-order=msb-first";
    let line = format!(
        "fakesrc num-buffers=1 filltype=zero sizetype=fixed sizemax=2 ! {caps} ! clmaskunpack ! \
         fakesink"
    );
    run(sandbox.launch(&line).env(variable, &value)).succeeded();
    let line = format!("{SOURCE} ! inspectoverlay ! fakesink");
    run(sandbox.launch(&line).env(variable, &value)).succeeded();

    // The same registry after the repair.
    for element in ELEMENTS {
        let line = format!("{SOURCE} ! {element} ! fakesink");
        let repaired = run(&mut sandbox.launch(&line));
        if repaired.code() != Some(0) && repaired.text().contains("pocl-opencl-icd") {
            return skip("this machine has no OpenCL device");
        }
        repaired.succeeded();
    }
}

#[test]
fn no_icd_is_one_error_that_names_the_package() {
    assert_one_clear_error(
        "no-icd",
        |sandbox| ("OCL_ICD_VENDORS", sandbox.folder("vendors").into()),
        "pocl-opencl-icd",
    );
}

#[test]
fn broken_icd_is_one_error_that_names_the_package() {
    assert_one_clear_error(
        "broken-icd",
        |sandbox| {
            let vendors = sandbox.folder("vendors");
            fs::write(vendors.join("gone.icd"), "/nonexistent/libgone.so\n").unwrap();
            ("OCL_ICD_VENDORS", vendors.into())
        },
        "pocl-opencl-icd",
    );
}

#[test]
fn no_lib_opencl_is_one_error_that_names_the_package() {
    assert_one_clear_error(
        "no-libopencl",
        |sandbox| {
            // The loader takes the first file of this name, which is not a library.
            let folder = sandbox.folder("lib");
            fs::write(folder.join("libOpenCL.so.1"), "").unwrap();
            ("LD_LIBRARY_PATH", folder.into())
        },
        "ocl-icd-libopencl1",
    );
}

#[test]
fn driver_without_devices_is_one_error_that_names_the_package() {
    assert_one_clear_error(
        "no-devices",
        |_| ("POCL_DEVICES", "".into()),
        "pocl-opencl-icd",
    );
}

#[test]
fn no_writable_cache_is_one_error_that_names_the_variable() {
    assert_one_clear_error(
        "no-cache",
        |_| ("POCL_CACHE_DIR", "/dev/null/cache".into()),
        "POCL_CACHE_DIR",
    );
}

#[test]
fn cut_files_in_the_cache_are_compiled_again() {
    if !exists("gst-launch-1.0") {
        return skip("gst-launch-1.0 is not installed");
    }
    let sandbox = Sandbox::new("cut-cache");
    let cache = sandbox.folder("pocl");
    let line = format!("{SOURCE} ! clgaussian ! fakesink");
    let play = || run(sandbox.launch(&line).env("POCL_CACHE_DIR", &cache));
    if play().code() != Some(0) {
        return skip("this machine has no OpenCL device");
    }
    let is_compiled = |path: &PathBuf| {
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        matches!(suffix, Some("so" | "bc"))
    };
    let length = |path: &PathBuf| fs::metadata(path).unwrap().len();
    // Without PoCL there is no file to truncate.
    let compiled: Vec<PathBuf> = files(&cache).into_iter().filter(is_compiled).collect();
    for kept in [0, 100] {
        for path in &compiled {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(kept).unwrap();
        }
        play().succeeded();
        for path in &compiled {
            assert!(length(path) > kept, "{}", path.display());
        }
    }
}

/// Every file in a folder and its folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path()),
            false => vec![entry.path()],
        })
        .collect()
}

#[test]
fn cache_that_anybody_can_write_is_one_error_that_names_the_variable() {
    assert_one_clear_error(
        "open-cache",
        |sandbox| {
            let cache = sandbox.folder("pocl");
            fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
            ("POCL_CACHE_DIR", cache.into())
        },
        "another user can put code",
    );
}

#[test]
fn unknown_device_from_the_environment_is_one_error_that_names_it() {
    assert_one_clear_error(
        "unknown-device",
        |_| ("CLINSPECT_DEVICE", "nonsense".into()),
        // The error names the variable, because the user set no property.
        "CLINSPECT_DEVICE",
    );
}

#[test]
fn device_from_the_environment_that_is_no_utf8_is_one_error() {
    use std::os::unix::ffi::OsStringExt;
    assert_one_clear_error(
        "no-utf8-device",
        |_| {
            (
                "CLINSPECT_DEVICE",
                OsString::from_vec(b"nons\xe4nse".into()),
            )
        },
        "device=nons",
    );
}

#[test]
fn environment_chooses_the_device_that_elements_open() {
    if !exists("gst-launch-1.0") {
        return skip("gst-launch-1.0 is not installed");
    }
    let sandbox = Sandbox::new("environment");
    let line = format!("-v {SOURCE} ! clhistogram name=h ! fakesink");
    let auto = run(sandbox.launch(&line).env("CLINSPECT_DEVICE", "auto"));
    if auto.code() != Some(0) {
        return skip("this machine has no OpenCL device");
    }
    let begin = "/GstPipeline:pipeline0/GstClHistogram:h: stats = ";
    let name = auto.lines(begin);
    assert_eq!(name.len(), 1, "{}", auto.text());
    // Part of the name, in a different case.
    let (_, name) = name[0].split_once("device=(string)").unwrap();
    let name = name.trim_matches(['"', ';']).to_owned();
    let part = name[..8].to_uppercase();
    let chosen = run(sandbox.launch(&line).env("CLINSPECT_DEVICE", part)).succeeded();
    assert!(chosen.lines(begin)[0].contains(&name), "{}", chosen.text());
}
