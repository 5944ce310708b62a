//! The layer of `tests/opencl_layer`: builds it, sets its rules, and reads its report.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use crate::tools::opencl_layer;
pub use crate::tools::write_layer_rules as write_rules;

/// Environment variables of the layer.
const RULES: &str = "CLINSPECT_LAYER_RULES";
const REPORT: &str = "CLINSPECT_LAYER_REPORT";
/// The plugin's variable.
const CACHE: &str = "CLINSPECT_CACHE_DIR";

/// Longest time that releases may continue after a stop.
const RELEASES: Duration = Duration::from_secs(10);
/// A count that has not changed for this time is final.
const QUIET: Duration = Duration::from_millis(300);
/// Longest delay of a release by the background thread.
const LATE_RELEASE: Duration = Duration::from_secs(2);
/// Interval between two reads of a report.
const LOOK: Duration = Duration::from_millis(5);

/// Waits for releases in the background after a stop, until no object is alive or the counts stay
/// the same.
pub fn settle() {
    let alive = || Report::now().unwrap_or_default().alive();
    let end = Instant::now() + RELEASES;
    let (mut last, mut since) = (alive(), Instant::now());
    while !last.is_empty() && since.elapsed() < QUIET && Instant::now() < end {
        thread::sleep(LOOK);
        let now = alive();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}

/// Waits for a call that matches a rule, after `before`: a release may happen in the background.
pub fn wait_for_fault(before: &Report) {
    let end = Instant::now() + LATE_RELEASE;
    while Report::now().unwrap_or_default().faults_since(before) == 0 && Instant::now() < end {
        thread::sleep(LOOK);
    }
}

/// Number of memory objects that are alive.
pub fn memory() -> i64 {
    let alive = Report::now().unwrap_or_default().alive();
    let memory = alive.iter().find(|(kind, _)| *kind == "memory");
    memory.map_or(0, |(_, count)| *count)
}

/// Builds the layer once, and returns its path.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let library = folder().join("layer.so");
        opencl_layer(&library);
        library
    })
}

/// The functions that the layer hooks.
pub fn hooked() -> Vec<String> {
    let list = include_str!("../../../tests/opencl_layer/functions.h");
    let list = list.split("#define HOOKED(X)").nth(1).unwrap();
    let list = list.split("\n\n").next().unwrap();
    list.split("X(")
        .skip(1)
        .map(|x| x.split(')').next().unwrap().to_owned())
        .collect()
}

/// A folder for this process.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let all = env::temp_dir();
        // Remove the folders of ended processes.
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(process) = name.strip_prefix("clinspect-layer-")
                && !Path::new("/proc").join(process).exists()
            {
                // Another process may remove the same folder.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = all.join(format!("clinspect-layer-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// Environment that puts the layer between a program and its driver; `name` is unique to a run.
pub fn put_between(command: &mut Command, name: &str) -> (PathBuf, PathBuf) {
    let rules = folder().join(format!("{name}.rules"));
    let report = folder().join(format!("{name}.report"));
    command
        .env("OPENCL_LAYERS", library())
        .env(CACHE, folder().join(format!("{name}.cache")))
        .env(RULES, &rules)
        .env(REPORT, &report);
    (rules, report)
}

/// The plugin's cache in this child.
pub fn cache() -> PathBuf {
    env::var_os(CACHE)
        .expect("the environment of a child")
        .into()
}

/// Sets the rules of this process's layer; an empty text removes them.
pub fn set_rules(rules: &str) {
    let path = PathBuf::from(env::var_os(RULES).expect("the environment of a child"));
    write_rules(&path, rules);
}

/// The counts of the layer.
#[derive(Debug, Clone, Default)]
pub struct Report(BTreeMap<String, [u64; 2]>);

/// Lines of the report that are not functions.
const OBJECTS: [&str; 6] = ["context", "queue", "memory", "program", "kernel", "event"];

impl Report {
    /// The report of this process; `None` if the loader loaded no layer.
    pub fn now() -> Option<Self> {
        Self::read(Path::new(&env::var_os(REPORT)?))
    }

    /// A report.
    pub fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let lines = text.lines().map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap().to_owned();
            let mut number = || words.next().unwrap().parse().unwrap();
            (name, [number(), number()])
        });
        Some(Self(lines.collect()))
    }

    fn get(&self, name: &str) -> [u64; 2] {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Functions with calls since `before`, and the number of calls.
    pub fn calls_since(&self, before: &Self) -> BTreeMap<String, u64> {
        let calls = self.functions().map(|name| {
            let count = self.get(name)[0] - before.get(name)[0];
            (name.to_owned(), count)
        });
        calls.filter(|(_, count)| *count > 0).collect()
    }

    /// Calls that matched a rule, since `before`.
    pub fn faults_since(&self, before: &Self) -> u64 {
        self.functions()
            .map(|name| self.get(name)[1] - before.get(name)[1])
            .sum()
    }

    fn functions(&self) -> impl Iterator<Item = &str> {
        let names = self.0.keys().map(String::as_str);
        names.filter(|name| name.starts_with("cl"))
    }

    /// Kinds of objects, and their increase since `before`.
    pub fn left_since(&self, before: &Self) -> Vec<(&'static str, i64)> {
        OBJECTS
            .into_iter()
            .map(|kind| (kind, self.get(kind)[1] as i64 - before.get(kind)[1] as i64))
            .filter(|(_, more)| *more != 0)
            .collect()
    }

    /// Kinds of objects, and their number.
    pub fn alive(&self) -> Vec<(&'static str, i64)> {
        self.left_since(&Self::default())
    }

    /// Releases of objects with a reference count of 0.
    pub fn stray(&self) -> u64 {
        self.get("stray")[0]
    }

    /// Waits for an event of an unflushed queue.
    pub fn unflushed(&self) -> u64 {
        self.get("unflushed")[0]
    }
}
