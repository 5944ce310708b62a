#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| clinspect_fuzz::bodies::events::run(data));
