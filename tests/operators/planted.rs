//! Faults planted for `scripts/check-oclgrind`, which must report each of them before it trusts a clean run.
//! They call the crate's kernels with wrong arguments, only on Oclgrind's device.

use std::sync::Arc;

use clinspect_opencl::{Arg, ClContext, Meter, NdRange, ProgramSource};

use crate::device;

/// Runs a fault on Oclgrind's device only.
fn plant(fault: impl Fn(&Arc<ClContext>)) {
    match device::open() {
        Some(device) if device.device_name().contains("Oclgrind") => fault(&device),
        _ => device::skip("planted fault", "it would corrupt memory outside Oclgrind"),
    }
}

#[test]
#[ignore = "scripts/check-oclgrind plants it"]
fn planted_fault_out_of_bounds() {
    plant(|device| {
        let meter = Meter::new(false);
        let program = device
            .program(ProgramSource::PitchThresholdMask, "")
            .unwrap();
        let mut kernel = program.kernel("mask_expand").unwrap();
        let packed = device.device_memory(1).unwrap();
        device.write(&packed, 0, &[0xff], "a mask").unwrap();
        let pixels = device.device_memory(8).unwrap();
        // Writes eight pixels, starting at the fifth of eight bytes.
        let args = [
            Arg::Mem(&packed),
            Arg::U32(1),
            Arg::Mem(&pixels),
            Arg::U64(4),
            Arg::U32(8),
            Arg::I32(8),
            Arg::I32(1),
        ];
        let range = NdRange::cover([1, 1], [1, 1]);
        let _ = device
            .submit(&meter, 0)
            .run(&mut kernel, "mask_expand", &args, &range);
        let _ = device.finish();
    });
}

#[test]
#[ignore = "scripts/check-oclgrind plants it"]
fn planted_fault_data_race() {
    plant(|device| {
        let meter = Meter::new(false);
        let program = device.program(ProgramSource::Histogram, "").unwrap();
        let mut kernel = program.kernel("histogram_private").unwrap();
        let plane = device.device_memory(64).unwrap();
        device.write(&plane, 0, &[9; 64], "a plane").unwrap();
        let table = device.device_memory(1024).unwrap();
        device.zero(&table, 1024, "a table").unwrap();
        let args = [
            Arg::Mem(&plane),
            Arg::U64(0),
            Arg::U32(64),
            Arg::I32x4([0, -1, -1, -1]),
            Arg::I32x4([0; 4]),
            Arg::I32x4([64, 0, 0, 0]),
            Arg::I32(0),
            Arg::I32(64),
            Arg::I32(0),
            Arg::I32(1),
            Arg::U32(0),
            Arg::U32(256),
            Arg::Mem(&table),
            // Tables of length 0: both work-items count in the same table.
            Arg::U32(0),
        ];
        let range = NdRange::groups(2, 1);
        let _ = device
            .submit(&meter, 0)
            .run(&mut kernel, "histogram_private", &args, &range);
        let _ = device.finish();
    });
}

#[test]
#[ignore = "scripts/check-oclgrind plants it"]
fn planted_fault_wrong_call() {
    plant(|device| {
        let memory = device.device_memory(16).unwrap();
        assert!(device.zero(&memory, 64, "four times its size").is_err());
    });
}
