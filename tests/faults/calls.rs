//! Each OpenCL call fails, in each phase of an element's life.

use std::time::Duration;

use crate::{
    layer::{self, Report},
    stand::{Case, Fault, Frame, Phase, Stand, Trace, asks_for_times},
};

/// Time within which a fault must be reported.
const ERROR_LIMIT: Duration = Duration::from_secs(10);
/// Time within which the elements must stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Status codes of failing calls.
const CL_MEM_OBJECT_ALLOCATION_FAILURE: i32 = -4;
const CL_OUT_OF_RESOURCES: i32 = -5;

/// Number of scenarios to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first use of each function in each phase; of copies and uploads also a failure after the call has
    /// returned.
    First,
    /// Also a middle use, all uses from the first, failures after the call has returned, and lost
    /// devices.
    All,
}

/// Faults that need no error, and the reason.
const MAY_PASS: &[(&str, &str)] = &[
    ("clReleaseContext", "nothing can be done; it is logged"),
    ("clReleaseCommandQueue", "nothing can be done; it is logged"),
    ("clReleaseMemObject", "nothing can be done; it is logged"),
    ("clSVMAlloc", "results are read by commands instead"),
    ("clSVMFree", "it has no status"),
    ("clReleaseProgram", "nothing can be done; it is logged"),
    ("clReleaseKernel", "nothing can be done; it is logged"),
    ("clReleaseEvent", "nothing can be done; it is logged"),
    (
        "clGetProgramBuildInfo",
        "the compiler's log, of a program that builds",
    ),
    ("clGetEventInfo", "step times only"),
    ("clGetEventProfilingInfo", "step times only"),
    (
        "clEnqueueMapBuffer",
        "GStreamer maps a copy; where that fails too, whoever maps gets an error",
    ),
    (
        "clEnqueueUnmapMemObject",
        "told where the memory is used again; contents that the host wrote are",
    ),
];

/// One fault.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: String,
    function: String,
    fault: Fault,
}

/// The faults for a case, from the calls of a run without faults.
pub fn scenarios(healthy: &Trace, depth: Depth) -> Vec<Scenario> {
    let mut found = Vec::new();
    for (&phase, calls) in &healthy.calls {
        for (function, &count) in calls {
            let code = match function.as_str() {
                "clCreateBuffer" | "clCreateImage" => CL_MEM_OBJECT_ALLOCATION_FAILURE,
                _ => CL_OUT_OF_RESOURCES,
            };
            let mut add = |which: String, action: &str| {
                let rules = format!("{function} {which} {action} {code}");
                found.push(Scenario {
                    name: format!("{phase:?}: {rules}"),
                    function: function.clone(),
                    fault: Fault {
                        phase,
                        rules,
                        lasting: which.ends_with('+') || action == "lose",
                        keep: action == "lose",
                    },
                });
            };
            add("1".into(), "fail");
            if depth == Depth::First {
                // A strip is copied or uploaded long before it is judged, so the failure must not be forgotten.
                if function.starts_with("clEnqueueCopy") || function == "clEnqueueWriteBuffer" {
                    add("1".into(), "late");
                }
                continue;
            }
            let middle = count.div_ceil(2);
            if middle > 1 {
                add(middle.to_string(), "fail");
            }
            add("1+".into(), "fail");
            if function.starts_with("clEnqueue") {
                add("1".into(), "late");
                add(middle.to_string(), "late");
            }
            if function.starts_with("clEnqueue") || function == "clFlush" {
                add(format!("{middle}"), "lose");
            }
        }
    }
    found
}

