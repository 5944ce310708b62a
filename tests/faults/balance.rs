//! The elements release every OpenCL object that they create, as counted by the layer.

use crate::{
    layer::Report,
    stand::{Case, Frame, Stand},
};

/// Sizes of successive frames.
const SIZES: [[u32; 2]; 3] = [[96, 48], [100, 50], [96, 48]];

/// Starts and stops the elements `cycles` times.
///
/// Nothing is alive after a stop: the process-wide registry holds weak references only.
///
/// # Errors
/// The objects that are left.
pub fn try_one(case: Case, cycles: usize) -> Result<(), String> {
    let mut stand = Stand::new(case);
    let mut first = None;
    for cycle in 0..cycles {
        let before = Report::now().unwrap_or_default();
        let trace = stand.live_with_sizes(&SIZES);
        // The elements of a web stop while they hold the last strip.
        let sent = trace.frames.len() - usize::from(case.is_web());
        let (sent, held) = trace.frames.split_at(sent);
        if !sent.iter().all(|frame| matches!(frame, Frame::Out(_)))
            || !held.iter().all(|frame| *frame == Frame::Lost)
        {
            return Err(format!(
                "cycle {cycle}: {:?} {:?}",
                trace.frames, trace.errors
            ));
        }
        let after = Report::now().unwrap_or_default();
        if !after.alive().is_empty() {
            return Err(format!("alive after stop {cycle}: {:?}", after.alive()));
        }
        if after.stray() > 0 {
            return Err("an object was released too often".into());
        }
        if after.unflushed() > 0 {
            return Err("waits for a queue that was not flushed".into());
        }
        // The same calls in every cycle: nothing accumulates.
        let calls = after.calls_since(&before);
        // The self-test runs in the first cycle only.
        if cycle == 0 {
            continue;
        }
        let first = first.get_or_insert_with(|| calls.clone());
        for steady in ["clCreateBuffer", "clCreateKernel", "clBuildProgram"] {
            if first.get(steady) != calls.get(steady) {
                return Err(format!("cycle {cycle}: {calls:?}, not {first:?}"));
            }
        }
    }
    Ok(())
}
