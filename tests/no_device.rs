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
    process::Command,
    thread,
    time::Duration,
};

use tools::{Run, Sandbox, exists, run, skip};

const ELEMENTS: [&str; 8] = [
    "clunpack",
    "clflatfield",
    "clgaussian",
    "clhistogram",
    "clpitchthreshold pitch-x=8",
    "clreference",
    "clsurface",
    "cltexture",
];
const SOURCE: &str = "videotestsrc num-buffers=2 ! video/x-raw,format=GRAY8,width=64,height=32";

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
        "clsurface",
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

/// A pipeline with caches of its own; `None` without a device.
struct Cached {
    sandbox: Sandbox,
    pocl: PathBuf,
    own: PathBuf,
}

impl Cached {
    /// The caches are filled by a complete start.
    fn new(name: &str) -> Option<Self> {
        if !exists("gst-launch-1.0") {
            skip("gst-launch-1.0 is not installed");
            return None;
        }
        let sandbox = Sandbox::new(name);
        let [pocl, own] = ["pocl", "own"].map(|name| sandbox.folder(name));
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        let cached = Self { sandbox, pocl, own };
        if cached.play().code() != Some(0) {
            skip("this machine has no OpenCL device");
            return None;
        }
        Some(cached)
    }

    fn line() -> String {
        // One element: further ones would only compile longer, which these tests do again and again.
        format!("{SOURCE} ! clhistogram ! fakesink")
    }

    fn play(&self) -> Run {
        self.run(&mut self.sandbox.launch(&Self::line()))
    }

    /// Runs a program with these caches.
    fn run(&self, program: &mut Command) -> Run {
        run(program
            .env("POCL_CACHE_DIR", &self.pocl)
            .env("CLINSPECT_CACHE_DIR", &self.own))
    }

