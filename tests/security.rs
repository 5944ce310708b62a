//! The plugin `clinspect` reads two environment variables of its own and the variables of PoCL's cache, and writes no
//! files but models and its cache. `unsafe` is where CONTRIBUTING.md says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::tools;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use tools::{Sandbox, exists, run, skip};

/// Variables that the plugin reads while it runs.
const READ_AT_RUN_TIME: [&str; 6] = [
    "CLINSPECT_CACHE_DIR",
    "CLINSPECT_DEVICE",
    // These name PoCL's cache, which is checked for truncated files.
    "HOME",
    // Whether the user wants PoCL to pin its threads.
    "POCL_AFFINITY",
    "POCL_CACHE_DIR",
    "XDG_CACHE_HOME",
];
/// The only source files that may use files, and the calls that they may use.
const READERS: [(&str, &[&str]); 9] = [
    // Compiled programs and passed self-tests, in the user's cache folder.
    (
        "opencl/src/cache.rs",
        &[
            "fs::{self, DirBuilder, File, OpenOptions}",
            "unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt}",
            "fs::metadata(",
            "fs::Metadata",
            "fs::read_dir(",
            "fs::remove_file(",
            "fs::rename(",
            "File::open(",
            "OpenOptions::new(",
        ],
    ),
    (
        "opencl/src/pocl.rs",
        &[
            "fs::{self, File}",
            "unix::fs::MetadataExt",
            "fs::metadata(",
            // PoCL's cache, and the threads of this process.
            "fs::read_dir(",
            "fs::read_to_string(",
            // Damaged files of PoCL's cache.
            "fs::read(",
            "fs::remove_file(",
            "File::open(",
        ],
    ),
    // The picture that `mask` of `ignore` names.
    (
        "pictures/src/lib.rs",
        &["fs::{self, File}", "fs::metadata(", "File::open("],
    ),
    // The model that `location` names is read, and written to a temporary name beside it that is renamed.
    (
        "models/src/read.rs",
        &["fs::{self, File}", "fs::metadata(", "File::open("],
    ),
    (
        "models/src/write.rs",
        &[
            "fs::{self, File, OpenOptions}",
            "fs::canonicalize(",
            "fs::rename(",
            "fs::remove_file(",
            "File::open(",
            "OpenOptions::new(",
        ],
    ),
    ("flat_field/references.rs", &["ModelFile::open("]),
    ("reference/file.rs", &["ModelFile::open("]),
    ("surface/file.rs", &["ModelFile::open("]),
    ("inspector/saved.rs", &["ModelFile::open("]),
];
/// Names that the plugin's code may not contain: files, processes, sockets, libraries.
const FORBIDDEN: [&str; 11] = [
    "std::fs",
    "fs::",
    "File::",
    "OpenOptions",
    "temp_dir",
    "std::process::Command",
    "Command::new",
    "UnixStream",
    "TcpStream",
    "libloading",
    "dlopen",
];

/// The code of every Rust file of the plugin, without comments.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = [
        "core",
        "models",
        "pictures",
        "opencl",
        "operators",
        "results",
        "overlay",
    ];
    let folders = crates
        .iter()
        .map(|name| root.join("crates").join(name).join("src"))
        .chain([root.join("src")]);
    let mut sources = code(folders.collect(), vec![root.join("build.rs")]);
    // Only other programs ask for this feature.
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("\"report\""));
    let lib = fs::read_to_string(root.join("crates/results/src/lib.rs")).unwrap();
    for part in ["report", "text", "time"] {
        let gated = format!("#[cfg(feature = \"report\")]\npub mod {part};\n");
        assert!(lib.contains(&gated), "{part} is in the plugin");
        sources.retain(|(path, _)| !path.ends_with(format!("results/src/{part}.rs")));
    }
    sources
}

/// The code of these files and of every Rust file below these folders, without comments.
fn code(mut folders: Vec<PathBuf>, mut files: Vec<PathBuf>) -> Vec<(PathBuf, String)> {
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().map(|line| match line.find("//") {
                // Not the // of a URL.
                Some(at) if !line[..at].ends_with(':') => &line[..at],
                _ => line,
            });
            let code = lines.collect::<Vec<_>>().join("\n");
            (path, code)
        })
        .collect()
}

/// The variables in calls that read the environment at run time; the value of a constant is looked up in the
/// same file.
fn variables(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for call in [
        "env::var(",
        "env::var_os(",
        "env::vars",
        "getenv(",
        "g_getenv(",
    ] {
        for (at, _) in code.match_indices(call) {
            let argument = code[at + call.len()..].split(')').next().unwrap().trim();
            let constant = code
                .lines()
                .find(|line| line.contains(&format!("const {argument}:")))
                .and_then(|line| line.split('"').nth(1));
            names.push(match constant {
                Some(value) => value.to_owned(),
                None => argument.trim_matches('"').to_owned(),
            });
        }
    }
    names
}

