//! The worker threads of PoCL.

use std::{collections::BTreeSet, fs};

use crate::device;

/// The value of a field in a thread's `status`.
fn field(status: &str, name: &str) -> Option<String> {
    let line = status.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[test]
fn workers_of_pocl_have_a_processor_each() {
    let Some(device) = device::open() else { return };
    if !device.device_name().contains("pthread") && !device.device_name().starts_with("cpu") {
        return device::skip("threads of PoCL", "the device is not PoCL's");
    }
    if std::env::var_os("POCL_AFFINITY").is_some() {
        return device::skip("threads of PoCL", "POCL_AFFINITY leaves them to PoCL");
    }
    let statuses: Vec<String> = fs::read_dir("/proc/self/task")
        .expect("Linux")
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .collect();
    let of = |status: &String| field(status, "Cpus_allowed_list").expect("a list");
    let workers: Vec<&String> = statuses
        .iter()
        .filter(|status| field(status, "Name").is_some_and(|name| name == "pocl-worker"))
        .collect();
    assert_eq!(workers.len(), device.caps().compute_units, "worker threads");
    let pinned: BTreeSet<String> = workers.iter().map(|status| of(status)).collect();
    let processors = std::thread::available_parallelism()
        .expect("a number")
        .get();
    if processors > 2 || workers.len() != processors {
        return device::skip(
            "pinned threads of PoCL",
            "the machine has no two processors",
        );
    }
    assert_eq!(pinned.len(), processors, "{pinned:?}");
    assert!(
        pinned.iter().all(|list| list.parse::<usize>().is_ok()),
        "{pinned:?}"
    );
    // Threads of the process itself stay free.
    let own = fs::read_to_string("/proc/thread-self/status").expect("Linux");
    assert_ne!(field(&own, "Name").expect("a name"), "pocl-worker");
    assert!(processors == 1 || of(&own).parse::<usize>().is_err());
}
