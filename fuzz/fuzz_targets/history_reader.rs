//! See `ensue_fuzz::history_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ensue_fuzz::history_reader::run(data));
