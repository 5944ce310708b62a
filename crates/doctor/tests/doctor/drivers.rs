//! Drivers that are missing, broken, hang, crash or fail.

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{has_device, opencl_layer};

use crate::stand::{DOCTOR, DoctorOutput, Stand};

/// More than the probes of a healthy machine take.
const LIMIT: &str = "--no-speed --limit 10";

/// The library that this machine's driver for the CPU has.
fn pocl() -> Option<String> {
    let library = fs::read_to_string("/etc/OpenCL/vendors/pocl.icd").ok()?;
    Some(library.trim().to_owned())
}

#[test]
fn no_driver_is_a_fault_with_the_package_to_install() {
    let told = Stand::new("none").with_drivers(&[]).told("--no-speed");
    assert_eq!(told.code, Some(1));
    told.says(
        "drivers",
        "fault",
        &[
            "no OpenCL driver is installed",
            "sudo apt install pocl-opencl-icd",
        ],
    );
    told.says("devices", "fault", &["no device can be used"]);
    assert!(told.states().is_empty());
}

#[test]
fn broken_drivers_are_named_and_the_others_work() {
    let Some(pocl) = pocl().filter(|_| has_device()) else {
        return;
    };
    let stand = Stand::new("broken");
    let text = stand.sandbox.path().join("text.so");
    fs::write(&text, "this is no library").unwrap();
    let text = text.display().to_string();
    let drivers = [
        ("a.icd", &*text),
        ("b.icd", "/nowhere/driver.so"),
        ("c.icd", "libclinspect-no-such-driver.so.1"),
        ("d.icd", ""),
        ("pocl.icd", &pocl),
    ];
    let told = stand.with_drivers(&drivers).told("--no-speed");
    assert_eq!(told.code, Some(1));
    told.says("drivers", "fault", &["a.icd", "is no library", "a.icd.off"]);
    told.says(
        "drivers",
        "fault",
        &["b.icd", "/nowhere/driver.so cannot be read"],
    );
    told.says("drivers", "fault", &["c.icd", "is not installed"]);
    told.says("drivers", "fault", &["d.icd", "names no library"]);
    told.says("drivers", "ok", &["pocl.icd"]);
    assert!(!told.states().is_empty() && told.states().iter().all(|state| *state == "passed"));
}

/// A driver that does this when it is loaded, and this when its process ends.
fn code(at_load: &str, at_end: &str) -> String {
    format!(
        "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         __attribute__((constructor)) static void begin(void) {{ {at_load} }}\n\
         __attribute__((destructor)) static void end(void) {{ {at_end} }}\n"
    )
}

/// What the doctor says with such a driver.
fn with_driver(name: &str, at_load: &str, at_end: &str) -> DoctorOutput {
    let stand = Stand::new(name);
    let library = stand.library(&code(at_load, at_end));
    let stand = stand.with_drivers(&[("bad.icd", &library)]);
    stand.told(LIMIT)
}

#[test]
fn driver_that_hangs_is_named() {
    let began = Instant::now();
    let told = with_driver("hangs", "for (;;) pause();", "");
    assert_eq!(told.code, Some(1));
    told.says(
        "drivers",
        "fault",
        &["bad.icd", "hangs", "did not end within 10 s", "sudo mv"],
    );
    told.says("devices", "note", &["not asked", "bad.icd"]);
    assert_eq!(told.data("drivers")[0]["state"], "hangs");
    // Nothing else waits for the driver.
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn driver_that_crashes_is_named_with_the_signal() {
    let told = with_driver("dies", "abort();", "");
    assert_eq!(told.code, Some(1));
    told.says("drivers", "fault", &["bad.icd", "crashes", "SIGABRT"]);
    assert_eq!(told.data("drivers")[0]["state"], "dies");
}

#[test]
fn driver_that_exits_or_prints_is_seen() {
    let told = with_driver("exits", "_exit(0);", "");
    told.says("drivers", "fault", &["bad.icd", "ended without an answer"]);
    // What a driver prints is no answer, and does not reach the JSON object.
    let told = with_driver("prints", "puts(\"noise\");", "puts(\"more noise\");");
    told.says("drivers", "note", &["bad.icd", "no device"]);
}

#[test]
fn hung_driver_does_not_outlive_the_doctor() {
    let stand = Stand::new("orphan");
    let number = stand.sandbox.path().join("pid");
    let at_load = format!(
        "FILE *f = fopen(\"{0}.part\", \"w\"); fprintf(f, \"%d\", getpid()); fclose(f); \
         rename(\"{0}.part\", \"{0}\"); for (;;) pause();",
        number.display()
    );
    let library = stand.library(&code(&at_load, ""));
    let stand = stand.with_drivers(&[("bad.icd", &library)]);
    let variables = stand.command("");
    let mut doctor = Command::new(DOCTOR);
    for (name, value) in variables.get_envs() {
        match value {
            Some(value) => doctor.env(name, value),
            None => doctor.env_remove(name),
        };
    }
    let mut doctor = doctor.stdout(Stdio::null()).spawn().unwrap();
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    wait("the driver is loaded", &|| number.exists());
    let process = fs::read_to_string(&number).unwrap();
    doctor.kill().unwrap();
    doctor.wait().unwrap();
    // Gone, or a zombie that nobody has asked about.
    wait("the probe ends", &|| {
        let state = fs::read_to_string(format!("/proc/{process}/stat"));
        state.map_or(true, |stat| stat.contains(") Z "))
    });
}

/// The self-tests with the layer of tests/opencl_layer between the loader and the driver.
fn with_rules(name: &str, rules: &str) -> DoctorOutput {
    let stand = Stand::new(name);
    let layer = stand.sandbox.path().join("layer.so");
    opencl_layer(&layer);
    let file = stand.sandbox.path().join("rules");
    fs::write(&file, rules).unwrap();
    let stand = stand.with("OPENCL_LAYERS", layer);
    stand
        .with("CLINSPECT_LAYER_RULES", file)
        .told(&format!("{LIMIT} --device cpu:0"))
}

#[test]
fn operator_that_hangs_ends_the_tests_of_its_device() {
    if !has_device() {
        return;
    }
    let told = with_rules("hung-kernel", "clEnqueueNDRangeKernel 1+ stall 600000\n");
    assert_eq!(told.code, Some(1));
    told.says(
        "self-test",
        "fault",
        &["clflatfield on cpu:0", "the driver hangs"],
    );
    told.says(
        "self-test",
        "note",
        &[
            "not tried, because the driver hangs",
            "clreference, clsurface, cltexture",
        ],
    );
    assert_eq!(told.states()[..2], ["hangs", "not-tried"]);
}

#[test]
fn operators_that_fail_are_all_tried() {
    if !has_device() {
        return;
    }
    let told = with_rules("failing-kernel", "clEnqueueNDRangeKernel 1+ fail -5\n");
    assert_eq!(told.code, Some(1));
    assert!(
        told.states().iter().all(|state| *state == "failed"),
        "{told:?}"
    );
    told.says(
        "self-test",
        "fault",
        &["clgaussian on cpu:0", "clEnqueueNDRangeKernel"],
    );
}
