//! Caches that cannot be written, that others can write, and full disks.

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

#[test]
fn full_disk_is_a_fault() {
    let stand = Stand::new("full");
    let disk = stand.sandbox.folder("disk");
    // In a mount namespace of its own, as the namespace's root.
    let mount = format!("mount -t tmpfs -o size=64k tmpfs {}", disk.display());
    let in_namespace = |line: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", line]);
        command
    };
    if run(&mut in_namespace(&mount)).code() != Some(0) {
        return skip("no user namespace for a small disk");
    }
    let line = format!(
        "{mount} && head -c 40000 /dev/zero >{}/rest && exec {DOCTOR} --json --no-speed",
        disk.display()
    );
    let stand = stand
        .with("CLINSPECT_CACHE_DIR", disk.join("cache"))
        .with_drivers(&[]);
    let doctor = stand.command("");
    let mut command = in_namespace(&line);
    for (name, value) in doctor.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let told = Told::of(run(&mut command));
    assert_eq!(told.code, Some(1));
    told.says(
        "caches",
        "fault",
        &["clinspect", "cannot be written", "make room on the disk"],
    );
}
