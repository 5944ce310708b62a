//! Caches that cannot be written, that others can write, full disks, and device files without rights.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use clinspect_testkit::tools::{run, skip};

use crate::stand::{DOCTOR, DoctorOutput, Stand};

/// No driver: these tests are about folders.
fn told(stand: Stand) -> DoctorOutput {
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

/// The shared libraries in a folder and its folders.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| match path.is_dir() {
        true => libraries(&path),
        false => vec![path],
    });
    found
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "so"))
        .collect()
}

#[test]
fn damaged_kernels_of_pocl_are_removed_and_told() {
    let stand = Stand::new("damaged");
    let [pocl, own] = ["pocl", "own"].map(|name| stand.sandbox.folder(name));
    fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
    let stand = stand
        .with("POCL_CACHE_DIR", &pocl)
        .with("CLINSPECT_CACHE_DIR", &own);
    let told = || stand.told("--no-speed --device cpu");
    told().has_no("self-test", "fault");
    let kernels = libraries(&pocl);
    if kernels.is_empty() {
        return skip("this machine has no device of PoCL");
    }
    let damage = |of: &str| {
        let name = |path: &PathBuf| path.file_name().unwrap().display().to_string();
        let kernels = libraries(&pocl).into_iter();
        for path in kernels.filter(|path| name(path).starts_with(of)) {
            let mut bytes = fs::read(&path).unwrap();
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
            fs::write(path, bytes).unwrap();
        }
    };
    // Those of one element: PoCL compiles what is removed again.
    damage("histogram");
    let known = told();
    known.has_no("self-test", "fault");
    known.says(
        "caches",
        "note",
        &[pocl.to_str().unwrap(), "failing disk damaged them"],
    );
    // As if no start of this version had been complete.
    for entry in fs::read_dir(&own).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    damage("");
    let unknown = told();
    unknown.has_no("self-test", "fault");
    unknown.says(
        "self-test",
        "note",
        &["SIGSEGV", pocl.to_str().unwrap(), "were damaged"],
    );
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
fn told_in_namespace(stand: &Stand, line: &str, last: &str) -> Option<DoctorOutput> {
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
    Some(DoctorOutput::of(run(&mut command)))
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