/// Runs with a fault, and then once more without.
///
/// # Errors
/// The expectation that failed.
pub fn try_one(case: Case, healthy: &Trace, scenario: &Scenario) -> Result<(), String> {
    let mut stand = Stand::new(case);
    let before = Report::now().unwrap_or_default();
    let trace = stand.live(Some(&scenario.fault));
    let mut after = Report::now().unwrap_or_default();
    let about = |what: &str| format!("{what}: {:?} {:?}", trace.frames, trace.errors);
    if after.faults_since(&before) == 0 {
        if asks_for_times(&scenario.function) {
            return Ok(());
        }
        // A buffer that is kept past the stop stays mapped if it was read.
        if scenario.fault.keep && scenario.function == "clEnqueueUnmapMemObject" {
            return Ok(());
        }
        return Err("the call was not made".into());
    }
    judge(case, scenario, healthy, &trace)?;
    let again = stand.live(None);
    if (&again.frames, &again.errors) != (&healthy.frames, &healthy.errors) {
        let again = format!("{:?} {:?}", again.frames, again.errors);
        return Err(about(&format!("does not recover, {again}, after")));
    }
    if stand.kept.take().is_some() {
        layer::settle();
        after = Report::now().unwrap_or_default();
    }
    // An object whose release fails stays alive.
    let left = after.left_since(&before);
    if !scenario.function.starts_with("clRelease") && !left.is_empty() {
        return Err(about(&format!("left behind {left:?}")));
    }
    if after.stray() > before.stray() {
        return Err(about("an object was released too often"));
    }
    if after.unflushed() > before.unflushed() {
        return Err(about("waits for a queue that was not flushed"));
    }
    Ok(())
}

fn judge(case: Case, scenario: &Scenario, healthy: &Trace, trace: &Trace) -> Result<(), String> {
    let about = |what: &str| Err(format!("{what}: {:?} {:?}", trace.frames, trace.errors));
    for (phase, time) in &trace.phase_times {
        let limit = match phase {
            Phase::Stop => STOP_LIMIT,
            _ => ERROR_LIMIT,
        };
        if *time > limit {
            return about(&format!("{phase:?} took {time:?}"));
        }
    }
    let mut told = !trace.errors.is_empty();
    for (i, frame) in trace.frames.iter().enumerate() {
        match frame {
            Frame::Out(_) if healthy.frames.get(i) != Some(frame) && !told => {
                return about(&format!("frame {i} is wrong"));
            }
            Frame::Out(_) if !healthy.allowed[i].contains(frame) => {
                return about(&format!("frame {i} is wrong"));
            }
            // A strip waits, and may be lost with the error of another one.
            Frame::Lost if !case.is_web() || !told => {
                return about(&format!("frame {i} is lost"));
            }
            // The source reports the fault.
            Frame::NotSent => told = true,
            Frame::Refused if trace.errors.is_empty() => {
                return about(&format!("frame {i} is refused without an error"));
            }
            Frame::Unreadable if trace.errors.is_empty() => {
                return about(&format!("no error says that frame {i} cannot be read"));
            }
            _ => {}
        }
    }
    if !trace.started && !told {
        return about("does not start and posts no error");
    }
    // Later frames may cause the same error again.
    for error in &trace.errors {
        let source = |error: &String| error.split(':').next().map(str::to_owned);
        let first = trace.errors.iter().find(|e| source(e) == source(error));
        if first != Some(error) {
            return about("more than one error of an element");
        }
    }
    if let Some(error) = trace.errors.first()
        && !is_clear(error)
    {
        return about("an error that does not say what to do");
    }
    let mut may_pass = MAY_PASS.iter().map(|(function, _)| *function);
    let may_pass = may_pass.any(|function| function == scenario.function);
    // Another device replaces one whose query fails.
    let replaced = scenario.function == "clGetDeviceInfo"
        && clinspect_opencl::devices().is_ok_and(|devices| devices.len() > 1);
    if !told && !replaced && !may_pass {
        return about("no error was posted");
    }
    Ok(())
}

/// True if the error names the failed call and the remedy.
fn is_clear(error: &str) -> bool {
    let advice = ["stop and start", "install", "free memory"];
    error.contains("cl") && advice.iter().any(|advice| error.contains(advice))
}
