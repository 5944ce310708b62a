#![no_main]

// The body is a test of the station: the other targets need nothing of the station.
#[path = "../../station/tests/plc/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
