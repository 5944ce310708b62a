//! Each OpenCL call fails, in each part of an element's life.

use std::time::Duration;

use crate::{
    layer::Report,
    stand::{Case, Fault, Frame, Phase, Stand, Trace, asks_for_times},
};

/// A fault must be told within this time.
const ERROR_LIMIT: Duration = Duration::from_secs(10);
/// And the elements stopped within this.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Status codes that calls fail with.
const CL_MEM_OBJECT_ALLOCATION_FAILURE: i32 = -4;
const CL_OUT_OF_RESOURCES: i32 = -5;

/// How much of it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first use of each function in each phase.
    First,
    /// The middle use too, all uses from the first, failures after the call has returned, and
    /// devices that are lost.
    All,
}

/// Faults that no element needs to tell of, and why. `None` is every phase.
const MAY_PASS: &[(&str, Option<Phase>, &str)] = &[
    (
        "clReleaseContext",
        None,
        "nothing can be done; it is logged",
    ),
    (
        "clReleaseCommandQueue",
        None,
        "nothing can be done; it is logged",
    ),
    (
        "clReleaseMemObject",
        None,
        "nothing can be done; it is logged",
    ),
    (
        "clReleaseProgram",
        None,
        "nothing can be done; it is logged",
    ),
    ("clReleaseKernel", None, "nothing can be done; it is logged"),
    ("clReleaseEvent", None, "nothing can be done; it is logged"),
    (
        "clGetProgramBuildInfo",
        None,
        "the compiler's log, of a program that builds",
    ),
    ("clGetEventInfo", None, "step times only"),
    ("clGetEventProfilingInfo", None, "step times only"),
    (
        "clEnqueueMapBuffer",
        None,
        "GStreamer maps a copy; where that fails too, whoever maps gets an error",
    ),
    (
        "clEnqueueUnmapMemObject",
        None,
        "told where the memory is used again; contents that the host wrote are",
    ),
    (
        "clFinish",
        Some(Phase::Stop),
        "results were told before; a buffer tells its reader",
    ),
];

/// One fault.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: String,
    function: String,
    fault: Fault,
}

/// The faults for a case, from the calls of a healthy life.
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
            if function.starts_with("clEnqueue") || ["clFlush", "clFinish"].contains(&&**function) {
                add(format!("{middle}"), "lose");
            }
        }
    }
    found
}

/// Lives through a fault, and then once more without.
///
/// # Errors
/// What went wrong.
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
        // What is kept past the stop stays mapped, where memory has been read at all.
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
        after = Report::now().unwrap_or_default();
    }
    // An object whose release fails stays.
    let left = after.left_since(&before);
    if !scenario.function.starts_with("clRelease") && !left.is_empty() {
        return Err(about(&format!("left behind {left:?}")));
    }
    if after.stray() > before.stray() {
        return Err(about("released what it did not own"));
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
            Frame::Out(_) if healthy.frames.get(i) != Some(frame) => {
                return about(&format!("frame {i} is wrong"));
            }
            Frame::Lost => return about(&format!("frame {i} is lost")),
            // The source tells it.
            Frame::NotSent => told = true,
            Frame::Refused if trace.errors.is_empty() => {
                return about(&format!("frame {i} is refused without a word"));
            }
            Frame::Unreadable if trace.errors.is_empty() => {
                return about(&format!("nobody tells that frame {i} cannot be read"));
            }
            _ => {}
        }
    }
    if !trace.started && !told {
        return about("does not start and says nothing");
    }
    // Frames that are sent in after an error may meet it again.
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
        return about("an error that does not help");
    }
    let may_pass = MAY_PASS.iter().any(|(function, phase, _)| {
        *function == scenario.function && phase.is_none_or(|p| p == scenario.fault.phase)
    });
    // There every unmap is an upload.
    let upload = scenario.function == "clEnqueueUnmapMemObject" && case.name == "histogram-gpu";
    // Another device takes the place of one that does not answer.
    let replaced = scenario.function == "clGetDeviceInfo"
        && clinspect_opencl::devices().is_ok_and(|devices| devices.len() > 1);
    if !told && !replaced && (!may_pass || upload) {
        return about("nobody tells");
    }
    Ok(())
}

/// It names what failed and what to do.
fn is_clear(error: &str) -> bool {
    let advice = ["stop and start", "install", "free memory"];
    error.contains("cl") && advice.iter().any(|advice| error.contains(advice))
}
