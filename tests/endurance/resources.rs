//! Resources of the process, and their growth.

use std::{
    ffi::c_int,
    fs,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

unsafe extern "C" {
    /// glibc's: returns free memory to the system.
    fn malloc_trim(pad: usize) -> c_int;
}

/// Held by a test that measures the resources of the process.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resources of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Resident memory, KiB.
    pub rss_kib: i64,
    /// Memory in use on NVIDIA GPUs, by all processes, MiB; 0 if unknown.
    pub gpu_mib: i64,
    /// Open files.
    pub fds: i64,
    /// Threads.
    pub threads: i64,
}

impl Resources {
    /// The current resources. Returns the C library's free memory to the system first.
    pub fn now() -> Self {
        // SAFETY: malloc_trim may be called at any time.
        unsafe { malloc_trim(0) };
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let field = |name: &str| -> i64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Self {
            rss_kib: field("VmRSS:"),
            gpu_mib: gpu_mib().unwrap_or(0),
            fds: fs::read_dir("/proc/self/fd").unwrap().count() as i64,
            threads: field("Threads:"),
        }
    }
}

fn gpu_mib() -> Option<i64> {
    let asked = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.used", "--format=csv,noheader,nounits"])
        .output()
        .ok()?;
    let text = String::from_utf8(asked.stdout).ok()?;
    text.lines()
        .map(|line| line.trim().parse::<i64>().ok())
        .sum()
}

/// Resources over the frames of a run.
#[derive(Default)]
pub struct Trend {
    samples: Vec<(u64, Resources)>,
}

/// How resources changed over a run.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Slope of the resident memory by least squares, KiB per 10 000 frames.
    pub rss_slope: f64,
    /// Resident memory at the end minus at the start, KiB.
    pub rss_kib: i64,
    /// Memory on GPUs, MiB.
    pub gpu_mib: i64,
    /// Open files.
    pub fds: i64,
    /// Threads.
    pub threads: i64,
    /// Maximum of open files in the second half minus the maximum in the first.
    pub most_fds: i64,
    /// The same for threads.
    pub most_threads: i64,
}

impl Trend {
    /// Records the resources after this number of frames.
    pub fn add(&mut self, frames: u64) {
        self.samples.push((frames, Resources::now()));
    }

    /// The resources at the first and at the last record.
    pub fn ends(&self) -> (Resources, Resources) {
        let [first, .., last] = &self.samples[..] else {
            panic!("{} records", self.samples.len());
        };
        (first.1, last.1)
    }

    /// Resident memory over frames, at about twenty points.
    pub fn rss(&self) -> Vec<(u64, i64)> {
        let step = self.samples.len().div_ceil(20).max(1);
        let every = self.samples.iter().step_by(step);
        every.map(|s| (s.0, s.1.rss_kib)).collect()
    }

    /// Changes after the first `skip` (a share from 0 to 1) of the frames, which fill the
    /// caches.
    pub fn growth(&self, skip: f64) -> Growth {
        let end = self.samples.last().expect("a sample");
        let from = skip * end.0 as f64;
        let kept: Vec<&(u64, Resources)> =
            self.samples.iter().filter(|s| s.0 as f64 >= from).collect();
        let start = kept[0];
        let n = kept.len() as f64;
        let x: Vec<f64> = kept.iter().map(|s| s.0 as f64 / 10_000.0).collect();
        let y: Vec<f64> = kept.iter().map(|s| s.1.rss_kib as f64).collect();
        let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let up: f64 = x
            .iter()
            .zip(&y)
            .map(|(x, y)| (x - mean_x) * (y - mean_y))
            .sum();
        let down: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
        let (first, second) = kept.split_at(kept.len() / 2);
        let more = |of: fn(&Resources) -> i64| {
            let most = |part: &[&(u64, Resources)]| part.iter().map(|s| of(&s.1)).max();
            most(second).unwrap_or(0) - most(first).or(most(second)).unwrap_or(0)
        };
        Growth {
            most_fds: more(|r| r.fds),
            most_threads: more(|r| r.threads),
            rss_slope: if down > 0.0 { up / down } else { 0.0 },
            rss_kib: end.1.rss_kib - start.1.rss_kib,
            gpu_mib: end.1.gpu_mib - start.1.gpu_mib,
            fds: end.1.fds - start.1.fds,
            threads: end.1.threads - start.1.threads,
        }
    }
}

#[test]
fn resources_that_grow_are_seen() {
    let _alone = alone();
    let mut trend = Trend::default();
    let mut kept: Vec<(Vec<u8>, fs::File)> = Vec::new();
    for step in 0..8_u8 {
        trend.add(1000 * u64::from(step));
        kept.push((
            vec![step | 1; 1 << 20],
            fs::File::open("/dev/null").unwrap(),
        ));
    }
    let growth = trend.growth(0.25);
    assert_eq!((growth.fds, growth.most_fds), (5, 3), "{growth:?}");
    // 1 MiB per 1000 frames.
    assert!((9000.0..12_000.0).contains(&growth.rss_slope), "{growth:?}");
    drop(kept);
}
