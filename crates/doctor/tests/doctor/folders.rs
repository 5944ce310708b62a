//! Caches that cannot be written, that others can write, full disks, and device files without rights.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use clinspect_testkit::tools::{run, skip};

use crate::stand::{DOCTOR, Stand, Told};

/// No driver: these tests are about folders.
fn told(stand: Stand) -> Told {
    stand.with_drivers(&[]).told("--no-speed")
}

#[test]
fn cache_without_a_home_is_a_fault() {
    let stand = Stand::new("homeless");
    let told = told(
        stand
            .without("CLINSPECT_CACHE_DIR")
            .without("HOME")
            .without("XDG_CACHE_HOME"),
    );
    told.says(
        "caches",
        "fault",
        &["HOME is not set", "CLINSPECT_CACHE_DIR"],
    );
}

#[test]
fn cache_that_cannot_be_written_is_a_fault() {
    let stand = Stand::new("unwritable");
    let file = stand.sandbox.path().join("file");
    fs::write(&file, "").unwrap();
    let told = told(
        stand
            .with("CLINSPECT_CACHE_DIR", file.join("cache"))
            .with("POCL_CACHE_DIR", "/proc/pocl"),
    );
    assert_eq!(told.code, Some(1));
    told.says(
        "caches",
        "fault",
        &["clinspect", "cannot be written", "remove the file"],
    );
    told.says(
        "caches",
        "fault",
        &["pocl", "/proc/pocl cannot be written", "POCL_CACHE_DIR"],
    );
    assert_eq!(told.data("caches")[0]["writable"], false);
}

#[test]
fn caches_that_others_can_write_are_faults() {
    let stand = Stand::new("open");
    let [own, pocl] = ["own", "pocl"].map(|name| {
        let folder = stand.sandbox.folder(name);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        folder
    });
    let told = told(
        stand
            .with("CLINSPECT_CACHE_DIR", own)
            .with("POCL_CACHE_DIR", pocl),
    );
    assert_eq!(told.code, Some(1));
    told.says(
        "caches",
        "fault",
        &["another user can write to", "chmod go-w /"],
    );
    told.says(
        "caches",
        "fault",
        &["another user can put code into PoCL's cache", "chmod o-w /"],
    );
}

#[test]
fn truncated_kernel_of_pocl_is_removed_as_an_element_does() {
    let stand = Stand::new("truncated");
    let pocl = stand.sandbox.folder("pocl/AB");
    let kernel = pocl.join("kernel.so");
    fs::write(&kernel, "").unwrap();
    let stand = stand
        .with("POCL_CACHE_DIR", pocl.parent().unwrap())
        .with_drivers(&[]);
    let told = stand.told("--no-speed");
    assert!(!kernel.exists());
    told.has_no("caches", "fault");
}

#[test]
fn nothing_is_left_in_the_caches() {
    let stand = Stand::new("left");
    let folder = stand.sandbox.folder("own");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let stand = stand.with("CLINSPECT_CACHE_DIR", &folder);
    let stand = stand.with_drivers(&[]);
    let told = stand.told("--no-speed");
    told.says("caches", "ok", &["clinspect", "can be written", " free"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// A shell line in a mount namespace of its own, as the namespace's root.
fn in_namespace(line: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", line]);
    command
}

/// What the doctor says at the end of a shell line in such a namespace; `None`: the test is skipped.
fn told_in_namespace(stand: &Stand, line: &str, last: &str) -> Option<Told> {
    if run(&mut in_namespace(line)).code() != Some(0) {
        skip("no user namespace with mounts");
        return None;
    }
    let line = format!("{line} && exec {last} {DOCTOR} --json --no-speed");
    let doctor = stand.command("");
    let mut command = in_namespace(&line);
    for (name, value) in doctor.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Some(Told::of(run(&mut command)))
}

#[test]
fn full_disk_is_a_fault() {
    let stand = Stand::new("full");
    let disk = stand.sandbox.folder("disk");
    let line = format!(
        "mount -t tmpfs -o size=64k tmpfs {0} && head -c 40000 /dev/zero >{0}/rest",
        disk.display()
    );
    let stand = stand
        .with("CLINSPECT_CACHE_DIR", disk.join("cache"))
        .with_drivers(&[]);
    let Some(told) = told_in_namespace(&stand, &line, "") else {
        return;
    };
    assert_eq!(told.code, Some(1));
    told.says(
        "caches",
        "fault",
        &["clinspect", "cannot be written", "make room on the disk"],
    );
}

#[test]
fn device_files_without_rights_are_faults() {
    let stand = Stand::new("rights");
    let dev = stand.sandbox.folder("dev");
    let line = format!(
        "mount -t tmpfs tmpfs {0} && touch {0}/null {0}/video0 && mount --bind /dev/null {0}/null && mkdir {0}/dri && \
         touch {0}/dri/renderD128 && chmod 000 {0}/dri/renderD128 && mount --rbind {0} /dev",
        dev.display()
    );
    let stand = stand.with_drivers(&[]);
    // Without root's right to open any file.
    let last = "setpriv --bounding-set=-all --inh-caps=-all";
    let Some(told) = told_in_namespace(&stand, &line, last) else {
        return;
    };
    told.says(
        "rights",
        "fault",
        &["/dev/dri/renderD128", "group root", "udev rule"],
    );
    told.says("rights", "ok", &["may open /dev/video0"]);
    assert_eq!(told.data("rights")[0]["allowed"], false);
}
