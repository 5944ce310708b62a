//! Drivers that fail, stall or return false values: an OpenCL layer between the elements and the
//! driver (`tests/opencl_layer`).
//!
//! Scenarios run in child processes, each with its own layer. The tests that take
//! minutes are ignored; `tests/torture/opencl_faults` runs them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use clinspect_testkit::{child, layer, tools};
mod balance;
mod calls;
mod cases;
mod kept_programs;
mod leaks;
mod limits;
mod own_strips;
mod pins;
mod self_test;
mod sharing;
mod shutdown;
mod stand;
mod strips;
mod waits;

use calls::Depth;
use stand::Stand;

#[test]
#[ignore = "what the other tests start in a process of its own"]
fn child() {
    let Some(job) = child::job() else { return };
    gst::init().unwrap();
    gstclinspect::register_static().unwrap();
    if layer::Report::now().is_none() && clinspect_opencl::devices().is_err() {
        return child::skip("this machine has no OpenCL device");
    }
    let words: Vec<&str> = job.split(':').collect();
    let name = |text: &&str| (*text).to_owned();
    match words[..] {
        ["calls", case, depth] => {
            let case = cases::named(case);
            let Some(healthy) = healthy(case) else { return };
            let depth = if depth == "all" {
                Depth::All
            } else {
                Depth::First
            };
            child::each(
                &calls::scenarios(&healthy, depth),
                |scenario| scenario.name.clone(),
                |scenario| calls::try_one(case, &healthy, scenario),
            );
        }
        ["stalls", case, depth] => {
            let case = cases::named(case);
            let Some(healthy) = healthy(case) else { return };
            let stalls = shutdown::stalls(&healthy, depth == "few");
            child::each(&stalls, String::clone, |function| {
                shutdown::stall(case, &healthy, function)
            });
        }
        ["playing", which] => {
            let Some(_) = healthy(cases::named("chain")) else {
                return;
            };
            let all = shutdown::WHILE_PLAYING;
            let some = if which == "all" { all } else { &all[..3] };
            child::each(some, name, |rules| shutdown::while_playing(rules));
        }
        ["limits", which] => {
            let Some(_) = healthy(cases::named("chain")) else {
                return;
            };
            child::each(
                &limits::scenarios(which.parse().ok()),
                limits::Scenario::name,
                limits::try_one,
            );
        }
        ["too-large"] => {
            let Some(_) = healthy(cases::named("gaussian")) else {
                return;
            };
            child::each(limits::TOO_LARGE, name, limits::too_large);
        }
        ["balance", case, cycles] => {
            child::each(&[case], name, |case| {
                balance::try_one(cases::named(case), cycles.parse().unwrap())
            });
        }
        ["waits", device] => {
            let Some(healthy) = healthy(cases::named("gaussian")) else {
                return;
            };
            let scenarios = waits::scenarios(device);
            child::each(
                &scenarios,
                |(name, _)| (*name).to_owned(),
                |(_, run)| run(&healthy),
            );
        }
        ["kept-programs"] => {
            let Some(_) = healthy(cases::KEPT) else {
                return;
            };
            let each = kept_programs::ALL;
            child::each(each, |(name, _)| (*name).to_owned(), |(_, run)| run());
        }
        ["self-test"] => {
            let Some(_) = healthy(cases::named("gaussian")) else {
                return;
            };
            child::each(
                self_test::ALL,
                self_test::Scenario::name,
                self_test::try_one,
            );
        }
        ["sharing"] => {
            let Some(_) = healthy(cases::named("gaussian")) else {
                return;
            };
            child::each(
                sharing::ALL,
                |(name, _)| (*name).to_owned(),
                |(_, line)| sharing::try_one(line),
            );
        }
        ["calls-of", case] => {
            let Some(healthy) = healthy(cases::named(case)) else {
                return;
            };
            let called = healthy.calls.into_values().flatten().map(|(name, _)| name);
            let called: std::collections::BTreeSet<String> = called.collect();
            child::tell(&called.into_iter().collect::<Vec<_>>().join(" "));
        }
        _ => panic!("no job: {job}"),
    }
}

/// Runs a case without faults, with compiled kernels; `None` is a skip.
fn healthy(case: stand::Case) -> Option<stand::Trace> {
    let mut stand = Stand::new(case);
    stand.live(None);
    let mut healthy = stand.live(None);
    if layer::Report::now().is_none() {
        child::skip("the OpenCL loader takes no layers");
        return None;
    }
    let out = |frame: &stand::Frame| matches!(frame, stand::Frame::Out(_));
    assert!(healthy.frames.iter().all(out), "{:?}", healthy.errors);
    assert_eq!((healthy.frames.len(), &healthy.errors), (5, &Vec::new()));
    // Without the model of the file the frames would pass as they are.
    let is_in_force = !case.elements.contains("location=") || healthy.warnings.is_empty();
    assert!(is_in_force, "{:?}", healthy.warnings);
    healthy.allowed = if case.is_web() {
        stand.of_every_web()
    } else {
        healthy.frames.iter().map(|f| vec![f.clone()]).collect()
    };
    Some(healthy)
}

