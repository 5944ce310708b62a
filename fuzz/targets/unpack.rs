#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| clinspect_testkit::fuzzing::unpack::run(data));
