//! Models that are written: whole, or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clinspect_models::{ArrayRef, ModelFile, write};
use clinspect_testkit::tools::skip;

/// Tells this binary, started again, which file to write.
const CHILD: &str = "CLINSPECT_TEST_MODEL";
/// Samples that need 1 MiB.
const MANY: usize = 1 << 18;

/// A folder for a test, removed afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("clinspect-models-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write_many(path: &Path, value: u32) -> Result<(), clinspect_models::ModelError> {
    let samples = vec![value; MANY];
    let mean = ArrayRef {
        name: "mean",
        shape: &[MANY / 512, 512],
        samples: &samples,
    };
    write(path, &[mean])
}

#[track_caller]
fn assert_holds(path: &Path, value: u32) {
    let array = ModelFile::open(path).unwrap().array::<2>("mean").unwrap();
    assert_eq!(array.shape, [MANY / 512, 512]);
    assert!(array.samples.iter().all(|&sample| sample == value));
}

#[test]
fn a_model_replaces_the_one_before_also_through_a_link() {
    let folder = Folder::new("replace");
    let [path, link] = ["model.npz", "link.npz"].map(|name| folder.0.join(name));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for value in 1..4 {
        write_many(if value == 3 { &link } else { &path }, value).unwrap();
        assert_holds(&path, value);
        assert_eq!(folder.names(), ["link.npz", "model.npz"]);
    }
    assert!(link.is_symlink());
}

#[test]
fn a_wrong_place_is_refused_with_what_to_do() {
    let folder = Folder::new("place");
    fs::write(folder.0.join("file"), "").unwrap();
    for (path, part) in [
        (folder.0.join("none/model.npz"), "create the folder"),
        (folder.0.join("file/model.npz"), "create the folder"),
        (folder.0.clone(), "directory"),
        // Nobody may create files there, not even root.
        (
            "/sys/kernel/model.npz".into(),
            "allow writing into the folder",
        ),
    ] {
        let error = write_many(&path, 1).expect_err("a wrong place").to_string();
        let start = format!("the file {} cannot be written: ", path.display());
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(folder.names(), ["file"]);
}

#[test]
fn samples_that_do_not_fill_the_shape_are_refused() {
    let folder = Folder::new("shape");
    let path = folder.0.join("model.npz");
    let array = ArrayRef {
        name: "mean",
        shape: &[2, 3],
        samples: &[0; 5],
    };
    let error = write(&path, &[array]).expect_err("a sample too few");
    assert!(
        error
            .to_string()
            .contains("5 samples, and its shape needs 6"),
        "{error}"
    );
    assert!(folder.names().is_empty());
}

/// Does nothing unless another test started this binary for it.
#[test]
fn child_that_writes() {
    if let Some(path) = std::env::var_os(CHILD) {
        let error = write_many(Path::new(&path), 2).expect_err("a full disk");
        eprintln!("child: {error}");
    }
}

/// Runs [`child_that_writes`] after `setup`, a line of a shell, and returns its error.
fn write_in_child(path: &Path, setup: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let line = format!(
        "{setup} && '{}' --exact child_that_writes --nocapture && ls -A \"$(dirname \"${CHILD}\")\"",
        own.display()
    );
    let done = Command::new("bash")
        .args(["-c", &line])
        .env(CHILD, path)
        .output()
        .unwrap();
    let text = [done.stdout, done.stderr]
        .map(|text| String::from_utf8(text).unwrap())
        .concat();
    assert!(done.status.success(), "{text}");
    text
}

#[test]
fn a_file_that_may_not_grow_leaves_the_model_before() {
    let folder = Folder::new("limit");
    let path = folder.0.join("model.npz");
    write_many(&path, 1).unwrap();
    // 512 KiB; without the trap a signal would end the process.
    let text = write_in_child(&path, "trap '' XFSZ && ulimit -f 512");
    assert!(text.contains("File too large"), "{text}");
    assert!(
        text.contains("free disk space, or set another location"),
        "{text}"
    );
    assert_holds(&path, 1);
    assert_eq!(folder.names(), ["model.npz"]);
}

#[test]
fn a_full_disk_is_told_and_left_without_a_temporary_file() {
    let folder = Folder::new("full");
    let mount = format!("mount -t tmpfs -o size=600k none '{}'", folder.0.display());
    let may_mount = |options: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(options).args(["bash", "-c", &mount]);
        unshare.output().is_ok_and(|done| done.status.success())
    };
    // As root, or in a namespace of users where the kernel allows one.
    let Some(options) = ["-m", "-rm"]
        .into_iter()
        .find(|options| may_mount(&[options]))
    else {
        return skip("this user cannot mount a small tmpfs");
    };
    let own = std::env::current_exe().unwrap();
    let line = format!(
        "{mount} && '{}' --exact child_that_writes --nocapture; ls -A '{}'; echo end",
        own.display(),
        folder.0.display()
    );
    let done = Command::new("unshare")
        .args([options, "bash", "-c", &line])
        .env(CHILD, folder.0.join("model.npz"))
        .output()
        .unwrap();
    let text = [done.stderr, done.stdout]
        .map(|text| String::from_utf8(text).unwrap())
        .concat();
    assert!(text.contains("No space left on device"), "{text}");
    assert!(
        text.contains("free disk space, or set another location"),
        "{text}"
    );
    assert!(!text.contains(".part"), "{text}");
    assert!(text.ends_with("end\n"), "{text}");
}