/// Runs jobs, two per processor because they mostly wait; fails with the failures of the
/// jobs.
fn assert_all(jobs: &[String]) {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    child::assert_all(jobs, 2 * processors, run);
}

/// Runs a job. PoCL makes a program's binary of the files that all processes with its cache have made of the program: it is
/// damaged if one of them compiles meanwhile. So a driver whose programs the plugin keeps has a cache of its own.
fn run(job: &str) -> child::Outcome {
    if !job.contains("kept") {
        return child::run(job);
    }
    let caches = tools::Sandbox::new(&job.replace(':', "-"));
    child::run_with(job, |command, name| {
        layer::put_between(command, name);
        command.env("POCL_CACHE_DIR", caches.folder("pocl"));
    })
}

/// `kind` of every case, or of those that the environment names.
fn of_every_case(kind: &str, more: &str) -> Vec<String> {
    let only = std::env::var("CLINSPECT_FAULTS_CASES").unwrap_or_default();
    let chosen = |name: &&str| only.is_empty() || only.split(',').any(|o| o == *name);
    let names = cases::ALL.iter().map(|case| case.name).filter(chosen);
    names.map(|name| format!("{kind}:{name}{more}")).collect()
}

fn jobs(jobs: &[&str]) -> Vec<String> {
    jobs.iter().map(|&job| job.to_owned()).collect()
}

#[test]
fn first_use_of_each_call_failing_is_one_error_and_recovers() {
    let cases = [
        "gaussian",
        "histogram-gpu",
        "pitch-frame",
        "flat-field-gpu",
        "reference-gpu",
        "web",
        "web-gaussian",
        "web-gpu",
        "web-padded-gpu",
    ];
    assert_all(&cases.map(|case| format!("calls:{case}:first")));
}

#[test]
#[ignore = "minutes; tests/torture/opencl_faults"]
fn every_call_failing_anywhere_is_one_error_and_recovers() {
    assert_all(&of_every_case("calls", ":all"));
}

#[test]
fn every_call_is_hooked_and_every_hook_is_called() {
    let mut hooked = layer::hooked();
    assert!(!hooked.is_empty());
    let others = jobs(&["calls-of:kept", "calls-of:nvidia"]);
    for job in of_every_case("calls-of", "").into_iter().chain(others) {
        // A call that the layer does not know ends the child.
        let outcome = run(&job);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        if let Some(why) = outcome.skipped {
            return tools::skip(&why);
        }
        assert!(outcome.told.contains("clCreateContext"), "{}", outcome.told);
        hooked.retain(|function| !outcome.told.split(' ').any(|called| called == function));
    }
    assert!(hooked.is_empty(), "never called: {hooked:?}");
}

#[test]
fn self_test_refuses_drivers_that_compute_wrong_or_read_old_memory() {
    assert_all(&jobs(&["self-test"]));
}

#[test]
fn compiled_programs_are_kept_for_drivers_that_keep_none() {
    assert_all(&jobs(&["kept-programs"]));
}

#[test]
fn readers_and_kernels_on_one_buffer_of_a_device_with_memory_of_its_own_do_not_wait_for_each_other()
{
    assert_all(&jobs(&["sharing"]));
}

#[test]
fn stall_of_a_driver_at_a_stop_is_bounded() {
    assert_all(&jobs(&["stalls:chain:few", "stalls:chain-gpu:few"]));
}

#[test]
#[ignore = "minutes; tests/torture/opencl_faults"]
fn stall_of_a_driver_at_any_stop_is_bounded() {
    assert_all(&of_every_case("stalls", ":all"));
}

#[test]
fn waits_are_bounded_in_order_and_between_those_who_need_them() {
    assert_all(&jobs(&["waits:cpu", "waits:gpu"]));
}

#[test]
fn faults_while_a_live_pipeline_plays_are_errors_and_stops_stay_bounded() {
    assert_all(&jobs(&["playing:some"]));
}

#[test]
#[ignore = "minutes; tests/torture/opencl_faults"]
fn more_faults_while_a_live_pipeline_plays_are_errors_and_stops_stay_bounded() {
    assert_all(&jobs(&["playing:all"]));
}

#[test]
fn limited_devices_give_the_same_results_or_refuse() {
    assert_all(&jobs(&["limits:some"]));
}

#[test]
fn frames_larger_than_the_largest_buffer_are_the_error_of_the_element_that_refuses_them() {
    assert_all(&jobs(&["too-large"]));
}

#[test]
#[ignore = "minutes; tests/torture/opencl_faults"]
fn each_limit_of_a_device_gives_the_same_results_or_refuses() {
    let all: Vec<String> = (0..limits::COUNT).map(|i| format!("limits:{i}")).collect();
    assert_all(&all);
}

#[test]
fn objects_are_all_released_at_every_stop() {
    assert_all(&jobs(&[
        "balance:chain:5",
        "balance:chain-gpu:5",
        "balance:web:5",
        "balance:web-gpu:5",
        "balance:web-padded-gpu:5",
        "balance:nvidia:5",
    ]));
}

#[test]
#[ignore = "minutes; tests/torture/opencl_faults"]
fn objects_of_every_element_are_all_released_over_a_hundred_cycles() {
    assert_all(&of_every_case("balance", ":100"));
}