    /// Changes the files of PoCL with one of these suffixes.
    fn damage(&self, suffixes: &[&str], damage: Damage) {
        for path in self.compiled(suffixes) {
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
    }

    /// As if no start of this version had been complete.
    fn forget_starts(&self) {
        for path in files(&self.own) {
            fs::remove_file(path).unwrap();
        }
    }

    /// The files of PoCL with one of these suffixes; none without PoCL.
    fn compiled(&self, suffixes: &[&str]) -> Vec<PathBuf> {
        let mut files = files(&self.pocl);
        files.retain(|path| {
            let suffix = path.extension().and_then(|suffix| suffix.to_str());
            suffix.is_some_and(|suffix| suffixes.contains(&suffix))
        });
        files
    }
}

#[test]
fn cut_files_in_the_cache_are_compiled_again() {
    let Some(cached) = Cached::new("cut-cache") else {
        return;
    };
    let length = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let compiled = cached.compiled(&["so", "bc"]);
    for kept in [0, 100] {
        for path in &compiled {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(kept).unwrap();
        }
        cached.play().succeeded();
        for path in &compiled {
            assert!(length(path) > kept, "{}", path.display());
        }
    }
}

/// Changes bytes and keeps their number.
type Damage = fn(&mut [u8]);

fn zero_half(bytes: &mut [u8]) {
    let half = bytes.len() / 2;
    bytes[half..].fill(0);
}

const DAMAGES: [(&str, Damage); 4] = [
    ("a second half of zeros", zero_half),
    ("a page of zeros", |bytes| {
        let page = (bytes.len() / 3) & !0xfff;
        let end = bytes.len().min(page + 0x1000);
        bytes[page..end].fill(0);
    }),
    ("a last page of zeros", |bytes| {
        let page = (bytes.len() - 1) & !0xfff;
        bytes[page..].fill(0);
    }),
    ("two other bytes", |bytes| {
        let place = bytes.len() / 2;
        bytes[place] ^= 0x55;
        bytes[place + 1] ^= 0xff;
    }),
];

#[test]
fn changed_files_in_the_cache_are_removed_before_a_start_uses_them() {
    let Some(cached) = Cached::new("changed-cache") else {
        return;
    };
    for suffixes in [&["so"][..], &["bc"], &["so", "bc"]] {
        for (name, damage) in DAMAGES {
            cached.damage(suffixes, damage);
            let played = cached.play().succeeded();
            let told = played.text().contains("kernels in PoCL's cache");
            assert_eq!(
                told,
                !cached.compiled(suffixes).is_empty(),
                "{suffixes:?}, {name}: {}",
                played.text()
            );
        }
    }
}

#[test]
fn starts_that_end_in_the_driver_or_fail_remove_the_kernels_that_they_used() {
    let Some(cached) = Cached::new("unknown-cache") else {
        return;
    };
    for suffixes in [&["so"][..], &["bc"]] {
        for (name, damage) in DAMAGES {
            cached.damage(suffixes, damage);
            cached.forget_starts();
            let first = cached.play();
            let second = cached.play().succeeded();
            if first.code() != Some(0) {
                assert!(
                    second.text().contains("the last start on this device"),
                    "{suffixes:?}, {name}: {}",
                    second.text()
                );
            }
        }
    }
}

/// PoCL ends a process whose files go while it compiles.
#[test]
fn files_that_a_starting_process_may_write_stay() {
    let Some(cached) = Cached::new("starting") else {
        return;
    };
    if cached.compiled(&["so"]).is_empty() {
        return;
    }
    let [linked, finished] = ["tempfile_0a1b2c.so", "kernel.so"].map(|name| cached.pocl.join(name));
    let line = "videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=48 ! clgaussian ! fakesink";
    let started = cached.sandbox.folder("started");
    let mut starting = cached
        .sandbox
        .launch(line)
        .env("POCL_CACHE_DIR", &cached.pocl)
        .env("CLINSPECT_CACHE_DIR", &cached.own)
        .env("GST_DEBUG", "clcontext:4")
        .env("GST_DEBUG_FILE", started.join("log"))
        .spawn()
        .unwrap();
    let is_open =
        || fs::read_to_string(started.join("log")).is_ok_and(|log| log.contains("opened "));
    while !is_open() {
        assert_eq!(starting.try_wait().unwrap(), None, "the pipeline ended");
        thread::sleep(Duration::from_millis(10));
    }
    for file in [&linked, &finished] {
        fs::write(file, []).unwrap();
    }
    cached.play().succeeded();
    let are_left = [&linked, &finished].map(|file| file.exists());
    // `timeout` passes this signal on.
    let ended = Command::new("kill").arg(starting.id().to_string()).status();
    assert!(ended.unwrap().success());
    starting.wait().unwrap();
    assert_eq!(are_left, [true, true]);
    cached.play().succeeded();
    let are_left = [&linked, &finished].map(|file| file.exists());
    assert_eq!(are_left, [true, false], "nobody writes the second one");
}

/// `gst-launch-1.0` catches SIGSEGV, and lives on until somebody ends it.
#[test]
fn start_whose_sigsegv_is_caught_is_not_complete() {
    let Some(cached) = Cached::new("caught-cache") else {
        return;
    };
    cached.damage(&["so"], zero_half);
    cached.forget_starts();
    let mut caught = cached.sandbox.command("timeout");
    caught
        .args(["6", "gst-launch-1.0"])
        .args(Cached::line().split_whitespace());
    let is_cached = !cached.compiled(&["so"]).is_empty();
    let caught = cached.run(&mut caught);
    if !is_cached {
        return;
    }
    assert!(caught.text().contains("SIGSEGV"), "{}", caught.text());
    cached.play().succeeded();
}

#[test]
fn kernels_that_end_each_start_in_the_driver_are_all_removed_in_the_end() {
    let Some(cached) = Cached::new("all-suspects") else {
        return;
    };
    cached.damage(&["so"], zero_half);
    if cached.compiled(&["so"]).is_empty() {
        return;
    }
    // A start that uses none of the kernels keeps the checksums of the damaged files.
    cached.forget_starts();
    let other = format!("{SOURCE} ! clunpack ! fakesink");
    let mut other = cached.sandbox.launch(&other);
    cached.run(&mut other).succeeded();
    let codes: Vec<_> = (0..4).map(|_| cached.play().code()).collect();
    assert_ne!(codes[0], Some(0), "the kernels are damaged");
    assert_eq!(codes[3], Some(0), "{codes:?}");
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
