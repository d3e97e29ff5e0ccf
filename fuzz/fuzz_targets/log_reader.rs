//! See `ensue_fuzz::log_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ensue_fuzz::log_reader::run(data));