#[test]
fn environment_that_the_plugin_reads_is_the_documented_one() {
    let sources = sources();
    assert!(sources.len() > 50, "{} sources", sources.len());
    let found: BTreeSet<String> = sources
        .iter()
        .flat_map(|(_, code)| variables(code))
        .collect();
    assert_eq!(found, READ_AT_RUN_TIME.map(str::to_owned).into());
    // `variables` finds both forms.
    let code = "const A: &str = \"ONE\";\nstd::env::var(A); env::var_os(\"TWO\")";
    assert_eq!(variables(code), ["ONE", "TWO"]);
}

#[test]
fn sources_write_no_file_but_models_and_start_no_program() {
    for (path, mut code) in sources() {
        for (file, calls) in READERS {
            if path.ends_with(file) {
                for call in calls {
                    assert!(code.contains(call), "{file} has no {call}");
                    code = code.replace(call, "");
                }
            }
        }
        for word in FORBIDDEN {
            assert!(!code.contains(word), "{} contains {word}", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_where_contributing_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rules = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let rule = rules.split("\n- `unsafe` only in").nth(1).unwrap();
    let rule = rule.split("\n- ").next().unwrap();
    let quoted = rule.split('`').skip(1).step_by(2);
    let listed: BTreeSet<&str> = quoted.filter(|name| name.contains('/')).collect();
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let folders = crates.map(|entry| entry.unwrap().path().join("src"));
    let mut found = BTreeSet::new();
    for (path, code) in code(folders.chain([root.join("src")]).collect(), Vec::new()) {
        let words = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"];
        if words.iter().any(|word| code.contains(word)) {
            let path = path.strip_prefix(root).unwrap().to_owned();
            let place = listed.iter().find(|place| path.starts_with(place));
            found.insert(*place.unwrap_or_else(|| panic!("{} is not listed", path.display())));
        }
    }
    assert_eq!(found, listed);
}

/// Paths that a process created or opened for writing, with the call.
fn written(trace: &str) -> Vec<(PathBuf, String)> {
    let makes = |line: &str| {
        let opens = line.contains("open(") || line.contains("openat(");
        let writes = ["O_CREAT", "O_WRONLY", "O_RDWR"]
            .iter()
            .any(|f| line.contains(f));
        let others = [
            "mkdir(",
            "mkdirat(",
            "mknod(",
            "mknodat(",
            "chmod(",
            "fchmodat(",
            "rename(",
        ];
        (opens && writes) || others.iter().any(|call| line.contains(call))
    };
    trace
        .lines()
        .filter(|line| makes(line) && !line.contains("= -1 "))
        .filter_map(|line| Some((line.split('"').nth(1)?.into(), line.to_owned())))
        .collect()
}

/// With a umask of 0 a careless `open` would create files that any user can replace.
#[test]
fn pipeline_with_umask_0_makes_no_file_but_the_drivers_and_the_registry() {
    for program in ["strace", "gst-launch-1.0"] {
        if !exists(program) {
            return skip(&format!("{program} is not installed"));
        }
    }
    let sandbox = Sandbox::new("umask");
    let (home, pocl) = (sandbox.folder("home"), sandbox.folder("pocl"));
    let cache = sandbox.path().join("cache");
    let log = sandbox.path().join("trace");
    let source = "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=64,height=16";
    let line = format!(
        "{source} ! clgaussian ! clhistogram ! clpitchthreshold pitch-x=8 pitch-y=0 multiples=<1> ! clmaskunpack ! fakesink"
    );
    let mut command: Command = sandbox.command("strace");
    command
        .args(["-f", "-qq", "-e", "trace=%file,fchmod", "-s", "4096", "-o"])
        .arg(&log)
        .args(["gst-launch-1.0", "--no-fault"])
        .args(line.split_whitespace())
        .current_dir(&home)
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .env("POCL_CACHE_DIR", &pocl)
        .env("CLINSPECT_CACHE_DIR", &cache)
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_RUNTIME_DIR");
    // SAFETY: umask is safe to call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            umask(0);
            Ok(())
        });
    }
    let done = run(&mut command);
    if done.code() != Some(0) && done.text().contains("pocl-opencl-icd") {
        return skip("this machine has no OpenCL device");
    }
    done.succeeded();
    let trace = fs::read_to_string(&log).unwrap();
    let written = written(&trace);
    // The trace is complete: GStreamer has written its registry.
    let registry = sandbox.path().join("registry.bin");
    let is_registry = |path: &Path| {
        path.to_string_lossy()
            .starts_with(&*registry.to_string_lossy())
    };
    assert!(written.iter().any(|(path, _)| is_registry(path)), "{trace}");
    for (path, call) in written {
        // liborc, which GStreamer's own elements use, keeps its code in a file that only its user
        // can access and that is deleted at once. Device nodes do not count.
        let orc = call.contains("/orcexec.") && call.contains("0600");
        // Only its user can access what the plugin keeps.
        let modes = [", 0600)", ", 0700)", "rename("];
        let kept = path.starts_with(&cache) && modes.iter().any(|mode| call.contains(mode));
        let allowed = path.starts_with(&pocl)
            || is_registry(&path)
            || path.starts_with("/dev")
            || orc
            || kept;
        assert!(allowed, "{call}");
    }
    assert_eq!(
        fs::read_dir(&home).unwrap().count(),
        0,
        "the home folder is not empty"
    );
}

unsafe extern "C" {
    safe fn umask(mask: u32) -> u32;
}
