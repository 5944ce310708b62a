//! Faults planted for `scripts/check-asan` and `scripts/check-valgrind`, which must report them.
//! Other runs skip these tests.

use std::{hint::black_box, mem::MaybeUninit};

const LEN: usize = 61;

/// A frame in memory of exactly its size.
fn frame() -> gst::Memory {
    gst::Memory::from_slice(vec![7_u8; LEN].into_boxed_slice())
}

#[test]
#[ignore = "a fault for scripts/check-asan and scripts/check-valgrind"]
fn planted_fault_read_past_a_frame() {
    crate::support::register();
    let memory = frame().into_mapped_memory_readable().unwrap();
    let start = memory.as_slice().as_ptr();
    // SAFETY: none, this is the fault: one byte past the frame.
    black_box(unsafe { start.add(black_box(LEN)).read() });
}

#[test]
#[ignore = "a fault for scripts/check-asan and scripts/check-valgrind"]
fn planted_fault_use_after_free() {
    crate::support::register();
    let memory = frame().into_mapped_memory_readable().unwrap();
    let start = black_box(memory.as_slice().as_ptr());
    drop(memory);
    // SAFETY: none, this is the fault: the frame is freed.
    black_box(unsafe { start.read() });
}

#[test]
#[ignore = "a fault for scripts/check-valgrind"]
fn planted_fault_uninitialised_byte_decides() {
    let mut bytes: Vec<MaybeUninit<u8>> = Vec::with_capacity(LEN);
    // SAFETY: elements that may be uninitialised.
    unsafe { bytes.set_len(LEN) };
    // SAFETY: none, this is the fault: the byte is uninitialised.
    if unsafe { black_box(&bytes)[LEN / 2].assume_init_read() } > 3 {
        black_box("decided");
    }
}
